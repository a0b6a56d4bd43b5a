//! Files that a role keeps between processes.

mod journal;

pub use journal::{Journal, JournalError};
