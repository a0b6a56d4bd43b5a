//! Kumar, Karthik & Nair (2020) with a server that sees every local centre.

use super::ffcm::by_index;
use super::points;
use veilsum_cluster::offline::kmeans::weighted_lloyd;
use veilsum_cluster::{Centres, DataError, Rows};

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct KumarFit {
    /// Global centres, K x d.
    pub centres: Centres,
    /// Rounds made.
    pub rounds: u32,
    /// Whether the centres moved less than epsilon in the last one.
    pub converged: bool,
}

/// Rounds of local Lloyd to convergence (at most `local` steps) and the mean by index, weighted by local sizes, until the centres
/// move less than `epsilon` or not at all.
///
/// # Errors
/// [`DataError`] where shapes do not fit.
pub fn kumar(
    sites: &[Rows],
    start: &Centres,
    local: u32,
    epsilon: f64,
    max_rounds: u32,
) -> Result<KumarFit, DataError> {
    let mut fit = KumarFit { centres: start.clone(), rounds: 0, converged: false };
    while fit.rounds < max_rounds && !fit.converged {
        let (mut centres, mut sizes) = (Vec::new(), Vec::new());
        for rows in sites.iter().filter(|rows| !rows.is_empty()) {
            let points = points(rows)?;
            let ones = vec![1.0; points.k()];
            // The labels before the last step are those whose means it takes.
            let before = weighted_lloyd(&points, &ones, &fit.centres, local.saturating_sub(1));
            let own = weighted_lloyd(&points, &ones, &before.centres, 1);
            let mut size = vec![0.0; start.k()];
            before.labels.iter().for_each(|label| size[*label] += 1.0);
            centres.push(own.centres);
            sizes.push(size);
        }
        let next = by_index(&centres, &sizes, &fit.centres)?;
        let shift = next.frobenius_distance(&fit.centres)?;
        fit = KumarFit { converged: shift < epsilon || next == fit.centres, centres: next, rounds: fit.rounds + 1 };
    }
    Ok(fit)
}
