//! What a result says in numbers and words, each under a label: the same for the screen and for every page.

use veilsum_charts::text::{number, percent};
use veilsum_cluster::{Indices, warnings::still_to_go};

use super::{indices, told::Told};
use crate::{
    app_messages::clean,
    cost::{counted, some_of},
};

/// Columns that a line names.
const COLUMNS: usize = 6;

/// Labels with what stands under each, in the order in which people read them.
pub(super) fn facts(told: &Told) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut fact = |label: &str, value: String| all.push((label.to_owned(), value));
    if !told.describes() {
        fact("rounds", format!("{} ({})", told.rounds, how_it_ended(told)));
        let shifts: Vec<f64> = told.history.iter().map(|round| round.shift).collect();
        if let Some(more) = still_to_go(&shifts).filter(|_| told.converged == Some(true) && told.privacy.is_none()) {
            let more = number(more);
            fact(
                "more rounds",
                format!("would move all centres by about {more} (working units), at the pace of the last"),
            );
        }
        if !told.curve.is_empty() && !told.tests_whether() {
            let what = match told.curve.iter().any(|point| point.k == 1) {
                true => "no index that was asked has a value for K = 1",
                false => "K = 1 was not tried",
            };
            fact("whether there are groups at all", format!("not tested: {what}"));
        }
        for (name, value, _) in indices::shown(told) {
            fact(&name, value);
        }
        let drowned = told.errors.iter().flat_map(|errors| &errors.not_distinguishable_from_noise);
        let drowned = drowned.filter(|of| of.starts_with("/indices/")).count();
        let hidden = |n: usize, why| (n > 0).then(|| format!("{}: {why}", counted(n, "index value")));
        let unseen = hidden(told.unseen, "noise is in it, and nobody knows how much");
        let hidden: Vec<String> = hidden(drowned, "not distinguishable from noise").into_iter().chain(unseen).collect();
        if !hidden.is_empty() {
            fact("not shown", hidden.join("; "));
        } else if told.objective.is_none() && told.indices == Indices::default() {
            fact("indices", "none was asked for".to_owned());
        } else if told.privacy.is_none() && told.indices.fuzzy_davies_bouldin.is_none() {
            let why = if told.k == 1 { "undefined for one cluster" } else { "undefined (two centres coincide)" };
            fact("fuzzy Davies–Bouldin", why.to_owned());
        }
        let objective = told.shown(told.objective_per_row, |errors| errors.objective_per_row);
        let below = || Some(told.hidden("/objective_per_row")).filter(|why| why.starts_with("below"));
        if let Some(objective) = objective.or_else(below) {
            fact("objective by row, J/N", objective);
        }
        let parts: Vec<String> = (told.profile.iter().take(COLUMNS))
            .filter_map(|part| Some(format!("{} {}", clean(&part.column), percent(part.between?))))
            .collect();
        if !parts.is_empty() && told.columns.len() > 1 {
            let more = told.profile.len().saturating_sub(COLUMNS);
            let more = if more > 0 { format!(" (+{more})") } else { String::new() };
            fact("columns, by their part of the differences", parts.join(", ") + &more);
        }
        if let Some(stability) = &told.stability {
            let (same, of) = stability.agreeing();
            let far = number(stability.matched_distance.iter().copied().fold(0.0, f64::max));
            let worst = stability.worst.filter(|worst| *worst > 1.0).map_or(String::new(), |worst| {
                format!("; the worst objective is {} times that of the result", number(worst))
            });
            let others = match of - same {
                0 => String::new(),
                _ => format!("; the farthest is {far} of the least gap away"),
            };
            fact("restarts", format!("{same} of {of} came to these centres{others}{worst}"));
        }
    }
    if let Some(rows) = rows(told) {
        let from = told.n_total_from.as_ref().map_or(String::new(), |from| format!(" (from the {})", clean(from)));
        fact("rows in all", rows + &from);
    }
    if let Some(found) = &told.description {
        fact("missing", found.missing.to_string());
        for (what, rows) in [("histograms", found.histogram_rows), ("deviations", found.spread_rows)] {
            if let Some(rows) = rows {
                fact(what, format!("over {rows} rows: a site was lost in between"));
            }
        }
    }
    if let Some(privacy) = &told.privacy {
        fact("privacy", privacy.promise.clone());
    }
    if let Some(early) = &told.ended_early {
        fact("ended early", format!("after round {}: {}", early.round, clean(&early.reason)));
    }
    if !told.missing.is_empty() {
        fact("missing at the end", some_of(&told.missing, ", "));
    }
    all
}

/// The number of rows, with its error under noise.
pub(super) fn rows(told: &Told) -> Option<String> {
    match (&told.description, &told.privacy) {
        (Some(found), None) => Some(found.rows.to_string()),
        (None, None) => told.n_total.map(|n| n.to_string()),
        (_, Some(_)) => told.shown(told.n_total.map(|n| n as f64), |errors| errors.n_total),
    }
}

/// How a run came to its end, in a few words.
pub(super) fn how_it_ended(told: &Told) -> String {
    match (&told.ended_early, told.converged) {
        (Some(early), _) if early.at_rest => "at rest; the run ended early".to_owned(),
        (Some(_), _) => "not converged: the run ended early".to_owned(),
        (None, Some(true)) => "converged".to_owned(),
        (None, _) if told.privacy.is_some() => "a plan with noise has a fixed number of rounds".to_owned(),
        (None, Some(false)) => "stopped at the plan's last round".to_owned(),
        (None, None) => "the file does not say whether it converged".to_owned(),
    }
}
