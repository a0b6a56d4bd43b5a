//! Differential privacy of a run: what a plan says about it, what every total costs, and what it does to the centres
//! (specification, section 17; Bun & Steinke 2016; Canonne, Kamath & Steinke 2020; relative updates after FastLloyd,
//! Diaa, Humphries & Kerschbaum 2025).
//!
//! This module has only real numbers: sensitivities and standard deviations in working units. The caller that encodes
//! totals in fixed point turns them into whole steps and adds exact noise.

mod accountant;
mod schedule;
mod settle;

use serde::{Deserialize, Serialize};

pub use accountant::{advantage, best_auc};
pub use schedule::{Extent, Level, Levels};
pub(crate) use settle::settled;

/// Two sites that collude with nobody make the planned noise, however many others add their shares ([NOI-3]).
pub const HONEST: usize = 2;

/// The noise of a total over the planned one, if so many sites add their shares.
pub fn excess(sites: usize) -> f64 {
    (sites as f64 / HONEST as f64).sqrt()
}

/// The noise that a plan asks for. The whole run (row count, preparation, first centres, every K, restart and round, validation,
/// and rounds that are asked again) costs at most `nano_rho` of zero-concentrated differential privacy for one `unit` added
/// or removed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// rho of the whole run in 10^-9, with the rounds that are asked again, while [`HONEST`] sites keep their noise secret; 10^5 to 10^12.
    pub nano_rho: u64,
    /// Whose presence is hidden.
    pub unit: Unit,
    /// Share of the row count, above 0.
    pub count_share: f64,
    /// Share of the first centres, if they come from totals.
    pub seeding_share: f64,
    /// Share of the validation and with it of the choice of K, above 0.
    pub validation_share: f64,
    /// Share of standardising, if the plan standardises.
    pub standardising_share: f64,
    /// Rounds at the beginning that ask for sums around the middle of the box; the others ask for sums around the current
    /// centres.
    pub absolute_rounds: u32,
    /// The farthest that a row pulls in the first of these other rounds, as a share of the box's half diagonal; later ones follow
    /// what the totals tell of how far rows lie from their centres. 0 asks for sums around the middle in all rounds.
    pub tau: f64,
    /// Rows that are expected in all, for the forecast.
    pub expected_rows: u64,
    /// How many questions that were lost to a missing site may be asked again. Each is paid in advance, at the price of the
    /// dearest.
    pub retries: u32,
}

/// Share of the first centres if a plan names none.
pub const SEEDING_SHARE: f64 = 0.2;
/// rho of a plan that names none.
pub const DEFAULT_RHO: f64 = 0.25;

/// rho in units of 10^-9, rounded up so far that what is left is at least as much.
pub fn in_nano(rho: f64) -> u64 {
    // Saturates.
    (rho * 1e9).round() as u64
}

/// Whose presence the noise hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Unit {
    /// One row.
    Record,
    /// One person of a site, whose rows there beyond so many do not count. Each site takes them away by its own column of persons.
    Person {
        /// 1 to [`MOST_ROWS_OF_A_PERSON`].
        rows: u64,
    },
}

/// Rows of one person at most that a plan may let count: noise grows with their number.
pub const MOST_ROWS_OF_A_PERSON: u64 = 1_000;

impl Unit {
    /// Rows of one unit at most.
    pub fn rows(self) -> u64 {
        match self {
            Unit::Record => 1,
            Unit::Person { rows } => rows,
        }
    }
}

/// Expected rows of a cluster times the root of rho, by the rows of a unit: below it a plan has few rounds.
const FEW: f64 = 50.0;

impl Noise {
    /// The defaults: record level, first centres from totals, and pulls of at most a quarter of the half diagonal around them.
    pub fn usual(rho: f64, expected_rows: u64) -> Self {
        Self {
            nano_rho: in_nano(rho),
            unit: Unit::Record,
            count_share: 0.02,
            seeding_share: SEEDING_SHARE,
            validation_share: 0.1,
            standardising_share: 0.1,
            absolute_rounds: 0,
            tau: 0.25,
            expected_rows,
            retries: 2,
        }
    }

    /// The same for uniform first centres: three rounds around the middle come first. With two, at a small budget, more runs in a
    /// hundred end with two centres that share a cluster (`veilsum-lab experiments dp`).
    #[must_use]
    pub fn from_anywhere(self) -> Self {
        Self { absolute_rounds: 3, ..self }
    }

    /// rho of the whole run.
    pub fn rho(&self) -> f64 {
        self.nano_rho as f64 / 1e9
    }

    /// What every site is charged for the whole run at most, in 10^-9 of rho: the noise that it draws itself is all that it counts on ([POL-8]).
    pub fn price(&self) -> u64 {
        self.nano_rho.saturating_mul(HONEST as u64)
    }

    /// Rounds of a plan that names no number of them, for so many clusters at most, if first centres are not uniform. Where a cluster's rows
    /// hardly rise above the noise of a round, fewer rounds with less noise each mostly end nearer: of five against eight, on nine sets
    /// at epsilon 0.1 to 0.5, the median objective was smaller in 19 of 27 cells for k-means, and in 21 for fuzzy c-means.
    pub fn usual_rounds(&self, clusters: u32) -> u32 {
        if self.expected_rows > 0 && self.above(clusters) < FEW { 5 } else { 8 }
    }

    /// How far the expected rows of one of so many clusters rise above the noise: so many times sqrt(rho) of a unit's rows.
    pub(crate) fn above(&self, clusters: u32) -> f64 {
        self.expected_rows as f64 * self.rho().sqrt() / (self.rows_of_unit() * f64::from(clusters))
    }

    /// Rows of one unit.
    pub fn rows_of_unit(&self) -> f64 {
        self.unit.rows() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_budgets_have_few_rounds() {
        let rounds = |rho, rows, clusters| Noise::usual(rho, rows).usual_rounds(clusters);
        assert_eq!((rounds(0.25, 5_000, 15), rounds(0.25, 3_000, 3), rounds(1.0, 0, 3)), (8, 8, 8));
        assert_eq!((rounds(0.001, 5_000, 15), rounds(0.25, 150, 3), rounds(0.25, 3_000, 100)), (5, 5, 5));
        let persons = Noise { unit: Unit::Person { rows: 20 }, ..Noise::usual(0.25, 3_000) };
        assert_eq!((persons.usual_rounds(3), persons.usual_rounds(1)), (5, 8));
    }
}
