//! Rows packed once for the kernel: groups of 8 points, dimension-major, so that a column of a group is one vector.

use rayon::prelude::*;

use crate::{Centres, DataError, Domain, OutOfBox, Rows, Scaling};

/// Points in a group. Fixed, whatever the processor's vectors hold: it decides the order of every sum.
pub(crate) const LANES: usize = 8;

/// Groups that a thread takes at a time where each is looked at for itself.
const MIN_GROUPS: usize = 128;

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

impl Packed {
    /// Packs n x d rows; takes about as much memory again.
    pub fn new(rows: &Rows) -> Self {
        Self::of(rows.as_slice(), rows.columns())
    }

    /// Packs values that fill whole rows.
    pub(crate) fn of(values: &[f64], columns: usize) -> Self {
        Self::with(values, columns, |_, _| true).unwrap_or_else(|_| Self { lanes: Vec::new(), len: 0, columns })
    }

    /// Packs values that fill whole rows, each vector of a column after `change` was made to it; the first group of rows (by number) for
    /// which that was not possible is the error.
    pub(crate) fn with(
        values: &[f64],
        columns: usize,
        change: impl Fn(usize, &mut [f64; LANES]) -> bool + Sync,
    ) -> Result<Self, usize> {
        let len = values.len() / columns;
        let groups = len.div_ceil(LANES).next_multiple_of(2);
        let mut lanes = vec![Lanes::ZERO; groups * columns];
        if len == 0 {
            return Ok(Self { lanes, len, columns });
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
        bad.map_or(Ok(Self { lanes, len, columns }), Err)
    }

    /// Packs rows (n x d, original units) in working units, as [`Domain::to_working`] makes them, of which this is the quick form.
    pub(crate) fn working(rows: &Rows, domain: &Domain, out_of_box: OutOfBox) -> Result<Self, DataError> {
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

    pub(crate) fn lanes(&self) -> &[Lanes] {
        &self.lanes
    }

    /// The centre nearest to every row (n), among equals the lowest index: what [`distance::nearest`](crate::distance::nearest) says
    /// of each.
    ///
    /// # Errors
    /// [`DataError::ColumnMismatch`].
    pub fn nearest(&self, centres: &Centres) -> Result<Vec<u32>, DataError> {
        if centres.columns() != self.columns {
            return Err(DataError::ColumnMismatch { expected: self.columns, found: centres.columns() });
        }
        let mut labels = vec![0; self.len.next_multiple_of(LANES)];
        let groups = self.lanes.par_chunks_exact(self.columns).zip(labels.par_chunks_exact_mut(LANES));
        groups.with_min_len(MIN_GROUPS).for_each(|(group, labels)| {
            let mut least = [f64::INFINITY; LANES];
            for (index, centre) in (0..).zip(centres.rows()) {
                let mut square = [0.0; LANES];
                for (column, c) in group.iter().zip(centre) {
                    for (sum, x) in square.iter_mut().zip(&column.0) {
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
        let mut values = Vec::with_capacity(self.len * self.columns);
        for i in 0..self.len {
            let group = &self.lanes[i / LANES * self.columns..][..self.columns];
            values.extend(group.iter().map(|column| column.0[i % LANES]));
        }
        Rows::known(values, self.columns)
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packed").field("columns", &self.columns).finish_non_exhaustive()
    }
}
