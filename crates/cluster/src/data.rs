//! Rows and centres: the two shapes every method works on, checked once so that nothing downstream meets a NaN.

use serde::{Deserialize, Serialize};

use crate::error::same_columns;
use crate::random::Stream;
use crate::{Domain, Error, refuse};

/// The rows of one site, n x d, row-major, all finite.
///
/// `Debug` prints the number of columns and nothing else: rows never reach a log.
#[derive(Clone, PartialEq)]
pub struct Rows {
    values: Vec<f64>,
    columns: usize,
}

impl Rows {
    /// Takes n x d values, row by row. No rows at all (n = 0) is allowed.
    ///
    /// # Errors
    /// [`Error::NoColumns`], [`Error::Ragged`], or [`Error::NotFinite`] naming row and column from 0.
    pub fn new(values: Vec<f64>, columns: usize) -> Result<Self, Error> {
        Self::check(&values, columns)?;
        Ok(Self { values, columns })
    }

    /// Whether these are finite numbers that fill whole rows.
    pub(crate) fn check(values: &[f64], columns: usize) -> Result<(), Error> {
        refuse(columns == 0, || Error::NoColumns)?;
        refuse(!values.len().is_multiple_of(columns), || Error::Ragged(columns))?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::NotFinite { row: at / columns, column: at % columns });
        }
        Ok(())
    }

    /// Values that are finite and fill whole rows by construction.
    pub fn known(values: Vec<f64>, columns: usize) -> Self {
        debug_assert!(values.len().is_multiple_of(columns) && values.iter().all(|value| value.is_finite()));
        Self { values, columns }
    }

    /// Number of rows, n.
    pub fn len(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of columns, d >= 1.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row `i`, d values.
    ///
    /// # Panics
    /// If `i >= len()`, as indexing a slice does.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// All n x d values, row-major.
    pub fn as_slice(&self) -> &[f64] {
        &self.values
    }

    /// The rows in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, f64> {
        self.values.chunks_exact(self.columns)
    }

    /// All rows of several sites, one after the other: what a pooled run would see.
    ///
    /// # Errors
    /// [`Error::NoRows`] for an empty list, [`Error::ColumnMismatch`].
    pub fn pooled<'a>(sites: impl IntoIterator<Item = &'a Rows>) -> Result<Self, Error> {
        let mut sites = sites.into_iter();
        let mut all = sites.next().ok_or(Error::NoRows)?.clone();
        for site in sites {
            same_columns(all.columns, site.columns)?;
            all.values.extend_from_slice(&site.values);
        }
        Ok(all)
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// Cluster centres, K x d, all finite, K >= 1, d >= 1.
///
/// In units of the working space of a [`Domain`](crate::Domain) unless said otherwise. The serialised form carries the
/// shape beside the values, and reading it checks one against the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Flat", into = "Flat")]
pub struct Centres {
    values: Vec<f64>,
    columns: usize,
}

/// The serialised form: fixed-width shape, then K x d values, row-major.
#[derive(Serialize, Deserialize)]
struct Flat {
    k: u32,
    columns: u32,
    values: Vec<f64>,
}

impl Centres {
    /// Takes K x d values, centre by centre.
    ///
    /// # Errors
    /// [`Error::NoCentres`], [`Error::NoColumns`], or [`Error::Parameter`] for values that are no finite numbers or do not fill the centres.
    pub fn new(k: usize, columns: usize, values: Vec<f64>) -> Result<Self, Error> {
        refuse(k == 0, || Error::NoCentres)?;
        refuse(columns == 0, || Error::NoColumns)?;
        // The wire form holds the shape in 32 bits each; a larger one cannot be real and is refused here, once.
        let fits = u32::try_from(k).is_ok() && u32::try_from(columns).is_ok();
        let fill = fits && k.checked_mul(columns) == Some(values.len());
        refuse(!fill, || Error::parameter(format!("the values do not fill {k} centres of {columns} columns")))?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (centre, column) = (at / columns, at % columns);
            let what = format!("centre {centre}, column {column} (both counted from 0) is not a finite number");
            return Err(Error::parameter(what));
        }
        Ok(Self { values, columns })
    }

    /// Takes one vector of d coordinates for each centre.
    ///
    /// # Errors
    /// As [`Centres::new`]; centres of unequal length are a [`Error::ColumnMismatch`].
    pub fn from_rows(rows: &[Vec<f64>]) -> Result<Self, Error> {
        let columns = rows.first().ok_or(Error::NoCentres)?.len();
        rows.iter().try_for_each(|row| same_columns(columns, row.len()))?;
        Self::new(rows.len(), columns, rows.concat())
    }

    /// Finite centres that exist by construction.
    pub fn known<const D: usize>(rows: Vec<[f64; D]>) -> Self {
        debug_assert!(!rows.is_empty() && D > 0 && rows.as_flattened().iter().all(|value| value.is_finite()));
        Self { values: rows.into_flattened(), columns: D }
    }

    /// K first centres: independent uniform coordinates in the working box.
    ///
    /// Bárcena et al. (2021) start uniformly in the known ranges of attributes; no data are needed for that.
    ///
    /// The same seed gives the same centres for ever: ChaCha20 keyed with the seed (8 bytes, little-endian) and the label
    /// `veilsum start uniform v1`; 64 bits for each coordinate, centre by centre and column by column, of which the upper
    /// 53 make a number in [0, 1).
    ///
    /// # Errors
    /// [`Error::NoCentres`] for K = 0.
    pub fn uniform(domain: &Domain, k: usize, seed: u64) -> Result<Self, Error> {
        let mut stream = Stream::new(seed, b"veilsum start uniform v1");
        let mut values = Vec::new();
        for _ in 0..k {
            for column in 0..domain.columns() {
                let (low, high) = domain.working_interval(column);
                values.push(low + stream.unit() * (high - low));
            }
        }
        Self::new(k, domain.columns(), values)
    }

    /// K x d finite values in whole centres, K >= 1 and d >= 1, by construction.
    pub(crate) fn finite(columns: usize, values: &[f64]) -> Self {
        debug_assert!(!values.is_empty() && values.len().is_multiple_of(columns));
        debug_assert!(values.iter().all(|value| value.is_finite()));
        Self { values: values.to_vec(), columns }
    }

    /// Number of centres, K >= 1.
    pub fn k(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Number of columns, d >= 1.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Centre `i`, d coordinates.
    ///
    /// # Panics
    /// If `i >= k()`, as indexing a slice does.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// The centres in order, d coordinates each.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, f64> {
        self.values.chunks_exact(self.columns)
    }

    /// All K x d coordinates, row-major.
    pub fn as_slice(&self) -> &[f64] {
        &self.values
    }

    /// Their coordinates (K x d), with `sum / weight` in the place of each centre that has a weight above 0.
    pub(crate) fn averaged(&self, sums: &[f64], weights: &[f64]) -> Vec<f64> {
        let mut values = self.values.clone();
        let clusters = values.chunks_exact_mut(self.columns).zip(sums.chunks_exact(self.columns)).zip(weights);
        for ((centre, sum), weight) in clusters.filter(|(_, weight)| **weight > 0.0) {
            centre.iter_mut().zip(sum).for_each(|(coordinate, sum)| *coordinate = sum / weight);
        }
        values
    }

    /// K and d.
    pub fn shape(&self) -> (usize, usize) {
        (self.k(), self.columns)
    }

    /// Frobenius norm of the difference, centre by centre (no permutation).
    ///
    /// # Errors
    /// [`Error::CentreShapes`] or [`Error::ColumnMismatch`] for another shape.
    pub fn frobenius_distance(&self, other: &Self) -> Result<f64, Error> {
        refuse(self.k() != other.k(), || Error::CentreShapes)?;
        same_columns(self.columns, other.columns)?;
        Ok(self.as_slice().iter().zip(other.as_slice()).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt())
    }
}

impl TryFrom<Flat> for Centres {
    type Error = Error;

    fn try_from(flat: Flat) -> Result<Self, Error> {
        Self::new(flat.k as usize, flat.columns as usize, flat.values)
    }
}

impl From<Centres> for Flat {
    fn from(centres: Centres) -> Self {
        // Neither is larger, but for what exists by construction; saturating fails on reading instead of passing for a smaller shape.
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { k: narrow(centres.k()), columns: narrow(centres.columns), values: centres.values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_refuse_what_they_cannot_hold() {
        assert_eq!(Rows::new(vec![1.0], 0), Err(Error::NoColumns));
        assert_eq!(Rows::new(vec![1.0, 2.0, 3.0], 2), Err(Error::Ragged(2)));
        let bad = Rows::new(vec![1.0, 2.0, 3.0, f64::NAN], 2).unwrap_err();
        assert_eq!(bad, Error::NotFinite { row: 1, column: 1 });
        assert_eq!(Rows::new(vec![f64::INFINITY, 2.0], 2), Err(Error::NotFinite { row: 0, column: 0 }));
        let rows = Rows::new(vec![], 3).unwrap();
        assert!(rows.is_empty() && rows.iter().next().is_none());
    }

    #[test]
    fn debug_shows_no_value() {
        let rows = Rows::new(vec![123.5, 7.25], 2).unwrap();
        let text = format!("{rows:?}");
        assert!(!text.contains("123") && !text.contains("7.25"), "{text}");
    }

    #[test]
    fn centres_check_their_shape_on_reading() {
        let centres = Centres::from_rows(&[vec![0.0, 1.0], vec![2.0, 3.0]]).unwrap();
        let text = serde_json::to_string(&centres).unwrap();
        assert_eq!(serde_json::from_str::<Centres>(&text).unwrap(), centres);
        for bad in [
            r#"{"k":0,"columns":2,"values":[]}"#,
            r#"{"k":1,"columns":0,"values":[]}"#,
            r#"{"k":2,"columns":2,"values":[1,2,3]}"#,
            r#"{"k":4294967295,"columns":4294967295,"values":[1]}"#,
            r#"{"k":1,"columns":1,"values":[1e999]}"#,
        ] {
            assert!(serde_json::from_str::<Centres>(bad).is_err(), "{bad}");
        }
        let odd = Centres::new(1, 2, vec![0.0, f64::NAN]).unwrap_err().to_string();
        assert!(odd.starts_with("centre 0, column 1 "), "{odd}");
        assert!(Centres::from_rows(&[vec![0.0], vec![1.0, 2.0]]).is_err());
        assert!(Centres::from_rows(&[]).is_err());
    }

    #[test]
    fn frobenius_distance_is_index_matched() {
        let a = Centres::from_rows(&[vec![0.0, 0.0], vec![3.0, 4.0]]).unwrap();
        let b = Centres::from_rows(&[vec![0.0, 0.0], vec![0.0, 0.0]]).unwrap();
        assert_eq!(a.frobenius_distance(&b), Ok(5.0));
        assert!(a.frobenius_distance(&Centres::from_rows(&[vec![0.0, 0.0]]).unwrap()).is_err());
    }
}
