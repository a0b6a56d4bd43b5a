//! The algorithms that a plan can name. Each is a file that implements [`Named`] and [`Spec`], and an entry in the list below;
//! whatever else needs to know an algorithm (the check of a plan, what a site answers, the command line, the tests of every
//! method) reads it from here.

pub mod describe;
mod description;
pub mod fcm;
pub mod ffcf;
pub mod ffcm;
pub mod fkm;
pub mod kmeans;
mod rounds;
mod spec;
mod update;

use serde::{Deserialize, Serialize};

pub use description::Description;
pub use fcm::usual_fuzzifier;
pub use spec::{Beginning, Iteration, Named, Spec, Traits};
pub(crate) use update::{CLEAR_SHARE, check_rounds, confined};
pub use update::{Fit, Pulled, Round, Stop, Walls};

use crate::Error;
use crate::query::{FeatureParams, LocalSteps};

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

/// Makes [`Algorithm`] and the registry from the list. The order is that of their numbers on the wire.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $name:ident = $module:ident::$spec:ident { $($field:ident: $type:ty),* })*) => {
        /// An algorithm that a plan can name, with its parameters; they are explained where its file describes them.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub enum Algorithm {
            $(
                $(#[$doc])*
                $name {
                    $(
                        #[doc = concat!("As in [`", stringify!($spec), "`](", stringify!($module), "::", stringify!($spec), ").")]
                        $field: $type,
                    )*
                },
            )*
        }

        impl Algorithm {
            /// What the registry says of it.
            pub fn about(&self) -> &'static About {
                match self {
                    $(Self::$name { .. } => const { &about::<$module::$spec>() },)*
                }
            }

            fn spec(&self) -> Box<dyn Spec> {
                match *self {
                    $(Self::$name { $($field),* } => Box::new($module::$spec { $($field),* }),)*
                }
            }
        }

        $(impl From<$module::$spec> for Algorithm {
            fn from(spec: $module::$spec) -> Self {
                let $module::$spec { $($field),* } = spec;
                Self::$name { $($field),* }
            }
        })*

        /// Every algorithm that a plan can name.
        pub const ALGORITHMS: &[About] = &[$(about::<$module::$spec>()),*];
    };
}

algorithms! {
    /// Exact federated fuzzy c-means ([`fcm`]).
    Fcm = fcm::FcmSpec { m: f64, epsilon: f64, max_rounds: u32 }
    /// FFCM with the weighted mean of local centres ([`ffcm`]).
    FfcmAvg1 = ffcm::Average1Spec { m: f64, epsilon: f64, max_rounds: u32, local: LocalSteps, powers: bool }
    /// FFCM with k-means over local centres, one Lloyd step on totals a round; FedFCM is this method ([`ffcm`]).
    FfcmAvg2 = ffcm::Average2Spec { m: f64, epsilon: f64, max_rounds: u32, local: LocalSteps }
    /// Federated k-means with weighted alignment ([`fkm`]).
    Fkm = fkm::FkmSpec { epsilon: f64, max_rounds: u32, min_rows: u64, local_steps: u32, finish: u32 }
    /// Exact federated k-means ([`kmeans`]).
    Kmeans = kmeans::KmeansSpec { epsilon: f64, max_rounds: u32 }
    /// Federated fuzzy feature vectors on shared anchors, then weighted fuzzy c-means ([`ffcf`]).
    Ffcf = ffcf::FfcfSpec { m: f64, features: FeatureParams, anchors: u32, merge: bool }
    /// Statistics of every column, without clusters ([`describe`]).
    Describe = describe::DescribeSpec { bins: u32 }
}

const fn about<S: Named>() -> About
where
    Algorithm: From<S>,
{
    About { name: S::NAME, aliases: S::ALIASES, usual: || S::usual().into() }
}

impl Algorithm {
    /// The name by which plans and results call it.
    pub fn name(&self) -> &'static str {
        self.about().name
    }

    /// What others need to know of it.
    pub fn traits(&self) -> Traits {
        self.spec().traits()
    }

    /// The iteration for one K.
    pub(crate) fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, Error> {
        self.spec().begin(at)
    }
}
