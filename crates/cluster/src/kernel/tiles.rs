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
pub(super) fn wide<S: Simd>(plan: &Plan<'_>) -> bool {
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

/// Squared distances of a block to all centres, `out[group][centre]`. With `INVERSE` their reciprocals instead: dividing here
/// lets the divider run beside the next tile's arithmetic. Compiled once for each kind of vectors, whoever calls it.
#[inline(always)]
pub(super) fn distances<S: Simd, const INVERSE: bool>(simd: S, plan: &Plan<'_>, block: Chunk<'_>, out: &mut [Lanes]) {
    simd.vectorize(
        #[inline(always)]
        || distances_of::<S, INVERSE>(simd, plan, block.lanes, out),
    );
}

#[inline(always)]
fn distances_of<S: Simd, const INVERSE: bool>(simd: S, plan: &Plan<'_>, rows: &[Lanes], out: &mut [Lanes]) {
    for (t, tile) in plan.tiles.chunks_exact(plan.d).enumerate() {
        let first = t * TILE;
        match plan.k - first {
            1 => distance_tile::<S, 1, INVERSE>(simd, plan, tile, first, rows, out),
            2 => distance_tile::<S, 2, INVERSE>(simd, plan, tile, first, rows, out),
            3 => distance_tile::<S, 3, INVERSE>(simd, plan, tile, first, rows, out),
            4 => distance_tile::<S, 4, INVERSE>(simd, plan, tile, first, rows, out),
            _ => distance_tile::<S, TILE, INVERSE>(simd, plan, tile, first, rows, out),
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
    rows: &[Lanes],
    out: &mut [Lanes],
) {
    if wide::<S>(plan) {
        distance_groups::<S, C, 2, 1, INVERSE>(simd, plan.k, tile, first, rows, out);
    } else {
        distance_groups::<S, C, 1, 2, INVERSE>(simd, plan.k, tile, first, rows, out);
    }
}

/// C centres, G groups, V vectors of each at once.
#[inline(always)]
fn distance_groups<S: Simd, const C: usize, const G: usize, const V: usize, const INVERSE: bool>(
    simd: S,
    k: usize,
    tile: &[[f64; TILE]],
    first: usize,
    rows: &[Lanes],
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
                        x[g][v] = load(simd, &groups[g][j], at + v * width);
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
    /// The sums of the points of a group.
    type Lanes: Copy;
    /// A vector of sums.
    type Vector: Copy;
    /// Whether every point of a group has sums of its own. Integers may be added in any order, so they share those of one vector.
    const APART: bool;
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
    const APART: bool = true;

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
    const APART: bool = false;

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

/// Integers for the points of a group, of which only those of the first vector are used where points share sums; aligned as [`Lanes`].
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Words(pub(super) [u64; LANES]);

/// The sums of one block after the other.
pub(super) struct Totals<A, L> {
    /// How products are added up, and how weights.
    pub(super) adding: [A; 2],
    /// `sum weights[group][centre] * x[group][column]`, K x d.
    pub(super) products: Vec<L>,
    /// `sum weights[group][centre]`, K.
    pub(super) weights: Vec<L>,
}

impl<A, L> Totals<A, L> {
    /// Adds a block, whose weights are `weights[group][centre]`.
    ///
    /// Tiles of up to 5 centres and of 4 columns with 32 registers, of 2 with 16. Where sums are not apart and registers are few, ten
    /// centres at a time are a tile of one column: an instruction that uses a weight once loads it too.
    #[inline(always)]
    pub(super) fn add<S: Simd>(&mut self, simd: S, plan: &Plan<'_>, block: Chunk<'_>, weights: &[Lanes])
    where
        A: Adding<S, Lanes = L>,
    {
        let rows = block.lanes;
        let tall = !A::APART && !wide::<S>(plan);
        let mut first = 0;
        while first < plan.k {
            let left = plan.k - first;
            macro_rules! tile {
                ($C:literal, $J:literal) => {
                    self.add_centres::<S, $C, $J>(simd, plan, first, rows, weights)
                };
            }
            if tall && left >= 10 {
                tile!(10, 1);
                first += 10;
                continue;
            }
            let centres = left.div_ceil(left.div_ceil(TILE));
            if wide::<S>(plan) {
                match centres {
                    1 => tile!(1, 4),
                    2 => tile!(2, 4),
                    3 => tile!(3, 4),
                    4 => tile!(4, 4),
                    _ => tile!(5, 4),
                }
            } else {
                match centres {
                    1 => tile!(1, 2),
                    2 => tile!(2, 2),
                    3 => tile!(3, 2),
                    4 => tile!(4, 2),
                    _ => tile!(5, 2),
                }
            }
            first += centres;
        }
    }

    /// All columns for C centres, J of them at once as long as there are so many, and the weights.
    #[inline(always)]
    fn add_centres<S: Simd, const C: usize, const J: usize>(
        &mut self,
        simd: S,
        plan: &Plan<'_>,
        first: usize,
        rows: &[Lanes],
        weights: &[Lanes],
    ) where
        A: Adding<S, Lanes = L>,
    {
        let [products, of_weights] = self.adding;
        let sums = &mut self.products[first * plan.d..];
        let mut column = 0;
        while J >= 4 && column + 4 <= plan.d {
            add_products::<S, A, C, 4>(simd, products, plan, (first, column), rows, weights, sums);
            column += 4;
        }
        while J >= 2 && column + 2 <= plan.d {
            add_products::<S, A, C, 2>(simd, products, plan, (first, column), rows, weights, sums);
            column += 2;
        }
        while column < plan.d {
            add_products::<S, A, C, 1>(simd, products, plan, (first, column), rows, weights, sums);
            column += 1;
        }
        add_values::<S, A, C>(simd, of_weights, plan.k, first, weights, &mut self.weights);
    }
}

/// Where each vector of sums begins in a group.
#[inline(always)]
fn starts<S: Simd, A: Adding<S>>() -> impl Iterator<Item = usize> {
    (0..if A::APART { LANES } else { S::f64s::LEN }).step_by(S::f64s::LEN)
}

/// Where each vector of values begins that is added to the sums which begin at `start`.
#[inline(always)]
fn values<S: Simd, A: Adding<S>>(start: usize) -> impl Iterator<Item = usize> {
    (start..if A::APART { start + S::f64s::LEN } else { LANES }).step_by(S::f64s::LEN)
}

/// C centres, J columns, one vector of each group at a time.
#[inline(always)]
fn add_products<S: Simd, A: Adding<S>, const C: usize, const J: usize>(
    simd: S,
    adding: A,
    plan: &Plan<'_>,
    (first, column): (usize, usize),
    rows: &[Lanes],
    weights: &[Lanes],
    sums: &mut [A::Lanes],
) {
    let (k, d) = (plan.k, plan.d);
    let zero = S::f64s::splat(simd, 0.0);
    for start in starts::<S, A>() {
        let mut tile = [[adding.load(simd, &sums[column], start); J]; C];
        for c in 0..C {
            for j in 0..J {
                tile[c][j] = adding.load(simd, &sums[c * d + column + j], start);
            }
        }
        for (xs, weights) in rows.chunks_exact(d).zip(weights.chunks_exact(k)) {
            let (xs, weights) = (&xs[column..][..J], &weights[first..][..C]);
            for at in values::<S, A>(start) {
                let mut x = [zero; J];
                for j in 0..J {
                    x[j] = load(simd, &xs[j], at);
                }
                for c in 0..C {
                    let weight = load(simd, &weights[c], at);
                    for j in 0..J {
                        tile[c][j] = adding.add_product(simd, tile[c][j], x[j], weight);
                    }
                }
            }
        }
        for c in 0..C {
            for j in 0..J {
                adding.store(tile[c][j], &mut sums[c * d + column + j], start);
            }
        }
    }
}

/// `sums[i] += rows[..][i]` for C values of rows of k, from `first` on.
#[inline(always)]
pub(super) fn add_values<S: Simd, A: Adding<S>, const C: usize>(
    simd: S,
    adding: A,
    k: usize,
    first: usize,
    rows: &[Lanes],
    sums: &mut [A::Lanes],
) {
    let sums = &mut sums[first..][..C];
    for start in starts::<S, A>() {
        let mut tile = [adding.load(simd, &sums[0], start); C];
        for c in 0..C {
            tile[c] = adding.load(simd, &sums[c], start);
        }
        for row in rows.chunks_exact(k) {
            let row = &row[first..][..C];
            for at in values::<S, A>(start) {
                for c in 0..C {
                    tile[c] = adding.add(simd, tile[c], load(simd, &row[c], at));
                }
            }
        }
        for c in 0..C {
            adding.store(tile[c], &mut sums[c], start);
        }
    }
}
