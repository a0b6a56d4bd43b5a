//! The aggregator's side of one round: collect, name the survivors, unmask the total (spec section 9).
//!
//! It is one file because it is one state machine: a reader who checks that nothing is unmasked before it is signed
//! reads its phases in order.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    env::{Env, Pending},
    progress::{Done, Guilty, Progress},
    record::{Question, ReadyDeck, Total},
    seeds::{Answers, Shares},
    timing::Millis,
};
use crate::{
    commit::{self, Commitment, Sums, Weighted},
    error::Error,
    mask::{self, Sign},
    message::{
        Ask, Certificate, ConsistencyCheck, Kind, Named, OpenedCheck, OpenedInput, Opening, Proof, Survivors, Verified,
        masked_digest, round_context,
    },
    rule::Rule,
    shamir,
    suite::{Hash, Purpose, Secret},
};
use curve25519_dalek::scalar::Scalar;
use zeroize::Zeroizing;

enum Phase {
    Collect,
    /// Somebody is missing: signatures on `alive` and seeds are awaited.
    Check {
        alive: Vec<u16>,
        named: Vec<u16>,
        /// What they sign: the round, the survivors named and their inputs ([CON-2]).
        context: Hash,
        signed: BTreeMap<u16, Proof>,
    },
    /// The sums are added up anew, because a site is excluded whose words were not kept, or because a site committed to
    /// other words.
    Again {
        alive: Vec<u16>,
        /// Whether the commitments are looked at one by one.
        blame: bool,
        guilty: Vec<Guilty>,
    },
    Unmask {
        alive: Vec<u16>,
        /// What their shares are for: the round, the survivors and their inputs ([UNM-3]).
        context: Hash,
        answers: Answers,
        /// Their consistency checks, where a site is missing.
        checks: BTreeMap<u16, Proof>,
    },
}

/// A survivor's masked input.
struct Input {
    proof: Proof,
    commitment: Commitment,
    digest: Hash,
    /// Its own in [`Round::weighted`].
    weight: u128,
    /// `None` where the words are not kept. The sums contain them, and the site repeats them when it is asked again
    /// ([RND-7]).
    words: Option<Vec<u64>>,
}

/// Bytes of masked inputs up to which they are kept until the round is over; more of them are added up as they come.
pub(crate) const KEPT: usize = 64 << 20;

/// A round under way.
pub(crate) struct Round {
    pub(crate) context: Hash,
    slot: u16,
    cohort: Vec<u16>,
    words: usize,
    /// The frame with the question.
    pub(super) ask: Arc<Vec<u8>>,
    inputs: BTreeMap<u16, Input>,
    /// The sums of all `inputs`, updated as they arrive and leave.
    sums: Sums,
    /// The same sums with random weights, by which commitments are checked where totals are opened.
    weighted: Option<Weighted>,
    /// The secret from which weights are drawn; no site receives it.
    weights: Secret,
    /// Whether the sums contain words of a site that is excluded.
    stale: bool,
    seeds: BTreeMap<(u16, u16), Secret>,
    phase: Phase,
    /// The survivors that an earlier process named, and whether shares may have left for them ([JRN-5]).
    bound: Option<(Named, bool)>,
    pub(crate) pending: Pending,
}

const TWICE: &str = "answered one question twice, with different vectors";
const BROKEN: &str = "committed to another vector than it sent";

impl Round {
    /// `previous` are the context and the total of the round before.
    pub(crate) fn open(env: &Env, deck: &ReadyDeck, question: &Question, previous: (Hash, Hash), now: Millis) -> Round {
        let Question { deck: index, slot, cohort, words, query } = question.clone();
        let (previous_context, previous_total) = previous;
        let ask = Ask { deck: index, slot, cohort, words, previous_context, previous_total, query };
        let context = round_context(&env.session, &deck.hash, &ask);
        let frame = env.frame(Kind::Ask, &context, &ask);
        let (pending, words) = (Pending::same(&ask.cohort, &frame, env, now), words as usize);
        Round {
            context,
            slot,
            cohort: ask.cohort,
            words,
            ask: frame,
            inputs: BTreeMap::new(),
            sums: Sums::new(words),
            weighted: env.opening.then(|| Weighted::new(words)),
            weights: Purpose::new("weights", &[&context.0]).derive(&env.identity.seed()[..]),
            stale: false,
            seeds: BTreeMap::new(),
            phase: Phase::Collect,
            bound: None,
            pending,
        }
    }

    /// [JRN-5]: these survivors were named before. No other site is asked, no other input of theirs is taken, and where
    /// shares may have left for them no other set is named.
    pub(crate) fn bind(&mut self, named: Named, shares: bool) {
        self.pending.frames.retain(|site, _| named.alive.binary_search(site).is_ok());
        self.bound = Some((named, shares));
    }

    /// The survivors named last, and whether shares may leave for them.
    pub(crate) fn named(&self) -> Option<(Named, bool)> {
        let (alive, shares) = match &self.phase {
            Phase::Collect | Phase::Again { .. } => return None,
            Phase::Check { named, .. } => (named, false),
            Phase::Unmask { alive, .. } => (alive, true),
        };
        Some((Named::of(alive, &self.proofs(alive)), shares))
    }

    /// The context of the shares that are being collected, and of how many sites they are there.
    pub(crate) fn shares(&self) -> Option<(Hash, usize)> {
        match &self.phase {
            Phase::Unmask { context, answers, .. } => Some((*context, answers.len())),
            _ => None,
        }
    }

    /// The proofs of these sites' inputs, in their order.
    fn proofs(&self, alive: &[u16]) -> Vec<Proof> {
        alive.iter().filter_map(|site| self.inputs.get(site)).map(|input| input.proof).collect()
    }

    /// Sites of the cohort that are not among the survivors named last.
    pub(crate) fn missing(&self) -> Vec<u16> {
        match &self.phase {
            Phase::Collect => Vec::new(),
            Phase::Again { alive, .. } | Phase::Check { alive, .. } | Phase::Unmask { alive, .. } => self.not_in(alive),
        }
    }

    fn not_in(&self, alive: &[u16]) -> Vec<u16> {
        self.cohort.iter().copied().filter(|s| alive.binary_search(s).is_err()).collect()
    }

    /// A site is excluded. It is not awaited any longer, and unless the shares are already being collected, it is not among the
    /// survivors.
    pub(crate) fn without(&mut self, site: u16) {
        let waited = self.pending.frames.remove(&site).is_some();
        match &mut self.phase {
            Phase::Collect => {}
            Phase::Again { alive, .. } => {
                alive.retain(|s| *s != site);
                self.stale |= self.inputs.remove(&site).is_some() && !waited;
                return;
            }
            Phase::Check { alive, signed, .. } => {
                alive.retain(|s| *s != site);
                signed.remove(&site);
            }
            Phase::Unmask { .. } => return,
        }
        match self.inputs.remove(&site) {
            Some(Input { words: Some(words), weight, .. }) => {
                self.sums.remove(&words);
                self.weighted.iter_mut().for_each(|sum| sum.remove(&words, weight));
            }
            Some(_) => self.stale = true,
            None => {}
        }
    }

    fn add(&mut self, words: &[u64], weight: u128) {
        self.sums.add(words);
        self.weighted.iter_mut().for_each(|sum| sum.add(words, weight));
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
        let signed = frame.proof.signed_message();
        let bound = self.bound.as_ref().and_then(|(bound, _)| bound.input(from));
        env.demand(from, bound.is_none_or(|before| *before == signed), TWICE, Rule::Inp2)?;
        if let Some(before) = self.inputs.get(&from) {
            env.demand(from, before.proof.signed_message() == signed, TWICE, Rule::Inp2)?;
            self.repeated(env, from, frame);
            return Ok(());
        }
        if !matches!(self.phase, Phase::Collect) || self.pending.frames.remove(&from).is_none() {
            return Ok(());
        }
        let wrong_length = || {
            let what = format!("sent {} bytes where {} words were asked for", frame.rest.len(), self.words);
            env.site_error(from, what, Rule::Inp1)
        };
        let (commitment, bytes) = frame.rest.split_first_chunk::<32>().ok_or_else(wrong_length)?;
        let (words, rest) = bytes.as_chunks::<8>();
        if words.len() != self.words || !rest.is_empty() {
            return Err(wrong_length());
        }
        let may_commit = env.opening || *commitment == commit::NONE;
        let otherwise = "committed to its input towards an aggregator that opens no totals";
        env.demand(from, may_commit, otherwise, Rule::Inp4)?;
        let digest = frame.masked.unwrap_or_else(|| masked_digest(bytes));
        // Two honest masked vectors are equal with probability 2^-64 at most, so an equal one was copied.
        let own = self.inputs.values().all(|other| other.digest != digest);
        env.demand(from, own, "sent the masked vector of another site as its own", Rule::Inp3)?;
        let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
        let weight = self.weight(&signed);
        self.add(&words, weight);
        let words = (8 * self.words * self.cohort.len() <= env.kept).then_some(words);
        self.inputs.insert(from, Input { proof: frame.proof, commitment: *commitment, digest, weight, words });
        Ok(())
    }

    /// The weight of an input, drawn once the input is signed: 128 bits that its signer could not foresee.
    fn weight(&self, signed: &Hash) -> u128 {
        let drawn = Purpose::new("weight", &[&signed.0]).expand(&self.weights);
        let (low, _) = drawn.bytes().as_chunks::<16>();
        u128::from_le_bytes(low[0])
    }

    /// Takes the input that arrived before once more, because the sums are added up anew.
    fn repeated(&mut self, env: &Env, from: u16, frame: &Verified<'_>) {
        let Phase::Again { blame, guilty, .. } = &mut self.phase else { return };
        let Some((commitment, bytes)) = frame.rest.split_first_chunk::<32>() else { return };
        if self.pending.frames.remove(&from).is_none() {
            return;
        }
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        if *blame && commit::commit(&words) != *commitment {
            guilty.push((from, env.site_error(from, BROKEN, Rule::Inp4)));
        } else if let Some(weight) = self.inputs.get(&from).map(|input| input.weight) {
            self.add(&words, weight);
        }
    }

    /// Asks for all inputs once more and adds them up anew.
    fn add_again(&mut self, env: &Env, alive: Vec<u16>, blame: bool, now: Millis) {
        (self.sums, self.stale) = (Sums::new(self.words), false);
        self.weighted = env.opening.then(|| Weighted::new(self.words));
        self.pending = Pending::same(&alive, &self.ask, env, now);
        self.phase = Phase::Again { alive, blame, guilty: Vec::new() };
    }

    /// [CON-2], [CON-3].
    fn consistency(&mut self, env: &Env, from: u16, frame: &Verified<'_>) -> Result<(), Error> {
        let Phase::Check { named, context, signed, .. } = &mut self.phase else { return Ok(()) };
        if frame.context != *context || self.pending.frames.remove(&from).is_none() {
            // Of another round, or of a larger set that was given up.
            return Ok(());
        }
        let check: ConsistencyCheck = frame.decode("ConsistencyCheck")?;
        env.demand(from, check.round == self.context, "signed these survivors for another round", Rule::Con2)?;
        let missing = self.cohort.iter().filter(|s| named.binary_search(s).is_err());
        let whole = check.seeds.iter().map(|s| &s.missing).eq(missing);
        env.demand(from, whole, "did not send one seed for every missing site", Rule::Con3)?;
        signed.insert(from, frame.proof);
        for s in &check.seeds {
            self.seeds.insert((from, s.missing), Secret(s.seed));
        }
        Ok(())
    }

    /// [UNM-3].
    fn unmask(&mut self, env: &Env, from: u16, frame: &Verified<'_>) -> Result<(), Error> {
        let Phase::Unmask { alive, context, answers, .. } = &mut self.phase else { return Ok(()) };
        if frame.context != *context || self.pending.frames.remove(&from).is_none() {
            return Ok(());
        }
        let sent = frame.arrays("Unmask")?;
        let shares = sent.iter().all(shamir::is_canonical);
        env.demand(from, shares, "sent something that is not a share", Rule::Unm3)?;
        env.demand(from, sent.len() == alive.len(), "did not send one share for every survivor", Rule::Unm3)?;
        answers.insert(from, (frame.proof, sent.to_vec()));
        Ok(())
    }

    /// Advances where that is possible now.
    pub(crate) fn next(&mut self, env: &Env, deck: &ReadyDeck, now: Millis) -> Result<Progress, Error> {
        let waiting = !self.pending.frames.is_empty();
        match &mut self.phase {
            Phase::Collect | Phase::Again { .. } | Phase::Check { .. } if waiting => Ok(Progress::Waiting),
            Phase::Collect => {
                let alive = self.inputs.keys().copied().collect();
                self.name_survivors(env, deck, alive, now)
            }
            Phase::Again { alive, blame, guilty } => {
                let (mut alive, blame, guilty) = (std::mem::take(alive), *blame, std::mem::take(guilty));
                // They are out of the sums already.
                alive.retain(|s| !guilty.iter().any(|(site, _)| site == s));
                guilty.iter().for_each(|(site, _)| drop(self.inputs.remove(site)));
                if guilty.is_empty() {
                    return self.name_survivors(env, deck, alive, now);
                }
                self.phase = Phase::Again { alive, blame, guilty: Vec::new() };
                Ok(Progress::Guilty(guilty))
            }
            Phase::Check { alive, named, signed, context } => {
                let (same, context, alive) = (alive == named, *context, std::mem::take(alive));
                if !same {
                    return self.name_survivors(env, deck, alive, now);
                }
                // Only t signatures are needed; each further one would cost every site a check.
                let (signers, proofs) = signed.iter().take(deck.threshold).map(|(s, p)| (*s, *p)).unzip();
                let checks = std::mem::take(signed);
                let inputs = Named::of(&alive, &self.proofs(&alive)).inputs_hash();
                let certificate = Certificate { alive, inputs, signers, proofs };
                let frame = env.frame(Kind::Certificate, &self.context, &certificate);
                self.collect_shares(env, (certificate.alive, context), checks, &frame, now);
                Ok(Progress::Sent)
            }
            Phase::Unmask { answers, .. } if answers.len() < deck.threshold => {
                if waiting {
                    return Ok(Progress::Waiting);
                }
                let (alive, needed) = (answers.len(), deck.threshold);
                Err(Error::Quorum { step: "unmasking".into(), alive, needed, rule: Rule::Unm5 })
            }
            Phase::Unmask { .. } => self.open_total(env, deck, waiting),
        }
    }

    /// Names these survivors; where they are too few, the run is over. [INP-4]: this MUST
    /// come after every one of their commitments was found to be to what the site sent, so that the sum is still right
    /// if any of them leaves later.
    fn name_survivors(&mut self, env: &Env, deck: &ReadyDeck, alive: Vec<u16>, now: Millis) -> Result<Progress, Error> {
        if let Some((before, true)) = &self.bound
            && before.alive != alive
        {
            let step = "the round that was open when this run was interrupted".into();
            return Err(Error::Quorum { step, alive: alive.len(), needed: before.alive.len(), rule: Rule::Jrn5 });
        }
        let needed = env.least(deck.threshold);
        if alive.len() < needed {
            return Err(Error::Quorum { step: "a total".into(), alive: alive.len(), needed, rule: Rule::Sur3 });
        }
        if self.stale {
            self.add_again(env, alive, false, now);
            return Ok(Progress::Sent);
        }
        let committed = self.inputs.values().map(|i| (i.weight, &i.commitment));
        if self.weighted.as_ref().is_some_and(|sum| !sum.is_of(committed)) {
            if self.inputs.values().any(|i| i.words.is_none()) {
                self.add_again(env, alive, true, now);
                return Ok(Progress::Sent);
            }
            self.phase = Phase::Collect;
            return Ok(Progress::Guilty(self.broken_commitments(env)));
        }
        let inputs = self.proofs(&alive);
        let context = Named::of(&alive, &inputs).context(&self.context);
        let frame = env.frame(Kind::Survivors, &self.context, &Survivors { alive: alive.clone(), inputs });
        if alive == self.cohort && env.opening {
            self.collect_shares(env, (alive, context), BTreeMap::new(), &frame, now);
        } else {
            self.pending = Pending::same(&alive, &frame, env, now);
            self.phase = Phase::Check { named: alive.clone(), alive, context, signed: BTreeMap::new() };
        }
        Ok(Progress::Sent)
    }

    /// [INP-4]: the sites whose commitment is not to what they sent.
    fn broken_commitments(&self, env: &Env) -> Vec<Guilty> {
        let guilty = |(site, i): (&u16, &Input)| {
            i.words.as_ref().filter(|words| commit::commit(words) != i.commitment)?;
            Some((*site, env.site_error(*site, BROKEN, Rule::Inp4)))
        };
        self.inputs.iter().filter_map(guilty).collect()
    }

    fn collect_shares(
        &mut self,
        env: &Env,
        (alive, context): (Vec<u16>, Hash),
        checks: BTreeMap<u16, Proof>,
        frame: &Arc<Vec<u8>>,
        now: Millis,
    ) {
        self.pending = Pending::same(&alive, frame, env, now);
        self.phase = Phase::Unmask { alive, context, answers: BTreeMap::new(), checks };
    }

    /// [UNM-5], [UNM-6]: rebuild every survivor's self-mask, check it against its commitment, take all masks off.
    fn open_total(&mut self, env: &Env, deck: &ReadyDeck, waiting: bool) -> Result<Progress, Error> {
        let Phase::Unmask { alive, answers, checks, .. } = &self.phase else { return Ok(Progress::Waiting) };
        let shares = Shares { deck, slot: self.slot, alive, answers };
        let Some((opened, wrong_shares)) = shares.seeds(env, waiting)? else { return Ok(Progress::Waiting) };
        let missing = self.not_in(alive);
        let mut masks: Vec<(Secret, Sign)> = Vec::with_capacity(alive.len() * (1 + missing.len()));
        let own = mask::self_masks(&self.context);
        masks.extend(opened.iter().map(|seed| (own.derive(&*Zeroizing::new(seed.to_bytes())), Sign::Minus)));
        for site in alive {
            for gone in &missing {
                let seed = self.seeds.get(&(*site, *gone)).ok_or(Error::ApiMisuse("a seed was not collected"))?;
                masks.push((Secret(*seed.bytes()), mask::pair_sign(*site, *gone).reversed()));
            }
        }
        let mut values = self.sums.low.clone();
        mask::apply_all(&mut values, &masks);
        let opening = env.opening.then(|| self.opening(deck, alive, &missing, &opened, (checks, answers)));
        let total = Total { values, cohort: alive.clone(), missing };
        Ok(Progress::Done(Box::new(Done { total, wrong_shares, opening })))
    }

    /// What the cohort needs to recompute the total ([OPN-2]).
    fn opening(
        &self,
        deck: &ReadyDeck,
        alive: &[u16],
        missing: &[u16],
        seeds: &[Scalar],
        (checks, answers): (&BTreeMap<u16, Proof>, &Answers),
    ) -> Opening {
        let inputs = alive.iter().filter_map(|s| self.inputs.get(s));
        let opened =
            |i: &Input| OpenedInput { commitment: i.commitment, digest: i.digest, signature: i.proof.signature };
        let commitment = |m: &u16| deck.commitment(*m, self.slot);
        let check = |site: &u16| {
            let seeds = missing.iter().filter_map(|gone| self.seeds.get(&(*site, *gone))).map(|s| *s.bytes()).collect();
            checks.get(site).map(|proof| OpenedCheck { seeds, signature: proof.signature })
        };
        // Where a site is missing, every survivor has already signed the same list.
        let agreements = if missing.is_empty() { deck.threshold } else { 0 };
        Opening {
            alive: alive.to_vec(),
            inputs: inputs.map(opened).collect(),
            seeds: seeds.iter().map(Scalar::to_bytes).collect(),
            others: deck.members.iter().filter(|m| alive.binary_search(m).is_err()).filter_map(commitment).collect(),
            checks: alive.iter().filter_map(check).collect(),
            agreed: answers.iter().take(agreements).map(|(site, (proof, _))| (*site, *proof)).collect(),
            low: self.sums.low.clone(),
            high: self.sums.high.clone(),
        }
    }
}
