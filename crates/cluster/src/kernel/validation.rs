//! The sums of the validation round (Stallmann & Wilbik 2022, Eqs. 15-17).

use fearless_simd::Simd;

use super::plan::{BLOCK, Chunk, Plan};
use super::sums::Sums;
use super::tiles::distances;
use crate::distance::{self, SAFE};
use crate::packed::{LANES, Lanes};

/// `D` (K), `A` (K), `J` (1) of one chunk. Asked once in a run, so only the distances are vectors.
#[inline(always)]
pub(super) fn chunk_validation<S: Simd>(simd: S, plan: &Plan<'_>, chunk: Chunk<'_>, sums: &mut Sums<'_>) {
    let k = plan.k;
    let mut squares = vec![Lanes::ZERO; BLOCK * k];
    for block in chunk.split(BLOCK, plan.d) {
        let groups = block.lanes.len() / plan.d;
        let squares = &mut squares[..groups * k];
        distances::<S, false>(simd, plan, block, squares);
        validate_block(plan, block, squares, sums);
    }
}

#[inline(never)]
fn validate_block(plan: &Plan<'_>, block: Chunk<'_>, squares: &[Lanes], sums: &mut Sums<'_>) {
    let k = plan.k;
    let (mut x, mut u) = (vec![0.0; plan.d], vec![0.0; k]);
    for point in 0..block.valid {
        let (group, lane) = (point / LANES, point % LANES);
        let squares = &squares[group * k..(group + 1) * k];
        if squares.iter().all(|square| SAFE.contains(&square.0[lane])) {
            let nearest = squares.iter().map(|square| square.0[lane]).fold(f64::INFINITY, f64::min);
            let mut sum = 0.0;
            for (c, (u, square)) in u.iter_mut().zip(squares).enumerate() {
                let ratio = nearest / square.0[lane];
                *u = if plan.m == 2.0 || ratio == 1.0 { ratio } else { ratio.powf(1.0 / (plan.m - 1.0)) };
                sum += *u;
                sums.add(c, square.0[lane].sqrt());
            }
            u.iter_mut().for_each(|u| *u /= sum);
            sums.add(2 * k, if plan.m == 2.0 { nearest / sum } else { nearest * sum.powf(1.0 - plan.m) });
        } else {
            block.lanes.read(point, &mut x);
            sums.add(2 * k, distance::memberships(&x, plan.centres.rows(), plan.m, &mut u));
            sums.add_all(0, plan.centres.rows().map(|centre| distance::euclidean(&x, centre)));
        }
        sums.add_all(k, u.iter().copied());
    }
}
