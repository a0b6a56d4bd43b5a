//! What Parquet and Arrow files may make us hold, and their ends.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
};

use super::{Fault, Result};

/// Bytes of the description of an Arrow message: a schema of [`MAX_COLUMNS`](super::limits::MAX_COLUMNS) columns with room for notes.
pub(super) const MAX_DESCRIPTION: usize = 16 << 20;

/// Bytes of the description at the end of a Parquet file: thousands of columns in hundreds of row groups.
pub(super) const MAX_FOOTER: u64 = 256 << 20;

/// Columns in the description of a Parquet file with those inside of others.
pub(super) const MAX_ELEMENTS: u64 = 1 << 16;

/// How deep they may be nested.
pub(super) const MAX_DEPTH: usize = 64;

/// Bytes that the columns of one Arrow message may hold together, unpacked, and so may its dictionaries: what a 32-bit offset reaches.
pub(super) const MAX_BUFFER: i64 = 1 << 31;

/// What is said where a file ends otherwise than its form does.
pub(super) const NO_END: &str = "its end does not say where its description is";

/// So many bytes of a file, which begin so far before its end.
///
/// # Errors
/// [`Fault::damaged`] where there is not so much of it, and what the system says.
pub(super) fn from_end(mut file: &File, back: u64, bytes: u64, name: &str) -> Result<Vec<u8>> {
    let mut part = Vec::new();
    let begin = SeekFrom::End(-i64::try_from(back).unwrap_or(i64::MAX));
    file.seek(begin).map_err(|_| Fault::damaged(NO_END).of(name))?;
    file.take(bytes).read_to_end(&mut part).map_err(|source| Fault::read(source).of(name))?;
    Ok(part)
}
