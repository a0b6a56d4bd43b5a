//! Zero-concentrated differential privacy (Bun & Steinke 2016): how rho adds up over releases, and which epsilon it
//! gives at a delta.

/// The smallest epsilon at `delta` that rho-zCDP gives: the minimum over a > 1 of
/// rho a + ln(1 - 1/a) - (ln delta + ln a) / (a - 1) (Canonne, Kamath & Steinke 2020, Proposition 2.6 and Corollary 2.13).
/// Both arguments must be above 0, and `delta` below 1.
pub fn epsilon(rho: f64, delta: f64) -> f64 {
    let at = |x: f64| {
        // a = 1 + e^x: small orders matter for large rho, large ones for small rho.
        let (above, a) = (x.exp(), 1.0 + x.exp());
        rho * a + above.ln() - a.ln() - (delta.ln() + a.ln()) / above
    };
    let (low, high, steps) = (-30.0, 60.0, 600);
    let point = |i: i32| low + (high - low) * f64::from(i) / f64::from(steps);
    let best = (0..=steps).map(|i| (at(point(i)), i)).fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a }).1;
    // Golden section around the best point of the grid.
    let (mut low, mut high) = (point(best - 1), point(best + 1));
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    for _ in 0..80 {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if at(left) < at(right) { high = right } else { low = left }
    }
    at((low + high) / 2.0).max(0.0)
}

/// The largest rho whose [`epsilon`] at `delta` is at most the given one; 0 where there is none.
pub fn rho(epsilon_at: f64, delta: f64) -> f64 {
    let (mut low, mut high) = (1e-18f64, 1e6f64);
    if epsilon(low, delta) > epsilon_at {
        return 0.0;
    }
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if epsilon(middle, delta) <= epsilon_at { low = middle } else { high = middle }
    }
    low
}

/// A bound on the advantage of an adversary that guesses whether a record is in the data, which is the rate of true
/// positives less that of false positives: 2 Phi(sqrt(rho / 2)) - 1, the advantage against one Gaussian release of the
/// whole rho.
pub fn advantage(rho: f64) -> f64 {
    error_function((rho.max(0.0)).sqrt() / 2.0)
}

fn error_function(x: f64) -> f64 {
    if x > 5.0 {
        return 1.0;
    }
    // Its Maclaurin series; up to 5 the terms stay below 10^10 and doubles leave six digits at least.
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    (sum * 2.0 / std::f64::consts::PI.sqrt()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the literature at delta = 10^-6, and there and back.
    #[test]
    fn rho_and_epsilon() {
        let table =
            [(0.1, 0.00032), (0.3, 0.0025), (0.5, 0.0066), (1.0, 0.0244), (2.0, 0.088), (4.0, 0.311), (8.0, 1.052)];
        for (eps, expected) in table {
            let found = rho(eps, 1e-6);
            assert!((found - expected).abs() <= 0.025 * expected, "{eps}: {found} and not {expected}");
            assert!((epsilon(found, 1e-6) - eps).abs() < 1e-9, "{eps}");
            // Never worse than the closed form.
            assert!(eps <= found + 2.0 * (found * 1e6f64.ln()).sqrt());
        }
        // Delta alone pays for a little.
        assert!(rho(1e-12, 1e-6) < 1e-11);
    }

    #[test]
    fn advantages() {
        for (eps, expected) in [(0.5, 0.046), (1.0, 0.088), (2.0, 0.166), (4.0, 0.307), (8.0, 0.532)] {
            assert!((advantage(rho(eps, 1e-6)) - expected).abs() < 0.001, "{eps}");
        }
        assert_eq!((advantage(0.0), advantage(1e3)), (0.0, 1.0));
        assert!((error_function(1.0) - 0.842_700_792_949_714_9).abs() < 1e-14);
    }
}
