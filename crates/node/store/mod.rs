//! Files that a role keeps between processes.

mod journal;
mod transcript;

pub use journal::{Entry, Journal, JournalError};
pub use transcript::{Said, Transcript};
