//! Exact federated fuzzy c-means (Bárcena, Marcelloni, Renda, Bechini & Ducange 2021, Algorithms 1 and 2).
//!
//! Every round asks for `WS_k = sum_j u_jk^m x_j` and `U_k = sum_j u_jk^m` at the current centres and moves each centre to
//! `WS_k / U_k` (Algorithm 1). The totals are the same however the rows are spread over sites, so the run is that of
//! centralised fuzzy c-means up to the rounding of sums. A centre with `U_k = 0` attracts nobody and stays where it is (the
//! rule of the authors' later code), and so does one with less than 10^-9 of all weight, which fixed-point totals cannot tell
//! from it.
//!
//! It fails where fuzzy c-means itself fails: in many columns with m = 2 all centres may fall together on the mean of the
//! rows (Yu, Cheng & Huang 2004), and the stop rule is a test on movement, not on convergence; at a saddle the centres rest
//! for a while.
//!
//! ```
//! use veilsum_cluster::{Algorithm, OutOfBox, Prepared, Recipe, method::Seeding, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.005, max_rounds: 100 };
//! let recipe = Recipe::plain(fcm, 5, Seeding::Uniform { seed: synthetic::DEFAULT_START_SEED });
//! let outcome = pooled::plain_federated(&mut recipe.run(&domain, 3)?, &sites)?;
//! assert!(outcome.converged && outcome.indices.fuzzy_davies_bouldin.unwrap() < 0.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The fuzzifier of a plan that names none: the one up to which rows without groups give no groups, by the number of columns and of rows
/// (Schwämmle & Jensen 2010, Bioinformatics 26, equation 5), from 1.1 to 2, rounded down to a hundredth. With m = 2 all centres lie near the
/// mean of the rows from some six columns on. A column of categories counts as its indicators less one. `rows` is 0 if nobody knows.
pub fn usual_fuzzifier(columns: usize, rows: u64) -> f64 {
    let (d, n) = (columns.max(1) as f64, if rows == 0 { FEW_ROWS } else { rows as f64 });
    let found = 1.0 + (1418.0 / n + 22.05) / (d * d) + (12.33 / n + 0.243) * d.powf(-0.0406 * n.ln() - 0.1134);
    ((found * 100.0).floor() / 100.0).clamp(1.1, 2.0)
}

/// Rows where nobody knows how many there are: with more of them the fuzzifier is hardly smaller.
const FEW_ROWS: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula of the paper by hand for eight columns: 1 + 0.34675 + 0.24423 · 8^-0.48734 = 1.4354.
    #[test]
    fn the_usual_fuzzifier_falls_with_the_columns() {
        let of = |columns, rows| usual_fuzzifier(columns, rows);
        assert_eq!([of(1, 0), of(2, 300), of(5, 1_000), of(8, 10_000), of(16, 50_000)], [2.0, 2.0, 2.0, 1.43, 1.13]);
        assert_eq!([of(0, 0), of(64, 1), of(4_096, u64::MAX)], [2.0, 2.0, 1.1]);
    }
}
