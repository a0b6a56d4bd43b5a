//! A site's side of one round: MaskedInput, then Unmask at once or ConsistencyCheck before it (spec section 9).
//!
//! The two things that must never both be given away about one party are its self-mask share and a round seed shared
//! with it. The stages below make that a matter of types: shares leave only against a [`MayRelease`], which only the
//! two checks of a survivor set return, and seeds leave only from the stages before it.

use super::{Env, deck::Deck};
use crate::{
    error::Error,
    identity::PublicKey,
    journal::{Entry, Record},
    limits::ECHO_CHECKS,
    mask::{self, Sign},
    message::{
        Ask, Certificate, ConsistencyCheck, Kind, RoundSeed, Survivors, Unmask, first_unsigned, masked_digest,
        round_context, survivors_context,
    },
    policy,
    suite::{self, Hash},
};

/// Where this site stands in a round; a site only ever moves downwards in this list.
enum Stage {
    /// The answer is awaited from the application. After a restart, the digest of what may already have been sent.
    Asked { sent: Option<Hash> },
    /// A masked vector is out.
    Masked,
    /// These survivors are signed; the seeds towards all others of the cohort are out.
    Checked { alive: Vec<u16> },
    /// The survivors' self-mask shares are out; nothing more leaves for this slot.
    Released { alive: Vec<u16> },
}

/// A round this site takes part in.
pub(crate) struct Round {
    pub(crate) context: Hash,
    pub(crate) slot: u16,
    pub(crate) cohort: Vec<u16>,
    pub(crate) words: usize,
    /// Hash of the query, by which its input is remembered as consumed.
    pub(crate) query: Hash,
    /// Hash of the masked words, once they may have left.
    sent: Option<Hash>,
    stage: Stage,
}

/// Proof that a survivor set passed its check, so the shares of its members may leave ([UNM-1]).
pub(crate) struct MayRelease<'a> {
    alive: &'a [u16],
}

/// What a survivors message asks of this site.
pub(crate) enum Step {
    /// Everybody is there: the shares may leave.
    Release(Vec<u16>),
    /// Somebody is missing: sign and give the seeds.
    Check(Vec<u16>),
}

impl Round {
    /// [RND-1] to [RND-6], [POL-1]: an ask that follows from what this site already knows.
    pub(crate) fn open(
        env: &Env,
        deck: &Deck,
        ask: &Ask,
        context: Hash,
        last_cohort: Option<&[u16]>,
        last_context: Hash,
    ) -> Result<Round, Error> {
        check_context(env, deck, ask, &context)?;
        if !deck.holds(ask.slot) {
            return Err(env.aggregator("asked for a slot that the deck does not have, or no longer", "RND-2"));
        }
        if ask.words == 0 || ask.words as usize > crate::limits::MAX_WORDS {
            return Err(env.aggregator(format!("asked for a vector of {} words", ask.words), "RND-3"));
        }
        check_set(env, &ask.cohort, &deck.members, "cohort", "RND-4")?;
        let least = policy::least(&env.terms, &env.floor).max(deck.threshold);
        if ask.cohort.len() < least {
            let what = format!("asked for a total over {} sites where the floor is {least}", ask.cohort.len());
            return Err(env.aggregator(what, "POL-1"));
        }
        if last_cohort.is_some_and(|last| !is_subset(&ask.cohort, last)) {
            return Err(env.aggregator("let a site back in that had left this run", "RND-5"));
        }
        if ask.previous_context != last_context {
            return Err(env.aggregator("asked as if this site had taken part in another run of rounds", "RND-6"));
        }
        Ok(Round {
            context,
            slot: ask.slot,
            cohort: ask.cohort.clone(),
            words: ask.words as usize,
            query: query_hash(&ask.query),
            sent: None,
            stage: Stage::Asked { sent: None },
        })
    }

    /// A round of the journal, as far as it had got.
    pub(crate) fn restored(
        context: Hash,
        slot: u16,
        cohort: Vec<u16>,
        words: usize,
        query: Hash,
        digest: Hash,
    ) -> Round {
        Round { context, slot, cohort, words, query, sent: Some(digest), stage: Stage::Asked { sent: Some(digest) } }
    }

    /// [RND-1]: the same question again, and not another one under its name.
    pub(crate) fn is_question(&self, env: &Env, deck: &Deck, ask: &Ask) -> Result<(), Error> {
        check_context(env, deck, ask, &self.context)
    }

    pub(crate) fn may_restore_checked(&self, alive: &[u16]) -> bool {
        let within = match &self.stage {
            Stage::Asked { sent: Some(_) } => &self.cohort,
            Stage::Checked { alive } => alive,
            _ => return false,
        };
        alive.is_sorted_by(|a, b| a < b) && is_subset(alive, within) && alive.len() < self.cohort.len()
    }

    pub(crate) fn may_restore_released(&self, alive: &[u16]) -> bool {
        match &self.stage {
            Stage::Asked { sent: Some(_) } => alive == self.cohort,
            Stage::Checked { alive: signed } => alive == *signed,
            _ => false,
        }
    }

    pub(crate) fn restore_checked(&mut self, alive: Vec<u16>) {
        self.stage = Stage::Checked { alive };
    }

    pub(crate) fn restore_released(&mut self, alive: Vec<u16>) {
        self.stage = Stage::Released { alive };
    }

    /// Whether its vector may have left before a restart; the journal knows it already.
    pub(crate) fn is_restored(&self) -> bool {
        matches!(self.stage, Stage::Asked { sent: Some(_) })
    }

    /// What the journal says of it once it is masked ([MSK-4]).
    pub(crate) fn record(&self, deck: u32, rounds: u32) -> Option<Record> {
        self.sent.map(|digest| {
            Record(Entry::Masked {
                context: self.context,
                deck,
                slot: self.slot,
                cohort: self.cohort.clone(),
                words: self.words as u32,
                query: self.query,
                digest,
                rounds,
            })
        })
    }

    /// Whether this site's vector may have left.
    pub(crate) fn left(&self) -> bool {
        !matches!(self.stage, Stage::Asked { sent: None })
    }

    /// The survivors signed last.
    pub(crate) fn signed(&self) -> Option<&[u16]> {
        match &self.stage {
            Stage::Checked { alive } => Some(alive),
            _ => None,
        }
    }

    pub(crate) fn awaits_answer(&self) -> bool {
        matches!(self.stage, Stage::Asked { .. })
    }

    /// The sites this site believes are still in the run after this round.
    pub(crate) fn remaining(&self) -> &[u16] {
        match &self.stage {
            Stage::Checked { alive } | Stage::Released { alive } => alive,
            _ => &self.cohort,
        }
    }

    /// Hash of the masked words that this site sent in this round.
    pub(crate) fn sent(&self) -> Option<Hash> {
        self.sent
    }

    /// Whether these can be the sites whose total was opened, from what this site knows ([OPN-2]).
    pub(crate) fn may_have_survived(&self, alive: &[u16]) -> bool {
        let fits = match &self.stage {
            Stage::Released { alive: released } => alive == *released,
            _ => is_subset(alive, self.remaining()),
        };
        fits && alive.is_sorted_by(|a, b| a < b)
    }

    /// [MSK-1] to [MSK-4]: masks `values` for this context. Returns the digest, which the caller persists before the
    /// vector leaves.
    pub(crate) fn mask(&mut self, env: &Env, deck: &Deck, values: &mut [u64]) -> Result<Hash, Error> {
        let Stage::Asked { sent } = &self.stage else {
            return Err(Error::ApiMisuse("this round has its answer already"));
        };
        if values.len() != self.words {
            return Err(Error::ApiMisuse("the answer has another length than the question"));
        }
        let missing = || Error::ApiMisuse("the deck lacks a member of its round");
        // Never grown, so that no copy of a seed is left behind.
        let mut masks = Vec::with_capacity(self.cohort.len() + 1);
        masks.push((deck.self_mask(self.slot, &self.context).ok_or_else(missing)?, Sign::Plus));
        for other in self.cohort.iter().filter(|o| **o != env.me) {
            let seed = deck.round_seed(*other, self.slot, &self.context).ok_or_else(missing)?;
            masks.push((seed, mask::pair_sign(env.me, *other)));
        }
        mask::apply_all(values, &masks);
        let digest = masked_digest(&to_bytes(values));
        if sent.is_some_and(|sent| sent != digest) {
            return Err(Error::Journal(
                "another vector was already masked in this slot before the restart; this slot is abandoned".into(),
            ));
        }
        self.stage = Stage::Masked;
        self.sent = Some(digest);
        Ok(digest)
    }

    /// [SUR-1] to [SUR-5]: a set of survivors is a subset of what this site last accepted, holds this site, meets the
    /// floor, and each of its inputs was masked in this very context.
    pub(crate) fn survivors(&self, env: &Env, deck: &Deck, message: &Survivors) -> Result<Step, Error> {
        let within: &[u16] = match &self.stage {
            Stage::Asked { sent: None } => {
                return Err(env.aggregator("named survivors before this site had answered", "SUR-1"));
            }
            Stage::Asked { sent: Some(_) } | Stage::Masked => &self.cohort,
            Stage::Checked { alive } => alive,
            Stage::Released { .. } => {
                return Err(env.aggregator("named other survivors after the shares were released", "SUR-4"));
            }
        };
        check_set(env, &message.alive, within, "set of survivors", "SUR-2")?;
        let least = policy::least(&env.terms, &env.floor).max(deck.threshold);
        if message.alive.len() < least {
            let what = format!("named {} survivors where the floor is {least}", message.alive.len());
            return Err(env.aggregator(what, "SUR-3"));
        }
        if message.inputs.len() != message.alive.len() {
            return Err(env.aggregator("did not show the inputs of the survivors it named", "SUR-5"));
        }
        for place in self.sample(env, deck, &message.alive) {
            let (site, proof) = (&message.alive[place], &message.inputs[place]);
            let signed =
                env.key_of(*site).is_some_and(|k| proof.verify(&k, &env.session, Kind::MaskedInput, &self.context));
            if !signed {
                let who = env.name_of(*site);
                return Err(env.aggregator(
                    format!("cannot show that {who} answered the question it put to this site: it may have put another to {who}"),
                    "SUR-5",
                ));
            }
        }
        // [SUR-4]: never back up to the whole cohort once a smaller set was signed.
        let everybody = message.alive.len() == self.cohort.len();
        Ok(if everybody { Step::Release(message.alive.clone()) } else { Step::Check(message.alive.clone()) })
    }

    /// Whose inputs this site checks ([SUR-5]): all of the others where they are few, else some that the aggregator
    /// cannot foresee, because they are drawn from the secret of this site's own self-mask.
    ///
    /// Secrecy does not rest on this check, masks of different contexts do not cancel anyway; it finds the liar before
    /// a share leaves. A site that was put another question than all others finds out from any one of them.
    fn sample(&self, env: &Env, deck: &Deck, alive: &[u16]) -> Vec<usize> {
        let mut others: Vec<usize> = (0..alive.len()).filter(|i| alive[*i] != env.me).collect();
        if others.len() <= ECHO_CHECKS {
            return others;
        }
        let Some(secret) = deck.self_mask(self.slot, &self.context) else { return others };
        let draws = suite::expand(&secret, "sample of inputs", &[&self.context.0]);
        let (draws, _) = draws.bytes().as_chunks::<4>();
        for (i, draw) in draws.iter().enumerate().take(ECHO_CHECKS) {
            let left = others.len() - i;
            others.swap(i, i + u32::from_le_bytes(*draw) as usize % left);
        }
        others.truncate(ECHO_CHECKS);
        others
    }

    /// [CON-1] to [CON-3]: the signature is the frame's, over this context and exactly these survivors; with it go
    /// the seeds of this round towards everybody of the cohort who is not among them.
    pub(crate) fn check(&mut self, deck: &Deck, alive: Vec<u16>) -> Result<(Hash, ConsistencyCheck), Error> {
        if matches!(self.stage, Stage::Released { .. }) {
            return Err(Error::ApiMisuse("no seed leaves after the shares"));
        }
        let mut seeds = Vec::with_capacity(self.cohort.len() - alive.len());
        for w in self.cohort.iter().filter(|w| alive.binary_search(w).is_err()) {
            let seed =
                deck.round_seed(*w, self.slot, &self.context).ok_or(Error::ApiMisuse("the deck lacks a member"))?;
            seeds.push(RoundSeed { missing: *w, seed: *seed.bytes() });
        }
        let context = survivors_context(&self.context, &alive);
        self.stage = Stage::Checked { alive };
        Ok((context, ConsistencyCheck { round: self.context, seeds }))
    }

    /// The whole cohort survived and this site has signed nothing smaller.
    pub(crate) fn may_release_all<'a>(&self, alive: &'a [u16]) -> Option<MayRelease<'a>> {
        let fresh = matches!(self.stage, Stage::Masked | Stage::Asked { sent: Some(_) });
        (fresh && alive == self.cohort).then_some(MayRelease { alive })
    }

    /// [UNM-2]: a certificate shows t signatures of distinct survivors on exactly the set this site signed last.
    pub(crate) fn may_release<'a>(
        &self,
        env: &Env,
        deck: &Deck,
        certificate: &'a Certificate,
    ) -> Result<MayRelease<'a>, Error> {
        let Stage::Checked { alive } = &self.stage else {
            return Err(env.aggregator("sent a certificate where none belongs", "UNM-2"));
        };
        if certificate.alive != *alive {
            return Err(env.aggregator("certified other survivors than this site signed", "UNM-2"));
        }
        check_signers(env, &certificate.signers, alive)?;
        if certificate.signers.len() < deck.threshold || certificate.proofs.len() != certificate.signers.len() {
            return Err(env.aggregator("sent a certificate with too few signatures", "UNM-2"));
        }
        let context = survivors_context(&self.context, alive);
        let key = |site: &u16| env.key_of(*site).unwrap_or(PublicKey([0; 32]));
        let proofs: Vec<_> = certificate.signers.iter().map(key).zip(certificate.proofs.iter().copied()).collect();
        if let Some(at) = first_unsigned(&env.keys, &proofs, &env.session, Kind::ConsistencyCheck, &context) {
            let who = env.name_of(certificate.signers[at]);
            return Err(env.aggregator(format!("certified survivors that {who} did not sign"), "UNM-2"));
        }
        Ok(MayRelease { alive: &certificate.alive })
    }

    /// [UNM-1], [UNM-3]: the shares of the survivors' self-masks for this slot; nothing follows them.
    pub(crate) fn release(&mut self, deck: &Deck, token: &MayRelease<'_>) -> Result<Unmask, Error> {
        let unmask = self.unmask_of(deck, token.alive)?;
        self.stage = Stage::Released { alive: token.alive.to_vec() };
        Ok(unmask)
    }

    /// The same shares again, for a round whose release is in the journal.
    pub(crate) fn repeat_release(&self, deck: &Deck) -> Option<Unmask> {
        match &self.stage {
            Stage::Released { alive } => self.unmask_of(deck, alive).ok(),
            _ => None,
        }
    }

    fn unmask_of(&self, deck: &Deck, alive: &[u16]) -> Result<Unmask, Error> {
        let shares: Option<Vec<[u8; 32]>> =
            alive.iter().map(|u| deck.share_of(*u, self.slot).map(|s| s.bytes())).collect();
        shares.map(|shares| Unmask { shares }).ok_or(Error::ApiMisuse("the deck lacks a share of a survivor"))
    }

    /// Whether these are the survivors whose shares already left.
    pub(crate) fn released(&self) -> Option<&[u16]> {
        match &self.stage {
            Stage::Released { alive } => Some(alive),
            _ => None,
        }
    }
}

/// The name under which a query is remembered ([RND-9]).
pub(crate) fn query_hash(query: &[u8]) -> Hash {
    suite::hash("consumed query", &[query])
}

fn check_context(env: &Env, deck: &Deck, ask: &Ask, context: &Hash) -> Result<(), Error> {
    if *context == round_context(&env.session, &deck.hash, ask) {
        return Ok(());
    }
    Err(env.aggregator("asked in a context that is not that of its question", "RND-1"))
}

/// The bytes of a vector on the wire: little-endian words ([ENC-4]).
pub(crate) fn to_bytes(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 * values.len());
    values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
    out
}

pub(crate) fn is_subset(small: &[u16], large: &[u16]) -> bool {
    small.iter().all(|s| large.binary_search(s).is_ok())
}

fn check_set(env: &Env, set: &[u16], within: &[u16], what: &str, rule: &'static str) -> Result<(), Error> {
    if !set.is_sorted_by(|a, b| a < b) {
        return Err(env.aggregator(format!("sent a {what} that is not sorted or names a site twice"), rule));
    }
    if !is_subset(set, within) {
        return Err(env.aggregator(format!("sent a {what} with a site that cannot be in it"), rule));
    }
    if set.binary_search(&env.me).is_err() {
        return Err(env.aggregator(format!("sent this site a {what} without this site"), rule));
    }
    Ok(())
}

fn check_signers(env: &Env, signers: &[u16], alive: &[u16]) -> Result<(), Error> {
    if signers.is_sorted_by(|a, b| a < b) && is_subset(signers, alive) {
        return Ok(());
    }
    Err(env.aggregator("sent a certificate whose signers are not distinct survivors", "UNM-2"))
}
