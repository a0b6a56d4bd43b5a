//! How far a row lies from the points of reference of its clusters.

use crate::distances::{nearest, square, squares, weights};

pub(crate) fn add(
    (centres, references): (&[f64], &[f64]),
    m: Option<f64>,
    clip: f64,
    row: &[f64],
    scratch: &mut [f64],
    out: &mut [f64],
) {
    let d = row.len();
    let k = centres.len() / d;
    let (near, weight) = scratch.split_at_mut(k);
    squares(row, centres, near);
    let clusters = match m {
        Some(m) => {
            weights(near, m, weight);
            0..k
        }
        None => {
            let (own, _) = nearest(near);
            weight[own] = 1.0;
            own..own + 1
        }
    };
    let (out_weights, rest) = out.split_at_mut(k);
    let (out_shifts, out_square) = rest.split_at_mut(k * d);
    for at in clusters {
        let places = at * d..(at + 1) * d;
        let (reference, weight) = (&references[places.clone()], weight[at]);
        let away = square(row, reference);
        let factor = weight * (clip / libm::sqrt(away)).min(1.0);
        out_weights[at] += weight;
        out_square[0] += weight * away.min(clip * clip);
        let shift = out_shifts[places].iter_mut().zip(row).zip(reference);
        shift.for_each(|((out, x), r)| *out += factor * (x - r));
    }
}
