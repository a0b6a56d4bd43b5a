//! What can be wrong with a table: file, line and column, and never what a cell holds.

use std::{borrow::Cow, fmt, io};

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::{cost::counted, error::OUTSIDE_BOX};

use super::{MAX_CELL, MAX_COLUMNS, MAX_VALUES};

/// Where a row is in its file: on a line of text, or the how manieth row it is. Both are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The line on which it begins.
    Line(u64),
    /// Its number, where a file has no lines.
    Row(u64),
}

impl Place {
    /// What it is called, and its number.
    fn parts(self) -> (&'static str, u64) {
        match self {
            Place::Line(line) => ("line", line),
            Place::Row(row) => ("row", row),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, number) = self.parts();
        write!(f, "{what} {number}")
    }
}

/// Rows for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reason {
    why: String,
    rows: u64,
    /// The first of them, with the file where a source has several.
    first: Vec<(Option<String>, Place)>,
}

/// Why rows cannot be used: how many for each reason, and where the first of them are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(Vec<Reason>);

impl Reasons {
    /// Reasons that are listed; columns are up to thousands.
    const LISTED: usize = 12;
    /// Lines that are listed of each.
    pub(super) const LINES: usize = 3;

    /// One more row, in this file where a source has several. Tells which reason it is, counted from 0.
    pub fn note(&mut self, why: &str, file: Option<&str>, place: Place) -> usize {
        let at = self.0.iter().position(|known| known.why == why).unwrap_or_else(|| {
            self.0.push(Reason { why: why.to_owned(), rows: 0, first: Vec::new() });
            self.0.len() - 1
        });
        let reason = &mut self.0[at];
        reason.rows += 1;
        if reason.first.len() < Self::LINES {
            reason.first.push((file.map(str::to_owned), place));
        }
        at
    }

    /// Each reason with its rows and the first places.
    pub fn each(&self) -> impl Iterator<Item = (&str, u64, Vec<String>)> {
        self.0.iter().map(|Reason { why, rows, first }| (why.as_str(), *rows, first.iter().map(placed).collect()))
    }

    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.0.iter().map(|reason| reason.rows).sum()
    }
}

pub(super) fn placed((file, place): &(Option<String>, Place)) -> String {
    file.as_ref().map_or_else(|| place.to_string(), |file| format!("{file} {place}"))
}

impl Serialize for Reasons {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.each().map(|(why, rows, first)| json!({ "why": why, "rows": rows, "first": first })))
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self.0.iter().take(Self::LISTED).map(|Reason { why, rows, first }| {
            let more = if *rows > first.len() as u64 { ", …" } else { "" };
            // Several of one file are called lines or rows once.
            let called = match &first[..] {
                [(None, place), _, ..] => format!("{}s ", place.parts().0),
                _ => String::new(),
            };
            let each = |of: &(Option<String>, Place)| match called.as_str() {
                "" => placed(of),
                _ => of.1.parts().1.to_string(),
            };
            let places: Vec<String> = first.iter().map(each).collect();
            format!("{rows} with {why} ({called}{}{more})", places.join(", "))
        });
        f.write_str(&listed.collect::<Vec<_>>().join("; "))?;
        let others: u64 = self.0.iter().skip(Self::LISTED).map(|reason| reason.rows).sum();
        if others > 0 { write!(f, "; {others} for other reasons") } else { Ok(()) }
    }
}

/// Where in a table something is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spot {
    /// All of it.
    Table,
    /// The names of its columns.
    Header,
    /// A row.
    Row(Place),
    /// The cell of a row in the column of this name.
    Cell(Place, String),
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spot::Table => Ok(()),
            Spot::Header => f.write_str(", header"),
            Spot::Row(place) => write!(f, ", {place}"),
            Spot::Cell(place, column) => write!(f, ", {place}, column {column:?}"),
        }
    }
}

/// What is wrong with a table, and where. [`TableError::advice`] says what to do about it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file}{spot}: {}", fault.what)]
pub struct TableError {
    /// The file.
    pub file: String,
    /// Where in it.
    pub spot: Spot,
    /// What is wrong there.
    pub fault: Box<Fault>,
}

/// What reading a table comes to.
pub(super) type Result<T, E = TableError> = std::result::Result<T, E>;

/// What is wrong with a table, with a row or with a cell. None holds what stands in a cell.
#[derive(Clone, Debug)]
pub struct Fault {
    what: Cow<'static, str>,
    /// What to do.
    next: Cow<'static, str>,
    /// Where one row is at fault and the rows after it can still be told apart: why it cannot be used.
    pub(super) why: Option<Why>,
    /// All rows that cannot be used, where there are several; the error stands where the first of them is.
    rows: Option<Reasons>,
}

/// Why one row cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// It lacks a value.
    NoValue,
    /// It has this.
    Has(&'static str),
}

impl Why {
    fn words(self) -> &'static str {
        match self {
            Why::NoValue => "no value",
            Why::Has(what) => what,
        }
    }
}

impl Fault {
    /// A cell without a value.
    pub(super) const EMPTY_CELL: Fault = Fault::of_one(
        Why::NoValue,
        "the value is missing",
        "remove such rows, or fill them in before clustering; or leave them out: missing = \"leave-out\" under [rows] in site.toml",
    );
    /// A cell that is not a finite number.
    pub(super) const NOT_FINITE: Fault = Fault::of_one(
        Why::Has("NaN, infinite or too large"),
        "the value is NaN, infinite or too large for a 64-bit number",
        "remove such rows or correct them; if this stands for a missing value, name it in missing_marks under [rows] in site.toml",
    );
    /// A number outside the plan's public box.
    pub(super) const OUTSIDE_BOX: Fault =
        Fault::of_one(Why::Has("a value outside the plan's public box"), "outside the plan's public box", OUTSIDE_BOX);
    /// A text in another encoding.
    pub(super) const NOT_UTF8: Fault = Fault::of_one(
        Why::Has("not UTF-8"),
        "the text is not UTF-8",
        "save the file as \"CSV UTF-8\", or convert it with iconv",
    );

    const fn of_one(why: Why, what: &'static str, next: &'static str) -> Fault {
        Fault { what: Cow::Borrowed(what), next: Cow::Borrowed(next), why: Some(why), rows: None }
    }

    /// Of a row by itself: what is wrong with it, and what to do.
    pub(super) const fn row(what: &'static str, next: &'static str) -> Fault {
        Fault::of_one(Why::Has(what), what, next)
    }

    /// A cell that is no number, and what to do.
    pub(super) fn not_a_number(next: &'static str) -> Fault {
        Fault::of_one(Why::Has("no number"), "this is not a number", next)
    }

    /// Of the whole table or its header: what it is, and what to do.
    pub(super) fn said(what: impl Into<Cow<'static, str>>, next: impl Into<Cow<'static, str>>) -> Fault {
        Fault { what: what.into(), next: next.into(), why: None, rows: None }
    }

    /// A cell that is none of the categories of its column, which are these.
    pub(super) fn unknown_category(known: &str) -> Fault {
        let next = format!(
            "correct the row; or say in [rows.values] of site.toml which category it is; or agree on a plan that lists it: this one has {known}"
        );
        Fault {
            why: Some(Why::Has("another category")),
            ..Fault::said("the value is none of the column's categories", next)
        }
    }

    /// A row with more or fewer cells than the header.
    pub(super) fn ragged(got: usize, expected: usize) -> Fault {
        let what = format!("{} where {expected} belong", counted(got, "cell"));
        let next = "look for a missing or an extra separator, also at the end of the line, or a quotation mark without its partner";
        Fault { why: Some(Why::Has("other cells than the header has")), ..Fault::said(what, next) }
    }

    /// The file can't be opened.
    pub(super) fn open(error: io::Error) -> Fault {
        let next = match error.kind() {
            io::ErrorKind::NotFound => "check the path: it is taken relative to the folder you are in",
            io::ErrorKind::PermissionDenied => "give the user that runs this permission to read it",
            _ => "check the path and the disk",
        };
        Fault::said(format!("cannot be opened ({error})"), next)
    }

    /// The file can't be read to its end.
    pub(super) fn read(error: io::Error) -> Fault {
        let next = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it was cut short: export or copy the file again",
            io::ErrorKind::FileTooLarge => "a pipe is held in memory, 1 GiB of it at most: write the rows to a file",
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                "what is packed in it is damaged: export or copy the file again"
            }
            _ => "check that it is a regular file on a healthy disk",
        };
        Fault::said(format!("cannot be read ({error})"), next)
    }

    /// A file that does not hold what it says of itself: what does not fit.
    #[cfg(feature = "columnar")]
    pub(super) fn damaged(what: &str) -> Fault {
        Fault::said(format!("the file is damaged or was cut short: {what}"), "export or copy the file again")
    }

    /// More columns than we read.
    pub(super) fn too_many_columns() -> Fault {
        Fault::said(format!("more than {MAX_COLUMNS} columns"), "keep the ones that are to be clustered")
    }

    /// A longer cell than we read, in this column, from 1.
    pub(super) fn cell_too_long(column: usize) -> Fault {
        let next = "look for a quotation mark without its partner, or drop that column";
        Fault::said(format!("column {column} holds more than {MAX_CELL} bytes"), next)
    }

    /// More numbers than we hold.
    pub(super) fn too_large() -> Fault {
        Fault::said(format!("more than {MAX_VALUES} numbers"), "choose fewer columns, or cluster a sample of rows")
    }

    /// Of more than one row that cannot be used, of which this is that of the first; a file may list every one of them.
    pub(super) fn of_all(self, rows: Reasons, list: Option<String>) -> Fault {
        let what = format!("{}; in all {} rows cannot be used: {rows}", self.what, rows.rows());
        let next = list.map_or(self.next.clone(), |list| format!("{}; {list} lists them all", self.next).into());
        Fault { what: what.into(), next, why: None, rows: Some(rows) }
    }

    /// Nothing is in the file.
    pub(super) fn empty() -> Fault {
        Fault::said("the file is empty", "it needs a header line and rows")
    }

    /// Of a table.
    pub(super) fn of(self, file: &str) -> TableError {
        self.at(file, Spot::Table)
    }

    /// Of its header.
    pub(super) fn of_header(self, file: &str) -> TableError {
        self.at(file, Spot::Header)
    }

    /// Of a row.
    pub(super) fn of_row(self, (file, place): (&str, Place)) -> TableError {
        self.at(file, Spot::Row(place))
    }

    /// Of a row's cell in this column.
    pub(super) fn of_cell(self, (file, place): (&str, Place), column: &str) -> TableError {
        self.at(file, Spot::Cell(place, column.to_owned()))
    }

    fn at(self, file: &str, spot: Spot) -> TableError {
        TableError { file: file.to_owned(), spot, fault: self.into() }
    }
}

impl TableError {
    /// Where one row is at fault and the rows after it can still be told apart: why, and its line.
    pub(super) fn reason(&self) -> Option<(String, Place)> {
        let why = self.fault.why?.words();
        match &self.spot {
            Spot::Row(place) => Some((why.to_owned(), *place)),
            Spot::Cell(place, column) => Some((format!("{why} in {column:?}"), *place)),
            _ => None,
        }
    }

    /// Where the first row is that cannot be used: file, and line or row.
    pub fn place(&self) -> Option<String> {
        match &self.spot {
            Spot::Row(place) | Spot::Cell(place, _) if self.fault.rows.is_some() || self.fault.why.is_some() => {
                Some(format!("{}, {place}", self.file))
            }
            _ => None,
        }
    }

    /// Which rows cannot be used, and why; none where it is not single rows that are at fault.
    pub fn reasons(&self) -> Reasons {
        self.fault.rows.clone().unwrap_or_else(|| {
            let mut all = Reasons::default();
            self.reason().map(|(why, place)| all.note(&why, None, place));
            all
        })
    }

    /// What to do next.
    pub fn advice(&self) -> String {
        self.fault.next.clone().into_owned()
    }
}

impl From<TableError> for crate::error::Failure {
    fn from(e: TableError) -> Self {
        let advice = e.advice();
        crate::error::Failure::input(e, advice)
    }
}
