//! The centres: as a table, as lines over all columns, as pairs of columns; and how much each cluster holds.

use veilsum_charts::{
    Chart, Cloud, Page, Plot, Spot, Value,
    page::Cell,
    text::{number, percent, shortened, within},
};

use super::reported::Reported;
use crate::report::{told::Told, words};

/// Clusters whose lines can be told apart in one chart.
const LINES: usize = 16;
/// Columns of which every pair is drawn.
const PAIRED: usize = 4;
/// Clusters that are columns of a table; more are its rows.
const ACROSS: usize = 10;
/// Columns that are shown in the open if there are many; the others are folded up.
const OPEN: usize = 6;
/// Deviations from a centre to the edge of its ellipse.
const DEVIATIONS: f64 = 2.0;

/// The columns of a report: their names, and the box where it is known, else what centres span.
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    pub(super) ranges: Vec<(f64, f64)>,
    /// How many are of numbers, as far as the plan or the model is there; shares of categories follow.
    numbers: usize,
    units: Vec<String>,
    /// Whether the ranges are those of the plan.
    public: bool,
}

impl Columns {
    pub(super) fn of(all: &Reported) -> Columns {
        let told = &all.told;
        let unit = |name: &String| all.columns.as_ref().and_then(|of| of.unit(name)).unwrap_or_default().to_owned();
        let of_plan = all.federation.as_ref().map(|of| &of.work.columns);
        let public = all.model.as_ref().map(|model| &model.columns).or(of_plan);
        let range = |column: usize| match public {
            Some(public) => public.get(column).map_or((0.0, 1.0), |column| (column.lower, column.upper)),
            None => told.span(column),
        };
        Columns {
            names: told.columns.clone(),
            numbers: public.map_or(told.columns.len(), Vec::len),
            ranges: (0..told.columns.len()).map(range).collect(),
            units: told.columns.iter().map(unit).collect(),
            public: public.is_some(),
        }
    }

    /// All columns, those first that differ most between clusters: by their part of the squares between them, else by how far centres lie
    /// apart as a share of the range.
    fn ranked(&self, told: &Told) -> Vec<usize> {
        let apart = |column: usize| {
            let (low, high) = told.span(column);
            let (from, to) = self.ranges[column];
            let share = (high - low) / (to - from);
            if share.is_finite() { share } else { -1.0 }
        };
        let part = |column: usize| told.part(&self.names[column]).and_then(|part| part.between);
        let mut by: Vec<(usize, f64)> =
            (0..self.names.len()).map(|column| (column, part(column).unwrap_or_else(|| apart(column)))).collect();
        by.sort_by(|a, b| b.1.total_cmp(&a.1));
        by.into_iter().map(|(column, _)| column).collect()
    }

    /// Whether it is no share of a category.
    fn is_number(&self, column: usize) -> bool {
        column < self.numbers
    }

    pub(super) fn pairs(&self, told: &Told) -> Vec<(usize, usize)> {
        let mut columns: Vec<usize> = self.ranked(told).into_iter().filter(|column| self.is_number(*column)).collect();
        columns.truncate(PAIRED);
        columns.sort_unstable();
        let each = columns.iter().enumerate();
        each.flat_map(|(i, a)| columns[i + 1..].iter().map(move |b| (*a, *b))).collect()
    }
}

/// Rows of each cluster.
fn rows(told: &Told) -> Vec<Option<f64>> {
    told.clusters.sizes.iter().map(|size| size.map(|size| size as f64)).collect()
}

/// Which part of everything each cluster holds: of rows, else of memberships.
fn shares(told: &Told) -> Option<Vec<f64>> {
    let known = |of: Vec<Option<f64>>| of.into_iter().collect::<Option<Vec<f64>>>().filter(|of| !of.is_empty());
    let held = known(rows(told)).or_else(|| known(told.clusters.mass.clone()))?;
    let whole: f64 = held.iter().sum();
    (held.len() == told.centres.len() && whole > 0.0).then(|| held.iter().map(|value| value / whole).collect())
}

/// The clusters that charts show, the heaviest first where not all are shown.
fn shown(told: &Told) -> Vec<usize> {
    let mut order: Vec<usize> = (0..told.centres.len()).collect();
    if order.len() > LINES {
        if let Some(shares) = shares(told) {
            order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
        }
        order.truncate(LINES);
        order.sort_unstable();
    }
    order
}

/// How much each cluster holds, and beside it a line for each over the columns that differ most.
pub(super) fn at_a_glance(page: &mut Page, told: &Told, columns: &Columns) {
    // All rows together are as large as all rows, and no centre differs from another.
    if told.centres.len() == 1 {
        return;
    }
    page.part("How large the clusters are");
    let held = [("rows nearest to it", rows(told)), ("memberships added up", told.clusters.mass.clone())];
    let held: Vec<(&str, Vec<Option<f64>>)> =
        held.into_iter().filter(|(_, of)| of.iter().any(Option::is_some)).collect();
    let value = |i: usize, of: &[Option<f64>]| {
        let value = of.get(i).copied().flatten();
        let whole = of.iter().copied().sum::<Option<f64>>().filter(|whole| *whole > 0.0 && told.privacy.is_none());
        let part = value.zip(whole).map_or(String::new(), |(value, whole)| format!(" ({})", percent(value / whole)));
        // Under noise one of them is known, with its error.
        let (_, error, at) = told.held(i);
        let words = told.shown(value, |_| error).map(|number| number + &part);
        let hidden = || Some(told.hidden(&at)).filter(|why| why != "–").unwrap_or("not shown".to_owned());
        Value { value: value.unwrap_or(f64::NAN), words: words.unwrap_or_else(hidden) }
    };
    let mut charts = Vec::new();
    if held.is_empty() {
        page.paragraph("What the clusters hold is not in this file.");
    } else {
        let clusters = 0..told.centres.len().min(60);
        let bars = |of: &[Option<f64>]| clusters.clone().map(|i| value(i, of)).collect();
        let series = held.iter().map(|(name, of)| ((*name).to_owned(), bars(of))).collect();
        let bars = Plot::Bars(clusters.clone().map(|i| format!("cluster {i}")).collect(), series);
        charts.push(Chart::new("Rows and memberships of each cluster", "rows", "", bars));
    }
    // Noise may leave nothing to draw.
    if !told.is_drawn() {
        return;
    }
    let ranked = columns.ranked(told);
    let (open, rest) = ranked.split_at(if ranked.len() > 2 * OPEN { OPEN } else { ranked.len() });
    let parallel = |title: &str, of: &[usize]| {
        let mut of = of.to_vec();
        of.sort_unstable();
        let line = |i: usize| (format!("cluster {i}"), of.iter().map(|column| told.at(i, *column)).collect());
        let axes = of.iter().map(|column| (columns.names[*column].clone(), columns.ranges[*column])).collect();
        Chart::new(title, "", "", Plot::Parallel(axes, shown(told).into_iter().map(line).collect()))
    };
    let title = if rest.is_empty() { "All columns at once" } else { "The columns that differ most" };
    charts.push(parallel(title, open));
    page.charts(&charts);
    if columns.names.len() > 1 {
        let few = match told.centres.len() > LINES {
            true => format!(" The {LINES} largest of {} clusters are drawn.", told.centres.len()),
            false => String::new(),
        };
        let ends = if columns.public {
            "Each axis goes from the least to the largest possible value of its column."
        } else {
            "Each axis goes from the least to the largest centre; the columns' own ranges are not in this file."
        };
        page.aside(&format!("Each line goes through the centre of a cluster. {ends}{few}"));
    }
    if !rest.is_empty() {
        page.folded(&format!("The other {} columns at once", rest.len()), |page| {
            page.charts([&parallel("The other columns", rest)]);
        });
    }
}

/// The centres in original units.
pub(super) fn centres(page: &mut Page, all: &Reported, columns: &Columns, in_pairs: bool) {
    let told = &all.told;
    page.part("Where the clusters are");
    page.paragraph(
        "A centre is the typical row of its cluster, in the columns' own units. No row has to look like it, and no row is shown here.",
    );
    if told.centres.len() > 1 {
        let known: Vec<Vec<f64>> = (0..told.centres.len())
            .map(|i| (0..columns.names.len()).map(|column| told.at(i, column).unwrap_or(f64::NAN)).collect())
            .collect();
        let named = |i: usize| {
            format!("cluster {i}: {}", words::cluster(&columns.names, &columns.ranges, columns.numbers, &known, i))
        };
        page.list(shown(told).into_iter().map(named));
    }
    table(page, told, columns);
    let drawn = told.centres.len() > 1 && told.is_drawn();
    if in_pairs && drawn && !columns.pairs(told).is_empty() {
        page.folded("Columns in pairs", |page| pairs(page, told, columns, &[]));
    }
    categories(page, told);
    if !told.clusters.not_shown.is_empty() {
        page.folded("Why numbers are missing", |page| {
            page.list(&told.clusters.not_shown);
        });
    }
}

/// Columns with the centre of every cluster; as far as the file tells it with deviations, with what distinguishes the cluster from all
/// rows, and with the column's part in the clusters.
fn table(page: &mut Page, told: &Told, columns: &Columns) {
    let named = |column: usize| match columns.units[column].as_str() {
        "" => columns.names[column].clone(),
        unit => format!("{} ({unit})", columns.names[column]),
    };
    let part = |column: usize| told.part(&columns.names[column]);
    let all = |column: usize| part(column).and_then(|of| Some((of.mean?, of.deviation?)));
    let cell = |i: usize, column: usize| {
        let Some(mut text) = told.centre(i, column) else {
            return Cell::from(told.hidden(&format!("/centres/{i}/{column}")));
        };
        if let (Some(share), true) = (told.at(i, column), !columns.is_number(column)) {
            let error = told.error(i, column).map(|error| 100.0 * error);
            let share = error.map_or_else(|| number(100.0 * share), |error| within(100.0 * share, error));
            return Cell::Text(format!("{share} %"));
        }
        if let (Some(value), Some(deviation)) = (told.at(i, column), told.deviation(i, column)) {
            text = within(value, deviation);
        }
        if let Some(far) = told.difference(i, column) {
            text += &format!(" ({far:+.1})");
        }
        Cell::Text(text)
    };
    let d = columns.names.len();
    let deviations = (0..d).any(|column| told.deviation(0, column).is_some());
    let means = (0..d).any(|column| all(column).is_some());
    let parts = (0..d).any(|column| part(column).is_some_and(|of| of.between.is_some()));
    let behind = match (&told.privacy, &told.errors) {
        (Some(_), Some(_)) => {
            "Behind ± is a standard error of noise and sampling, of which two to either side are a 95 % interval; what is not distinguishable from noise is called so."
        }
        (Some(_), None) => "Nobody knows how far noise moved the centres, so they are not shown; result.json has them.",
        (None, _) if deviations => "Behind ± is the standard deviation of the rows nearest to the centre.",
        (None, _) => "How far rows spread around a centre was not asked; a plan with indices=all tells it.",
    };
    let in_brackets =
        " In brackets: how far the centre lies from the mean of all rows, in standard deviations of all rows.";
    let of_parts = " The parts say how much of the squared differences between clusters, and of those between all rows, is a column's own.";
    let says = [behind, if means { in_brackets } else { "" }, if parts { of_parts } else { "" }];
    page.paragraph(&says.concat());
    // What stands under a head, for every column.
    let field = |head: &str, cell: &dyn Fn(usize) -> Cell| (head.to_owned(), (0..d).map(cell).collect::<Vec<_>>());
    let share = |value: Option<f64>| Cell::Text(value.map_or_else(String::new, percent));
    let clusters = (0..told.centres.len()).map(|i| field(&format!("cluster {i}"), &|column| cell(i, column)));
    let between = |column: usize| share(part(column).and_then(|of| of.between));
    let between = parts.then(|| field("part of the differences", &between));
    if clusters.len() > ACROSS && d <= clusters.len() {
        let names: Vec<String> = (0..d).map(named).collect();
        let heads: Vec<&str> = std::iter::once("cluster").chain(names.iter().map(String::as_str)).collect();
        let clusters = clusters.enumerate().map(|(i, (name, cells))| (Cell::Marked(i, name), cells));
        let rows = clusters.chain(between.map(|(name, cells)| (Cell::Text(name), cells)));
        page.numbers(&heads, rows.map(|(first, cells)| std::iter::once(first).chain(cells)));
        return;
    }
    let possible = |column: usize| match (columns.ranges[column], columns.is_number(column)) {
        ((from, to), true) => Cell::Text(format!("{} to {}", number(from), number(to))),
        _ => Cell::from("0 to 100 %"),
    };
    let whole = |column: usize| Cell::Text(all(column).map_or_else(String::new, |(mean, of)| within(mean, of)));
    let mut fields = vec![field("column", &|column| Cell::Text(named(column)))];
    fields.extend(columns.public.then(|| field("possible values", &possible)));
    fields.extend(means.then(|| field("all rows", &whole)));
    fields.extend(clusters.chain(between));
    let total = |column: usize| share(part(column).and_then(|of| of.total));
    fields.extend(means.then(|| field("part of all squares", &total)));
    let heads: Vec<&str> = fields.iter().map(|(head, _)| head.as_str()).collect();
    let row = |column: &usize| fields.iter().map(|(_, cells)| cells[*column].clone()).collect::<Vec<_>>();
    let ranked = columns.ranked(told);
    let (open, rest) = ranked.split_at(if d > 2 * OPEN { OPEN } else { d });
    page.numbers(&heads, open.iter().map(row));
    if !rest.is_empty() {
        page.folded(&format!("The other {} columns, which differ less between clusters", rest.len()), |page| {
            page.numbers(&heads, rest.iter().map(row));
        });
    }
}

/// The centres on pairs of columns, with what is known of their extent; `clouds` are rows of the one who looks, by pair.
pub(super) fn pairs(page: &mut Page, told: &Told, columns: &Columns, clouds: &[Vec<Cloud>]) {
    let pairs = columns.pairs(told);
    let shares = shares(told);
    let shown = shown(told);
    let mut extents = 0;
    let charts: Vec<Chart> = pairs
        .iter()
        .enumerate()
        .map(|(at, (a, b))| {
            let spot = |i: &usize| {
                let extent = told.deviation(*i, *a).zip(told.deviation(*i, *b));
                Some(Spot {
                    name: i.to_string(),
                    style: *i,
                    at: told.at(*i, *a).zip(told.at(*i, *b))?,
                    ellipse: extent.map(|(width, height)| (DEVIATIONS * width, DEVIATIONS * height)),
                    share: shares.as_ref().map(|shares| shares[*i]),
                })
            };
            let spots: Vec<Spot> = shown.iter().filter_map(spot).collect();
            extents += spots.iter().filter(|spot| spot.ellipse.is_some()).count();
            let (a, b) = (&columns.names[*a], &columns.names[*b]);
            let title = format!("{} and {}", shortened(a, 40), shortened(b, 40));
            let clouds = clouds.get(at).cloned().unwrap_or_default();
            Chart::new(title, a.clone(), b.clone(), Plot::Plane(clouds, spots))
        })
        .collect();
    let ellipses = match extents {
        0 if shares.is_some() => {
            "The larger the circle, the more the cluster holds; how far its rows spread is not known."
        }
        0 => "How far the rows of a cluster spread is not known.",
        _ => {
            "An ellipse goes to two standard deviations of the rows nearest to the centre in either column; whether it is tilted is not known."
        }
    };
    let numbers = (0..columns.names.len()).filter(|column| columns.is_number(*column)).count();
    let which = match numbers > PAIRED {
        true => format!("Of {numbers} columns of numbers these are the {PAIRED} that differ most between clusters. "),
        false => String::new(),
    };
    page.paragraph(&format!("{which}{ellipses} Numbers are those of the clusters."));
    page.charts(&charts);
}

fn categories(page: &mut Page, told: &Told) {
    // Under noise the shares stand with their errors in the table of centres.
    for of in told.categories.iter().filter(|_| told.privacy.is_none()) {
        page.subpart(&format!("Shares of {}", of.column));
        let clusters: Vec<String> = (0..of.shares.len()).map(|i| format!("cluster {i}")).collect();
        let heads: Vec<&str> = std::iter::once("category").chain(clusters.iter().map(String::as_str)).collect();
        let rows = of.categories.iter().enumerate().map(|(at, name)| {
            let each =
                of.shares.iter().map(|shares| Cell::Text(shares.get(at).copied().map_or("–".to_owned(), percent)));
            std::iter::once(Cell::from(name.clone())).chain(each).collect::<Vec<_>>()
        });
        page.numbers(&heads, rows);
    }
}
