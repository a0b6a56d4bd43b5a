//! Reading a ledger without locking it: an auditor checks it from its file, and its owner looks at it.

use std::{fs::File, io, path::Path};

use veilsum_proto::{identity::PublicKey, suite::Hash};

use super::{
    FILE, LedgerError,
    file::{self, Fault},
    known,
};
use crate::{
    account::Account,
    entry::{Damage, Entry, Head},
};

/// The contents of a ledger that is read by itself.
pub struct Checked {
    /// Where it ends.
    pub head: Head,
    /// Every entry.
    pub entries: Vec<Entry>,
}

/// Reads a ledger from its file alone, and checks that it holds the entry with the link `head` where one is known ([LED-2], [LED-3],
/// [LED-5]). Who signed is in the entries.
///
/// # Errors
/// [`LedgerError`] with the entry at fault.
pub fn check(path: &Path, head: Option<Hash>) -> Result<Checked, LedgerError> {
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => LedgerError::Missing(path.to_owned()),
        _ => LedgerError::Io { path: path.to_owned(), source },
    };
    // The file's type is checked before it is opened, because opening a named pipe would wait for somebody to write to
    // it.
    if !path.metadata().map_err(io)?.is_file() {
        return Err(LedgerError::Damaged { path: path.to_owned(), what: Damage::NoFile });
    }
    let (mut entries, mut seen) = (Vec::new(), head.is_none());
    let read = file::read(&File::open(path).map_err(io)?, |entry, at, _| {
        seen |= head == Some(at.link);
        entries.push(entry);
    });
    match read {
        Ok(whole) | Err(Fault::Torn(whole)) if !seen => {
            Err(LedgerError::Cut { path: path.to_owned(), there: whole.head.entries })
        }
        read => read.map(|whole| Checked { head: whole.head, entries }).map_err(|fault| fault.of(path)),
    }
}

/// The entries of the ledger in `folder`, checked against its head.
///
/// # Errors
/// As [`check`], and where there is no account.
pub fn all(folder: &Path) -> Result<Vec<Entry>, LedgerError> {
    let (path, head) = (folder.join(FILE), known(folder)?.head);
    match check(&path, (head.entries > 0).then_some(head.link)) {
        Err(LedgerError::Missing(_)) if head.entries == 0 => Ok(Vec::new()),
        Err(LedgerError::Missing(_)) => Err(LedgerError::Cut { path, there: 0 }),
        checked => Ok(checked?.entries),
    }
}

/// What was given away, without locking the ledger, which this key has to have signed in ([LED-9]).
///
/// # Errors
/// As [`all`], and where other keys alone signed.
pub fn look(folder: &Path, key: &PublicKey) -> Result<Account, LedgerError> {
    let (entries, mut account) = (all(folder)?, Account::default());
    match entries.last() {
        Some(last) if !entries.iter().any(|entry| entry.signer == *key) => {
            return Err(LedgerError::Foreign { path: folder.to_owned(), signer: last.signer });
        }
        _ => entries.iter().for_each(|entry| account.take(entry)),
    }
    Ok(account)
}
