//! Central fuzzy c-means and k-means on pooled rows, as the papers compare with.

use ndarray::Array2;

use super::points;
use veilsum_cluster::offline::kmeans::{WeightedFit, best_of};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Error, Rows, assign, distance};

/// Where fuzzy c-means ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FuzzyFit {
    /// Centres, K x d.
    pub centres: Centres,
    /// Memberships in them, n x K.
    pub memberships: Array2<f64>,
    /// `sum_j u_jk^m` of the memberships that gave the centres, K.
    pub weights: Vec<f64>,
    /// Steps made.
    pub iterations: u32,
    /// Whether the memberships came to rest.
    pub converged: bool,
}

/// Fuzzy c-means (Bezdek 1981) on one set of rows from first centres (K x d): memberships, then again and again centres from
/// memberships and memberships from centres, until `||U' - U||_F < epsilon`, at most `most` steps.
///
/// A centre without weight stays. Memberships are stored.
///
/// # Errors
/// [`Error::ColumnMismatch`], [`Error::Fuzzifier`].
pub fn fuzzy_c_means(rows: &Rows, start: &Centres, m: f64, epsilon: f64, most: u32) -> Result<FuzzyFit, Error> {
    let memberships = assign::memberships(rows, start, m)?;
    let weights = vec![0.0; start.k()];
    let mut fit = FuzzyFit { centres: start.clone(), memberships, weights, iterations: 0, converged: false };
    while fit.iterations < most && !fit.converged {
        let (centres, weights) = means(rows, &fit.memberships, m, &fit.centres)?;
        let memberships = assign::memberships(rows, &centres, m)?;
        let change = (&memberships - &fit.memberships).iter().map(|x| x * x).sum::<f64>().sqrt();
        let iterations = fit.iterations + 1;
        fit = FuzzyFit { centres, memberships, weights, iterations, converged: change < epsilon };
    }
    Ok(fit)
}

/// First centres (K x d) as the authors' central runs have them: of memberships (n x K) drawn uniformly, each row scaled to add up to 1.
///
/// # Errors
/// [`Error::NoRows`].
pub fn from_memberships(rows: &Rows, k: usize, m: f64, seed: u64) -> Result<Centres, Error> {
    if rows.is_empty() {
        return Err(Error::NoRows);
    }
    let mut stream = Stream::new(seed, b"veilsum memberships   v1");
    let mut memberships = Array2::from_shape_simple_fn((rows.len(), k), || stream.unit());
    for mut drawn in memberships.outer_iter_mut() {
        let whole = drawn.sum().max(f64::MIN_POSITIVE);
        drawn.mapv_inplace(|u| u / whole);
    }
    Ok(means(rows, &memberships, m, &Centres::new(k, rows.columns(), vec![0.0; k * rows.columns()])?)?.0)
}

/// Centres from memberships (n x K), and their weights; a centre without weight stays.
fn means(rows: &Rows, memberships: &Array2<f64>, m: f64, old: &Centres) -> Result<(Centres, Vec<f64>), Error> {
    let (k, d) = (old.k(), old.columns());
    let (mut sums, mut weights) = (vec![0.0; k * d], vec![0.0; k]);
    for (row, u) in rows.iter().zip(memberships.outer_iter()) {
        for (c, u) in u.iter().enumerate() {
            let weight = distance::power(*u, m);
            weights[c] += weight;
            sums[c * d..(c + 1) * d].iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
        }
    }
    for ((sum, weight), old) in sums.chunks_exact_mut(d).zip(&weights).zip(old.rows()) {
        if *weight > 0.0 {
            sum.iter_mut().for_each(|slot| *slot /= weight);
        } else {
            sum.copy_from_slice(old);
        }
    }
    Ok((Centres::new(k, d, sums)?, weights))
}

/// k-means on one set of rows: the smallest inertia of `starts` greedy k-means++ starts.
///
/// # Errors
/// [`Error::NoRows`].
pub fn kmeans(rows: &Rows, k: usize, starts: u32, stream: &mut Stream) -> Result<WeightedFit, Error> {
    let points = points(rows)?;
    Ok(best_of(&points, &vec![1.0; points.k()], k, starts, stream))
}
