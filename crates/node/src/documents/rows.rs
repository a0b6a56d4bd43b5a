//! `[rows]` of `site.toml`: where a site's rows are, and what their columns, words and units mean ([`RowRules`]).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use veilsum_cluster::privacy::MOST_ROWS_OF_A_PERSON;

use crate::{
    error::{Code, Failure},
    foreign::{ANSWER_SECONDS, Command},
    release::Precision,
    schema::Missing,
    table::{Filter, Meaning, PersonKey, Persons, RowRules, Unit},
};

/// Bytes that rows may take in memory where a site does not say it: some five million rows of sixteen columns.
pub const DEFAULT_MEMORY: u64 = 2 << 30;
/// The least that streaming works with.
const LEAST_MEMORY: u64 = 64 << 20;
/// Seconds that an answerer may be given at most: a day.
const MAX_ANSWER_SECONDS: u64 = 86_400;
/// Bytes of a source's name at most.
const MAX_SOURCE: usize = 4096;

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
    /// The process that answers in their place; `data` is empty then.
    pub answerer: Option<Command>,
}

impl RowsFrom {
    /// Where they are, for people.
    pub fn place(&self) -> String {
        let program = |of: &Command| of.words.first().cloned().unwrap_or_default();
        self.answerer
            .as_ref()
            .map_or_else(|| self.data.display().to_string(), |of| format!("the answerer {:?}", program(of)))
    }

    /// The secret by which rows of a person are put in order, where they are cut to so many. It is made where there is none.
    ///
    /// # Errors
    /// A [`Failure`] where there is no place for it, or it cannot be read.
    pub fn person_key(&self) -> Result<Option<PersonKey>, Failure> {
        if self.rules.persons.is_none() {
            return Ok(None);
        }
        let Some(path) = &self.persons else {
            let what = "site.toml cuts rows to so many of a person (rows.person), and there is no key beside which the secret for it is kept";
            return Err(Failure::new(Code::Usage, what, "name the site's key: --key FILE"));
        };
        Ok(Some(PersonKey::of(path)?))
    }

    /// Bytes that they may take in memory.
    pub fn memory(&self) -> u64 {
        self.rules.memory.unwrap_or(DEFAULT_MEMORY)
    }
}

impl From<&Path> for RowsFrom {
    fn from(data: &Path) -> RowsFrom {
        RowsFrom { data: data.to_owned(), ..RowsFrom::default() }
    }
}

impl From<&PathBuf> for RowsFrom {
    fn from(data: &PathBuf) -> RowsFrom {
        data.as_path().into()
    }
}

impl From<&RowsFrom> for RowsFrom {
    fn from(rows: &RowsFrom) -> RowsFrom {
        rows.clone()
    }
}

/// The table as it stands in the file. Its keys are those of the documentation.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RowsPart {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answerer: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answerer_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<PrecisionPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_per_person: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<MissingPart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_marks: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    columns: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    values: BTreeMap<String, BTreeMap<String, MeaningPart>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    units: BTreeMap<String, UnitPart>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MissingPart {
    Refuse,
    LeaveOut,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PrecisionPart {
    Double,
    Single,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum MeaningPart {
    Number(f64),
    Word(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnitPart {
    #[serde(default = "one")]
    factor: f64,
    #[serde(default)]
    offset: f64,
}

fn one() -> f64 {
    1.0
}

impl RowsPart {
    /// # Errors
    /// A sentence that names the key at fault.
    pub(super) fn rules(self) -> Result<RowRules, String> {
        let RowsPart {
            source,
            answerer,
            answerer_seconds,
            memory,
            precision,
            person,
            rows_per_person,
            filter,
            missing,
            missing_marks,
            columns,
            values,
            units,
        } = self;
        if source.as_ref().is_some_and(|source| source.is_empty() || source.len() > MAX_SOURCE) {
            return Err("rows.source is no name of a file, a folder or a pattern".into());
        }
        if answerer_seconds.is_some_and(|seconds| answerer.is_empty() || !(1..=MAX_ANSWER_SECONDS).contains(&seconds)) {
            return Err(format!("rows.answerer_seconds is 1 to {MAX_ANSWER_SECONDS}, beside an answerer"));
        }
        if answerer.first().is_some_and(String::is_empty) {
            return Err("rows.answerer begins with the name of a program".into());
        }
        if precision.is_some() && !answerer.is_empty() {
            let why = "rows.precision says how this program holds rows in its memory, and an answerer holds its own: leave rows.precision out";
            return Err(why.into());
        }
        if person.is_some() && !answerer.is_empty() {
            let why = "rows.person cuts rows that this program reads, and an answerer reads its own, so that this site cannot answer plans that hide \
                       persons: leave rows.person out, or name files as source";
            return Err(why.into());
        }
        if person.as_ref().is_some_and(|column| column.is_empty() || column.len() > MAX_SOURCE) {
            return Err("rows.person is no name of a column".into());
        }
        if rows_per_person.is_some_and(|rows| person.is_none() || !(1..=MOST_ROWS_OF_A_PERSON).contains(&rows)) {
            return Err(format!(
                "rows.rows_per_person is 1 to {MOST_ROWS_OF_A_PERSON}, beside person, the name of a column"
            ));
        }
        let own = source.is_some() || memory.is_some() || filter.is_some() || missing.is_some();
        let own = own || !(missing_marks.is_empty() && columns.is_empty() && values.is_empty() && units.is_empty());
        if own && !answerer.is_empty() {
            let why = "rows.answerer stands alone under [rows]: which rows and columns it reads is said to the answerer, or in its view";
            return Err(why.into());
        }
        for (i, (column, own)) in columns.iter().enumerate() {
            if let Some((other, _)) = columns.iter().take(i).find(|(_, of)| *of == own) {
                return Err(format!("rows.columns says that {own:?} is both {other:?} and {column:?}"));
            }
        }
        for (column, unit) in &units {
            if !(unit.factor.is_finite() && unit.factor != 0.0 && unit.offset.is_finite()) {
                return Err(format!("rows.units: the factor of {column:?} is 0, or a number of it has no end"));
            }
        }
        if let Some(mark) = missing_marks.iter().find(|mark| mark.is_empty() || mark.trim() != *mark) {
            return Err(format!("rows.missing_marks: {mark:?} is empty or has blanks around it"));
        }
        let wrong = |(_, words): &(&String, &BTreeMap<String, MeaningPart>)| {
            words.iter().any(|(word, meaning)| {
                word.is_empty() || word.trim() != word || matches!(meaning, MeaningPart::Number(x) if !x.is_finite())
            })
        };
        if let Some((column, _)) = values.iter().find(wrong) {
            return Err(format!(
                "rows.values: a word of {column:?} is empty, has blanks around it, or stands for no number"
            ));
        }
        let meaning = |part| match part {
            MeaningPart::Number(number) => Meaning::Number(number),
            MeaningPart::Word(word) => Meaning::Word(word),
        };
        let words = |words: BTreeMap<String, MeaningPart>| words.into_iter().map(|(w, of)| (w, meaning(of))).collect();
        let seconds = answerer_seconds.unwrap_or(ANSWER_SECONDS);
        Ok(RowRules {
            answerer: (!answerer.is_empty()).then(|| Command { words: answerer, limit: Duration::from_secs(seconds) }),
            source,
            columns,
            values: values.into_iter().map(|(column, of)| (column, words(of))).collect(),
            units: units.into_iter().map(|(c, UnitPart { factor, offset })| (c, Unit { factor, offset })).collect(),
            missing: missing.map(|missing| match missing {
                MissingPart::Refuse => Missing::Refuse,
                MissingPart::LeaveOut => Missing::LeaveOut,
            }),
            marks: missing_marks,
            filter: filter
                .map_or(Ok(Filter::default()), |text| Filter::parse(&text))
                .map_err(|why| format!("rows.{why}"))?,
            memory: memory.map(|text| bytes_of(&text)).transpose()?,
            precision: match precision {
                None | Some(PrecisionPart::Double) => Precision::Double,
                Some(PrecisionPart::Single) => Precision::Single,
            },
            persons: person.map(|column| Persons { column, rows: rows_per_person.unwrap_or(1) }),
        })
    }

    /// The table that says this.
    pub(super) fn of(rules: &RowRules) -> RowsPart {
        let part = |meaning: &Meaning| match meaning {
            Meaning::Number(number) => MeaningPart::Number(*number),
            Meaning::Word(word) => MeaningPart::Word(word.clone()),
        };
        let words = |of: &BTreeMap<String, Meaning>| of.iter().map(|(word, of)| (word.clone(), part(of))).collect();
        RowsPart {
            source: rules.source.clone(),
            answerer: rules.answerer.as_ref().map_or(Vec::new(), |of| of.words.clone()),
            answerer_seconds: rules.answerer.as_ref().map(|of| of.limit.as_secs()).filter(|of| *of != ANSWER_SECONDS),
            memory: rules.memory.map(shown),
            precision: (rules.precision == Precision::Single).then_some(PrecisionPart::Single),
            person: rules.persons.as_ref().map(|of| of.column.clone()),
            rows_per_person: rules.persons.as_ref().map(|of| of.rows),
            filter: Some(rules.filter.to_string()).filter(|text| !text.is_empty()),
            missing: rules.missing.map(|missing| match missing {
                Missing::Refuse => MissingPart::Refuse,
                Missing::LeaveOut => MissingPart::LeaveOut,
            }),
            missing_marks: rules.marks.clone(),
            columns: rules.columns.clone(),
            values: rules.values.iter().map(|(column, of)| (column.clone(), words(of))).collect(),
            units: rules
                .units
                .iter()
                .map(|(column, Unit { factor, offset })| {
                    (column.clone(), UnitPart { factor: *factor, offset: *offset })
                })
                .collect(),
        }
    }
}

const SIZES: [(&str, u64); 6] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];

fn bytes_of(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("rows.memory is a size such as \"512 MiB\" or \"4 GiB\", and at least {}", shown(LEAST_MEMORY));
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let (_, unit) = SIZES.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit)).ok_or_else(wrong)?;
    if bytes < LEAST_MEMORY { Err(wrong()) } else { Ok(bytes) }
}

/// A size in words.
pub(crate) fn shown(bytes: u64) -> String {
    let fits = SIZES.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    let (name, unit) = fits.unwrap_or(&("bytes", 1));
    format!("{} {name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes) in [("512 MiB", 512 << 20), ("4GiB", 4 << 30), ("100 MB", 100_000_000)] {
            assert_eq!(bytes_of(text), Ok(bytes));
            assert_eq!(bytes_of(&shown(bytes)), Ok(bytes));
        }
        for text in
            ["", "512", "MiB", "-1 GiB", "1 MiB", "9 PB", "99999999999999999999 GiB", "18446744073709551615 GiB"]
        {
            assert!(bytes_of(text).is_err(), "{text}");
        }
    }
}
