//! What a run prints and writes: tables for people, `result.json` and `model.json` for programs.

mod facts;
mod indices;
pub mod page;
mod tables;
mod told;
pub mod totals;

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::{Value, json};

use self::{facts::Facts, told::Told};
use crate::{
    app_messages::clean,
    cost::counted,
    description::Description,
    error::Failure,
    errors::ResultErrors,
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
    if let (Some(object), Some(pooled)) = (value.as_object_mut(), pooled) {
        object.insert("pooled".into(), json!(pooled));
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
        format!(
            "{} is the result of another plan; this run replaces it and what lies beside it when it ends",
            result.display()
        )
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
    let name = model.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match name.strip_prefix("model") {
        Some(rest) => format!("result{rest}"),
        None => format!("{}-result.json", model.file_stem().unwrap_or_default().to_string_lossy()),
    };
    model.with_file_name(name)
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
        None => json!({
            "method": model.method, "k": model.k, "m": model.m, "centres": model.centres, "converged": model.converged,
            "columns": model.names(),
            "ended_early": model.ended_early, "extrapolated": model.extrapolated, "plan_hash": model.plan,
            "standardisation": model.standardisation, "traffic": traffic, "findings": [],
            "warnings": ["this site ran no copy of the method, so it looked for nothing to doubt"],
        }),
    };
    let signed = result.and_then(|result| result.signed.as_ref());
    files::write_atomic(path, &writer.file(value, &model.to_bytes(), signed)?)?;
    if let Some(result) = result {
        tables::write(path, &told(result))?;
    }
    write_openings(&openings_beside(path), result.and_then(|result| result.openings.as_deref())).map(drop)
}

/// Where the openings of a result stand: beside it, as `openings.bin` beside `result.json`.
pub fn openings_beside(result: &Path) -> PathBuf {
    tables::beside(result, "openings", "bin")
}

/// The result as its file says it, which every page reads.
fn told(result: &RunResult) -> Told {
    serde_json::from_value(document(result, None)).unwrap_or_default()
}

/// Columns, their histograms, categories and correlations, as tables.
fn described(found: &Description) -> String {
    let width =
        |names: &mut dyn Iterator<Item = &String>| names.map(|name| shorten(name).chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    let names = width(&mut found.numbers.iter().map(|number| &number.column)).max(6);
    let missing = |of: Option<u64>| of.map_or_else(|| "–".to_owned(), |rows| rows.to_string());
    if let Some(first) = found.numbers.first() {
        let _ = write!(out, "  {:<names$} {:>9} {:>11} {:>11}", "column", "missing", "mean", "deviation");
        for quantile in &first.quantiles {
            let _ = write!(out, " {:>11}", format!("{:.0} %", 100.0 * quantile.q));
        }
        let _ = writeln!(out, " {:>10}  rows by bin", "± at most");
    }
    for number in &found.numbers {
        let _ = write!(
            out,
            "  {:<names$} {:>9} {:>11} {:>11}",
            shorten(&number.column),
            missing(number.missing),
            short(number.mean),
            short(number.deviation)
        );
        for quantile in &number.quantiles {
            let _ = write!(out, " {:>11}", short(quantile.value));
        }
        let error = number.quantiles.iter().map(|quantile| quantile.error).fold(0.0, f64::max);
        let most = number.histogram.iter().map(|bin| density(bin.from, bin.to, bin.rows)).fold(0.0, f64::max);
        let bars = number.histogram.iter().map(|bin| bar(density(bin.from, bin.to, bin.rows) / most));
        let _ = writeln!(out, " {:>10}  {}", short(error), bars.collect::<String>());
    }
    for of in &found.categories {
        let _ = writeln!(out, "  {}, missing {}", clean(&of.column), missing(of.missing));
        let names = width(&mut of.counts.iter().map(|count| &count.category));
        for count in &of.counts {
            let category = shorten(&count.category);
            let _ = writeln!(out, "    {category:<names$} {:>10} {:>7.2} %", count.rows, 100.0 * count.share);
        }
    }
    if let Some(table) = &found.correlations {
        let shown = table.len().min(10);
        let _ = write!(out, "  {:<names$}", "correlation");
        for number in &found.numbers[..shown] {
            let _ = write!(out, " {:>12}", shorten(&number.column));
        }
        let rest = table.len() - shown;
        out += &if rest > 0 { format!("  (+{})\n", counted(rest, "column")) } else { "\n".to_owned() };
        for (i, (line, number)) in table.iter().zip(&found.numbers).enumerate() {
            let _ = write!(out, "  {:<width$}", shorten(&number.column), width = names.max(11));
            for value in &line[..shown.min(i + 1)] {
                let _ = write!(out, " {:>12}", value.map_or_else(|| "–".into(), |value| format!("{value:.3}")));
            }
            out.push('\n');
        }
    }
    out
}

/// Rows for each unit of a bin's width.
fn density(from: f64, to: f64, rows: u64) -> f64 {
    rows as f64 / (to - from)
}

/// A part of the highest bin, from 0 to 1.
fn bar(part: f64) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    BARS[if part > 0.0 { (8.0 * part).ceil().clamp(1.0, 8.0) as usize } else { 0 }]
}

/// Five significant digits.
fn short(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    match x.abs().log10().floor() as i32 {
        place @ -4..=4 => format!("{x:.*}", (4 - place) as usize),
        5..=9 => format!("{x:.0}"),
        _ => format!("{x:.4e}"),
    }
}

/// The centres as a table with one line a cluster. Clusters are numbered from 0, as everywhere: it is their place in the lists.
pub fn centres(result: &RunResult) -> String {
    if let Some(found) = &result.description {
        return described(found);
    }
    let shown = result.columns.len().min(8);
    let clusters = &result.clusters;
    // Under noise counts of rows have no error, and masses have.
    let sized = result.privacy.is_none() && clusters.sizes.iter().any(Option::is_some);
    // Rows, where they are known, and then numbers.
    let line = |first: String, size: String, rest: Vec<String>| {
        let size = if sized { format!(" {size:>8}") } else { String::new() };
        let rest: String = rest.iter().map(|cell| format!(" {cell:>12}")).collect();
        format!("{first}{size}{rest}")
    };
    let names = ["mass".to_owned()].into_iter().chain(result.columns[..shown].iter().map(|name| shorten(name)));
    let mut out = line("  cluster".into(), "rows".into(), names.collect());
    let rest = result.columns.len() - shown;
    if rest > 0 {
        let _ = write!(out, "  (+{})", counted(rest, "column"));
    }
    out.push('\n');
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "–".into());
    for (i, row) in result.centres.iter().enumerate() {
        let size = clusters.sizes.get(i).copied().flatten().map(|size| size.to_string());
        let mass = clusters.mass.get(i).copied().flatten().map(|mass| format!("{mass:.2}"));
        let mut cells = vec![unless_drowned(result, &format!("/mass/{i}"), or_none(mass))];
        let cell =
            |(column, v): (usize, &f64)| unless_drowned(result, &format!("/centres/{i}/{column}"), format!("{v:.5}"));
        cells.extend(row[..shown.min(row.len())].iter().enumerate().map(cell));
        out += &line(format!("  {i:>7}"), or_none(size), cells);
        out.push('\n');
        if let Some(errors) = &result.errors {
            let each = errors.centres[i][..shown.min(row.len())].iter().map(|error| format!("{error:.5}"));
            let cells = [format!("{:.2}", errors.mass[i])].into_iter().chain(each).collect();
            out += &line("       ±".into(), String::new(), cells);
            out.push('\n');
        }
    }
    // Under noise they stand among the columns, with their errors.
    for of in result.categories.iter().filter(|_| result.privacy.is_none()) {
        let _ = writeln!(out, "  shares of {}", clean(&of.column));
        for (i, (shares, mode)) in of.shares.iter().zip(&of.mode).enumerate() {
            let each = of.categories.iter().zip(shares).take(8);
            let each: Vec<String> = each.map(|(name, share)| format!("{} {share:.3}", shorten(name))).collect();
            let rest = of.categories.len().saturating_sub(8);
            let more = if rest > 0 { format!(" (+{rest})") } else { String::new() };
            let mode = mode.as_deref().map_or_else(|| "not clear".into(), shorten);
            let _ = writeln!(out, "  {i:>7}  mode {mode}: {}{more}", each.join(", "));
        }
    }
    let drowned = |errors: &ResultErrors| !errors.not_distinguishable_from_noise.is_empty();
    if result.errors.as_ref().is_some_and(drowned) {
        let _ = writeln!(
            out,
            "  {DROWNED}: not distinguishable from noise (its standard error is more than a third of it)"
        );
    }
    out
}

/// In place of a number that noise drowns.
const DROWNED: &str = "noise";

/// A number of the result as a text, if noise leaves something of it.
fn unless_drowned(result: &RunResult, pointer: &str, number: String) -> String {
    let hidden = result.errors.as_ref().is_some_and(|errors| errors.hides(pointer));
    if hidden { DROWNED.to_owned() } else { number }
}

fn shorten(name: &str) -> String {
    let name = clean(name);
    if name.chars().count() <= 12 { name } else { name.chars().take(11).chain(['…']).collect() }
}

/// What a run came to, in one line.
pub fn in_a_sentence(result: &RunResult) -> String {
    let told = told(result);
    let how = match &told.ended_early {
        Some(early) => format!("the run ended early, after round {}: {}", early.round, clean(&early.reason)),
        None => format!("{} after {}", facts::how_it_ended(&told), counted(told.rounds as usize, "round")),
    };
    let warnings = match told.warnings.len() + told.findings.len() {
        0 => String::new(),
        n => format!("; {}, see result.json", counted(n, "warning")),
    };
    format!("{}, {how}{warnings}", counted(told.k as usize, "cluster"))
}

/// Rounds, indices, rows, promises, missing sites and warnings: what the page says under the same words.
pub fn summary(result: &RunResult) -> String {
    let told = told(result);
    let mut out = Facts::of(&told).text() + &curve(result);
    for w in told.warnings.iter().chain(told.findings.iter().map(|finding| &finding.text)) {
        let _ = writeln!(out, "warning: {}", clean(w));
    }
    out
}

/// The index curve of a sweep, the chosen K marked; not under noise, where no point has an error.
fn curve(result: &RunResult) -> String {
    if result.curve.is_empty() || result.privacy.is_some() {
        return String::new();
    }
    let mut out = String::from("      K  rounds  fuzzy Davies–Bouldin  objective/N\n");
    let n = if result.objective > 0.0 { result.objective / result.objective_per_row } else { 1.0 };
    for point in &result.curve {
        let index = match point.indices.fuzzy_davies_bouldin {
            _ if point.collapsed => "collapsed".to_owned(),
            index if index.is_finite() => format!("{index:.4}"),
            _ => "undefined".to_owned(),
        };
        let mark = if point.k == result.k { "->" } else { "" };
        let (k, rounds, each) = (point.k, point.rounds, point.objective / n);
        let _ = writeln!(out, "  {mark:<2}{k:>3}  {rounds:>6}  {index:>20}  {each:.8}");
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
