//! What every algorithm says of itself, and the iteration that it begins.

use super::update::{Fit, Stop, Walls};
use crate::{Centres, Domain, Error, Query};

/// What others need to know of an algorithm with its parameters: the check of a plan, what a site answers, reports.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traits {
    /// Rounds at most.
    pub rounds: u32,
    /// The fuzzifier of a fuzzy method.
    pub fuzzifier: Option<f64>,
    /// How far centres move in a round after which it stops, where that is its stop rule.
    pub epsilon: Option<f64>,
    /// Its tolerance, where it can be run under noise because a sensitivity is proved.
    pub tolerance_under_noise: Option<f64>,
    /// Whether every row has a part in every centre, so that no round sums up a group of rows, which a centre that begins far from all
    /// rows has none of.
    pub shares_rows: bool,
    /// Whether every iterate is that of the same method on pooled rows, however these are spread over sites.
    pub is_exact: bool,
    /// Whether its inertia may be compared with that of rows without clusters.
    pub has_gap: bool,
    /// The plan's number of anchors that it asks about in place of centres; they are candidates for first centres.
    pub anchors: Option<u32>,
    /// Where it describes columns and finds no clusters: in how many bins.
    pub describes: Option<u32>,
    /// Whether its weights count centres that sites found alone.
    pub counts_local_centres: bool,
    /// Steps of a site's own iteration at most, each of which compares every row with every centre; 0 where it makes none.
    pub local_steps: u32,
    /// Feature vectors that a site compares with each other for every row, in place of centres.
    pub features: Option<u32>,
}

impl Traits {
    /// The anchors that it asks about in place of centres, for at most so many clusters; 0 in the plan is four times as many, at least 8.
    pub(crate) fn anchors(&self, clusters: u32) -> Option<u32> {
        self.anchors.map(|anchors| if anchors == 0 { clusters.saturating_mul(4).max(8) } else { anchors })
    }

    /// Centres that a site compares a row with in the longest question, where all K and restarts have `all_k` together.
    pub(crate) fn comparisons(&self, all_k: f64) -> f64 {
        self.features.map_or(all_k * f64::from(self.local_steps.max(1)), |features| f64::from(features).powi(2))
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
    /// When the centres rest, for an algorithm that ends then.
    pub stop: Stop,
}

impl<'a> Beginning<'a> {
    /// From these centres, without what only some plans have.
    pub fn at(domain: &'a Domain, start: &'a Centres) -> Self {
        Self { domain, start, anchors: None, seed: 0, noisy: false, stop: Stop::default() }
    }
}

/// One algorithm's iteration from given first centres for one K: what it asks in each round and how it takes the answer.
/// What comes before and after (standardisation, seeding, validity) is the [`Run`](crate::Run)'s.
pub trait Iteration: Copied + Send {
    /// The open question.
    fn ask(&self) -> Query;
    /// Takes the totals of the open question; the centres that they give are inside the walls. True when it is over.
    ///
    /// # Errors
    /// [`Error::Implausible`], and nothing has changed then.
    fn take(&mut self, values: &[f64], rows: Option<u64>, walls: &Walls) -> Result<bool, Error>;
    /// Where it stands.
    fn fit(&self) -> Fit;
}

/// Copies an iteration, so that a batch can be taken whole or not at all.
pub trait Copied {
    /// The copy.
    fn copy(&self) -> Box<dyn Iteration>;
}

impl<T: Iteration + Clone + 'static> Copied for T {
    fn copy(&self) -> Box<dyn Iteration> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Iteration> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}
