//! Bank marketing by job (framework paper, Figures 6 and 7): eleven sites, standardised over the federation.
//!
//! The paper's numbers come out only where the balance is first clipped at its 99th percentile, which the text does not
//! say. Here that percentile, the means and the deviations are all found from masked totals.

use veilsum_charts::{Chart, Plot};
use veilsum_cluster::method::{Choice, Clusters, Pick, Preparation, Scale, Seeding, Winsor};
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::{Algorithm, Domain, OutOfBox, Outcome, Recipe, Rows, Scaling};

use super::data::Folder;
use super::harness::{NO_RULE, each, from_totals, masked, plain, prepared};
use super::{ExperimentError, Line, Report, Sample, Settings};

const EPSILON: f64 = 1e-3;
const BALANCE: usize = 1;
/// Means of a reproduction over five seeds, K = 3 to 9 (the paper only draws curves).
const CENTRAL: [f64; 7] = [0.785, 0.606, 0.573, 0.490, 0.455, 0.458, 0.434];
const FEDERATED: [f64; 7] = [0.695, 0.570, 0.505, 0.431, 0.390, 0.367, 0.336];

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let folder = Folder::new(settings, "bank-by-job.csv")?;
    let data = folder.labelled("bank-by-job.csv")?;
    let mut report = Report::new("bank", "bank marketing, 11 sites by job, standardised and winsorised from totals");
    report.note(NO_RULE);
    report.note(
        "paper column: means of a reproduction over five seeds, because the paper prints no numbers for its curves",
    );
    let domain = Domain::new(vec![0.0, -20_000.0, 0.0], vec![120.0, 150_000.0, 4.0], Scaling::Box)?;
    let mut parts = vec![Vec::new(); data.names.len()];
    for (row, job) in data.rows.iter().zip(&data.labels) {
        parts[*job].extend_from_slice(row);
    }
    let rows: Vec<Rows> =
        parts.into_iter().map(|values| Rows::new(values, data.rows.columns())).collect::<Result<_, _>>()?;
    let sites = prepared(&rows, &domain)?;
    let whole = prepared([&Rows::pooled(&rows)?], &domain)?;

    let clusters = Clusters { min: 3, max: 9 };
    let local = LocalSteps { most: 1000, epsilon: EPSILON };
    let fedfcm = Algorithm::FfcmAvg2 { m: 2.0, epsilon: EPSILON, max_rounds: 60, local };
    let recipe = |algorithm: Algorithm, clusters: Clusters, seeding: Seeding| {
        let preparation = Preparation {
            winsorise: vec![Winsor { column: BALANCE as u32, lower: 0.0, upper: 0.99 }],
            scale: Scale::Standard,
            ..Preparation::none()
        };
        let choice = Choice { by: Pick::FuzzyDaviesBouldin, elbow: clusters.max > clusters.min };
        Recipe { clusters, choice, preparation, ..Recipe::plain(algorithm, clusters.min, seeding) }
    };
    let together = masked(&recipe(fedfcm.clone(), clusters, from_totals(1)), &domain, &sites, None)?;
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: EPSILON, max_rounds: 1000 };
    let seeds: Vec<u64> = (1..=if settings.quick { 1 } else { 5 }).collect();
    let pooled = each(&seeds, |seed| {
        plain(&recipe(fcm.clone(), clusters, Seeding::Uniform { seed: *seed }), &domain, &whole, None)
    })?;

    let index =
        |outcome: &Outcome, i: usize| outcome.curve.get(i).map_or(f64::NAN, |point| point.indices.fuzzy_davies_bouldin);
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for (i, k) in clusters.each().enumerate() {
        let central: Sample = pooled.iter().map(|outcome| index(outcome, i)).collect();
        let found = index(&together, i);
        above.push((f64::from(k), central.mean()));
        below.push((f64::from(k), found));
        let line = Line::new(format!("K = {k}"), "index: central / FedFCM", 3)
            .paper(format!("{} / {}", CENTRAL[i], FEDERATED[i]));
        let line = line
            .holds(found < 1.02 * central.mean(), "federated lies below pooled at every K, or is 2 % above it at most");
        report.lines.push(line.plain(central).masked(found));
    }
    let four = masked(&recipe(fedfcm, Clusters::exactly(4), from_totals(1)), &domain, &sites, None)?;
    rich(&four, &mut report)?;
    winsorised(&four, &domain, &data.rows, &mut report)?;
    let chosen = together.centres.k();
    let line = Line::new("K = 3 to 9", "elbow of the curve", 0).paper("4 to 6").masked(chosen as f64);
    report.lines.push(line.holds((4..=6).contains(&chosen), "the paper reads 4, 5 or 6 by eye"));
    let plot = Plot::Lines(vec![("pooled".into(), above), ("FedFCM, masked".into(), below)]);
    report.chart = Some(Chart::new("Bank marketing: fuzzy Davies-Bouldin index by K", "K", "index", plot));
    for note in together.notes.iter().chain(&four.notes) {
        report.note(note.clone());
    }
    Ok(report)
}

/// The centre with the largest balance of the run with K = 4, standardised units.
fn rich(four: &Outcome, report: &mut Report) -> Result<(), ExperimentError> {
    let centres = match &four.transform {
        Some(transform) => transform.centres(&four.centres)?,
        None => four.centres.clone(),
    };
    let rich = centres.rows().max_by(|a, b| a[BALANCE].total_cmp(&b[BALANCE])).unwrap_or_default();
    let columns = [("age", "0.2", 0.2, 0.15), ("balance", "2.9 to 3.1", 2.98, 0.14), ("education", "0.2", 0.2, 0.15)];
    for ((name, paper, expected, tolerance), value) in columns.into_iter().zip(rich) {
        let line = Line::new("K = 4", format!("centre of the rich: {name}"), 3).paper(paper).masked(*value);
        let line = line.near(*value, expected, tolerance, "both basins of a reproduction (2.88 and 3.05 to 3.09)");
        report.lines.push(line);
    }
    Ok(())
}

/// Where the federated quantile clips the balance, against all rows; and how many lie above 2.4 deviations then.
fn winsorised(four: &Outcome, domain: &Domain, rows: &Rows, report: &mut Report) -> Result<(), ExperimentError> {
    let Some(transform) = &four.transform else { return Ok(()) };
    let working = domain.to_working(rows, OutOfBox::Refuse)?;
    let share = |above: &dyn Fn(f64) -> bool| {
        working.iter().filter(|row| above(row[BALANCE])).count() as f64 / working.len() as f64
    };
    let below = share(&|value| value <= transform.upper[BALANCE]);
    let line = Line::new("balance", "share of rows up to the federated 99th percentile", 5).masked(below);
    let ten_rows = 10.0 / working.len() as f64;
    report.lines.push(line.near(below, 0.99, ten_rows, "a bracket with fewer than ten rows is not refined"));
    let standard = |x: f64| {
        let clipped = x.clamp(transform.lower[BALANCE], transform.upper[BALANCE]);
        (clipped - transform.shift[BALANCE]) * transform.factor[BALANCE]
    };
    let rich = share(&|value| standard(value) > 2.4);
    let line = Line::new("balance", "share of rows above 2.4 deviations", 4).paper("0.039").masked(rich);
    report.lines.push(line.near(rich, 0.0389, 0.0005, "2.3 % without winsorising"));
    Ok(())
}
