//! The local sums of fuzzy c-means in one pass, without an N x K membership matrix (Kolen & Hutcheson 2002).
//!
//! Rows come in groups of 8, dimension-major ([`Packed`]). Two groups at a time become squared distances (tiles of 5 centres in
//! registers) and then weights `u^m`, so that memory and quotients are waited for beside the arithmetic of other groups. A block of 16
//! groups, which stays in the first cache, then goes into the weighted sums. In doubles each point of a group has its own
//! accumulators, chunks of rows are fixed, and everything is added up in a fixed order: the result does not depend on the number of
//! threads, and AVX2 and AVX-512 give the same bits.
//!
//! Where a plan has steps ([`Step`]), sums are whole numbers of them and depend on nothing but the rows.

mod hard;
mod level;
mod plan;
pub mod power;
mod shift;
mod sums;
mod tiles;
mod validity;
mod weights;

#[cfg(test)]
mod tests;

use std::ops::Range;

use fearless_simd::{Level, Simd, dispatch};

use crate::packed::{LANES, Lanes};
use crate::{Centres, Error, Packed};

pub(crate) use hard::{Assigned, over_nearest};
pub use hard::{HardSums, hard_sums};
pub use level::Vectors;
use level::level;
pub use shift::membership_shift;

use plan::{BLOCK, Chunk, Plan, STEP, Set};
pub use sums::Step;
pub(crate) use sums::{Form, Sums};
use tiles::{AsDoubles, AsSteps, Totals, Words, add_values, distances};
pub(crate) use validity::{contributions, validation_form, validity_sums};
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
/// [`Error::ColumnMismatch`], [`Error::Fuzzifier`].
pub fn fuzzy_sums(rows: &Packed, centres: &Centres, m: f64) -> Result<FuzzySums, Error> {
    fuzzy_sums_at(level(), rows, centres, m)
}

/// [`fuzzy_sums`] with a given level of vector instructions.
fn fuzzy_sums_at(level: Level, rows: &Packed, centres: &Centres, m: f64) -> Result<FuzzySums, Error> {
    Ok(all_sums(level, &Plan::new(rows, centres, m)?, rows).swap_remove(0))
}

/// The sums of every set of a plan.
fn all_sums(level: Level, plan: &Plan<'_>, rows: &Packed) -> Vec<FuzzySums> {
    let (k, d) = (plan.k, plan.d);
    let mut sums = vec![0.0; k * d + k + plan.sets.len()];
    let of_chunk = |chunk: Chunk<'_>| dispatch!(level, simd => chunk_sums(simd, plan, chunk));
    plan.over_chunks(rows, of_chunk, |part| sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value));
    let of_set = |(set, objective): (&Set<'_>, &f64)| {
        let Range { start, end } = set.places;
        let (weighted_sums, weights) = (sums[start * d..end * d].to_vec(), sums[k * d + start..k * d + end].to_vec());
        FuzzySums { weighted_sums, weights, objective: *objective }
    };
    plan.sets.iter().zip(&sums[k * (d + 1)..]).map(of_set).collect()
}

/// `WS` (K x d) and `U` (K) of the rows in a form, as [`fuzzy_sums`] or in whole steps, for each of several sets of centres: in one
/// pass over the rows, and the same to the last bit as alone.
///
/// # Errors
/// As [`fuzzy_sums`].
pub(crate) fn fuzzy_forms<'f>(
    rows: &Packed,
    sets: &[&Centres],
    m: f64,
    forms: &'f [Form],
) -> Result<Vec<Sums<'f>>, Error> {
    let steps = |(form, set): (&Form, &&Centres)| Some([form.factor(0)?, form.factor(set.as_slice().len())?]);
    let mut wanted = forms.iter().zip(sets).map(steps);
    let (Some(first), [one, others @ ..]) = (wanted.next(), sets) else { return Ok(Vec::new()) };
    if !wanted.all(|steps| steps == first) {
        let alone = |at: usize| Ok(fuzzy_forms(rows, &sets[at..=at], m, &forms[at..=at])?.swap_remove(0));
        return (0..sets.len()).map(alone).collect();
    }
    let plan = Plan::together(rows, one, others.iter().copied(), m)?;
    let Some(steps) = first else {
        let all = all_sums(level(), &plan, rows).into_iter().zip(forms);
        return Ok(all.map(|(sums, form)| form.whole([sums.weighted_sums, sums.weights].concat())).collect());
    };
    let words = words_of(level(), &plan, rows, steps);
    let (sums, weights) = words.split_at(plan.k * plan.d);
    let of_set = |(set, form): (&Set<'_>, &'f Form)| {
        let Range { start, end } = set.places;
        Sums::of_words(form, [&sums[start * plan.d..end * plan.d], &weights[start..end]].concat())
    };
    Ok(plan.sets.iter().zip(forms).map(of_set).collect())
}

/// `WS` (K x d) and `U` (K) in whole steps, of which there are so many in one unit of either.
fn words_of(level: Level, plan: &Plan<'_>, rows: &Packed, steps: [f64; 2]) -> Vec<i64> {
    let mut words = vec![0i64; plan.k * (plan.d + 1)];
    let of_chunk = |chunk: Chunk<'_>| dispatch!(level, simd => chunk_words(simd, plan, chunk, steps));
    plan.over_chunks(rows, of_chunk, |part: Vec<i64>| {
        words.iter_mut().zip(part).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
    });
    words
}

/// `D`, `A` and `J_m` of the rows for given centres and m (Stallmann & Wilbik 2022, Eqs. 15-17 with q = 1).
///
/// # Errors
/// [`Error::ColumnMismatch`], [`Error::Fuzzifier`].
pub fn fuzzy_validation(rows: &Packed, centres: &Centres, m: f64) -> Result<FuzzyValidation, Error> {
    let mut sums = validation_form(rows, centres, m, &Form::PLAIN)?.into_plain();
    let objective = sums.pop().unwrap_or_default();
    let memberships = sums.split_off(centres.k());
    Ok(FuzzyValidation { distances: sums, memberships, objective })
}

/// What becomes of the weights of a block. It is no closure: one that is not inlined would be compiled for no vectors at all, and call
/// a function for each of their operations.
trait Take<S: Simd> {
    /// Whether the parts of J are wanted; where they are not, they need not be right.
    const OBJECTIVE: bool;
    /// Takes the weights `u^m` of the points of a block, and by set their parts of J.
    fn take(&mut self, simd: S, plan: &Plan<'_>, block: Chunk<'_>, weights: &[Lanes], totals: &[[Lanes; BLOCK]]);
}

/// `WS` and `U` lane by lane, and `J` of every set.
struct InDoubles {
    totals: Totals<AsDoubles, Lanes>,
    js: Vec<Lanes>,
}

impl<S: Simd> Take<S> for InDoubles {
    const OBJECTIVE: bool = true;

    #[inline(always)]
    fn take(&mut self, simd: S, plan: &Plan<'_>, block: Chunk<'_>, weights: &[Lanes], parts: &[[Lanes; BLOCK]]) {
        self.totals.add(simd, plan, block, weights);
        for (parts, js) in parts.iter().zip(&mut self.js) {
            let parts = &parts[..block.lanes.len() / plan.d];
            add_values::<S, _, 1>(simd, AsDoubles, 1, 0, parts, std::slice::from_mut(js));
        }
    }
}

/// `WS` and `U` in whole steps.
struct InSteps(Totals<AsSteps, Words>);

impl<S: Simd> Take<S> for InSteps {
    const OBJECTIVE: bool = false;

    #[inline(always)]
    fn take(&mut self, simd: S, plan: &Plan<'_>, block: Chunk<'_>, weights: &[Lanes], _: &[[Lanes; BLOCK]]) {
        self.0.add(simd, plan, block, weights);
    }
}

/// `WS` (K x d) and `U` (K) of one chunk, and `J` of every set.
#[inline(always)]
fn chunk_sums<S: Simd>(simd: S, plan: &Plan<'_>, chunk: Chunk<'_>) -> Vec<f64> {
    let nothing = |len| vec![Lanes::ZERO; len];
    let totals = Totals { adding: [AsDoubles; 2], products: nothing(plan.k * plan.d), weights: nothing(plan.k) };
    let mut sums = InDoubles { totals, js: nothing(plan.sets.len()) };
    each_block(simd, plan, chunk, &mut sums);
    sums.totals.products.iter().chain(&sums.totals.weights).chain(&sums.js).map(Lanes::sum).collect()
}

/// `WS` (K x d) and `U` (K) of one chunk in whole steps.
#[inline(always)]
fn chunk_words<S: Simd>(simd: S, plan: &Plan<'_>, chunk: Chunk<'_>, steps: [f64; 2]) -> Vec<i64> {
    let nothing = |len| vec![Words([0; LANES]); len];
    let rounders = steps.map(|steps| sums::ROUNDER / steps);
    let (products, weights) = (nothing(plan.k * plan.d), nothing(plan.k));
    let mut sums = InSteps(Totals { adding: rounders.map(AsSteps), products, weights });
    each_block(simd, plan, chunk, &mut sums);
    // Every group, filled up with weights of 0, added the number that rounds once for each of its points.
    let times = (chunk.lanes.len() / plan.d * LANES) as u64;
    let of = |words: &Words, rounder: f64| {
        let sum = words.0.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        sum.wrapping_sub(rounder.to_bits().wrapping_mul(times)) as i64
    };
    let products = sums.0.products.iter().map(|words| of(words, rounders[0]));
    products.chain(sums.0.weights.iter().map(|words| of(words, rounders[1]))).collect()
}

/// Gives each block of a chunk with the weights `u^m` of its points and by set their parts of J to `sums`; both are 0 for the
/// copies that fill the last groups.
#[inline(always)]
fn each_block<S: Simd, T: Take<S>>(simd: S, plan: &Plan<'_>, chunk: Chunk<'_>, sums: &mut T) {
    let (k, d) = (plan.k, plan.d);
    let mut weights = vec![Lanes::ZERO; BLOCK * k];
    let mut totals = vec![[Lanes::ZERO; BLOCK]; plan.sets.len()];
    for block in chunk.split(BLOCK, d) {
        let groups = block.lanes.len() / d;
        let weights = &mut weights[..groups * k];
        for (step, first) in block.split(STEP, d).zip((0..groups).step_by(STEP)) {
            let groups = first..(first + STEP).min(groups);
            let weights = &mut weights[groups.start * k..groups.end * k];
            if plan.m == 2.0 {
                distances::<S, true>(simd, plan, step, weights);
                for (set, totals) in plan.sets.iter().zip(&mut totals) {
                    quadratic_weights(simd, plan, set, step, weights, &mut totals[groups.clone()]);
                }
            } else {
                distances::<S, false>(simd, plan, step, weights);
                for (set, totals) in plan.sets.iter().zip(&mut totals) {
                    let totals = &mut totals[groups.clone()];
                    general_weights(simd, plan, set, step, weights, totals, T::OBJECTIVE);
                }
            }
        }
        for point in block.valid..groups * LANES {
            let (group, lane) = (point / LANES, point % LANES);
            weights[group * k..(group + 1) * k].iter_mut().for_each(|weight| weight.0[lane] = 0.0);
            totals.iter_mut().for_each(|totals| totals[group].0[lane] = 0.0);
        }
        sums.take(simd, plan, block, weights, &totals);
    }
}
