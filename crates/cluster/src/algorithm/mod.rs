//! The algorithms that a plan can name: parameters, defaults, traits and beginnings. What is special in one is in a file of its own;
//! whatever else needs to know an algorithm (the check of a plan, what a site answers, the command line, the tests of every
//! method) reads it from here.

pub mod describe;
pub mod fcm;
pub mod ffcf;
pub mod ffcm;
pub mod fkm;
pub mod kmeans;
mod rounds;
mod spec;
mod update;

use std::mem::discriminant;

use serde::{Deserialize, Serialize};

use rounds::{Averaging, Weights};

pub use describe::Description;
pub use fcm::usual_fuzzifier;
pub use spec::{Beginning, Iteration, Traits};
pub(crate) use update::{CLEAR_SHARE, check_rounds, confined};
pub use update::{Fit, Pulled, Round, Stop, Walls};

use crate::distance::check_fuzzifier;
use crate::query::{FeatureParams, LocalSteps, Pull};
use crate::{Error, Query};

/// Rounds of a plan that names no number of them.
const USUAL_ROUNDS: u32 = 30;

/// What the registry says of an algorithm before anybody has chosen its parameters.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The name by which plans, results and the command line call it.
    pub name: &'static str,
    /// Other names for it on the command line.
    pub aliases: &'static [&'static str],
    /// It with its default parameters.
    pub usual: fn() -> Algorithm,
}

/// Every algorithm that a plan can name, with its default parameters: what somebody sets, or follows from other parts of a plan, takes their
/// place in the plan's document. A name is that of the variant, in kebab-case.
pub const ALGORITHMS: &[About] = &[
    About::of("fcm", || Algorithm::Fcm { m: 2.0, epsilon: 0.005, max_rounds: USUAL_ROUNDS }),
    About::of("ffcm-avg1", || Algorithm::FfcmAvg1 {
        m: 2.0,
        epsilon: 1e-4,
        max_rounds: USUAL_ROUNDS,
        local: LocalSteps::TO_CONVERGENCE,
        powers: true,
    }),
    About {
        aliases: &["fedfcm"],
        ..About::of("ffcm-avg2", || Algorithm::FfcmAvg2 {
            m: 2.0,
            epsilon: 1e-4,
            max_rounds: USUAL_ROUNDS,
            local: LocalSteps::TO_CONVERGENCE,
        })
    },
    About::of("fkm", || Algorithm::Fkm {
        epsilon: 0.0,
        max_rounds: USUAL_ROUNDS,
        min_rows: 2,
        local_steps: 1,
        finish: 0,
    }),
    About::of("kmeans", || Algorithm::Kmeans { epsilon: 0.0, max_rounds: USUAL_ROUNDS }),
    About::of("ffcf", || {
        let features = FeatureParams { min: 5, max: 100, tau: 1.0, m: 2.0 };
        Algorithm::Ffcf { m: 2.0, features, anchors: 0, merge: false }
    }),
    About::of("describe", || Algorithm::Describe { bins: 16 }),
];

impl About {
    const fn of(name: &'static str, usual: fn() -> Algorithm) -> Self {
        Self { name, aliases: &[], usual }
    }
}

/// An algorithm that a plan can name, with its parameters. The order is that of their numbers on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Algorithm {
    /// Exact federated fuzzy c-means ([`fcm`]).
    Fcm {
        /// Fuzzifier, > 1.
        m: f64,
        /// Stop when the centres move less ([`Stop`]); 0 runs all rounds, unless by the sum nothing moves.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
    },
    /// FFCM with the weighted mean of local centres by index ([`ffcm`]).
    FfcmAvg1 {
        /// Fuzzifier, > 1.
        m: f64,
        /// Stop when the centres move less ([`Stop`]); 0 runs all rounds.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
        /// A site's own iteration.
        local: LocalSteps,
        /// Weights are `sum_j u_jk^m` as printed (Eq. 7), and not `sum_j u_jk` as in the authors' code.
        powers: bool,
    },
    /// FFCM with k-means over local centres, one Lloyd step on totals a round; FedFCM is this method ([`ffcm`]).
    FfcmAvg2 {
        /// Fuzzifier, > 1.
        m: f64,
        /// Stop when the centres move less ([`Stop`]); 0 stops only when nothing moves.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
        /// A site's own iteration.
        local: LocalSteps,
    },
    /// Federated k-means with weighted alignment of local means ([`fkm`]).
    Fkm {
        /// Stop when the centres move less ([`Stop`]); 0 stops only when nothing moves.
        epsilon: f64,
        /// Rounds at most, the finisher's not counted.
        max_rounds: u32,
        /// A site leaves out its groups below this (the paper's p), >= 1.
        min_rows: u64,
        /// Lloyd steps of a site a round (the paper's E), >= 1.
        local_steps: u32,
        /// Rounds of exact Lloyd afterwards at most, with the same stop rule; 0 for none.
        finish: u32,
    },
    /// Exact federated k-means ([`kmeans`]).
    Kmeans {
        /// Stop when the centres move less ([`Stop`]); 0 stops only when nothing moves.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
    },
    /// Federated fuzzy feature vectors on shared anchors, then weighted fuzzy c-means ([`ffcf`]).
    Ffcf {
        /// Fuzzifier of the clustering, > 1.
        m: f64,
        /// A site's own part.
        features: FeatureParams,
        /// Anchors; 0 for four times the largest K, but at least 8.
        anchors: u32,
        /// Whether the coordinator merges what is similar before it clusters.
        merge: bool,
    },
    /// Statistics of every column, without clusters ([`describe`]).
    Describe {
        /// Bins of every column of numbers, 2 to 1024.
        bins: u32,
    },
}

impl Algorithm {
    /// The name by which plans and results call it.
    pub fn name(&self) -> &'static str {
        let same = |about: &&About| discriminant(&(about.usual)()) == discriminant(self);
        ALGORITHMS.iter().find(same).map_or("?", |about| about.name)
    }

    /// What others need to know of it.
    pub fn traits(&self) -> Traits {
        match *self {
            Self::Fcm { m, epsilon, max_rounds } => Traits {
                rounds: max_rounds,
                fuzzifier: Some(m),
                epsilon: Some(epsilon),
                tolerance_under_noise: Some(epsilon),
                shares_rows: true,
                is_exact: true,
                has_gap: true,
                ..Traits::default()
            },
            Self::FfcmAvg1 { m, epsilon, max_rounds, local, powers } => Traits {
                rounds: max_rounds,
                fuzzifier: Some(m),
                epsilon: Some(epsilon),
                shares_rows: true,
                is_exact: powers && local.most == 1,
                local_steps: local.most,
                ..Traits::default()
            },
            Self::FfcmAvg2 { m, epsilon, max_rounds, local } => Traits {
                rounds: max_rounds,
                fuzzifier: Some(m),
                epsilon: Some(epsilon),
                counts_local_centres: true,
                local_steps: local.most,
                ..Traits::default()
            },
            Self::Fkm { epsilon, max_rounds, local_steps, finish, .. } => Traits {
                rounds: max_rounds.saturating_add(finish),
                epsilon: Some(epsilon),
                has_gap: true,
                local_steps,
                ..Traits::default()
            },
            Self::Kmeans { epsilon, max_rounds } => Traits {
                rounds: max_rounds,
                epsilon: Some(epsilon),
                tolerance_under_noise: Some(epsilon),
                is_exact: true,
                has_gap: true,
                ..Traits::default()
            },
            Self::Ffcf { m, features, anchors, .. } => Traits {
                rounds: 1,
                fuzzifier: Some(m),
                anchors: Some(anchors),
                features: Some(features.max),
                ..Traits::default()
            },
            Self::Describe { bins } => Traits {
                rounds: 1,
                tolerance_under_noise: Some(0.0),
                shares_rows: true,
                is_exact: true,
                describes: Some(bins),
                ..Traits::default()
            },
        }
    }

    /// The iteration for one K.
    ///
    /// # Errors
    /// [`Error`] naming the parameter that is outside its domain, for any first centres.
    pub(crate) fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, Error> {
        self.traits().fuzzifier.map_or(Ok(()), check_fuzzifier)?;
        match *self {
            Self::Fcm { m, epsilon, max_rounds } => {
                Averaging::begin(at, Weights::Powers, (epsilon, max_rounds), move |centres| {
                    Query::fuzzy_sums(centres, m)
                })
            }
            Self::FfcmAvg1 { m, epsilon, max_rounds, local, powers } => {
                let pull = if powers { Pull::Powers } else { Pull::Memberships };
                ffcm::begin(at, Weights::Memberships, (epsilon, max_rounds), (m, local, pull))
            }
            Self::FfcmAvg2 { m, epsilon, max_rounds, local } => {
                ffcm::begin(at, Weights::LocalCentres, (epsilon, max_rounds), (m, local, Pull::Nearest))
            }
            Self::Fkm { epsilon, max_rounds, min_rows, local_steps, finish } => {
                fkm::begin(at, (epsilon, max_rounds, finish), local_steps, min_rows)
            }
            Self::Kmeans { epsilon, max_rounds } => {
                Averaging::begin(at, Weights::Rows, (epsilon, max_rounds), kmeans::lloyd)
            }
            Self::Ffcf { m, features, anchors: _, merge } => ffcf::begin(at, m, features, merge),
            Self::Describe { bins } => describe::begin(at, bins),
        }
    }
}
