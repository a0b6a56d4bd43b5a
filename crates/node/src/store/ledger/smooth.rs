//! The smooth questions that a site answered, kept beside its ledger, so that after a restart it can measure again what they
//! tell together ([POL-9]).
//!
//! One line a question: its record and the site's signature, in hexadecimal digits. An entry of the ledger names its question by
//! digest and its plan; a record counts for no other. Where one is missing or damaged, the numbers of that answer count
//! one by one, which is never less strict: so nothing here is flushed before a frame leaves, and a lost line is no error.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};
use veilsum_cluster::{
    Batch, Domain,
    privacy::rank::{Asked, Before, Ranks},
};
use veilsum_proto::{
    codec,
    identity::{Identity, PublicKey, Signature, from_hex},
    ledger::Answer,
    limits::MAX_QUERY,
    policy::{Cost, Smooth},
    suite::{self, Hash},
};

use crate::question::Question;

/// Name of the file in the state folder.
pub const QUESTIONS: &str = "questions.hex";
/// Bytes of a record: a question, and the box and steps of up to 4,096 columns and blocks.
const MAX_RECORD: usize = MAX_QUERY + (4 << 20);
/// Bytes of a line: record and signature in digits.
const MAX_LINE: u64 = 2 * (MAX_RECORD as u64 + 64) + 2;
const SIGNED: &str = "smooth question";

/// Plan and digest of a question.
type Key = (Hash, Hash);

/// What measuring a question takes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The plan it was asked under.
    pub plan: Hash,
    /// The question's bytes.
    pub query: Vec<u8>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The public box.
    pub domain: Domain,
    /// Fractional bits of the blocks of the answer: their step is 2 to minus so many.
    pub fraction_bits: Vec<i32>,
    /// Rows in the total at most: what the plan allows all sites.
    pub rows: u64,
}

impl Kept {
    fn key(&self) -> Key {
        // Nothing but the question's bytes stands behind a smooth answer: no labels.
        (self.plan, suite::hash("question in a ledger", &[&self.query, &[]]))
    }

    fn batch(&self) -> Option<Batch> {
        match Question::from_bytes(&self.query).ok()? {
            Question::Cluster(batch) | Question::Drawn { batch, .. } => Some(batch),
            Question::CountRows | Question::Judge { .. } => None,
        }
    }

    /// Adds it to what is measured; `None` where it cannot be.
    fn add_to(&self, ranks: &mut Ranks) -> Option<Before> {
        let batch = self.batch()?;
        let steps: Vec<f64> =
            self.fraction_bits.iter().map(|bits| 2f64.powi(bits.checked_neg().unwrap_or(0))).collect();
        let Kept { columns, domain, rows, .. } = self;
        let before = ranks.add(&Asked { columns, domain, batch: &batch, steps: &steps, rows: *rows });
        before.inspect_err(|why| tracing::debug!("a smooth question counts by its numbers: {why}")).ok()
    }
}

/// What the smooth questions of one account tell.
#[derive(Default)]
pub(super) struct Measured {
    /// Records of questions that are not measured yet.
    kept: BTreeMap<Key, Kept>,
    /// Answers that left and are not measured yet, and how often.
    waiting: Vec<(Key, Cost)>,
    known: BTreeSet<Key>,
    ranks: Ranks,
    told: Smooth,
    /// A question that was measured and has not left; it is taken back before another one is.
    tried: Option<(Key, Before)>,
}

impl Measured {
    /// Whether it has this record, or has no more need of it.
    pub(super) fn knows(&self, record: &Kept) -> bool {
        let key = record.key();
        self.known.contains(&key) || self.kept.contains_key(&key)
    }

    /// Records, of this account's questions or of others.
    pub(super) fn keep(&mut self, kept: impl IntoIterator<Item = Kept>) {
        for record in kept {
            let key = record.key();
            if !self.known.contains(&key) {
                self.kept.insert(key, record);
            }
        }
    }

    /// An answer has left.
    pub(super) fn left(&mut self, plan: &Hash, answer: &Answer) {
        if answer.cost.nano_rho.is_none() {
            self.waiting.push(((*plan, answer.question), answer.cost));
        }
    }

    /// What all answers that left tell together: time goes by with numbers that were not measured before.
    pub(super) fn told(&mut self) -> Smooth {
        for (key, cost) in std::mem::take(&mut self.waiting) {
            if !self.known.contains(&key) {
                if self.tried.as_ref().is_some_and(|(tried, _)| *tried == key) {
                    self.tried = None;
                } else {
                    self.take_back();
                    let Some(record) = self.kept.get(&key) else { continue };
                    if record.add_to(&mut self.ranks).is_none() {
                        continue;
                    }
                }
                self.kept.remove(&key);
                self.known.insert(key);
            }
            self.told = with(self.told, &cost);
        }
        if self.tried.is_none() {
            self.told = self.now(self.told);
        }
        self.told
    }

    /// What they would tell with this question; `None` where it cannot be measured.
    pub(super) fn with(&mut self, record: &Kept, cost: &Cost) -> Option<Smooth> {
        let (told, key) = (with(self.told(), cost), record.key());
        if self.known.contains(&key) {
            return Some(told);
        }
        if self.tried.as_ref().is_none_or(|(tried, _)| *tried != key) {
            self.take_back();
            self.tried = Some((key, record.add_to(&mut self.ranks)?));
        }
        Some(self.now(told))
    }

    fn now(&self, told: Smooth) -> Smooth {
        let now = self.ranks.effective();
        Smooth { rank: now.rank, milli_bits: now.milli_bits, ..told }
    }

    fn take_back(&mut self) {
        if let Some((_, before)) = self.tried.take() {
            self.ranks.undo(before);
        }
    }
}

/// With the numbers of one more answer in whose place rank and bits stand.
fn with(told: Smooth, cost: &Cost) -> Smooth {
    let (scalars, milli_bits) = told.instead;
    Smooth { instead: (scalars.saturating_add(cost.scalars), milli_bits.saturating_add(cost.milli_bits)), ..told }
}

/// Reads the records that `key` signed, and passes over everything else. Nothing where there is no file.
///
/// # Errors
/// Those of the file.
pub(super) fn read(path: &Path, key: &PublicKey) -> io::Result<Vec<Kept>> {
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let (mut reader, mut line, mut kept) = (BufReader::new(file), Vec::new(), Vec::new());
    loop {
        line.clear();
        if (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(kept);
        }
        kept.extend(std::str::from_utf8(&line).ok().and_then(|text| parse(text, key)));
    }
}

fn parse(line: &str, key: &PublicKey) -> Option<Kept> {
    let (record, signature) = line.strip_suffix('\n')?.split_once(' ')?;
    let record = from_hex(record)?;
    let signature = Signature::from_bytes(&from_hex(signature)?.try_into().ok()?);
    key.verify(SIGNED, &[&record], &signature).then(|| codec::decode("smooth question", &record, MAX_RECORD).ok())?
}

/// Writes a record behind those that are there.
///
/// # Errors
/// Those of the file.
pub(super) fn append(path: &Path, record: &Kept, identity: &Identity) -> io::Result<()> {
    let bytes = codec::encode(record);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let line = format!("{} {}\n", hex(&bytes), hex(&identity.sign(SIGNED, &[&bytes]).to_bytes()));
    let mut options = OpenOptions::new();
    let mut file = crate::store::journal::private(options.read(true).append(true).create(true)).open(path)?;
    // A line that was torn stays alone.
    if file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    file.write_all(line.as_bytes())
}
