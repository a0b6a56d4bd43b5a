//! One row of a source: its cells, and what is taken of them. Every form of file goes through here, so that one data set is the same
//! table whatever it is written in.

use std::borrow::Cow;

use super::{
    cell::{Cell, Parsed, parse},
    error::{Place, TableError},
    source::Table,
    wanted::{Limit, Numbers, Wanted, list},
};
use crate::{plan::OutOfBox, release::Prepared};

/// The category and label that stands for all that are not listed, where a plan with noise lists it ([NOI-8]).
const OTHER: &str = "other";
/// What to do about a word that a filter compares with a number.
const FILTERED_BY_NUMBER: &str = "the filter of site.toml compares this column with a number: correct the cell, or say in missing_marks that this \
                                  word stands for a missing value";

/// The cells of a row.
pub trait Row {
    /// The one in column `at` of the header; only of columns that are wanted.
    fn cell(&self, at: usize) -> Cell<'_>;
}

/// Appends the wanted cells of one row. A row that cannot be used is counted by its reason, and the table stays as it was.
///
/// # Errors
/// A [`TableError`] where it is not this row alone that is at fault.
pub fn take(
    (file, place): (&str, Place),
    header: &[String],
    row: &impl Row,
    wanted: &Wanted,
    table: &mut Table,
) -> Result<(), TableError> {
    match passes((file, place), header, row, wanted) {
        Ok(true) => {}
        Ok(false) => {
            table.filtered += 1;
            return Ok(());
        }
        Err(error) => return table.spoil(file, error),
    }
    let missing = |(at, words): &&(usize, Vec<String>)| wanted.is_missing(&row.cell(*at), words);
    if let Some((at, _)) = wanted.complete.iter().find(missing) {
        table.leave_out(file, &format!("no value in {:?}", header[*at]), place);
        return Ok(());
    }
    if let Some(cut) = &wanted.cut {
        let cell = row.cell(cut.at);
        if wanted.is_missing(&cell, &[]) {
            table.leave_out(file, &format!("no value in {:?}, the column of persons", header[cut.at]), place);
            return Ok(());
        }
        if matches!(cell, Cell::Text(text) if std::str::from_utf8(text).is_err()) {
            return table.spoil(file, TableError::NotUtf8 { file: file.to_owned(), line: place });
        }
        if !table.persons.counts(cut, &cell.text(), |at| row.cell(at)) {
            return Ok(());
        }
    }
    let before = table.rows;
    if let Err(error) = append((file, place), header, row, wanted, table) {
        table.keep(before);
        return table.spoil(file, error);
    }
    if wanted.total.as_ref().is_some_and(|domain| !Prepared::takes(table.last_row(), domain, OutOfBox::Clip)) {
        table.keep(before);
        table.leave_out(file, "nothing but zeros, which have no direction", place);
    }
    Ok(())
}

/// Whether a row passes the site's filter. One that fails a comparison does not, whatever the others find; without a value it fails.
fn passes((file, line): (&str, Place), header: &[String], row: &impl Row, wanted: &Wanted) -> Result<bool, TableError> {
    let mut fault = None;
    for (at, condition, words) in &wanted.filter {
        let cell = row.cell(*at);
        match condition.holds(&cell) {
            _ if wanted.is_missing(&cell, words) => return Ok(false),
            Some(false) => return Ok(false),
            Some(true) => {}
            None => fault = fault.or(Some((*at, cell))),
        }
    }
    let Some((at, cell)) = fault else { return Ok(true) };
    let (file_of, column) = (|| file.to_owned(), || header[at].clone());
    match cell {
        Cell::Text(text) if matches!(parse(text), Parsed::Words | Parsed::Missing) => {
            Err(TableError::NotANumber { file: file_of(), line, column: column(), hint: FILTERED_BY_NUMBER })
        }
        Cell::Text(text) => number((file, line), &header[at], text).map(|_| true),
        _ => Err(TableError::NotFinite { file: file_of(), line, column: column() }),
    }
}

fn append(
    (file, line): (&str, Place),
    header: &[String],
    row: &impl Row,
    wanted: &Wanted,
    table: &mut Table,
) -> Result<(), TableError> {
    table.begin_row(file, line)?;
    for column in &wanted.columns {
        table.values.push(value((file, line), &header[column.at], &row.cell(column.at), column, wanted)?);
    }
    let named = |at: usize| -> Result<Cow<'_, str>, TableError> {
        let cell = row.cell(at);
        let text = match cell {
            Cell::Text(text) => Cow::Borrowed(
                std::str::from_utf8(text).map_err(|_| TableError::NotUtf8 { file: file.to_owned(), line })?.trim(),
            ),
            Cell::Nothing => Cow::Borrowed(""),
            other => Cow::Owned(other.text().into_owned()),
        };
        if text.is_empty() {
            return Err(TableError::EmptyCell { file: file.to_owned(), line, column: header[at].clone() });
        }
        Ok(text)
    };
    for names in &wanted.categorical {
        let categories = &names.categories;
        let text = named(names.at)?;
        if wanted.is_mark(&row.cell(names.at)) {
            return Err(TableError::EmptyCell { file: file.to_owned(), line, column: header[names.at].clone() });
        }
        let find = |word: &str| {
            let word = names.values.get(word).map_or(word, String::as_str);
            categories.iter().position(|category| category == word)
        };
        // A yes or no is written as a word here and as a digit there.
        let digit = match row.cell(names.at) {
            Cell::Bool(yes) => find(if yes { "1" } else { "0" }),
            _ => None,
        };
        let other = || wanted.total.as_ref().and_then(|_| categories.iter().position(|category| category == OTHER));
        let Some(category) = find(&text).or(digit).or_else(other) else {
            let (column, known) = (header[names.at].clone(), list(categories));
            return Err(TableError::UnknownCategory { file: file.to_owned(), line, column, known });
        };
        table.values.extend((0..categories.len()).map(|i| f64::from(u8::from(i == category))));
    }
    if let (Some((at, classes)), Some(labels)) = (&wanted.label, &mut table.labels) {
        let label = named(*at)?;
        let label = wanted.label_words.get(&*label).map_or(&*label, String::as_str);
        let listed = |label: &str| classes.iter().any(|class| class == label);
        let label = if wanted.total.is_some() && !listed(label) && listed(OTHER) { OTHER } else { label };
        if !classes.is_empty() && !listed(label) {
            return Err(TableError::UnknownLabel { file: file.to_owned(), line, column: header[*at].clone() });
        }
        labels.push(label.to_owned());
    }
    Ok(())
}

/// A number of a column that may have words for some numbers, another unit, and a range.
fn value(
    (file, line): (&str, Place),
    column: &str,
    cell: &Cell<'_>,
    of: &Numbers,
    wanted: &Wanted,
) -> Result<f64, TableError> {
    let missing = || TableError::EmptyCell { file: file.to_owned(), line, column: column.to_owned() };
    let not_finite = || TableError::NotFinite { file: file.to_owned(), line, column: column.to_owned() };
    if !wanted.marks.is_empty() && wanted.is_mark(cell) {
        return Err(missing());
    }
    let word = match cell {
        Cell::Text(_) if !of.values.is_empty() => of.values.get(&*cell.text()).copied(),
        _ => None,
    };
    let value = match (word, cell) {
        (Some(value), _) => value,
        (None, _) => {
            let own = match cell {
                Cell::Nothing => return Err(missing()),
                Cell::Number(x) => *x,
                Cell::Bool(yes) => f64::from(u8::from(*yes)),
                Cell::Text(text) => number((file, line), column, text)?,
            };
            of.unit.map_or(own, |unit| unit.of(own))
        }
    };
    if !value.is_finite() {
        return Err(not_finite());
    }
    match of.limit {
        None => Ok(value),
        Some(Limit { low, high, .. }) if (low..=high).contains(&value) => Ok(value),
        Some(Limit { plan: true, .. }) => {
            Err(TableError::OutsideBox { file: file.to_owned(), line, column: column.to_owned() })
        }
        Some(Limit { low, high, .. }) => {
            Err(TableError::OutsideRange { file: file.to_owned(), line, column: column.to_owned(), low, high })
        }
    }
}

/// A number that is written as text.
pub(super) fn number((file, line): (&str, Place), column: &str, cell: &[u8]) -> Result<f64, TableError> {
    let (file, column) = (|| file.to_owned(), || column.to_owned());
    match parse(cell) {
        Parsed::Number(x) => Ok(x),
        Parsed::NotFinite => Err(TableError::NotFinite { file: file(), line, column: column() }),
        Parsed::Missing => Err(TableError::EmptyCell { file: file(), line, column: column() }),
        Parsed::NotUtf8 => Err(TableError::NotUtf8 { file: file(), line }),
        Parsed::DecimalComma => Err(TableError::NotANumber {
            file: file(),
            line,
            column: column(),
            hint: "it has a decimal comma: export the file with decimal points",
        }),
        Parsed::Words => Err(TableError::NotANumber {
            file: file(),
            line,
            column: column(),
            hint: "leave this column out, or name it as the label, or turn its categories into numbers",
        }),
    }
}
