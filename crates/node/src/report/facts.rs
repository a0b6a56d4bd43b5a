//! What a result says in numbers and words, each under a label: the same for the screen and for every page.

use veilsum_charts::text::{number, percent};

use super::{
    indices,
    told::{Stability, Told},
};
use crate::{
    app_messages::clean,
    cost::{counted, some_of},
};

/// Columns that a line names.
const COLUMNS: usize = 6;

/// Labels with what stands under each, in the order in which people read them.
pub(super) struct Facts(pub(super) Vec<(String, String)>);

impl Facts {
    pub(super) fn of(told: &Told) -> Facts {
        let mut all = Vec::new();
        let mut fact = |label: &str, value: String| all.push((label.to_owned(), value));
        let clusters = told.description.is_none() && told.method != "describe";
        if clusters {
            fact("rounds", format!("{} ({})", told.rounds, how_it_ended(told)));
            let shown = indices::shown(told);
            let left_out = told.indices.values().flatten().count().saturating_sub(shown.len());
            for (name, value, _) in shown {
                fact(&name, value);
            }
            let noisy = told.privacy.is_some();
            if told.objective.is_none() && told.indices.values().all(Option::is_none) {
                fact("indices", "none was asked for".to_owned());
            } else if noisy && left_out > 0 {
                let how_many = counted(left_out, "index value");
                fact("not shown", format!("{how_many}: noise is in it, and nobody knows how much"));
            } else if !noisy && told.indices.get("fuzzy_davies_bouldin") == Some(&None) {
                let why = if told.k == 1 { "undefined for one cluster" } else { "undefined (two centres coincide)" };
                fact("fuzzy Davies–Bouldin", why.to_owned());
            }
            if let Some(objective) = told.shown(told.objective_per_row, |errors| errors.objective_per_row) {
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
            if let Some((same, of)) = told.stability.as_ref().and_then(Stability::agreeing) {
                let far = told.stability.iter().flat_map(|all| all.matched_distance.iter().flatten());
                let far = far.fold(0.0_f64, |most, far| most.max(*far));
                let share = percent(same as f64 / of.max(1) as f64);
                fact(
                    "restarts",
                    format!(
                        "{share} of {of} came to these centres; the farthest is {} of the least gap away",
                        number(far)
                    ),
                );
            }
        }
        if let Some(rows) = rows(told) {
            let from = told.n_total_from.as_ref().map_or(String::new(), |from| format!(" (from the {})", clean(from)));
            fact("rows in all", rows + &from);
        }
        if let Some(found) = &told.description {
            fact("missing", found.missing.replace('`', ""));
            for (what, rows) in [("histograms and quantiles", found.histogram_rows), ("deviations", found.spread_rows)]
            {
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
        Facts(all)
    }

    /// A line for each.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|(label, value)| format!("{label}: {value}\n")).collect()
    }
}

/// The number of rows, with its error under noise.
pub(super) fn rows(told: &Told) -> Option<String> {
    match &told.description {
        Some(found) if told.privacy.is_none() => Some(found.rows.to_string()),
        _ => match told.privacy.is_some() {
            false => told.n_total.map(|n| n.to_string()),
            true => told.shown(told.n_total.map(|n| n as f64), |errors| errors.n_total),
        },
    }
}

/// How a run came to its end, in a few words.
pub(super) fn how_it_ended(told: &Told) -> String {
    let extrapolated = told.extrapolated.as_ref().filter(|found| found.rounds > 0);
    match (extrapolated, &told.ended_early, told.converged) {
        (Some(found), ..) => format!(
            "not converged: the last {} are estimated from the totals before, with an error of {} on made-up rows",
            counted(found.rounds as usize, "round"),
            found.held_out_error.map_or("unknown size".to_owned(), number)
        ),
        (None, Some(early), _) if early.at_rest => "at rest; the run ended early".to_owned(),
        (None, Some(_), _) => "not converged: the run ended early".to_owned(),
        (None, None, Some(true)) => "converged".to_owned(),
        (None, None, _) if told.privacy.is_some() => "a plan with noise has a fixed number of rounds".to_owned(),
        (None, None, Some(false)) => "stopped at the plan's last round".to_owned(),
        (None, None, None) => "the file does not say whether it converged".to_owned(),
    }
}
