//! What a member of the share committee holds for everybody: shares, and the circle by which it judges a set of
//! survivors (spec sections 17.5 and 17.7).

use x25519_dalek::StaticSecret;

use super::{Env, deck::Deck};
use crate::{
    error::Error,
    shamir::Share,
    sparse::{
        bits::Bits,
        frame::{Kind, all_signed},
        graph::Graph,
        journal::{Bytes, HeldRecord},
        message::{Agreement, Deliver, Unmask, survivors_context},
        slot,
    },
    suite::{self, Hash},
};

/// Shares of both secrets of one slot.
pub(crate) type Pair = [Share; 2];

/// A member's part in the committee.
pub(crate) struct Duty {
    graph: Graph,
    seed: Hash,
    /// What opens boxes and the deck its senders' entries are signed for; until no more come.
    opening: Option<(StaticSecret, Hash)>,
    owners: Bits,
    /// By slot and owner; a slot is wiped when a later one begins.
    held: Vec<Vec<Option<Pair>>>,
}

impl Duty {
    pub(crate) fn new(
        graph: Graph,
        seed: Hash,
        deck: Hash,
        seal: StaticSecret,
        members: usize,
        me: u16,
        own: Vec<Pair>,
    ) -> Duty {
        let mut duty = Duty {
            graph,
            seed,
            opening: Some((seal, deck)),
            owners: Bits::none(members),
            held: own.iter().map(|_| (0..members).map(|_| None).collect()).collect(),
        };
        duty.hold(me, own);
        duty
    }

    fn hold(&mut self, owner: u16, shares: Vec<Pair>) {
        for (slot, pair) in self.held.iter_mut().zip(shares) {
            slot[usize::from(owner)] = Some(pair);
        }
        self.owners.set(owner, true);
    }

    /// [SPA-12]: boxes whose sender signed the key they were sealed with. One that does not open, or holds something
    /// else than shares, is not held: its owner has one holder less.
    pub(crate) fn deliver(&mut self, env: &Env, deck: &DeckHead<'_>, delivery: Deliver) -> Result<(), Error> {
        let Some((seal, id)) = &self.opening else {
            return Err(env.aggregator("sent shares after it said that no more would come", "SPA-12"));
        };
        let mut opened = Vec::with_capacity(delivery.boxes.len());
        for (owner, shown) in &delivery.boxes {
            let Some(site) = deck.members.get(usize::from(*owner)) else {
                return Err(env.aggregator("delivered shares of a site that is no member", "SPA-12"));
            };
            let signed = shown.proof.covers(&shown.keys)
                && env.key_of(*site).is_some_and(|k| shown.proof.verify(&k, &env.session, Kind::Advertise, id));
            if !signed || self.owners.has(*owner) {
                return Err(env.aggregator("delivered shares twice, or with a key their sender did not sign", "SPA-12"));
            }
            let open = || {
                let (key, associated) = slot::box_key(seal, &shown.keys.seal_key, &deck.id, *owner, deck.me)?;
                let plain = suite::open(&key, &associated, &shown.sealed).ok()?;
                let (chunks, rest) = plain.as_chunks::<64>();
                let pair = |both: &[u8; 64]| {
                    let (own, key) = both.split_first_chunk::<32>()?;
                    Some([Share::from_bytes(own)?, Share::from_bytes(key.first_chunk()?)?])
                };
                let shares: Vec<Pair> = chunks.iter().map(pair).collect::<Option<_>>()?;
                (rest.is_empty() && shares.len() == self.held.len()).then_some(shares)
            };
            opened.push((*owner, open()));
        }
        for (owner, shares) in opened {
            if let Some(shares) = shares {
                self.hold(owner, shares);
            }
        }
        Ok(())
    }

    /// No more boxes come: whose shares are here. The key that opens them is wiped.
    pub(crate) fn close(&mut self) -> Bits {
        self.opening = None;
        self.owners.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.opening.is_none()
    }

    pub(crate) fn wipe(&mut self, slot: u16) {
        if let Some(shares) = self.held.get_mut(usize::from(slot)) {
            shares.clear();
        }
    }

    /// [SPA-19]: whether a set of survivors may be signed. *Why the circle:* a piece of honest survivors that is cut off
    /// from the others has an end with few neighbours in the set.
    pub(crate) fn judge(&self, env: &Env, deck: &DeckHead<'_>, alive: &Bits, cohort: &Bits) -> Result<(), Error> {
        let n = deck.members.len();
        if !alive.fits(n) || !alive.within(cohort) {
            return Err(env.aggregator("named survivors that were not asked", "SPA-19"));
        }
        let least = env.least(&deck.sizes);
        if alive.count() < least {
            let what = format!("named {} survivors where the floor is {least}", alive.count());
            return Err(env.aggregator(what, "SPA-19"));
        }
        if let Some(alone) = self.graph.lonely(alive, deck.sizes.nearby) {
            let who = env.name_of(deck.members[usize::from(alone)]);
            return Err(env.aggregator(format!("named survivors that leave {who} with too few neighbours"), "SPA-19"));
        }
        Ok(())
    }

    /// [SPA-21]: enough signatures of distinct members of the committee on exactly these survivors.
    pub(crate) fn agreed(
        &self,
        env: &Env,
        deck: &DeckHead<'_>,
        round: &Hash,
        agreement: &Agreement,
    ) -> Result<(), Error> {
        let bad = |what| Err(env.aggregator(what, "SPA-21"));
        let Agreement { alive, signers, proofs } = agreement;
        if signers.len() < deck.sizes.quorum || proofs.len() != signers.len() {
            return bad("sent an agreement with too few signatures");
        }
        if !signers.is_sorted_by(|a, b| a < b) || !signers.iter().all(|s| deck.committee.binary_search(s).is_ok()) {
            return bad("sent an agreement whose signers are not distinct members of the committee");
        }
        let context = survivors_context(round, alive);
        let key = |place: &u16| env.key_of(deck.members[usize::from(*place)]);
        let signed: Option<Vec<_>> = signers.iter().map(key).zip(proofs).map(|(key, p)| Some((key?, *p))).collect();
        if !signed.is_some_and(|signed| all_signed(&signed, &env.session, Kind::Agree, &context)) {
            return bad("sent an agreement with a signature that is not its signer's on these survivors");
        }
        Ok(())
    }

    /// [SPA-22]: one of the two shares of everybody who was asked, never both.
    pub(crate) fn shares(&self, slot: u16, cohort: &Bits, alive: &Bits) -> Option<Unmask> {
        let held = self.held.get(usize::from(slot)).filter(|held| !held.is_empty())?;
        let share = |owner: u16| {
            let [own, key] = held[usize::from(owner)].as_ref()?;
            Some(if alive.has(owner) { own.bytes() } else { key.bytes() })
        };
        Some(Unmask { shares: cohort.list().map(share).collect() })
    }

    /// One record a slot: all slots of a large deck would be more than a journal entry may hold.
    pub(crate) fn to_records(&self) -> Vec<HeldRecord> {
        let pair = |[own, key]: &Pair| [Bytes(own.bytes()), Bytes(key.bytes())];
        (0..)
            .zip(&self.held)
            .map(|(slot, row)| HeldRecord {
                seed: self.seed,
                owners: self.owners.clone(),
                slot,
                shares: row.iter().flatten().map(pair).collect(),
            })
            .collect()
    }

    /// A member's part as the journal has it, from the record of its first slot on.
    pub(crate) fn restored(seed: Hash, owners: &Bits, deck: &Deck) -> Duty {
        let n = deck.members.len();
        let held = deck.slots.iter().map(|_| Vec::new()).collect();
        Duty { graph: Graph::draw(&seed, n, &deck.sizes), seed, opening: None, owners: owners.clone(), held }
    }

    /// The next slot of the journal; nothing where it does not follow.
    pub(crate) fn restore_slot(&mut self, record: &HeldRecord, members: usize) -> Option<()> {
        let row = self.held.get_mut(usize::from(record.slot)).filter(|row| row.is_empty())?;
        let same = record.seed == self.seed && record.owners == self.owners && record.owners.fits(members);
        if !same || record.shares.len() != self.owners.count() {
            return None;
        }
        let mut slot: Vec<Option<Pair>> = (0..members).map(|_| None).collect();
        for (owner, [own, key]) in record.owners.list().zip(&record.shares) {
            slot[usize::from(owner)] = Some([Share::from_bytes(&own.0)?, Share::from_bytes(&key.0)?]);
        }
        *row = slot;
        Some(())
    }
}

/// What of a deck its committee's rules need.
pub(crate) struct DeckHead<'a> {
    pub(crate) id: Hash,
    pub(crate) me: u16,
    pub(crate) members: &'a [u16],
    pub(crate) committee: &'a [u16],
    pub(crate) sizes: crate::sparse::size::Sizes,
}
