//! Where rows come from, and what is taken of them.

use std::{fmt, path::Path, sync::Arc};

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
        spoilt: Spoilt::default(),
    };
    while source.read(&wanted, &mut table)? {}
    table.spoilt.take()?;
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
    /// Rows that cannot be used; none in a table that was read to its end.
    spoilt: Spoilt,
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
            Some(first) => {
                Err(TableError::Rows { first: Box::new(first), rows: reasons.rows(), reasons: reasons.to_string() })
            }
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

    /// Only so many rows, each of them whole.
    pub(super) fn keep(&mut self, rows: usize) {
        self.rows = rows;
        self.values.truncate(rows * self.columns.len());
        self.labels.iter_mut().for_each(|labels| labels.truncate(rows));
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
