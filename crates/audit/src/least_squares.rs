//! Levenberg-Marquardt on the few unknowns that an attack solves for (Marquardt 1963).

/// A system of equations `residuals(x) = 0` with its derivatives.
pub trait System {
    /// Number of equations.
    fn equations(&self) -> usize;

    /// Writes the residuals and, row by row, their derivatives by every unknown.
    fn evaluate(&self, x: &[f64], residuals: &mut [f64], jacobian: &mut [f64]);
}

/// Where a descent ended.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The unknowns.
    pub x: Vec<f64>,
    /// Euclidean norm of the residuals there.
    pub residual: f64,
}

/// How long a descent goes on.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Steps at most.
    pub steps: usize,
    /// Steps by which a descent that has not improved by a tenth gives up.
    pub stale: usize,
}

impl Patience {
    /// Where a start is known to be good.
    pub const LONG: Patience = Patience { steps: 1500, stale: 100 };
}

/// Descends from `start` inside [-`edge`, `edge`]^n until the residual is below `zero` or nothing improves any more.
pub fn descend(system: &impl System, start: Vec<f64>, edge: f64, zero: f64, patience: Patience) -> Solution {
    let (n, m) = (start.len(), system.equations());
    let (mut x, mut residuals, mut jacobian) = (start, vec![0.0; m], vec![0.0; m * n]);
    let (mut trial_residuals, mut trial_jacobian) = (residuals.clone(), jacobian.clone());
    system.evaluate(&x, &mut residuals, &mut jacobian);
    let mut cost = dot(&residuals, &residuals);
    let (mut damping, mut stale, mut mark) = (1e-2, 0, cost);
    for _ in 0..patience.steps {
        if cost.sqrt() < zero || !cost.is_finite() {
            break;
        }
        let (normal, gradient) = normal_equations(&jacobian, &residuals, n);
        let mut damped = normal;
        for i in 0..n {
            damped[i * n + i] += damping * damped[i * n + i] + 1e-14;
        }
        let improved = solve_symmetric(damped, gradient).and_then(|step| {
            let trial: Vec<f64> = x.iter().zip(&step).map(|(x, s)| (x - s).clamp(-edge, edge)).collect();
            system.evaluate(&trial, &mut trial_residuals, &mut trial_jacobian);
            let now = dot(&trial_residuals, &trial_residuals);
            (now < cost).then_some((trial, now))
        });
        match improved {
            Some((trial, now)) => {
                (x, cost) = (trial, now);
                std::mem::swap(&mut residuals, &mut trial_residuals);
                std::mem::swap(&mut jacobian, &mut trial_jacobian);
                damping = (damping / 5.0).max(1e-15);
            }
            None if damping > 1e12 => break,
            None => damping *= 4.0,
        }
        stale += 1;
        if cost < 0.9 * mark {
            (mark, stale) = (cost, 0);
        } else if stale >= patience.stale {
            break;
        }
    }
    Solution { x, residual: cost.sqrt() }
}

/// The inner product.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The mean of some numbers, and their standard deviation (divisor n).
pub(crate) fn mean_and_spread(all: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = all.clone().count().max(1) as f64;
    let mean = all.clone().sum::<f64>() / n;
    (mean, (all.map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// J'J and J'r.
fn normal_equations(jacobian: &[f64], residuals: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut normal, mut gradient) = (vec![0.0; n * n], vec![0.0; n]);
    for (row, r) in jacobian.chunks_exact(n).zip(residuals) {
        for (i, a) in row.iter().enumerate() {
            gradient[i] += a * r;
            normal[i * n..=i * n + i].iter_mut().zip(row).for_each(|(out, b)| *out += a * b);
        }
    }
    (normal, gradient)
}

/// Solves `a x = b` by Cholesky's factorisation, of which only the lower triangle of `a` is read. `None` where `a` is
/// not positive definite.
pub(crate) fn solve_symmetric(mut a: Vec<f64>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let n = b.len();
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let value = a[i * n + j] - dot;
            if i == j {
                if value.is_nan() || value <= 0.0 {
                    return None;
                }
                a[i * n + i] = value.sqrt();
            } else {
                a[i * n + j] = value / a[j * n + j];
            }
        }
    }
    for i in 0..n {
        let dot: f64 = (0..i).map(|k| a[i * n + k] * b[k]).sum();
        b[i] = (b[i] - dot) / a[i * n + i];
    }
    for i in (0..n).rev() {
        let dot: f64 = (i + 1..n).map(|k| a[k * n + i] * b[k]).sum();
        b[i] = (b[i] - dot) / a[i * n + i];
    }
    b.iter().all(|v| v.is_finite()).then_some(b)
}
