//! What an estimate starts from.

use crate::{Batch, Totals};

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
