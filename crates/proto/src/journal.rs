//! The journal: what a site must have on disk before bytes leave it (spec section 12).
//!
//! The order of outputs is the guarantee. A `Persist` always comes before the `Send` that it protects, so a site that
//! comes back after a crash repeats exactly the bytes that it may have sent.

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{codec, error::Error, limits::MAX_BODY, message::Named, suite::Hash};

/// One entry of a site's journal. Holds secrets; goes to a file of mode 0600 only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record(pub(crate) Entry);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// The state of the rounds when the journal was rewritten. `opened` names the opening of that round that was
    /// checked before the journal was replaced ([OPN-7]).
    Chain { context: Hash, cohort: Option<Vec<u16>>, rounds: u32, opened: Option<Hash> },
    /// A deck is ready for use.
    Deck(DeckRecord),
    /// A vector was masked; this frame with it may have left.
    Masked {
        deck: u32,
        slot: u16,
        cohort: Vec<u16>,
        rounds: u32,
        #[serde(with = "codec::bytes")]
        frame: Vec<u8>,
    },
    /// A set of survivors was signed and the seeds towards the others given away.
    Checked { context: Hash, named: Named },
    /// The shares of these survivors' self-masks were given away, for these inputs.
    Released { context: Hash, named: Named },
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeckRecord {
    pub(crate) session: Hash,
    pub(crate) run: Hash,
    pub(crate) index: u32,
    pub(crate) directory: Hash,
    pub(crate) threshold: u16,
    pub(crate) members: Vec<u16>,
    /// The first slot that is not closed; all secrets below are of this slot or later ones.
    pub(crate) first: u16,
    /// With every other member.
    pub(crate) pairs: Vec<(u16, Bytes)>,
    /// For slot `first` and all later slots.
    pub(crate) seeds: Vec<Bytes>,
    /// `held[i][m]`: this site's share of member m's self-mask seed for slot `first` + i.
    pub(crate) held: Vec<Vec<Bytes>>,
    /// For every slot the digest of all members' commitments to their self-mask seeds. Not secret.
    pub(crate) slot_commitments: Vec<Hash>,
}

/// Secret bytes on their way to or from the journal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Bytes(#[serde(with = "codec::fixed")] pub(crate) [u8; 32]);

impl Record {
    /// The bytes to append to the journal.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(codec::encode(self))
    }

    /// Reads one entry back.
    ///
    /// # Errors
    /// `Error::Journal` where the bytes are not what [`Record::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Record, Error> {
        codec::decode("journal entry", bytes, MAX_BODY).map_err(|e| Error::Journal(e.to_string()))
    }

    /// Run and number of the deck, if this entry is one.
    pub fn deck(&self) -> Option<(Hash, u32)> {
        match &self.0 {
            Entry::Deck(deck) => Some((deck.run, deck.index)),
            _ => None,
        }
    }

    /// Deck and slot of the answer, and its frame, if this entry is one.
    pub fn answer(&self) -> Option<((u32, u16), &[u8])> {
        match &self.0 {
            Entry::Masked { deck, slot, frame, .. } => Some(((*deck, *slot), frame)),
            _ => None,
        }
    }

    /// What kind of entry this is, without its contents.
    pub fn kind(&self) -> RecordKind {
        match self.0 {
            Entry::Chain { .. } => RecordKind::Chain,
            Entry::Deck(_) => RecordKind::Deck,
            Entry::Masked { .. } => RecordKind::Masked,
            Entry::Checked { .. } => RecordKind::Checked,
            Entry::Released { .. } => RecordKind::Released,
        }
    }
}

/// A kind of entry, as it is told apart when a run is taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Where the rounds stood when the journal was rewritten.
    Chain,
    /// A deck is ready for use.
    Deck,
    /// A vector was masked.
    Masked,
    /// A set of survivors was signed.
    Checked,
    /// Shares of self-masks were given away.
    Released,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Record({:?})", self.kind())
    }
}
