//! How a text of rows is laid out, told from the header and the first rows together; where they can be read in two ways nobody guesses.

use super::{
    Decimal, Delimiter, Dialect, Fault, Result,
    cell::{Parsed, parse},
    records::Records,
    signs::is_decimal,
    wanted::list,
};

/// Rows that are looked at.
const ROWS: usize = 300;
/// Lines before a header that are told from rows.
const BEFORE: usize = 30;

/// How the rows of one text are read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Layout {
    /// What stands between cells; nothing where every line is one cell.
    pub delimiter: Option<Delimiter>,
    /// Whether the header ends by a delimiter, behind which nothing stands.
    pub open_header: bool,
    /// Whether rows do.
    pub open_rows: bool,
    /// Whether the first line that is not blank only says what the delimiter is, as Excel writes it.
    pub said: bool,
}

/// A row under one delimiter: on which line it is, its cells, whether the last is empty, whether one is a number, whether one has a decimal
/// comma, and whether every comma is one.
struct Seen {
    line: u64,
    cells: usize,
    open: bool,
    numbers: bool,
    commas: bool,
    decimal: bool,
}

/// The header and the first rows under one delimiter.
struct Reading {
    delimiter: Delimiter,
    header: Vec<Vec<u8>>,
    rows: Vec<Seen>,
    /// Whether what follows them cannot be told apart.
    broken: bool,
}

impl Reading {
    /// Reads the first rows of `sample`; nothing where not even a header can be told.
    fn of(by: Delimiter, sample: &[u8], whole: bool, (name, dialect): (&str, Dialect), said: bool) -> Option<Reading> {
        let split = Dialect { delimiter: Some(by), ..dialect };
        let mut records = Records::new(sample, name, split);
        if said {
            records.skip_line().ok()?;
        }
        records.next().ok()?.filter(|header| header.fault.is_none())?;
        let header: Vec<Vec<u8>> = records.cells().map(<[u8]>::to_vec).collect();
        records.width = Some(header.len());
        let mut rows = Vec::new();
        let mut next = Ok(None);
        while rows.len() < ROWS {
            next = records.next();
            // What cannot be told apart is told when it is read.
            let Ok(Some(record)) = &next else { break };
            let open = records.cells().next_back().is_some_and(|cell| cell.trim_ascii().is_empty());
            let is = |cell: &[u8]| parse(&dialect.decimal.point(cell));
            let numbers = records.cells().any(|cell| matches!(is(cell), Parsed::Number(_) | Parsed::DecimalComma));
            let commas = records.cells().any(|cell| matches!(is(cell), Parsed::DecimalComma));
            let cells = if record.fault.is_none() { records.len() } else { 0 };
            let decimal = records.cells().all(|cell| !cell.contains(&b',') || is_decimal(cell));
            rows.push(Seen { line: record.line, cells, open, numbers, commas, decimal });
        }
        if matches!(next, Ok(None)) && !whole {
            rows.pop();
        }
        Some(Reading { delimiter: by, header, rows, broken: next.is_err() })
    }

    fn ends_open(&self) -> bool {
        self.header.len() > 1 && self.header.last().is_some_and(|cell| cell.trim_ascii().is_empty())
    }

    /// How many rows have the header's cells, where header and rows end as this says.
    fn fitting(&self, (open_header, open_rows): (bool, bool)) -> usize {
        let width = self.header.len() - usize::from(open_header) + usize::from(open_rows);
        self.rows.iter().filter(|row| row.cells == width && (!open_rows || row.open)).count()
    }

    /// Whether header and rows end by a delimiter, as most rows have it, and how many rows fit.
    fn best(&self) -> ((bool, bool), usize) {
        let ways: &[(bool, bool)] = match self.ends_open() {
            // A column without a name whose cells are all empty is none.
            true => &[(true, true), (true, false), (false, false)],
            false => &[(false, false)],
        };
        let fitting = ways.iter().map(|way| (*way, self.fitting(*way))).rev();
        fitting.max_by_key(|(_, fitting)| *fitting).unwrap_or_default()
    }

    fn has_columns(&self) -> bool {
        self.header.len() > 1
    }

    fn layout(&self, said: bool) -> Layout {
        let ((open_header, open_rows), _) = self.best();
        Layout { delimiter: Some(self.delimiter), open_header, open_rows, said }
    }

    /// Whether header and rows have as many cells.
    fn fits(&self) -> bool {
        self.has_columns() && self.best().1 == self.rows.len()
    }

    /// Whether most rows have as many cells as the header.
    fn nearly_fits(&self) -> bool {
        self.has_columns() && (2 * self.best().1 > self.rows.len() || self.rows.is_empty() && self.broken)
    }

    /// Whether header and rows have as many cells, and all commas of the rows are amid numbers: then they may be decimal, whatever the header
    /// has.
    fn fits_decimal(&self) -> bool {
        !self.rows.is_empty() && self.best().1 == self.rows.len() && self.rows.iter().all(|row| row.decimal)
    }

    /// Whether it is one column of numbers, whose name has a comma as words have it.
    fn is_of_one(&self) -> bool {
        self.fits_decimal() && self.header.iter().any(|name| name.windows(2).any(|two| two == b", "))
    }

    fn names(&self) -> Vec<String> {
        let cells = &self.header[..self.header.len() - usize::from(self.best().0.0)];
        cells.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_owned()).collect()
    }

    /// Its key, with that for its numbers.
    fn key(&self, decimal: Decimal) -> String {
        let commas = decimal == Decimal::Point && self.rows.iter().any(|row| row.commas);
        self.delimiter.key() + if commas { " with decimal = \",\"" } else { "" }
    }
}

/// How the text that begins with `sample` is read; `whole` says whether this is all of it. `header` looks at the header of a reading before
/// any name of it is shown.
///
/// # Errors
/// A `TableError` where it can be read in two ways, or the header is not on the first line.
pub(super) fn layout(
    sample: &[u8],
    whole: bool,
    name: &str,
    dialect: Dialect,
    header: impl Fn(&[Vec<u8>]) -> Result<()>,
) -> Result<Layout> {
    let stated = stated(sample, name)?;
    let said = stated.is_some();
    if dialect.by_line {
        return by_header(sample, name, dialect, stated);
    }
    let of = |delimiter| Reading::of(delimiter, sample, whole, (name, dialect), said);
    if let Some(delimiter) = dialect.delimiter.or(stated) {
        let Some(reading) = of(delimiter) else {
            return Ok(Layout { delimiter: Some(delimiter), open_header: false, open_rows: false, said });
        };
        misplaced(&[&reading], name)?;
        let alone = dialect.delimiter.is_none() && !reading.has_columns() && !reading.is_of_one();
        if let Some(other) = Delimiter::SIGNS.into_iter().filter(|_| alone).filter_map(of).find(Reading::fits) {
            let what =
                format!("the first line says `sep={}`, and other signs separate cells", char::from(delimiter.byte()));
            let next = format!("take that line out, or say {} under [rows] in site.toml", other.key(dialect.decimal));
            return Err(Fault::said(what, next).of(name));
        }
        return Ok(reading.layout(said));
    }
    let signs: Vec<Reading> = Delimiter::SIGNS.into_iter().filter_map(of).collect();
    let mut fitting: Vec<&Reading> = signs.iter().filter(|reading| reading.fits()).collect();
    let blanks = of(Delimiter::Blanks);
    if let [first, ..] = &fitting[..]
        && first.rows.is_empty()
    {
        // The one that stands most often, the first of equals.
        let most = fitting.iter().rev().max_by_key(|reading| reading.header.len());
        return Ok(most.unwrap_or(first).layout(said));
    }
    if fitting.is_empty() {
        fitting.extend(signs.iter().filter(|reading| reading.nearly_fits()));
    }
    let by_comma = fitting.iter().find(|reading| reading.delimiter == Delimiter::Comma).copied();
    if by_comma.is_some() {
        fitting.extend(blanks.iter().filter(|reading| reading.has_columns() && reading.fits_decimal()));
    }
    if dialect.decimal == Decimal::Comma && fitting.len() > 1 {
        fitting.retain(|reading| reading.delimiter != Delimiter::Comma);
    }
    let is_apart = |of: &Reading| !of.rows.is_empty() && of.rows.iter().all(|row| row.decimal && row.cells > 1);
    if let ([one], Some(_)) = (&fitting[..], by_comma.and(blanks.as_ref().filter(|of| is_apart(of))))
        && one.delimiter == Delimiter::Comma
    {
        let what = "commas separate the names of the header, and stand amid numbers in every row, whose cells are separated by blanks";
        let next = "give the columns names without commas and blanks; or, if commas separate cells, say delimiter = \",\" under [rows] in site.toml";
        return Err(Fault::said(what, next).of_header(name));
    }
    // One column whose name has a comma, and whose numbers have decimal ones.
    if let (Some(two), 1) = (by_comma, fitting.len())
        && (dialect.decimal == Decimal::Comma || two.header.get(1).is_some_and(|name| name.starts_with(b" ")))
    {
        fitting.extend(signs.iter().find(|reading| !reading.has_columns() && reading.fits_decimal()));
    }
    if fitting.is_empty() {
        fitting.extend(blanks.iter().filter(|reading| reading.nearly_fits()));
    }
    match &fitting[..] {
        [one] => Ok(one.layout(said)),
        [one, two, ..] => {
            header(&one.header)?;
            header(&two.header)?;
            let (these, those) = (list(&one.names()), list(&two.names()));
            let what = format!("header and rows can be read in two ways, with the columns {these} or with {those}");
            let (one, two) = (one.key(dialect.decimal), two.key(dialect.decimal));
            let next = format!("say which it is under [rows] in site.toml: {one} for the first, {two} for the second");
            Err(Fault::said(what, next).of(name))
        }
        [] => {
            let all: Vec<&Reading> = signs.iter().chain(&blanks).collect();
            misplaced(&all, name)?;
            // Rows are told one by one that they have other cells than the header.
            let most =
                signs.iter().rev().filter(|reading| reading.has_columns()).max_by_key(|reading| reading.header.len());
            // Where not even the header can be read, it is read once more to say why.
            let first = lines(sample).next().unwrap_or_default();
            let stands = |of: &Delimiter| first.iter().filter(|byte| **byte == of.byte()).count();
            let failed = |of: &Delimiter| !signs.iter().any(|reading| reading.delimiter == *of);
            let often = Delimiter::SIGNS.into_iter().rev().filter(failed).max_by_key(stands);
            let often = often.filter(|often| signs.is_empty() || stands(often) > 0);
            let delimiter = most.map(|reading| reading.delimiter).or(often);
            Ok(Layout { delimiter, open_header: false, open_rows: false, said })
        }
    }
}

/// The same, told from the header alone: no row has a say in how rows are read.
fn by_header(sample: &[u8], name: &str, dialect: Dialect, stated: Option<Delimiter>) -> Result<Layout> {
    let said = stated.is_some();
    let header = lines(sample).nth(usize::from(said)).unwrap_or_default();
    let of = |delimiter| Reading::of(delimiter, header, true, (name, dialect), false);
    let layout = |delimiter, reading: Option<Reading>| {
        let open = reading.is_some_and(|reading| reading.ends_open());
        Ok(Layout { delimiter, open_header: open, open_rows: open, said })
    };
    if let Some(delimiter) = dialect.delimiter.or(stated) {
        return layout(Some(delimiter), of(delimiter));
    }
    let apart = Delimiter::SIGNS.into_iter().chain([Delimiter::Blanks]).filter_map(of).filter(Reading::has_columns);
    let (mut signs, blanks): (Vec<_>, Vec<_>) = apart.partition(|reading| reading.delimiter != Delimiter::Blanks);
    let keys = match (&signs[..], &blanks[..]) {
        ([one], _) => return layout(Some(one.delimiter), signs.pop()),
        ([], []) => return layout(None, None),
        ([], [blanks]) => [blanks.delimiter, Delimiter::Comma].map(Delimiter::key).join(", or if it is one column "),
        (several, _) => several.iter().map(|of| of.delimiter.key()).collect::<Vec<_>>().join(", or "),
    };
    let what = "the header can be read in several ways, and under noise no row says which it is";
    Err(Fault::said(what, format!("say it under [rows] in site.toml: {keys}")).of_header(name))
}

/// The lines of a text that are not empty.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty())
}

/// What the first line says that stands between cells, where it says nothing else.
fn stated(sample: &[u8], name: &str) -> Result<Option<Delimiter>> {
    let first = lines(sample).next().unwrap_or_default();
    let bare = first.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(first);
    let sign = match bare {
        [s, e, p, b'=', sign] if [*s, *e, *p].eq_ignore_ascii_case(b"sep") => *sign,
        _ => return Ok(None),
    };
    let what = "the first line says what separates cells, and it is none of comma, semicolon, tab, | and blank";
    let wrong = || Fault::said(what, "export the file with one of them").of(name);
    Delimiter::of(sign).map(Some).ok_or_else(wrong)
}

/// Whether the header is where it belongs, where no reading of the text fits.
fn misplaced(readings: &[&Reading], name: &str) -> Result<()> {
    for reading in readings.iter().filter(|reading| !reading.nearly_fits()) {
        let (header, rows) = (reading.header.len(), &reading.rows);
        let Some(last) = rows.last().map(|row| row.cells).filter(|cells| *cells > 1) else { continue };
        let before = rows.len() - rows.iter().rev().take_while(|row| row.cells == last).count();
        let one_more = before == 0 && last == header + 1;
        let wrong = |what: String, next| Err(Fault::said(what, next).of_header(name));
        if one_more && rows.iter().all(|row| row.open) {
            let what = "every row ends by a separator with nothing behind it, and the header does not".to_owned();
            return wrong(what, "take out the separators at the ends of lines, or add one to the header");
        }
        if one_more && rows[0].numbers && header > 1 {
            let what = "every row has one cell more than the header".to_owned();
            return wrong(
                what,
                "if the first cells are names of rows, name that column in the header, or export the file without it (in R: row.names = FALSE); \
                        if numbers have commas, export the file with decimal points or with semicolons between cells",
            );
        }
        let is_header =
            |row: &Seen| !row.numbers && !row.open && last != header && reading.delimiter != Delimiter::Blanks;
        if before < BEFORE.min(rows.len().saturating_sub(1)) && is_header(&rows[before]) {
            let what = format!("the header seems to be on line {}, and other lines stand before it", rows[before].line);
            return wrong(what, "take out the lines before the header");
        }
    }
    Ok(())
}
