//! How a run came to its result: K by K, round by round, start by start.

use std::collections::BTreeMap;

use veilsum_charts::{
    Chart, Page, Plot,
    page::Cell,
    text::{number, within},
};
use veilsum_cluster::method::Stability;

use super::reported::Reported;
use crate::cost::counted;
use crate::report::{facts::facts, indices, told::Told};

/// Index curves over K.
pub(super) fn choice_of_k(page: &mut Page, told: &Told) {
    if told.curve.is_empty() {
        return;
    }
    page.part("How many groups");
    let name = |k: u32| if k == told.k { format!("{k} (the result)") } else { k.to_string() };
    if told.privacy.is_some() {
        page.paragraph(
            "Every number of groups K was tried, and all of them shared the noise. The gap is how much tighter the groups are than those of \
             rows without any. Nobody knows the errors of other indices, so these are not shown; result.json has them.",
        );
        let rows = told.curve.iter().map(|point| {
            let gap = point.indices.gap.zip(point.indices.gap_error);
            let gap = gap.map_or("–".to_owned(), |(gap, error)| within(gap, error));
            [name(point.k), gap, point.rounds.to_string()].map(Cell::Text)
        });
        page.numbers(&["K", "gap", "rounds"], rows);
        return;
    }
    page.paragraph(
        "Every number of groups K was tried, and indices were computed of each from totals alone. An elbow is where a curve that falls over \
         the whole range bends most.",
    );
    let rows = told.curve.iter().map(|point| {
        let index = point.indices.fuzzy_davies_bouldin;
        let state = match (point.collapsed, point.converged) {
            (true, _) => Cell::Bad("collapsed: two centres fell together".to_owned()),
            (false, true) => Cell::from("converged"),
            (false, false) => Cell::from("not converged"),
        };
        [
            Cell::Text(name(point.k)),
            Cell::Text(index.map_or("–".to_owned(), number)),
            Cell::Text(point.objective.map_or("–".to_owned(), number)),
            Cell::Text(point.rounds.to_string()),
            state,
        ]
    });
    page.numbers(&["K", "fuzzy Davies–Bouldin", "objective J", "rounds", "how it ended"], rows);
    page.folded("All indices over K", |page| {
        page.charts(&indices::curves(told));
    });
}

/// Everything that the screen says too, under the same words.
pub(super) fn in_numbers(page: &mut Page, all: &Reported) {
    let told = &all.told;
    page.part("In numbers");
    if told.k == 1 && !told.describes() {
        page.paragraph("Most indices compare groups, and there is one: what they say of it means nothing.");
    }
    let ways: BTreeMap<String, String> = indices::shown(told).into_iter().map(|(name, _, way)| (name, way)).collect();
    // The promise stands below, beside what else was given away.
    let facts = facts(told).into_iter().filter(|(label, _)| label != "privacy");
    let rows = facts.map(|(label, value)| {
        let way = ways.get(&label).cloned().unwrap_or_default();
        [label, value, way]
    });
    page.table(&["what", "value", "how to read it"], rows);
    let pooled = &all.file["pooled"];
    if let Some(what) = pooled["what"].as_str() {
        let difference = pooled["max_abs_diff"].as_f64().map_or("another number of groups".to_owned(), |d| {
            format!("a largest difference of {} of a column's range", number(d))
        });
        let noise = if told.privacy.is_some() { "noise, its clip where there is one, " } else { "" };
        page.paragraph(&format!(
            "Against {what}: {difference}. This shows what {noise}masks and rounding change, and nothing about whether the method fits the data."
        ));
    }
}

/// The shift of every round, folded up.
pub(super) fn convergence(page: &mut Page, told: &Told) {
    // Under noise the centres move by the noise, round after round.
    if told.history.is_empty() || told.privacy.is_some() {
        return;
    }
    page.folded("Convergence", |page| shifts(page, told));
}

fn shifts(page: &mut Page, told: &Told) {
    let shifts: Vec<(f64, f64)> = told.history.iter().map(|at| (f64::from(at.round), at.shift)).collect();
    let (title, line) = ("How far all centres moved in each round", ("shift".to_owned(), shifts.clone()));
    let chart = Chart::new(title, "round", "shift, working units, by powers of ten", Plot::Lines(vec![line]));
    let chart = Chart { log: true, ..chart };
    // Starts that all came to the same centres are no bars.
    let stability = told.stability.as_ref().filter(|of| of.agreement < 1.0).map(stability);
    page.charts(std::iter::once(&chart).chain(&stability));
    let still = match shifts.iter().filter(|(_, shift)| *shift == 0.0).count() {
        0 => String::new(),
        n => format!(" In {} nothing moved, which a scale by powers of ten cannot show.", counted(n, "round")),
    };
    if let (Some((first, from)), Some((last, to))) = (shifts.first(), shifts.last()) {
        let (from, to) = (number(*from), number(*to));
        page.paragraph(&format!("From {from} in round {first} to {to} in round {last}.{still}"));
    }
    if let Some(stability) = &told.stability {
        starts(page, stability);
    }
}

/// Whether other starts came to the same, in words.
fn starts(page: &mut Page, stability: &Stability) {
    page.subpart("Stability over restarts");
    let who = match stability.agreeing() {
        (_, 1) => "There was one start to tell by.".to_owned(),
        (1, of) => format!("Of {of} starts only the best came to these centres."),
        (all, of) if all == of => format!("All {of} starts came to the same centres."),
        (some, of) => format!("{some} of {of} starts, the best among them, came to the same centres."),
    };
    page.paragraph(&format!(
        "{who} Centres count as the same where none is farther from its match than a tenth of the least distance between two centres of the \
         result."
    ));
}

/// How far each start ended from the result.
fn stability(of: &Stability) -> Chart {
    let starts = (0..of.matched_distance.len()).map(|i| format!("start {i}")).collect();
    let title = "Mean distance to the result's centres, as a part of the least distance between two of these";
    let distances = of.matched_distance.iter().map(|distance| (*distance).into()).collect();
    Chart::new(title, "", "distance", Plot::Bars(starts, vec![("distance".to_owned(), distances)]))
}
