//! Rows from CSV files.

use std::{
    borrow::Cow,
    fs::File,
    io::{BufReader, Chain, Cursor, Read},
    path::Path,
};

use super::{
    About, Batches, Cell, Decimal, Dialect, Fault, MAX_ROW, MAX_VALUES, Place, Result, Row, RowReader, Table,
    TableError, TableSpec, Wanted,
    cell::{Parsed, parse},
    layout::{Layout, layout},
    normal,
    records::{Record, Records},
    row::number,
    source::all_of,
    take,
    wanted::check_names,
};

/// Rows that are read at a time.
const BATCH: usize = 4096;
/// Bytes that are read at a time.
const BUFFER: usize = 64 << 10;

/// A text whose beginning was looked at.
type Text<R> = Chain<Cursor<Vec<u8>>, BufReader<R>>;

/// The rows of a text, its header first, and how they are read, which its beginning tells; `header` looks at what may be one before any name
/// of it is shown.
fn opened<R: Read>(
    reader: R,
    name: &str,
    dialect: Dialect,
    header: impl Fn(&[Vec<u8>]) -> Result<()>,
) -> Result<(Records<Text<R>>, Layout)> {
    let mut reader = BufReader::with_capacity(BUFFER, reader);
    let mut first = Vec::new();
    reader.by_ref().take(MAX_ROW as u64).read_to_end(&mut first).map_err(|source| Fault::read(source).of(name))?;
    let whole = first.len() < MAX_ROW;
    if first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]) {
        return Err(Fault::NOT_UTF8.of_row((name, Place::Line(1))));
    }
    if first.starts_with(&[0xef, 0xbb, 0xbf]) {
        first.drain(..3);
    }
    let layout = layout(&first, whole, name, dialect, header)?;
    let text = Cursor::new(first).chain(reader);
    let mut records = Records::new(text, name, Dialect { delimiter: layout.delimiter, ..dialect });
    if layout.said {
        records.skip_line()?;
    }
    Ok((records, layout))
}

/// Reads the chosen columns of CSV text; errors call it `name`.
///
/// # Errors
/// A [`TableError`] that names line and column.
pub fn read_csv_from(reader: impl Read, name: &str, spec: &TableSpec) -> Result<Table> {
    all_of(Batches::new(Box::new(CsvReader::new(reader, name, spec.dialect())?), spec)?)
}

/// A text of rows under a header.
///
/// A byte order mark, LF, CRLF or CR, and blank lines are accepted, but for blank lines amid a single column: such a line is a missing value
/// there.
pub(super) struct CsvReader<R: Read> {
    records: Records<Text<R>>,
    dialect: Dialect,
    about: About,
    /// Whether rows end by a delimiter with nothing behind it.
    open: bool,
    last_line: u64,
}

impl<R: Read> CsvReader<R> {
    pub(super) fn new(reader: R, name: &str, dialect: Dialect) -> Result<Self> {
        let named = |header: &[Vec<u8>]| {
            let numbered = number_in(header.iter().map(|cell| &cell[..]));
            numbered.map_or(Ok(()), |at| Err(headed_by_a_number(name, at)))
        };
        let (mut records, layout) = opened(reader, name, dialect, named)?;
        let Some(Record { line: last_line, fault }) = records.next()? else {
            return Err(Fault::empty().of(name));
        };
        if let Some(fault) = fault {
            return Err(fault.of_row((name, Place::Line(last_line))));
        }
        let width = records.len() - usize::from(layout.open_header);
        let header = || records.cells().take(width);
        let numbered = number_in(header());
        let columns = column_names(name, Place::Line(last_line), header());
        // Nothing is quoted that may be a row.
        let columns = columns.map_err(|error| numbered.map_or(error, |at| headed_by_a_number(name, at)))?;
        records.width = Some(width + usize::from(layout.open_rows));
        let about = About { name: name.to_owned(), columns, numbered, ..About::default() };
        Ok(CsvReader { records, dialect, about, open: layout.open_rows, last_line })
    }

    /// What is wrong with the shape of the present row.
    fn misshapen(&self) -> Option<Fault> {
        let (got, expected) = (self.records.len(), self.about.columns.len());
        let ends_open = got == expected + 1 && self.records.bytes(expected).trim_ascii().is_empty();
        let (may_be_open, may_be_bare) = (self.open || self.dialect.by_line, !self.open || self.dialect.by_line);
        if got == expected && !may_be_bare {
            let next =
                "end every row as most rows end, with a separator behind the last cell; or take it out everywhere";
            return Some(Fault::row("no separator stands behind its last cell, as behind most", next));
        }
        if got != expected && !(ends_open && may_be_open) {
            return Some(Fault::ragged(got, expected + usize::from(self.open)));
        }
        let mut cells = self.records.cells().zip(&self.about.columns);
        let again = expected > 1 && cells.all(|(cell, name)| cell.trim_ascii() == name.as_bytes());
        let next = "take this line out: files may have been put together with their headers";
        again.then_some(Fault::row("the header stands here once more", next))
    }
}

impl<R: Read> RowReader for CsvReader<R> {
    fn about(&self) -> &About {
        &self.about
    }

    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool> {
        let About { name, columns, .. } = &self.about;
        for _ in 0..BATCH {
            let before = self.records.spanning;
            let Some(Record { line, fault }) = self.records.next()? else { return Ok(false) };
            table.tally.spanning += self.records.spanning - before;
            if columns.len() == 1 {
                for missing in self.last_line + 1..line {
                    table.spoil(name, Fault::EMPTY_CELL.of_cell((name, Place::Line(missing)), &columns[0]))?;
                }
            }
            // Blank lines within a cell are none between rows.
            self.last_line = self.records.line();
            let spot = (name.as_str(), Place::Line(line));
            if table.signs.wants_more(wanted.measured.len()) {
                let commas = self.records.may_have_commas();
                self.records.cells().for_each(|cell| table.signs.look_anywhere(spot, cell, commas));
            }
            match fault.or_else(|| self.misshapen()) {
                Some(fault) => table.spoil(name, fault.of_row(spot))?,
                None if self.dialect.decimal == Decimal::Point => take(spot, columns, &self.records, wanted, table)?,
                None => {
                    let row = WithCommas(self.records.cells().map(|cell| self.dialect.decimal.point(cell)).collect());
                    take(spot, columns, &row, wanted, table)?;
                }
            }
        }
        Ok(true)
    }
}

impl<R> Row for Records<R> {
    fn cell(&self, at: usize) -> Cell<'_> {
        Cell::Text(self.bytes(at))
    }
}

/// A row whose numbers have decimal commas.
struct WithCommas<'a>(Vec<Cow<'a, [u8]>>);

impl Row for WithCommas<'_> {
    fn cell(&self, at: usize) -> Cell<'_> {
        Cell::Text(&self.0[at])
    }
}

/// Reads a CSV file of numbers without a header, such as starting centres: rows of `columns` numbers each.
pub fn read_matrix(path: impl AsRef<Path>, columns: usize) -> Result<Vec<Vec<f64>>> {
    let name = path.as_ref().display().to_string();
    let file = File::open(&path).map_err(|source| Fault::open(source).of(&name))?;
    read_matrix_from(file, &name, columns)
}

/// Like [`read_matrix`], from text that errors call `name`.
pub fn read_matrix_from(reader: impl Read, name: &str, columns: usize) -> Result<Vec<Vec<f64>>> {
    let two_ways = |_: &[Vec<u8>]| {
        let what = "its numbers can be read in two ways, with decimal commas or with commas between them";
        Err(Fault::said(what, "write it with decimal points").of(name))
    };
    let (mut rows, _) = opened(reader, name, Dialect::default(), two_ways)?;
    let mut matrix: Vec<Vec<f64>> = Vec::new();
    while let Some(Record { line, fault }) = rows.next()? {
        let spot = (name, Place::Line(line));
        if let Some(fault) = fault {
            return Err(fault.of_row(spot));
        }
        if matrix.is_empty() && rows.cells().all(|cell| matches!(parse(cell), Parsed::Words)) {
            let what = "this looks like a header, and the file must hold numbers only";
            return Err(Fault::said(what, "remove that line").of_row(spot));
        }
        if rows.len() != columns {
            return Err(Fault::ragged(rows.len(), columns).of_row(spot));
        }
        if matrix.len() >= MAX_VALUES / columns.max(1) {
            return Err(Fault::too_large().of_row(spot));
        }
        let numbers =
            rows.cells().enumerate().map(|(at, cell)| number(spot, &(at + 1).to_string(), cell, Decimal::Point));
        matrix.push(numbers.collect::<Result<_, _>>()?);
    }
    if matrix.is_empty() {
        return Err(Fault::empty().of(name));
    }
    Ok(matrix)
}

// ---- Header and cells -----------------------------------------------------------------------------------------------

/// The first of these names that is a number, from 1.
fn number_in<'a>(mut header: impl Iterator<Item = &'a [u8]>) -> Option<usize> {
    Some(1 + header.position(|cell| matches!(parse(cell), Parsed::Number(_) | Parsed::DecimalComma))?)
}

pub(super) fn headed_by_a_number(file: &str, at: usize) -> TableError {
    let what = format!("column {at} is headed by a number, so the first line looks like data");
    let next = "add a header line with a name for every column; if the numbers are names, ask for the columns by them, or give them others in \
                [rows.columns] of site.toml";
    Fault::said(what, next).of_header(file)
}

fn column_names<'a>(file: &str, line: Place, header: impl Iterator<Item = &'a [u8]>) -> Result<Vec<String>> {
    // UTF-16 without its mark: every second byte of plain English is zero.
    let name =
        |cell| std::str::from_utf8(cell).ok().filter(|name| !name.contains('\0')).map(|name| normal(name).into_owned());
    let names = header.map(|cell| name(cell).ok_or_else(|| Fault::NOT_UTF8.of_row((file, line))));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    check_names(file, &names)?;
    Ok(names)
}
