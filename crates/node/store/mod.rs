//! Files that a role keeps between processes.

mod journal;
pub mod ledger;
mod transcript;

pub use journal::{Entry, Journal, JournalError};
pub use ledger::{Ledger, LedgerError};
pub use transcript::{Said, Transcript};
