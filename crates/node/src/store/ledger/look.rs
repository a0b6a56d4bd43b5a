//! Reading a ledger without locking it: an auditor checks it from its file and a public key, its owner looks at it, or
//! gives it a new head.

use std::{fs::File, path::Path};

use veilsum_proto::{
    identity::{Identity, PublicKey},
    ledger::{Entry, Head},
    suite::Hash,
};

use super::{
    FILE, Ledger, LedgerError,
    file::{self, Fault},
    read_head,
};
use crate::{
    files::{self, Existing},
    release::Account,
};

/// The contents of a ledger that is read by itself.
pub struct Checked {
    /// Where it ends.
    pub head: Head,
    /// Every entry.
    pub entries: Vec<Entry>,
}

/// Reads a ledger from its file and its owner's public key alone, and checks that it holds the entry with the link `head`
/// where one is known ([LED-2], [LED-3], [LED-5]).
///
/// # Errors
/// [`LedgerError`] with the entry at fault.
pub fn check(path: &Path, key: PublicKey, head: Option<Hash>) -> Result<Checked, LedgerError> {
    let io = |source| LedgerError::Io { path: path.to_owned(), source };
    // The file's type is checked before it is opened, because opening a named pipe would wait for somebody to write to
    // it.
    let meta = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => LedgerError::Missing { path: path.to_owned() },
        _ => io(e),
    })?;
    if !meta.is_file() {
        return Err(LedgerError::Damaged { path: path.to_owned(), what: "it is not a file".into() });
    }
    let (mut entries, mut seen) = (Vec::new(), head.is_none_or(|link| link == Hash::default()));
    let read = file::read(&File::open(path).map_err(io)?, key, |entry, at| {
        seen |= head == Some(at.link);
        entries.push(entry);
    });
    match read {
        Ok(whole) if seen => Ok(Checked { head: whole.head, entries }),
        Ok(whole) => Err(LedgerError::Cut { path: path.to_owned(), there: whole.head.entries }),
        Err((_, fault @ Fault::Torn { .. })) if seen => {
            Err(LedgerError::Torn { path: path.to_owned(), what: fault.to_string() })
        }
        Err((_, fault)) => Err(fault.of(path)),
    }
}

/// The entries of one's own ledger, checked against its head; none where there is neither.
///
/// # Errors
/// As [`check`].
pub fn all(path: &Path, head: &Path, identity: &Identity) -> Result<Vec<Entry>, LedgerError> {
    let known = read_head(head, &identity.public())?;
    if std::fs::symlink_metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return match known {
            Some(known) if known.entries > 0 => Err(LedgerError::Cut { path: path.to_owned(), there: 0 }),
            _ => Ok(Vec::new()),
        };
    }
    let Checked { entries, .. } = check(path, identity.public(), known.map(|known| known.link))?;
    if known.is_none() && !entries.is_empty() {
        return Err(LedgerError::NoHead { path: head.to_owned() });
    }
    Ok(entries)
}

/// Writes a head for a ledger that has none.
///
/// # Errors
/// As [`check`], and where there is a head already.
pub fn adopt(path: &Path, head: &Path, identity: &Identity) -> Result<Head, LedgerError> {
    let checked = check(path, identity.public(), None)?;
    let text = file::write_head(&checked.head, &checked.head.sign(identity));
    files::write_private(head, text.as_bytes(), Existing::Refuse).map_err(LedgerError::Head)?;
    Ok(checked.head)
}

impl Ledger {
    /// What was given away, without locking the ledger.
    ///
    /// # Errors
    /// As [`check`].
    pub fn look(folder: &Path, head: &Path, identity: &Identity) -> Result<Account, LedgerError> {
        let mut account = Account::default();
        all(&folder.join(FILE), head, identity)?.iter().for_each(|entry| account.take(entry));
        Ok(account)
    }
}
