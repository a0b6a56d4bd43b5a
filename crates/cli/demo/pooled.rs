//! What the same run would have come to in the clear.

use veilsum_charts::text;
use veilsum_cluster::{Clusters, metrics, pooled};
use veilsum_node::{
    answerer::Prepared,
    cost,
    error::Failure,
    plan::{PlanSpec, Recipe},
    report::Pooled,
    result::RunResult,
};

/// What a noisy run is compared with whose later rounds clip how far a row pulls.
const CLIPPED: &str = "the plain method on pooled rows, without noise and clip";

/// The same code in the clear: on all rows in one place where the method does not depend on
/// how they are spread, otherwise over the same sites with plain sums.
pub(super) fn compare(work: &PlanSpec, sites: &[Prepared], result: &RunResult) -> Result<Pooled, Failure> {
    // What the noise costs is seen beside a run of the same K without it.
    let (noisy, clips) = (work.recipe.noise.is_some(), work.recipe.clips());
    let clusters = if noisy { Clusters { min: result.k, max: result.k } } else { work.recipe.clusters };
    let work = &PlanSpec { recipe: Recipe { noise: None, clusters, ..work.recipe.clone() }, ..work.clone() };
    let anywhere = work.recipe.algorithm.traits().is_exact;
    let (what, whole) = match (work.sampling, anywhere) {
        (Some(_), _) => ("the same code on plain sums over the same sampled sites", None),
        (None, false) => ("the same code on plain sums over the same sites", None),
        (None, true) if clips => (CLIPPED, Some(Prepared::pooled(sites)?)),
        (None, true) if noisy => ("the same code on pooled rows, without noise", Some(Prepared::pooled(sites)?)),
        (None, true) => ("the same code on pooled rows", Some(Prepared::pooled(sites)?)),
    };
    let outcome = pooled::beside(&mut work.run(sites.len())?, sites, whole.as_ref(), work.sampling)
        .map_err(|e| Failure::input(e, ""))?;
    let (centres, boxed) = work.units(&outcome.centres)?;
    // Nothing says in which order a run has its clusters.
    let matrix = |rows: &[Vec<f64>]| veilsum_cluster::Centres::from_rows(rows).ok();
    let both = matrix(&boxed).zip(matrix(&result.centres_box)).filter(|(a, b)| a.k() == b.k());
    let far = |(a, b): (_, _)| metrics::matched_distance(&a, &b).map_or(f64::INFINITY, |matched| matched.max_abs);
    let max_abs_diff = both.map(far);
    Ok(Pooled {
        what,
        k: outcome.centres.k() as u32,
        centres,
        max_abs_diff,
        rounds: outcome.rounds,
        fuzzy_davies_bouldin: outcome.indices.fuzzy_davies_bouldin,
    })
}

/// What a person reads of it, with the sampling error that the plan's forecast has.
pub(super) fn told(pooled: &Pooled, sampling: Option<f64>) -> String {
    let head = format!("beside {} ({}):\n  ", pooled.what, cost::counted(pooled.rounds as usize, "round"));
    let Some(far) = pooled.max_abs_diff else {
        return format!("{head}it chose K = {}, so its centres are not compared", pooled.k);
    };
    let far = if far < 1e-9 { format!("{far:.1e}") } else { text::percent(far) };
    let sampling = sampling.map_or_else(String::new, |part| {
        format!("\n  the rows' own sampling error is about {}, by the plan's forecast", text::percent(part))
    });
    format!("{head}centres are at most {far} of a column's range apart{sampling}")
}
