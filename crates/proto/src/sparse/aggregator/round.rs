//! The aggregator's side of one round: collect, have the survivors signed, open the total (spec 17.6 to 17.8).

use std::collections::{BTreeMap, BTreeSet};

use curve25519_dalek::scalar::Scalar;

use super::{Env, ReadyDeck, Step, setup::quorum};
use crate::{
    error::Error,
    mask::{self, Sign},
    roster::PartyId,
    shamir::{self, Share},
    sparse::{
        bits::Bits,
        frame::{Kind, Proof, Verified},
        message::{self, Agreement, Ask, Survivors, Unmask, survivors_context},
        slot,
    },
    suite::Hash,
};

enum Phase {
    Collect,
    Agree { alive: Bits, signed: BTreeMap<u16, Proof> },
    Unmask { alive: Bits, shares: BTreeMap<u16, Vec<Option<Scalar>>> },
}

/// A round under way.
pub(crate) struct Round {
    pub(crate) context: Hash,
    slot: u16,
    cohort: Bits,
    words: usize,
    inputs: BTreeMap<u16, Vec<u64>>,
    seen: BTreeSet<Hash>,
    phase: Phase,
}

/// What came of a round.
pub(crate) struct Done {
    pub(crate) values: Vec<u64>,
    pub(crate) alive: Vec<u16>,
    pub(crate) missing: Vec<u16>,
    /// (holder, owner).
    pub(crate) wrong_shares: Vec<(u16, u16)>,
}

impl Round {
    pub(crate) fn open(
        env: &Env,
        deck: &ReadyDeck,
        slot: u16,
        query: Vec<u8>,
        words: usize,
        (previous_context, previous_total): (Hash, Hash),
    ) -> (Round, Step) {
        let cohort = Bits::of(deck.members.len(), deck.cohort.iter().copied());
        let words32 = words as u32;
        let ask = Ask { slot, cohort: cohort.clone(), words: words32, previous_context, previous_total, query };
        let context = message::round_context(&env.session, &deck.context, &ask);
        let frame = env.frame(Kind::Ask, &context, &ask);
        let to = cohort.list().map(|place| deck.members[usize::from(place)]).collect();
        let (inputs, seen) = (BTreeMap::new(), BTreeSet::new());
        (Round { context, slot, cohort, words, inputs, seen, phase: Phase::Collect }, Step::All(to, frame))
    }

    /// A site's answer; whether it was one that was waited for.
    pub(crate) fn message(
        &mut self,
        env: &Env,
        deck: &ReadyDeck,
        from: u16,
        frame: &Verified<'_>,
    ) -> Result<bool, Error> {
        let Ok(place) = deck.members.binary_search(&from).map(|p| p as u16) else { return Ok(false) };
        match (&mut self.phase, frame.kind) {
            (Phase::Collect, Kind::Input) if frame.context == self.context && self.cohort.has(place) => {
                let (words, rest) = frame.rest.as_chunks::<8>();
                if words.len() != self.words || !rest.is_empty() {
                    let what = format!("sent {} bytes where {} words were asked for", frame.rest.len(), self.words);
                    return Err(env.site_error(from, what, "SPA-24"));
                }
                if self.inputs.contains_key(&place) {
                    return Ok(false);
                }
                if !self.seen.insert(frame.proof.rest) {
                    return Err(env.site_error(from, "sent the masked vector of another site as its own", "SPA-24"));
                }
                self.inputs.insert(place, words.iter().map(|w| u64::from_le_bytes(*w)).collect());
                Ok(true)
            }
            (Phase::Agree { alive, signed }, Kind::Agree)
                if frame.context == survivors_context(&self.context, alive) =>
            {
                frame.nothing("Agree")?;
                if deck.graph.committee.binary_search(&place).is_ok() {
                    signed.insert(place, frame.proof);
                }
                Ok(true)
            }
            (Phase::Unmask { shares, .. }, Kind::Unmask) if frame.context == self.context => {
                let unmask: Unmask = frame.decode("Unmask")?;
                let read = |s: &Option<[u8; 32]>| match s {
                    Some(bytes) => Share::from_bytes(bytes).map(|s| Some(s.0)),
                    None => Some(None),
                };
                let scalars: Option<Vec<_>> = unmask.shares.iter().map(read).collect();
                match scalars {
                    Some(scalars) if scalars.len() == self.cohort.count() => {
                        if deck.graph.committee.binary_search(&place).is_ok() {
                            shares.insert(place, scalars);
                        }
                        Ok(true)
                    }
                    _ => Err(env.site_error(from, "did not send one share of every site asked", "SPA-24")),
                }
            }
            // Too late, or of another round.
            _ => Ok(false),
        }
    }

    /// Whether to move on before everybody who is waited for has answered.
    pub(crate) fn has_enough(&self, deck: &ReadyDeck) -> bool {
        match &self.phase {
            Phase::Collect => false,
            Phase::Agree { signed, .. } => signed.len() >= deck.sizes.quorum,
            Phase::Unmask { shares, .. } => shares.len() >= deck.sizes.quorum,
        }
    }

    pub(crate) fn is_collecting(&self) -> bool {
        matches!(self.phase, Phase::Collect)
    }

    /// Moves on where that is possible now. `waiting`: more answers may still come.
    pub(crate) fn next(&mut self, env: &Env, deck: &ReadyDeck, waiting: bool) -> Result<(Step, Option<Done>), Error> {
        match &mut self.phase {
            Phase::Collect => {
                let alive = self.survivors(deck);
                let floor = deck.sizes.floor.max(usize::from(env.terms.min_cohort));
                if alive.count() < floor {
                    return Err(quorum("a total", alive.count(), floor, "SPA-19"));
                }
                let frame = env.frame(Kind::Survivors, &self.context, &Survivors { alive: alive.clone() });
                let to = self.committee(deck);
                self.phase = Phase::Agree { alive, signed: BTreeMap::new() };
                Ok((Step::All(to, frame), None))
            }
            Phase::Agree { signed, .. } if signed.len() < deck.sizes.quorum => {
                Err(quorum("an agreement on the survivors", signed.len(), deck.sizes.quorum, "SPA-21"))
            }
            Phase::Agree { alive, signed } => {
                let alive = alive.clone();
                let (signers, proofs) = signed.iter().take(deck.sizes.quorum).map(|(s, p)| (*s, *p)).unzip();
                let agreement = Agreement { alive: alive.clone(), signers, proofs };
                let frame = env.frame(Kind::Agreement, &self.context, &agreement);
                let to = self.committee(deck);
                self.phase = Phase::Unmask { alive, shares: BTreeMap::new() };
                Ok((Step::All(to, frame), None))
            }
            Phase::Unmask { shares, .. } if shares.len() < deck.sizes.quorum => {
                Err(quorum("unmasking", shares.len(), deck.sizes.quorum, "SPA-23"))
            }
            Phase::Unmask { .. } => match self.open_total(env, deck, waiting)? {
                Some(done) => Ok((Step::Done, Some(done))),
                None => Ok((Step::Wait, None)),
            },
        }
    }

    /// Members of the committee who were asked in this round and hold shares.
    fn committee(&self, deck: &ReadyDeck) -> BTreeSet<u16> {
        let places = deck.graph.committee.iter().filter(|p| self.cohort.has(**p));
        places.map(|p| deck.members[usize::from(*p)]).filter(|site| deck.holders.contains(site)).collect()
    }

    /// Everybody who answered, without those that the committee would find to have too few neighbours among them.
    fn survivors(&self, deck: &ReadyDeck) -> Bits {
        let mut alive = Bits::of(deck.members.len(), self.inputs.keys().copied());
        while let Some(alone) = deck.graph.lonely(&alive, deck.sizes.nearby) {
            alive.set(alone, false);
        }
        alive
    }

    /// [SPA-23]: rebuild one secret of every site asked, check it against what the site advertised, take all masks off.
    fn open_total(&self, env: &Env, deck: &ReadyDeck, waiting: bool) -> Result<Option<Done>, Error> {
        let Phase::Unmask { alive, shares } = &self.phase else { return Ok(None) };
        let t = deck.sizes.quorum;
        let mut holders: Vec<u16> = shares.keys().copied().collect();
        let mut coefficients = shamir::lagrange_at_zero(&holders[..t]);
        let mut values = vec![0u64; self.words];
        let mut wrong_shares = Vec::new();
        let mut missing = Vec::new();
        let number = |place: u16| deck.members[usize::from(place)];
        for (k, owner) in self.cohort.list().enumerate() {
            let survives = alive.has(owner);
            let slot = usize::from(self.slot);
            let committed = |seed: &Scalar| {
                let o = usize::from(owner);
                if survives {
                    let commitment = slot::commitment(&deck.id, number(owner), self.slot, seed);
                    deck.commitments[o].get(slot) == Some(&commitment)
                } else {
                    deck.slot_keys[o].get(slot) == Some(&slot::key_pair(seed).1)
                }
            };
            let first: Option<Vec<Scalar>> = holders[..t].iter().map(|h| shares[h][k]).collect();
            let quick = first.map(|column| shamir::recover(&coefficients, &column)).filter(committed);
            let secret = match quick {
                Some(secret) => secret,
                None => {
                    let given: Vec<(u16, Scalar)> =
                        holders.iter().filter_map(|h| shares[h][k].map(|s| (*h, s))).collect();
                    let Some((secret, wrong)) = slow(&given, t, &committed, waiting) else {
                        if waiting {
                            return Ok(None);
                        }
                        let who = env.roster.name_of(PartyId::Site(number(owner)));
                        let why = format!(
                            "the shares of {who} do not open to what it committed to: it dealt wrong ones, or too many \
                             of the committee changed theirs"
                        );
                        return Err(Error::malformed("Unmask", why, "SPA-23"));
                    };
                    let sound: Vec<u16> = holders.iter().copied().filter(|h| !wrong.contains(h)).collect();
                    if sound.len() >= t && !wrong.is_empty() {
                        holders = sound;
                        coefficients = shamir::lagrange_at_zero(&holders[..t]);
                    }
                    wrong_shares.extend(wrong.into_iter().map(|holder| (number(holder), number(owner))));
                    secret
                }
            };
            if survives {
                if let Some(input) = self.inputs.get(&owner) {
                    values.iter_mut().zip(input).for_each(|(v, x)| *v = v.wrapping_add(*x));
                }
                mask::apply(&mut values, &slot::own_mask(&secret, &self.context), Sign::Minus);
                continue;
            }
            missing.push(owner);
            let (own, _) = slot::key_pair(&secret);
            for v in deck.graph.neighbours(owner).into_iter().filter(|v| alive.has(*v)) {
                let theirs = &deck.slot_keys[usize::from(v)][slot];
                let key = slot::pair_mask(&own, theirs, &self.context, owner, v)
                    .ok_or_else(|| env.site_error(number(v), "advertised a key of small order", "SPA-18"))?;
                mask::apply(&mut values, &key, mask::pair_sign(v, owner).reversed());
            }
        }
        let alive = alive.list().map(number).collect();
        Ok(Some(Done { values, alive, missing: missing.into_iter().map(number).collect(), wrong_shares }))
    }

    pub(crate) fn alive(&self) -> Option<&Bits> {
        match &self.phase {
            Phase::Collect => None,
            Phase::Agree { alive, .. } | Phase::Unmask { alive, .. } => Some(alive),
        }
    }

    pub(crate) fn without(&mut self, place: u16) {
        if self.is_collecting() {
            self.inputs.remove(&place);
        }
    }
}

/// Around holders that have no share, or a wrong one.
fn slow(
    given: &[(u16, Scalar)],
    t: usize,
    committed: &dyn Fn(&Scalar) -> bool,
    waiting: bool,
) -> Option<(Scalar, Vec<u16>)> {
    let (members, shares): (Vec<u16>, Vec<Scalar>) = given.iter().copied().unzip();
    if members.len() < t {
        return None;
    }
    let first = shamir::recover(&shamir::lagrange_at_zero(&members[..t]), &shares[..t]);
    if committed(&first) {
        return Some((first, Vec::new()));
    }
    // The expensive searches run once, when nobody is waited for any more.
    if waiting {
        return None;
    }
    shamir::recover_committed(&members, &shares, t, committed)
        .or_else(|| shamir::recover_robust(&members, &shares, t).filter(|(s, _)| committed(s)))
}
