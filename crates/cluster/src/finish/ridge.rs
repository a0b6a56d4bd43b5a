//! Least squares with a penalty on the coefficients, `min |A c - f|^2 + |c|^2`, factored once for many right-hand sides: the
//! Householder factorisation of `[A; I]` (Golub & Van Loan, section 5.2). No Gram matrix is formed, so that coefficients are
//! as good as the columns of A are.

use rayon::prelude::*;

/// The smallest number of columns for one thread; fewer are not worth waking it.
const LEAST_COLUMNS: usize = 16;

/// `[A; I] = Q R`.
pub(super) struct Ridge {
    /// Column k holds R above place k, then the reflection of step k in the places k to rows + k: below A a column of the
    /// identity has filled no farther.
    columns: Vec<Vec<f64>>,
    /// The diagonal of R.
    diagonal: Vec<f64>,
    /// Half the squared length of every reflection.
    halves: Vec<f64>,
    rows: usize,
}

impl Ridge {
    /// Factors A, given as its columns of `rows` entries each; takes `2 rows n^2` multiplications for n columns.
    pub(super) fn factor(mut columns: Vec<Vec<f64>>, rows: usize) -> Self {
        let n = columns.len();
        for (j, column) in columns.iter_mut().enumerate() {
            column.resize(rows + n, 0.0);
            column[rows + j] = 1.0;
        }
        let (mut diagonal, mut halves) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for k in 0..n {
            let (done, rest) = columns.split_at_mut(k + 1);
            let own = &mut done[k][k..=rows + k];
            // Never 0, because of the identity below.
            let pivot = -dot(own, own).sqrt().copysign(own[0]);
            own[0] -= pivot;
            let half = dot(own, own) / 2.0;
            let own = &*own;
            rest.par_iter_mut()
                .with_min_len(LEAST_COLUMNS)
                .for_each(|column| reflect(own, half, &mut column[k..=rows + k]));
            diagonal.push(pivot);
            halves.push(half);
        }
        Self { columns, diagonal, halves, rows }
    }

    /// The coefficients (n) for one right-hand side of `rows` entries.
    pub(super) fn solve(&self, side: &[f64]) -> Vec<f64> {
        let n = self.columns.len();
        let mut side = side.to_vec();
        side.resize(self.rows + n, 0.0);
        for (k, (column, half)) in self.columns.iter().zip(&self.halves).enumerate() {
            reflect(&column[k..=self.rows + k], *half, &mut side[k..=self.rows + k]);
        }
        side.truncate(n);
        for k in (0..n).rev() {
            let (above, own) = side.split_at_mut(k);
            own[0] /= self.diagonal[k];
            add(above, -own[0], &self.columns[k][..k]);
        }
        side
    }
}

/// `x - v (v . x) / half`.
fn reflect(v: &[f64], half: f64, x: &mut [f64]) {
    let share = dot(v, x) / half;
    add(x, -share, v);
}

/// Adds `factor` times `v` to `x`.
pub(super) fn add(x: &mut [f64], factor: f64, v: &[f64]) {
    x.iter_mut().zip(v).for_each(|(x, v)| *x += factor * v);
}

/// The scalar product, in one fixed order that vectors can take.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// At the least sum the gradient `A' (A c - f) + c` is 0.
    #[test]
    fn the_gradient_vanishes() {
        println!("seed 4");
        let mut stream = Stream::new(4, b"veilsum test stream     ");
        for (rows, n) in [(40, 13), (9, 9), (3, 8), (200, 37)] {
            let mut draw = || (0..rows).map(|_| stream.normal_pair()[0]).collect::<Vec<f64>>();
            let columns: Vec<Vec<f64>> = (0..n).map(|_| draw()).collect();
            let side = draw();
            let found = Ridge::factor(columns.clone(), rows).solve(&side);
            let mut residual: Vec<f64> = side.iter().map(|f| -f).collect();
            columns.iter().zip(&found).for_each(|(column, c)| add(&mut residual, *c, column));
            for (column, c) in columns.iter().zip(&found) {
                let gradient: f64 = column.iter().zip(&residual).map(|(a, r)| a * r).sum::<f64>() + c;
                assert!(gradient.abs() < 1e-11, "{rows} x {n}: {gradient}");
            }
        }
    }

    /// Two columns that coincide share their coefficient, and a column far above the penalty is fitted as if there were none.
    #[test]
    fn columns_that_depend_on_each_other_do_no_harm() {
        let column = vec![1e12, 2e12, -1e12];
        let found = Ridge::factor(vec![column.clone(), column], 3).solve(&[3.0, 6.0, -3.0]);
        assert!(found.iter().all(|c| (c - 1.5e-12).abs() < 1e-13), "{found:?}");
        assert!((found[0] + found[1] - 3e-12).abs() < 1e-24, "{found:?}");
    }
}
