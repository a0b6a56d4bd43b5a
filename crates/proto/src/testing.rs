//! A whole federation in one thread and in virtual time, from a seed; for tests and simulations only.
//!
//! The network delays, loses and duplicates frames as told; sites crash and come back from their journals; a hook sees
//! every frame on the wire and may drop or replace it. Nothing here sleeps, and the same seed gives the same run.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
};

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use crate::{
    Error,
    aggregator::{self, Aggregator, AggregatorConfig, Millis, Timing},
    identity::Identity,
    journal::Record,
    message::{Disclosure, Kind, kind_of},
    plan::Terms,
    policy::{self, Asked, Floor, Policy, Request, Spent},
    release::{OwnBlock, Standing},
    roster::{Member, PartyId, Roster},
    site::{self, Site, SiteConfig},
    suite::Hash,
};

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
}

/// Sees every frame as it is sent.
pub type Hook = Box<dyn FnMut(&Wire<'_>) -> Verdict>;
/// Computes a site's answer to a query.
pub type Answer = Box<dyn FnMut(u16, &Asked) -> Vec<u64>>;

/// A total's words, the sites it covers, and those asked that it does not cover.
pub type Total = (Vec<u64>, Vec<u16>, Vec<u16>);

/// When, in which order, and where in the store.
type Due = (u64, u64, usize);

enum Happening {
    ToSite(u16, Arc<Vec<u8>>),
    ToAggregator(u16, Vec<u8>),
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

/// A roster, its identities and terms for `n` sites.
pub struct Kit {
    /// Coordinator, intermediary, then the sites.
    pub identities: Vec<Arc<Identity>>,
    /// The roster.
    pub roster: Arc<Roster>,
    /// The terms.
    pub terms: Arc<Terms>,
    /// Every site's own floor.
    pub floor: Floor,
    /// Which of the two aggregators it is about.
    pub role: PartyId,
}

impl Kit {
    /// As [`Kit::new`] with the default floor and blocks of at least `size` sites; 0 makes one of all.
    pub fn with_blocks(n: usize, size: u16, change: impl FnOnce(&mut Terms)) -> Kit {
        let kit = Kit::new(n, |terms| {
            terms.block_size = size;
            change(terms);
        });
        Kit { floor: Floor::default(), ..kit }
    }

    /// Deterministic identities; `change` adjusts the default terms. Every site is a block by itself, so that any one may
    /// be lost.
    pub fn new(n: usize, change: impl FnOnce(&mut Terms)) -> Kit {
        let mut rng = ChaCha20Rng::seed_from_u64(n as u64);
        let identities: Vec<Arc<Identity>> = (0..n + 2).map(|_| Arc::new(Identity::generate(&mut rng))).collect();
        let member = |i: usize, name: String| Member { name, key: identities[i].public(), address: String::new() };
        let roster = Roster {
            name: "test".into(),
            coordinator: member(0, "hub".into()),
            intermediary: member(1, "counter".into()),
            sites: (0..n).map(|i| member(i + 2, format!("site-{i}"))).collect(),
        };
        let mut terms = Terms {
            roster: roster.hash(),
            min_cohort: 3,
            threshold: 0,
            colluders: 0,
            block_size: 1,
            slots: 8,
            max_rows: 1_000,
            min_total_rows: 0,
            opening: true,
            application: Vec::new(),
        };
        change(&mut terms);
        let floor = Floor { contributors: 1, ..Floor::default() };
        Kit { identities, roster: Arc::new(roster), terms: Arc::new(terms), floor, role: PartyId::Coordinator }
    }

    /// The configuration of site `i` towards the aggregator.
    pub fn site(&self, i: u16) -> SiteConfig {
        SiteConfig {
            identity: self.identities[usize::from(i) + 2].clone(),
            roster: self.roster.clone(),
            terms: self.terms.clone(),
            floor: self.floor.clone(),
            aggregator: self.role,
        }
    }

    /// The aggregator's configuration.
    pub fn coordinator(&self) -> AggregatorConfig {
        AggregatorConfig {
            identity: self.identities[usize::from(self.role == PartyId::Intermediary)].clone(),
            roster: self.roster.clone(),
            terms: self.terms.clone(),
            role: self.role,
            timing: Timing { join: 60_000, phase: 20_000, grace: 2_000, resend: 500 },
            slots: self.terms.slots,
        }
    }
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
    pub events: Vec<aggregator::Event>,
    /// Every error of a site, in order.
    pub site_errors: Vec<(u16, Error)>,
    /// What each site wrote before it sent, in order.
    pub journals: Vec<Vec<Record>>,
    /// What each site's application holds of its data set: the block with the versions at the last answer, and the run and
    /// slot that fixed it.
    pub fixed: Vec<Option<Fixed>>,
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
    sites: Vec<Option<Site>>,
    aggregator: Aggregator,
    rng: ChaCha20Rng,
    now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<Due>>,
    store: Vec<Option<Happening>>,
    wake_at: Option<u64>,
    inbox: VecDeque<aggregator::Event>,
    /// All questions of the application, all their totals, and how many of them the aggregator of now has told.
    asked: Vec<(Vec<u8>, usize)>,
    told: Vec<aggregator::Event>,
    told_again: usize,
}

/// Virtual milliseconds after which a run counts as hung.
const TOO_LONG: u64 = 100_000_000;

impl World {
    /// `n` sites on a perfect network.
    pub fn new(kit: Kit, seed: u64) -> World {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let n = kit.roster.sites.len();
        let sites = (0..n as u16).map(|i| Some(Site::new(kit.site(i)).expect("the kit's site"))).collect();
        let aggregator = Aggregator::new(kit.coordinator(), Millis(0), &mut rng).expect("the kit's coordinator");
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
            sites,
            aggregator,
            rng,
            now: 0,
            order: 0,
            queue: BinaryHeap::new(),
            store: Vec::new(),
            wake_at: None,
            inbox: VecDeque::new(),
        };
        for i in 0..n as u16 {
            world.schedule(1, Happening::Attach(i));
        }
        world
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
    fn answers(&mut self, i: u16, asked: &Asked) -> site::Input<'static> {
        let (kit, k) = (&self.kit, usize::from(i));
        let request = Request { before: self.fixed[k].as_ref().map(|fixed| &fixed.block), ..Request::default() };
        let policy = Policy::only(kit.floor.clone());
        match policy::decide(&kit.terms, &policy, asked, &request, &Spent::default()) {
            Ok(consent) => {
                let by = self.fixed[k].take().map_or((asked.run, asked.slot), |fixed| fixed.by);
                self.fixed[k] = Some(Fixed { block: asked.own.clone(), by });
                self.tell_standing(i);
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
                    let wire = Wire { site: i, from_site: true, kind, bytes: &bytes, discloses: Some(discloses) };
                    let bytes = match (self.hook)(&wire) {
                        Verdict::Pass => bytes,
                        Verdict::Drop if self.dies(i) => return,
                        Verdict::Drop => continue,
                        Verdict::Vanish => return self.kill(i, false),
                        Verdict::Crash => return self.kill(i, true),
                        Verdict::Replace(other) => other,
                    };
                    self.sent_by_sites.push((i, kind, bytes.len()));
                    self.transmit(i, || Happening::ToAggregator(i, bytes.clone()));
                }
                site::Output::Event(site::Event::Asked(asked)) => {
                    let input = self.answers(i, &asked);
                    self.feed_site(i, input);
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

    fn feed_site(&mut self, i: u16, input: site::Input<'_>) {
        let Some(site) = &mut self.sites[usize::from(i)] else { return };
        if let Err(e) = site.handle(input, &mut self.rng) {
            self.site_errors.push((i, e));
        }
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
                    let wire = Wire { site: to, from_site: false, kind, bytes: &bytes, discloses: None };
                    let bytes = match (self.hook)(&wire) {
                        Verdict::Pass => Some(bytes),
                        Verdict::Drop => None,
                        Verdict::Vanish => {
                            self.kill(to, false);
                            None
                        }
                        Verdict::Crash => {
                            self.kill(to, true);
                            None
                        }
                        Verdict::Replace(other) => Some(Arc::new(other)),
                    };
                    if let Some(bytes) = bytes {
                        self.transmit(to, || Happening::ToSite(to, bytes.clone()));
                    }
                }
                aggregator::Output::Persist(record) => self.log.push(record),
                aggregator::Output::Event(event) => {
                    if matches!(event, aggregator::Event::Total { .. }) {
                        self.told_again += 1;
                        if let Some(before) = self.told.get(self.told_again - 1) {
                            assert_eq!(*before, event, "another total than the process before told");
                            continue;
                        }
                        self.told.push(event.clone());
                    }
                    self.events.push(event.clone());
                    self.inbox.push_back(event);
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
            true => Aggregator::new(self.kit.coordinator(), now, &mut self.rng),
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
        let now = Millis(self.now);
        match self.store[index].take() {
            Some(Happening::ToSite(i, bytes)) => {
                self.feed_site(i, site::Input::Message(&bytes));
                self.drain_site(i);
            }
            Some(Happening::ToAggregator(from, bytes)) => {
                self.aggregator.handle(aggregator::Input::Message { from, bytes: &bytes }, now);
            }
            Some(Happening::Attach(i)) => self.aggregator.handle(aggregator::Input::Attached(i), now),
            Some(Happening::Detach(i)) => self.aggregator.handle(aggregator::Input::Detached(i), now),
            Some(Happening::Return(i)) => self.restore(i),
            Some(Happening::Wake) => self.aggregator.handle(aggregator::Input::Tick, now),
            None => {}
        }
        self.drain_aggregator();
        self.now < TOO_LONG
    }

    /// Runs until the aggregator's next event for which `wanted` holds.
    ///
    /// # Errors
    /// The error with which the run failed, or a quorum error after an absurdly long virtual time.
    pub fn until(&mut self, wanted: impl Fn(&aggregator::Event) -> bool) -> Result<aggregator::Event, Error> {
        self.drain_aggregator();
        loop {
            while let Some(event) = self.inbox.pop_front() {
                if let aggregator::Event::Failed(e) = event {
                    return Err(e);
                }
                if wanted(&event) {
                    return Ok(event);
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
        let now = Millis(self.now);
        self.asked.push((query.to_vec(), words));
        self.aggregator.handle(aggregator::Input::Ask { query: query.to_vec(), words }, now);
        match self.until(|e| matches!(e, aggregator::Event::Total { .. }))? {
            aggregator::Event::Total { values, cohort, missing } => Ok((values, cohort, missing)),
            _ => Err(Error::ApiMisuse("another event than the total")),
        }
    }

    /// Says that no question follows, and delivers what is under way.
    pub fn close(&mut self) {
        let now = Millis(self.now);
        self.aggregator.handle(aggregator::Input::Close, now);
        self.drain_aggregator();
        let until = self.now + 1_000 + self.network.delay;
        while self.queue.peek().is_some_and(|Reverse((at, _, _))| *at <= until) {
            self.step();
        }
    }

    /// The session of this world, with which a test can sign frames as somebody else.
    pub fn session(&self) -> Hash {
        crate::message::session(&self.kit.terms.hash(), &self.kit.roster.hash(), self.kit.role)
    }

    /// Virtual milliseconds since the start.
    pub fn now(&self) -> u64 {
        self.now
    }
}
