//! Rows packed once for the kernel: groups of 8 points, dimension-major, so that a column of a group is one vector.

use std::ops::Range;

use rayon::prelude::*;

use crate::{Centres, Domain, Error, OutOfBox, Rows, Scaling};

/// Points in a group. Fixed, whatever the processor's vectors hold: it decides the order of every sum.
pub(crate) const LANES: usize = 8;

/// Groups that a thread takes at a time where each is looked at for itself.
const MIN_GROUPS: usize = 128;

/// Rows of a stretch that is looked at by itself: some that stay in the caches.
const PART: usize = 4096;

/// How the numbers of rows are held in memory. What is computed from them is in doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 8 bytes a number.
    #[default]
    Double,
    /// 4 bytes a number: the nearest one in single precision that is inside the box, working units.
    Single,
}

/// One value for each point of a group, aligned to a cache line so that no vector load straddles two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [f64; LANES]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([0.0; LANES]);

    /// The sum of all lanes, in one fixed order.
    pub(crate) fn sum(&self) -> f64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    }
}

/// The same in single precision, which every computation turns into doubles first.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Singles(pub(crate) [f32; LANES]);

/// Rows in the kernel's layout, working units.
///
/// Group g, column j stand at `g * d + j`. The last row is repeated to fill an even number of groups; the kernel leaves the
/// copies out of its sums.
#[derive(Clone)]
pub struct Packed {
    lanes: Held,
    len: usize,
    columns: usize,
}

#[derive(Clone)]
enum Held {
    Doubles(Vec<Lanes>),
    Singles(Vec<Singles>),
}

/// A stretch of packed values.
#[derive(Clone, Copy)]
pub(crate) enum Stored<'a> {
    Doubles(&'a [Lanes]),
    Singles(&'a [Singles]),
}

impl<'a> Stored<'a> {
    /// Vectors of 8 values.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Doubles(lanes) => lanes.len(),
            Self::Singles(lanes) => lanes.len(),
        }
    }

    #[inline(always)]
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        match self {
            Self::Doubles(lanes) => Self::Doubles(&lanes[range]),
            Self::Singles(lanes) => Self::Singles(&lanes[range]),
        }
    }

    /// One coordinate of a row of d columns.
    #[inline(always)]
    pub(crate) fn value(self, row: usize, column: usize, d: usize) -> f64 {
        let at = row / LANES * d + column;
        match self {
            Self::Doubles(lanes) => lanes[at].0[row % LANES],
            Self::Singles(lanes) => lanes[at].0[row % LANES].into(),
        }
    }

    /// One column of a group.
    #[inline(always)]
    pub(crate) fn vector(self, at: usize) -> Lanes {
        match self {
            Self::Doubles(lanes) => lanes[at],
            Self::Singles(lanes) => Lanes(lanes[at].0.map(f64::from)),
        }
    }

    /// Gives the coordinates of a row of d columns to `take`, each with its column.
    #[inline(always)]
    pub(crate) fn each(self, row: usize, d: usize, mut take: impl FnMut(usize, f64)) {
        let (group, lane) = (row / LANES * d..(row / LANES + 1) * d, row % LANES);
        match self {
            Self::Doubles(lanes) => lanes[group].iter().enumerate().for_each(|(j, column)| take(j, column.0[lane])),
            Self::Singles(lanes) => {
                lanes[group].iter().enumerate().for_each(|(j, column)| take(j, column.0[lane].into()))
            }
        }
    }

    /// The coordinates of a row.
    #[inline(always)]
    pub(crate) fn read(self, row: usize, x: &mut [f64]) {
        self.each(row, x.len(), |column, value| x[column] = value);
    }
}

impl Packed {
    /// Packs n x d rows; takes about as much memory again.
    pub fn new(rows: &Rows) -> Self {
        Self::of(rows.as_slice(), rows.columns())
    }

    /// Packs values that fill whole rows.
    pub(crate) fn of(values: &[f64], columns: usize) -> Self {
        Self::with(values, columns, |_, _| true).unwrap_or_else(|_| Self {
            lanes: Held::Doubles(Vec::new()),
            len: 0,
            columns,
        })
    }

    /// Packs values that fill whole rows, each vector of a column after `change` was made to it; the first group of rows (by number) for
    /// which that was not possible is the error.
    pub(crate) fn with(
        values: &[f64],
        columns: usize,
        change: impl Fn(usize, &mut [f64; LANES]) -> bool + Sync,
    ) -> Result<Self, usize> {
        let len = values.len() / columns;
        let groups = padded(len);
        let mut lanes = vec![Lanes::ZERO; groups * columns];
        if len == 0 {
            return Ok(Self { lanes: Held::Doubles(lanes), len, columns });
        }
        let pack = |(g, group): (usize, &mut [Lanes])| {
            for lane in 0..LANES {
                let row = &values[(g * LANES + lane).min(len - 1) * columns..][..columns];
                for (slot, value) in group.iter_mut().zip(row) {
                    slot.0[lane] = *value;
                }
            }
            let good = group.iter_mut().enumerate().fold(true, |all, (column, slot)| all & change(column, &mut slot.0));
            (!good).then_some(g)
        };
        // Pages of new memory are most of the time that this takes, and every thread asks for its own.
        let bad = lanes.par_chunks_exact_mut(columns).enumerate().with_min_len(MIN_GROUPS).find_map_first(pack);
        bad.map_or(Ok(Self { lanes: Held::Doubles(lanes), len, columns }), Err)
    }

    /// Packs rows (n x d, original units) in working units, as [`Domain::to_working`] makes them, of which this is the quick form.
    pub(crate) fn working(rows: &Rows, domain: &Domain, out_of_box: OutOfBox) -> Result<Self, Error> {
        domain.same_columns(rows.columns())?;
        let slow = || Ok(Self::new(&domain.to_working(rows, out_of_box)?));
        if domain.scaling() == Scaling::Direction {
            return slow();
        }
        let clip = out_of_box == OutOfBox::Clip;
        // Which row is outside the box, the slow form says.
        Self::with(rows.as_slice(), rows.columns(), |column, values| domain.column_to_working(column, values) | clip)
            .or_else(|_| slow())
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

    pub(crate) fn lanes(&self) -> Stored<'_> {
        match &self.lanes {
            Held::Doubles(lanes) => Stored::Doubles(lanes),
            Held::Singles(lanes) => Stored::Singles(lanes),
        }
    }

    /// The centre nearest to every row (n), among equals the lowest index: what [`distance::nearest`](crate::distance::nearest) says
    /// of each.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub fn nearest(&self, centres: &Centres) -> Result<Vec<u32>, Error> {
        if centres.columns() != self.columns {
            return Err(Error::ColumnMismatch { expected: self.columns, found: centres.columns() });
        }
        let (lanes, d) = (self.lanes(), self.columns);
        let mut labels = vec![0; self.len.next_multiple_of(LANES)];
        let groups = labels.par_chunks_exact_mut(LANES).enumerate().with_min_len(MIN_GROUPS);
        groups.for_each(|(g, labels)| {
            let mut least = [f64::INFINITY; LANES];
            for (index, centre) in (0..).zip(centres.rows()) {
                let mut square = [0.0; LANES];
                for (column, c) in centre.iter().enumerate() {
                    for (sum, x) in square.iter_mut().zip(&lanes.vector(g * d + column).0) {
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
        which.zip(values.chunks_exact_mut(self.columns)).for_each(|(row, x)| self.lanes().read(row, x));
        Rows::known(values, self.columns)
    }

    /// Room for so many rows.
    pub(crate) fn room(columns: usize, rows: usize, precision: Precision) -> Self {
        let vectors = padded(rows) * columns;
        let lanes = match precision {
            Precision::Double => Held::Doubles(Vec::with_capacity(vectors)),
            Precision::Single => Held::Singles(Vec::with_capacity(vectors)),
        };
        Self { lanes, len: 0, columns }
    }

    /// Appends rows that are inside this box, working units: in single precision the nearest numbers of those inside.
    pub(crate) fn append(&mut self, rows: &Rows, domain: &Domain) {
        let (first, vectors) = (self.len, padded(self.len + rows.len()) * self.columns);
        self.len += rows.len();
        match &mut self.lanes {
            Held::Doubles(lanes) => {
                lanes.resize(vectors, Lanes::ZERO);
                place(lanes, first, rows, |lane| &mut lane.0, |_, x| x);
            }
            Held::Singles(lanes) => {
                lanes.resize(vectors, Singles([0.0; LANES]));
                let ends: Vec<(f64, f64)> = (0..self.columns).map(|column| domain.working_interval(column)).collect();
                place(lanes, first, rows, |lane| &mut lane.0, |column, x| single(x, ends[column]));
            }
        }
    }
}

/// Groups of so many rows.
fn padded(rows: usize) -> usize {
    rows.div_ceil(LANES).next_multiple_of(2)
}

/// Puts rows behind the `first` ones; the last of them fills what is left.
fn place<L, T>(
    lanes: &mut [L],
    first: usize,
    rows: &Rows,
    of: impl Fn(&mut L) -> &mut [T; LANES],
    value: impl Fn(usize, f64) -> T,
) {
    let Some(last) = rows.iter().next_back() else { return };
    let d = rows.columns();
    let places = first..lanes.len() / d * LANES;
    for (at, row) in places.zip(rows.iter().chain(std::iter::repeat(last))) {
        for (column, (lanes, x)) in lanes[at / LANES * d..].iter_mut().zip(row).enumerate() {
            of(lanes)[at % LANES] = value(column, *x);
        }
    }
}

/// The nearest number in single precision that is inside the interval; at most one lies between the end and a number outside.
fn single(x: f64, (low, high): (f64, f64)) -> f32 {
    let near = x as f32;
    match f64::from(near) {
        wide if wide > high => near.next_down(),
        wide if wide < low => near.next_up(),
        _ => near,
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packed").field("columns", &self.columns).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
