//! Weighted mean of local k-means centres by index (Kumar, Karthik & Nair 2020, as Garst & Reinders and Stallmann & Wilbik
//! describe it).
//!
//! In every round each site runs Lloyd's iteration from the global centres to rest, and centre k moves to
//! `c_k = sum_l n_k^(l) c_k^(l) / sum_l n_k^(l)` over the sites l. As the size of a local group times its mean is the sum of its
//! rows, that is `sum x / n` over the groups of index k: totals from the start.
//!
//! It fails where clusters are absent at sites: a local centre then moves to other rows, and the mean by index mixes what does
//! not belong together. On the grid of Garst & Reinders it stays at an adjusted Rand index of 0.69 to 0.71 where central k-means
//! reaches 0.84 (noise 1.3, strong skew), and on ten-class digits in shards at 0.37 against 0.67. It is here for comparison;
//! [`kmeans`](super::kmeans) costs the same and is exact. It may run in a cycle; then it ends unconverged.
//!
//! The coordinator sees the sizes of the summed groups, their sums, the sites behind each and the sum of squared distances.
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
//! let local = LocalSteps { most: 300, epsilon: 0.0 };
//! let kumar = Algorithm::Kumar { epsilon: 1e-6, max_rounds: 50, local };
//! let recipe = Recipe::plain(kumar, 4, Seeding::Uniform { seed: 5 });
//! let outcome = pooled::plain_federated(&mut recipe.run(&domain, 3)?, &sites)?;
//! assert_eq!(outcome.weights.iter().sum::<f64>(), 3120.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::rounds::{Rounds, Weights};
use super::{Fit, GroupThreshold, Iteration, Walls};
use crate::query::{LocalMeans, LocalSteps};
use crate::{Centres, MethodError, Query};

/// Weighted mean by index.
#[derive(Debug, Clone)]
pub struct Kumar {
    rounds: Rounds,
    local: LocalSteps,
}

impl Kumar {
    /// Its beginning, from first centres (K x d) until they move less than `epsilon`, at most `max_rounds` rounds, each with
    /// the sites' own iteration `local`.
    ///
    /// # Errors
    /// [`MethodError`] naming the parameter that is outside its domain.
    pub fn new(
        start: Centres,
        epsilon: f64,
        max_rounds: u32,
        local: LocalSteps,
        rule: GroupThreshold,
    ) -> Result<Self, MethodError> {
        local.check().map_err(|error| MethodError::parameter(error.to_string()))?;
        Ok(Self { rounds: Rounds::new(start, Weights::Rows, epsilon, max_rounds, rule)?, local })
    }
}

impl Iteration for Kumar {
    fn ask(&self) -> Query {
        Query::LocalMeans(LocalMeans {
            centres: self.rounds.fit.centres.clone(),
            local: self.local,
            min_rows: 1,
            nearest: false,
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
