//! A rehearsal: one site's real state machine among made-up parties, in memory, to see what it would send.
//!
//! Every party of the rehearsal, this site included, has a throwaway identity; so nothing that comes out of it could be
//! used in the real run, and the real key signs nothing.

use veilsum_proto::{aggregator, roster::PartyId};

pub use crate::simulate::Sent;
use crate::{
    cost::slots_of,
    error::{Code, Failure},
};
use crate::{documents::Federation, simulate::Stage};

/// Parties of a rehearsal at most. A deck costs the square of this; sizes beyond it follow from the layouts.
pub const MAX_REHEARSED: usize = 24;

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
    let words = answer.len();
    let (mut stage, deck) = set_up(federation, role, &answer)?;
    stage.ask(query.to_vec(), words);
    stage.until(is_total)?;
    let round = of_round(stage.take_sent());
    // On a stage of its own: the same question may not be asked twice over different cohorts.
    let (mut stage, _) = set_up(federation, role, &answer)?;
    stage.gone.insert(1);
    stage.ask(query.to_vec(), words);
    let goes_on = match stage.until(is_total) {
        Ok(_) => true,
        Err(f) if f.code == Code::Quorum => false,
        Err(f) => return Err(f),
    };
    Ok(Rehearsal { sites: stage.sites(), deck, round, missing: of_round(stage.take_sent()), goes_on })
}

/// A stage with its deck, and what the first site, which is this one, sent for that.
fn set_up<'a>(federation: &Federation, role: PartyId, answer: &'a [u64]) -> Result<(Stage<'a>, Vec<Sent>), Failure> {
    let n = federation.roster.sites.len();
    let small = n.min(MAX_REHEARSED);
    let mut terms = federation.terms.as_ref().clone();
    terms.slots = slots_of(&terms, role);
    if small < n {
        // Numbers for the real cohort may not fit the smaller one; none of them changes what is sent.
        (terms.min_cohort, terms.threshold, terms.colluders) = (3, 0, 0);
    }
    let values = move |site, asked: &veilsum_proto::policy::Asked| {
        Ok(if site == 0 { answer.to_vec() } else { vec![0; asked.words] })
    };
    let mut stage = Stage::new(small, role, terms, Box::new(values))?;
    stage.until(|e| matches!(e, aggregator::Event::DeckReady { .. }))?;
    let deck = stage.take_sent();
    Ok((stage, deck))
}

/// What was sent for a round. A deck that was refilled meanwhile is no part of it.
fn of_round(sent: Vec<Sent>) -> Vec<Sent> {
    sent.into_iter().filter(|s| !crate::cost::DECK.contains(&s.kind)).collect()
}

#[cfg(test)]
mod tests {
    use veilsum_proto::{message::Kind, plan::Terms};

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
