//! A method is a conversation in totals: a small state machine on the coordinator's side that asks, takes the totals, and
//! asks again until it is done.
//!
//! A [`Recipe`] says what a run consists of: preparation, seeding, an [`Algorithm`] for every K and restart, validity, the
//! choice of K. [`Run`] is that conversation. The algorithms themselves are in [`algorithm`](crate::algorithm), one file each.

pub mod choice;
mod dp;
pub mod mechanism;
mod plan_check;
mod prepare;
mod recipe;
mod run;
mod seed;
mod sizes;

use serde::{Deserialize, Serialize};

pub use choice::{Choice, CurvePoint, Pick};
pub use prepare::{Preparing, Scale};
pub use recipe::{Clusters, LocalRange, Recipe, Seeding, Validity};
pub use run::Run;
pub(crate) use seed::MARGINS;
pub use seed::{CandidateSearch, Candidates, SeedPoints};
pub use sizes::ClusterSizes;

use crate::profile::Profile;
use crate::{Batch, Centres, Transform};

pub use crate::algorithm::{ALGORITHMS, About, Algorithm, Description, Fit, Iteration, Pulled, Round, Stop, Walls};
pub use crate::query::Stage;
pub use crate::scale::inside;
pub use crate::validity::{DaviesBouldin, Indices};

/// What the coordinator wants to know next, or that it is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask every site this and come back with the totals.
    Ask(Batch),
    /// The result.
    Done(Box<Outcome>),
}

/// The result of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Final centres, K x d, working units (of the public box, also where rows were standardised).
    pub centres: Centres,
    /// Fuzzifier that memberships in these centres are computed with.
    pub m: f64,
    /// What each cluster of these centres holds.
    pub clusters: ClusterSizes,
    /// Number of rows N that the objective and the indices were divided by: the given one, or the sum of all
    /// memberships, rounded. `None` where a run ended before they were asked for, also where the objective and the indices
    /// are estimated.
    pub n_total: Option<u64>,
    /// Rounds that updated the centres.
    pub rounds: u32,
    /// Whether the method's own stop rule held: the centres moved less than epsilon in the last round or, for all but
    /// `fcm`, not at all. `fcm` with epsilon = 0 runs all its rounds and never says so. A run that ends in a cycle has not converged;
    /// for `ffcf` it is the iteration at the coordinator that counts.
    pub converged: bool,
    /// The shift of every round, in order.
    pub history: Vec<Round>,
    /// Validity indices at the final centres; none where a run ended before they were asked for.
    pub indices: Indices,
    /// Objective at the final centres: `J_m` of fuzzy c-means for fuzzy methods, the sum of squared distances to the nearest centre for the
    /// others; squared units of the questions. `+inf`, which JSON writes as `null`, where it was not asked for.
    pub objective: f64,
    /// The objective over N.
    pub objective_per_row: f64,
    /// How the rows were standardised, if they were.
    pub transform: Option<Transform>,
    /// One point for every K that was tried, ascending; empty where K was given.
    pub curve: Vec<CurvePoint>,
    /// Questions asked in all, each one masked sum.
    pub questions: u32,
    /// What the reader of the result has to know: fall-backs that were taken, runs that collapsed.
    pub notes: Vec<String>,
    /// The cohort of the last totals that moved these centres, by the caller's number of it ([`Run::over`]); the
    /// history ends with it.
    #[serde(default)]
    pub centres_over: u32,
    /// The cohort of the objective, of every index and of N; `None` where none was asked for.
    #[serde(default)]
    pub judged_over: Option<u32>,
    /// Standard deviation of every column over all rows, d, units of the questions, where first centres came from totals, as far as
    /// the margins tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviations: Option<Vec<f64>>,
    /// Rows of every column in bins of equal width over its side of the box, where first centres came from totals; with
    /// the noise of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margins: Option<Vec<Vec<f64>>>,
    /// Over the candidates of first centres, how many times as large the objective of the best other partition is, of which a centre lies
    /// elsewhere. Only under noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rival: Option<f64>,
    /// What each column has to do with the clusters, where totals without noise tell it; means and deviations in working units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Candidates that hold rows, where first centres came from totals: below K the rest of them hold none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<u32>,
    /// How far a centre is from the mean of the rows nearest to it, at most, units of the questions; where these means were asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_means: Option<f64>,
    /// Local centres behind each centre, K, where the method averages those of the sites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_centres: Option<Vec<f64>>,
    /// What the objective is below, if it is smaller than what steps of totals may change: rows lie on their centres, or the steps are coarse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// Centres of exact fuzzy c-means that hold so little of all weight (`sum u^m`) that totals cannot move them.
    #[serde(default)]
    pub frozen: u32,
    /// How far rows lie from their centres, where noisy rounds around them told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulled: Option<Pulled>,
    /// What a description found, in working units; its means are the one centre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
    /// Whether the restarts of this K came to the same centres; `None` where there was one start, or the run ended before all of
    /// them had moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<Stability>,
}

impl Outcome {
    /// The centres in the units of the questions; `None` if they are none of its transform.
    pub(crate) fn in_questions(&self) -> Option<Centres> {
        match &self.transform {
            Some(transform) => transform.centres(&self.centres).ok(),
            None => Some(self.centres.clone()),
        }
    }
}

/// How far the restarts of one K agree (after Ben-Hur, Elisseeff & Guyon 2002, with starts in the place of samples). It says
/// whether the first centres decide the result, and nothing of other rows or other sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stability {
    /// For every restart the mean distance of its centres to those of the result, matched one to one so that it is smallest,
    /// over the least distance between two centres of the result; 0 for the result itself. For K = 1, which has no such
    /// distance, over half the narrowest side of the box.
    pub matched_distance: Vec<f64>,
    /// The part of the restarts, the result among them, that agree with it: no centre is farther from its match than a tenth of
    /// that least distance.
    pub agreement: f64,
    /// The largest objective that a restart ended with, over that of the result; `None` if they were not judged. So far off may one start
    /// be, and so far may the result still be from a better one that no restart found.
    #[serde(default)]
    pub worst: Option<f64>,
}

impl Stability {
    /// How many starts came to the result's centres, and how many there were.
    pub fn agreeing(&self) -> (usize, usize) {
        let of = self.matched_distance.len();
        ((self.agreement * of as f64).round() as usize, of)
    }
}
