//! An aggregator of the sparse protocol: the state machine of coordinator and intermediary (spec section 17).
//!
//! It does no I/O; time comes in with every call. Feed it an [`AggregatorInput`], drain [`Aggregator::poll`], and call
//! again at the latest when [`Aggregator::next_wake`] says so.

mod round;
mod setup;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use rand_core::CryptoRng;
use round::Round;
use setup::Setup;

use super::{
    frame::{self, Kind},
    graph::Graph,
    message::{self, Refusal},
    size::{Shape, Sizes},
    types::{AggregatorConfig, AggregatorEvent, AggregatorInput, AggregatorOutput, later},
};
use crate::{
    aggregator::{Loss, Millis, Timing},
    error::Error,
    identity::Identity,
    limits::{MAX_QUERY, MAX_REVEALS, MAX_SPARSE_SLOTS, MAX_WORDS},
    plan::Terms,
    roster::{PartyId, Roster},
    suite::{self, Hash},
};

pub(crate) struct Env {
    identity: Arc<Identity>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) terms: Arc<Terms>,
    shape: Shape,
    pub(crate) session: Hash,
    timing: Timing,
}

impl Env {
    pub(crate) fn site_error(&self, site: u16, what: impl Into<String>, rule: &'static str) -> Error {
        Error::peer(self.roster.name_of(PartyId::Site(site)), what, rule)
    }

    pub(crate) fn frame<T: serde::Serialize>(&self, kind: Kind, context: &Hash, message: &T) -> Arc<Vec<u8>> {
        Arc::new(frame::frame(&self.identity, &self.session, kind, context, message))
    }

    pub(crate) fn sizes(&self, members: usize) -> Result<Sizes, Error> {
        self.shape.sizes(self.roster.sites.len(), members)
    }
}

/// A deck that is ready, as the aggregator knows it; lists by place in the directory.
pub(crate) struct ReadyDeck {
    index: u32,
    pub(crate) id: Hash,
    pub(crate) context: Hash,
    pub(crate) members: Vec<u16>,
    /// Places that may still be asked.
    pub(crate) cohort: BTreeSet<u16>,
    /// Sites of the committee that hold shares.
    pub(crate) holders: BTreeSet<u16>,
    pub(crate) commitments: Vec<Vec<Hash>>,
    pub(crate) slot_keys: Vec<Vec<[u8; 32]>>,
    pub(crate) graph: Graph,
    pub(crate) sizes: Sizes,
    slots: u16,
    next_slot: u16,
}

/// What is sent to whom next, and who is waited for.
pub(crate) enum Step {
    /// The same frame to all of them.
    All(BTreeSet<u16>, Arc<Vec<u8>>),
    /// To each a frame of its own, made when it leaves.
    Each(BTreeSet<u16>),
    /// Nothing; more answers are awaited.
    Wait,
    /// Nothing; this is over.
    Done,
}

enum Out {
    Ready(AggregatorOutput),
    Personal(u16),
}

/// The state machine of a coordinator or intermediary.
pub struct Aggregator {
    env: Env,
    slots: u16,
    run: Hash,
    next_index: u32,
    attempts: u32,
    /// Sites that may still be asked.
    left: BTreeSet<u16>,
    setup: Option<Setup>,
    deck: Option<ReadyDeck>,
    question: Option<(Vec<u8>, usize)>,
    round: Option<Round>,
    awaited: BTreeSet<u16>,
    /// What they were sent; nothing where each was sent its own.
    frame: Option<Arc<Vec<u8>>>,
    deadline: Millis,
    resend_at: Millis,
    previous_context: Hash,
    previous_total: Hash,
    failed: bool,
    out: VecDeque<Out>,
}

impl Aggregator {
    /// A new run; the first deck is set up at once.
    ///
    /// # Errors
    /// `Error::Invalid` where the identity is not that of the role; `Error::ApiMisuse` for a number of slots the plan
    /// does not allow.
    pub fn new(config: AggregatorConfig, now: Millis, rng: &mut dyn CryptoRng) -> Result<Aggregator, Error> {
        let own = config.roster.member(config.role).map(|m| m.key);
        if matches!(config.role, PartyId::Site(_)) || own != Some(config.identity.public()) {
            return Err(Error::invalid(
                "roster",
                "this identity is not the one that the roster gives this role",
                "ROS-7",
            ));
        }
        if config.slots == 0 || config.slots > config.terms.slots.min(MAX_SPARSE_SLOTS) {
            return Err(Error::ApiMisuse("a deck has at least one slot and at most the plan's number"));
        }
        let mut run = [0u8; 32];
        rng.fill_bytes(&mut run);
        let of = crate::message::session(&config.terms.hash(), &config.roster.hash(), config.role);
        let left = (0..config.roster.sites.len() as u16).collect();
        let mut a = Aggregator {
            env: Env {
                identity: config.identity,
                roster: config.roster,
                terms: config.terms,
                shape: config.shape,
                session: message::session(&of, &config.shape),
                timing: config.timing,
            },
            slots: config.slots,
            run: Hash(run),
            next_index: 0,
            attempts: 0,
            left,
            setup: None,
            deck: None,
            question: None,
            round: None,
            awaited: BTreeSet::new(),
            frame: None,
            deadline: now,
            resend_at: now,
            previous_context: Hash::default(),
            previous_total: Hash::default(),
            failed: false,
            out: VecDeque::new(),
        };
        a.open_deck(now);
        Ok(a)
    }

    /// The next thing to do, in order.
    pub fn poll(&mut self) -> Option<AggregatorOutput> {
        loop {
            match self.out.pop_front()? {
                Out::Ready(output) => return Some(output),
                Out::Personal(to) => {
                    if let Some(bytes) = self.setup.as_ref().and_then(|s| s.personal(&self.env, to)) {
                        return Some(AggregatorOutput::Send { to, bytes });
                    }
                }
            }
        }
    }

    /// When to call again at the latest, where nothing else happens.
    pub fn next_wake(&self) -> Option<Millis> {
        (!self.failed && !self.awaited.is_empty()).then(|| self.deadline.min(self.resend_at))
    }

    /// Takes one input.
    pub fn handle(&mut self, input: AggregatorInput<'_>, now: Millis) {
        if self.failed {
            return;
        }
        match input {
            AggregatorInput::Message { from, bytes } => self.message(from, bytes, now),
            AggregatorInput::Attached(site) => {
                if self.awaited.contains(&site) {
                    self.send_again(site);
                }
            }
            AggregatorInput::Ask { query, words } => {
                if words == 0 || words > MAX_WORDS || query.len() > MAX_QUERY {
                    let what = Error::ApiMisuse("a question of a size that no site would answer");
                    return self.event(AggregatorEvent::SlotLost(what));
                }
                self.question = Some((query, words));
                self.start_round(now);
            }
            AggregatorInput::Tick => self.tick(now),
        }
    }

    fn event(&mut self, event: AggregatorEvent) {
        self.out.push_back(Out::Ready(AggregatorOutput::Event(event)));
    }

    fn send_again(&mut self, to: u16) {
        self.out.push_back(match &self.frame {
            Some(bytes) => Out::Ready(AggregatorOutput::Send { to, bytes: bytes.clone() }),
            None => Out::Personal(to),
        });
    }

    fn take(&mut self, step: Step, now: Millis) {
        match step {
            Step::All(to, frame) => (self.awaited, self.frame) = (to, Some(frame)),
            Step::Each(to) => (self.awaited, self.frame) = (to, None),
            Step::Wait | Step::Done => return,
        }
        let left = &self.left;
        self.awaited.retain(|site| left.contains(site));
        self.deadline = later(now, self.env.timing.phase);
        self.resend_at = later(now, self.env.timing.resend);
        for site in self.awaited.clone() {
            self.send_again(site);
        }
    }

    fn tick(&mut self, now: Millis) {
        if now >= self.deadline && !self.awaited.is_empty() {
            let collecting = self.round.as_ref().is_some_and(Round::is_collecting) || self.setup.is_some();
            for site in std::mem::take(&mut self.awaited) {
                // Of the committee some may be silent; that alone puts nobody out.
                if collecting {
                    self.lose(site, Loss::Silent);
                }
            }
            self.advance(now);
        } else if now >= self.resend_at {
            self.resend_at = later(now, self.env.timing.resend);
            for site in self.awaited.clone() {
                self.send_again(site);
            }
        }
    }

    fn message(&mut self, from: u16, bytes: &[u8], now: Millis) {
        let Some(member) = self.env.roster.sites.get(usize::from(from)).filter(|_| self.left.contains(&from)) else {
            return;
        };
        let name = || member.name.clone();
        let result = frame::verify(bytes, &self.env.session, &member.key, &name).and_then(|frame| {
            if frame.kind == Kind::Refusal {
                let refusal: Refusal = frame.decode("Refusal")?;
                let plain = refusal.rule.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(16).collect();
                let open = self.round.as_ref().is_some_and(|r| r.context == frame.context);
                return Ok((false, open.then_some(plain)));
            }
            if !self.awaited.contains(&from) {
                // Too late, or a second time.
                return Ok((false, None));
            }
            let mut boxes = Vec::new();
            let wanted = match (&mut self.setup, &mut self.round, &self.deck) {
                (Some(setup), ..) => setup.message(&self.env, from, &frame, &mut |to, f| boxes.push((to, f)))?,
                (None, Some(round), Some(deck)) => round.message(&self.env, deck, from, &frame)?,
                _ => false,
            };
            let send = |(to, bytes)| Out::Ready(AggregatorOutput::Send { to, bytes });
            self.out.extend(boxes.into_iter().map(send));
            Ok((wanted, None))
        });
        match result {
            Ok((wanted, refused)) => {
                if let Some(rule) = refused {
                    self.lose(from, Loss::Refused(rule));
                } else if !wanted || !self.awaited.remove(&from) {
                    return;
                }
            }
            Err(error) => {
                let error = match error {
                    Error::Malformed { what, why, rule } => Error::PeerMisbehaved {
                        who: member.name.clone(),
                        what: format!("sent a malformed {what}: {why}"),
                        rule,
                    },
                    other => other,
                };
                self.lose(from, Loss::Misbehaved(error));
            }
        }
        self.advance(now);
    }

    /// A site is out for good.
    fn lose(&mut self, site: u16, why: Loss) {
        if !self.left.remove(&site) {
            return;
        }
        self.event(AggregatorEvent::Lost { site, why });
        self.awaited.remove(&site);
        if let Some(deck) = &mut self.deck
            && let Ok(place) = deck.members.binary_search(&site)
        {
            deck.cohort.remove(&(place as u16));
            if let Some(round) = &mut self.round {
                round.without(place as u16);
            }
        }
        if self.setup.as_ref().is_some_and(Setup::needs_everybody) {
            self.setup = None;
        }
    }

    fn fail(&mut self, error: Error) {
        self.failed = true;
        (self.setup, self.round) = (None, None);
        self.event(AggregatorEvent::Failed(error));
    }

    /// Goes on where nobody who is needed is waited for any more.
    fn advance(&mut self, now: Millis) {
        if self.setup.is_none() && self.deck.is_none() && !self.failed {
            // A random number is missing: the set-up begins again without its owner.
            return self.open_deck(now);
        }
        if let Some(setup) = &mut self.setup {
            if !self.awaited.is_empty() {
                return;
            }
            let mut boxes = Vec::new();
            match setup.next(&self.env, &mut |to, f| boxes.push((to, f))) {
                Ok((step, ready)) => {
                    let send = |(to, bytes)| Out::Ready(AggregatorOutput::Send { to, bytes });
                    self.out.extend(boxes.into_iter().map(send));
                    self.take(step, now);
                    if let Some(deck) = ready {
                        self.deck_ready(deck, now);
                    }
                }
                Err(Error::Quorum { .. }) if self.attempts < MAX_REVEALS => self.open_deck(now),
                Err(error) => self.fail(error),
            }
            return;
        }
        let (Some(round), Some(deck)) = (&mut self.round, &mut self.deck) else { return };
        let waiting = !self.awaited.is_empty();
        if waiting && !round.has_enough(deck) {
            return;
        }
        match round.next(&self.env, deck, waiting) {
            Ok((step, None)) => {
                let alive = round.alive().cloned();
                let collected = deck.cohort.clone();
                self.take(step, now);
                // Those without a place among the survivors are out of this run.
                if let Some(alive) = alive {
                    let gone: Vec<u16> = collected.into_iter().filter(|place| !alive.has(*place)).collect();
                    for place in gone {
                        if let Some(deck) = &self.deck {
                            self.lose(deck.members[usize::from(place)], Loss::Silent);
                        }
                    }
                }
            }
            Ok((_, Some(done))) => {
                self.previous_context = round.context;
                self.previous_total = suite::hash("total", &[&crate::site::to_bytes(&done.values)]);
                self.round = None;
                self.awaited.clear();
                for (holder, owner) in done.wrong_shares {
                    self.event(AggregatorEvent::WrongShare { holder, owner });
                }
                let (values, cohort, missing) = (done.values, done.alive, done.missing);
                self.event(AggregatorEvent::Total { values, cohort, missing });
            }
            Err(error) => {
                // [SPA-17]: nothing of it was opened that is of use, but its sites answer this question no more.
                self.previous_context = round.context;
                self.previous_total = Hash::default();
                (self.round, self.deck) = (None, None);
                self.awaited.clear();
                self.event(AggregatorEvent::SlotLost(error));
            }
        }
    }

    /// [SPA-25], [SPA-4].
    fn open_deck(&mut self, now: Millis) {
        self.deck = None;
        self.attempts += 1;
        let floor = self.env.sizes(self.left.len()).map(|s| s.floor);
        match floor {
            Ok(floor) if self.left.len() >= floor && self.attempts <= MAX_REVEALS => {
                let (setup, frame) = Setup::open(&self.env, self.run, self.next_index, self.slots);
                self.next_index += 1;
                self.setup = Some(setup);
                self.take(Step::All(self.left.clone(), frame), now);
                if self.next_index == 1 {
                    self.deadline = later(now, self.env.timing.join);
                }
            }
            Ok(floor) => self.fail(setup::quorum("a deck", self.left.len(), floor, "SPA-4")),
            Err(error) => self.fail(error),
        }
    }

    fn deck_ready(&mut self, deck: ReadyDeck, now: Millis) {
        (self.setup, self.attempts) = (None, 0);
        self.awaited.clear();
        let number = |place: &u16| deck.members[usize::from(*place)];
        self.left = deck.cohort.iter().map(number).collect();
        self.event(AggregatorEvent::DeckReady {
            index: deck.index,
            members: deck.cohort.iter().map(number).collect(),
            committee: deck.graph.committee.iter().map(number).collect(),
            degree: deck.sizes.degree,
            quorum: deck.sizes.quorum,
        });
        self.deck = Some(deck);
        self.start_round(now);
    }

    fn start_round(&mut self, now: Millis) {
        if self.round.is_some() || self.setup.is_some() || self.question.is_none() {
            return;
        }
        if self.deck.as_ref().is_none_or(|d| d.next_slot >= d.slots) {
            return self.open_deck(now);
        }
        let (Some(deck), Some((query, words))) = (&mut self.deck, self.question.take()) else { return };
        let slot = deck.next_slot;
        deck.next_slot += 1;
        let previous = (self.previous_context, self.previous_total);
        let (round, step) = Round::open(&self.env, deck, slot, query, words, previous);
        self.round = Some(round);
        self.take(step, now);
    }
}
