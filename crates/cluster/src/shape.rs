//! Symmetric positive definite matrices, one for each cluster: covariances of a Gaussian mixture, fuzzy covariances of
//! Gustafson & Kessel. A matrix of d columns is its lower triangle, row by row: d (d + 1) / 2 numbers.

use crate::Domain;

/// Numbers in the lower triangle of a d x d matrix.
pub(crate) fn triangle(d: usize) -> usize {
    d * (d + 1) / 2
}

/// The place of row i, column j <= i.
fn at(i: usize, j: usize) -> usize {
    triangle(i) + j
}

/// A multiple of the identity.
pub(crate) fn round(d: usize, variance: f64) -> Vec<f64> {
    let mut matrix = vec![0.0; triangle(d)];
    lift(&mut matrix, d, variance);
    matrix
}

/// Adds to the diagonal.
pub(crate) fn lift(matrix: &mut [f64], d: usize, variance: f64) {
    (0..d).for_each(|i| matrix[at(i, i)] += variance);
}

/// Adds `weight z zᵀ`.
pub(crate) fn add_square(matrix: &mut [f64], z: &[f64], weight: f64) {
    let mut slots = matrix.iter_mut();
    for (i, a) in z.iter().enumerate() {
        // The shorter one first: the other way round, a slot is lost at the end of every row.
        for (b, slot) in z[..=i].iter().zip(slots.by_ref()) {
            *slot += weight * a * b;
        }
    }
}

/// The Cholesky factor of a matrix, and what the densities need of it.
#[derive(Debug, Clone)]
pub(crate) struct Factor {
    /// L with `L Lᵀ` the matrix, lower triangle.
    lower: Vec<f64>,
    /// Logarithm of the determinant.
    pub(crate) log_det: f64,
    /// Trace of the inverse: at least one over the smallest eigenvalue.
    pub(crate) trace_of_inverse: f64,
}

impl Factor {
    /// Of a matrix of d columns; `None` where it is not positive definite, or too close to that for doubles.
    pub(crate) fn of(matrix: &[f64], d: usize) -> Option<Self> {
        let mut lower = matrix.to_vec();
        let mut log_det = 0.0;
        for i in 0..d {
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| lower[at(i, k)] * lower[at(j, k)]).sum();
                let rest = matrix[at(i, j)] - known;
                if i != j {
                    lower[at(i, j)] = rest / lower[at(j, j)];
                    continue;
                }
                if !(rest > 0.0 && rest.is_finite()) {
                    return None;
                }
                lower[at(i, i)] = rest.sqrt();
                log_det += rest.ln();
            }
        }
        let mut factor = Self { lower, log_det, trace_of_inverse: 0.0 };
        // The squares of the entries of the inverse of L add up to the trace.
        let mut unit = vec![0.0; d];
        let mut y = vec![0.0; d];
        for column in 0..d {
            unit.fill(0.0);
            unit[column] = 1.0;
            factor.trace_of_inverse += factor.distance(&unit, &mut y);
        }
        (factor.trace_of_inverse.is_finite() && log_det.is_finite()).then_some(factor)
    }

    /// The inverse of L, lower triangle.
    pub(crate) fn inverse(&self, d: usize) -> Vec<f64> {
        let mut out = vec![0.0; triangle(d)];
        let (mut unit, mut y) = (vec![0.0; d], vec![0.0; d]);
        for column in 0..d {
            unit.fill(0.0);
            unit[column] = 1.0;
            self.distance(&unit, &mut y);
            (column..d).for_each(|row| out[at(row, column)] = y[row]);
        }
        out
    }

    /// `L z`: of z with the identity as its covariance, one with this matrix.
    pub(crate) fn stretch(&self, z: &[f64]) -> Vec<f64> {
        let row = |i: usize| self.lower[triangle(i)..=at(i, i)].iter().zip(z).map(|(a, z)| a * z).sum();
        (0..z.len()).map(row).collect()
    }

    /// Squared Mahalanobis distance `zᵀ (L Lᵀ)⁻¹ z`, by forward substitution into `y`.
    pub(crate) fn distance(&self, z: &[f64], y: &mut [f64]) -> f64 {
        let mut sum = 0.0;
        for (i, z) in z.iter().enumerate() {
            let row = &self.lower[triangle(i)..=at(i, i)];
            let known: f64 = row[..i].iter().zip(&y[..i]).map(|(a, b)| a * b).sum();
            y[i] = (z - known) / row[i];
            sum += y[i] * y[i];
        }
        sum
    }
}

/// Extents of the columns of a box, working units.
pub(crate) fn extents(domain: &Domain) -> Vec<f64> {
    let extent = |column| {
        let (low, high) = domain.working_interval(column);
        high - low
    };
    (0..domain.columns()).map(extent).collect()
}

/// A matrix with rows and columns multiplied by these.
pub(crate) fn stretched(matrix: &[f64], by: &[f64]) -> Vec<f64> {
    let mut out = matrix.to_vec();
    for i in 0..by.len() {
        for j in 0..=i {
            out[at(i, j)] *= by[i] * by[j];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_by_hand() {
        // [[4, 2], [2, 10]] = L Lᵀ with L = [[2, 0], [1, 3]]; the determinant is 36, the inverse [[10, -2], [-2, 4]] / 36.
        let factor = Factor::of(&[4.0, 2.0, 10.0], 2).unwrap();
        assert!((factor.log_det - 36f64.ln()).abs() < 1e-14);
        assert!((factor.trace_of_inverse - 14.0 / 36.0).abs() < 1e-15);
        let distance = factor.distance(&[1.0, -1.0], &mut [0.0; 2]);
        assert!((distance - (10.0 + 4.0 + 4.0) / 36.0).abs() < 1e-15);
        for bad in [[1.0, 2.0, 1.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [f64::NAN, 0.0, 1.0], [1.0, f64::INFINITY, 1.0]]
        {
            assert!(Factor::of(&bad, 2).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn squares_add_up_to_a_triangle() {
        let mut matrix = round(3, 0.5);
        add_square(&mut matrix, &[1.0, 2.0, -1.0], 2.0);
        assert_eq!(matrix, [2.5, 4.0, 8.5, -2.0, -4.0, 2.5]);
        assert_eq!(stretched(&matrix, &[1.0, 2.0, 10.0]), [2.5, 8.0, 34.0, -20.0, -80.0, 250.0]);
    }
}
