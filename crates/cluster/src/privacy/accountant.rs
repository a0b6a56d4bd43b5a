//! What zero-concentrated differential privacy (Bun & Steinke 2016) leaves to somebody who guesses.

/// A bound on the advantage of an adversary that guesses whether a record is in the data, which is the rate of true
/// positives less that of false positives: 2 Phi(sqrt(rho / 2)) - 1, the advantage against one Gaussian release of the
/// whole rho.
pub fn advantage(rho: f64) -> f64 {
    error_function((rho.max(0.0)).sqrt() / 2.0)
}

/// The area under the curve of the best test for a unit, by somebody who knows all others: Phi(sqrt(rho)), that against one Gaussian
/// release of the whole rho. 0.5 is guessing.
pub fn best_auc(rho: f64) -> f64 {
    (1.0 + error_function((rho.max(0.0) / 2.0).sqrt())) / 2.0
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

    #[test]
    fn advantages() {
        for (rho, expected) in [(0.0244, 0.088), (0.25, 0.276), (1.0, 0.521)] {
            assert!((advantage(rho) - expected).abs() < 0.001, "{rho}: {}", advantage(rho));
        }
        assert_eq!((advantage(0.0), advantage(1e3)), (0.0, 1.0));
        // The table of docs/src/account.md.
        assert_eq!([0.25, 1.0].map(|rho| (best_auc(rho) * 100.0).round()), [69.0, 84.0]);
        assert!((error_function(1.0) - 0.842_700_792_949_714_9).abs() < 1e-14);
    }
}
