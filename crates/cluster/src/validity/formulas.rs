//! The formulas of the indices. No formula returns NaN: an undefined index is `None`, or `+inf` for fuzzy
//! Davies-Bouldin.

use crate::{Centres, distance};

/// Fuzzy Davies-Bouldin index with q = 1, from totals over all rows; smaller is better.
///
/// `distances` is `D_k = sum_j ||x_j - c_k||` (K; every row counts for every centre, distances are not squared),
/// `memberships` is `A_k = sum_j u_jk` (K; first power), `n` the number of rows. With `S_k = (A_k / n) (D_k / n)` the
/// index is the mean over i of `max_{j != i} (S_i + S_j) / ||c_i - c_j||`.
///
/// It is `+inf` where it is undefined or degenerate: K = 1, two centres that coincide, no rows. Such a result must not be
/// chosen.
pub fn fuzzy_davies_bouldin(centres: &Centres, distances: &[f64], memberships: &[f64], n: f64) -> f64 {
    fuzzy_davies_bouldin_apart(&apart(centres, 2.0), distances, memberships, n, 1.0)
}

/// Distances between centres by the p-norm, K x K row-major.
pub(super) fn apart(centres: &Centres, p: f64) -> Vec<f64> {
    centres.rows().flat_map(|a| centres.rows().map(move |b| distance::minkowski(a, b, p))).collect()
}

/// [`fuzzy_davies_bouldin`] from the distances between the centres (K x K) and `sum_j ||x_j - c_k||^q`.
pub(super) fn fuzzy_davies_bouldin_apart(apart: &[f64], distances: &[f64], memberships: &[f64], n: f64, q: f64) -> f64 {
    let k = distances.len();
    if k < 2 || apart.len() != k * k || memberships.len() != k || n.is_nan() || n <= 0.0 {
        return f64::INFINITY;
    }
    let scatter: Vec<f64> = distances.iter().zip(memberships).map(|(d, a)| (a / n) * root(d / n, q)).collect();
    davies_bouldin(apart, &scatter, &vec![true; k]).unwrap_or(f64::INFINITY)
}

/// The q-th root, q 1 or 2.
pub(super) fn root(mean: f64, q: f64) -> f64 {
    if q == 2.0 { mean.sqrt() } else { mean }
}

/// Mean over i of `max_{j != i} (S_i + S_j) / ||c_i - c_j||` (Davies & Bouldin 1979) over the clusters that count; `None`
/// where fewer than two do or two of them coincide.
pub(super) fn davies_bouldin(apart: &[f64], scatter: &[f64], counts: &[bool]) -> Option<f64> {
    let k = scatter.len();
    let clusters: Vec<usize> = (0..k).filter(|i| counts[*i]).collect();
    if clusters.len() < 2 {
        return None;
    }
    let mut sum = 0.0;
    for i in &clusters {
        let mut worst = 0.0f64;
        for j in clusters.iter().filter(|j| *j != i) {
            let apart = apart[i * k + j];
            if apart == 0.0 {
                return None;
            }
            worst = worst.max((scatter[*i] + scatter[*j]) / apart);
        }
        sum += worst;
    }
    finite(sum / clusters.len() as f64)
}

/// The smallest distance between two centres; `None` for K = 1.
pub(super) fn closest(apart: &[f64], k: usize) -> Option<f64> {
    let pairs = (0..k).flat_map(|i| (i + 1..k).map(move |j| apart[i * k + j]));
    pairs.min_by(f64::total_cmp)
}

/// `J / (N min ||c_i - c_j||^2)` (Xie & Beni 1991).
pub(super) fn xie_beni(objective: f64, n: f64, closest: Option<f64>) -> Option<f64> {
    finite(objective / (n * closest? * closest?))
}

/// `1 - K / (K - 1) (1 - PC)` (Dave 1996); `None` for K = 1.
pub(super) fn modified_partition_coefficient(coefficient: f64, k: usize) -> Option<f64> {
    (k > 1).then(|| 1.0 - k as f64 / (k as f64 - 1.0) * (1.0 - coefficient))
}

/// `J - sum_k (sum_j u_jk^m) ||c_k - mean||^2` (Fukuyama & Sugeno 1989).
pub(super) fn fukuyama_sugeno(objective: f64, powers: &[f64], centres: &Centres, mean: &[f64]) -> Option<f64> {
    let between = centres.rows().zip(powers).map(|(centre, power)| power * distance::squared(centre, mean));
    finite(objective - between.sum::<f64>())
}

/// `(B / (K - 1)) / (W / (N - K))` over the clusters that hold rows (Calinski & Harabasz 1974); `None` where one cluster
/// holds all rows, every row is a cluster, or no cluster has any scatter.
pub(super) fn calinski_harabasz(rows: &[f64], means: &Centres, scatter: &[f64], mean: &[f64]) -> Option<f64> {
    let n = rows.iter().sum::<f64>();
    let k = rows.iter().filter(|rows| **rows > 0.5).count() as f64;
    let within = scatter.iter().sum::<f64>();
    if k < 1.5 || n < k + 0.5 || within <= 0.0 {
        return None;
    }
    let between = means.rows().zip(rows).map(|(own, rows)| rows * distance::squared(own, mean)).sum::<f64>();
    finite((between / (k - 1.0)) / (within / (n - k)))
}

/// The value if it is a number.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_centres_by_hand() {
        let centres = Centres::from_rows(&[vec![0.0], vec![2.0]]).unwrap();
        // S = (3/4 * 4/4, 1/4 * 8/4) = (.75, .5); both maxima are 1.25 / 2.
        assert_eq!(fuzzy_davies_bouldin(&centres, &[4.0, 8.0], &[3.0, 1.0], 4.0), 0.625);
    }

    #[test]
    fn degenerate_results_are_infinite() {
        let same = Centres::from_rows(&[vec![1.0], vec![1.0]]).unwrap();
        assert_eq!(fuzzy_davies_bouldin(&same, &[1.0, 1.0], &[1.0, 1.0], 2.0), f64::INFINITY);
        assert_eq!(fuzzy_davies_bouldin(&same, &[0.0, 0.0], &[1.0, 1.0], 2.0), f64::INFINITY);
        let one = Centres::from_rows(&[vec![1.0]]).unwrap();
        assert_eq!(fuzzy_davies_bouldin(&one, &[1.0], &[1.0], 2.0), f64::INFINITY);
        assert_eq!(fuzzy_davies_bouldin(&same, &[1.0], &[1.0, 1.0], 2.0), f64::INFINITY);
    }
}
