//! A deck from which rounds are played, as a site holds it (spec section 17.5).

use super::duty::{DeckHead, Duty};
use crate::{
    error::Error,
    mask::{self, Sign},
    shamir::Share,
    sparse::{
        bits::Bits,
        journal::{Bytes, DeckRecord},
        size::Sizes,
        slot::{self, SlotSecrets},
    },
    suite::Hash,
};

pub(crate) struct Deck {
    /// Of the directory and its seed.
    pub(crate) id: Hash,
    pub(crate) index: u32,
    pub(crate) members: Vec<u16>,
    /// This site's place among them.
    pub(crate) me: u16,
    pub(crate) sizes: Sizes,
    /// A slot is wiped when a later one begins.
    pub(crate) slots: Vec<Option<SlotSecrets>>,
    pub(crate) near: Vec<u16>,
    /// The neighbours' public keys by slot.
    pub(crate) near_keys: Vec<Vec<[u8; 32]>>,
    pub(crate) committee: Vec<u16>,
    pub(crate) duty: Option<Duty>,
}

impl Deck {
    /// The committee's part of this deck, where this site has one, beside what its rules need of the deck.
    pub(crate) fn duty(&mut self) -> Option<(&mut Duty, DeckHead<'_>)> {
        let (members, committee) = (&self.members[..], &self.committee[..]);
        let head = DeckHead { id: self.id, me: self.me, members, committee, sizes: self.sizes };
        self.duty.as_mut().map(|duty| (duty, head))
    }

    pub(crate) fn near_in(&self, set: &Bits) -> usize {
        self.near.iter().filter(|v| set.has(**v)).count()
    }

    pub(crate) fn number(&self, place: u16) -> u16 {
        self.members[usize::from(place)]
    }

    /// Forgets the secrets of the slots before this one.
    pub(crate) fn wipe_before(&mut self, slot: u16) {
        for r in 0..slot {
            self.slots[usize::from(r)] = None;
            if let Some(duty) = &mut self.duty {
                duty.wipe(r);
            }
        }
    }

    /// [SPA-18]: adds this site's masks for a round over `cohort`.
    pub(crate) fn mask(&self, slot: u16, context: &Hash, cohort: &Bits, values: &mut [u64]) -> Result<(), Error> {
        let Some(Some(secrets)) = self.slots.get(usize::from(slot)) else {
            return Err(Error::ApiMisuse("the secrets of this slot are gone"));
        };
        mask::apply(values, &slot::own_mask(&secrets.own.0, context), Sign::Plus);
        let (own, _) = slot::key_pair(&secrets.key.0);
        for (v, keys) in self.near.iter().zip(&self.near_keys).filter(|(v, _)| cohort.has(**v)) {
            let key = slot::pair_mask(&own, &keys[usize::from(slot)], context, self.me, *v)
                .ok_or_else(|| Error::peer(format!("member {v}"), "advertised a key of small order", "SPA-18"))?;
            mask::apply(values, &key, mask::pair_sign(self.me, *v));
        }
        Ok(())
    }

    pub(crate) fn to_record(&self, session: Hash) -> DeckRecord {
        // A slot that was wiped stays wiped: zeros are no secret anybody would use.
        let bytes = |s: &Option<SlotSecrets>| match s {
            Some(s) => [Bytes(s.own.bytes()), Bytes(s.key.bytes())],
            None => [Bytes([0; 32]), Bytes([0; 32])],
        };
        DeckRecord {
            session,
            index: self.index,
            directory: self.id,
            members: self.members.clone(),
            sizes: self.sizes,
            near: self.near.clone(),
            near_keys: self.near_keys.clone(),
            committee: self.committee.clone(),
            slots: self.slots.iter().map(bytes).collect(),
        }
    }

    pub(crate) fn from_record(record: &DeckRecord, site: u16) -> Option<Deck> {
        let me = record.members.binary_search(&site).ok()? as u16;
        let secret = |[own, key]: &[Bytes; 2]| {
            let both = SlotSecrets { own: Share::from_bytes(&own.0)?, key: Share::from_bytes(&key.0)? };
            Some((own.0 != [0; 32]).then_some(both))
        };
        let slots = record.slots.iter().map(secret).collect::<Option<Vec<_>>>()?;
        let whole = record.near.len() == record.near_keys.len()
            && record.near_keys.iter().all(|keys| keys.len() == slots.len());
        whole.then(|| Deck {
            id: record.directory,
            index: record.index,
            members: record.members.clone(),
            me,
            sizes: record.sizes,
            slots,
            near: record.near.clone(),
            near_keys: record.near_keys.clone(),
            committee: record.committee.clone(),
            duty: None,
        })
    }
}
