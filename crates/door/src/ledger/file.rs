//! The ledger as text: one line of JSON an entry, in exactly one form, read back without trust ([LED-1]). It is read without locking, too: an
//! auditor checks it from its file, and its owner looks at it.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    identity::{PublicKey, Signature},
    suite::Hash,
};
use zeroize::Zeroizing;

use super::{FILE, LedgerError, known};
use crate::{
    account::Account,
    entry::{Chain, Damage, Entry, FORM, Head},
};

/// Bytes of one line: a thousand sites that were met.
const MAX_LINE: u64 = 1 << 20;
/// Bytes of a head file.
pub(super) const MAX_HEAD: usize = 1 << 10;

/// An entry as it is written. What is read has to be written the same way, so more fields than these are refused.
#[derive(Serialize, Deserialize)]
struct Line<E> {
    form: u8,
    #[serde(flatten)]
    entry: E,
    signature: Signature,
}

/// Integers, lists and strings always have a text.
fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a text") + "\n"
}

/// An entry as its line, with the newline.
pub(super) fn write(entry: &Entry, signature: &Signature) -> String {
    text(&Line { form: FORM, entry, signature: *signature })
}

/// The form of a line or a head that is of another one.
pub(super) fn form_of(text: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(text).ok()?;
    value.get("form")?.as_u64().filter(|form| *form != u64::from(FORM))
}

fn parse(text: &[u8]) -> Option<(Entry, Signature)> {
    let Line { entry, signature, .. } = serde_json::from_slice::<Line<Entry>>(text).ok()?;
    // Spaces, capitals, another form, and other forms of a number would be bytes that nobody signed.
    (write(&entry, &signature).as_bytes() == text).then_some((entry, signature))
}

/// How far a ledger goes.
pub(super) struct Whole {
    /// Where it ends.
    pub(super) head: Head,
    /// Bytes of its whole lines.
    pub(super) good: u64,
    /// Who signed the last of them.
    pub(super) signer: Option<PublicKey>,
}

/// Why a ledger's file is refused.
pub(super) enum Fault {
    /// The disk.
    Io(io::Error),
    /// The last line has no end: it was being written when the process ended, or the file was cut.
    Torn(Whole),
    /// A line of another form.
    Form(u64),
    /// A line that is no entry, or not the next one.
    Damage(Damage),
}

impl Fault {
    /// What it means for the ledger at `path`.
    pub(super) fn of(self, path: &Path) -> LedgerError {
        let path = path.to_owned();
        match self {
            Fault::Io(source) => LedgerError::Io { path, source },
            Fault::Form(form) => LedgerError::Form { path, form },
            Fault::Torn(whole) => LedgerError::Torn { path, entry: whole.head.entries },
            Fault::Damage(what) => LedgerError::Damaged { path, what },
        }
    }
}

/// Reads a whole ledger, and hands over every valid entry, with the head and the bytes of the file after it.
pub(super) fn read(file: &File, mut take: impl FnMut(Entry, Head, u64)) -> Result<Whole, Fault> {
    let mut reader = BufReader::new(file);
    let (mut chain, mut good, mut line) = (Chain::default(), 0u64, Vec::new());
    loop {
        line.clear();
        let whole = Whole { head: chain.head(), good, signer: chain.signer() };
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).map_err(Fault::Io)?;
        if read == 0 {
            return Ok(whole);
        }
        let unread = Fault::Damage(Damage::Written(whole.head.entries));
        if line.last() != Some(&b'\n') {
            return Err(if line.len() as u64 == MAX_LINE { unread } else { Fault::Torn(whole) });
        }
        let (entry, signature) = parse(&line).ok_or_else(|| form_of(&line).map_or(unread, Fault::Form))?;
        chain.take(&entry, &signature).map_err(Fault::Damage)?;
        good += read as u64;
        take(entry, chain.head(), good);
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadLine {
    form: u8,
    entries: u64,
    link: Hash,
    digests: Hash,
}

/// What a head says.
pub(super) struct Known {
    /// Where the ledger ends.
    pub(super) head: Head,
    /// The secret with which rows are digested.
    pub(super) digests: Zeroizing<[u8; 32]>,
}

/// The head file's text.
pub(super) fn write_head(head: &Head, digests: &[u8; 32]) -> Zeroizing<String> {
    let line = HeadLine { form: FORM, entries: head.entries, link: head.link, digests: Hash(*digests) };
    Zeroizing::new(text(&line))
}

/// A head, if this is one.
pub(super) fn read_head(text: &[u8]) -> Option<Known> {
    let line: HeadLine = serde_json::from_slice(text).ok().filter(|line: &HeadLine| line.form == FORM)?;
    let head = Head { entries: line.entries, link: line.link };
    Some(Known { head, digests: Zeroizing::new(line.digests.0) })
}

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
    let read = read(&File::open(path).map_err(io)?, |entry, at, _| {
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
