//! The aggregator's process dies at every boundary of its life, and another takes the run up from its journal: every total
//! is what it would have been, none is told in two ways, and no site is asked for anything that it may not give ([JRN-5]).
//!
//! By default at every third boundary; `VEILSUM_CRASHES=all cargo test -p veilsum-proto --test protocol crashed_aggregator` takes all.

use veilsum_proto::aggregator::Record;
use veilsum_testkit::{crashes::*, prelude::*};

use crate::script::of_sites;

#[test]
fn the_run_ends_as_if_nothing_had_been() {
    for ordeal in &ORDEALS {
        let calm = ordeal.live(&[]);
        // A site that vanishes in the round that is taken up is missed again, so the totals stay the same there, too.
        for boundary in (0..calm.hub_boundaries).step_by(if all() { 1 } else { 3 }) {
            let lived = ordeal.live_with_hub(&[], &[boundary]);
            lived.fits(&calm);
            let other = |e: &Error| e.rule().is_none_or(|r| r != Rule::Frm7);
            assert!(!lived.errors.iter().any(|(_, e)| other(e)), "{lived:?}");
        }
    }
}

/// Another process has all questions and openings of the run so far, byte for byte as the sites got them, and with the decks under which a
/// third party reads them.
#[test]
fn what_was_said_to_the_sites_is_in_the_journal() {
    let mut w = World::noted(4, 11, |t| t.slots = 2);
    let totals: Vec<Vec<u64>> = (0..5).map(|r| w.total(&[r]).unwrap().0).collect();
    let mut resumed = Aggregator::resume(w.kit.coordinator(), w.log.clone(), Millis(0)).unwrap();
    let said = resumed.take_said();
    assert!(resumed.take_said().is_empty());
    let to_site = |f: &&Frame| !f.from_site && f.site == 0 && matches!(f.kind, Kind::Ask | Kind::Opening);
    let mut heard: Vec<&Vec<u8>> = w.seen().iter().filter(to_site).map(|f| &f.bytes).collect();
    heard.dedup();
    assert_eq!((said.len(), heard.len()), (10, 9), "the last opening leaves with the question after it, or at the end");
    assert!(said.iter().zip(heard).all(|((_, said), heard)| **said == *heard));
    let documents = Documents { roster: &w.kit.roster, terms: &w.kit.terms };
    for (pair, total) in said.chunks_exact(2).zip(&totals) {
        let opened = documents.opened(&pair[0].0, &pair[0].1, &pair[1].1).unwrap().unwrap();
        assert!(opened.values == *total && pair[0].0 == pair[1].0);
    }
}

/// Entries that contradict each other, or belong to something else, are no run.
#[test]
fn a_journal_that_cannot_be() {
    let mut w = World::new(Kit::new(4, |t| t.slots = 3), 5);
    (0..4).for_each(|r| drop(w.ask(&[r], WORDS).unwrap()));
    let whole = w.log.clone();
    let resume = |entries: Vec<Record>| Aggregator::resume(w.kit.coordinator(), entries, Millis(0)).map(drop);
    assert_eq!(resume(whole.clone()), Ok(()));
    // Any beginning of it is a run.
    (1..whole.len()).for_each(|n| assert_eq!(resume(whole[..n].to_vec()), Ok(()), "{n} entries"));
    let mut refused = 0;
    for i in 0..whole.len() {
        let mut twice = whole.clone();
        twice.insert(i, whole[i].clone());
        let mut without = whole.clone();
        without.remove(i);
        for entries in [twice, without] {
            match resume(entries) {
                Ok(()) => {}
                Err(Error::Journal(_)) => refused += 1,
                Err(e) => panic!("{e}"),
            }
        }
    }
    // Survivors may stand there twice, and a deck that was never used may be missing.
    assert!(refused > whole.len(), "{refused} of {}", 2 * whole.len());
    let other = Kit::new(5, |_| {});
    assert!(matches!(Aggregator::resume(other.coordinator(), whole, Millis(0)), Err(Error::Journal(_))));
    assert!(matches!(resume(Vec::new()), Err(Error::Journal(_))));
}

/// [POL-1]: whoever takes up a run over the same sites makes no total of those who are left.
#[test]
fn pol_1_a_loss_after_a_total_that_another_process_told_ends_the_run() {
    let mut w = World::new(Kit::same(5, |_| {}), 6);
    of_sites(&mut w, |wire, nth| {
        if (wire.site, wire.kind, nth) == (4, Kind::MaskedInput, 2) { Verdict::Vanish } else { Verdict::Pass }
    });
    w.ask(b"a", 3).unwrap();
    let dies_at = w.hub_boundaries + 2;
    w.hub_crashes = vec![dies_at];
    let error = w.ask(b"b", 3).expect_err("a site is missing");
    assert!(w.hub_boundaries > dies_at);
    assert!(matches!(&error, Error::Quorum { step, alive: 4, .. } if step.starts_with("a total")), "{error}");
}

/// Whoever was left out of the survivors is lost to the application of whatever process names them, at the end of its
/// patience or because the process before had left it out.
#[test]
fn who_was_left_out_before_is_lost_to_the_next_process() {
    let play = |hub: &[usize]| {
        let mut w = World::new(Kit::new(4, |t| t.slots = 2), 7);
        of_sites(&mut w, |wire, _| {
            if (wire.site, wire.kind) == (3, Kind::MaskedInput) { Verdict::Vanish } else { Verdict::Pass }
        });
        w.hub_crashes = hub.to_vec();
        assert_eq!(w.ask(b"a", 3).unwrap().1, [0, 1, 2], "{hub:?}");
        for (site, why) in w.losses() {
            assert!(site == 3 && matches!(why, Loss::Silent | Loss::Gone), "{hub:?}: {why}");
        }
        assert!(w.lost(3).is_some(), "{hub:?}");
        w.hub_boundaries
    };
    for boundary in 0..play(&[]) {
        play(&[boundary]);
    }
}
