//! What noise does to a result: runs with real integer noise beside the same run without (spec section 17).

use veilsum_cluster::{
    Algorithm, Domain, Outcome, Prepared, Recipe, Rows, Scaling, method::Seeding, metrics, privacy::Noise,
    random::Stream,
};
use veilsum_proto::{noise::Key, suite};

use super::{ExperimentError, Folder, Line, Report, Sample, Settings, harness};
use veilsum_node::{
    error::Failure,
    method_session::{MethodSession, Terms, Turn},
    plan::Judge,
    question::{self, Shared, SumBounds},
};

/// The numbers of a plan that noise depends on, besides its recipe.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Sites whose shares alone make the promised noise.
    pub honest: usize,
    /// The step of totals.
    pub step_bits: u8,
}

/// How a noisy run compares.
#[derive(Debug, Clone)]
pub struct Utility {
    /// The run.
    pub outcome: Outcome,
    /// Adjusted Rand index of the rows' nearest centres with their labels.
    pub adjusted_rand: f64,
    /// Distances to the centres of the run without noise, matched and added up, in half widths of the box.
    pub gap: f64,
}

/// A run of a recipe with noise over plainly added integers, which are those that a masked run adds up: every site's share
/// of the noise is drawn exactly, from `seed`.
///
/// # Errors
/// A [`Failure`] where the recipe cannot be run.
pub fn noisy(recipe: &Recipe, domain: &Domain, sites: &[Prepared], plan: Plan, seed: u64) -> Result<Outcome, Failure> {
    let failed = |error: veilsum_cluster::MethodError| Failure::input(error, "");
    let max_rows = sites.iter().map(|s| s.len() as u64).max().unwrap_or(1).next_power_of_two();
    let levels = recipe.levels(domain).map_err(failed)?;
    let noise = levels.map(|levels| Shared { levels, honest: plan.honest });
    let form = SumBounds { step_bits: Some(plan.step_bits), noise, ..SumBounds::new(sites.len(), max_rows) };
    let terms = Terms { domain: domain.clone(), form, sampling: None, judge: Judge::Coordinator };
    let run = recipe.run(domain, sites.len() as u32).map_err(failed)?.coarse(2f64.powi(-i32::from(plan.step_bits)));
    let mut conversation = MethodSession::begin(run, terms)?;
    loop {
        let (question, mut total) = match conversation.turn() {
            Turn::Done(outcome) => return Ok((**outcome).clone()),
            Turn::Ask(question, layout) => (question.clone(), vec![0u64; layout.words()]),
            Turn::Judge(_) => return Err(Failure::input("nobody judges here", "")),
        };
        for (site, rows) in (0u64..).zip(sites) {
            let parts = [&seed.to_le_bytes()[..], &site.to_le_bytes(), &question.to_bytes()];
            let key = Key::from_bytes(suite::hash("noise of an experiment", &parts).0);
            let terms = question::Terms { noise: Some(&key), ..question::Terms::everybody(form) };
            let words = question::contribute(&question, rows, &terms)?;
            total.iter_mut().zip(words).for_each(|(total, word)| *total = total.wrapping_add(word));
        }
        let everybody: Vec<u16> = (0..sites.len() as u16).collect();
        conversation.take(&total, &everybody)?;
    }
}

/// A noisy run, compared with labels of the pooled rows (site after site, working units) and with the centres of the run
/// without noise.
///
/// # Errors
/// [`ExperimentError`].
pub fn utility(
    recipe: &Recipe,
    domain: &Domain,
    sites: &[Prepared],
    labels: &[usize],
    plan: Plan,
    seed: u64,
) -> Result<Utility, ExperimentError> {
    let masked = |failure: Failure| ExperimentError::Masked(failure.to_string());
    let plain = noisy(&Recipe { noise: None, ..recipe.clone() }, domain, sites, plan, seed).map_err(masked)?;
    let outcome = noisy(recipe, domain, sites, plan, seed).map_err(masked)?;
    let rows = sites.iter().map(|site| site.packed().to_rows()).collect::<Vec<_>>();
    let found = harness::labels(&Rows::pooled(&rows)?, &outcome.centres)?;
    let half = domain.diameter() / (domain.columns() as f64).sqrt() / 2.0;
    Ok(Utility {
        adjusted_rand: metrics::adjusted_rand_index(&found, labels)?,
        gap: metrics::gap_by_permutation(&outcome.centres, &plain.centres)? / half,
        outcome,
    })
}

/// Three clusters like those of xclara, dealt to sites, in the box [-1, 1]: rows and labels, and the domain.
///
/// # Errors
/// [`ExperimentError::Data`].
pub fn xclara_like(
    rows: usize,
    sites: usize,
    seed: u64,
) -> Result<(Domain, Vec<Prepared>, Vec<usize>), ExperimentError> {
    const MIDDLES: [[f64; 2]; 3] = [[-0.6, -0.45], [0.05, 0.65], [0.55, -0.5]];
    let mut stream = Stream::new(seed, b"veilsum like xclara     ");
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let label = row % MIDDLES.len();
        let place = stream.normal_pair();
        values.extend(MIDDLES[label].iter().zip(place).map(|(middle, x)| (middle + 0.13 * x).clamp(-1.0, 1.0)));
        labels.push(label);
    }
    let domain = Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None)?;
    let (sites, labels) = dealt(&Rows::new(values, 2)?, &labels, &domain, sites)?;
    Ok((domain, sites, labels))
}

/// Rows in their order dealt to sites one by one, and the labels in the order of the sites.
pub(super) fn dealt(
    rows: &Rows,
    labels: &[usize],
    domain: &Domain,
    sites: usize,
) -> Result<(Vec<Prepared>, Vec<usize>), ExperimentError> {
    let (mut parts, mut of) = (vec![Vec::new(); sites], vec![Vec::new(); sites]);
    for (i, row) in rows.iter().enumerate() {
        parts[i % sites].extend_from_slice(row);
        of[i % sites].push(labels[i]);
    }
    let parts = parts.into_iter().map(|part| Rows::new(part, rows.columns())).collect::<Result<Vec<_>, _>>()?;
    Ok((harness::prepared(&parts, domain)?, of.concat()))
}

/// Sites of a cohort of 20 in all, of which all answer and 6 may collude.
pub(super) const SITES: usize = 20;
pub(super) const PLAN: Plan = Plan { honest: 14, step_bits: 20 };

/// Epsilon, rounds around the middle, how far a row pulls in the others, and the least mean adjusted Rand index.
const SCHEDULES: [(f64, u32, f64, Option<f64>); 7] = [
    (0.3, 3, 0.25, Some(0.98)),
    (0.3, 2, 0.25, None),
    (0.3, 10, 0.0, None),
    (0.5, 3, 0.25, None),
    (1.0, 3, 0.25, Some(0.99)),
    (1.0, 10, 0.0, None),
    (4.0, 3, 0.25, None),
];

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report =
        Report::new("dp", "Noise inside the sum: fuzzy c-means, K = 3, 10 rounds, 20 sites of which 6 may collude");
    report.note("plain: mean of the seeds (of gaps the median); masked: the worst; gap in half widths of the box");
    report.note(
        "over 60 seeds, at epsilon 0.5 and below, one or two runs of xclara end with two centres in one cluster; \
         how well plan check forecasts that is the experiment forecast",
    );
    let seeds: Vec<u64> = (0..if settings.quick { 4 } else { 20 }).collect();
    let (domain, sites, labels) = xclara_like(3000, SITES, 1)?;
    table(&mut report, "xclara-like", &domain, &sites, &labels, &seeds)?;
    match Folder::new(settings, "xclara.csv").and_then(|folder| folder.labelled("xclara.csv")) {
        Ok(data) => {
            let domain = Domain::around(&data.rows, Scaling::Box)?;
            let (sites, labels) = dealt(&data.rows, &data.labels, &domain, SITES)?;
            table(&mut report, "xclara", &domain, &sites, &labels, &seeds)?;
        }
        Err(ExperimentError::Missing(_)) => report.note("SKIPPED xclara: it is not in the data folder"),
        Err(error) => return Err(error),
    }
    Ok(report)
}

fn table(
    report: &mut Report,
    data: &str,
    domain: &Domain,
    sites: &[Prepared],
    labels: &[usize],
    seeds: &[u64],
) -> Result<(), ExperimentError> {
    for (epsilon, absolute_rounds, tau, target) in SCHEDULES {
        let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
        let runs = harness::each(seeds, |seed| {
            let mut recipe = Recipe::plain(fcm.clone(), 3, Seeding::Uniform { seed: 100 + seed });
            recipe.noise = Some(Noise {
                tau,
                absolute_rounds,
                ..Noise::usual(veilsum_cluster::privacy::rho(epsilon, 1e-6), 3000).from_anywhere()
            });
            utility(&recipe, domain, sites, labels, PLAN, *seed)
        })?;
        let rands: Vec<f64> = runs.iter().map(|run| run.adjusted_rand).collect();
        let worst = rands.iter().copied().fold(1.0, f64::min);
        let setting = format!("{data}, epsilon {epsilon}, {absolute_rounds} rounds, tau {tau}");
        let rand: Sample = rands.into_iter().collect();
        let line = Line::new(&setting, "adjusted Rand index", 4).plain(rand.mean()).masked(worst);
        report.lines.push(match target {
            Some(target) => {
                let mean = rand.mean();
                line.holds(mean >= target, &format!("the mean, {mean:.4}, is at least {target}"))
            }
            None => line,
        });
        let gaps: Sample = runs.iter().map(|run| run.gap).collect();
        report
            .lines
            .push(Line::new(&setting, "gap to the run without noise", 3).plain(gaps.quantile(0.5)).masked(gaps.max()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few seeds of what the experiment shows.
    #[test]
    fn noise_of_epsilon_1_costs_nothing_on_three_clear_clusters() {
        let (domain, sites, labels) = xclara_like(3000, SITES, 1).unwrap();
        let run = |epsilon: f64, seed: u64| {
            let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
            let mut recipe = Recipe::plain(fcm, 3, Seeding::Uniform { seed: 100 + seed });
            recipe.noise = Some(Noise::usual(veilsum_cluster::privacy::rho(epsilon, 1e-6), 3000).from_anywhere());
            utility(&recipe, &domain, &sites, &labels, PLAN, seed).unwrap()
        };
        for seed in 0..3 {
            println!("seed {seed}");
            let one = run(1.0, seed);
            assert!(one.adjusted_rand >= 0.99, "{}", one.adjusted_rand);
            assert!(one.gap > 1e-4 && one.gap < 0.3, "{}", one.gap);
            assert_eq!(one.outcome.rounds, 10);
            // Noise is there: with a hundred times more of it nothing is left.
            let drowned = run(0.005, seed);
            assert!(drowned.gap > one.gap, "{} {}", drowned.gap, one.gap);
            let off = (one.outcome.n_total.unwrap() as f64 - 3000.0).abs();
            assert!(off < 1000.0, "{off}");
        }
    }
}
