//! A site of the sparse protocol: the state machine of a data owner towards one aggregator (spec section 17).
//!
//! In a round most sites send one message, their masked vector. Members of the share committee send two more: a
//! signature on one set of survivors, and, against enough of these signatures, one share of each site asked.

mod deck;
mod duty;
mod restore;
mod round;
mod setup;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use deck::Deck;
use rand_core::CryptoRng;
use round::Round;
use setup::{Accepted, Fresh, Revealed};

use super::{
    bits::Bits,
    frame::{self, Kind, Proof, Verified},
    journal::{Entry, Record},
    message::{self, Ask, Held, Open, Refusal, list_hash},
    size::{Shape, Sizes},
    types::{Disclosure, SiteConfig, SiteEvent, SiteInput, SiteOutput},
};
use crate::{
    error::Error,
    identity::{Identity, PublicKey},
    limits::MAX_SPARSE_SLOTS,
    plan::Terms,
    policy::{self, Asked, Consent, Floor},
    roster::{PartyId, Roster},
    site::to_bytes,
    suite::{self, Hash},
};

pub(crate) struct Env {
    pub(crate) me: u16,
    identity: Arc<Identity>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) terms: Arc<Terms>,
    shape: Shape,
    pub(crate) floor: Floor,
    aggregator: PartyId,
    pub(crate) session: Hash,
}

impl Env {
    /// An error of the aggregator's making.
    pub(crate) fn aggregator(&self, what: impl Into<String>, rule: &'static str) -> Error {
        Error::peer(self.roster.name_of(self.aggregator), what, rule)
    }

    pub(crate) fn name_of(&self, site: u16) -> String {
        self.roster.name_of(PartyId::Site(site))
    }

    pub(crate) fn key_of(&self, site: u16) -> Option<PublicKey> {
        self.roster.sites.get(usize::from(site)).map(|m| m.key)
    }

    /// [SPA-2]: the sizes this site finds for itself; whoever else finds others has another deck.
    pub(crate) fn sizes(&self, members: usize) -> Result<Sizes, Error> {
        let sites = self.roster.sites.len();
        if usize::from(self.floor.colluders) > self.shape.colluders(sites) {
            let what =
                format!("the plan supposes fewer than the {} colluding sites of this site", self.floor.colluders);
            return Err(Error::refused(what, "SPA-2"));
        }
        self.shape.sizes(sites, members)
    }

    /// Sites in a total at least.
    pub(crate) fn least(&self, sizes: &Sizes) -> usize {
        policy::least(&self.terms, &self.floor).max(sizes.floor)
    }

    fn frame<T: serde::Serialize>(&self, kind: Kind, context: &Hash, message: &T) -> Vec<u8> {
        frame::frame(&self.identity, &self.session, kind, context, message)
    }
}

enum Setup {
    Fresh(Fresh),
    Revealed(Revealed),
    // Boxed: it is far larger than the others.
    Accepted(Box<Accepted>),
}

/// A data owner's state machine towards one aggregator.
pub struct Site {
    env: Env,
    run: Option<Hash>,
    highest: Option<u32>,
    /// Set-ups in a row for which the random number left without a deck coming of it.
    reveals: u32,
    setup: Option<Setup>,
    deck: Option<Deck>,
    round: Option<Round>,
    last_slot: Option<u16>,
    last_context: Hash,
    /// Sites, by number in the roster, that were left after the round before.
    left: Option<Bits>,
    rounds: u32,
    consumed: BTreeSet<Hash>,
    /// The last frame that was answered and the answer: the same again gets the same.
    reply: Option<(Hash, Vec<u8>, Disclosure)>,
    /// The question that this process has put to its application.
    asked: Option<Hash>,
    out: VecDeque<SiteOutput>,
}

impl Site {
    /// A site that has not yet taken part in anything.
    ///
    /// # Errors
    /// `Error::Invalid` where the identity is not a site of the roster.
    pub fn new(config: SiteConfig) -> Result<Site, Error> {
        let Some(PartyId::Site(me)) = config.roster.find(&config.identity.public()) else {
            return Err(Error::invalid("roster", "this identity is not one of its sites", "ROS-7"));
        };
        let of = crate::message::session(&config.terms.hash(), &config.roster.hash(), config.aggregator);
        Ok(Site {
            env: Env {
                me,
                identity: config.identity,
                roster: config.roster,
                terms: config.terms,
                shape: config.shape,
                floor: config.floor,
                aggregator: config.aggregator,
                session: message::session(&of, &config.shape),
            },
            run: None,
            highest: None,
            reveals: 0,
            setup: None,
            deck: None,
            round: None,
            last_slot: None,
            last_context: Hash::default(),
            left: None,
            rounds: 0,
            consumed: BTreeSet::new(),
            reply: None,
            asked: None,
            out: VecDeque::new(),
        })
    }

    /// This site's number in the roster.
    pub fn number(&self) -> u16 {
        self.env.me
    }

    /// The next thing to do, in order.
    pub fn poll(&mut self) -> Option<SiteOutput> {
        self.out.pop_front()
    }

    /// Takes one input.
    ///
    /// # Errors
    /// An error names the culprit and the rule. Nothing that the failed input asked for is queued.
    pub fn handle(&mut self, input: SiteInput<'_>, rng: &mut dyn CryptoRng) -> Result<(), Error> {
        match input {
            SiteInput::Message(bytes) => self.message(bytes, rng).map_err(|error| match error {
                // A frame that does not even decode is its sender's fault too.
                Error::Malformed { what, why, rule } => Error::PeerMisbehaved {
                    who: self.env.roster.name_of(self.env.aggregator),
                    what: format!("sent a malformed {what}: {why}"),
                    rule,
                },
                other => other,
            }),
            SiteInput::Contribute { consent, values } => self.contribute(&consent, values),
            SiteInput::Refuse { context, rule } => {
                let refusal = Refusal { rule: rule.chars().take(16).collect() };
                let bytes = self.env.frame(Kind::Refusal, &context, &refusal);
                self.out.push_back(SiteOutput::Send { bytes, discloses: Disclosure::Refusal });
                Ok(())
            }
        }
    }

    fn message(&mut self, bytes: &[u8], rng: &mut dyn CryptoRng) -> Result<(), Error> {
        let digest = suite::hash("frame received", &[bytes]);
        if let Some((_, bytes, discloses)) = self.reply.as_ref().filter(|(to, ..)| *to == digest) {
            self.out.push_back(SiteOutput::Send { bytes: bytes.clone(), discloses: *discloses });
            return Ok(());
        }
        let roster = self.env.roster.clone();
        let Some(sender) = roster.member(self.env.aggregator) else {
            return Err(Error::ApiMisuse("a site talks to an aggregator"));
        };
        let frame = frame::verify(bytes, &self.env.session, &sender.key, &|| sender.name.clone())?;
        match frame.kind {
            Kind::Open => self.open(&frame, digest, rng),
            Kind::Root => self.root(&frame, digest),
            Kind::Seed => self.seed(&frame, digest),
            Kind::Certificate => self.certificate(&frame, digest, rng),
            Kind::Deliver | Kind::Collect => self.shares(&frame, digest),
            Kind::Ask => self.ask(&frame, digest),
            Kind::Survivors => self.survivors(&frame, digest),
            Kind::Agreement => self.agreement(&frame, digest),
            other => Err(self.env.aggregator(format!("sent a {other:?}, which is not its to send"), "FRM-6")),
        }
    }

    fn reply(&mut self, to: Hash, bytes: Vec<u8>, discloses: Disclosure) {
        self.reply = Some((to, bytes.clone(), discloses));
        self.out.push_back(SiteOutput::Send { bytes, discloses });
    }

    fn stray(&self, kind: Kind) -> Error {
        self.env.aggregator(format!("sent a {kind:?} that belongs to no deck or round this site is in"), "FRM-7")
    }

    // ---- deck ----

    /// [SPA-3]: a new deck of this run; the set-up before it, and the deck before it, end here.
    fn open(&mut self, frame: &Verified<'_>, digest: Hash, rng: &mut dyn CryptoRng) -> Result<(), Error> {
        let open: Open = frame.decode("Open")?;
        let deck = message::deck_id(&self.env.session, &open);
        if deck != frame.context || open.slots == 0 || open.slots > MAX_SPARSE_SLOTS.min(self.env.terms.slots) {
            return Err(self.env.aggregator("opened a deck under another name, or of too many slots", "SPA-3"));
        }
        if self.run.is_some_and(|run| run != open.run) || self.highest.is_some_and(|h| open.index <= h) {
            return Err(self.env.aggregator("opened a deck of another run, or one that it opened before", "SPA-3"));
        }
        self.close_round();
        (self.run, self.highest) = (Some(open.run), Some(open.index));
        (self.deck, self.last_slot) = (None, None);
        let mut fresh = Fresh::new(&self.env, open, deck, rng);
        let bytes = self.env.frame(Kind::Advertise, &deck, &fresh.entry);
        fresh.proof = Some(Proof::of_own(&bytes));
        self.setup = Some(Setup::Fresh(fresh));
        self.reply(digest, bytes, Disclosure::PublicKeys);
        Ok(())
    }

    fn root(&mut self, frame: &Verified<'_>, digest: Hash) -> Result<(), Error> {
        let root = frame.decode("Root")?;
        match self.setup.take() {
            Some(Setup::Fresh(fresh)) if fresh.deck == frame.context => {
                let (run, index) = (fresh.open.run, fresh.open.index);
                let (revealed, reveal) = fresh.root(&self.env, &root, self.reveals)?;
                self.reveals += 1;
                self.out.push_back(SiteOutput::Persist(Record(Entry::Revealed { run, index })));
                let bytes = self.env.frame(Kind::Reveal, &revealed.root, &reveal);
                self.setup = Some(Setup::Revealed(revealed));
                self.reply(digest, bytes, Disclosure::GraphRandomness);
                Ok(())
            }
            // [SPA-6]: for another root the random number does not leave a second time, and the set-up is over.
            _ => Err(self.stray(frame.kind)),
        }
    }

    fn seed(&mut self, frame: &Verified<'_>, digest: Hash) -> Result<(), Error> {
        let seed = frame.decode("Seed")?;
        match self.setup.take() {
            Some(Setup::Revealed(revealed)) if revealed.root == frame.context => {
                let accepted = revealed.seed(&self.env, seed)?;
                let bytes =
                    frame::frame_raw(&self.env.identity, &self.env.session, Kind::Accept, &accepted.directory, &[]);
                self.setup = Some(Setup::Accepted(Box::new(accepted)));
                self.reply(digest, bytes, Disclosure::Acknowledgement);
                Ok(())
            }
            _ => Err(self.stray(frame.kind)),
        }
    }

    fn certificate(&mut self, frame: &Verified<'_>, digest: Hash, rng: &mut dyn CryptoRng) -> Result<(), Error> {
        let certificate = frame.decode("Certificate")?;
        match self.setup.take() {
            Some(Setup::Accepted(accepted)) if accepted.directory == frame.context => {
                let (deck, shares) = accepted.certificate(&self.env, &certificate, rng)?;
                self.reveals = 0;
                let (index, members, on_committee) = (deck.index, deck.members.len(), deck.duty.is_some());
                let bytes = self.env.frame(Kind::Shares, &deck.id, &shares);
                self.deck = Some(deck);
                // The keys of older decks leave the disk as they left memory.
                self.out.push_back(SiteOutput::Rewrite(self.summary()));
                self.reply(digest, bytes, Disclosure::SealedShares);
                self.out.push_back(SiteOutput::Event(SiteEvent::DeckReady { index, members, on_committee }));
                Ok(())
            }
            _ => Err(self.stray(frame.kind)),
        }
    }

    fn shares(&mut self, frame: &Verified<'_>, digest: Hash) -> Result<(), Error> {
        let stray = self.stray(frame.kind);
        let Some(deck) = self.deck.as_mut().filter(|d| d.id == frame.context) else { return Err(stray) };
        let Some((duty, head)) = deck.duty() else { return Err(stray) };
        if frame.kind == Kind::Deliver {
            return duty.deliver(&self.env, &head, frame.decode("Deliver")?);
        }
        frame.nothing("Collect")?;
        let known = duty.is_closed();
        let owners = duty.close();
        if !known {
            let records = duty.to_records().into_iter();
            self.out.extend(records.map(|record| SiteOutput::Persist(Record(Entry::Held(record)))));
        }
        let bytes = self.env.frame(Kind::Held, &frame.context, &Held { owners });
        self.reply(digest, bytes, Disclosure::Acknowledgement);
        Ok(())
    }

    // ---- rounds ----

    /// What the next round must follow.
    fn close_round(&mut self) {
        if let (Some(round), Some(deck)) = (self.round.take(), &self.deck) {
            self.last_context = round.context;
            let left = round.agreed.as_ref().unwrap_or(&round.cohort);
            let sites = self.env.roster.sites.len();
            self.left = Some(Bits::of(sites, left.list().map(|place| deck.number(place))));
        }
    }

    fn ask(&mut self, frame: &Verified<'_>, digest: Hash) -> Result<(), Error> {
        if self.asked == Some(digest) {
            // Its answer is not there yet.
            return Ok(());
        }
        let ask: Ask = frame.decode("Ask")?;
        let Some(deck) = &self.deck else { return Err(self.stray(frame.kind)) };
        if frame.context != message::round_context(&self.env.session, &deck.id, &ask) {
            return Err(self.env.aggregator("asked in a context that is not that of its question", "SPA-13"));
        }
        let again = self.round.as_ref().is_some_and(|r| r.context == frame.context && !r.answered);
        if !again {
            if self.last_slot.is_some_and(|last| ask.slot <= last) || usize::from(ask.slot) >= deck.slots.len() {
                return Err(self.env.aggregator("asked in a slot that was used, or that the deck lacks", "SPA-14"));
            }
            let (context, left) = match &self.round {
                // Of this round only a member of the committee knows who was left.
                Some(r) => {
                    let left = r.agreed.as_ref().unwrap_or(&r.cohort);
                    let sites = self.env.roster.sites.len();
                    (r.context, Some(Bits::of(sites, left.list().map(|p| deck.number(p)))))
                }
                None => (self.last_context, self.left.clone()),
            };
            let round = Round::open(&self.env, deck, &ask, frame.context, context, left.as_ref())?;
            if self.consumed.contains(&round.query) {
                return Err(Error::refused(
                    "this very question was put before; the difference of two totals over different sites would be \
                     somebody's input",
                    "SPA-17",
                ));
            }
            self.close_round();
            (self.last_slot, self.reply) = (Some(ask.slot), None);
            self.rounds += 1;
            if let Some(deck) = &mut self.deck {
                deck.wipe_before(ask.slot);
            }
            self.round = Some(round);
        }
        self.asked = Some(digest);
        let Some(deck) = &self.deck else { return Err(self.stray(frame.kind)) };
        self.out.push_back(SiteOutput::Event(SiteEvent::Asked(Asked {
            context: frame.context,
            run: self.run.unwrap_or_default(),
            slot: (deck.index, ask.slot),
            cohort: ask.cohort.list().map(|place| deck.number(place)).collect(),
            words: ask.words as usize,
            query: ask.query,
            rounds: self.rounds,
            spent: self.consumed.len() as u32 + u32::from(!again),
        })));
        Ok(())
    }

    fn contribute(&mut self, consent: &Consent, mut values: Vec<u64>) -> Result<(), Error> {
        let (Some(round), Some(deck)) = (self.round.as_mut().filter(|r| r.context == consent.context()), &self.deck)
        else {
            return Err(Error::ApiMisuse("consent to a query that is not open"));
        };
        let fresh = round.digest.is_none();
        round.mask(deck, &mut values)?;
        self.consumed.insert(round.query);
        if fresh {
            let record = round.to_record(self.rounds);
            self.out.push_back(SiteOutput::Persist(Record(record)));
        }
        let context = round.context;
        let rest = to_bytes(&values);
        let bytes = frame::frame_raw(&self.env.identity, &self.env.session, Kind::Input, &context, &rest);
        // The frame that asked is not at hand any more; its hash is.
        self.reply(self.asked.unwrap_or_default(), bytes, Disclosure::MaskedWords);
        Ok(())
    }

    fn survivors(&mut self, frame: &Verified<'_>, digest: Hash) -> Result<(), Error> {
        let message: message::Survivors = frame.decode("Survivors")?;
        let stray = self.stray(frame.kind);
        let (Some(round), Some(deck)) = (self.round.as_mut().filter(|r| r.context == frame.context), &mut self.deck)
        else {
            return Err(stray);
        };
        let Some((duty, head)) = deck.duty() else { return Err(stray) };
        if round.digest.is_none() {
            return Err(self.env.aggregator("named survivors before this site answered", "SPA-20"));
        }
        // [SPA-20]: one set of survivors a slot, whatever was shown to others.
        if round.agreed.as_ref().is_some_and(|before| *before != message.alive) {
            return Err(self.env.aggregator("named other survivors for a round than before", "SPA-20"));
        }
        duty.judge(&self.env, &head, &message.alive, &round.cohort)?;
        let context = message::survivors_context(&round.context, &message.alive);
        if round.agreed.is_none() {
            let (context, alive) = (round.context, message.alive.clone());
            self.out.push_back(SiteOutput::Persist(Record(Entry::Agreed { context, alive })));
            round.agreed = Some(message.alive);
        }
        let bytes = frame::frame_raw(&self.env.identity, &self.env.session, Kind::Agree, &context, &[]);
        self.reply(digest, bytes, Disclosure::Acknowledgement);
        Ok(())
    }

    /// [SPA-21], [SPA-22]: nothing leaves before the committee's signatures on one set; then one share of each site.
    fn agreement(&mut self, frame: &Verified<'_>, digest: Hash) -> Result<(), Error> {
        let message: message::Agreement = frame.decode("Agreement")?;
        let stray = self.stray(frame.kind);
        let (Some(round), Some(deck)) = (self.round.as_mut().filter(|r| r.context == frame.context), &mut self.deck)
        else {
            return Err(stray);
        };
        let slot = round.slot;
        let Some((duty, head)) = deck.duty() else { return Err(stray) };
        if round.agreed.as_ref() != Some(&message.alive) {
            return Err(self.env.aggregator("showed an agreement on other survivors than this site signed", "SPA-21"));
        }
        duty.agreed(&self.env, &head, &round.context, &message)?;
        let Some(unmask) = duty.shares(slot, &round.cohort, &message.alive) else {
            return Err(Error::ApiMisuse("the shares of this slot are gone"));
        };
        if !round.released {
            round.released = true;
            self.out.push_back(SiteOutput::Persist(Record(Entry::Released { context: round.context })));
        }
        let bytes = self.env.frame(Kind::Unmask, &frame.context, &unmask);
        self.reply(digest, bytes, Disclosure::RoundShares);
        self.out.push_back(SiteOutput::Event(SiteEvent::Released { slot }));
        Ok(())
    }
}

/// The hash under which a site advertises its commitments; the aggregator checks it when they come.
pub(crate) fn commitments_hash(list: &[Hash]) -> Hash {
    list_hash("sparse commitments", list)
}
