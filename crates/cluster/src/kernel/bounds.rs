//! Sums of rows by nearest centre, question after question: bounds on distances spare every row whose cluster cannot have changed
//! (Hamerly 2010, "Making k-means even faster").
//!
//! Of every row the nearest centre a is kept, and one number, which says until when that cannot change. Let r_a and r_b be the distances
//! to the nearest and the second nearest centre when the row was measured. If since then centre c has moved by m_c in all, the
//! row is no farther from a than r_a + m_a and no nearer to any other centre than r_b - M_a, where M_a adds up the farthest moves of
//! all centres but a. As long as r_b - r_a > m_a + M_a, the nearest centre is still a. The right side is the *drift* of centre a. It
//! only grows, so a row's bound, the drift at which it has to be measured again, is written once for each time that it is measured.
//! (Hamerly keeps an upper and a lower bound; this is their difference.)
//!
//! # Rounding
//!
//! The plain pass compares squares as computed, and ties go to the lowest index. So the bound has to prove that the SQUARE AS COMPUTED
//! to every other centre is larger, and not only the distance. Let u = 2^-53, and g = (d + 2) u / (1 - (d + 2) u).
//!
//! * A square s of d columns as computed is s (1 + e) + t with |e| <= g and |t| <= d 2^-1075: two roundings for each difference squared, one for the
//!   product, d - 1 for the sum; t is what products lose that leave the range of normal numbers. Hence a distance r is the computed
//!   root up to a factor of 1 + 2 g and up to h = 2^-520, which is more than sqrt(4 d 2^-1075) for d below 2^30.
//! * Let x and y be the row's distances from a and from another centre. If y > (1 + 2 g) x + h, then
//!   y^2 (1 - g) > x^2 (1 + 2 g)^2 (1 - g) + h^2 (1 - g) >= x^2 (1 + g) + 2 d 2^-1075, so the computed square of y is the larger one, strictly:
//!   no tie, whatever the indices.
//! * So it suffices that r_b - (1 + 2 g) r_a - h > (1 + 2 g) (m_a + M_a). With the computed roots this costs at most 8 g (r_a + r_b) + 4 h, and
//!   the operations of the bound and of the drift round by a few u of their operands. [`Margin`] takes 64 (d + 4) u of the operands and 10^-150, which is more
//!   than all of that; the bound is then rounded down to single precision.
//! * A row whose second square is above 10^300, and with it every row that has a square beyond `f64`, gets no bound. For the others x stays
//!   below 3 10^150, so the computed square of x is finite.
//!
//! Sums are whole steps of each row's contribution ([SUM-1]), which does not depend on the centres. A row that changes its cluster is
//! taken out of one sum and put into another, and the words are those of the plain pass ([`over_nearest`](super::over_nearest)).

use fearless_simd::{Simd, dispatch};
use rayon::prelude::*;

use super::level::level;
use super::plan::{BLOCK, CHUNK, CHUNK_ROWS, Chunk, Plan};
use super::sums::{Form, Sums, rounded};
use super::tiles::distances;
use crate::packed::{LANES, Lanes, Stored};
use crate::{Centres, Error, Packed, distance};

/// Points in a block.
const POINTS: usize = BLOCK * LANES;
/// The cluster of a row that was not measured yet.
const NONE: u32 = u32::MAX;
/// Squares above this bound nothing.
const FAR: f64 = 1e300;

/// What is known of one row.
#[derive(Clone, Copy)]
struct Held {
    /// Its nearest centre; among equals the lowest.
    own: u32,
    /// The drift of that centre from which on the row has to be measured again.
    until: f32,
}

/// How much more than the rounded numbers say is asked for (see the module's page).
#[derive(Clone, Copy)]
struct Margin {
    relative: f64,
    absolute: f64,
}

impl Margin {
    fn new(columns: usize) -> Self {
        Self { relative: (columns as f64 + 4.0) * 2f64.powi(-47), absolute: 1e-150 }
    }

    /// How far the drift may grow, of the two smallest squares of the points of a group.
    #[inline(always)]
    fn slack(self, best: &[f64; LANES], second: &[f64; LANES]) -> [f64; LANES] {
        let mut slack = [0.0; LANES];
        for lane in 0..LANES {
            let (near, far) = (best[lane].sqrt(), second[lane].sqrt());
            let found = (far - near) - self.relative * (far + near) - self.absolute;
            slack[lane] = if second[lane] > FAR { f64::NEG_INFINITY } else { found };
        }
        slack
    }

    /// The drift from which on a row has to be measured again, of its slack and the drift now.
    #[inline(always)]
    fn until(self, slack: f64, drift: f64) -> f32 {
        let until = slack - self.relative * drift + drift;
        let single = until as f32;
        if f64::from(single) > until { single.next_down() } else { single }
    }

    /// The drift of every centre after they have moved.
    fn moved(self, drift: &mut [f64], from: &Centres, to: &Centres) {
        let moves: Vec<f64> = from.rows().zip(to.rows()).map(|(a, b)| distance::squared(a, b).sqrt()).collect();
        let farthest = |but: usize| {
            let others = moves.iter().enumerate().filter(|(c, _)| *c != but);
            others.max_by(|a, b| a.1.total_cmp(b.1)).map_or((0, 0.0), |(c, m)| (c, *m))
        };
        let (first, most) = farthest(usize::MAX);
        let (_, next) = farthest(first);
        for (c, (drift, own)) in drift.iter_mut().zip(&moves).enumerate() {
            let others = if c == first { next } else { most };
            *drift = (*drift + (own + others + self.absolute)) * (1.0 + self.relative);
        }
    }
}

/// The nearest centre of every row at the centres that were asked about last, and the sums that follow from it.
pub(crate) struct Bounds {
    centres: Centres,
    rows: Vec<Held>,
    /// By centre (K), since the rows were measured first.
    drift: Vec<f64>,
    /// Rows of each cluster, K.
    counts: Vec<i64>,
    /// Steps in one unit, and `sum x` of each cluster in these steps, K x d.
    sums: Option<(f64, Vec<i64>)>,
}

impl Bounds {
    /// Bytes that it takes for n rows of d columns and K centres at most.
    pub(crate) fn bytes(n: usize, d: usize, k: usize) -> u64 {
        let (n, d, k) = (n as u64, d as u64, k as u64);
        n * size_of::<Held>() as u64 + 8 * k * (2 * d + 2)
    }

    /// Measures all rows.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub(crate) fn new(rows: &Packed, centres: &Centres) -> Result<Self, Error> {
        let mut bounds = Self {
            centres: centres.clone(),
            rows: vec![Held { own: NONE, until: f32::NEG_INFINITY }; rows.len()],
            drift: vec![0.0; centres.k()],
            counts: vec![0; centres.k()],
            sums: None,
        };
        bounds.measure(rows)?;
        Ok(bounds)
    }

    /// Number of centres, K.
    pub(crate) fn k(&self) -> usize {
        self.centres.k()
    }

    /// How far these centres (K x d) are from those that were asked about last: the sum of squared distances.
    pub(crate) fn far(&self, centres: &Centres) -> f64 {
        distance::squared(self.centres.as_slice(), centres.as_slice())
    }

    /// Moves on to other centres (K x d): measures the rows that it has to, of the rows that it was made of.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`], [`Error::CentreCount`].
    pub(crate) fn move_to(&mut self, rows: &Packed, centres: &Centres) -> Result<(), Error> {
        if centres.k() != self.k() {
            return Err(Error::CentreCount { expected: self.k(), found: centres.k() });
        }
        if *centres == self.centres {
            return Ok(());
        }
        Margin::new(rows.columns()).moved(&mut self.drift, &self.centres, centres);
        self.centres = centres.clone();
        self.measure(rows)
    }

    /// Brings every row up to the centres at hand.
    fn measure(&mut self, rows: &Packed) -> Result<(), Error> {
        let plan = Plan::new(rows, &self.centres, 2.0)?;
        let margin = Margin::new(plan.d);
        let steps = self.sums.as_ref().map(|(steps, _)| *steps);
        let work = Work { plan: &plan, margin, drift: &self.drift, steps };
        let level = level();
        let parts = chunks(rows).into_par_iter().zip(self.rows.par_chunks_mut(CHUNK_ROWS));
        let moved = parts
            .map(|(chunk, held)| dispatch!(level, simd => chunk_moves(simd, &work, chunk, held)))
            .reduce(Moves::default, Moves::and);
        if moved.counts.is_empty() {
            return Ok(());
        }
        add(&mut self.counts, &moved.counts);
        if let Some((_, sums)) = &mut self.sums {
            add(sums, &moved.sums);
        }
        Ok(())
    }

    /// Adds the number of rows of every cluster, from an entry on.
    pub(crate) fn add_counts(&self, sums: &mut Sums<'_>, first: usize) {
        self.counts.iter().enumerate().for_each(|(c, count)| sums.add_times(first + c, 1.0, *count));
    }

    /// Adds the sums of the rows of every cluster, from an entry on; false where a row's contribution is no number of steps.
    pub(crate) fn add_sums(&mut self, rows: &Packed, form: &Form, sums: &mut Sums<'_>, first: usize) -> bool {
        let Some(steps) = form.factor(first) else { return false };
        if self.sums.as_ref().is_none_or(|(known, _)| *known != steps) {
            let Some(words) = self.all_sums(rows, steps) else { return false };
            self.sums = Some((steps, words));
        }
        if let Some((_, words)) = &self.sums {
            sums.add_words(first, words);
        }
        true
    }

    fn all_sums(&self, rows: &Packed, steps: f64) -> Option<Vec<i64>> {
        let (k, d) = (self.k(), rows.columns());
        let of_chunk = |(chunk, held): (Chunk<'_>, &[Held])| {
            let mut words = vec![0i64; k * d];
            for (point, held) in held.iter().enumerate() {
                add_row(&mut words[held.own as usize * d..][..d], chunk, point, steps, 1)?;
            }
            Some(words)
        };
        let both = |mut a: Vec<i64>, b: Vec<i64>| {
            add(&mut a, &b);
            Some(a)
        };
        let parts = chunks(rows).into_par_iter().zip(self.rows.par_chunks(CHUNK_ROWS));
        parts.map(of_chunk).try_reduce(|| vec![0; k * d], both)
    }

    /// Adds the sum of the squared distances of all rows to their nearest centres; false where one is no number of steps.
    pub(crate) fn add_squares(&self, rows: &Packed, form: &Form, sums: &mut Sums<'_>, at: usize) -> bool {
        let Some(steps) = form.factor(at) else { return false };
        let level = level();
        let parts = chunks(rows).into_par_iter().zip(self.rows.par_chunks(CHUNK_ROWS));
        let of_chunk = |(chunk, held): (Chunk<'_>, &[Held])| dispatch!(level, simd => chunk_squares(simd, &self.centres, steps, chunk, held));
        let Some(word) = parts.map(of_chunk).try_reduce(|| 0, |a, b| Some(a.wrapping_add(b))) else { return false };
        sums.add_words(at, &[word]);
        true
    }

    /// The nearest centre of every row (n), in their order.
    #[cfg(test)]
    pub(crate) fn own(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().map(|held| held.own as usize)
    }
}

/// The chunks of some rows.
fn chunks(rows: &Packed) -> Vec<Chunk<'_>> {
    Chunk::whole(rows).split(CHUNK, rows.columns()).collect()
}

fn add(sums: &mut [i64], more: &[i64]) {
    sums.iter_mut().zip(more).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
}

/// Adds (1) or takes away (-1) a row's contribution to the sums of its cluster (d); `None` where it is no number of steps.
fn add_row(sums: &mut [i64], block: Chunk<'_>, point: usize, steps: f64, sign: i64) -> Option<()> {
    let d = sums.len();
    for (column, sum) in sums.iter_mut().enumerate() {
        *sum = sum.wrapping_add(sign * rounded(block.lanes.value(point, column, d), steps)?);
    }
    Some(())
}

/// What a chunk is measured with.
struct Work<'a> {
    plan: &'a Plan<'a>,
    margin: Margin,
    drift: &'a [f64],
    /// Steps in one unit of the sums, where there are sums.
    steps: Option<f64>,
}

/// What changes when some rows change their clusters; nothing at all as long as none does.
#[derive(Default)]
struct Moves {
    counts: Vec<i64>,
    sums: Vec<i64>,
}

impl Moves {
    fn and(self, other: Self) -> Self {
        if other.counts.is_empty() {
            return self;
        }
        if self.counts.is_empty() {
            return other;
        }
        let Self { mut counts, mut sums } = self;
        add(&mut counts, &other.counts);
        add(&mut sums, &other.sums);
        Self { counts, sums }
    }

    #[cold]
    fn begin(&mut self, work: &Work<'_>) {
        let (k, d) = (work.plan.k, work.plan.d);
        self.counts = vec![0; k];
        self.sums = vec![0; if work.steps.is_some() { k * d } else { 0 }];
    }

    /// A point of a block goes from one cluster to another.
    fn take(&mut self, work: &Work<'_>, block: Chunk<'_>, point: usize, from: u32, to: u32) {
        if self.counts.is_empty() {
            self.begin(work);
        }
        let d = work.plan.d;
        let mut one = |c: usize, sign: i64| {
            self.counts[c] += sign;
            if let Some(steps) = work.steps {
                // There were sums before, so the contributions are numbers of steps.
                let _ = add_row(&mut self.sums[c * d..][..d], block, point, steps, sign);
            }
        };
        one(to as usize, 1);
        if from != NONE {
            one(from as usize, -1);
        }
    }
}

/// Measures those rows of a chunk whose bounds are reached.
#[inline(always)]
fn chunk_moves<S: Simd>(simd: S, work: &Work<'_>, chunk: Chunk<'_>, held: &mut [Held]) -> Moves {
    let d = work.plan.d;
    let mut moves = Moves::default();
    let mut squares = vec![Lanes::ZERO; BLOCK * work.plan.k];
    // Rows from here and there, measured when there is a block of them.
    let (mut few, mut places) = (vec![Lanes::ZERO; BLOCK * d], Vec::with_capacity(POINTS));
    for (at, block) in chunk.split(BLOCK, d).enumerate() {
        let first = at * POINTS;
        let mut open = [0usize; POINTS];
        let mut count = 0;
        for (point, held) in held[first..][..block.valid].iter().enumerate() {
            open[count] = point;
            let known = work.drift.get(held.own as usize).is_some_and(|drift| f64::from(held.until) > *drift);
            count += usize::from(!known);
        }
        if 2 * count > block.valid {
            measure_block(simd, work, block, &mut squares, |point| first + point, held, &mut moves);
            continue;
        }
        for point in &open[..count] {
            let to = places.len();
            for (column, slot) in few[to / LANES * d..][..d].iter_mut().enumerate() {
                slot.0[to % LANES] = block.lanes.value(*point, column, d);
            }
            places.push(first + point);
            if places.len() == POINTS {
                let block = Chunk { lanes: Stored::Doubles(&few), valid: POINTS };
                measure_block(simd, work, block, &mut squares, |point| places[point], held, &mut moves);
                places.clear();
            }
        }
    }
    if !places.is_empty() {
        let groups = places.len().div_ceil(LANES).next_multiple_of(2);
        let block = Chunk { lanes: Stored::Doubles(&few[..groups * d]), valid: places.len() };
        measure_block(simd, work, block, &mut squares, |point| places[point], held, &mut moves);
    }
    moves
}

/// Measures a block of which point i is row `place(i)` of those held.
#[inline(always)]
fn measure_block<S: Simd>(
    simd: S,
    work: &Work<'_>,
    block: Chunk<'_>,
    squares: &mut [Lanes],
    place: impl Fn(usize) -> usize,
    held: &mut [Held],
    moves: &mut Moves,
) {
    let (k, d) = (work.plan.k, work.plan.d);
    let squares = &mut squares[..block.lanes.len() / d * k];
    distances::<S, false>(simd, work.plan, block, squares);
    for (group, squares) in squares.chunks_exact(k).enumerate() {
        let (best, index, second) = two_smallest(squares);
        let slack = work.margin.slack(&best, &second);
        for lane in 0..LANES.min(block.valid.saturating_sub(group * LANES)) {
            let point = group * LANES + lane;
            let held = &mut held[place(point)];
            let own = index[lane] as u32;
            // Of one centre alone nothing has to be measured again.
            let until = if k == 1 { f32::INFINITY } else { work.margin.until(slack[lane], work.drift[own as usize]) };
            let from = std::mem::replace(held, Held { own, until }).own;
            if from != own {
                moves.take(work, block, point, from, own);
            }
        }
    }
}

/// By point the smallest square, its centre's index (as a number) and the second smallest square; among equals the lowest index.
#[inline(always)]
fn two_smallest(squares: &[Lanes]) -> ([f64; LANES], [f64; LANES], [f64; LANES]) {
    let (mut best, mut index, mut second) = ([f64::INFINITY; LANES], [0.0; LANES], [f64::INFINITY; LANES]);
    for (c, square) in squares.iter().enumerate() {
        let c = c as f64;
        for lane in 0..LANES {
            let square = square.0[lane];
            let closer = square < best[lane];
            let other = if closer { best[lane] } else { square };
            second[lane] = if other < second[lane] { other } else { second[lane] };
            best[lane] = if closer { square } else { best[lane] };
            index[lane] = if closer { c } else { index[lane] };
        }
    }
    (best, index, second)
}

/// The sum, in steps, of the squared distances of a chunk's rows to their own centres, as the plain pass computes them.
#[inline(always)]
fn chunk_squares<S: Simd>(_: S, centres: &Centres, steps: f64, chunk: Chunk<'_>, held: &[Held]) -> Option<i64> {
    let d = centres.columns();
    let mut sum = 0i64;
    for (group, held) in held.chunks(LANES).enumerate() {
        let own: [&[f64]; LANES] =
            std::array::from_fn(|lane| &centres.row(held[lane.min(held.len() - 1)].own as usize)[..d]);
        let mut squares = [0.0; LANES];
        let columns = (0..d).map(|j| chunk.lanes.vector(group * d + j));
        for (j, column) in columns.enumerate() {
            for lane in 0..LANES {
                let difference = column.0[lane] - own[lane][j];
                squares[lane] += difference * difference;
            }
        }
        for square in squares.iter().take(held.len()) {
            sum = sum.wrapping_add(rounded(*square, steps)?);
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests;
