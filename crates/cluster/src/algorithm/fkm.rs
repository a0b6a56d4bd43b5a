//! FKM: federated k-means with weighted alignment, local K and a threshold (Garst & Reinders 2024, Algorithm 1), on totals.
//!
//! In every round each site takes the global centres to which one of its rows is nearest, makes E Lloyd steps from them, leaves
//! out groups of fewer than p rows, and sums up each other group at the global centre nearest to its mean. Centre k moves to
//! `sum_j S_j C_j / sum_j S_j` over the local means `C_j` (sizes `S_j`) that are nearest to it: one Lloyd step of the weighted
//! k-means `sum_j S_j min_k ||C_j - c_k||^2` that the paper's server solves. A group is counted before its mean is taken, so
//! that `S_j C_j` is the exact sum of its rows. An empty cluster keeps its centre.
//!
//! The paper's server sees the local means and starts k-means++ afresh in every round, which its quality rests on (adjusted
//! Rand index at noise 1.5: 0.68 to 0.70 with one start, 0.71 to 0.72 with ten). That cannot be done on totals; seeding once from
//! totals makes it unnecessary (0.70), while random starts lose 0.05 to 0.11. With E = 1 and p = 1 the rounds are exact Lloyd
//! ([`kmeans`](super::kmeans)). The optional finisher adds rounds of exact Lloyd, in which every row counts.
//!
//! It fails where a site's groups stay below p: their rows are not represented (FKM with fewer than p rows at a site
//! contributes nothing).
//!
//! The coordinator sees for each cluster the rows and the sum of the groups that count, and the sum of squared distances. The
//! finisher right after aligned rounds tells the difference: what the groups below p hold. So p protects nobody.
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
use super::rounds::{Rounds, Weights};
use super::spec::{Beginning, Iteration};
use super::update::{Fit, Walls, check_rounds};
use crate::query::{LocalMeans, LocalSteps};
use crate::{Error, Query, refuse};

/// Aligned rounds, by `epsilon` and so many of them at most, then `finish` of exact Lloyd.
pub(super) fn begin(
    at: Beginning<'_>,
    (epsilon, max_rounds, finish): (f64, u32, u32),
    local_steps: u32,
    min_rows: u64,
) -> Result<Box<dyn Iteration>, Error> {
    let local = LocalSteps { most: local_steps, epsilon: 0.0 };
    local.check()?;
    refuse(min_rows == 0, || Error::parameter("a site's own min_rows must be at least 1"))?;
    check_rounds(epsilon, max_rounds.saturating_add(finish))?;
    let rounds = Rounds::new(at, Weights::Rows, epsilon, max_rounds)?;
    Ok(Box::new(Fkm { local, min_rows, finish, rounds, finishing: false }))
}

#[derive(Debug, Clone)]
struct Fkm {
    local: LocalSteps,
    min_rows: u64,
    finish: u32,
    rounds: Rounds,
    finishing: bool,
}

impl Fkm {
    /// Exact Lloyd would only repeat the last question where every row has counted at its nearest centre and none moved.
    fn at_rest(&self) -> bool {
        self.local.most == 1 && self.min_rows == 1 && self.rounds.trail.still
    }
}

impl Iteration for Fkm {
    fn ask(&self) -> Query {
        let centres = self.rounds.trail.fit.centres.clone();
        if self.finishing {
            return lloyd(centres);
        }
        LocalMeans { centres, local: self.local, min_rows: self.min_rows, nearest: true }.into()
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>, walls: &Walls) -> Result<bool, Error> {
        if !self.rounds.take(values, rows, walls)? {
            return Ok(false);
        }
        if self.finishing || self.finish == 0 || self.at_rest() {
            return Ok(true);
        }
        self.finishing = true;
        self.rounds.trail.go_on(self.finish);
        Ok(false)
    }

    fn fit(&self) -> Fit {
        self.rounds.trail.fit.clone()
    }
}
