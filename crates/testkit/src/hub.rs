//! The one lying hub: a coordinator that says anything to anybody, and the real sites that it talks to.

use serde::Serialize;
use veilsum_proto::vectors_api::await_no_opening;

use crate::prelude::*;

/// A deck that a [`Hub`] made.
#[derive(Clone)]
pub struct Deck {
    pub index: u32,
    pub hash: Hash,
    pub threshold: usize,
}

/// A round of a [`Hub`]: who answered in which context.
#[derive(Clone)]
pub struct Round {
    pub context: Hash,
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
    /// Computes answers; [`value`] unless it is set.
    pub answer: Answer,
    /// What left a site although its input failed.
    pub left: Vec<Parts>,
    /// Whether its sites await no opening.
    closed: bool,
    pub rng: ChaCha20Rng,
}

/// What the members sign and encapsulate, by member.
pub type Accepted = BTreeMap<u16, (Proof, Ciphertexts)>;

/// What `to` gets of it.
pub fn certified(accepted: &Accepted, to: u16) -> Certified {
    let own = |sent: &Ciphertexts| sent.iter().find(|c| c.0 == to).map(|c| c.1.clone());
    let ciphertexts = accepted.iter().filter_map(|(from, (_, sent))| Some((*from, own(sent)?))).collect();
    (accepted.values().map(|(proof, _)| *proof).collect(), ciphertexts)
}

impl Hub {
    pub fn new(n: usize, seed: u64, change: impl FnOnce(&mut Terms)) -> Hub {
        Hub::closed(Kit::new(n, change), seed)
    }

    /// One whose sites await no opening. Openings have tests of their own; here every word is said by hand.
    pub fn closed(kit: Kit, seed: u64) -> Hub {
        let mut hub = Hub::of(kit, seed);
        hub.closed = true;
        hub.sites.iter_mut().for_each(await_no_opening);
        hub
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
            answer: Box::new(|me, asked| (0..asked.words).map(|k| value(me, &asked.query, k)).collect()),
            left: Vec::new(),
            closed: false,
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
                        // The policy stands before a site's answer, as in the product.
                        let (consent, values) = (self.kit.consents(&asked)?, (self.answer)(i, &asked));
                        self.sites[k].handle(site::Input::Contribute { consent, values }, &mut self.rng)?;
                    }
                }
                site::Output::Event(_) => {}
            }
        }
        Ok(sent)
    }

    /// Stops a site and brings it back from its journal.
    pub fn restart(&mut self, i: u16) -> Result<(), Error> {
        let k = usize::from(i);
        self.sites[k] = Site::restore(self.kit.site(i), self.journals[k].clone())?;
        if self.closed {
            await_no_opening(&mut self.sites[k]);
        }
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
        (id, Directory { threshold, entries })
    }

    /// Shows the members the directory; what they sign and encapsulate.
    pub fn accept(&mut self, id: &Hash, directory: &Directory) -> Result<(Hash, Accepted), Error> {
        let frame = self.frame(Kind::Directory, id, directory);
        let mut accepted = Accepted::new();
        for entry in &directory.entries {
            let reply = self.reply(entry.0, &frame)?;
            accepted.insert(entry.0, (reply.proof, reply.read()));
        }
        Ok((directory_hash(id, directory), accepted))
    }

    /// The frame that brings `to` everybody's signatures and its ciphertexts.
    pub fn directory_certificate(&self, hash: &Hash, accepted: &Accepted, to: u16) -> Vec<u8> {
        self.frame(Kind::DirectoryCertificate, hash, &certified(accepted, to))
    }

    /// Shows the members the directory and then everybody's signatures; what they seal.
    pub fn seal(&mut self, id: &Hash, directory: &Directory) -> Result<(Hash, BTreeMap<u16, Sealed>), Error> {
        let (hash, accepted) = self.accept(id, directory)?;
        Ok((hash, self.certify(&hash, &accepted)?))
    }

    /// Shows the members everybody's signatures; what they seal.
    pub fn certify(&mut self, hash: &Hash, accepted: &Accepted) -> Result<BTreeMap<u16, Sealed>, Error> {
        let sealed = |to: &u16| Ok((*to, self.reply(*to, &self.directory_certificate(hash, accepted, *to))?.read()));
        accepted.keys().map(sealed).collect()
    }

    /// The frame that brings `to` its boxes.
    pub fn delivery(&self, hash: &Hash, boxes: &BTreeMap<u16, Sealed>, to: u16) -> Vec<u8> {
        let own = |sent: &Sealed| sent.1.iter().find(|b| b.0 == to).map(|b| b.1.clone());
        let delivered: Delivery = (
            boxes.values().map(|sent| sent.0.clone()).collect(),
            boxes.iter().filter_map(|(from, sent)| Some((*from, own(sent)?))).collect(),
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
        Deck { index, hash, threshold: usize::from(directory.threshold) }
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
        asked(self, deck, ask, to).map(|(round, _)| round)
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
        let signed = |s: &u16| {
            let reply = self.reply(*s, &frame)?;
            assert_eq!(reply.kind, Kind::ConsistencyCheck);
            Ok((*s, reply.proof))
        };
        by.iter().map(signed).collect()
    }
}

/// As [`Hub::ask`], with the masked vectors.
pub fn asked(hub: &mut Hub, deck: &Deck, ask: &Ask, to: &[u16]) -> Result<(Round, BTreeMap<u16, Vec<u64>>), Error> {
    let (context, frame) = hub.ask_frame(deck, ask);
    let mut round = Round { context, inputs: BTreeMap::new() };
    let mut vectors = BTreeMap::new();
    for s in to {
        let reply = hub.reply(*s, &frame)?;
        round.inputs.insert(*s, reply.proof);
        vectors.insert(*s, words(&reply.rest));
    }
    Ok((round, vectors))
}

/// `n` sites, a deck of four slots, and the question `q` put to everybody in the first.
pub fn started(n: usize, seed: u64) -> (Hub, Deck, Round, BTreeMap<u16, Vec<u64>>) {
    let mut hub = Hub::new(n, seed, |_| {});
    let deck = hub.deck(0, 4, &everybody(n));
    let ask = hub.question(&deck, 0, &everybody(n), Hash::default(), b"q");
    let (round, vectors) = asked(&mut hub, &deck, &ask, &everybody(n)).unwrap();
    (hub, deck, round, vectors)
}

/// The rule that an error names.
pub fn rule(e: &Error) -> Rule {
    e.rule().unwrap_or_else(|| panic!("no rule: {e}"))
}

/// The site refuses under this rule, and nothing leaves it; what it says.
#[track_caller]
pub fn refuses(hub: &mut Hub, site: u16, bytes: &[u8], expected: Rule) -> String {
    let e = hub.tell(site, bytes).expect_err("it must refuse");
    assert_eq!(rule(&e), expected, "{e}");
    assert!(hub.left.is_empty(), "nothing leaves with a refusal");
    e.to_string()
}
