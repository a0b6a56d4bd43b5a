//! One row of a source: its cells, and what is taken of them. Every form of file goes through here, so that one data set is the same
//! table whatever it is written in.

use super::{
    Cell, Decimal, Fault, Names, Numbers, Place, Result, Table, TableError, Unusable, Wanted, advice,
    cell::{Parsed, alike, parse},
    print::Print,
    spelling::Spellings,
    wanted::{OTHER, list},
};

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
pub fn take(spot: (&str, Place), header: &[String], row: &impl Row, wanted: &Wanted, table: &mut Table) -> Result<()> {
    let (file, place) = spot;
    for at in &wanted.measured {
        if let Cell::Text(text) = row.cell(*at) {
            table.signs.look(*at, spot, text);
        }
    }
    let taken = Taken { spot, header, row, wanted };
    match taken.passes() {
        Ok(true) => {}
        Ok(false) => {
            table.tally.filtered += 1;
            return Ok(());
        }
        Err(error) => return table.spoil(file, error),
    }
    let missing = |(at, words): &&(usize, Spellings<()>)| wanted.is_missing(&row.cell(*at), words);
    let out = wanted.complete.iter().find(missing);
    let person = wanted.cut.as_ref().map(|cut| (cut, row.cell(cut.at)));
    let nobody = |cell: &Cell<'_>| wanted.is_missing(cell, &Spellings::<()>::default());
    // Of a person's, as many count as lacking, for whatever reason, as there count of the others.
    let as_lacking = |table: &mut Table| {
        person.as_ref().is_none_or(|(cut, cell)| {
            !nobody(cell) && table.persons.counts(cut, ("a person who lacks", &cell.common()), |at| row.cell(at)).0
        })
    };
    if let Some((at, _)) = out {
        table.leave_out(file, &format!("no value in {:?}", header[*at]), place);
        if as_lacking(table) {
            table.count_missing(taken.lacks());
        }
        return Ok(());
    }
    if let Some((cut, cell)) = person {
        if nobody(&cell) {
            table.leave_out(file, &format!("no value in {:?}, the column of persons", header[cut.at]), place);
            return Ok(());
        }
        if matches!(cell, Cell::Text(text) if std::str::from_utf8(text).is_err()) {
            return table.spoil(file, Fault::NOT_UTF8.of_row((file, place)));
        }
        let kind = if taken.lacks().any(|lacks| lacks) { "a person who lacks" } else { "a person" };
        let (counts, sum) = table.persons.counts(cut, (kind, &cell.common()), |at| row.cell(at));
        table.of_persons = table.of_persons.and(Print { rows: 1, sum: sum as u64 });
        if !counts {
            table.tally.beyond += 1;
            return Ok(());
        }
    }
    let before = table.rows;
    match taken.append(table) {
        Ok(others) => {
            taken.count(others, table);
            Ok(())
        }
        Err(error) => {
            table.keep(before);
            table.count_missing(taken.lacks());
            table.spoil(file, error)?;
            // A row whose place is kept can still be told by its name.
            if let (Some(at), Some(labels)) = (wanted.label, &mut table.labels)
                && table.rows > before
            {
                labels[before] = taken.named(at, None).unwrap_or_default();
            }
            Ok(())
        }
    }
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
    fn passes(&self) -> Result<bool> {
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
                Err(self.wrong(at, Fault::not_a_number(FILTERED_BY_NUMBER)))
            }
            Cell::Text(text) => number(self.spot, &self.header[at], text, self.wanted.decimal).map(|_| true),
            _ => Err(self.wrong(at, Fault::NOT_FINITE)),
        }
    }

    /// Counts a row that was taken, with its numbers out of range and its categories that are read as "other".
    fn count(&self, others: Vec<usize>, table: &mut Table) {
        let file = table.several.then_some(self.spot.0);
        let row = &table.values[table.values.len() - table.columns.len()..];
        for (of, (column, x)) in table.tally.columns.iter_mut().zip(self.wanted.columns.iter().zip(row)) {
            match column.limit {
                Some((low, _)) if *x < low => of.note(|of| &mut of.below, file, self.spot.1),
                Some((_, high)) if *x > high => of.note(|of| &mut of.above, file, self.spot.1),
                _ => {}
            }
        }
        for i in others {
            table.tally.columns[self.wanted.columns.len() + i].note(|of| &mut of.other, file, self.spot.1);
        }
        table.tally.used += 1;
    }

    /// Which columns of the plan it has no value in: numbers, then categories.
    fn lacks(&self) -> impl Iterator<Item = bool> {
        let Wanted { columns, categorical, .. } = self.wanted;
        let numbers = columns.iter().map(|of| self.wanted.is_missing(&self.row.cell(of.at), &of.values));
        let names = categorical.iter().map(|of| self.wanted.is_missing(&self.row.cell(of.at), &of.values));
        numbers.chain(names)
    }

    /// Appends the row, and tells which columns of categories are read as "other".
    fn append(&self, table: &mut Table) -> Result<Vec<usize>> {
        table.begin_row(self.spot)?;
        let mut others = Vec::new();
        for column in &self.wanted.columns {
            table.values.push(self.value(column)?);
        }
        for (i, names) in self.wanted.categorical.iter().enumerate() {
            let (category, listed) = self.category(names)?;
            others.extend((!listed).then_some(i));
            table.values.extend((0..names.categories.len()).map(|i| f64::from(u8::from(i == category))));
        }
        if let (Some(at), Some(labels)) = (self.wanted.label, &mut table.labels) {
            labels.push(self.named(at, None)?);
        }
        Ok(others)
    }

    /// A text that has to be there. Where any will do, a usual word for nothing is one, such as `none`.
    fn named(&self, at: usize, words: Option<&Spellings<usize>>) -> Result<String> {
        let cell = self.row.cell(at);
        if matches!(cell, Cell::Text(text) if std::str::from_utf8(text).is_err()) {
            return Err(Fault::NOT_UTF8.of_row(self.spot));
        }
        let text = cell.common().into_owned();
        let is_missing = match words {
            None => text.is_empty() || text.eq_ignore_ascii_case("nan"),
            Some(words) => self.wanted.is_missing(&cell, words),
        };
        if is_missing { Err(self.wrong(at, Fault::EMPTY_CELL)) } else { Ok(text) }
    }

    /// Which of a column's categories it is, and whether it is one of those that are listed.
    fn category(&self, names: &Names) -> Result<(usize, bool)> {
        let (categories, cell) = (&names.categories, self.row.cell(names.at));
        let text = self.named(names.at, Some(&names.values))?;
        let others = self.wanted.unusable != Unusable::Refused;
        let other = || categories.iter().position(|of| others && of == OTHER);
        let found = cell.among(&names.values).map(|at| (at, true)).or_else(|| Some((other()?, false)));
        found.ok_or_else(|| {
            let known = list(categories);
            let looks = alike(&text, categories.iter().map(String::as_str)).is_some();
            let told = match looks {
                true => "; the cell looks like one of them, and has letters of another alphabet",
                false if text.contains(',') => {
                    "; the cell has a comma, and --column takes such a category in double quotes: 'NAME=\"A, B\",C'"
                }
                false => "",
            };
            let told = known + told;
            self.wrong(names.at, Fault::unknown_category(&told))
        })
    }

    /// A number of a column that may have words for some numbers, another unit, and a range.
    fn value(&self, of: &Numbers) -> Result<f64> {
        let cell = self.row.cell(of.at);
        if self.wanted.is_mark(&cell) {
            return Err(self.wrong(of.at, Fault::EMPTY_CELL));
        }
        let is_word = matches!(cell, Cell::Text(_) | Cell::Bool(_));
        let word = if is_word { cell.among(&of.values) } else { None };
        let value = match word {
            Some(value) => value,
            None => {
                let own = match cell {
                    Cell::Text(text) => number(self.spot, &self.header[of.at], text, self.wanted.decimal)?,
                    cell => match cell.number() {
                        Some(x) if !x.is_nan() => x,
                        _ => return Err(self.wrong(of.at, Fault::EMPTY_CELL)),
                    },
                };
                of.unit.map_or(own, |unit| unit.of(own))
            }
        };
        let fault = match of.limit {
            _ if !value.is_finite() => Fault::NOT_FINITE,
            None => return Ok(value),
            Some((low, high)) if self.wanted.clips || (low..=high).contains(&value) => return Ok(value),
            Some(_) => Fault::OUTSIDE_BOX,
        };
        Err(self.wrong(of.at, fault))
    }
}

/// A number that is written as text.
pub(super) fn number(spot: (&str, Place), column: &str, cell: &[u8], decimal: Decimal) -> Result<f64> {
    let fault = match parse(cell) {
        Parsed::Number(x) => return Ok(x),
        Parsed::Bool(yes) => return Ok(f64::from(u8::from(yes))),
        Parsed::NotUtf8 => return Err(Fault::NOT_UTF8.of_row(spot)),
        Parsed::NotFinite => Fault::NOT_FINITE,
        Parsed::Missing => Fault::EMPTY_CELL,
        Parsed::DecimalComma | Parsed::Words => Fault::not_a_number(advice::of_cell(cell, decimal)),
    };
    Err(fault.of_cell(spot, column))
}
