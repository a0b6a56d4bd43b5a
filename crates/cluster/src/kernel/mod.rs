//! The local sums of fuzzy c-means in one pass, without an N x K membership matrix (Kolen & Hutcheson 2002).
//!
//! Rows come in groups of 8, dimension-major ([`Packed`]). A block of 16 groups goes through three phases whose data stay
//! in the first cache: squared distances (tiles of 5 centres in registers), weights `u^m`, weighted sums. Each point of a
//! group has its own accumulators, chunks of rows are fixed, and everything is added up in a fixed order: the result does
//! not depend on the number of threads, and AVX2 and AVX-512 give the same bits.

mod hard;
mod plan;
mod shift;
mod tiles;
mod validation;
mod validity;
mod weights;

#[cfg(test)]
mod tests;

use fearless_simd::{Level, Simd, dispatch};

use crate::packed::{LANES, Lanes};
use crate::{Centres, DataError, Packed};

pub use hard::{HardSums, Nearest, hard_sums, nearest};
pub use shift::membership_shift;

pub(crate) use plan::CHUNK_ROWS;
use plan::{BLOCK, Chunk, Plan};
use tiles::{add_columns, distances, weighted_sums};
use validation::chunk_validation;
pub(crate) use validity::{over_rows, validity_sums};
use weights::{general_weights, quadratic_weights};

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
