//! Validity indices from totals (Stallmann & Wilbik 2022, Eqs. 7-9 and 15-17).

use crate::Centres;

/// Fuzzy Davies-Bouldin index with q = 1, from totals over all rows; smaller is better.
///
/// `distances` is `D_k = sum_j ||x_j - c_k||` (K; every row counts for every centre, distances are not squared),
/// `memberships` is `A_k = sum_j u_jk` (K; first power), `n` the number of rows. With `S_k = (A_k / n) (D_k / n)` the
/// index is the mean over i of `max_{j != i} (S_i + S_j) / ||c_i - c_j||`.
///
/// It is `+inf` where it is undefined or degenerate: K = 1, two centres that coincide, no rows. Such a result must not be
/// chosen.
pub fn fuzzy_davies_bouldin(centres: &Centres, distances: &[f64], memberships: &[f64], n: f64) -> f64 {
    let k = centres.k();
    if k < 2 || distances.len() != k || memberships.len() != k || n.is_nan() || n <= 0.0 {
        return f64::INFINITY;
    }
    let scatter: Vec<f64> = distances.iter().zip(memberships).map(|(d, a)| (a / n) * (d / n)).collect();
    let mut sum = 0.0;
    for i in 0..k {
        let mut worst = 0.0f64;
        for j in (0..k).filter(|j| *j != i) {
            let apart = crate::distance::euclidean(centres.row(i), centres.row(j));
            if apart == 0.0 {
                return f64::INFINITY;
            }
            worst = worst.max((scatter[i] + scatter[j]) / apart);
        }
        sum += worst;
    }
    sum / k as f64
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
