//! The one federation in memory: an aggregator and its sites in one thread and in virtual time, from a seed.
//!
//! The network delays, loses and duplicates frames as told; processes die and come back from their journals; a hook sees
//! every frame on the wire and may drop or replace it. Nothing here sleeps, and the same seed gives the same run. Every party
//! draws from a generator of its own ([`rng_of`]), so that a run that was written down can be played again for one of them.
//!
//! It is one file because it is one loop: whoever doubts a test reads here in which order time, loss and parties move.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
    time::{Duration, Instant},
};

use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use rand_core::Rng;
pub use veilsum_proto::testing::Kit;
use veilsum_proto::{
    Error,
    aggregator::{self, Aggregator, Event, Millis},
    identity::Identity,
    journal::Record,
    message::{Disclosure, Kind, kind_of},
    plan::Terms,
    policy::{self, Asked, Policy, Request, Spent},
    release::{OwnBlock, Standing},
    site::{self, Site},
    suite::Hash,
};

use crate::wire::{WORDS, sum, value};

/// How the network treats frames; probabilities in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// A frame is delivered after 1 to this many milliseconds more.
    pub delay: u64,
    /// A frame is lost.
    pub loss: u64,
    /// A frame arrives twice.
    pub duplicates: u64,
}

/// A frame on the wire, as the hook sees it.
pub struct Wire<'a> {
    /// The site at one end; the aggregator is at the other.
    pub site: u16,
    /// Whether the site sent it.
    pub from_site: bool,
    /// Its kind.
    pub kind: Kind,
    /// All of it.
    pub bytes: &'a [u8],
    /// Its label, where a site sent it.
    pub discloses: Option<Disclosure>,
}

/// What the hook wants done with a frame.
pub enum Verdict {
    /// Deliver it.
    Pass,
    /// Lose it.
    Drop,
    /// Lose it, and the site's process with it; it stays away.
    Vanish,
    /// Lose it and the site's process; the process comes back from its journal at once.
    Crash,
    /// Deliver other bytes.
    Replace(Vec<u8>),
    /// Deliver these frames, one after the other.
    Frames(Vec<Vec<u8>>),
}

/// Sees every frame as it is sent.
pub type Hook = Box<dyn FnMut(&Wire<'_>) -> Verdict>;
/// Computes a site's answer to a query.
pub type Answer = Box<dyn FnMut(u16, &Asked) -> Vec<u64>>;
/// Says whether a site answers a query.
pub type Manner = Box<dyn FnMut(u16, &Asked) -> Reply>;

/// What a site's application does with a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// It asks its policy, and answers.
    Answer,
    /// It refuses under this rule.
    Refuse(&'static str),
    /// It says nothing.
    Silence,
}

/// A frame on the wire, kept.
#[derive(Clone)]
pub struct Frame {
    /// The site at one end.
    pub site: u16,
    /// Whether the site sent it.
    pub from_site: bool,
    /// Its kind, as it was sent.
    pub kind: Kind,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What a site was told.
#[derive(Clone)]
pub enum Told {
    /// This frame.
    Frame(Vec<u8>),
    /// Its application answers, or refuses, the question asked last.
    Answer,
}

/// What the aggregator was told.
#[derive(Clone)]
pub enum Heard {
    /// A site is there.
    Attached(u16),
    /// A site sent this frame.
    Frame(u16, Vec<u8>),
    /// Its application asks this, for [`WORDS`] words.
    Ask(Vec<u8>),
    /// Time passes.
    Tick,
}

/// A run written down.
#[derive(Clone, Default)]
pub struct Notes {
    /// What was sent, in order, before the hook changed anything.
    pub frames: Vec<Frame>,
    /// What every site was told, in order.
    pub told: Vec<Vec<Told>>,
    /// When the aggregator was told what.
    pub heard: Vec<(u64, Heard)>,
}

/// The place of the aggregator, and of the network, where sites have their numbers.
pub const HUB: u16 = u16::MAX;
const NETWORK: u16 = u16::MAX - 1;

/// Where a party's randomness comes from.
pub fn rng_of(seed: u64, party: u16) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed << 16 | u64::from(party))
}

/// Time on the wall that parties took, by the kind of the frame that they worked on; nothing for anything else.
pub type Took = BTreeMap<Option<Kind>, Duration>;

/// A total's words, the sites it covers, and those asked that it does not cover.
pub type Total = (Vec<u64>, Vec<u16>, Vec<u16>);

/// When, in which order, and where in the store.
type Due = (u64, u64, usize);

enum Happening {
    ToSite(u16, Arc<Vec<u8>>),
    ToAggregator(u16, Arc<Vec<u8>>),
    Attach(u16),
    Detach(u16),
    Return(u16),
    Wake,
}

/// A site's process dies. Every effect of a site (an entry made durable, a frame sent) has two boundaries, one before it
/// and one after it; they are numbered from 0 over all of its processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Whose process.
    pub site: u16,
    /// At which of its boundaries.
    pub boundary: usize,
    /// Milliseconds until a process comes back from the journal; none comes where this is nothing.
    pub away: Option<u64>,
}

/// The block that a data set belongs to, and the run and slot that fixed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// The block, with the versions at the last answer.
    pub block: OwnBlock,
    /// Of the first answer.
    pub by: (Hash, (u32, u16)),
}

/// The federation.
pub struct World {
    /// Who is who.
    pub kit: Kit,
    /// How frames travel.
    pub network: Network,
    /// Milliseconds more that every frame of or to a site takes: a slow site.
    pub slow: Vec<u64>,
    /// Sees every frame.
    pub hook: Hook,
    /// Computes answers.
    pub answer: Answer,
    /// Every event of the aggregator, in order.
    pub events: Vec<Event>,
    /// Every error of a site, in order.
    pub site_errors: Vec<(u16, Error)>,
    /// What each site wrote before it sent, in order.
    pub journals: Vec<Vec<Record>>,
    /// What each site's application holds of its data set: the block with the versions at the last answer, and the run and
    /// slot that fixed it.
    pub fixed: Vec<Option<Fixed>>,
    /// Whether applications hold the block of their data set and state it when a deck is made; else only the site's own state
    /// machine does.
    pub remembers: bool,
    /// How often each site's rows have changed; set it before the first step.
    pub versions: Vec<u32>,
    /// Every undone slot: the site and the slot.
    pub undone: Vec<(u16, (u32, u16))>,
    /// Every total that a site recomputed: the site, the words, over whom.
    pub opened: Vec<(u16, Vec<u64>, Vec<u16>)>,
    /// Frames a site sent, by kind.
    pub sent_by_sites: Vec<(u16, Kind, usize)>,
    /// What the aggregator made durable, in order.
    pub log: Vec<aggregator::Record>,
    /// Boundaries of the aggregator, as those of a site, at which its process dies; another takes the run up at once.
    pub hub_crashes: Vec<usize>,
    /// Boundaries that the aggregator has passed.
    pub hub_boundaries: usize,
    /// Where processes of sites are to die.
    pub crashes: Vec<Crash>,
    /// Boundaries that each site has passed.
    pub boundaries: Vec<usize>,
    /// A site comes back without so many of the last entries of its journal, as from an older copy.
    pub forgets: usize,
    /// Whether frames that reach the aggregator at one time are given to it at once, as a busy process finds them.
    pub together: bool,
    /// Whether a site answers.
    pub manner: Manner,
    /// The run, where it is written down.
    pub notes: Option<Notes>,
    /// What the aggregator took.
    pub hub_took: Took,
    /// What all sites took together.
    pub sites_took: Took,
    /// Bytes that reached sites.
    pub received: u64,
    /// The sites' processes.
    pub sites: Vec<Option<Site>>,
    /// The aggregator's process.
    pub aggregator: Aggregator,
    rngs: Vec<ChaCha20Rng>,
    hub_rng: ChaCha20Rng,
    rng: ChaCha20Rng,
    now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<Due>>,
    store: Vec<Option<Happening>>,
    wake_at: Option<u64>,
    /// Events that [`World::until`] has looked at.
    looked_at: usize,
    /// All questions of the application, all their totals, and how many of them the aggregator of now has told.
    asked: Vec<(Vec<u8>, usize)>,
    told: Vec<Event>,
    told_again: usize,
}

/// Virtual milliseconds after which a run counts as hung.
const TOO_LONG: u64 = 100_000_000;

impl World {
    /// `n` sites on a perfect network.
    pub fn new(kit: Kit, seed: u64) -> World {
        let mut hub_rng = rng_of(seed, HUB);
        let n = kit.roster.sites.len();
        let sites = (0..n as u16).map(|i| Some(Site::new(kit.site(i)).expect("the kit's site"))).collect();
        let aggregator = Aggregator::new(kit.coordinator(), Millis(0), &mut hub_rng).expect("the kit's coordinator");
        let mut world = World {
            kit,
            network: Network::default(),
            slow: vec![0; n],
            hook: Box::new(|_| Verdict::Pass),
            answer: Box::new(|_, asked| vec![0; asked.words]),
            events: Vec::new(),
            site_errors: Vec::new(),
            journals: vec![Vec::new(); n],
            fixed: vec![None; n],
            remembers: true,
            versions: vec![0; n],
            undone: Vec::new(),
            opened: Vec::new(),
            sent_by_sites: Vec::new(),
            log: Vec::new(),
            hub_crashes: Vec::new(),
            hub_boundaries: 0,
            asked: Vec::new(),
            told: Vec::new(),
            told_again: 0,
            crashes: Vec::new(),
            boundaries: vec![0; n],
            forgets: 0,
            together: false,
            manner: Box::new(|_, _| Reply::Answer),
            notes: None,
            hub_took: Took::new(),
            sites_took: Took::new(),
            received: 0,
            sites,
            aggregator,
            rngs: (0..n as u16).map(|i| rng_of(seed, i)).collect(),
            hub_rng,
            rng: rng_of(seed, NETWORK),
            now: 0,
            order: 0,
            queue: BinaryHeap::new(),
            store: Vec::new(),
            wake_at: None,
            looked_at: 0,
        };
        for i in 0..n as u16 {
            world.schedule(1, Happening::Attach(i));
        }
        world
    }

    /// `n` sites, all there, that answer with [`value`] and remember nothing of other runs; the run is written down.
    pub fn noted(n: usize, seed: u64, change: impl FnOnce(&mut Terms)) -> World {
        let mut world = World::new(Kit::new(n, change), seed);
        world.answer = Box::new(|site, asked| (0..asked.words).map(|k| value(site, &asked.query, k)).collect());
        world.notes = Some(Notes { told: vec![Vec::new(); n], ..Notes::default() });
        world.remembers = false;
        world.queue.clear();
        (0..n as u16).for_each(|i| world.tell_hub(aggregator::Input::Attached(i)));
        world
    }

    /// Lets what a closure gives arrive in place of every frame.
    pub fn tap(&mut self, mut tap: impl FnMut(&Frame) -> Vec<Vec<u8>> + 'static) {
        self.hook = Box::new(move |wire| {
            let Wire { site, from_site, kind, bytes, .. } = *wire;
            Verdict::Frames(tap(&Frame { site, from_site, kind, bytes: bytes.to_vec() }))
        });
    }

    /// All frames of a run that is written down.
    pub fn seen(&self) -> &[Frame] {
        self.notes.as_ref().map_or(&[], |notes| &notes.frames)
    }

    /// The identity of a site, for a test that plays that site.
    pub fn identity(&self, site: u16) -> Arc<Identity> {
        self.kit.identities[usize::from(site) + 2].clone()
    }

    /// Gives a frame to a site or to the aggregator, as if it had come over the wire.
    pub fn inject(&mut self, site: u16, from_site: bool, bytes: &[u8]) {
        if from_site {
            self.tell_hub(aggregator::Input::Message { from: site, bytes });
        } else {
            self.tell_site(site, bytes);
        }
        self.drain_aggregator();
    }

    /// Asks one question: the total and its cohort.
    ///
    /// # Errors
    /// As [`World::until`].
    pub fn total(&mut self, query: &[u8]) -> Result<(Vec<u64>, Vec<u16>), Error> {
        self.ask(query, WORDS).map(|(values, cohort, _)| (values, cohort))
    }

    /// Asks, and checks that the total is that of its cohort; the cohort.
    ///
    /// # Panics
    /// Where there is no total, or a wrong one.
    pub fn ask_exact(&mut self, query: &[u8]) -> Vec<u16> {
        let found = self.total(query);
        let (values, cohort) =
            found.unwrap_or_else(|e| panic!("{e}\n{:?}\n{:?}", self.events, self.site_errors.first()));
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

    /// The aggregator's process is told something now.
    pub fn tell_hub(&mut self, input: aggregator::Input<'_>) {
        if let Some(notes) = &mut self.notes {
            let heard = match &input {
                aggregator::Input::Attached(site) => Some(Heard::Attached(*site)),
                aggregator::Input::Message { from, bytes } => Some(Heard::Frame(*from, bytes.to_vec())),
                aggregator::Input::Ask { query, .. } => Some(Heard::Ask(query.clone())),
                aggregator::Input::Tick => Some(Heard::Tick),
                _ => None,
            };
            notes.heard.extend(heard.map(|heard| (self.now, heard)));
        }
        let kind = match &input {
            aggregator::Input::Message { bytes, .. } => kind_of(bytes),
            aggregator::Input::Messages(frames) => frames.first().and_then(|(_, bytes)| kind_of(bytes)),
            _ => None,
        };
        let began = Instant::now();
        self.aggregator.handle(input, Millis(self.now));
        *self.hub_took.entry(kind).or_default() += began.elapsed();
    }

    fn tell_site(&mut self, i: u16, bytes: &[u8]) {
        if let (Some(notes), Some(_)) = (&mut self.notes, &self.sites[usize::from(i)]) {
            notes.told[usize::from(i)].push(Told::Frame(bytes.to_vec()));
        }
        self.received += bytes.len() as u64;
        self.feed_site(i, site::Input::Message(bytes), kind_of(bytes));
        self.drain_site(i);
    }

    fn note(&mut self, site: u16, from_site: bool, kind: Kind, bytes: &[u8]) {
        if let Some(notes) = &mut self.notes {
            notes.frames.push(Frame { site, from_site, kind, bytes: bytes.to_vec() });
        }
    }

    fn schedule(&mut self, delay: u64, what: Happening) {
        self.store.push(Some(what));
        self.order += 1;
        self.queue.push(Reverse((self.now + delay, self.order, self.store.len() - 1)));
    }

    fn chance(&mut self, thousandths: u64) -> bool {
        thousandths > 0 && self.rng.next_u64() % 1000 < thousandths
    }

    fn transmit(&mut self, site: u16, mut make: impl FnMut() -> Happening) {
        if self.chance(self.network.loss) {
            return;
        }
        let copies = 1 + u64::from(self.chance(self.network.duplicates));
        for _ in 0..copies {
            let delay = 1
                + self.slow[usize::from(site)]
                + if self.network.delay > 0 { self.rng.next_u64() % self.network.delay } else { 0 };
            self.schedule(delay, make());
        }
    }

    /// Stops a site's process; `back` restores it from its journal.
    pub fn kill(&mut self, site: u16, back: bool) {
        self.sites[usize::from(site)] = None;
        self.schedule(0, Happening::Detach(site));
        if back {
            self.restore(site);
        }
    }

    /// A new process of a site, from the bytes of its journal.
    fn restore(&mut self, site: u16) {
        let kept = self.journals[usize::from(site)].len().saturating_sub(self.forgets);
        self.journals[usize::from(site)].truncate(kept);
        let entries: Result<Vec<Record>, Error> =
            self.journals[usize::from(site)].iter().map(|r| Record::from_bytes(&r.to_bytes())).collect();
        match entries.and_then(|entries| Site::restore(self.kit.site(site), entries)) {
            Ok(s) => {
                self.sites[usize::from(site)] = Some(s);
                self.tell_standing(site);
                self.schedule(1, Happening::Attach(site));
            }
            Err(e) => self.site_errors.push((site, e)),
        }
    }

    /// True where the site's process dies here.
    fn dies(&mut self, site: u16) -> bool {
        let number = self.boundaries[usize::from(site)];
        self.boundaries[usize::from(site)] += 1;
        let Some(crash) = self.crashes.iter().find(|c| c.site == site && c.boundary == number).copied() else {
            return false;
        };
        self.kill(site, false);
        if let Some(away) = crash.away {
            self.schedule(away.max(1), Happening::Return(site));
        }
        true
    }

    /// What the application of a site holds before a run begins, from another run.
    pub fn has_fixed(&mut self, site: u16, fixed: Option<Fixed>) {
        self.fixed[usize::from(site)] = fixed;
        self.tell_standing(site);
    }

    fn tell_standing(&mut self, i: u16) {
        let k = usize::from(i);
        let block = self.fixed[k].as_ref().map(|fixed| fixed.block.id);
        let standing = Standing { block, version: self.versions[k] };
        if let Some(site) = &mut self.sites[k] {
            site.set_standing(standing);
        }
    }

    /// The application of a site answers: its block is fixed before its words leave ([REL-5]).
    fn answers(&mut self, i: u16, asked: &Asked, reply: Reply) -> site::Input<'static> {
        if let Reply::Refuse(rule) = reply {
            return site::Input::Refuse { context: asked.context, rule: rule.to_owned() };
        }
        let (kit, k) = (&self.kit, usize::from(i));
        let request = Request { before: self.fixed[k].as_ref().map(|fixed| &fixed.block), ..Request::default() };
        let policy = Policy::only(kit.floor.clone());
        match policy::decide(&kit.terms, &policy, asked, &request, &Spent::default()) {
            Ok(consent) => {
                if self.remembers {
                    let by = self.fixed[k].take().map_or((asked.run, asked.slot), |fixed| fixed.by);
                    self.fixed[k] = Some(Fixed { block: asked.own.clone(), by });
                    self.tell_standing(i);
                }
                site::Input::Contribute { consent, values: (self.answer)(i, asked) }
            }
            Err(e) => {
                self.site_errors.push((i, e.clone()));
                site::Input::Refuse {
                    context: asked.context,
                    rule: e.rule().map_or_else(String::new, |r| r.0.to_owned()),
                }
            }
        }
    }

    fn drain_site(&mut self, i: u16) {
        while let Some(output) = self.sites[usize::from(i)].as_mut().and_then(Site::poll) {
            let effect = !matches!(output, site::Output::Event(_));
            if effect && self.dies(i) {
                return;
            }
            match output {
                site::Output::Persist(record) => self.journals[usize::from(i)].push(record),
                site::Output::Rewrite(records) => self.journals[usize::from(i)] = records,
                site::Output::Send { bytes, discloses } => {
                    let kind = kind_of(&bytes).expect("a site sends whole frames");
                    self.note(i, true, kind, &bytes);
                    let wire = Wire { site: i, from_site: true, kind, bytes: &bytes, discloses: Some(discloses) };
                    let frames = match (self.hook)(&wire) {
                        Verdict::Pass => vec![bytes],
                        Verdict::Drop => Vec::new(),
                        Verdict::Vanish => return self.kill(i, false),
                        Verdict::Crash => return self.kill(i, true),
                        Verdict::Replace(other) => vec![Arc::new(other)],
                        Verdict::Frames(frames) => frames.into_iter().map(Arc::new).collect(),
                    };
                    for bytes in frames {
                        self.sent_by_sites.push((i, kind, bytes.len()));
                        self.transmit(i, || Happening::ToAggregator(i, bytes.clone()));
                    }
                }
                site::Output::Event(site::Event::Asked(asked)) => {
                    let reply = (self.manner)(i, &asked);
                    if reply == Reply::Silence {
                        continue;
                    }
                    if let Some(notes) = &mut self.notes {
                        notes.told[usize::from(i)].push(Told::Answer);
                    }
                    let input = self.answers(i, &asked, reply);
                    self.feed_site(i, input, Some(Kind::MaskedInput));
                }
                site::Output::Event(site::Event::Undone { slot, .. }) => {
                    let (k, run) = (usize::from(i), self.sites[usize::from(i)].as_ref().and_then(Site::run));
                    self.undone.push((i, slot));
                    if self.fixed[k].as_ref().is_some_and(|fixed| Some(fixed.by.0) == run && fixed.by.1 == slot) {
                        self.has_fixed(i, None);
                    }
                }
                site::Output::Event(site::Event::Opened { values, cohort, .. }) => {
                    self.opened.push((i, values, cohort));
                }
                site::Output::Event(_) => {}
            }
            if effect && self.dies(i) {
                return;
            }
        }
    }

    fn feed_site(&mut self, i: u16, input: site::Input<'_>, kind: Option<Kind>) {
        let k = usize::from(i);
        let Some(site) = &mut self.sites[k] else { return };
        let began = Instant::now();
        if let Err(e) = site.handle(input, &mut self.rngs[k]) {
            self.site_errors.push((i, e));
        }
        *self.sites_took.entry(kind).or_default() += began.elapsed();
    }

    fn drain_aggregator(&mut self) {
        while let Some(output) = self.aggregator.poll() {
            let effect = !matches!(output, aggregator::Output::Event(_));
            if effect && self.hub_dies() {
                continue;
            }
            match output {
                aggregator::Output::Send { to, bytes } => {
                    let kind = kind_of(&bytes).expect("an aggregator sends whole frames");
                    self.note(to, false, kind, &bytes);
                    let wire = Wire { site: to, from_site: false, kind, bytes: &bytes, discloses: None };
                    let frames = match (self.hook)(&wire) {
                        Verdict::Pass => vec![bytes],
                        Verdict::Drop => Vec::new(),
                        Verdict::Vanish => {
                            self.kill(to, false);
                            Vec::new()
                        }
                        Verdict::Crash => {
                            self.kill(to, true);
                            Vec::new()
                        }
                        Verdict::Replace(other) => vec![Arc::new(other)],
                        Verdict::Frames(frames) => frames.into_iter().map(Arc::new).collect(),
                    };
                    for bytes in frames {
                        self.transmit(to, || Happening::ToSite(to, bytes.clone()));
                    }
                }
                aggregator::Output::Persist(record) => self.log.push(record),
                aggregator::Output::Event(event) => {
                    if matches!(event, Event::Total { .. }) {
                        self.told_again += 1;
                        if let Some(before) = self.told.get(self.told_again - 1) {
                            assert_eq!(*before, event, "another total than the process before told");
                            continue;
                        }
                        self.told.push(event.clone());
                    }
                    self.events.push(event);
                }
            }
            if effect {
                self.hub_dies();
            }
        }
        if let Some(Millis(at)) = self.aggregator.next_wake()
            && self.wake_at.is_none_or(|w| at < w || w <= self.now)
        {
            self.wake_at = Some(at);
            let delay = at.saturating_sub(self.now);
            self.schedule(delay, Happening::Wake);
        }
    }

    /// True where the aggregator's process dies here. The next one takes the run up from what is durable, its application
    /// puts every question again, and the sites dial again.
    fn hub_dies(&mut self) -> bool {
        let number = self.hub_boundaries;
        self.hub_boundaries += 1;
        if !self.hub_crashes.contains(&number) {
            return false;
        }
        let entries = self.log.iter().map(|r| aggregator::Record::from_bytes(&r.to_bytes()).expect("an own entry"));
        let now = Millis(self.now);
        let next = match self.log.is_empty() {
            true => Aggregator::new(self.kit.coordinator(), now, &mut self.hub_rng),
            false => Aggregator::resume(self.kit.coordinator(), entries, now),
        };
        self.aggregator = next.expect("a run that can be taken up");
        self.told_again = 0;
        for (query, words) in self.asked.clone() {
            self.aggregator.handle(aggregator::Input::Ask { query, words }, now);
        }
        for site in 0..self.sites.len() as u16 {
            if self.sites[usize::from(site)].is_some() {
                self.schedule(2, Happening::Attach(site));
            }
        }
        true
    }

    fn step(&mut self) -> bool {
        let Some(Reverse((at, _, index))) = self.queue.pop() else { return false };
        self.now = self.now.max(at);
        match self.store[index].take() {
            Some(Happening::ToSite(i, bytes)) => self.tell_site(i, &bytes),
            Some(Happening::ToAggregator(from, bytes)) if self.together => {
                let mut frames = vec![(from, bytes)];
                while let Some(next) = self.next_to_hub(at) {
                    frames.push(next);
                }
                let frames: Vec<(u16, &[u8])> = frames.iter().map(|(from, bytes)| (*from, &bytes[..])).collect();
                self.tell_hub(aggregator::Input::Messages(&frames));
            }
            Some(Happening::ToAggregator(from, bytes)) => {
                self.tell_hub(aggregator::Input::Message { from, bytes: &bytes });
            }
            Some(Happening::Attach(i)) => self.tell_hub(aggregator::Input::Attached(i)),
            Some(Happening::Detach(i)) => self.tell_hub(aggregator::Input::Detached(i)),
            Some(Happening::Return(i)) => self.restore(i),
            Some(Happening::Wake) => self.tell_hub(aggregator::Input::Tick),
            None => {}
        }
        self.drain_aggregator();
        self.now < TOO_LONG
    }

    /// The frame that reaches the aggregator next, where nothing else comes before it and it comes at this time.
    fn next_to_hub(&mut self, at: u64) -> Option<(u16, Arc<Vec<u8>>)> {
        let Reverse((next, _, index)) = self.queue.peek()?;
        let (index, due) = (*index, *next == at);
        if !due || !matches!(self.store[index], Some(Happening::ToAggregator(..))) {
            return None;
        }
        self.queue.pop();
        match self.store[index].take() {
            Some(Happening::ToAggregator(from, bytes)) => Some((from, bytes)),
            _ => None,
        }
    }

    /// Runs to the next event of the aggregator for which `wanted` holds.
    ///
    /// # Errors
    /// The error with which the run failed, or a quorum error after an absurdly long virtual time.
    pub fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<Event, Error> {
        self.drain_aggregator();
        loop {
            while let Some(event) = self.events.get(self.looked_at) {
                self.looked_at += 1;
                if let Event::Failed(e) = event {
                    return Err(e.clone());
                }
                if wanted(event) {
                    return Ok(event.clone());
                }
            }
            if !self.step() {
                return Err(Error::ApiMisuse("nothing more can happen: the federation hangs"));
            }
        }
    }

    /// Asks one question and runs until its total.
    ///
    /// # Errors
    /// As [`World::until`].
    pub fn ask(&mut self, query: &[u8], words: usize) -> Result<Total, Error> {
        self.asked.push((query.to_vec(), words));
        self.tell_hub(aggregator::Input::Ask { query: query.to_vec(), words });
        match self.until(|e| matches!(e, Event::Total { .. }))? {
            Event::Total { values, cohort, missing } => Ok((values, cohort, missing)),
            _ => Err(Error::ApiMisuse("another event than the total")),
        }
    }

    /// Says that no question follows, and delivers what is under way.
    pub fn close(&mut self) {
        self.tell_hub(aggregator::Input::Close);
        self.drain_aggregator();
        let until = self.now + 1_000 + self.network.delay;
        while self.queue.peek().is_some_and(|Reverse((at, _, _))| *at <= until) {
            self.step();
        }
    }

    /// The session of this world, with which a test can sign frames as somebody else.
    pub fn session(&self) -> Hash {
        veilsum_proto::message::session(&self.kit.terms.hash(), &self.kit.roster.hash(), self.kit.role)
    }

    /// Virtual milliseconds since the start.
    pub fn now(&self) -> u64 {
        self.now
    }
}
