//! What can be wrong with a table: file, line and column, and never what a cell holds.

use std::{fmt, io};

use crate::cost::counted;

use super::limits::{MAX_CELL, MAX_COLUMNS, MAX_ROW, MAX_VALUES};

/// Why rows cannot be used: how many for each reason, and on which lines the first of them are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(Vec<(String, u64, Vec<u64>)>);

impl Reasons {
    /// Reasons that are listed; columns are up to thousands.
    const LISTED: usize = 12;
    /// Lines that are listed of each.
    const LINES: usize = 3;

    /// One more row, which begins on this line where the table has lines.
    pub fn note(&mut self, why: String, line: Option<u64>) {
        let at = self.0.iter().position(|(known, ..)| *known == why).unwrap_or_else(|| {
            self.0.push((why, 0, Vec::new()));
            self.0.len() - 1
        });
        let (_, rows, lines) = &mut self.0[at];
        *rows += 1;
        lines.extend(line.filter(|_| lines.len() < Self::LINES));
    }

    /// Each reason with its rows and the first lines.
    pub fn each(&self) -> impl Iterator<Item = (&str, u64, &[u64])> {
        self.0.iter().map(|(why, rows, lines)| (why.as_str(), *rows, lines.as_slice()))
    }

    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.0.iter().map(|(_, rows, _)| rows).sum()
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self.0.iter().take(Self::LISTED).map(|(why, rows, lines)| {
            let of: Vec<String> = lines.iter().map(u64::to_string).collect();
            let more = if *rows > lines.len() as u64 { ", …" } else { "" };
            match &of[..] {
                [] => format!("{rows} with {why}"),
                [one] if more.is_empty() => format!("{rows} with {why} (line {one})"),
                _ => format!("{rows} with {why} (lines {}{more})", of.join(", ")),
            }
        });
        f.write_str(&listed.collect::<Vec<_>>().join("; "))?;
        let others: u64 = self.0.iter().skip(Self::LISTED).map(|(_, rows, _)| rows).sum();
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
    #[error("{file}, line {line}: this looks like a header, and the file must hold numbers only")]
    UnwantedHeader {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
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
    #[error("{file}, line {line}: {} where {expected} belong", counted(*got, "cell"))]
    Ragged {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// Cells of the row.
        got: usize,
        /// Cells that it should have.
        expected: usize,
    },
    /// A cell without a value.
    #[error("{file}, line {line}, column {column:?}: the value is missing")]
    EmptyCell {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
    },
    /// A cell that is no number.
    #[error("{file}, line {line}, column {column:?}: this is no number")]
    NotANumber {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// What to do.
        hint: &'static str,
    },
    /// A cell that is none of the categories of its column.
    #[error("{file}, line {line}, column {column:?}: the value is none of the column's categories")]
    UnknownCategory {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The categories that are listed.
        known: String,
    },
    /// A cell that is not a finite number.
    #[error("{file}, line {line}, column {column:?}: the value is NaN, infinite or too large for a 64-bit number")]
    NotFinite {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
    },
    /// A number outside the range that the schema gives its column.
    #[error("{file}, line {line}, column {column:?}: outside the schema's range, {low} to {high}")]
    OutsideRange {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The range's lower end.
        low: f64,
        /// Its upper end.
        high: f64,
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
    #[error("{file}, line {line}: the text is not UTF-8")]
    NotUtf8 {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// More than one row that cannot be used.
    #[error("{first}; in all {rows} rows cannot be used: {reasons}")]
    Rows {
        /// What is wrong with the first of them.
        first: Box<TableError>,
        /// How many they are.
        rows: u64,
        /// How many for each reason, with the first lines.
        reasons: Reasons,
    },
    /// More columns than we read.
    #[error("{file}, line {line}: more than {MAX_COLUMNS} columns")]
    TooManyColumns {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// A longer cell than we read.
    #[error("{file}, line {line}: column {position} holds more than {MAX_CELL} bytes")]
    CellTooLong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// Which column, from 1.
        position: usize,
    },
    /// A longer row than we read.
    #[error("{file}, line {line}: the row is longer than {MAX_ROW} bytes")]
    RowTooLong {
        /// The file.
        file: String,
        /// The line on which the row begins, from 1.
        line: u64,
    },
    /// More numbers than we hold.
    #[error("{file}, line {line}: more than {MAX_VALUES} numbers")]
    TooLarge {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
}

impl TableError {
    /// Where one row is at fault and the rows after it can still be told apart: why, and its line.
    pub(super) fn of_row(&self) -> Option<(String, u64)> {
        Some(match self {
            Self::Ragged { line, .. } => ("other cells than the header has".into(), *line),
            Self::EmptyCell { line, column, .. } => (format!("no value in {column:?}"), *line),
            Self::NotANumber { line, column, .. } => (format!("no number in {column:?}"), *line),
            Self::UnknownCategory { line, column, .. } => (format!("another category in {column:?}"), *line),
            Self::OutsideRange { line, column, .. } => (format!("a value outside its range in {column:?}"), *line),
            Self::NotFinite { line, column, .. } => (format!("NaN, infinite or too large in {column:?}"), *line),
            Self::NotUtf8 { line, .. } => ("not UTF-8".into(), *line),
            _ => return None,
        })
    }

    /// Which rows cannot be used, and why; none where it is not single rows that are at fault.
    pub fn reasons(&self) -> Reasons {
        let mut all = Reasons::default();
        match self {
            Self::Rows { reasons, .. } => return reasons.clone(),
            _ => self.of_row().map(|(why, line)| all.note(why, Some(line))),
        };
        all
    }

    /// What to do next.
    pub fn advice(&self) -> String {
        match self {
            Self::Open { source, .. } => open_hint(source).into(),
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
            Self::OutsideRange { .. } => "correct the row, or agree on a schema with a wider range".into(),
            Self::AllLeftOut { .. } => "look at the columns that are empty: `veilsum schema check` names them".into(),
            Self::TwiceNamed { .. } => "leave one of them out of the file".into(),
            Self::NotFinite { .. } => "remove such rows or correct them".into(),
            Self::NotUtf8 { .. } => "save the file as \"CSV UTF-8\", or convert it with iconv".into(),
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
