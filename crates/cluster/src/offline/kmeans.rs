//! Weighted k-means on few points: greedy k-means++ (Arthur & Vassilvitskii 2007, with the candidates of scikit-learn's
//! greedy variant) and Lloyd's iteration (Lloyd 1982).
//!
//! A weight that is negative or no number counts as 0: totals with noise can be such. Nothing here returns NaN.

use crate::random::Stream;
use crate::{Centres, distance};

/// Lloyd steps of one try of [`best_of`] at most.
const MOST: u32 = 300;

/// Sums and distances whose parts differ by no more than this are equal: rows often lie on a grid, where ties are common, and
/// what rounding makes of one must not tell two ways apart.
const ALIKE: f64 = 1e-9;

/// The nearest centre and its squared distance; among equals the lowest index.
fn nearest(point: &[f64], centres: &Centres) -> (usize, f64) {
    let squares: Vec<f64> = centres.rows().map(|centre| distance::squared(point, centre)).collect();
    let least = squares.iter().fold(f64::INFINITY, |a, b| a.min(*b));
    let at = squares.iter().position(|square| *square <= least * (1.0 + ALIKE)).unwrap_or(0);
    (at, least)
}

/// Where weighted Lloyd ended.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedFit {
    /// Centres, K x d.
    pub centres: Centres,
    /// The centre nearest to each point (n), among equals the lowest index.
    pub labels: Vec<usize>,
    /// `sum_j w_j min_k ||x_j - c_k||^2`.
    pub objective: f64,
    /// Steps made, the last one included, which may have changed nothing.
    pub iterations: u32,
}

/// First centres by weighted D^2 sampling: each next one is the best of 2 + floor(ln K) candidates, each drawn with
/// probability proportional to `w_j D_j^2`; among candidates the one that leaves the smallest sum counts, ties the earlier.
///
/// `points` is n x d, `weights` n. Where no mass is left (fewer distinct points than centres, all weights 0) points that
/// have not been taken yet follow in their order, those with weight first; after the last point they repeat.
pub fn greedy_plus_plus(points: &Centres, weights: &[f64], k: usize, stream: &mut Stream) -> Centres {
    let n = points.k();
    let weights = usable(weights, n);
    let candidates = 2 + (k.max(1) as f64).ln() as usize;
    let mut taken = vec![false; n];
    let mut values = Vec::with_capacity(k.max(1) * points.columns());
    // Before the first centre every point is as good as any other of its weight.
    let mut squares = vec![1.0; n];
    for round in 0..k.max(1) {
        let masses: Vec<f64> = squares.iter().zip(&weights).map(|(square, weight)| mass(*weight, *square, n)).collect();
        let total = masses.iter().sum::<f64>();
        let tries = if round == 0 { 1 } else { candidates };
        let mut best: Option<(f64, usize, Vec<f64>)> = None;
        if total > 0.0 {
            for _ in 0..tries {
                let at = drawn(&masses, stream.unit() * total);
                let to = |(point, square): (&[f64], &f64)| {
                    let new = distance::squared(point, points.row(at));
                    if round == 0 { new } else { new.min(*square) }
                };
                let left: Vec<f64> = points.rows().zip(&squares).map(to).collect();
                let potential = left.iter().zip(&weights).map(|(square, weight)| mass(*weight, *square, n)).sum();
                if best.as_ref().is_none_or(|(known, ..)| potential < *known * (1.0 - ALIKE)) {
                    best = Some((potential, at, left));
                }
            }
        }
        let (at, left) = match best {
            Some((_, at, left)) => (at, left),
            None => (spare(&taken, &weights, round), vec![0.0; n]),
        };
        taken[at] = true;
        squares = left;
        values.extend_from_slice(points.row(at));
    }
    Centres::finite(points.columns(), &values)
}

/// Lloyd's iteration from `start` (K x d) until nothing moves, at most `most` steps.
///
/// A centre without weight stays where it is; a point between two centres belongs to the one of lower index.
pub fn weighted_lloyd(points: &Centres, weights: &[f64], start: &Centres, most: u32) -> WeightedFit {
    let weights = usable(weights, points.k());
    let mut centres = start.clone();
    let mut iterations = 0;
    loop {
        let nearest: Vec<(usize, f64)> = points.rows().map(|point| nearest(point, &centres)).collect();
        if iterations < most {
            iterations += 1;
            let next = means(points, &weights, &nearest, &centres);
            if next != centres {
                centres = next;
                continue;
            }
        }
        let objective = nearest.iter().zip(&weights).map(|((_, square), weight)| mass(*weight, *square, points.k()));
        let objective = objective.sum();
        return WeightedFit { labels: nearest.iter().map(|(at, _)| *at).collect(), centres, objective, iterations };
    }
}

/// The fit of smallest objective out of `tries` (at least 1) greedy k-means++ starts, each followed by at most 300 Lloyd
/// steps; among equals the earlier.
pub fn best_of(points: &Centres, weights: &[f64], k: usize, tries: u32, stream: &mut Stream) -> WeightedFit {
    best_and_others(points, weights, k, tries, stream).0
}

/// The same, with the fits of the other tries.
pub(crate) fn best_and_others(
    points: &Centres,
    weights: &[f64],
    k: usize,
    tries: u32,
    stream: &mut Stream,
) -> (WeightedFit, Vec<WeightedFit>) {
    let mut one = || {
        let start = greedy_plus_plus(points, weights, k, stream);
        weighted_lloyd(points, weights, &start, MOST)
    };
    let mut fits: Vec<WeightedFit> = (0..tries.max(1)).map(|_| one()).collect();
    (fits.swap_remove(super::earliest_best(fits.iter().map(|fit| fit.objective))), fits)
}

/// One weight for each of n points, none negative.
pub(super) fn usable(weights: &[f64], n: usize) -> Vec<f64> {
    debug_assert_eq!(weights.len(), n);
    let clean = |weight: &f64| if weight.is_finite() { weight.max(0.0) } else { 0.0 };
    weights.iter().map(clean).chain(std::iter::repeat(0.0)).take(n).collect()
}

/// `w D^2`, cut so that n of them can be added up.
fn mass(weight: f64, square: f64, n: usize) -> f64 {
    if weight == 0.0 { 0.0 } else { (weight * square).min(f64::MAX / (2.0 * n as f64)) }
}

/// The place at which the running sum of `masses` first exceeds `threshold`; never one without mass.
pub(crate) fn drawn(masses: &[f64], threshold: f64) -> usize {
    let (mut sum, mut last) = (0.0, 0);
    for (at, mass) in masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
        sum += mass;
        last = at;
        if sum > threshold {
            break;
        }
    }
    last
}

/// The first point not yet taken, one with weight if there is any.
fn spare(taken: &[bool], weights: &[f64], round: usize) -> usize {
    let free = || (0..taken.len()).filter(|at| !taken[*at]);
    free().find(|at| weights[*at] > 0.0).or_else(|| free().next()).unwrap_or(round % taken.len())
}

/// Weighted means by label; a cluster without weight, or whose sum leaves `f64`, keeps its centre.
fn means(points: &Centres, weights: &[f64], nearest: &[(usize, f64)], centres: &Centres) -> Centres {
    let d = points.columns();
    let (mut sums, mut masses) = (vec![0.0; centres.k() * d], vec![0.0; centres.k()]);
    for ((point, weight), (label, _)) in points.rows().zip(weights).zip(nearest) {
        masses[*label] += weight;
        for (sum, x) in sums[label * d..(label + 1) * d].iter_mut().zip(point) {
            *sum += weight * x;
        }
    }
    for ((sum, mass), old) in sums.chunks_exact_mut(d).zip(&masses).zip(centres.rows()) {
        sum.iter_mut().for_each(|slot| *slot /= mass);
        if sum.iter().any(|value| !value.is_finite()) {
            sum.copy_from_slice(old);
        }
    }
    Centres::finite(d, &sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(seed: u64) -> Stream {
        Stream::new(seed, b"veilsum test stream     ")
    }

    fn points(rows: &[[f64; 2]]) -> Centres {
        Centres::known(rows.to_vec())
    }

    #[test]
    fn empty_clusters_stay_and_ties_go_to_the_lowest_index() {
        let fit =
            weighted_lloyd(&points(&[[0.0, 0.0], [2.0, 0.0]]), &[1.0, 1.0], &points(&[[1.0, 1.0], [1.0, -1.0]]), 9);
        assert_eq!((fit.labels, fit.centres.row(1)), (vec![0, 0], [1.0, -1.0].as_slice()));
        let none = weighted_lloyd(&points(&[[0.0, 0.0]]), &[0.0], &points(&[[1.0, 1.0]]), 9);
        assert_eq!((none.centres.row(0), none.objective), ([1.0, 1.0].as_slice(), 0.0));
        assert_eq!(weighted_lloyd(&points(&[[0.0, 0.0]]), &[1.0], &points(&[[1.0, 1.0]]), 0).objective, 2.0);
    }

    #[test]
    fn duplicates_zero_mass_and_odd_weights() {
        let same = points(&[[1.0, 2.0]; 4]);
        for weights in [[1.0; 4], [0.0; 4], [f64::NAN; 4], [-1.0, f64::INFINITY, 0.0, 1.0]] {
            let start = greedy_plus_plus(&same, &weights, 6, &mut stream(2));
            assert_eq!(start.k(), 6);
            assert!(start.rows().all(|row| row == [1.0, 2.0]));
        }
        // Weight decides before order where no mass is left; a point without weight is never drawn while there is.
        let start =
            greedy_plus_plus(&points(&[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), &[0.0, 0.0, 1.0], 2, &mut stream(3));
        assert_eq!(start.as_slice(), [2.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn sampling_follows_weight_times_squared_distance() {
        // With K = 1 candidates play no part: plain weighted draws.
        let three = points(&[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]);
        let mut draws = stream(4);
        let mut counts = [0; 3];
        for _ in 0..9000 {
            counts[greedy_plus_plus(&three, &[1.0, 3.0, 5.0], 1, &mut draws).row(0)[0] as usize] += 1;
        }
        for (count, expected) in counts.into_iter().zip([1000, 3000, 5000]) {
            assert!((i32::abs(count - expected)) < 200, "{counts:?}");
        }
    }

    proptest! {
        #[test]
        fn never_nan_and_never_worse(
            rows in prop::collection::vec(prop::array::uniform2(prop_oneof![-9.0f64..9.0, Just(1.0), Just(1e200), Just(-1e308)]), 1..20),
            weights in prop::collection::vec(prop_oneof![0.0f64..4.0, Just(-1.0), Just(0.0)], 20),
            k in 1usize..8,
            seed in any::<u64>(),
        ) {
            let all = points(&rows);
            let weights = &weights[..rows.len()];
            let start = greedy_plus_plus(&all, weights, k, &mut stream(seed));
            let before = weighted_lloyd(&all, weights, &start, 0);
            let after = weighted_lloyd(&all, weights, &start, 50);
            prop_assert!(!after.objective.is_nan());
            // Means are rounded, so a perfect start may lose a hair.
            let largest = rows.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
            prop_assert!(after.objective <= before.objective * (1.0 + 1e-12) + 1e-24 * largest * largest);
            prop_assert!(after.labels.iter().all(|label| *label < k));
        }
    }
}
