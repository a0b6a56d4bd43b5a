//! Rows from CSV files, and tables as CSV files.

use std::{
    cell::RefCell,
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read, Write},
    path::Path,
    rc::Rc,
};

use csv::ByteRecord;
use veilsum_answerer::spelling::normal;

use super::{
    cell::{Cell, Parsed, parse},
    error::{Fault, Place, TableError},
    limits::{MAX_CELL, MAX_COLUMNS, MAX_ROW, MAX_VALUES},
    row::{Row, number, take},
    source::{Batches, RowReader, Table, all_of},
    wanted::{TableSpec, Wanted, check_names},
};

/// How the reader is told that a row outgrew its allowance.
const ROW_TOO_LONG: &str = "the row's allowance is used up";

/// Rows that are read at a time.
const BATCH: usize = 4096;

/// Reads the chosen columns of CSV text; errors call it `name`.
///
/// # Errors
/// A [`TableError`] that names line and column.
pub fn read_csv_from(reader: impl Read, name: &str, spec: &TableSpec) -> Result<Table, TableError> {
    all_of(Batches::new(Box::new(CsvReader::new(reader, name)?), spec)?)
}

/// A text of comma-separated values, or with semicolons or tabs between them.
///
/// The delimiter is told from the header line. A byte order mark, CRLF and blank lines are accepted, but for blank lines amid a
/// single column: such a line is a missing value there.
pub(super) struct CsvReader<R: Read> {
    records: Records<R>,
    columns: Vec<String>,
    /// The first column that is headed by a number, from 1: the first line may be a row.
    numbered: Option<usize>,
    last_line: u64,
}

impl<R: Read> CsvReader<R> {
    pub(super) fn new(reader: R, name: &str) -> Result<Self, TableError> {
        let mut records = Records::new(reader, name)?;
        let Some((last_line, header)) = records.next_row()? else {
            return Err(Fault::empty().of(name));
        };
        let numbered = header.iter().position(|cell| matches!(parse(cell), Parsed::Number(_) | Parsed::DecimalComma));
        let numbered = numbered.map(|at| at + 1);
        let columns = column_names(name, Place::Line(last_line), header);
        // Nothing is quoted that may be a row.
        let columns = columns.map_err(|error| numbered.map_or(error, |at| headed_by_a_number(name, at)))?;
        Ok(CsvReader { records, columns, numbered, last_line })
    }
}

impl<R: Read> RowReader for CsvReader<R> {
    fn name(&self) -> &str {
        &self.records.file
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn doubt(&self) -> Option<TableError> {
        self.numbered.map(|at| headed_by_a_number(self.name(), at))
    }

    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool, TableError> {
        let (name, header) = (self.records.file.clone(), &self.columns);
        for _ in 0..BATCH {
            let Some((line, row)) = self.records.next_row()? else { return Ok(false) };
            if header.len() == 1 {
                for missing in self.last_line + 1..line {
                    table.spoil(&name, Fault::EmptyCell.of_cell((&name, Place::Line(missing)), &header[0]))?;
                }
            }
            self.last_line = line;
            let spot = (&name[..], Place::Line(line));
            if row.len() == header.len() {
                take(spot, header, row, wanted, table)?;
            } else {
                table.spoil(&name, Fault::Ragged { got: row.len(), expected: header.len() }.of_row(spot))?;
            }
        }
        Ok(true)
    }
}

impl Row for ByteRecord {
    fn cell(&self, at: usize) -> Cell<'_> {
        Cell::Text(&self[at])
    }
}

/// Reads a CSV file of numbers without a header, such as starting centres: rows of `columns` numbers each.
pub fn read_matrix(path: impl AsRef<Path>, columns: usize) -> Result<Vec<Vec<f64>>, TableError> {
    let name = path.as_ref().display().to_string();
    let file = File::open(&path).map_err(|source| Fault::Open(source).of(&name))?;
    read_matrix_from(file, &name, columns)
}

/// Like [`read_matrix`], from text that errors call `name`.
pub fn read_matrix_from(reader: impl Read, name: &str, columns: usize) -> Result<Vec<Vec<f64>>, TableError> {
    let mut rows = Records::new(reader, name)?;
    let mut matrix: Vec<Vec<f64>> = Vec::new();
    while let Some((line, row)) = rows.next_row()? {
        let spot = (name, Place::Line(line));
        if matrix.is_empty() && row.iter().all(|cell| matches!(parse(cell), Parsed::Words)) {
            let what = "this looks like a header, and the file must hold numbers only";
            return Err(Fault::said(what, "remove that line").of_row(spot));
        }
        if row.len() != columns {
            return Err(Fault::Ragged { got: row.len(), expected: columns }.of_row(spot));
        }
        if matrix.len() >= MAX_VALUES / columns.max(1) {
            return Err(Fault::TooLarge.of_row(spot));
        }
        let numbers = row.iter().enumerate().map(|(at, cell)| number(spot, &(at + 1).to_string(), cell));
        matrix.push(numbers.collect::<Result<_, _>>()?);
    }
    if matrix.is_empty() {
        return Err(Fault::empty().of(name));
    }
    Ok(matrix)
}

/// Writes a header and rows of text, quoted where needed.
pub fn write_csv<N, R>(out: impl Write, header: &[N], rows: R) -> Result<(), TableError>
where
    N: AsRef<str>,
    R: IntoIterator,
    R::Item: IntoIterator<Item: AsRef<str>>,
{
    let unwritten = |fault: Fault| fault.of("the table");
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
    let mut write = |record: &ByteRecord| -> Result<(), TableError> {
        if record.len() != header.len() {
            return Err(unwritten(Fault::WriteRagged { got: record.len(), expected: header.len() }));
        }
        writer.write_byte_record(record).map_err(|error| unwritten(Fault::Write(into_io(error))))
    };
    let mut record = ByteRecord::new();
    record.extend(header.iter().map(AsRef::as_ref));
    write(&record)?;
    for row in rows {
        record.clear();
        for cell in row {
            record.push_field(cell.as_ref().as_bytes());
        }
        write(&record)?;
    }
    writer.flush().map_err(|source| unwritten(Fault::Write(source)))
}

// ---- Header and cells -----------------------------------------------------------------------------------------------

fn headed_by_a_number(file: &str, at: usize) -> TableError {
    let what = format!("column {at} is headed by a number, so the first line looks like data");
    let next = "add a header line with a name for every column; if the numbers are names, ask for the columns by them, or give them others in \
                [rows.columns] of site.toml";
    Fault::said(what, next).of_header(file)
}

fn column_names(file: &str, line: Place, header: &ByteRecord) -> Result<Vec<String>, TableError> {
    let mut names = Vec::with_capacity(header.len());
    for cell in header {
        // UTF-16 without its mark: every second byte of plain English is zero.
        let column = std::str::from_utf8(cell).ok().filter(|column| !column.contains('\0'));
        names.push(normal(column.ok_or_else(|| Fault::NotUtf8.of_row((file, line)))?).into_owned());
    }
    check_names(file, &names)?;
    Ok(names)
}

// ---- Rows within limits ---------------------------------------------------------------------------------------------

/// The records of a CSV text, each within the limits.
struct Records<R: Read> {
    reader: csv::Reader<Metered<R>>,
    record: ByteRecord,
    meter: Rc<RefCell<Meter>>,
    file: String,
}

/// The text (the line that was read ahead, then the rest) on its way to the CSV library.
struct Metered<R> {
    text: io::Chain<Cursor<Vec<u8>>, BufReader<R>>,
    meter: Rc<RefCell<Meter>>,
}

/// What the library can't tell: how much it took for one row, and on which line a row begins. (Its own line is that of
/// the blank lines before a row, and it counts the two bytes of a CRLF to different rows.)
struct Meter {
    /// Bytes that the present row may still take.
    left: usize,
    /// Bytes seen so far.
    seen: u64,
    /// Number of the line that the next byte belongs to.
    line: u64,
    /// The last byte.
    last: u8,
    /// Where lines begin that are not blank: offset and number, from the present row on.
    begins: VecDeque<(u64, u64)>,
}

impl Meter {
    fn new() -> Self {
        Self { left: MAX_ROW, seen: 0, line: 1, last: b'\n', begins: VecDeque::new() }
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.left = self.left.saturating_sub(bytes.len());
        for &byte in bytes {
            match byte {
                b'\n' if self.last == b'\r' => {}
                b'\n' | b'\r' => self.line += 1,
                _ if matches!(self.last, b'\n' | b'\r') => self.begins.push_back((self.seen, self.line)),
                _ => {}
            }
            self.last = byte;
            self.seen += 1;
        }
    }

    /// The line of the first row that begins at this offset or, where blank lines stand there, after it.
    fn line_at(&mut self, offset: u64) -> u64 {
        while self.begins.front().is_some_and(|(begin, _)| *begin < offset) {
            self.begins.pop_front();
        }
        self.begins.front().map_or(self.line, |(_, line)| *line)
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut meter = self.meter.borrow_mut();
        let allowed = meter.left.min(buffer.len());
        if allowed == 0 && !buffer.is_empty() {
            return Err(io::Error::other(ROW_TOO_LONG));
        }
        let read = self.text.read(&mut buffer[..allowed])?;
        meter.pass(&buffer[..read]);
        Ok(read)
    }
}

impl<R: Read> Records<R> {
    fn new(reader: R, file: &str) -> Result<Self, TableError> {
        let mut reader = BufReader::new(reader);
        let first = first_line(&mut reader).map_err(|source| Fault::Read(source).of(file))?;
        if first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]) {
            return Err(Fault::NotUtf8.of_row((file, Place::Line(1))));
        }
        let first = first.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(&first).to_vec();
        let delimiter = delimiter(&first);
        let meter = Rc::new(RefCell::new(Meter::new()));
        let text = Metered { text: Cursor::new(first).chain(reader), meter: meter.clone() };
        // Rows are counted off here and not by the library, whose error would not name the file.
        let reader = csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text);
        Ok(Self { reader, record: ByteRecord::new(), meter, file: file.to_owned() })
    }

    /// The next row that is not blank, and the line on which it begins.
    fn next_row(&mut self) -> Result<Option<(u64, &ByteRecord)>, TableError> {
        // The library may have read ahead into this row, by no more than its buffer.
        self.meter.borrow_mut().left = MAX_ROW;
        let begin = self.reader.position().byte();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                let source = into_io(error);
                if source.to_string() != ROW_TOO_LONG {
                    return Err(Fault::Read(source).of(&self.file));
                }
                let line = self.meter.borrow_mut().line_at(begin);
                return Err(Fault::RowTooLong.of_row((&self.file, Place::Line(line))));
            }
        }
        let line = self.meter.borrow_mut().line_at(begin);
        let spot = (&self.file[..], Place::Line(line));
        if self.record.len() > MAX_COLUMNS {
            return Err(Fault::TooManyColumns.of_row(spot));
        }
        if let Some(at) = self.record.iter().position(|cell| cell.len() > MAX_CELL) {
            return Err(Fault::CellTooLong(at + 1).of_row(spot));
        }
        Ok(Some((line, &self.record)))
    }
}

/// Up to and including the first line end, or as much as a row may have.
fn first_line(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while line.len() < MAX_ROW {
        let buffer = match reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            break;
        }
        let end = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let taken = end.map_or(buffer.len(), |at| at + 1).min(MAX_ROW - line.len());
        line.extend_from_slice(&buffer[..taken]);
        reader.consume(taken);
        // Blank lines before the header don't tell the delimiter.
        if end.is_some() && line.iter().any(|byte| !byte.is_ascii_whitespace()) {
            break;
        }
    }
    Ok(line)
}

/// The one of comma, semicolon and tab that stands most often outside quotation marks.
fn delimiter(line: &[u8]) -> u8 {
    let mut counts = [(b',', 0usize), (b';', 0), (b'\t', 0)];
    let mut quoted = false;
    for &byte in line {
        quoted ^= byte == b'"';
        if let Some((_, count)) = counts.iter_mut().find(|(delimiter, _)| !quoted && *delimiter == byte) {
            *count += 1;
        }
    }
    // The first of equals wins, so that one column without any delimiter is read with commas.
    let mut best = counts[0];
    for candidate in counts {
        if candidate.1 > best.1 {
            best = candidate;
        }
    }
    best.0
}

fn into_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        // Rows of any length and of bytes are asked for, so nothing else can come. Its text is not passed on, as it
        // might quote a cell.
        _ => io::Error::other("the CSV library gave up"),
    }
}
