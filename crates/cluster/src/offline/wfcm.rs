//! Weighted fuzzy c-means on few points: minimises `J = sum_j w_j sum_k u_jk^m ||x_j - v_k||^2` (Bezdek 1981, with weights;
//! the server's part of FFCF, Urio-Larrea).
//!
//! `v_k = sum_j w_j u_jk^m x_j / sum_j w_j u_jk^m`, and memberships as in plain fuzzy c-means: weights do not enter them.

use super::earliest_best;
use super::kmeans::{greedy_plus_plus, usable};
use crate::random::Stream;
use crate::{Centres, distance};

/// Starts of [`best_of`]: a single one falls into a bad minimum in 1 or 2 of 15 draws of the FFCF experiments.
pub const RESTARTS: u32 = 10;
/// Stop of [`best_of`]: Frobenius norm of the centres' shift.
pub const EPSILON: f64 = 1e-6;
/// Where only rounding moves the centres.
const SETTLED: f64 = 1e-13;
/// Steps of one start of [`best_of`] at most.
pub const MOST: u32 = 1000;

/// Where weighted fuzzy c-means ended.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedFuzzyFit {
    /// Centres, K x d.
    pub centres: Centres,
    /// `sum_j w_j u_jk^m` of the last step (K): with respect to the centres before it.
    pub weights: Vec<f64>,
    /// J at the centres.
    pub objective: f64,
    /// Steps made.
    pub iterations: u32,
    /// Frobenius norm of the centres' move in the last step.
    pub shift: f64,
    /// Whether the centres moved less than epsilon in the last step.
    pub converged: bool,
}

/// Weighted fuzzy c-means from `start` (K x d) until the Frobenius norm of the shift is below `epsilon`, at most `most`
/// steps. `points` is n x d, `weights` n (one that is negative or no number counts as 0), m > 1.
///
/// A centre without weight stays; a point that coincides with z centres belongs to each by 1/z. Never NaN.
pub fn wfcm(points: &Centres, weights: &[f64], start: &Centres, m: f64, epsilon: f64, most: u32) -> WeightedFuzzyFit {
    let weights = usable(weights, points.k());
    let mut fit = WeightedFuzzyFit {
        centres: start.clone(),
        weights: vec![0.0; start.k()],
        objective: 0.0,
        iterations: 0,
        shift: 0.0,
        converged: false,
    };
    while fit.iterations < most && !fit.converged {
        let (next, masses) = step(points, &weights, &fit.centres, m);
        fit.shift = distance::euclidean(next.as_slice(), fit.centres.as_slice());
        fit.converged = fit.shift < epsilon;
        let still = next == fit.centres;
        (fit.centres, fit.weights) = (next, masses);
        fit.iterations += 1;
        if still {
            // The next step would be the same; with epsilon = 0 this is the only way to end early.
            break;
        }
    }
    fit.objective = objective(points, &weights, &fit.centres, m);
    fit
}

/// The fit of smallest J out of [`RESTARTS`] weighted greedy k-means++ starts, each run until the centres move less than
/// [`EPSILON`], at most [`MOST`] steps; among equals (but for rounding) the earlier. It is then run on until nothing moves but
/// rounding, so that equal totals up to rounding give equal centres up to rounding. K is cut to the number of points.
pub fn best_of(points: &Centres, weights: &[f64], k: usize, m: f64, stream: &mut Stream) -> WeightedFuzzyFit {
    let mut one = || {
        let start = greedy_plus_plus(points, weights, k.min(points.k()), stream);
        wfcm(points, weights, &start, m, EPSILON, MOST)
    };
    let mut fits: Vec<WeightedFuzzyFit> = (0..RESTARTS).map(|_| one()).collect();
    let best = fits.swap_remove(earliest_best(fits.iter().map(|fit| fit.objective)));
    let settled = wfcm(points, weights, &best.centres, m, SETTLED, MOST);
    WeightedFuzzyFit { iterations: best.iterations + settled.iterations, converged: best.converged, ..settled }
}

/// New centres, and the mass of each with respect to the old ones.
fn step(points: &Centres, weights: &[f64], centres: &Centres, m: f64) -> (Centres, Vec<f64>) {
    let (k, d) = (centres.k(), centres.columns());
    let (mut sums, mut masses, mut u) = (vec![0.0; k * d], vec![0.0; k], vec![0.0; k]);
    for (point, weight) in points.rows().zip(weights).filter(|(_, weight)| **weight > 0.0) {
        distance::memberships(point, centres.rows(), m, &mut u);
        for ((u, mass), sum) in u.iter().zip(&mut masses).zip(sums.chunks_exact_mut(d)) {
            let share = weight * distance::power(*u, m);
            *mass += share;
            sum.iter_mut().zip(point).for_each(|(slot, x)| *slot += share * x);
        }
    }
    for ((sum, mass), old) in sums.chunks_exact_mut(d).zip(&masses).zip(centres.rows()) {
        sum.iter_mut().for_each(|slot| *slot /= mass);
        if !mass.is_normal() || sum.iter().any(|value| !value.is_finite()) {
            sum.copy_from_slice(old);
        }
    }
    (Centres::finite(d, &sums), masses)
}

fn objective(points: &Centres, weights: &[f64], centres: &Centres, m: f64) -> f64 {
    let mut u = vec![0.0; centres.k()];
    let mut part = |(point, weight): (&[f64], &f64)| {
        let own = distance::memberships(point, centres.rows(), m, &mut u);
        if *weight > 0.0 { weight * own } else { 0.0 }
    };
    points.rows().zip(weights).map(&mut part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packed, Rows, kernel};

    fn points(rows: &[[f64; 2]]) -> Centres {
        Centres::known(rows.to_vec())
    }

    #[test]
    fn weight_one_is_plain_fuzzy_c_means() {
        let all = points(&[[0.0, 0.1], [0.3, 0.0], [1.0, 1.2], [0.9, 1.0], [0.5, 0.4]]);
        let start = points(&[[0.0, 0.0], [1.0, 1.0]]);
        let rows = Packed::new(&Rows::new(all.as_slice().to_vec(), 2).unwrap());
        for m in [2.0, 1.3] {
            let fit = wfcm(&all, &[1.0; 5], &start, m, 1e-12, 1000);
            assert!(fit.converged);
            let sums = kernel::fuzzy_sums(&rows, &fit.centres, m).unwrap();
            for (k, centre) in fit.centres.rows().enumerate() {
                assert!((sums.weighted_sums[2 * k] / sums.weights[k] - centre[0]).abs() < 1e-11);
            }
            assert!((fit.objective - sums.objective).abs() < 1e-12);
        }
    }

    #[test]
    fn odd_input_gives_no_nan() {
        let same = points(&[[1.0, 2.0]; 3]);
        let mut stream = Stream::new(1, b"veilsum test stream     ");
        for weights in [[1.0; 3], [0.0; 3], [-1.0, f64::NAN, 1.0]] {
            let fit = best_of(&same, &weights, 5, 2.0, &mut stream);
            assert_eq!((fit.centres.k(), fit.objective), (3, 0.0));
        }
        let far = points(&[[1e308, 1e308], [-1e308, -1e308], [0.0, 0.0]]);
        assert!(!best_of(&far, &[1.0; 3], 2, 1.1, &mut stream).objective.is_nan());
    }
}
