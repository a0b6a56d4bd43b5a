//! What can be wrong with a table: file, line and column, and never what a cell holds.

use std::{fmt, io};

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::{cost::counted, error::OUTSIDE_BOX};

use super::limits::{MAX_CELL, MAX_COLUMNS, MAX_ROW, MAX_VALUES};

/// Where a row is in its file: on a line of text, or the how manieth row it is. Both are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The line on which it begins.
    Line(u64),
    /// Its number, where a file has no lines.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Row(row) => write!(f, "row {row}"),
        }
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
    const LINES: usize = 3;

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

fn placed((file, place): &(Option<String>, Place)) -> String {
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
            let number = |place: &Place| match place {
                Place::Line(n) | Place::Row(n) => n.to_string(),
            };
            let more = if *rows > first.len() as u64 { ", …" } else { "" };
            let several = first.iter().any(|(file, _)| file.is_some());
            match &first[..] {
                [] => format!("{rows} with {why}"),
                [one] if more.is_empty() => format!("{rows} with {why} ({})", placed(one)),
                all if several => {
                    let all: Vec<String> = all.iter().map(placed).collect();
                    format!("{rows} with {why} ({}{more})", all.join(", "))
                }
                all => {
                    let what = if matches!(all[0].1, Place::Line(_)) { "lines" } else { "rows" };
                    let all: Vec<String> = all.iter().map(|(_, place)| number(place)).collect();
                    format!("{rows} with {why} ({what} {}{more})", all.join(", "))
                }
            }
        });
        f.write_str(&listed.collect::<Vec<_>>().join("; "))?;
        let others: u64 = self.0.iter().skip(Self::LISTED).map(|reason| reason.rows).sum();
        if others > 0 { write!(f, "; {others} for other reasons") } else { Ok(()) }
    }
}

/// What is wrong with a table. [`TableError::advice`] says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file can't be opened.
    #[error("{file}: cannot be opened ({source})")]
    Open {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file can't be read to its end.
    #[error("{file}: cannot be read ({source})")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// Results can't be written.
    #[error("cannot write the table ({source})")]
    Write {
        /// What the system said.
        source: io::Error,
    },
    /// A row to be written is not as long as its header.
    #[error("cannot write the table: a row has {got} cells under {expected} column names")]
    WriteRagged {
        /// Cells of the row.
        got: usize,
        /// Names in the header.
        expected: usize,
    },
    /// Nothing is in the file.
    #[error("{file}: the file is empty")]
    Empty {
        /// The file.
        file: String,
    },
    /// A header and nothing else.
    #[error("{file}: no rows follow the header")]
    NoRows {
        /// The file.
        file: String,
    },
    /// The first line has numbers where names belong.
    #[error("{file}, header: column {position} is headed by a number, so the first line looks like data")]
    NoHeader {
        /// The file.
        file: String,
        /// Which column, from 1.
        position: usize,
    },
    /// The first line has names where numbers belong.
    #[error("{file}, {line}: this looks like a header, and the file must hold numbers only")]
    UnwantedHeader {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
    },
    /// A column without a name.
    #[error("{file}, header: column {position} has no name")]
    UnnamedColumn {
        /// The file.
        file: String,
        /// Which column, from 1.
        position: usize,
    },
    /// Two columns have one name.
    #[error("{file}, header: two columns are called {column:?}")]
    DuplicateColumn {
        /// The file.
        file: String,
        /// The name.
        column: String,
    },
    /// A wanted column is not there.
    #[error("{file}: no column is called {column:?}")]
    UnknownColumn {
        /// The file.
        file: String,
        /// The wanted name.
        column: String,
        /// The names that the file has.
        known: String,
    },
    /// The specification names a column twice.
    #[error("{file}: the column {column:?} is asked for twice")]
    ChosenTwice {
        /// The file.
        file: String,
        /// The name.
        column: String,
    },
    /// Nothing is left to be clustered.
    #[error("{file}: there is no column beside the label")]
    NoColumns {
        /// The file.
        file: String,
    },
    /// A row with more or fewer cells than the header.
    #[error("{file}, {line}: {} where {expected} belong", counted(*got, "cell"))]
    Ragged {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// Cells of the row.
        got: usize,
        /// Cells that it should have.
        expected: usize,
    },
    /// A cell without a value.
    #[error("{file}, {line}, column {column:?}: the value is missing")]
    EmptyCell {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// The column.
        column: String,
    },
    /// A cell that is no number.
    #[error("{file}, {line}, column {column:?}: this is not a number")]
    NotANumber {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// The column.
        column: String,
        /// What to do.
        hint: &'static str,
    },
    /// A cell that is none of the categories of its column.
    #[error("{file}, {line}, column {column:?}: the value is none of the column's categories")]
    UnknownCategory {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// The column.
        column: String,
        /// The categories that are listed.
        known: String,
    },
    /// A cell that is not a finite number.
    #[error("{file}, {line}, column {column:?}: the value is NaN, infinite or too large for a 64-bit number")]
    NotFinite {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// The column.
        column: String,
    },
    /// A number outside the range that the schema gives its column.
    #[error("{file}, {line}, column {column:?}: outside the schema's range, {low} to {high}")]
    OutsideRange {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// The column.
        column: String,
        /// The range's lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
    /// A number outside the plan's public box.
    #[error("{file}, {line}, column {column:?}: outside the plan's public box")]
    OutsideBox {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// The column.
        column: String,
    },
    /// A label that the plan does not list.
    #[error("{file}, {line}: its label is not among those of the plan")]
    UnknownLabel {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// The label's column.
        column: String,
    },
    /// A column of a type that is no number and no name.
    #[error("{file}: the column {column:?} is of the type {kind}, {why}")]
    WrongType {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// Its type, as the file says it.
        kind: String,
        /// Why it cannot be read.
        why: &'static str,
        /// What to do.
        next: &'static str,
    },
    /// A file that does not hold what it says of itself.
    #[error("{file}: the file is damaged or was cut short: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// What does not fit.
        what: String,
    },
    /// A file of a form that cannot be read from where it is.
    #[error("{file}: {what}")]
    Form {
        /// The file.
        file: String,
        /// What cannot be read.
        what: &'static str,
        /// What to do.
        next: &'static str,
    },
    /// A folder or pattern without files.
    #[error("{file}: there is no file of rows here")]
    NoFiles {
        /// The folder or the pattern.
        file: String,
    },
    /// A file of a source that has other columns than its first.
    #[error("{file}: its columns are others than those of {first}")]
    OtherColumns {
        /// The file that differs.
        file: String,
        /// The first file of the source.
        first: String,
        /// Its columns.
        known: String,
    },
    /// What `site.toml` says of the rows does not fit to them.
    #[error("{file}: {what}")]
    Rule {
        /// The file of rows.
        file: String,
        /// What does not fit.
        what: String,
        /// What to do.
        next: String,
    },
    /// No row is left by the filter.
    #[error("{file}: the filter of site.toml leaves no row")]
    AllFiltered {
        /// The file.
        file: String,
    },
    /// Every row lacks a value of the schema's columns.
    #[error("{file}: every row lacks a value in a column of the schema, which leaves such rows out")]
    AllLeftOut {
        /// The file.
        file: String,
    },
    /// One column of the schema stands in a file under two names.
    #[error("{file}: two columns are both {column:?} by the schema (also_called)")]
    TwiceNamed {
        /// The file.
        file: String,
        /// The schema's name of both.
        column: String,
    },
    /// A cell in another encoding.
    #[error("{file}, {line}: the text is not UTF-8")]
    NotUtf8 {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
    },
    /// More than one row that cannot be used.
    #[error("{first}; in all {rows} rows cannot be used: {reasons}")]
    Rows {
        /// What is wrong with the first of them.
        first: Box<TableError>,
        /// How many they are.
        rows: u64,
        /// How many for each reason, with the first places.
        reasons: Reasons,
        /// The file that lists every one of them.
        list: Option<String>,
    },
    /// More columns than we read.
    #[error("{file}, {line}: more than {MAX_COLUMNS} columns")]
    TooManyColumns {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
    },
    /// A longer cell than we read.
    #[error("{file}, {line}: column {position} holds more than {MAX_CELL} bytes")]
    CellTooLong {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
        /// Which column, from 1.
        position: usize,
    },
    /// A longer row than we read.
    #[error("{file}, {line}: the row is longer than {MAX_ROW} bytes")]
    RowTooLong {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
    },
    /// More numbers than we hold.
    #[error("{file}, {line}: more than {MAX_VALUES} numbers")]
    TooLarge {
        /// The file.
        file: String,
        /// Where the row is.
        line: Place,
    },
}

impl TableError {
    /// Where one row is at fault and the rows after it can still be told apart: why, and its line.
    pub(super) fn of_row(&self) -> Option<(String, Place)> {
        Some(match self {
            Self::Ragged { line, .. } => ("other cells than the header has".into(), *line),
            Self::EmptyCell { line, column, .. } => (format!("no value in {column:?}"), *line),
            Self::NotANumber { line, column, .. } => (format!("no number in {column:?}"), *line),
            Self::UnknownCategory { line, column, .. } => (format!("another category in {column:?}"), *line),
            Self::OutsideRange { line, column, .. } => (format!("a value outside its range in {column:?}"), *line),
            Self::OutsideBox { line, column, .. } => {
                (format!("a value outside the plan's public box in {column:?}"), *line)
            }
            Self::UnknownLabel { line, column, .. } => {
                (format!("a label that the plan does not list in {column:?}"), *line)
            }
            Self::NotFinite { line, column, .. } => (format!("NaN, infinite or too large in {column:?}"), *line),
            Self::NotUtf8 { line, .. } => ("not UTF-8".into(), *line),
            _ => return None,
        })
    }

    /// Where the first row is that cannot be used: file, and line or row.
    pub fn place(&self) -> Option<String> {
        let first = match self {
            Self::Rows { first, .. } => first,
            other => other,
        };
        let (_, place) = first.of_row()?;
        let file = first.to_string();
        file.split_once(&format!(", {place}")).map(|(file, _)| format!("{file}, {place}"))
    }

    /// Which rows cannot be used, and why; none where it is not single rows that are at fault.
    pub fn reasons(&self) -> Reasons {
        let mut all = Reasons::default();
        match self {
            Self::Rows { reasons, .. } => return reasons.clone(),
            _ => self.of_row().map(|(why, place)| all.note(&why, None, place)),
        };
        all
    }

    /// What to do next.
    pub fn advice(&self) -> String {
        match self {
            Self::Open { source, .. } => open_hint(source).into(),
            Self::Read { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => {
                "it was cut short: export or copy the file again".into()
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                "a pipe is held in memory, 1 GiB of it at most: write the rows to a file".into()
            }
            Self::Read { .. } => "check that it is a regular file on a healthy disk".into(),
            Self::Write { .. } => "check the free space and the folder's permissions".into(),
            Self::WriteRagged { .. } => String::new(),
            Self::Empty { .. } => "it needs a header line and rows".into(),
            Self::NoRows { .. } => "check that the export went through".into(),
            Self::NoHeader { .. } => "add a header line with a name for every column (a column that is really called by a number needs a letter in its name)".into(),
            Self::UnwantedHeader { .. } => "remove that line".into(),
            Self::UnnamedColumn { .. } => "give it one (some exports put row numbers into an unnamed first column: name it, and leave it out of the chosen columns)".into(),
            Self::DuplicateColumn { .. } => "rename one".into(),
            Self::UnknownColumn { known, .. } => format!("the file has {known}"),
            Self::ChosenTwice { .. } => "name every column once, and the label not among them".into(),
            Self::NoColumns { .. } => "add at least one numeric column".into(),
            Self::Ragged { .. } => "look for a missing or an extra delimiter, or a quotation mark without its partner".into(),
            Self::EmptyCell { .. } => "remove such rows, or fill them in before clustering".into(),
            Self::NotANumber { hint, .. } => (*hint).into(),
            Self::UnknownCategory { known, .. } => format!("correct the row, or agree on a plan that lists its category: this one has {known}"),
            Self::OutsideBox { .. } => OUTSIDE_BOX.into(),
            Self::UnknownLabel { .. } => "correct the row, or agree on a plan that lists its label".into(),
            Self::WrongType { next, .. } => (*next).into(),
            Self::Damaged { .. } => "export or copy the file again".into(),
            Self::Form { next, .. } => (*next).into(),
            Self::NoFiles { .. } => {
                "check the path; files whose names begin with \"_\" or \".\" are not looked at".into()
            }
            Self::OtherColumns { known, .. } => {
                format!("give every file of the source the same columns in the same order: {known}")
            }
            Self::Rule { next, .. } => next.clone(),
            Self::AllFiltered { .. } => "look at `filter` in site.toml: it names columns and values as the file has them".into(),
            Self::OutsideRange { .. } => "correct the row, or agree on a schema with a wider range".into(),
            Self::AllLeftOut { .. } => "look at the columns that are empty: `veilsum check` names them".into(),
            Self::TwiceNamed { .. } => "leave one of them out of the file".into(),
            Self::NotFinite { .. } => "remove such rows or correct them".into(),
            Self::NotUtf8 { .. } => "save the file as \"CSV UTF-8\", or convert it with iconv".into(),
            Self::Rows { first, list: Some(list), .. } => format!("{}; {list} lists them all", first.advice()),
            Self::Rows { first, .. } => first.advice(),
            Self::TooManyColumns { .. } => "keep the ones that are to be clustered".into(),
            Self::CellTooLong { .. } => "look for a quotation mark without its partner, or drop that column".into(),
            Self::RowTooLong { .. } => "look for a quotation mark without its partner, and check that this is a CSV file".into(),
            Self::TooLarge { .. } => "choose fewer columns, or cluster a sample of rows".into(),
        }
    }
}

fn open_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the path: it is taken relative to the folder you are in",
        io::ErrorKind::PermissionDenied => "give the user that runs this permission to read it",
        _ => "check the path and the disk",
    }
}

impl From<TableError> for crate::error::Failure {
    fn from(e: TableError) -> Self {
        let advice = e.advice();
        crate::error::Failure::input(e, advice)
    }
}
