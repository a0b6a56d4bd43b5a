//! What a table may hold at most.

/// Columns of a file. Wider tables are no use to clustering by distance.
pub const MAX_COLUMNS: usize = 4096;

/// Bytes of a cell. The longest number worth writing has some 800 digits; labels are names.
pub const MAX_CELL: usize = 4096;

/// Bytes of a row with its quotes and delimiters: a bound on memory while its cells are still being told apart.
pub const MAX_ROW: usize = 1 << 20;

/// Numbers of a table: 4 GiB. Larger data belong into a database, or into several sites' worth of files.
pub const MAX_VALUES: usize = 1 << 29;
