//! FKM: federated k-means with weighted alignment, local K and a threshold (Garst & Reinders 2024, Algorithm 1), on totals.
//!
//! In every round each site takes the global centres to which one of its rows is nearest, makes E Lloyd steps from them, leaves
//! out groups of fewer than p rows, and sums up each other group at the global centre nearest to its mean. Centre k moves to
//! `sum_j S_j C_j / sum_j S_j` over the local means `C_j` (sizes `S_j`) that are nearest to it: one Lloyd step of the weighted
//! k-means `sum_j S_j min_k ||C_j - c_k||^2` that the paper's server solves. A group is counted before its mean is taken, so
//! that `S_j C_j` is the exact sum of its rows. An empty cluster keeps its centre.
//!
//! The paper's server sees the local means and starts k-means++ afresh in every round, which its quality rests on (adjusted
//! Rand index at noise 1.5: 0.68 to 0.70 with one start, 0.71 to 0.72 with ten). That cannot be done on totals; seeding once from tree
//! cells makes it unnecessary (0.73), while random starts lose 0.05 to 0.11. With E = 1 and p = 1 the rounds are exact Lloyd
//! ([`kmeans`](super::kmeans)). The optional finisher adds rounds of exact Lloyd, in which every row counts.
//!
//! It fails where a site's groups stay below p: their rows are not represented (FKM with fewer than p rows at a site
//! contributes nothing).
//!
//! The coordinator sees for each cluster the rows and the sum of the groups that count, the sites behind it, and the sum of
//! squared distances. The finisher right after aligned rounds tells the difference: what the groups below p hold. Where p is
//! meant as protection, set the plan's [`GroupThreshold`] (which holds for the finisher too) or do without a finisher.
//!
//! ```
//! use veilsum_cluster::{Algorithm, OutOfBox, Prepared, Recipe, method::Seeding, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let fkm = Algorithm::Fkm { epsilon: 1e-4, max_rounds: 50, min_rows: 2, local_steps: 1, finish: 0 };
//! let recipe = Recipe::plain(fkm, 4, Seeding::Uniform { seed: 5 });
//! let outcome = pooled::plain_federated(&mut recipe.run(&domain, 3)?, &sites)?;
//! assert!(outcome.converged);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::kmeans::lloyd;
use super::plausible::check_rounds;
use super::rounds::{Rounds, Weights};
use super::{Fit, GroupThreshold, Iteration, Walls};
use crate::query::{LocalMeans, LocalSteps};
use crate::{Centres, MethodError, Query};

/// Weighted alignment of local means.
#[derive(Debug, Clone)]
pub struct Fkm {
    rounds: Rounds,
    min_rows: u64,
    local: LocalSteps,
    finish: u32,
    finishing: bool,
    min_change: u64,
}

impl Fkm {
    /// Its beginning, from first centres (K x d) until they move less than `epsilon`, at most `max_rounds` rounds; then at most
    /// `finish` rounds of exact Lloyd with the same stop rule. `min_rows` is the paper's p, `local_steps` its E.
    ///
    /// # Errors
    /// [`MethodError`] naming the parameter that is outside its domain.
    pub fn new(
        start: Centres,
        epsilon: f64,
        max_rounds: u32,
        min_rows: u64,
        local_steps: u32,
        finish: u32,
        rule: GroupThreshold,
    ) -> Result<Self, MethodError> {
        let local = LocalSteps { most: local_steps, epsilon: 0.0 };
        local.check().map_err(|error| MethodError::parameter(error.to_string()))?;
        if min_rows == 0 {
            return Err(MethodError::parameter("a site's own min_rows must be at least 1"));
        }
        check_rounds(epsilon, max_rounds.saturating_add(finish))?;
        let rounds = Rounds::new(start, Weights::Rows, epsilon, max_rounds, rule)?;
        Ok(Self { rounds, min_rows, local, finish, finishing: false, min_change: 1 })
    }

    /// Exact Lloyd would only repeat the last question where every row has counted at its nearest centre and none moved.
    fn at_rest(&self) -> bool {
        self.local.most == 1 && self.min_rows == 1 && self.rounds.still()
    }
}

impl Iteration for Fkm {
    fn ask(&self) -> Query {
        if self.finishing {
            return lloyd(&self.rounds);
        }
        Query::LocalMeans(LocalMeans {
            centres: self.rounds.fit.centres.clone(),
            local: self.local,
            min_rows: self.min_rows,
            nearest: true,
            part: self.rounds.part(),
        })
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, MethodError> {
        if !self.rounds.take(values, rows)? {
            return Ok(false);
        }
        let stuck = self.rounds.nothing_open();
        if self.finishing || self.finish == 0 || stuck || self.at_rest() {
            return Ok(true);
        }
        self.finishing = true;
        self.rounds.go_on(self.finish);
        if self.min_change > 1 {
            self.rounds.min_change(self.min_change);
        }
        Ok(false)
    }

    fn fit(&self) -> Fit {
        self.rounds.fit.clone()
    }

    fn confine(&mut self, walls: &Walls) {
        self.rounds.walls = Some(walls.clone());
    }

    /// In the finisher alone: a site's own groups are no fixed sets of rows.
    fn min_change(&mut self, rows: u64) {
        self.min_change = rows;
    }

    fn copy(&self) -> Box<dyn Iteration> {
        Box::new(self.clone())
    }
}
