//! Reading a ledger without locking it: an auditor checks it from its file, and its owner looks at it.

use std::{fs::File, path::Path};

use veilsum_proto::{
    identity::PublicKey,
    ledger::{Entry, Head},
    suite::Hash,
};

use super::{
    FILE, Ledger, LedgerError,
    file::{self, Fault},
    known,
};
use crate::release::Account;

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
    let io = |source| LedgerError::Io { path: path.to_owned(), source };
    // The file's type is checked before it is opened, because opening a named pipe would wait for somebody to write to
    // it.
    let meta = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => LedgerError::Missing(path.to_owned()),
        _ => io(e),
    })?;
    if !meta.is_file() {
        return Err(LedgerError::Damaged { path: path.to_owned(), what: "it is not a file".into() });
    }
    let (mut entries, mut seen) = (Vec::new(), head.is_none_or(|link| link == Hash::default()));
    let read = file::read(&File::open(path).map_err(io)?, |entry, at| {
        seen |= head == Some(at.link);
        entries.push(entry);
    });
    match read {
        Ok(whole) if seen => Ok(Checked { head: whole.head, entries }),
        Ok(whole) => Err(LedgerError::Cut { path: path.to_owned(), there: whole.head.entries }),
        Err((_, fault @ Fault::Torn { .. })) if seen => {
            Err(LedgerError::Torn { path: path.to_owned(), what: fault.to_string() })
        }
        Err((head, Fault::Torn { .. })) => Err(LedgerError::Cut { path: path.to_owned(), there: head.entries }),
        Err((_, fault)) => Err(fault.of(path)),
    }
}

/// The entries of the ledger in `folder`, checked against its head.
///
/// # Errors
/// As [`check`], and where there is no account.
pub fn all(folder: &Path) -> Result<Vec<Entry>, LedgerError> {
    let (path, head) = (folder.join(FILE), known(folder)?.head);
    match check(&path, Some(head.link)) {
        Err(LedgerError::Missing { .. }) if head.entries == 0 => Ok(Vec::new()),
        Err(LedgerError::Missing { .. }) => Err(LedgerError::Cut { path, there: 0 }),
        checked => Ok(checked?.entries),
    }
}

impl Ledger {
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
}
