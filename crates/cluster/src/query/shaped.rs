//! Second moments of clusters that have a shape of their own: a round of a Gaussian mixture (Dempster, Laird & Rubin 1977)
//! and of Gustafson & Kessel (1979).
//!
//! With `z = (x - c_k) / extent`, column by column in parts of the box, and `C_k` the covariance of cluster k in these units,
//! a row's weight in cluster k is for a mixture the responsibility
//!
//! ```text
//! r_k = π_k N(z; 0, C_k) / Σ_j π_j N(z; 0, C_j)
//! ```
//!
//! and for Gustafson & Kessel `u_k^m`, where u are the memberships of fuzzy c-means with the squared distances
//! `d_k² = det(C_k)^(1/d) zᵀ C_k⁻¹ z`.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, Sensitivity, ShowsRows, same_columns};
use crate::kernel::{Form, Sums};
use crate::scale::farthest;
use crate::scale::inside;
use crate::shape::{Factor, add_square, extents, stretched, triangle};
use crate::{Centres, Domain, Error, Prepared, Rows, Transform, distance, kernel};

/// Columns at most: a cluster has d (d + 1) / 2 second moments, and each is a number that is given away.
pub(crate) const MAX_SHAPED_COLUMNS: usize = 64;
/// Numbers that describe the clusters of one question at most, 8 MiB: a question has to fit a frame.
pub(crate) const MAX_SHAPE_NUMBERS: usize = 1 << 20;
/// The smallest variance that a plan may set as the floor, in parts of the squared extent of the box: 3·10^-5 of the box.
pub(crate) const LEAST_FLOOR: f64 = 1e-9;
/// A row's log-likelihood is never counted below this, nats in a box of volume 1: the total needs a bound that everybody
/// knows. A row is that far from every cluster where it is some hundred standard deviations from all of them.
pub(crate) const LEAST_LOG_LIKELIHOOD: f64 = -8192.0;
/// Largest covariance, in parts of the squared extent of the box: rows have a quarter at most, and the floor is added.
const MOST_COVARIANCE: f64 = 4.0;
/// What rounding may leave the smallest variance below the floor.
const HAIR: f64 = 1e-3;

/// Totals at clusters with centres, covariances and, for a mixture, weights: `weights`, `Σ w_k` (K); `sums`, `Σ w_k x` (K x d,
/// working units); `scatter`, the lower triangles of `Σ w_k z zᵀ` (K x d (d + 1) / 2); `fit` (1), for a mixture
/// `Σ log Σ_k π_k N(z; 0, C_k)`, for Gustafson & Kessel `Σ Σ_k u_k^m d_k²`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShapedSums {
    /// Current centres, K x d.
    pub centres: Centres,
    /// Lower triangles of `C_k` one after the other, in parts of the box, K d (d + 1) / 2.
    pub covariances: Vec<f64>,
    /// What a row's weights are.
    pub model: ShapeModel,
    /// The smallest variance that a cluster has in any direction, in parts of the squared extent of the box.
    pub floor: f64,
}

/// What a row's weights in clusters with covariances are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapeModel {
    /// Responsibilities.
    Mixture {
        /// `π_k`, K, which add up to 1.
        weights: Vec<f64>,
    },
    /// Memberships to the power of m.
    GustafsonKessel {
        /// Fuzzifier, > 1.
        m: f64,
    },
}

/// What a row is compared with.
pub(super) struct Clusters<'a> {
    query: &'a ShapedSums,
    extents: Vec<f64>,
    factors: Vec<Factor>,
    /// Of a mixture the logarithm of weight over the root of the determinant; else `det^(1/d)`.
    scale: Vec<f64>,
    /// The power of a fuzzy membership that is a row's weight: m in a round, 1 where rows are assigned.
    power: f64,
}

impl<'a> Clusters<'a> {
    /// `None` where a covariance is none.
    pub(super) fn of(query: &'a ShapedSums, domain: &Domain) -> Option<Self> {
        let d = domain.columns();
        let factors: Vec<Factor> = query.matrices().map(|matrix| Factor::of(matrix, d)).collect::<Option<_>>()?;
        let scale = match &query.model {
            ShapeModel::Mixture { weights } => {
                let log = |(pi, factor): (&f64, &Factor)| pi.ln() - 0.5 * factor.log_det - 0.5 * d as f64 * LOG_TAU;
                weights.iter().zip(&factors).map(log).collect()
            }
            ShapeModel::GustafsonKessel { .. } => factors.iter().map(|f| (f.log_det / d as f64).exp()).collect(),
        };
        let power = if let ShapeModel::GustafsonKessel { m } = query.model { m } else { 1.0 };
        Some(Self { query, extents: extents(domain), factors, scale, power })
    }

    /// A row's weights into `w`, with its part of the fit; `z` has the place of K d numbers.
    pub(super) fn weights(&self, x: &[f64], z: &mut [f64], w: &mut [f64]) -> f64 {
        let d = x.len();
        let mut y = vec![0.0; d];
        for (((z, w), centre), factor) in
            z.chunks_exact_mut(d).zip(w.iter_mut()).zip(self.query.centres.rows()).zip(&self.factors)
        {
            for ((z, (x, c)), extent) in z.iter_mut().zip(x.iter().zip(centre)).zip(&self.extents) {
                *z = (x - c) / extent;
            }
            // A row that is assigned may be so far outside the box that its square is no number.
            *w = factor.distance(z, &mut y).min(f64::MAX);
        }
        match &self.query.model {
            ShapeModel::Mixture { .. } => {
                w.iter_mut().zip(&self.scale).for_each(|(w, scale)| *w = scale - 0.5 * *w);
                let most = w.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
                w.iter_mut().for_each(|w| *w = (*w - most).exp());
                let sum: f64 = w.iter().sum();
                w.iter_mut().for_each(|w| *w /= sum);
                (most + sum.ln()).max(LEAST_LOG_LIKELIHOOD)
            }
            ShapeModel::GustafsonKessel { m } => {
                w.iter_mut().zip(&self.scale).for_each(|(w, scale)| *w = (*w * scale).min(f64::MAX));
                let squares = w.to_vec();
                let nearest = squares.iter().fold(f64::INFINITY, |a, b| a.min(*b));
                // A row that is a centre belongs to it, or to all centres there alike.
                let share = |square: f64| match nearest > 0.0 {
                    true => (nearest / square).powf(1.0 / (m - 1.0)),
                    false => f64::from(u8::from(square == 0.0)),
                };
                w.iter_mut().zip(&squares).for_each(|(w, square)| *w = share(*square));
                let sum: f64 = w.iter().sum();
                w.iter_mut().for_each(|w| *w = distance::power(*w / sum, self.power));
                w.iter().zip(&squares).map(|(w, square)| w * square).sum()
            }
        }
    }
}

/// ln 2π.
const LOG_TAU: f64 = 1.837_877_066_409_345_5;

/// What is wrong with clusters whose covariances have no inverse.
pub(super) const NOT_DEFINITE: Error = Error::Question { what: "a covariance is not positive definite" };

impl ShapedSums {
    /// The question about clusters that a run has left, by which rows are assigned to them: centres (K x d) in the units of its
    /// questions, whose box is `domain`; covariances (K lower triangles) in working units, as an [`Outcome`](crate::Outcome) has
    /// them; and how the cohort standardised working units, if it did.
    ///
    /// # Errors
    /// [`Error`] where no run has left such clusters.
    pub fn left(
        centres: Centres,
        covariances: &[Vec<f64>],
        model: ShapeModel,
        transform: Option<&Transform>,
        domain: &Domain,
    ) -> Result<Self, Error> {
        let d = domain.columns();
        if covariances.iter().any(|matrix| matrix.len() != triangle(d)) {
            return Err(refuse("a covariance has another number of columns than the box"));
        }
        if transform.is_some_and(|transform| transform.factor.len() != d) {
            return Err(refuse("clusters have no covariances in whitened columns"));
        }
        let mut by: Vec<f64> = extents(domain).iter().map(|extent| 1.0 / extent).collect();
        if let Some(transform) = transform {
            by.iter_mut().zip(&transform.factor).for_each(|(by, factor)| *by *= factor);
        }
        let covariances = covariances.iter().flat_map(|matrix| stretched(matrix, &by)).collect();
        // Any plan's floor is no lower.
        let asked = Self { centres, covariances, model, floor: LEAST_FLOOR };
        asked.check(domain)?;
        Ok(asked)
    }

    /// Memberships of n rows (n x d, units of the question, in the box or outside) in K clusters, row by row, n x K:
    /// responsibilities of a mixture, else fuzzy memberships. Those of a row add up to 1.
    ///
    /// # Errors
    /// [`Error`] where rows and clusters have other columns than the box, or a covariance is not positive definite.
    pub fn memberships(&self, rows: &Rows, domain: &Domain) -> Result<Vec<f64>, Error> {
        let (k, d) = (self.centres.k(), domain.columns());
        same_columns(&self.centres, domain)?;
        if rows.columns() != d {
            return Err(Error::ColumnMismatch { expected: d, found: rows.columns() });
        }
        let clusters = Clusters { power: 1.0, ..Clusters::of(self, domain).ok_or(NOT_DEFINITE)? };
        let (mut all, mut z) = (vec![0.0; rows.len() * k], vec![0.0; k * d]);
        for (row, u) in rows.iter().zip(all.chunks_exact_mut(k)) {
            clusters.weights(row, &mut z, u);
        }
        Ok(all)
    }

    fn matrices(&self) -> impl Iterator<Item = &[f64]> {
        self.covariances.chunks_exact(triangle(self.centres.columns()).max(1))
    }
}

/// Whether a matrix is positive definite with no variance far below the floor: the trace of the inverse is at least one over
/// the smallest variance in any direction, and at most d times that.
pub(crate) fn is_wide(matrix: &[f64], d: usize, floor: f64) -> bool {
    let most = d as f64 / floor * (1.0 + HAIR);
    matrix.iter().all(|x| x.abs() <= MOST_COVARIANCE)
        && Factor::of(matrix, d).is_some_and(|f| f.trace_of_inverse <= most)
}

/// The covariance nearest to what noise has left of one: variances from 0 to a quarter of the box, the floor added, and correlations
/// so far shortened that it is positive definite.
pub(crate) fn tamed(matrix: &[f64], d: usize, floor: f64) -> Vec<f64> {
    let mut tame = matrix.to_vec();
    for i in 0..d {
        tame[triangle(i) + i] = tame[triangle(i) + i].clamp(0.0, 0.25) + floor;
    }
    for i in 0..d {
        for j in 0..i {
            let most = (tame[triangle(i) + i] * tame[triangle(j) + j]).sqrt();
            tame[triangle(i) + j] = tame[triangle(i) + j].clamp(-most, most);
        }
    }
    // Without correlations it is positive definite.
    let shortened = |keep: f64| {
        let of = |i: usize| (0..=i).map(move |j| (i, j));
        let entry = |((i, j), x): ((usize, usize), &f64)| if i == j { *x } else { keep * x };
        (0..d).flat_map(of).zip(&tame).map(entry).collect::<Vec<f64>>()
    };
    (0..=20).rev().map(|step| shortened(f64::from(step) / 20.0)).find(|m| is_wide(m, d, floor)).unwrap_or(tame)
}

fn refuse(what: &'static str) -> Error {
    Error::Question { what }
}

impl Family for ShapedSums {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        same_columns(&self.centres, domain)?;
        let (k, d) = (self.centres.k(), domain.columns());
        if d > MAX_SHAPED_COLUMNS {
            return Err(refuse("clusters have covariances in 64 columns at most"));
        }
        if k > MAX_SHAPE_NUMBERS / (triangle(d) + d + 1) || self.covariances.len() != k * triangle(d) {
            return Err(refuse("there are too many clusters, or not one covariance for each"));
        }
        if !(LEAST_FLOOR..=1.0).contains(&self.floor) {
            return Err(refuse("the smallest variance must be 1e-9 to 1 of the squared extent of the box"));
        }
        if inside(&self.centres, domain).is_err() {
            return Err(refuse("a cluster with a covariance has its centre outside the box"));
        }
        match &self.model {
            ShapeModel::Mixture { weights } => {
                let sum: f64 = weights.iter().sum();
                if weights.len() != k
                    || !weights.iter().all(|w| (0.0..=1.0 + 1e-6).contains(w))
                    || (sum - 1.0).abs() > 1e-6
                {
                    return Err(refuse("the weights of a mixture are K numbers from 0 on that add up to 1"));
                }
            }
            ShapeModel::GustafsonKessel { m } if !distance::usable_fuzzifier(*m) => return Err(Error::Fuzzifier),
            ShapeModel::GustafsonKessel { .. } => {}
        }
        if !self.matrices().all(|matrix| is_wide(matrix, d, self.floor)) {
            return Err(refuse(
                "a covariance is not positive definite, below the smallest variance, or wider than the box",
            ));
        }
        Ok(())
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let (k, d) = (self.centres.k(), domain.columns());
        // How far a row may be from each centre in each column, in parts of the box: 1, and a hair.
        let far = 1.0 + 2.0 * crate::scale::HAIR;
        let fit = match &self.model {
            // No density is above 700 nats where variances are not below the least floor, in any number of columns.
            ShapeModel::Mixture { .. } => -LEAST_LOG_LIKELIHOOD,
            // As for fuzzy c-means, a row adds at most its squared distance to any one centre.
            ShapeModel::GustafsonKessel { .. } => {
                let of = |matrix: &[f64]| Factor::of(matrix, d);
                let most = |f: Factor| (f.log_det / d as f64).exp() * f.trace_of_inverse * d as f64 * far * far;
                self.matrices().filter_map(of).map(most).fold(f64::INFINITY, f64::min)
            }
        };
        vec![
            Block::per_row("weights", k, 1.0),
            Block::per_row("sums", k * d, domain.largest()),
            Block::per_row("scatter", k * triangle(d), far * far),
            Block::per_row("fit", 1, fit),
        ]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        let triangle = triangle(d);
        let clusters = Clusters::of(self, rows.domain()).ok_or(NOT_DEFINITE)?;
        Ok(kernel::each_row(rows.packed(), form, k * (1 + d + triangle) + 1, |x, own| {
            let mut z = vec![0.0; k * d];
            let (weights, rest) = own.split_at_mut(k);
            let (sums, rest) = rest.split_at_mut(k * d);
            let (scatter, fit) = rest.split_at_mut(k * triangle);
            fit[0] = clusters.weights(x, &mut z, weights);
            let all = sums.chunks_exact_mut(d).zip(scatter.chunks_exact_mut(triangle)).zip(z.chunks_exact(d));
            for (((sum, matrix), z), weight) in all.zip(weights.iter()) {
                sum.iter_mut().zip(x).for_each(|(own, x)| *own = weight * x);
                add_square(matrix, z, *weight);
            }
        }))
    }

    /// A row's weights add up to 1 at most, a product `z zᵀ` has the norm of `|z|²`, which is largest in the corner that lies farthest from
    /// some centre, and the fit is bounded from the question. Nobody needs the fit under noise: it gets what is hardly a share.
    fn sensitivity(&self, domain: &Domain) -> Option<Sensitivity> {
        let extents = extents(domain);
        let corner = |centre: &[f64]| -> f64 {
            let far = |column: usize| {
                let ((low, high), c) = (domain.working_interval(column), centre[column]);
                ((c - low).max(high - c) / extents[column] + 2.0 * crate::scale::HAIR).powi(2)
            };
            (0..centre.len()).map(far).sum()
        };
        let product = self.centres.rows().map(corner).fold(0.0, f64::max);
        let fit = self.layout(domain).last().map_or(0.0, |block| block.bound);
        Some(Sensitivity::Shared(vec![(1.0, 0.2), (farthest(domain), 0.29), (product, 0.5), (fit, 0.01)]))
    }

    fn shows_rows(&self) -> Option<ShowsRows> {
        Some(ShowsRows { block: "weights", blocks: None })
    }
}
