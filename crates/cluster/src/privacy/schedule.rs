//! How much each total may say ([NOI-6]): the budget of a run is split over its questions. This gives sensitivities and
//! standard deviations.

use super::Noise;
use crate::query::{SHARES, SHARES_OF_CANDIDATES, Shifts, Stage};
use crate::scale::reach;
use crate::{Domain, Query};

/// Noise of the centres over the rows' own sampling error, by the plan's noise and expected rows: the clip that it allows is taken.
const NOISE_OF_SAMPLING: f64 = 0.3;
/// A row pulls at least so many times as far as rows lie from their centres (root mean square): the more, if the noise is then no more than this
/// part of the sampling error. And it pulls no less than so small a part of the box's half diagonal.
const LEAST_PULL: (f64, f64) = (2.0, 2.5);
const NOISE_OF_WIDER: f64 = 0.5;
const NARROWEST: f64 = 128.0;

/// How much one block of a total may say, in working units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// The most by which one unit more or less moves the block, in the Euclidean norm.
    pub sensitivity: f64,
    /// Standard deviation of the noise in every entry of the total.
    pub deviation: f64,
}

impl Level {
    /// What it costs.
    pub fn rho(&self) -> f64 {
        let ratio = self.sensitivity / self.deviation;
        ratio * ratio / 2.0
    }
}

/// How much a run asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Questions of the preparation.
    pub preparing: u32,
    /// Questions of the first centres.
    pub seeding: u32,
    /// Rounds of each K and restart; 0 if columns are described.
    pub rounds: u32,
    /// Every K and restart.
    pub members: u32,
    /// Whether the clusters are judged after the rounds.
    pub judges: bool,
    /// Questions in all at most.
    pub questions: u32,
    /// The largest K: questions about more points are about candidates for first centres.
    pub most_clusters: u32,
}

/// The levels of a whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    noise: Noise,
    /// Budget of a run in which no question is asked again.
    rho: f64,
    /// Budgets of one question of the preparation, of one of the first centres, of one round of one K and restart, of the
    /// validation, and of the row count.
    preparing: f64,
    seeding: f64,
    round: f64,
    judging: f64,
    count: f64,
    members: f64,
    /// Half diagonal of the box: no row is farther from its middle.
    reach: f64,
    columns: usize,
    /// Questions of the first centres.
    pub(crate) searches: u32,
    rounds: u32,
    most_clusters: u32,
}

impl Levels {
    /// The levels of a run of this extent with this noise, over a box in the units of the rounds. Shares of parts that the run does
    /// not have go to the rounds, or to the preparation if there are none.
    pub fn new(noise: &Noise, extent: Extent, domain: &Domain) -> Levels {
        let Extent { preparing, seeding, rounds, members, judges, questions, most_clusters } = extent;
        let each = |share: f64, questions: u32| if questions == 0 { 0.0 } else { share / f64::from(questions) };
        let prepare = match rounds {
            0 => each(1.0 - noise.count_share, preparing),
            _ => each(noise.standardising_share, preparing),
        };
        let seed = each(noise.seeding_share, seeding);
        let judge = each(noise.validation_share, u32::from(judges));
        let taken = f64::from(preparing) * prepare + f64::from(seeding) * seed + judge;
        let round = each(1.0 - taken - noise.count_share, rounds);
        let dearest = [prepare, seed, round, judge, noise.count_share].into_iter().fold(0.0, f64::max);
        // The whole pays for the questions that are asked again, too, and for rounding the price of each total up.
        let totals = u64::from(questions) + 1 + u64::from(noise.retries);
        let rho = noise.nano_rho.saturating_sub(totals) as f64 / 1e9 / (1.0 + f64::from(noise.retries) * dearest);
        let members = f64::from(members);
        Levels {
            noise: *noise,
            rho,
            preparing: rho * prepare,
            seeding: rho * seed,
            round: rho * round / members,
            judging: rho * judge,
            count: rho * noise.count_share,
            members,
            reach: reach(domain),
            columns: domain.columns(),
            searches: seeding,
            rounds,
            most_clusters,
        }
    }

    /// The noise that they are for.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// Budget of a run in which no question is asked again.
    pub fn rho(&self) -> f64 {
        self.rho
    }

    /// Whether a round, counted from 0, asks for sums around the middle of the box.
    pub fn is_around_middle(&self, round: u32) -> bool {
        round < self.noise.absolute_rounds || self.noise.tau == 0.0
    }

    /// How far a row pulls at most in a round of K clusters, working units. Around the centres it is the plan's tau in the first
    /// round. Later it follows `radius`, how far noisy totals say that rows lie from their centres (root mean square): as far
    /// as keeps the noise of the result at three tenths of the rows' own sampling error, and past nearly all rows of a cluster. A
    /// wider clip would only add noise; a narrower one moves centres of skewed columns by more than their errors say.
    pub fn pull(&self, round: u32, k: usize, radius: Option<f64>) -> f64 {
        match radius {
            _ if self.is_around_middle(round) => self.reach,
            Some(radius) => {
                let last = self.rounds.saturating_sub(self.first_of_last(self.rounds)).max(1);
                let rows = self.noise.expected_rows as f64 / k.max(1) as f64 * f64::from(last);
                let noise = self.of_round(1.0)[1].deviation;
                let even = (rows / self.columns as f64).sqrt() / noise;
                let far = (NOISE_OF_WIDER * even).clamp(LEAST_PULL.0, LEAST_PULL.1).max(NOISE_OF_SAMPLING * even);
                let (least, most) = self.pulls();
                (far * radius).clamp(least, most)
            }
            None => self.noise.tau * self.reach,
        }
    }

    /// The least and the most that a row may pull where that follows the rows: none is farther from a centre in the box.
    fn pulls(&self) -> (f64, f64) {
        (self.reach / NARROWEST, 2.0 * self.reach)
    }

    /// How far a row pulls at most around a candidate for first centres: a quarter of the half diagonal.
    pub(crate) fn pull_of_candidates(&self) -> f64 {
        self.reach / 4.0
    }

    fn follows_radius(&self, round: u32) -> bool {
        !self.is_around_middle(round) && round > self.noise.absolute_rounds
    }

    /// Of the pulls that a round may have, the one whose noise has the fewest steps: just above a power of two.
    pub(crate) fn coarsest_pull(&self, round: u32) -> f64 {
        match self.follows_radius(round) {
            true => self.pulls().1.log2().floor().exp2() * (1.0 + 1e-9),
            false => self.pull(round, 1, None),
        }
    }

    /// The first of the last rounds of so many, whose mean is the result: two thirds, and none around the middle but the last one.
    pub(crate) fn first_of_last(&self, max_rounds: u32) -> u32 {
        let absolute = if self.noise.tau == 0.0 { 0 } else { self.noise.absolute_rounds };
        (max_rounds / 3).max(absolute).min(max_rounds.saturating_sub(1))
    }

    /// The row count.
    pub fn of_count(&self) -> Level {
        self.level(1.0, self.count)
    }

    /// Every block of a query over this box, in its order; nothing if no sensitivity is proved for it. Blocks share the budget of a
    /// question equally, but for sums around points.
    pub fn of(&self, query: &Query, domain: &Domain) -> Option<Vec<Level>> {
        // Candidates for first centres are more than there are clusters.
        let seeds = query.points().first().is_some_and(|points| points.k() > self.most_clusters as usize);
        let budget = match query.stage() {
            Stage::Preparing => self.preparing,
            Stage::Seeding => self.seeding,
            Stage::Iterating if seeds => self.seeding,
            Stage::Iterating => self.round,
            Stage::Validating => self.judging / self.members,
            Stage::Ranging => return None,
        };
        let shares = match query {
            Query::Shifts(_) if seeds => Some(SHARES_OF_CANDIDATES),
            Query::Shifts(_) => Some(SHARES),
            _ => None,
        };
        let blocks = query.sensitivity(domain)?;
        let even = budget / blocks.len() as f64;
        let own = |at: usize| shares.map_or(even, |shares| budget * shares[at]);
        Some(blocks.iter().enumerate().map(|(at, sensitivity)| self.level(*sensitivity, own(at))).collect())
    }

    /// Weights, sums and squares of a round in which a row pulls at most `clip` far.
    pub fn of_round(&self, clip: f64) -> [Level; 3] {
        let sensitivities = Shifts::sensitivities(clip);
        std::array::from_fn(|at| self.level(sensitivities[at], self.round * SHARES[at]))
    }

    /// A block of its own budget.
    fn level(&self, sensitivity: f64, budget: f64) -> Level {
        let sensitivity = sensitivity * self.noise.rows_of_unit();
        Level { sensitivity, deviation: sensitivity / (2.0 * budget).sqrt() }
    }

    /// Weights and coordinates of sums in the last round, if rows pull no farther than in the first one around the centres; of a
    /// description the counts and sums of its columns.
    pub fn of_last(&self) -> [Level; 2] {
        match self.rounds.checked_sub(1) {
            Some(last) => {
                let [weights, sums, _] = self.of_round(self.pull(last, 1, None));
                [weights, sums]
            }
            // A block for each column and one for the rows.
            None => {
                let half = self.reach / (self.columns as f64).sqrt();
                [1.0, 2.0 * half].map(|most| self.level(most, self.preparing / (self.columns as f64 + 1.0)))
            }
        }
    }
}
