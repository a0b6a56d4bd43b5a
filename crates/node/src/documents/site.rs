//! `site.toml`: what a site demands for itself, in its operator's words (spec section 11). Every key may be left out; what is
//! left out is strict.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use veilsum_door::{Ask, Exact, HONEST, MAX_NAME, Policy, Unit};
use veilsum_proto::{plan::Sites, policy::Floor, suite};

use super::{
    Pinned,
    columns::columns_beside,
    file::{parse_failure, read_text},
    methods::known,
    rows::{RowsFrom, checked},
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
/// The ending of the file with the secret by which rows of a person are put in order.
const PERSONS: &str = "persons";
/// The data set's label where the operator gives none. Whatever it is, everything under one identity counts together.
const DATA: &str = "rows";

/// A site's policy and the name of its data set. It is shown by the keys of a file that says the same.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(into = "File")]
pub struct SitePolicy {
    /// As the core reads it.
    pub policy: Policy,
    /// Under which name the ledger counts these rows.
    pub data: String,
    /// The state folder, where it is not the usual one: several federations over the same rows share one account.
    pub state: Option<PathBuf>,
    /// Where its rows are, and what it says of them.
    pub rows: Arc<RowRules>,
}

impl Default for SitePolicy {
    fn default() -> Self {
        SitePolicy { policy: Policy::default(), data: DATA.into(), state: None, rows: Arc::default() }
    }
}

impl From<Policy> for SitePolicy {
    fn from(policy: Policy) -> Self {
        SitePolicy { policy, ..SitePolicy::default() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    #[serde(skip_serializing_if = "Option::is_none")]
    rho: Option<f64>,
    exact: Exact,
    sites: Sites,
    ask: Ask,
    max_rows: u64,
    min_cohort: u16,
    colluders: u16,
    max_rounds: u32,
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    methods: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<String>>,
    data: String,
    #[serde(skip_serializing)]
    state: Option<PathBuf>,
    #[serde(skip_serializing_if = "RowRules::say_nothing")]
    rows: RowRules,
}

impl Default for File {
    fn default() -> File {
        SitePolicy::default().into()
    }
}

impl From<SitePolicy> for File {
    fn from(SitePolicy { policy, data, state, rows }: SitePolicy) -> File {
        File {
            rho: policy.nano_rho.map(|rho| rho as f64 / HONEST as f64 / 1e9),
            exact: policy.exact,
            sites: policy.sites,
            ask: policy.ask,
            max_rows: policy.max_rows,
            min_cohort: policy.floor.min_cohort,
            colluders: policy.floor.colluders,
            max_rounds: policy.floor.max_rounds,
            methods: policy.methods,
            columns: policy.columns,
            data,
            state,
            rows: Arc::unwrap_or_clone(rows),
        }
    }
}

/// The largest cap of an account: beyond, noise hides nothing.
const MOST_RHO: f64 = 1_000.0;

const KEYS: &str = "the keys are rho, exact, sites, ask, max_rows, min_cohort, colluders, max_rounds, methods, columns, data, state and \
    [rows] source, person, rows_per_person, delimiter, decimal, multiline, filter, missing, missing_marks, columns, values, units; `veilsum check --json` shows them";

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
/// As [`load_policy`], and where there was a `site.toml` when this party took part last ([`keep_policy`]) and there is none: a file
/// that is lost makes no site less strict.
pub fn policy_of(given: Option<&Path>, key: Option<&Path>) -> Result<(SitePolicy, Option<PathBuf>), Failure> {
    let beside = || key.map(|key| key.with_file_name(FILE)).filter(|path| std::fs::symlink_metadata(path).is_ok());
    if let Some(path) = given.map(Path::to_owned).or_else(beside) {
        return Ok((load_policy(&path)?, Some(path)));
    }
    if key.map(Pinned::load).transpose()?.is_some_and(|pinned| pinned.policy.is_some()) {
        let what = format!("{FILE}, under which this party took part before, is gone");
        return Err(Failure::new(Code::Policy, what, "put it back, or write an empty one if the default is meant"));
    }
    Ok((SitePolicy::default(), None))
}

/// Before this party takes part under the policy in `file`: its digest is kept beside its key, if it stands there, so that its loss is
/// noticed ([`policy_of`]).
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub fn keep_policy(file: Option<&Path>, key: &Path) -> Result<(), Failure> {
    let Some(file) = file.filter(|file| **file == key.with_file_name(FILE)) else { return Ok(()) };
    let digest = suite::hash("policy", &[read_text(file, MAX_FILE)?.as_bytes()]);
    Pinned::change(key, |pinned| pinned.policy = Some(digest))
}

/// A cap in 10^-9 of rho, rounded down, so that it is never more than was said.
fn nano_rho_of(rho: f64) -> Result<u64, String> {
    let is_one = (0.0..=MOST_RHO).contains(&rho);
    is_one.then_some((rho * 1e9) as u64).ok_or_else(|| format!("rho, the cap of the account, is 0 to {MOST_RHO}"))
}

/// What an operator typed, in 10^-9 of rho.
///
/// # Errors
/// A sentence where it is none.
pub fn whole_rho(typed: &str) -> Result<u64, String> {
    nano_rho_of(typed.parse().map_err(|_| "this is no number")?)
}

impl File {
    fn policy(self) -> Result<SitePolicy, String> {
        let File { exact, sites, ask, max_rows, methods, columns, data, state, .. } = self;
        if data.is_empty() || data.len() > MAX_NAME || data.chars().any(char::is_control) {
            return Err(format!("data is not a name of 1 to {MAX_NAME} bytes"));
        }
        let nano_rho = self.rho.map(nano_rho_of).transpose()?.map(|rho| rho * HONEST as u64);
        let floor = Floor { min_cohort: self.min_cohort, colluders: self.colluders, max_rounds: self.max_rounds };
        let rows = Arc::new(checked(self.rows)?);
        let unit = rows.rows_per_person.map_or(Unit::Row, Unit::Person);
        if state.as_ref().is_some_and(|state| state.as_os_str().is_empty()) {
            return Err("state is no path".into());
        }
        let policy = Policy { floor, methods, columns, nano_rho, exact, sites, ask, max_rows, unit };
        Ok(SitePolicy { policy, data, state, rows })
    }
}

impl SitePolicy {
    /// Where this site's rows are: `data` where it is given, else as `[rows]` of `file` says, relative to that file. `beside` is a document of
    /// the site's (its key), beside which rows that cannot be used are listed, and the federation's columns say what marks a missing value.
    ///
    /// # Errors
    /// A [`Failure`] where neither says it, or the columns cannot be read.
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
        let mut rules = self.rows.clone();
        if let Some(columns) = beside.map(columns_beside).transpose()?.flatten() {
            Arc::make_mut(&mut rules).marks.extend(columns.marks);
        }
        let [list, persons] = [UNUSABLE, PERSONS].map(|ending| beside.map(|of| of.with_added_extension(ending)));
        let Some(data) = data.map(Path::to_owned).or_else(stated) else {
            let what = "nobody says where this site's rows are";
            let next = "say --data FILE, or name them in site.toml: source = \"FILE\" under [rows]";
            return Err(Failure::usage(what, next));
        };
        Ok(RowsFrom { data, rules, list, persons, ..RowsFrom::default() })
    }

    /// Whether this site's rows are no more than it holds at most: its own number, which no plan chooses.
    ///
    /// # Errors
    /// A [`Failure`] for its operator alone.
    pub fn has_room(&self, rows: u64) -> Result<(), Failure> {
        let most = self.policy.max_rows;
        if most == 0 || rows <= most {
            return Ok(());
        }
        let what = format!("this site has more rows than its policy says that it holds at most, {most} (max_rows)");
        let next = "check that the file holds the rows of this federation and no others; if it does, set max_rows in site.toml far above them, and \
             ask for a plan with as much room";
        Err(Failure::input(what, next))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(policy(&toml::to_string(&strict).unwrap()).unwrap(), strict);
        let own = policy(
            "rho = 0.25\nexact = \"never\"\nmethods = [\"fcm\"]\ncolumns = [\"a b\"]\ndata = \"ward 7\"\nsites = \"any\"\nask = \"always\"\n",
        )
        .unwrap();
        assert_eq!(
            (own.policy.nano_rho, own.policy.exact, own.data.as_str()),
            (Some(500_000_000), Exact::Never, "ward 7")
        );
        assert_eq!((own.policy.sites, own.policy.ask), (Sites::Any, Ask::Always));
        assert_eq!(policy(&toml::to_string(&own).unwrap()).unwrap(), own);
        assert_eq!(json!(own)["exact"], "never");
    }

    #[test]
    fn what_a_site_says_of_its_rows_is_read_and_shown() {
        let text = "[rows]\nsource = \"lake/*.parquet\"\nfilter = \"age >= 18 and 'x' != 'y'\"\n";
        assert!(policy(text).unwrap_err().message.contains("rows.filter"));
        let text = "[rows]\nsource = \"lake/*.parquet\"\nperson = \"Fall\"\nfilter = \"age >= 18\"\nmissing = \"leave-out\"\n\
            missing_marks = [\"-99\"]\ncolumns = { age = \"Alter in Jahren\" }\n\
            [rows.values]\neducation = { primary = 1, secondary = \"high\" }\n[rows.units]\nweight = { factor = 0.45359237 }\n";
        let own = policy(text).unwrap();
        assert_eq!(policy(&toml::to_string(&own).unwrap()).unwrap(), own);
        assert_eq!((own.rows.rows_per_person, own.policy.unit), (Some(1), Unit::Person(1)));
        assert_eq!(own.rows.columns["age"], "Alter in Jahren");
        assert_eq!(json!(own)["rows"]["units"]["weight"]["factor"], 0.453_592_37);
        let from = own.rows_from(None, Some(Path::new("a/site.toml")), Some(Path::new("a/b.key"))).unwrap();
        assert_eq!((from.data, from.list), ("a/lake/*.parquet".into(), Some("a/b.key.unusable-rows.csv".into())));
        assert_eq!(own.rows_from(Some(Path::new("x.csv")), None, None).unwrap().data, Path::new("x.csv"));
        assert!(policy("").unwrap().rows_from(None, None, None).unwrap_err().advice.contains("--data"));
    }

    #[test]
    fn what_a_file_may_not_say() {
        for (text, why) in [
            ("data = \"\"", "data is not a name"),
            ("data = \"a\\nb\"", "data is not a name"),
            ("max_round = 3", "line 1: unknown field `max_round`"),
            ("max_round = 3", "do you mean \"max_rounds\"?"),
            ("[rows]\nanswerer = [\"x\"]", "unknown field `answerer`"),
            ("max_rounds = -1", "line 1"),
            ("exact = \"always\"", "line 1: unknown variant"),
            ("rho = -1.0", "rho, the cap"),
            ("rho = nan", "rho, the cap"),
            ("rho = 1e6", "rho, the cap"),
            ("min_rows = 10", "unknown field `min_rows`"),
            ("[release]\nrule = \"off\"", "unknown field `release`"),
            ("[rows]\ncolums = {}", "do you mean \"columns\"?"),
            ("[rows]\nsource = \"\"", "rows.source"),
            ("[rows]\nperson = \"\"", "rows.person"),
            ("[rows]\nrows_per_person = 2", "beside person"),
            ("[rows]\nperson = \"id\"\nrows_per_person = 0", "1 to 1000"),
            ("[rows]\nperson = \"id\"\nrows_per_person = 1001", "1 to 1000"),
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
        assert!(policy("max_round = 3").unwrap_err().advice.contains("max_rounds"));
    }

    #[test]
    fn the_file_beside_the_key_counts() {
        let folder = Folder::new("beside");
        let key = folder.0.join("a.key");
        assert_eq!(policy_of(None, Some(&key)).unwrap(), (SitePolicy::default(), None));
        let beside = folder.0.join(FILE);
        std::fs::write(&beside, "max_rounds = 7").unwrap();
        let (found, path) = policy_of(None, Some(&key)).unwrap();
        assert_eq!((found.policy.floor.max_rounds, path), (7, Some(beside)));
        let other = folder.0.join("other.toml");
        assert!(policy_of(Some(&other), Some(&key)).is_err(), "a file that was named must be there");
        let beside = folder.0.join(FILE);
        // Nobody has taken part under it.
        std::fs::remove_file(&beside).unwrap();
        assert!(policy_of(None, Some(&key)).is_ok());
        std::fs::write(&beside, "max_rounds = 7").unwrap();
        keep_policy(Some(&other), &key).unwrap();
        keep_policy(Some(&beside), &key).unwrap();
        std::fs::write(&beside, "max_rounds = 8").unwrap();
        keep_policy(Some(&beside), &key).unwrap();
        assert_eq!(policy_of(None, Some(&key)).unwrap().0.policy.floor.max_rounds, 8);
        std::fs::remove_file(&beside).unwrap();
        let gone = policy_of(None, Some(&key)).unwrap_err();
        assert!(gone.code == Code::Policy && gone.advice.contains("write an empty one"), "{gone}");
        std::fs::write(&beside, "").unwrap();
        assert_eq!(policy_of(None, Some(&key)).unwrap().0, SitePolicy::default());
    }
}
