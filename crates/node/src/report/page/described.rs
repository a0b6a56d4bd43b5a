//! What `describe` found of every column.

use veilsum_charts::{Chart, Page, Plot, page::Cell, text::number};

use crate::{
    description::{Bin, Description, Number},
    report::told::Told,
};

/// Histograms and categories.
pub(super) fn columns(page: &mut Page, told: &Told) {
    let Some(found) = &told.description else { return };
    page.part("Columns of numbers");
    let noisy = told.privacy.is_some();
    let rows = found.numbers.iter().enumerate().map(|(i, of)| {
        let shown = |value: &dyn Fn(&Number) -> f64| told.described(|of| Some(value(of.numbers.get(i)?)));
        let deviation = told
            .below(&format!("numbers/{i}/deviation"))
            .map_or_else(|| shown(&|of| of.deviation), |end| format!("below {}", number(end)));
        let missing = told.lacking(&format!("numbers/{i}"), |of| of.numbers.get(i)?.missing);
        [of.column.clone(), missing, shown(&|of| of.mean), deviation].map(Cell::Text)
    });
    if noisy {
        page.paragraph("Behind ± is a standard error of the noise, of which two to either side are a 95 % interval.");
    }
    page.numbers(&["column", "missing", "mean", "deviation"], rows);
    let charts: Vec<Chart> = found
        .numbers
        .iter()
        .enumerate()
        // Under noise bars have an error, or are not there.
        .filter_map(|(i, of)| {
            let rows = |bins: &[Bin]| bins.iter().map(|bin| bin.rows).max();
            let errors = told.errors.as_ref().and_then(|errors| errors.description.as_ref());
            let error = errors.and_then(|errors| rows(&errors.numbers.get(i)?.histogram));
            let title = match (noisy, error) {
                (false, _) => of.column.clone(),
                (true, error) => format!("{}: rows of a bar ± {} at most", of.column, error?),
            };
            let bins = of.histogram.iter().map(|bin| (bin.from, bin.to, bin.rows as f64)).collect();
            Some(Chart::new(title, "", "rows", Plot::Histogram(bins)))
        })
        .collect();
    page.charts(&charts);
    page.aside(&format!("Missing: {}.", found.missing));
    categories(page, told, found);
}

fn categories(page: &mut Page, told: &Told, found: &Description) {
    if found.categories.is_empty() {
        return;
    }
    page.part("Columns of categories");
    for (i, of) in found.categories.iter().enumerate() {
        let missing = told.lacking(&format!("categories/{i}"), |of| of.categories.get(i)?.missing);
        page.subpart(&format!("{}, missing {missing}", of.column));
        let rows = of.counts.iter().enumerate().map(|(at, count)| {
            let rows = told.described(|of| Some(of.categories.get(i)?.counts.get(at)?.rows as f64));
            let share = told.described(|of| Some(100.0 * of.categories.get(i)?.counts.get(at)?.share));
            [count.category.clone(), rows, share].map(Cell::Text)
        });
        page.numbers(&["category", "rows", "share, %"], rows);
    }
}
