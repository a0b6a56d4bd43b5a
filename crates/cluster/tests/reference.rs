//! The kernel's slow and plain twin: the formulas of fuzzy c-means (Bezdek 1981) row by row, for tests and for reading.
//!
//! It shares no code with the kernel. Squared distances must stay in the range of `f64`.

use super::{Centres, FuzzySums, FuzzyValidation, Rows};

/// `u_k = d_k^(-2/(m-1)) / sum_l d_l^(-2/(m-1))` from squared distances; 1/z for z centres at distance 0.
fn memberships(squares: &[f64], m: f64) -> Vec<f64> {
    let zeros = squares.iter().filter(|square| **square == 0.0).count();
    if zeros > 0 {
        return squares.iter().map(|square| if *square == 0.0 { 1.0 / zeros as f64 } else { 0.0 }).collect();
    }
    let share = |own: &f64| 1.0 / squares.iter().map(|other| (own / other).powf(1.0 / (m - 1.0))).sum::<f64>();
    squares.iter().map(share).collect()
}

fn squares(row: &[f64], centres: &Centres) -> Vec<f64> {
    centres.rows().map(|centre| row.iter().zip(centre).map(|(x, c)| (x - c).powi(2)).sum()).collect()
}

/// What [`kernel::fuzzy_sums`](crate::kernel::fuzzy_sums) computes: `WS` (K x d), `U` (K), `J`. Columns must match.
pub(super) fn fuzzy_sums(rows: &Rows, centres: &Centres, m: f64) -> FuzzySums {
    let (k, d) = (centres.k(), centres.columns());
    let mut sums = FuzzySums { weighted_sums: vec![0.0; k * d], weights: vec![0.0; k], objective: 0.0 };
    for row in rows.iter() {
        let squares = squares(row, centres);
        for (c, u) in memberships(&squares, m).into_iter().enumerate() {
            let weight = u.powf(m);
            for (j, x) in row.iter().enumerate() {
                sums.weighted_sums[c * d + j] += weight * x;
            }
            sums.weights[c] += weight;
            sums.objective += weight * squares[c];
        }
    }
    sums
}

/// What [`kernel::fuzzy_validation`](crate::kernel::fuzzy_validation) computes: `D` (K), `A` (K), `J`. Columns must match.
pub(super) fn fuzzy_validation(rows: &Rows, centres: &Centres, m: f64) -> FuzzyValidation {
    let k = centres.k();
    let mut sums = FuzzyValidation { distances: vec![0.0; k], memberships: vec![0.0; k], objective: 0.0 };
    for row in rows.iter() {
        let squares = squares(row, centres);
        for (c, u) in memberships(&squares, m).into_iter().enumerate() {
            sums.distances[c] += squares[c].sqrt();
            sums.memberships[c] += u;
            sums.objective += u.powf(m) * squares[c];
        }
    }
    sums
}
