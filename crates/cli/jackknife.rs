//! `veilsum jackknife`: standard errors of centres from results that each leave one block of sites out. Nothing is asked for it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Value, from_value, json};
use veilsum_cluster::{
    Centres, Error,
    metrics::{Jackknife, LEAST_BLOCKS, Without, jackknife},
};

use crate::verb::Verb;
use veilsum_node::{error::Failure, files};

/// Results are read up to this size: 16 MiB hold the history of every run that a plan allows.
const MAX_RESULT: usize = 16 << 20;

/// Standard errors of centres, from runs without a block each
///
/// It takes the files as they are and checks no signature on them: `veilsum verify` does.
#[derive(Args, Debug)]
pub(crate) struct JackknifeArgs {
    /// The result of the run over all blocks
    #[arg(long, value_name = "FILE", default_value = "result.json")]
    pub all: PathBuf,
    /// The results of the runs without one block, one for every block
    #[arg(value_name = "RESULT.json", required = true)]
    pub without: Vec<PathBuf>,
}

/// No coordinate of a centre is larger, as no bound of a column is.
const MOST: f64 = 1e150;

/// A centre in a column's units may be off the line from its box units by so much of the largest one there, and of the box.
const ROUNDING: f64 = 1e-9;

/// What counts of a `result.json`.
struct Told {
    method: String,
    m: f64,
    columns: Vec<String>,
    centres: Vec<Vec<f64>>,
    centres_box: Vec<Vec<f64>>,
    n_total: Option<u64>,
    converged: bool,
    cohort: Vec<String>,
    indices_cohort: Option<Vec<String>>,
    privacy: Option<Value>,
}

impl Told {
    fn read(path: &Path) -> Result<Told, Failure> {
        let next = "take the result.json that the coordinator or a site wrote, whole and unchanged";
        let bytes = files::read_limited(path, MAX_RESULT)?;
        let told = serde_json::from_slice(&bytes).and_then(Told::of);
        told.map_err(|e| Failure::input(format!("{}: {e}", path.display()), next))
    }

    fn of(result: Value) -> serde_json::Result<Told> {
        let of = |name: &str| result[name].clone();
        let told = Told {
            method: from_value(of("method"))?,
            m: from_value(of("m"))?,
            columns: from_value(of("columns"))?,
            centres: from_value(of("centres"))?,
            centres_box: from_value(of("centres_box"))?,
            n_total: from_value(of("n_total"))?,
            converged: from_value(of("converged"))?,
            cohort: from_value(of("cohort"))?,
            indices_cohort: from_value(of("indices_cohort"))?,
            privacy: from_value(of("privacy"))?,
        };
        let width = told.centres_box.first().map_or(0, Vec::len);
        let mut rows = told.centres.iter().chain(&told.centres_box);
        let whole = rows.all(|row| row.len() == width && row.iter().all(|x| x.is_finite() && x.abs() < MOST));
        if width == 0 || !whole || told.centres.len() != told.centres_box.len() {
            return Err(serde_json::Error::io(std::io::Error::other(
                "its centres are not K rows of as many usable numbers, in both units",
            )));
        }
        Ok(told)
    }

    /// Rows behind the centres.
    fn rows(&self, path: &Path) -> Result<u64, Failure> {
        let fail = |what: &str, next: &str| Err(Failure::input(format!("{}: {what}", path.display()), next));
        if self.privacy.is_some() {
            return fail(
                "its totals carry noise, which a jackknife would take for differences between blocks",
                "take `errors` of result.json: the standard errors of a plan with noise",
            );
        }
        if self.indices_cohort.is_some() {
            return fail("a site was lost between its centres and its row count", "run this plan again");
        }
        match (self.n_total, self.converged) {
            (Some(rows), true) => Ok(rows),
            (None, _) => fail("nobody told its number of rows", "run this plan to its end, validation included"),
            (_, false) => fail(
                "its centres had not come to rest",
                "allow more rounds (max_rounds): where a run stopped half way says nothing of its rows",
            ),
        }
    }
}

/// What is found, and in which units.
struct Found {
    /// The sites of each block.
    blocks: Vec<Vec<String>>,
    jackknife: Jackknife,
    /// K x d, units of the columns.
    errors: Vec<Vec<f64>>,
}

impl JackknifeArgs {
    fn find(&self, all: &Told) -> Result<Found, Failure> {
        let rows = all.rows(&self.all)?;
        let cohort: BTreeSet<&String> = all.cohort.iter().collect();
        let (mut blocks, mut runs, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut places: Vec<(Vec<f64>, Vec<f64>)> = all.centres.iter().cloned().zip(all.centres_box.clone()).collect();
        for path in &self.without {
            let fail = |what: String, next: &str| Failure::input(format!("{}: {what}", path.display()), next);
            let one = Told::read(path)?;
            if (&one.method, one.m, &one.columns) != (&all.method, all.m, &all.columns) {
                return Err(fail(
                    format!("its method, m or columns are not those of {}", self.all.display()),
                    "make the plans with the same options",
                ));
            }
            if let Some(other) = one.cohort.iter().find(|site| !cohort.contains(site)) {
                return Err(fail(
                    format!("{other} is in it, and not in {}", self.all.display()),
                    "leave sites out, and add none",
                ));
            }
            let out: Vec<String> = all.cohort.iter().filter(|site| !one.cohort.contains(site)).cloned().collect();
            if let Some(twice) = out.iter().find(|site| !seen.insert((*site).clone())) {
                return Err(fail(format!("{twice} is left out of another run too"), "leave every block out once"));
            }
            places.extend(one.centres.iter().cloned().zip(one.centres_box.clone()));
            runs.push(Without { centres: centres(&one.centres_box, path)?, rows: one.rows(path)? });
            blocks.push(out);
        }
        if let Some(never) = all.cohort.iter().find(|site| !seen.contains(*site)) {
            return Err(Failure::input(
                format!("{never} is in every run"),
                "leave every block out once, and name the results of all these runs",
            ));
        }
        let jackknife =
            jackknife(&centres(&all.centres_box, &self.all)?, rows, &runs).map_err(|error| match error {
                Error::Blocks => Failure::input(
                    format!(
                        "a jackknife takes {LEAST_BLOCKS} blocks or more, whose rows are together those of all: {error}"
                    ),
                    "run over the same rows, and over a federation of at least three blocks",
                ),
                error => Failure::input(error, "name results of the same K and columns"),
            })?;
        let Some(extents) = extents(&places) else {
            return Err(Failure::input(
                "these are results of plans with different ranges, so errors in box units cannot be told in the columns' own",
                "make the plans with the same ranges",
            ));
        };
        let stretch = |row: &Vec<f64>| row.iter().zip(&extents).map(|(error, extent)| error * extent).collect();
        let errors = jackknife.errors.iter().map(stretch).collect();
        Ok(Found { blocks, jackknife, errors })
    }
}

fn centres(rows: &[Vec<f64>], path: &Path) -> Result<Centres, Failure> {
    let next = "take the result.json that the coordinator or a site wrote, whole and unchanged";
    Centres::from_rows(rows).map_err(|e| Failure::input(format!("{}: {e}", path.display()), next))
}

/// The extent of every column's box, from places in the column's units and in box units: their ratio between the two that are
/// farthest apart. Where all are the same there is no error to stretch. `None` where a place is not on the line through these two.
fn extents(places: &[(Vec<f64>, Vec<f64>)]) -> Option<Vec<f64>> {
    let columns = places.iter().map(|(_, inside)| inside.len()).min().unwrap_or(0);
    let of = |column: usize| {
        let at = || places.iter().map(move |(own, inside)| (own[column], inside[column]));
        let by_place = |a: &(f64, f64), b: &(f64, f64)| a.1.total_cmp(&b.1);
        let (low, high) = (at().min_by(by_place)?, at().max_by(by_place)?);
        let extent = (high.0 - low.0) / (high.1 - low.1);
        let extent = if extent.is_finite() { extent } else { 0.0 };
        let largest = at().fold(extent.abs(), |most, place| most.max(place.0.abs()));
        let off = |place: (f64, f64)| (place.0 - low.0 - extent * (place.1 - low.1)).abs();
        at().all(|place| off(place) <= ROUNDING * largest).then_some(extent)
    };
    (0..columns).map(of).collect()
}

impl Verb for JackknifeArgs {
    /// Prints the centres with their standard errors.
    ///
    /// # Errors
    /// A [`Failure`] that names the file that does not fit.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let all = Told::read(&self.all)?;
        let found = self.find(&all)?;
        let Jackknife { relative, other_clusters, .. } = &found.jackknife;
        let files: Vec<String> = other_clusters.iter().map(|at| self.without[*at].display().to_string()).collect();
        let value = json!({ "k": all.centres.len(), "columns": all.columns, "centres": all.centres, "errors": found.errors,
            "blocks": found.blocks, "known_to": relative, "other_clusters": files });
        let mut text = format!("centres and standard errors, from {} blocks\n", found.blocks.len());
        for (cluster, (centre, errors)) in all.centres.iter().zip(&found.errors).enumerate() {
            let cells = all.columns.iter().zip(centre).zip(errors);
            let cells: Vec<String> = cells.map(|((name, at), error)| format!("{name} {at:.6} ± {error:.2e}")).collect();
            text.push_str(&format!("  {cluster}: {}\n", cells.join(", ")));
        }
        text.push_str(&format!("The errors themselves are known to about {:.0} %.\n", 100.0 * relative));
        if !files.is_empty() {
            text.push_str(&format!(
                "warning: {} found other clusters, so the errors say that these are not stable, and not how far each is off\n",
                files.join(", ")
            ));
        }
        text.push_str("No signature on these files was checked: `veilsum verify RESULT.json` checks those on one.\n");
        crate::verb::print(json, &value, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_follow_from_places_in_both_units() {
        let at = |x: f64, y: f64| (vec![10.0 + 4.0 * x, 2.0 * y], vec![x, y]);
        assert_eq!(extents(&[at(0.5, 0.25), at(0.25, 0.25), at(0.75, 0.25)]), Some(vec![4.0, 0.0]));
        assert_eq!(extents(&[]), Some(Vec::new()));
        // A range around zero that is much wider than the places are far from it.
        let wide = |x: f64| (vec![-1e6 + 2e6 * x], vec![x]);
        let found = extents(&[wide(0.5), wide(0.500_000_1), wide(0.500_000_03)]).unwrap();
        assert!((found[0] - 2e6).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn centres_of_plans_of_different_ranges_have_no_extents() {
        assert_eq!(extents(&[(vec![1.0], vec![0.5]), (vec![1.5], vec![0.5])]), None);
        let other = |x: f64, extent: f64| (vec![extent * x], vec![x]);
        assert_eq!(extents(&[other(0.2, 4.0), other(0.4, 4.0), other(0.3, 5.0)]), None);
    }
}
