//! What Parquet and Arrow files may make us hold.

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
