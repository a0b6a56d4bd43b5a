//! A whole federation in memory and in virtual time: the real state machines of aggregator and sites, frames handed over in
//! one thread, nobody missing unless told so. For rehearsals and experiments; nothing touches a network.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use rayon::prelude::*;
use veilsum_cluster::{Domain, Outcome, Prepared, Recipe, sampling::Sampling};
use veilsum_proto::{
    aggregator::{self, Aggregator, AggregatorConfig, Millis, Timing},
    identity::Identity,
    message::{Disclosure, Kind, kind_of},
    plan::Terms,
    policy::{self, Asked, Floor, Policy, Request},
    roster::{Member, PartyId, Roster},
    site::{self, Site, SiteConfig},
};

use crate::{
    clock::CpuTime,
    error::{Code, Failure},
    method_session::{self, MethodSession, Turn},
    plan::Judge,
    question::{self, Question, SumBounds},
    role::system_rng,
};

/// A frame that the first site sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Its kind.
    pub kind: Kind,
    /// All of it.
    pub bytes: usize,
    /// What it gives away.
    pub discloses: Disclosure,
}

/// Computes a site's answer.
pub type Answer<'a> = Box<dyn Fn(u16, &Asked) -> Result<Vec<u64>, Failure> + Sync + 'a>;

/// One aggregator and its sites, with throwaway identities.
pub struct Stage<'a> {
    terms: Arc<Terms>,
    aggregator: Aggregator,
    sites: Vec<Site>,
    answer: Answer<'a>,
    /// Sites that get no more frames.
    pub gone: BTreeSet<u16>,
    /// Sites that get no more frames once their next masked input has left.
    pub leaving: BTreeSet<u16>,
    /// Processor time and bytes so far.
    pub spent: Spent,
    now: u64,
    sent: Vec<Sent>,
}

/// Processor time spent, by who would have spent it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// The aggregator's state machine.
    pub aggregator: Duration,
    /// All sites' state machines, and their answers.
    pub sites: Duration,
    /// Bytes that all sites sent.
    pub upload: u64,
    /// Bytes that the aggregator sent.
    pub download: u64,
}

impl<'a> Stage<'a> {
    /// `n` sites towards `role` under `terms`, whose roster is replaced.
    ///
    /// # Errors
    /// A [`Failure`] where the terms do not suit so many sites.
    pub fn new(n: usize, role: PartyId, terms: Terms, answer: Answer<'a>) -> Result<Stage<'a>, Failure> {
        let mut rng = system_rng();
        let identities: Vec<Arc<Identity>> = (0..n + 2).map(|_| Arc::new(Identity::generate(&mut rng))).collect();
        let member =
            |i: usize| Member { name: format!("party-{i}"), key: identities[i].public(), address: String::new() };
        let roster = Arc::new(Roster {
            name: "rehearsal".into(),
            coordinator: member(0),
            intermediary: member(1),
            sites: (2..n + 2).map(member).collect(),
        });
        let terms = Terms { roster: roster.hash(), ..terms };
        terms.check(&roster)?;
        let terms = Arc::new(terms);
        let sites = identities[2..]
            .iter()
            .map(|identity| {
                Site::new(SiteConfig {
                    identity: identity.clone(),
                    roster: roster.clone(),
                    terms: terms.clone(),
                    floor: rehearsing(),
                    aggregator: role,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let config = AggregatorConfig {
            identity: identities[usize::from(role == PartyId::Intermediary)].clone(),
            roster,
            terms: terms.clone(),
            role,
            timing: Timing { join: 1_000, phase: 1_000, grace: 1_000, resend: 1_000_000 },
            slots: terms.slots,
        };
        let mut aggregator = Aggregator::new(config, Millis(0), &mut rng)?;
        for i in 0..n as u16 {
            aggregator.handle(aggregator::Input::Attached(i), Millis(0));
        }
        let (gone, leaving, spent) = (BTreeSet::new(), BTreeSet::new(), Spent::default());
        Ok(Stage { terms, aggregator, sites, answer, gone, leaving, spent, now: 0, sent: Vec::new() })
    }

    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// Puts a question.
    pub fn ask(&mut self, query: Vec<u8>, words: usize) {
        self.aggregate(aggregator::Input::Ask { query, words });
    }

    /// No question follows: the last total is opened to the sites.
    ///
    /// # Errors
    /// The [`Failure`] of a party.
    pub fn close(&mut self) -> Result<(), Failure> {
        self.aggregate(aggregator::Input::Close);
        let mut frames: BTreeMap<u16, Vec<Arc<Vec<u8>>>> = BTreeMap::new();
        while let Some(output) = self.aggregator.poll() {
            if let aggregator::Output::Send { to, bytes } = output {
                self.spent.download += bytes.len() as u64;
                frames.entry(to).or_default().push(bytes);
            }
        }
        frames.retain(|to, _| !self.gone.contains(to));
        self.deliver(frames)
    }

    fn aggregate(&mut self, input: aggregator::Input<'_>) {
        let begun = CpuTime::now();
        self.aggregator.handle(input, Millis(self.now));
        self.spent.aggregator += begun.elapsed();
    }

    /// What the first site sent since the last call.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// Carries frames until the aggregator reports what is wanted; where nothing moves, time passes.
    ///
    /// # Errors
    /// The [`Failure`] of a party.
    pub fn until(&mut self, wanted: impl Fn(&aggregator::Event) -> bool) -> Result<aggregator::Event, Failure> {
        loop {
            let mut frames: BTreeMap<u16, Vec<Arc<Vec<u8>>>> = BTreeMap::new();
            while let Some(output) = self.aggregator.poll() {
                match output {
                    aggregator::Output::Send { to, bytes } => {
                        self.spent.download += bytes.len() as u64;
                        if !self.gone.contains(&to) {
                            frames.entry(to).or_default().push(bytes);
                        }
                    }
                    aggregator::Output::Event(aggregator::Event::Failed(e)) => return Err(e.into()),
                    aggregator::Output::Event(e) if wanted(&e) => {
                        self.deliver(frames)?;
                        return Ok(e);
                    }
                    aggregator::Output::Persist(_) | aggregator::Output::Event(_) => {}
                }
            }
            if !frames.is_empty() {
                self.deliver(frames)?;
                continue;
            }
            let Some(Millis(at)) = self.aggregator.next_wake() else {
                return Err(Failure::new(
                    Code::Internal,
                    "the rehearsal stands still",
                    "this is a defect, please report it",
                ));
            };
            self.now = self.now.max(at) + 1;
            self.aggregate(aggregator::Input::Tick);
        }
    }

    /// Hands frames to the sites, on all cores, and their answers to the aggregator in the order of the sites.
    fn deliver(&mut self, mut frames: BTreeMap<u16, Vec<Arc<Vec<u8>>>>) -> Result<(), Failure> {
        let (terms, answer) = (&self.terms, &self.answer);
        let work: Vec<_> = (0..)
            .zip(&mut self.sites)
            .filter_map(|(i, site)| frames.remove(&i).map(|frames| (i, site, frames)))
            .collect();
        let begun = CpuTime::now();
        let done: Vec<_> =
            work.into_par_iter().map(|(i, site, frames)| (i, reply(terms, answer, i, site, &frames))).collect();
        self.spent.sites += begun.elapsed();
        let mut frames = Vec::new();
        for (to, sent) in done {
            for (bytes, discloses) in sent? {
                if let (0, Some(kind)) = (to, kind_of(&bytes)) {
                    self.sent.push(Sent { kind, bytes: bytes.len(), discloses });
                }
                if discloses == Disclosure::MaskedWords && self.leaving.remove(&to) {
                    self.gone.insert(to);
                }
                self.spent.upload += bytes.len() as u64;
                frames.push((to, bytes));
            }
        }
        let frames: Vec<(u16, &[u8])> = frames.iter().map(|(from, bytes)| (*from, &bytes[..])).collect();
        self.aggregate(aggregator::Input::Messages(&frames));
        Ok(())
    }
}

/// The floor of sites that play a run in memory.
fn rehearsing() -> Floor {
    Floor { max_rounds: u32::MAX, contributors: 1, ..Floor::default() }
}

/// A frame, and what it gives away.
type Reply = (Arc<Vec<u8>>, Disclosure);

/// What one site sends on these frames.
fn reply(
    terms: &Terms,
    answer: &Answer<'_>,
    number: u16,
    site: &mut Site,
    frames: &[Arc<Vec<u8>>],
) -> Result<Vec<Reply>, Failure> {
    let mut sent = Vec::new();
    for frame in frames {
        site.handle(site::Input::Message(frame), &mut system_rng())?;
        while let Some(output) = site.poll() {
            match output {
                site::Output::Send { bytes, discloses } => sent.push((bytes, discloses)),
                site::Output::Event(site::Event::Asked(asked)) => {
                    // Nothing leaves this process, so the account has no part in it.
                    let policy = Policy { floor: rehearsing(), ..Policy::default() };
                    let request = Request { agreed: true, ..Request::default() };
                    let consent = policy::decide(terms, &policy, &asked, &request, &policy::Spent::default())?;
                    let values = answer(number, &asked)?;
                    site.handle(site::Input::Contribute { consent, values }, &mut system_rng())?;
                }
                // It is never continued, so nothing is kept.
                _ => {}
            }
        }
    }
    Ok(sent)
}

/// Runs a recipe masked over the real protocol in virtual time, nobody missing: three sites or more. The masks are fresh
/// every time; they cancel, so the outcome does not depend on them.
///
/// # Errors
/// A [`Failure`] from the protocol, a site or the method.
pub fn masked(
    recipe: &Recipe,
    domain: &Domain,
    sites: &[Prepared],
    sampling: Option<Sampling>,
) -> Result<Outcome, Failure> {
    let n = sites.len();
    let max_rows = sites.iter().map(|s| s.len() as u64).max().unwrap_or(1).next_power_of_two();
    let form = SumBounds::new(n, max_rows);
    let terms = Terms {
        roster: veilsum_proto::suite::Hash::default(),
        min_cohort: u16::try_from(n).unwrap_or(u16::MAX),
        threshold: 0,
        colluders: 0,
        block_size: 1,
        slots: 64,
        max_rows,
        min_total_rows: 0,
        application: Vec::new(),
    };
    let answer = |site: u16, asked: &Asked| {
        let question = Question::from_bytes(&asked.query)?;
        let drawn = match (&question, sampling) {
            (Question::Drawn { number, .. }, Some(sampling)) => sampling.drawn(*number, n)[usize::from(site)],
            _ => true,
        };
        let terms = question::Terms { form, drawn, judged: None, noise: None };
        Ok(question::contribute(&question, &sites[usize::from(site)], &terms)?)
    };
    let mut stage = Stage::new(n, PartyId::Coordinator, terms, Box::new(answer))?;
    stage.until(|e| matches!(e, aggregator::Event::DeckReady { .. }))?;
    let failed = |e: veilsum_cluster::Error| Failure::input(e, "");
    let run = recipe.run(domain, n as u32).map_err(failed)?;
    let terms = method_session::Terms { domain: domain.clone(), form, sampling, judge: Judge::Coordinator };
    let mut conversation = MethodSession::begin(run, terms)?;
    loop {
        let (question, words) = match conversation.turn() {
            Turn::Done(outcome) => return Ok((**outcome).clone()),
            Turn::Ask(question, layout) => (question.to_bytes(), layout.words()),
            Turn::Judge(_) => return Err(Failure::new(Code::Internal, "nobody judges here", "please report it")),
        };
        stage.ask(question, words);
        let event = stage.until(|e| matches!(e, aggregator::Event::Total { .. }))?;
        if let aggregator::Event::Total { values, cohort, .. } = event {
            conversation.take(&values, &cohort)?;
        }
    }
}
