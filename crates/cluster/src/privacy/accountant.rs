//! Zero-concentrated differential privacy (Bun & Steinke 2016): how rho adds up over releases, and which epsilon it
//! gives at a delta.
//!
//! What is proved: a total of sums of exact discrete Gaussians is zCDP ([NOI-6]), rho adds up over adaptive questions, and rho-zCDP is
//! (epsilon, delta)-DP by [`epsilon`]. One Gaussian of the whole rho would have a smaller epsilon (Balle & Wang 2018 with mu =
//! sqrt(2 rho): 7.29 instead of 7.77 at rho 1 and delta 10^-6). That curve is proved for continuous noise and not for these sums, so it is
//! not used.

/// The smallest epsilon at `delta` that is proved for every rho-zCDP mechanism by way of Rényi divergences: the minimum over a > 1 of
/// rho a + ln(1 - 1/a) - (ln delta + ln a) / (a - 1), which is delta = exp((a - 1)(a rho - epsilon)) / (a - 1) · (1 - 1/a)^a solved for
/// epsilon (Canonne, Kamath & Steinke 2020, Proposition 12 and Corollary 13; Asoodeh et al. 2020).
///
/// Both arguments must be above 0, and `delta` below 1. Every a gives an epsilon that holds, so a search that misses the best one errs
/// upwards.
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

    /// There and back, and never worse than the closed form of Bun & Steinke 2016, Proposition 1.3.
    #[test]
    fn rho_and_epsilon() {
        for eps in [0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0] {
            let found = rho(eps, 1e-6);
            assert!((epsilon(found, 1e-6) - eps).abs() < 1e-9, "{eps}");
            assert!(eps <= found + 2.0 * (found * 1e6f64.ln()).sqrt());
        }
        // Delta alone pays for a little.
        assert!(rho(1e-12, 1e-6) < 1e-11);
    }

    /// Epsilons of dp-accounting 0.6.0 (PyPI): `RdpAccountant` after `ZCDpEvent(rho)`, of 20,001 orders, which err upwards by less than a
    /// millionth.
    #[test]
    fn epsilon_is_that_of_dp_accounting() {
        for (rho, delta, theirs) in [
            (0.0001, 1e-10, 0.0801437310070313),
            (0.0001, 1e-6, 0.05372712083823594),
            (0.0244, 1e-6, 1.0009677462315527),
            (0.25, 1e-6, 3.5422914596884025),
            (0.25, 1e-5, 3.1889713637104453),
            (1.0, 1e-10, 10.0343440397951),
            (1.0, 1e-6, 7.76621663942092),
            (4.0, 1e-6, 17.86112423070582),
            (16.0, 1e-5, 41.63190903672542),
        ] {
            let own = epsilon(rho, delta);
            assert!(own <= theirs && (theirs - own) / theirs < 1e-6, "rho {rho}, delta {delta}: {own} and {theirs}");
        }
    }

    #[test]
    fn advantages() {
        for (eps, expected) in [(0.5, 0.046), (1.0, 0.088), (2.0, 0.166), (4.0, 0.307), (8.0, 0.532)] {
            assert!((advantage(rho(eps, 1e-6)) - expected).abs() < 0.001, "{eps}");
        }
        assert_eq!((advantage(0.0), advantage(1e3)), (0.0, 1.0));
        // The table of docs/src/account.md.
        assert_eq!([0.25, 1.0].map(|rho| (best_auc(rho) * 100.0).round()), [69.0, 84.0]);
        assert!((error_function(1.0) - 0.842_700_792_949_714_9).abs() < 1e-14);
    }
}
