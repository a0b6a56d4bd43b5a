//! A site's own rows beside a result, for a page that never leaves the site.

use std::path::Path;

use veilsum_charts::{
    Chart, Cloud, Page, Plot, Value,
    page::Cell,
    text::{number, percent},
};
use veilsum_cluster::assign::largest;

use super::{
    centres::{Columns, pairs},
    reported::Reported,
};
use crate::{
    cost::counted,
    documents,
    error::Failure,
    model::Model,
    report::told::Told,
    table::{self, Tally, Unusable},
};

/// Rows that a picture shows at most: more would only make it darker.
const DRAWN: usize = 1500;
/// A row whose highest membership is lower belongs to no cluster clearly.
const CLEAR: f64 = 0.5;

/// A site's own rows with their memberships in a result's clusters.
pub struct Own {
    /// Row-major, in the model's columns and original units.
    rows: Vec<f64>,
    /// The cluster with each row's highest membership.
    labels: Vec<usize>,
    /// Each row's highest membership.
    highest: Vec<f64>,
    /// Rows out of the model's box, from 0.
    outside: Vec<usize>,
    /// What was read.
    pub tally: Tally,
}

impl Own {
    /// Reads rows, and computes what the result's model says of them. Nothing leaves the machine for it.
    ///
    /// # Errors
    /// A [`Failure`] where there is no model with clusters beside the result, or the rows do not fit it.
    pub fn read(of: &Reported, data: &Path, policy: Option<&Path>) -> Result<Own, Failure> {
        let Some(model) = &of.model else {
            let what =
                format!("{}: the model of this result is not beside it, and memberships need it", of.of.display());
            return Err(Failure::input(what, "put the model.json of the same run beside the result"));
        };
        if model.method == "describe" {
            let what = format!("{}: it is the mean of all rows, and has no clusters", of.of.display());
            return Err(Failure::input(what, "leave --data out, or name the result of a run that found clusters"));
        }
        let fail = |why: String| Failure::input(format!("{}: {why}", data.display()), "correct the file");
        let spec = documents::rows_of(model, policy, Unusable::LeftOut)?;
        let table = table::read(data, &spec)?;
        let (tally, rows) = (table.tally(), table.values);
        let all = model.memberships(rows.clone()).map_err(fail)?;
        let each = all.chunks_exact(model.k as usize).map(|u| (largest(u, 1)[0], u));
        let (labels, highest) = each.map(|(label, u)| (label, u[label])).unzip();
        let each = rows.chunks_exact(model.names().len().max(1)).enumerate();
        let outside = each.filter(|(_, row)| !model.is_within(row)).map(|(at, _)| at).collect();
        Ok(Own { rows, labels, highest, outside, tally })
    }
}

/// What nobody may overlook.
pub(super) const BEWARE: &str = "This page shows single rows of this site. It must not leave this site: do not send it, and do not print it for others. \
     Without --data the same command makes a page that may be shared with all who have the result.";

/// The site's own part.
pub(super) fn section(page: &mut Page, all: &Reported, own: &Own, columns: &Columns) {
    let told = &all.told;
    let k = told.centres.len();
    page.part("This site's own rows");
    if let Some(caution) = all.model.as_ref().and_then(Model::caution) {
        page.aside(&format!("To be known of the model: {caution}."));
    }
    let unclear = own.highest.iter().filter(|highest| **highest < CLEAR).count();
    let lies = match own.outside.len() {
        0 => "None lies".to_owned(),
        1 => "1 lies".to_owned(),
        n => format!("{n} lie"),
    };
    page.paragraph(&format!(
        "{}. {unclear} belong to no cluster with more than half of their membership. {lies} out of the box that the plan names.",
        counted(own.labels.len(), "row")
    ));
    let mut rows = vec![(0usize, 0.0); k];
    for (label, highest) in own.labels.iter().zip(&own.highest) {
        if let Some(of) = rows.get_mut(*label) {
            *of = (of.0 + 1, of.1 + highest);
        }
    }
    let n = own.labels.len().max(1) as f64;
    let whole = |i: usize| {
        let all: Option<u64> = told.clusters.sizes.iter().copied().sum();
        Some(told.size(i)? as f64 / all.filter(|all| *all > 0)? as f64)
    };
    let compared = (0..k).any(|i| whole(i).is_some());
    let value = |share: Option<f64>| Value {
        value: share.unwrap_or(f64::NAN),
        words: share.map_or("not known".to_owned(), percent),
    };
    let drawn = 0..k.min(60);
    let own_shares = drawn.clone().map(|i| value(Some(rows[i].0 as f64 / n))).collect();
    let mut series = vec![("this site".to_owned(), own_shares)];
    series.extend(compared.then(|| ("all sites".to_owned(), drawn.clone().map(|i| value(whole(i))).collect())));
    let bars = Plot::Bars(drawn.map(|i| format!("cluster {i}")).collect(), series);
    let clusters = Chart::new("Share of rows by cluster of highest membership", "", "", bars);
    let mut bins = [0.0; 20];
    for highest in &own.highest {
        bins[((highest * 20.0) as usize).min(19)] += 1.0;
    }
    let bins = bins.iter().enumerate().map(|(i, rows)| (i as f64 / 20.0, (i + 1) as f64 / 20.0, *rows)).collect();
    let bins = Plot::Histogram(bins);
    let sure = Chart::new("Rows by their highest membership: 1 is clearly in one cluster", "", "rows", bins);
    page.charts([&clusters, &sure]);
    let lines = rows.iter().enumerate().map(|(i, (count, sum))| {
        let mean = if *count > 0 { number(sum / *count as f64) } else { "–".to_owned() };
        let [count, share, mean] = [count.to_string(), percent(*count as f64 / n), mean].map(Cell::Text);
        [Cell::Marked(i, format!("cluster {i}")), count, share, mean]
    });
    page.numbers(&["cluster", "rows", "share", "mean highest membership"], lines);
    if columns.names.len() > 1 {
        scatter(page, told, own, columns);
    }
    page.subpart("What was read");
    page.list(own.tally.lines());
    page.aside("Of rows out of range the memberships say which centre is nearest, and little more. A run refuses or clips them, as its plan says.");
}

fn scatter(page: &mut Page, told: &Told, own: &Own, columns: &Columns) {
    let d = columns.names.len();
    let inside: Vec<usize> = (0..own.labels.len()).filter(|row| own.outside.binary_search(row).is_err()).collect();
    let step = inside.len().div_ceil(DRAWN).max(1);
    let drawn: Vec<usize> = inside.into_iter().step_by(step).collect();
    let clouds: Vec<Vec<Cloud>> = columns
        .pairs(told)
        .iter()
        .map(|(a, b)| {
            let cloud = |i: usize, faint: bool| {
                let mine = |row: &&usize| own.labels[**row] == i && (own.highest[**row] < CLEAR) == faint;
                let points =
                    drawn.iter().filter(mine).map(|row| (own.rows[row * d + a], own.rows[row * d + b])).collect();
                Cloud { name: format!("cluster {i}"), style: i, faint, points }
            };
            (0..told.centres.len())
                .flat_map(|i| [cloud(i, true), cloud(i, false)])
                .filter(|cloud| !cloud.points.is_empty())
                .collect()
        })
        .collect();
    if !clouds.is_empty() {
        page.subpart("Columns in pairs");
        pairs(page, told, columns, &clouds);
    }
    let every = if step > 1 { format!("Every {step}th row is drawn. ") } else { String::new() };
    page.aside(&format!("{every}Each row has the colour and shape of the cluster of its highest membership; those that belong to no cluster clearly are paler. Rows out of the box are not drawn."));
}
