//! What a site of the sparse protocol must have on disk before bytes leave it ([SPA-26], spec section 12).

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{bits::Bits, size::Sizes};
use crate::{codec, error::Error, suite::Hash};

/// One entry of a site's journal. Holds secrets; goes to a file of mode 0600 only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record(pub(crate) Entry);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// Where the run stood when the journal was rewritten.
    Chain { run: Option<Hash>, index: Option<u32>, reveals: u32, context: Hash, left: Option<Bits>, rounds: u32 },
    /// An answer to this query may have left; it is never answered again.
    Consumed { query: Hash },
    /// The random number for this set-up left.
    Revealed { run: Hash, index: u32 },
    /// The shares of a deck left.
    Deck(DeckRecord),
    /// As a member of the deck's committee: the shares it holds for one slot; slot 0 first.
    Held(HeldRecord),
    /// A vector was masked; these bytes may have left.
    Masked { context: Hash, slot: u16, cohort: Bits, words: u32, query: Hash, digest: Hash, rounds: u32 },
    /// These survivors were signed.
    Agreed { context: Hash, alive: Bits },
    /// The shares of the round were given away.
    Released { context: Hash },
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeckRecord {
    pub(crate) session: Hash,
    pub(crate) index: u32,
    pub(crate) directory: Hash,
    pub(crate) members: Vec<u16>,
    pub(crate) sizes: Sizes,
    pub(crate) near: Vec<u16>,
    pub(crate) near_keys: Vec<Vec<[u8; 32]>>,
    pub(crate) committee: Vec<u16>,
    /// Both secrets of every slot.
    pub(crate) slots: Vec<[Bytes; 2]>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldRecord {
    pub(crate) seed: Hash,
    pub(crate) owners: Bits,
    pub(crate) slot: u16,
    /// Of every owner, in order.
    pub(crate) shares: Vec<[Bytes; 2]>,
}

/// Secret bytes on their way to or from the journal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Bytes(pub(crate) [u8; 32]);

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
        codec::decode("journal entry", bytes, usize::MAX).map_err(|e| Error::Journal(e.to_string()))
    }
}
