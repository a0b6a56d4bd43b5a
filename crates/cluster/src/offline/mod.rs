//! What the coordinator computes off-line from totals: weighted k-means and weighted fuzzy c-means on few points; and what
//! a site computes of its own, the feature vectors of FFCF.

pub mod features;
pub mod kmeans;
pub mod wfcm;

/// The place of the smallest objective, and of the earliest among those that are equal to it but for rounding: tries that
/// find the same clusters in another order must not be told apart by the last bits of a total.
pub(crate) fn earliest_best(objectives: impl Iterator<Item = f64> + Clone) -> usize {
    let best = objectives.clone().fold(f64::INFINITY, f64::min);
    let enough = best + 1e-9 * best.abs();
    objectives.into_iter().position(|objective| objective <= enough).unwrap_or(0)
}
