//! Sums of rows by nearest centre, the local part of k-means (Lloyd 1982): rows, `sum x` and scatter of each group.
//!
//! Distances are those of the fuzzy kernel; each row then adds to its own centre only, in the order of the rows, so the
//! result does not depend on the number of threads. Squared distances must stay in the range of `f64`; where they do not,
//! centres may tie. Among equals the lowest index counts.

use super::level::level;
use super::plan::{BLOCK, Chunk, Plan};
use super::sums::{Form, Sums};
use super::tiles::distances;
use crate::packed::{LANES, Lanes, each};
use crate::{Centres, Error, Packed};
use fearless_simd::{Simd, dispatch};

/// Sums of the rows that are nearest to each centre, working units.
#[derive(Debug, Clone, PartialEq)]
pub struct HardSums {
    /// Rows of each group, K.
    pub counts: Vec<f64>,
    /// `sum x`, K x d, row-major.
    pub sums: Vec<f64>,
    /// `sum ||x - c_k||^2` over the rows of the group, K.
    pub squares: Vec<f64>,
}

/// Rows, sums and scatter by nearest centre.
///
/// # Errors
/// [`Error::ColumnMismatch`].
pub fn hard_sums(rows: &Packed, centres: &Centres) -> Result<HardSums, Error> {
    let (k, d) = (centres.k(), rows.columns());
    let mut counts = over_nearest(rows, centres, &Form::PLAIN, k * (d + 2), |row, sums| {
        sums.add(row.own, 1.0);
        row.add_to(sums, k + row.own * d);
        sums.add(k * (d + 1) + row.own, row.square);
    })?
    .into_plain();
    let mut sums = counts.split_off(k);
    let squares = sums.split_off(k * d);
    Ok(HardSums { counts, sums, squares })
}

/// A row and its nearest centre.
pub(crate) struct Assigned<'a> {
    /// The centre's index; among equals the lowest.
    pub(crate) own: usize,
    /// Squared distance to it.
    pub(crate) square: f64,
    block: Chunk<'a>,
    point: usize,
    d: usize,
}

impl Assigned<'_> {
    /// Adds its d coordinates to neighbouring entries, from `first` on.
    #[inline(always)]
    pub(crate) fn add_to(&self, sums: &mut Sums<'_>, first: usize) {
        each(self.block.lanes, self.point, self.d, |column, x| sums.add(first + column, x));
    }
}

/// Adds up what `add` adds for every row, which gets to know the row's nearest centre.
///
/// # Errors
/// [`Error::ColumnMismatch`].
pub(crate) fn over_nearest<'f>(
    rows: &Packed,
    centres: &Centres,
    form: &'f Form,
    width: usize,
    add: impl Fn(&Assigned<'_>, &mut Sums<'f>) + Sync,
) -> Result<Sums<'f>, Error> {
    let level = level();
    let plan = Plan::new(rows, centres, 2.0)?;
    Ok(plan.sums(rows, form, width, |chunk, sums| {
        dispatch!(level, simd => each_block(simd, &plan, chunk, |block, best, index| {
            for point in 0..block.valid {
                let (group, lane) = (point / LANES, point % LANES);
                let (own, square) = (index[group].0[lane] as usize, best[group].0[lane]);
                add(&Assigned { own, square, block, point, d: plan.d }, sums);
            }
        }));
    }))
}

/// Calls `take` for each block with the smallest squared distance of every point and its centre's index (as a number, so
/// that both fill equal vectors).
#[inline(always)]
fn each_block<'a, S: Simd>(
    simd: S,
    plan: &Plan<'_>,
    chunk: Chunk<'a>,
    mut take: impl FnMut(Chunk<'a>, &[Lanes], &[Lanes]),
) {
    let (k, d) = (plan.k, plan.d);
    let mut squares = vec![Lanes::ZERO; BLOCK * k];
    let (mut best, mut index) = ([Lanes::ZERO; BLOCK], [Lanes::ZERO; BLOCK]);
    for block in chunk.split(BLOCK, d) {
        let groups = block.lanes.len() / d;
        let squares = &mut squares[..groups * k];
        distances::<S, false>(simd, plan, block, squares);
        for ((squares, best), index) in squares.chunks_exact(k).zip(&mut best).zip(&mut index) {
            (*best, *index) = smallest(squares);
        }
        take(block, &best[..groups], &index[..groups]);
    }
}

#[inline(always)]
fn smallest(squares: &[Lanes]) -> (Lanes, Lanes) {
    let (mut best, mut index) = ([f64::INFINITY; LANES], [0.0; LANES]);
    for (c, square) in squares.iter().enumerate() {
        let c = c as f64;
        for lane in 0..LANES {
            let closer = square.0[lane] < best[lane];
            best[lane] = if closer { square.0[lane] } else { best[lane] };
            index[lane] = if closer { c } else { index[lane] };
        }
    }
    (Lanes(best), Lanes(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::{Rows, distance};
    use proptest::prelude::*;

    fn random(n: usize, d: usize, stream: &mut Stream) -> Vec<f64> {
        // On a coarse grid, where centres tie, as often as not.
        let grid = stream.below(2) == 0;
        (0..n * d).map(|_| if grid { stream.below(5) as f64 / 4.0 } else { stream.unit() }).collect()
    }

    proptest! {
        #[test]
        fn as_a_plain_loop(n in 0usize..400, d in 1usize..=20, k in 1usize..=13, seed in any::<u64>()) {
            let mut stream = Stream::new(seed, b"veilsum test stream     ");
            let rows = Rows::new(random(n, d, &mut stream), d).unwrap();
            let centres = Centres::new(k, d, random(k, d, &mut stream)).unwrap();
            let packed = Packed::new(&rows);
            let found = hard_sums(&packed, &centres).unwrap();
            let (mut counts, mut sums, mut squares) = (vec![0.0; k], vec![0.0; k * d], vec![0.0; k]);
            for row in rows.iter() {
                let (own, square) = distance::nearest(row, centres.rows());
                counts[own] += 1.0;
                squares[own] += square;
                sums[own * d..][..d].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            prop_assert_eq!(&found.counts, &counts);
            prop_assert_eq!(&found.sums, &sums);
            prop_assert!(found.squares.iter().zip(&squares).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b)));
        }
    }
}
