//! FFCM and FedFCM with a server that sees every local centre (Stallmann & Wilbik 2022).

use super::central::fuzzy_c_means;
use super::joined;
use veilsum_cluster::offline::kmeans::{best_of, weighted_lloyd};
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Error, Rows, distance};

/// Centres that are no farther than this from earlier ones, in any coordinate, have come back.
const BACK: f64 = 1e-7;

/// How the server averages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Average {
    /// avg1 with `sum_j u_jk` at the local centres (the authors' code).
    Memberships,
    /// avg1 with `sum_j u_jk^m` of the memberships that gave them (Eq. 7).
    Powers,
    /// avg2: k-means++ with ten starts in round 1, from then on Lloyd to convergence from the last global centres.
    Kmeans,
}

/// Parameters of [`ffcm`].
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// First centres, K x d.
    pub start: Centres,
    /// Fuzzifier, > 1.
    pub m: f64,
    /// A site's own iteration.
    pub local: LocalSteps,
    /// The server's average.
    pub average: Average,
    /// Stop when the distances that the centres move add up to no more, as the paper has it.
    pub epsilon: f64,
    /// Rounds at most.
    pub max_rounds: u32,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct FfcmFit {
    /// Global centres, K x d.
    pub centres: Centres,
    /// Rounds made.
    pub rounds: u32,
    /// Whether the centres moved by no more than epsilon in the last one.
    pub converged: bool,
    /// The local centres of the last round (K x d), site by site; sites without rows have none.
    pub local: Vec<Centres>,
}

/// Rounds until the centres rest, or come back to where they have been: the rest is a cycle.
///
/// # Errors
/// [`Error`] where shapes do not fit or no site has rows.
pub fn ffcm(sites: &[Rows], params: &Params, stream: &mut Stream) -> Result<FfcmFit, Error> {
    let Params { start, m, local, average, epsilon, max_rounds } = params;
    let mut fit = FfcmFit { centres: start.clone(), rounds: 0, converged: false, local: Vec::new() };
    let mut been: Vec<Centres> = Vec::new();
    while fit.rounds < *max_rounds && !fit.converged {
        let again =
            |known: &Centres| known.as_slice().iter().zip(fit.centres.as_slice()).all(|(a, b)| (a - b).abs() < BACK);
        if been.iter().any(again) {
            break;
        }
        been.push(fit.centres.clone());
        let (mut centres, mut weights) = (Vec::new(), Vec::new());
        for rows in sites.iter().filter(|rows| !rows.is_empty()) {
            let own = fuzzy_c_means(rows, &fit.centres, *m, local.epsilon, local.most)?;
            weights.push(match average {
                Average::Powers => own.weights,
                _ => own.memberships.sum_axis(ndarray::Axis(0)).to_vec(),
            });
            centres.push(own.centres);
        }
        let items = joined(&centres)?;
        let next = match average {
            Average::Kmeans if fit.rounds == 0 => best_of(&items, &vec![1.0; items.k()], start.k(), 10, stream).centres,
            Average::Kmeans => weighted_lloyd(&items, &vec![1.0; items.k()], &fit.centres, 500).centres,
            _ => by_index(&centres, &weights, &fit.centres)?,
        };
        let shift: f64 = next.rows().zip(fit.centres.rows()).map(|(new, old)| distance::euclidean(new, old)).sum();
        fit = FfcmFit { centres: next, rounds: fit.rounds + 1, converged: shift <= *epsilon, local: centres };
    }
    Ok(fit)
}

/// `C_k = sum_l W_k^(l) c_k^(l) / sum_l W_k^(l)`; a centre without weight stays.
pub(super) fn by_index(all: &[Centres], weights: &[Vec<f64>], old: &Centres) -> Result<Centres, Error> {
    let (k, d) = (old.k(), old.columns());
    let mut values = old.as_slice().to_vec();
    for (c, centre) in values.chunks_exact_mut(d).enumerate() {
        let total = weights.iter().map(|own| own[c]).sum::<f64>();
        if total > 0.0 {
            for (j, slot) in centre.iter_mut().enumerate() {
                *slot = all.iter().zip(weights).map(|(own, weight)| weight[c] * own.row(c)[j]).sum::<f64>() / total;
            }
        }
    }
    Centres::new(k, d, values)
}
