//! Rows packed once for the kernel: groups of 8 points, dimension-major, so that a column of a group is one vector.

use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use crate::{AnswerError, Centres, DataError, Domain, OutOfBox, Rows, Scaling, Transform};

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
    fn of(values: &[f64], columns: usize) -> Self {
        Self::with(values, columns, |_, _| true).unwrap_or_else(|_| Self { lanes: Vec::new(), len: 0, columns })
    }

    /// Packs values that fill whole rows, each vector of a column after `change` was made to it; the first group of rows (by number) for
    /// which that was not possible is the error.
    fn with(
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
    fn working(rows: &Rows, domain: &Domain, out_of_box: OutOfBox) -> Result<Self, DataError> {
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

/// A transform and the rows under it.
type Moved = (Transform, Arc<Prepared>);

/// One site's rows, ready to answer queries: inside the public box, in working units, packed.
#[derive(Clone)]
pub struct Prepared {
    packed: Packed,
    domain: Domain,
    /// One label a row, where the plan wants them compared.
    labels: Option<Arc<Vec<u32>>>,
    /// The rows under the transform that was asked for last: a run asks for one only.
    moved: Arc<Mutex<Option<Moved>>>,
}

impl Prepared {
    /// Takes rows in ORIGINAL units (n x d) through the public box.
    ///
    /// # Errors
    /// Those of [`Domain::to_working`].
    pub fn new(rows: &Rows, domain: &Domain, out_of_box: OutOfBox) -> Result<Self, DataError> {
        let packed = Packed::working(rows, domain, out_of_box)?;
        Ok(Self { packed, domain: domain.clone(), labels: None, moved: Arc::default() })
    }

    /// Takes those of n x d values (row by row, ORIGINAL units) that can be used, and how many rows cannot: a value is no finite number, or
    /// outside the box where that is refused. The values are read where they lie.
    ///
    /// # Errors
    /// [`DataError::Ragged`], and those of [`Domain::to_working`] but for [`DataError::OutsideBox`].
    pub fn usable(
        values: &[f64],
        columns: usize,
        domain: &Domain,
        out_of_box: OutOfBox,
    ) -> Result<(Self, usize), DataError> {
        domain.same_columns(columns)?;
        if !values.len().is_multiple_of(columns) {
            return Err(DataError::Ragged { columns });
        }
        let clip = out_of_box == OutOfBox::Clip;
        if domain.scaling() != Scaling::Direction {
            let all = Packed::with(values, columns, |column, values| {
                values.iter().fold(true, |all, x| all & x.is_finite())
                    & (domain.column_to_working(column, values) | clip)
            });
            if let Ok(packed) = all {
                return Ok((Self { packed, domain: domain.clone(), labels: None, moved: Arc::default() }, 0));
            }
        }
        let good = |row: &[f64]| {
            let bounds = domain.lower().iter().zip(domain.upper());
            let direction = domain.scaling() != Scaling::Direction
                || row.iter().zip(bounds.clone()).any(|(x, (low, high))| x.clamp(*low, *high) != 0.0);
            direction
                && row.iter().zip(bounds).all(|(x, (low, high))| x.is_finite() && (clip || (low..=high).contains(&x)))
        };
        let mut kept = Vec::with_capacity(values.len());
        values.chunks_exact(columns).filter(|row| good(row)).for_each(|row| kept.extend_from_slice(row));
        let bad = (values.len() - kept.len()) / columns;
        Ok((Self::new(&Rows::known(kept, columns), domain, out_of_box)?, bad))
    }

    /// Takes n x d values, row by row, as they are, in a box that nothing reaches: rows of one place, for results that stay there. The
    /// values are read where they lie; only the kernel's layout is a copy.
    ///
    /// # Errors
    /// Those of [`Rows::new`], and [`DataError::OutsideBox`] for a value beyond 1e150.
    pub fn alone(values: &[f64], columns: usize) -> Result<Self, DataError> {
        if columns == 0 {
            return Err(DataError::NoColumns);
        }
        if !values.len().is_multiple_of(columns) {
            return Err(DataError::Ragged { columns });
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(DataError::NotFinite { row: at / columns, column: at % columns });
        }
        let far = 1e150;
        if let Some(at) = values.iter().position(|value| value.abs() > far) {
            return Err(DataError::OutsideBox { row: at / columns, column: at % columns });
        }
        let domain = Domain::known(vec![-far; columns], vec![far; columns], Scaling::None);
        Ok(Self { packed: Packed::of(values, columns), domain, labels: None, moved: Arc::default() })
    }

    /// Takes rows (n x d) that are in working units and inside the box already.
    pub(crate) fn working(rows: &Rows, domain: &Domain) -> Self {
        Self { packed: Packed::new(rows), domain: domain.clone(), labels: None, moved: Arc::default() }
    }

    /// With one label for each row, in the order of the rows.
    ///
    /// # Errors
    /// [`DataError::LabelCount`] where there are more or fewer labels than rows.
    pub fn with_labels(mut self, labels: Vec<u32>) -> Result<Self, DataError> {
        if labels.len() != self.len() {
            return Err(DataError::LabelCount);
        }
        self.labels = Some(Arc::new(labels));
        self.moved = Arc::default();
        Ok(self)
    }

    /// All rows in one place, in the order of the sites: the yardstick of tests and demonstrations. All sites share a box.
    ///
    /// # Errors
    /// [`DataError::NoRows`] where there are no sites, and those of [`Rows::pooled`].
    pub fn pooled(sites: &[Self]) -> Result<Self, DataError> {
        let domain = sites.first().ok_or(DataError::NoRows)?.domain.clone();
        let rows: Vec<Rows> = sites.iter().map(|site| site.packed.to_rows()).collect();
        let packed = Packed::new(&Rows::pooled(&rows)?);
        let labels: Option<Vec<u32>> =
            sites.iter().map(|site| site.labels()).collect::<Option<Vec<_>>>().map(|labels| labels.concat());
        Ok(Self { packed, domain, labels: labels.map(Arc::new), moved: Arc::default() })
    }

    /// Number of rows, n.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The public box.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The rows in the kernel's layout, working units.
    pub fn packed(&self) -> &Packed {
        &self.packed
    }

    /// The labels, if there are any.
    pub fn labels(&self) -> Option<&[u32]> {
        self.labels.as_ref().map(|labels| labels.as_slice())
    }

    /// The rows under a transform, with the transformed box; kept for the next question of the same run.
    ///
    /// # Errors
    /// [`AnswerError::Query`] where the transform does not fit the box.
    pub fn transformed(&self, transform: &Transform) -> Result<Arc<Self>, AnswerError> {
        let domain = transform.domain(&self.domain)?;
        // A poisoned lock only means that another thread stopped in between; the content is whole.
        let mut moved = self.moved.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((known, rows)) = &*moved
            && known == transform
        {
            return Ok(rows.clone());
        }
        let packed = Packed::new(&transform.rows(&self.packed.to_rows())?);
        let rows = Arc::new(Self { packed, domain, labels: self.labels.clone(), moved: Arc::default() });
        *moved = Some((transform.clone(), rows.clone()));
        Ok(rows)
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("columns", &self.packed.columns()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance;

    #[test]
    fn nearest_is_that_of_every_row_by_itself() {
        let mut random = crate::random::Stream::new(5, b"veilsum nearest rows 24.");
        for (n, d, k) in [(1, 1, 1), (7, 3, 2), (8, 2, 5), (500, 5, 7)] {
            let mut values: Vec<f64> = (0..n * d).map(|_| random.unit()).collect();
            // A row between two centres, and one on a centre that is there twice.
            let centres = Centres::new(k, d, (0..k * d).map(|i| (i % (k.max(2) - 1)) as f64 / 4.0).collect()).unwrap();
            values[..d].copy_from_slice(centres.row(k - 1));
            let alone = Prepared::alone(&values, d).unwrap();
            let expected: Vec<u32> =
                values.chunks(d).map(|row| distance::nearest(row, centres.rows()).0 as u32).collect();
            assert_eq!(alone.packed().nearest(&centres).unwrap(), expected);
            assert_eq!(alone.packed().to_rows().as_slice(), values);
        }
        let odd = Centres::new(1, 2, vec![0.0; 2]).unwrap();
        assert!(Prepared::alone(&[1.0], 1).unwrap().packed().nearest(&odd).is_err());
    }

    #[test]
    fn packing_scales_as_the_rows_do_and_names_the_row_outside() {
        let mut random = crate::random::Stream::new(6, b"veilsum packed rows 24..");
        for scaling in [Scaling::Box, Scaling::None, Scaling::Direction] {
            let domain = Domain::mixed(vec![-3.0, 0.1], vec![5.0, 0.7], scaling, vec![0.5; 3]).unwrap();
            let of = |random: &mut crate::random::Stream, n: usize| {
                (0..n)
                    .flat_map(|i| [random.unit() * 8.0 - 3.0, 0.1 + random.unit() * 0.6, 1.0, 0.0, (i % 2) as f64])
                    .collect()
            };
            for n in [1, 7, 16, 3000] {
                let values: Vec<f64> = of(&mut random, n);
                let rows = Rows::new(values, 5).unwrap();
                let slow = domain.to_working(&rows, OutOfBox::Refuse).unwrap();
                assert_eq!(
                    Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap().packed().to_rows(),
                    slow,
                    "{scaling:?}"
                );
            }
            let mut values: Vec<f64> = of(&mut random, 3000);
            (values[2000 * 5 + 1], values[2900 * 5]) = (0.8, -4.0);
            let rows = Rows::new(values.clone(), 5).unwrap();
            let error = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap_err();
            assert!(matches!(error, DataError::OutsideBox { row: 2000, column: 1 }), "{error}");
            let clipped = domain.to_working(&rows, OutOfBox::Clip).unwrap();
            assert_eq!(Prepared::new(&rows, &domain, OutOfBox::Clip).unwrap().packed().to_rows(), clipped);
            let usable = |values: &[f64], out_of_box| {
                let (rows, bad) = Prepared::usable(values, 5, &domain, out_of_box).unwrap();
                (rows.packed().to_rows(), bad)
            };
            assert_eq!(usable(&values, OutOfBox::Clip), (clipped.clone(), 0));
            let kept: Vec<f64> = values
                .chunks(5)
                .enumerate()
                .filter(|(i, _)| ![2000, 2900].contains(i))
                .flat_map(|(_, row)| row.to_vec())
                .collect();
            let inside = domain.to_working(&Rows::new(kept, 5).unwrap(), OutOfBox::Refuse).unwrap();
            assert_eq!(usable(&values, OutOfBox::Refuse), (inside, 2));
            (values[5], values[11]) = (f64::NAN, f64::INFINITY);
            assert_eq!(usable(&values, OutOfBox::Clip).1, 2);
            assert_eq!(usable(&values, OutOfBox::Refuse).1, 4);
            assert_eq!(usable(&[], OutOfBox::Refuse).0.len(), 0);
            assert!(matches!(
                Prepared::usable(&[0.0; 4], 5, &domain, OutOfBox::Clip),
                Err(DataError::Ragged { columns: 5 })
            ));
        }
    }

    #[test]
    fn rows_alone_are_checked_where_they_lie() {
        assert!(matches!(Prepared::alone(&[], 0), Err(DataError::NoColumns)));
        assert!(matches!(Prepared::alone(&[1.0; 3], 2), Err(DataError::Ragged { columns: 2 })));
        let bad = [1.0, 2.0, f64::NAN, 1.0];
        assert!(matches!(Prepared::alone(&bad, 2), Err(DataError::NotFinite { row: 1, column: 0 })));
        let far = [1.0, 2.0, 1.0, -1e151];
        assert!(matches!(Prepared::alone(&far, 2), Err(DataError::OutsideBox { row: 1, column: 1 })));
    }
}
