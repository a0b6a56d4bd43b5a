//! The sums of the validation round (Stallmann & Wilbik 2022, Eqs. 15-17).

use fearless_simd::Simd;

use super::plan::{BLOCK, Chunk, Plan};
use super::tiles::distances;
use crate::distance::{self, SAFE};
use crate::packed::{LANES, Lanes};

/// `D` (K), `A` (K), `J` (1) of one chunk. Asked once in a run, so only the distances are vectors.
#[inline(always)]
pub(super) fn chunk_validation<S: Simd>(simd: S, plan: &Plan<'_>, chunk: Chunk<'_>) -> Vec<f64> {
    let k = plan.k;
    let mut squares = vec![Lanes::ZERO; BLOCK * k];
    let mut unused = [Lanes::ZERO; BLOCK];
    let mut sums = vec![0.0; 2 * k + 1];
    for block in chunk.split(BLOCK, plan.d) {
        let groups = block.lanes.len() / plan.d;
        let squares = &mut squares[..groups * k];
        distances::<S, false>(simd, plan, block, squares, &mut unused[..groups]);
        validate_block(plan, block, squares, &mut sums);
    }
    sums
}

#[inline(never)]
fn validate_block(plan: &Plan<'_>, block: Chunk<'_>, squares: &[Lanes], sums: &mut [f64]) {
    let k = plan.k;
    let (mut x, mut u) = (vec![0.0; plan.d], vec![0.0; k]);
    for point in 0..block.valid {
        let (group, lane) = (point / LANES, point % LANES);
        let squares = &squares[group * k..(group + 1) * k];
        let (distances, rest) = sums.split_at_mut(k);
        let (memberships, objective) = rest.split_at_mut(k);
        if squares.iter().all(|square| SAFE.contains(&square.0[lane])) {
            let nearest = squares.iter().map(|square| square.0[lane]).fold(f64::INFINITY, f64::min);
            let mut sum = 0.0;
            for ((u, square), distance) in u.iter_mut().zip(squares).zip(distances) {
                let ratio = nearest / square.0[lane];
                *u = if plan.m == 2.0 || ratio == 1.0 { ratio } else { ratio.powf(1.0 / (plan.m - 1.0)) };
                sum += *u;
                *distance += square.0[lane].sqrt();
            }
            u.iter_mut().for_each(|u| *u /= sum);
            objective[0] += if plan.m == 2.0 { nearest / sum } else { nearest * sum.powf(1.0 - plan.m) };
        } else {
            plan.point(block, point, &mut x);
            objective[0] += distance::memberships(&x, plan.centres.rows(), plan.m, &mut u);
            for (distance, centre) in distances.iter_mut().zip(plan.centres.rows()) {
                *distance += distance::euclidean(&x, centre);
            }
        }
        memberships.iter_mut().zip(&u).for_each(|(sum, u)| *sum += u);
    }
}
