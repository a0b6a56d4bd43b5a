//! From squared distances to the weights `u^m`, for a step of points (Bezdek 1981).

#![expect(clippy::needless_range_loop, reason = "indexed loops with constant bounds keep several vectors in registers")]

use fearless_simd::{Simd, prelude::*};

use super::plan::{Chunk, Plan, STEP, Set, TILE};
use super::power::{exp2, log2};
use super::tiles::{load, store};
use crate::distance::{self, SAFE};
use crate::packed::{LANES, Lanes, read};

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
    simd.vectorize(
        #[inline(always)]
        || {
            if S::f64s::LEN == LANES {
                quadratic_of::<S, 1>(simd, plan, set, block, weights, totals);
            } else {
                quadratic_of::<S, 2>(simd, plan, set, block, weights, totals);
            }
        },
    );
}

/// V vectors of a group at once: a sum over centres waits for each of its additions.
#[inline(always)]
fn quadratic_of<S: Simd, const V: usize>(
    simd: S,
    plan: &Plan<'_>,
    set: &Set<'_>,
    block: Chunk<'_>,
    weights: &mut [Lanes],
    totals: &mut [Lanes],
) {
    let width = S::f64s::LEN;
    let mut odd = [Lanes([1.0; LANES]); STEP];
    let mut any_odd = false;
    for ((weights, total), odd) in weights.chunks_exact_mut(plan.k).zip(totals.iter_mut()).zip(&mut odd) {
        let weights = &mut weights[set.places.clone()];
        for start in (0..LANES).step_by(V * width) {
            let mut sum = [S::f64s::splat(simd, 0.0); V];
            for inverse in weights.iter() {
                for v in 0..V {
                    sum[v] += load(simd, inverse, start + v * width);
                }
            }
            let scale = sum.map(|sum| S::f64s::splat(simd, 1.0) / sum);
            for v in 0..V {
                // Out of range if a row (nearly) coincides with a centre or is absurdly far from all of them.
                if !sum[v].simd_ge(*SAFE.start()).all_true() || !sum[v].simd_le(*SAFE.end()).all_true() {
                    store::<S>(sum[v], odd, start + v * width);
                    any_odd = true;
                }
                // sum_k u^2 d^2 = 1 / sum_k (1 / d^2)
                store::<S>(scale[v], total, start + v * width);
            }
            for weight in weights.iter_mut() {
                for v in 0..V {
                    let u = load(simd, weight, start + v * width) * scale[v];
                    store::<S>(u * u, weight, start + v * width);
                }
            }
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
        read(block.lanes, point, &mut x);
        totals[group].0[lane] = distance::memberships(&x, set.centres.rows(), plan.m, &mut u);
        for (weight, u) in weights[group * plan.k + set.places.start..].iter_mut().zip(&u) {
            weight.0[lane] = distance::power(*u, plan.m);
        }
    }
}

/// Any other m: turns squared distances into weights `u^m` and, where the objective is wanted, each point's part of J, through ratios to
/// the nearest centre: `u_k = r_k / R` with `r_k = (d2_k / d2_min)^(-1/(m-1))`, so `u_k^m = r_k (d2_min / d2_k) / R^m`.
#[inline(always)]
pub(super) fn general_weights<S: Simd>(
    simd: S,
    plan: &Plan<'_>,
    set: &Set<'_>,
    block: Chunk<'_>,
    weights: &mut [Lanes],
    totals: &mut [Lanes],
    objective: bool,
) {
    simd.vectorize(
        #[inline(always)]
        || {
            // Ten vectors side by side.
            if S::f64s::LEN == LANES {
                general_of::<S, 1, { 2 * TILE }, TILE>(simd, plan, set, block, weights, totals, objective);
            } else {
                general_of::<S, 2, TILE, 2>(simd, plan, set, block, weights, totals, objective);
            }
        },
    );
}

/// V vectors of a group and C centres at once, D or one where fewer are left.
#[inline(always)]
fn general_of<S: Simd, const V: usize, const C: usize, const D: usize>(
    simd: S,
    plan: &Plan<'_>,
    set: &Set<'_>,
    block: Chunk<'_>,
    weights: &mut [Lanes],
    totals: &mut [Lanes],
    objective: bool,
) {
    let m = plan.m;
    let splat = |x: f64| S::f64s::splat(simd, x);
    let width = S::f64s::LEN;
    let mut odd = [Lanes([1.0; LANES]); STEP];
    let mut any_odd = false;
    for ((weights, total), odd) in weights.chunks_exact_mut(plan.k).zip(totals.iter_mut()).zip(&mut odd) {
        let weights = &mut weights[set.places.clone()];
        for start in (0..LANES).step_by(V * width) {
            let mut nearest = [splat(f64::INFINITY); V];
            for square in weights.iter() {
                for v in 0..V {
                    nearest[v] = nearest[v].min(load(simd, square, start + v * width));
                }
            }
            for v in 0..V {
                if !nearest[v].simd_ge(*SAFE.start()).all_true() || !nearest[v].simd_le(*SAFE.end()).all_true() {
                    store::<S>(nearest[v], odd, start + v * width);
                    any_odd = true;
                }
            }
            let mut sum = [splat(0.0); V];
            let mut rest = powers::<S, V, C>(simd, weights, start, m, &nearest, &mut sum);
            rest = powers::<S, V, D>(simd, rest, start, m, &nearest, &mut sum);
            powers::<S, V, 1>(simd, rest, start, m, &nearest, &mut sum);
            let [log] = log2::<S, V, 1>(simd, [sum]);
            let [of_weights, of_total] = [-m, 1.0 - m].map(|exponent| log.map(|log| log * splat(exponent)));
            let scale = if objective {
                let [scale, part] = exp2::<S, V, 2>(simd, [of_weights, of_total]);
                for v in 0..V {
                    store::<S>(nearest[v] * part[v], total, start + v * width);
                }
                scale
            } else {
                let [scale] = exp2::<S, V, 1>(simd, [of_weights]);
                scale
            };
            for weight in weights.iter_mut() {
                for v in 0..V {
                    let at = start + v * width;
                    store::<S>(load(simd, weight, at) * scale[v], weight, at);
                }
            }
        }
    }
    if any_odd {
        odd_weights(plan, set, block, weights, totals, |point| !SAFE.contains(&odd[point / LANES].0[point % LANES]));
    }
}

/// Turns squared distances into `r_k (d2_min / d2_k)`, C centres at once as long as there are so many, and adds up `r_k`. Gives back the
/// centres that are left.
#[inline(always)]
fn powers<'w, S: Simd, const V: usize, const C: usize>(
    simd: S,
    weights: &'w mut [Lanes],
    start: usize,
    m: f64,
    nearest: &[S::f64s; V],
    sum: &mut [S::f64s; V],
) -> &'w mut [Lanes] {
    let exponent = S::f64s::splat(simd, 1.0 / (m - 1.0));
    let width = S::f64s::LEN;
    let mut tiles = weights.chunks_exact_mut(C);
    for tile in &mut tiles {
        let mut ratio = [*nearest; C];
        for c in 0..C {
            for v in 0..V {
                ratio[c][v] = nearest[v] / load(simd, &tile[c], start + v * width); // in [0, 1]
            }
        }
        let log = log2::<S, V, C>(simd, ratio);
        let power = exp2::<S, V, C>(simd, log.map(|log| log.map(|log| log * exponent)));
        for c in 0..C {
            for v in 0..V {
                sum[v] += power[c][v];
                store::<S>(power[c][v] * ratio[c][v], &mut tile[c], start + v * width);
            }
        }
    }
    tiles.into_remainder()
}
