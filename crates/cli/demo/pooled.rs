//! What the same run would have come to in the clear.

use veilsum_cluster::{metrics, pooled};
use veilsum_node::{
    error::Failure,
    plan::{PlanSpec, Recipe, Seeding},
    release::Prepared,
    report::Pooled,
    result::RunResult,
};

/// The same run in the clear: on all rows in one place where the method does not depend on how they are spread, otherwise
/// over the same sites with plain sums.
pub(super) fn compare(work: &PlanSpec, sites: &[Prepared], result: &RunResult) -> Result<Pooled, Failure> {
    // What the noise costs is seen beside a run without it.
    let noisy = work.recipe.noise.is_some();
    let work = &PlanSpec { recipe: Recipe { noise: None, ..work.recipe.clone() }, ..work.clone() };
    let mut run = work.run(sites.len())?;
    let anywhere = work.recipe.algorithm.is_exact();
    let (what, outcome) = match work.sampling {
        Some(sampling) => ("plain sums over the same sampled sites", pooled::sampled(&mut run, sites, sampling)),
        None if anywhere && work.recipe.rule.min_sites == 1 => {
            let all = Prepared::pooled(sites)?;
            let what =
                if noisy { "the same method on pooled rows, without noise" } else { "the same method on pooled rows" };
            (what, pooled::run(&mut run, &all))
        }
        None => ("the same method with plain sums over the same sites", pooled::plain_federated(&mut run, sites)),
    };
    let outcome = outcome.map_err(|e| Failure::input(e, ""))?;
    let (centres, boxed) = work.units(&outcome.centres)?;
    let blurred = matches!(&work.recipe.seeding, Seeding::Tree(tree) if tree.blur > 0.0);
    let max_abs_diff = if blurred || noisy {
        // Seeding had other noise, which may turn the order of the clusters.
        let matrix = |rows: &[Vec<f64>]| veilsum_cluster::Centres::from_rows(rows);
        let matched = metrics::matched_distance(&matrix(&boxed)?, &matrix(&result.centres_box)?);
        matched.map_or(f64::INFINITY, |matched| matched.max_abs)
    } else {
        let pairs = boxed.iter().flatten().zip(result.centres_box.iter().flatten());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let index = outcome.indices.fuzzy_davies_bouldin;
    Ok(Pooled {
        what,
        blurred,
        centres,
        max_abs_diff,
        rounds: outcome.rounds,
        fuzzy_davies_bouldin: index.is_finite().then_some(index),
    })
}
