//! Where rows come from, and what is taken of them.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use super::{
    error::{Reasons, TableError},
    limits::MAX_VALUES,
};
use crate::{
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
    let file = source.name().to_owned();
    let known = known_as(&file, source.columns(), spec.schema.as_deref())?;
    let wanted = choose(&file, &known, spec)?;
    let mut table = Table {
        columns: wanted
            .columns
            .iter()
            .map(|column| known[column.at].clone())
            .chain(spec.categorical.iter().flat_map(Categorical::indicators))
            .collect(),
        values: Vec::new(),
        rows: 0,
        labels: wanted.label.map(|_| Vec::new()),
        spoilt: Spoilt::default(),
        left_out: LeftOut::default(),
    };
    while source.read(&wanted, &mut table)? {}
    table.spoilt.take()?;
    if table.rows == 0 {
        return Err(match table.left_out.rows.is_empty() {
            true => TableError::NoRows { file },
            false => TableError::AllLeftOut { file },
        });
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
    /// The federation's schema: other names of columns, other words for values, and what is done about a missing one.
    pub schema: Option<Arc<Schema>>,
    /// Whether a number outside the schema's range makes its row one that cannot be used.
    pub ranges: bool,
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
    /// Rows that cannot be used; none in a table that was read to its end.
    spoilt: Spoilt,
    /// Rows that the schema leaves out because a value is missing.
    pub left_out: LeftOut,
}

/// Rows that are not in a table because a value of theirs is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Which rows of the file they are, counted from 0, in rising order.
    rows: Vec<usize>,
    /// How many for which column, with the first lines.
    pub reasons: Reasons,
}

impl LeftOut {
    /// Which row of the file a row of the table is, both counted from 0.
    pub fn row_in_file(&self, row: usize) -> usize {
        self.rows.iter().fold(row, |row, left_out| row + usize::from(*left_out <= row))
    }
}

/// What is wrong with the first row that cannot be used, and why how many cannot.
#[derive(Clone, Debug, Default)]
struct Spoilt {
    first: Option<Arc<TableError>>,
    reasons: Reasons,
}

impl PartialEq for Spoilt {
    fn eq(&self, other: &Self) -> bool {
        self.reasons == other.reasons
    }
}

impl Spoilt {
    /// The error that tells of them all.
    fn take(&mut self) -> Result<(), TableError> {
        let Spoilt { first, reasons } = std::mem::take(self);
        match first.and_then(Arc::into_inner) {
            None => Ok(()),
            Some(only) if reasons.rows() == 1 => Err(only),
            Some(first) => Err(TableError::Rows { first: Box::new(first), rows: reasons.rows(), reasons }),
        }
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
    pub(super) fn begin_row(&mut self, file: &str, line: u64) -> Result<(), TableError> {
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
    pub(super) fn spoil(&mut self, error: TableError) -> Result<(), TableError> {
        let Some((why, line)) = error.of_row() else { return Err(error) };
        self.spoilt.reasons.note(why, Some(line));
        self.spoilt.first.get_or_insert(Arc::new(error));
        Ok(())
    }

    /// Leaves out a row in which `column` has no value.
    pub(super) fn leave_out(&mut self, column: &str, line: u64) {
        let before = self.left_out.rows.len() as u64 + self.spoilt.reasons.rows();
        self.left_out.rows.push(self.rows + before as usize);
        self.left_out.reasons.note(format!("no value in {column:?}"), Some(line));
    }

    /// Only so many rows, each of them whole.
    pub(super) fn keep(&mut self, rows: usize) {
        self.rows = rows;
        self.values.truncate(rows * self.columns.len());
        self.labels.iter_mut().for_each(|labels| labels.truncate(rows));
    }
}

/// Where the wanted columns stand in a table, and how their cells are read.
pub struct Wanted {
    /// The numeric ones, in the order wanted.
    pub columns: Vec<Numbers>,
    /// Those of categories, in the order wanted.
    pub categorical: Vec<Names>,
    /// The label's.
    pub label: Option<usize>,
    /// Columns in which a missing value leaves the row out, with the words that are values there.
    pub complete: Vec<(usize, Vec<String>)>,
    /// Words that stand for a missing value, beside the usual ones.
    pub marks: Vec<String>,
}

/// A column of numbers.
pub struct Numbers {
    /// Where it stands.
    pub at: usize,
    /// Words that stand for a number.
    pub values: BTreeMap<String, f64>,
    /// The range that a number must lie in.
    pub range: Option<(f64, f64)>,
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

/// A header with the schema's names.
fn known_as(file: &str, header: &[String], schema: Option<&Schema>) -> Result<Vec<String>, TableError> {
    let Some(schema) = schema else { return Ok(header.to_vec()) };
    schema.named(header).map_err(|column| TableError::TwiceNamed { file: file.to_owned(), column })
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
    let schema = spec.schema.as_deref();
    let kind = |at: usize| schema.and_then(|schema| schema.get(&header[at])).map(|column| &column.kind);
    let numbers = |at: usize| match kind(at) {
        Some(Kind::Number { lower, upper, values }) => {
            Numbers { at, values: values.clone(), range: spec.ranges.then_some((*lower, *upper)) }
        }
        _ => Numbers { at, values: BTreeMap::new(), range: None },
    };
    let names = |(at, categories): (usize, Vec<String>)| match kind(at) {
        Some(Kind::Category { values, .. }) => Names { at, categories, values: values.clone() },
        _ => Names { at, categories, values: BTreeMap::new() },
    };
    let leaves_out = schema.is_some_and(|schema| schema.missing == Missing::LeaveOut);
    Ok(Wanted {
        columns: columns.into_iter().map(numbers).collect(),
        categorical: categorical.into_iter().map(names).collect(),
        label,
        complete: match leaves_out {
            true => (0..header.len()).filter_map(|at| Some((at, kind(at)?.words().cloned().collect()))).collect(),
            false => Vec::new(),
        },
        marks: schema.map_or(Vec::new(), |schema| schema.marks.clone()),
    })
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
