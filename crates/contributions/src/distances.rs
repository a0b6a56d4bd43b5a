//! Distances to centres, memberships, and the nearest centre.

use crate::powers::{exp, ln};

/// A square below this counts as this: a row that lies on several centres belongs to them in equal parts.
const LEAST: f64 = 1e-290;
/// Weights below this are 0, and ratios of squares whose logarithm is below [`FAR`] are as that.
const NOTHING: f64 = 1.0 / (1u64 << 40) as f64;
const FAR: f64 = -30.0;

/// Squared distances of a row to every centre.
pub(crate) fn squares(row: &[f64], centres: &[f64], out: &mut [f64]) {
    for (out, centre) in out.iter_mut().zip(centres.chunks_exact(row.len())) {
        *out = square(row, centre);
    }
}

/// Several sums at once are what processors do well; their order is the same everywhere.
const LANES: usize = 4;

/// Squared distance of a row to a point.
pub(crate) fn square(row: &[f64], centre: &[f64]) -> f64 {
    let (rows, centres) = (row.chunks_exact(LANES), centre.chunks_exact(LANES));
    let rest: f64 = rows.remainder().iter().zip(centres.remainder()).map(|(x, c)| (x - c) * (x - c)).sum();
    let mut sums = [0.0; LANES];
    for (x, c) in rows.zip(centres) {
        for lane in 0..LANES {
            sums[lane] += (x[lane] - c[lane]) * (x[lane] - c[lane]);
        }
    }
    ((sums[0] + sums[1]) + (sums[2] + sums[3]) + rest).max(LEAST)
}

/// The place of the smallest square, the first among equals, and that square.
pub(crate) fn nearest(squares: &[f64]) -> (usize, f64) {
    squares.iter().enumerate().fold((0, f64::INFINITY), |(at, least), (i, square)| {
        let nearer = *square < least;
        (if nearer { i } else { at }, if nearer { *square } else { least })
    })
}

/// Memberships of a row, from its squared distances (Bezdek 1981): in proportion to the distance to the power of -2/(m-1).
pub(crate) fn memberships(squares: &[f64], m: f64, u: &mut [f64]) {
    let sum = parts(squares, m, u);
    u.iter_mut().for_each(|u| *u = floored(*u / sum));
}

/// Memberships to the power of m.
pub(crate) fn weights(squares: &[f64], m: f64, weights: &mut [f64]) {
    let sum = parts(squares, m, weights);
    let (_, least) = nearest(squares);
    let scale = match () {
        () if m == 2.0 => sum * sum,
        () if m == 1.5 => sum * libm::sqrt(sum),
        () => exp(m * ln(sum)),
    };
    // The power m - 1 of a part is the ratio that it was made of.
    weights.iter_mut().zip(squares).for_each(|(weight, square)| *weight = floored(*weight * (least / square) / scale));
}

/// What memberships are in proportion to, at most 1, and their sum.
fn parts(squares: &[f64], m: f64, parts: &mut [f64]) -> f64 {
    let (_, least) = nearest(squares);
    let mut sum = 0.0;
    for (part, square) in parts.iter_mut().zip(squares) {
        let ratio = least / square;
        *part = floored(match () {
            () if m == 2.0 => ratio,
            () if m == 1.5 => ratio * ratio,
            () => exp((ln(ratio.max(LEAST)) / (m - 1.0)).max(FAR)),
        });
        sum += *part;
    }
    sum
}

fn floored(weight: f64) -> f64 {
    if weight < NOTHING { 0.0 } else { weight }
}

/// `-u ln u`.
pub(crate) fn entropy(u: f64) -> f64 {
    -u * ln(u.max(LEAST))
}
