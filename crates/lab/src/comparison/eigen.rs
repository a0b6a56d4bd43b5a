//! Eigenvectors of a small symmetric matrix by cyclic Jacobi rotations (Golub & Van Loan, Matrix Computations, 8.5).

use ndarray::Array2;

/// Sweeps at most; convergence is quadratic, so 6 to 10 are usual.
const SWEEPS: usize = 60;

/// Eigenvalues, falling, and eigenvectors as columns of an n x n matrix, for a symmetric one.
pub(super) fn symmetric(mut a: Array2<f64>) -> (Vec<f64>, Array2<f64>) {
    let n = a.nrows();
    let mut vectors = Array2::eye(n);
    let whole = a.iter().map(|x| x * x).sum::<f64>();
    for _ in 0..SWEEPS {
        let off =
            |a: &Array2<f64>| (0..n).flat_map(|p| (p + 1..n).map(move |q| (p, q))).map(|at| a[at] * a[at]).sum::<f64>();
        if off(&a) <= 1e-32 * whole {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut vectors, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| a[(*j, *j)].total_cmp(&a[(*i, *i)]));
    (order.iter().map(|i| a[(*i, *i)]).collect(), vectors.select(ndarray::Axis(1), &order))
}

/// Makes entry (p, q) 0: `A <- J' A J`, `V <- V J`.
fn rotate(a: &mut Array2<f64>, vectors: &mut Array2<f64>, p: usize, q: usize) {
    if a[(p, q)] == 0.0 {
        return;
    }
    let tau = (a[(q, q)] - a[(p, p)]) / (2.0 * a[(p, q)]);
    let t = 1.0_f64.copysign(tau) / (tau.abs() + tau.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    for k in 0..a.nrows() {
        let (x, y) = (a[(k, p)], a[(k, q)]);
        (a[(k, p)], a[(k, q)]) = (c * x - s * y, s * x + c * y);
    }
    for k in 0..a.nrows() {
        let (x, y) = (a[(p, k)], a[(q, k)]);
        (a[(p, k)], a[(q, k)]) = (c * x - s * y, s * x + c * y);
        let (x, y) = (vectors[(k, p)], vectors[(k, q)]);
        (vectors[(k, p)], vectors[(k, q)]) = (c * x - s * y, s * x + c * y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vectors_are_orthonormal_and_give_the_matrix_back(n in 1usize..8, values in prop::collection::vec(-5.0f64..5.0, 64)) {
            let half = Array2::from_shape_fn((n, n), |(i, j)| values[8 * i + j]);
            let a = &half + &half.t();
            let (values, vectors) = symmetric(a.clone());
            let near = |x: &Array2<f64>, y: &Array2<f64>| x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-11);
            prop_assert!(near(&vectors.t().dot(&vectors), &Array2::eye(n)));
            let diagonal = Array2::from_diag(&ndarray::Array1::from(values.clone()));
            prop_assert!(near(&vectors.dot(&diagonal).dot(&vectors.t()), &a));
            prop_assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
        }
    }
}
