//! Fuzzy covariances (Gustafson & Kessel 1979), on totals.
//!
//! It is fuzzy c-means in which every cluster has a distance of its own, `d_k² = det(F_k)^(1/d) zᵀ F_k⁻¹ z`, all of volume 1.
//! Every round asks for `U_k = Σ u_k^m`, `Σ u_k^m x` and `Σ u_k^m z zᵀ` ([`ShapedSums`](crate::query::ShapedSums)), and takes
//!
//! ```text
//! v_k = Σ u_k^m x / U_k,   F_k = Σ u_k^m (x - v_k)(x - v_k)ᵀ / U_k + λ I
//! ```
//!
//! with λ the regularisation, in parts of the squared extent of the box: without it a cluster whose rows lie in a plane has no
//! inverse (Babuška, van der Veen & Kaymak 2002). The first F are multiples of the identity in parts of the box. It ends when the
//! centres move less than epsilon, and one more question tells the objective `Σ u^m d²` at the end.
//!
//! It fails where fuzzy c-means fails, and with few rows in a cluster, which then becomes a needle. 64 columns are the limit.
//!
//! Validity indices are in plain distances, as for every other method.

use super::shaped::{Limits, Shaped, first};
use super::spec::{Beginning, Belonging, Iteration, Named, Options, Spec, Traits};
use crate::distance::usable_fuzzifier;
use crate::query::ShapeModel;
use crate::{Centres, Error, Query};

/// Gustafson-Kessel on totals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GkSpec {
    /// Fuzzifier, > 1.
    pub m: f64,
    /// Stop when the centres move less ([`Stop`](super::Stop)); 0 stops only when nothing moves.
    pub epsilon: f64,
    /// Rounds at most, the question after the last one not counted.
    pub max_rounds: u32,
    /// Added to every variance, in parts of the squared extent of the box: 1e-9 to 1.
    pub regularisation: f64,
}

impl Named for GkSpec {
    const NAME: &'static str = "gk";
    const ALIASES: &'static [&'static str] = &["gustafson-kessel"];
    const BELONGING: Belonging = Belonging::GustafsonKessel;
    const HELP: &'static str = "Fuzzy covariances of Gustafson and Kessel";

    fn usual(options: &Options) -> Self {
        let Options { m, epsilon, max_rounds, regularisation, .. } = *options;
        Self { m, epsilon: epsilon.unwrap_or(0.005), max_rounds, regularisation }
    }

    fn forms() -> Vec<Self> {
        vec![Self { m: 2.0, epsilon: 1e-5, max_rounds: 60, regularisation: 1e-6 }]
    }
}

impl Spec for GkSpec {
    fn traits(&self) -> Traits {
        Traits {
            rounds: self.max_rounds,
            closing_rounds: 1,
            fuzzifier: Some(self.m),
            epsilon: Some(self.epsilon),
            tolerance_under_noise: Some(self.epsilon),
            is_exact: true,
            covariance_floor: Some(self.regularisation),
            ..Traits::default()
        }
    }

    fn asks(&self, centres: &Centres) -> Vec<Query> {
        vec![first(centres, ShapeModel::GustafsonKessel { m: self.m }, self.regularisation).into()]
    }

    fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, Error> {
        if !usable_fuzzifier(self.m) {
            return Err(Error::Fuzzifier);
        }
        let limits = Limits { epsilon: self.epsilon, max_rounds: self.max_rounds, floor: self.regularisation };
        Shaped::begin(at, ShapeModel::GustafsonKessel { m: self.m }, limits)
    }
}
