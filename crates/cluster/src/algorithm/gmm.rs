//! Gaussian mixture by expectation-maximisation (Dempster, Laird & Rubin 1977), on totals.
//!
//! Every round asks, at weights `π_k`, means `μ_k` and covariances `C_k`, for `n_k = Σ r_k`, `Σ r_k x`, `Σ r_k z zᵀ` and the
//! log-likelihood ([`ShapedSums`](crate::query::ShapedSums)), and takes
//!
//! ```text
//! π_k = n_k / N,   μ_k = Σ r_k x / n_k,   C_k = Σ r_k (x - μ_k)(x - μ_k)ᵀ / n_k + λ I
//! ```
//!
//! with λ the regularisation, in parts of the squared extent of the box. It ends when the mean log-likelihood of a row changes by
//! less than epsilon, as scikit-learn's `GaussianMixture` does; on rows in the unit box both make the same steps. One more
//! question tells the log-likelihood at the end, which BIC needs (Schwarz 1978).
//!
//! The first covariances are round, `K^(-2/d) / 12` of the squared extents of the box, the first weights equal. A component below
//! one row keeps mean and covariance; its weight still follows its rows.
//!
//! It fails where EM does: at poor first means, and where a component collapses onto few rows, which λ only bounds. A row's log-likelihood counts -8192 at least. In d columns a cluster has d (d + 1) / 2 second moments, each of them a
//! number that is given away; 64 columns are the limit, and beyond ten or so few cohorts have the rows for it.
//!
//! Validity indices and hard clusters are still those of the nearest mean in plain distances, the second-best description of
//! what a mixture finds.

use super::shaped::{Limits, Shaped, first};
use super::spec::{Beginning, Belonging, Iteration, Named, Options, Spec, Traits};
use crate::query::ShapeModel;
use crate::{Centres, Error, Query};

/// EM on totals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GmmSpec {
    /// Stop when the mean log-likelihood of a row changes by less, nats; 0 stops only when nothing changes.
    pub epsilon: f64,
    /// Rounds at most, the question after the last one not counted.
    pub max_rounds: u32,
    /// Added to every variance, in parts of the squared extent of the box: 1e-9 to 1.
    pub regularisation: f64,
}

impl GmmSpec {
    fn limits(&self) -> Limits {
        Limits { epsilon: self.epsilon, max_rounds: self.max_rounds, floor: self.regularisation }
    }
}

pub(super) fn even(k: usize) -> ShapeModel {
    ShapeModel::Mixture { weights: vec![1.0 / k as f64; k] }
}

impl Named for GmmSpec {
    const NAME: &'static str = "gmm";
    const BELONGING: Belonging = Belonging::Mixture;
    const HELP: &'static str = "Gaussian mixture";

    fn usual(options: &Options) -> Self {
        let Options { epsilon, max_rounds, regularisation, .. } = *options;
        Self { epsilon: epsilon.unwrap_or(1e-3), max_rounds, regularisation }
    }

    fn forms() -> Vec<Self> {
        vec![Self { epsilon: 1e-6, max_rounds: 40, regularisation: 1e-6 }]
    }
}

impl Spec for GmmSpec {
    fn traits(&self) -> Traits {
        Traits {
            rounds: self.max_rounds,
            closing_rounds: 1,
            tolerance_under_noise: Some(self.epsilon),
            is_exact: true,
            has_likelihood: true,
            covariance_floor: Some(self.regularisation),
            ..Traits::default()
        }
    }

    fn asks(&self, centres: &Centres) -> Vec<Query> {
        vec![first(centres, even(centres.k()), self.regularisation).into()]
    }

    fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, Error> {
        Shaped::begin(at, even(at.start.k()), self.limits())
    }
}
