//! What is wanted of a table: which columns, under which names, and how their cells are read.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use super::{
    Cell, Decimal, Dialect, Fault, Halt, MAX_COLUMNS, Meaning, Missing, PersonKey, Place, Result, RowRules, TableError,
    Unit, cell::alike, nearest, normal, person::Cut, rules::Condition, spelling::Spellings,
};
use crate::plan::Categorical;

/// Column names that an error lists before it says "and more".
const SHOWN_COLUMNS: usize = 30;

/// The category that stands for all that are not listed, where a plan with noise lists it ([NOI-8]).
pub(super) const OTHER: &str = "other";

/// Which columns of a file are wanted.
#[derive(Clone, Debug, Default)]
pub struct TableSpec {
    /// The numeric columns by name, in the order wanted; empty means, where no categories are wanted, all but the label, in the
    /// file's order.
    pub columns: Vec<String>,
    /// The columns of categories, whose indicators follow the numbers in this order.
    pub categorical: Vec<Categorical>,
    /// A column of names to keep beside the numbers. It is never clustered.
    pub label: Option<String>,
    /// The plan's public box of every numeric column: a number outside of it makes its row one that cannot be used.
    pub within: Vec<(f64, f64)>,
    /// Whether a number outside the box is moved to its edge instead, and only counted here.
    pub clips: bool,
    /// What the site says of its rows.
    pub rules: Arc<RowRules>,
    /// Where every row that cannot be used is listed.
    pub list: Option<PathBuf>,
    /// The site's secret where at most so many rows of a person count, as its rules say; without it all do.
    pub person_key: Option<PersonKey>,
    /// What becomes of a row that cannot be used.
    pub unusable: Unusable,
    /// Stops the reading.
    pub halt: Halt,
}

/// What becomes of a row that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unusable {
    /// It is an error, of which all such rows are told.
    #[default]
    Refused,
    /// It is left out and counted; an error only if no row is left. A category that is not listed is "other", if that is.
    LeftOut,
    /// The same, and its place in the table is kept: all its numbers are NaN.
    Blank,
    /// Under noise: it has no weight and is left out, and nothing about rows is an error ([NOI-8]).
    Weightless,
}

impl TableSpec {
    /// The same, with room for every number and every category: what is counted then says nothing of a plan's ranges and lists.
    pub fn without_ranges(mut self) -> TableSpec {
        self.within.clear();
        for names in &mut self.categorical {
            if !names.categories.iter().any(|of| of == OTHER) {
                names.categories.push(OTHER.into());
            }
        }
        self
    }

    /// How its texts are read: under noise every line by itself.
    pub(super) fn dialect(&self) -> Dialect {
        Dialect { by_line: self.unusable == Unusable::Weightless, ..self.rules.dialect() }
    }
}

/// Where the wanted columns stand in a table, and how their cells are read.
pub struct Wanted {
    /// The names of the table's columns as everybody knows them; empty for one that nobody can ask for.
    pub known: Vec<String>,
    /// The numeric ones, in the order wanted.
    pub columns: Vec<Numbers>,
    /// Those of categories, in the order wanted.
    pub categorical: Vec<Names>,
    /// Where the column of names stands that is kept beside the numbers.
    pub label: Option<usize>,
    /// Columns in which a missing value leaves the row out, with the site's own words there, which are values.
    pub complete: Vec<(usize, Spellings<()>)>,
    /// Words that stand for a missing value, beside the usual ones.
    pub marks: Spellings<()>,
    /// Those of them that are numbers.
    pub mark_numbers: Vec<f64>,
    /// As in [`TableSpec::clips`].
    pub clips: bool,
    /// As in [`TableSpec::unusable`].
    pub unusable: Unusable,
    /// How numbers are written in texts.
    pub decimal: Decimal,
    /// Columns whose cells are taken as numbers, where nobody says how these are written.
    pub measured: Vec<usize>,
    /// How rows of persons are cut.
    pub cut: Option<Cut>,
    /// What a row has to pass to count, each with the words that are values in its column.
    pub filter: Vec<(usize, Condition, Spellings<()>)>,
}

impl Wanted {
    /// Every column that is looked at, ascending, and whether its words may stand for numbers or are names.
    pub fn places(&self) -> BTreeMap<usize, Use> {
        let mut places: BTreeMap<usize, Use> = BTreeMap::new();
        let only = self.filter.iter().map(|(at, ..)| (*at, Use::Words));
        let complete = self.complete.iter().map(|(at, _)| (*at, Use::There));
        let numbers = self.columns.iter().map(|c| (c.at, if c.values.is_empty() { Use::Number } else { Use::Words }));
        let names = self.categorical.iter().map(|c| c.at).chain(self.label);
        // All columns say which of a person's rows come first.
        let all = self.cut.iter().flat_map(|cut| cut.order.iter().map(|at| (*at, Use::There)));
        // A column may be clustered and compared: then it has to be readable for both.
        for (at, of) in all.chain(complete).chain(only).chain(names.map(|at| (at, Use::Words))).chain(numbers) {
            places.insert(at, of);
        }
        places.extend(self.cut.iter().map(|cut| (cut.at, Use::Person)));
        places
    }

    /// The columns of the file that nobody takes, by the plan's names.
    pub(super) fn unused(&self, own: &[String]) -> Vec<String> {
        let numbers = self.columns.iter().map(|c| c.at).chain(self.categorical.iter().map(|c| c.at));
        let used: HashSet<usize> = numbers.chain(self.label).collect();
        let named = self.known.iter().zip(own).map(|(known, own)| if known.is_empty() { own } else { known });
        named.enumerate().filter(|(at, _)| !used.contains(at)).map(|(_, name)| name.clone()).collect()
    }

    /// Whether a cell holds one of the marks of a missing value, or the same number in other digits.
    pub(super) fn is_mark(&self, cell: &Cell<'_>) -> bool {
        if self.marks.is_empty() || cell.is_bool() {
            return false;
        }
        let word = matches!(cell, Cell::Text(_)) && cell.among(&self.marks).is_some();
        word || cell.number().is_some_and(|x| self.mark_numbers.contains(&x))
    }

    /// Whether a cell has no value: nothing, a mark, or a usual word for nothing that is none of `words`.
    pub(super) fn is_missing<T: Copy>(&self, cell: &Cell<'_>, words: &Spellings<T>) -> bool {
        (cell.is_nothing() && cell.among(words).is_none()) || self.is_mark(cell)
    }
}

/// What a column is looked at for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Its numbers.
    Number,
    /// Its words: names, what stands for numbers, or what a filter compares.
    Words,
    /// Whether it has a value.
    There,
    /// Of whom a row is.
    Person,
}

/// A column of numbers.
pub struct Numbers {
    /// Where it stands.
    pub at: usize,
    /// Words that stand for a number.
    pub values: Spellings<f64>,
    /// How the file's numbers become the agreed ones.
    pub unit: Option<Unit>,
    /// The range that a number must lie in.
    pub limit: Option<(f64, f64)>,
}

/// A column of categories.
pub struct Names {
    /// Where it stands.
    pub at: usize,
    /// What may stand there.
    pub categories: Vec<String>,
    /// Which of them a word stands for: themselves, and other words for them.
    pub values: Spellings<usize>,
}

fn listed<'a>(words: impl IntoIterator<Item = &'a String>) -> Spellings<()> {
    Spellings::new(words.into_iter().map(|word| (word.as_str(), ())))
}

/// Whether columns can be told apart by their names.
pub(super) fn check_names(file: &str, names: &[String]) -> Result<()> {
    if names.len() > MAX_COLUMNS {
        return Err(Fault::too_many_columns().of_row((file, Place::Row(1))));
    }
    let mut seen = HashSet::new();
    for (at, column) in names.iter().enumerate() {
        if column.is_empty() {
            let next = "give it one (some exports put row numbers into an unnamed first column: name it, and leave it out of the chosen columns)";
            return Err(Fault::said(format!("column {} has no name", at + 1), next).of_header(file));
        }
        if !seen.insert(column) {
            return Err(Fault::said(format!("two columns are called {column:?}"), "rename one").of_header(file));
        }
    }
    Ok(())
}

/// A header with the names that everybody knows, where the site maps its own to them.
///
/// # Errors
/// A column that is there twice, or that the site maps and is not there.
pub fn known_as(file: &str, header: &[String], rules: &RowRules) -> Result<Vec<String>> {
    let mapped: BTreeMap<String, String> =
        rules.columns.iter().map(|(column, own)| (column.clone(), normal(own).into_owned())).collect();
    if let Some((column, own)) = mapped.iter().find(|(_, own)| !header.contains(own)) {
        let what = format!("no column is called {own:?}, which site.toml says is {column:?}");
        return Err(Fault::said(what, format!("correct [rows.columns]; the file has {}", list(header))).of(file));
    }
    let known = header.iter().map(|own| match mapped.iter().find(|(_, of)| *of == own) {
        Some((column, _)) => column.clone(),
        None if mapped.contains_key(own) => String::new(),
        None => own.clone(),
    });
    Ok(known.collect())
}

pub(super) fn choose(file: &str, own: &[String], spec: &TableSpec) -> Result<Wanted> {
    let rules = &*spec.rules.as_read();
    let header = known_as(file, own, rules)?;
    let shown: Vec<String> = header.iter().filter(|name| !name.is_empty()).cloned().collect();
    let find = |column: &String| {
        let unknown = || {
            let known = list(&shown);
            let next = match alike(column, shown.iter().map(String::as_str)) {
                Some(alike) => format!(
                    "{alike:?} looks the same and has letters of another alphabet: rename it; the file has {known}"
                ),
                None => {
                    format!("if it has another name here, say so in [rows.columns] of site.toml; the file has {known}")
                }
            };
            Fault::said(format!("no column is called {column:?}"), next).of(file)
        };
        let column = normal(column);
        header.iter().position(|known| *known == column).ok_or_else(unknown)
    };
    let label = spec.label.as_ref().map(find).transpose()?;
    let of_persons = |column: &String| {
        own.iter().position(|name| *name == normal(column)).ok_or_else(|| {
            let what = format!("no column is called {column:?}, which site.toml says is that of persons (rows.person)");
            Fault::said(what, format!("correct person under [rows]; the file has {}", list(own))).of(file)
        })
    };
    let person = rules.person.as_ref().map(of_persons).transpose()?;
    let mut taken: HashSet<usize> = label.into_iter().collect();
    let mut take = |column: &String| {
        let at = find(column)?;
        if !taken.insert(at) {
            let next = "name every column once, and the label not among them";
            return Err(Fault::said(format!("the column {column:?} is asked for twice"), next).of(file));
        }
        Ok(at)
    };
    let mut columns = spec.columns.iter().map(&mut take).collect::<Result<Vec<usize>, _>>()?;
    let of = |of: &Categorical| Ok((take(&of.column)?, of.categories.clone()));
    let categorical = spec.categorical.iter().map(of).collect::<Result<Vec<_>>>()?;
    if columns.is_empty() && categorical.is_empty() {
        let free = |at: &usize| ![label, person].contains(&Some(*at)) && !header[*at].is_empty();
        columns.extend((0..header.len()).filter(free));
        taken.extend(&columns);
    }
    if let Some(at) = person.filter(|at| taken.contains(at)) {
        let what = format!(
            "{:?} is wanted, and site.toml says that it is the column of persons, which never leaves (rows.person)",
            own[at]
        );
        let next = "ask for a plan without this column, or correct person under [rows]";
        return Err(Fault::said(what, next).of(file));
    }
    if columns.is_empty() && categorical.is_empty() {
        let what = "there is no column beside the label";
        return Err(Fault::said(what, "add at least one numeric column").of(file));
    }
    let own_rules = OwnRules { file, header: &header, rules, plan: spec };
    own_rules.check()?;
    let numbers = |(i, at): (usize, usize)| -> Result<Numbers> {
        let unit = rules.units.get(&header[at]).copied();
        Ok(Numbers { at, values: own_rules.numbers(at)?, unit, limit: spec.within.get(i).copied() })
    };
    let names = |(at, categories): (usize, Vec<String>)| -> Result<Names> {
        Ok(Names { at, values: own_rules.names(at, &categories)?, categories })
    };
    let leaves_out = rules.missing == Some(Missing::LeaveOut);
    let complete =
        (0..header.len()).filter(|at| leaves_out && (taken.contains(at) || rules.columns.contains_key(&header[*at])));
    let complete = complete.map(|at| (at, listed(own_rules.words(at).map(|(word, _)| word)))).collect();
    let compared = rules.filter.conditions().iter().filter(|condition| condition.has_numbers());
    let compared = compared.filter_map(|condition| own.iter().position(|name| *name == condition.column));
    let measured = columns.iter().copied().chain(compared).filter(|_| rules.decimal.is_none()).collect();
    let filter = rules.filter.conditions().iter().map(|condition| {
        let at = own.iter().position(|name| *name == condition.column);
        let known = |at: usize| listed(own_rules.words(at).map(|(word, _)| word).chain(condition.texts()));
        at.map(|at| (at, condition.clone(), known(at))).ok_or_else(|| {
            let what = format!("no column is called {:?}, which the filter of site.toml compares", condition.column);
            Fault::said(what, format!("the file has {}", list(own))).of(file)
        })
    });
    Ok(Wanted {
        columns: columns.into_iter().enumerate().map(numbers).collect::<Result<_, _>>()?,
        categorical: categorical.into_iter().map(names).collect::<Result<_, _>>()?,
        label,
        complete,
        mark_numbers: rules.marks.iter().filter_map(|mark| mark.parse().ok()).collect(),
        marks: listed(&rules.marks),
        clips: spec.clips,
        unusable: spec.unusable,
        decimal: rules.dialect().decimal,
        measured,
        cut: person.zip(spec.person_key.clone()).map(|(at, key)| {
            let mut order: Vec<usize> = (0..own.len()).filter(|other| *other != at).collect();
            order.sort_unstable_by_key(|at| &own[*at]);
            let rows = rules.rows_per_person.unwrap_or(1);
            Cut { at, order, rows: usize::try_from(rows).unwrap_or(usize::MAX), key }
        }),
        filter: filter.collect::<Result<_, _>>()?,
        known: header,
    })
}

/// What a site says of its rows, held against a header and what was agreed on.
struct OwnRules<'a> {
    file: &'a str,
    header: &'a [String],
    rules: &'a RowRules,
    plan: &'a TableSpec,
}

impl<'a> OwnRules<'a> {
    fn wrong(&self, what: String, next: impl Into<Cow<'static, str>>) -> TableError {
        Fault::said(what, next).of(self.file)
    }

    fn check(&self) -> Result<()> {
        let rules = self.rules;
        for (table, column) in (rules.columns.keys().map(|name| ("columns", name)))
            .chain(rules.values.keys().map(|name| ("values", name)))
            .chain(rules.units.keys().map(|name| ("units", name)))
        {
            if !self.header.contains(column) {
                let near = nearest(column, self.header.iter().map(String::as_str));
                let near = near.map_or(String::new(), |near| format!("; do you mean {near:?}?"));
                let what = format!("[rows.{table}] of site.toml names a column {column:?}, which is not known{near}");
                return Err(self.wrong(what, "name columns there as the plan does"));
            }
        }
        for mark in &rules.marks {
            let is_value = |word: &String| same(word, mark);
            let mut planned = self.plan.categorical.iter();
            if let Some(column) = planned.find(|of| of.categories.iter().any(is_value)).map(|of| &of.column) {
                let what = format!("missing_marks of site.toml has {mark:?}, which is a value of {column:?}");
                return Err(self.wrong(what, "take it out: what was agreed on stays"));
            }
        }
        let words = rules.values.iter().flat_map(|(column, words)| words.keys().map(move |word| (column, word)));
        for (column, word) in words {
            if rules.marks.iter().any(|mark| same(word, mark)) {
                let what = format!("the word {word:?} of {column:?} also marks a missing value");
                return Err(self.wrong(what, "it is one or the other"));
            }
        }
        Ok(())
    }

    fn words(&self, at: usize) -> impl Iterator<Item = (&'a String, &'a Meaning)> {
        self.rules.values.get(&self.header[at]).into_iter().flatten()
    }

    /// The site's own words of a column of numbers.
    fn numbers(&self, at: usize) -> Result<Spellings<f64>> {
        let column = &self.header[at];
        let number_of = |(word, meaning): (&'a String, &Meaning)| {
            let Meaning::Number(number) = meaning else {
                let what = format!("[rows.values] gives {word:?} of {column:?} a meaning that is not a number");
                return Err(self.wrong(what, "give the number that it stands for"));
            };
            if word.trim().parse::<f64>().is_ok() {
                let what = format!("[rows.values] gives the number {word:?} of {column:?} another meaning");
                return Err(self.wrong(what, "numbers are what they are; another unit belongs into [rows.units]"));
            }
            Ok((word.as_str(), *number))
        };
        Ok(Spellings::new(self.words(at).map(number_of).collect::<Result<Vec<_>>>()?))
    }

    /// Which of these categories each of the site's own words stands for, and each of them for itself.
    fn names(&self, at: usize, categories: &[String]) -> Result<Spellings<usize>> {
        let column = &self.header[at];
        if self.rules.units.contains_key(column) {
            let what = format!("[rows.units] names {column:?}, which has no numbers");
            return Err(self.wrong(what, "take it out"));
        }
        let category_of = |(word, meaning): (&'a String, &Meaning)| {
            let of = match meaning {
                Meaning::Word(of) => of.clone(),
                Meaning::Number(number) => number.to_string(),
            };
            let Some(place) = categories.iter().position(|known| *known == of) else {
                let known = list(categories);
                let what = format!("[rows.values] says that {word:?} of {column:?} is {of:?}, which was not agreed on");
                return Err(self.wrong(what, format!("it is one of {known}")));
            };
            if categories.contains(word) && *word != of {
                let what = format!("[rows.values] says other than what was agreed on what {word:?} of {column:?} is");
                return Err(self.wrong(what, "take it out: what was agreed on stays"));
            }
            Ok((word.as_str(), place))
        };
        let own = self.words(at).map(category_of).collect::<Result<Vec<_>>>()?;
        Ok(Spellings::new(own.into_iter().chain(categories.iter().enumerate().map(|(at, of)| (of.as_str(), at)))))
    }
}

/// Whether two words are one, or one number.
fn same(word: &str, other: &str) -> bool {
    let number = |word: &str| word.trim().parse::<f64>().ok();
    normal(word) == normal(other) || number(word).zip(number(other)).is_some_and(|(a, b)| a == b)
}

pub(super) fn list(header: &[String]) -> String {
    let mut shown: Vec<String> = header
        .iter()
        .take(SHOWN_COLUMNS)
        .map(|name| format!("{:?}", name.chars().take(64).collect::<String>()))
        .collect();
    if header.len() > SHOWN_COLUMNS {
        shown.push(format!("and {} more", header.len() - SHOWN_COLUMNS));
    }
    shown.join(", ")
}
