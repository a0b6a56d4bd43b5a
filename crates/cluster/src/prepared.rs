//! One site's rows, ready to answer questions: inside the public box, in working units, packed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::kernel::Bounds;
use crate::{Centres, Domain, Error, OutOfBox, Packed, Precision, Rows, Scaling, Transform};

/// A transform and the rows under it.
type Moved = (Transform, Arc<Prepared>);

/// One site's rows, ready to answer queries: inside the public box, in working units, packed.
#[derive(Clone)]
pub struct Prepared {
    packed: Packed,
    domain: Domain,
    /// Rows that were read beside these and lack a value, by column, d; empty where nobody counted any.
    missing: Vec<u64>,
    /// The rows under the transform that was asked for last: a run asks for one only.
    moved: Arc<Mutex<Option<Moved>>>,
    /// What is kept of hard groups between questions.
    kept: Arc<Mutex<Kept>>,
}

/// Nearest centres from before. A sweep and its restarts ask about several sets of centres in one batch, and each goes its own way: one
/// batch takes each of these at most once, the one whose centres are nearest, so that none is torn between two sets.
#[derive(Default)]
struct Kept {
    /// Bytes that are left.
    room: u64,
    /// Batches so far.
    batch: u64,
    /// Each with its bytes and the batch that took it last.
    all: Vec<(Bounds, u64, u64)>,
}

impl Kept {
    /// Takes out the bounds for these centres, or room for new ones. Their bytes come first; nothing at all where there is no room.
    fn take(&mut self, centres: &Centres, bytes: u64) -> Option<(u64, Option<Bounds>)> {
        let batch = self.batch;
        let fits = |(_, (bounds, _, last)): &(usize, &(Bounds, u64, u64))| *last < batch && bounds.k() == centres.k();
        let fitting = self.all.iter().enumerate().filter(fits);
        let nearest = fitting.min_by(|(_, a), (_, b)| a.0.far(centres).total_cmp(&b.0.far(centres)));
        if let Some((at, _)) = nearest {
            let (bounds, bytes, _) = self.all.swap_remove(at);
            return Some((bytes, Some(bounds)));
        }
        self.room = self.room.checked_sub(bytes)?;
        Some((bytes, None))
    }
}

/// A poisoned lock only means that another thread stopped in between; the content is whole.
fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Prepared {
    /// Rows in working units, inside the box.
    fn of(packed: Packed, domain: Domain) -> Self {
        Self { packed, domain, missing: Vec::new(), moved: Arc::default(), kept: Arc::default() }
    }

    /// Takes rows in ORIGINAL units (n x d) through the public box.
    ///
    /// # Errors
    /// Those of [`Domain::to_working`].
    pub fn new(rows: &Rows, domain: &Domain, out_of_box: OutOfBox) -> Result<Self, Error> {
        let packed = Packed::working(rows, domain, out_of_box)?;
        Ok(Self::of(packed, domain.clone()))
    }

    /// Takes those of n x d values (row by row, ORIGINAL units) that can be used, and how many rows cannot: a value is no finite number, or
    /// outside the box where that is refused. The values are read where they lie.
    ///
    /// # Errors
    /// [`Error::Ragged`], and those of [`Domain::to_working`] but for [`Error::OutsideBox`].
    pub fn usable(
        values: &[f64],
        columns: usize,
        domain: &Domain,
        out_of_box: OutOfBox,
    ) -> Result<(Self, usize), Error> {
        domain.same_columns(columns)?;
        if !values.len().is_multiple_of(columns) {
            return Err(Error::Ragged { columns });
        }
        let clip = out_of_box == OutOfBox::Clip;
        if domain.scaling() != Scaling::Direction {
            let all = Packed::with(values, columns, |column, values| {
                values.iter().fold(true, |all, x| all & x.is_finite())
                    & (domain.column_to_working(column, values) | clip)
            });
            if let Ok(packed) = all {
                return Ok((Self::of(packed, domain.clone()), 0));
            }
        }
        let mut kept = Vec::with_capacity(values.len());
        values
            .chunks_exact(columns)
            .filter(|row| Self::takes(row, domain, out_of_box))
            .for_each(|row| kept.extend_from_slice(row));
        let bad = (values.len() - kept.len()) / columns;
        Ok((Self::new(&Rows::known(kept, columns), domain, out_of_box)?, bad))
    }

    /// Whether a row of d values (ORIGINAL units) can be used: each is a finite number, inside the box where others are refused, and with
    /// directions they are not all zeros there.
    pub fn takes(row: &[f64], domain: &Domain, out_of_box: OutOfBox) -> bool {
        let bounds = domain.lower().iter().zip(domain.upper());
        let (clip, mut all) = (out_of_box == OutOfBox::Clip, row.iter().zip(bounds));
        let direction =
            domain.scaling() != Scaling::Direction || all.clone().any(|(x, (low, high))| x.clamp(*low, *high) != 0.0);
        direction && all.all(|(x, (low, high))| x.is_finite() && (clip || (low..=high).contains(&x)))
    }

    /// Takes n x d values, row by row, as they are, in a box that nothing reaches: rows of one place, for results that stay there. The
    /// values are read where they lie; only the kernel's layout is a copy.
    ///
    /// # Errors
    /// Those of [`Rows::new`], and [`Error::OutsideBox`] for a value beyond 1e150.
    pub fn alone(values: &[f64], columns: usize) -> Result<Self, Error> {
        Rows::check(values, columns)?;
        let far = 1e150;
        if let Some(at) = values.iter().position(|value| value.abs() > far) {
            return Err(Error::OutsideBox { row: at / columns, column: at % columns });
        }
        let domain = Domain::known(vec![-far; columns], vec![far; columns], Scaling::None);
        Ok(Self::of(Packed::of(values, columns), domain))
    }

    /// Takes rows (n x d) that are in working units and inside the box already.
    pub(crate) fn working(rows: &Rows, domain: &Domain) -> Self {
        Self::of(Packed::new(rows), domain.clone())
    }

    /// No rows yet, and room for so many that are held in this precision.
    ///
    /// # Errors
    /// [`Error::TooCoarse`] where single precision cannot tell enough numbers of a column apart.
    pub fn room(rows: usize, domain: &Domain, precision: Precision) -> Result<Self, Error> {
        if precision == Precision::Single {
            domain.fits_singles()?;
        }
        Ok(Self::of(Packed::room(domain.columns(), rows, precision), domain.clone()))
    }

    /// Appends rows of the same box.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub fn append(&mut self, more: &Self) -> Result<(), Error> {
        self.domain.same_columns(more.domain.columns())?;
        more.packed.parts().for_each(|part| self.packed.append(&part, &self.domain));
        (self.moved, self.kept) = Default::default();
        self.add_missing(&more.missing);
        Ok(())
    }

    fn add_missing(&mut self, more: &[u64]) {
        self.missing.resize(self.missing.len().max(more.len()), 0);
        self.missing.iter_mut().zip(more).for_each(|(all, more)| *all = all.saturating_add(*more));
    }

    /// With the number of rows that were read beside these and lack a value, by column, d.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub fn with_missing(mut self, missing: Vec<u64>) -> Result<Self, Error> {
        self.domain.same_columns(missing.len())?;
        self.missing = missing;
        self.moved = Arc::default();
        Ok(self)
    }

    /// Those numbers; none where nobody counted any.
    pub(crate) fn missing(&self) -> &[u64] {
        &self.missing
    }

    /// The same rows, held in this precision: in single precision each number is the nearest one inside the box.
    ///
    /// # Errors
    /// As [`Prepared::room`].
    pub fn held_in(self, precision: Precision) -> Result<Self, Error> {
        if precision == Precision::Double {
            return Ok(self);
        }
        let mut all = Self::room(self.len(), &self.domain, precision)?;
        all.append(&self)?;
        Ok(all)
    }

    /// All rows in one place, in the order of the sites: the yardstick of tests and demonstrations. All sites share a box.
    ///
    /// # Errors
    /// [`Error::NoRows`] where there are no sites, and those of [`Rows::pooled`].
    pub fn pooled(sites: &[Self]) -> Result<Self, Error> {
        let domain = sites.first().ok_or(Error::NoRows)?.domain.clone();
        let rows: Vec<Rows> = sites.iter().map(|site| site.packed.to_rows()).collect();
        let packed = Packed::new(&Rows::pooled(&rows)?);
        let mut all = Self::of(packed, domain);
        sites.iter().for_each(|site| all.add_missing(&site.missing));
        Ok(all)
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

    /// The rows under a transform, with the transformed box; kept for the next question of the same run.
    ///
    /// # Errors
    /// [`Error::Question`] where the transform does not fit the box.
    pub fn transformed(&self, transform: &Transform) -> Result<Arc<Self>, Error> {
        let domain = transform.domain(&self.domain)?;
        let mut moved = locked(&self.moved);
        if let Some((known, rows)) = &*moved
            && known == transform
        {
            return Ok(rows.clone());
        }
        // All the room is theirs now, and free before they are made.
        let old = moved.take().map_or_else(|| self.kept.clone(), |(_, rows)| rows.kept.clone());
        let given = std::mem::take(&mut *locked(&old));
        let room = given.room + given.all.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        drop(given);
        // In doubles, whatever the rows are held in: they are the transform of exactly those.
        let mut packed = Packed::room(self.packed.columns(), self.len(), Precision::Double);
        for part in self.packed.parts() {
            packed.append(&transform.rows(&part)?, &domain);
        }
        let rows = Self { missing: self.missing.clone(), ..Self::of(packed, domain) };
        let rows = Arc::new(rows.with_room(room));
        *moved = Some((transform.clone(), rows.clone()));
        Ok(rows)
    }

    /// Rows of which so many bytes of what is found out may be kept between questions. It makes hard groups faster and changes no answer.
    #[must_use]
    pub fn with_room(mut self, bytes: u64) -> Self {
        self.kept = Arc::new(Mutex::new(Kept { room: bytes, ..Kept::default() }));
        self
    }

    /// A batch begins. What the last two did not take is nobody's any more.
    pub(crate) fn next_batch(&self) {
        let mut kept = locked(&self.kept);
        kept.batch += 1;
        let Kept { room, batch, all } = &mut *kept;
        all.retain(|(_, bytes, last)| {
            let taken = last + 2 >= *batch;
            *room += if taken { 0 } else { *bytes };
            taken
        });
    }

    /// What `answer` makes of the nearest centre of every row, known from bounds; nothing where there is no room for them, or `answer` has
    /// nothing.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`], and those of `answer`.
    pub(crate) fn with_bounds<T>(
        &self,
        centres: &Centres,
        answer: impl FnOnce(&mut Bounds) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let rows = &self.packed;
        let bytes = Bounds::bytes(rows.len(), rows.columns(), centres.k());
        let Some((bytes, kept)) = locked(&self.kept).take(centres, bytes) else { return Ok(None) };
        // Nobody waits for the lock meanwhile. Where anything fails, nothing is kept.
        let found = match kept {
            Some(mut bounds) => bounds.move_to(rows, centres).map(|()| bounds),
            None => Bounds::new(rows, centres),
        };
        let found = found.and_then(|mut bounds| Ok((answer(&mut bounds)?, bounds)));
        let mut kept = locked(&self.kept);
        let (found, bounds) = match found {
            Ok((Some(found), bounds)) => (Ok(Some(found)), Some(bounds)),
            other => (other.map(|_| None), None),
        };
        let batch = kept.batch;
        match bounds {
            Some(bounds) => kept.all.push((bounds, bytes, batch)),
            None => kept.room += bytes,
        }
        found
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
    fn what_is_kept_between_questions_stays_within_its_room() {
        let mut random = crate::random::Stream::new(7, b"veilsum kept bounds 24..");
        let (n, d) = (100, 2);
        let values: Vec<f64> = (0..n * d).map(|_| random.unit()).collect();
        let mut centres = |k: usize| Centres::new(k, d, (0..k * d).map(|_| random.unit()).collect()).unwrap();
        let (two, three, moved) = (centres(2), centres(3), centres(3));
        let given = Bounds::bytes(n, d, 3) + 8;
        assert!(given >= 8 * n as u64);
        let site = Prepared::alone(&values, d).unwrap().with_room(given);
        let ask = |centres: &Centres| site.with_bounds(centres, |bounds| Ok(Some(bounds.own().collect::<Vec<_>>())));
        let plain = |centres: &Centres| -> Option<Vec<usize>> {
            Some(values.chunks(d).map(|row| distance::nearest(row, centres.rows()).0).collect())
        };
        let counted = |sets: usize| {
            let kept = locked(&site.kept);
            kept.all.len() == sets && kept.room + kept.all.iter().map(|(_, bytes, _)| bytes).sum::<u64>() == given
        };
        site.next_batch();
        assert_eq!(ask(&three), Ok(plain(&three)));
        // One batch takes a set of centres once, and there is no room for another.
        assert_eq!((ask(&moved), ask(&two)), (Ok(None), Ok(None)));
        site.next_batch();
        assert_eq!((ask(&moved), ask(&two), counted(1)), (Ok(plain(&moved)), Ok(None), true));
        // Whom two batches left alone gives way.
        (0..3).for_each(|_| site.next_batch());
        assert_eq!((ask(&two), counted(1)), (Ok(plain(&two)), true));
        site.next_batch();
        let failed = site.with_bounds(&two, |_| Err::<Option<()>, _>(Error::Steps));
        assert_eq!((failed, counted(0)), (Err(Error::Steps), true));
        assert_eq!(Prepared::alone(&values, d).unwrap().with_bounds(&two, |_| Ok(Some(()))), Ok(None));
    }

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
            let domain = Domain::mixed(vec![-3.0, 0.1], vec![5.0, 0.7], scaling, &[vec![0.5; 3]]).unwrap();
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
            assert!(matches!(error, Error::OutsideBox { row: 2000, column: 1 }), "{error}");
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
                Err(Error::Ragged { columns: 5 })
            ));
        }
    }

    #[test]
    fn rows_alone_are_checked_where_they_lie() {
        assert!(matches!(Prepared::alone(&[], 0), Err(Error::NoColumns)));
        assert!(matches!(Prepared::alone(&[1.0; 3], 2), Err(Error::Ragged { columns: 2 })));
        let bad = [1.0, 2.0, f64::NAN, 1.0];
        assert!(matches!(Prepared::alone(&bad, 2), Err(Error::NotFinite { row: 1, column: 0 })));
        let far = [1.0, 2.0, 1.0, -1e151];
        assert!(matches!(Prepared::alone(&far, 2), Err(Error::OutsideBox { row: 1, column: 1 })));
    }
}
