//! Distances and memberships of single rows, safe over the whole range of `f64` (Bezdek 1981, the membership rule of fuzzy
//! c-means).
//!
//! The kernel comes here for the rare row whose squared distances leave the range in which it may divide by them.

use std::ops::RangeInclusive;

use crate::{Error, refuse};

/// Squared distances in this range can be inverted, added up and multiplied without leaving normal numbers.
pub const SAFE: RangeInclusive<f64> = 1e-290..=1e290;

/// Brings differences that overflow back into range; a power of two, so nothing else changes.
const SHRINK: f64 = 1.0 / (1u64 << 63) as f64;

/// Whether m is a finite number above 1.
pub(crate) fn check_fuzzifier(m: f64) -> Result<(), Error> {
    refuse(!(m.is_finite() && m > 1.0), || Error::Fuzzifier)
}

/// Squared Euclidean distance in the direct difference form (the form with a dot product cancels far from the origin).
pub fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// The centre nearest to `x` and its squared distance; among equals the lowest index.
pub fn nearest<'a>(x: &[f64], centres: impl Iterator<Item = &'a [f64]>) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (index, centre) in centres.enumerate() {
        let square = squared(x, centre);
        if square < best.1 {
            best = (index, square);
        }
    }
    best
}

/// Euclidean distance; `+inf` only if it really exceeds `f64`.
pub fn euclidean(a: &[f64], b: &[f64]) -> f64 {
    let square = squared(a, b);
    if SAFE.contains(&square) {
        return square.sqrt();
    }
    let length = scaled_length(a, b, 1.0);
    if length.is_finite() { length } else { scaled_length(a, b, SHRINK) / SHRINK }
}

/// The p-norm of the difference, p >= 1.
pub fn minkowski(a: &[f64], b: &[f64], p: f64) -> f64 {
    if p == 2.0 {
        return euclidean(a, b);
    }
    let difference = |(x, y): (&f64, &f64)| (x - y).abs();
    let largest = a.iter().zip(b).map(difference).fold(0.0, f64::max);
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    // No power overflows, and that of the largest is 1.
    let powers = a.iter().zip(b).map(|pair| (difference(pair) / largest).powf(p));
    largest * powers.sum::<f64>().powf(p.recip())
}

/// `factor * ||a - b||`, scaled by the largest difference so that no square under- or overflows.
fn scaled_length(a: &[f64], b: &[f64], factor: f64) -> f64 {
    let difference = |(x, y): (&f64, &f64)| (x * factor - y * factor).abs();
    let largest = a.iter().zip(b).map(difference).fold(0.0, f64::max);
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    let squares = a.iter().zip(b).map(|pair| {
        let ratio = difference(pair) / largest;
        ratio * ratio
    });
    largest * squares.sum::<f64>().sqrt()
}

/// Memberships of row `x` (d) in K clusters, written to `u` (K); returns the row's part of the objective,
/// `sum_k u_k^m ||x - c_k||^2`.
///
/// `u_k` is proportional to `||x - c_k||^(-2/(m-1))`, taken as the ratio to the nearest centre: raw powers leave the range
/// of `f64` for small m. A row that coincides with z >= 1 centres belongs to each of those by 1/z and to no other. Never
/// NaN, and the memberships add up to 1 (specification, QRY-5).
pub fn memberships<'a>(x: &[f64], centres: impl Iterator<Item = &'a [f64]> + Clone, m: f64, u: &mut [f64]) -> f64 {
    let mut measure = |factor: f64| {
        for (slot, centre) in u.iter_mut().zip(centres.clone()) {
            *slot = scaled_length(x, centre, factor);
        }
        u.iter().all(|length| length.is_finite())
    };
    let factor = if measure(1.0) { 1.0 } else { SHRINK };
    if factor != 1.0 {
        measure(factor);
    }
    let nearest = u.iter().copied().fold(f64::INFINITY, f64::min);
    if nearest == 0.0 {
        let ties = u.iter().filter(|length| **length == 0.0).count() as f64;
        u.iter_mut().for_each(|slot| *slot = if *slot == 0.0 { 1.0 / ties } else { 0.0 });
        return 0.0;
    }
    let mut sum = 0.0;
    for slot in u.iter_mut() {
        let ratio = nearest / *slot; // in [0, 1]
        *slot = if m == 2.0 { ratio * ratio } else { ratio.powf(2.0 / (m - 1.0)) };
        sum += *slot;
    }
    u.iter_mut().for_each(|slot| *slot /= sum);
    // sum_k u^m d^2 = nearest^2 * sum^(1-m); the root is taken first so that inf * 0 cannot arise.
    let root = (nearest / factor).min(f64::MAX) * sum.powf((1.0 - m) / 2.0);
    root * root
}

/// `u^m`.
pub fn power(u: f64, m: f64) -> f64 {
    if m == 2.0 { u * u } else { u.powf(m) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(x: &[f64], centres: &[&[f64]], m: f64) -> (Vec<f64>, f64) {
        let mut u = vec![f64::NAN; centres.len()];
        let objective = memberships(x, centres.iter().copied(), m, &mut u);
        (u, objective)
    }

    #[test]
    fn tiny_and_huge_distances_keep_their_ratio() {
        for scale in [5e-324, 1e-310, 1e-200, 1e-160, 1.0, 1e160, 1e300, 4e307] {
            let (u, _) = of(&[0.0, 0.0], &[&[scale, 0.0], &[0.0, -2.0 * scale]], 2.0);
            assert!((u[0] - 0.8).abs() < 1e-14 && (u[1] - 0.2).abs() < 1e-14, "{scale} {u:?}");
            assert!(
                (euclidean(&[2.0 * scale, 0.0], &[-scale, 4.0 * scale]) / scale - 5.0).abs() < 1e-14 || scale > 1e307
            );
        }
        let (u, j) = of(&[1.5e308, 1.5e308], &[&[-1.5e308, -1.5e308], &[-1.5e308, -1.5e308]], 2.0);
        assert_eq!((u, j), (vec![0.5, 0.5], f64::INFINITY));
        for m in [1.0 + f64::EPSILON, 1e6, 1e300, f64::MAX] {
            let (u, j) = of(&[1e308], &[&[-1e308], &[0.0]], m);
            assert!((u[0] + u[1] - 1.0).abs() < 1e-15 && !j.is_nan(), "{m} {u:?} {j}");
        }
    }
}
