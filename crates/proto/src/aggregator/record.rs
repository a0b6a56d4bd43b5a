//! What an aggregator keeps for the process after it: the entries of its journal ([JRN-5], spec section 12).

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::timing::Millis;
use crate::{codec, message::Named, suite::Hash};

/// A deck that is ready, as the aggregator knows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadyDeck {
    pub(crate) index: u32,
    pub(crate) hash: Hash,
    pub(crate) id: Hash,
    pub(crate) threshold: usize,
    pub(crate) members: Vec<u16>,
    pub(crate) commitments: BTreeMap<u16, Vec<Hash>>,
    pub(crate) slots: u16,
    pub(crate) next_slot: u16,
}

impl ReadyDeck {
    /// A member's commitment to its self-mask seed of a slot.
    pub(super) fn commitment(&self, owner: u16, slot: u16) -> Option<Hash> {
        self.commitments.get(&owner)?.get(usize::from(slot)).copied()
    }
}

/// A question in a slot of a deck.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) deck: u32,
    pub(crate) slot: u16,
    pub(crate) cohort: Vec<u16>,
    pub(crate) words: u32,
    #[serde(with = "codec::bytes")]
    pub(crate) query: Vec<u8>,
}

impl Question {
    /// Whether it asks this.
    pub(super) fn is(&self, query: &[u8], words: usize) -> bool {
        self.query == query && self.words as usize == words
    }
}

/// The total of a question, whose it is, and who was asked and is missing from it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Total {
    pub(crate) values: Vec<u64>,
    pub(crate) cohort: Vec<u16>,
    pub(crate) missing: Vec<u16>,
}

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
    Asked(Question),
    /// Survivors are named, and whether shares may leave for them.
    Named { named: Named, shares: bool },
    /// The total of the question before, and what opens it to the cohort.
    Total { total: Total, opening: Option<Vec<u8>> },
}

impl Record {
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

/// The state that remains of the earlier process.
#[derive(Default)]
pub(super) struct Unfinished {
    /// Questions with their totals.
    pub(super) past: VecDeque<(Question, Total)>,
    /// The round that was open, and the survivors named in it, with whether shares may have left for them.
    pub(super) open: Option<(Question, Option<(Named, bool)>)>,
    /// Until when a site that was cut off is awaited.
    pub(super) patience: Option<Millis>,
    /// The questions and openings that were sent, in their order, each with the directory of its deck; none where totals stay closed.
    pub(super) said: Vec<(Hash, Arc<Vec<u8>>)>,
}
