//! Tables of numbers from where they live, and back: a site's rows, starting centres, memberships.
//!
//! Rows come from files, and of each from a [`RowReader`]. A new form of file is a file and a line in `input.rs`.
//!
//! Cells are private. An error names the file, the line and the column and what to do, and never what a cell holds;
//! neither does `Debug`. A header is shown, so a first line that holds numbers is refused before anything quotes it: it
//! is a row of data in a file without a header.
//!
//! Files are read as a stream, and what a hostile one can make us hold is limited by [`MAX_COLUMNS`], [`MAX_CELL`],
//! [`MAX_ROW`] and [`MAX_VALUES`].

use std::path::Path;

mod advice;
#[cfg(feature = "columnar")]
mod arrow;
mod cell;
#[cfg(feature = "columnar")]
mod columnar;
#[cfg(feature = "columnar")]
mod columns;
mod csv;
mod dialect;
mod error;
mod files;
#[cfg(feature = "columnar")]
mod footer;
mod given;
mod gzip;
mod halt;
mod input;
mod known;
mod layout;
mod limits;
#[cfg(feature = "columnar")]
mod parquet;
mod person;
mod print;
mod records;
mod row;
mod rules;
mod signs;
mod source;
pub mod spelling;
mod tally;
#[cfg(feature = "columnar")]
pub mod types;
mod wanted;

pub use cell::Cell;
pub use csv::{read_csv_from, read_matrix, read_matrix_from};
pub use dialect::{Decimal, Delimiter, Dialect};
use error::Result;
pub use error::{Fault, Place, Reasons, Spot, TableError};
pub use files::{files_of, open, would_be_of};
pub use given::read_given;
pub use halt::Halt;
pub use limits::{MAX_CELL, MAX_COLUMNS, MAX_FILES, MAX_LISTED, MAX_ROW, MAX_VALUES};
use person::Counting;
pub use person::PersonKey;
pub use row::{Row, take};
pub use rules::{Filter, Meaning, Missing, RowRules, Unit, nearest};
use source::Batches;
pub(crate) use source::csv_of;
pub use source::{About, RowReader, Table};
use spelling::normal;

/// The names of all columns of a table, of which `asked` are those that somebody asks for.
///
/// # Errors
/// A [`TableError`] that names the table; also where its first line may be a row, because it has numbers and not all that is asked for.
pub fn read_header<'a>(
    name: impl AsRef<Path>,
    dialect: Dialect,
    asked: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>> {
    let source = open(name.as_ref(), dialect)?;
    let About { name, columns, numbered, .. } = source.about();
    let mut asked = asked.into_iter().map(|name| columns.iter().any(|column| *column == normal(name)));
    let is_header = asked.next() == Some(true) && asked.all(|there| there);
    numbered.filter(|_| !is_header).map_or(Ok(columns.clone()), |at| Err(csv::headed_by_a_number(name, at)))
}

/// Opens a table to read the chosen columns; where rows of persons are cut, after a pass that finds those that count.
fn batches(name: &Path, spec: &TableSpec) -> Result<Batches<'static>> {
    Batches::of(open(name, spec.dialect())?, spec, &counting(name, spec)?)
}

/// The rows of a table that count, where rows of persons are cut.
fn counting(name: &Path, spec: &TableSpec) -> Result<Counting> {
    match spec.person_key {
        None => Ok(Counting::new()),
        Some(_) => Batches::find(open(name, spec.dialect())?, spec),
    }
}

/// Reads the chosen columns of a table.
///
/// # Errors
/// A [`TableError`] that names table, line and column.
pub fn read(name: impl AsRef<Path>, spec: &TableSpec) -> Result<Table> {
    source::all_of(batches(name.as_ref(), spec)?)
}

/// Looks at every row of a table: what was read, and what is wrong with rows that cannot be used.
///
/// # Errors
/// As [`read`], but for single rows.
pub fn look(name: impl AsRef<Path>, spec: &TableSpec) -> Result<(Tally, Option<TableError>)> {
    let mut batches = batches(name.as_ref(), spec)?;
    match batches.all() {
        Ok(()) => Ok((batches.table.tally(), None)),
        Err(fault) if fault.reasons().rows() > 0 => Ok((batches.table.tally(), Some(fault))),
        Err(fault) => Err(fault),
    }
}

pub use tally::Tally;
pub use wanted::{Names, Numbers, TableSpec, Unusable, Use, Wanted, known_as};

#[cfg(test)]
mod tests;
