//! Every method three ways: on pooled rows, on plainly added sums, on masked sums. The results are the same.
//!
//! A method with steps of its own at every site has no pooled form that could be equal; for it the plain sums are the
//! yardstick.

use veilsum_cluster::method::Validity;
use veilsum_cluster::query::{FeatureParams, LocalSteps};
use veilsum_cluster::synthetic::{self, Example};
use veilsum_cluster::{Algorithm, Centres, Domain, Indices, Outcome, Recipe, Rows};

use super::harness::{labels, masked, plain, prepared, tree};
use super::{ExperimentError, Line, Report, Sample, Settings};

/// What is left of fixed-point rounding after some tens of rounds.
const EXACT: f64 = 1e-9;

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("exactness", "pooled, plainly federated and masked runs of every method");
    report.note("differences: `plain` is pooled against plainly federated (where a pooled form exists), `masked` is masked against plain");
    let gaussians = (synthetic::five_gaussians(1), synthetic::five_gaussians_domain(), 5, "five Gaussians, 3 sites");
    one(&mut report, gaussians)?;
    if !settings.quick {
        let grid = (synthetic::fkm::grid(50, 1.3, 1.0, 1), synthetic::fkm::domain(), 16, "grid, 5 sites");
        one(&mut report, grid)?;
    }
    Ok(report)
}

fn one(report: &mut Report, (example, domain, k, data): (Example, Domain, u32, &str)) -> Result<(), ExperimentError> {
    let with_labels = |prepared: Vec<veilsum_cluster::Prepared>, labels: Vec<Vec<usize>>| {
        let labelled = prepared.into_iter().zip(labels);
        let narrow = |labels: Vec<usize>| labels.into_iter().map(|label| label as u32).collect();
        labelled
            .map(|(site, labels)| Ok(site.with_labels(narrow(labels))?))
            .collect::<Result<Vec<_>, ExperimentError>>()
    };
    let own = example.sites.iter().map(|site| site.labels.clone()).collect();
    let sites = with_labels(prepared(example.sites.iter().map(|site| &site.rows), &domain)?, own)?;
    let all = example.pooled();
    let whole = with_labels(prepared([&all], &domain)?, vec![example.labels()])?;
    let working = domain.to_working(&all, veilsum_cluster::OutOfBox::Refuse)?;
    let mut literal: Option<Centres> = None;
    for (name, algorithm) in algorithms() {
        let pooled_form = matches!(algorithm, Algorithm::Fcm { .. } | Algorithm::Kmeans { .. });
        let recipe = Recipe {
            validity: Validity { classes: example.truth.k() as u32, ..Validity::everything() },
            ..Recipe::plain(algorithm, k, tree(1))
        };
        let federated = plain(&recipe, &domain, &sites, None)?;
        let hidden = masked(&recipe, &domain, &sites, None)?;
        let pooled = if pooled_form { Some(plain(&recipe, &domain, &whole, None)?) } else { None };
        let mut lines = compare(&format!("{data}: {name}"), pooled.as_ref(), &federated, &hidden, &working)?;
        report.lines.append(&mut lines);
        match (name, &literal) {
            ("fcm", _) => literal = Some(federated.centres.clone()),
            ("ffcm-avg1, as printed", Some(fcm)) => {
                let off = difference(&hidden.centres, fcm);
                let line = Line::new(format!("{data}: {name}"), "centres against pooled FCM", 2).masked(off);
                report.lines.push(line.at_most(off, 1e-10, "one local step with weights u^m is centralised FCM"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Every algorithm that a plan can name.
fn algorithms() -> Vec<(&'static str, Algorithm)> {
    let (m, epsilon, max_rounds) = (2.0, 1e-4, 60);
    let local = LocalSteps { most: 1000, epsilon: 1e-4 };
    let once = LocalSteps { most: 1, epsilon: 0.0 };
    let features = FeatureParams { min: 5, max: 30, tau: 1.0, m };
    vec![
        ("fcm", Algorithm::Fcm { m, epsilon, max_rounds }),
        ("ffcm-avg1, as printed", Algorithm::FfcmAvg1 { m, epsilon, max_rounds, local: once, powers: true }),
        ("ffcm-avg1", Algorithm::FfcmAvg1 { m, epsilon, max_rounds, local, powers: false }),
        ("ffcm-avg2", Algorithm::FfcmAvg2 { m, epsilon, max_rounds, local }),
        ("fkm", Algorithm::Fkm { epsilon: 0.0, max_rounds: 20, min_rows: 2, local_steps: 1, finish: 10 }),
        ("kmeans", Algorithm::Kmeans { epsilon: 0.0, max_rounds }),
        ("ffcf", Algorithm::Ffcf { m, features, anchors: 0, merge: false }),
    ]
}

fn compare(
    setting: &str,
    pooled: Option<&Outcome>,
    federated: &Outcome,
    hidden: &Outcome,
    rows: &Rows,
) -> Result<Vec<Line>, ExperimentError> {
    let line = |measure: &str, plain: Option<f64>, masked: f64, limit: f64, why: &str| {
        let worst = masked.max(plain.unwrap_or(0.0));
        let line = Line::new(setting, measure, 2).masked(masked).at_most(worst, limit, why);
        Line { plain: plain.map(Sample::from), ..line }
    };
    let own = labels(rows, &federated.centres)?;
    let others = |outcome: &Outcome| -> Result<f64, ExperimentError> {
        Ok(labels(rows, &outcome.centres)?.iter().zip(&own).filter(|(a, b)| a != b).count() as f64)
    };
    let iterates = |other: &Outcome| {
        let rounds = other.history.len() == federated.history.len();
        let shifts = other.history.iter().zip(&federated.history).map(|(a, b)| (a.shift - b.shift).abs());
        if rounds { shifts.fold(difference(&other.centres, &federated.centres), f64::max) } else { f64::INFINITY }
    };
    let other_labels = pooled.map(others).transpose()?;
    Ok(vec![
        line("iterates", pooled.map(iterates), iterates(hidden), EXACT, "the same rounds, shifts and centres"),
        line("rows with another label", other_labels, others(hidden)?, 0.0, "hard assignments agree"),
        line(
            "indices, relative",
            pooled.map(|pooled| indices_apart(&pooled.indices, &federated.indices)),
            indices_apart(&hidden.indices, &federated.indices),
            EXACT,
            "every index that totals give",
        ),
    ])
}

/// Largest absolute difference of coordinates.
pub(super) fn difference(a: &Centres, b: &Centres) -> f64 {
    if a.as_array().dim() != b.as_array().dim() {
        return f64::INFINITY;
    }
    a.as_slice().iter().zip(b.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Largest relative difference over all indices; infinite where one side lacks one.
pub(super) fn indices_apart(a: &Indices, b: &Indices) -> f64 {
    let list = |indices: &Indices| match serde_json::to_value(indices) {
        Ok(serde_json::Value::Object(fields)) => fields.into_iter().map(|(_, value)| value.as_f64()).collect(),
        _ => Vec::new(),
    };
    let (a, b): (Vec<Option<f64>>, Vec<Option<f64>>) = (list(a), list(b));
    let apart = |pair: (Option<f64>, Option<f64>)| match pair {
        (Some(a), Some(b)) => (a - b).abs() / b.abs().max(1e-3),
        (None, None) => 0.0,
        _ => f64::INFINITY,
    };
    a.into_iter().zip(b).map(apart).fold(0.0, f64::max)
}
