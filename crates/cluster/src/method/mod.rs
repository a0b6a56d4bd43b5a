//! A method is a conversation in totals: a small state machine on the coordinator's side that asks, takes the totals, and
//! asks again until it is done.
//!
//! A [`Recipe`] says what a run consists of: preparation, seeding, an [`Algorithm`] for every K and restart, validity, the
//! choice of K. [`Run`] is that conversation. An algorithm itself is an [`Iteration`], one file each.

pub mod choice;
pub mod fcm;
pub mod ffcf;
pub mod ffcm;
pub mod fkm;
pub mod kmeans;
pub mod kumar;
mod noisy;
mod plan_check;
mod plausible;
mod prepare;
mod recipe;
mod rounds;
mod run;
mod seed;

use serde::{Deserialize, Serialize};

pub use choice::{Choice, CurvePoint, Pick};
pub use plan_check::inside;
pub use plausible::Walls;
pub use prepare::{Preparation, Preparing, Scale, Winsor};
pub use recipe::{Algorithm, Clusters, GroupThreshold, LocalRange, Recipe, Seeding, TreeSeeding, Validity};
pub use run::Run;
pub use seed::{SeedCells, TreeSearch};

use crate::validity::Verdict;
use crate::{Batch, Centres, MethodError, Query, Totals, Transform};

pub use crate::query::Stage;
pub use crate::validity::Indices;

/// What the coordinator wants to know next, or that it is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask every site this and come back with the totals.
    Ask(Batch),
    /// The result.
    Done(Box<Outcome>),
}

/// A clustering method that sees totals and nothing else.
pub trait Method: Send {
    /// One step of the conversation.
    ///
    /// `None` asks for the open question: the first one at the start, and the same one again as long as its totals have
    /// not come (a round that failed may be repeated). `Some` answers the open question.
    ///
    /// # Errors
    /// [`MethodError`]; after [`MethodError::Implausible`] the state is as before, so that the round may be repeated.
    fn next(&mut self, totals: Option<&Totals>) -> Result<Step, MethodError>;

    /// Answers an open validation question with verdicts that somebody else drew from its totals (the intermediary), one
    /// for each query of the batch.
    ///
    /// # Errors
    /// [`MethodError::NotAsked`] where no such question is open.
    fn judged(&mut self, verdicts: &[Verdict]) -> Result<Step, MethodError> {
        let _ = verdicts;
        Err(MethodError::NotAsked)
    }
}

/// One algorithm's iteration from given first centres for one K: what it asks in each round and how it takes the answer.
/// What comes before and after (standardisation, seeding, validity) is the [`Run`]'s.
pub trait Iteration: Send {
    /// The open question.
    fn ask(&self) -> Query;
    /// Takes the totals of the open question. True when it is over.
    ///
    /// # Errors
    /// [`MethodError::Implausible`], and nothing has changed then.
    fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, MethodError>;
    /// Where it stands.
    fn fit(&self) -> Fit;
    /// Keeps the centres of all further rounds inside these.
    fn confine(&mut self, walls: &Walls);
    /// Asks a cluster's sum again only where so many rows have entered or left it; for rounds of exact Lloyd.
    fn min_change(&mut self, rows: u64) {
        let _ = rows;
    }
    /// A copy, so that a batch can be taken whole or not at all.
    fn copy(&self) -> Box<dyn Iteration>;
}

/// Where an iteration stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Centres, K x d, in the units of the questions.
    pub centres: Centres,
    /// Weight of each cluster in the last round (K): `sum_j u_jk^m`, rows or mass, as the method counts.
    pub weights: Vec<f64>,
    /// The shift of every round that updated the centres.
    pub history: Vec<Round>,
    /// Whether the method's own stop rule held.
    pub converged: bool,
}

/// One round of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Counted from 1.
    pub round: u32,
    /// Frobenius norm of the change of the centres, working units.
    pub shift: f64,
}

/// The result of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Final centres, K x d, working units (of the public box, also where rows were standardised).
    pub centres: Centres,
    /// Fuzzifier that memberships in these centres are computed with.
    pub m: f64,
    /// Weight of each cluster in the last round (K), i.e. with respect to the centres BEFORE the last update:
    /// `U_k = sum_j u_jk^m` for fuzzy methods, rows (or mass) for the others.
    pub weights: Vec<f64>,
    /// Number of rows N that the objective and the indices were divided by: the given one, or the sum of all
    /// memberships, rounded. `None` where a run ended before they were asked for, also where the objective and the indices
    /// are estimated.
    pub n_total: Option<u64>,
    /// Rounds that updated the centres.
    pub rounds: u32,
    /// Whether the method's own stop rule held: the centres moved less than epsilon in the last round or, for all but
    /// `fcm`, not at all. `fcm` with epsilon = 0 runs all its rounds and never says so. A run that ends in a cycle, or because
    /// too few stand behind every cluster, has not converged; for `ffcf` it is the iteration at the coordinator that counts.
    pub converged: bool,
    /// The shift of every round, in order.
    pub history: Vec<Round>,
    /// Validity indices at the final centres; none, and `+inf` for fuzzy Davies-Bouldin, where a run ended before they were
    /// asked for.
    pub indices: Indices,
    /// Objective at the final centres: `J_m` for fuzzy methods, the sum of squared distances to the nearest centre for the
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
    /// Rows by cluster and label, K x classes row-major, where the plan releases them.
    pub contingency: Option<Vec<f64>>,
    /// The cohort of the last totals that moved these centres, by the caller's number of it ([`Run::over`]); weights and
    /// history end with it.
    #[serde(default)]
    pub centres_over: u32,
    /// The cohort of the objective, of every index, of N and of the counts by label; `None` where none was asked for.
    #[serde(default)]
    pub judged_over: Option<u32>,
    /// What of all this rests on estimated totals, where a run could not ask any more: see [`finish`](crate::finish).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extrapolated: Option<Extrapolation>,
}

/// How much of a result rests on totals that were not asked, but estimated from those that were out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extrapolation {
    /// Rounds of this K and restart whose totals are estimates; they are the last ones. 0 where only the indices are, or the
    /// rounds of others that it was chosen among.
    pub rounds: u32,
    /// The sum over all estimated rounds of the run of their errors on made-up rows of the box that the estimates were not fitted
    /// to: each the largest error of a total, as a part of the root mean square of its block there. No bound: the real rows may
    /// lie elsewhere, and how far centres are off by it depends on the data.
    pub held_out_error: f64,
    /// What that sum had to stay below.
    pub gate: f64,
    /// Whether the method's own stop rule held on the estimates. The result says `converged: false` all the same.
    pub at_rest: bool,
    /// The error of the validity totals, likewise, where they too are estimates; without it no index is one.
    pub index_error: Option<f64>,
}
