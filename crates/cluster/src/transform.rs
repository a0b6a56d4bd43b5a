//! Federated standardisation: every site moves its rows by the same shift and factor, found from totals.

use serde::{Deserialize, Serialize};

use crate::shape::triangle;
use crate::{Centres, Domain, Error, Rows, Scaling};

/// From working units to standardised ones: clip, shift, multiply (`F (clip(x) - shift)`). F is diagonal, or a lower triangle that
/// whitens the columns, so that squared distances are those of Mahalanobis (1936).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transform {
    /// Lower clip bounds, d, working units; at the box's end where nothing is clipped.
    pub lower: Vec<f64>,
    /// Upper clip bounds, d, above the lower ones.
    pub upper: Vec<f64>,
    /// What is taken off, d, working units: means or medians.
    pub shift: Vec<f64>,
    /// F: its diagonal, d, each one over the standard deviation or the interquartile range; or its lower triangle row by row,
    /// d (d + 1) / 2, the inverse of the Cholesky factor of the covariance matrix. The diagonal is > 0.
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
        let shapes = [&self.lower, &self.upper, &self.shift];
        if shapes.iter().any(|list| list.len() != d) || ![d, triangle(d)].contains(&self.factor.len()) {
            return Err(Error::Transform);
        }
        let (mut low, mut high) = (Vec::with_capacity(d), Vec::with_capacity(d));
        for column in 0..d {
            let (from, to) = domain.working_interval(column);
            let (lower, upper) = (self.lower[column], self.upper[column]);
            let (shift, factor) = (self.shift[column], self.diagonal(column));
            let inside = from <= lower && lower < upper && upper <= to; // false for NaN
            // A shift of 0 is none, wherever the box lies.
            let shifts = (shift == 0.0 && factor == 1.0) || (from..=to).contains(&shift);
            let usable = shifts && factor > 0.0 && factor <= MAX_FACTOR / (to - from).max(1.0);
            if !inside || !usable {
                return Err(Error::Transform);
            }
        }
        for column in 0..d {
            let usable = |(at, part): (usize, f64)| {
                let (from, to) = domain.working_interval(at);
                part.abs() <= MAX_FACTOR / (to - from).max(1.0)
            };
            if !self.line(column).all(usable) {
                return Err(Error::Transform);
            }
            let (least, most) = self.interval(column);
            low.push(least);
            high.push(most);
        }
        Domain::new(low, high, Scaling::None).map_err(|_| Error::Transform)
    }

    /// Whether F is a triangle, and mixes columns.
    pub fn mixes(&self) -> bool {
        self.factor.len() != self.shift.len()
    }

    /// Of a whitening the part of every column's variance that follows from the columns before it by a line, d. With L the inverse of F,
    /// the covariance matrix is `L Lᵀ`.
    pub(crate) fn follows(&self) -> Option<Vec<f64>> {
        let d = self.shift.len();
        let corners =
            (0..=d).map(|at| (0..d).map(|j| f64::from(u8::from(j == at))).collect()).collect::<Vec<Vec<f64>>>();
        // The last one is the mean, and each of the others a column of L beyond it.
        let back = self.back(&Centres::from_rows(&corners).ok()?).ok()?;
        let part = |i: usize| {
            let entry = |j: usize| back.row(j)[i] - back.row(d)[i];
            let variance: f64 = (0..=i).map(|j| entry(j).powi(2)).sum();
            if variance > 0.0 { 1.0 - entry(i).powi(2) / variance } else { 0.0 }
        };
        Some((0..d).map(part).collect())
    }

    /// The number of a column on the diagonal of F.
    pub(crate) fn diagonal(&self, column: usize) -> f64 {
        self.factor[if self.mixes() { triangle(column) + column } else { column }]
    }

    /// A row of F: places and numbers up to the diagonal, without the zeros of a diagonal F.
    fn line(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let (from, first) = if self.mixes() { (triangle(row), 0) } else { (row, row) };
        self.factor[from..].iter().take(row + 1 - first).enumerate().map(move |(i, part)| (first + i, *part))
    }

    /// What rows can have in a transformed column.
    fn interval(&self, column: usize) -> (f64, f64) {
        self.line(column).fold((0.0, 0.0), |(low, high), (at, part)| {
            let ends = [self.lower[at], self.upper[at]].map(|end| (end - self.shift[at]) * part);
            (low + ends[0].min(ends[1]), high + ends[0].max(ends[1]))
        })
    }

    /// A point (d) in transformed units; nothing is clipped.
    pub fn point(&self, x: &[f64]) -> Vec<f64> {
        let one = |row: usize| self.line(row).map(|(at, part)| (x[at] - self.shift[at]) * part).sum();
        (0..self.shift.len()).map(one).collect()
    }

    /// Rows (n x d, working units) in transformed units.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub fn rows(&self, rows: &Rows) -> Result<Rows, Error> {
        let d = rows.columns();
        if d != self.shift.len() {
            return Err(Error::ColumnMismatch { expected: self.shift.len(), found: d });
        }
        let ends: Vec<(f64, f64)> = (0..d).map(|column| self.interval(column)).collect();
        let mut values = Vec::with_capacity(rows.as_slice().len());
        for row in rows {
            let clip = |(column, x): (usize, &f64)| x.clamp(self.lower[column], self.upper[column]);
            let clipped: Vec<f64> = row.iter().enumerate().map(clip).collect();
            // Sums of products may round to a hair outside.
            values.extend(self.point(&clipped).iter().zip(&ends).map(|(x, (low, high))| x.clamp(*low, *high)));
        }
        Rows::new(values, d)
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
        // F is triangular: every column follows from those before it.
        self.map(centres, |centre| {
            let mut off: Vec<f64> = Vec::with_capacity(centre.len());
            for (row, value) in centre.iter().enumerate() {
                let known: f64 = self.line(row).filter(|(at, _)| *at < row).map(|(at, part)| part * off[at]).sum();
                off.push((value - known) / self.diagonal(row));
            }
            off.iter().zip(&self.shift).map(|(off, shift)| off + shift).collect()
        })
    }

    fn map(&self, centres: &Centres, map: impl Fn(&[f64]) -> Vec<f64>) -> Result<Centres, Error> {
        let d = centres.columns();
        if d != self.shift.len() {
            return Err(Error::ColumnMismatch { expected: self.shift.len(), found: d });
        }
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
    fn there_and_back() {
        let domain = domain();
        let t = Transform { shift: vec![0.25, 1.0], factor: vec![4.0, 0.5], ..Transform::identity(&domain) };
        let moved = t.domain(&domain).unwrap();
        assert_eq!((moved.lower(), moved.upper()), ([-1.0, -3.0].as_slice(), [3.0, 2.0].as_slice()));
        let centres = Centres::from_rows(&[vec![0.5, 3.0]]).unwrap();
        assert_eq!(t.centres(&centres).unwrap().as_slice(), [1.0, 1.0]);
        assert_eq!(t.back(&t.centres(&centres).unwrap()).unwrap(), centres);
        let clipped = Transform { upper: vec![0.5, 5.0], ..t };
        let rows = clipped.rows(&Rows::new(vec![0.9, 3.0], 2).unwrap()).unwrap();
        assert_eq!(rows.as_slice(), [1.0, 1.0]);
    }

    #[test]
    fn a_triangle_there_and_back() {
        let domain = domain();
        let t = Transform { shift: vec![0.5, 1.0], factor: vec![2.0, -4.0, 0.5], ..Transform::identity(&domain) };
        let moved = t.domain(&domain).unwrap();
        assert_eq!((moved.lower(), moved.upper()), ([-1.0, -5.0].as_slice(), [1.0, 4.0].as_slice()));
        let centres = Centres::from_rows(&[vec![0.75, 3.0]]).unwrap();
        assert_eq!(t.centres(&centres).unwrap().as_slice(), [0.5, 0.0]);
        assert_eq!(t.back(&t.centres(&centres).unwrap()).unwrap(), centres);
        let rows = t.rows(&Rows::new(vec![0.75, 9.0], 2).unwrap()).unwrap();
        assert_eq!(rows.as_slice(), [0.5, 1.0], "clipped before");
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
            Transform { factor: vec![1.0, 0.5, 0.0], ..good.clone() },
            Transform { factor: vec![1.0, 1e13, 1.0], ..good.clone() },
            Transform { shift: vec![2.0, 0.0], ..good.clone() },
            Transform { lower: vec![0.5, -5.0], upper: vec![0.5, 5.0], ..good.clone() },
            Transform { upper: vec![f64::INFINITY, 5.0], ..good.clone() },
        ] {
            assert_eq!(bad.domain(&domain), Err(Error::Transform));
        }
    }
}
