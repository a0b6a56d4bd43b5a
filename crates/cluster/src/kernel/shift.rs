//! How far memberships move when centres do: the stop test of a site's own fuzzy c-means, without storing memberships.

#![expect(clippy::needless_range_loop, reason = "loops over the lanes of a group become vectors")]

use fearless_simd::{Simd, dispatch};

use super::level::level;
use super::plan::{BLOCK, Chunk, Plan};
use super::tiles::distances;
use crate::distance::{self, SAFE};
use crate::packed::{LANES, Lanes, read};
use crate::{Centres, Error, Packed, refuse};

/// Frobenius norm of `U' - U`, the memberships (n x K) in `new` centres less those in `old` ones; both K x d.
///
/// # Errors
/// [`Error::ColumnMismatch`], [`Error::CentreShapes`], [`Error::Fuzzifier`].
pub fn membership_shift(rows: &Packed, old: &Centres, new: &Centres, m: f64) -> Result<f64, Error> {
    refuse(old.k() != new.k(), || Error::CentreShapes)?;
    let level = level();
    let (old, new) = (Plan::new(rows, old, m)?, Plan::new(rows, new, m)?);
    let mut total = 0.0;
    old.over_chunks(rows, |chunk| dispatch!(level, simd => chunk_shift(simd, &old, &new, chunk)), |part| total += part);
    Ok(total.sqrt())
}

#[inline(always)]
fn chunk_shift<S: Simd>(simd: S, old: &Plan<'_>, new: &Plan<'_>, chunk: Chunk<'_>) -> f64 {
    let (k, d) = (old.k, old.d);
    let (mut before, mut after) = (vec![Lanes::ZERO; BLOCK * k], vec![Lanes::ZERO; BLOCK * k]);
    let mut total = Lanes::ZERO;
    for block in chunk.split(BLOCK, d) {
        let groups = block.lanes.len() / d;
        for (plan, u) in [(old, &mut before), (new, &mut after)] {
            let u = &mut u[..groups * k];
            distances::<S, false>(simd, plan, block, u);
            for (group, u) in u.chunks_exact_mut(k).enumerate() {
                memberships(plan, block, group, u);
            }
        }
        for (group, (before, after)) in before.chunks_exact(k).zip(after.chunks_exact(k)).take(groups).enumerate() {
            let mut sum = Lanes::ZERO;
            for (before, after) in before.iter().zip(after) {
                for lane in 0..LANES {
                    let difference = after.0[lane] - before.0[lane];
                    sum.0[lane] += difference * difference;
                }
            }
            // The copies that fill the last groups do not count.
            let valid = block.valid.saturating_sub(group * LANES).min(LANES);
            total.0.iter_mut().zip(sum.0).take(valid).for_each(|(total, sum)| *total += sum);
        }
    }
    total.sum()
}

/// Turns the squared distances of a group into memberships, through ratios to the nearest centre.
#[inline(always)]
fn memberships(plan: &Plan<'_>, block: Chunk<'_>, group: usize, u: &mut [Lanes]) {
    let mut nearest = [f64::INFINITY; LANES];
    for square in u.iter() {
        for lane in 0..LANES {
            nearest[lane] = nearest[lane].min(square.0[lane]);
        }
    }
    let mut sum = [0.0; LANES];
    let exponent = 1.0 / (plan.m - 1.0);
    for slot in u.iter_mut() {
        for lane in 0..LANES {
            let ratio = nearest[lane] / slot.0[lane];
            slot.0[lane] = if plan.m == 2.0 { ratio } else { ratio.powf(exponent) };
            sum[lane] += slot.0[lane];
        }
    }
    for slot in u.iter_mut() {
        for lane in 0..LANES {
            slot.0[lane] /= sum[lane];
        }
    }
    if nearest.iter().any(|square| !SAFE.contains(square)) {
        odd_memberships(plan, block, group, &nearest, u);
    }
}

/// Recomputes, one by one and safely, rows that (nearly) coincide with a centre or are absurdly far from all.
#[inline(never)]
fn odd_memberships(plan: &Plan<'_>, block: Chunk<'_>, group: usize, nearest: &[f64; LANES], u: &mut [Lanes]) {
    let (mut x, mut own) = (vec![0.0; plan.d], vec![0.0; plan.k]);
    for lane in (0..LANES).filter(|lane| !SAFE.contains(&nearest[*lane])) {
        read(block.lanes, group * LANES + lane, &mut x);
        distance::memberships(&x, plan.centres.rows(), plan.m, &mut own);
        u.iter_mut().zip(&own).for_each(|(slot, u)| slot.0[lane] = *u);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::{Rows, assign};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_whole_matrices(
            n in 0usize..300,
            d in 1usize..=9,
            k in 1usize..=7,
            m in prop::sample::select(vec![2.0, 1.1, 1.7, 3.0]),
            seed in any::<u64>(),
        ) {
            let mut stream = Stream::new(seed, b"veilsum test stream     ");
            // A coarse grid: rows coincide with centres.
            let mut draw = |n: usize| (0..n * d).map(|_| stream.below(4) as f64 / 4.0).collect::<Vec<_>>();
            let rows = Rows::new(draw(n), d).unwrap();
            let (old, new) = (Centres::new(k, d, draw(k)).unwrap(), Centres::new(k, d, draw(k)).unwrap());
            let found = membership_shift(&Packed::new(&rows), &old, &new, m).unwrap();
            let difference = assign::memberships(&rows, &new, m).unwrap() - assign::memberships(&rows, &old, m).unwrap();
            let expected = difference.iter().map(|x| x * x).sum::<f64>().sqrt();
            prop_assert!((found - expected).abs() <= 1e-12 * (1.0 + expected), "{found} {expected}");
        }
    }

    #[test]
    fn shapes_must_fit() {
        let packed = Packed::new(&Rows::new(vec![0.5], 1).unwrap());
        let (one, two) = (Centres::known(vec![[0.0]]), Centres::known(vec![[0.0], [1.0]]));
        assert!(membership_shift(&packed, &one, &two, 2.0).is_err());
        assert!(membership_shift(&packed, &two, &two, 1.0).is_err());
        assert_eq!(membership_shift(&packed, &two, &two, 2.0), Ok(0.0));
    }
}
