//! A site: the state machine of a data owner towards one aggregator (spec sections 8 and 9).
//!
//! It does no I/O and has no clock. Feed it an [`Input`], then drain [`Site::poll`] until it is empty, and do what each
//! [`Output`] says *in order*: a `Persist` must be durable before the `Send` after it leaves.

pub(crate) mod deck;
mod env;
mod opening;
pub(crate) mod pairs;
mod restore;
mod round;
mod setup;
mod types;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use rand_core::CryptoRng;

use deck::{BadDelivery, Deck, ExpectCertificate, ExpectDirectory, ExpectShares};
use env::Env;
use round::{MayRelease, Round, Step, check_context};
pub use types::{Event, Input, Output, SiteConfig};

use crate::{
    commit,
    error::Error,
    identity::DecodedKeys,
    journal::{Entry, Record},
    limits::MAX_SLOTS,
    message::{self, Ask, Disclosure, Kind, Named, OpenDeck, Proof, Refusal, ShareComplaint, Verified},
    policy::{Asked, Consent},
    roster::PartyId,
    rule::Rule,
    spread,
    standing::Standing,
    suite::Hash,
};

/// A deck being set up, by the message that is awaited.
enum Setup {
    Directory(ExpectDirectory),
    Certificate(ExpectCertificate),
    Shares(ExpectShares),
}

/// The round that a site is in, with its deck.
struct Open<'a> {
    index: u32,
    deck: &'a Deck,
    round: &'a mut Round,
    env: &'a Env,
}

/// A reply that may be asked for again. The same frame gets the same answer, byte for byte.
struct Reply {
    /// What the frame of this kind said and its signature, of which one stands for one context alone.
    to: Proof,
    bytes: Arc<Vec<u8>>,
}

/// A data owner's state machine towards one aggregator.
pub struct Site {
    pub(crate) env: Env,
    /// Its name, and the highest deck that was opened in it.
    run: Option<(Hash, u32)>,
    setup: Option<Setup>,
    /// Those from which rounds are played.
    decks: BTreeMap<u32, Deck>,
    round: Option<(u32, Round)>,
    last_slot: Option<(u32, u16)>,
    last_context: Hash,
    last_cohort: Option<Vec<u16>>,
    rounds: u32,
    /// What this site states of its account.
    standing: Standing,
    /// The round whose total this site has recomputed, and the name of what it was recomputed from.
    opened: Option<(Hash, Hash)>,
    replies: BTreeMap<(Kind, u32), Reply>,
    out: VecDeque<Output>,
}

impl Site {
    /// Makes a site that has not yet taken part in anything.
    ///
    /// # Errors
    /// `Error::Invalid` where the identity is not a site of the roster.
    pub fn new(config: SiteConfig) -> Result<Site, Error> {
        let SiteConfig { identity, roster, terms, floor, aggregator } = config;
        let Some(PartyId::Site(me)) = roster.find(&identity.public()) else {
            return Err(Error::invalid("roster", "this identity is not one of its sites", Rule::Ros7));
        };
        let session = message::session(&terms.hash(), &roster.hash(), aggregator);
        let keys = DecodedKeys::new(roster.sites.iter().chain(roster.member(aggregator)).map(|member| member.key));
        let opening = aggregator.opens();
        Ok(Site {
            env: Env { me, identity, keys, roster, terms, floor, aggregator, session, opening },
            run: None,
            setup: None,
            decks: BTreeMap::new(),
            round: None,
            last_slot: None,
            last_context: Hash::default(),
            last_cohort: None,
            rounds: 0,
            standing: Standing::default(),
            opened: None,
            replies: BTreeMap::new(),
            out: VecDeque::new(),
        })
    }

    /// This site's number in the roster.
    pub fn number(&self) -> u16 {
        self.env.me
    }

    /// What the application's ledger says, from now on: before this site is first told of a deck, and whenever it changes. A deck
    /// holds what was true when it was opened ([LED-11]).
    pub fn set_standing(&mut self, standing: Standing) {
        self.standing = standing;
    }

    /// The round this site is in, or was in last.
    pub fn round_context(&self) -> Option<Hash> {
        let open = self.round.as_ref().map(|(_, round)| round.context);
        open.or_else(|| (self.last_context != Hash::default()).then_some(self.last_context))
    }

    /// The directory of the deck of the round this site is in; with it a third party can read the round's frames.
    pub fn round_directory(&self) -> Option<Hash> {
        let (index, _) = self.round.as_ref()?;
        self.decks.get(index).map(|deck| deck.hash)
    }

    /// Whether this site knows that seeds, or shares, left in this slot: its round has come so far, or the slot is closed. If not, its
    /// journal is older than that ([JRN-4]).
    pub fn knows_of(&self, (deck, slot): (u32, u16), shares: bool) -> bool {
        match self.round.as_ref().filter(|(index, round)| (*index, round.slot) == (deck, slot)) {
            Some((_, round)) => round.has_given(shares),
            // Older decks go when a round of a newer one begins.
            None => self
                .decks
                .first_key_value()
                .is_none_or(|(first, ready)| *first > deck || (*first == deck && !ready.holds(slot))),
        }
    }

    /// Whether a round of this run is over and another one was begun.
    pub fn has_gone_on(&self) -> bool {
        self.last_context != Hash::default()
    }

    /// The run this site is in, by the name that the aggregator gave it.
    pub fn run(&self) -> Option<Hash> {
        self.run.map(|(name, _)| name)
    }

    /// The slot of the round this site is in or was in last, and the sites in its total as far as this one knows: those that
    /// were asked, and once survivors were named, those.
    pub fn round_sites(&self) -> Option<((u32, u16), &[u16])> {
        self.round.as_ref().map(|(deck, round)| ((*deck, round.slot), round.remaining()))
    }

    /// The next thing to do, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Takes one input.
    ///
    /// # Errors
    /// An error names the culprit and the rule. Nothing that the failed input asked for is queued; what was agreed
    /// before still holds, so the caller may go on, or stop.
    pub fn handle(&mut self, input: Input<'_>, rng: &mut dyn CryptoRng) -> Result<(), Error> {
        let _work = spread::AtWork::begin();
        match input {
            Input::Message(bytes) => self.message(bytes, rng).map_err(|error| match error {
                // A frame that does not even decode is its sender's fault too.
                Error::Malformed { what, why, rule } => {
                    self.env.aggregator(format!("sent a malformed {what}: {why}"), rule)
                }
                other => other,
            }),
            Input::Contribute { consent, values } => self.contribute(&consent, values),
            Input::Refuse { context, rule } => {
                self.refuse(&context, rule);
                Ok(())
            }
        }
    }

    fn message(&mut self, bytes: &[u8], rng: &mut dyn CryptoRng) -> Result<(), Error> {
        let env = &self.env;
        let peer = env.roster.member(env.aggregator).ok_or(Error::ApiMisuse("a site talks to an aggregator"))?;
        let frame = message::verify(bytes, &env.session, (&env.keys, &peer.key), &|| peer.name.clone())?;
        if frame.kind == Kind::Opening {
            // The longest of all, and no reply is kept for it.
            return self.opening(&frame);
        }
        let again = |((kind, _), reply): &(&(Kind, u32), &Reply)| *kind == frame.kind && reply.to == frame.proof;
        if let Some((_, reply)) = self.replies.iter().find(again) {
            // [RND-7]: the same question gets the same bytes, or none while the answer is being computed.
            self.send(reply.bytes.clone());
            return Ok(());
        }
        match frame.kind {
            Kind::OpenDeck => self.open_deck(&frame, rng),
            Kind::Directory => self.directory(&frame, rng),
            Kind::DirectoryCertificate => self.certificate(&frame, rng),
            Kind::DeliverShares => self.shares(&frame),
            Kind::Ask => self.ask(&frame),
            Kind::Survivors => self.survivors(&frame),
            Kind::Certificate => self.survivor_certificate(&frame),
            other => {
                let what = format!("sent a {other:?}, which an aggregator does not send here");
                Err(self.env.aggregator(what, Rule::Frm6))
            }
        }
    }

    /// Queues a frame. One that has no label of what it gives away does not leave.
    fn send(&mut self, bytes: Arc<Vec<u8>>) {
        let discloses = message::kind_of(&bytes).and_then(Disclosure::of);
        self.out.extend(discloses.map(|discloses| Output::Send { bytes, discloses }));
    }

    /// Queues a reply and remembers it under the deck it belongs to. Gives the frame.
    fn reply<T: serde::Serialize>(
        &mut self,
        asked: &Verified<'_>,
        deck: u32,
        kind: Kind,
        context: &Hash,
        message: &T,
    ) -> Arc<Vec<u8>> {
        let bytes = Arc::new(message::frame(&self.env.identity, &self.env.session, kind, context, message));
        self.replies.insert((asked.kind, deck), Reply { to: asked.proof, bytes: bytes.clone() });
        self.send(bytes.clone());
        bytes
    }

    /// Whoever went on from this answer has it, so it is not kept to be sent again; the same frame then gets nothing.
    fn forget(&mut self, asked: Kind, deck: u32) {
        if let Some(reply) = self.replies.get_mut(&(asked, deck)) {
            reply.bytes = Arc::default();
        }
    }

    // ---- rounds ----

    fn begin(&mut self, deck: u32, round: Round) {
        self.last_slot = Some((deck, round.slot));
        // [RND-8]: a newer slot closes older ones, a newer deck all of an older one's; their secrets are wiped here.
        self.decks.retain(|index, _| *index >= deck);
        if let Some(ready) = self.decks.get_mut(&deck) {
            ready.close_before(round.slot);
        }
        self.round = Some((deck, round));
        self.replies.retain(|(kind, index), _| *index >= deck && !matches!(kind, Kind::Survivors | Kind::Certificate));
    }

    /// The round before is over once a new one begins: its chain values and survivors are what the next must follow.
    fn close_round(&mut self) {
        if let Some((_, round)) = self.round.take() {
            self.last_context = round.context;
            self.last_cohort = Some(round.remaining().to_vec());
        }
    }

    fn ask(&mut self, frame: &Verified<'_>) -> Result<(), Error> {
        let ask: Ask = frame.decode("Ask")?;
        let slot = (ask.deck, ask.slot);
        if let Some(Open { deck, round, env, .. }) = self.open_round(&frame.context) {
            // [RND-1]: the same question again, and not another one under its name.
            check_context(env, deck, &ask, &round.context)?;
            match round.answer().cloned() {
                // [RND-7]: also after a restart, and in any later stage.
                Some(bytes) => self.send(bytes),
                None => self.asked(&ask, frame),
            }
            return Ok(());
        }
        if self.last_slot.is_some_and(|last| slot <= last) {
            let what = format!("asked in slot {} of deck {} a second time, or out of order", slot.1, slot.0);
            return Err(self.env.aggregator(what, Rule::Rnd2));
        }
        let Some(deck) = self.decks.get(&ask.deck) else { return Err(self.stray(frame.kind)) };
        let (last_context, last_cohort) = match &self.round {
            Some((_, round)) => (round.context, Some(round.remaining())),
            None => (self.last_context, self.last_cohort.as_deref()),
        };
        let round = Round::open(&self.env, deck, &ask, frame.context, last_cohort, last_context)?;
        self.follows_opening(&ask, last_context)?;
        self.close_round();
        self.begin(ask.deck, round);
        self.rounds += 1;
        self.asked(&ask, frame);
        Ok(())
    }

    /// [OPN-7]: nothing is answered before the total of the round before is recomputed.
    fn follows_opening(&self, ask: &Ask, last_context: Hash) -> Result<(), Error> {
        if !self.env.opening || last_context == Hash::default() {
            return Ok(());
        }
        match self.opened {
            Some((context, name)) if context == last_context => {
                let otherwise = "asks as if another total had been opened than this site was shown";
                self.env.demand(name == ask.previous_total, otherwise, Rule::Opn7)
            }
            _ => Err(self.env.aggregator("asks on without having opened the total of the round before", Rule::Opn7)),
        }
    }

    /// [OPN-2] to [OPN-8]: recomputes a total and tells the application.
    fn opening(&mut self, frame: &Verified<'_>) -> Result<(), Error> {
        self.env.demand(self.env.opening, "opened a total, which the intermediary never does", Rule::Opn2)?;
        let name = message::opening_hash(&frame.context, frame.rest);
        match self.opened {
            // The same again comes with a question that is sent again.
            Some((context, before)) if context == frame.context => {
                return self.env.demand(before == name, "opened one total in two ways", Rule::Opn8);
            }
            // Answered before a restart: what it says was checked then.
            _ if frame.context == self.last_context && frame.context != Hash::default() => return Ok(()),
            _ => {}
        }
        let Some(Open { index, deck, round, env }) = self.open_round(&frame.context).filter(|open| open.round.left())
        else {
            return Err(self.stray(frame.kind));
        };
        let opening: message::Opening = frame.decode("Opening")?;
        let values = opening::total(env, deck, round, &opening)?;
        let (slot, directory) = ((index, round.slot), deck.hash);
        self.opened = Some((frame.context, name));
        self.out.push_back(Output::Event(Event::Opened { slot, directory, values, cohort: opening.alive }));
        Ok(())
    }

    fn asked(&mut self, ask: &Ask, frame: &Verified<'_>) {
        // The reply is filled in when the answer comes.
        self.replies.insert((Kind::Ask, ask.deck), Reply { to: frame.proof, bytes: Arc::default() });
        self.out.push_back(Output::Event(Event::Asked(Asked {
            context: frame.context,
            run: self.run().unwrap_or_default(),
            slot: (ask.deck, ask.slot),
            cohort: ask.cohort.clone(),
            words: ask.words as usize,
            query: ask.query.clone(),
            rounds: self.rounds,
            sites: self.env.roster.sites.len(),
        })));
    }

    fn contribute(&mut self, consent: &Consent, mut values: Vec<u64>) -> Result<(), Error> {
        let rounds = self.rounds;
        let Some(Open { index, deck, round, env }) = self.open_round(&consent.context()) else {
            return Err(Error::ApiMisuse("consent to a query that is not open"));
        };
        let masked = round.mask(env, deck, &mut values)?;
        let commitment = if env.opening { commit::commit(&values) } else { commit::NONE };
        let digest = masked.digest;
        let bytes = Arc::new(masked.frame(&env.identity, &env.session, &commitment));
        // [JRN-4]: with the entry that protects this vector, what is left of closed slots leaves the disk.
        let entry = round.sends(&bytes, digest, index, rounds);
        let all = self.summary().into_iter().chain([entry]).collect();
        self.out.push_back(Output::Rewrite(all));
        if let Some(reply) = self.replies.get_mut(&(Kind::Ask, index)) {
            reply.bytes = bytes.clone();
        }
        self.send(bytes);
        Ok(())
    }

    fn refuse(&mut self, context: &Hash, rule: Rule) {
        let bytes = message::frame(&self.env.identity, &self.env.session, Kind::Refusal, context, &Refusal { rule });
        let bytes = Arc::new(bytes);
        if let Some((index, round)) = self.round.as_ref().filter(|(_, r)| r.context == *context) {
            if let Some(reply) = self.replies.get_mut(&(Kind::Ask, *index)) {
                reply.bytes = bytes.clone();
            }
            if !round.left() {
                // [JRN-4], as with an answer.
                self.out.push_back(Output::Rewrite(self.summary()));
            }
        }
        self.send(bytes);
    }

    fn open_round(&mut self, context: &Hash) -> Option<Open<'_>> {
        let (index, round) = self.round.as_mut().filter(|(_, round)| round.context == *context)?;
        Some(Open { index: *index, deck: self.decks.get(index)?, round, env: &self.env })
    }

    fn survivors(&mut self, frame: &Verified<'_>) -> Result<(), Error> {
        let message: message::Survivors = frame.decode("Survivors")?;
        let Some(Open { index, deck, round, env }) = self.open_round(&frame.context) else {
            return Err(self.stray(frame.kind));
        };
        let context = round.context;
        // After a restart, the same set and inputs again: the same shares again.
        let named = Named::of(&message.alive, &message.inputs);
        if let Some((agreed, unmask)) = round.repeat_release(deck, &named.context(&context)) {
            self.reply(frame, index, Kind::Unmask, &agreed, &unmask);
            return Ok(());
        }
        match round.survivors(env, deck, &message, named)? {
            Step::Release(token) => self.release(frame, token),
            Step::Check(named) => {
                let known = round.named().is_some_and(|before| before.alive == named.alive);
                let entry = Entry::Checked { context, named: named.clone() };
                let (signed, check) = round.check(deck, named)?;
                if !known {
                    self.out.push_back(Output::Persist(Record(entry)));
                }
                self.reply(frame, index, Kind::ConsistencyCheck, &signed, &check);
                Ok(())
            }
        }
    }

    fn survivor_certificate(&mut self, frame: &Verified<'_>) -> Result<(), Error> {
        let certificate: message::Certificate = frame.decode("Certificate")?;
        let Some(Open { index, deck, round, env }) = self.open_round(&frame.context) else {
            return Err(self.stray(frame.kind));
        };
        let shown = message::survivors_context(&round.context, &certificate.alive, &certificate.inputs);
        if let Some((agreed, unmask)) = round.repeat_release(deck, &shown) {
            self.reply(frame, index, Kind::Unmask, &agreed, &unmask);
            return Ok(());
        }
        let token = round.may_release(env, deck, &certificate)?;
        self.release(frame, token)
    }

    /// The shares leave, with the entry that says so before them.
    fn release(&mut self, frame: &Verified<'_>, token: MayRelease) -> Result<(), Error> {
        let Some(Open { index, deck, round, .. }) = self.open_round(&frame.context) else {
            return Err(self.stray(frame.kind));
        };
        let named = token.named().clone();
        let unmask = round.release(deck, token)?;
        let missing = round.cohort.iter().copied().filter(|s| named.alive.binary_search(s).is_err()).collect();
        let (slot, context, agreed) = ((index, round.slot), round.context, round.agreed_context());
        self.out.push_back(Output::Persist(Record(Entry::Released { context, named })));
        self.reply(frame, index, Kind::Unmask, &agreed, &unmask);
        self.out.push_back(Output::Event(Event::Released { slot, missing }));
        Ok(())
    }
}
