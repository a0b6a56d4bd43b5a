//! Differential privacy of a run: what a plan says about it, what every total costs, and what it does to the centres
//! (specification, section 17; Bun & Steinke 2016; Canonne, Kamath & Steinke 2020; relative updates after FastLloyd,
//! Diaa, Humphries & Kerschbaum 2025).
//!
//! This module has only real numbers: sensitivities and standard deviations in working units. The caller that encodes
//! totals in fixed point turns them into whole steps and adds exact noise.

mod accountant;
pub mod rank;
mod schedule;
mod summation;

use serde::{Deserialize, Serialize};

pub use accountant::{advantage, epsilon, rho};
pub use schedule::{Extent, Forecast, Level, Levels};
pub use summation::slack;

use crate::Query;

/// Above this share of the box's half width a predicted error of the centres makes a result useless.
pub const USEFUL: f64 = 0.1;

/// The noise that a plan asks for. The whole run (every K, restart, round, validation and the row count) is
/// (`epsilon`, `delta`)-differentially private for one `unit` added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Epsilon of the whole run, > 0.
    pub epsilon: f64,
    /// Delta of the whole run, > 0; at most 1/10 of one over the rows is usual.
    pub delta: f64,
    /// Whose presence is hidden.
    pub unit: Unit,
    /// Rounds at the beginning that ask for sums around the middle of the box; the others ask for sums around the current
    /// centres.
    pub absolute_rounds: u32,
    /// The farthest that a row pulls in these other rounds, as a share of the box's half diagonal; 0 asks for sums
    /// around the middle in all rounds. Where rows lie farther off, the centres come to rest elsewhere than those of the plain method.
    pub tau: f64,
    /// Share of the budget that the validation takes.
    pub validation_share: f64,
    /// Share of the budget that the row count takes.
    pub count_share: f64,
    /// Rows that are expected in all. Only the forecast uses this.
    pub expected_rows: u64,
}

/// Whose presence the noise hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Unit {
    /// One row.
    Record,
    /// A whole site of at most this many rows, the number that the plan allows a site.
    Site {
        /// The plan's `max_rows`.
        rows: u64,
    },
}

impl Noise {
    /// The defaults: record level, three rounds around the middle, then pulls of at most a quarter of the half diagonal. With two,
    /// below epsilon 1, more runs in a hundred end where two centres share a cluster (`veilsum-lab experiments dp`).
    pub fn usual(epsilon: f64, expected_rows: u64) -> Self {
        Self {
            epsilon,
            delta: (0.1 / expected_rows.max(1) as f64).min(1e-6),
            unit: Unit::Record,
            absolute_rounds: 3,
            tau: 0.25,
            validation_share: 0.1,
            count_share: 0.02,
            expected_rows,
        }
    }

    /// The guarantee of a run under this noise, as a sentence for the reader of its result.
    pub fn promise(&self) -> String {
        let unit = match self.unit {
            Unit::Record => "one row".to_owned(),
            Unit::Site { rows } => format!("a whole site of at most {rows} rows"),
        };
        format!(
            "the run is differentially private for {unit} added or removed, while no site has fewer rows than its policy or \
             more than the plan asks: epsilon {}, delta {}; a row that cannot be used (an empty cell, a category that is not \
             listed) stops its site visibly, so that there is one is not hidden; centres, weights, indices and counts are noisy; \
             first centres, ranges and expected rows in the plan must not come from the rows",
            self.epsilon, self.delta
        )
    }

    /// Rows of one unit.
    pub fn rows_of_unit(&self) -> f64 {
        match self.unit {
            Unit::Record => 1.0,
            Unit::Site { rows } => rows as f64,
        }
    }
}

/// Moves noisy validation totals to what rows could have given: nothing below 0, and for every cluster at least the
/// membership of one row.
pub(crate) fn settled(query: &Query, values: &[f64]) -> Vec<f64> {
    let k = query.points().first().map_or(0, |points| points.k());
    let least = |(i, value): (usize, &f64)| value.max(if (k..2 * k).contains(&i) { 1.0 } else { f64::MIN_POSITIVE });
    values.iter().enumerate().map(least).collect()
}
