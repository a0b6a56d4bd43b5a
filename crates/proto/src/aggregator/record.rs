//! What an aggregator keeps for the process after it: the entries of its journal ([JRN-5], spec section 12).

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::timing::Millis;
use crate::{codec, error::Error, limits::MAX_BODY, message::BurnCertificate, release::Blocks, suite::Hash};

/// A deck that is ready, as the aggregator knows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadyDeck {
    pub(crate) index: u32,
    pub(crate) hash: Hash,
    pub(crate) id: Hash,
    pub(crate) threshold: usize,
    pub(crate) members: Vec<u16>,
    pub(crate) blocks: Blocks,
    /// Whether a member stated that its block was fixed before.
    pub(crate) stated: bool,
    pub(crate) commitments: BTreeMap<u16, Vec<Hash>>,
    pub(crate) slots: u16,
    pub(crate) next_slot: u16,
}

/// Survivors that were named, with the input that each of them had signed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) alive: Vec<u16>,
    pub(crate) inputs: Vec<Hash>,
    /// Whether shares may have left for them.
    pub(crate) shares: bool,
}

impl Named {
    pub(super) fn input(&self, site: u16) -> Option<&Hash> {
        self.alive.binary_search(&site).ok().and_then(|at| self.inputs.get(at))
    }
}

/// Bytes of one entry: the largest is a total with its opening, which holds the sum of all masked words twice.
const MAX_RECORD: usize = 4 * MAX_BODY;

/// One entry of an aggregator's journal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record(pub(super) Entry);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Entry {
    /// The run's name.
    Run { session: Hash, run: Hash },
    /// A deck is opened under this index, which is not used again.
    Opened { index: u32 },
    /// A deck is ready.
    Deck(ReadyDeck),
    /// A question is put.
    Asked {
        deck: u32,
        slot: u16,
        cohort: Vec<u16>,
        words: u32,
        #[serde(with = "codec::bytes")]
        query: Vec<u8>,
    },
    /// Survivors are named.
    Named(Named),
    /// The slot is given up; these sent their inputs.
    Burning { here: Vec<u16> },
    /// The question gets no total in this slot.
    Burned { certificate: BurnCertificate },
    /// The total of the question before, and what opens it to the cohort.
    Total { values: Vec<u64>, cohort: Vec<u16>, missing: Vec<u16>, opening: Option<Vec<u8>> },
}

impl Record {
    /// The bytes to append to the journal.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads one entry back.
    ///
    /// # Errors
    /// `Error::Journal` where the bytes are not what [`Record::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Record, Error> {
        codec::decode("journal entry", bytes, MAX_RECORD).map_err(|e| Error::Journal(e.to_string()))
    }

    /// Whether it is a deck that is ready.
    pub fn is_deck(&self) -> bool {
        matches!(self.0, Entry::Deck(_))
    }

    /// Whether it is the total of a question.
    pub fn is_total(&self) -> bool {
        matches!(self.0, Entry::Total { .. })
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Record(aggregator)")
    }
}

pub(super) struct Question {
    pub(super) deck: u32,
    pub(super) slot: u16,
    pub(super) cohort: Vec<u16>,
    pub(super) words: usize,
    pub(super) query: Vec<u8>,
}

pub(super) struct Past {
    pub(super) query: Vec<u8>,
    pub(super) words: usize,
    pub(super) values: Vec<u64>,
    pub(super) cohort: Vec<u16>,
    pub(super) missing: Vec<u16>,
}

/// The state that remains of the earlier process.
#[derive(Default)]
pub(super) struct Unfinished {
    pub(super) past: VecDeque<Past>,
    /// The round that was open, and the survivors named in it.
    pub(super) open: Option<(Question, Option<Named>)>,
    /// The sites that had sent their inputs, where the slot is being given up.
    pub(super) burning: Option<Vec<u16>>,
    /// Until when a site that was cut off is awaited.
    pub(super) patience: Option<Millis>,
    /// The questions and openings that were sent, in their order, each with the directory of its deck; none where totals stay closed.
    pub(super) said: Vec<(Hash, Arc<Vec<u8>>)>,
}
