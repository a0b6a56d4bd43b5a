//! A result with what lies beside it, and which files are refused.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::report::{says, tables, told::Told};
use crate::{
    agreed::Federation,
    app_messages::clean,
    documents::{self, Columns},
    error::Failure,
    files,
    model::{FORMAT as MODEL_FORMAT, Model},
    report,
    result::RunResult,
    signed::{About, FORMAT, MAX_FILE, SIGNATURES, Signatures, is_member, model_digest},
};

/// A result with all that lies beside it.
pub struct Reported {
    /// The file that names the report: the result, or the model where there is no result.
    pub of: PathBuf,
    /// What stands in it.
    pub(super) file: Value,
    bytes: Vec<u8>,
    is_model: bool,
    /// The model, where it is there.
    pub model: Option<Model>,
    /// Roster and plan, where they are there and are those of this result.
    pub federation: Option<Federation>,
    /// What its columns are measured in, where `columns.toml` is there.
    pub(super) columns: Option<Columns>,
    pub(super) signatures: Option<Signatures>,
    /// Whether the signatures on the result hold, and why not, where its documents are here.
    pub holds: Option<Result<(), String>>,
    /// Why nobody can say here whether the result is as it was signed. A model alone carries no signature.
    pub unchecked: Option<&'static str>,
    pub(super) told: Told,
    /// The day on which the file was written last, as YYYY-MM-DD in UTC.
    pub(super) day: Option<String>,
    /// What could not be used of what lies beside it.
    pub(super) unused: Vec<String>,
}

impl Reported {
    /// Reads a result, or a folder with one, or a model beside one, and what lies beside it.
    ///
    /// # Errors
    /// A [`Failure`] where there is no result, it is of another version, or is none.
    pub fn read(path: &Path) -> Result<Reported, Failure> {
        let of = if path.is_dir() { found_in(path)? } else { path.to_owned() };
        let other = |e: serde_json::Error| none_of_ours(&of, e);
        let bytes = files::read_limited(&of, MAX_FILE)?;
        let file: Value = serde_json::from_slice(&bytes).map_err(other)?;
        let is_model = file["format"] == MODEL_FORMAT;
        let beside = report::beside(&of);
        if is_model && beside.is_file() {
            return Reported::read(&beside);
        }
        let mut unused = Vec::new();
        let (result, model) = if is_model {
            let (model, _) = documents::read_model(&of)?;
            (serde_json::from_value(report::of_model(&model)).map_err(other)?, Some(model))
        } else {
            let result = result_of(&of, &file, &bytes)?;
            let beside = tables::sibling(&of, "result", "model", "json");
            let model = beside.is_file().then(|| model_of(&result, &file, &beside));
            (result, model.and_then(|model| model.map_err(|why| unused.push(why)).ok()))
        };
        let mut all = Reported {
            signatures: serde_json::from_value(file[SIGNATURES].clone()).map_err(other)?,
            day: std::fs::metadata(&of).and_then(|about| about.modified()).ok().and_then(day_of),
            told: Told::of(result),
            federation: None,
            columns: None,
            holds: None,
            unchecked: None,
            of,
            file,
            bytes,
            is_model,
            model,
            unused,
        };
        all.look_around();
        all.check();
        Ok(all)
    }

    /// A text of the file, which need not have it.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.file[key].as_str().map(clean)
    }

    /// The same with the documents of its run.
    ///
    /// # Errors
    /// A [`Failure`] where they are another run's.
    pub fn under(self, federation: Federation) -> Result<Reported, Failure> {
        if !self.is_of(&federation) {
            let what = format!("{}: this result is not of that plan, whose hash is another", self.of.display());
            return Err(Failure::input(what, "name the roster and the plan of the same run"));
        }
        Ok(self.with(federation))
    }

    /// Whether these are the documents of its run.
    pub fn is_of(&self, federation: &Federation) -> bool {
        federation.terms.hash().to_string() == self.told.plan_hash
    }

    /// The same with the documents of its run, by which its signatures are checked.
    #[must_use]
    pub fn with(self, federation: Federation) -> Reported {
        let mut all = Reported { federation: Some(federation), ..self };
        all.check();
        all
    }

    /// Checks the signatures on the result under its own roster and plan; those of others would say nothing.
    fn check(&mut self) {
        if self.is_model {
            return;
        }
        let of = self.federation.as_ref().filter(|of| self.file["roster_hash"] == of.roster.hash().to_string());
        (self.holds, self.unchecked) = match (&self.signatures, of) {
            (None, _) => (None, Some("it carries no signatures")),
            (_, None) => (None, Some("the roster and the plan that it names do not lie beside it")),
            (Some(_), Some(of)) => {
                let checked = About { roster: &of.roster, terms: &of.terms }.check(&self.bytes);
                (Some(checked.map(drop).map_err(|failure| failure.message)), None)
            }
        };
    }

    fn look_around(&mut self) {
        let folder = self.of.parent().unwrap_or(Path::new("."));
        let (roster, plan) = (folder.join("roster.toml"), folder.join("plan.toml"));
        self.columns = documents::columns_beside(&roster).ok().flatten();
        if roster.is_file() && plan.is_file() {
            match documents::load_federation(&roster, &plan) {
                Ok(federation) if self.is_of(&federation) => self.federation = Some(federation),
                Ok(_) => {
                    self.unused.push(format!("{} is another plan than this result's, and was left out", plan.display()))
                }
                Err(failure) => self.unused.push(failure.message),
            }
        }
    }

    /// What came of the run, in a sentence.
    pub fn says(&self) -> String {
        says::finding(&self.told)
    }

    /// Where the report belongs: beside the result, as `report.html` beside `result.json`.
    pub fn place(&self) -> PathBuf {
        let from = if self.is_model { "model" } else { "result" };
        tables::sibling(&self.of, from, "report", "html")
    }
}

/// The result in a folder, or the model.
fn found_in(folder: &Path) -> Result<PathBuf, Failure> {
    let found = ["result.json", "model.json"].into_iter().map(|name| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        let at = folder.display();
        let what = format!("{at}: there is no result here; a run writes one when it ends, also where it ends early");
        Failure::input(what, "name the folder that the run wrote into (--out), or wait for its end: veilsum status")
    })
}

fn none_of_ours(file: &Path, why: impl std::fmt::Display) -> Failure {
    let next = "name the result.json that the coordinator or a site wrote, whole and unchanged, or its folder";
    Failure::input(format!("{}: this is not the result of a run: {why}", file.display()), next)
}

/// The result in a file.
fn result_of(of: &Path, file: &Value, bytes: &[u8]) -> Result<RunResult, Failure> {
    let format = clean(file["format"].as_str().unwrap_or_default());
    if format != FORMAT {
        let what = format!("its form is {format:?}, and this program reads {FORMAT}");
        let made = format.starts_with("veilsum-result/");
        let by_another = "make the report with the veilsum of the run; the result names it under `software`";
        let none = none_of_ours(of, what);
        return Err(if made { Failure { advice: by_another.into(), ..none } } else { none });
    }
    let known = |key: &&String| is_member(key) || *key == SIGNATURES;
    if let Some(key) = file.as_object().and_then(|members| members.keys().find(|key| !known(key))) {
        return Err(none_of_ours(of, format!("no result has a member {:?}", clean(key))));
    }
    let is_odd = |key: &&str| file.get(key).is_some_and(|of| !of.is_string() && !of.is_null());
    let texts = ["federation", "roster_hash", "model_digest", "run", "software"];
    if let Some(key) = texts.into_iter().find(is_odd) {
        return Err(none_of_ours(of, format!("its {key:?} is no text")));
    }
    let result: RunResult = serde_json::from_slice(bytes).map_err(|e| none_of_ours(of, e))?;
    let (k, d) = (result.centres.len(), result.columns.len());
    if result.method.is_empty() || k == 0 || d == 0 {
        return Err(none_of_ours(of, "it names no method, no columns or no centres"));
    }
    if result.centres.iter().any(|centre| centre.len() != d) || result.k as usize != k {
        return Err(none_of_ours(of, "its centres are not K lists of one number for each column"));
    }
    Ok(result)
}

/// The model beside a result, if it is that of the result; else why not.
fn model_of(result: &RunResult, file: &Value, beside: &Path) -> Result<Model, String> {
    let (model, bytes) = documents::read_model(beside).map_err(|failure| failure.message)?;
    let fits = file["model_digest"] == model_digest(&bytes).to_string()
        && model.plan == result.plan_hash
        && model.centres.len() == result.centres.len();
    fits.then_some(model)
        .ok_or_else(|| format!("{} is the model of another result, and was left out", beside.display()))
}

/// The day in UTC (Hinnant's civil_from_days).
fn day_of(time: std::time::SystemTime) -> Option<String> {
    let days = time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs() / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    Some(format!("{:04}-{month:02}-{day:02}", year + era * 400 + u64::from(month <= 2)))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn days_are_those_of_the_calendar() {
        let day = |seconds: u64| super::day_of(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        let known = [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, expected) in known {
            assert_eq!(day(seconds), expected);
        }
    }
}
