//! Rows that a program hands over in memory: numbers alone, as they are to be answered from.

use super::{
    About, Batches, Cell, Fault, Place, Result, Row, RowReader, Table, TableSpec, Wanted, source::all_of, take,
};

/// What errors call them.
const NAME: &str = "the rows that were handed over";

/// Numbers row by row, n x d.
struct Given<'a> {
    about: About,
    values: &'a [f64],
}

struct Numbers<'a>(&'a [f64]);

impl Row for Numbers<'_> {
    fn cell(&self, at: usize) -> Cell<'_> {
        Cell::Number(self.0[at])
    }
}

impl RowReader for Given<'_> {
    fn about(&self) -> &About {
        &self.about
    }

    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool> {
        let columns = &self.about.columns;
        for (row, at) in self.values.chunks_exact(columns.len()).zip(1..) {
            take((NAME, Place::Row(at)), columns, &Numbers(row), wanted, table)?;
        }
        self.values = &[];
        Ok(false)
    }
}

/// Reads numbers (n x d, of the columns that `spec` names, in this order) as a file's are read.
///
/// # Errors
/// A `TableError` that names the row, counted from 1.
pub fn read_given(values: &[f64], spec: &TableSpec) -> Result<Table> {
    let columns = &spec.columns[..];
    if columns.is_empty() || !values.len().is_multiple_of(columns.len()) {
        let what = format!("{} numbers are no rows of {} columns", values.len(), columns.len());
        return Err(Fault::said(what, "hand over n x d numbers, in the plan's columns").of(NAME));
    }
    let about = About { name: NAME.to_owned(), columns: columns.to_vec(), ..About::default() };
    all_of(Batches::new(Box::new(Given { about, values }), spec)?)
}
