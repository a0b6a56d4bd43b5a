//! The motivational example of the framework paper (Stallmann & Wilbik 2022, Appl. Sci. 12, 10455), Table 1: three sites
//! that see three of five clusters each. Alone each of them chooses K = 2, together they choose 5.
//!
//! The sites' corners follow a path; the paper's text names a diagonal pair for the second site, with which its own numbers
//! do not come out.

use veilsum_charts::{Chart, Plot};
use veilsum_cluster::method::{Choice, Clusters, Pick, Seeding};
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::{Algorithm, Outcome, Recipe, synthetic};

use super::ffcm::around_gaussians;
use super::harness::{NO_RULE, each, from_totals, masked, plain, prepared};
use super::{ExperimentError, Line, Report, Sample, Settings};

const EPSILON: f64 = 1e-3;
const K: Clusters = Clusters { min: 2, max: 8 };
const LOCAL_K: Clusters = Clusters { min: 2, max: 5 };
/// The paper's columns, one draw: central and federated for K = 2 to 8.
const CENTRAL: [f64; 7] = [0.8707, 0.5687, 0.4869, 0.4348, 0.5440, 0.6707, 0.5680];
const FEDERATED: [f64; 7] = [0.8179, 0.6055, 0.4951, 0.4289, 0.6202, 0.5072, 0.6221];
const ALONE: [f64; 3] = [0.6426, 0.6437, 0.6381];

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("motivational", "FedFCM and the choice of K on five Gaussians");
    report.note(NO_RULE);
    report.note("plain: fuzzy c-means on the pooled rows, from the same first centres as FedFCM");
    let seeds: Vec<u64> = (1..=if settings.quick { 2 } else { 10 }).collect();
    let runs = each(&seeds, |seed| one(*seed))?;
    let value = |outcome: &Outcome, k: usize| {
        outcome.curve.get(k - 2).map_or(f64::NAN, |point| point.indices.fuzzy_davies_bouldin)
    };
    let (mut central, mut federated) = (Vec::new(), Vec::new());
    for k in 2..=8usize {
        let pooled: Sample = runs.iter().map(|run| value(&run.pooled, k)).collect();
        let masked: Sample = runs.iter().map(|run| value(&run.together, k)).collect();
        central.push((k as f64, pooled.mean()));
        federated.push((k as f64, masked.mean()));
        let paper = format!("{} / {}", CENTRAL[k - 2], FEDERATED[k - 2]);
        let mut line = Line::new(format!("K = {k}"), "index: central / FedFCM", 4).paper(paper);
        if k == 5 {
            line = line.near(masked.mean(), 0.431, 0.004, "two standard deviations of a reproduction over ten draws");
            let inside = pooled.values().iter().all(|value| (0.4367..=0.4525).contains(value));
            line = line.holds(inside, "pooled 0.437 to 0.452 in every draw");
        }
        report.lines.push(line.plain(pooled).masked(masked));
    }
    let five = runs.iter().filter(|run| run.together.centres.k() == 5).count();
    let line = Line::new("all sites", "draws that choose K = 5", 0).paper("K = 5").masked(five as f64);
    report.lines.push(line.holds(five == seeds.len(), "argmin is 5 in every draw"));
    for (site, paper) in ALONE.into_iter().enumerate() {
        let index: Sample = runs.iter().map(|run| value(&run.alone[site], 2)).collect();
        let setting = format!("site {} alone", site + 1);
        let mean = index.mean();
        let line = Line::new(&setting, "index at K = 2", 4).paper(paper).plain(index);
        report.lines.push(line.near(mean, 0.643, 0.008, "three standard deviations of a reproduction"));
    }
    let alone = || runs.iter().flat_map(|run| &run.alone);
    let two = alone().filter(|outcome| outcome.centres.k() == 2).count() as f64 / (3 * seeds.len()) as f64;
    let line = Line::new("sites alone", "share that chooses K = 2", 3).paper("all").plain(two);
    report.lines.push(line.near(
        two,
        1.0,
        0.1,
        "29 of 30 in a reproduction; where K = 3 wins, it does by 0.003 or less",
    ));
    let five = alone().filter(|outcome| outcome.centres.k() == 5).count();
    let line = Line::new("sites alone", "sites that find five clusters", 0).paper("none").plain(five as f64);
    report.lines.push(line.holds(five == 0, "no site sees more than three"));
    let plot = Plot::Lines(vec![
        ("central, ours".into(), central),
        ("FedFCM, masked".into(), federated),
        ("central, paper".into(), (2..=8).map(f64::from).zip(CENTRAL).collect()),
        ("FedFCM, paper".into(), (2..=8).map(f64::from).zip(FEDERATED).collect()),
    ]);
    report.chart = Some(Chart::new("Fuzzy Davies-Bouldin index by K", "K", "index, mean over draws", plot));
    Ok(report)
}

struct Draw {
    together: Outcome,
    pooled: Outcome,
    alone: Vec<Outcome>,
}

fn one(seed: u64) -> Result<Draw, ExperimentError> {
    let example = synthetic::five_gaussians(seed);
    let domain = around_gaussians()?;
    let sites = prepared(example.sites.iter().map(|site| &site.rows), &domain)?;
    let whole = prepared([&example.pooled()], &domain)?;
    let sweep = |algorithm: Algorithm, clusters: Clusters, seeding: Seeding, restarts: u32| {
        let choice = Choice { by: Pick::FuzzyDaviesBouldin, elbow: false };
        Recipe { clusters, choice, restarts, ..Recipe::plain(algorithm, clusters.min, seeding) }
    };
    let local = LocalSteps { most: 1000, epsilon: EPSILON };
    let fedfcm = Algorithm::FfcmAvg2 { m: 2.0, epsilon: EPSILON, max_rounds: 100, local };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: EPSILON, max_rounds: 1000 };
    let together = masked(&sweep(fedfcm, K, from_totals(seed), 1), &domain, &sites, None)?;
    let pooled = plain(&sweep(fcm.clone(), K, from_totals(seed), 1), &domain, &whole, None)?;
    let alone = sites
        .iter()
        .map(|site| {
            let recipe = sweep(fcm.clone(), LOCAL_K, Seeding::Uniform { seed }, 5);
            plain(&recipe, &domain, std::slice::from_ref(site), None)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Draw { together, pooled, alone })
}
