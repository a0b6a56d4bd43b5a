//! The forecast of `plan check` that noise loses no cluster, against the share of runs on real and generated rows that lost none.
//!
//! For every set, epsilon and first centres there is one plan. Its forecast knows nothing of the rows. Beside it stand runs of the plan
//! with real integer noise, and whether each ended with a centre near the mean of every label.

use veilsum_cluster::method::mechanism;
use veilsum_cluster::method::mechanism::KEPT;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Domain, Prepared, Recipe, Rows, Scaling, distance, synthetic};

use super::dp::{PLAN, SITES, dealt, noisy, xclara_like};
use super::{ExperimentError, Folder, Line, Report, Settings, harness, noisy_defaults};
use veilsum_charts::{Chart, Plot};

/// Clusters are clear where their means are so many deviations apart, as the made-up ones of a forecast are.
const CLEAR: f64 = 6.0;
/// Files of the data folder, and their epsilons: where noise begins to cost clusters, and more.
const FILES: [&str; 7] = ["xclara", "iris", "s-set1", "g2/g2-2-10", "g2/g2-2-20", "g2/g2-2-40", "g2/g2-8-20"];
const EPSILONS: [f64; 6] = [0.1, 0.3, 1.0, 3.0, 10.0, 100.0];

struct Set {
    name: String,
    domain: Domain,
    sites: Vec<Prepared>,
    rows: u64,
    /// Means of the labels, working units.
    truth: Centres,
    /// The least distance between two of them, in deviations of a column around them.
    apart: f64,
}

impl Set {
    fn new(name: &str, rows: &Rows, labels: &[usize]) -> Result<Self, ExperimentError> {
        let domain = Domain::around(rows, Scaling::Box)?;
        let (sites, labels) = dealt(rows, labels, &domain, SITES)?;
        Self::of(name, domain, sites, &labels)
    }

    /// Of rows in the order of their sites.
    fn of(name: &str, domain: Domain, sites: Vec<Prepared>, labels: &[usize]) -> Result<Self, ExperimentError> {
        let (k, d) = (labels.iter().max().map_or(1, |most| most + 1), domain.columns());
        let (mut sums, mut counts) = (vec![0.0; k * d], vec![0.0; k]);
        let rows: Vec<Rows> = sites.iter().map(|site| site.packed().to_rows()).collect();
        let all = || rows.iter().flat_map(Rows::iter).zip(labels);
        for (row, label) in all() {
            counts[*label] += 1.0;
            sums[label * d..(label + 1) * d].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        let means = sums.iter().enumerate().map(|(i, sum)| sum / counts[i / d]).collect();
        let truth = Centres::new(k, d, means)?;
        let squares: f64 = all().map(|(row, label)| distance::squared(row, truth.row(*label))).sum();
        let deviation = (squares / (labels.len() * d) as f64).sqrt();
        let apart = mechanism::gap(&truth, &domain) / deviation;
        Ok(Self { name: name.to_owned(), domain, sites, rows: labels.len() as u64, truth, apart })
    }

    fn recipe(&self, epsilon: f64, seed: u64) -> Recipe {
        let rho = veilsum_cluster::privacy::rho(epsilon, 1e-6);
        noisy_defaults::recipe(false, rho, self.truth.k() as u32, self.rows, seed)
    }
}

/// One plan.
struct Found {
    epsilon: f64,
    clear: bool,
    forecast: f64,
    /// Runs, and those of them that lost a cluster.
    runs: usize,
    lost: usize,
}

/// Normal clusters of different sizes and shapes at places that nobody chose for their distance.
fn anywhere(k: usize, d: usize, rows: usize, seed: u64) -> Result<(Rows, Vec<usize>), ExperimentError> {
    let mut stream = Stream::new(seed, b"veilsum forecast cluster");
    let (mut middles, mut shapes): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    while middles.len() < k {
        let middle: Vec<f64> = (0..d).map(|_| stream.unit()).collect();
        // Clear clusters of deviation 0.04 at most.
        if middles.iter().all(|other| distance::euclidean(other, &middle) > 7.0 * 0.04) {
            middles.push(middle);
            shapes.push((0..d).map(|_| 0.02 + 0.02 * stream.unit()).collect());
        }
    }
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for label in 0..k {
        // The largest has three times the rows of the smallest.
        for _ in 0..rows * (k + 2 * label) / (2 * k * k) {
            for (middle, deviation) in middles[label].iter().zip(&shapes[label]) {
                values.push(middle + deviation * stream.normal_pair()[0]);
            }
            labels.push(label);
        }
    }
    Ok((Rows::new(values, d)?, labels))
}

fn sets(report: &mut Report, settings: &Settings) -> Result<Vec<Set>, ExperimentError> {
    let (domain, sites, labels) = xclara_like(3000, SITES, 1)?;
    let mut sets = vec![Set::of("like xclara", domain, sites, &labels)?];
    let draws: &[(usize, usize, u64)] = match settings.quick {
        true => &[(3, 2, 1)],
        false => &[(2, 2, 1), (3, 2, 1), (3, 2, 2), (3, 2, 3), (3, 5, 1), (4, 2, 1), (4, 2, 2), (5, 3, 1), (8, 2, 1)],
    };
    for (k, d, seed) in draws {
        let (rows, labels) = anywhere(*k, *d, 4000, *seed)?;
        sets.push(Set::new(&format!("{k} clusters anywhere, {d} columns, draw {seed}"), &rows, &labels)?);
    }
    let five = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
    sets.push(Set::new("five Gaussians", &five.pooled(), &five.labels())?);
    match Folder::new(settings, "the data sets") {
        Ok(folder) => {
            for name in FILES.iter().take(if settings.quick { 1 } else { FILES.len() }) {
                let data = folder.labelled(&format!("{name}.csv"))?;
                sets.push(Set::new(name, &data.rows, &data.labels)?);
            }
        }
        Err(_) => report.note(format!("SKIPPED {}: they are not in the data folder", FILES.join(", "))),
    }
    Ok(sets)
}

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("forecast", "Noise and lost clusters: what plans forecast, and what runs kept");
    report.note("fcm as plan new makes it, over 20 sites of which 6 may collude, expected rows the real ones");
    report.note("plain: the forecast's mean over plans that differ in their first centres; masked: the share of runs that kept all clusters");
    let (plans, runs) = if settings.quick { (3, 4) } else { (10, 4) };
    let excess = (SITES as f64 / PLAN.honest as f64).sqrt();
    let mut all: Vec<Found> = Vec::new();
    for set in sets(&mut report, settings)? {
        for epsilon in EPSILONS.iter().skip(usize::from(settings.quick)).step_by(if settings.quick { 2 } else { 1 }) {
            let seeds: Vec<u64> = (1..=plans).collect();
            let found = harness::each(&seeds, |seed| {
                let recipe = set.recipe(*epsilon, 100 * seed);
                let forecast = mechanism::forecast(&recipe, &set.domain, excess)?.map_or(0.0, |found| found.kept);
                let mut lost = 0;
                for draw in 0..runs {
                    let outcome = noisy(&recipe, &set.domain, &set.sites, PLAN, 1000 * seed + draw as u64)
                        .map_err(|failure| ExperimentError::Masked(failure.to_string()))?;
                    lost += usize::from(mechanism::lost(&outcome.centres, &set.truth, &set.domain) > 0);
                }
                Ok(Found { epsilon: *epsilon, clear: set.apart >= CLEAR, forecast, runs, lost })
            })?;
            let mean = found.iter().map(|one| one.forecast).sum::<f64>() / found.len() as f64;
            let setting = format!("{} ({:.1} deviations apart), epsilon {epsilon}", set.name, set.apart);
            let line = Line::new(setting, "all clusters kept", 2);
            report.lines.push(line.plain(mean).masked(1.0 - share(&found.iter().collect::<Vec<_>>())));
            all.extend(found);
        }
    }
    report.charts.push(chart(&all));
    for clear in [true, false] {
        for (low, high) in [(0.0, 0.5), (0.5, KEPT), (KEPT, 1.01)] {
            let of = |one: &&Found| one.clear == clear && (low..high).contains(&one.forecast);
            let here: Vec<&Found> = all.iter().filter(of).collect();
            if here.is_empty() {
                continue;
            }
            let (kind, mean) =
                (if clear { "clear" } else { "not clear" }, here.iter().map(|one| one.forecast).sum::<f64>());
            let setting =
                format!("{kind} clusters, forecast {low} to {:.1}, {} plans", f64::min(high, 1.0), here.len());
            let lost = share(&here);
            let line = Line::new(setting, "all clusters kept", 3).plain(mean / here.len() as f64).masked(1.0 - lost);
            report.lines.push(match clear && low == KEPT {
                true => {
                    let runs = here.iter().map(|one| one.runs).sum::<usize>() as f64;
                    // Two standard errors of the share.
                    let chance = 2.0 * (KEPT * (1.0 - KEPT) / runs).sqrt();
                    let why = "runs that lost a cluster, of plans that are called useful, and what chance adds";
                    line.at_most(lost, 1.0 - KEPT + chance, why)
                }
                false => line,
            });
        }
    }
    Ok(report)
}

/// Over all plans of each epsilon: the forecast, and what the runs kept.
fn chart(all: &[Found]) -> Chart {
    let line = |value: &dyn Fn(&[&Found]) -> f64| -> Vec<(f64, f64)> {
        let of = |at: &f64| all.iter().filter(|one| one.epsilon == *at).collect::<Vec<_>>();
        EPSILONS.iter().filter(|at| !of(at).is_empty()).map(|at| (at.log10(), value(&of(at)))).collect()
    };
    let mean = |here: &[&Found]| here.iter().map(|one| one.forecast).sum::<f64>() / here.len() as f64;
    let lines = vec![("forecast".into(), line(&mean)), ("runs".into(), line(&|here| 1.0 - share(here)))];
    Chart::new("All clusters kept, over all sets", "epsilon, as a power of ten", "share", Plot::Lines(lines))
}

/// The share of runs that lost a cluster.
fn share(found: &[&Found]) -> f64 {
    let (runs, lost) = found.iter().fold((0, 0), |(runs, lost), one| (runs + one.runs, lost + one.lost));
    lost as f64 / runs.max(1) as f64
}
