//! One site's rows, ready to answer questions: inside the public box, in working units, packed.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Domain, Error, OutOfBox, Packed, Rows, Scaling, Transform, refuse};

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
}

impl Prepared {
    /// Rows in working units, inside the box.
    fn of(packed: Packed, domain: Domain) -> Self {
        Self { packed, domain, missing: Vec::new(), moved: Arc::default() }
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
        refuse(!values.len().is_multiple_of(columns), || Error::Ragged(columns))?;
        let clip = out_of_box == OutOfBox::Clip;
        let all = Packed::with(values, columns, |column, values| {
            values.iter().fold(true, |all, x| all & x.is_finite()) & (domain.column_to_working(column, values) | clip)
        });
        if let Some(packed) = all {
            return Ok((Self::of(packed, domain.clone()), 0));
        }
        let mut kept = Vec::with_capacity(values.len());
        values
            .chunks_exact(columns)
            .filter(|row| Self::takes(row, domain, out_of_box))
            .for_each(|row| kept.extend_from_slice(row));
        let bad = (values.len() - kept.len()) / columns;
        Ok((Self::new(&Rows::known(kept, columns), domain, out_of_box)?, bad))
    }

    /// Whether a row of d values (ORIGINAL units) can be used: each is a finite number, inside the box where others are refused.
    pub fn takes(row: &[f64], domain: &Domain, out_of_box: OutOfBox) -> bool {
        let bounds = domain.lower().iter().zip(domain.upper());
        let clip = out_of_box == OutOfBox::Clip;
        row.iter().zip(bounds).all(|(x, (low, high))| x.is_finite() && (clip || (low..=high).contains(&x)))
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

    /// Appends rows of the same box.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub fn append(&mut self, more: &Self) -> Result<(), Error> {
        self.domain.same_columns(more.domain.columns())?;
        more.packed.parts().for_each(|part| self.packed.append(&part));
        self.moved = Arc::default();
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
        // A poisoned lock only means that another thread stopped in between; the content is whole.
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rows)) = &*moved
            && known == transform
        {
            return Ok(rows.clone());
        }
        *moved = None;
        let mut packed = Packed::room(self.packed.columns(), self.len());
        for part in self.packed.parts() {
            packed.append(&transform.rows(&part)?);
        }
        let rows = Arc::new(Self { missing: self.missing.clone(), ..Self::of(packed, domain) });
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
impl Prepared {
    /// Of rows inside the box.
    pub(crate) fn known(values: &[f64], domain: &Domain) -> Self {
        Self::new(&Rows::known(values.to_vec(), domain.columns()), domain, OutOfBox::Refuse).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Centres, distance};

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
        for scaling in [Scaling::Box, Scaling::None] {
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
                let quick = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap();
                assert_eq!(quick.packed().to_rows(), slow, "{scaling:?}");
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
            assert!(matches!(Prepared::usable(&[0.0; 4], 5, &domain, OutOfBox::Clip), Err(Error::Ragged(5))));
        }
    }

    #[test]
    fn rows_alone_are_checked_where_they_lie() {
        assert!(matches!(Prepared::alone(&[], 0), Err(Error::NoColumns)));
        assert!(matches!(Prepared::alone(&[1.0; 3], 2), Err(Error::Ragged(2))));
        let bad = [1.0, 2.0, f64::NAN, 1.0];
        assert!(matches!(Prepared::alone(&bad, 2), Err(Error::NotFinite { row: 1, column: 0 })));
        let far = [1.0, 2.0, 1.0, -1e151];
        assert!(matches!(Prepared::alone(&far, 2), Err(Error::OutsideBox { row: 1, column: 1 })));
    }
}
