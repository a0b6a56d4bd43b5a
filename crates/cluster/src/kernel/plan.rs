//! The shape of a problem, and the stretches of rows in which the kernel goes through it.

use std::ops::Range;

use rayon::prelude::*;

use super::sums::{Form, Sums};
use crate::distance::check_fuzzifier;
use crate::error::same_columns;
use crate::packed::{LANES, Lanes};
use crate::{Centres, Error, Packed};

/// Groups in a block: 128 points.
pub(super) const BLOCK: usize = 16;
/// Groups in a chunk, the unit of parallel work: 8,192 points, independent of the number of threads.
pub(super) const CHUNK: usize = 64 * BLOCK;
/// Points in a chunk.
pub(crate) const CHUNK_ROWS: usize = CHUNK * LANES;
/// Chunks whose partial sums are held at once.
pub(super) const WAVE: usize = 64;
/// Groups whose distances become weights before the next ones are read, so that memory and quotients are waited for beside the
/// arithmetic of other groups. As many as a tile of 512-bit vectors takes.
pub(super) const STEP: usize = 2;
/// Centres whose accumulators stay in registers together.
pub(super) const TILE: usize = 5;

/// The centres as the distance phase reads them, and the shape of the problem.
pub(super) struct Plan<'a> {
    /// The centres, where there is one set of them; else those of the first set.
    pub(super) centres: &'a Centres,
    /// Sets of centres that are answered in one pass over the rows, each as if it were alone.
    pub(super) sets: Vec<Set<'a>>,
    /// For each tile of centres d arrays: one coordinate of up to 5 centres, of one set after the other.
    pub(super) tiles: Vec<[f64; TILE]>,
    /// Centres of all sets.
    pub(super) k: usize,
    pub(super) d: usize,
    pub(super) m: f64,
    /// Tiles for 512-bit vectors at any level; only tests set it.
    pub(super) wide_tiles: bool,
}

/// Centres that a row's memberships are shared among.
pub(super) struct Set<'a> {
    pub(super) centres: &'a Centres,
    /// Their places among those of all sets.
    pub(super) places: Range<usize>,
}

/// A stretch of rows: whole groups, of whose points the first `valid` are real.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    pub(super) lanes: &'a [Lanes],
    pub(super) valid: usize,
}

impl<'a> Chunk<'a> {
    /// All rows.
    pub(super) fn whole(rows: &'a Packed) -> Self {
        Self { lanes: rows.lanes(), valid: rows.len() }
    }

    /// Splits into stretches of at most `groups` groups.
    pub(super) fn split(self, groups: usize, d: usize) -> impl Iterator<Item = Chunk<'a>> {
        let all = self.lanes.len() / d;
        (0..all).step_by(groups).map(move |first| {
            let count = groups.min(all - first);
            let lanes = &self.lanes[first * d..(first + count) * d];
            Chunk { lanes, valid: self.valid.saturating_sub(first * LANES).min(count * LANES) }
        })
    }
}

/// Whether these rows have memberships to these centres.
pub(super) fn fits(rows: &Packed, centres: &Centres, m: f64) -> Result<(), Error> {
    check_fuzzifier(m)?;
    same_columns(rows.columns(), centres.columns())
}

impl<'a> Plan<'a> {
    pub(super) fn new(rows: &Packed, centres: &'a Centres, m: f64) -> Result<Self, Error> {
        Self::together(rows, centres, std::iter::empty(), m)
    }

    /// For several sets of centres at once.
    pub(super) fn together(
        rows: &Packed,
        first: &'a Centres,
        others: impl Iterator<Item = &'a Centres>,
        m: f64,
    ) -> Result<Self, Error> {
        let (mut k, d, mut sets) = (0, rows.columns(), Vec::new());
        for centres in std::iter::once(first).chain(others) {
            fits(rows, centres, m)?;
            sets.push(Set { centres, places: k..k + centres.k() });
            k += centres.k();
        }
        let mut tiles = vec![[0.0; TILE]; k.div_ceil(TILE) * d];
        for (c, centre) in sets.iter().flat_map(|set| set.centres.rows()).enumerate() {
            for (j, value) in centre.iter().enumerate() {
                tiles[c / TILE * d + j][c % TILE] = *value;
            }
        }
        Ok(Self { centres: first, sets, tiles, k, d, m, wide_tiles: false })
    }

    /// Gives `part` of every chunk to `add`: in parallel, but always in the order of the rows.
    pub(super) fn over_chunks<T: Send>(
        &self,
        rows: &Packed,
        part: impl Fn(Chunk<'_>) -> T + Sync,
        mut add: impl FnMut(T),
    ) {
        let chunks: Vec<Chunk<'_>> = Chunk::whole(rows).split(CHUNK, self.d).collect();
        match chunks.as_slice() {
            // For a small site it is not worth waking other threads.
            [only] => add(part(*only)),
            _ => {
                for wave in chunks.chunks(WAVE) {
                    wave.par_iter().map(|chunk| part(*chunk)).collect::<Vec<_>>().into_iter().for_each(&mut add);
                }
            }
        }
    }

    /// The sums of all chunks, of which each adds its own.
    pub(super) fn sums<'f>(
        &self,
        rows: &Packed,
        form: &'f Form,
        width: usize,
        part: impl Fn(Chunk<'_>, &mut Sums<'f>) + Sync,
    ) -> Sums<'f> {
        let mut sums = form.nothing(width);
        let of_chunk = |chunk: Chunk<'_>| {
            let mut own = form.nothing(width);
            part(chunk, &mut own);
            own
        };
        self.over_chunks(rows, of_chunk, |own| sums.merge(own));
        sums
    }
}
