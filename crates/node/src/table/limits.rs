//! What a table may hold at most.

/// Columns of a file. Wider tables are no use to clustering by distance.
pub const MAX_COLUMNS: usize = 4096;

/// Bytes of a cell that is read. The longest number worth writing has some 800 digits; labels are names. Notes and letters in columns that
/// nobody reads are longer.
pub const MAX_CELL: usize = 1 << 18;

/// Bytes of a row with its quotes and delimiters: a bound on memory while its cells are still being told apart.
pub const MAX_ROW: usize = 1 << 20;

/// Numbers of a table: 4 GiB.
pub const MAX_VALUES: usize = 1 << 29;

/// Rows that cannot be used and are listed in a file: some 60 MB of text. Those beyond are counted.
pub const MAX_LISTED: usize = 1 << 20;

/// Files of one source. A folder with more is better written into fewer, larger files.
pub const MAX_FILES: usize = 1 << 16;
