//! A rehearsal: one site's real state machine among made-up parties, in memory, to see what it would send.
//!
//! Every party of the rehearsal, this site included, has a throwaway identity; so nothing that comes out of it could be
//! used in the real run, and the real key signs nothing.

use std::sync::Arc;

use veilsum_proto::{
    aggregator::{self, Aggregator, AggregatorConfig, Millis, Timing},
    identity::Identity,
    message::{Disclosure, Kind, kind_of},
    plan::Terms,
    policy::{self, Floor},
    roster::{Member, PartyId, Roster},
    site::{self, Site, SiteConfig},
};

use super::exit::{Code, Failure};
use crate::{documents::Federation, role::system_rng};

/// Parties of a rehearsal at most. A deck costs the square of this; sizes beyond it follow from the layouts.
pub const MAX_REHEARSED: usize = 24;

/// A frame that this site sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Its kind.
    pub kind: Kind,
    /// All of it.
    pub bytes: usize,
    /// What it gives away.
    pub discloses: Disclosure,
}

/// What this site sent, step by step.
pub struct Rehearsal {
    /// Sites that took part.
    pub sites: usize,
    /// To set up one deck.
    pub deck: Vec<Sent>,
    /// To answer once, nobody missing.
    pub round: Vec<Sent>,
    /// To answer once while one site is missing.
    pub missing: Vec<Sent>,
    /// Whether that round still had a total.
    pub goes_on: bool,
}

/// Rehearses a deck, a round, and a round with one site missing, towards `role`. `answer` is this site's real answer.
///
/// # Errors
/// A [`Failure`] where the protocol itself refuses, which is then a defect.
pub fn rehearse(federation: &Federation, role: PartyId, query: &[u8], answer: Vec<u64>) -> Result<Rehearsal, Failure> {
    let is_total = |e: &aggregator::Event| matches!(e, aggregator::Event::Total { .. });
    let mut stage = Stage::new(federation, role, answer.clone())?;
    let deck = stage.set_up()?;
    stage.ask(query);
    stage.until(is_total)?;
    let round = stage.take_round();
    // On a stage of its own: the same question may not be asked twice over different cohorts.
    let mut stage = Stage::new(federation, role, answer)?;
    stage.set_up()?;
    stage.gone = Some(1);
    stage.ask(query);
    let goes_on = match stage.until(is_total) {
        Ok(()) => true,
        Err(f) if f.code == Code::Quorum => false,
        Err(f) => return Err(f),
    };
    Ok(Rehearsal { sites: stage.sites.len(), deck, round, missing: stage.take_round(), goes_on })
}

struct Stage {
    terms: Arc<Terms>,
    aggregator: Aggregator,
    /// The first one is this site.
    sites: Vec<Site>,
    answer: Vec<u64>,
    gone: Option<u16>,
    now: u64,
    sent: Vec<Sent>,
}

impl Stage {
    fn new(federation: &Federation, role: PartyId, answer: Vec<u64>) -> Result<Stage, Failure> {
        let mut rng = system_rng();
        let n = federation.roster.sites.len();
        let small = n.min(MAX_REHEARSED);
        let identities: Vec<Arc<Identity>> = (0..small + 2).map(|_| Arc::new(Identity::generate(&mut rng))).collect();
        let member =
            |i: usize| Member { name: format!("party-{i}"), key: identities[i].public(), address: String::new() };
        let roster = Arc::new(Roster {
            name: "rehearsal".into(),
            coordinator: member(0),
            intermediary: member(1),
            sites: (2..small + 2).map(member).collect(),
        });
        let mut terms = Terms { roster: roster.hash(), ..federation.terms.as_ref().clone() };
        if small < n {
            // Numbers for the real cohort may not fit the smaller one; none of them changes what is sent.
            (terms.min_cohort, terms.threshold, terms.colluders) = (3, 0, 0);
        }
        terms.check(&roster)?;
        let terms = Arc::new(terms);
        let sites = identities[2..]
            .iter()
            .map(|identity| {
                Site::new(SiteConfig {
                    identity: identity.clone(),
                    roster: roster.clone(),
                    terms: terms.clone(),
                    floor: Floor::default(),
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
        for i in 0..small as u16 {
            aggregator.handle(aggregator::Input::Attached(i), Millis(0));
        }
        Ok(Stage { terms, aggregator, sites, answer, gone: None, now: 0, sent: Vec::new() })
    }

    fn set_up(&mut self) -> Result<Vec<Sent>, Failure> {
        self.until(|e| matches!(e, aggregator::Event::DeckReady { .. }))?;
        Ok(std::mem::take(&mut self.sent))
    }

    fn ask(&mut self, query: &[u8]) {
        let input = aggregator::Input::Ask { query: query.to_vec(), words: self.answer.len() };
        self.aggregator.handle(input, Millis(self.now));
    }

    /// What was sent for a round. A deck that was refilled meanwhile is no part of it.
    fn take_round(&mut self) -> Vec<Sent> {
        let of_round = |s: &Sent| !super::cost::DECK.contains(&s.kind);
        std::mem::take(&mut self.sent).into_iter().filter(of_round).collect()
    }

    /// Carries frames until the aggregator reports what is wanted; where nothing moves, time passes.
    fn until(&mut self, wanted: impl Fn(&aggregator::Event) -> bool) -> Result<(), Failure> {
        loop {
            while let Some(output) = self.aggregator.poll() {
                match output {
                    aggregator::Output::Send { to, bytes } => self.deliver(to, &bytes)?,
                    aggregator::Output::Event(aggregator::Event::Failed(e)) => return Err(e.into()),
                    aggregator::Output::Event(e) if wanted(&e) => return Ok(()),
                    aggregator::Output::Event(_) => {}
                }
            }
            let Some(Millis(at)) = self.aggregator.next_wake() else {
                return Err(Failure::new(
                    Code::Internal,
                    "the rehearsal stands still",
                    "this is a defect, please report it",
                ));
            };
            self.now = self.now.max(at) + 1;
            self.aggregator.handle(aggregator::Input::Tick, Millis(self.now));
        }
    }

    fn deliver(&mut self, to: u16, bytes: &[u8]) -> Result<(), Failure> {
        if self.gone == Some(to) {
            return Ok(());
        }
        let Some(site) = self.sites.get_mut(usize::from(to)) else { return Ok(()) };
        site.handle(site::Input::Message(bytes), &mut system_rng())?;
        while let Some(output) = site.poll() {
            match output {
                site::Output::Send { bytes, discloses } => {
                    if let (0, Some(kind)) = (to, kind_of(&bytes)) {
                        self.sent.push(Sent { kind, bytes: bytes.len(), discloses });
                    }
                    self.aggregator.handle(aggregator::Input::Message { from: to, bytes: &bytes }, Millis(self.now));
                }
                site::Output::Event(site::Event::Asked(asked)) => {
                    let consent = policy::decide(&self.terms, &Floor::default(), &asked)?;
                    let values = if to == 0 { self.answer.clone() } else { vec![0; asked.words] };
                    site.handle(site::Input::Contribute { consent, values }, &mut system_rng())?;
                }
                // A rehearsal is never continued, so nothing is kept.
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli::cost::{DECK, frame_bytes},
        documents::tests::{kit, terms, work},
    };

    fn rehearsed(n: u8, change: impl FnOnce(&mut Terms)) -> Rehearsal {
        let (roster, _) = kit(n);
        let mut terms = terms(&roster, &work(2));
        change(&mut terms);
        let federation = Federation::new(roster, terms).unwrap();
        rehearse(&federation, PartyId::Coordinator, b"query", vec![7; 6]).unwrap()
    }

    #[test]
    fn the_bytes_of_a_plan_are_the_bytes_that_are_sent() {
        for (n, slots) in [(3, 1), (5, 4), (9, 64)] {
            let r = rehearsed(n, |t| t.slots = slots);
            let (n, slots) = (usize::from(n), usize::from(slots));
            assert_eq!(r.deck.iter().map(|s| s.kind).collect::<Vec<_>>(), DECK);
            assert_eq!(r.round.iter().map(|s| s.kind).collect::<Vec<_>>(), [Kind::MaskedInput, Kind::Unmask]);
            for s in r.deck.iter().chain(&r.round) {
                assert_eq!(s.bytes, frame_bytes(s.kind, n, slots, 6), "{:?} among {n}", s.kind);
            }
        }
    }

    #[test]
    fn one_missing_site_costs_one_more_message_or_the_run() {
        let r = rehearsed(5, |_| ());
        assert!(r.goes_on);
        let kinds: Vec<Kind> = r.missing.iter().map(|s| s.kind).collect();
        assert_eq!(kinds, [Kind::MaskedInput, Kind::ConsistencyCheck, Kind::Unmask]);
        let r = rehearsed(3, |_| ());
        assert!(!r.goes_on);
        assert_eq!(r.missing.iter().map(|s| s.kind).collect::<Vec<_>>(), [Kind::MaskedInput]);
    }

    #[test]
    fn a_large_cohort_is_rehearsed_with_fewer() {
        let r = rehearsed(40, |t| (t.slots, t.min_cohort, t.threshold) = (1, 30, 35));
        assert_eq!((r.sites, r.goes_on), (MAX_REHEARSED, true));
    }
}
