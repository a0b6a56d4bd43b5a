//! Where rows come from, and what is taken of them.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    cell::{Cell, Parsed, parse},
    error::{Place, Reasons, TableError},
    limits::{MAX_LISTED, MAX_VALUES},
    rules::{Condition, Meaning, RowRules, Unit, nearest},
};
use crate::{
    files::{self, Existing},
    plan::Categorical,
    schema::{Kind, Missing, Schema},
};

/// Column names that an error lists before it says "and more".
const SHOWN_COLUMNS: usize = 30;

/// A kind of place where rows live: files of a form, or a database.
pub trait RowSource: Sync {
    /// Whether this is the name of one of its tables: a path, or whatever it can tell from others.
    fn knows(&self, name: &Path) -> bool;

    /// Opens a table, up to the names of its columns.
    ///
    /// # Errors
    /// A [`TableError`] that names the table and, where there is one, line and column; never what a cell holds.
    fn open(&self, name: &Path) -> Result<Box<dyn RowReader>, TableError>;
}

/// An open table. Its rows come in batches, so that none has to fit into memory twice.
pub trait RowReader {
    /// What errors call it.
    fn name(&self) -> &str;

    /// The names of all columns, each another.
    fn columns(&self) -> &[String];

    /// Appends the wanted cells of the next rows to `table`, by [`take`](super::row::take); false where none is left.
    ///
    /// # Errors
    /// As [`RowSource::open`].
    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool, TableError>;
}

/// An open table and what is wanted of it: its rows come batch by batch.
pub struct Batches<'a> {
    source: Box<dyn RowReader + 'a>,
    wanted: Wanted,
    table: Table,
    list: Option<PathBuf>,
    seen: u64,
}

impl<'a> Batches<'a> {
    /// Begins to read `source`.
    ///
    /// # Errors
    /// A [`TableError`] where it does not have what is wanted.
    pub fn new(source: Box<dyn RowReader + 'a>, spec: &TableSpec) -> Result<Batches<'a>, TableError> {
        let wanted = choose(source.name(), source.columns(), spec)?;
        let known = &wanted.known;
        let columns = wanted.columns.iter().map(|column| known[column.at].clone());
        let columns = columns.chain(spec.categorical.iter().flat_map(Categorical::indicators)).collect();
        let labels = wanted.label.is_some().then(Vec::new);
        let table = Table { columns, labels, ..Table::default() };
        Ok(Batches { source, wanted, table, list: spec.list.clone(), seen: 0 })
    }

    /// Reads on until the table has `rows` rows more, or a batch above that; false where none was left to read.
    ///
    /// # Errors
    /// A [`TableError`]; where rows cannot be used, all of them are read first.
    pub fn more(&mut self, rows: usize) -> Result<bool, TableError> {
        let before = self.table.rows;
        while self.source.read(&self.wanted, &mut self.table)? {
            if self.table.rows >= before + rows {
                self.seen += (self.table.rows - before) as u64;
                return Ok(true);
            }
        }
        self.seen += (self.table.rows - before) as u64;
        self.table.spoilt.take(self.list.as_deref())?;
        let file = || self.source.name().to_owned();
        match (self.seen, self.table.left_out.rows(), self.table.filtered) {
            (1.., ..) => Ok(false),
            (0, 0, 0) => Err(TableError::NoRows { file: file() }),
            (0, 0, _) => Err(TableError::AllFiltered { file: file() }),
            _ => Err(TableError::AllLeftOut { file: file() }),
        }
    }

    /// The rows that were read and not dropped.
    pub fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    /// The rows that were read and not dropped.
    pub fn into_table(self) -> Table {
        self.table
    }
}

pub(super) fn read_all(source: Box<dyn RowReader + '_>, spec: &TableSpec) -> Result<Table, TableError> {
    let mut batches = Batches::new(source, spec)?;
    while batches.more(usize::MAX)? {}
    Ok(batches.into_table())
}

/// Which columns of a file are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableSpec {
    /// The numeric columns by name, in the order wanted; empty means, where no categories are wanted, all but the label, in the
    /// file's order.
    pub columns: Vec<String>,
    /// The columns of categories, whose indicators follow the numbers in this order.
    pub categorical: Vec<Categorical>,
    /// A column of names to keep beside the numbers, to compare a clustering with. It is never clustered.
    pub label: Option<String>,
    /// The federation's schema: other names of columns, other words for values, and what is done about a missing one.
    pub schema: Option<Arc<Schema>>,
    /// Whether a number outside the schema's range makes its row one that cannot be used.
    pub ranges: bool,
    /// The plan's public box of every numeric column, where a number outside of it makes its row one that cannot be used.
    pub within: Vec<(f64, f64)>,
    /// The labels that the plan lists; empty where any will do.
    pub classes: Vec<String>,
    /// What the site says of its rows.
    pub rules: Option<Arc<RowRules>>,
    /// Where every row that cannot be used is listed.
    pub list: Option<PathBuf>,
}

/// Numeric rows with named columns.
#[derive(Clone, Default)]
pub struct Table {
    /// Names of the numeric columns and of the indicators behind them.
    pub columns: Vec<String>,
    /// Row after row, each as long as `columns`.
    pub values: Vec<f64>,
    /// How many rows.
    pub rows: usize,
    /// One label a row, where the specification names a label.
    pub labels: Option<Vec<String>>,
    /// Rows that the schema leaves out because a value is missing.
    pub left_out: Reasons,
    /// Rows that did not pass the site's filter.
    pub(super) filtered: u64,
    /// Whether the source has several files.
    pub(super) several: bool,
    spoilt: Spoilt,
}

/// What is wrong with the first row that cannot be used, why how many cannot, and which they are.
#[derive(Clone, Default)]
struct Spoilt {
    first: Option<Arc<TableError>>,
    reasons: Reasons,
    files: Vec<String>,
    /// File, place and reason of each, by number.
    rows: Vec<(u32, Place, u32)>,
}

impl Spoilt {
    /// The error that tells of them all, after they were listed in a file of this site's own.
    fn take(&mut self, list: Option<&Path>) -> Result<(), TableError> {
        let list = list.and_then(|path| self.listed(path).ok().flatten());
        let Spoilt { first, reasons, .. } = std::mem::take(self);
        match first.and_then(Arc::into_inner) {
            None => Ok(()),
            Some(only) if reasons.rows() == 1 => Err(only),
            Some(first) => Err(TableError::Rows { first: Box::new(first), rows: reasons.rows(), reasons, list }),
        }
    }

    /// Writes them to `path` (mode 0600), or takes a list of before away where there are none.
    fn listed(&self, path: &Path) -> Result<Option<String>, crate::error::Failure> {
        if self.rows.is_empty() {
            let _ = std::fs::remove_file(path);
            return Ok(None);
        }
        let why: Vec<&str> = self.reasons.each().map(|(why, ..)| why).collect();
        let mut text = Vec::new();
        let mut writer = csv::Writer::from_writer(&mut text);
        let mut write = |cells: [&str; 3]| writer.write_record(cells).map_err(std::io::Error::other);
        let mut all = write(["file", "place", "reason"]);
        for (file, place, reason) in &self.rows {
            all = all.and(write([&self.files[*file as usize], &place.to_string(), why[*reason as usize]]));
        }
        let more = self.reasons.rows() - self.rows.len() as u64;
        if more > 0 {
            all = all.and(write(["", &format!("{more} more"), "not listed"]));
        }
        drop(writer);
        let failed = |e: std::io::Error| crate::error::Failure::input(e.to_string(), "check the free space");
        all.map_err(failed)?;
        files::write_private(path, &text, Existing::Replace)?;
        Ok(Some(path.display().to_string()))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No cells and no row count: both are the site's own.
        f.debug_struct("Table").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Table {
    /// Counts one more row, whose cells follow.
    ///
    /// # Errors
    /// [`TableError::TooLarge`] where there is no room for it.
    pub(super) fn begin_row(&mut self, file: &str, line: Place) -> Result<(), TableError> {
        if self.values.len() > MAX_VALUES - self.columns.len() {
            return Err(TableError::TooLarge { file: file.to_owned(), line });
        }
        self.rows += 1;
        Ok(())
    }

    /// Leaves out a row that cannot be used, and goes on to the next. What else the table has of it is taken back by
    /// [`Table::keep`].
    ///
    /// # Errors
    /// The same error where it is not one row that is at fault.
    pub(super) fn spoil(&mut self, file: &str, error: TableError) -> Result<(), TableError> {
        let Some((why, place)) = error.of_row() else { return Err(error) };
        let spoilt = &mut self.spoilt;
        let why = spoilt.reasons.note(&why, self.several.then_some(file), place);
        spoilt.first.get_or_insert(Arc::new(error));
        if spoilt.rows.len() < MAX_LISTED {
            if spoilt.files.last().is_none_or(|last| last != file) {
                spoilt.files.push(file.to_owned());
            }
            spoilt.rows.push((spoilt.files.len() as u32 - 1, place, why as u32));
        }
        Ok(())
    }

    /// Leaves out a row in which `column` has no value.
    pub(super) fn leave_out(&mut self, file: &str, column: &str, place: Place) {
        self.left_out.note(&format!("no value in {column:?}"), self.several.then_some(file), place);
    }

    /// Only so many rows, each of them whole.
    pub(super) fn keep(&mut self, rows: usize) {
        self.rows = rows;
        self.values.truncate(rows * self.columns.len());
        self.labels.iter_mut().for_each(|labels| labels.truncate(rows));
    }

    /// Hands over the rows, and has none any more.
    pub fn drain(&mut self) -> (Vec<f64>, Option<Vec<String>>) {
        self.rows = 0;
        (std::mem::take(&mut self.values), self.labels.as_mut().map(std::mem::take))
    }
}

/// Where the wanted columns stand in a table, and how their cells are read.
pub struct Wanted {
    /// The names of the table's columns as everybody knows them; empty for one that nobody can ask for.
    known: Vec<String>,
    /// The numeric ones, in the order wanted.
    pub columns: Vec<Numbers>,
    /// Those of categories, in the order wanted.
    pub categorical: Vec<Names>,
    /// The label's, and what may stand there; nothing where anything may.
    pub label: Option<(usize, Vec<String>)>,
    /// Words of the site's own for labels.
    pub label_words: BTreeMap<String, String>,
    /// Columns in which a missing value leaves the row out, with the words that are values there.
    pub complete: Vec<(usize, Vec<String>)>,
    /// Words that stand for a missing value, beside the usual ones.
    pub marks: Vec<String>,
    /// Those of them that are numbers.
    pub mark_numbers: Vec<f64>,
    /// What a row has to pass to count, each with the words that are values in its column.
    pub filter: Vec<(usize, Condition, Vec<String>)>,
}

impl Wanted {
    /// Every column that is looked at, ascending, and whether its words may stand for numbers or are names.
    pub fn places(&self) -> BTreeMap<usize, Use> {
        let mut places: BTreeMap<usize, Use> = BTreeMap::new();
        let only = self.filter.iter().map(|(at, ..)| (*at, Use::Words));
        let complete = self.complete.iter().map(|(at, _)| (*at, Use::There));
        let numbers = self.columns.iter().map(|c| (c.at, if c.values.is_empty() { Use::Number } else { Use::Words }));
        let names = self.categorical.iter().map(|c| c.at).chain(self.label.iter().map(|(at, _)| *at));
        // A column may be clustered and compared: then it has to be readable for both.
        for (at, of) in complete.chain(only).chain(names.map(|at| (at, Use::Words))).chain(numbers) {
            places.insert(at, of);
        }
        places
    }

    /// Whether a cell holds one of the marks of a missing value, or the same number in other digits.
    pub(super) fn is_mark(&self, cell: &Cell<'_>) -> bool {
        let number = || !self.mark_numbers.is_empty() && cell.number().is_some_and(|x| self.mark_numbers.contains(&x));
        match cell {
            Cell::Number(_) => number(),
            Cell::Text(_) => self.marks.iter().any(|mark| *mark == *cell.text()) || number(),
            Cell::Nothing | Cell::Bool(_) => false,
        }
    }

    /// Whether a cell has no value: nothing, a mark, or a usual word for nothing that is none of `words`.
    pub(super) fn is_missing(&self, cell: &Cell<'_>, words: &[String]) -> bool {
        let usual = |text: &[u8]| matches!(parse(text), Parsed::Missing) && !words.iter().any(|w| *w == cell.text());
        match cell {
            Cell::Nothing => true,
            Cell::Text(text) => usual(text) || self.is_mark(cell),
            Cell::Number(_) | Cell::Bool(_) => self.is_mark(cell),
        }
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
}

/// A column of numbers.
pub struct Numbers {
    /// Where it stands.
    pub at: usize,
    /// Words that stand for a number.
    pub values: BTreeMap<String, f64>,
    /// How the file's numbers become the agreed ones.
    pub unit: Option<Unit>,
    /// The range that a number must lie in.
    pub limit: Option<Limit>,
}

/// A range.
#[derive(Clone, Copy)]
pub struct Limit {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Whether it is the plan's public box, and not the schema's range.
    pub plan: bool,
}

/// A column of categories.
pub struct Names {
    /// Where it stands.
    pub at: usize,
    /// What may stand there.
    pub categories: Vec<String>,
    /// Words that stand for one of them.
    pub values: BTreeMap<String, String>,
}

/// A header with the names that everybody knows: those that the site maps, then those of the schema.
///
/// # Errors
/// A column that is there twice, or that the site maps and is not there.
pub fn known_as(
    file: &str,
    header: &[String],
    schema: Option<&Schema>,
    rules: Option<&RowRules>,
) -> Result<Vec<String>, TableError> {
    let none = BTreeMap::new();
    let mapped = rules.map_or(&none, |rules| &rules.columns);
    if let Some((column, own)) = mapped.iter().find(|(_, own)| !header.contains(own)) {
        return Err(TableError::Rule {
            file: file.to_owned(),
            what: format!("no column is called {own:?}, which site.toml says is {column:?}"),
            next: format!("correct [rows.columns]; the file has {}", list(header)),
        });
    }
    let of_schema = match schema {
        None => header.to_vec(),
        // A column that the site names is not read under another name.
        Some(schema) => {
            let free: Vec<String> = header
                .iter()
                .map(|own| if mapped.values().any(|of| of == own) { "" } else { own }.to_owned())
                .collect();
            let named = schema.named(&free.iter().filter(|own| !own.is_empty()).cloned().collect::<Vec<_>>());
            let named = named.map_err(|column| TableError::TwiceNamed { file: file.to_owned(), column })?;
            let mut named = named.into_iter();
            free.iter()
                .map(|own| if own.is_empty() { String::new() } else { named.next().unwrap_or_default() })
                .collect()
        }
    };
    let known = header.iter().zip(of_schema).map(|(own, of_schema)| match mapped.iter().find(|(_, of)| *of == own) {
        Some((column, _)) => column.clone(),
        None if mapped.contains_key(&of_schema) => String::new(),
        None => of_schema,
    });
    Ok(known.collect())
}

fn choose(file: &str, own: &[String], spec: &TableSpec) -> Result<Wanted, TableError> {
    let (schema, rules) = (spec.schema.as_deref(), spec.rules.as_deref());
    let header = known_as(file, own, schema, rules)?;
    let shown: Vec<String> = header.iter().filter(|name| !name.is_empty()).cloned().collect();
    let find = |column: &String| {
        header.iter().position(|known| known == column).ok_or_else(|| TableError::UnknownColumn {
            file: file.to_owned(),
            column: column.clone(),
            known: list(&shown),
        })
    };
    let label = spec.label.as_ref().map(find).transpose()?;
    let mut taken = vec![false; header.len()];
    if let Some(at) = label {
        taken[at] = true;
    }
    let mut take = |column: &String| {
        let at = find(column)?;
        if std::mem::replace(&mut taken[at], true) {
            return Err(TableError::ChosenTwice { file: file.to_owned(), column: column.clone() });
        }
        Ok(at)
    };
    let mut columns = spec.columns.iter().map(&mut take).collect::<Result<Vec<usize>, _>>()?;
    let of = |of: &Categorical| Ok((take(&of.column)?, of.categories.clone()));
    let categorical = spec.categorical.iter().map(of).collect::<Result<Vec<_>, TableError>>()?;
    if columns.is_empty() && categorical.is_empty() {
        columns.extend((0..header.len()).filter(|at| Some(*at) != label && !header[*at].is_empty()));
    }
    if columns.is_empty() && categorical.is_empty() {
        return Err(TableError::NoColumns { file: file.to_owned() });
    }
    let own_rules = OwnRules { file, header: &header, schema, rules };
    own_rules.check()?;
    let kind = |at: usize| schema.and_then(|schema| schema.get(&header[at])).map(|column| &column.kind);
    let limit = |(i, at): (usize, usize)| match (spec.within.get(i), kind(at)) {
        (Some((low, high)), _) => Some(Limit { low: *low, high: *high, plan: true }),
        (None, Some(Kind::Number { lower, upper, .. })) if spec.ranges => {
            Some(Limit { low: *lower, high: *upper, plan: false })
        }
        _ => None,
    };
    let numbers = |(i, at): (usize, usize)| -> Result<Numbers, TableError> {
        let agreed = match kind(at) {
            Some(Kind::Number { values, .. }) => values.clone(),
            _ => BTreeMap::new(),
        };
        let unit = rules.and_then(|rules| rules.units.get(&header[at])).copied();
        Ok(Numbers { at, values: own_rules.numbers(at, agreed)?, unit, limit: limit((i, at)) })
    };
    let names = |(at, categories): (usize, Vec<String>)| -> Result<Names, TableError> {
        let agreed = match kind(at) {
            Some(Kind::Category { values, .. }) => values.clone(),
            _ => BTreeMap::new(),
        };
        Ok(Names { at, values: own_rules.names(at, &categories, agreed)?, categories })
    };
    let complete: Vec<(usize, Vec<String>)> = match schema {
        Some(schema) if schema.missing == Missing::LeaveOut => {
            (0..header.len()).filter_map(|at| Some((at, kind(at)?.words().cloned().collect()))).collect()
        }
        None if rules.is_some_and(|rules| rules.missing == Some(Missing::LeaveOut)) => {
            let mapped = |at: &usize| rules.is_some_and(|rules| rules.columns.contains_key(&header[*at]));
            (0..header.len()).filter(mapped).map(|at| (at, Vec::new())).collect()
        }
        _ => Vec::new(),
    };
    let mut marks = schema.map_or(Vec::new(), |schema| schema.marks.clone());
    marks.extend(rules.iter().flat_map(|rules| rules.marks.clone()));
    let filter = rules.map_or(&[][..], |rules| rules.filter.conditions()).iter().map(|condition| {
        let at = own.iter().position(|name| *name == condition.column);
        let known = |at: usize| {
            let agreed = kind(at).into_iter().flat_map(Kind::words);
            agreed.chain(own_rules.words(at).map(|(word, _)| word)).chain(condition.texts()).cloned().collect()
        };
        at.map(|at| (at, condition.clone(), known(at))).ok_or_else(|| TableError::Rule {
            file: file.to_owned(),
            what: format!("no column is called {:?}, which the filter of site.toml compares", condition.column),
            next: format!("the file has {}", list(own)),
        })
    });
    let label_words = match (label, spec.classes.is_empty()) {
        (Some(at), false) => own_rules.names(at, &spec.classes, BTreeMap::new())?,
        (Some(at), true) => own_rules
            .words(at)
            .filter_map(|(word, meaning)| match meaning {
                Meaning::Word(of) => Some((word.clone(), of.clone())),
                Meaning::Number(_) => None,
            })
            .collect(),
        (None, _) => BTreeMap::new(),
    };
    Ok(Wanted {
        columns: columns.into_iter().enumerate().map(numbers).collect::<Result<_, _>>()?,
        categorical: categorical.into_iter().map(names).collect::<Result<_, _>>()?,
        label: label.map(|at| (at, spec.classes.clone())),
        label_words,
        complete,
        mark_numbers: marks.iter().filter_map(|mark| mark.parse().ok()).collect(),
        marks,
        filter: filter.collect::<Result<_, _>>()?,
        known: header,
    })
}

/// What a site says of its rows, held against a header and what was agreed on.
struct OwnRules<'a> {
    file: &'a str,
    header: &'a [String],
    schema: Option<&'a Schema>,
    rules: Option<&'a RowRules>,
}

impl OwnRules<'_> {
    fn wrong(&self, what: String, next: impl Into<String>) -> TableError {
        TableError::Rule { file: self.file.to_owned(), what, next: next.into() }
    }

    fn check(&self) -> Result<(), TableError> {
        let Some(rules) = self.rules else { return Ok(()) };
        let agreed = |name: &str| self.schema.is_none_or(|schema| schema.get(name).is_some());
        for (table, column) in (rules.columns.keys().map(|name| ("columns", name)))
            .chain(rules.values.keys().map(|name| ("values", name)))
            .chain(rules.units.keys().map(|name| ("units", name)))
        {
            let is_label = self.schema.is_some_and(|schema| schema.label.as_ref() == Some(column));
            if !self.header.contains(column) || !(agreed(column) || is_label) {
                let known = self.header.iter().map(String::as_str).filter(|name| agreed(name));
                let near = nearest(column, known).map_or(String::new(), |near| format!("; do you mean {near:?}?"));
                let what = format!("[rows.{table}] of site.toml names a column {column:?}, which is not known{near}");
                return Err(self.wrong(what, "name columns there as plan and schema do"));
            }
        }
        if let (Some(schema), Some(missing)) = (self.schema, rules.missing)
            && schema.missing != missing
        {
            let what = "site.toml says another thing of missing values than the schema that was agreed on".to_owned();
            return Err(self.wrong(what, "take `missing` out of [rows]"));
        }
        if rules.missing == Some(Missing::LeaveOut) && self.schema.is_none() && rules.columns.is_empty() {
            let what = "site.toml leaves rows with a missing value out, and does not say in which columns".to_owned();
            return Err(
                self.wrong(what, "name them in [rows.columns], so that every plan is answered from the same rows")
            );
        }
        for mark in &rules.marks {
            let kinds = self.schema.iter().flat_map(|schema| &schema.columns);
            if let Some(column) =
                kinds.filter(|column| column.kind.words().any(|word| same(word, mark))).map(|c| &c.name).next()
            {
                let what = format!("missing_marks of site.toml has {mark:?}, which is a value of {column:?}");
                return Err(self.wrong(what, "take it out: what was agreed on stays"));
            }
        }
        let words = rules.values.iter().flat_map(|(column, words)| words.keys().map(move |word| (column, word)));
        let agreed_marks = self.schema.map_or(&[][..], |schema| &schema.marks);
        for (column, word) in words {
            if rules.marks.iter().chain(agreed_marks).any(|mark| same(word, mark)) {
                let what = format!("the word {word:?} of {column:?} also marks a missing value");
                return Err(self.wrong(what, "it is one or the other"));
            }
        }
        Ok(())
    }

    fn words(&self, at: usize) -> impl Iterator<Item = (&String, &Meaning)> {
        self.rules.into_iter().filter_map(move |rules| rules.values.get(&self.header[at])).flatten()
    }

    /// The words of a column of numbers: those that were agreed on, and the site's own.
    fn numbers(&self, at: usize, agreed: BTreeMap<String, f64>) -> Result<BTreeMap<String, f64>, TableError> {
        let column = &self.header[at];
        let mut all = agreed.clone();
        for (word, meaning) in self.words(at) {
            let number = match meaning {
                Meaning::Number(number) => *number,
                Meaning::Word(of) => *agreed.get(of).ok_or_else(|| {
                    let what = format!("[rows.values] says that {word:?} of {column:?} is {of:?}, which is no number");
                    self.wrong(what, "give the number that it stands for")
                })?,
            };
            if word.trim().parse::<f64>().is_ok() {
                let what = format!("[rows.values] gives the number {word:?} of {column:?} another meaning");
                return Err(self.wrong(what, "numbers are what they are; another unit belongs into [rows.units]"));
            }
            if all.insert(word.clone(), number).is_some_and(|before| before != number) {
                let what = format!("[rows.values] says other than the schema what {word:?} of {column:?} is");
                return Err(self.wrong(what, "take it out: what was agreed on stays"));
            }
        }
        Ok(all)
    }

    /// The words of a column of names: those that were agreed on, and the site's own.
    fn names(
        &self,
        at: usize,
        categories: &[String],
        agreed: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, TableError> {
        let column = &self.header[at];
        if self.rules.is_some_and(|rules| rules.units.contains_key(column)) {
            let what = format!("[rows.units] names {column:?}, which has no numbers");
            return Err(self.wrong(what, "take it out"));
        }
        let mut all = agreed.clone();
        for (word, meaning) in self.words(at) {
            let of = match meaning {
                Meaning::Word(of) => of.clone(),
                Meaning::Number(number) => number.to_string(),
            };
            let category = agreed.get(&of).unwrap_or(&of).clone();
            if !categories.contains(&category) {
                let known = list(categories);
                let what = format!("[rows.values] says that {word:?} of {column:?} is {of:?}, which was not agreed on");
                return Err(self.wrong(what, format!("it is one of {known}")));
            }
            let before = if categories.contains(word) { Some(word.clone()) } else { None };
            if before.or(all.insert(word.clone(), category.clone())).is_some_and(|before| before != category) {
                let what = format!("[rows.values] says other than what was agreed on what {word:?} of {column:?} is");
                return Err(self.wrong(what, "take it out: what was agreed on stays"));
            }
        }
        Ok(all)
    }
}

/// Whether two words are one, or one number.
fn same(word: &str, other: &str) -> bool {
    let number = |word: &str| word.trim().parse::<f64>().ok();
    word == other || number(word).zip(number(other)).is_some_and(|(a, b)| a == b)
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
