//! What an estimate starts from, and why there is none.

use crate::{Batch, MethodError, Totals};

/// The sum of the held-out errors of all extrapolated rounds must stay below this; the error of the validity totals too.
pub const GATE: f64 = 1e-3;

/// The largest number of extrapolated rounds. Each costs tens of milliseconds, and a run that needs more is far from
/// convergence.
pub(super) const MAX_ROUNDS: u32 = 1000;

/// One question of a run and its totals, as they were opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Released {
    /// The question.
    pub batch: Batch,
    /// Its totals over the cohort. The caller ensures that everything handed to one [`finish`](super::finish) is over the same cohort.
    pub totals: Totals,
    /// By block of [`Batch::layout`] how its entries were rounded. Blocks that are missing count as exact to what `f64` holds.
    pub steps: Vec<Rounding>,
}

/// The steps behind the entries of a block, working units (specification, SUM-1 and FIX-4).
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rounding {
    /// What every row adds is rounded to it.
    pub row: f64,
    /// What every site adds is rounded to it, where that is coarser; else 0.
    pub site: f64,
}

/// The reason why the totals of a question were not estimated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The totals of this run carry noise on purpose.
    #[error("its totals carry noise")]
    Noise,
    /// There is no released total that is a sum over rows.
    #[error("nothing that is out is a sum over rows")]
    NothingOut,
    /// Totals that do not have the layout of their question.
    #[error("totals and questions do not fit each other")]
    Misfit,
    /// The question asks for more than sums over rows.
    #[error("the next question ({0}) is no sum over rows: sites iterate, leave out groups, or are counted")]
    NotOverRows(&'static str),
    /// A probe has no answer.
    #[error("the next question cannot be answered for a row of the box: {0}")]
    Unanswerable(String),
    /// The expected error did not pass the gate.
    #[error(
        "the totals that are out do not tell the next ones: error {error:.1e} on held-out probes after {rounds} rounds, the gate is {GATE:.0e}"
    )]
    Inexact {
        /// The sum of the held-out errors, with that of the refused question.
        error: f64,
        /// Estimated rounds, the refused one included; 0 for a validity question.
        rounds: u32,
    },
    /// The method did not believe the estimated totals.
    #[error("the estimated totals were not believed: {0}")]
    Implausible(MethodError),
    /// The centres do not come to rest.
    #[error("the centres did not come to rest in {MAX_ROUNDS} estimated rounds")]
    TooManyRounds,
}
