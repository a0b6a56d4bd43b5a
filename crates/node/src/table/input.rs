//! An opened file, or standard input, up to its first bytes: they tell its form, and its name does not count.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek},
    path::Path,
    sync::OnceLock,
};

use super::{
    Dialect, Fault, Result, RowReader,
    csv::CsvReader,
    gzip::Members,
    known::{Form, HEAD, told},
};
#[cfg(feature = "columnar")]
use super::{arrow::ArrowReader, parquet::ParquetReader};

/// Bytes that are read at a time.
const BUFFER: usize = 256 << 10;

/// Bytes of standard input at most: it is held as it came, packed or not.
const MAX_PIPE: u64 = 1 << 30;

enum From {
    /// What can be read from its end.
    File(File),
    Stream(Box<dyn Read>),
}

/// Opens one file of rows, or standard input for `-`, whatever its form: CSV, also compressed by gzip, and with the feature `columnar` zstd,
/// Parquet, an Arrow file or an Arrow stream.
///
/// # Errors
/// A `TableError` that names the file.
pub(super) fn open_one(path: &Path, dialect: Dialect) -> Result<Box<dyn RowReader>> {
    if path.as_os_str() == "-" {
        let name = "standard input";
        let bytes = standard_input().map_err(|source| Fault::read(source).of(name))?;
        return form_of(From::Stream(Box::new(Cursor::new(bytes))), name, dialect, true);
    }
    let name = path.display().to_string();
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.is_file(), file)));
    match opened {
        Ok((true, file)) => form_of(From::File(file), &name, dialect, true),
        Ok((false, pipe)) => form_of(From::Stream(Box::new(pipe)), &name, dialect, true),
        Err(source) => Err(Fault::open(source).of(&name)),
    }
}

/// All of standard input, which is read once and looked at as often as needed.
fn standard_input() -> io::Result<&'static [u8]> {
    static ALL: OnceLock<Result<Vec<u8>, io::ErrorKind>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let mut bytes = Vec::new();
        io::stdin().take(MAX_PIPE + 1).read_to_end(&mut bytes).map_err(|e| e.kind())?;
        if bytes.len() as u64 > MAX_PIPE { Err(io::ErrorKind::FileTooLarge) } else { Ok(bytes) }
    });
    all.as_ref().map(Vec::as_slice).map_err(|kind| (*kind).into())
}

fn form_of(mut from: From, name: &str, dialect: Dialect, may_be_packed: bool) -> Result<Box<dyn RowReader>> {
    let failed = |source| Fault::read(source).of(name);
    let mut head = Vec::new();
    match &mut from {
        From::File(file) => {
            file.take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
            file.rewind().map_err(failed)?;
        }
        From::Stream(stream) => {
            stream.take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
        }
    }
    let wrong = |what, next| Err(Fault::said(what, next).of(name));
    let (form, what, next) = told(&head);
    let rest: Box<dyn Read> = match from {
        #[cfg(feature = "columnar")]
        From::File(file) if head.starts_with(b"PAR1") => return Ok(Box::new(ParquetReader::new(file, name)?)),
        #[cfg(feature = "columnar")]
        From::File(file) if form == Form::ArrowFile => return Ok(Box::new(ArrowReader::of_file(file, name)?)),
        From::File(file) => Box::new(file),
        From::Stream(stream) => Box::new(Cursor::new(head).chain(stream)),
    };
    let rest = BufReader::with_capacity(BUFFER, rest);
    match form {
        Form::Text => Ok(Box::new(CsvReader::new(rest, name, dialect)?)),
        Form::Gzip if may_be_packed => form_of(From::Stream(Box::new(Members::new(rest))), name, dialect, false),
        #[cfg(feature = "columnar")]
        Form::Zstd if may_be_packed => {
            let unpacked = zstd::Decoder::with_buffer(rest).map_err(failed)?;
            form_of(From::Stream(Box::new(unpacked)), name, dialect, false)
        }
        #[cfg(feature = "columnar")]
        Form::Zstd => wrong("it is packed twice", "unpack it once"),
        #[cfg(feature = "columnar")]
        Form::ArrowStream => Ok(Box::new(ArrowReader::of_stream(Box::new(rest), name)?)),
        #[cfg(feature = "columnar")]
        Form::ArrowFile => wrong(
            "an Arrow file is read from its end, and not from a pipe or packed",
            "give the path of the file as it was written, or write an Arrow stream",
        ),
        #[cfg(feature = "columnar")]
        Form::Parquet => wrong(
            "a Parquet file is read from its end, and not from a pipe, packed or encrypted",
            "give the path of the file as it was written: it is compressed inside",
        ),
        _ => wrong(what, next),
    }
}
