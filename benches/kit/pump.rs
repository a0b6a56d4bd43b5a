//! Sites and an aggregator in one thread, frames handed over by hand, every step of every party timed.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use veilsum_node::role::system_rng;
use veilsum_proto::{
    aggregator::{self, Aggregator, AggregatorConfig, Millis, Timing},
    identity::Identity,
    message::{Kind, kind_of},
    plan::Terms,
    policy::{self, Floor},
    roster::{Member, PartyId, Roster},
    site::{self, Site, SiteConfig},
};

const TIMING: Timing = Timing { join: 1_000_000, phase: 1_000_000, grace: 10, resend: 1_000_000 };

/// What one round cost.
#[derive(Clone, Default)]
pub(crate) struct Cost {
    /// Time of all sites together, by step.
    pub(crate) sites: BTreeMap<&'static str, Duration>,
    /// Time of the aggregator, by step.
    pub(crate) aggregator: BTreeMap<&'static str, Duration>,
    /// Bytes that all sites sent.
    pub(crate) sent: u64,
    /// Bytes that all sites received.
    pub(crate) received: u64,
    /// Messages that all sites sent.
    pub(crate) messages: u64,
    /// Sites in the total.
    pub(crate) alive: usize,
}

impl Cost {
    /// The aggregator's time.
    pub(crate) fn aggregator_total(&self) -> Duration {
        self.aggregator.values().sum()
    }

    /// All sites' time.
    pub(crate) fn sites_total(&self) -> Duration {
        self.sites.values().sum()
    }
}

/// A federation without a network.
pub(crate) struct Pump {
    sites: Vec<Site>,
    aggregator: Aggregator,
    terms: Arc<Terms>,
    absent: BTreeSet<u16>,
    now: Millis,
    to_sites: VecDeque<(u16, Arc<Vec<u8>>)>,
    to_aggregator: VecDeque<(u16, Vec<u8>)>,
    total: Option<(Vec<u64>, Vec<u16>)>,
    ready: bool,
    asked: u8,
    cost: Cost,
}

/// Every site is a block by itself: costs do not depend on blocks, and any site may be missing.
fn floor() -> Floor {
    Floor { contributors: 1, ..Floor::default() }
}

impl Pump {
    /// `n` sites with a finished deck of `slots` slots.
    pub(crate) fn new(n: usize, slots: u16) -> Pump {
        let mut rng = system_rng();
        let identities: Vec<Arc<Identity>> = (0..n + 2).map(|_| Arc::new(Identity::generate(&mut rng))).collect();
        let member = |i: usize, name: String| Member { name, key: identities[i].public(), address: String::new() };
        let roster = Arc::new(Roster {
            name: "bench".into(),
            coordinator: member(0, "coordinator".into()),
            intermediary: member(1, "intermediary".into()),
            sites: (0..n).map(|i| member(i + 2, format!("site-{i}"))).collect(),
        });
        let terms = Arc::new(Terms {
            roster: roster.hash(),
            min_cohort: 3,
            threshold: 0,
            colluders: 0,
            block_size: 1,
            slots,
            max_rows: 1_000,
            min_total_rows: 0,
            opening: true,
            application: Vec::new(),
        });
        let config = |i: usize| SiteConfig {
            identity: identities[i + 2].clone(),
            roster: roster.clone(),
            terms: terms.clone(),
            floor: floor(),
            aggregator: PartyId::Coordinator,
        };
        let sites = (0..n).map(|i| Site::new(config(i)).expect("a site of the roster")).collect();
        let aggregator = AggregatorConfig {
            identity: identities[0].clone(),
            roster: roster.clone(),
            terms: terms.clone(),
            role: PartyId::Coordinator,
            timing: TIMING,
            slots,
        };
        let mut pump = Pump {
            sites,
            aggregator: Aggregator::new(aggregator, Millis(0), &mut rng).expect("the roster's coordinator"),
            terms,
            absent: BTreeSet::new(),
            now: Millis(0),
            to_sites: VecDeque::new(),
            to_aggregator: VecDeque::new(),
            total: None,
            ready: false,
            asked: 0,
            cost: Cost::default(),
        };
        for i in 0..n as u16 {
            pump.feed_aggregator("attach", aggregator::Input::Attached(i));
        }
        pump.run(&[]);
        assert!(pump.ready, "the deck of {n} sites was not set up");
        pump
    }

    /// One round over vectors of `words` words; the `absent` sites have vanished when the question comes.
    pub(crate) fn round(&mut self, words: usize, absent: impl IntoIterator<Item = u16>) -> Cost {
        let lost: Vec<u16> = absent.into_iter().collect();
        self.absent.extend(&lost);
        let values: Vec<u64> = (0..words as u64).collect();
        (self.cost, self.total) = (Cost::default(), None);
        let query = self.query(words);
        self.feed_aggregator("ask", aggregator::Input::Ask { query, words });
        self.run(&values);
        if self.total.is_none() {
            for site in lost {
                self.feed_aggregator("give up", aggregator::Input::Detached(site));
            }
            self.now = Millis(self.now.0 + TIMING.grace + 1);
            self.feed_aggregator("give up", aggregator::Input::Tick);
            self.run(&values);
        }
        let (total, cohort) = self.total.take().expect("a total");
        let n = cohort.len() as u64;
        assert_eq!(cohort.len(), self.sites.len() - self.absent.len());
        assert!(total.iter().zip(&values).all(|(t, v)| *t == v.wrapping_mul(n)), "a wrong total");
        self.cost.alive = cohort.len();
        std::mem::take(&mut self.cost)
    }

    /// As long as the centres of a round, and never twice the same.
    fn query(&mut self, words: usize) -> Vec<u8> {
        self.asked += 1;
        vec![self.asked; 8 * words]
    }

    fn run(&mut self, values: &[u64]) {
        loop {
            if let Some((to, bytes)) = self.to_sites.pop_front() {
                if !self.absent.contains(&to) {
                    self.cost.received += bytes.len() as u64;
                    self.hand_to_site(to, &bytes, values);
                }
            } else if let Some((from, bytes)) = self.to_aggregator.pop_front() {
                self.cost.messages += 1;
                self.cost.sent += bytes.len() as u64;
                self.feed_aggregator(step(&bytes), aggregator::Input::Message { from, bytes: &bytes });
            } else {
                return;
            }
        }
    }

    fn feed_aggregator(&mut self, step: &'static str, input: aggregator::Input<'_>) {
        let began = Instant::now();
        self.aggregator.handle(input, self.now);
        let mut outputs = Vec::new();
        while let Some(output) = self.aggregator.poll() {
            outputs.push(output);
        }
        *self.cost.aggregator.entry(step).or_default() += began.elapsed();
        for output in outputs {
            match output {
                aggregator::Output::Send { to, bytes } => self.to_sites.push_back((to, bytes)),
                aggregator::Output::Event(aggregator::Event::DeckReady { .. }) => self.ready = true,
                aggregator::Output::Event(aggregator::Event::Total { values, cohort, .. }) => {
                    self.total = Some((values, cohort));
                }
                aggregator::Output::Event(aggregator::Event::Failed(e)) => panic!("{e}"),
                aggregator::Output::Persist(_) | aggregator::Output::Event(_) => {}
            }
        }
    }

    fn hand_to_site(&mut self, to: u16, bytes: &[u8], values: &[u64]) {
        let mut asked = self.feed_site(to, step(bytes), site::Input::Message(bytes));
        while let Some(question) = asked {
            let consent = policy::decide_by_floor(&self.terms, &floor(), &question).expect("a question to be answered");
            let input = site::Input::Contribute { consent, values: values.to_vec() };
            asked = self.feed_site(to, "mask and sign", input);
        }
    }

    fn feed_site(&mut self, to: u16, step: &'static str, input: site::Input<'_>) -> Option<policy::Asked> {
        let site = &mut self.sites[usize::from(to)];
        let began = Instant::now();
        site.handle(input, &mut system_rng()).expect("an honest aggregator");
        let mut outputs = Vec::new();
        while let Some(output) = site.poll() {
            outputs.push(output);
        }
        *self.cost.sites.entry(step).or_default() += began.elapsed();
        let mut asked = None;
        for output in outputs {
            match output {
                site::Output::Send { bytes, .. } => self.to_aggregator.push_back((to, bytes)),
                site::Output::Event(site::Event::Asked(question)) => asked = Some(question),
                _ => {}
            }
        }
        asked
    }
}

fn step(frame: &[u8]) -> &'static str {
    match kind_of(frame) {
        Some(Kind::Ask) => "ask",
        Some(Kind::MaskedInput) => "masked input",
        Some(Kind::Survivors) => "survivors",
        Some(Kind::ConsistencyCheck) => "consistency check",
        Some(Kind::Certificate) => "certificate",
        Some(Kind::Unmask) => "unmask",
        _ => "set-up",
    }
}
