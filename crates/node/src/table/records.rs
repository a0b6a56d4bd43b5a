//! The rows of a text, each within limits: where a line ends, where a cell ends, and which line the reader of an error has to look at.
//!
//! A library that splits cells accepts a quotation mark without its partner, and text behind a partner: rows vanish then without a word.
//! So the marks are looked at here.

use std::io::{self, BufRead};

use memchr::{memchr, memchr2, memchr2_iter};

use super::{
    Delimiter, Dialect, Fault, MAX_CELL, MAX_COLUMNS, MAX_ROW, Place, Result, TableError,
    cell::{Parsed, parse},
};

/// What to do about a quotation mark that may have no partner.
const PARTNER: &str = "put its partner where the cell ends, or take the mark out; if cells of this file do span lines, say multiline = true \
                       under [rows] in site.toml";

/// What is wrong with a line that is past a limit, if it is read by itself.
pub(super) const TOO_LONG: Fault = Fault::row("more than fits on a line", "look whether this line is one of rows");

/// How a text is split into cells; without a delimiter every line is one.
impl Dialect {
    /// Where a cell ends that begins at the start of `rest`.
    fn end(self, rest: &[u8]) -> usize {
        let end = match self.delimiter {
            None => None,
            Some(Delimiter::Blanks) => memchr2(b' ', b'\t', rest),
            Some(delimiter) => memchr(delimiter.byte(), rest),
        };
        end.unwrap_or(rest.len())
    }

    fn is_delimiter(self, byte: u8) -> bool {
        match self.delimiter {
            None => false,
            Some(Delimiter::Blanks) => is_blank(byte),
            Some(delimiter) => byte == delimiter.byte(),
        }
    }

    /// How many cells a line has by itself, as if no mark stood in it; none on a blank one.
    pub(super) fn count(self, line: &[u8]) -> usize {
        match self.delimiter {
            _ if line.iter().all(u8::is_ascii_whitespace) => 0,
            Some(Delimiter::Blanks) => line.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty()).count(),
            _ => 1 + line.iter().filter(|byte| self.is_delimiter(**byte)).count(),
        }
    }
}

/// Whether what stands behind a quotation mark has its partner.
fn closes(mut rest: &[u8]) -> bool {
    while let Some(mark) = memchr(b'"', rest) {
        if rest.get(mark + 1) != Some(&b'"') {
            return true;
        }
        rest = &rest[mark + 2..];
    }
    false
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// A row that was read.
pub(super) struct Record {
    /// The line on which it begins, counted from 1.
    pub line: u64,
    /// What is wrong with it, where the rows behind it can still be told apart.
    pub fault: Option<Fault>,
}

/// The rows of a text.
pub(super) struct Records<R> {
    text: R,
    split: Dialect,
    /// What errors call it.
    pub file: String,
    /// Cells of a row, where the header has been read.
    pub width: Option<usize>,
    /// Rows with a cell that spans lines.
    pub spanning: u64,
    /// Lines that were read.
    line: u64,
    /// Whether the present row has quotation marks.
    marked: bool,
    /// Whether the present row was too long to be kept.
    long: bool,
    /// Whether the last line ended by CR, of which LF may be the second half.
    half: bool,
    /// The bytes of the present row; its lines are joined by LF.
    row: Vec<u8>,
    /// The same without quotation marks, where it has any.
    bare: Vec<u8>,
    /// Where its cells begin and end in `row`.
    cells: Vec<(usize, usize)>,
}

impl<R> Records<R> {
    /// How many cells the present row has.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether a cell of the present row may have a comma in it.
    pub(super) fn may_have_commas(&self) -> bool {
        (self.split.delimiter != Some(Delimiter::Comma) || self.marked) && memchr(b',', &self.row).is_some()
    }

    /// The last line that was read.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// A cell of the present row.
    pub(super) fn bytes(&self, at: usize) -> &[u8] {
        let (begin, end) = self.cells[at];
        &self.row[begin..end]
    }

    /// All cells of the present row.
    pub(super) fn cells(&self) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
        self.cells.iter().map(|(begin, end)| &self.row[*begin..*end])
    }
}

impl<R: BufRead> Records<R> {
    pub(super) fn new(text: R, file: &str, split: Dialect) -> Records<R> {
        let (row, bare, cells) = (Vec::new(), Vec::new(), Vec::new());
        let file = file.to_owned();
        let (width, spanning, line, marked, long, half) = (None, 0, 0, false, false, false);
        Records { text, split, file, width, spanning, line, marked, long, half, row, bare, cells }
    }

    /// Appends the next line to the row, without its end (LF, CRLF or CR); false at the end of the text.
    fn read_line(&mut self, begin: u64) -> Result<bool> {
        let mut some = false;
        loop {
            let buffer = match self.text.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(Fault::read(source).of(&self.file)),
            };
            let Some(first) = buffer.first() else {
                self.line += u64::from(some);
                return Ok(some);
            };
            if std::mem::take(&mut self.half) && *first == b'\n' {
                self.text.consume(1);
                continue;
            }
            some = true;
            let end = memchr2(b'\n', b'\r', buffer);
            self.row.extend_from_slice(&buffer[..end.unwrap_or(buffer.len())]);
            self.half = end.is_some_and(|at| buffer[at] == b'\r');
            let read = end.map_or(buffer.len(), |at| at + 1);
            self.text.consume(read);
            if self.row.len() > MAX_ROW && self.split.by_line {
                self.row.clear();
                self.long = true;
            } else if self.row.len() > MAX_ROW {
                let line = if begin > 0 { begin } else { self.line + 1 };
                let next = "look for a quotation mark without its partner, and check that this is a CSV file";
                let what = format!("the row is longer than {MAX_ROW} bytes");
                return Err(Fault::said(what, next).of_row((&self.file, Place::Line(line))));
            }
            if end.is_some() {
                self.line += 1;
                return Ok(true);
            }
        }
    }

    /// Leaves out the next line that is not blank.
    pub(super) fn skip_line(&mut self) -> Result<()> {
        while self.read_line(0)? && self.row.is_empty() {}
        Ok(())
    }

    /// Reads the next row that is not blank.
    ///
    /// # Errors
    /// A [`TableError`] where the rows behind it cannot be told apart.
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        self.row.clear();
        self.cells.clear();
        self.long = false;
        while self.row.is_empty() && !self.long {
            if !self.read_line(0)? {
                return Ok(None);
            }
        }
        let line = self.line;
        if self.long {
            return Ok(Some(Record { line, fault: Some(TOO_LONG) }));
        }
        self.marked = !self.plain();
        let fault = if self.marked { self.quoted(line)? } else { None };
        let spot = (&self.file[..], Place::Line(line));
        let long = self.cells.iter().position(|(begin, end)| end - begin > MAX_CELL);
        let limit = match (self.cells.len() > MAX_COLUMNS, long) {
            (false, None) => return Ok(Some(Record { line, fault })),
            _ if self.split.by_line => return Ok(Some(Record { line, fault: Some(TOO_LONG) })),
            (true, _) => Fault::too_many_columns(),
            (false, Some(at)) => Fault::cell_too_long(at + 1),
        };
        Err(limit.of_row(spot))
    }

    /// Splits a row without quotation marks; false where it has one.
    fn plain(&mut self) -> bool {
        match self.split.delimiter {
            None | Some(Delimiter::Blanks) if memchr(b'"', &self.row).is_some() => return false,
            None => self.cells.push((0, self.row.len())),
            Some(Delimiter::Blanks) => {
                let mut end = 0;
                while let Some(blanks) = self.row[end..].iter().position(|byte| !is_blank(*byte)) {
                    let begin = end + blanks;
                    end = begin + self.split.end(&self.row[begin..]);
                    self.cells.push((begin, end));
                }
            }
            Some(delimiter) => {
                let mut begin = 0;
                for at in memchr2_iter(delimiter.byte(), b'"', &self.row) {
                    if self.row[at] == b'"' {
                        self.cells.clear();
                        return false;
                    }
                    self.cells.push((begin, at));
                    begin = at + 1;
                }
                self.cells.push((begin, self.row.len()));
            }
        }
        true
    }

    /// Splits a row with quotation marks, which may go on over lines. A mark that does not begin its cell is a plain character.
    fn quoted(&mut self, begin: u64) -> Result<Option<Fault>> {
        let split = self.split;
        self.bare.clear();
        let (mut at, mut fault) = (0, None);
        if split.delimiter == Some(Delimiter::Blanks) {
            at = self.row.iter().take_while(|byte| is_blank(**byte)).count();
        }
        loop {
            let start = self.bare.len();
            let mark = self.row[at..].iter().position(|byte| !is_blank(*byte) || split.is_delimiter(*byte));
            let mark = mark.map(|blanks| at + blanks).filter(|mark| self.row[*mark] == b'"');
            if let Some(mark) = mark.filter(|mark| split.by_line && !closes(&self.row[mark + 1..])) {
                let next = "put its partner where the cell ends, or take the mark out; under noise no cell spans lines";
                fault.get_or_insert(Fault::row("a quotation mark that has no partner on its line", next));
                self.bare.extend_from_slice(&self.row[mark..]);
                at = self.row.len();
            } else if let Some(mark) = mark {
                let opened = self.line;
                at = self.inside(mark + 1, begin)?;
                let behind = at + split.end(&self.row[at..]);
                if !self.row[at..behind].iter().all(u8::is_ascii_whitespace) {
                    let what = "text follows the quotation mark that closes a cell";
                    if self.line != opened {
                        let what = format!("a quotation mark opens here, and {what} on line {}", self.line);
                        return Err(Fault::said(what, PARTNER).of_row((&self.file, Place::Line(opened))));
                    }
                    let next = "write a quotation mark within a cell twice (\"\"), or take it out";
                    fault.get_or_insert(Fault::row(what, next));
                }
                at = behind;
            } else {
                let end = at + split.end(&self.row[at..]);
                self.bare.extend_from_slice(&self.row[at..end]);
                at = end;
            }
            self.cells.push((start, self.bare.len()));
            if split.delimiter == Some(Delimiter::Blanks) {
                at += self.row[at..].iter().take_while(|byte| is_blank(**byte)).count();
                if at == self.row.len() {
                    break;
                }
            } else if at == self.row.len() {
                break;
            } else {
                at += 1;
            }
        }
        if self.line != begin {
            self.header_spans(begin)?;
            self.spanning += u64::from(self.width.is_some());
        }
        std::mem::swap(&mut self.row, &mut self.bare);
        Ok(fault)
    }

    /// Takes what stands in quotation marks from `at` on, and tells where it ends, behind the mark that closes it.
    fn inside(&mut self, mut at: usize, begin: u64) -> Result<usize> {
        let (opened, mut piece, mut first) = (self.line, at, true);
        loop {
            match memchr(b'"', &self.row[at..]) {
                Some(mark) if self.row.get(at + mark + 1) == Some(&b'"') => {
                    self.bare.extend_from_slice(&self.row[at..=at + mark]);
                    at += mark + 2;
                }
                Some(mark) => {
                    self.bare.extend_from_slice(&self.row[at..at + mark]);
                    if !first {
                        self.no_row(&self.row[piece..at + mark], opened, self.line)?;
                    }
                    return Ok(at + mark + 1);
                }
                None => {
                    self.bare.extend_from_slice(&self.row[at..]);
                    match std::mem::take(&mut first) {
                        // All cells of a row stand on the line on which the mark opens.
                        true => self.no_whole(&self.row[piece..], opened)?,
                        false => self.no_row(&self.row[piece..], opened, self.line)?,
                    }
                    self.row.push(b'\n');
                    self.bare.push(b'\n');
                    at = self.row.len();
                    piece = at;
                    if !self.read_line(begin)? {
                        let what = "a quotation mark opens here and has no partner up to the end of the file";
                        return Err(self.unclosed(opened, what.to_owned()));
                    }
                }
            }
        }
    }

    fn unclosed(&self, opened: u64, what: String) -> TableError {
        Fault::said(what, PARTNER).of_row((&self.file, Place::Line(opened)))
    }

    /// Whether a line within quotation marks does not look like a row.
    fn no_row(&self, piece: &[u8], opened: u64, line: u64) -> Result<()> {
        if self.split.multiline || self.width.is_none_or(|width| self.split.count(piece) != width) {
            return Ok(());
        }
        let what = format!(
            "a quotation mark opens here and has no partner before line {line}, which looks like a row of its own"
        );
        Err(self.unclosed(opened, what))
    }

    /// Whether a line on which a mark opens and does not close lacks cells of a row, taken without the mark.
    fn no_whole(&self, piece: &[u8], opened: u64) -> Result<()> {
        let cells = self.split.count(piece);
        if self.split.multiline || cells < 2 || self.width.is_none_or(|width| self.cells.len() + cells != width) {
            return Ok(());
        }
        let what = "a quotation mark opens here and is not closed on this line, which has all cells of a row";
        Err(self.unclosed(opened, what.to_owned()))
    }

    /// Whether the lines of a header that spans some are none of rows: with numbers, and as many cells as the header.
    fn header_spans(&self, begin: u64) -> Result<()> {
        if self.width.is_some() || self.split.multiline {
            return Ok(());
        }
        let is_number = |cell: &[u8]| matches!(parse(cell), Parsed::Number(_));
        for (line, piece) in self.row.split(|byte| *byte == b'\n').enumerate().skip(1) {
            let mut cells = piece.split(|byte| self.split.is_delimiter(*byte));
            if self.split.count(piece) == self.cells.len() && cells.any(is_number) {
                let what = format!(
                    "a quotation mark in the header has no partner before line {}, which looks like a row of its own",
                    begin + line as u64
                );
                return Err(self.unclosed(begin, what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &[u8], delimiter: Option<Delimiter>) -> Result<Vec<Vec<Vec<u8>>>, TableError> {
        let mut records = Records::new(text, "text", Dialect { delimiter, multiline: true, ..Dialect::default() });
        let mut rows = Vec::new();
        while let Some(record) = records.next()? {
            assert!(record.fault.is_none());
            rows.push(records.cells().map(<[u8]>::to_vec).collect());
        }
        Ok(rows)
    }

    proptest! {
        /// What another program writes with quotation marks around every cell is read back, byte by byte but for the ends of lines.
        #[test]
        fn what_is_quoted_is_read_back(rows in prop::collection::vec(prop::collection::vec("[ab1,;|\t \"\n]{0,6}", 2..5), 1..6)) {
            for delimiter in [Delimiter::Comma, Delimiter::Semicolon, Delimiter::Tab, Delimiter::Pipe] {
                let mut text = Vec::new();
                let mut writer = csv::WriterBuilder::new();
                writer.delimiter(delimiter.byte()).quote_style(csv::QuoteStyle::Always).flexible(true);
                let mut writer = writer.from_writer(&mut text);
                rows.iter().for_each(|row| writer.write_record(row).unwrap());
                drop(writer);
                let found = all(&text, Some(delimiter)).unwrap();
                let expected: Vec<Vec<Vec<u8>>> =
                    rows.iter().map(|row| row.iter().map(|cell| cell.clone().into_bytes()).collect()).collect();
                prop_assert_eq!(&found, &expected);
                // Other ends of lines are the same rows.
                let other = String::from_utf8(text).unwrap().replace('\n', "\r\n");
                prop_assert_eq!(&all(other.as_bytes(), Some(delimiter)).unwrap(), &expected);
            }
        }

        /// No text makes the reader panic or hang, and every line is read or ends the reading by an error.
        #[test]
        fn any_text_is_read_or_refused(text in "[ab1,; \"\r\n]{0,40}") {
            for delimiter in [None, Some(Delimiter::Comma), Some(Delimiter::Blanks)] {
                for (multiline, by_line) in [(false, false), (true, false), (false, true)] {
                    let mut records = Records::new(text.as_bytes(), "text", Dialect { delimiter, multiline, by_line, ..Dialect::default() });
                    let mut before = 0;
                    loop {
                        match records.next() {
                            Ok(Some(record)) => {
                                prop_assert!(record.line > before && record.line <= records.line());
                                before = records.line();
                                records.width = Some(records.len());
                            }
                            Ok(None) => {
                                let lines = text.replace("\r\n", "\n").replace('\r', "\n");
                                prop_assert_eq!(records.line(), lines.lines().count() as u64);
                                break;
                            }
                            Err(_) => {
                                prop_assert!(!by_line);
                                break;
                            }
                        }
                    }
                }
            }
        }

        /// [NOI-8]: by lines, what one line holds changes no other row.
        #[test]
        fn noi_8_a_line_is_read_by_itself(lines in prop::collection::vec("[ab1,; \"]{1,12}", 1..6), at in 0usize..6, new in "[ab1,; \"]{1,12}") {
            let read = |lines: &[String]| {
                let text = lines.join("\n");
                let (delimiter, by_line) = (Some(Delimiter::Comma), true);
                let split = Dialect { delimiter, by_line, ..Dialect::default() };
                let mut records = Records::new(text.as_bytes(), "text", split);
                let mut rows = Vec::new();
                while let Some(record) = records.next().expect("no error of the whole") {
                    let cells: Vec<Vec<u8>> = records.cells().map(<[u8]>::to_vec).collect();
                    rows.push((record.fault.is_some(), cells));
                }
                rows
            };
            let at = at.min(lines.len());
            let mut more = lines.clone();
            more.insert(at, new);
            let (before, mut after) = (read(&lines), read(&more));
            after.remove(at);
            prop_assert_eq!(before, after);
        }
    }
}
