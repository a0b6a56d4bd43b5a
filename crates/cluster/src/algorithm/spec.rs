//! What every algorithm says of itself, and the iteration that it begins.

use super::update::{Fit, Walls};
use crate::query::{LocalSteps, Typical};
use crate::{Centres, Domain, Error, Query};

/// What is known of an algorithm before its parameters are.
pub trait Named: Sized {
    /// The name by which plans, results and the command line call it: that of its place in the list, in kebab-case.
    const NAME: &'static str;
    /// Other names for it on the command line.
    const ALIASES: &'static [&'static str] = &[];
    /// One line for people.
    const HELP: &'static str;
    /// Builds it from what somebody wants; what is not said gets the algorithm's own default.
    fn usual(options: &Options) -> Self;
    /// Forms that between them go through all its code, for data in the unit square.
    fn forms() -> Vec<Self>;
}

/// What somebody who names an algorithm may say of it; each takes what it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Fuzzifier, > 1.
    pub m: f64,
    /// Stop when the centres move less (Frobenius norm).
    pub epsilon: Option<f64>,
    /// Rounds at most.
    pub max_rounds: u32,
    /// A site's own steps in a round; 0 iterates to convergence.
    pub local_steps: Option<u32>,
    /// A site's own iteration stops when less than this changes.
    pub local_epsilon: f64,
    /// Weights are sums of u^m and not of u.
    pub powers: bool,
    /// Rows of a group that a site sends at least.
    pub min_group: u64,
    /// Rounds of exact Lloyd afterwards at most.
    pub finish: u32,
    /// The smallest variance of a cluster with a covariance, in parts of the squared extent of the box.
    pub regularisation: f64,
    /// How far a row may be from a centre before it counts as noise, or less than half, units of the questions.
    pub distance: f64,
    /// Shared anchors; 0 for the usual number.
    pub anchors: u32,
    /// Feature vectors that a site holds at most.
    pub features: u32,
    /// Bins of a histogram.
    pub bins: u32,
}

impl Options {
    /// A site's own iteration, by default to convergence: that is 1000 steps at most.
    pub fn local(&self) -> LocalSteps {
        let most = self.local_steps.filter(|steps| *steps > 0).unwrap_or(1000);
        LocalSteps { most, epsilon: self.local_epsilon }
    }
}

/// An algorithm with its parameters.
pub trait Spec {
    /// The fuzzifier of a fuzzy method.
    fn fuzzifier(&self) -> Option<f64> {
        None
    }

    /// Rounds at most.
    fn rounds(&self) -> u32;

    /// What a round asks about these centres (or anchors): what the iteration asks, and all that a site answers.
    fn asks(&self, centres: &Centres) -> Vec<Query>;

    /// The iteration for one K.
    ///
    /// # Errors
    /// [`Error`] naming the parameter that is outside its domain, for any first centres.
    fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, Error>;

    /// Whether its rounds sum up groups of rows, which a centre that begins far from all rows has none of.
    fn sums_groups(&self) -> bool {
        true
    }

    /// Whether every iterate is that of the same method on pooled rows, however these are spread over sites.
    fn is_exact(&self) -> bool {
        false
    }

    /// Its tolerance, where it can be run under noise because a sensitivity is proved.
    fn tolerance_under_noise(&self) -> Option<f64> {
        None
    }

    /// How rows far from every centre lose their weight, if they do.
    fn typical(&self) -> Option<Typical> {
        None
    }

    /// The anchors that it asks about in place of centres, for at most so many clusters; they are candidates for first centres.
    fn anchors(&self, clusters: u32) -> Option<u32> {
        let _ = clusters;
        None
    }

    /// Rounds that it asks after these to know where it has ended.
    fn closing_rounds(&self) -> u32 {
        0
    }

    /// Whether it maximises a likelihood.
    fn has_likelihood(&self) -> bool {
        false
    }

    /// Whether its clusters have covariances: d (d + 1) / 2 numbers more for each, and d times the work.
    fn has_covariances(&self) -> bool {
        false
    }

    /// Where it describes columns and finds no clusters: in how many bins.
    fn describes(&self) -> Option<u32> {
        None
    }

    /// Centres that a site compares a row with in the longest question, where all K and restarts have `all_k` together.
    fn comparisons(&self, all_k: f64) -> f64 {
        all_k
    }
}

/// What an iteration begins with.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    /// The box in the units of the questions.
    pub domain: &'a Domain,
    /// First centres, K x d.
    pub start: &'a Centres,
    /// The anchors of an algorithm that has any, if first centres came from totals.
    pub anchors: Option<&'a Centres>,
    /// The seed of its restart.
    pub seed: u64,
    /// Whether totals have noise; only a description asks, because for others other iterations begin then.
    pub noisy: bool,
}

/// One algorithm's iteration from given first centres for one K: what it asks in each round and how it takes the answer.
/// What comes before and after (standardisation, seeding, validity) is the [`Run`](crate::Run)'s.
pub trait Iteration: Send {
    /// The open question.
    fn ask(&self) -> Query;
    /// Takes the totals of the open question. True when it is over.
    ///
    /// # Errors
    /// [`Error::Implausible`], and nothing has changed then.
    fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, Error>;
    /// Where it stands.
    fn fit(&self) -> Fit;
    /// Keeps the centres of all further rounds inside these.
    fn confine(&mut self, walls: &Walls);
    /// A copy, so that a batch can be taken whole or not at all.
    fn copy(&self) -> Box<dyn Iteration>;
}
