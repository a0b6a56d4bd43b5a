//! What a result's files tell, as far as they tell it: files of earlier versions lack members, those of later ones have more.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    agreed::Federation,
    documents,
    error::Failure,
    files,
    model::{FORMAT as MODEL_FORMAT, Model},
    report,
};

/// Bytes of a result that are read.
const MAX_RESULT: usize = 128 << 20;
/// What results say of their form, before the number of it.
const FORMAT: &str = "veilsum-result/";
/// The form that is read here; files of earlier versions name none.
const VERSION: &str = "1";

/// A number, or `null` where there is none.
type Maybe = Option<f64>;

/// What `result.json` tells.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    pub(super) method: String,
    #[serde(deserialize_with = "null_is_none")]
    pub(super) k: u32,
    pub(super) columns: Vec<String>,
    /// K x d, original units.
    pub(super) centres: Vec<Vec<Maybe>>,
    pub(super) categories: Vec<Shares>,
    pub(super) shapes: Option<Shapes>,
    pub(super) sizes: Vec<Option<u64>>,
    pub(super) mass: Vec<Maybe>,
    pub(super) weight: Vec<Maybe>,
    pub(super) deviations: Vec<Option<Vec<Maybe>>>,
    pub(super) left_out: Option<u64>,
    pub(super) not_shown: Vec<String>,
    pub(super) n_total: Option<u64>,
    pub(super) n_total_from: Option<String>,
    #[serde(deserialize_with = "null_is_none")]
    pub(super) rounds: u32,
    pub(super) converged: Option<bool>,
    pub(super) rested: Option<Frozen>,
    pub(super) ended_early: Option<Stopped>,
    pub(super) extrapolated: Option<Estimated>,
    pub(super) objective: Maybe,
    pub(super) objective_per_row: Maybe,
    pub(super) indices: BTreeMap<String, Maybe>,
    pub(super) curve: Vec<Point>,
    pub(super) stability: Option<Stability>,
    #[serde(deserialize_with = "null_is_none")]
    pub(super) questions: u32,
    pub(super) standardisation: Option<Value>,
    pub(super) cohort: Vec<String>,
    pub(super) indices_cohort: Option<Vec<String>>,
    pub(super) missing: Vec<String>,
    pub(super) plan_hash: String,
    pub(super) history: Vec<Shift>,
    pub(super) traffic: BTreeMap<String, BTreeMap<String, Sent>>,
    pub(super) privacy: Option<Noise>,
    pub(super) errors: Option<Errors>,
    pub(super) warnings: Vec<String>,
    pub(super) findings: Vec<Doubt>,
    pub(super) description: Option<Described>,
    pub(super) pooled: Option<Pooled>,
    pub(super) software: Option<Value>,
    pub(super) signatures: Option<Signatures>,
}

/// `null`, as it stands for what is not known, is nothing.
fn null_is_none<'de, D: Deserializer<'de>>(of: D) -> Result<u32, D::Error> {
    Ok(Option::<u32>::deserialize(of)?.unwrap_or(0))
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Frozen {
    pub(super) too_small: u32,
    pub(super) hardly_changed: u32,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stopped {
    pub(super) round: u32,
    pub(super) at_rest: bool,
    pub(super) reason: String,
    pub(super) lost: Vec<String>,
    pub(super) refused: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Estimated {
    pub(super) rounds: u32,
    pub(super) held_out_error: Maybe,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shares {
    pub(super) column: String,
    pub(super) categories: Vec<String>,
    pub(super) shares: Vec<Vec<Maybe>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shapes {
    pub(super) weights: Option<Vec<Maybe>>,
    /// Lower triangles, row by row, original units.
    pub(super) covariances: Vec<Vec<Maybe>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Point {
    pub(super) k: u32,
    pub(super) indices: BTreeMap<String, Maybe>,
    pub(super) objective: Maybe,
    pub(super) rounds: u32,
    pub(super) converged: bool,
    pub(super) collapsed: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stability {
    pub(super) matched_distance: Vec<Maybe>,
    pub(super) agreement: Maybe,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shift {
    pub(super) round: u32,
    pub(super) shift: Maybe,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sent {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Noise {
    pub(super) promise: String,
    pub(super) epsilon: Maybe,
    pub(super) delta: Maybe,
    pub(super) unit: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Errors {
    pub(super) centres: Vec<Vec<Maybe>>,
    pub(super) not_distinguishable_from_noise: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Doubt {
    pub(super) text: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pooled {
    pub(super) what: String,
    pub(super) max_abs_diff: Maybe,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Signatures {
    pub(super) written_by: String,
    pub(super) result: Vec<By>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct By {
    pub(super) party: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Described {
    pub(super) rows: u64,
    pub(super) missing: String,
    pub(super) min_records: u64,
    pub(super) numbers: Vec<Numbers>,
    pub(super) categories: Vec<Counts>,
    pub(super) correlations: Option<Vec<Vec<Maybe>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Numbers {
    pub(super) column: String,
    pub(super) mean: Maybe,
    pub(super) deviation: Maybe,
    pub(super) quantiles: Vec<Quantile>,
    pub(super) histogram: Vec<Bin>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Quantile {
    pub(super) q: f64,
    pub(super) value: Maybe,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Bin {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) rows: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Counts {
    pub(super) column: String,
    pub(super) counts: Vec<Count>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Count {
    pub(super) category: String,
    pub(super) rows: u64,
    pub(super) share: f64,
}

/// A result with all that lies beside it.
pub struct Reported {
    /// The file that names the report: the result, or the model where there is no result.
    pub of: PathBuf,
    /// The model, where it is there.
    pub model: Option<Model>,
    /// Roster and plan, where they are there and are those of this result.
    pub federation: Option<Federation>,
    pub(super) told: Told,
    /// Files of signed evidence beside it.
    pub(super) evidence: usize,
    /// What could not be used of what lies beside it.
    pub(super) unused: Vec<String>,
}

impl Reported {
    /// Reads a result, or a folder with one, or a model beside one, and what lies beside it.
    ///
    /// # Errors
    /// A [`Failure`] where there is no result, it is of another version, or is none.
    pub fn read(path: &Path) -> Result<Reported, Failure> {
        let file = if path.is_dir() { found_in(path)? } else { path.to_owned() };
        let (value, bytes) = parsed(&file)?;
        let is_model = value["format"].as_str().is_some_and(|format| format == MODEL_FORMAT);
        let result = report::beside(&file);
        if is_model && result.is_file() {
            return Reported::read(&result);
        }
        let beside = match is_model {
            true => file.clone(),
            false => model_beside(&file),
        };
        let mut unused = Vec::new();
        let model = match beside.is_file() {
            true => documents::read_model(&beside).map_err(|failure| unused.push(failure.message)).ok(),
            false => None,
        };
        let told = match (is_model, &model) {
            (true, Some(model)) => of_model(model),
            (true, None) => {
                return Err(documents::read_model(&file).err().unwrap_or_else(|| none_of_ours(&file, "it changed")));
            }
            (false, _) => told(&file, &value, &bytes)?,
        };
        let mut all = Reported { of: file, model: None, federation: None, told, evidence: 0, unused };
        all.model = model.filter(|model| {
            let fits = model.plan == all.told.plan_hash && model.centres.len() == all.told.centres.len();
            if !fits {
                all.unused.push(format!("{} is the model of another result, and was left out", beside.display()));
            }
            fits
        });
        all.look_around();
        Ok(all)
    }

    /// The same with the documents of its run.
    ///
    /// # Errors
    /// A [`Failure`] where they are another run's.
    pub fn under(self, federation: Federation) -> Result<Reported, Failure> {
        if federation.terms.hash().to_string() != self.told.plan_hash {
            return Err(Failure::input(
                format!("{}: this result is not of that plan, whose hash is another", self.of.display()),
                "name the roster and the plan of the same run",
            ));
        }
        Ok(Reported { federation: Some(federation), ..self })
    }

    fn look_around(&mut self) {
        let folder = self.of.parent().unwrap_or(Path::new("."));
        let (roster, plan) = (folder.join("roster.toml"), folder.join("plan.toml"));
        if roster.is_file() && plan.is_file() {
            match documents::load_federation(&roster, &plan) {
                Ok(federation) if federation.terms.hash().to_string() == self.told.plan_hash => {
                    self.federation = Some(federation);
                }
                Ok(_) => {
                    self.unused.push(format!("{} is another plan than this result's, and was left out", plan.display()))
                }
                Err(failure) => self.unused.push(failure.message),
            }
        }
        let named = |entry: &std::fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("evidence-") && name.ends_with(".json")
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        self.evidence = std::fs::read_dir(folder).map_or(0, |all| all.flatten().filter(named).count());
    }

    /// Where the report belongs: beside the result, as `report.html` beside `result.json`.
    pub fn place(&self) -> PathBuf {
        let stem = self.of.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let name = match (stem.strip_prefix("result"), stem.strip_suffix("-result"), stem.strip_prefix("model")) {
            (Some(rest), ..) => format!("report{rest}.html"),
            (_, Some(before), _) => format!("{before}-report.html"),
            (.., Some(rest)) => format!("report{rest}.html"),
            _ => format!("{stem}-report.html"),
        };
        self.of.with_file_name(name)
    }
}

/// The result in a folder, or the model.
fn found_in(folder: &Path) -> Result<PathBuf, Failure> {
    let found = ["result.json", "model.json"].into_iter().map(|name| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        Failure::input(
            format!(
                "{}: there is no result here; a run writes one when it ends, also where it ends early",
                folder.display()
            ),
            "name the folder that the run wrote into (--out), or wait for its end: veilsum status",
        )
    })
}

fn none_of_ours(file: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::input(
        format!("{}: this is not the result of a run: {why}", file.display()),
        "name the result.json that the coordinator or a site wrote, whole and unchanged, or its folder",
    )
}

fn parsed(file: &Path) -> Result<(Value, Vec<u8>), Failure> {
    let bytes = files::read_limited(file, MAX_RESULT)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| none_of_ours(file, e))?;
    Ok((value, bytes))
}

fn told(file: &Path, value: &Value, bytes: &[u8]) -> Result<Told, Failure> {
    if let Some(format) = value.get("format") {
        let named = format.as_str().unwrap_or_default();
        match named.strip_prefix(FORMAT) {
            Some(VERSION) => {}
            Some(other) => {
                return Err(Failure::input(
                    format!(
                        "{}: its form is {FORMAT}{}, and this program reads {FORMAT}{VERSION}",
                        file.display(),
                        crate::app_messages::clean(other)
                    ),
                    "make the report with the veilsum of the run; the result names it under `software`",
                ));
            }
            None => return Err(none_of_ours(file, format!("its form is {format}"))),
        }
    }
    let told: Told = serde_json::from_slice(bytes).map_err(|e| none_of_ours(file, e))?;
    let d = told.columns.len();
    if told.method.is_empty() || told.centres.is_empty() || d == 0 {
        return Err(none_of_ours(file, "it names no method, no columns or no centres"));
    }
    if told.centres.iter().any(|centre| centre.len() != d) || told.k as usize != told.centres.len() {
        return Err(none_of_ours(file, "its centres are not K lists of one number for each column"));
    }
    Ok(told)
}

/// What a model says of its run.
fn of_model(model: &Model) -> Told {
    Told {
        method: model.method.clone(),
        k: model.k,
        columns: model.names(),
        centres: model.centres.iter().map(|centre| centre.iter().copied().map(Some).collect()).collect(),
        converged: model.converged,
        rested: model.rested.map(|of| Frozen { too_small: of.too_small, hardly_changed: of.hardly_changed }),
        ended_early: model.ended_early.clone().map(|early| Stopped {
            round: early.round,
            at_rest: early.at_rest,
            reason: early.reason,
            lost: early.lost,
            refused: early.refused,
        }),
        extrapolated: model
            .extrapolated
            .map(|found| Estimated { rounds: found.rounds, held_out_error: Some(found.held_out_error) }),
        plan_hash: model.plan.clone(),
        ..Told::default()
    }
}

/// The model beside a result, as `model.json` beside `result.json`.
fn model_beside(result: &Path) -> PathBuf {
    let stem = result.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let named = match (stem.strip_prefix("result"), stem.strip_suffix("-result")) {
        (Some(rest), _) => result.with_file_name(format!("model{rest}.json")),
        (None, Some(before)) => {
            let plain = result.with_file_name(before);
            if plain.is_file() { plain } else { result.with_file_name(format!("{before}.json")) }
        }
        (None, None) => result.with_file_name("model.json"),
    };
    named
}
