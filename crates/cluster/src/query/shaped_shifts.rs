//! How far the rows of every cluster with a covariance lie from its centre, and how their distances go together, each row pulling
//! only so far: the question of rounds of a Gaussian mixture or of Gustafson & Kessel under noise. For ANY centres and covariances one
//! row moves the weights by at most 1, the sums by `clip` and the products by its square, in the Euclidean norm (specification,
//! section 17.4).

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, Sensitivity};
use super::shaped::{Clusters, NOT_DEFINITE, ShapedSums};
use crate::kernel::{Form, Sums};
use crate::shape::{add_square, triangle};
use crate::{Domain, Error, Prepared, kernel};

/// Shares of weights, sums and products: covariances need the most.
const SHARES: [f64; 3] = [0.15, 0.3, 0.55];

/// `weights`, `Σ w_k` (K); `shifts`, `Σ w_k y_k` (K x d, parts of the box); `scatter`, the lower triangles of `Σ w_k y_k y_kᵀ`
/// (K x d (d + 1) / 2), where `y_k` is `(x - c_k) / extent`, shortened to the length `clip`, and `w_k` a row's weight in
/// [`ShapedSums`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShapedShifts {
    /// The clusters.
    pub clusters: ShapedSums,
    /// Longest vector that counts in full, above 0, in parts of the box.
    pub clip: f64,
    /// Round, counted from 0: no two rounds ask the same.
    pub round: u32,
}

/// What a row adds.
pub(crate) struct Adding<'a> {
    clusters: Clusters<'a>,
    clip: f64,
    k: usize,
}

impl Adding<'_> {
    /// Adds a row's part.
    pub(crate) fn add_row(&self, x: &[f64], sums: &mut [f64]) {
        let (k, d) = (self.k, x.len());
        let (mut z, mut w) = (vec![0.0; k * d], vec![0.0; k]);
        self.clusters.weights(x, &mut z, &mut w);
        let (weights, rest) = sums.split_at_mut(k);
        let (shifts, scatter) = rest.split_at_mut(k * d);
        let all = shifts.chunks_exact_mut(d).zip(scatter.chunks_exact_mut(triangle(d))).zip(z.chunks_exact_mut(d));
        for (((shift, matrix), y), (own, w)) in all.zip(weights.iter_mut().zip(&w)) {
            let long = y.iter().map(|y| y * y).sum::<f64>().sqrt();
            if long > self.clip {
                y.iter_mut().for_each(|y| *y *= self.clip / long);
            }
            *own += w;
            shift.iter_mut().zip(&*y).for_each(|(sum, y)| *sum += w * y);
            add_square(matrix, y, *w);
        }
    }
}

impl ShapedShifts {
    /// What rows are compared with over this box; `None` if a covariance is none.
    pub(crate) fn adding(&self, domain: &Domain) -> Option<Adding<'_>> {
        let clusters = Clusters::of(&self.clusters, domain)?;
        Some(Adding { clusters, clip: self.clip, k: self.clusters.centres.k() })
    }

    /// Numbers of the answer for K clusters in d columns.
    pub(crate) fn width(k: usize, d: usize) -> usize {
        k * (1 + d + triangle(d))
    }
}

impl Family for ShapedShifts {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        self.clusters.check(domain)?;
        if !(self.clip.is_finite() && self.clip > 0.0) {
            return Err(Error::Question { what: "rows pull as far as a number above 0 says" });
        }
        Ok(())
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let (k, d) = (self.clusters.centres.k(), domain.columns());
        vec![
            Block::per_row("weights", k, 1.0),
            Block::per_row("shifts", k * d, self.clip),
            Block::per_row("scatter", k * triangle(d), self.clip * self.clip),
        ]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let adding = self.adding(rows.domain()).ok_or(NOT_DEFINITE)?;
        let width = Self::width(self.clusters.centres.k(), self.clusters.centres.columns());
        Ok(kernel::each_row(rows.packed(), form, width, |x, own| adding.add_row(x, own)))
    }

    fn sensitivity(&self, _: &Domain) -> Option<Sensitivity> {
        let [weights, shifts, scatter] = SHARES;
        Some(Sensitivity::Shared(vec![(1.0, weights), (self.clip, shifts), (self.clip * self.clip, scatter)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Centres;
    use crate::query::ShapeModel;
    use crate::shape::round;
    use crate::{Batch, OutOfBox, Query, Rows, Scaling, answer};
    use proptest::prelude::*;

    fn norm(values: &[f64]) -> f64 {
        values.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    proptest! {
        /// [NOI-6]: whatever the clusters, one row moves no block farther than its sensitivity.
        #[test]
        fn one_row_moves_little_for_any_clusters(
            d in 1usize..4,
            k in 1usize..5,
            mixture: bool,
            clip in 0.01f64..3.0,
            places in proptest::collection::vec(-1.0f64..=3.0, 24),
            variance in prop::sample::select(vec![1e-6, 1e-3, 0.1]),
        ) {
            let domain = Domain::new(vec![-1.0; d], vec![3.0; d], Scaling::None).unwrap();
            let centres = Centres::new(k, d, places[..k * d].to_vec()).unwrap();
            let model = match mixture {
                true => ShapeModel::Mixture { weights: vec![1.0 / k as f64; k] },
                false => ShapeModel::GustafsonKessel { m: 1.5 },
            };
            let clusters = ShapedSums { centres, covariances: round(d, variance + 1e-6).repeat(k), model, floor: 1e-6 };
            let asked = ShapedShifts { clusters, clip, round: 0 };
            let site = Prepared::new(&Rows::new(places[20..20 + d].to_vec(), d).unwrap(), &domain, OutOfBox::Refuse).unwrap();
            let found = answer(&Batch::from(Query::ShapedShifts(asked.clone())), &site).unwrap().values;
            let mut rest = found.as_slice();
            for (block, most) in asked.layout(&domain).iter().zip(asked.sensitivity(&domain).unwrap().blocks()) {
                let (head, tail) = rest.split_at(block.len);
                prop_assert!(norm(head) <= most * (1.0 + 1e-12), "{}: {head:?}, {most}", block.name);
                prop_assert!(head.iter().all(|x| x.abs() <= block.bound * (1.0 + 1e-12)));
                rest = tail;
            }
        }
    }

    /// Unclipped and with one cluster it is the mean and the covariance of the rows.
    #[test]
    fn one_cluster_by_hand() {
        let domain = Domain::new(vec![0.0; 2], vec![2.0; 2], Scaling::None).unwrap();
        let clusters = ShapedSums {
            centres: Centres::known(vec![[1.0, 1.0]]),
            covariances: round(2, 0.1),
            model: ShapeModel::Mixture { weights: vec![1.0] },
            floor: 1e-6,
        };
        let rows = Rows::new(vec![0.0, 2.0, 1.0, 1.5], 2).unwrap();
        let site = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap();
        let of = |clip| {
            let asked = ShapedShifts { clusters: clusters.clone(), clip, round: 0 };
            answer(&Batch::from(Query::ShapedShifts(asked)), &site).unwrap().values
        };
        assert_eq!(of(9.0), [2.0, -0.5, 0.75, 0.25, -0.25, 0.3125]);
        assert_eq!(of(0.25)[..2], [2.0, -0.25 / 2f64.sqrt()]);
    }
}
