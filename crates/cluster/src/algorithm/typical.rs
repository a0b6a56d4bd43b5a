//! Fuzzy c-means with a noise cluster (Davé 1991), and possibilistic c-means (Krishnapuram & Keller 1993), on totals.
//!
//! Both are [`fcm`](super::fcm) with other memberships ([`TypicalSums`]): every round asks for `Σ u_k^m x` and `Σ u_k^m`, and moves each
//! centre to their ratio. A row much farther than δ from every centre hardly moves any. `fcm-noise` gives its weight to one more cluster,
//! which has no centre; `pcm` lets every cluster judge a row by itself, so that memberships of a row add up to anything from 0
//! to K.
//!
//! δ is the plan's, in the units of the questions, and the same for all clusters. The papers also take it from the data (Davé from the
//! mean distance, Krishnapuram and Keller from the rows of each cluster, with `η_k = δ²`); here nothing is asked for it,
//! and a run of `fcm` reports the scale of equation 9 for the next plan. A site has to see δ before it agrees: under a small one
//! the sums are those of the few rows around a centre.
//!
//! `fcm-noise` fails where δ is small: all rows are noise, and centres rest where they began. `pcm` fails where δ is large: its
//! clusters do not know of each other, and several move to the same place, which a run then reports as collapsed. Both begin
//! best at centres from totals.
//!
//! Validity indices and the objective are those of fuzzy c-means at the final centres, in which every row counts.

use super::fcm::Updates;
use super::spec::{Beginning, Belonging, Iteration, Named, Options, Spec, Traits};
use crate::distance::usable_fuzzifier;
use crate::query::{Typical, TypicalSums, Typicality};
use crate::{Centres, Error, Query};

/// Fuzzy c-means with a noise cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseSpec {
    /// Fuzzifier, > 1.
    pub m: f64,
    /// Stop when the centres move less ([`Stop`](super::Stop)); 0 runs all rounds.
    pub epsilon: f64,
    /// Rounds at most.
    pub max_rounds: u32,
    /// δ: every row is so far from the noise cluster, > 0, units of the questions.
    pub distance: f64,
}

/// Possibilistic c-means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PcmSpec {
    /// Fuzzifier, > 1.
    pub m: f64,
    /// Stop when the centres move less ([`Stop`](super::Stop)); 0 runs all rounds.
    pub epsilon: f64,
    /// Rounds at most.
    pub max_rounds: u32,
    /// δ: a row so far from a centre has membership 1/2 there, > 0, units of the questions.
    pub distance: f64,
}

/// What both have in common.
macro_rules! typical {
    ($spec:ident, $name:literal, $help:literal, $typicality:expr, $rows:literal) => {
        impl Named for $spec {
            const NAME: &'static str = $name;
            const BELONGING: Belonging = Belonging::Typical($typicality);
            const HELP: &'static str = $help;

            fn usual(options: &Options) -> Self {
                let Options { m, epsilon, max_rounds, distance, .. } = *options;
                Self { m, epsilon: epsilon.unwrap_or(0.005), max_rounds, distance }
            }

            fn forms() -> Vec<Self> {
                vec![Self { m: 2.0, epsilon: 1e-5, max_rounds: 60, distance: 0.2 }]
            }
        }

        impl Spec for $spec {
            fn traits(&self) -> Traits {
                Traits {
                    rounds: self.max_rounds,
                    fuzzifier: Some(self.m),
                    epsilon: Some(self.epsilon),
                    tolerance_under_noise: Some(self.epsilon),
                    shares_rows: true,
                    is_exact: true,
                    typical: Some(Typical { distance: self.distance, typicality: $typicality }),
                    ..Traits::default()
                }
            }

            fn asks(&self, centres: &Centres) -> Vec<Query> {
                let Self { m, distance, .. } = *self;
                vec![TypicalSums { centres: centres.clone(), m, distance, typicality: $typicality }.into()]
            }

            fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, Error> {
                if !usable_fuzzifier(self.m) {
                    return Err(Error::Fuzzifier);
                }
                if !(self.distance > 0.0 && self.distance.is_finite()) {
                    return Err(Error::parameter("the distance of noise or of typical rows must be above 0"));
                }
                Updates::begin(*self, self.epsilon, self.max_rounds, $rows, at)
            }
        }
    };
}

typical!(NoiseSpec, "fcm-noise", "Fuzzy c-means with a noise cluster", Typicality::Noise, true);
typical!(PcmSpec, "pcm", "Possibilistic c-means", Typicality::Possibilistic, false);
