//! A coordinator that says anything to anybody, and the real sites it talks to: the test kit's lying hub, with what attacks need.
//!
//! What sites refuse comes back with the rule; what is no answer at all is an error.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

use anyhow::{Result, anyhow, ensure};
use veilsum_proto::{
    Error, Rule, codec,
    identity::Identity,
    message::{Kind, frame_encoded},
    suite::Hash,
};
pub use veilsum_testkit::{
    hub::Answer,
    wire::{Ask, Parts as Sent, Proof},
};
use veilsum_testkit::{
    hub::{Accepted, Hub},
    kit::Kit,
    wire::{Directory, Keys, directory_hash, parts, round_context},
};

/// The coordinator, and its sites.
pub struct LyingHub {
    hub: Hub,
    /// The last directory.
    pub deck: Hash,
    decks: u32,
}

impl Deref for LyingHub {
    type Target = Hub;

    fn deref(&self) -> &Hub {
        &self.hub
    }
}

impl DerefMut for LyingHub {
    fn deref_mut(&mut self) -> &mut Hub {
        &mut self.hub
    }
}

/// Rounds of one deck.
const SLOTS: u16 = 8;

impl LyingHub {
    /// `n` sites that await no opening: every word is said by hand. Every site is a block by itself, so that what else
    /// protects it is seen.
    pub fn new(n: usize, max_rows: u64, seed: u64, answer: Answer) -> LyingHub {
        LyingHub::closed(Kit::new(n, |terms| terms.max_rows = max_rows), seed, answer)
    }

    /// The same under the terms and the floor of this kit.
    pub fn closed(kit: Kit, seed: u64, answer: Answer) -> LyingHub {
        let mut hub = Hub::closed(kit, seed);
        (hub.answer, hub.remembers) = (answer, true);
        LyingHub { hub, deck: Hash::default(), decks: 0 }
    }

    /// An honest exchange of keys among these sites, in blocks as the terms have them.
    ///
    /// # Errors
    /// Where a site does not take part.
    pub fn deck(&mut self, members: &[u16]) -> Result<()> {
        let blocks = match self.kit.terms.block_size {
            0 => vec![members.to_vec()],
            size => members.chunks(usize::from(size)).map(<[u16]>::to_vec).collect(),
        };
        let refused = self.arrange(members, blocks)?;
        ensure!(refused.is_empty(), "sites take no part: {refused:?}");
        Ok(())
    }

    /// An exchange of keys among these sites in these blocks. Returns who refuses the directory and under which rule;
    /// where nobody does, the exchange is completed.
    ///
    /// # Errors
    /// Where a site does not take part for another reason.
    pub fn arrange(&mut self, members: &[u16], blocks: Vec<Vec<u16>>) -> Result<BTreeMap<u16, Rule>> {
        self.state_blocks(members);
        let (id, own) = self.hub.advertise(self.decks, SLOTS, members);
        self.decks += 1;
        let directory = Directory { blocks, ..own };
        let hash = directory_hash(&id, &directory);
        let frame = self.frame(Kind::Directory, &id, &directory);
        let (mut accepted, mut refused) = (Accepted::new(), BTreeMap::new());
        for m in members {
            match self.answered(*m, &frame)? {
                Ok(sent) => drop(accepted.insert(*m, (sent.proof, sent.read()))),
                Err(rule) => drop(refused.insert(*m, rule)),
            }
        }
        if !refused.is_empty() {
            return Ok(refused);
        }
        let sealed = self.certify(&hash, &accepted)?;
        for m in members {
            let frame = self.delivery(&hash, &sealed, *m);
            ensure!(self.reply(*m, &frame)?.kind == Kind::ShareAck, "a site did not take its shares");
        }
        self.deck = hash;
        Ok(refused)
    }

    /// Shows `target` a directory in which all others are strangers with keys of the coordinator's making. The rule under
    /// which it refuses, or nothing where it takes it.
    ///
    /// # Errors
    /// Where the target does not even begin.
    pub fn strangers(&mut self, target: u16, count: usize) -> Result<Option<Rule>> {
        let (id, frame) = self.open(self.decks, SLOTS);
        self.decks += 1;
        let own = self.reply(target, &frame)?;
        let keys = own.read::<Keys>();
        let mut entries = vec![(target, keys.clone(), own.proof)];
        for stranger in 0..count as u16 {
            // Each under the number of a site of the roster where there is one.
            let number = target + 1 + stranger;
            let identity = Identity::generate(&mut self.rng);
            let frame = frame_encoded(&identity, &self.session, Kind::AdvertiseKeys, &id, &codec::encode(&keys));
            entries.push((number, keys.clone(), parts(&frame).proof));
        }
        entries.truncate(self.sites.len());
        let blocks = vec![entries.iter().map(|entry| entry.0).collect()];
        let directory = Directory { threshold: self.threshold(entries.len())? as u16, entries, blocks };
        let frame = self.frame(Kind::Directory, &id, &directory);
        self.tell(target, &frame).err().map(refusal).transpose()
    }

    /// Shares that open a self-mask among `n` members.
    ///
    /// # Errors
    /// Where the terms allow no such deck.
    pub fn threshold(&self, n: usize) -> Result<usize> {
        Ok(self.kit.terms.threshold_of(n, self.kit.roster.sites.len())?)
    }

    /// A question in this slot of the last deck.
    pub fn question(&self, slot: u16, cohort: &[u16], previous: Hash, words: usize, query: Vec<u8>) -> Ask {
        Ask {
            deck: self.decks - 1,
            slot,
            cohort: cohort.to_vec(),
            words: words as u32,
            previous_context: previous,
            previous_total: Hash::default(),
            query,
        }
    }

    /// The context of a question.
    pub fn context(&self, ask: &Ask) -> Hash {
        round_context(&self.session, &self.deck, ask)
    }

    /// Puts a question to one site: its masked words, or the rule under which it refuses.
    ///
    /// # Errors
    /// Where it does neither.
    pub fn ask(&mut self, to: u16, ask: &Ask) -> Result<Result<Sent, Rule>> {
        let frame = self.frame(Kind::Ask, &self.context(ask), ask);
        self.answered(to, &frame)
    }

    /// Tells one site who survived: its shares, or its seeds towards the others, or the rule under which it refuses.
    ///
    /// # Errors
    /// Where it does neither.
    pub fn survivors(
        &mut self,
        to: u16,
        context: &Hash,
        alive: &[u16],
        inputs: &BTreeMap<u16, Sent>,
    ) -> Result<Result<Sent, Rule>> {
        let proofs: Vec<Proof> = alive.iter().filter_map(|s| inputs.get(s)).map(|sent| sent.proof).collect();
        let frame = self.frame(Kind::Survivors, context, &(alive, proofs));
        self.answered(to, &frame)
    }

    fn answered(&mut self, to: u16, frame: &[u8]) -> Result<Result<Sent, Rule>> {
        Ok(match self.tell(to, frame) {
            Ok(mut sent) if sent.len() == 1 => Ok(sent.remove(0)),
            Ok(sent) => return Err(anyhow!("one frame and {} replies", sent.len())),
            Err(e) => Err(refusal(e)?),
        })
    }
}

/// The rule under which a site refuses what it was told.
///
/// # Errors
/// The error itself, where it names none.
fn refusal(e: Error) -> Result<Rule> {
    e.rule().ok_or_else(|| e.into())
}
