//! What `describe` found of every column.

use veilsum_charts::{
    Chart, Histogram, Page, Plot,
    page::Cell,
    text::{number, percent},
};

use crate::report::told::{Described, Told};

/// Columns whose correlations fit a table that can be read.
const CORRELATED: usize = 12;

/// Histograms, quantiles, categories, correlations.
pub(super) fn columns(page: &mut Page, told: &Told) {
    let Some(found) = &told.description else { return };
    page.part("Columns of numbers");
    let quantiles: Vec<String> =
        found.numbers.first().map_or(&[][..], |of| &of.quantiles[..]).iter().map(|q| percent(q.q)).collect();
    let mut heads = vec!["column", "missing", "mean", "deviation"];
    heads.extend(quantiles.iter().map(String::as_str));
    let rows = found.numbers.iter().map(|of| {
        let first = [of.column.clone(), missing(of.missing), shown(of.mean), shown(of.deviation)];
        let values: Vec<Cell> =
            first.into_iter().chain(of.quantiles.iter().map(|q| shown(q.value))).map(Cell::Text).collect();
        values
    });
    page.numbers(&heads, rows);
    let charts: Vec<Chart> = found
        .numbers
        .iter()
        .map(|of| {
            let bins = of.histogram.iter().map(|bin| (bin.from, bin.to, bin.rows as f64)).collect();
            let chart = Chart::new(of.column.clone(), "", "rows", Plot::Histogram(Histogram { bins }));
            match of.quantiles.iter().find(|q| q.q == 0.5).and_then(|q| q.value) {
                Some(median) => chart.note(median, format!("median {}", number(median))),
                None => chart,
            }
        })
        .collect();
    page.charts(&charts);
    page.aside(&format!("Quantiles are read off the bins. Missing: {}.", found.missing.replace('`', "")));
    categories(page, found);
    correlations(page, found);
}

fn shown(x: Option<f64>) -> String {
    x.map_or("–".to_owned(), number)
}

fn missing(rows: Option<u64>) -> String {
    rows.map_or("–".to_owned(), |rows| rows.to_string())
}

fn categories(page: &mut Page, found: &Described) {
    if found.categories.is_empty() {
        return;
    }
    page.part("Columns of categories");
    for of in &found.categories {
        page.subpart(&format!("{}, missing {}", of.column, missing(of.missing)));
        let rows = of
            .counts
            .iter()
            .map(|count| [count.category.clone(), count.rows.to_string(), percent(count.share)].map(Cell::Text));
        page.numbers(&["category", "rows", "share"], rows);
    }
}

fn correlations(page: &mut Page, found: &Described) {
    let Some(table) = &found.correlations else { return };
    page.part("Correlations");
    let names: Vec<&str> = found.numbers.iter().map(|of| of.column.as_str()).collect();
    if names.len() <= CORRELATED {
        let heads: Vec<&str> = std::iter::once("column").chain(names.iter().copied()).collect();
        let rows = names.iter().zip(table).map(|(name, line)| {
            let cells =
                line.iter().map(|value| Cell::Text(value.map_or("–".to_owned(), |value| format!("{value:.3}"))));
            std::iter::once(Cell::from(*name)).chain(cells).collect::<Vec<_>>()
        });
        page.numbers(&heads, rows);
        return;
    }
    let mut pairs = Vec::new();
    for (i, line) in table.iter().enumerate() {
        pairs.extend(line.iter().take(i).enumerate().filter_map(|(j, value)| Some((i, j, (*value)?))));
    }
    pairs.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()));
    page.paragraph("The strongest of all pairs; result.json has every one.");
    let name = |i: usize| names.get(i).copied().unwrap_or_default();
    let rows = pairs
        .iter()
        .take(20)
        .map(|(i, j, value)| [Cell::from(format!("{} and {}", name(*i), name(*j))), Cell::Text(format!("{value:.3}"))]);
    page.numbers(&["columns", "correlation"], rows);
}
