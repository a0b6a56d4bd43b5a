//! What one row adds to a question under noise, as pure functions.
//!
//! Whoever adds rows up knows how much one of them may move the sum, checks every row for it in whole numbers, and so does not trust this
//! code: it may be mistaken about statistics, and the promise holds. It only has to be a function of one row. That is why it has no
//! state, allocates nothing, and loops over clusters, columns and bins alone: no loop ends for a value. `tests/purity.rs` reads these files and refuses whatever could carry something from one row to the next.
//!
//! Weights below 2^-40 are 0 before they multiply, because processors are slow with the smallest numbers.
#![no_std]
#![forbid(unsafe_code)]

mod bins;
mod distances;
mod moments;
mod powers;
mod rows;
mod shifts;
mod validity;

pub use bins::Bracket;
pub use rows::{Change, LANES, Lanes, Rows};

/// What is asked of every row of d columns. Points are row-major, one after the other, in the units of the rows.
#[derive(Debug, Clone, Copy)]
pub enum Question<'q> {
    /// By bracket one entry for a row below it, and one for each of its bins.
    Bins {
        /// The brackets.
        brackets: &'q [Bracket],
        /// Bins of each, at least 1.
        bins: u32,
    },
    /// One for the row itself; then its values, or their squared distances from a point.
    Moments {
        /// The point, d.
        around: Option<&'q [f64]>,
        /// Columns.
        d: usize,
    },
    /// Weights by cluster (K), weights times how far the row lies from a point of reference (K x d), and times the square of that (1).
    Shifts {
        /// Centres, K x d.
        centres: &'q [f64],
        /// Points of reference, K x d.
        references: &'q [f64],
        /// Columns.
        d: usize,
        /// Fuzzifier above 1: a weight is a membership to that power. Without it the nearest centre has all the weight.
        m: Option<f64>,
        /// A row that lies farther away pulls only so far.
        clip: f64,
    },
    /// Distances (K), memberships (K) and the part of the objective (1).
    Distances {
        /// Centres, K x d.
        centres: &'q [f64],
        /// Columns.
        d: usize,
        /// Fuzzifier above 1.
        m: f64,
    },
    /// What the indices of validity need, in the order of the specification, section 13.5.
    Validity {
        /// Centres, K x d.
        centres: &'q [f64],
        /// Columns.
        d: usize,
        /// Fuzzifier above 1.
        m: f64,
        /// Also the values of the row in its nearest cluster, and their squared distances from its centre.
        vectors: bool,
    },
}

impl Question<'_> {
    /// Entries of the answer.
    pub fn width(&self) -> usize {
        match self {
            Self::Bins { brackets, bins } => brackets.len() * (*bins as usize + 1),
            Self::Moments { d, .. } => 1 + d,
            Self::Shifts { centres, d, .. } => centres.len() / d + centres.len() + 1,
            Self::Distances { centres, d, .. } => 2 * (centres.len() / d) + 1,
            Self::Validity { centres, d, vectors, .. } => {
                7 * (centres.len() / d) + validity::SCALARS + if *vectors { 2 * centres.len() } else { 0 }
            }
        }
    }

    /// Numbers that [`add`] needs to work with.
    pub fn scratch(&self) -> usize {
        match self {
            Self::Bins { .. } | Self::Moments { .. } => 0,
            Self::Shifts { centres, d, .. }
            | Self::Distances { centres, d, .. }
            | Self::Validity { centres, d, .. } => 3 * (centres.len() / d),
        }
    }
}

/// Adds to `out` ([`Question::width`] entries) what `row` (d values) says; `scratch` has [`Question::scratch`] numbers, whatever they are.
///
/// # Panics
/// Perhaps for a row or slices of another length. Whoever calls it counts such a row as nothing.
pub fn add(question: &Question<'_>, row: &[f64], scratch: &mut [f64], out: &mut [f64]) {
    match *question {
        Question::Bins { brackets, bins } => bins::add(brackets, bins, row, out),
        Question::Moments { around, .. } => moments::add(around, row, out),
        Question::Shifts { centres, references, m, clip, .. } => {
            shifts::add((centres, references), m, clip, row, scratch, out);
        }
        Question::Distances { centres, m, .. } => validity::distances(centres, m, row, scratch, out),
        Question::Validity { centres, m, vectors, .. } => validity::all((centres, m, vectors), row, scratch, out),
    }
}
