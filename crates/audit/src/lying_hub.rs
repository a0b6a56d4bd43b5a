//! A coordinator that says anything to anybody, together with the real sites that it talks to, in virtual time and from
//! a seed.
//!
//! It knows the wire format (spec sections 8 to 10) and signs as the coordinator; the sites are the protocol core's own state
//! machines. What they refuse comes back with the rule.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow, ensure};
use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng as _, SeedableRng},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use veilsum_proto::{
    Error, codec,
    identity::{Identity, Signature},
    journal::Record,
    kem::{Ciphertext, KemKey},
    message::{self, COMMITMENT, HEADER, Kind, frame_encoded, kind_of},
    policy::{self, Asked, Policy, Request, Spent},
    release::{OwnBlock, Standing},
    roster::PartyId,
    site::{self, Site},
    suite::{self, Hash},
    testing::Kit,
};

/// Masking key, sealing key, ML-KEM key, hash of the commitments, what the site states of its data set.
type Keys = ([u8; 32], [u8; 32], KemKey, Hash, Standing);
type Boxes = Vec<(u16, Ciphertext, Vec<u8>)>;
type Sealed = (Vec<Hash>, Boxes);

/// Hash of a message and the signature on its frame.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Proof {
    /// Of what is signed.
    pub rest: Hash,
    /// The signature.
    pub signature: Signature,
}

#[derive(Serialize, Deserialize)]
struct Directory {
    threshold: u16,
    entries: Vec<(u16, Keys, Proof)>,
    blocks: Vec<Vec<u16>>,
}

/// A question as it travels.
#[derive(Clone, Serialize, Deserialize)]
pub struct Ask {
    deck: u32,
    /// The slot.
    pub slot: u16,
    /// Whose total it is said to become.
    pub cohort: Vec<u16>,
    words: u32,
    /// The round before.
    pub previous_context: Hash,
    previous_total: Hash,
    /// The application's question.
    pub query: Vec<u8>,
}

/// A frame that a site sent, taken apart.
#[derive(Clone)]
pub struct Sent {
    /// Its kind.
    pub kind: Kind,
    /// What it belongs to.
    pub context: Hash,
    /// The message.
    pub rest: Vec<u8>,
    /// The sender's.
    pub proof: Proof,
}

impl Sent {
    /// Takes a frame apart.
    ///
    /// # Errors
    /// Where it is none.
    pub fn of(bytes: &[u8]) -> Result<Sent> {
        let kind = kind_of(bytes).context("a site sent no frame")?;
        let body = bytes.get(HEADER..).filter(|b| b.len() >= 96).context("a short frame")?;
        let (context, rest) = body.split_at(32);
        let (rest, signature) = rest.split_at(rest.len() - 64);
        let digest = match kind {
            // Of a masked input the commitment and the hash of the words are signed apart.
            Kind::MaskedInput => {
                let (commitment, words) = rest.split_at(COMMITMENT);
                suite::hash("input", &[commitment, &suite::hash("masked", &[words]).0])
            }
            _ => suite::hash("rest", &[rest]),
        };
        let proof = Proof { rest: digest, signature: Signature::from_bytes(signature.try_into()?) };
        Ok(Sent { kind, context: Hash(context.try_into()?), rest: rest.to_vec(), proof })
    }

    /// Its message.
    ///
    /// # Errors
    /// Where it is of another form.
    pub fn read<T: Serialize + DeserializeOwned>(&self) -> Result<T> {
        codec::decode("message", &self.rest, usize::MAX).map_err(|e| anyhow!("{e}"))
    }

    /// The words of a masked input.
    pub fn words(&self) -> Vec<u64> {
        self.rest[COMMITMENT..].as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect()
    }

    /// Its shares of the survivors' self-masks, in their order.
    ///
    /// # Errors
    /// Where it is no `Unmask`.
    pub fn shares(&self) -> Result<Vec<[u8; 32]>> {
        self.read()
    }

    /// Its seeds towards the missing.
    ///
    /// # Errors
    /// Where it is no `ConsistencyCheck`.
    pub fn seeds(&self) -> Result<Vec<(u16, [u8; 32])>> {
        self.read::<(Hash, Vec<(u16, [u8; 32])>)>().map(|(_, seeds)| seeds)
    }
}

/// Computes a site's answer.
pub type Answer = Box<dyn Fn(u16, &Asked) -> Vec<u64>>;
/// The sites whose rows a question is said to be about, where it is about some.
pub type Drawn = Box<dyn Fn(&Asked) -> Option<Vec<u16>>>;

/// The coordinator, and its sites.
pub struct LyingHub {
    /// Who is who.
    pub kit: Kit,
    /// What each site wrote down.
    pub journals: Vec<Vec<Record>>,
    /// What each site's application holds of its data set: the block that it answered in ([REL-5]).
    pub fixed: Vec<Option<OwnBlock>>,
    /// How sites' applications read a draw.
    pub drawn: Drawn,
    /// The conversation.
    pub session: Hash,
    /// The last directory.
    pub deck: Hash,
    /// By member of it, what it committed to its self-mask seeds with, slot by slot.
    pub commitments: BTreeMap<u16, Vec<Hash>>,
    sites: Vec<Site>,
    answer: Answer,
    run: Hash,
    rng: ChaCha20Rng,
    decks: u32,
}

/// Rounds of one deck.
const SLOTS: u16 = 8;

impl LyingHub {
    /// `n` sites under terms that open nothing; the caller sends every message by hand. Every site is a block by
    /// itself, so that the other protections can be seen.
    ///
    /// # Errors
    /// Where the sites cannot be set up.
    pub fn new(n: usize, max_rows: u64, seed: u64, answer: Answer) -> Result<LyingHub> {
        LyingHub::of(Kit::new(n, |terms| (terms.opening, terms.max_rows) = (false, max_rows)), seed, answer)
    }

    /// Under the terms and the floor of this kit.
    ///
    /// # Errors
    /// Where the sites cannot be set up.
    pub fn of(kit: Kit, seed: u64, answer: Answer) -> Result<LyingHub> {
        let n = kit.roster.sites.len();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut run = [0; 32];
        rng.fill_bytes(&mut run);
        Ok(LyingHub {
            session: message::session(&kit.terms.hash(), &kit.roster.hash(), PartyId::Coordinator),
            sites: (0..n as u16).map(|i| Site::new(kit.site(i))).collect::<Result<_, _>>()?,
            journals: vec![Vec::new(); n],
            fixed: vec![None; n],
            drawn: Box::new(|_| None),
            answer,
            run: Hash(run),
            rng,
            deck: Hash::default(),
            commitments: BTreeMap::new(),
            decks: 0,
            kit,
        })
    }

    /// The identity of a site that colludes.
    pub fn identity(&self, site: u16) -> &Identity {
        &self.kit.identities[usize::from(site) + 2]
    }

    /// A frame that the coordinator signs.
    pub fn frame<T: Serialize>(&self, kind: Kind, context: &Hash, message: &T) -> Vec<u8> {
        frame_encoded(&self.kit.identities[0], &self.session, kind, context, &codec::encode(message))
    }

    /// Block and policy are checked before a site's answer, as in the product.
    fn consents(&mut self, to: usize, asked: &Asked) -> Result<policy::Consent, Error> {
        let drawn = (self.drawn)(asked);
        let request = Request { before: self.fixed[to].as_ref(), drawn: drawn.as_deref(), ..Request::default() };
        let policy = Policy::only(self.kit.floor.clone());
        let consent = policy::decide(&self.kit.terms, &policy, asked, &request, &Spent::default())?;
        self.fixed[to] = Some(asked.own.clone());
        Ok(consent)
    }

    /// Gives a frame to a site; what it sends back.
    ///
    /// # Errors
    /// Where it sends what is no frame.
    pub fn tell(&mut self, to: u16, bytes: &[u8]) -> Result<Result<Vec<Sent>, Error>> {
        let i = usize::from(to);
        if let Err(e) = self.sites[i].handle(site::Input::Message(bytes), &mut self.rng) {
            return Ok(Err(e));
        }
        let mut sent = Vec::new();
        while let Some(output) = self.sites[i].poll() {
            match output {
                site::Output::Persist(record) => self.journals[i].push(record),
                site::Output::Rewrite(records) => self.journals[i] = records,
                site::Output::Send { bytes, .. } => sent.push(Sent::of(&bytes)?),
                site::Output::Event(site::Event::Asked(asked)) => {
                    let consent = match self.consents(i, &asked) {
                        Ok(consent) => consent,
                        Err(e) => return Ok(Err(e)),
                    };
                    let values = (self.answer)(to, &asked);
                    if let Err(e) = self.sites[i].handle(site::Input::Contribute { consent, values }, &mut self.rng) {
                        return Ok(Err(e));
                    }
                }
                site::Output::Event(_) => {}
            }
        }
        Ok(Ok(sent))
    }

    fn one(&mut self, to: u16, bytes: &[u8]) -> Result<Sent> {
        let mut sent = self.tell(to, bytes)??;
        ensure!(sent.len() == 1, "one frame and {} replies", sent.len());
        Ok(sent.remove(0))
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
    pub fn arrange(&mut self, members: &[u16], blocks: Vec<Vec<u16>>) -> Result<BTreeMap<u16, String>> {
        let open = (self.run, self.decks, SLOTS);
        self.decks += 1;
        let id = suite::hash("deck", &[&self.session.0, &codec::encode(&open)]);
        let frame = self.frame(Kind::OpenDeck, &id, &open);
        let mut entries = Vec::new();
        for m in members {
            let block = self.fixed[usize::from(*m)].as_ref().map(|block| block.id);
            self.sites[usize::from(*m)].set_standing(Standing { block, version: 0 });
            let sent = self.one(*m, &frame)?;
            entries.push((*m, sent.read::<Keys>()?, sent.proof));
        }
        let threshold = self.threshold(members.len())? as u16;
        let directory = Directory { threshold, entries, blocks };
        let hash = suite::hash("directory", &[&id.0, &codec::encode(&directory)]);
        let frame = self.frame(Kind::Directory, &id, &directory);
        let (mut proofs, mut refused) = (Vec::new(), BTreeMap::new());
        for m in members {
            match self.reply(*m, &frame)? {
                Ok(sent) => proofs.push(sent.proof),
                Err(rule) => drop(refused.insert(*m, rule)),
            }
        }
        if !refused.is_empty() {
            return Ok(refused);
        }
        let frame = self.frame(Kind::DirectoryCertificate, &hash, &proofs);
        let mut sealed: BTreeMap<u16, Sealed> = BTreeMap::new();
        for m in members {
            sealed.insert(*m, self.one(*m, &frame)?.read()?);
        }
        for m in members {
            let boxes: Boxes = sealed
                .iter()
                .filter_map(|(from, (_, boxes))| {
                    boxes.iter().find(|b| b.0 == *m).map(|b| (*from, b.1.clone(), b.2.clone()))
                })
                .collect();
            let commitments: Vec<Vec<Hash>> = sealed.values().map(|s| s.0.clone()).collect();
            let frame = self.frame(Kind::DeliverShares, &hash, &(commitments, boxes));
            ensure!(self.one(*m, &frame)?.kind == Kind::ShareAck, "a site did not take its shares");
        }
        self.deck = hash;
        self.commitments = sealed.into_iter().map(|(site, (commitments, _))| (site, commitments)).collect();
        Ok(refused)
    }

    /// Shows `target` a directory in which all others are strangers with keys of the coordinator's making. Whether it takes
    /// it, and else the rule.
    ///
    /// # Errors
    /// Where the target does not even begin.
    pub fn strangers(&mut self, target: u16, count: usize) -> Result<(bool, String)> {
        let open = (self.run, self.decks, SLOTS);
        self.decks += 1;
        let id = suite::hash("deck", &[&self.session.0, &codec::encode(&open)]);
        let frame = self.frame(Kind::OpenDeck, &id, &open);
        let own = self.one(target, &frame)?;
        let keys = own.read::<Keys>()?;
        let mut entries = vec![(target, keys.clone(), own.proof)];
        for stranger in 0..count as u16 {
            // Each under the number of a site of the roster where there is one.
            let number = target + 1 + stranger;
            let identity = Identity::generate(&mut self.rng);
            let frame = frame_encoded(&identity, &self.session, Kind::AdvertiseKeys, &id, &codec::encode(&keys));
            entries.push((number, keys.clone(), Sent::of(&frame)?.proof));
        }
        entries.truncate(self.sites.len());
        let blocks = vec![entries.iter().map(|entry| entry.0).collect()];
        let directory = Directory { threshold: self.threshold(entries.len())? as u16, entries, blocks };
        let frame = self.frame(Kind::Directory, &id, &directory);
        Ok(match self.tell(target, &frame)? {
            Ok(_) => (true, String::new()),
            Err(e) => (false, e.rule().map_or_else(|| e.to_string(), |rule| rule.0.to_owned())),
        })
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
        let query = suite::hash("query", &[&ask.query]);
        suite::hash(
            "round",
            &[
                &self.session.0,
                &self.deck.0,
                &ask.deck.to_le_bytes(),
                &ask.slot.to_le_bytes(),
                &codec::encode(&ask.cohort),
                &ask.words.to_le_bytes(),
                &query.0,
                &ask.previous_context.0,
                &ask.previous_total.0,
            ],
        )
    }

    /// Puts a question to one site: its masked words, or the rule under which it refuses.
    ///
    /// # Errors
    /// Where it does neither.
    pub fn ask(&mut self, to: u16, ask: &Ask) -> Result<Result<Sent, String>> {
        let context = self.context(ask);
        let frame = self.frame(Kind::Ask, &context, ask);
        self.reply(to, &frame)
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
    ) -> Result<Result<Sent, String>> {
        let proofs: Vec<Proof> = alive.iter().filter_map(|s| inputs.get(s)).map(|sent| sent.proof).collect();
        let frame = self.frame(Kind::Survivors, context, &(alive, proofs));
        self.reply(to, &frame)
    }

    fn reply(&mut self, to: u16, frame: &[u8]) -> Result<Result<Sent, String>> {
        Ok(match self.tell(to, frame)? {
            Ok(mut sent) if sent.len() == 1 => Ok(sent.remove(0)),
            Ok(sent) => return Err(anyhow!("one frame and {} replies", sent.len())),
            Err(e) => Err(e.rule().map_or_else(|| e.to_string(), |rule| rule.0.to_owned())),
        })
    }

    /// Another process of this site, from its journal. A colluding site that wants to say two things does this.
    ///
    /// # Errors
    /// Where the journal cannot be read.
    pub fn fork(&mut self, site: u16) -> Result<()> {
        let i = usize::from(site);
        self.sites[i] = Site::restore(self.kit.site(site), self.journals[i].clone())?;
        Ok(())
    }
}
