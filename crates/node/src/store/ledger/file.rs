//! The ledger as text: one line of JSON an entry, in exactly one form, read back without trust ([LED-1]).

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use veilsum_proto::{
    identity::{PublicKey, Signature, from_hex, to_hex},
    ledger::{Answer, Chain, Column, Entry, FORM, Form, Head, Note, Probed, Reservation, Stated},
    message::Disclosure,
    policy::Cost,
    release::Answered,
    suite::Hash,
};

use super::LedgerError;

/// Bytes of one line: of earlier forms, a question's coordinates as numbers of at most eleven characters.
const MAX_LINE: u64 = 32 << 20;
/// Bytes of a head file.
pub(super) const MAX_HEAD: usize = 1 << 10;

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
    /// Absent in entries of earlier forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form: Option<u8>,
    index: u64,
    previous: Hex<32>,
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
    /// Absent in entries from before blocks, as are the two behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
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
    Agreed,
    Reserved(Reservation),
    Met(MetLine),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetLine {
    deck: u32,
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
            Note::Agreed => NoteLine::Agreed,
            Note::Reserved(kept) => NoteLine::Reserved(*kept),
            Note::Met { deck, members } => {
                let plain = |s: &Stated| (Hex(s.key.0), s.answered.number, Hex(s.answered.link.0));
                NoteLine::Met(MetLine { deck: *deck, members: members.iter().map(plain).collect() })
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
            NoteLine::Agreed => Note::Agreed,
            NoteLine::Reserved(kept) => Note::Reserved(kept),
            NoteLine::Met(MetLine { deck, members }) => {
                let stated = |(key, number, link): (Hex<32>, u64, Hex<32>)| Stated {
                    key: PublicKey(key.0),
                    answered: Answered { number, link: Hash(link.0) },
                };
                Note::Met { deck, members: members.into_iter().map(stated).collect() }
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
    /// In entries of earlier forms, as are the last two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    milli_bits: Option<u64>,
    nano_rho: Option<u64>,
    drawn: Option<Hex<32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frame: Option<FrameLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    centres: Option<Vec<PlacesLine>>,
}

/// Ends as numbers that a person can read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameLine {
    columns: Vec<String>,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlacesLine {
    columns: u32,
    at: Vec<i32>,
}

impl AnswerLine {
    fn of(answer: &Answer) -> AnswerLine {
        let probed = answer.probed.as_deref();
        let ends = |bits: &[u64]| bits.iter().map(|bits| f64::from_bits(*bits)).collect();
        let frame = |(columns, lower, upper): &(Vec<String>, Vec<u64>, Vec<u64>)| FrameLine {
            columns: columns.clone(),
            lower: ends(lower),
            upper: ends(upper),
        };
        let places = |(columns, at): &(u32, Vec<i32>)| PlacesLine { columns: *columns, at: at.clone() };
        AnswerLine {
            kind: answer.kind.clone(),
            question: Hex(answer.question.0),
            scalars: answer.cost.scalars,
            milli_bits: probed.map(|p| p.milli_bits),
            nano_rho: answer.cost.nano_rho,
            drawn: answer.drawn.map(|h| Hex(h.0)),
            frame: probed.map(|p| frame(&p.frame)),
            centres: probed.map(|p| p.centres.iter().map(places).collect()),
        }
    }

    fn into_answer(self) -> Answer {
        let ends = |ends: Vec<f64>| ends.into_iter().map(f64::to_bits).collect();
        let probed = match (self.milli_bits, self.frame, self.centres) {
            (Some(milli_bits), Some(frame), Some(centres)) => Some(Box::new(Probed {
                milli_bits,
                frame: (frame.columns, ends(frame.lower), ends(frame.upper)),
                centres: centres.into_iter().map(|places| (places.columns, places.at)).collect(),
            })),
            // A part of them would not be written again.
            _ => None,
        };
        Answer {
            kind: self.kind,
            question: Hash(self.question.0),
            cost: Cost { scalars: self.scalars, nano_rho: self.nano_rho },
            drawn: self.drawn.map(|h| Hash(h.0)),
            probed,
        }
    }
}

/// An entry as its line, with the newline.
pub(super) fn write(entry: &Entry, signature: &Signature) -> String {
    let line = Line {
        form: (entry.form == Form::Present).then_some(FORM),
        index: entry.index,
        previous: Hex(entry.previous.0),
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
        version: (entry.form > Form::BeforeBlocks).then_some(entry.version),
        block: entry.block.as_ref().map(|block| block.iter().map(|(key, version)| (Hex(key.0), *version)).collect()),
        note: entry.note.as_ref().map(NoteLine::of),
        answer: entry.answer.as_ref().map(AnswerLine::of),
        signature: Hex(signature.to_bytes()),
    };
    // Integers, lists and strings always have a text.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

fn parse(text: &[u8]) -> Option<(Entry, Signature)> {
    let line: Line = serde_json::from_slice(text).ok()?;
    let form = match (line.form, line.version) {
        (Some(FORM), Some(_)) => Form::Present,
        (None, Some(_)) => Form::BeforeAccount,
        (None, None) => Form::BeforeBlocks,
        _ => return None,
    };
    let entry = Entry {
        index: line.index,
        previous: Hash(line.previous.0),
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
        version: line.version.unwrap_or_default(),
        block: line.block.map(|block| block.into_iter().map(|(key, version)| (PublicKey(key.0), version)).collect()),
        note: line.note.map(NoteLine::into_note),
        answer: line.answer.map(AnswerLine::into_answer),
        form,
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
    },
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
}

/// Reads a whole ledger of `key`, and hands over every valid entry.
pub(super) fn read(file: &File, key: PublicKey, mut take: impl FnMut(Entry, Head)) -> Result<Whole, (Head, Fault)> {
    let mut reader = BufReader::new(file);
    let (mut chain, mut good, mut line) = (Chain::new(key), 0u64, Vec::new());
    loop {
        line.clear();
        let at = chain.head();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).map_err(|e| (at, e.into()))?;
        if read == 0 {
            return Ok(Whole { head: at, good });
        }
        if line.last() != Some(&b'\n') {
            let fault = if line.len() as u64 == MAX_LINE {
                Fault::SumBounds(at.entries)
            } else {
                Fault::Torn { entry: at.entries, good }
            };
            return Err((at, fault));
        }
        let (entry, signature) = parse(&line).ok_or((at, Fault::SumBounds(at.entries)))?;
        chain.take(&entry, &signature).map_err(|e| (at, Fault::Chain(e.to_string())))?;
        good += read as u64;
        take(entry, chain.head());
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadLine {
    entries: u64,
    link: Hex<32>,
    signature: Hex<64>,
}

/// The head file's text.
pub(super) fn write_head(head: &Head, signature: &Signature) -> String {
    let line = HeadLine { entries: head.entries, link: Hex(head.link.0), signature: Hex(signature.to_bytes()) };
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// A head that `key` signed.
pub(super) fn read_head(text: &[u8], key: &PublicKey) -> Option<Head> {
    let line: HeadLine = serde_json::from_slice(text).ok()?;
    let head = Head { entries: line.entries, link: Hash(line.link.0) };
    head.verify(key, &Signature::from_bytes(&line.signature.0)).then_some(head)
}
