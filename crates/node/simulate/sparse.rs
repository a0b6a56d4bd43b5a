//! The sparse protocol in memory and in virtual time: the real state machines of thousands of sites in one thread, one
//! frame at a time, so that what all of them hold is all that is in memory. For `veilsum simulate`; the product's roles
//! speak the complete protocol only.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use veilsum_proto::{
    aggregator::{Millis, Timing},
    identity::Identity,
    plan::Terms,
    policy::{self, Floor},
    roster::{Member, PartyId, Roster},
    sparse::{
        Aggregator, AggregatorConfig, AggregatorEvent, AggregatorInput, AggregatorOutput, Disclosure, Shape, Site,
        SiteConfig, SiteEvent, SiteInput, SiteOutput,
    },
};

use crate::{
    cli::exit::{Code, Failure},
    clock::CpuTime,
    role::system_rng,
};

/// What one site spent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// Processor time in its state machine.
    pub time: Duration,
    /// Bytes it sent.
    pub sent: u64,
    /// Bytes it got.
    pub received: u64,
}

/// One aggregator and its sites, with throwaway identities. Every site answers with the same numbers.
pub struct Stage {
    terms: Arc<Terms>,
    aggregator: Aggregator,
    sites: Vec<Site>,
    /// Sites that get no more frames.
    pub gone: BTreeSet<u16>,
    /// Sites that get no more frames once their next masked input has left.
    pub leaving: BTreeSet<u16>,
    /// What each site spent so far.
    pub spent: Vec<Share>,
    /// Processor time in the aggregator's state machine.
    pub aggregator_time: Duration,
    now: u64,
}

/// The number at a place of every site's vector.
pub fn number(place: usize) -> u64 {
    (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Stage {
    /// `n` sites under these terms, whose roster is replaced.
    ///
    /// # Errors
    /// A [`Failure`] where the numbers do not suit so many sites.
    pub fn new(n: usize, terms: Terms, shape: Shape) -> Result<Stage, Failure> {
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
        let terms = Arc::new(Terms { roster: roster.hash(), ..terms });
        let floor = Floor { max_rounds: u32::MAX, ..Floor::default() };
        let site = |identity: &Arc<Identity>| {
            Site::new(SiteConfig {
                identity: identity.clone(),
                roster: roster.clone(),
                terms: terms.clone(),
                shape,
                floor: floor.clone(),
                aggregator: PartyId::Coordinator,
            })
        };
        let sites = identities[2..].iter().map(site).collect::<Result<Vec<_>, _>>()?;
        let config = AggregatorConfig {
            identity: identities[0].clone(),
            roster: roster.clone(),
            terms: terms.clone(),
            shape,
            role: PartyId::Coordinator,
            timing: Timing { join: 1_000, phase: 1_000, grace: 1_000, resend: 1_000_000 },
            slots: terms.slots,
        };
        let aggregator = Aggregator::new(config, Millis(0), &mut rng)?;
        let (gone, leaving, spent) = (BTreeSet::new(), BTreeSet::new(), vec![Share::default(); n]);
        Ok(Stage { terms, aggregator, sites, gone, leaving, spent, aggregator_time: Duration::ZERO, now: 0 })
    }

    /// Puts a question.
    pub fn ask(&mut self, query: Vec<u8>, words: usize) {
        self.aggregate(AggregatorInput::Ask { query, words });
    }

    fn aggregate(&mut self, input: AggregatorInput<'_>) {
        let begun = CpuTime::now();
        self.aggregator.handle(input, Millis(self.now));
        self.aggregator_time += begun.elapsed();
    }

    /// Carries frames until the aggregator reports what is wanted; where nothing moves, time passes.
    ///
    /// # Errors
    /// The [`Failure`] of a party.
    pub fn until(&mut self, wanted: impl Fn(&AggregatorEvent) -> bool) -> Result<AggregatorEvent, Failure> {
        loop {
            let begun = CpuTime::now();
            let output = self.aggregator.poll();
            self.aggregator_time += begun.elapsed();
            match output {
                Some(AggregatorOutput::Send { to, bytes }) => self.deliver(to, &bytes)?,
                Some(AggregatorOutput::Event(AggregatorEvent::Failed(e) | AggregatorEvent::SlotLost(e))) => {
                    return Err(e.into());
                }
                Some(AggregatorOutput::Event(e)) if wanted(&e) => return Ok(e),
                Some(AggregatorOutput::Event(_)) => {}
                None => {
                    let Some(Millis(at)) = self.aggregator.next_wake() else {
                        let what = "the rehearsal stands still";
                        return Err(Failure::new(Code::Internal, what, "this is a defect, please report it"));
                    };
                    self.now = self.now.max(at);
                    self.aggregate(AggregatorInput::Tick);
                }
            }
        }
    }

    fn deliver(&mut self, to: u16, bytes: &[u8]) -> Result<(), Failure> {
        if self.gone.contains(&to) {
            return Ok(());
        }
        let place = usize::from(to);
        self.spent[place].received += bytes.len() as u64;
        self.tell(place, SiteInput::Message(bytes))?;
        while let Some(output) = self.sites[place].poll() {
            match output {
                SiteOutput::Send { bytes, discloses } => {
                    if discloses == Disclosure::MaskedWords && self.leaving.remove(&to) {
                        self.gone.insert(to);
                    }
                    self.spent[place].sent += bytes.len() as u64;
                    self.aggregate(AggregatorInput::Message { from: to, bytes: &bytes });
                }
                SiteOutput::Event(SiteEvent::Asked(asked)) => {
                    let floor = Floor { max_rounds: u32::MAX, ..Floor::default() };
                    let consent = policy::decide_by_floor(&self.terms, &floor, &asked)?;
                    let values = (0..asked.words).map(number).collect();
                    self.tell(place, SiteInput::Contribute { consent, values })?;
                }
                // It is never continued, so nothing is kept.
                _ => {}
            }
        }
        Ok(())
    }

    fn tell(&mut self, place: usize, input: SiteInput<'_>) -> Result<(), Failure> {
        let begun = CpuTime::now();
        let result = self.sites[place].handle(input, &mut system_rng());
        self.spent[place].time += begun.elapsed();
        Ok(result?)
    }
}
