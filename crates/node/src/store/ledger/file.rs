//! The ledger as text: one line of JSON an entry, in exactly one form, read back without trust ([LED-1]).

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    identity::{PublicKey, Signature},
    ledger::{Chain, Entry, FORM, Head},
    suite::Hash,
};
use zeroize::Zeroizing;

use super::error::LedgerError;

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

/// An entry as its line, with the newline.
pub(super) fn write(entry: &Entry, signature: &Signature) -> String {
    // Integers, lists and strings always have a text.
    serde_json::to_string(&Line { form: FORM, entry, signature: *signature }).unwrap_or_default() + "\n"
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

/// Why a ledger's file is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The disk.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The last line has no end: it was being written when the process ended, or the file was cut. The field has the
    /// number of bytes of the whole lines before it.
    #[error("entry {entry} is cut short [LED-6]")]
    Torn {
        /// Its number.
        entry: u64,
        /// Bytes before it.
        good: u64,
        /// Who signed the last of them.
        signer: Option<PublicKey>,
    },
    /// A line of another form.
    #[error("it is of form {0}")]
    Form(u64),
    /// A line that is no entry.
    #[error("entry {0} is not in the form in which it was written [LED-1]")]
    SumBounds(u64),
    /// An entry that is not the next one, or not signed.
    #[error("{0}")]
    Chain(String),
}

impl Fault {
    /// What it means for the ledger at `path`.
    pub(super) fn of(self, path: &Path) -> LedgerError {
        let path = path.to_owned();
        match self {
            Fault::Io(source) => LedgerError::Io { path, source },
            Fault::Form(form) => LedgerError::Form { path, form },
            fault => LedgerError::Damaged { path, what: fault.to_string() },
        }
    }
}

/// How a whole ledger ends.
pub(super) struct Whole {
    /// Where.
    pub(super) head: Head,
    /// Its bytes.
    pub(super) good: u64,
    /// Who signed the last entry.
    pub(super) signer: Option<PublicKey>,
}

/// Reads a whole ledger, and hands over every valid entry.
pub(super) fn read(file: &File, mut take: impl FnMut(Entry, Head)) -> Result<Whole, (Head, Fault)> {
    let mut reader = BufReader::new(file);
    let (mut chain, mut good, mut line) = (Chain::default(), 0u64, Vec::new());
    loop {
        line.clear();
        let at = chain.head();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).map_err(|e| (at, e.into()))?;
        if read == 0 {
            return Ok(Whole { head: at, good, signer: chain.signer() });
        }
        if line.last() != Some(&b'\n') {
            let fault = if line.len() as u64 == MAX_LINE {
                Fault::SumBounds(at.entries)
            } else {
                Fault::Torn { entry: at.entries, good, signer: chain.signer() }
            };
            return Err((at, fault));
        }
        let unread = || form_of(&line).map_or(Fault::SumBounds(at.entries), Fault::Form);
        let (entry, signature) = parse(&line).ok_or_else(|| (at, unread()))?;
        chain.take(&entry, &signature).map_err(|e| (at, Fault::Chain(e.to_string())))?;
        good += read as u64;
        take(entry, chain.head());
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
    Zeroizing::new(serde_json::to_string(&line).unwrap_or_default() + "\n")
}

/// A head, if this is one.
pub(super) fn read_head(text: &[u8]) -> Option<Known> {
    let line: HeadLine = serde_json::from_slice(text).ok().filter(|line: &HeadLine| line.form == FORM)?;
    let head = Head { entries: line.entries, link: line.link };
    Some(Known { head, digests: Zeroizing::new(line.digests.0) })
}
