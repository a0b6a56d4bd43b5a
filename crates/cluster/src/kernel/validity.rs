//! The sums behind the validity indices, and sums over single rows for questions that are asked a few times in a run.

use fearless_simd::{Level, Simd, dispatch};
use rayon::prelude::*;

use super::plan::{BLOCK, CHUNK_ROWS, Chunk, Plan, WAVE};
use super::tiles::distances;
use crate::distance::{self, SAFE};
use crate::packed::{LANES, Lanes};
use crate::{Centres, DataError, Packed};

/// Entries of partial sums that are held at once, beside those of one chunk: 32 MiB.
const HELD: usize = 1 << 22;

/// Adds up what `add(x, row, sums)` adds for every row, `x` being its d coordinates: in parallel, but in a fixed order.
pub(crate) fn over_rows(rows: &Packed, width: usize, add: impl Fn(&[f64], usize, &mut [f64]) + Sync) -> Vec<f64> {
    let d = rows.columns();
    let part = |first: usize| {
        let (mut sums, mut x) = (vec![0.0; width], vec![0.0; d]);
        for row in first..(first + CHUNK_ROWS).min(rows.len()) {
            let group = &rows.lanes()[row / LANES * d..][..d];
            x.iter_mut().zip(group).for_each(|(slot, column)| *slot = column.0[row % LANES]);
            add(&x, row, &mut sums);
        }
        sums
    };
    if rows.len() <= CHUNK_ROWS {
        return part(0);
    }
    let firsts: Vec<usize> = (0..rows.len()).step_by(CHUNK_ROWS).collect();
    let mut sums = vec![0.0; width];
    for wave in firsts.chunks((HELD / width.max(1)).clamp(1, WAVE)) {
        for partial in wave.par_iter().map(|first| part(*first)).collect::<Vec<_>>() {
            sums.iter_mut().zip(partial).for_each(|(sum, value)| *sum += value);
        }
    }
    sums
}

/// The blocks of a validation round, one after the other: rows, own squared distances, own distances, all distances,
/// `u`, `u^m`, `u^m d^2` (K each); `u^2`, `-u ln u`, other distances, other squared distances, simplified silhouette (1
/// each); with `vectors` the coordinates of own rows (K x d) and their squared deviations from the centre (d x K). Every row
/// owns its nearest centre, the first among equals.
///
/// # Errors
/// [`DataError::ColumnMismatch`], [`DataError::Fuzzifier`].
pub(crate) fn validity_sums(rows: &Packed, centres: &Centres, m: f64, vectors: bool) -> Result<Vec<f64>, DataError> {
    let level = Level::new();
    let plan = Plan::new(rows, centres, m)?;
    let width = 7 * plan.k + SCALARS + if vectors { 2 * plan.k * plan.d } else { 0 };
    Ok(plan.over_chunks(rows, width, |chunk| {
        let mut sums = vec![0.0; width];
        dispatch!(level, simd => chunk_validity(simd, &plan, chunk, &mut sums));
        sums
    }))
}

/// Entries after the K-vectors.
const SCALARS: usize = 5;

#[inline(always)]
fn chunk_validity<S: Simd>(simd: S, plan: &Plan<'_>, chunk: Chunk<'_>, sums: &mut [f64]) {
    let k = plan.k;
    let mut squares = vec![Lanes::ZERO; BLOCK * k];
    let mut unused = [Lanes::ZERO; BLOCK];
    let mut scratch = Scratch { x: vec![0.0; plan.d], squares: vec![0.0; k], distances: vec![0.0; k], u: vec![0.0; k] };
    for block in chunk.split(BLOCK, plan.d) {
        let groups = block.lanes.len() / plan.d;
        let squares = &mut squares[..groups * k];
        distances::<S, false>(simd, plan, block, squares, &mut unused[..groups]);
        for point in 0..block.valid {
            let (group, lane) = (point / LANES, point % LANES);
            let row = &squares[group * k..(group + 1) * k];
            scratch.squares.iter_mut().zip(row).for_each(|(slot, square)| *slot = square.0[lane]);
            validate_point(plan, block, point, &mut scratch, sums);
        }
    }
}

/// What one row needs: its coordinates, and for every centre distance, its square and membership.
struct Scratch {
    x: Vec<f64>,
    squares: Vec<f64>,
    distances: Vec<f64>,
    u: Vec<f64>,
}

#[inline(never)]
fn validate_point(plan: &Plan<'_>, block: Chunk<'_>, point: usize, scratch: &mut Scratch, sums: &mut [f64]) {
    let (k, m) = (plan.k, plan.m);
    let Scratch { x, squares, distances, u } = scratch;
    plan.point(block, point, x);
    let safe = squares.iter().all(|square| SAFE.contains(square));
    if safe {
        let nearest = squares.iter().copied().fold(f64::INFINITY, f64::min);
        let mut sum = 0.0;
        for ((u, square), distance) in u.iter_mut().zip(squares.iter()).zip(distances.iter_mut()) {
            let ratio = nearest / square;
            *u = if m == 2.0 || ratio == 1.0 { ratio } else { ratio.powf(1.0 / (m - 1.0)) };
            sum += *u;
            *distance = square.sqrt();
        }
        u.iter_mut().for_each(|u| *u /= sum);
    } else {
        distance::memberships(x, plan.centres.rows(), m, u);
        for ((distance, square), centre) in distances.iter_mut().zip(squares.iter_mut()).zip(plan.centres.rows()) {
            *distance = distance::euclidean(x, centre);
            *square = *distance * *distance;
        }
    }
    // Squares are compared as long as they are finite, because their roots may be equal where squares differ.
    let key: &[f64] = if safe { squares } else { distances };
    let own = (1..k).fold(0, |best, c| if key[c] < key[best] { c } else { best });
    let (nearest, mut second) = (distances[own], f64::INFINITY);
    let (mut every, mut every_square) = (0.0, 0.0);
    let (mut partition, mut entropy) = (0.0, 0.0);
    for c in 0..k {
        let (distance, square, u) = (distances[c], squares[c], u[c]);
        let power = distance::power(u, m);
        sums[3 * k + c] += distance;
        sums[4 * k + c] += u;
        sums[5 * k + c] += power;
        // A membership of 0 at an infinite distance adds nothing.
        sums[6 * k + c] += if power > 0.0 { power * square } else { 0.0 };
        partition += u * u;
        entropy -= if u > 0.0 { u * u.ln() } else { 0.0 };
    }
    for c in (0..k).filter(|c| *c != own) {
        second = second.min(distances[c]);
        every += distances[c];
        every_square += squares[c];
    }
    sums[own] += 1.0;
    sums[k + own] += squares[own];
    sums[2 * k + own] += distances[own];
    let silhouette = if second > 0.0 && second.is_finite() { (second - nearest) / second } else { 0.0 };
    let scalars = [partition, entropy, every, every_square, silhouette];
    sums[7 * k..].iter_mut().zip(scalars).for_each(|(sum, value)| *sum += value);
    let (_, vectors) = sums.split_at_mut(7 * k + SCALARS);
    if !vectors.is_empty() {
        let (sums, squares) = vectors.split_at_mut(k * plan.d);
        for (column, (value, centre)) in x.iter().zip(plan.centres.row(own)).enumerate() {
            sums[own * plan.d + column] += value;
            squares[column * k + own] += (value - centre) * (value - centre);
        }
    }
}
