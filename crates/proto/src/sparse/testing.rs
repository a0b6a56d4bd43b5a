//! A whole federation of the sparse protocol in one thread and in virtual time, from a seed; for tests only.
//!
//! Frames are handed over at once and in order. A hook sees every frame and may lose it, replace it, or take the site's
//! process with it; where nothing moves, time passes. The same seed gives the same run.

use std::{collections::VecDeque, sync::Arc};

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

use super::{
    Aggregator, AggregatorConfig, AggregatorEvent, AggregatorInput, AggregatorOutput, Disclosure, Kind, Record, Shape,
    Site, SiteConfig, SiteEvent, SiteInput, SiteOutput, kind_of,
};
use crate::{
    Error,
    aggregator::{Millis, Timing},
    policy::{self, Asked, Floor},
    roster::PartyId,
    testing::Kit,
};

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

/// The federation.
pub struct World {
    /// Who is who.
    pub kit: Kit,
    /// Sees every frame.
    pub hook: Hook,
    /// Computes answers.
    pub answer: Answer,
    /// Every event of the aggregator, in order.
    pub events: Vec<AggregatorEvent>,
    /// Every error of a site, in order.
    pub site_errors: Vec<(u16, Error)>,
    /// What each site wrote before it sent, in order.
    pub journals: Vec<Vec<Record>>,
    /// The sites' processes; none where one is away.
    pub sites: Vec<Option<Site>>,
    shape: Shape,
    aggregator: Aggregator,
    rng: ChaCha20Rng,
    now: u64,
    inbox: VecDeque<AggregatorEvent>,
}

/// The configuration of site `i`.
pub fn site_config(kit: &Kit, shape: Shape, i: u16) -> SiteConfig {
    SiteConfig {
        identity: kit.identities[usize::from(i) + 2].clone(),
        roster: kit.roster.clone(),
        terms: kit.terms.clone(),
        shape,
        floor: Floor::default(),
        aggregator: PartyId::Coordinator,
    }
}

impl World {
    /// The kit's sites on a perfect network.
    pub fn new(kit: Kit, shape: Shape, seed: u64) -> World {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let n = kit.roster.sites.len();
        let sites =
            (0..n as u16).map(|i| Some(Site::new(site_config(&kit, shape, i)).expect("the kit's site"))).collect();
        let config = AggregatorConfig {
            identity: kit.identities[0].clone(),
            roster: kit.roster.clone(),
            terms: kit.terms.clone(),
            shape,
            role: PartyId::Coordinator,
            timing: Timing { join: 60_000, phase: 20_000, grace: 2_000, resend: 5_000 },
            slots: kit.terms.slots,
        };
        let aggregator = Aggregator::new(config, Millis(0), &mut rng).expect("the kit's coordinator");
        World {
            kit,
            hook: Box::new(|_| Verdict::Pass),
            answer: Box::new(|_, asked| vec![0; asked.words]),
            events: Vec::new(),
            site_errors: Vec::new(),
            journals: vec![Vec::new(); n],
            sites,
            shape,
            aggregator,
            rng,
            now: 0,
            inbox: VecDeque::new(),
        }
    }

    /// Stops a site's process; `back` restores it from its journal.
    pub fn kill(&mut self, site: u16, back: bool) {
        self.sites[usize::from(site)] = None;
        if back {
            let journal = self.journals[usize::from(site)].clone();
            match Site::restore(site_config(&self.kit, self.shape, site), journal) {
                Ok(s) => {
                    self.sites[usize::from(site)] = Some(s);
                    self.aggregator.handle(AggregatorInput::Attached(site), Millis(self.now));
                }
                Err(e) => self.site_errors.push((site, e)),
            }
        }
    }

    /// Hands a site bytes as the aggregator's, and what it sends to the aggregator.
    pub fn deliver(&mut self, to: u16, bytes: &[u8]) {
        if let Some(site) = &mut self.sites[usize::from(to)]
            && let Err(e) = site.handle(SiteInput::Message(bytes), &mut self.rng)
        {
            self.site_errors.push((to, e));
        }
        self.drain_site(to);
    }

    fn drain_site(&mut self, i: u16) {
        while let Some(output) = self.sites[usize::from(i)].as_mut().and_then(Site::poll) {
            match output {
                SiteOutput::Persist(record) => self.journals[usize::from(i)].push(record),
                SiteOutput::Rewrite(records) => self.journals[usize::from(i)] = records,
                SiteOutput::Send { bytes, discloses } => {
                    let kind = kind_of(&bytes).expect("a site sends whole frames");
                    let wire = Wire { site: i, from_site: true, kind, bytes: &bytes, discloses: Some(discloses) };
                    let bytes = match (self.hook)(&wire) {
                        Verdict::Pass => bytes,
                        Verdict::Drop => continue,
                        Verdict::Vanish => return self.kill(i, false),
                        Verdict::Crash => return self.kill(i, true),
                        Verdict::Replace(other) => other,
                    };
                    self.aggregator.handle(AggregatorInput::Message { from: i, bytes: &bytes }, Millis(self.now));
                }
                SiteOutput::Event(SiteEvent::Asked(asked)) => {
                    let input = match policy::decide_by_floor(&self.kit.terms, &Floor::default(), &asked) {
                        Ok(consent) => SiteInput::Contribute { consent, values: (self.answer)(i, &asked) },
                        Err(e) => SiteInput::Refuse {
                            context: asked.context,
                            rule: e.rule().map_or_else(String::new, |r| r.0.to_owned()),
                        },
                    };
                    if let Some(site) = &mut self.sites[usize::from(i)]
                        && let Err(e) = site.handle(input, &mut self.rng)
                    {
                        self.site_errors.push((i, e));
                    }
                }
                SiteOutput::Event(_) => {}
            }
        }
    }

    /// Runs until the aggregator's next event for which `wanted` holds.
    ///
    /// # Errors
    /// The error with which the run failed or the slot was lost.
    pub fn until(&mut self, wanted: impl Fn(&AggregatorEvent) -> bool) -> Result<AggregatorEvent, Error> {
        loop {
            while let Some(output) = self.aggregator.poll() {
                match output {
                    AggregatorOutput::Send { to, bytes } => {
                        let kind = kind_of(&bytes).expect("an aggregator sends whole frames");
                        let wire = Wire { site: to, from_site: false, kind, bytes: &bytes, discloses: None };
                        match (self.hook)(&wire) {
                            Verdict::Pass => self.deliver(to, &bytes),
                            Verdict::Drop => {}
                            Verdict::Vanish => self.kill(to, false),
                            Verdict::Crash => self.kill(to, true),
                            Verdict::Replace(other) => self.deliver(to, &Arc::new(other)),
                        }
                    }
                    AggregatorOutput::Event(event) => {
                        self.events.push(event.clone());
                        self.inbox.push_back(event);
                    }
                }
            }
            while let Some(event) = self.inbox.pop_front() {
                match event {
                    AggregatorEvent::Failed(e) | AggregatorEvent::SlotLost(e) => return Err(e),
                    event if wanted(&event) => return Ok(event),
                    _ => {}
                }
            }
            let Some(Millis(at)) = self.aggregator.next_wake() else {
                return Err(Error::ApiMisuse("nothing more can happen: the federation hangs"));
            };
            self.now = self.now.max(at);
            self.aggregator.handle(AggregatorInput::Tick, Millis(self.now));
        }
    }

    /// Asks one question and runs until its total.
    ///
    /// # Errors
    /// As [`World::until`].
    pub fn ask(&mut self, query: &[u8], words: usize) -> Result<Total, Error> {
        let ask = AggregatorInput::Ask { query: query.to_vec(), words };
        self.aggregator.handle(ask, Millis(self.now));
        match self.until(|e| matches!(e, AggregatorEvent::Total { .. }))? {
            AggregatorEvent::Total { values, cohort, missing } => Ok((values, cohort, missing)),
            _ => Err(Error::ApiMisuse("another event than the total")),
        }
    }
}
