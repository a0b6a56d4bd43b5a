//! The result as tables for other programs, beside the result: `centres.csv`, `profile.csv`, `curve.csv`. Under noise a number is there
//! only beside its standard error.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::told::{Told, by_key};
use crate::{error::Failure, files, table::csv_of};

/// Writes the tables of a result beside it, as `centres.csv` beside `result.json`, and says where. One that this result has none of is
/// removed: it was an earlier one's.
///
/// # Errors
/// A [`Failure`] if a file cannot be written.
pub(super) fn write(result: &Path, told: &Told) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for (name, lines) in [("centres", centres(told)), ("profile", profile(told)), ("curve", curve(told))] {
        let path = sibling(result, "result", name, "csv");
        if lines.len() < 2 {
            let _ = std::fs::remove_file(&path);
            continue;
        }
        let wrong = |e| Failure::input(format!("{}: {e}", path.display()), "please report this defect");
        files::write_atomic(&path, &csv_of(lines).map_err(wrong)?)?;
        written.push(path);
    }
    Ok(written)
}

/// A file beside a run's, as `TO.EXTENSION` beside `FROM.json`; where that has another name, its own name comes first.
pub(super) fn sibling(file: &Path, from: &str, to: &str, extension: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.with_file_name(match stem.strip_prefix(from) {
        Some(rest) => format!("{to}{rest}.{extension}"),
        None => format!("{}-{to}.{extension}", stem.strip_suffix("-result").unwrap_or(&stem)),
    })
}

/// A number as JSON has it; nothing if it is not known.
fn text(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

fn head(names: &str) -> Vec<String> {
    names.split(',').map(str::to_owned).collect()
}

/// A line for each cluster.
fn centres(told: &Told) -> Vec<Vec<String>> {
    let noisy = told.privacy.is_some();
    let mut first = head(match noisy {
        true if told.counts_rows() => "cluster,rows,rows error",
        true => "cluster,mass,mass error",
        false => "cluster,rows,mass",
    });
    for name in &told.columns {
        first.push(name.clone());
        first.extend(noisy.then(|| format!("{name} error")));
    }
    let line = |i: usize| {
        let (value, error, _) = told.held(i);
        let rows = told.size(i).map_or_else(String::new, |rows| rows.to_string());
        let held = if noisy { [text(value), text(value.and(error))] } else { [rows, text(told.mass(i))] };
        let mut line: Vec<String> = std::iter::once(i.to_string()).chain(held).collect();
        for column in 0..told.columns.len() {
            let (value, error) = (told.at(i, column), told.error(i, column));
            line.push(text(value));
            line.extend(noisy.then(|| text(value.and(error))));
        }
        line
    };
    std::iter::once(first).chain((0..told.centres.len()).map(line)).collect()
}

/// A line for each column and cluster.
fn profile(told: &Told) -> Vec<Vec<String>> {
    let first = head(
        "column,cluster,centre,error,deviation,difference in deviations of all rows,part of differences,\
         part of all squares,explained",
    );
    if told.describes() {
        return vec![first];
    }
    let line = |(column, i): (usize, usize)| {
        let name = &told.columns[column];
        let (value, part) = (told.at(i, column), told.part(name));
        let parts = part.map_or([None; 3], |part| [part.between, part.total, part.explained]);
        let own = [value, value.and(told.error(i, column)), told.deviation(i, column), told.difference(i, column)];
        [name.clone(), i.to_string()].into_iter().chain(own.into_iter().chain(parts).map(text)).collect()
    };
    let each = (0..told.columns.len()).flat_map(|column| (0..told.centres.len()).map(move |i| (column, i)));
    std::iter::once(first).chain(each.map(line)).collect()
}

/// A line for each K that was tried; none under noise, where no point has an error.
fn curve(told: &Told) -> Vec<Vec<String>> {
    let keys: BTreeSet<String> = told.curve.iter().flat_map(|point| by_key(&point.indices).into_keys()).collect();
    let mut first = head("K,rounds,converged,collapsed,objective");
    first.extend(keys.iter().cloned());
    let points = told.curve.iter().filter(|_| told.privacy.is_none()).map(|point| {
        let mut line = vec![
            point.k.to_string(),
            point.rounds.to_string(),
            point.converged.to_string(),
            point.collapsed.to_string(),
            text(point.objective),
        ];
        let indices = by_key(&point.indices);
        line.extend(keys.iter().map(|key| text(indices.get(key).copied().flatten())));
        line
    });
    std::iter::once(first).chain(points).collect()
}
