//! What a description of columns finds.

use serde::{Deserialize, Serialize};

/// What the totals say of the columns; everything in working units.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Rows that the means are over.
    pub rows: u64,
    /// Rows that variances are over: others where a site was lost in between.
    pub spread_rows: u64,
    /// Rows that the histograms are over, likewise; `None` where there is no column of numbers.
    pub histogram_rows: Option<u64>,
    /// Rows that were read and lack a value, by column, d: they are none of the others.
    pub missing: Vec<u64>,
    /// Mean of every column, d.
    pub means: Vec<f64>,
    /// Variance of every column, divisor N, d.
    pub variances: Vec<f64>,
    /// Rows in each of the bins of equal width over each number's side of the box; a value on an edge lies in the upper bin.
    pub histograms: Vec<Vec<u64>>,
}
