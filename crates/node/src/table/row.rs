//! One row of a source: its cells, and what is taken of them. Every form of file goes through here, so that one data set is the same
//! table whatever it is written in.

use std::borrow::Cow;

use super::{
    advice,
    cell::{Cell, Parsed, parse},
    dialect::Decimal,
    error::{Fault, Place, TableError},
    print::Print,
    source::Table,
    wanted::{Limit, Names, Numbers, Wanted, list},
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
    let taken = Taken { spot: (file, place), header, row, wanted };
    match taken.passes() {
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
            return table.spoil(file, Fault::NotUtf8.of_row((file, place)));
        }
        let (counts, sum) = table.persons.counts(cut, &cell.text(), |at| row.cell(at));
        table.of_persons = table.of_persons.and(Print { rows: 1, sum });
        if !counts {
            return Ok(());
        }
    }
    let before = table.rows;
    if let Err(error) = taken.append(table) {
        table.keep(before);
        return table.spoil(file, error);
    }
    let of_directions = wanted.total.as_ref().or(wanted.directed.as_ref());
    if of_directions.is_some_and(|domain| !Prepared::takes(table.last_row(), domain, OutOfBox::Clip)) {
        table.keep(before);
        let next = "leave such rows out, or ask for a plan with another metric";
        return table.spoil(file, Fault::Row("nothing but zeros, which have no direction", next).of_row((file, place)));
    }
    Ok(())
}

/// A row that is being taken.
struct Taken<'a, R> {
    spot: (&'a str, Place),
    header: &'a [String],
    row: &'a R,
    wanted: &'a Wanted,
}

impl<R: Row> Taken<'_, R> {
    /// What is wrong with its cell in column `at`.
    fn wrong(&self, at: usize, fault: Fault) -> TableError {
        fault.of_cell(self.spot, &self.header[at])
    }

    /// Whether it passes the site's filter. One that fails a comparison does not, whatever the others find; without a value it fails.
    fn passes(&self) -> Result<bool, TableError> {
        let mut fault = None;
        for (at, condition, words) in &self.wanted.filter {
            let cell = self.row.cell(*at);
            match condition.holds(&cell) {
                _ if self.wanted.is_missing(&cell, words) => return Ok(false),
                Some(false) => return Ok(false),
                Some(true) => {}
                None => fault = fault.or(Some((*at, cell))),
            }
        }
        let Some((at, cell)) = fault else { return Ok(true) };
        match cell {
            Cell::Text(text) if matches!(parse(text), Parsed::Words | Parsed::Missing) => {
                Err(self.wrong(at, Fault::NotANumber(FILTERED_BY_NUMBER)))
            }
            Cell::Text(text) => number(self.spot, &self.header[at], text, self.wanted.decimal).map(|_| true),
            _ => Err(self.wrong(at, Fault::NotFinite)),
        }
    }

    fn append(&self, table: &mut Table) -> Result<(), TableError> {
        table.begin_row(self.spot)?;
        for column in &self.wanted.columns {
            table.values.push(self.value(column)?);
        }
        for names in &self.wanted.categorical {
            let category = self.category(names)?;
            table.values.extend((0..names.categories.len()).map(|i| f64::from(u8::from(i == category))));
        }
        if let (Some((at, classes)), Some(labels)) = (&self.wanted.label, &mut table.labels) {
            let label = self.named(*at)?;
            let label = self.wanted.label_words.get(&*label).map_or(&*label, String::as_str);
            let listed = |label: &str| classes.iter().any(|class| class == label);
            let label = if self.wanted.total.is_some() && !listed(label) && listed(OTHER) { OTHER } else { label };
            if !classes.is_empty() && !listed(label) {
                return Err(Fault::UnknownLabel(self.header[*at].clone()).of_row(self.spot));
            }
            labels.push(label.to_owned());
        }
        Ok(())
    }

    /// A text that has to be there.
    fn named(&self, at: usize) -> Result<Cow<'_, str>, TableError> {
        let text = match self.row.cell(at) {
            Cell::Text(text) => {
                Cow::Borrowed(std::str::from_utf8(text).map_err(|_| Fault::NotUtf8.of_row(self.spot))?.trim())
            }
            Cell::Nothing => Cow::Borrowed(""),
            other => Cow::Owned(other.text().into_owned()),
        };
        if text.is_empty() { Err(self.wrong(at, Fault::EmptyCell)) } else { Ok(text) }
    }

    /// Which of a column's categories it is.
    fn category(&self, names: &Names) -> Result<usize, TableError> {
        let categories = &names.categories;
        let text = self.named(names.at)?;
        let cell = self.row.cell(names.at);
        if self.wanted.is_mark(&cell) {
            return Err(self.wrong(names.at, Fault::EmptyCell));
        }
        let find = |word: &str| {
            let word = names.values.get(word).map_or(word, String::as_str);
            categories.iter().position(|category| category == word)
        };
        // A yes or no is written as a word here and as a digit there.
        let digit = match cell {
            Cell::Bool(yes) => find(if yes { "1" } else { "0" }),
            _ => None,
        };
        let other = || self.wanted.total.as_ref().and_then(|_| categories.iter().position(|of| of == OTHER));
        let found = find(&text).or(digit).or_else(other);
        found.ok_or_else(|| self.wrong(names.at, Fault::UnknownCategory(list(categories))))
    }

    /// A number of a column that may have words for some numbers, another unit, and a range.
    fn value(&self, of: &Numbers) -> Result<f64, TableError> {
        let cell = self.row.cell(of.at);
        if !self.wanted.marks.is_empty() && self.wanted.is_mark(&cell) {
            return Err(self.wrong(of.at, Fault::EmptyCell));
        }
        let word = match cell {
            Cell::Text(_) if !of.values.is_empty() => of.values.get(&*cell.text()).copied(),
            _ => None,
        };
        let value = match word {
            Some(value) => value,
            None => {
                let own = match cell {
                    Cell::Nothing => return Err(self.wrong(of.at, Fault::EmptyCell)),
                    Cell::Number(x) => x,
                    Cell::Bool(yes) => f64::from(u8::from(yes)),
                    Cell::Text(text) => number(self.spot, &self.header[of.at], text, self.wanted.decimal)?,
                };
                of.unit.map_or(own, |unit| unit.of(own))
            }
        };
        let fault = match of.limit {
            _ if !value.is_finite() => Fault::NotFinite,
            None => return Ok(value),
            Some(Limit { low, high, .. }) if (low..=high).contains(&value) => return Ok(value),
            Some(Limit { plan: true, .. }) => Fault::OutsideBox,
            Some(Limit { low, high, .. }) => Fault::OutsideRange { low, high },
        };
        Err(self.wrong(of.at, fault))
    }
}

/// A number that is written as text.
pub(super) fn number(spot: (&str, Place), column: &str, cell: &[u8], decimal: Decimal) -> Result<f64, TableError> {
    let fault = match parse(cell) {
        Parsed::Number(x) => return Ok(x),
        Parsed::NotUtf8 => return Err(Fault::NotUtf8.of_row(spot)),
        Parsed::NotFinite => Fault::NotFinite,
        Parsed::Missing => Fault::EmptyCell,
        Parsed::DecimalComma | Parsed::Words => Fault::NotANumber(advice::of_cell(cell, decimal)),
    };
    Err(fault.of_cell(spot, column))
}
