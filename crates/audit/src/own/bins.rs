//! Descriptions in other bins: row counts up to every edge of both say how many rows are between two edges.

use veilsum_cluster::{Algorithm, Query};

use super::{
    attacks::Told,
    scene::Scene,
    tried::{Answer, Tried, not_applicable},
};
use crate::finding::short;

/// Rows up to each edge of a column, by edge.
fn up_to(told: &Told, column: usize) -> Option<Vec<(f64, f64)>> {
    let asked = told.played.asked.iter().find(|asked| matches!(asked.query(), Some(Query::Histogram(_))))?;
    let Some(Query::Histogram(histogram)) = asked.query() else { return None };
    let at = histogram.brackets.iter().position(|bracket| bracket.column as usize == column)?;
    let (bracket, each) = (&histogram.brackets[at], histogram.bins as usize + 1);
    let start = asked.block("rows")?.start + at * each;
    let mut rows = asked.total[start];
    let mut edges = vec![(bracket.lower, rows)];
    for bin in 0..histogram.bins {
        rows += asked.total[start + 1 + bin as usize];
        edges.push((bracket.edge(bin + 1, histogram.bins), rows));
    }
    Some(edges)
}

/// The narrowest piece of a column in which one row is alone, by the edges of two descriptions.
pub(super) fn between(scene: &Scene, first: &Told, second: Option<&Told>) -> Vec<Tried> {
    let tries =
        "somebody subtracts the row counts of two descriptions with other bins, and looks for pieces with one row";
    let no = |why| vec![not_applicable("other bins", tries, why)];
    let (Some(second), Algorithm::Describe { .. }) = (second, &scene.work.recipe.algorithm) else {
        return no("the plan describes no columns");
    };
    if scene.rho().is_some() {
        return no("all counts have noise");
    }
    let mut narrow: Option<(f64, String)> = None;
    for (place, column) in scene.columns().iter().enumerate().filter(|(_, column)| !column.is_category) {
        let (Some(a), Some(b)) = (up_to(first, place), up_to(second, place)) else { continue };
        let mut edges = [a, b].concat();
        edges.sort_by(|a, b| a.0.total_cmp(&b.0));
        let [low, high] = column.ends;
        // Edges are in working units, of which a column's range is the whole.
        let (start, end) = (edges[0].0, edges[edges.len() - 1].0);
        let original = |x: f64| low + (x - start) / (end - start) * (high - low);
        for pair in edges.windows(2) {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            let width = (to - from) / (end - start);
            if (after - before - 1.0).abs() < 0.5 && to > from && narrow.as_ref().is_none_or(|best| width < best.0) {
                let [from, to] = [from, to].map(|edge| short(original(edge)));
                narrow = Some((width, format!("{}: one row is alone between {from} and {to}", column.name)));
            }
        }
    }
    let (answer, gets, width) = match narrow {
        Some((width, what)) => (Answer::Yes, what, width),
        None => (Answer::No, "no piece holds one row".into(), 1.0),
    };
    vec![Tried::new(("other bins", tries), None, [gets, "the whole range".into()], answer, 1.0 - width)]
}
