//! How far the rows of every cluster lie from a point of reference, each pulling only so far: the question of rounds under
//! noise. For ANY centres one row moves the weights by at most 1, the sums by at most `clip` and the squares by its square, in the
//! Euclidean norm, because its memberships to the power of m add up to at most 1 (specification, section 17.4).

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, MAX_WORDS, Sensitivity, same_columns};
use crate::distance::usable_fuzzifier;
use veilsum_contributions::Question;

use crate::kernel::{Form, Sums};
use crate::{Centres, Domain, Error, Prepared, kernel};

/// Shares of weights, sums and squares: a centre needs its sums the most. How far rows lie is one number for all of them, by which K is chosen.
const SHARES: [f64; 3] = [0.14, 0.81, 0.05];
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
        let middle = |column| {
            let (low, high) = domain.working_interval(column);
            low + (high - low) / 2.0
        };
        let middle: Vec<f64> = (0..domain.columns()).map(middle).collect();
        middle.repeat(self.centres.k())
    }

    /// Of weights, sums and squares what one row moves, and the share of a round's budget.
    pub(crate) fn sensitivities(clip: f64) -> [(f64, f64); 3] {
        let [weights, shifts, squares] = SHARES;
        [(1.0, weights), (clip, shifts), (clip * clip, squares)]
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
        same_columns(&self.centres, domain)?;
        if self.m.is_some_and(|m| !usable_fuzzifier(m)) {
            return Err(Error::Fuzzifier);
        }
        if !(self.clip.is_finite() && self.clip > 0.0) {
            return Err(Error::Question("rows pull as far as a number above 0 says"));
        }
        if self.centres.k() >= MAX_WORDS / (domain.columns() + 1) {
            return Err(Error::Question("too many centres"));
        }
        Ok(())
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

    fn sensitivity(&self, _: &Domain) -> Option<Sensitivity> {
        Some(Sensitivity::Shared(Self::sensitivities(self.clip).to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;
    use proptest::prelude::*;

    fn box_of(d: usize) -> Domain {
        Domain::new(vec![-1.0; d], vec![1.0; d], Scaling::None).unwrap()
    }

    fn answer(rows: &[f64], d: usize, shifts: &Shifts) -> Vec<f64> {
        shifts.answer(&Prepared::known(rows, &box_of(d)), &Form::PLAIN).unwrap().into_plain()
    }

    fn norm(values: &[f64]) -> f64 {
        values.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    proptest! {
        /// [NOI-5]: whatever the centres, one row moves the weights by 1 and the sums by `clip` at most.
        #[test]
        fn one_row_moves_little_for_any_centres(
            d in 1usize..5,
            k in 1usize..6,
            m in prop::sample::select(vec![None, Some(1.1), Some(2.0), Some(3.5)]),
            middle: bool,
            clip in 0.01f64..3.0,
            places in proptest::collection::vec(-1.0f64..=1.0, 40),
            on_a_centre: bool,
            close in prop::sample::select(vec![1.0, 1e-3, 1e-9]),
        ) {
            let base = &places[30..30 + d];
            let centres: Vec<f64> =
                (0..k).flat_map(|c| (0..d).map(move |j| (c, j))).map(|(c, j)| base[j] * (1.0 - close) + close * places[c * d + j]).collect();
            let x = if on_a_centre { centres[..d].to_vec() } else { places[35..35 + d].to_vec() };
            let centres = Centres::new(k, d, centres).unwrap();
            let shifts = Shifts { centres, m, middle, clip, round: 0 };
            let found = answer(&x, d, &shifts);
            prop_assert!(found.iter().all(|v| v.is_finite()));
            prop_assert!(norm(&found[..k]) <= 1.0 + 1e-12, "{found:?}");
            let square = k * (d + 1);
            prop_assert!(norm(&found[k..square]) <= clip * (1.0 + 1e-12), "{found:?}");
            prop_assert!((0.0..=clip * clip * (1.0 + 1e-12)).contains(&found[square]), "{found:?}");
            for block in shifts.layout(&box_of(d)).iter().zip([&found[..k], &found[k..square], &found[square..]]) {
                prop_assert!(block.1.len() == block.0.len && block.1.iter().all(|v| v.abs() <= block.0.bound * (1.0 + 1e-12)));
            }
        }
    }

    /// The bounds are reached: no smaller ones hold.
    #[test]
    fn the_bounds_are_tight() {
        let centres = Centres::from_rows(&[vec![0.5, 0.5], vec![-1.0, -1.0]]).unwrap();
        let shifts = Shifts { centres, m: Some(2.0), middle: true, clip: 2f64.sqrt(), round: 0 };
        let found = answer(&[0.5, 0.5], 2, &shifts);
        assert_eq!(found[..6], [1.0, 0.0, 0.5, 0.5, 0.0, 0.0]);
        assert!((found[6] - 0.5).abs() < 1e-15);
        let far = answer(&[1.0, 1.0], 2, &Shifts { clip: 0.5, m: None, ..shifts.clone() });
        assert!((norm(&far[2..6]) - 0.5).abs() < 1e-15 && far[0] == 1.0 && (far[6] - 0.25).abs() < 1e-15);
        // Around the centres, unclipped, it is the update of fuzzy c-means.
        let rows = [0.4, 0.4, 0.7, 0.5, -0.9, -0.8];
        let around = answer(&rows, 2, &Shifts { middle: false, clip: 9.0, ..shifts.clone() });
        let plain = answer(&rows, 2, &Shifts { clip: 9.0, ..shifts.clone() });
        for c in 0..2 {
            for j in 0..2 {
                let at = 2 + 2 * c + j;
                let (a, b) = (shifts.centres.row(c)[j] + around[at] / around[c], plain[at] / plain[c]);
                assert!((a - b).abs() < 1e-14, "{a} {b}");
            }
        }
    }
}
