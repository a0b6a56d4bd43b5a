//! Fuzzy c-means and k-means against an independent implementation: plain numpy (`crates/lab/reference.py`) on the same rows from the
//! same start. The comparison of a demonstration with its pooled run is of the same code on plain sums; this one is not.

use std::{
    env,
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use veilsum_cluster::method::Seeding;
use veilsum_cluster::{Algorithm, Centres, OutOfBox, Outcome, Recipe, Rows, Start};

use super::defaults::{Set, sets};
use super::harness::masked;
use super::{ExperimentError, Line, Report, Settings};

/// The other implementation.
const SCRIPT: &str = include_str!("../../reference.py");
/// Names another Python than `python3`, such as that of a virtual environment with numpy.
const PYTHON: &str = "VEILSUM_PYTHON";
/// What rounding leaves in box units: fixed point at 2^-40 and finer, over some tens of rounds.
const EXACT: f64 = 1e-8;
const SITES: usize = 5;

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let python = env::var(PYTHON).unwrap_or_else(|_| "python3".into());
    let numpy = Command::new(&python).args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    if !numpy.is_ok_and(|status| status.success()) {
        return Err(ExperimentError::NoPython(python));
    }
    let mut report = Report::new("reference", "masked runs against plain numpy on pooled rows, from the same start");
    for set in sets(settings)? {
        for (name, algorithm, m) in [
            ("fcm", Algorithm::Fcm { m: 2.0, epsilon: 1e-4, max_rounds: 60 }, 2.0),
            ("fcm, m = 1.5", Algorithm::Fcm { m: 1.5, epsilon: 1e-4, max_rounds: 60 }, 1.5),
            ("kmeans", Algorithm::Kmeans { epsilon: 0.0, max_rounds: 60 }, 2.0),
        ] {
            let start = Start::Uniform { seed: 1 }.centres(&set.domain, set.k as usize)?;
            let seeding = Seeding::Given { centres: start.clone() };
            let recipe = Recipe::plain(algorithm.clone(), set.k, seeding);
            let found = masked(&recipe, &set.domain, &set.dealt(SITES)?, None)?;
            let epsilon = if let Algorithm::Fcm { epsilon, .. } = algorithm { epsilon } else { 0.0 };
            let method = if algorithm.fuzzifier().is_some() { "fcm" } else { "kmeans" };
            let asked = json!({ "method": method, "rows": rows(&set)?, "start": matrix(&start), "m": m, "epsilon": epsilon, "rounds": 60 });
            let told = tell(&python, &asked)?;
            let setting = format!("{}: {name}, K = {}", set.name, set.k);
            let off = difference(&found, &told, &setting)?;
            let centres = Line::new(setting.clone(), "largest difference of a centre", 2).masked(off);
            report.lines.push(centres.at_most(off, EXACT, "in parts of the box: another code, the same centres"));
            let rounds = told["rounds"].as_f64().unwrap_or(f64::NAN);
            let line = Line::new(setting, "rounds", 0).plain(rounds).masked(f64::from(found.rounds));
            report.lines.push(line.near(f64::from(found.rounds), rounds, 0.0, "the same steps"));
        }
    }
    Ok(report)
}

/// The rows in working units, all in one place.
fn rows(set: &Set) -> Result<Vec<Vec<f64>>, ExperimentError> {
    let working: Rows = set.domain.to_working(&set.rows, OutOfBox::Refuse)?;
    Ok(working.iter().map(<[f64]>::to_vec).collect())
}

fn matrix(centres: &Centres) -> Vec<Vec<f64>> {
    centres.rows().map(<[f64]>::to_vec).collect()
}

/// Puts a question to the script.
fn tell(python: &str, asked: &Value) -> Result<Value, ExperimentError> {
    let failed = |why: String| ExperimentError::Reference(why);
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed(e.to_string()))?;
    let text = asked.to_string();
    // The script reads everything before it writes anything.
    child.stdin.take().map_or(Ok(()), |mut to| to.write_all(text.as_bytes())).map_err(|e| failed(e.to_string()))?;
    let ended = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if !ended.status.success() {
        return Err(failed(format!("it ended with {}", ended.status)));
    }
    serde_json::from_slice(&ended.stdout).map_err(|e| failed(e.to_string()))
}

/// Largest difference of a coordinate. Both have the K of the plan; another one is said, and is no difference.
fn difference(found: &Outcome, told: &Value, setting: &str) -> Result<f64, ExperimentError> {
    let theirs: Vec<Vec<f64>> =
        serde_json::from_value(told["centres"].clone()).map_err(|e| ExperimentError::Reference(e.to_string()))?;
    let ours = matrix(&found.centres);
    if ours.len() != theirs.len() {
        let (a, b) = (ours.len(), theirs.len());
        return Err(ExperimentError::Reference(format!(
            "{setting}: K = {a} here and {b} there, so nothing is compared"
        )));
    }
    Ok(ours.iter().flatten().zip(theirs.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max))
}
