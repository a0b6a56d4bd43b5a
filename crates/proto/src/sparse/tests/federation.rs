//! Honest federations: totals with everybody there and with some missing at every step.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use super::{forced, sum, weak, world};
use crate::{
    Error,
    sparse::{
        AggregatorEvent, Kind, Shape, Sizes,
        testing::{Verdict, World},
    },
    testing::Kit,
};

/// The total is right only where all masks are those of [SPA-18].
#[test]
fn nobody_missing() {
    let mut w = world(50, forced(50), 3, 1);
    for round in 0..3u8 {
        let (values, cohort, missing) = w.ask(&[round], 5).unwrap();
        assert_eq!(cohort.len(), 50);
        assert!(missing.is_empty());
        assert_eq!(values, sum(&cohort, 5));
    }
    assert!(w.site_errors.is_empty(), "{:?}", w.site_errors);
}

/// Sites that fall silent as they send a frame of this kind, every `n / gone`-th.
fn silent_at(w: &mut World, kind: Kind, every: u16) {
    w.hook = Box::new(move |wire| {
        let falls = wire.from_site && wire.kind == kind && wire.site % every == 3;
        if falls { Verdict::Vanish } else { Verdict::Pass }
    });
}

/// Totals come out only where both secrets of a slot were shared ([SPA-11]) and the right one of them is given ([SPA-22]).
#[test]
fn missing_before_their_input() {
    let mut w = world(60, forced(60), 4, 2);
    w.ask(b"first", 3).unwrap();
    silent_at(&mut w, Kind::Input, 10);
    let (values, cohort, missing) = w.ask(b"second", 3).unwrap();
    assert_eq!((cohort.len(), missing.len()), (54, 6));
    assert_eq!(values, sum(&cohort, 3));
    // They stay away, and their neighbours mask without them.
    let (values, cohort, missing) = w.ask(b"third", 3).unwrap();
    assert_eq!((cohort.len(), missing.len()), (54, 0));
    assert_eq!(values, sum(&cohort, 3));
}

/// Once its input is there a site is in the total, whatever becomes of it: nobody but the committee is needed.
#[test]
fn missing_after_their_input() {
    let mut w = world(60, forced(60), 4, 3);
    let mut inputs = 0;
    w.hook = Box::new(move |wire| {
        inputs += u32::from(wire.from_site && wire.kind == Kind::Input);
        // Two members of the committee are silent from the survivors on.
        let falls = inputs == 60 && wire.kind == Kind::Survivors && !wire.from_site && wire.site % 7 == 0;
        if falls { Verdict::Vanish } else { Verdict::Pass }
    });
    let (values, cohort, missing) = w.ask(b"first", 3).unwrap();
    assert_eq!((cohort.len(), missing.len()), (60, 0));
    assert_eq!(values, sum(&cohort, 3));
}

/// Both ends of an edge gone: one before its input, its neighbours right after theirs.
#[test]
fn both_ends_of_an_edge_gone() {
    let n = 60;
    let mut w = world(n, forced(60), 4, 4);
    w.hook = Box::new(move |wire| match (wire.kind, wire.from_site) {
        (Kind::Input, true) if wire.site % 10 == 3 => Verdict::Vanish,
        _ => Verdict::Pass,
    });
    // Every site that is not of the committee falls silent once its input is out, so no edge has an end that answers.
    let committee = committee(&mut w);
    let mut sent = std::collections::BTreeSet::new();
    w.hook = Box::new(move |wire| {
        if wire.from_site && wire.kind == Kind::Input {
            if wire.site % 10 == 3 && !committee.contains(&wire.site) {
                return Verdict::Vanish;
            }
            sent.insert(wire.site);
        }
        let after = sent.contains(&wire.site) && !committee.contains(&wire.site) && !wire.from_site;
        if after { Verdict::Vanish } else { Verdict::Pass }
    });
    let (values, cohort, missing) = w.ask(b"first", 3).unwrap();
    assert!(!missing.is_empty() && cohort.len() + missing.len() == n);
    assert_eq!(values, sum(&cohort, 3));
}

/// Runs until the first deck is ready and says who its committee is.
pub(super) fn committee(w: &mut World) -> Vec<u16> {
    match w.until(|e| matches!(e, AggregatorEvent::DeckReady { .. })).unwrap() {
        AggregatorEvent::DeckReady { committee, .. } => committee,
        _ => unreachable!("waited for this one"),
    }
}

/// [SPA-25].
#[test]
fn decks_follow_each_other() {
    let mut w = world(50, forced(50), 2, 5);
    silent_at(&mut w, Kind::Input, 17);
    for round in 0..7u8 {
        let (values, cohort, _) = w.ask(&[round], 2).unwrap();
        assert_eq!(values, sum(&cohort, 2));
    }
    let decks = w.events.iter().filter(|e| matches!(e, AggregatorEvent::DeckReady { .. })).count();
    assert_eq!(decks, 4);
}

/// [SPA-5]: no two sites, decks or purposes have a key, a commitment or a hash in common.
#[test]
fn every_deck_has_fresh_secrets() {
    let mut w = world(20, Sizes { degree: 6, nearby: 4, committee: 5, quorum: 4, floor: 16 }, 1, 10);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let all = seen.clone();
    w.hook = Box::new(move |wire| {
        if wire.from_site && wire.kind == Kind::Advertise {
            // A header of 8 bytes, a context of 32, four values of 32 each, a signature.
            all.borrow_mut().extend(wire.bytes[40..168].chunks(32).map(<[u8]>::to_vec));
        }
        Verdict::Pass
    });
    for round in 0..2u8 {
        w.ask(&[round], 2).unwrap();
    }
    let (values, different) = (seen.borrow().len(), seen.borrow().iter().collect::<BTreeSet<_>>().len());
    assert_eq!((values, different), (4 * 20 * 2, 4 * 20 * 2));
}

#[test]
fn a_random_number_that_does_not_come_begins_the_set_up_again() {
    let mut w = world(50, forced(50), 2, 6);
    silent_at(&mut w, Kind::Reveal, 50);
    let (values, cohort, _) = w.ask(b"q", 2).unwrap();
    assert_eq!(cohort.len(), 49);
    assert_eq!(values, sum(&cohort, 2));
}

/// [SPA-25].
#[test]
fn silence_in_every_other_step_of_a_set_up_costs_only_the_silent() {
    for kind in [Kind::Advertise, Kind::Accept, Kind::Shares, Kind::Held] {
        let mut w = world(50, forced(50), 2, 7);
        silent_at(&mut w, kind, 25);
        let (values, cohort, _) = w.ask(b"q", 2).unwrap();
        assert!(cohort.len() >= 48, "{kind:?}");
        assert_eq!(values, sum(&cohort, 2));
    }
}

#[test]
fn too_few_left_open_nothing() {
    let mut w = world(50, forced(50), 3, 8);
    w.ask(b"first", 2).unwrap();
    silent_at(&mut w, Kind::Input, 4);
    let error = w.ask(b"second", 2).unwrap_err();
    assert!(matches!(error, Error::Quorum { .. }), "{error}");
}

#[test]
fn random_losses() {
    for seed in 0..5u64 {
        let n = 50 + 25 * seed as usize;
        let mut w = world(n, forced(n), 4, 100 + seed);
        let mut random = crate::suite::hash("losses", &[&seed.to_le_bytes()]);
        let mut left = n / 12;
        w.hook = Box::new(move |wire| {
            random = crate::suite::hash("next", &[&random.0]);
            let falls = wire.from_site && left > 0 && random.0[0] == 0 && random.0[1] < 60;
            left -= usize::from(falls);
            if falls { Verdict::Vanish } else { Verdict::Pass }
        });
        for round in 0..4u8 {
            match w.ask(&[round], 3) {
                Ok((values, cohort, _)) => assert_eq!(values, sum(&cohort, 3), "seed {seed}"),
                // Where the committee was hit too hard the question is lost, and the next one has another committee.
                Err(Error::Quorum { .. }) => {}
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        let totals = w.events.iter().filter(|e| matches!(e, AggregatorEvent::Total { .. })).count();
        assert!(totals >= 2, "seed {seed}: {totals} totals of 4");
    }
}

/// Sizes that are proved, if for weak bounds: the parties find the same ones, each for itself.
#[test]
#[ignore = "tens of seconds: cargo test -p veilsum-proto --lib fifteen_hundred -- --ignored"]
fn fifteen_hundred_sites() {
    let n = 1_500;
    println!("{:?}", weak().sizes(n, n));
    let mut w = World::new(Kit::new(n, |t| t.slots = 1), Shape::Proved(weak()), 9);
    w.answer = Box::new(|site, asked| (0..asked.words as u64).map(|p| super::value(site, p)).collect());
    silent_at(&mut w, Kind::Input, 100);
    let (values, cohort, missing) = w.ask(b"q", 4).unwrap();
    assert_eq!((cohort.len(), missing.len()), (1_485, 15));
    assert_eq!(values, sum(&cohort, 4));
}
