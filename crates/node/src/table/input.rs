//! An opened file, or standard input, up to its first bytes: they tell its form, and its name does not count.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek},
    path::Path,
    sync::OnceLock,
};

#[cfg(feature = "columnar")]
use super::{arrow::ArrowReader, parquet::ParquetReader};
use super::{csv::CsvReader, error::TableError, source::RowReader};

/// Bytes that tell a form.
const HEAD: usize = 8;
/// Bytes that are read at a time.
const BUFFER: usize = 256 << 10;

/// Bytes of standard input at most: it is held as it came, packed or not.
const MAX_PIPE: u64 = 1 << 30;

/// Forms that are told from text and not read.
const OTHERS: [(&[u8], &str); 4] = [
    (b"PK\x03\x04", "this is a spreadsheet or a ZIP archive"),
    (b"ORC", "this is an ORC file"),
    (b"Obj\x01", "this is an Avro file"),
    (b"SQLite f", "this is an SQLite database"),
];

/// What a build without the feature `columnar` says of a form that the feature reads.
fn columnar(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'P', b'A', b'R', b'1' | b'E', ..] => {
            Some("this is a Parquet file, which this build of veilsum does not read")
        }
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => {
            Some("this is an Arrow file, which this build of veilsum does not read")
        }
        [0xff, 0xff, 0xff, 0xff, ..] => Some("this is an Arrow stream, which this build of veilsum does not read"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("it is packed with zstd, which this build of veilsum does not read"),
        _ => None,
    }
}

enum From {
    /// What can be read from its end.
    File(File),
    Stream(Box<dyn Read>),
}

/// Opens one file of rows, or standard input for `-`, whatever its form: CSV, also compressed by gzip, and with the feature `columnar` zstd,
/// Parquet, an Arrow file or an Arrow stream.
///
/// # Errors
/// A [`TableError`] that names the file.
pub(super) fn open_one(path: &Path) -> Result<Box<dyn RowReader>, TableError> {
    if path.as_os_str() == "-" {
        let name = "standard input";
        let bytes = standard_input().map_err(|source| TableError::Read { file: name.to_owned(), source })?;
        return form_of(From::Stream(Box::new(Cursor::new(bytes))), name, true);
    }
    let name = path.display().to_string();
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.is_file(), file)));
    match opened {
        Ok((true, file)) => form_of(From::File(file), &name, true),
        Ok((false, pipe)) => form_of(From::Stream(Box::new(pipe)), &name, true),
        Err(source) => Err(TableError::Open { file: name, source }),
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

fn form_of(mut from: From, name: &str, may_be_packed: bool) -> Result<Box<dyn RowReader>, TableError> {
    let failed = |source| TableError::Read { file: name.to_owned(), source };
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
    let form = |what, next| TableError::Form { file: name.to_owned(), what, next };
    if let Some((_, what)) = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(form(what, "export it as CSV, Parquet or Arrow"));
    }
    if let Some(what) = columnar(&head).filter(|_| !cfg!(feature = "columnar")) {
        return Err(form(what, "build veilsum with `--features columnar`, or export it as CSV"));
    }
    let rest: Box<dyn Read> = match from {
        #[cfg(feature = "columnar")]
        From::File(file) if head.starts_with(b"PAR1") => return Ok(Box::new(ParquetReader::new(file, name)?)),
        From::File(file) => Box::new(file),
        From::Stream(stream) => Box::new(Cursor::new(head.clone()).chain(stream)),
    };
    let rest = BufReader::with_capacity(BUFFER, rest);
    match &head[..] {
        #[cfg(feature = "columnar")]
        [b'P', b'A', b'R', b'1' | b'E', ..] => Err(form(
            "a Parquet file is read from its end, and not from a pipe, packed or encrypted",
            "give the path of the file as it was written: it is compressed inside",
        )),
        [0x1f, 0x8b, ..] if may_be_packed => {
            form_of(From::Stream(Box::new(flate2::bufread::MultiGzDecoder::new(rest))), name, false)
        }
        #[cfg(feature = "columnar")]
        [0x28, 0xb5, 0x2f, 0xfd, ..] if may_be_packed => {
            let unpacked = zstd::Decoder::with_buffer(rest).map_err(failed)?;
            form_of(From::Stream(Box::new(unpacked)), name, false)
        }
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => Err(form("it is packed twice", "unpack it once")),
        #[cfg(feature = "columnar")]
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Ok(Box::new(ArrowReader::new(Box::new(rest), true, name)?)),
        #[cfg(feature = "columnar")]
        [0xff, 0xff, 0xff, 0xff, ..] => Ok(Box::new(ArrowReader::new(Box::new(rest), false, name)?)),
        _ => Ok(Box::new(CsvReader::new(rest, name)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`columnar`] knows what the feature reads, and no text; a build with the feature refuses none of them for that.
    #[test]
    fn what_another_build_reads_is_told_from_text() {
        let told = [&b"PAR1"[..], b"PARE", b"ARROW1\0\0", &[0xff; 8], &[0x28, 0xb5, 0x2f, 0xfd]];
        assert!(told.iter().all(|head| columnar(head).is_some_and(|what| what.ends_with("does not read"))));
        assert!([&b"x,y\n1,2"[..], b"", b"PAR", b"ARROW,1"].iter().all(|head| columnar(head).is_none()));
    }
}
