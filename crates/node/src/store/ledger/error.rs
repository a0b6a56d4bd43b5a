//! A ledger that cannot be used: what happened, and what to do next.

use std::path::PathBuf;

use veilsum_proto::{identity::PublicKey, ledger::FORM};

use crate::{
    error::Failure,
    files::{FileError, may_pass},
};

/// A ledger that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The disk or its permissions.
    #[error("the ledger {}: {source}; nothing leaves that is not written down", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is no such file.
    #[error("the ledger {}: there is no such file", _0.display())]
    Missing(PathBuf),
    /// The head's file.
    #[error("the ledger's head: {0}")]
    Head(FileError),
    /// Another run of this identity holds it.
    #[error(
        "the ledger {} is in use by another process ({who}): two runs at once could not see what the other gives away",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// Who holds it.
        who: String,
    },
    /// An entry is not what was written.
    #[error("the ledger {}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which entry.
        what: String,
    },
    /// Another version of this software wrote it.
    #[error("{} is of form {form}, and this version of veilsum reads form {FORM} alone [LED-1]", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Which one.
        form: u64,
    },
    /// The last line has no end.
    #[error("the ledger {}: {what}", path.display())]
    Torn {
        /// The file.
        path: PathBuf,
        /// Which entry.
        what: String,
    },
    /// Entries at its end are missing.
    #[error(
        "the ledger {} was cut or is an older copy: it has {there} entries, and its head names a later one [LED-5]",
        path.display()
    )]
    Cut {
        /// The file.
        path: PathBuf,
        /// Entries that are there.
        there: u64,
    },
    /// The head is gone.
    #[error("the ledger's head {} is missing: without it nobody can tell whether the ledger is whole", _0.display())]
    NoHead(PathBuf),
    /// Nothing is in the folder.
    #[error("{}: there is no account here [LED-5]", _0.display())]
    NoAccount(PathBuf),
    /// Another key signed last.
    #[error("the ledger in {} was signed last by another key, {}", path.display(), crate::documents::fingerprint(&signer.0))]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Who.
        signer: PublicKey,
    },
    /// A defect of this software: an answer to which nobody consented.
    #[error("an answer was about to leave without the policy's consent")]
    Unasked,
}

impl From<LedgerError> for Failure {
    fn from(e: LedgerError) -> Self {
        let passes = match &e {
            LedgerError::Io { source, .. } | LedgerError::Head(FileError::Write { source, .. }) => may_pass(source),
            _ => false,
        };
        let next = match e {
            LedgerError::Io { .. } | LedgerError::Head(_) => "check free space and permissions of the folder (--state)",
            LedgerError::Missing(_) => {
                "check the path: a site keeps it as ledger.jsonl in its state folder; before its first answer there is none"
            }
            LedgerError::Locked { .. } => {
                "stop the other process or wait until its run is over: one identity takes part in one run at a time"
            }
            LedgerError::Damaged { .. } => {
                "put back the file as it was; what was given away before can no longer be told from this one (`veilsum verify LEDGER` names the \
                 entry)"
            }
            LedgerError::Form { .. } => {
                "nothing in the folder was changed: go on with the version that wrote it; an account is never begun anew over rows that answered"
            }
            LedgerError::Torn { .. } => {
                "a process ended while it wrote: start the site once, which drops that line if its head does not know it"
            }
            LedgerError::Cut { .. } => {
                "put the newest ledger back: entries that are missing were given away all the same"
            }
            LedgerError::NoHead(_) => {
                "put it back; if it is lost, these rows count as having answered everything: begin with other rows in another state folder"
            }
            LedgerError::NoAccount(_) => {
                "put the newest copy of this site's state folder back; if it is lost, nobody knows what these rows have answered: let the \
                 coordinator take this site out and invite it anew (`veilsum join` then asks whether a new account begins)"
            }
            LedgerError::Foreign { .. } => {
                "give this party its own state folder; if it shares this one with another federation, say so (`state` in site.toml); if its key is \
                 lost, let the coordinator invite it anew: `veilsum join` makes another key that goes on with the account"
            }
            LedgerError::Unasked => return Failure::defect(e),
        };
        if passes { Failure::storage(e, next) } else { Failure::input(e, next) }
    }
}
