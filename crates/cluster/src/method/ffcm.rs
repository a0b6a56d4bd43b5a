//! FFCM (Stallmann & Wilbik 2022, arXiv 2201.07316; FedFCM in Appl. Sci. 12, 10455, is the same method): local fuzzy c-means
//! from the global centres, then an average of the local centres, from totals.
//!
//! Every site l iterates fuzzy c-means on its own rows from the global centres C until its memberships rest
//! (`||U' - U||_F < epsilon`), with the standard exponent (Bezdek 1981; Eq. 5 as printed squares the distances twice).
//!
//! * [`Average1`] (avg1, Eq. 7): `C_k = sum_l W_k^(l) c_k^(l) / sum_l W_k^(l)`, by index. The weights are `sum_j u_jk` at the
//!   local centres, as in the authors' code, or `sum_j u_jk^m` of the memberships that gave them, as printed.
//! * [`Average2`] (avg2, Eq. 8): k-means over all local centres, which count 1 each. The authors' server runs k-means++ in round 1 and
//!   Lloyd from the last global centres afterwards. Here every round is ONE Lloyd step: each site counts its local centres at
//!   the global ones nearest to them, and `C_k = s_k / n_k`. It has the same fixed points, and from seeds of tree cells it gave the
//!   same results in 6 of the 7 published cases (case 2: gap 0.99 instead of 1.17), in 2 to 2.3 rounds instead of 2.5 to 3.6. A centre
//!   nobody is nearest to stays.
//!
//! Both end when the Frobenius norm of the shift is below epsilon, or when nothing moves.
//!
//! With one local step and powers avg1 IS central fuzzy c-means ([`fcm`](super::fcm)): the printed Eqs. 5 to 8, differing by
//! 1.6e-14 after 30 rounds. With local convergence avg1 fails where sites hold different clusters, because centres of one index
//! have moved to different places: in case 3 its gap is 3.65 where avg2 has 0.04, and up to 55 % of the runs end in a cycle
//! (unconverged). avg2 with ONE local step never settles (300 rounds, gap 3.8). Random first centres fail avg2 in 5 to 95 % of the
//! draws of the published cases; seeding from tree cells in none. And both inherit the collapse of fuzzy c-means with m = 2 in
//! many columns.
//!
//! The coordinator sees weights and weighted sums; under avg2 local centres counted at each cluster, their sum, sites behind
//! each and the sum of squared distances, never a local centre of its own. But a cluster to which one site contributes IS that
//! site's centre: 33 to 49 % of the clusters in cases 2 and 3. [`GroupThreshold`] guards avg2 by `min_sites`; its `min_rows` does not
//! apply, since the totals count local centres and not rows. avg1 asks one question a round and has no counts of sites.
//!
//! ```
//! use veilsum_cluster::method::Seeding;
//! use veilsum_cluster::query::LocalSteps;
//! use veilsum_cluster::{Algorithm, OutOfBox, Prepared, Recipe, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let start = domain.centres_to_box(&example.truth)?;
//! let local = LocalSteps { most: 1000, epsilon: 1e-3 };
//! let avg2 = Algorithm::FfcmAvg2 { m: 2.0, epsilon: 1e-3, max_rounds: 50, local };
//! let recipe = Recipe::plain(avg2, 5, Seeding::Given { centres: start });
//! let outcome = pooled::plain_federated(&mut recipe.run(&domain, 3)?, &sites)?;
//! assert!(outcome.converged && (outcome.indices.fuzzy_davies_bouldin - 0.43).abs() < 0.02);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::plausible::{check_rounds, clear, hash, moved};
use super::rounds::{Rounds, Weights};
use super::{Fit, GroupThreshold, Iteration, Walls};
use crate::distance::usable_fuzzifier;
use crate::query::{LocalFuzzy, LocalSteps, Pull, RoundHalf};
use crate::totals_check::{check_values, check_weights};
use crate::{Centres, MethodError, Query, Round};

/// Weighted mean of local centres by index.
#[derive(Debug, Clone)]
pub struct Average1 {
    fit: Fit,
    m: f64,
    epsilon: f64,
    max_rounds: u32,
    local: LocalSteps,
    pull: Pull,
    /// Hashes of all centres that have been asked about.
    asked: Vec<u64>,
    walls: Option<Walls>,
}

impl Average1 {
    /// Its beginning, from first centres (K x d) until they move less than `epsilon`, at most `max_rounds` rounds, each with
    /// the sites' own iteration `local`. `powers` takes the weights as printed (Eq. 7).
    ///
    /// # Errors
    /// [`MethodError`] naming the parameter that is outside its domain.
    pub fn new(
        start: Centres,
        m: f64,
        epsilon: f64,
        max_rounds: u32,
        local: LocalSteps,
        powers: bool,
    ) -> Result<Self, MethodError> {
        check(m, local)?;
        check_rounds(epsilon, max_rounds)?;
        let fit = Fit { centres: start, weights: Vec::new(), history: Vec::new(), converged: false };
        let pull = if powers { Pull::Powers } else { Pull::Memberships };
        let asked = vec![hash(&fit.centres)];
        Ok(Self { fit, m, epsilon, max_rounds, local, pull, asked, walls: None })
    }
}

impl Iteration for Average1 {
    fn ask(&self) -> Query {
        let centres = self.fit.centres.clone();
        Query::LocalFuzzy(LocalFuzzy { centres, m: self.m, local: self.local, pull: self.pull, part: RoundHalf::Both })
    }

    /// Eq. 7.
    fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, MethodError> {
        let (k, d) = (self.fit.centres.k(), self.fit.centres.columns());
        check_values(values, k * (d + 1))?;
        let (weights, sums) = values.split_at(k);
        check_weights(weights, rows, "W")?;
        let (moved, shift) = moved(&self.fit.centres, sums, &clear(weights), self.walls.as_ref())?;

        self.fit.converged = shift < self.epsilon || moved == self.fit.centres;
        self.fit.centres = moved;
        self.fit.weights = weights.to_vec();
        let round = u32::try_from(self.fit.history.len() + 1).unwrap_or(u32::MAX);
        self.fit.history.push(Round { round, shift });
        // Centres that come back give the same totals for ever: the rest is a cycle.
        let hash = hash(&self.fit.centres);
        let again = self.asked.contains(&hash);
        self.asked.push(hash);
        Ok(self.fit.converged || again || round >= self.max_rounds)
    }

    fn fit(&self) -> Fit {
        self.fit.clone()
    }

    fn confine(&mut self, walls: &Walls) {
        self.walls = Some(walls.clone());
    }

    fn copy(&self) -> Box<dyn Iteration> {
        Box::new(self.clone())
    }
}

/// One Lloyd step over all local centres a round.
#[derive(Debug, Clone)]
pub struct Average2 {
    rounds: Rounds,
    m: f64,
    local: LocalSteps,
}

impl Average2 {
    /// Its beginning, from first centres (K x d) until they move less than `epsilon`, at most `max_rounds` rounds, each with
    /// the sites' own iteration `local`. Of the rule only `min_sites` applies.
    ///
    /// # Errors
    /// [`MethodError`] naming the parameter that is outside its domain.
    pub fn new(
        start: Centres,
        m: f64,
        epsilon: f64,
        max_rounds: u32,
        local: LocalSteps,
        rule: GroupThreshold,
    ) -> Result<Self, MethodError> {
        check(m, local)?;
        Ok(Self { rounds: Rounds::new(start, Weights::LocalCentres, epsilon, max_rounds, rule)?, m, local })
    }
}

impl Iteration for Average2 {
    fn ask(&self) -> Query {
        Query::LocalFuzzy(LocalFuzzy {
            centres: self.rounds.fit.centres.clone(),
            m: self.m,
            local: self.local,
            pull: Pull::Nearest,
            part: self.rounds.part(),
        })
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, MethodError> {
        self.rounds.take(values, rows)
    }

    fn fit(&self) -> Fit {
        self.rounds.fit.clone()
    }

    fn confine(&mut self, walls: &Walls) {
        self.rounds.walls = Some(walls.clone());
    }

    fn copy(&self) -> Box<dyn Iteration> {
        Box::new(self.clone())
    }
}

fn check(m: f64, local: LocalSteps) -> Result<(), MethodError> {
    if !usable_fuzzifier(m) {
        return Err(MethodError::Fuzzifier);
    }
    local.check().map_err(|error| MethodError::parameter(error.to_string()))
}
