//! Tables of numbers from where they live, and back: a site's rows, starting centres, memberships.
//!
//! Rows come from a [`RowSource`]. A new one is a file beside `csv.rs` and a line in `sources`.
//!
//! Cells are private. An error names the file, the line and the column and what to do, and never what a cell holds;
//! neither does `Debug`. A header is shown, so a first line that holds numbers is refused before anything quotes it: it
//! is a row of data in a file without a header.
//!
//! Files are read as a stream, and what a hostile one can make us hold is limited by [`MAX_COLUMNS`], [`MAX_CELL`],
//! [`MAX_ROW`] and [`MAX_VALUES`].

use std::path::Path;

mod csv;
mod error;
mod limits;
mod source;

pub use csv::{read_csv_from, read_matrix, read_matrix_from, write_csv, write_numbers};
pub use error::{Reasons, TableError};
pub use limits::{MAX_CELL, MAX_COLUMNS, MAX_ROW, MAX_VALUES};
use source::read_all;
pub use source::{LeftOut, RowReader, RowSource, Table, TableSpec, Wanted};

/// The kinds of sources of this build; the first that knows a name reads it. Files of text know every name.
fn sources() -> [&'static dyn RowSource; 1] {
    [&csv::Csv]
}

fn open(name: &Path) -> Result<Box<dyn RowReader>, TableError> {
    let known = sources().into_iter().find(|source| source.knows(name));
    known.unwrap_or(&csv::Csv).open(name)
}

/// The names of all columns of a table.
///
/// # Errors
/// A [`TableError`] that names the table.
pub fn read_header(name: impl AsRef<Path>) -> Result<Vec<String>, TableError> {
    Ok(open(name.as_ref())?.columns().to_vec())
}

/// Where row `row` (counted from 0) of a table is, for an error: the table and the line.
pub fn place_of(name: impl AsRef<Path>, row: usize) -> String {
    let name = name.as_ref();
    match open(name).ok().and_then(|mut table| table.line_of(row)) {
        Some(line) => format!("{}, line {line}", name.display()),
        // It has no lines, was changed, or is a pipe that has been read.
        None => format!("{}, row {} of the table", name.display(), row + 1),
    }
}

/// The lines of these rows (counted from 0, in rising order) of a table, as far as it has lines.
pub fn lines_of(name: impl AsRef<Path>, rows: &[usize]) -> Vec<Option<u64>> {
    let mut table = open(name.as_ref()).ok();
    let mut read = 0;
    let mut line = |row: usize| {
        let line = table.as_mut()?.line_of(row - read);
        read = row + 1;
        line
    };
    rows.iter().map(|row| line(*row)).collect()
}

/// Reads the chosen columns of a table.
///
/// # Errors
/// A [`TableError`] that names table, line and column.
pub fn read(name: impl AsRef<Path>, spec: &TableSpec) -> Result<Table, TableError> {
    read_all(&mut *open(name.as_ref())?, spec)
}

#[cfg(test)]
mod tests;
