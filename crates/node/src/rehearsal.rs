//! A rehearsal: one site's real state machine among made-up parties, in memory, to see what it would send.
//!
//! Every party of the rehearsal, this site included, has a throwaway identity; so nothing that comes out of it could be
//! used in the real run, and the real key signs nothing.

use std::sync::Arc;

use veilsum_proto::{
    aggregator::{self, Aggregator, AggregatorConfig, Event, Millis, Timing},
    message::{Disclosure, Kind, kind_of},
    plan::Terms,
    policy::{self, Floor, Policy, Request},
    roster::PartyId,
    site::{self, Site, SiteConfig},
};

use crate::{
    cost::slots_of,
    documents::Federation,
    error::{Code, Failure},
    loopback::{fresh, roster_of},
    role::system_rng,
};

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
    let is_total = |e: &Event| matches!(e, Event::Total { .. });
    let (mut parties, deck) = Parties::with_a_deck(federation, role, &answer)?;
    parties.ask(query);
    parties.until(is_total)?;
    let round = of_round(parties.sent);
    // Among others: the same question may not be asked twice over different cohorts.
    let (mut parties, _) = Parties::with_a_deck(federation, role, &answer)?;
    parties.missing = Some(1);
    parties.ask(query);
    let goes_on = match parties.until(is_total) {
        Ok(()) => true,
        Err(f) if f.code == Code::Quorum => false,
        Err(f) => return Err(f),
    };
    Ok(Rehearsal { sites: parties.sites.len(), deck, round, missing: of_round(parties.sent), goes_on })
}

/// An aggregator and its sites in memory and in virtual time; the first site is this one.
struct Parties<'a> {
    terms: Arc<Terms>,
    aggregator: Aggregator,
    sites: Vec<Site>,
    answer: &'a [u64],
    /// A site that gets no more frames.
    missing: Option<u16>,
    now: Millis,
    sent: Vec<Sent>,
}

impl<'a> Parties<'a> {
    /// With a deck, and what this site sent for that.
    fn with_a_deck(
        federation: &Federation,
        role: PartyId,
        answer: &'a [u64],
    ) -> Result<(Parties<'a>, Vec<Sent>), Failure> {
        let n = federation.roster.sites.len();
        let small = n.min(MAX_REHEARSED);
        let names: Vec<String> = (0..small).map(|i| format!("party-{i}")).collect();
        let identities = fresh(small);
        let roster = Arc::new(roster_of(&identities, &names));
        let slots = slots_of(&federation.terms, role);
        let mut terms = Terms { roster: roster.hash(), slots, ..federation.terms.as_ref().clone() };
        if small < n {
            // Numbers for the real cohort may not fit the smaller one; none of them changes what is sent.
            (terms.min_cohort, terms.threshold, terms.colluders) = (3, 0, 0);
        }
        terms.check(&roster)?;
        let terms = Arc::new(terms);
        let site = |identity: &Arc<_>| {
            Site::new(SiteConfig {
                identity: Arc::clone(identity),
                roster: roster.clone(),
                terms: terms.clone(),
                floor: rehearsing(),
                aggregator: role,
            })
        };
        let sites = identities[2..].iter().map(site).collect::<Result<Vec<_>, _>>()?;
        let config = AggregatorConfig {
            identity: identities[usize::from(role == PartyId::Intermediary)].clone(),
            roster,
            terms: terms.clone(),
            role,
            timing: Timing { join: 1_000, phase: 1_000, grace: 1_000, resend: 1_000_000 },
            slots,
        };
        let now = Millis(0);
        let mut aggregator = Aggregator::new(config, now, &mut system_rng())?;
        (0..small as u16).for_each(|i| aggregator.handle(aggregator::Input::Attached(i), now));
        let mut parties = Parties { terms, aggregator, sites, answer, missing: None, now, sent: Vec::new() };
        parties.until(|e| matches!(e, Event::DeckReady { .. }))?;
        let deck = std::mem::take(&mut parties.sent);
        Ok((parties, deck))
    }

    fn ask(&mut self, query: &[u8]) {
        let input = aggregator::Input::Ask { query: query.to_vec(), words: self.answer.len() };
        self.aggregator.handle(input, self.now);
    }

    /// Carries frames until the aggregator reports what is wanted; where nothing moves, time passes.
    fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<(), Failure> {
        loop {
            let (mut replies, mut reached) = (Vec::new(), false);
            while let Some(output) = self.aggregator.poll() {
                match output {
                    aggregator::Output::Send { to, bytes } if self.missing != Some(to) => {
                        replies.extend(self.replies(to, &bytes)?.into_iter().map(|reply| (to, reply)));
                    }
                    aggregator::Output::Event(Event::Failed(e)) => return Err(e.into()),
                    aggregator::Output::Event(event) => reached |= wanted(&event),
                    _ => {}
                }
            }
            for (from, bytes) in &replies {
                self.aggregator.handle(aggregator::Input::Message { from: *from, bytes }, self.now);
            }
            if reached {
                return Ok(());
            }
            if replies.is_empty() {
                let stands_still = || Failure::new(Code::Internal, "the rehearsal stands still", "please report it");
                self.now = Millis(self.aggregator.next_wake().ok_or_else(stands_still)?.0.max(self.now.0) + 1);
                self.aggregator.handle(aggregator::Input::Tick, self.now);
            }
        }
    }

    /// What a site sends on this frame.
    fn replies(&mut self, to: u16, frame: &[u8]) -> Result<Vec<Arc<Vec<u8>>>, Failure> {
        let site = &mut self.sites[usize::from(to)];
        site.handle(site::Input::Message(frame), &mut system_rng())?;
        let mut replies = Vec::new();
        while let Some(output) = site.poll() {
            match output {
                site::Output::Send { bytes, discloses } => {
                    if let (0, Some(kind)) = (to, kind_of(&bytes)) {
                        self.sent.push(Sent { kind, bytes: bytes.len(), discloses });
                    }
                    replies.push(bytes);
                }
                site::Output::Event(site::Event::Asked(asked)) => {
                    // Nothing leaves this process, so the account has no part in it.
                    let policy = Policy { floor: rehearsing(), ..Policy::default() };
                    let request = Request { agreed: true, ..Request::default() };
                    let consent = policy::decide(&self.terms, &policy, &asked, &request, &policy::Spent::default())?;
                    let values = if to == 0 { self.answer.to_vec() } else { vec![0; asked.words] };
                    site.handle(site::Input::Contribute { consent, values }, &mut system_rng())?;
                }
                // It is never continued, so nothing is kept.
                _ => {}
            }
        }
        Ok(replies)
    }
}

/// The floor of sites that rehearse.
fn rehearsing() -> Floor {
    Floor { max_rounds: u32::MAX, contributors: 1, ..Floor::default() }
}

/// What was sent for a round. A deck that was refilled meanwhile is no part of it.
fn of_round(sent: Vec<Sent>) -> Vec<Sent> {
    sent.into_iter().filter(|s| !crate::cost::DECK.contains(&s.kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cost::{DECK, frame_bytes},
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
        let kinds = |block_size| {
            let r = rehearsed(5, |t| t.block_size = block_size);
            assert!(r.goes_on);
            r.missing.iter().map(|s| s.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(1), [Kind::MaskedInput, Kind::ConsistencyCheck, Kind::Unmask]);
        // The first round of a block: it is burned, and asked again of those who are left.
        assert_eq!(kinds(0), [Kind::MaskedInput, Kind::Burned, Kind::MaskedInput, Kind::Unmask]);
        let r = rehearsed(3, |_| ());
        assert!(!r.goes_on);
        assert_eq!(r.missing.iter().map(|s| s.kind).collect::<Vec<_>>(), [Kind::MaskedInput, Kind::Burned]);
    }

    #[test]
    fn a_large_cohort_is_rehearsed_with_fewer() {
        let r = rehearsed(40, |t| (t.slots, t.min_cohort, t.threshold) = (1, 30, 35));
        assert_eq!((r.sites, r.goes_on), (MAX_REHEARSED, true));
    }
}
