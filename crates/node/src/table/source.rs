//! Where rows come from, and the table that they are put into.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt, io,
    path::{Path, PathBuf},
};

use super::{
    Counting, Fault, Halt, MAX_LISTED, MAX_VALUES, Place, Reasons, Result, TableError, TableSpec, Tally, Unusable,
    Wanted, csv::headed_by_a_number, error::Why, person::Pass, print::Print, signs::Signs, tally, wanted::choose,
};
use crate::{
    files::{self, Existing},
    plan::Categorical,
};

/// What is known of an open table before its rows are read.
#[derive(Default)]
pub struct About {
    /// What errors call it.
    pub name: String,
    /// The names of all columns, each another.
    pub columns: Vec<String>,
    /// The first column that is headed by a number, from 1: if nobody asks for its columns by their names, these may be a row.
    pub numbered: Option<usize>,
    /// Files of its folder that are not read.
    pub passed_over: Vec<String>,
}

/// An open table, whose rows come in batches.
pub trait RowReader {
    /// What is known of it.
    fn about(&self) -> &About;

    /// Appends the wanted cells of the next rows to `table`, by [`take`](super::row::take); false where none is left.
    ///
    /// # Errors
    /// A [`TableError`] that names the table and, where there is one, line and column; never what a cell holds.
    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool>;
}

/// An open table and what is wanted of it.
pub(super) struct Batches<'a> {
    source: Box<dyn RowReader + 'a>,
    wanted: Wanted,
    pub(super) table: Table,
    list: Option<PathBuf>,
    halt: Halt,
}

impl<'a> Batches<'a> {
    /// Begins to read `source`. Where rows of persons are cut, none counts: nobody has found them.
    ///
    /// # Errors
    /// A [`TableError`] where it does not have what is wanted.
    pub(super) fn new(source: Box<dyn RowReader + 'a>, spec: &TableSpec) -> Result<Batches<'a>> {
        Self::of(source, spec, &Counting::new())
    }

    /// The same where it is known which rows of persons count.
    pub(super) fn of(source: Box<dyn RowReader + 'a>, spec: &TableSpec, counting: &Counting) -> Result<Batches<'a>> {
        let about = source.about();
        let wanted = choose(&about.name, &about.columns, spec);
        let asked = wanted.is_ok() && !(spec.columns.is_empty() && spec.categorical.is_empty());
        if let Some(at) = about.numbered.filter(|_| !asked) {
            return Err(headed_by_a_number(&about.name, at));
        }
        let wanted = wanted?;
        let known = &wanted.known;
        let named = |at: usize| tally::Column { name: known[at].clone(), ..tally::Column::default() };
        let numbers = wanted.columns.iter().map(|column| named(column.at));
        let tally = Tally {
            files: 1,
            files_left_out: about.passed_over.clone(),
            unused: wanted.unused(&about.columns),
            columns: numbers.chain(wanted.categorical.iter().map(|names| named(names.at))).collect(),
            ..Tally::default()
        };
        let columns = wanted.columns.iter().map(|column| known[column.at].clone());
        let columns = columns.chain(spec.categorical.iter().flat_map(Categorical::indicators)).collect();
        let labels = wanted.label.is_some().then(Vec::new);
        let (persons, unusable) = (Pass::Take(counting.clone()), wanted.unusable);
        let table = Table { columns, labels, unusable, persons, tally, ..Table::default() };
        Ok(Batches { source, wanted, table, list: spec.list.clone(), halt: spec.halt.clone() })
    }

    /// Reads all of `source` to find which rows of persons count.
    ///
    /// # Errors
    /// A [`TableError`] where it cannot be read, or has no column of persons.
    pub(super) fn find(source: Box<dyn RowReader + 'a>, spec: &TableSpec) -> Result<Counting> {
        let mut batches = Self::new(source, spec)?;
        batches.table.persons = Pass::Find(HashMap::new());
        // Rows that cannot be used are told by the pass that takes rows.
        while batches.next()? {}
        Ok(batches.table.persons.found())
    }

    /// Reads a batch; false where none is left.
    fn next(&mut self) -> Result<bool> {
        if self.halt.is_said() {
            let what = "it was not read to its end, because another plan came";
            let next = "nothing has to be done: the rows are read for that one";
            return Err(Fault::said(what, next).of(&self.source.about().name));
        }
        self.source.read(&self.wanted, &mut self.table)
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// A [`TableError`]; where rows cannot be used, all of them are read first.
    pub(super) fn all(&mut self) -> Result<()> {
        while self.next()? {}
        let tally = &self.table.tally;
        match (self.table.unusable, tally.used) {
            (Unusable::Refused | Unusable::Weightless, _) => {
                self.table.spoilt.take(&tally.unusable, self.list.as_deref())?
            }
            (_, 0) => self.table.spoilt.take(&tally.left_out, None)?,
            _ => {}
        }
        if let Some(fault) = self.table.signs.fault(&self.source.about().columns) {
            // Under noise no cell decides whether a site answers.
            if self.table.unusable != Unusable::Weightless {
                return Err(fault);
            }
            self.table.tally.noticed.push(format!("{fault}: {}", fault.advice()));
        }
        let tally = &self.table.tally;
        let (what, next): (Cow<'_, str>, _) = match (tally.left_out.rows(), tally.filtered) {
            _ if self.table.rows > 0 || self.table.unusable == Unusable::Weightless => return Ok(()),
            (0, 0) => ("no rows follow the header".into(), "check that the export went through"),
            (0, _) => (
                "the filter of site.toml leaves no row".into(),
                "look at `filter` in site.toml: it names columns and values as the file has them",
            ),
            _ => (format!("every row is left out: {}", tally.left_out).into(), "fill empty columns in, or name others"),
        };
        Err(Fault::said(what, next).of(&self.source.about().name))
    }
}

pub(super) fn all_of(mut batches: Batches<'_>) -> Result<Table> {
    batches.all()?;
    Ok(batches.table)
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
    /// What was read.
    pub(super) tally: Tally,
    /// Which rows of persons count in this pass.
    pub(super) persons: Pass,
    /// Of the rows of persons, whether they count or not.
    pub(super) of_persons: Print,
    /// Whether the source has several files.
    pub(super) several: bool,
    /// What stands before fractions.
    pub(super) signs: Signs,
    unusable: Unusable,
    spoilt: Spoilt,
}

/// What is wrong with the first row that cannot be used, and which ones cannot.
#[derive(Clone, Default)]
struct Spoilt {
    first: Option<TableError>,
    files: Vec<String>,
    /// File, place and reason of each, by number.
    rows: Vec<(u32, Place, u32)>,
}

impl Spoilt {
    /// The error that tells of them all, after they were listed in a file of this site's own.
    fn take(&mut self, reasons: &Reasons, list: Option<&Path>) -> Result<()> {
        let list = list.and_then(|path| self.listed(reasons, path));
        match std::mem::take(self).first {
            None => Ok(()),
            Some(only) if reasons.rows() == 1 => Err(only),
            Some(of) => Err(TableError { fault: of.fault.of_all(reasons.clone(), list).into(), ..of }),
        }
    }

    /// Writes them to `path` (mode 0600) and says where they are; takes a list of before away where there are none.
    fn listed(&self, reasons: &Reasons, path: &Path) -> Option<String> {
        if self.rows.is_empty() {
            let _ = std::fs::remove_file(path);
            return None;
        }
        let why: Vec<&str> = reasons.each().map(|(why, ..)| why).collect();
        let line = |(file, place, reason): &(u32, Place, u32)| {
            [self.files[*file as usize].clone(), place.to_string(), why[*reason as usize].to_owned()]
        };
        let more = reasons.rows() - self.rows.len() as u64;
        let more = (more > 0).then(|| [String::new(), format!("{more} more"), "not listed".to_owned()]);
        let head = ["file", "place", "reason"].map(str::to_owned);
        let text = csv_of(std::iter::once(head).chain(self.rows.iter().map(line)).chain(more)).ok()?;
        files::write_private(path, &text, Existing::Replace).ok()?;
        Some(path.display().to_string())
    }
}

/// Lines of cells as CSV.
pub(crate) fn csv_of<L: IntoIterator<Item: AsRef<[u8]>>>(lines: impl IntoIterator<Item = L>) -> io::Result<Vec<u8>> {
    let mut out = ::csv::Writer::from_writer(Vec::new());
    lines.into_iter().try_for_each(|line| out.write_record(line))?;
    out.into_inner().map_err(|e| e.into_error())
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No cells and no row count: both are the site's own.
        f.debug_struct("Table").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Table {
    /// What was read so far.
    pub fn tally(&self) -> Tally {
        self.tally.whole()
    }

    /// Counts one more row, whose cells follow.
    ///
    /// # Errors
    /// [`Fault::too_large`] where there is no room for it.
    pub(super) fn begin_row(&mut self, spot: (&str, Place)) -> Result<()> {
        if self.values.len() > MAX_VALUES - self.columns.len() {
            return Err(Fault::too_large().of_row(spot));
        }
        self.rows += 1;
        Ok(())
    }

    /// Appends so many rows, whose numbers are given column by column; false, and nothing is appended, where there is no room for them.
    #[cfg(feature = "columnar")]
    pub(super) fn append(&mut self, rows: usize, columns: &[impl AsRef<[f64]>]) -> bool {
        if rows.saturating_mul(columns.len()) > MAX_VALUES - self.values.len() {
            return false;
        }
        let columns: Vec<&[f64]> = columns.iter().map(AsRef::as_ref).collect();
        (0..rows).for_each(|row| self.values.extend(columns.iter().map(|column| column[row])));
        self.rows += rows;
        self.tally.used += rows as u64;
        true
    }

    /// Leaves out a row that cannot be used, and goes on to the next. What else the table has of it is taken back by
    /// [`Table::keep`].
    ///
    /// # Errors
    /// The same error where it is not one row that is at fault.
    pub(super) fn spoil(&mut self, file: &str, error: TableError) -> Result<()> {
        let Some((why, place)) = error.reason() else { return Err(error) };
        if self.unusable != Unusable::Refused {
            self.leave_out(file, &why, place);
            if self.unusable == Unusable::Blank {
                self.begin_row((file, place))?;
                self.values.resize(self.values.len() + self.columns.len(), f64::NAN);
                self.labels.iter_mut().for_each(|labels| labels.push(String::new()));
            }
            // What helps against a missing value is done.
            if self.unusable != Unusable::Weightless && error.fault.why != Some(Why::NoValue) {
                self.spoilt.first.get_or_insert(error);
            }
            return Ok(());
        }
        let spoilt = &mut self.spoilt;
        let why = self.tally.unusable.note(&why, self.several.then_some(file), place);
        spoilt.first.get_or_insert(error);
        if spoilt.rows.len() < MAX_LISTED {
            if spoilt.files.last().is_none_or(|last| last != file) {
                spoilt.files.push(file.to_owned());
            }
            spoilt.rows.push((spoilt.files.len() as u32 - 1, place, why as u32));
        }
        Ok(())
    }

    /// Counts the columns in which a row that was not taken has no value.
    pub(super) fn count_missing(&mut self, lacks: impl Iterator<Item = bool>) {
        self.tally.columns.iter_mut().zip(lacks).for_each(|(of, lacks)| of.missing += u64::from(lacks));
    }

    /// Leaves out a row for this reason.
    pub(super) fn leave_out(&mut self, file: &str, why: &str, place: Place) {
        self.tally.left_out.note(why, self.several.then_some(file), place);
    }

    /// Only so many rows, each of them whole.
    pub(super) fn keep(&mut self, rows: usize) {
        self.rows = rows;
        self.values.truncate(rows * self.columns.len());
        self.labels.iter_mut().for_each(|labels| labels.truncate(rows));
    }
}
