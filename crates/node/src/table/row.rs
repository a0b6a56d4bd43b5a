//! One row of a source: its cells, and what is taken of them. Every form of file goes through here, so that one data set is the same
//! table whatever it is written in.

use std::borrow::Cow;

use super::{
    cell::{Cell, Parsed, parse},
    error::{Place, TableError},
    source::{Limit, Numbers, Table, Wanted, list},
};

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
    if !wanted.filter.iter().all(|(at, condition)| condition.holds(&row.cell(*at))) {
        table.filtered += 1;
        return Ok(());
    }
    let missing = |(at, words): &&(usize, Vec<String>)| {
        let cell = row.cell(*at);
        match &cell {
            Cell::Nothing => true,
            Cell::Number(x) => wanted.mark_numbers.contains(x),
            Cell::Bool(_) => false,
            Cell::Text(text) => {
                let known = matches!(parse(text), Parsed::Missing) && !words.iter().any(|word| *word == cell.text());
                known || wanted.is_mark(&cell)
            }
        }
    };
    if let Some((at, _)) = wanted.complete.iter().find(missing) {
        table.leave_out(file, &header[*at], place);
        return Ok(());
    }
    let before = table.rows;
    if let Err(error) = append((file, place), header, row, wanted, table) {
        table.keep(before);
        table.spoil(file, error)?;
    }
    Ok(())
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
        let Some(category) = find(&text).or(digit) else {
            let (column, known) = (header[names.at].clone(), list(categories));
            return Err(TableError::UnknownCategory { file: file.to_owned(), line, column, known });
        };
        table.values.extend((0..categories.len()).map(|i| f64::from(u8::from(i == category))));
    }
    if let (Some((at, classes)), Some(labels)) = (&wanted.label, &mut table.labels) {
        let label = named(*at)?;
        let label = wanted.label_words.get(&*label).map_or(&*label, String::as_str);
        if !classes.is_empty() && !classes.iter().any(|class| *class == *label) {
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
            of.unit.map_or(own, |unit| own * unit.factor + unit.offset)
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
