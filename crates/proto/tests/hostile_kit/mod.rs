//! What the hostile tests share: the wire format written a second time, a coordinator that says what it likes, and a
//! federation on whose wire anything may be dropped, changed, repeated or invented.
//!
//! The wire format is here as a whole, apart from the product's, so that it is a test of the codec.
#![allow(dead_code, unreachable_pub)] // every test file uses its own part

use std::collections::{BTreeMap, VecDeque};

use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use veilsum_proto::{
    Error,
    aggregator::{self, Aggregator, Event, Millis},
    codec,
    identity::{Identity, Signature},
    journal::Record,
    kem::{Ciphertext, KemKey},
    message::{HEADER, Kind, kind_of, session},
    plan::Terms,
    policy::{self, Asked},
    roster::PartyId,
    site::{self, Site},
    suite::{self, Hash},
    testing::Kit,
};

pub const WORDS: usize = 4;

/// Masking key, sealing key, ML-KEM key, hash of the commitments, block and version.
pub type Keys = ([u8; 32], [u8; 32], KemKey, Hash, (Option<Hash>, u32));
/// Member, ciphertext, sealed shares.
pub type Boxes = Vec<(u16, Ciphertext, Vec<u8>)>;
/// ShareKeys: commitments by slot, a box for every other member.
pub type Sealed = (Vec<Hash>, Boxes);
/// DeliverShares: every member's commitments, the boxes for one site.
pub type Delivery = (Vec<Vec<Hash>>, Boxes);
/// Run, index, slots.
pub type Open = (Hash, u32, u16);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proof {
    pub rest: Hash,
    pub signature: Signature,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Directory {
    pub threshold: u16,
    pub entries: Vec<(u16, Keys, Proof)>,
    pub blocks: Vec<Vec<u16>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BurnCertificate {
    pub signers: Vec<u16>,
    pub proofs: Vec<Proof>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ask {
    pub deck: u32,
    pub slot: u16,
    pub cohort: Vec<u16>,
    pub words: u32,
    pub previous_context: Hash,
    pub previous_total: Hash,
    pub query: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Survivors {
    pub alive: Vec<u16>,
    pub inputs: Vec<Proof>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Certificate {
    pub alive: Vec<u16>,
    pub inputs: Hash,
    pub signers: Vec<u16>,
    pub proofs: Vec<Proof>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenedInput {
    pub commitment: [u8; 32],
    pub digest: Hash,
    pub signature: Signature,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenedCheck {
    pub seeds: Vec<[u8; 32]>,
    pub signature: Signature,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Opening {
    pub alive: Vec<u16>,
    pub inputs: Vec<OpenedInput>,
    pub seeds: Vec<[u8; 32]>,
    pub others: Vec<Hash>,
    pub checks: Vec<OpenedCheck>,
    pub agreed: Vec<(u16, Proof)>,
    pub low: Vec<u64>,
    pub high: Vec<u16>,
}

/// The round and the seeds towards the missing.
pub type Check = (Hash, Vec<(u16, [u8; 32])>);

/// A frame taken apart, unchecked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    pub kind: Kind,
    pub context: Hash,
    pub rest: Vec<u8>,
    pub proof: Proof,
}

pub fn parts(bytes: &[u8]) -> Parts {
    let kind = kind_of(bytes).expect("a whole frame");
    let body = &bytes[HEADER..];
    let (rest, signature) = body[32..].split_at(body.len() - 96);
    let signature = Signature::from_bytes(signature.try_into().unwrap());
    let proof = Proof { rest: rest_digest(kind, rest), signature };
    Parts { kind, context: Hash(body[..32].try_into().unwrap()), rest: rest.to_vec(), proof }
}

/// Of a masked input the commitment and the hash of the words are signed apart.
pub fn rest_digest(kind: Kind, rest: &[u8]) -> Hash {
    if kind == Kind::MaskedInput && rest.len() >= 32 {
        let words = suite::hash("masked", &[&rest[32..]]);
        return suite::hash("input", &[&rest[..32], &words.0]);
    }
    suite::hash("rest", &[rest])
}

impl Parts {
    pub fn read<T: Serialize + DeserializeOwned>(&self) -> T {
        codec::decode("test", &self.rest, usize::MAX).expect("an honest message")
    }
}

/// A signed frame around any bytes at all.
pub fn raw(signer: &Identity, session: &Hash, kind: Kind, context: &Hash, rest: &[u8]) -> Vec<u8> {
    let number = (kind as u16).to_le_bytes();
    let digest = rest_digest(kind, rest);
    let signature = signer.sign("frame", &[&session.0, &number, &context.0, &digest.0]);
    let mut out = suite::VERSION.to_le_bytes().to_vec();
    out.extend_from_slice(&number);
    out.extend_from_slice(&((96 + rest.len()) as u32).to_le_bytes());
    out.extend_from_slice(&context.0);
    out.extend_from_slice(rest);
    out.extend_from_slice(&signature.to_bytes());
    out
}

pub fn deck_id(session: &Hash, open: &Open) -> Hash {
    suite::hash("deck", &[&session.0, &codec::encode(open)])
}

pub fn directory_hash(deck: &Hash, directory: &Directory) -> Hash {
    suite::hash("directory", &[&deck.0, &codec::encode(directory)])
}

pub fn round_context(session: &Hash, directory: &Hash, ask: &Ask) -> Hash {
    let query = suite::hash("query", &[&ask.query]);
    let (deck, slot, words) = (ask.deck.to_le_bytes(), ask.slot.to_le_bytes(), ask.words.to_le_bytes());
    let cohort = codec::encode(&ask.cohort);
    let (pc, pt) = (&ask.previous_context.0, &ask.previous_total.0);
    suite::hash("round", &[&session.0, &directory.0, &deck, &slot, &cohort, &words, &query.0, pc, pt])
}

pub fn survivors_context(round: &Hash, alive: &[u16], inputs: &[Hash]) -> Hash {
    suite::hash("survivors", &[&round.0, &codec::encode(alive), &inputs_hash(inputs).0])
}

pub fn inputs_hash(inputs: &[Hash]) -> Hash {
    suite::hash("inputs", &[&codec::encode(inputs)])
}

/// The rows' answer: depends on the site, the query and the place.
pub fn value(site: u16, query: &[u8], word: usize) -> u64 {
    let h = suite::hash("value", &[&site.to_le_bytes(), query, &(word as u64).to_le_bytes()]);
    u64::from_le_bytes(h.0[..8].try_into().unwrap())
}

pub fn sum(cohort: &[u16], query: &[u8]) -> Vec<u64> {
    (0..WORDS).map(|w| cohort.iter().fold(0u64, |a, s| a.wrapping_add(value(*s, query, w)))).collect()
}

fn consent(kit: &Kit, me: u16, asked: &Asked) -> Result<site::Input<'static>, Error> {
    let consent = policy::decide_by_floor(&kit.terms, &kit.floor, asked)?;
    Ok(site::Input::Contribute { consent, values: (0..asked.words).map(|k| value(me, &asked.query, k)).collect() })
}

pub fn everybody(n: usize) -> Vec<u16> {
    (0..n as u16).collect()
}

/// A deck that a [`Hub`] made.
#[derive(Clone)]
pub struct Deck {
    pub index: u32,
    pub id: Hash,
    pub hash: Hash,
    pub members: Vec<u16>,
    pub threshold: usize,
}

/// A round of a [`Hub`]: who answered in which context.
#[derive(Clone)]
pub struct Round {
    pub context: Hash,
    pub cohort: Vec<u16>,
    pub inputs: BTreeMap<u16, Proof>,
}

impl Round {
    /// What these sites signed as their inputs.
    pub fn signed(&self, alive: &[u16]) -> Vec<Hash> {
        alive.iter().filter_map(|s| self.inputs.get(s)).map(|proof| proof.rest).collect()
    }
}

/// A coordinator that can say anything to anybody, and the honest sites it talks to.
pub struct Hub {
    pub kit: Kit,
    pub session: Hash,
    pub run: Hash,
    pub sites: Vec<Site>,
    pub journals: Vec<Vec<Record>>,
    pub asked: Vec<Vec<Asked>>,
    /// Whether sites answer at once.
    pub answers: bool,
    /// What left a site although its input failed.
    pub left: Vec<Parts>,
    pub rng: ChaCha20Rng,
}

impl Hub {
    pub fn new(n: usize, seed: u64, change: impl FnOnce(&mut Terms)) -> Hub {
        // Openings have tests of their own; here every word is said by hand.
        Hub::of(
            Kit::new(n, |terms| {
                terms.opening = false;
                change(terms);
            }),
            seed,
        )
    }

    pub fn of(kit: Kit, seed: u64) -> Hub {
        let n = kit.roster.sites.len();
        Hub {
            session: session(&kit.terms.hash(), &kit.roster.hash(), PartyId::Coordinator),
            run: suite::hash("run", &[&seed.to_le_bytes()]),
            sites: (0..n as u16).map(|i| Site::new(kit.site(i)).unwrap()).collect(),
            journals: vec![Vec::new(); n],
            asked: vec![Vec::new(); n],
            answers: true,
            left: Vec::new(),
            rng: ChaCha20Rng::seed_from_u64(seed),
            kit,
        }
    }

    /// The identity of a site, for a test that plays that site.
    pub fn identity(&self, site: u16) -> &Identity {
        &self.kit.identities[usize::from(site) + 2]
    }

    pub fn frame<T: Serialize>(&self, kind: Kind, context: &Hash, message: &T) -> Vec<u8> {
        raw(&self.kit.identities[0], &self.session, kind, context, &codec::encode(message))
    }

    /// Gives one frame to one site; what it sends back.
    pub fn tell(&mut self, to: u16, bytes: &[u8]) -> Result<Vec<Parts>, Error> {
        let result = self.sites[usize::from(to)].handle(site::Input::Message(bytes), &mut self.rng);
        let sent = self.drain(to)?;
        self.left = if result.is_err() { sent.clone() } else { Vec::new() };
        result.map(|()| sent)
    }

    /// As [`Hub::tell`] where exactly one reply is due.
    pub fn reply(&mut self, to: u16, bytes: &[u8]) -> Result<Parts, Error> {
        let mut sent = self.tell(to, bytes)?;
        assert_eq!(sent.len(), 1, "one frame, one reply");
        Ok(sent.remove(0))
    }

    fn drain(&mut self, i: u16) -> Result<Vec<Parts>, Error> {
        let k = usize::from(i);
        let mut sent = Vec::new();
        while let Some(output) = self.sites[k].poll() {
            match output {
                site::Output::Persist(record) => self.journals[k].push(record),
                site::Output::Rewrite(records) => self.journals[k] = records,
                site::Output::Send { bytes, .. } => sent.push(parts(&bytes)),
                site::Output::Event(site::Event::Asked(asked)) => {
                    self.asked[k].push(asked.clone());
                    if self.answers {
                        let input = consent(&self.kit, i, &asked)?;
                        self.sites[k].handle(input, &mut self.rng)?;
                    }
                }
                site::Output::Event(_) => {}
            }
        }
        Ok(sent)
    }

    /// Lets a site answer what it was asked `nth`.
    pub fn answer(&mut self, i: u16, nth: usize) -> Result<Vec<Parts>, Error> {
        let asked = self.asked[usize::from(i)][nth].clone();
        let input = consent(&self.kit, i, &asked)?;
        self.sites[usize::from(i)].handle(input, &mut self.rng)?;
        self.drain(i)
    }

    /// The application's refusal of a question.
    pub fn refusal(&mut self, i: u16, context: Hash) -> Result<Vec<Parts>, Error> {
        let input = site::Input::Refuse { context, rule: "POL-2".into() };
        self.sites[usize::from(i)].handle(input, &mut self.rng)?;
        self.drain(i)
    }

    /// Stops a site and brings it back from its journal.
    pub fn restart(&mut self, i: u16) -> Result<(), Error> {
        let k = usize::from(i);
        self.sites[k] = Site::restore(self.kit.site(i), self.journals[k].clone())?;
        Ok(())
    }

    pub fn open(&self, index: u32, slots: u16) -> (Hash, Vec<u8>) {
        let open: Open = (self.run, index, slots);
        let id = deck_id(&self.session, &open);
        (id, self.frame(Kind::OpenDeck, &id, &open))
    }

    /// Opens a deck and collects the keys of `members`.
    pub fn advertise(&mut self, index: u32, slots: u16, members: &[u16]) -> (Hash, Directory) {
        let (id, frame) = self.open(index, slots);
        let mut entries = Vec::new();
        for m in members {
            let reply = self.reply(*m, &frame).unwrap();
            entries.push((*m, reply.read::<Keys>(), reply.proof));
        }
        let threshold = self.kit.terms.threshold_of(members.len(), self.kit.roster.sites.len()).unwrap() as u16;
        let blocks = match self.kit.terms.block_size {
            0 => vec![members.to_vec()],
            size => members.chunks(usize::from(size)).map(<[u16]>::to_vec).collect(),
        };
        (id, Directory { threshold, entries, blocks })
    }

    /// Shows `members` the directory and then everybody's signatures; what they seal.
    pub fn seal(&mut self, id: &Hash, directory: &Directory) -> Result<(Hash, BTreeMap<u16, Sealed>), Error> {
        let members: Vec<u16> = directory.entries.iter().map(|e| e.0).collect();
        let hash = directory_hash(id, directory);
        let frame = self.frame(Kind::Directory, id, directory);
        let proofs = members.iter().map(|m| Ok(self.reply(*m, &frame)?.proof)).collect::<Result<Vec<_>, Error>>()?;
        let frame = self.frame(Kind::DirectoryCertificate, &hash, &proofs);
        let mut boxes = BTreeMap::new();
        for m in &members {
            boxes.insert(*m, self.reply(*m, &frame)?.read());
        }
        Ok((hash, boxes))
    }

    /// The frame that brings `to` its boxes.
    pub fn delivery(&self, hash: &Hash, boxes: &BTreeMap<u16, Sealed>, to: u16) -> Vec<u8> {
        let own = |sent: &Sealed| sent.1.iter().find(|b| b.0 == to).map(|b| (b.1.clone(), b.2.clone()));
        let delivered: Delivery = (
            boxes.values().map(|sent| sent.0.clone()).collect(),
            boxes
                .iter()
                .filter_map(|(from, sent)| own(sent).map(|(ciphertext, sealed)| (*from, ciphertext, sealed)))
                .collect(),
        );
        self.frame(Kind::DeliverShares, hash, &delivered)
    }

    /// A whole deck, honestly made.
    pub fn deck(&mut self, index: u32, slots: u16, members: &[u16]) -> Deck {
        let (id, directory) = self.advertise(index, slots, members);
        let (hash, boxes) = self.seal(&id, &directory).unwrap();
        for m in members {
            let frame = self.delivery(&hash, &boxes, *m);
            assert_eq!(self.reply(*m, &frame).unwrap().kind, Kind::ShareAck);
        }
        Deck { index, id, hash, members: members.to_vec(), threshold: usize::from(directory.threshold) }
    }

    pub fn question(&self, deck: &Deck, slot: u16, cohort: &[u16], previous: Hash, query: &[u8]) -> Ask {
        Ask {
            deck: deck.index,
            slot,
            cohort: cohort.to_vec(),
            words: WORDS as u32,
            previous_context: previous,
            previous_total: Hash::default(),
            query: query.to_vec(),
        }
    }

    pub fn ask_frame(&self, deck: &Deck, ask: &Ask) -> (Hash, Vec<u8>) {
        let context = round_context(&self.session, &deck.hash, ask);
        (context, self.frame(Kind::Ask, &context, ask))
    }

    /// Asks `to` and collects their masked vectors.
    pub fn ask(&mut self, deck: &Deck, ask: &Ask, to: &[u16]) -> Result<Round, Error> {
        let (context, frame) = self.ask_frame(deck, ask);
        let mut inputs = BTreeMap::new();
        for s in to {
            inputs.insert(*s, self.reply(*s, &frame)?.proof);
        }
        Ok(Round { context, cohort: ask.cohort.clone(), inputs })
    }

    pub fn survivors(&self, round: &Round, alive: &[u16]) -> Vec<u8> {
        let inputs = alive.iter().filter_map(|s| round.inputs.get(s)).copied().collect();
        self.frame(Kind::Survivors, &round.context, &Survivors { alive: alive.to_vec(), inputs })
    }

    pub fn certificate(&self, round: &Round, alive: &[u16], signed: &BTreeMap<u16, Proof>) -> Vec<u8> {
        let (signers, proofs) = signed.iter().map(|(s, p)| (*s, *p)).unzip();
        let inputs = inputs_hash(&round.signed(alive));
        self.frame(Kind::Certificate, &round.context, &Certificate { alive: alive.to_vec(), inputs, signers, proofs })
    }

    /// Lets `alive` sign that they are the survivors.
    pub fn sign(&mut self, round: &Round, alive: &[u16], by: &[u16]) -> Result<BTreeMap<u16, Proof>, Error> {
        let frame = self.survivors(round, alive);
        let mut signed = BTreeMap::new();
        for s in by {
            let reply = self.reply(*s, &frame)?;
            assert_eq!(reply.kind, Kind::ConsistencyCheck);
            signed.insert(*s, reply.proof);
        }
        Ok(signed)
    }
}

/// All sites in one block have answered a first question.
pub fn in_one_block(n: usize, seed: u64) -> (Hub, Deck, Round) {
    let mut hub = Hub::of(Kit::with_blocks(n, 0, |terms| terms.opening = false), seed);
    let all = everybody(n);
    let deck = hub.deck(0, 8, &all);
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
    let round = hub.ask(&deck, &ask, &all).unwrap();
    (hub, deck, round)
}

/// A frame on the wire of a [`Fed`].
#[derive(Clone)]
pub struct Wire {
    pub site: u16,
    pub from_site: bool,
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

/// What arrives in place of a frame.
pub type Tap = Box<dyn FnMut(&Wire) -> Vec<Vec<u8>>>;

/// An honest aggregator and sites, in order and without delay, with a tap on the wire.
pub struct Fed {
    pub kit: Kit,
    pub session: Hash,
    pub sites: Vec<Site>,
    pub aggregator: Aggregator,
    pub tap: Tap,
    pub seen: Vec<Wire>,
    pub events: Vec<Event>,
    pub errors: Vec<(u16, Error)>,
    pub now: u64,
    rng: ChaCha20Rng,
    queue: VecDeque<Wire>,
}

/// Frames and wakes after which a run counts as hung.
const TOO_MANY: usize = 20_000;

impl Fed {
    pub fn new(n: usize, seed: u64, change: impl FnOnce(&mut Terms)) -> Fed {
        let kit = Kit::new(n, change);
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut fed = Fed {
            session: session(&kit.terms.hash(), &kit.roster.hash(), PartyId::Coordinator),
            sites: (0..n as u16).map(|i| Site::new(kit.site(i)).unwrap()).collect(),
            aggregator: Aggregator::new(kit.coordinator(), Millis(0), &mut rng).unwrap(),
            tap: Box::new(|w| vec![w.bytes.clone()]),
            seen: Vec::new(),
            events: Vec::new(),
            errors: Vec::new(),
            now: 0,
            rng,
            queue: VecDeque::new(),
            kit,
        };
        (0..n as u16).for_each(|i| fed.aggregator.handle(aggregator::Input::Attached(i), Millis(0)));
        fed
    }

    pub fn identity(&self, site: u16) -> std::sync::Arc<Identity> {
        self.kit.identities[usize::from(site) + 2].clone()
    }

    fn transmit(&mut self, site: u16, from_site: bool, bytes: Vec<u8>) {
        let wire = Wire { site, from_site, kind: kind_of(&bytes).expect("honest parties send frames"), bytes };
        self.seen.push(wire.clone());
        for bytes in (self.tap)(&wire) {
            self.queue.push_back(Wire { bytes, ..wire });
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.aggregator.poll() {
            match output {
                aggregator::Output::Send { to, bytes } => self.transmit(to, false, bytes.to_vec()),
                aggregator::Output::Persist(_) => {}
                aggregator::Output::Event(e) => self.events.push(e),
            }
        }
    }

    /// Gives a frame to a site or to the aggregator, as if it had come over the wire.
    pub fn inject(&mut self, site: u16, from_site: bool, bytes: &[u8]) {
        if from_site {
            self.aggregator.handle(aggregator::Input::Message { from: site, bytes }, Millis(self.now));
        } else {
            let k = usize::from(site);
            if let Err(e) = self.sites[k].handle(site::Input::Message(bytes), &mut self.rng) {
                self.errors.push((site, e));
            }
            while let Some(output) = self.sites[k].poll() {
                match output {
                    site::Output::Send { bytes, .. } => self.transmit(site, true, bytes),
                    site::Output::Event(site::Event::Asked(asked)) => {
                        let input = consent(&self.kit, site, &asked).unwrap();
                        if let Err(e) = self.sites[k].handle(input, &mut self.rng) {
                            self.errors.push((site, e));
                        }
                    }
                    _ => {}
                }
            }
        }
        self.drain();
    }

    /// Runs to the next event for which `wanted` holds, counted from event number `from`.
    pub fn until(&mut self, from: usize, wanted: impl Fn(&Event) -> bool) -> Result<Event, Error> {
        self.drain();
        let mut next = from;
        for _ in 0..TOO_MANY {
            while let Some(e) = self.events.get(next) {
                next += 1;
                if let Event::Failed(e) = e {
                    return Err(e.clone());
                }
                if wanted(e) {
                    return Ok(e.clone());
                }
            }
            match self.queue.pop_front() {
                Some(w) => self.inject(w.site, w.from_site, &w.bytes),
                None => {
                    let Some(Millis(at)) = self.aggregator.next_wake() else { break };
                    self.now = self.now.max(at);
                    self.aggregator.handle(aggregator::Input::Tick, Millis(self.now));
                    self.drain();
                }
            }
        }
        Err(Error::ApiMisuse("the federation hangs"))
    }

    /// Asks one question: the total and its cohort.
    pub fn ask(&mut self, query: &[u8]) -> Result<(Vec<u64>, Vec<u16>), Error> {
        let from = self.events.len();
        self.aggregator.handle(aggregator::Input::Ask { query: query.to_vec(), words: WORDS }, Millis(self.now));
        match self.until(from, |e| matches!(e, Event::Total { .. }))? {
            Event::Total { values, cohort, .. } => Ok((values, cohort)),
            _ => unreachable!("only totals are wanted"),
        }
    }

    /// Asks and checks that the total is that of its cohort; the cohort.
    pub fn ask_exact(&mut self, query: &[u8]) -> Vec<u16> {
        let (values, cohort) =
            self.ask(query).unwrap_or_else(|e| panic!("{e}\n{:?}\n{:?}", self.events, self.errors.first()));
        assert_eq!(values, sum(&cohort, query), "the total is not that of its cohort");
        cohort
    }

    /// Why a site was lost, in words.
    pub fn lost(&self, who: u16) -> Option<String> {
        self.events.iter().find_map(|e| match e {
            Event::Lost { site, why } if *site == who => Some(why.to_string()),
            _ => None,
        })
    }
}
