//! FFCM (Stallmann & Wilbik 2022, arXiv 2201.07316; FedFCM in Appl. Sci. 12, 10455, is the same method): local fuzzy c-means
//! from the global centres, then an average of the local centres, from totals.
//!
//! Every site l iterates fuzzy c-means on its own rows from the global centres C until its memberships rest
//! (`||U' - U||_F < epsilon`), with the standard exponent (Bezdek 1981; Eq. 5 as printed squares the distances twice).
//!
//! * [`FfcmAvg1`](super::Algorithm::FfcmAvg1) (avg1, Eq. 8): `C_k = sum_l W_k^(l) c_k^(l) / sum_l W_k^(l)`, by index. The weights are `sum_j u_jk^m` of the memberships
//!   that gave the local centres (Eq. 7), or `sum_j u_jk` at these, as in the authors' code.
//! * [`FfcmAvg2`](super::Algorithm::FfcmAvg2) (avg2, Eq. 9; Eq. 14 of the framework paper): k-means over all local centres, which count 1 each. The authors' server runs k-means++ in round 1 and
//!   Lloyd from the last global centres afterwards. Here every round is ONE Lloyd step: each site counts its local centres at
//!   the global ones nearest to them, and `C_k = s_k / n_k`. It has the same fixed points, and from seeds of totals it gave the
//!   same results in 6 of the 7 published cases (case 2: gap 0.93 instead of 1.13). A centre
//!   nobody is nearest to stays.
//!
//! Both end when the centres move less than epsilon, or not at all. The paper adds up the distances that they move
//! ([`Stop::Sum`](super::Stop)).
//!
//! With one local step and powers avg1 IS central fuzzy c-means ([`fcm`](super::fcm)): the printed Eqs. 5 to 8 but for the squares of Eq. 5, differing by
//! 1.6e-14 after 30 rounds. With local convergence avg1 fails where sites hold different clusters, because centres of one index
//! have moved to different places: in case 3 its gap is 3.65 where avg2 has 0.04, and up to 55 % of the runs end in a cycle
//! (unconverged). avg2 with ONE local step never settles (300 rounds, gap 3.8). Random first centres fail avg2 in 5 to 95 % of the
//! draws of the published cases; seeding from totals in none of those, and in one of twenty of the motivational example. And both
//! inherit the collapse of fuzzy c-means with m = 2 in many columns.
//!
//! The coordinator sees weights and weighted sums; under avg2 local centres counted at each cluster, their sum and the sum of
//! squared distances, never a local centre of its own. But a cluster to which one site contributes IS that site's centre: 33 to
//! 49 % of the clusters in cases 2 and 3.
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
//! assert!(outcome.converged && (outcome.indices.fuzzy_davies_bouldin.unwrap() - 0.43).abs() < 0.02);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::rounds::{Averaging, Weights};
use super::spec::{Beginning, Iteration};
use crate::Error;
use crate::query::{LocalFuzzy, LocalSteps, Pull};

/// Rounds over local centres that are weighted as `pull` says.
pub(super) fn begin(
    at: Beginning<'_>,
    weights: Weights,
    rest: (f64, u32),
    (m, local, pull): (f64, LocalSteps, Pull),
) -> Result<Box<dyn Iteration>, Error> {
    local.check()?;
    Averaging::begin(at, weights, rest, move |centres| LocalFuzzy { centres, m, local, pull }.into())
}
