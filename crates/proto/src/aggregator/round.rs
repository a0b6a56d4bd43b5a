//! The aggregator's side of one round: collect, name the survivors, unmask the total (spec section 9).

use std::{collections::BTreeMap, sync::Arc};

use curve25519_dalek::scalar::Scalar;

use super::{Env, Millis, Pending, ReadyDeck};
use crate::{
    commit::{self, Commitment, Sums},
    error::{Error, Rule},
    evidence,
    mask::{self, Sign},
    message::{
        Ask, Certificate, ConsistencyCheck, Kind, OpenedCheck, OpenedInput, Opening, Proof, Survivors, Unmask,
        Verified, masked_digest, round_context, seed_commitment, survivors_context,
    },
    shamir::{self, Share},
    site::self_mask_key,
    suite::{Hash, Secret},
};

enum Phase {
    Collect,
    /// Somebody is missing: signatures on `alive` and seeds are awaited.
    Check {
        alive: Vec<u16>,
        named: Vec<u16>,
        signed: BTreeMap<u16, Proof>,
    },
    Unmask {
        alive: Vec<u16>,
        shares: BTreeMap<u16, Vec<Scalar>>,
        /// Their consistency checks, where a site is missing.
        checks: BTreeMap<u16, Proof>,
    },
}

/// A survivor's masked input.
struct Input {
    proof: Proof,
    commitment: Commitment,
    digest: Hash,
    words: Vec<u64>,
}

/// A round under way.
pub(crate) struct Round {
    pub(crate) context: Hash,
    slot: u16,
    cohort: Vec<u16>,
    words: usize,
    inputs: BTreeMap<u16, Input>,
    /// The sums of all `inputs`, kept up as they come and go.
    sums: Sums,
    seeds: BTreeMap<(u16, u16), Secret>,
    phase: Phase,
    pub(crate) pending: Pending,
}

/// What came of a round.
pub(crate) struct Done {
    pub(crate) values: Vec<u64>,
    pub(crate) alive: Vec<u16>,
    pub(crate) missing: Vec<u16>,
    /// Wrong shares that were corrected: (holder, owner of the self-mask).
    pub(crate) wrong_shares: Vec<(u16, u16)>,
    /// For the cohort, where the plan opens totals to it.
    pub(crate) opening: Option<Opening>,
}

/// A site at fault, why, and the frame that proves it.
pub(crate) type Guilty = (u16, Error, Vec<u8>);

pub(crate) enum Progress {
    Waiting,
    Sent,
    /// These sites are at fault; the round goes on without them.
    Guilty(Vec<Guilty>),
    Done(Done),
}

impl Round {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn open(
        env: &Env,
        deck: &ReadyDeck,
        slot: u16,
        cohort: Vec<u16>,
        query: Vec<u8>,
        words: usize,
        (previous_context, previous_total): (Hash, Hash),
        now: Millis,
    ) -> Round {
        let ask = Ask { deck: deck.index, slot, cohort, words: words as u32, previous_context, previous_total, query };
        let context = round_context(&env.session, &deck.hash, &ask);
        let frame = env.frame(Kind::Ask, &context, &ask);
        let frames = ask.cohort.iter().map(|s| (*s, frame.clone())).collect();
        Round {
            context,
            slot,
            cohort: ask.cohort,
            words,
            inputs: BTreeMap::new(),
            sums: Sums::new(words),
            seeds: BTreeMap::new(),
            phase: Phase::Collect,
            pending: Pending::new(frames, env.timing.phase, env, now),
        }
    }

    /// Sites of the cohort that are not among the survivors named last.
    pub(crate) fn missing(&self) -> Vec<u16> {
        match &self.phase {
            Phase::Collect => Vec::new(),
            Phase::Check { alive, .. } | Phase::Unmask { alive, .. } => self.not_in(alive),
        }
    }

    fn not_in(&self, alive: &[u16]) -> Vec<u16> {
        self.cohort.iter().copied().filter(|s| alive.binary_search(s).is_err()).collect()
    }

    /// A site is out: it is waited for no longer, and unless the shares are already being collected it is no survivor.
    pub(crate) fn without(&mut self, site: u16) {
        self.pending.frames.remove(&site);
        match &mut self.phase {
            Phase::Collect => {}
            Phase::Check { alive, signed, .. } => {
                alive.retain(|s| *s != site);
                signed.remove(&site);
            }
            Phase::Unmask { .. } => return,
        }
        if let Some(input) = self.inputs.remove(&site) {
            self.sums.remove(&input.words);
        }
    }

    /// The first of two frames with which a site answered one question, if `frame` is such a second one ([INP-2]).
    pub(crate) fn answered_before(&self, from: u16, frame: &Verified<'_>) -> Option<Vec<u8>> {
        let before =
            self.inputs.get(&from).filter(|_| frame.kind == Kind::MaskedInput && frame.context == self.context)?;
        let differs = !before.proof.same_message(&frame.proof);
        differs.then(|| evidence::input_frame(&self.context, &before.commitment, &before.words, &before.proof))
    }

    pub(crate) fn message(&mut self, env: &Env, from: u16, frame: &Verified<'_>) -> Result<(), Error> {
        match frame.kind {
            Kind::MaskedInput => self.masked_input(env, from, frame),
            Kind::ConsistencyCheck => self.consistency(env, from, frame),
            _ => self.unmask(env, from, frame),
        }
    }

    /// [INP-1] to [INP-3].
    fn masked_input(&mut self, env: &Env, from: u16, frame: &Verified<'_>) -> Result<(), Error> {
        if frame.context != self.context || self.cohort.binary_search(&from).is_err() {
            // Of another round: too late, and dropped unread.
            return Ok(());
        }
        if let Some(before) = self.inputs.get(&from) {
            return if before.proof.same_message(&frame.proof) {
                Ok(())
            } else {
                Err(env.site_error(from, "answered one question twice, with different vectors", "INP-2"))
            };
        }
        if !matches!(self.phase, Phase::Collect) || self.pending.frames.remove(&from).is_none() {
            return Ok(());
        }
        let wrong_length = || {
            let what = format!("sent {} bytes where {} words were asked for", frame.rest.len(), self.words);
            env.site_error(from, what, "INP-1")
        };
        let (commitment, bytes) = frame.rest.split_first_chunk::<32>().ok_or_else(wrong_length)?;
        let (words, rest) = bytes.as_chunks::<8>();
        if words.len() != self.words || !rest.is_empty() {
            return Err(wrong_length());
        }
        if !env.opening && *commitment != commit::NONE {
            return Err(env.site_error(from, "committed to its input where the plan opens no totals", "INP-4"));
        }
        let digest = masked_digest(bytes);
        if self.inputs.values().any(|other| other.digest == digest) {
            // Two honest masked vectors agree with probability 2^-64 at most; this one was copied.
            return Err(env.site_error(from, "sent the masked vector of another site as its own", "INP-3"));
        }
        let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
        self.sums.add(&words);
        self.inputs.insert(from, Input { proof: frame.proof, commitment: *commitment, digest, words });
        Ok(())
    }

    /// [CON-2], [CON-3].
    fn consistency(&mut self, env: &Env, from: u16, frame: &Verified<'_>) -> Result<(), Error> {
        let Phase::Check { named, signed, .. } = &mut self.phase else { return Ok(()) };
        if frame.context != survivors_context(&self.context, named) || self.pending.frames.remove(&from).is_none() {
            // Of another round, or of a larger set that was given up.
            return Ok(());
        }
        let check: ConsistencyCheck = frame.decode("ConsistencyCheck")?;
        if check.round != self.context {
            return Err(env.site_error(from, "signed these survivors for another round", "CON-2"));
        }
        let missing = self.cohort.iter().filter(|s| named.binary_search(s).is_err());
        if !check.seeds.iter().map(|s| &s.missing).eq(missing) {
            return Err(env.site_error(from, "did not send one seed for every missing site", "CON-3"));
        }
        signed.insert(from, frame.proof);
        for s in &check.seeds {
            self.seeds.insert((from, s.missing), Secret::new(s.seed));
        }
        Ok(())
    }

    /// [UNM-4].
    fn unmask(&mut self, env: &Env, from: u16, frame: &Verified<'_>) -> Result<(), Error> {
        if frame.context != self.context {
            return Ok(());
        }
        let Phase::Unmask { alive, shares, .. } = &mut self.phase else { return Ok(()) };
        if self.pending.frames.remove(&from).is_none() {
            return Ok(());
        }
        let message: Unmask = frame.decode("Unmask")?;
        let scalars: Option<Vec<Scalar>> = message.shares.iter().map(|s| Share::from_bytes(s).map(|s| s.0)).collect();
        match scalars {
            Some(scalars) if scalars.len() == alive.len() => {
                shares.insert(from, scalars);
                Ok(())
            }
            Some(_) => Err(env.site_error(from, "did not send one share for every survivor", "UNM-4")),
            None => Err(env.site_error(from, "sent something that is not a share", "UNM-4")),
        }
    }

    /// Moves on where that is possible now.
    pub(crate) fn next(&mut self, env: &Env, deck: &ReadyDeck, now: Millis) -> Result<Progress, Error> {
        let waiting = !self.pending.frames.is_empty();
        match &mut self.phase {
            Phase::Collect if waiting => Ok(Progress::Waiting),
            Phase::Collect => {
                if env.opening
                    && let Some(guilty) = self.broken_commitments(env)
                {
                    return Ok(Progress::Guilty(guilty));
                }
                let alive: Vec<u16> = self.inputs.keys().copied().collect();
                self.name_survivors(env, deck, alive, now)
            }
            Phase::Check { .. } if waiting => Ok(Progress::Waiting),
            Phase::Check { alive, named, signed } => {
                let alive = std::mem::take(alive);
                if alive != *named {
                    return self.name_survivors(env, deck, alive, now);
                }
                // Every signature beyond the t that are needed would only cost every site its checking.
                let (signers, proofs) = signed.iter().take(deck.threshold).map(|(s, p)| (*s, *p)).unzip();
                let certificate = Certificate { alive, signers, proofs };
                let checks = std::mem::take(signed);
                let frame = env.frame(Kind::Certificate, &self.context, &certificate);
                self.collect_shares(env, certificate.alive, checks, &frame, now);
                Ok(Progress::Sent)
            }
            Phase::Unmask { shares, .. } if shares.len() < deck.threshold => {
                if waiting {
                    return Ok(Progress::Waiting);
                }
                let (alive, needed) = (shares.len(), deck.threshold);
                Err(Error::Quorum { step: "unmasking", alive, needed, rule: Rule("UNM-5") })
            }
            Phase::Unmask { .. } => self.open_total(env, deck, waiting),
        }
    }

    fn name_survivors(&mut self, env: &Env, deck: &ReadyDeck, alive: Vec<u16>, now: Millis) -> Result<Progress, Error> {
        let needed = deck.threshold.max(usize::from(env.terms.min_cohort));
        if alive.len() < needed {
            return Err(Error::Quorum { step: "a total", alive: alive.len(), needed, rule: Rule("SUR-3") });
        }
        let inputs = alive.iter().filter_map(|s| self.inputs.get(s)).map(|i| i.proof).collect();
        let frame = env.frame(Kind::Survivors, &self.context, &Survivors { alive: alive.clone(), inputs });
        if alive == self.cohort {
            self.collect_shares(env, alive, BTreeMap::new(), &frame, now);
        } else {
            self.pending =
                Pending::new(alive.iter().map(|s| (*s, frame.clone())).collect(), env.timing.phase, env, now);
            self.phase = Phase::Check { named: alive.clone(), alive, signed: BTreeMap::new() };
        }
        Ok(Progress::Sent)
    }

    /// [INP-4]: whose commitment is not to what it sent. One look at the sums where all are honest.
    fn broken_commitments(&self, env: &Env) -> Option<Vec<Guilty>> {
        if self.sums.are_of(self.inputs.values().map(|i| &i.commitment)) {
            return None;
        }
        let broken = self.inputs.iter().filter(|(_, i)| commit::commit(&i.words) != i.commitment);
        let what = "committed to another vector than it sent";
        let guilty = |(site, i): (&u16, &Input)| {
            let frame = evidence::input_frame(&self.context, &i.commitment, &i.words, &i.proof);
            (*site, env.site_error(*site, what, "INP-4"), frame)
        };
        Some(broken.map(guilty).collect())
    }

    fn collect_shares(
        &mut self,
        env: &Env,
        alive: Vec<u16>,
        checks: BTreeMap<u16, Proof>,
        frame: &Arc<Vec<u8>>,
        now: Millis,
    ) {
        self.pending = Pending::new(alive.iter().map(|s| (*s, frame.clone())).collect(), env.timing.phase, env, now);
        self.phase = Phase::Unmask { alive, shares: BTreeMap::new(), checks };
    }

    /// [UNM-5], [UNM-6]: rebuild every survivor's self-mask, check it against its commitment, take all masks off.
    fn open_total(&mut self, env: &Env, deck: &ReadyDeck, waiting: bool) -> Result<Progress, Error> {
        let Phase::Unmask { alive, shares, checks } = &self.phase else { return Ok(Progress::Waiting) };
        let mut holders: Vec<u16> = shares.keys().copied().collect();
        let mut coefficients = shamir::lagrange_at_zero(&holders[..deck.threshold]);
        let mut wrong_shares = Vec::new();
        let mut opened = Vec::with_capacity(alive.len());
        for (k, owner) in alive.iter().enumerate() {
            let column: Vec<Scalar> = holders.iter().filter_map(|h| shares.get(h)).map(|row| row[k]).collect();
            let committed = |seed: &Scalar| {
                let list = deck.commitments.get(owner);
                let expected = list.and_then(|l| l.get(usize::from(self.slot)));
                expected == Some(&seed_commitment(&deck.id, *owner, self.slot, &seed.to_bytes()))
            };
            let quick = shamir::recover(&coefficients, &column);
            let seed = if committed(&quick) {
                quick
            } else {
                // The expensive search runs once, when nobody is waited for any more.
                let found = shamir::recover_committed(&holders, &column, deck.threshold, committed).or_else(|| {
                    let robust = if waiting { None } else { shamir::recover_robust(&holders, &column, deck.threshold) };
                    robust.filter(|(s, _)| committed(s))
                });
                match found {
                    Some((seed, wrong)) => {
                        // Whoever was wrong once is not asked again while others are enough: one search a liar.
                        let sound: Vec<u16> = holders.iter().copied().filter(|h| !wrong.contains(h)).collect();
                        if sound.len() >= deck.threshold {
                            holders = sound;
                            coefficients = shamir::lagrange_at_zero(&holders[..deck.threshold]);
                        }
                        wrong_shares.extend(wrong.into_iter().map(|holder| (holder, *owner)));
                        seed
                    }
                    None if waiting => return Ok(Progress::Waiting),
                    None => {
                        let name = |s: &u16| env.roster.name_of(crate::roster::PartyId::Site(*s));
                        let why = format!(
                            "the shares of the self-mask of {} do not open to its commitment; it dealt wrong ones, or \
                             too many of those who gave them changed theirs: {}",
                            name(owner),
                            holders.iter().map(name).collect::<Vec<_>>().join(", "),
                        );
                        return Err(Error::malformed("Unmask", why, "UNM-6"));
                    }
                }
            };
            opened.push(seed);
        }
        let missing = self.not_in(alive);
        let mut masks: Vec<(Secret, Sign)> =
            opened.iter().map(|seed| (self_mask_key(seed, &self.context), Sign::Minus)).collect();
        for site in alive {
            for gone in &missing {
                let seed = self.seeds.get(&(*site, *gone)).ok_or(Error::ApiMisuse("a seed was not collected"))?;
                masks.push((Secret::new(*seed.bytes()), mask::pair_sign(*site, *gone).reversed()));
            }
        }
        let mut values = self.sums.low.clone();
        mask::apply_all(&mut values, &masks);
        let opening = env.opening.then(|| self.opening(deck, alive, &missing, &opened, checks));
        let alive = alive.clone();
        Ok(Progress::Done(Done { values, alive, missing, wrong_shares, opening }))
    }

    /// What the cohort needs to recompute the total ([OPN-2]).
    fn opening(
        &self,
        deck: &ReadyDeck,
        alive: &[u16],
        missing: &[u16],
        seeds: &[Scalar],
        checks: &BTreeMap<u16, Proof>,
    ) -> Opening {
        let inputs = alive.iter().filter_map(|s| self.inputs.get(s));
        let opened =
            |i: &Input| OpenedInput { commitment: i.commitment, digest: i.digest, signature: i.proof.signature() };
        let commitment = |m: &u16| deck.commitments.get(m).and_then(|list| list.get(usize::from(self.slot))).copied();
        let check = |site: &u16| {
            let seeds = missing.iter().filter_map(|gone| self.seeds.get(&(*site, *gone))).map(|s| *s.bytes()).collect();
            checks.get(site).map(|proof| OpenedCheck { seeds, signature: proof.signature() })
        };
        Opening {
            alive: alive.to_vec(),
            inputs: inputs.map(opened).collect(),
            seeds: seeds.iter().map(Scalar::to_bytes).collect(),
            others: deck.members.iter().filter(|m| alive.binary_search(m).is_err()).filter_map(commitment).collect(),
            checks: alive.iter().filter_map(check).collect(),
            low: self.sums.low.clone(),
            high: self.sums.high.clone(),
        }
    }
}
