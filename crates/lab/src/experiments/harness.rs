//! What the experiments share: runs over plain and masked sums, draws side by side, starts.

use rayon::prelude::*;
use veilsum_cluster::method::{Candidates, Clusters, Seeding, Stop};
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::random::Stream;
use veilsum_cluster::sampling::Sampling;
use veilsum_cluster::{Algorithm, Centres, Domain, OutOfBox, Outcome, Prepared, Recipe, Rows, assign, pooled};

use super::ExperimentError;

/// Masking hides nothing between fewer sites.
pub(super) const FEWEST_SITES: usize = 3;

/// What is said wherever sites answer without a policy.
pub(super) const NO_RULE: &str =
    "no site has a policy or a release rule: the papers' few sites, few rows and many runs would not pass a strict one";

/// A run over plainly added sums.
pub(super) fn plain(recipe: &Recipe, domain: &Domain, sites: &[Prepared]) -> Result<Outcome, ExperimentError> {
    Ok(pooled::plain_federated(&mut recipe.run(domain, sites.len() as u32)?, sites)?)
}

/// A run through the whole masked protocol, in virtual time.
pub(super) fn masked(
    recipe: &Recipe,
    domain: &Domain,
    sites: &[Prepared],
    sampling: Option<Sampling>,
) -> Result<Outcome, ExperimentError> {
    veilsum_testkit::in_process::masked(recipe, domain, sites, sampling)
        .map_err(|failure| ExperimentError::Masked(failure.to_string()))
}

/// A run through the masked protocol, or over plainly added sums where masking would hide nothing.
pub(super) fn masked_if_enough(
    recipe: &Recipe,
    domain: &Domain,
    sites: &[Prepared],
) -> Result<Outcome, ExperimentError> {
    if sites.len() < FEWEST_SITES { plain(recipe, domain, sites) } else { masked(recipe, domain, sites, None) }
}

/// Rows in the units of `domain`, packed.
pub(super) fn prepared<'a>(
    sites: impl IntoIterator<Item = &'a Rows>,
    domain: &Domain,
) -> Result<Vec<Prepared>, ExperimentError> {
    sites.into_iter().map(|rows| Ok(Prepared::new(rows, domain, OutOfBox::Refuse)?)).collect()
}

/// First centres from totals, as the reproductions use them.
pub(super) fn from_totals(seed: u64) -> Seeding {
    Seeding::Candidates(Candidates::usual(seed))
}

/// Fuzzy c-means and both averages, of at most so many rounds each.
pub(super) fn methods(m: f64, epsilon: f64, max_rounds: u32) -> [Algorithm; 3] {
    let local = LocalSteps { most: 1000, epsilon };
    [
        Algorithm::Fcm { m, epsilon, max_rounds: 1000 },
        Algorithm::FfcmAvg1 { m, epsilon, max_rounds, local, powers: false },
        Algorithm::FfcmAvg2 { m, epsilon, max_rounds, local },
    ]
}

/// The framework paper's choice of K, by the smallest fuzzy Davies-Bouldin index.
pub(super) fn sweep(algorithm: &Algorithm, clusters: Clusters, seeding: Seeding) -> Recipe {
    Recipe { clusters, stop: Stop::Sum, ..Recipe::plain(algorithm.clone(), clusters.min, seeding) }
}

/// That index at a place of the curve.
pub(super) fn index(outcome: &Outcome, at: usize) -> f64 {
    outcome.curve.get(at).and_then(|point| point.indices.fuzzy_davies_bouldin).unwrap_or(f64::INFINITY)
}

/// Uniform centres in [0, 1)^d, the authors' start.
pub(super) fn unit_start(k: usize, columns: usize, seed: u64) -> Result<Centres, ExperimentError> {
    let mut stream = Stream::new(seed, b"veilsum experiment start");
    Ok(Centres::new(k, columns, (0..k * columns).map(|_| stream.unit()).collect())?)
}

/// The nearest centre of every row.
pub(super) fn labels(rows: &Rows, centres: &Centres) -> Result<Vec<usize>, ExperimentError> {
    Ok(assign::hard_labels(&assign::memberships(rows, centres, 2.0)?))
}

/// Largest absolute difference of coordinates.
pub(super) fn difference(a: &Centres, b: &Centres) -> f64 {
    if a.shape() != b.shape() {
        return f64::INFINITY;
    }
    a.as_slice().iter().zip(b.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// `work` on every item, on all processors; results in the order of the items. The first error counts.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, ExperimentError> + Sync,
) -> Result<Vec<R>, ExperimentError> {
    items.par_iter().map(&work).collect::<Vec<_>>().into_iter().collect()
}
