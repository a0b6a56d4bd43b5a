//! What a run prints and writes: tables for people, `result.json` and `model.json` for programs.

mod facts;
mod indices;
pub mod page;
mod says;
mod screen;
mod tables;
mod told;
pub mod totals;
pub mod words;

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::{Value, json};

use self::{facts::facts, told::Told};
use crate::{
    app_messages::clean,
    cost::counted,
    error::Failure,
    files,
    model::Model,
    result::RunResult,
    signed,
    signing::{Writer, model_bytes},
    traffic::Traffic,
};

/// What the same code gives in the clear, on pooled rows or plain sums. It shows what masks, fixed point and the network change,
/// and nothing about whether the method is right.
#[derive(Debug, Clone, Serialize)]
pub struct Pooled {
    /// What it was compared with.
    pub what: &'static str,
    /// Its number of clusters, which it chose itself where the plan has a range.
    pub k: u32,
    /// K x d, original units.
    pub centres: Vec<Vec<f64>>,
    /// Largest difference to the federated centres, in units of each column's range; `null` where it chose another K.
    pub max_abs_diff: Option<f64>,
    /// Rounds of the pooled run.
    pub rounds: u32,
    /// Fuzzy Davies-Bouldin index of the pooled run.
    pub fuzzy_davies_bouldin: Option<f64>,
}

/// What a run came to, without documents and signatures. What noise drowns stands as `null`, and under `errors`.
pub fn document(result: &RunResult, pooled: Option<&Pooled>) -> Value {
    let mut value = result.to_json();
    value["says"] = json!(says::finding(&told(result)));
    if let Some(pooled) = pooled {
        value["pooled"] = json!(pooled);
    }
    value
}

/// Writes `result.json`, `model.json` and, where all openings are there, `openings.bin` into `folder` and returns their paths. Each
/// is whole or as it was before.
///
/// # Errors
/// A [`Failure`] where the folder cannot be written.
pub fn write(
    folder: &Path,
    result: &RunResult,
    pooled: Option<&Pooled>,
    writer: &Writer,
) -> Result<Vec<PathBuf>, Failure> {
    std::fs::create_dir_all(folder).map_err(|e| {
        let what = format!("the folder {} cannot be made: {e}", folder.display());
        files::unwritten(&e, what, "check its disk's free space, or name another with --out")
    })?;
    let path = folder.join("result.json");
    let model = model_bytes(result.model.as_ref());
    files::write_atomic(&path, &writer.file(document(result, pooled), &model, result.signed.as_ref())?)?;
    let mut written = vec![path];
    if !model.is_empty() {
        let path = folder.join("model.json");
        files::write_atomic(&path, &model)?;
        written.push(path);
    }
    written.extend(write_openings(&folder.join(OPENINGS), result.openings.as_deref())?);
    written.extend(tables::write(&folder.join("result.json"), &told(result))?);
    Ok(written)
}

/// What a run of the plan with this hash will write over, in a sentence: a result of another plan. Nothing where there is none.
pub fn replaces(result: &Path, plan: &str) -> Option<String> {
    let text = files::read_limited(result, signed::MAX_FILE).ok()?;
    let said = serde_json::from_slice::<Value>(&text).ok()?;
    (said.get("plan_hash")?.as_str()? != plan).then(|| {
        let file = result.display();
        format!("{file} is the result of another plan; this run replaces it and what lies beside it when it ends")
    })
}

/// The file beside a result with all questions and openings of its run, from which its totals are recomputed.
pub const OPENINGS: &str = "openings.bin";

/// The totals of all rounds are for those who were in the run: the file is its owner's.
fn write_openings(path: &Path, openings: Option<&[u8]>) -> Result<Option<PathBuf>, Failure> {
    let Some(openings) = openings.filter(|openings| !openings.is_empty()) else {
        // Those of an earlier run are not this result's.
        let _ = std::fs::remove_file(path);
        return Ok(None);
    };
    files::write_private(path, openings, files::Existing::Replace)?;
    Ok(Some(path.to_owned()))
}

/// Where a site's result stands: beside its model, as `result.json` beside `model.json`.
pub fn beside(model: &Path) -> PathBuf {
    tables::sibling(model, "model", "result", "json")
}

/// Writes what a site knows of the result at `path`, signed by it: all that the coordinator does but the row count where it runs a
/// copy of the method, else what the model says. Beside it the openings that it recomputed.
///
/// # Errors
/// A [`Failure`] where a file cannot be written.
pub fn write_site(
    path: &Path,
    model: &Model,
    result: Option<&RunResult>,
    traffic: &Traffic,
    writer: &Writer,
) -> Result<(), Failure> {
    let value = match result {
        Some(result) => document(&RunResult { traffic: traffic.clone(), ..result.clone() }, None),
        None => {
            let mut value = of_model(model);
            (value["traffic"], value["findings"]) = (json!(traffic), json!([]));
            value["warnings"] = json!(["this site ran no copy of the method, so it looked for nothing to doubt"]);
            value
        }
    };
    let signed = result.and_then(|result| result.signed.as_ref());
    files::write_atomic(path, &writer.file(value, &model.to_bytes(), signed)?)?;
    if let Some(result) = result {
        tables::write(path, &told(result))?;
    }
    write_openings(&openings_beside(path), result.and_then(|result| result.openings.as_deref())).map(drop)
}

/// What a model says of its run, as a result of it.
fn of_model(model: &Model) -> Value {
    json!({
        "method": model.method, "k": model.k, "m": model.m, "centres": model.centres, "converged": model.converged,
        "columns": model.names(), "ended_early": model.ended_early, "plan_hash": model.plan,
        "standardisation": model.standardisation,
    })
}

/// Where the openings of a result stand: beside it, as `openings.bin` beside `result.json`.
pub fn openings_beside(result: &Path) -> PathBuf {
    tables::sibling(result, "result", "openings", "bin")
}

/// The result as far as it may be shown.
fn told(result: &RunResult) -> Told {
    Told::of(result.clone())
}

/// The centres as a table with one line a cluster, or what was found of the columns.
pub fn centres(result: &RunResult) -> String {
    let told = told(result);
    says::finding(&told).replace(". ", ".\n").replace("; ", ";\n") + "\n\n" + &screen::centres(&told)
}

/// What a run came to, in a line: its first sentence on every page.
pub fn in_a_sentence(result: &RunResult) -> String {
    let told = told(result);
    let warnings = match told.warnings.len() + told.findings.len() {
        0 => String::new(),
        n => format!(" {}, see result.json.", counted(n, "warning")),
    };
    says::finding(&told) + &warnings
}

/// Rounds, indices, rows, promises, missing sites and warnings: what the page says under the same words.
pub fn summary(result: &RunResult) -> String {
    let told = told(result);
    let mut out: String = facts(&told).iter().map(|(label, value)| format!("{label}: {value}\n")).collect();
    out += &screen::curve(&told);
    for w in told.warnings.iter().chain(told.findings.iter().map(|finding| &finding.text)) {
        let _ = writeln!(out, "warning: {}", clean(w));
    }
    out
}

/// What the coordinator's `veilsum run` says of a run: with `json` one document, else a text.
pub fn of_server(result: &RunResult, written: &[PathBuf], json: bool) -> String {
    if json {
        return document(result, None).to_string();
    }
    let mut text = centres(result) + &summary(result);
    if let Some((_, signed)) = &result.signed {
        let sites = signed.by.iter().filter(|by| by.ledger.is_some()).count();
        let of = counted(result.cohort.len(), "site");
        let file = written.first().map_or_else(|| "result.json".to_owned(), |path| files::quoted(path).to_string());
        let _ = writeln!(text, "signed by this coordinator, and by {sites} of {of}: veilsum verify {file}");
    }
    for path in written {
        let _ = writeln!(text, "wrote {}", path.display());
    }
    text
}
