//! What indices of validity need of a row.

use crate::distances::{entropy, memberships, nearest, squares, weights};

/// Entries after the K-vectors.
pub(crate) const SCALARS: usize = 4;

pub(crate) fn distances(centres: &[f64], m: f64, row: &[f64], scratch: &mut [f64], out: &mut [f64]) {
    let k = centres.len() / row.len();
    let (square, u) = scratch.split_at_mut(k);
    let (u, weight) = u.split_at_mut(k);
    squares(row, centres, square);
    memberships(square, m, u);
    weights(square, m, weight);
    for (at, ((u, weight), square)) in u.iter().zip(weight).zip(&*square).enumerate() {
        out[at] += libm::sqrt(*square);
        out[k + at] += u;
        out[2 * k] += *weight * square;
    }
}

pub(crate) fn all((centres, m, vectors): (&[f64], f64, bool), row: &[f64], scratch: &mut [f64], out: &mut [f64]) {
    let d = row.len();
    let k = centres.len() / d;
    let (square, u) = scratch.split_at_mut(k);
    let (u, weight) = u.split_at_mut(k);
    squares(row, centres, square);
    memberships(square, m, u);
    weights(square, m, weight);
    let (own, least) = nearest(square);
    let scalars = 7 * k;
    for (at, ((u, weight), square)) in u.iter().zip(weight).zip(&*square).enumerate() {
        let (distance, weight) = (libm::sqrt(*square), *weight);
        let (mine, others) = (f64::from(u8::from(at == own)), f64::from(u8::from(at != own)));
        let of_each = [mine, mine * least, mine * distance, distance, *u, weight, weight * square];
        of_each.into_iter().enumerate().for_each(|(block, value)| out[block * k + at] += value);
        let of_all = [u * u, entropy(*u), others * distance, others * square];
        of_all.into_iter().enumerate().for_each(|(entry, value)| out[scalars + entry] += value);
    }
    if vectors {
        let first = scalars + SCALARS;
        for (column, (x, c)) in row.iter().zip(&centres[own * d..]).enumerate() {
            out[first + own * d + column] += x;
            out[first + k * d + column * k + own] += (x - c) * (x - c);
        }
    }
}
