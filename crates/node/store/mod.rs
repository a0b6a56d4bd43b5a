//! Files that a role keeps between processes.

mod journal;
mod transcript;

pub use journal::{Journal, JournalError};
pub use transcript::{Said, Transcript};
