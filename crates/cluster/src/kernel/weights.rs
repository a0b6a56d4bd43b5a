//! From squared distances to the weights `u^m`, for a block of points (Bezdek 1981).

use fearless_simd::{Simd, prelude::*};

use super::plan::{BLOCK, Chunk, Plan, Set};
use super::power::{exp2, log2};
use super::tiles::{load, store};
use crate::distance::{self, SAFE};
use crate::packed::{LANES, Lanes};

/// m = 2: turns reciprocals of squared distances to the centres of a set into weights `u^2` and each point's part of J.
#[inline(always)]
pub(super) fn quadratic_weights<S: Simd>(
    simd: S,
    plan: &Plan<'_>,
    set: &Set<'_>,
    block: Chunk<'_>,
    weights: &mut [Lanes],
    totals: &mut [Lanes],
) {
    let mut odd = [Lanes([1.0; LANES]); BLOCK];
    let mut any_odd = false;
    for ((weights, total), odd) in weights.chunks_exact_mut(plan.k).zip(totals.iter_mut()).zip(&mut odd) {
        let weights = &mut weights[set.places.clone()];
        for at in (0..LANES).step_by(S::f64s::LEN) {
            let mut sum = S::f64s::splat(simd, 0.0);
            for inverse in weights.iter() {
                sum += load(simd, inverse, at);
            }
            // Out of range if a row (nearly) coincides with a centre or is absurdly far from all of them.
            if !sum.simd_ge(*SAFE.start()).all_true() || !sum.simd_le(*SAFE.end()).all_true() {
                store::<S>(sum, odd, at);
                any_odd = true;
            }
            let scale = S::f64s::splat(simd, 1.0) / sum;
            for weight in weights.iter_mut() {
                let u = load(simd, weight, at) * scale;
                store::<S>(u * u, weight, at);
            }
            // sum_k u^2 d^2 = 1 / sum_k (1 / d^2)
            store::<S>(scale, total, at);
        }
    }
    if any_odd {
        odd_weights(plan, set, block, weights, totals, |point| !SAFE.contains(&odd[point / LANES].0[point % LANES]));
    }
}

/// Recomputes the points that `odd` names, one by one and safely.
#[inline(never)]
fn odd_weights(
    plan: &Plan<'_>,
    set: &Set<'_>,
    block: Chunk<'_>,
    weights: &mut [Lanes],
    totals: &mut [Lanes],
    odd: impl Fn(usize) -> bool,
) {
    let (mut x, mut u) = (vec![0.0; plan.d], vec![0.0; set.places.len()]);
    for point in (0..block.valid).filter(|point| odd(*point)) {
        let (group, lane) = (point / LANES, point % LANES);
        block.lanes.read(point, &mut x);
        totals[group].0[lane] = distance::memberships(&x, set.centres.rows(), plan.m, &mut u);
        for (weight, u) in weights[group * plan.k + set.places.start..].iter_mut().zip(&u) {
            weight.0[lane] = distance::power(*u, plan.m);
        }
    }
}

/// Any other m: turns squared distances into weights `u^m` and each point's part of J, through ratios to the nearest
/// centre: `u_k = r_k / R` with `r_k = (d2_k / d2_min)^(-1/(m-1))`, so `u_k^m = r_k (d2_min / d2_k) / R^m`.
#[inline(always)]
pub(super) fn general_weights<S: Simd>(
    simd: S,
    plan: &Plan<'_>,
    set: &Set<'_>,
    block: Chunk<'_>,
    weights: &mut [Lanes],
    totals: &mut [Lanes],
) {
    let m = plan.m;
    let splat = |x: f64| S::f64s::splat(simd, x);
    let mut odd = [Lanes([1.0; LANES]); BLOCK];
    let mut any_odd = false;
    for ((weights, total), odd) in weights.chunks_exact_mut(plan.k).zip(totals.iter_mut()).zip(&mut odd) {
        let weights = &mut weights[set.places.clone()];
        for at in (0..LANES).step_by(S::f64s::LEN) {
            let mut nearest = splat(f64::INFINITY);
            for square in weights.iter() {
                nearest = nearest.min(load(simd, square, at));
            }
            if !nearest.simd_ge(*SAFE.start()).all_true() || !nearest.simd_le(*SAFE.end()).all_true() {
                store::<S>(nearest, odd, at);
                any_odd = true;
            }
            let mut sum = splat(0.0);
            for weight in weights.iter_mut() {
                let ratio = nearest / load(simd, weight, at); // in [0, 1]
                let power = exp2(simd, log2(simd, ratio) * splat(1.0 / (m - 1.0)));
                sum += power;
                store::<S>(power * ratio, weight, at);
            }
            let log_of_sum = log2(simd, sum);
            let scale = exp2(simd, log_of_sum * splat(-m));
            for weight in weights.iter_mut() {
                store::<S>(load(simd, weight, at) * scale, weight, at);
            }
            store::<S>(nearest * exp2(simd, log_of_sum * splat(1.0 - m)), total, at);
        }
    }
    if any_odd {
        odd_weights(plan, set, block, weights, totals, |point| !SAFE.contains(&odd[point / LANES].0[point % LANES]));
    }
}
