//! The one federation in memory: an aggregator and its sites in one thread and in virtual time, from a seed.
//!
//! The network delays, loses and duplicates frames as told; processes die and come back from their journals; a hook sees
//! every frame on the wire and may drop or replace it. Nothing here sleeps, and the same seed gives the same run. Every party
//! draws from a generator of its own ([`rng_of`]), so that a run that was written down can be played again for one of them.
//!
//! Here is the one loop: whoever doubts a test reads in this file in which order time, loss and parties move. `parts` has what
//! the loop moves, and `sites` and `hub` what the parties do when it is their turn.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use veilsum_proto::aggregator::Event;

pub use crate::kit::Kit;
use crate::prelude::*;

mod hub;
mod parts;
mod sites;

pub use parts::{
    Answer, Book, Crash, Frame, HUB, Heard, Hook, Manner, Network, Notes, Reply, Told, Took, Total, Verdict, Wire,
    rng_of,
};
use parts::{Happening, NETWORK};

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
    /// Computes answers; [`value`] unless it is set.
    pub answer: Answer,
    /// Every event of the aggregator, in order.
    pub events: Vec<Event>,
    /// Every error of a site, in order.
    pub site_errors: Vec<(u16, Error)>,
    /// What each site wrote before it sent, in order.
    pub journals: Vec<Vec<Record>>,
    /// What each site's application has in its ledger.
    pub books: Vec<Book>,
    /// Whether applications keep a ledger and state how far it has come; else only the site's own state machine is there.
    pub remembers: bool,
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
    /// Whether what is written before it is sent is kept, to come back with.
    pub keeps: bool,
    /// Tells how much time parties have taken so far: on the wall, unless it is another clock.
    pub clock: fn() -> Duration,
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
    /// What each site gave away, and what it was asked, where that is watched.
    given: Vec<(Ledger, Vec<Asked>)>,
    rngs: Vec<ChaCha20Rng>,
    hub_rng: ChaCha20Rng,
    rng: ChaCha20Rng,
    now: u64,
    order: u64,
    /// What can happen next: when, and in which order.
    queue: BTreeMap<(u64, u64), Happening>,
    wake_at: Option<u64>,
    /// Events that [`World::until`] has looked at.
    looked_at: usize,
    /// All questions of the application, all their totals, and how many of them the aggregator of now has told.
    asked: Vec<(Vec<u8>, usize)>,
    told: Vec<Event>,
    told_again: usize,
}

fn wall() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Virtual milliseconds after which a run counts as hung.
const TOO_LONG: u64 = 100_000_000;

impl World {
    /// The kit's sites on a perfect network; they answer with [`value`].
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
            answer: Box::new(|site, asked| (0..asked.words).map(|k| value(site, &asked.query, k)).collect()),
            events: Vec::new(),
            site_errors: Vec::new(),
            journals: vec![Vec::new(); n],
            books: vec![Book::default(); n],
            remembers: true,
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
            keeps: true,
            clock: wall,
            hub_took: Took::new(),
            sites_took: Took::new(),
            received: 0,
            sites,
            aggregator,
            given: Vec::new(),
            rngs: (0..n as u16).map(|i| rng_of(seed, i)).collect(),
            hub_rng,
            rng: rng_of(seed, NETWORK),
            now: 0,
            order: 0,
            queue: BTreeMap::new(),
            wake_at: None,
            looked_at: 0,
        };
        for i in 0..n as u16 {
            world.schedule(1, Happening::Attach(i));
        }
        world
    }

    /// `n` sites, all there, that remember nothing of other runs; the run is written down.
    pub fn noted(n: usize, seed: u64, change: impl FnOnce(&mut Terms)) -> World {
        let mut world = World::new(Kit::new(n, change), seed);
        world.notes = Some(Notes { told: vec![Vec::new(); n], ..Notes::default() });
        world.remembers = false;
        world.queue.clear();
        (0..n as u16).for_each(|i| world.tell_hub(aggregator::Input::Attached(i)));
        world
    }

    /// From now on, all that sites give away is entered.
    pub fn watch(&mut self) {
        self.given = vec![(Ledger::default(), Vec::new()); self.sites.len()];
    }

    /// What left sites that are watched and may never leave.
    pub fn broken(&self) -> Vec<String> {
        self.given.iter().flat_map(|(ledger, _)| ledger.broken(self.sites.len())).collect()
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
            self.tell_hub(aggregator::Input::Messages(&[(site, bytes)]));
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

    /// Who was lost, and why.
    pub fn losses(&self) -> impl Iterator<Item = (u16, &Loss)> {
        self.events.iter().filter_map(|e| if let Event::Lost { site, why } = e { Some((*site, why)) } else { None })
    }

    /// Why a site was lost, in words.
    pub fn lost(&self, who: u16) -> Option<String> {
        self.losses().find(|(site, _)| *site == who).map(|(_, why)| why.to_string())
    }

    fn note(&mut self, site: u16, from_site: bool, kind: Kind, bytes: &[u8]) {
        if let Some(notes) = &mut self.notes {
            notes.frames.push(Frame { site, from_site, kind, bytes: bytes.to_vec() });
        }
    }

    /// What the hook lets arrive of a frame; nothing where the site's process dies of it.
    fn passes(&mut self, wire: &Wire<'_>, bytes: &Arc<Vec<u8>>) -> Option<Vec<Arc<Vec<u8>>>> {
        Some(match (self.hook)(wire) {
            Verdict::Pass => vec![bytes.clone()],
            Verdict::Drop => Vec::new(),
            dies @ (Verdict::Vanish | Verdict::Crash) => {
                self.kill(wire.site, matches!(dies, Verdict::Crash));
                return None;
            }
            Verdict::Replace(other) => vec![Arc::new(other)],
            Verdict::Frames(frames) => frames.into_iter().map(Arc::new).collect(),
        })
    }

    fn schedule(&mut self, delay: u64, what: Happening) {
        self.order += 1;
        self.queue.insert((self.now + delay, self.order), what);
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

    fn step(&mut self) -> bool {
        let Some(((at, _), what)) = self.queue.pop_first() else { return false };
        self.now = self.now.max(at);
        match what {
            Happening::ToSite(i, bytes) => self.tell_site(i, &bytes),
            Happening::ToAggregator(from, bytes) => {
                let mut frames = vec![(from, bytes)];
                while self.together
                    && let Some(next) = self.next_to_hub(at)
                {
                    frames.push(next);
                }
                let frames: Vec<(u16, &[u8])> = frames.iter().map(|(from, bytes)| (*from, &bytes[..])).collect();
                self.tell_hub(aggregator::Input::Messages(&frames));
            }
            Happening::Attach(i) => self.tell_hub(aggregator::Input::Attached(i)),
            Happening::Detach(i) => self.tell_hub(aggregator::Input::Detached(i)),
            Happening::Return(i) => self.restore(i),
            Happening::Wake => self.tell_hub(aggregator::Input::Tick),
        }
        self.drain_aggregator();
        self.now < TOO_LONG
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
        let total = self.until(|e| matches!(e, Event::Total { .. }))?;
        let Event::Total { values, cohort, missing } = total else { unreachable!("it is a total") };
        Ok((values, cohort, missing))
    }

    /// Says that no question follows, and delivers what is under way.
    pub fn close(&mut self) {
        self.tell_hub(aggregator::Input::Close);
        self.drain_aggregator();
        let until = self.now + 1_000 + self.network.delay;
        while self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= until) {
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
