//! What a site says of its own rows in `site.toml`, under `[rows]`: where they are, what their columns and words mean, which rows count.
//!
//! It maps a site's own names, words and units to those that were agreed on. What was agreed on stays: a category of the plan keeps its
//! meaning.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{Cell, Decimal, Delimiter, Dialect, normal, spelling::Spellings};

/// Comparisons of a filter at most.
const MAX_CONDITIONS: usize = 64;

/// What a site says of its rows, as the table stands in the file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RowRules {
    /// Where they are: a file, a folder, a pattern, or `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The file's name of the column that says of whom a row is, where at most so many rows of a person count. It never leaves the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Rows of one person that count at most, 1 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_person: Option<u64>,
    /// What stands between the cells of a text, where it is not to be told from its first rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<Delimiter>,
    /// What stands before the fraction of a number in a text; a point where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<Decimal>,
    /// Whether cells of a text in quotation marks may span lines that look like rows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub multiline: bool,
    /// Which rows count.
    #[serde(skip_serializing_if = "Filter::is_none")]
    pub filter: Filter,
    /// What is done about a row with a missing value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// Further words that stand for a missing value.
    #[serde(rename = "missing_marks", skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// The file's name of a column, by the plan's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, String>,
    /// What words of the file mean, by the plan's name of the column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, BTreeMap<String, Meaning>>,
    /// How numbers of the file become those of the agreed unit, by the plan's name of the column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, Unit>,
}

impl RowRules {
    /// How the site's text files are written.
    pub fn dialect(&self) -> Dialect {
        let RowRules { delimiter, multiline, .. } = *self;
        Dialect { delimiter, decimal: self.decimal.unwrap_or_default(), multiline, by_line: false }
    }

    /// Whether a file need not say them.
    pub fn say_nothing(&self) -> bool {
        *self == RowRules::default()
    }

    /// The same with words as cells are read: where commas are decimal, a number among them has its comma, as the file has it.
    pub(super) fn as_read(&self) -> Cow<'_, RowRules> {
        let decimal = self.dialect().decimal;
        if decimal == Decimal::Point {
            return Cow::Borrowed(self);
        }
        let turned = |word: &str| String::from_utf8_lossy(&decimal.point(word.as_bytes())).into_owned();
        let mut rules = self.clone();
        rules.marks.iter_mut().for_each(|mark| *mark = turned(mark));
        for words in rules.values.values_mut() {
            *words = words.iter().map(|(word, of)| (turned(word), of.clone())).collect();
        }
        for condition in &mut rules.filter.conditions {
            condition.texts.iter_mut().for_each(|text| *text = turned(text));
            condition.spell();
        }
        Cow::Owned(rules)
    }
}

/// What is done about a row with a missing value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// It is an error at that site.
    #[default]
    Refuse,
    /// It is left out where a column of the plan, or one that the site names, has no value.
    LeaveOut,
}

/// What a word means.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Meaning {
    /// A number, in the agreed unit.
    Number(f64),
    /// A word that was agreed on.
    Word(String),
}

/// The agreed number is the file's times `factor`, plus `offset`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Unit {
    /// Neither 0 nor infinite.
    pub factor: f64,
    /// In the agreed unit.
    pub offset: f64,
}

impl Default for Unit {
    /// The file's unit is the agreed one.
    fn default() -> Unit {
        Unit { factor: 1.0, offset: 0.0 }
    }
}

impl Unit {
    /// The agreed number.
    pub(super) fn of(self, own: f64) -> f64 {
        own * self.factor + self.offset
    }
}

/// Comparisons that a row has to pass, all of them. Columns and values are those of the file, before any mapping.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Filter {
    text: String,
    conditions: Vec<Condition>,
}

/// One comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The file's name of the column.
    pub column: String,
    /// As it is written; `in` is one in small letters.
    sign: &'static str,
    numbers: Vec<f64>,
    texts: Vec<String>,
    /// The texts, as cells are compared with them.
    words: Spellings<()>,
}

impl TryFrom<String> for Filter {
    type Error = String;

    fn try_from(text: String) -> Result<Filter, String> {
        Filter::parse(&text).map_err(|why| format!("rows.{why}"))
    }
}

impl From<Filter> for String {
    fn from(filter: Filter) -> String {
        filter.text
    }
}

impl Filter {
    /// Reads `age >= 18 and ward in ('a', 'b')`: comparisons by `=`, `!=`, `<`, `<=`, `>`, `>=` or `in`, joined by `and`. A name with blanks
    /// stands in double quotes, a text in single ones.
    ///
    /// # Errors
    /// A sentence that says which part cannot be read.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let composed = normal(text);
        let mut words = Words { rest: &composed };
        let mut conditions = Vec::new();
        loop {
            conditions.push(words.condition()?);
            match words.next()? {
                None => break,
                Some(Word::Bare(and)) if and.eq_ignore_ascii_case("and") && conditions.len() < MAX_CONDITIONS => {}
                Some(other) => {
                    return Err(format!("filter: `and` or the end belongs before {other}; `or` is not offered"));
                }
            }
        }
        Ok(Filter { text: text.to_owned(), conditions })
    }

    /// Whether every row counts.
    fn is_none(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The comparisons; none where every row counts.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

impl Condition {
    /// Whether a cell with a value passes it; nothing where the value is no finite number and is to be compared with one, or no UTF-8 and
    /// is to be compared with a text.
    pub(super) fn holds(&self, cell: &Cell<'_>) -> Option<bool> {
        if matches!(cell, Cell::Text(text) if std::str::from_utf8(text).is_err()) {
            return None;
        }
        let equal = || cell.among(&self.words).is_some() || cell.number().is_some_and(|x| self.numbers.contains(&x));
        // One of the words in a list of words and numbers is no number, and is found.
        if !self.numbers.is_empty() && !cell.number().is_some_and(f64::is_finite) && !equal() {
            return None;
        }
        let order = |wanted: fn(&f64, &f64) -> bool| {
            cell.number().zip(self.numbers.first()).is_some_and(|(own, number)| wanted(&own, number))
        };
        Some(match self.sign {
            "!=" => !equal(),
            "<" => order(f64::lt),
            "<=" => order(f64::le),
            ">" => order(f64::gt),
            ">=" => order(f64::ge),
            _ => equal(),
        })
    }

    /// Whether it compares numbers.
    pub(super) fn has_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// The texts that it names: whoever compares with one means it, also where it is a usual word for a missing value.
    pub(super) fn texts(&self) -> impl Iterator<Item = &String> {
        self.texts.iter()
    }

    fn spell(&mut self) {
        self.words = Spellings::new(self.texts.iter().map(|text| (text.as_str(), ())));
    }
}

/// The words of a filter, one after the other.
struct Words<'a> {
    rest: &'a str,
}

enum Word<'a> {
    Bare(&'a str),
    Name(&'a str),
    Text(&'a str),
    Sign(&'static str),
}

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Bare(word) | Word::Name(word) | Word::Text(word) | Word::Sign(word) => write!(f, "{word:?}"),
        }
    }
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<Option<Word<'a>>, String> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        if let quote @ ('"' | '\'') = first {
            let Some((word, rest)) = self.rest[1..].split_once(quote) else {
                return Err(format!("filter: a {quote} has no partner"));
            };
            self.rest = rest;
            return Ok(Some(if quote == '"' { Word::Name(word) } else { Word::Text(word) }));
        }
        let signs = ["!=", "<=", ">=", "=", "<", ">", "(", ")", ","];
        if let Some(sign) = signs.into_iter().find(|sign| self.rest.starts_with(sign)) {
            self.rest = &self.rest[sign.len()..];
            return Ok(Some(Word::Sign(sign)));
        }
        let bare = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
        let end = self.rest.find(|c| !bare(c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(format!("filter: {first:?} has no meaning here"));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(Some(Word::Bare(word)))
    }

    fn condition(&mut self) -> Result<Condition, String> {
        let column = match self.next()? {
            Some(Word::Bare(name) | Word::Name(name)) => name.to_owned(),
            Some(other) => return Err(format!("filter: the name of a column belongs in the place of {other}")),
            None => return Err("filter: the name of a column is missing at its end".into()),
        };
        let sign = match self.next()? {
            Some(Word::Sign(sign)) if !["(", ")", ","].contains(&sign) => sign,
            Some(Word::Bare(word)) if word.eq_ignore_ascii_case("in") => "in",
            _ => return Err(format!("filter: one of =, !=, <, <=, >, >=, in belongs after {column:?}")),
        };
        let mut condition =
            Condition { column, sign, numbers: Vec::new(), texts: Vec::new(), words: Spellings::default() };
        if sign == "in" { self.list(&mut condition) } else { self.value(&mut condition) }?;
        if sign.starts_with(['<', '>']) && condition.numbers.is_empty() {
            return Err(format!(
                "filter: <, <=, > and >= compare numbers, and {:?} is compared with a text: write the number without quotes",
                condition.column
            ));
        }
        condition.spell();
        Ok(condition)
    }

    fn list(&mut self, into: &mut Condition) -> Result<(), String> {
        let column = into.column.clone();
        let wrong = || Err(format!("filter: a list such as (1, 2) or ('a', 'b') belongs after {column:?} in"));
        let Some(Word::Sign("(")) = self.next()? else { return wrong() };
        loop {
            self.value(into)?;
            match self.next()? {
                Some(Word::Sign(",")) => {}
                Some(Word::Sign(")")) => return Ok(()),
                _ => return wrong(),
            }
        }
    }

    fn value(&mut self, into: &mut Condition) -> Result<(), String> {
        let number = |word: &str| word.parse::<f64>().ok().filter(|number| number.is_finite());
        match self.next()? {
            Some(Word::Text(text)) => into.texts.push(text.trim().to_owned()),
            Some(Word::Bare(word)) if let Some(number) = number(word) => into.numbers.push(number),
            _ => {
                let column = &into.column;
                return Err(format!("filter: {column:?} is compared with a number, or with a text in single quotes"));
            }
        }
        Ok(())
    }
}

/// The one of `known` that is written most like `word`, if any is alike.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |other: &str| strsim::levenshtein(&word.to_lowercase(), &other.to_lowercase());
    let near = known.into_iter().map(|known| (distance(known), known)).min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, _)| *distance <= 1 + word.chars().count() / 3).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_compares_and_joins_by_and() {
        let filter = Filter::parse("age >= 18 and \"the ward\" in ('a', 'b b') AND sex != 'x' and n=-1e2").unwrap();
        let columns: Vec<&str> = filter.conditions().iter().map(|c| c.column.as_str()).collect();
        assert_eq!(columns, ["age", "the ward", "sex", "n"]);
        let [age, ward, sex, n] = filter.conditions() else { panic!("four") };
        let text = |text: &'static str| Cell::Text(text.as_bytes());
        for (condition, cell, holds) in [
            (age, text("18"), true),
            (age, text(" 18.5 "), true),
            (age, text("17.9"), false),
            (age, Cell::Number(18.0), true),
            (ward, text("b b"), true),
            (ward, text("c"), false),
            (sex, text("y"), true),
            (sex, text("x"), false),
            (n, Cell::Number(-100.0), true),
            (n, text("-100.0"), true),
        ] {
            assert_eq!(condition.holds(&cell), Some(holds), "{condition:?}");
        }
        for (condition, cell) in [
            (age, text("old")),
            (age, text("inf")),
            (age, Cell::Number(f64::INFINITY)),
            (age, Cell::Number(f64::NAN)),
            (age, text("1,5")),
            (n, text("old")),
            (sex, Cell::Text(b"\xff")),
        ] {
            assert_eq!(condition.holds(&cell), None, "{condition:?}");
        }
        let list = Filter::parse("a in (1,2,'none')").unwrap();
        let holds = |cell: Cell<'_>| list.conditions()[0].holds(&cell);
        assert_eq!(holds(Cell::Bool(true)), Some(true));
        assert_eq!([holds(text("none")), holds(text("3")), holds(text("some"))], [Some(true), Some(false), None]);
    }

    #[test]
    fn what_a_filter_does_not_say_is_told() {
        for (text, told) in [
            ("", "name of a column is missing"),
            ("age", "after \"age\""),
            ("age >", "compared with a number"),
            ("age > old", "text in single quotes"),
            ("age > 1 or b = 2", "`or` is not offered"),
            ("age > 1 and", "missing"),
            ("ward in 'a'", "list such as"),
            ("ward in ('a'", "list such as"),
            ("ward = 'a", "no partner"),
            ("age > 1; drop", "no meaning"),
            ("age > nan", "compared with"),
            ("age >= '18'", "write the number without quotes"),
            ("age = 3 and age < 'x'", "write the number without quotes"),
        ] {
            let error = Filter::parse(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn the_nearest_key_is_found() {
        assert_eq!(nearest("colums", ["source", "columns", "values"]), Some("columns"));
        assert_eq!(nearest("sorce", ["source", "columns"]), Some("source"));
        assert_eq!(nearest("banana", ["source", "columns"]), None);
    }
}
