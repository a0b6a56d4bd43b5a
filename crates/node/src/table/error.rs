//! What can be wrong with a table: file, line and column, and never what a cell holds.

use std::{borrow::Cow, fmt, io};

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::{cost::counted, error::OUTSIDE_BOX};

use super::{MAX_CELL, MAX_COLUMNS, MAX_ROW, MAX_VALUES};

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
#[derive(Debug, thiserror::Error)]
#[error("{file}{spot}: {fault}")]
pub struct TableError {
    /// The file.
    pub file: String,
    /// Where in it.
    pub spot: Spot,
    /// What is wrong there.
    pub fault: Fault,
}

/// What reading a table comes to.
pub(super) type Result<T, E = TableError> = std::result::Result<T, E>;

/// What is wrong with a table, with a row or with a cell. None holds what stands in a cell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Of the whole table or its header: what it is, and what to do.
    #[error("{0}")]
    Said(Cow<'static, str>, Cow<'static, str>),
    /// The file can't be opened.
    #[error("cannot be opened ({0})")]
    Open(io::Error),
    /// The file can't be read to its end.
    #[error("cannot be read ({0})")]
    Read(io::Error),
    /// Of a row by itself: what is wrong with it, and what to do.
    #[error("{0}")]
    Row(&'static str, &'static str),
    /// A row with more or fewer cells than the header.
    #[error("{} where {expected} belong", counted(*got, "cell"))]
    Ragged {
        /// Cells of the row.
        got: usize,
        /// Cells that it should have.
        expected: usize,
    },
    /// A cell without a value.
    #[error("the value is missing")]
    EmptyCell,
    /// A cell that is no number, and what to do.
    #[error("this is not a number")]
    NotANumber(&'static str),
    /// A cell that is none of the categories of its column, which are these.
    #[error("the value is none of the column's categories")]
    UnknownCategory(String),
    /// A cell that is not a finite number.
    #[error("the value is NaN, infinite or too large for a 64-bit number")]
    NotFinite,
    /// A number outside the plan's public box.
    #[error("outside the plan's public box")]
    OutsideBox,
    /// A file that does not hold what it says of itself: what does not fit.
    #[error("the file is damaged or was cut short: {0}")]
    Damaged(&'static str),
    /// A text in another encoding.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// More than one row that cannot be used; this error stands where the first of them is.
    #[error("{first}; in all {} rows cannot be used: {reasons}", reasons.rows())]
    Rows {
        /// What is wrong with the first of them.
        first: Box<Fault>,
        /// How many for each reason, with the first places.
        reasons: Reasons,
        /// The file that lists every one of them.
        list: Option<String>,
    },
    /// More columns than we read.
    #[error("more than {MAX_COLUMNS} columns")]
    TooManyColumns,
    /// A longer cell than we read, in this column, from 1.
    #[error("column {0} holds more than {MAX_CELL} bytes")]
    CellTooLong(usize),
    /// A longer row than we read.
    #[error("the row is longer than {MAX_ROW} bytes")]
    RowTooLong,
    /// More numbers than we hold.
    #[error("more than {MAX_VALUES} numbers")]
    TooLarge,
}

/// What to do about NaN and infinity.
const NOT_FINITE: &str = "remove such rows or correct them; if this stands for a missing value, name it in missing_marks under [rows] in site.toml";

impl Fault {
    /// What is wrong with a table, and what to do.
    pub(super) fn said(what: impl Into<Cow<'static, str>>, next: impl Into<Cow<'static, str>>) -> Fault {
        Fault::Said(what.into(), next.into())
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
        TableError { file: file.to_owned(), spot, fault: self }
    }

    /// What to do next.
    fn advice(&self) -> String {
        let next: &str = match self {
            Self::Open(source) => match source.kind() {
                io::ErrorKind::NotFound => "check the path: it is taken relative to the folder you are in",
                io::ErrorKind::PermissionDenied => "give the user that runs this permission to read it",
                _ => "check the path and the disk",
            },
            Self::Read(source) => match source.kind() {
                io::ErrorKind::UnexpectedEof => "it was cut short: export or copy the file again",
                io::ErrorKind::FileTooLarge => {
                    "a pipe is held in memory, 1 GiB of it at most: write the rows to a file"
                }
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                    "what is packed in it is damaged: export or copy the file again"
                }
                _ => "check that it is a regular file on a healthy disk",
            },
            Self::Ragged { .. } => {
                "look for a missing or an extra separator, also at the end of the line, or a quotation mark without its partner"
            }
            Self::EmptyCell => {
                "remove such rows, or fill them in before clustering; or leave them out: missing = \"leave-out\" under [rows] in site.toml"
            }
            Self::Said(_, next) => next,
            Self::Row(_, next) | Self::NotANumber(next) => next,
            Self::UnknownCategory(known) => {
                return format!(
                    "correct the row; or say in [rows.values] of site.toml which category it is; or agree on a plan that lists it: this one has \
                     {known}"
                );
            }
            Self::OutsideBox => OUTSIDE_BOX,
            Self::Damaged(_) => "export or copy the file again",
            Self::NotFinite => NOT_FINITE,
            Self::NotUtf8 => "save the file as \"CSV UTF-8\", or convert it with iconv",
            Self::Rows { first, list: Some(list), .. } => return format!("{}; {list} lists them all", first.advice()),
            Self::Rows { first, .. } => return first.advice(),
            Self::TooManyColumns => "keep the ones that are to be clustered",
            Self::CellTooLong(_) => "look for a quotation mark without its partner, or drop that column",
            Self::RowTooLong => "look for a quotation mark without its partner, and check that this is a CSV file",
            Self::TooLarge => "choose fewer columns, or cluster a sample of rows",
        };
        next.to_owned()
    }
}

impl TableError {
    /// Where one row is at fault and the rows after it can still be told apart: why, and its line.
    pub(super) fn reason(&self) -> Option<(String, Place)> {
        Some(match (&self.spot, &self.fault) {
            (Spot::Row(place), Fault::Ragged { .. }) => ("other cells than the header has".into(), *place),
            (Spot::Row(place), Fault::Row(what, _)) => ((*what).into(), *place),
            (Spot::Row(place), Fault::NotUtf8) => ("not UTF-8".into(), *place),
            (Spot::Cell(place, column), fault) => {
                let what = match fault {
                    Fault::EmptyCell => "no value",
                    Fault::NotANumber(_) => "no number",
                    Fault::UnknownCategory(_) => "another category",
                    Fault::OutsideBox => "a value outside the plan's public box",
                    Fault::NotFinite => "NaN, infinite or too large",
                    _ => return None,
                };
                (format!("{what} in {column:?}"), *place)
            }
            _ => return None,
        })
    }

    /// Where the first row is that cannot be used: file, and line or row.
    pub fn place(&self) -> Option<String> {
        match (&self.spot, &self.fault) {
            (Spot::Row(place) | Spot::Cell(place, _), Fault::Rows { .. }) => Some(format!("{}, {place}", self.file)),
            _ => self.reason().map(|(_, place)| format!("{}, {place}", self.file)),
        }
    }

    /// Which rows cannot be used, and why; none where it is not single rows that are at fault.
    pub fn reasons(&self) -> Reasons {
        if let Fault::Rows { reasons, .. } = &self.fault {
            return reasons.clone();
        }
        let mut all = Reasons::default();
        self.reason().map(|(why, place)| all.note(&why, None, place));
        all
    }

    /// What to do next.
    pub fn advice(&self) -> String {
        self.fault.advice()
    }
}

impl From<TableError> for crate::error::Failure {
    fn from(e: TableError) -> Self {
        let advice = e.advice();
        crate::error::Failure::input(e, advice)
    }
}
