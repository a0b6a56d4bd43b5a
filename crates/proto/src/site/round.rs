//! A site's side of one round: MaskedInput, then Unmask at once or ConsistencyCheck before it (spec section 9).
//!
//! [`Named`] keeps a hash of what every survivor signed, from before the first seed or share left until the total is
//! recomputed. A site accepts only an opening of exactly those inputs ([SUR-5], [OPN-5]).
//!
//! A site must not give away both a share of a party's self-mask and a round seed shared with that party. The stages
//! below enforce this by types: shares leave only against a [`MayRelease`], which only the two checks of a survivor set
//! return, and seeds leave only from the stages before it.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    deck::{DERIVED, Deck, round_seeds},
    env::Env,
};
use crate::{
    error::Error,
    journal::{Entry, Record},
    mask::{self, Sign},
    message::{
        self, Ask, Certificate, ConsistencyCheck, Kind, MaskedFrame, Named, Proof, RoundSeed, Survivors, Unmask,
        round_context, survivors_context,
    },
    rule::Rule,
    spread,
    suite::{Hash, Secret},
};

/// The stage of this site in a round. A site only moves down this list.
enum Stage {
    /// The answer is awaited from the application.
    Asked,
    /// A masked vector is out.
    Masked,
    /// These survivors are signed; the seeds towards all others of the cohort are out.
    Checked(Named),
    /// The survivors' self-mask shares are out; nothing more leaves for this slot.
    Released(MayRelease),
}

/// A round this site takes part in.
pub(crate) struct Round {
    pub(crate) context: Hash,
    pub(crate) slot: u16,
    pub(crate) cohort: Vec<u16>,
    pub(crate) words: usize,
    /// The answer, once it may have left.
    sent: Option<Sent>,
    stage: Stage,
}

/// An answer that may have left: whatever asks for it again gets these bytes ([RND-7]).
struct Sent {
    frame: Arc<Vec<u8>>,
    /// Hash of its masked words.
    digest: Hash,
}

/// Proof that a survivor set passed its check, so the shares of its members may leave ([UNM-1]).
pub(crate) struct MayRelease {
    named: Named,
    /// The consistency checks that a certificate showed, whose signatures were verified; forgotten by a restart, which
    /// costs verifying them again.
    certified: BTreeMap<u16, Hash>,
}

impl MayRelease {
    /// The set.
    pub(super) fn named(&self) -> &Named {
        &self.named
    }
}

/// What a survivors message asks of this site.
pub(crate) enum Step {
    /// Everybody is there: the shares may leave.
    Release(MayRelease),
    /// Somebody is missing: sign and give the seeds.
    Check(Named),
}

impl Round {
    /// [RND-1], [RND-2], [RND-4] to [RND-6], [POL-1]: an ask that follows from what this site already knows.
    pub(crate) fn open(
        env: &Env,
        deck: &Deck,
        ask: &Ask,
        context: Hash,
        last_cohort: Option<&[u16]>,
        last_context: Hash,
    ) -> Result<Round, Error> {
        check_context(env, deck, ask, &context)?;
        env.demand(deck.holds(ask.slot), "asked for a slot that the deck does not have, or no longer", Rule::Rnd2)?;
        if ask.words == 0 || ask.words as usize > crate::limits::MAX_WORDS {
            return Err(env.aggregator(format!("asked for a vector of {} words", ask.words), Rule::Rnd4));
        }
        check_set(env, &ask.cohort, &deck.members, "cohort", Rule::Rnd4)?;
        let least = env.least(deck.threshold);
        if ask.cohort.len() < least {
            let what = format!("asked for a total over {} sites where the floor is {least}", ask.cohort.len());
            return Err(env.aggregator(what, Rule::Pol1));
        }
        let were_in = last_cohort.is_none_or(|last| is_subset(&ask.cohort, last));
        env.demand(were_in, "let a site back in that had left this run", Rule::Rnd5)?;
        let follows = ask.previous_context == last_context;
        env.demand(follows, "asked as if this site had taken part in another run of rounds", Rule::Rnd6)?;
        let (slot, cohort, words) = (ask.slot, ask.cohort.clone(), ask.words as usize);
        Ok(Round { context, slot, cohort, words, sent: None, stage: Stage::Asked })
    }

    /// A round of the journal with the answer that it got. `None` if the frame is no answer.
    pub(crate) fn restored(slot: u16, cohort: Vec<u16>, frame: Vec<u8>) -> Option<Round> {
        let (context, words, digest) = message::masked_parts(&frame)?;
        let sent = Some(Sent { frame: Arc::new(frame), digest });
        Some(Round { context, slot, cohort, words, sent, stage: Stage::Masked })
    }

    /// [UNM-2]: t survivors signed these survivors, and inputs of this hash.
    fn is_certified(&self, env: &Env, deck: &Deck, certificate: &Certificate) -> Result<(), Error> {
        let Certificate { alive, inputs, signers, proofs } = certificate;
        env.demand(signers.len() >= deck.threshold, "sent a certificate with too few signatures", Rule::Unm2)?;
        let distinct = is_ascending(signers) && is_subset(signers, alive) && proofs.len() == signers.len();
        env.demand(distinct, "sent a certificate whose signers are not distinct survivors", Rule::Unm2)?;
        let context = survivors_context(&self.context, alive, inputs);
        match env.unsigned(signers, proofs, Kind::ConsistencyCheck, &context) {
            None => Ok(()),
            Some(who) => Err(env.aggregator(format!("sent a certificate that {who} did not sign"), Rule::Unm2)),
        }
    }

    /// Restores this round from an entry *checked*, if that can follow.
    pub(crate) fn restore_checked(&mut self, env: &Env, named: Named) -> bool {
        let follows = match &self.stage {
            Stage::Masked => is_subset(&named.alive, &self.cohort) && named.holds(&named),
            Stage::Checked(before) => before.holds(&named),
            _ => false,
        };
        let fewer = named.alive.len() < self.cohort.len() || env.always_certified();
        let follows = follows && is_ascending(&named.alive) && fewer;
        if follows {
            self.stage = Stage::Checked(named);
        }
        follows
    }

    /// Restores this round from an entry *released*, if that can follow.
    pub(crate) fn restore_released(&mut self, env: &Env, named: Named) -> bool {
        let follows = match &self.stage {
            Stage::Masked => named.alive == self.cohort && named.holds(&named) && !env.always_certified(),
            Stage::Checked(signed) => named == *signed,
            _ => false,
        };
        if follows {
            self.stage = Stage::Released(MayRelease { named, certified: BTreeMap::new() });
        }
        follows
    }

    /// Its answer leaves in this frame and in no other one. What the journal says of it ([JRN-1]).
    pub(crate) fn sends(&mut self, frame: &Arc<Vec<u8>>, digest: Hash, deck: u32, rounds: u32) -> Record {
        self.sent = Some(Sent { frame: frame.clone(), digest });
        Record(Entry::Masked { deck, slot: self.slot, cohort: self.cohort.clone(), rounds, frame: frame.to_vec() })
    }

    /// The answer, if it may have left.
    pub(crate) fn answer(&self) -> Option<&Arc<Vec<u8>>> {
        self.sent.as_ref().map(|sent| &sent.frame)
    }

    /// Whether this site's vector may have left and be in a total.
    pub(crate) fn left(&self) -> bool {
        !matches!(self.stage, Stage::Asked)
    }

    /// Whether seeds, or shares, may have left.
    pub(crate) fn has_given(&self, shares: bool) -> bool {
        match &self.stage {
            Stage::Asked | Stage::Masked => false,
            Stage::Checked(_) => !shares,
            Stage::Released(_) => true,
        }
    }

    /// The survivors accepted last, and what they had signed.
    pub(crate) fn named(&self) -> Option<&Named> {
        match &self.stage {
            Stage::Checked(named) | Stage::Released(MayRelease { named, .. }) => Some(named),
            _ => None,
        }
    }

    /// [UNM-3]: under what shares leave: this round, the survivors accepted last and their inputs.
    pub(crate) fn agreed_context(&self) -> Hash {
        self.named().map_or(self.context, |named| named.context(&self.context))
    }

    /// [OPN-5]: whether this is what the survivor had signed when it was named. None where this site was shown no survivors.
    pub(crate) fn was_named(&self, site: u16, input: &Hash) -> Option<bool> {
        self.named().map(|named| named.input(site) == Some(input))
    }

    /// [OPN-6]: whether a certificate showed this consistency check of the survivor, so that its signature was verified.
    pub(crate) fn was_certified(&self, site: u16, check: &Hash) -> bool {
        matches!(&self.stage, Stage::Released(released) if released.certified.get(&site) == Some(check))
    }

    /// The sites this site believes are still in the run after this round.
    pub(crate) fn remaining(&self) -> &[u16] {
        self.named().map_or(&self.cohort, |named| &named.alive)
    }

    /// Hash of the masked words that this site sent in this round.
    pub(crate) fn sent(&self) -> Option<Hash> {
        self.sent.as_ref().map(|sent| sent.digest)
    }

    /// Whether these can be the sites whose total was opened, from what this site knows ([OPN-2]).
    pub(crate) fn may_have_survived(&self, alive: &[u16]) -> bool {
        let fits = match &self.stage {
            Stage::Released(released) => alive == released.named.alive,
            _ => is_subset(alive, self.remaining()),
        };
        fits && is_ascending(alive)
    }

    /// [MSK-1], [MSK-3], [MSK-4]: masks `values` for this context, once. The caller persists the frame before it leaves.
    pub(crate) fn mask(&mut self, env: &Env, deck: &Deck, values: &mut [u64]) -> Result<MaskedFrame, Error> {
        if self.left() {
            return Err(Error::ApiMisuse("this round has its answer already"));
        }
        if values.len() != self.words {
            return Err(Error::ApiMisuse("the answer has another length than the question"));
        }
        let missing = || Error::ApiMisuse("the deck lacks a member of its round");
        // Filled where they stay, so that no copy of a seed is left behind.
        let mut masks = Vec::with_capacity(self.cohort.len() + 1);
        masks.push((deck.self_mask(self.slot, &self.context).ok_or_else(missing)?, Sign::Plus));
        let mut others = Vec::with_capacity(self.cohort.len());
        for other in self.cohort.iter().filter(|o| **o != env.me) {
            others.push(deck.pair(*other, self.slot).ok_or_else(missing)?);
            masks.push((Secret([0; 32]), mask::pair_sign(env.me, *other)));
        }
        let mut pairs: Vec<_> = others.into_iter().zip(&mut masks[1..]).collect();
        let seeds = round_seeds(&self.context);
        spread::each(&mut pairs, DERIVED, |(pair, mask)| mask.0 = seeds.expand(pair));
        mask::apply_all(values, &masks);
        let masked = MaskedFrame::new(&self.context, values);
        self.stage = Stage::Masked;
        Ok(masked)
    }

    /// [SUR-2] to [SUR-5]: a set of survivors is a subset of what this site last accepted, holds this site, meets the
    /// floor, and each of them signed its input in this very context. All signatures are
    /// verified when survivors are named first; a smaller set that is named after them must have the same inputs.
    pub(crate) fn survivors(&self, env: &Env, deck: &Deck, message: &Survivors, named: Named) -> Result<Step, Error> {
        let within: &[u16] = match &self.stage {
            Stage::Asked => {
                return Err(env.aggregator("named survivors before this site had answered", Rule::Sur2));
            }
            Stage::Masked => &self.cohort,
            Stage::Checked(named) => &named.alive,
            Stage::Released(_) => {
                return Err(env.aggregator("named other survivors after the shares were released", Rule::Sur4));
            }
        };
        check_set(env, &message.alive, within, "set of survivors", Rule::Sur2)?;
        let least = env.least(deck.threshold);
        if message.alive.len() < least {
            let what = format!("named {} survivors where the floor is {least}", message.alive.len());
            return Err(env.aggregator(what, Rule::Sur3));
        }
        let shown = message.inputs.len() == message.alive.len();
        env.demand(shown, "did not show the inputs of the survivors it named", Rule::Sur5)?;
        match self.named() {
            Some(before) if before.holds(&named) => {}
            Some(before) => {
                let other =
                    named.alive.iter().zip(&named.inputs).find(|(site, input)| before.input(**site) != Some(input));
                let who = other.map(|(site, _)| env.name_of(*site)).unwrap_or_default();
                return Err(env.aggregator(format!("named another input of {who} than before"), Rule::Sur5));
            }
            None => self.all_signed(env, message)?,
        }
        // Towards the intermediary that everybody survived is not enough ([UNM-1]).
        if message.alive.len() < self.cohort.len() || env.always_certified() {
            return Ok(Step::Check(named));
        }
        // [SUR-4]: never back up to the whole cohort once a smaller set was signed.
        let unsigned = matches!(self.stage, Stage::Masked);
        env.demand(unsigned, "went back to the whole cohort after naming survivors", Rule::Sur4)?;
        Ok(Step::Release(MayRelease { named, certified: BTreeMap::new() }))
    }

    /// [SUR-5]: all survivors signed their inputs in this context.
    fn all_signed(&self, env: &Env, message: &Survivors) -> Result<(), Error> {
        let Some(who) = env.unsigned(&message.alive, &message.inputs, Kind::MaskedInput, &self.context) else {
            return Ok(());
        };
        let what = format!(
            "cannot show that {who} answered the question it put to this site: it may have put another to {who}"
        );
        Err(env.aggregator(what, Rule::Sur5))
    }

    /// [CON-2], [CON-3]: the signature is the frame's, over this context and exactly these survivors; with it go
    /// the seeds of this round towards everybody of the cohort who is not among them.
    pub(crate) fn check(&mut self, deck: &Deck, named: Named) -> Result<(Hash, ConsistencyCheck), Error> {
        if matches!(self.stage, Stage::Released(_)) {
            return Err(Error::ApiMisuse("no seed leaves after the shares"));
        }
        let mut seeds = Vec::with_capacity(self.cohort.len() - named.alive.len());
        for w in self.cohort.iter().filter(|w| named.alive.binary_search(w).is_err()) {
            let seed =
                deck.round_seed(*w, self.slot, &self.context).ok_or(Error::ApiMisuse("the deck lacks a member"))?;
            seeds.push(RoundSeed { missing: *w, seed: *seed.bytes() });
        }
        let context = named.context(&self.context);
        self.stage = Stage::Checked(named);
        Ok((context, ConsistencyCheck { round: self.context, seeds }))
    }

    /// [UNM-2]: a certificate shows t signatures of distinct survivors on exactly the set this site signed last, and on the
    /// inputs that it was shown then.
    pub(crate) fn may_release(&self, env: &Env, deck: &Deck, certificate: &Certificate) -> Result<MayRelease, Error> {
        let Stage::Checked(named) = &self.stage else {
            return Err(env.aggregator("sent a certificate where none belongs", Rule::Unm2));
        };
        let same = certificate.alive == named.alive && certificate.inputs == named.inputs_hash();
        env.demand(same, "certified other survivors, or other inputs of theirs, than this site signed", Rule::Unm2)?;
        self.is_certified(env, deck, certificate)?;
        let shown = certificate.proofs.iter().map(Proof::signed_message);
        let certified = certificate.signers.iter().copied().zip(shown).collect();
        Ok(MayRelease { named: named.clone(), certified })
    }

    /// [UNM-1], [UNM-3]: the shares of the survivors' self-masks for this slot; nothing follows them.
    pub(crate) fn release(&mut self, deck: &Deck, token: MayRelease) -> Result<Unmask, Error> {
        let unmask = self.unmask_of(deck, &token.named.alive)?;
        self.stage = Stage::Released(token);
        Ok(unmask)
    }

    /// The same shares again and what they are for, where they have left for exactly the survivors and inputs of `shown`.
    pub(crate) fn repeat_release(&self, deck: &Deck, shown: &Hash) -> Option<(Hash, Unmask)> {
        let Stage::Released(MayRelease { named, .. }) = &self.stage else { return None };
        let context = Some(named.context(&self.context)).filter(|context| context == shown)?;
        Some((context, self.unmask_of(deck, &named.alive).ok()?))
    }

    fn unmask_of(&self, deck: &Deck, alive: &[u16]) -> Result<Unmask, Error> {
        let shares: Option<Vec<[u8; 32]>> =
            alive.iter().map(|u| deck.share_of(*u, self.slot).map(|s| s.bytes())).collect();
        shares.map(|shares| Unmask { shares }).ok_or(Error::ApiMisuse("the deck lacks a share of a survivor"))
    }
}

pub(super) fn check_context(env: &Env, deck: &Deck, ask: &Ask, context: &Hash) -> Result<(), Error> {
    let own = *context == round_context(&env.session, &deck.hash, ask);
    env.demand(own, "asked in a context that is not that of its question", Rule::Rnd1)
}

pub(crate) fn is_subset(small: &[u16], large: &[u16]) -> bool {
    small.iter().all(|s| large.binary_search(s).is_ok())
}

fn is_ascending(sites: &[u16]) -> bool {
    sites.is_sorted_by(|a, b| a < b)
}

fn check_set(env: &Env, set: &[u16], within: &[u16], what: &str, rule: Rule) -> Result<(), Error> {
    env.demand(is_ascending(set), &format!("sent a {what} that is not sorted or names a site twice"), rule)?;
    env.demand(is_subset(set, within), &format!("sent a {what} with a site that cannot be in it"), rule)?;
    env.demand(is_subset(&[env.me], set), &format!("sent this site a {what} without this site"), rule)
}
