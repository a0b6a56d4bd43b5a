//! How far the rows of every cluster lie from a point of reference, each pulling only so far: the question of rounds under
//! noise. For ANY centres one row moves the weights by at most 1, the sums by at most `clip` and the squares by its square, in the
//! Euclidean norm, because its memberships to the power of m add up to at most 1 (specification, section 17.4).

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, MAX_WORDS};
use crate::distance::check_fuzzifier;
use veilsum_contributions::Question;

use crate::kernel::{Form, Sums};
use crate::{Centres, Domain, Error, Prepared, kernel, refuse};

/// Shares of weights, sums and squares: a centre needs its sums the most. How far rows lie is one number for all of them, by which K is chosen.
pub(crate) const SHARES: [f64; 3] = [0.14, 0.81, 0.05];
/// The same of questions about candidates for first centres, whose weights say where rows are.
pub(crate) const SHARES_OF_CANDIDATES: [f64; 3] = [0.3, 0.68, 0.02];

/// `U_k = sum_j w_jk` (K), `S_k = sum_j w_jk clip(x_j - r_k)` (K x d) and `Q = sum_j sum_k w_jk |clip(x_j - r_k)|^2` (1). Here clip
/// shortens a vector to the length `clip`, and `w_jk` is `u_jk^m`, or 1 for the nearest centre and 0 for all others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shifts {
    /// Current centres, K x d.
    pub centres: Centres,
    /// Fuzzifier, m > 1; none for hard groups.
    pub m: Option<f64>,
    /// The points of reference are the middle of the box, and not the centres.
    pub middle: bool,
    /// Longest vector that counts in full, > 0, working units.
    pub clip: f64,
    /// Round, counted from 0: no two rounds ask the same.
    pub round: u32,
}

impl Shifts {
    /// The points of reference, K x d.
    pub fn references(&self, domain: &Domain) -> Vec<f64> {
        if !self.middle {
            return self.centres.as_slice().to_vec();
        }
        let middle: Vec<f64> = (0..domain.columns()).map(|column| domain.middle(column)).collect();
        middle.repeat(self.centres.k())
    }

    /// Of weights, sums and squares what one row moves.
    pub(crate) fn sensitivities(clip: f64) -> [f64; 3] {
        [1.0, clip, clip * clip]
    }

    /// Numbers of the answer for K clusters in d columns.
    pub(crate) fn width(k: usize, d: usize) -> usize {
        k * (d + 1) + 1
    }

    /// As it is asked of every row, with the points of reference.
    pub(crate) fn of_row<'q>(&'q self, references: &'q [f64]) -> Question<'q> {
        let d = self.centres.columns();
        Question::Shifts { centres: self.centres.as_slice(), references, d, m: self.m, clip: self.clip }
    }
}

impl Family for Shifts {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        domain.same_columns(self.centres.columns())?;
        self.m.map_or(Ok(()), check_fuzzifier)?;
        let clips = self.clip.is_finite() && self.clip > 0.0;
        refuse(!clips, || Error::Question("rows pull as far as a number above 0 says"))?;
        refuse(self.centres.k() >= MAX_WORDS / (domain.columns() + 1), || Error::Question("too many centres"))
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let k = self.centres.k();
        vec![
            Block::per_row("weights", k, 1.0),
            Block::per_row("shifts", k * domain.columns(), self.clip),
            Block::per_row("squares", 1, self.clip * self.clip),
        ]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let references = self.references(rows.domain());
        Ok(kernel::contributions(rows.packed(), form, &self.of_row(&references)))
    }

    fn sensitivity(&self, _: &Domain) -> Option<Vec<f64>> {
        Some(Self::sensitivities(self.clip).to_vec())
    }
}
