//! Register tiles of the kernel: squared distances and weighted sums of a block, in groups of 8 points.
//!
//! A tile is as large as the registers allow: with 512-bit vectors a vector is a whole group, with narrower ones a part
//! of it. This decides how many points a tile takes at once, and not the order in which anything is added up. Every
//! function is inlined into the caller that was compiled for the processor at hand; indexed loops with constant bounds
//! keep the tiles in registers.

#![expect(clippy::needless_range_loop, reason = "iterators over small arrays of registers end up in memory")]

use fearless_simd::{Simd, prelude::*};

use super::plan::{Chunk, Plan, TILE};
use crate::packed::{LANES, Lanes, Singles, Stored};

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

/// Values of rows as they are held, 8 in a vector.
trait Values: Sized {
    /// As [`load`].
    fn load<S: Simd>(&self, simd: S, at: usize) -> S::f64s;
}

impl Values for Lanes {
    #[inline(always)]
    fn load<S: Simd>(&self, simd: S, at: usize) -> S::f64s {
        load(simd, self, at)
    }
}

impl Values for Singles {
    #[inline(always)]
    fn load<S: Simd>(&self, simd: S, at: usize) -> S::f64s {
        S::f64s::from_fn(simd, |lane| f64::from(self.0[at + lane]))
    }
}

/// The inverse of [`load`].
#[inline(always)]
pub(super) fn store<S: Simd>(vector: S::f64s, lanes: &mut Lanes, at: usize) {
    vector.store_slice(&mut lanes.0[at..at + S::f64s::LEN]);
}

/// Squared distances of a block to all centres, `out[group][centre]`. With `INVERSE` their reciprocals instead: dividing here
/// lets the divider run beside the next tile's arithmetic.
#[inline(always)]
pub(super) fn distances<S: Simd, const INVERSE: bool>(simd: S, plan: &Plan<'_>, block: Chunk<'_>, out: &mut [Lanes]) {
    match block.lanes {
        Stored::Doubles(rows) => distances_of::<S, _, INVERSE>(simd, plan, rows, out),
        Stored::Singles(rows) => distances_of::<S, _, INVERSE>(simd, plan, rows, out),
    }
}

#[inline(always)]
fn distances_of<S: Simd, R: Values, const INVERSE: bool>(simd: S, plan: &Plan<'_>, rows: &[R], out: &mut [Lanes]) {
    for (t, tile) in plan.tiles.chunks_exact(plan.d).enumerate() {
        let first = t * TILE;
        match plan.k - first {
            1 => distance_tile::<S, R, 1, INVERSE>(simd, plan, tile, first, rows, out),
            2 => distance_tile::<S, R, 2, INVERSE>(simd, plan, tile, first, rows, out),
            3 => distance_tile::<S, R, 3, INVERSE>(simd, plan, tile, first, rows, out),
            4 => distance_tile::<S, R, 4, INVERSE>(simd, plan, tile, first, rows, out),
            _ => distance_tile::<S, R, TILE, INVERSE>(simd, plan, tile, first, rows, out),
        }
    }
}

/// C centres, two vectors at once: of two groups, or of one.
#[inline(always)]
fn distance_tile<S: Simd, R: Values, const C: usize, const INVERSE: bool>(
    simd: S,
    plan: &Plan<'_>,
    tile: &[[f64; TILE]],
    first: usize,
    rows: &[R],
    out: &mut [Lanes],
) {
    if wide::<S>(plan) {
        distance_groups::<S, R, C, 2, 1, INVERSE>(simd, plan.k, tile, first, rows, out);
    } else {
        distance_groups::<S, R, C, 1, 2, INVERSE>(simd, plan.k, tile, first, rows, out);
    }
}

/// C centres, G groups, V vectors of each at once.
#[inline(always)]
fn distance_groups<S: Simd, R: Values, const C: usize, const G: usize, const V: usize, const INVERSE: bool>(
    simd: S,
    k: usize,
    tile: &[[f64; TILE]],
    first: usize,
    rows: &[R],
    out: &mut [Lanes],
) {
    let d = tile.len();
    let width = S::f64s::LEN;
    let zero = S::f64s::splat(simd, 0.0);
    for (xs, out) in rows.chunks_exact(G * d).zip(out.chunks_exact_mut(G * k)) {
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
                        x[g][v] = groups[g][j].load(simd, at + v * width);
                    }
                }
                for c in 0..C {
                    let coordinate = S::f64s::splat(simd, centre[c]);
                    for g in 0..G {
                        for v in 0..V {
                            let difference = x[g][v] - coordinate;
                            // Two roundings, as everybody else computes it (specification, SUM-2).
                            squares[g][v][c] = difference * difference + squares[g][v][c];
                        }
                    }
                }
            }
            for g in 0..G {
                let out = &mut out[g * k + first..][..C];
                for v in 0..V {
                    let at = at + v * width;
                    for c in 0..C {
                        let square = squares[g][v][c];
                        let found = if INVERSE { S::f64s::splat(simd, 1.0) / square } else { square };
                        store::<S>(found, &mut out[c], at);
                    }
                }
            }
        }
    }
}

/// How products of rows and weights, and weights, are added up.
pub(super) trait Adding<S: Simd>: Copy {
    /// One sum for each point of a group.
    type Lanes: Copy;
    /// A vector of sums.
    type Vector: Copy;
    /// The vector of a group's sums that begins with lane `at`.
    fn load(self, simd: S, lanes: &Self::Lanes, at: usize) -> Self::Vector;
    /// The inverse of `load`.
    fn store(self, sums: Self::Vector, lanes: &mut Self::Lanes, at: usize);
    /// `sums + x * weight`.
    fn add_product(self, simd: S, sums: Self::Vector, x: S::f64s, weight: S::f64s) -> Self::Vector;
    /// `sums + value`.
    fn add(self, simd: S, sums: Self::Vector, value: S::f64s) -> Self::Vector;
}

/// As doubles, products and sums rounded once together.
#[derive(Clone, Copy)]
pub(super) struct AsDoubles;

impl<S: Simd> Adding<S> for AsDoubles {
    type Lanes = Lanes;
    type Vector = S::f64s;

    #[inline(always)]
    fn load(self, simd: S, lanes: &Lanes, at: usize) -> S::f64s {
        load(simd, lanes, at)
    }

    #[inline(always)]
    fn store(self, sums: S::f64s, lanes: &mut Lanes, at: usize) {
        store::<S>(sums, lanes, at);
    }

    #[inline(always)]
    fn add_product(self, _: S, sums: S::f64s, x: S::f64s, weight: S::f64s) -> S::f64s {
        x.mul_add(weight, sums)
    }

    #[inline(always)]
    fn add(self, _: S, sums: S::f64s, value: S::f64s) -> S::f64s {
        sums + value
    }
}

/// As whole steps (specification, SUM-1): each contribution plus this number has the contribution, rounded to a step, in the
/// lowest bits of its representation, and representations are added as integers.
#[derive(Clone, Copy)]
pub(super) struct AsSteps(pub(super) f64);

impl<S: Simd> Adding<S> for AsSteps {
    type Lanes = Words;
    type Vector = <S::f64s as SimdFloat<S>>::Bits;

    #[inline(always)]
    fn load(self, simd: S, lanes: &Words, at: usize) -> Self::Vector {
        Self::Vector::from_slice(simd, &lanes.0[at..at + S::f64s::LEN])
    }

    #[inline(always)]
    fn store(self, sums: Self::Vector, lanes: &mut Words, at: usize) {
        sums.store_slice(&mut lanes.0[at..at + S::f64s::LEN]);
    }

    #[inline(always)]
    fn add_product(self, simd: S, sums: Self::Vector, x: S::f64s, weight: S::f64s) -> Self::Vector {
        self.add(simd, sums, x * weight)
    }

    #[inline(always)]
    fn add(self, simd: S, sums: Self::Vector, value: S::f64s) -> Self::Vector {
        sums + (value + S::f64s::splat(simd, self.0)).to_bits()
    }
}

/// One integer for each point of a group, aligned as [`Lanes`].
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Words(pub(super) [u64; LANES]);

/// `sums[centre][column] += weights[group][centre] * x[group][column]`, lane by lane.
#[inline(always)]
pub(super) fn weighted_sums<S: Simd, A: Adding<S>>(
    simd: S,
    adding: A,
    plan: &Plan<'_>,
    block: Chunk<'_>,
    weights: &[Lanes],
    sums: &mut [A::Lanes],
) {
    match block.lanes {
        Stored::Doubles(rows) => sums_of(simd, adding, plan, rows, weights, sums),
        Stored::Singles(rows) => sums_of(simd, adding, plan, rows, weights, sums),
    }
}

#[inline(always)]
fn sums_of<S: Simd, A: Adding<S>, R: Values>(
    simd: S,
    adding: A,
    plan: &Plan<'_>,
    rows: &[R],
    weights: &[Lanes],
    sums: &mut [A::Lanes],
) {
    let k = plan.k;
    for first in (0..k).step_by(TILE) {
        match k - first {
            1 => sum_columns::<S, A, R, 1>(simd, adding, plan, first, rows, weights, sums),
            2 => sum_columns::<S, A, R, 2>(simd, adding, plan, first, rows, weights, sums),
            3 => sum_columns::<S, A, R, 3>(simd, adding, plan, first, rows, weights, sums),
            4 => sum_columns::<S, A, R, 4>(simd, adding, plan, first, rows, weights, sums),
            _ => sum_columns::<S, A, R, TILE>(simd, adding, plan, first, rows, weights, sums),
        }
    }
}

/// All columns for C centres, 4 at once with 32 registers and 2 with 16.
#[inline(always)]
fn sum_columns<S: Simd, A: Adding<S>, R: Values, const C: usize>(
    simd: S,
    adding: A,
    plan: &Plan<'_>,
    first: usize,
    rows: &[R],
    weights: &[Lanes],
    sums: &mut [A::Lanes],
) {
    let mut column = 0;
    if wide::<S>(plan) {
        while column + 4 <= plan.d {
            sum_tile::<S, A, R, C, 4>(simd, adding, plan, (first, column), rows, weights, sums);
            column += 4;
        }
    }
    while column + 2 <= plan.d {
        sum_tile::<S, A, R, C, 2>(simd, adding, plan, (first, column), rows, weights, sums);
        column += 2;
    }
    if column < plan.d {
        sum_tile::<S, A, R, C, 1>(simd, adding, plan, (first, column), rows, weights, sums);
    }
}

/// C centres, J columns, one vector of each group at a time.
#[inline(always)]
fn sum_tile<S: Simd, A: Adding<S>, R: Values, const C: usize, const J: usize>(
    simd: S,
    adding: A,
    plan: &Plan<'_>,
    (first, column): (usize, usize),
    rows: &[R],
    weights: &[Lanes],
    sums: &mut [A::Lanes],
) {
    let (k, d) = (plan.k, plan.d);
    let zero = S::f64s::splat(simd, 0.0);
    for at in (0..LANES).step_by(S::f64s::LEN) {
        let mut tile = [[adding.load(simd, &sums[first * d + column], at); J]; C];
        for c in 0..C {
            for j in 0..J {
                tile[c][j] = adding.load(simd, &sums[(first + c) * d + column + j], at);
            }
        }
        for (xs, weights) in rows.chunks_exact(d).zip(weights.chunks_exact(k)) {
            let (xs, weights) = (&xs[column..][..J], &weights[first..][..C]);
            let mut x = [zero; J];
            for j in 0..J {
                x[j] = xs[j].load(simd, at);
            }
            for c in 0..C {
                let weight = load(simd, &weights[c], at);
                for j in 0..J {
                    tile[c][j] = adding.add_product(simd, tile[c][j], x[j], weight);
                }
            }
        }
        for c in 0..C {
            for j in 0..J {
                adding.store(tile[c][j], &mut sums[(first + c) * d + column + j], at);
            }
        }
    }
}

/// `sums[i] += rows[..][i]` for rows as wide as `sums`.
#[inline(always)]
pub(super) fn add_columns<S: Simd, A: Adding<S>>(simd: S, adding: A, rows: &[Lanes], sums: &mut [A::Lanes]) {
    for row in rows.chunks_exact(sums.len()) {
        for (sum, value) in sums.iter_mut().zip(row) {
            for at in (0..LANES).step_by(S::f64s::LEN) {
                adding.store(adding.add(simd, adding.load(simd, sum, at), load(simd, value, at)), sum, at);
            }
        }
    }
}
