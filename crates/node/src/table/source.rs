//! Where rows come from, and what is taken of them.

use std::{fmt, path::Path};

use super::{error::TableError, limits::MAX_VALUES};
use crate::plan::Categorical;

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

    /// Appends the wanted cells of the next rows to `table`, through `Table::begin_row`; false where none is left.
    ///
    /// # Errors
    /// As [`RowSource::open`].
    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool, TableError>;

    /// Of a file of text, the line on which row `row` begins, counted from 0 among the rows that were not read yet. Blank lines
    /// and cells over several lines make that another number than the row's.
    fn line_of(&mut self, _row: usize) -> Option<u64> {
        None
    }
}

pub(super) fn read_all(source: &mut dyn RowReader, spec: &TableSpec) -> Result<Table, TableError> {
    let (file, known) = (source.name().to_owned(), source.columns());
    let wanted = choose(&file, known, spec)?;
    let mut table = Table {
        columns: wanted
            .columns
            .iter()
            .map(|&at| known[at].clone())
            .chain(spec.categorical.iter().flat_map(Categorical::indicators))
            .collect(),
        values: Vec::new(),
        rows: 0,
        labels: wanted.label.map(|_| Vec::new()),
    };
    while source.read(&wanted, &mut table)? {}
    if table.rows == 0 {
        return Err(TableError::NoRows { file });
    }
    Ok(table)
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
}

/// Numeric rows with named columns.
#[derive(Clone, PartialEq)]
pub struct Table {
    /// Names of the numeric columns and of the indicators behind them.
    pub columns: Vec<String>,
    /// Row after row, each as long as `columns`.
    pub values: Vec<f64>,
    /// How many rows.
    pub rows: usize,
    /// One label a row, where the specification names a label.
    pub labels: Option<Vec<String>>,
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
    pub(super) fn begin_row(&mut self, file: &str, line: u64) -> Result<(), TableError> {
        if self.values.len() > MAX_VALUES - self.columns.len() {
            return Err(TableError::TooLarge { file: file.to_owned(), line });
        }
        self.rows += 1;
        Ok(())
    }
}

/// Where the wanted columns stand in a table.
pub struct Wanted {
    /// The numeric ones, in the order wanted.
    pub columns: Vec<usize>,
    /// Those of categories, in the order wanted, each with its list.
    pub categorical: Vec<(usize, Vec<String>)>,
    /// The label's.
    pub label: Option<usize>,
}

fn choose(file: &str, header: &[String], spec: &TableSpec) -> Result<Wanted, TableError> {
    let find = |column: &String| {
        header.iter().position(|known| known == column).ok_or_else(|| TableError::UnknownColumn {
            file: file.to_owned(),
            column: column.clone(),
            known: list(header),
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
        columns.extend((0..header.len()).filter(|at| Some(*at) != label));
    }
    if columns.is_empty() && categorical.is_empty() {
        return Err(TableError::NoColumns { file: file.to_owned() });
    }
    Ok(Wanted { columns, categorical, label })
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
