//! A site's secrets as its journal holds them, and the masks that follow from them.

use serde::{Deserialize, Serialize};
use veilsum_proto::{codec, journal::Record, suite::Hash, vectors_api as api};

use crate::hub::Hub;

/// A journal entry, written a second time after section 12 of the specification.
#[derive(Serialize, Deserialize)]
enum Entry {
    Chain { context: Hash, cohort: Option<Vec<u16>>, rounds: u32, opened: Option<Hash> },
    Deck(Secrets),
    Masked { context: Hash, deck: u32, slot: u16, cohort: Vec<u16>, words: u32, digest: Hash, rounds: u32 },
    Checked { context: Hash, alive: Vec<u16>, inputs: Vec<Hash> },
    Released { context: Hash, alive: Vec<u16>, inputs: Vec<Hash> },
    Burned { context: Hash, deck: u32, slot: u16 },
}

/// Name, sites, what they are known by, versions.
type Block = (Hash, Vec<u16>, Vec<Hash>, Vec<u32>);

/// All that a site keeps secret of one deck.
#[derive(Serialize, Deserialize)]
pub struct Secrets {
    pub session: Hash,
    pub run: Hash,
    pub index: u32,
    pub directory: Hash,
    pub threshold: u16,
    pub members: Vec<u16>,
    pub blocks: Vec<Block>,
    pub first: u16,
    /// At the site's own place its noise secret.
    pub pairs: Vec<[u8; 32]>,
    pub seeds: Vec<[u8; 32]>,
    pub held: Vec<Vec<[u8; 32]>>,
    pub slot_commitments: Vec<Hash>,
}

/// A key of a mask; where it is of a pair, who applies it and with whom.
pub type Mask = ([u8; 32], Option<(u16, u16)>);

impl Secrets {
    /// From the journal of `site`.
    pub fn of(hub: &Hub, site: u16, deck: u32) -> Secrets {
        Secrets::among(&hub.journals[usize::from(site)], deck)
    }

    /// From a journal.
    pub fn among(journal: &[Record], deck: u32) -> Secrets {
        let mut found =
            journal.iter().filter_map(|r| match codec::decode("entry", &r.to_bytes(), usize::MAX).unwrap() {
                Entry::Deck(d) if d.index == deck => Some(d),
                _ => None,
            });
        found.next_back().expect("the deck is in the journal")
    }

    fn place(&self, site: u16) -> usize {
        self.members.binary_search(&site).expect("a member")
    }

    pub fn pair(&self, other: u16) -> [u8; 32] {
        self.pairs[self.place(other)]
    }

    /// The share this site holds of `owner`'s self-mask seed.
    pub fn share(&self, owner: u16, slot: u16) -> [u8; 32] {
        self.held[usize::from(slot - self.first)][self.place(owner)]
    }

    /// The pair secret of a later slot, or of this one ([MSK-1]).
    pub fn pair_in(&self, other: u16, slot: u16) -> [u8; 32] {
        (self.first..slot).fold(self.pair(other), |secret, _| api::next_slot(&secret))
    }

    /// k of [MSK-1].
    pub fn round_seed(&self, other: u16, slot: u16, context: &Hash) -> [u8; 32] {
        api::expand(&self.pair_in(other, slot), "round seed", &[&context.0])
    }

    /// s of [MSK-1].
    pub fn self_key(&self, slot: u16, context: &Hash) -> [u8; 32] {
        api::self_mask_key(&self.seeds[usize::from(slot - self.first)], context)
    }

    /// Every mask on the vector of site `me`, its own first ([MSK-3]).
    pub fn masks(&self, me: u16, slot: u16, context: &Hash, cohort: &[u16]) -> Vec<Mask> {
        let others = cohort.iter().filter(|o| **o != me);
        let own = (self.self_key(slot, context), None);
        std::iter::once(own).chain(others.map(|o| (self.round_seed(*o, slot, context), Some((me, *o))))).collect()
    }
}

/// A vector without these masks.
pub fn without(masked: &[u64], masks: &[Mask]) -> Vec<u64> {
    let mut words = masked.to_vec();
    masks.iter().for_each(|(key, pair)| api::unmask(&mut words, key, *pair));
    words
}

/// Whether the bytes hold this secret.
pub fn holds(bytes: &[u8], secret: &[u8; 32]) -> bool {
    bytes.windows(32).any(|w| w == secret)
}
