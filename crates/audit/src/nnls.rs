//! Non-negative least squares by active sets (Lawson & Hanson 1974, chapter 23), over columns that are made on demand.

use rayon::prelude::*;

use crate::least_squares::{dot, solve_symmetric};

/// Columns of one problem: `len` equations each.
pub struct Columns {
    values: Vec<f64>,
    len: usize,
}

/// Keeps the normal equations of nearly equal columns solvable.
const RIDGE: f64 = 1e-13;

impl Columns {
    /// Takes columns of `len` equations one after the other.
    pub fn new(values: Vec<f64>, len: usize) -> Columns {
        Columns { values, len: len.max(1) }
    }

    fn column(&self, i: usize) -> &[f64] {
        &self.values[i * self.len..(i + 1) * self.len]
    }

    /// Columns with their weights w >= 0 for which the weighted sum of the columns is nearest to `target`. At most `together` columns
    /// enter in each of at most `steps` steps.
    pub fn fit(&self, target: &[f64], steps: usize, together: usize) -> Vec<(usize, f64)> {
        let sizes: Vec<f64> = self.values.par_chunks(self.len).map(norm).collect();
        let (active, weights, gram, against) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut fit = Fit { columns: self, target, active, weights, gram, against };
        let mut left = target.to_vec();
        let whole = norm(target);
        let mut residual = whole;
        for step in 0..steps {
            let slopes: Vec<f64> = self.values.par_chunks(self.len).map(|c| dot(c, &left)).collect();
            let slope = |i: &usize| slopes[*i] / sizes[*i];
            let mut candidates: Vec<usize> =
                (0..slopes.len()).filter(|i| slope(i) > 1e-14 * whole && !fit.active.contains(i)).collect();
            candidates.sort_by(|a, b| slope(b).total_cmp(&slope(a)));
            // Towards the end one at a time: several would enter and leave in turns.
            candidates.truncate(if step + 10 < steps { together } else { 1 });
            if candidates.is_empty() {
                break;
            }
            candidates.into_iter().for_each(|column| fit.enter(column));
            fit.settle();
            left.copy_from_slice(target);
            for (i, w) in fit.active.iter().zip(&fit.weights) {
                left.iter_mut().zip(self.column(*i)).for_each(|(r, a)| *r -= w * a);
            }
            let now = norm(&left);
            if now <= 1e-14 * whole || (step > 10 && now > (1.0 - 1e-4) * residual) {
                break;
            }
            residual = now;
        }
        fit.active.into_iter().zip(fit.weights).collect()
    }
}

/// The active set with its normal equations.
struct Fit<'a> {
    columns: &'a Columns,
    target: &'a [f64],
    active: Vec<usize>,
    weights: Vec<f64>,
    /// Lower triangle, row by row.
    gram: Vec<Vec<f64>>,
    against: Vec<f64>,
}

impl Fit<'_> {
    fn enter(&mut self, column: usize) {
        let own = self.columns.column(column);
        let mut row: Vec<f64> = self.active.iter().map(|i| dot(self.columns.column(*i), own)).collect();
        row.push(dot(own, own));
        self.gram.push(row);
        self.against.push(dot(own, self.target));
        self.active.push(column);
        self.weights.push(0.0);
    }

    /// To the best weights of the active set. What would become negative on the way leaves, the first one first.
    fn settle(&mut self) {
        while let Some(wanted) = solve(&self.gram, &self.against) {
            let reach = |i: &usize| self.weights[*i] / (self.weights[*i] - wanted[*i]).max(f64::MIN_POSITIVE);
            let negative = (0..wanted.len()).filter(|i| wanted[*i] <= 0.0);
            let Some(first) = negative.min_by(|a, b| reach(a).total_cmp(&reach(b))) else {
                self.weights = wanted;
                return;
            };
            let share = reach(&first).clamp(0.0, 1.0);
            self.weights.iter_mut().zip(&wanted).for_each(|(w, to)| *w = (*w + share * (to - *w)).max(0.0));
            let leaves: Vec<usize> =
                (0..wanted.len()).filter(|i| wanted[*i] <= 0.0 && self.weights[*i] <= 0.0 || *i == first).collect();
            leaves.into_iter().rev().for_each(|at| self.leave(at));
        }
    }

    fn leave(&mut self, at: usize) {
        self.active.remove(at);
        self.weights.remove(at);
        self.against.remove(at);
        self.gram.remove(at);
        self.gram.iter_mut().skip(at).for_each(|row| {
            row.remove(at);
        });
    }
}

/// Lower triangle of the normal equations, row by row.
fn solve(gram: &[Vec<f64>], against: &[f64]) -> Option<Vec<f64>> {
    let n = against.len();
    let mut square = vec![0.0; n * n];
    for (i, row) in gram.iter().enumerate() {
        square[i * n..i * n + row.len()].copy_from_slice(row);
        square[i * n + i] *= 1.0 + RIDGE;
    }
    solve_symmetric(square, against.to_vec())
}

fn norm(v: &[f64]) -> f64 {
    dot(v, v).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_is_negative() {
        let columns = Columns::new(vec![1.0, 0.0, 0.0, 1.0], 2);
        let found = columns.fit(&[3.0, -4.0], 10, 2);
        assert!(matches!(found[..], [(0, w)] if (w - 3.0).abs() < 1e-9), "{found:?}");
    }
}
