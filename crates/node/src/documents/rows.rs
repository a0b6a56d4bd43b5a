//! Where a site's rows are, and whether `[rows]` of `site.toml` ([`RowRules`]) can hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Arc,
};

use serde::Serialize;
use toml::{Table, Value};
use veilsum_cluster::privacy::MOST_ROWS_OF_A_PERSON;

use crate::table::spelling::{normal, yes_or_no};
use crate::{
    answerer::Answerer,
    error::Failure,
    table::{self, Dialect, Halt, Meaning, PersonKey, RowRules, Tally},
};
use veilsum_federation::agreed::Federation;

/// Bytes of a source's name at most.
const MAX_SOURCE: usize = 4096;

/// A site's rows, ready to answer.
pub struct Loaded {
    /// Whoever answers: the rows, or a program that has them elsewhere.
    pub rows: Arc<dyn Answerer>,
    /// What was read; nothing of rows that are elsewhere.
    pub tally: Option<Tally>,
}

impl Loaded {
    /// Rows that the policy's `max_rows` is about: those that count, and all that were read where the plan asks how many lack a value. None under
    /// noise, where their number decides nothing ([NOI-8]).
    pub fn rows_asked(&self, federation: &Federation) -> u64 {
        let recipe = &federation.work.recipe;
        if recipe.noise.is_some() {
            return 0;
        }
        let asks = recipe.algorithm.traits().describes.is_some();
        let read = self.tally.as_ref().filter(|_| asks).map_or(0, |tally| tally.rows);
        self.rows.rows().max(read)
    }
}

/// Rows that a program has in place of a file, and hands over for a plan.
#[derive(Clone)]
pub struct Handed(pub Arc<HandOver>);

/// What such rows are called.
pub const HANDED: &str = "the rows that were handed over";

/// What the rows are under a plan.
pub type HandOver = dyn Fn(&Federation) -> Result<Loaded, Failure> + Send + Sync;

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HANDED)
    }
}

/// Where a site's rows are, and what the site says of them.
#[derive(Clone, Debug, Default)]
pub struct RowsFrom {
    /// A file, a folder, a pattern, or `-` for standard input.
    pub data: PathBuf,
    /// What `site.toml` says of them.
    pub rules: Arc<RowRules>,
    /// Where rows that cannot be used are listed (mode 0600).
    pub list: Option<PathBuf>,
    /// Where the site keeps the secret by which rows of a person are put in order (mode 0600).
    pub persons: Option<PathBuf>,
    /// The program that hands them over; `data` is what they are called then.
    pub handed: Option<Handed>,
    /// Stops whoever reads them.
    pub halt: Halt,
}

impl RowsFrom {
    /// A file of which nothing more is said.
    pub fn file(data: impl Into<PathBuf>) -> RowsFrom {
        RowsFrom { data: data.into(), ..RowsFrom::default() }
    }

    /// Where they are, for people.
    pub fn place(&self) -> String {
        self.data.display().to_string()
    }

    /// The secret by which rows of a person are put in order, where they are cut to so many. It is made where there is none.
    ///
    /// # Errors
    /// A [`Failure`] where there is no place for it, or it cannot be read.
    pub fn person_key(&self) -> Result<Option<PersonKey>, Failure> {
        if self.rules.person.is_none() {
            return Ok(None);
        }
        let Some(path) = &self.persons else {
            let what = "site.toml cuts rows to so many of a person (rows.person), and there is no key beside which the secret for it is kept";
            return Err(Failure::usage(what, "name the site's key: --key FILE"));
        };
        Ok(Some(PersonKey::of(path)?))
    }
}

/// What a plan does with the columns of a site's file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reading {
    /// Those that it reads, by the plan's names: numbers, then categories.
    pub used: Vec<String>,
    /// Those of the file that nobody reads.
    pub ignored: Vec<String>,
}

/// What a plan does with the columns of a site's rows.
///
/// # Errors
/// A [`Failure`] where the header cannot be read.
pub fn reading_of(federation: &Federation, from: &RowsFrom) -> Result<Reading, Failure> {
    let used: Vec<String> = federation.work.headers().map(str::to_owned).collect();
    let dialect = Dialect { by_line: federation.work.recipe.noise.is_some(), ..from.rules.dialect() };
    let asked = federation.work.headers().map(|name| from.rules.columns.get(name).map_or(name, String::as_str));
    let own = table::read_header(&from.data, dialect, asked)?;
    let header = table::known_as(&from.place(), &own, &from.rules)?;
    let names = own.iter().zip(&header).map(|(own, name)| if name.is_empty() { own } else { name });
    let ignored = names.filter(|name| !used.contains(name)).cloned().collect();
    Ok(Reading { used, ignored })
}

/// The keys of `[rows]` that an option may say.
const SAID: &str =
    "delimiter, decimal, multiline, filter, missing, missing_marks, columns, values, units, person, rows_per_person";
/// The one of them that is a list.
const LIST: &str = "missing_marks";

/// `[rows]` with what options say over it, each as `KEY=VALUE`: a value as `site.toml` has it, or a word without its quotation marks.
///
/// # Errors
/// A [`Failure`] that names the key at fault.
pub fn rules_said(rules: &RowRules, said: &[String]) -> Result<RowRules, Failure> {
    let wrong = |why: String| {
        let next = format!("the keys are {SAID}: as under [rows] in site.toml, such as --rows missing=leave-out");
        Failure::usage(format!("--rows {why}"), next)
    };
    let mut all = Table::try_from(rules).map_err(|why| wrong(why.to_string()))?;
    let mut once = BTreeSet::new();
    for one in said {
        // A word may have the sign in it, such as <=5.
        let split = if one.starts_with("values.") { one.rsplit_once('=') } else { one.split_once('=') };
        let Some((key, value)) = split.map(|(key, value)| (key.trim(), value.trim())) else {
            return Err(wrong(format!("{one}: a value belongs behind it, KEY=VALUE")));
        };
        if !SAID.split(", ").any(|known| key.split('.').next() == Some(known)) {
            return Err(wrong(format!("{key}: an option does not say this")));
        }
        if key != LIST && !once.insert(key) {
            return Err(wrong(format!("{key}: it is said twice; comparisons of one filter are joined by `and`")));
        }
        let of = |value: &str| {
            let under = |key: &str| toml::from_str::<Table>(&format!("{key} = {value}")).ok();
            under(key).or_else(|| under(&quoted(key)))
        };
        let bare = || of(&Value::String(value.to_owned()).to_string());
        let found = match key {
            // One word is a list of one.
            LIST if !value.starts_with('[') => of(&format!("[{}]", Value::String(value.to_owned()))),
            // A name may be a number.
            _ if (key == "person" || key.starts_with("columns.")) && !value.starts_with(['"', '\'']) => bare(),
            _ => of(value).or_else(bare),
        };
        merge(&mut all, found.ok_or_else(|| wrong(format!("{key}: this is no name of a key")))?);
    }
    let rules = all.try_into().map_err(|why: toml::de::Error| wrong(why.message().to_owned()))?;
    checked(rules).map_err(|why| wrong(why.trim_start_matches("rows.").to_owned()))
}

/// A key whose parts are names and words that need quotation marks, such as `values.bmi.<5`.
fn quoted(key: &str) -> String {
    let Some((first, rest)) = key.split_once('.') else { return key.to_owned() };
    let parts = match first {
        "values" => rest.split_once('.'),
        "units" => rest.rsplit_once('.'),
        _ => None,
    };
    let parts = parts.map_or(vec![rest], |(column, word)| vec![column, word]);
    parts.into_iter().fold(first.to_owned(), |key, part| format!("{key}.{}", Value::from(part)))
}

/// Puts `more` over `all`; tables are put together, and lists.
fn merge(all: &mut Table, more: Table) {
    for (key, value) in more {
        match (all.get_mut(&key), value) {
            (Some(Value::Table(of)), Value::Table(more)) => merge(of, more),
            (Some(Value::Array(of)), Value::Array(more)) => of.extend(more),
            (_, value) => drop(all.insert(key, value)),
        }
    }
}

/// Whether what a site says of its rows can hold, with what it leaves out.
///
/// # Errors
/// A sentence that names the key at fault.
pub(super) fn checked(rules: RowRules) -> Result<RowRules, String> {
    let RowRules { source, person, rows_per_person, .. } = &rules;
    if source.as_ref().is_some_and(|source| source.is_empty() || source.len() > MAX_SOURCE) {
        return Err("rows.source is no name of a file, a folder or a pattern".into());
    }
    if person.as_ref().is_some_and(|column| column.is_empty() || column.len() > MAX_SOURCE) {
        return Err("rows.person is no name of a column".into());
    }
    if rows_per_person.is_some_and(|rows| person.is_none() || !(1..=MOST_ROWS_OF_A_PERSON).contains(&rows)) {
        return Err(format!(
            "rows.rows_per_person is 1 to {MOST_ROWS_OF_A_PERSON}, beside person, the name of a column"
        ));
    }
    for (i, (column, own)) in rules.columns.iter().enumerate() {
        if let Some((other, _)) = rules.columns.iter().take(i).find(|(_, of)| *of == own) {
            return Err(format!("rows.columns says that {own:?} is both {other:?} and {column:?}"));
        }
    }
    for (column, unit) in &rules.units {
        if !(unit.factor.is_finite() && unit.factor != 0.0 && unit.offset.is_finite()) {
            return Err(format!("rows.units: the factor of {column:?} is 0, or a number of it has no end"));
        }
    }
    if let Some(mark) = rules.marks.iter().find(|mark| mark.is_empty() || mark.trim() != *mark) {
        return Err(format!("rows.missing_marks: {mark:?} is empty or has blanks around it"));
    }
    if let Some(mark) = rules.marks.iter().find(|mark| yes_or_no(mark).is_some()) {
        return Err(format!(
            "rows.missing_marks: {mark:?} is a yes or no wherever it stands, and no sign of nothing: say it in `filter` if rows with this \
             word are not to count"
        ));
    }
    let wrong = |(_, words): &(&String, &BTreeMap<String, Meaning>)| {
        words.iter().any(|(word, meaning)| {
            word.is_empty() || word.trim() != word || matches!(meaning, Meaning::Number(x) if !x.is_finite())
        })
    };
    if let Some((column, _)) = rules.values.iter().find(wrong) {
        return Err(format!(
            "rows.values: a word of {column:?} is empty, has blanks around it, or stands for no number"
        ));
    }
    let rows_per_person = rules.person.is_some().then(|| rules.rows_per_person.unwrap_or(1));
    // Names are looked for in composed letters, as those of files are.
    fn composed<T>(of: BTreeMap<String, T>) -> BTreeMap<String, T> {
        of.into_iter().map(|(name, of)| (normal(&name).into_owned(), of)).collect()
    }
    let (columns, values, units) = (composed(rules.columns), composed(rules.values), composed(rules.units));
    Ok(RowRules { rows_per_person, columns, values, units, ..rules })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Decimal, Delimiter};

    #[test]
    fn an_option_says_what_site_toml_would() {
        let said = |all: &[&str]| {
            rules_said(&RowRules::default(), &all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
        };
        let rules = said(&[
            "delimiter=;",
            "decimal = ,",
            "multiline=true",
            "filter=age >= 18 and ward = 'a'",
            "missing=leave-out",
            "missing_marks=-99",
            "missing_marks=k.A.",
            "missing_marks=[\"x\", \"y\"]",
            "columns.age=Alter in Jahren",
            "values.sex.f=1",
            "values.sex.m = 2",
            "values.lab value.<=5 = 2.5",
            "values.lab value.n.a. = 0",
            "units.lab value.factor=2",
            "columns.a b=c",
            "columns.before=2019",
            "person=4711",
        ]);
        let rules = rules.unwrap();
        assert_eq!(
            (rules.delimiter, rules.decimal, rules.multiline),
            (Some(Delimiter::Semicolon), Some(Decimal::Comma), true)
        );
        assert_eq!((rules.filter.conditions().len(), rules.marks.join(" ")), (2, "-99 k.A. x y".to_owned()));
        assert_eq!((rules.columns["age"].as_str(), rules.values["sex"].len()), ("Alter in Jahren", 2));
        let lab = &rules.values["lab value"];
        assert_eq!((&lab["<=5"], &lab["n.a."]), (&Meaning::Number(2.5), &Meaning::Number(0.0)));
        assert_eq!((rules.units["lab value"].factor, &*rules.columns["a b"]), (2.0, "c"));
        assert_eq!((&*rules.columns["before"], rules.person.as_deref()), ("2019", Some("4711")));
        for (delimiter, of) in [
            ("\"\\t\"", Delimiter::Tab),
            ("\\t", Delimiter::Tab),
            ("tab", Delimiter::Tab),
            ("|", Delimiter::Pipe),
            ("blanks", Delimiter::Blanks),
        ] {
            assert_eq!(said(&[&format!("delimiter={delimiter}")]).unwrap().delimiter, Some(of), "{delimiter}");
        }
        // What was said before stays where nothing is said over it.
        let over = rules_said(&rules, &["decimal=.".into()]).unwrap();
        assert_eq!(RowRules { decimal: Some(Decimal::Point), ..rules }, over);
        for (one, why) in [
            ("delimiter", "KEY=VALUE"),
            ("rows_per_person=2", "beside person"),
            ("source=x.csv", "an option does not say this"),
            ("delimiter=:", "unknown variant"),
            ("missing_marks= ", "missing_marks"),
            ("colums.a=b", "an option does not say this"),
            ("filter=a > 1 or b > 1", "`or` is not offered"),
            ("columns=c", "invalid type"),
            ("missing_marks=False", "is a yes or no wherever it stands"),
        ] {
            let failure = said(&[one]).unwrap_err();
            assert!(failure.message.contains(why) && failure.advice.contains("missing=leave-out"), "{one}: {failure}");
        }
    }
}
