//! A record far from all others is isolated in a cluster that the coordinator makes (an attack of our own).
//!
//! Eight centres go where the rows are, and two to an empty region. A row of a clump weighs nearly the same at the two,
//! and the outlier does not, so the difference of their clusters is the outlier's part. In each round the two move to
//! where the outlier must be, and closer together.

use std::time::Instant;

use anyhow::{Context as _, Result};
use veilsum_cluster::{Batch, Centres, Query, Rows};
use veilsum_proto::Rule;

use crate::{
    finding::{Finding, Limit, Measure, Rate, short},
    liar,
    scene::{CLUMPS, EDGE, FUZZIFIER, Scene},
};

/// Name on the command line.
pub const NAME: &str = "outlier-isolation";
/// Centres of the plan.
const CLUSTERS: usize = 10;
/// Where the outlier is looked for first.
const CORNER: [f64; 2] = [0.95, 0.65];

/// The initial distance of the pair's second centre in each column.
const FIRST_STEP: f64 = 0.3;
/// The step shrinks by this much a round.
const SHRINK: f64 = 0.6;

/// Centres on the clumps, then the pair: `at` and `step` beside it along the edge of the clumps.
fn question(at: [f64; 2], step: f64) -> Result<Batch> {
    let around = |c: &[f64; 2]| [[0.1, 0.0], [-0.05, 0.09], [-0.05, -0.09]].map(|d| vec![c[0] + d[0], c[1] + d[1]]);
    let mut rows: Vec<Vec<f64>> = CLUMPS.iter().flat_map(around).take(CLUSTERS - 2).collect();
    rows.push(at.to_vec());
    rows.push(vec![(at[0] - step).clamp(-EDGE, EDGE), (at[1] + step).clamp(-EDGE, EDGE)]);
    Ok(Query::fuzzy_sums(Centres::from_rows(&rows)?, FUZZIFIER).into())
}

/// Where the outlier is by the total of such a question: the mean of what its pair's clusters differ by.
fn estimate(total: &[f64]) -> Option<[f64; 2]> {
    let (sums, weights) = total.split_at(2 * CLUSTERS);
    let (a, b) = (CLUSTERS - 2, CLUSTERS - 1);
    let weight = weights[a] - weights[b];
    (weight.abs() > 0.05).then(|| [0, 1].map(|f| ((sums[2 * a + f] - sums[2 * b + f]) / weight).clamp(-EDGE, EDGE)))
}

/// Puts the questions to sites that answer whatever they are asked (the control), and to real ones.
///
/// # Errors
/// Where a federation cannot be set up.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    let began = Instant::now();
    let (sites, rows, places) = if quick { (4, 30, 1) } else { (20, 50, 5) };
    let rounds = 16;
    let (mut errors, mut answered, mut refused) = (Vec::new(), Rate::default(), Rate::default());
    let (mut known, mut why) = (0, String::new());
    for place in 0..places {
        let mut scene = Scene::clumps(seed.wrapping_add(place), sites, rows, rounds + 1)?;
        scene.work.recipe.clusters = veilsum_cluster::Clusters::exactly(CLUSTERS as u32);
        let outlier = [0.72 + 0.05 * place as f64, 0.93 - 0.06 * place as f64];
        let (_, first) = &scene.sites[0];
        scene.sites[0].1 = Rows::new([first.as_slice(), &outlier].concat(), 2)?;
        let ask = |real: bool| -> Result<([f64; 2], liar::Told)> {
            let (mut at, mut step) = (CORNER, FIRST_STEP);
            let lie = &mut |number: u32, own: &Batch, totals: &[Vec<f64>]| {
                if number == 1 {
                    return Some(own.clone());
                }
                let last = totals.get(number as usize - 2).filter(|_| number > 2);
                match last.map(|total| estimate(total)) {
                    Some(Some(found)) => (at, step) = (found, step * SHRINK),
                    // Both are too far away, or equally far: with a wider pair once more.
                    Some(None) => step *= 3.0,
                    None => {}
                }
                question(at, step).ok().filter(|_| number <= rounds + 1)
            };
            let told = if real { liar::ask(&scene, lie)? } else { liar::answered(&scene, lie)? };
            Ok((at, told))
        };
        let (at, open) = ask(false)?;
        errors.push(at.iter().zip(outlier).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt());
        let (_, closed) = ask(true)?;
        let of = sites as u64;
        answered.hit += of - open.refused_under(Rule::Opn9) as u64;
        refused.hit += of - closed.refused_under(Rule::Opn9) as u64;
        (answered.of, refused.of) = (answered.of + of, refused.of + of);
        known += closed.totals.len().saturating_sub(1);
        why = closed.refusals.into_values().next().context("nobody refused, and nobody answered")?.message;
    }
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    Ok(Finding {
        attack: NAME,
        needs: liar::NEEDS,
        control: liar::CONTROL,
        protection: liar::PROTECTION,
        measures: vec![
            Measure::new(
                "median distance to the outlier",
                median,
                Limit::AtMost(1e-2),
                if known == 0 { f64::INFINITY } else { 0.0 },
                Limit::AtLeast(0.5),
            ),
            Measure::rates("sites that answer", answered, refused, 0.0),
        ],
        also_broken: None,
        details: vec![
            format!(
                "control: {places} federations, errors {} after {rounds} rounds",
                errors.iter().map(|e| short(*e)).collect::<Vec<_>>().join(", ")
            ),
            format!("what a site says: {why}"),
        ],
        not_shown: "an outlier that the method itself isolates: a cluster of its own in an honest run",
        seconds: began.elapsed().as_secs_f64(),
    })
}
