//! Measures what noise costs: the clusters of runs with noise inside the sum are compared with those of the same run
//! without noise. (The product checks the plan's own forecast; this is a measurement.)

use std::time::Instant;

use anyhow::{Result, anyhow};
use veilsum_cluster::{Algorithm, Recipe, method::Seeding, privacy::Noise};
use veilsum_lab::experiments::dp::{self, Plan};

use crate::finding::{Finding, Limit, Measure};

/// Name on the command line.
pub const NAME: &str = "dp-utility";
const SITES: usize = 20;
const PLAN: Plan = Plan { honest: 14, step_bits: 20 };

/// Runs three clumps of 3000 rows over 20 sites with noise of several epsilon; every site's share of noise is drawn exactly.
///
/// # Errors
/// Where a run fails.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    let began = Instant::now();
    let (rows, seeds) = (3000, if quick { 2 } else { 6 });
    let mut lines = Vec::new();
    let mut means = Vec::new();
    for epsilon in [None, Some(1.0), Some(0.3), Some(4.0)] {
        let (mut rand, mut gap) = (0.0, 0.0);
        for s in 0..seeds {
            let (domain, sites, labels) = dp::xclara_like(rows, SITES, seed + s)?;
            let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
            let mut recipe = Recipe::plain(fcm, 3, Seeding::Uniform { seed: seed + s });
            recipe.noise = epsilon.map(|e| Noise::usual(e, rows as u64));
            let found = dp::utility(&recipe, &domain, &sites, &labels, PLAN, seed + s).map_err(|e| anyhow!("{e}"))?;
            rand += found.adjusted_rand / seeds as f64;
            gap += found.gap / seeds as f64;
        }
        let name = epsilon.map_or("no noise".to_owned(), |e| format!("epsilon {e}"));
        lines.push(format!(
            "{name}: adjusted Rand index {rand:.3}, centres off by {gap:.3} half widths in all, {seeds} seeds"
        ));
        means.push(rand);
    }
    Ok(Finding {
        attack: NAME,
        needs: "nothing: this is what the protection costs",
        control: "the same runs without noise",
        protection: "noise of epsilon 1 at delta 10^-6 and below, for one row, over the whole run [NOI-*]",
        measures: vec![Measure::new(
            "adjusted Rand index with the clumps",
            means[0],
            Limit::AtLeast(0.99),
            means[1],
            Limit::AtLeast(0.99),
        )],
        also_broken: None,
        details: lines,
        not_shown: "data with more and closer clusters, more columns or fewer rows, which lose more",
        seconds: began.elapsed().as_secs_f64(),
    })
}
