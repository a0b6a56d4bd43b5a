//! A ledger that cannot be used: what happened.

use std::path::PathBuf;

use veilsum_proto::identity::{PublicKey, fingerprint};

use crate::entry::{Damage, FORM};

/// A ledger that cannot be used.
#[derive(Debug, thiserror::Error)]
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
        /// What is wrong with it.
        what: Damage,
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
    #[error("the ledger {}: {}", path.display(), Damage::Torn(*entry))]
    Torn {
        /// The file.
        path: PathBuf,
        /// Which entry.
        entry: u64,
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
    #[error("the ledger in {} was signed last by another key, {}", path.display(), fingerprint(&signer.0))]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Who.
        signer: PublicKey,
    },
    /// A defect of this software: an entry that could not be read again, or takes back what was entered.
    #[error("an entry was about to be written that cannot stand in the ledger")]
    Unwritable,
    /// A defect of this software: an answer to which nobody consented.
    #[error("an answer was about to leave without the policy's consent")]
    Unasked,
}
