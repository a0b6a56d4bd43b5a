//! Tables of numbers from CSV files, and back: a site's rows, starting centres, memberships.
//!
//! Cells are private. An error names the file, the line and the column and what to do, and never what a cell holds;
//! neither does `Debug`. A header is shown, so a first line that holds numbers is refused before anything quotes it: it
//! is a row of data in a file without a header.
//!
//! Files are read as a stream, and what a hostile one can make us hold is limited by [`MAX_COLUMNS`], [`MAX_CELL`],
//! [`MAX_ROW`] and [`MAX_VALUES`].

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    fmt,
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read, Write},
    path::Path,
    rc::Rc,
};

use csv::ByteRecord;

mod error;

pub use error::TableError;

/// Columns of a file. Wider tables are no use to clustering by distance.
pub const MAX_COLUMNS: usize = 4096;

/// Bytes of a cell. The longest number worth writing has some 800 digits; labels are names.
pub const MAX_CELL: usize = 4096;

/// Bytes of a row with its quotes and delimiters: a bound on memory while its cells are still being told apart.
pub const MAX_ROW: usize = 1 << 20;

/// Numbers of a table: 4 GiB. Larger data belong into a database, or into several sites' worth of files.
pub const MAX_VALUES: usize = 1 << 29;

/// Column names that an error lists before it says "and more".
const SHOWN_COLUMNS: usize = 30;

/// How the reader is told that a row outgrew its allowance.
const ROW_TOO_LONG: &str = "the row's allowance is used up";

/// Which columns of a file are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSpec {
    /// The numeric columns by name, in the order wanted; empty means all but the label, in the file's order.
    pub columns: Vec<String>,
    /// A column of names to keep beside the numbers, to compare a clustering with. It is never clustered.
    pub label: Option<String>,
}

/// Numeric rows with named columns.
#[derive(Clone, PartialEq)]
pub struct Table {
    /// Names of the numeric columns.
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

/// Reads the column names of the CSV file at `path`, all of them.
pub fn read_header(path: impl AsRef<Path>) -> Result<Vec<String>, TableError> {
    let (reader, name) = open(path.as_ref())?;
    let mut rows = Rows::new(reader, &name)?;
    match rows.next_row()? {
        Some((line, header)) => column_names(&name, line, header),
        None => Err(TableError::Empty { file: name.clone() }),
    }
}

/// Reads the chosen columns of the CSV file at `path`.
pub fn read_csv(path: impl AsRef<Path>, spec: &TableSpec) -> Result<Table, TableError> {
    let (reader, name) = open(path.as_ref())?;
    read_csv_from(reader, &name, spec)
}

/// Reads the chosen columns of CSV text; errors call it `name`.
///
/// The delimiter (comma, semicolon or tab) is told from the header line. A byte order mark, CRLF and blank lines are
/// accepted, but for blank lines amid a single column: such a line is a missing value there.
pub fn read_csv_from(reader: impl Read, name: &str, spec: &TableSpec) -> Result<Table, TableError> {
    let mut rows = Rows::new(reader, name)?;
    let Some((line, header)) = rows.next_row()? else { return Err(TableError::Empty { file: name.to_owned() }) };
    let header = column_names(name, line, header)?;
    let chosen = choose(name, &header, spec)?;
    let width = chosen.columns.len();
    let mut table = Table {
        columns: chosen.columns.iter().map(|&at| header[at].clone()).collect(),
        values: Vec::new(),
        rows: 0,
        labels: chosen.label.map(|_| Vec::new()),
    };
    let mut last_line = line;
    while let Some((line, row)) = rows.next_row()? {
        if header.len() == 1 && line > last_line + 1 {
            return Err(TableError::EmptyCell {
                file: name.to_owned(),
                line: last_line + 1,
                column: header[0].clone(),
            });
        }
        last_line = line;
        if row.len() != header.len() {
            return Err(TableError::Ragged { file: name.to_owned(), line, got: row.len(), expected: header.len() });
        }
        if table.values.len() > MAX_VALUES - width {
            return Err(TableError::TooLarge { file: name.to_owned(), line });
        }
        for &at in &chosen.columns {
            table.values.push(number(name, line, &header[at], &row[at])?);
        }
        if let (Some(at), Some(labels)) = (chosen.label, &mut table.labels) {
            let label = text(name, line, &row[at])?;
            if label.is_empty() {
                return Err(TableError::EmptyCell { file: name.to_owned(), line, column: header[at].clone() });
            }
            labels.push(label.to_owned());
        }
        table.rows += 1;
    }
    if table.rows == 0 {
        return Err(TableError::NoRows { file: name.to_owned() });
    }
    Ok(table)
}

/// Where row `row` (counted from 0, without the header) of the CSV file at `path` begins, for an error: the file and the line.
/// Blank lines and cells over several lines make that another number than the row's.
pub fn place_of(path: impl AsRef<Path>, row: usize) -> String {
    let line = |path: &Path| -> Option<u64> {
        let (reader, name) = open(path).ok()?;
        let mut rows = Rows::new(reader, &name).ok()?;
        (0..=row).try_for_each(|_| rows.next_row().ok()?.map(|_| ()))?;
        Some(rows.next_row().ok()??.0)
    };
    let path = path.as_ref();
    match line(path) {
        Some(line) => format!("{}, line {line}", path.display()),
        // It was changed, or is a pipe that has been read.
        None => format!("{}, row {} below the header", path.display(), row + 1),
    }
}

/// Reads a CSV file of numbers without a header, such as starting centres: rows of `columns` numbers each.
pub fn read_matrix(path: impl AsRef<Path>, columns: usize) -> Result<Vec<Vec<f64>>, TableError> {
    let (reader, name) = open(path.as_ref())?;
    read_matrix_from(reader, &name, columns)
}

/// Like [`read_matrix`], from text that errors call `name`.
pub fn read_matrix_from(reader: impl Read, name: &str, columns: usize) -> Result<Vec<Vec<f64>>, TableError> {
    let mut rows = Rows::new(reader, name)?;
    let mut matrix: Vec<Vec<f64>> = Vec::new();
    while let Some((line, row)) = rows.next_row()? {
        if matrix.is_empty() && row.iter().all(|cell| matches!(parse(cell), Parsed::Words)) {
            return Err(TableError::UnwantedHeader { file: name.to_owned(), line });
        }
        if row.len() != columns {
            return Err(TableError::Ragged { file: name.to_owned(), line, got: row.len(), expected: columns });
        }
        if matrix.len() >= MAX_VALUES / columns.max(1) {
            return Err(TableError::TooLarge { file: name.to_owned(), line });
        }
        let numbers = row.iter().enumerate().map(|(at, cell)| number(name, line, &(at + 1).to_string(), cell));
        matrix.push(numbers.collect::<Result<_, _>>()?);
    }
    if matrix.is_empty() {
        return Err(TableError::Empty { file: name.to_owned() });
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
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
    let mut write = |record: &ByteRecord| -> Result<(), TableError> {
        if record.len() != header.len() {
            return Err(TableError::WriteRagged { got: record.len(), expected: header.len() });
        }
        writer.write_byte_record(record).map_err(|error| TableError::Write { source: into_io(error) })
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
    writer.flush().map_err(|source| TableError::Write { source })
}

/// Writes a header and rows of numbers, each in the shortest form that reads back as the same number.
pub fn write_numbers<N, R>(out: impl Write, header: &[N], rows: R) -> Result<(), TableError>
where
    N: AsRef<str>,
    R: IntoIterator,
    R::Item: AsRef<[f64]>,
{
    // The debug form is the one that turns to exponents for very large and very small numbers.
    let rows = rows.into_iter().map(|row| row.as_ref().iter().map(|x| format!("{x:?}")).collect::<Vec<_>>());
    write_csv(out, header, rows)
}

// ---- Header and cells -----------------------------------------------------------------------------------------------

fn column_names(file: &str, line: u64, header: &ByteRecord) -> Result<Vec<String>, TableError> {
    let file = || file.to_owned();
    let mut names = Vec::with_capacity(header.len());
    // All cells are looked at for numbers before any of them may be quoted.
    for (at, cell) in header.iter().enumerate() {
        if matches!(parse(cell), Parsed::Number(_) | Parsed::NotFinite | Parsed::DecimalComma) {
            return Err(TableError::NoHeader { file: file(), position: at + 1 });
        }
    }
    let mut seen = HashMap::new();
    for (at, cell) in header.iter().enumerate() {
        let column = text(&file(), line, cell)?;
        if column.is_empty() {
            return Err(TableError::UnnamedColumn { file: file(), position: at + 1 });
        }
        if column.contains('\0') {
            // UTF-16 without its mark: every second byte of plain English is zero.
            return Err(TableError::NotUtf8 { file: file(), line });
        }
        if seen.insert(column.to_owned(), at).is_some() {
            return Err(TableError::DuplicateColumn { file: file(), column: column.to_owned() });
        }
        names.push(column.to_owned());
    }
    Ok(names)
}

/// Where the wanted columns stand in the file.
struct Chosen {
    columns: Vec<usize>,
    label: Option<usize>,
}

fn choose(file: &str, header: &[String], spec: &TableSpec) -> Result<Chosen, TableError> {
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
    let mut columns = Vec::new();
    for column in &spec.columns {
        let at = find(column)?;
        if std::mem::replace(&mut taken[at], true) {
            return Err(TableError::ChosenTwice { file: file.to_owned(), column: column.clone() });
        }
        columns.push(at);
    }
    if spec.columns.is_empty() {
        columns.extend((0..header.len()).filter(|at| Some(*at) != label));
    }
    if columns.is_empty() {
        return Err(TableError::NoColumns { file: file.to_owned() });
    }
    Ok(Chosen { columns, label })
}

fn list(header: &[String]) -> String {
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

/// What a cell is, taken as a number.
enum Parsed {
    Number(f64),
    NotFinite,
    Missing,
    DecimalComma,
    Words,
    NotUtf8,
}

fn parse(cell: &[u8]) -> Parsed {
    let Ok(cell) = std::str::from_utf8(cell) else { return Parsed::NotUtf8 };
    let cell = cell.trim();
    match cell.parse::<f64>() {
        Ok(x) if x.is_finite() => Parsed::Number(x),
        Ok(_) => Parsed::NotFinite,
        // How R, SQL and spreadsheets write that nothing is there.
        Err(_) if cell.is_empty() || ["na", "n/a", "null", "none", "?", "."].contains(&&*cell.to_ascii_lowercase()) => {
            Parsed::Missing
        }
        Err(_) if cell.matches(',').count() == 1 && cell.replace(',', ".").parse::<f64>().is_ok() => {
            Parsed::DecimalComma
        }
        Err(_) => Parsed::Words,
    }
}

fn number(file: &str, line: u64, column: &str, cell: &[u8]) -> Result<f64, TableError> {
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

fn text<'a>(file: &str, line: u64, cell: &'a [u8]) -> Result<&'a str, TableError> {
    match std::str::from_utf8(cell) {
        Ok(text) => Ok(text.trim()),
        Err(_) => Err(TableError::NotUtf8 { file: file.to_owned(), line }),
    }
}

// ---- Rows within limits ---------------------------------------------------------------------------------------------

fn open(path: &Path) -> Result<(File, String), TableError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => Ok((file, name)),
        Err(source) => Err(TableError::Open { file: name, source }),
    }
}

/// The rows of a CSV text, each within the limits.
struct Rows<'a, R: Read> {
    reader: csv::Reader<Metered<R>>,
    record: ByteRecord,
    meter: Rc<RefCell<Meter>>,
    file: &'a str,
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

impl<'a, R: Read> Rows<'a, R> {
    fn new(reader: R, file: &'a str) -> Result<Self, TableError> {
        let mut reader = BufReader::new(reader);
        let first = first_line(&mut reader).map_err(|source| TableError::Read { file: file.to_owned(), source })?;
        if first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]) {
            return Err(TableError::NotUtf8 { file: file.to_owned(), line: 1 });
        }
        let first = first.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(&first).to_vec();
        let delimiter = delimiter(&first);
        let meter = Rc::new(RefCell::new(Meter::new()));
        let text = Metered { text: Cursor::new(first).chain(reader), meter: meter.clone() };
        // Rows are counted off here and not by the library, whose error would not name the file.
        let reader = csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text);
        Ok(Self { reader, record: ByteRecord::new(), meter, file })
    }

    /// The next row that is not blank, and the line on which it begins.
    fn next_row(&mut self) -> Result<Option<(u64, &ByteRecord)>, TableError> {
        let file = || self.file.to_owned();
        // The library may have read ahead into this row, by no more than its buffer.
        self.meter.borrow_mut().left = MAX_ROW;
        let begin = self.reader.position().byte();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                let source = into_io(error);
                return Err(if source.to_string() == ROW_TOO_LONG {
                    TableError::RowTooLong { file: file(), line: self.meter.borrow_mut().line_at(begin) }
                } else {
                    TableError::Read { file: file(), source }
                });
            }
        }
        let line = self.meter.borrow_mut().line_at(begin);
        if self.record.len() > MAX_COLUMNS {
            return Err(TableError::TooManyColumns { file: file(), line });
        }
        if let Some(at) = self.record.iter().position(|cell| cell.len() > MAX_CELL) {
            return Err(TableError::CellTooLong { file: file(), line, position: at + 1 });
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

#[cfg(test)]
mod tests;
