//! Rows packed once for the kernel: groups of 8 points, dimension-major, so that a column of a group is one vector.

use std::ops::Range;

use rayon::prelude::*;
pub(crate) use veilsum_contributions::{LANES, Lanes};

use crate::error::same_columns;
use crate::{Centres, Domain, Error, OutOfBox, Rows};

/// Groups that a thread takes at a time where each is looked at for itself.
const MIN_GROUPS: usize = 128;

/// Rows of a stretch that is looked at by itself: some that stay in the caches.
const PART: usize = 4096;

/// Rows in the kernel's layout, working units.
///
/// Group g, column j stand at `g * d + j`. The last row is repeated to fill an even number of groups; the kernel leaves the
/// copies out of its sums.
#[derive(Clone)]
pub struct Packed {
    lanes: Vec<Lanes>,
    len: usize,
    columns: usize,
}

/// Gives the coordinates of a row of d columns to `take`, each with its column.
#[inline(always)]
pub(crate) fn each(lanes: &[Lanes], row: usize, d: usize, mut take: impl FnMut(usize, f64)) {
    let group = row / LANES * d..(row / LANES + 1) * d;
    lanes[group].iter().enumerate().for_each(|(j, column)| take(j, column.0[row % LANES]));
}

/// The coordinates of a row.
#[inline(always)]
pub(crate) fn read(lanes: &[Lanes], row: usize, x: &mut [f64]) {
    each(lanes, row, x.len(), |column, value| x[column] = value);
}

impl Packed {
    /// Packs n x d rows; takes about as much memory again.
    pub fn new(rows: &Rows) -> Self {
        Self::of(rows.as_slice(), rows.columns())
    }

    /// Packs values that fill whole rows.
    pub(crate) fn of(values: &[f64], columns: usize) -> Self {
        Self::with(values, columns, |_, _| true).unwrap_or_else(|| Self::room(columns, 0))
    }

    /// Packs values that fill whole rows, each vector of a column after `change` was made to it; `None` if that was not possible for some
    /// group of rows.
    pub(crate) fn with(
        values: &[f64],
        columns: usize,
        change: impl Fn(usize, &mut [f64; LANES]) -> bool + Sync,
    ) -> Option<Self> {
        let len = values.len() / columns;
        let groups = padded(len);
        let mut lanes = vec![Lanes::ZERO; groups * columns];
        if len == 0 {
            return Some(Self { lanes, len, columns });
        }
        let pack = |(g, group): (usize, &mut [Lanes])| {
            for lane in 0..LANES {
                let row = &values[(g * LANES + lane).min(len - 1) * columns..][..columns];
                for (slot, value) in group.iter_mut().zip(row) {
                    slot.0[lane] = *value;
                }
            }
            group.iter_mut().enumerate().fold(true, |all, (column, slot)| all & change(column, &mut slot.0))
        };
        // Pages of new memory are most of the time that this takes, and every thread asks for its own.
        let good = lanes.par_chunks_exact_mut(columns).enumerate().with_min_len(MIN_GROUPS).all(pack);
        good.then_some(Self { lanes, len, columns })
    }

    /// Packs rows (n x d, original units) in working units, as [`Domain::to_working`] makes them, of which this is the quick form.
    pub(crate) fn working(rows: &Rows, domain: &Domain, out_of_box: OutOfBox) -> Result<Self, Error> {
        domain.same_columns(rows.columns())?;
        let clip = out_of_box == OutOfBox::Clip;
        // Which row is outside the box, the slow form says.
        Self::with(rows.as_slice(), rows.columns(), |column, values| domain.column_to_working(column, values) | clip)
            .map_or_else(|| Ok(Self::new(&domain.to_working(rows, out_of_box)?)), Ok)
    }

    /// Number of rows, n.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of columns, d >= 1.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The same, to be read where they lie.
    pub(crate) fn plain(&self) -> veilsum_contributions::Rows<'_> {
        veilsum_contributions::Rows { groups: &self.lanes, len: self.len, columns: self.columns }
    }

    pub(crate) fn lanes(&self) -> &[Lanes] {
        &self.lanes
    }

    /// The centre nearest to every row (n), among equals the lowest index: what [`distance::nearest`](crate::distance::nearest) says
    /// of each.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub fn nearest(&self, centres: &Centres) -> Result<Vec<u32>, Error> {
        same_columns(self.columns, centres.columns())?;
        let (lanes, d) = (self.lanes(), self.columns);
        let mut labels = vec![0; self.len.next_multiple_of(LANES)];
        let groups = labels.par_chunks_exact_mut(LANES).enumerate().with_min_len(MIN_GROUPS);
        groups.for_each(|(g, labels)| {
            let mut least = [f64::INFINITY; LANES];
            for (index, centre) in (0..).zip(centres.rows()) {
                let mut square = [0.0; LANES];
                for (column, c) in centre.iter().enumerate() {
                    for (sum, x) in square.iter_mut().zip(&lanes[g * d + column].0) {
                        *sum += (x - c) * (x - c);
                    }
                }
                for ((label, least), square) in labels.iter_mut().zip(&mut least).zip(square) {
                    if square < *least {
                        (*label, *least) = (index, square);
                    }
                }
            }
        });
        labels.truncate(self.len);
        Ok(labels)
    }

    /// The rows again, n x d, in their order.
    pub fn to_rows(&self) -> Rows {
        self.rows(0..self.len)
    }

    /// The rows again in stretches, so that not all of them are there twice.
    pub fn parts(&self) -> impl Iterator<Item = Rows> {
        (0..self.len).step_by(PART).map(|first| self.rows(first..(first + PART).min(self.len)))
    }

    fn rows(&self, which: Range<usize>) -> Rows {
        let mut values = vec![0.0; which.len() * self.columns];
        which.zip(values.chunks_exact_mut(self.columns)).for_each(|(row, x)| read(&self.lanes, row, x));
        Rows::known(values, self.columns)
    }

    /// Room for so many rows.
    pub(crate) fn room(columns: usize, rows: usize) -> Self {
        Self { lanes: Vec::with_capacity(padded(rows) * columns), len: 0, columns }
    }

    /// Appends rows, working units; the last of them fills what is left of its group.
    pub(crate) fn append(&mut self, rows: &Rows) {
        let (first, d) = (self.len, self.columns);
        self.len += rows.len();
        self.lanes.resize(padded(self.len) * d, Lanes::ZERO);
        let Some(last) = rows.iter().next_back() else { return };
        let places = first..self.lanes.len() / d * LANES;
        for (at, row) in places.zip(rows.iter().chain(std::iter::repeat(last))) {
            for (lanes, x) in self.lanes[at / LANES * d..].iter_mut().zip(row) {
                lanes.0[at % LANES] = *x;
            }
        }
    }
}

/// Groups of so many rows.
fn padded(rows: usize) -> usize {
    rows.div_ceil(LANES).next_multiple_of(2)
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packed").field("columns", &self.columns).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_come_in_parts_are_packed_as_those_that_come_together() {
        let rows = Rows::new((0..3 * 100).map(|i| f64::from(i) / 300.0).collect(), 3).unwrap();
        for cut in [0, 1, 5, 8, 16, 99, 100] {
            let mut packed = Packed::room(3, 0);
            let (first, last) = rows.as_slice().split_at(3 * cut);
            for part in [first, &[], last] {
                packed.append(&Rows::known(part.to_vec(), 3));
            }
            let vectors = |packed: &Packed| packed.lanes().iter().map(|lanes| lanes.0).collect::<Vec<_>>();
            assert_eq!((packed.len(), vectors(&packed)), (100, vectors(&Packed::new(&rows))), "{cut}");
        }
    }
}
