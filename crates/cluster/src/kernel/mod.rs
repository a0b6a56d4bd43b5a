//! The local sums of fuzzy c-means in one pass, without an N x K membership matrix (Kolen & Hutcheson 2002).
//!
//! Rows come in groups of 8, dimension-major ([`Packed`]). A block of 16 groups goes through three phases whose data stay
//! in the first cache: squared distances (tiles of 5 centres in registers), weights `u^m`, weighted sums. Each point of a
//! group has its own accumulators, chunks of rows are fixed, and everything is added up in a fixed order: the result does
//! not depend on the number of threads, and AVX2 and AVX-512 give the same bits.

mod hard;
mod shift;
mod tiles;
mod validation;
mod validity;
mod weights;

#[cfg(test)]
mod tests;

use fearless_simd::{Level, Simd, dispatch};
use rayon::prelude::*;

use crate::distance::usable_fuzzifier;
use crate::packed::{LANES, Lanes};
use crate::{Centres, DataError, Packed};

pub use hard::{HardSums, Nearest, hard_sums, nearest};
pub use shift::membership_shift;

use tiles::{add_columns, distances, weighted_sums};
use validation::chunk_validation;
pub(crate) use validity::{over_rows, validity_sums};
use weights::{general_weights, quadratic_weights};

/// Groups in a block: 128 points.
const BLOCK: usize = 16;
/// Groups in a chunk, the unit of parallel work: 8,192 points, independent of the number of threads.
const CHUNK: usize = 64 * BLOCK;
/// Points in a chunk.
pub(crate) const CHUNK_ROWS: usize = CHUNK * LANES;
/// Chunks whose partial sums are held at once.
const WAVE: usize = 64;
/// Centres whose accumulators stay in registers together.
const TILE: usize = 5;

/// The sums of one round of fuzzy c-means over some rows, working units.
#[derive(Debug, Clone, PartialEq)]
pub struct FuzzySums {
    /// `WS_k = sum_j u_jk^m x_j`, K x d, row-major.
    pub weighted_sums: Vec<f64>,
    /// `U_k = sum_j u_jk^m`, K.
    pub weights: Vec<f64>,
    /// `J_m = sum_jk u_jk^m ||x_j - c_k||^2`, squared working units.
    pub objective: f64,
}

/// The sums that the fuzzy Davies-Bouldin index and the objective need, working units.
#[derive(Debug, Clone, PartialEq)]
pub struct FuzzyValidation {
    /// `D_k = sum_j ||x_j - c_k||` over all rows, K.
    pub distances: Vec<f64>,
    /// `A_k = sum_j u_jk`, K; their sum is the number of rows.
    pub memberships: Vec<f64>,
    /// `J_m = sum_jk u_jk^m ||x_j - c_k||^2`, squared working units.
    pub objective: f64,
}

/// `WS`, `U` and `J_m` of the rows for given centres and m (Bárcena et al. 2021, Algorithm 2).
///
/// A row that coincides with z centres counts 1/z for each of them. No result is NaN as long as no sum of coordinates
/// overflows `f64`.
///
/// # Errors
/// [`DataError::ColumnMismatch`], [`DataError::Fuzzifier`].
pub fn fuzzy_sums(rows: &Packed, centres: &Centres, m: f64) -> Result<FuzzySums, DataError> {
    fuzzy_sums_at(Level::new(), rows, centres, m)
}

/// [`fuzzy_sums`] with a given level of vector instructions.
fn fuzzy_sums_at(level: Level, rows: &Packed, centres: &Centres, m: f64) -> Result<FuzzySums, DataError> {
    let plan = Plan::new(rows, centres, m)?;
    Ok(sums_of(level, &plan, rows))
}

fn sums_of(level: Level, plan: &Plan<'_>, rows: &Packed) -> FuzzySums {
    let (k, d) = (plan.k, plan.d);
    let mut sums =
        plan.over_chunks(rows, k * d + k + 1, |chunk| dispatch!(level, simd => chunk_sums(simd, plan, chunk)));
    let objective = sums.pop().unwrap_or_default();
    let weights = sums.split_off(k * d);
    FuzzySums { weighted_sums: sums, weights, objective }
}

/// `D`, `A` and `J_m` of the rows for given centres and m (Stallmann & Wilbik 2022, Eqs. 15-17 with q = 1).
///
/// # Errors
/// [`DataError::ColumnMismatch`], [`DataError::Fuzzifier`].
pub fn fuzzy_validation(rows: &Packed, centres: &Centres, m: f64) -> Result<FuzzyValidation, DataError> {
    let level = Level::new();
    let plan = Plan::new(rows, centres, m)?;
    let k = plan.k;
    let mut sums =
        plan.over_chunks(rows, 2 * k + 1, |chunk| dispatch!(level, simd => chunk_validation(simd, &plan, chunk)));
    let objective = sums.pop().unwrap_or_default();
    let memberships = sums.split_off(k);
    Ok(FuzzyValidation { distances: sums, memberships, objective })
}

/// The centres as the distance phase reads them, and the shape of the problem.
struct Plan<'a> {
    centres: &'a Centres,
    /// For each tile of centres d arrays: one coordinate of up to 5 centres.
    tiles: Vec<[f64; TILE]>,
    k: usize,
    d: usize,
    m: f64,
    /// Tiles for 512-bit vectors at any level; only tests set it.
    wide_tiles: bool,
}

/// A stretch of rows: whole groups, of whose points the first `valid` are real.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    lanes: &'a [Lanes],
    valid: usize,
}

impl<'a> Chunk<'a> {
    /// Splits into stretches of at most `groups` groups.
    fn split(self, groups: usize, d: usize) -> impl Iterator<Item = Chunk<'a>> {
        self.lanes.chunks(groups * d).enumerate().map(move |(i, lanes)| {
            let valid = self.valid.saturating_sub(i * groups * LANES).min(lanes.len() / d * LANES);
            Chunk { lanes, valid }
        })
    }

    /// One coordinate of one point.
    #[inline(always)]
    fn value(&self, point: usize, column: usize, d: usize) -> f64 {
        self.lanes[point / LANES * d + column].0[point % LANES]
    }
}

impl<'a> Plan<'a> {
    fn new(rows: &Packed, centres: &'a Centres, m: f64) -> Result<Self, DataError> {
        if !usable_fuzzifier(m) {
            return Err(DataError::Fuzzifier);
        }
        let (k, d) = (centres.k(), rows.columns());
        if centres.columns() != d {
            return Err(DataError::ColumnMismatch { expected: d, found: centres.columns() });
        }
        let mut tiles = vec![[0.0; TILE]; k.div_ceil(TILE) * d];
        for (c, centre) in centres.rows().enumerate() {
            for (j, value) in centre.iter().enumerate() {
                tiles[c / TILE * d + j][c % TILE] = *value;
            }
        }
        Ok(Self { centres, tiles, k, d, m, wide_tiles: false })
    }

    /// Adds up `part` over all chunks: in parallel, but always in the order of the rows.
    fn over_chunks(&self, rows: &Packed, width: usize, part: impl Fn(Chunk<'_>) -> Vec<f64> + Sync) -> Vec<f64> {
        let whole = Chunk { lanes: rows.lanes(), valid: rows.len() };
        let chunks: Vec<Chunk<'_>> = whole.split(CHUNK, self.d).collect();
        let mut sums = vec![0.0; width];
        let mut add = |partial: Vec<f64>| sums.iter_mut().zip(partial).for_each(|(sum, value)| *sum += value);
        match chunks.as_slice() {
            // For a small site it is not worth waking other threads.
            [only] => add(part(*only)),
            _ => {
                for wave in chunks.chunks(WAVE) {
                    wave.par_iter().map(|chunk| part(*chunk)).collect::<Vec<_>>().into_iter().for_each(&mut add);
                }
            }
        }
        sums
    }

    /// The coordinates of a point of a block.
    fn point(&self, block: Chunk<'_>, point: usize, x: &mut [f64]) {
        for (column, slot) in x.iter_mut().enumerate() {
            *slot = block.value(point, column, self.d);
        }
    }
}

/// `WS` (K x d), `U` (K), `J` (1) of one chunk.
#[inline(always)]
fn chunk_sums<S: Simd>(simd: S, plan: &Plan<'_>, chunk: Chunk<'_>) -> Vec<f64> {
    let (k, d) = (plan.k, plan.d);
    let mut weights = vec![Lanes::ZERO; BLOCK * k];
    let mut totals = [Lanes::ZERO; BLOCK];
    let mut sums = vec![Lanes::ZERO; k * d + k + 1];
    for block in chunk.split(BLOCK, d) {
        let groups = block.lanes.len() / d;
        let (weights, totals) = (&mut weights[..groups * k], &mut totals[..groups]);
        if plan.m == 2.0 {
            distances::<S, true>(simd, plan, block, weights, totals);
            quadratic_weights(simd, plan, block, weights, totals);
        } else {
            distances::<S, false>(simd, plan, block, weights, totals);
            general_weights(plan, block, weights, totals);
        }
        for point in block.valid..groups * LANES {
            let (group, lane) = (point / LANES, point % LANES);
            weights[group * k..(group + 1) * k].iter_mut().for_each(|weight| weight.0[lane] = 0.0);
            totals[group].0[lane] = 0.0;
        }
        let (ws, rest) = sums.split_at_mut(k * d);
        let (us, js) = rest.split_at_mut(k);
        weighted_sums(simd, plan, block, weights, ws);
        add_columns(simd, weights, us);
        add_columns(simd, totals, js);
    }
    sums.iter().map(Lanes::sum).collect()
}
