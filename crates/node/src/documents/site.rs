//! `site.toml`: what a site demands for itself, in its operator's words (spec section 11). Every key may be left out; what is
//! left out is strict.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, json};
use veilsum_proto::{
    ledger::MAX_NAME,
    policy::{Enforcement, Floor, Noise, Policy, Release},
};

use super::{
    file::{parse_failure, read_text},
    rows::{RowsFrom, RowsPart},
};
use crate::{
    error::{Code, Failure},
    table::RowRules,
};

/// The file's usual name, beside the key.
const FILE: &str = "site.toml";
/// Bytes of the file: some twenty lines and room for lists and comments.
const MAX_FILE: usize = 256 << 10;
/// The ending of the file with all rows that cannot be used.
const UNUSABLE: &str = "unusable-rows.csv";
/// The data set's label where the operator gives none. Whatever it is, everything under one identity counts together.
const DATA: &str = "rows";

/// A site's policy and the name of its data set.
#[derive(Clone, PartialEq, Debug)]
pub struct SitePolicy {
    /// As the core reads it.
    pub policy: Policy,
    /// Under which name the ledger counts these rows.
    pub data: String,
    /// The privacy budget in the operator's words, from which the core's is computed.
    pub epsilon: f64,
    /// At this delta.
    pub delta: f64,
    /// Where its rows are, and what it says of them.
    pub rows: Arc<RowRules>,
}

impl Default for SitePolicy {
    fn default() -> Self {
        SitePolicy { policy: Policy::default(), data: DATA.into(), epsilon: 1.0, delta: 1e-6, rows: Arc::default() }
    }
}

impl From<Policy> for SitePolicy {
    fn from(policy: Policy) -> Self {
        SitePolicy { policy, ..SitePolicy::default() }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct File {
    min_rows: Option<u64>,
    min_cohort: Option<u16>,
    colluders: Option<u16>,
    max_rounds: Option<u32>,
    max_rounds_in_all: Option<u64>,
    max_runs: Option<u64>,
    contributors: Option<u32>,
    records: Option<u64>,
    change: Option<u64>,
    methods: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    opening: Option<bool>,
    separation: Option<f64>,
    separation_opened: Option<f64>,
    data: Option<String>,
    noise: NoisePart,
    release: ReleasePart,
    rows: RowsPart,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct NoisePart {
    require: Option<bool>,
    epsilon: Option<f64>,
    delta: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ReleasePart {
    rule: Option<Enforcement>,
    bits: Option<u32>,
    domain: Option<u64>,
}

const KEYS: &str = "the keys are min_rows, min_cohort, colluders, max_rounds, max_rounds_in_all, max_runs, contributors, \
    records, change, methods, columns, opening, separation, separation_opened, data, [noise] require, epsilon, delta, \
    [release] rule, bits, domain and [rows] source, answerer, answerer_seconds, memory, filter, missing, missing_marks, columns, values, units; `veilsum policy show` prints them with their meaning";

/// The policy in `path`.
///
/// # Errors
/// A [`Failure`] that names file and line.
pub fn load_policy(path: &Path) -> Result<SitePolicy, Failure> {
    let text = read_text(path, MAX_FILE)?;
    let file: File = toml::from_str(&text).map_err(|e| parse_failure(path, &text, &e, KEYS))?;
    file.policy().map_err(|why| Failure::input(format!("{}: {why}", path.display()), "correct the file"))
}

/// The policy that holds for the party with this key: the file given, else `site.toml` beside the key, else the strict
/// default; and the file it stands in.
///
/// # Errors
/// As [`load_policy`].
pub fn policy_of(given: Option<&Path>, key: Option<&Path>) -> Result<(SitePolicy, Option<PathBuf>), Failure> {
    let beside = || key.map(|key| key.with_file_name(FILE)).filter(|path| std::fs::symlink_metadata(path).is_ok());
    match given.map(Path::to_owned).or_else(beside) {
        Some(path) => Ok((load_policy(&path)?, Some(path))),
        None => Ok((SitePolicy::default(), None)),
    }
}

impl File {
    fn policy(self) -> Result<SitePolicy, String> {
        let strict = Policy::default();
        let SitePolicy { data, epsilon, delta, .. } = SitePolicy::default();
        let (data, epsilon) = (self.data.unwrap_or(data), self.noise.epsilon.unwrap_or(epsilon));
        let delta = self.noise.delta.unwrap_or(delta);
        if data.is_empty() || data.len() > MAX_NAME || data.chars().any(char::is_control) {
            return Err(format!("data is not a name of 1 to {MAX_NAME} bytes"));
        }
        let separation = self.separation.unwrap_or(strict.separation_ppm as f64 / 1e6);
        let opened = self.separation_opened.unwrap_or(strict.separation_opened_ppm as f64 / 1e6);
        if ![separation, opened].iter().all(|apart| (0.0..=2.0).contains(apart)) {
            return Err("separation and separation_opened are 0 to 2, in half-widths of the box".into());
        }
        if !(epsilon > 0.0 && epsilon <= 1_000.0 && delta > 0.0 && delta < 1.0) {
            return Err("noise.epsilon is 0 to 1000 and noise.delta 0 to 1, both excluded".into());
        }
        let (bits, domain) = (self.release.bits.unwrap_or(strict.release.bits), self.release.domain);
        if !(1..=64).contains(&bits) || domain == Some(0) {
            return Err("release.bits is 1 to 64, and release.domain at least 1".into());
        }
        let ppm = |separation: f64| (separation * 1e6).round() as u64;
        let floor = Floor {
            min_cohort: self.min_cohort.unwrap_or(strict.floor.min_cohort),
            colluders: self.colluders.unwrap_or(strict.floor.colluders),
            max_rounds: self.max_rounds.unwrap_or(strict.floor.max_rounds),
            contributors: self.contributors.unwrap_or(strict.floor.contributors),
        };
        let policy = Policy {
            floor,
            min_rows: self.min_rows.unwrap_or(strict.min_rows),
            max_rounds_in_all: self.max_rounds_in_all.unwrap_or(strict.max_rounds_in_all),
            max_runs: self.max_runs.unwrap_or(strict.max_runs),
            records: self.records.unwrap_or(strict.records),
            change: self.change.unwrap_or(strict.change),
            methods: self.methods,
            columns: self.columns,
            opening: self.opening.unwrap_or(strict.opening),
            separation_ppm: ppm(separation),
            separation_opened_ppm: ppm(opened),
            noise: Noise {
                required: self.noise.require.unwrap_or(false),
                nano_rho: crate::dp::nano_rho(epsilon, delta),
            },
            release: Release { rule: self.release.rule.unwrap_or(strict.release.rule), bits, domain },
        };
        Ok(SitePolicy { policy, data, epsilon, delta, rows: Arc::new(self.rows.rules()?) })
    }
}

/// One key: how it is written, its value, what it means.
struct Key {
    name: &'static str,
    value: Value,
    means: &'static str,
}

impl SitePolicy {
    /// Where this site's rows are: `data` where it is given, else as `[rows]` of `file` says, relative to that file. `beside` is a document of
    /// the site's (its key, its schema), beside which rows that cannot be used are listed.
    ///
    /// # Errors
    /// A [`Failure`] where neither says it.
    pub fn rows_from(
        &self,
        data: Option<&Path>,
        file: Option<&Path>,
        beside: Option<&Path>,
    ) -> Result<RowsFrom, Failure> {
        let stated = || {
            let source = Path::new(self.rows.source.as_ref()?);
            let folder = file.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
            Some(folder.filter(|_| source.as_os_str() != "-").map_or(source.to_owned(), |folder| folder.join(source)))
        };
        let list = beside.map(|of| of.with_added_extension(UNUSABLE));
        if let (None, Some(_)) = (data, &self.rows.answerer) {
            let (data, answerer) = (PathBuf::new(), self.rows.answerer.clone());
            return Ok(RowsFrom { data, rules: self.rows.clone(), list, answerer });
        }
        let Some(data) = data.map(Path::to_owned).or_else(stated) else {
            let what = "nobody says where this site's rows are";
            let next = "say --data FILE, or name them in site.toml: source = \"FILE\" under [rows], or answerer = [\"PROGRAM\"]";
            return Err(Failure::new(Code::Usage, what, next));
        };
        Ok(RowsFrom { data, rules: self.rows.clone(), list, answerer: None })
    }

    fn keys(&self) -> Vec<Key> {
        let p = &self.policy;
        let key = |name, value, means| Key { name, value, means };
        vec![
            key("min_rows", json!(p.min_rows), "own rows at least"),
            key("min_cohort", json!(p.floor.min_cohort), "sites that a total covers at least"),
            key(
                "colluders",
                json!(p.floor.colluders),
                "sites supposed to collude with the coordinator; 0: as the plan says",
            ),
            key("max_rounds", json!(p.floor.max_rounds), "questions of one plan at most"),
            key("max_rounds_in_all", json!(p.max_rounds_in_all), "answers on this data set at most, over all plans"),
            key("max_runs", json!(p.max_runs), "runs on this data set at most, over all plans"),
            key(
                "contributors",
                json!(p.floor.contributors),
                "honest sites behind whatever is released of this site, and behind a group's sum (t); 1: what this site sent can be \
                 computed once it has left",
            ),
            key("records", json!(p.records), "rows behind a group's sum at least (p)"),
            key(
                "change",
                json!(p.change),
                "rows that are added or removed together at least (r), and that enter or leave a group before its sum is asked again",
            ),
            key("methods", json!(p.methods), "methods that a plan may name; absent: any"),
            key("columns", json!(p.columns), "columns that a plan may name; absent: any"),
            key("opening", json!(p.opening), "whether the plan must open its totals"),
            key(
                "separation",
                json!(p.separation_ppm as f64 / 1e6),
                "where it does not: distance of centres at least, in half-widths of the box",
            ),
            key(
                "separation_opened",
                json!(p.separation_opened_ppm as f64 / 1e6),
                "where it does: the same, against a site that steers centres together; honest ones may meet",
            ),
            key("data", json!(self.data), "label of these rows; another one opens nothing and resets nothing"),
            key("noise.require", json!(p.noise.required), "whether every answer needs noise"),
            key("noise.epsilon", json!(self.epsilon), "budget of this data set for answers with noise"),
            key("noise.delta", json!(self.delta), "at this delta"),
            key(
                "release.rule",
                json!(p.release.rule),
                "the release rule for answers without noise: enforce, report or off",
            ),
            key("release.bits", json!(p.release.bits), "bits that one value of a row is worth"),
            key(
                "release.domain",
                json!(p.release.domain),
                "different rows that are possible at all; absent: as the values of the site's own rows suggest",
            ),
        ]
    }

    /// Every key with its value and what it means, for people.
    pub fn meanings(&self) -> Vec<[String; 3]> {
        let value = |value: &Value| match value {
            Value::Null => "absent".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.keys()
            .into_iter()
            .map(|Key { name, value: of, means }| [name.to_owned(), value(&of), means.to_owned()])
            .collect()
    }

    /// For --json: the keys as the file has them.
    pub fn to_json(&self) -> Value {
        let mut out = serde_json::Map::new();
        for Key { name, value, .. } in self.keys() {
            match name.split_once('.') {
                None => drop(out.insert(name.into(), value)),
                Some((table, name)) => {
                    let table = out.entry(table).or_insert_with(|| json!({}));
                    table[name] = value;
                }
            }
        }
        if *self.rows != RowRules::default() {
            out.insert("rows".into(), serde_json::to_value(RowsPart::of(&self.rows)).unwrap_or_default());
        }
        Value::Object(out)
    }

    /// As a file that says the same.
    pub fn to_text(&self) -> String {
        let (mut text, mut table) = (String::new(), "");
        for Key { name, value, means } in self.keys() {
            let mut name = name;
            if let Some((of, key)) = name.split_once('.') {
                if of != table {
                    text += &format!("\n[{of}]\n");
                    table = of;
                }
                name = key;
            }
            // JSON's numbers, texts and lists of texts are TOML's.
            let line = if value.is_null() { format!("# {name} =") } else { format!("{name} = {value}") };
            text += &format!("{line:<28} # {means}\n");
        }
        if *self.rows != RowRules::default() {
            #[derive(serde::Serialize)]
            struct Whole {
                rows: RowsPart,
            }
            let rows = Whole { rows: RowsPart::of(&self.rows) };
            text += &format!("\n{}", toml::to_string(&rows).unwrap_or_default());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    fn policy(text: &str) -> Result<SitePolicy, Failure> {
        let folder = Folder::new("site");
        let path = folder.0.join(FILE);
        std::fs::write(&path, text).unwrap();
        load_policy(&path)
    }

    #[test]
    fn an_empty_file_is_the_strict_default_and_what_is_shown_reads_back() {
        let strict = SitePolicy::default();
        assert_eq!(policy("").unwrap(), strict);
        assert_eq!(policy(&strict.to_text()).unwrap(), strict);
        let own = policy(
            "min_rows = 3\nmethods = [\"fcm\"]\ncolumns = [\"a b\"]\ndata = \"ward 7\"\nseparation = 0.25\n\
             [noise]\nrequire = true\nepsilon = 0.5\n[release]\nrule = \"report\"\ndomain = 49\n",
        )
        .unwrap();
        assert_eq!((own.policy.min_rows, own.policy.separation_ppm, own.data.as_str()), (3, 250_000, "ward 7"));
        assert_eq!((own.policy.noise.required, own.policy.release.rule), (true, Enforcement::Report));
        assert_eq!(policy(&own.to_text()).unwrap(), own);
        assert_eq!(own.to_json()["release"]["domain"], 49);
    }

    #[test]
    fn what_a_site_says_of_its_rows_is_read_and_shown() {
        let text = "[rows]\nsource = \"lake/*.parquet\"\nmemory = \"512 MiB\"\nfilter = \"age >= 18 and 'x' != 'y'\"\n";
        assert!(policy(text).unwrap_err().message.contains("rows.filter"));
        let text = "[rows]\nsource = \"lake/*.parquet\"\nmemory = \"512 MiB\"\nprecision = \"single\"\nfilter = \"age >= 18\"\nmissing = \"leave-out\"\n\
            missing_marks = [\"-99\"]\ncolumns = { age = \"Alter in Jahren\" }\n\
            [rows.values]\neducation = { primary = 1, secondary = \"high\" }\n[rows.units]\nweight = { factor = 0.45359237 }\n";
        let own = policy(text).unwrap();
        assert_eq!(policy(&own.to_text()).unwrap(), own, "{}", own.to_text());
        assert_eq!(own.rows.precision, crate::release::Precision::Single);
        assert_eq!((own.rows.memory, own.rows.columns["age"].as_str()), (Some(512 << 20), "Alter in Jahren"));
        assert_eq!(own.to_json()["rows"]["units"]["weight"]["factor"], 0.453_592_37);
        let from = own.rows_from(None, Some(Path::new("a/site.toml")), Some(Path::new("a/b.key"))).unwrap();
        assert_eq!((from.data, from.list), ("a/lake/*.parquet".into(), Some("a/b.key.unusable-rows.csv".into())));
        assert_eq!(own.rows_from(Some(Path::new("x.csv")), None, None).unwrap().data, Path::new("x.csv"));
        assert!(policy("").unwrap().rows_from(None, None, None).unwrap_err().advice.contains("--data"));
    }

    #[test]
    fn an_answerer_stands_in_the_place_of_a_file() {
        let own = policy("[rows]\nanswerer = [\"veilsum-sql\", \"--view\", \"a b\"]\nanswerer_seconds = 9\n").unwrap();
        assert_eq!(policy(&own.to_text()).unwrap(), own, "{}", own.to_text());
        let from = own.rows_from(None, None, None).unwrap();
        let command = from.answerer.clone().unwrap();
        assert_eq!((command.words[2].as_str(), command.limit.as_secs()), ("a b", 9));
        assert_eq!(from.place(), "the answerer \"veilsum-sql\"");
        // A file that is named for one command takes its place.
        assert_eq!(own.rows_from(Some(Path::new("x.csv")), None, None).unwrap().answerer, None);
        for (text, why) in [
            ("answerer = [\"x\"]\nsource = \"y\"", "stands alone"),
            ("answerer = [\"x\"]\nunits = { w = { factor = 2.0 } }", "stands alone"),
            ("answerer = [\"x\"]\nprecision = \"single\"", "an answerer holds its own: leave rows.precision out"),
            ("answerer = [\"\"]", "name of a program"),
            ("answerer = \"x\"", "line 2"),
            ("answerer_seconds = 5", "beside an answerer"),
            ("answerer = [\"x\"]\nanswerer_seconds = 0", "answerer_seconds"),
        ] {
            let failure = policy(&format!("[rows]\n{text}")).unwrap_err();
            assert!(failure.message.contains(why), "{text}: {failure}");
        }
    }

    #[test]
    fn what_a_file_may_not_say() {
        for (text, why) in [
            ("min_row = 3", "line 1: unknown field `min_row`"),
            ("\n[release]\nrule = \"enforced\"", "line 3: unknown variant"),
            ("[noise]\nsigma = 1", "unknown field `sigma`"),
            ("separation = 3.0", "separation"),
            ("data = \"\"", "data is not a name"),
            ("data = \"a\\nb\"", "data is not a name"),
            ("[noise]\nepsilon = 0.0", "noise.epsilon"),
            ("[noise]\ndelta = nan", "noise.delta"),
            ("[release]\nbits = 0", "release.bits"),
            ("[release]\ndomain = 0", "release.domain"),
            ("min_rows = -1", "line 1"),
            ("min_row = 3", "do you mean \"min_rows\"?"),
            ("[rows]\ncolums = {}", "do you mean \"columns\"?"),
            ("[rows]\nsource = \"\"", "rows.source"),
            ("[rows]\nmemory = \"1 MiB\"", "rows.memory"),
            ("[rows]\nmemory = \"much\"", "rows.memory"),
            ("[rows]\nprecision = \"half\"", "unknown variant `half`, expected `double` or `single`"),
            ("[rows]\nfilter = \"a > 1 or b > 1\"", "`or` is not offered"),
            ("[rows]\nmissing = \"guess\"", "unknown variant"),
            ("[rows]\nmissing_marks = [\"\"]", "rows.missing_marks"),
            ("[rows]\ncolumns = { a = \"x\", b = \"x\" }", "both"),
            ("[rows.units]\na = { factor = 0 }", "rows.units"),
            ("[rows.units]\na = { factr = 2.0 }", "line 2"),
            ("[rows.values]\na = { b = inf }", "rows.values"),
        ] {
            let failure = policy(text).unwrap_err();
            assert!(failure.message.contains(why) && !failure.advice.is_empty(), "{text}: {failure}");
        }
        assert!(policy("min_row = 3").unwrap_err().advice.contains("min_rows"));
    }

    #[test]
    fn the_file_beside_the_key_counts() {
        let folder = Folder::new("beside");
        let key = folder.0.join("a.key");
        assert_eq!(policy_of(None, Some(&key)).unwrap(), (SitePolicy::default(), None));
        let beside = folder.0.join(FILE);
        std::fs::write(&beside, "min_rows = 7").unwrap();
        let (found, path) = policy_of(None, Some(&key)).unwrap();
        assert_eq!((found.policy.min_rows, path), (7, Some(beside)));
        let other = folder.0.join("other.toml");
        assert!(policy_of(Some(&other), Some(&key)).is_err(), "a file that was named must be there");
    }
}
