//! Singular values and right singular vectors by one-sided Jacobi rotations (Hestenes 1958), after a Householder
//! factorisation where there are many more rows than columns. It takes fifty lines and no linear-algebra crate. Small
//! values have high relative accuracy, which matters here.

use crate::qr::{dot, triangularise};

/// Of an m x n matrix with n columns.
pub struct Svd {
    /// Singular values, in no order.
    pub values: Vec<f64>,
    /// n x n, column k (row-major) belongs to value k.
    pub right: Vec<f64>,
}

/// The largest number of times that rotations go over all pairs.
const SWEEPS: usize = 40;

/// Of `rows` of `n` entries each, row-major.
pub fn svd(rows: &[f64], n: usize) -> Svd {
    let m = rows.len() / n.max(1);
    let mut columns: Vec<Vec<f64>> = (0..n).map(|j| (0..m).map(|i| rows[i * n + j]).collect()).collect();
    if m > n {
        triangularise(&mut columns, n);
        columns.iter_mut().for_each(|c| c.truncate(n));
    }
    let mut right: Vec<Vec<f64>> = (0..n).map(|j| (0..n).map(|i| f64::from(u8::from(i == j))).collect()).collect();
    let floor = 1e-15 * columns.iter().map(|c| dot(c, c)).sum::<f64>().sqrt();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let (a, b, c) =
                    (dot(&columns[p], &columns[p]), dot(&columns[q], &columns[q]), dot(&columns[p], &columns[q]));
                if c.abs() <= 1e-15 * (a * b).sqrt() || a.sqrt() < floor && b.sqrt() < floor {
                    continue;
                }
                turned = true;
                let zeta = (b - a) / (2.0 * c);
                let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let cosine = 1.0 / (1.0 + t * t).sqrt();
                rotate(&mut columns, p, q, cosine, cosine * t);
                rotate(&mut right, p, q, cosine, cosine * t);
            }
        }
        if !turned {
            break;
        }
    }
    let values = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    let right = (0..n * n).map(|i| right[i % n][i / n]).collect();
    Svd { values, right }
}

fn rotate(columns: &mut [Vec<f64>], p: usize, q: usize, cosine: f64, sine: f64) {
    let (left, rest) = columns.split_at_mut(q);
    for (x, y) in left[p].iter_mut().zip(&mut rest[0]) {
        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_cluster::random::Stream;

    /// V diag(s^2) V' is A'A, and V is orthogonal.
    #[test]
    fn a_matrix_is_its_decomposition() {
        println!("seed 9");
        let mut stream = Stream::new(9, b"veilsum audit test    v1");
        for (m, n) in [(7, 7), (40, 6), (5, 9)] {
            let a: Vec<f64> = (0..m * n).map(|_| stream.normal_pair()[0]).collect();
            let Svd { values, right } = svd(&a, n);
            for i in 0..n {
                for j in 0..n {
                    let gram: f64 = (0..m).map(|r| a[r * n + i] * a[r * n + j]).sum();
                    let (mut back, mut one) = (0.0, 0.0);
                    for k in 0..n {
                        back += right[i * n + k] * values[k] * values[k] * right[j * n + k];
                        one += right[i * n + k] * right[j * n + k];
                    }
                    assert!((gram - back).abs() < 1e-10, "{m} x {n}: {gram} {back}");
                    assert!((one - f64::from(u8::from(i == j))).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn small_values_are_accurate() {
        let mut values = svd(&[1.0, 0.0, 1.0, 1e-9], 2).values;
        values.sort_by(f64::total_cmp);
        // det = 1e-9, so that the product is known.
        assert!((values[0] * values[1] / 1e-9 - 1.0).abs() < 1e-9, "{values:?}");
    }
}
