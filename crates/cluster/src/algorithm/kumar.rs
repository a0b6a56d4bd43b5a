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
//! The coordinator sees the sizes of the summed groups, their sums and the sum of squared distances.
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
//! assert_eq!(outcome.clusters.sizes.iter().flatten().sum::<u64>(), 3120);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::rounds::{Averaging, Weights};
use super::spec::{Beginning, Iteration, Named, Options, Spec};
use crate::query::{LocalMeans, LocalSteps};
use crate::{Centres, MethodError, Query};

/// Weighted mean by index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KumarSpec {
    /// Stop when the centres move less (Frobenius norm); 0 stops only when nothing moves.
    pub epsilon: f64,
    /// Rounds at most.
    pub max_rounds: u32,
    /// A site's own iteration.
    pub local: LocalSteps,
}

impl Named for KumarSpec {
    const NAME: &'static str = "kumar";
    const HELP: &'static str = "Weighted mean of local k-means";

    fn usual(options: &Options) -> Self {
        Self { epsilon: options.epsilon.unwrap_or(0.0), max_rounds: options.max_rounds, local: options.local() }
    }

    fn forms() -> Vec<Self> {
        vec![Self { epsilon: 1e-6, max_rounds: 20, local: LocalSteps { most: 1000, epsilon: 1e-4 } }]
    }
}

impl Spec for KumarSpec {
    fn rounds(&self) -> u32 {
        self.max_rounds
    }

    fn asks(&self, centres: &Centres) -> Vec<Query> {
        vec![LocalMeans { centres: centres.clone(), local: self.local, min_rows: 1, nearest: false }.into()]
    }

    fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, MethodError> {
        self.local.check().map_err(|error| MethodError::parameter(error.to_string()))?;
        Averaging::begin(self, at, Weights::Rows, self.epsilon)
    }

    fn joins_by_index(&self) -> bool {
        true
    }

    fn comparisons(&self, all_k: f64) -> f64 {
        all_k * f64::from(self.local.most)
    }
}
