//! Register tiles of the kernel: squared distances and weighted sums of a block, in groups of 8 points.
//!
//! A tile is as large as the registers allow: with 512-bit vectors a vector is a whole group, with narrower ones a part
//! of it. This decides how many points a tile takes at once, and not the order in which anything is added up. Every
//! function is inlined into the caller that was compiled for the processor at hand; indexed loops with constant bounds
//! keep the tiles in registers.

#![expect(clippy::needless_range_loop, reason = "iterators over small arrays of registers end up in memory")]

use fearless_simd::{Simd, prelude::*};

use super::plan::{Chunk, Plan, TILE};
use crate::packed::{LANES, Lanes};

/// Whether tiles may be those of 512-bit vectors, which fill 32 registers. A test asks for them at any level, so that they
/// are tried on processors without such vectors too; elsewhere the answer is a constant.
#[inline(always)]
fn wide<S: Simd>(plan: &Plan<'_>) -> bool {
    S::f64s::LEN == LANES || (cfg!(test) && plan.wide_tiles)
}

/// The vector of a group that begins with lane `at`.
#[inline(always)]
pub(super) fn load<S: Simd>(simd: S, lanes: &Lanes, at: usize) -> S::f64s {
    S::f64s::from_slice(simd, &lanes.0[at..at + S::f64s::LEN])
}

/// The inverse of [`load`].
#[inline(always)]
pub(super) fn store<S: Simd>(vector: S::f64s, lanes: &mut Lanes, at: usize) {
    vector.store_slice(&mut lanes.0[at..at + S::f64s::LEN]);
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
            1 => distance_tile::<S, 1, INVERSE>(simd, plan, tile, first, block, out, totals),
            2 => distance_tile::<S, 2, INVERSE>(simd, plan, tile, first, block, out, totals),
            3 => distance_tile::<S, 3, INVERSE>(simd, plan, tile, first, block, out, totals),
            4 => distance_tile::<S, 4, INVERSE>(simd, plan, tile, first, block, out, totals),
            _ => distance_tile::<S, TILE, INVERSE>(simd, plan, tile, first, block, out, totals),
        }
    }
}

/// C centres, two vectors at once: of two groups, or of one.
#[inline(always)]
fn distance_tile<S: Simd, const C: usize, const INVERSE: bool>(
    simd: S,
    plan: &Plan<'_>,
    tile: &[[f64; TILE]],
    first: usize,
    block: Chunk<'_>,
    out: &mut [Lanes],
    totals: &mut [Lanes],
) {
    if wide::<S>(plan) {
        distance_groups::<S, C, 2, 1, INVERSE>(simd, tile, first, block, out, totals);
    } else {
        distance_groups::<S, C, 1, 2, INVERSE>(simd, tile, first, block, out, totals);
    }
}

/// C centres, G groups, V vectors of each at once.
#[inline(always)]
fn distance_groups<S: Simd, const C: usize, const G: usize, const V: usize, const INVERSE: bool>(
    simd: S,
    tile: &[[f64; TILE]],
    first: usize,
    block: Chunk<'_>,
    out: &mut [Lanes],
    totals: &mut [Lanes],
) {
    let d = tile.len();
    let width = S::f64s::LEN;
    let zero = S::f64s::splat(simd, 0.0);
    let k = out.len() / totals.len();
    let rows = block.lanes.chunks_exact(G * d);
    for ((xs, out), totals) in rows.zip(out.chunks_exact_mut(G * k)).zip(totals.chunks_exact_mut(G)) {
        let mut groups = [&xs[..d]; G];
        for (g, group) in groups.iter_mut().enumerate() {
            *group = &xs[g * d..][..d];
        }
        for at in (0..LANES).step_by(V * width) {
            let mut squares = [[[zero; C]; V]; G];
            for (j, centre) in tile.iter().enumerate() {
                let mut x = [[zero; V]; G];
                for g in 0..G {
                    for v in 0..V {
                        x[g][v] = load(simd, &groups[g][j], at + v * width);
                    }
                }
                for c in 0..C {
                    let coordinate = S::f64s::splat(simd, centre[c]);
                    for g in 0..G {
                        for v in 0..V {
                            let difference = x[g][v] - coordinate;
                            squares[g][v][c] = difference.mul_add(difference, squares[g][v][c]);
                        }
                    }
                }
            }
            for g in 0..G {
                let out = &mut out[g * k + first..][..C];
                for v in 0..V {
                    let at = at + v * width;
                    if INVERSE {
                        let mut total = load(simd, &totals[g], at);
                        for c in 0..C {
                            let inverse = S::f64s::splat(simd, 1.0) / squares[g][v][c];
                            total += inverse;
                            store::<S>(inverse, &mut out[c], at);
                        }
                        store::<S>(total, &mut totals[g], at);
                    } else {
                        for c in 0..C {
                            store::<S>(squares[g][v][c], &mut out[c], at);
                        }
                    }
                }
            }
        }
    }
}

/// `sums[centre][column] += weights[group][centre] * x[group][column]`, lane by lane.
#[inline(always)]
pub(super) fn weighted_sums<S: Simd>(
    simd: S,
    plan: &Plan<'_>,
    block: Chunk<'_>,
    weights: &[Lanes],
    sums: &mut [Lanes],
) {
    let k = plan.k;
    for first in (0..k).step_by(TILE) {
        match k - first {
            1 => sum_columns::<S, 1>(simd, plan, first, block, weights, sums),
            2 => sum_columns::<S, 2>(simd, plan, first, block, weights, sums),
            3 => sum_columns::<S, 3>(simd, plan, first, block, weights, sums),
            4 => sum_columns::<S, 4>(simd, plan, first, block, weights, sums),
            _ => sum_columns::<S, TILE>(simd, plan, first, block, weights, sums),
        }
    }
}

/// All columns for C centres, 4 at once with 32 registers and 2 with 16.
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
    if wide::<S>(plan) {
        while column + 4 <= plan.d {
            sum_tile::<S, C, 4>(simd, plan, first, column, block, weights, sums);
            column += 4;
        }
    }
    while column + 2 <= plan.d {
        sum_tile::<S, C, 2>(simd, plan, first, column, block, weights, sums);
        column += 2;
    }
    if column < plan.d {
        sum_tile::<S, C, 1>(simd, plan, first, column, block, weights, sums);
    }
}

/// C centres, J columns, one vector of each group at a time.
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
    let zero = S::f64s::splat(simd, 0.0);
    for at in (0..LANES).step_by(S::f64s::LEN) {
        let mut tile = [[zero; J]; C];
        for c in 0..C {
            for j in 0..J {
                tile[c][j] = load(simd, &sums[(first + c) * d + column + j], at);
            }
        }
        for (xs, weights) in block.lanes.chunks_exact(d).zip(weights.chunks_exact(k)) {
            let (xs, weights) = (&xs[column..][..J], &weights[first..][..C]);
            let mut x = [zero; J];
            for j in 0..J {
                x[j] = load(simd, &xs[j], at);
            }
            for c in 0..C {
                let weight = load(simd, &weights[c], at);
                for j in 0..J {
                    tile[c][j] = x[j].mul_add(weight, tile[c][j]);
                }
            }
        }
        for c in 0..C {
            for j in 0..J {
                store::<S>(tile[c][j], &mut sums[(first + c) * d + column + j], at);
            }
        }
    }
}

/// `sums[i] += rows[..][i]` for rows as wide as `sums`.
#[inline(always)]
pub(super) fn add_columns<S: Simd>(simd: S, rows: &[Lanes], sums: &mut [Lanes]) {
    for row in rows.chunks_exact(sums.len()) {
        for (sum, value) in sums.iter_mut().zip(row) {
            for at in (0..LANES).step_by(S::f64s::LEN) {
                store::<S>(load(simd, sum, at) + load(simd, value, at), sum, at);
            }
        }
    }
}
