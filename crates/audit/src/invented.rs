//! A round that a lying coordinator controls up to the opening, and what it may open in place of the truth. Also the
//! check of an opening as it was before, which sampled signatures and did not compare inputs with what sites were shown
//! when their shares left.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, anyhow, ensure};
use veilsum_cluster::random::Stream;
use veilsum_proto::{
    Rule,
    identity::Identity,
    message::{Kind, frame_encoded},
    suite::{self, Hash},
    testing::Kit,
    vectors_api as core,
};

use veilsum_testkit::wire::parts;
pub use veilsum_testkit::wire::{OpenedCheck, OpenedInput, Opening};

use crate::{
    finding::Rate,
    lying_hub::{LyingHub, Sent, refusal},
};

/// Words of an answer.
pub const WORDS: usize = 4;

/// What a site answers.
pub fn value(site: u16, word: usize) -> u64 {
    (1_000 * u64::from(site) + word as u64).wrapping_mul(77)
}

/// The sum of what these sites answer.
pub fn sum(sites: &[u16]) -> Vec<u64> {
    (0..WORDS).map(|w| sites.iter().fold(0u64, |sum, s| sum.wrapping_add(value(*s, w)))).collect()
}

/// The message of a masked input with these words, rightly committed to.
pub fn input(words: &[u64]) -> Vec<u8> {
    words.iter().fold(core::commit(words).to_vec(), |rest, w| [&rest[..], &w.to_le_bytes()].concat())
}

/// Integer sums of the words of these inputs: low 64 bits, and how often each ran over.
pub fn sums<'a>(inputs: impl Iterator<Item = &'a Sent>) -> (Vec<u64>, Vec<u16>) {
    let (mut low, mut high) = (vec![0u64; WORDS], vec![0u16; WORDS]);
    for sent in inputs {
        for (k, word) in sent.words().iter().enumerate() {
            let (sum, over) = low[k].overflowing_add(*word);
            (low[k], high[k]) = (sum, high[k] + u16::from(over));
        }
    }
    (low, high)
}

/// How an opening shows this input.
pub fn shown(sent: &Sent) -> Result<OpenedInput> {
    let (commitment, words) = sent.rest.split_first_chunk().context("a short input")?;
    let digest = suite::hash("masked", &[words]);
    Ok(OpenedInput { commitment: *commitment, digest, signature: sent.proof.signature })
}

/// An input of these words that `signer` signs now.
///
/// # Errors
/// Never: the frame is whole.
pub fn signed_now(hub: &LyingHub, signer: &Identity, context: &Hash, rest: &[u8]) -> Result<Sent> {
    Ok(parts(&frame_encoded(signer, &hub.session, Kind::MaskedInput, context, rest)))
}

/// A round up to its shares, of sites that are all there.
pub struct Held {
    /// The coordinator.
    pub hub: LyingHub,
    /// The round.
    pub context: Hash,
    /// Its question, signed.
    pub asked: Vec<u8>,
    /// The cohort.
    pub all: Vec<u16>,
    /// What it shows as their inputs.
    pub inputs: BTreeMap<u16, Sent>,
    /// Shares, by site.
    pub unmasked: BTreeMap<u16, Sent>,
    /// Shares that open a self-mask.
    pub threshold: usize,
}

impl Held {
    /// Asks `n` sites, each of them a block by itself, under terms that open all totals.
    ///
    /// # Errors
    /// Where a site does not answer.
    pub fn new(n: usize, seed: u64) -> Result<Held> {
        let kit = Kit::new(n, |_| {});
        let answer =
            Box::new(|site, asked: &veilsum_proto::policy::Asked| (0..asked.words).map(|w| value(site, w)).collect());
        let mut hub = LyingHub::of(kit, seed, answer);
        let all: Vec<u16> = (0..n as u16).collect();
        hub.deck(&all)?;
        let threshold = hub.threshold(n)?;
        let ask = hub.question(0, &all, Hash::default(), WORDS, b"one".to_vec());
        let context = hub.context(&ask);
        let mut inputs = BTreeMap::new();
        for site in &all {
            inputs.insert(*site, hub.ask(*site, &ask)?.map_err(|rule| anyhow!("a site refused under {rule}"))?);
        }
        let asked = hub.frame(Kind::Ask, &context, &ask);
        Ok(Held { hub, context, asked, all, inputs, unmasked: BTreeMap::new(), threshold })
    }

    /// Names everybody a survivor to these sites, with the inputs of now, and keeps their shares.
    ///
    /// # Errors
    /// Where a site gives none.
    pub fn shares_of(&mut self, sites: &[u16]) -> Result<()> {
        for site in sites {
            let sent = self.hub.survivors(*site, &self.context, &self.all, &self.inputs)?;
            let sent = sent.map_err(|rule| anyhow!("a site refused under {rule}"))?;
            ensure!(sent.kind == Kind::Unmask, "a site gave {:?} where nobody is missing", sent.kind);
            self.unmasked.insert(*site, sent);
        }
        Ok(())
    }

    /// The seeds of the self-masks of `alive`, from t sites' shares of them.
    ///
    /// # Errors
    /// Where there are fewer.
    pub fn seeds(&self, alive: usize) -> Result<Vec<[u8; 32]>> {
        let shares: BTreeMap<u16, Vec<[u8; 32]>> =
            self.unmasked.iter().map(|(site, sent)| (*site, sent.shares())).collect();
        let holders: Vec<u16> = shares.keys().copied().take(self.threshold).collect();
        ensure!(holders.len() == self.threshold, "too few shares");
        let seed = |k: usize| core::recover(&holders, &holders.iter().map(|h| shares[h][k]).collect::<Vec<_>>());
        Ok((0..alive).map(seed).collect())
    }

    /// What the inputs of now open to.
    ///
    /// # Errors
    /// Where there are too few shares.
    pub fn opening(&self) -> Result<Opening> {
        let (low, high) = sums(self.inputs.values());
        Ok(Opening {
            alive: self.all.clone(),
            inputs: self.inputs.values().map(shown).collect::<Result<_>>()?,
            seeds: self.seeds(self.all.len())?,
            others: Vec::new(),
            checks: Vec::new(),
            agreed: self.unmasked.iter().take(self.threshold).map(|(s, sent)| (*s, sent.proof)).collect(),
            low,
            high,
        })
    }

    /// Shows another input of `site`, signed with its key, that turns the total into `target`.
    ///
    /// # Errors
    /// Never: the frame is whole.
    pub fn choose(&mut self, site: u16, target: &[u64]) -> Result<()> {
        let words = self.inputs[&site].words();
        let to_target = target.iter().zip(sum(&self.all)).map(|(to, is)| to.wrapping_sub(is));
        let words: Vec<u64> = words.iter().zip(to_target).map(|(word, by)| word.wrapping_add(by)).collect();
        let other = signed_now(&self.hub, self.hub.identity(site), &self.context, &input(&words))?;
        self.inputs.insert(site, other);
        Ok(())
    }

    /// Opens this to real sites: for each the rule under which it refuses, or nothing.
    ///
    /// # Errors
    /// Where a site's words are no frame.
    pub fn open(&mut self, opening: &Opening, to: &[u16]) -> Result<Vec<Option<Rule>>> {
        let frame = self.hub.frame(Kind::Opening, &self.context, opening);
        to.iter().map(|site| self.hub.tell(*site, &frame).err().map(refusal).transpose()).collect()
    }

    /// The check as it was before. It looked at sums that fit the commitments, this site's own input, and a given
    /// number of other sites' signatures, drawn at random. Returns the total where the check passes.
    pub fn old_check(&self, opening: &Opening, site: u16, looked_at: usize, draws: &mut Stream) -> Option<Vec<u64>> {
        let commitments: Vec<[u8; 32]> = opening.inputs.iter().map(|i| i.commitment).collect();
        if !core::are_sums(&opening.low, &opening.high, &commitments) {
            return None;
        }
        let mut places: Vec<usize> = (0..opening.alive.len()).collect();
        draws.shuffle(&mut places);
        places.truncate(looked_at);
        let (session, kind) = (&self.hub.session, (Kind::MaskedInput as u16).to_le_bytes());
        let signed = |at: &usize| {
            let shown = &opening.inputs[*at];
            let rest = suite::hash("input", &[&shown.commitment, &shown.digest.0]);
            let key = self.hub.kit.roster.sites[usize::from(opening.alive[*at])].key;
            key.verify("frame", &[&session.0, &kind, &self.context.0, &rest.0], &shown.signature)
        };
        let own = opening.alive.binary_search(&site).ok().map(|at| opening.inputs[at].digest);
        let kept = self.inputs.get(&site).and_then(|sent| shown(sent).ok()).map(|i| i.digest);
        if own != kept || !places.iter().all(signed) {
            return None;
        }
        let mut total = opening.low.clone();
        opening.seeds.iter().for_each(|seed| {
            core::unmask(&mut total, &core::self_mask_key(seed, &self.context), None);
        });
        Some(total)
    }
}

/// How many of these sites accept what they are shown, and the rules under which the others refuse, each once.
pub fn taken(refusals: &[Option<Rule>]) -> (Rate, BTreeSet<Rule>) {
    let mut rate = Rate::default();
    refusals.iter().for_each(|rule| rate.add(rule.is_none()));
    (rate, refusals.iter().flatten().copied().collect())
}
