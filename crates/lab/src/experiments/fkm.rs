//! The grid of federated k-means (Garst & Reinders 2024): 16 clusters, five observers, beta and noise; masked runs from seeds of totals
//! against the plain server with ten k-means++ restarts in every round.
//!
//! Plain totals-only Lloyd steps cannot restart in every round; seeding once from totals makes it
//! unnecessary.

use veilsum_charts::{Chart, Plot};
use veilsum_cluster::metrics::adjusted_rand_over_sites;
use veilsum_cluster::synthetic::{Site, fkm};
use veilsum_cluster::{Algorithm, Centres, Recipe, Rows};

use super::harness::{NO_RULE, each, from_totals, labels, masked, prepared};
use super::{ExperimentError, Line, Report, Sample, Settings, server};

const K: usize = 16;
const ROUNDS: u32 = 10;
const PER_CLUSTER: usize = 50;
const NOISES: [f64; 3] = [1.0, 1.3, 1.5];
/// Beta, and the published ARI of the last round at each noise (one restart, 100 rounds, the authors' draw of the data).
const BETAS: [(f64, [f64; 3]); 3] =
    [(0.1, [0.949, 0.834, 0.697]), (1.0, [0.958, 0.844, 0.707]), (10.0, [0.957, 0.840, 0.709])];

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("fkm", "federated k-means on the grid, 50 rows a cluster, five sites");
    report.note(NO_RULE);
    report.note(
        "ARI of each site's rows, weighted with their number; the paper's numbers are for its own draw of the data",
    );
    let draws: Vec<u64> = (1..=if settings.quick { 2 } else { 10 }).collect();
    let cells: Vec<(f64, f64, f64)> = BETAS
        .iter()
        .flat_map(|(beta, published)| NOISES.iter().zip(published).map(move |(noise, ari)| (*beta, *noise, *ari)))
        .filter(|(beta, noise, _)| !settings.quick || (*beta != 1.0 && *noise != 1.3))
        .collect();
    let (mut names, mut plain_means, mut masked_means) = (Vec::new(), Vec::new(), Vec::new());
    for (beta, noise, published) in cells {
        let runs = each(&draws, |seed| one(beta, noise, *seed))?;
        let plain: Sample = runs.iter().map(|run| run.0).collect();
        let hidden: Sample = runs.iter().map(|run| run.1).collect();
        let questions: Sample = runs.iter().map(|run| run.2).collect();
        let (plain_mean, found) = (plain.mean(), hidden.mean());
        names.push(format!("{beta}; {noise}"));
        plain_means.push(plain_mean);
        masked_means.push(found);
        let setting = format!("beta {beta}, noise {noise}");
        let line = Line::new(&setting, "ARI", 3).paper(published).plain(plain).masked(hidden);
        // On few draws the two differ by more than on many.
        let allowance = if settings.quick { 0.03 } else { 0.005 };
        let line = line.at_most(plain_mean - found, allowance, "hardly below ten restarts a round");
        report.lines.push(line);
        report.lines.push(Line::new(setting, "sums in the whole run", 1).masked(questions));
    }
    let plot = Plot::bars(names, vec![("plain, 10 restarts".into(), plain_means), ("masked".into(), masked_means)]);
    let title = "Federated k-means: adjusted Rand index";
    report.chart = Some(Chart::new(title, "beta; noise", "ARI, mean over draws", plot));
    Ok(report)
}

/// ARI plain, ARI masked, sums.
fn one(beta: f64, noise: f64, seed: u64) -> Result<(f64, f64, f64), ExperimentError> {
    let example = fkm::grid(PER_CLUSTER, noise, beta, seed);
    let domain = fkm::domain();
    let rows: Vec<Rows> = example.sites.iter().map(|site| site.rows.clone()).collect();
    let sites = prepared(&rows, &domain)?;
    let fkm = Algorithm::Fkm { epsilon: 0.0, max_rounds: ROUNDS, min_rows: 2, local_steps: 1, finish: 0 };
    let hidden = masked(&Recipe::plain(fkm, K as u32, from_totals(seed)), &domain, &sites, None)?;
    let plain = server::fkm(&rows, K, ROUNDS, 10, seed)?;
    Ok((ari(&example.sites, &plain)?, ari(&example.sites, &hidden.centres)?, f64::from(hidden.questions)))
}

fn ari(sites: &[Site], centres: &Centres) -> Result<f64, ExperimentError> {
    let found = sites.iter().map(|site| labels(&site.rows, centres)).collect::<Result<Vec<_>, _>>()?;
    let pairs: Vec<(&[usize], &[usize])> =
        found.iter().zip(sites).map(|(found, site)| (found.as_slice(), site.labels.as_slice())).collect();
    Ok(adjusted_rand_over_sites(&pairs)?)
}
