//! A site's secrets as its journal holds them, the masks that follow from them, and a ledger of all that a site gives away.

use serde::{Deserialize, Serialize};

use crate::prelude::*;

/// All that a site keeps secret of one deck, written a second time after section 12 of the specification.
#[derive(Serialize, Deserialize)]
pub struct Secrets {
    pub session: Hash,
    pub run: Hash,
    pub index: u32,
    pub directory: Hash,
    pub threshold: u16,
    pub members: Vec<u16>,
    pub first: u16,
    /// With every other member.
    pub pairs: Vec<(u16, [u8; 32])>,
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
        Secrets::find(journal, deck).expect("the deck is in the journal")
    }

    fn find(journal: &[Record], deck: u32) -> Option<Secrets> {
        let decks = journal.iter().rev().filter(|r| r.kind() == RecordKind::Deck);
        // Behind the number of the kind of entry.
        let read = |r: &Record| codec::decode::<(u32, Secrets)>("entry", &r.to_bytes(), usize::MAX).unwrap().1;
        decks.map(read).find(|found| found.index == deck)
    }

    fn place(&self, site: u16) -> usize {
        self.members.binary_search(&site).expect("a member")
    }

    pub fn pair(&self, other: u16) -> [u8; 32] {
        self.pairs.iter().find(|(member, _)| *member == other).expect("another member").1
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

    /// Every mask on the vector of site `me`, its own first ([MSK-1], [MSK-3]).
    pub fn masks(&self, me: u16, slot: u16, context: &Hash, cohort: &[u16]) -> Vec<Mask> {
        let others = cohort.iter().filter(|o| **o != me);
        let own = (api::self_mask_key(&self.seeds[usize::from(slot - self.first)], context), None);
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

/// A slot: deck and number.
pub type Slot = (u32, u16);

/// What one site gave away about whom: by value, whatever the message around it claims.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub struct Ledger {
    pub seeds: BTreeSet<(Slot, u16)>,
    pub shares: BTreeSet<(Slot, u16)>,
    /// Masked vectors by slot.
    pub masked: BTreeMap<Slot, BTreeSet<Vec<u8>>>,
}

impl Ledger {
    /// Enters what left a site that was asked all this and has this journal.
    pub fn enter(&mut self, p: &Parts, asked: &[Asked], journal: &[Record]) {
        let slot_of = |context| asked.iter().rfind(|a| a.context == context).expect("it was asked this").slot;
        match p.kind {
            Kind::MaskedInput => _ = self.masked.entry(slot_of(p.context)).or_default().insert(p.rest.clone()),
            Kind::ConsistencyCheck => {
                let (context, seeds) = p.read::<Check>();
                let slot = slot_of(context);
                for (_, seed) in seeds {
                    let secrets = Secrets::among(journal, slot.0);
                    let mut of = secrets.pairs.iter().map(|(other, _)| *other);
                    let of = of.find(|other| secrets.round_seed(*other, slot.1, &context) == seed);
                    self.seeds.insert((slot, of.expect("a seed of this round")));
                }
            }
            Kind::Unmask => {
                // Its context is that of the survivors and their inputs. The question is the last one, or came before it.
                let of = |a: &Asked| {
                    let secrets = Secrets::find(journal, a.slot.0).filter(|secrets| secrets.first <= a.slot.1)?;
                    let owner = |share| secrets.members.iter().find(|m| secrets.share(**m, a.slot.1) == share);
                    p.shares().into_iter().map(|share| Some((a.slot, *owner(share)?))).collect::<Option<Vec<_>>>()
                };
                self.shares.extend(asked.iter().rev().find_map(of).expect("shares of one slot"));
            }
            _ => {}
        }
    }

    /// What never leaves, whatever the aggregator says, and did: both keys of one party, a second vector in a slot, many seeds.
    pub fn broken(&self, most_seeds: usize) -> Vec<String> {
        let both =
            self.seeds.intersection(&self.shares).map(|of| format!("both keys of one party left the site: {of:?}"));
        let slots = self.masked.iter().flat_map(|(slot, vectors)| {
            let seeds = self.seeds.iter().filter(|(s, _)| s == slot).count();
            let two = (vectors.len() > 1).then(|| format!("two vectors left in slot {slot:?}"));
            two.into_iter().chain((seeds > most_seeds).then(|| format!("{seeds} seeds left in slot {slot:?}")))
        });
        both.chain(slots).collect()
    }

    /// Nothing left that never leaves.
    pub fn check(&self, most_seeds: usize, what: &str) {
        let broken = self.broken(most_seeds);
        assert!(broken.is_empty(), "{what}: {broken:?}");
    }

    /// Nothing that the honest run did not give away too.
    pub fn within(&self, honest: &Ledger, what: &str) {
        let more: Vec<_> = self.seeds.difference(&honest.seeds).collect();
        assert!(more.is_empty(), "{what}: seeds too many: {more:?}");
        let more: Vec<_> = self.shares.difference(&honest.shares).collect();
        assert!(more.is_empty(), "{what}: shares too many: {more:?}");
    }
}
