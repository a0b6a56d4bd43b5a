//! The sums behind the validity indices, and sums over single rows for questions that are asked a few times in a run.

use rayon::prelude::*;
use veilsum_contributions::Question;

use super::plan::{CHUNK_ROWS, WAVE, fits};
use super::sums::{Form, Sums};
use crate::distance::{self, SAFE};
use crate::packed::read;
use crate::{Centres, Error, Packed};

/// Entries of partial sums that are held at once, beside those of one chunk: 32 MiB.
const HELD: usize = 1 << 22;

/// The sum of what every row says to a question: in parallel, but in a fixed order.
pub(crate) fn contributions<'f>(rows: &Packed, form: &'f Form, question: &Question<'_>) -> Sums<'f> {
    over_parts(rows, form, question.width(), |first, last, sums| {
        let (mut own, mut scratch) = (vec![0.0; question.width()], vec![0.0; question.scratch()]);
        each_of(rows, first..last, |x| {
            own.fill(0.0);
            veilsum_contributions::add(question, x, &mut scratch, &mut own);
            sums.add_all(0, own.iter().copied());
        });
    })
}

/// Gives the coordinates of each of these rows to `take`.
fn each_of(rows: &Packed, which: std::ops::Range<usize>, mut take: impl FnMut(&[f64])) {
    let mut x = vec![0.0; rows.columns()];
    for row in which {
        read(rows.lanes(), row, &mut x);
        take(&x);
    }
}

fn over_parts<'f>(
    rows: &Packed,
    form: &'f Form,
    width: usize,
    add: impl Fn(usize, usize, &mut Sums<'f>) + Sync,
) -> Sums<'f> {
    let part = |first: usize| {
        let mut sums = form.nothing(width);
        add(first, (first + CHUNK_ROWS).min(rows.len()), &mut sums);
        sums
    };
    if rows.len() <= CHUNK_ROWS {
        return part(0);
    }
    let firsts: Vec<usize> = (0..rows.len()).step_by(CHUNK_ROWS).collect();
    let mut sums = form.nothing(width);
    for wave in firsts.chunks((HELD / width.max(1)).clamp(1, WAVE)) {
        let parts: Vec<Sums<'f>> = wave.par_iter().map(|first| part(*first)).collect();
        parts.into_iter().for_each(|part| sums.merge(part));
    }
    sums
}

/// The blocks of a validation round, one after the other: rows, own squared distances, own distances, all distances,
/// `u`, `u^m`, `u^m d^2` (K each); `u^2`, `-u ln u`, other distances, other squared distances (1 each); with vectors the coordinates of own rows (K x d) and their squared deviations from the centre (d x K). Every row
/// belongs to its nearest centre, the first among equals. Ungrouped: all distances, `u` (K each); `u^m d^2`, own squared
/// distances, own distances, and the same four (1 each).
///
/// # Errors
/// [`Error::ColumnMismatch`], [`Error::Fuzzifier`].
pub(crate) fn validity_sums<'f>(
    rows: &Packed,
    centres: &Centres,
    m: f64,
    vectors: bool,
    form: &'f Form,
) -> Result<Sums<'f>, Error> {
    fits(rows, centres, m)?;
    let (k, d) = (centres.k(), centres.columns());
    let width = 7 * k + SCALARS + if vectors { 2 * k * d } else { 0 };
    Ok(over_parts(rows, form, width, |first, last, sums| {
        let mut scratch = [vec![0.0; k], vec![0.0; k], vec![0.0; k]];
        each_of(rows, first..last, |x| add_validity(x, (centres, m, vectors), &mut scratch, sums));
    }))
}

/// Entries after the K-vectors.
const SCALARS: usize = 4;

/// `D` (K), `A` (K) and `J_m` (1) of the validation round (Stallmann & Wilbik 2022, Eqs. 15-17).
///
/// # Errors
/// [`Error::ColumnMismatch`], [`Error::Fuzzifier`].
pub(crate) fn validation_form<'f>(rows: &Packed, centres: &Centres, m: f64, form: &'f Form) -> Result<Sums<'f>, Error> {
    fits(rows, centres, m)?;
    let k = centres.k();
    Ok(over_parts(rows, form, 2 * k + 1, |first, last, sums| {
        let (mut squares, mut u) = (vec![0.0; k], vec![0.0; k]);
        each_of(rows, first..last, |x| {
            squares.iter_mut().zip(centres.rows()).for_each(|(slot, centre)| *slot = distance::squared(x, centre));
            if squares.iter().all(|square| SAFE.contains(square)) {
                let (nearest, sum) = memberships(&squares, m, &mut u);
                sums.add_all(0, squares.iter().map(|square| square.sqrt()));
                sums.add(2 * k, if m == 2.0 { nearest / sum } else { nearest * sum.powf(1.0 - m) });
            } else {
                sums.add(2 * k, distance::memberships(x, centres.rows(), m, &mut u));
                sums.add_all(0, centres.rows().map(|centre| distance::euclidean(x, centre)));
            }
            sums.add_all(k, u.iter().copied());
        });
    }))
}

/// Memberships from squared distances that may be divided by; the smallest of these, and the sum of its ratios to all.
fn memberships(squares: &[f64], m: f64, u: &mut [f64]) -> (f64, f64) {
    let nearest = squares.iter().copied().fold(f64::INFINITY, f64::min);
    let mut sum = 0.0;
    for (u, square) in u.iter_mut().zip(squares) {
        let ratio = nearest / square;
        *u = if m == 2.0 || ratio == 1.0 { ratio } else { ratio.powf(1.0 / (m - 1.0)) };
        sum += *u;
    }
    u.iter_mut().for_each(|u| *u /= sum);
    (nearest, sum)
}

/// Adds what one row contributes; for every centre the scratch has its squared distance, distance and membership.
fn add_validity(
    x: &[f64],
    (centres, m, vectors): (&Centres, f64, bool),
    [squares, distances, u]: &mut [Vec<f64>; 3],
    sums: &mut Sums<'_>,
) {
    let (k, d) = (centres.k(), x.len());
    squares.iter_mut().zip(centres.rows()).for_each(|(slot, centre)| *slot = distance::squared(x, centre));
    let safe = squares.iter().all(|square| SAFE.contains(square));
    if safe {
        memberships(squares, m, u);
        distances.iter_mut().zip(squares.iter()).for_each(|(distance, square)| *distance = square.sqrt());
    } else {
        distance::memberships(x, centres.rows(), m, u);
        for ((distance, square), centre) in distances.iter_mut().zip(squares.iter_mut()).zip(centres.rows()) {
            *distance = distance::euclidean(x, centre);
            *square = *distance * *distance;
        }
    }
    // Squares are compared as long as they are finite, because their roots may be equal where squares differ.
    let key: &[f64] = if safe { squares } else { distances };
    let own = (1..k).fold(0, |best, c| if key[c] < key[best] { c } else { best });
    sums.add(own, 1.0);
    sums.add(k + own, squares[own]);
    sums.add(2 * k + own, distances[own]);
    sums.add_all(3 * k, distances.iter().copied());
    sums.add_all(4 * k, u.iter().copied());
    let (mut partition, mut entropy, mut every, mut every_square) = (0.0, 0.0, 0.0, 0.0);
    for (c, u) in u.iter().copied().enumerate() {
        let power = distance::power(u, m);
        sums.add(5 * k + c, power);
        // A membership of 0 at an infinite distance adds nothing.
        sums.add(6 * k + c, if power > 0.0 { power * squares[c] } else { 0.0 });
        partition += u * u;
        entropy -= if u > 0.0 { u * u.ln() } else { 0.0 };
        if c != own {
            every += distances[c];
            every_square += squares[c];
        }
    }
    sums.add_all(7 * k, [partition, entropy, every, every_square]);
    if vectors {
        let first = 7 * k + SCALARS;
        sums.add_all(first + own * d, x.iter().copied());
        for (column, (value, centre)) in x.iter().zip(centres.row(own)).enumerate() {
            sums.add(first + k * d + column * k + own, (value - centre) * (value - centre));
        }
    }
}
