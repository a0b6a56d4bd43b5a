//! Where few rows are possible, the totals of a whole federation tell how often each occurs, behind masks and without
//! anybody lying (an attack of our own).
//!
//! A total is the sum over the possible rows d of n_d phi(d); phi is public, and n is found by non-negative least squares.

use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use veilsum_cluster::{Batch, Domain, OutOfBox, Prepared, Rows, answer, privacy::Noise, random::Stream};
use veilsum_proto::policy::Policy;

use crate::{
    finding::{Finding, Limit, Measure, Rate},
    liar,
    nnls::Columns,
    scene::{EDGE, Scene},
};

/// Name on the command line.
pub const NAME: &str = "discrete-histogram";
const LABEL: &[u8; 24] = b"veilsum audit scales  v1";
/// Answers of each of the two questions.
const ANSWERS: usize = 7;
/// Rounds of the plan.
const ROUNDS: u32 = 6;
/// Runs with noise, whose mean is taken.
const NOISY_RUNS: u32 = 5;

fn row(value: usize) -> [f64; 2] {
    let at = |i: usize| EDGE * (2.0 * i as f64 / (ANSWERS - 1) as f64 - 1.0);
    [at(value / ANSWERS), at(value % ANSWERS)]
}

/// Sites with two answers of 1 to 7 each, in three clumps; and how often each pair occurs.
fn scene(seed: u64, sites: usize, rows: usize) -> Result<(Scene, Vec<f64>)> {
    let mut stream = Stream::new(seed, LABEL);
    let mut counts = vec![0.0; ANSWERS * ANSWERS];
    let middles = [[1.5, 1.6], [5.1, 2.0], [3.2, 4.8]];
    let mut all = Vec::new();
    for s in 0..sites {
        let mut values = Vec::new();
        for _ in 0..rows {
            let middle: [f64; 2] = middles[stream.below(3) as usize];
            let [a, b] = stream.normal_pair();
            let scale = |x: f64| x.round().clamp(0.0, (ANSWERS - 1) as f64) as usize;
            let value = scale(middle[0] + 0.9 * a) * ANSWERS + scale(middle[1] + 0.9 * b);
            counts[value] += 1.0;
            values.extend(row(value));
        }
        all.push((format!("school-{}", s + 1), Rows::new(values, 2)?));
    }
    Ok((Scene::of(all, 0, 3, ROUNDS, seed), counts))
}

/// How often each possible row occurs, by the totals of these questions.
pub fn attack(batches: &[Batch], totals: &[Vec<f64>], domain: &Domain) -> Result<Vec<f64>> {
    let (mut columns, mut len) = (Vec::new(), 0);
    for value in 0..ANSWERS * ANSWERS {
        let one = Prepared::new(&Rows::new(row(value).to_vec(), 2)?, domain, OutOfBox::Refuse)?;
        let before = columns.len();
        for batch in batches {
            columns.extend(answer(batch, &one)?.values);
        }
        len = columns.len() - before;
    }
    let found = Columns::new(columns, len).fit(&totals.concat(), 400, 1);
    let mut counts = vec![0.0; ANSWERS * ANSWERS];
    found.active.into_iter().for_each(|(value, weight)| counts[value] = weight);
    Ok(counts)
}

/// The totals that a coordinator gets that asks only the plan's questions.
fn honest(scene: &Scene) -> Result<(Vec<Batch>, liar::Told)> {
    let mut batches = Vec::new();
    let told = liar::ask(scene, &mut |_, own, _| {
        if own.queries.is_empty() {
            return None;
        }
        batches.push(own.clone());
        Some(own.clone())
    })?;
    batches.truncate(told.totals.len());
    Ok((batches, told))
}

/// Runs the attack on the totals of real runs: exact ones, and ones with noise of epsilon 1.
///
/// # Errors
/// Where a run fails.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    let began = Instant::now();
    let (sites, rows) = if quick { (8, 60) } else { (20, 150) };
    let (mut scene, truth) = scene(seed, sites, rows)?;
    let domain = scene.work.domain()?;
    let all: f64 = truth.iter().sum();
    let wrong = |found: &[f64]| found.iter().zip(&truth).map(|(a, b)| (a - b).abs()).sum::<f64>() / all;
    let (batches, told) = honest(&scene)?;
    let whole = |told: &liar::Told| match &told.broken_off {
        Some(why) => bail!("an honest run broke off: {why}"),
        None => Ok(()),
    };
    whole(&told)?;
    ensure!(batches.len() == ROUNDS as usize + 1, "{} questions", batches.len());
    let exact = wrong(&attack(&batches, &told.totals, &domain)?);

    // The same data and plan, under a policy that knows how few rows are possible.
    let mut strict = Policy::default();
    strict.release.domain = Some((ANSWERS * ANSWERS) as u64);
    let careful = Scene { site: strict.into(), ..scene.clone() };
    let (_, refused) = honest(&careful)?;
    let why = refused.refusals.values().next().cloned().context("nobody refused, and the policy was strict")?;
    let left = Rate { hit: (sites - refused.refused_under("POL-9")) as u64, of: sites as u64 };

    scene.work.recipe.noise = Some(Noise::usual(1.0, scene.rows()));
    scene.work.step_bits = Some(20);
    scene.work.out_of_box = OutOfBox::Clip;
    // Every run has independent noise, so a single run says little.
    let (mut noisy, mut least) = (0.0, f64::INFINITY);
    for _ in 0..NOISY_RUNS {
        let (batches, told) = honest(&scene)?;
        whole(&told).context("with noise")?;
        let wrong = wrong(&attack(&batches, &told.totals, &domain)?);
        noisy += wrong / f64::from(NOISY_RUNS);
        least = least.min(wrong);
    }
    // The error of a guess that knows only the number of rows and takes all possible rows to be equally frequent.
    let blind = wrong(&vec![all / (ANSWERS * ANSWERS) as f64; ANSWERS * ANSWERS]);
    Ok(Finding {
        attack: NAME,
        needs: "totals over the whole cohort of an honest run on columns with few possible values",
        control: "a real run behind masks, opened to its cohort, nobody lying, no noise and no release rule",
        protection: "noise of epsilon 1 inside the sum [NOI-*]; the release rule, where the site says that so few rows are \
                     possible [POL-9]",
        measures: vec![
            Measure::new(
                "rows counted wrong, of all rows (noise, mean of 5 runs)",
                exact,
                // 1e-6 with most data; a few leave the equations worse conditioned.
                Limit::AtMost(1e-2),
                noisy,
                Limit::AtLeast(0.9),
            ),
            Measure::rates("sites that answer (release rule)", Rate { hit: sites as u64, of: sites as u64 }, left, 0.0),
        ],
        also_broken: None,
        details: vec![
            format!(
                "{} possible rows, {all} rows of {sites} sites, {ROUNDS} rounds and the validation; without noise every count is \
                 exact to {:.4} of all rows",
                ANSWERS * ANSWERS,
                exact
            ),
            format!(
                "of {NOISY_RUNS} runs with noise the best one for the attack counts {:.1} % of all rows wrong; saying that all \
                 possible rows are equally frequent, without any total, {:.1} %",
                100.0 * least,
                100.0 * blind
            ),
            format!("what a site says: {why}"),
        ],
        not_shown: "columns with many values that are rarely the same; there the histogram has more cells than equations",
        seconds: began.elapsed().as_secs_f64(),
    })
}
