//! Register tiles of the kernel: squared distances and weighted sums of a block, in groups of 8 points.
//!
//! Every function is inlined into the caller that was compiled for the processor at hand. Indexed loops with constant
//! bounds keep the tiles in registers.

use fearless_simd::{Simd, f64x8, prelude::*};

use super::{Chunk, Plan, TILE};
use crate::packed::{LANES, Lanes};

#[inline(always)]
pub(super) fn load<S: Simd>(simd: S, lanes: &Lanes) -> f64x8<S> {
    f64x8::load_array_ref(simd, &lanes.0)
}

/// Squared distances of a block to all centres, `out[group][centre]`. With `INVERSE` their reciprocals instead, whose
/// sums over the centres go to `totals[group]`: dividing here lets the divider run beside the next tile's arithmetic.
#[inline(always)]
pub(super) fn distances<S: Simd, const INVERSE: bool>(
    simd: S,
    plan: &Plan<'_>,
    block: Chunk<'_>,
    out: &mut [Lanes],
    totals: &mut [Lanes],
) {
    if INVERSE {
        totals.fill(Lanes::ZERO);
    }
    for (t, tile) in plan.tiles.chunks_exact(plan.d).enumerate() {
        let first = t * TILE;
        match plan.k - first {
            1 => distance_tile::<S, 1, INVERSE>(simd, tile, first, block, out, totals),
            2 => distance_tile::<S, 2, INVERSE>(simd, tile, first, block, out, totals),
            3 => distance_tile::<S, 3, INVERSE>(simd, tile, first, block, out, totals),
            4 => distance_tile::<S, 4, INVERSE>(simd, tile, first, block, out, totals),
            _ => distance_tile::<S, TILE, INVERSE>(simd, tile, first, block, out, totals),
        }
    }
}

/// Chooses how many groups share a tile: with 32 wide registers two, else one.
#[inline(always)]
fn distance_tile<S: Simd, const C: usize, const INVERSE: bool>(
    simd: S,
    tile: &[[f64; TILE]],
    first: usize,
    block: Chunk<'_>,
    out: &mut [Lanes],
    totals: &mut [Lanes],
) {
    if S::f64s::LEN == LANES {
        distance_groups::<S, C, 2, INVERSE>(simd, tile, first, block, out, totals);
    } else {
        distance_groups::<S, C, 1, INVERSE>(simd, tile, first, block, out, totals);
    }
}

#[inline(always)]
fn distance_groups<S: Simd, const C: usize, const G: usize, const INVERSE: bool>(
    simd: S,
    tile: &[[f64; TILE]],
    first: usize,
    block: Chunk<'_>,
    out: &mut [Lanes],
    totals: &mut [Lanes],
) {
    let d = tile.len();
    let zero = f64x8::splat(simd, 0.0);
    let k = out.len() / totals.len();
    let rows = block.lanes.chunks_exact(G * d);
    for ((xs, out), totals) in rows.zip(out.chunks_exact_mut(G * k)).zip(totals.chunks_exact_mut(G)) {
        let mut groups = [&xs[..d]; G];
        for (g, group) in groups.iter_mut().enumerate() {
            *group = &xs[g * d..][..d];
        }
        let mut squares = [[zero; C]; G];
        for (j, centre) in tile.iter().enumerate() {
            let mut x = [zero; G];
            for g in 0..G {
                x[g] = load(simd, &groups[g][j]);
            }
            for c in 0..C {
                let coordinate = f64x8::splat(simd, centre[c]);
                for g in 0..G {
                    let difference = x[g] - coordinate;
                    squares[g][c] = difference.mul_add(difference, squares[g][c]);
                }
            }
        }
        for g in 0..G {
            let out = &mut out[g * k + first..][..C];
            if INVERSE {
                let mut total = load(simd, &totals[g]);
                for c in 0..C {
                    let inverse = 1.0 / squares[g][c];
                    total += inverse;
                    inverse.store_array(&mut out[c].0);
                }
                total.store_array(&mut totals[g].0);
            } else {
                for c in 0..C {
                    squares[g][c].store_array(&mut out[c].0);
                }
            }
        }
    }
}

/// `sums[centre][column] += weights[group][centre] * x[group][column]`, lane by lane.
#[inline(always)]
pub(super) fn weighted_sums<S: Simd>(simd: S, plan: &Plan<'_>, block: Chunk<'_>, weights: &[Lanes], sums: &mut [Lanes]) {
    let k = plan.k;
    let mut first = 0;
    while first < k {
        match k - first {
            1 => sum_columns::<S, 1>(simd, plan, first, block, weights, sums),
            2 => sum_columns::<S, 2>(simd, plan, first, block, weights, sums),
            3 => sum_columns::<S, 3>(simd, plan, first, block, weights, sums),
            4 => sum_columns::<S, 4>(simd, plan, first, block, weights, sums),
            _ => sum_columns::<S, TILE>(simd, plan, first, block, weights, sums),
        }
        first += TILE;
    }
}

/// All columns for C centres: 4 columns at once with 32 wide registers, else one.
#[inline(always)]
fn sum_columns<S: Simd, const C: usize>(
    simd: S,
    plan: &Plan<'_>,
    first: usize,
    block: Chunk<'_>,
    weights: &[Lanes],
    sums: &mut [Lanes],
) {
    let mut column = 0;
    if S::f64s::LEN == LANES {
        while column + 4 <= plan.d {
            sum_tile::<S, C, 4>(simd, plan, first, column, block, weights, sums);
            column += 4;
        }
    }
    while column < plan.d {
        sum_tile::<S, C, 1>(simd, plan, first, column, block, weights, sums);
        column += 1;
    }
}

#[inline(always)]
fn sum_tile<S: Simd, const C: usize, const J: usize>(
    simd: S,
    plan: &Plan<'_>,
    first: usize,
    column: usize,
    block: Chunk<'_>,
    weights: &[Lanes],
    sums: &mut [Lanes],
) {
    let (k, d) = (plan.k, plan.d);
    let zero = f64x8::splat(simd, 0.0);
    let mut tile = [[zero; J]; C];
    for c in 0..C {
        for j in 0..J {
            tile[c][j] = load(simd, &sums[(first + c) * d + column + j]);
        }
    }
    for (xs, weights) in block.lanes.chunks_exact(d).zip(weights.chunks_exact(k)) {
        let (xs, weights) = (&xs[column..][..J], &weights[first..][..C]);
        let mut x = [zero; J];
        for j in 0..J {
            x[j] = load(simd, &xs[j]);
        }
        for c in 0..C {
            let weight = load(simd, &weights[c]);
            for j in 0..J {
                tile[c][j] = x[j].mul_add(weight, tile[c][j]);
            }
        }
    }
    for c in 0..C {
        for j in 0..J {
            tile[c][j].store_array(&mut sums[(first + c) * d + column + j].0);
        }
    }
}

/// `sums[i] += rows[..][i]` for rows as wide as `sums`.
#[inline(always)]
pub(super) fn add_columns<S: Simd>(simd: S, rows: &[Lanes], sums: &mut [Lanes]) {
    for row in rows.chunks_exact(sums.len()) {
        for (sum, value) in sums.iter_mut().zip(row) {
            (load(simd, sum) + load(simd, value)).store_array(&mut sum.0);
        }
    }
}

