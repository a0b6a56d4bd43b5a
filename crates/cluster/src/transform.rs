//! Federated standardisation: every site moves its rows by the same shift and factor, found from totals.

use serde::{Deserialize, Serialize};
use veilsum_contributions::Change;

use crate::error::same_columns;
use crate::{Centres, Domain, Error, Rows, Scaling, refuse};

/// From working units to standardised ones, column by column: clip, shift, multiply (`(clip(x) - shift) * factor`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transform {
    /// Lower clip bounds, d, working units; at the box's end where nothing is clipped.
    pub lower: Vec<f64>,
    /// Upper clip bounds, d, above the lower ones.
    pub upper: Vec<f64>,
    /// What is taken off, d, working units: means.
    pub shift: Vec<f64>,
    /// One over the standard deviation of each column, d, > 0.
    pub factor: Vec<f64>,
}

/// Factors up to this keep squares of transformed values inside `f64`; nothing sensible comes near.
pub(crate) const MAX_FACTOR: f64 = 1e12;

impl Transform {
    /// The transform that changes nothing.
    pub fn identity(domain: &Domain) -> Self {
        let d = domain.columns();
        let (lower, upper) = (0..d).map(|column| domain.working_interval(column)).unzip();
        Self { lower, upper, shift: vec![0.0; d], factor: vec![1.0; d] }
    }

    /// The box in transformed units (specification, QRY-2).
    ///
    /// # Errors
    /// [`Error::Transform`] where shapes do not fit, a clip interval is empty or leaves the box, a shift leaves it, or
    /// a factor is not a finite number above 0.
    pub fn domain(&self, domain: &Domain) -> Result<Domain, Error> {
        let d = domain.columns();
        let each = [&self.lower, &self.upper, &self.shift, &self.factor].map(Vec::len);
        refuse(each != [d; 4], || Error::Transform)?;
        let (mut low, mut high) = (Vec::with_capacity(d), Vec::with_capacity(d));
        for column in 0..d {
            let (from, to) = domain.working_interval(column);
            let (lower, upper) = (self.lower[column], self.upper[column]);
            let (shift, factor) = (self.shift[column], self.factor[column]);
            let inside = from <= lower && lower < upper && upper <= to; // false for NaN
            // A shift of 0 is none, wherever the box lies.
            let shifts = (shift == 0.0 && factor == 1.0) || (from..=to).contains(&shift);
            let usable = shifts && factor > 0.0 && factor <= MAX_FACTOR / (to - from).max(1.0);
            refuse(!inside || !usable, || Error::Transform)?;
            low.push((lower - shift) * factor);
            high.push((upper - shift) * factor);
        }
        Domain::new(low, high, Scaling::None).map_err(|_| Error::Transform)
    }

    /// A point (d) in transformed units; nothing is clipped.
    pub fn point(&self, x: &[f64]) -> Vec<f64> {
        x.iter().zip(&self.shift).zip(&self.factor).map(|((x, shift), factor)| (x - shift) * factor).collect()
    }

    /// Rows (n x d, working units) in transformed units.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub fn rows(&self, rows: &Rows) -> Result<Rows, Error> {
        let d = rows.columns();
        same_columns(self.shift.len(), d)?;
        let mut values = rows.as_slice().to_vec();
        values.chunks_exact_mut(d).for_each(|row| self.change().apply(row));
        Rows::new(values, d)
    }

    /// What it does to a row.
    pub(crate) fn change(&self) -> Change<'_> {
        Change { lower: &self.lower, upper: &self.upper, shift: &self.shift, factor: &self.factor }
    }

    /// Centres (K x d) from working into transformed units; nothing is clipped.
    ///
    /// # Errors
    /// [`Error`] where shapes do not fit or a number leaves `f64`.
    pub fn centres(&self, centres: &Centres) -> Result<Centres, Error> {
        self.map(centres, |centre| self.point(centre))
    }

    /// Centres (K x d) from transformed back into working units.
    ///
    /// # Errors
    /// As [`Transform::centres`].
    pub fn back(&self, centres: &Centres) -> Result<Centres, Error> {
        self.map(centres, |centre| {
            centre.iter().zip(&self.factor).zip(&self.shift).map(|((x, factor), shift)| x / factor + shift).collect()
        })
    }

    fn map(&self, centres: &Centres, map: impl Fn(&[f64]) -> Vec<f64>) -> Result<Centres, Error> {
        let d = centres.columns();
        same_columns(self.shift.len(), d)?;
        Centres::new(centres.k(), d, centres.rows().flat_map(map).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain() -> Domain {
        Domain::new(vec![0.0, -5.0], vec![1.0, 5.0], Scaling::None).unwrap()
    }

    #[test]
    fn a_transform_outside_its_domain_is_refused() {
        let domain = domain();
        let good = Transform::identity(&domain);
        assert!(good.domain(&domain).is_ok());
        for bad in [
            Transform { factor: vec![0.0, 1.0], ..good.clone() },
            Transform { factor: vec![f64::NAN, 1.0], ..good.clone() },
            Transform { factor: vec![1e13, 1.0], ..good.clone() },
            Transform { factor: vec![1.0], ..good.clone() },
            Transform { factor: vec![1.0, 0.5, 1.0], ..good.clone() },
            Transform { shift: vec![2.0, 0.0], ..good.clone() },
            Transform { lower: vec![0.5, -5.0], upper: vec![0.5, 5.0], ..good.clone() },
            Transform { upper: vec![f64::INFINITY, 5.0], ..good.clone() },
        ] {
            assert_eq!(bad.domain(&domain), Err(Error::Transform));
        }
    }
}
