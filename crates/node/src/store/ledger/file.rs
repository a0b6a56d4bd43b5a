//! The ledger as text: one line of JSON an entry, in exactly one form, read back without trust ([LED-1]).

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use veilsum_proto::{
    identity::{PublicKey, Signature, from_hex, to_hex},
    ledger::{Answer, Chain, Column, Entry, FORM, Head, Note, Reservation, Stated},
    message::Disclosure,
    policy::Cost,
    release::Answered,
    suite::Hash,
};
use zeroize::Zeroizing;

use super::error::LedgerError;

/// Bytes of one line: a block of a thousand sites, or as many that were met.
const MAX_LINE: u64 = 1 << 20;
/// Bytes of a head file, with the words of 16 conversations.
pub(super) const MAX_HEAD: usize = 8 << 10;

/// Masked words that left last in a conversation: a certificate names their round by its context, an entry by their digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) session: Hash,
    pub(super) context: Hash,
    pub(super) digest: Hash,
}

/// Bytes as hexadecimal digits.
#[derive(Clone, Copy)]
struct Hex<const N: usize>([u8; N]);

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&to_hex(&self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(from)?;
        let bytes = from_hex(&digits).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Hex).ok_or_else(|| D::Error::custom("not so many hexadecimal digits"))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    form: u8,
    index: u64,
    previous: Hex<32>,
    signer: Hex<32>,
    plan: Hex<32>,
    session: Hex<32>,
    run: Hex<32>,
    deck_slot: Option<(u32, u16)>,
    cohort: Option<Hex<32>>,
    discloses: Disclosure,
    bytes: u64,
    digest: Hex<32>,
    data: String,
    rows: Hex<32>,
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<Vec<(Hex<32>, u32)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<NoteLine>,
    answer: Option<AnswerLine>,
    signature: Hex<64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NoteLine {
    Columns(Vec<(String, Hex<32>)>),
    Changed(Vec<(String, Hex<32>)>),
    Separate(Vec<(String, Hex<32>)>),
    Undone,
    Signer,
    Agreed,
    Reserved(Reservation),
    Met(MetLine),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetLine {
    deck: u32,
    all: Hex<32>,
    members: Vec<(Hex<32>, u64, Hex<32>)>,
}

impl NoteLine {
    fn of(note: &Note) -> NoteLine {
        let plain = |list: &[Column]| list.iter().map(|c| (c.name.clone(), Hex(c.values.0))).collect();
        match note {
            Note::Columns(list) => NoteLine::Columns(plain(list)),
            Note::Changed(list) => NoteLine::Changed(plain(list)),
            Note::Separate(list) => NoteLine::Separate(plain(list)),
            Note::Undone => NoteLine::Undone,
            Note::Signer => NoteLine::Signer,
            Note::Agreed => NoteLine::Agreed,
            Note::Reserved(kept) => NoteLine::Reserved(*kept),
            Note::Met { deck, all, members } => {
                let plain = |s: &Stated| (Hex(s.id.0), s.answered.number, Hex(s.answered.link.0));
                let members = members.iter().map(plain).collect();
                NoteLine::Met(MetLine { deck: *deck, all: Hex(all.0), members })
            }
        }
    }

    fn into_note(self) -> Note {
        let columns = |list: Vec<(String, Hex<32>)>| {
            list.into_iter().map(|(name, values)| Column { name, values: Hash(values.0) }).collect()
        };
        match self {
            NoteLine::Columns(list) => Note::Columns(columns(list)),
            NoteLine::Changed(list) => Note::Changed(columns(list)),
            NoteLine::Separate(list) => Note::Separate(columns(list)),
            NoteLine::Undone => Note::Undone,
            NoteLine::Signer => Note::Signer,
            NoteLine::Agreed => Note::Agreed,
            NoteLine::Reserved(kept) => Note::Reserved(kept),
            NoteLine::Met(MetLine { deck, all, members }) => {
                let stated = |(id, number, link): (Hex<32>, u64, Hex<32>)| Stated {
                    id: Hash(id.0),
                    answered: Answered { number, link: Hash(link.0) },
                };
                Note::Met { deck, all: Hash(all.0), members: members.into_iter().map(stated).collect() }
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    kind: String,
    question: Hex<32>,
    scalars: u64,
    nano_rho: Option<u64>,
    drawn: Option<Hex<32>>,
}

impl AnswerLine {
    fn of(answer: &Answer) -> AnswerLine {
        AnswerLine {
            kind: answer.kind.clone(),
            question: Hex(answer.question.0),
            scalars: answer.cost.scalars,
            nano_rho: answer.cost.nano_rho,
            drawn: answer.drawn.map(|h| Hex(h.0)),
        }
    }

    fn into_answer(self) -> Answer {
        Answer {
            kind: self.kind,
            question: Hash(self.question.0),
            cost: Cost { scalars: self.scalars, nano_rho: self.nano_rho },
            drawn: self.drawn.map(|h| Hash(h.0)),
        }
    }
}

/// An entry as its line, with the newline.
pub(super) fn write(entry: &Entry, signature: &Signature) -> String {
    let line = Line {
        form: FORM,
        index: entry.index,
        previous: Hex(entry.previous.0),
        signer: Hex(entry.signer.0),
        plan: Hex(entry.plan.0),
        session: Hex(entry.session.0),
        run: Hex(entry.run.0),
        deck_slot: entry.slot,
        cohort: entry.cohort.map(|h| Hex(h.0)),
        discloses: entry.discloses,
        bytes: entry.bytes,
        digest: Hex(entry.digest.0),
        data: entry.data.clone(),
        rows: Hex(entry.rows.0),
        version: entry.version,
        block: entry.block.as_ref().map(|block| block.iter().map(|(id, version)| (Hex(id.0), *version)).collect()),
        note: entry.note.as_ref().map(NoteLine::of),
        answer: entry.answer.as_ref().map(AnswerLine::of),
        signature: Hex(signature.to_bytes()),
    };
    // Integers, lists and strings always have a text.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// The form of a line or a head that is of another one.
pub(super) fn form_of(text: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(text).ok()?;
    value.get("form")?.as_u64().filter(|form| *form != u64::from(FORM))
}

fn parse(text: &[u8]) -> Option<(Entry, Signature)> {
    let line: Line = serde_json::from_slice(text).ok()?;
    if line.form != FORM {
        return None;
    }
    let entry = Entry {
        index: line.index,
        previous: Hash(line.previous.0),
        signer: PublicKey(line.signer.0),
        plan: Hash(line.plan.0),
        session: Hash(line.session.0),
        run: Hash(line.run.0),
        slot: line.deck_slot,
        cohort: line.cohort.map(|h| Hash(h.0)),
        discloses: line.discloses,
        bytes: line.bytes,
        digest: Hash(line.digest.0),
        data: line.data,
        rows: Hash(line.rows.0),
        version: line.version,
        block: line.block.map(|block| block.into_iter().map(|(id, version)| (Hash(id.0), version)).collect()),
        note: line.note.map(NoteLine::into_note),
        answer: line.answer.map(AnswerLine::into_answer),
    };
    let signature = Signature::from_bytes(&line.signature.0);
    // Spaces, capitals and other forms of a number would be bytes that nobody signed.
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
    link: Hex<32>,
    digests: Hex<32>,
    /// Session, context and digest of words that may still be undone.
    rounds: Vec<[Hex<32>; 3]>,
}

/// What a head says.
pub(super) struct Known {
    /// Where the ledger ends.
    pub(super) head: Head,
    /// The secret with which its rows are known again.
    pub(super) digests: Zeroizing<[u8; 32]>,
    /// The words that may still be undone.
    pub(super) words: Vec<Words>,
}

/// The head file's text.
pub(super) fn write_head(head: &Head, digests: &[u8; 32], words: &[Words]) -> Zeroizing<String> {
    let of = |words: &Words| [words.session, words.context, words.digest].map(|hash| Hex(hash.0));
    let rounds = words.iter().map(of).collect();
    let line = HeadLine { form: FORM, entries: head.entries, link: Hex(head.link.0), digests: Hex(*digests), rounds };
    Zeroizing::new(serde_json::to_string(&line).unwrap_or_default() + "\n")
}

/// A head, if this is one.
pub(super) fn read_head(text: &[u8]) -> Option<Known> {
    let line: HeadLine = serde_json::from_slice(text).ok().filter(|line: &HeadLine| line.form == FORM)?;
    let head = Head { entries: line.entries, link: Hash(line.link.0) };
    let of = |[session, context, digest]: [Hash; 3]| Words { session, context, digest };
    let words = line.rounds.into_iter().map(|round| of(round.map(|hash| Hash(hash.0)))).collect();
    Some(Known { head, digests: Zeroizing::new(line.digests.0), words })
}
