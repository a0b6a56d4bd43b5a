//! Frames of a whole run changed, doubled, reordered, replayed or said twice, in both directions: nobody panics, the culprit
//! is named, and the others' totals stay exact. Changes of one message are in `known_lies.txt`.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use veilsum_proto::{Rule, aggregator::Event, codec, message::Kind, suite::Hash, vectors_api::commit};
use veilsum_testkit::{federation::*, wire::*};

use crate::script::signs;

#[test]
fn every_frame_doubled_and_led_by_an_older_one() {
    let mut fed = World::noted(5, 42, |t| t.slots = 4);
    /// Frames seen so far, by site and direction.
    type Past = BTreeMap<(u16, bool), Vec<Vec<u8>>>;
    let past: RefCell<Past> = RefCell::default();
    let mut turn = 0usize;
    fed.tap(move |w| {
        let mut past = past.borrow_mut();
        let old = past.entry((w.site, w.from_site)).or_default();
        turn += 1;
        let mut out = Vec::new();
        if !old.is_empty() {
            // Everything from long ago to the frame before.
            out.push(old[turn * 7 % old.len()].clone());
        }
        out.extend([w.bytes.clone(), w.bytes.clone()]);
        // A reply to a replay is no news and is not replayed in its turn, or the wire would never fall silent.
        if old.len() < 60 {
            old.push(w.bytes.clone());
        }
        if turn > 6_000 { vec![w.bytes.clone()] } else { out }
    });
    for r in 0..9u8 {
        assert_eq!(fed.ask_exact(&[r]).len(), 5, "round {r}: {:?}", fed.site_errors);
    }
}

#[test]
fn a_whole_run_replayed_into_its_own_end() {
    let mut fed = World::noted(5, 43, |_| {});
    for r in 0..3u8 {
        fed.ask_exact(&[r]);
    }
    let old = fed.seen().to_vec();
    for w in old.iter().rev().chain(&old) {
        fed.inject(w.site, w.from_site, &w.bytes);
    }
    assert_eq!(fed.ask_exact(b"q").len(), 5, "{:?}", fed.events);
    assert!(!fed.events.iter().any(|e| matches!(e, Event::Lost { .. })));
}

#[test]
fn frames_of_one_run_are_nothing_in_the_next() {
    let mut first = World::noted(5, 44, |_| {});
    first.ask_exact(b"q");
    let mut second = World::noted(5, 45, |_| {});
    second.ask_exact(b"a");
    let count = second.seen().iter().filter(|w| w.from_site).count();
    for w in first.seen() {
        second.inject(w.site, w.from_site, &w.bytes);
    }
    assert_eq!(second.seen().iter().filter(|w| w.from_site).count(), count, "no site answers to another run");
    assert_eq!(second.ask_exact(b"q").len(), 5, "{:?}", second.events);
}

#[test]
fn strangers_and_the_lost_are_dropped_unread() {
    let mut fed = World::noted(5, 48, |_| {});
    fed.ask_exact(b"a");
    for from in [5, 6, 999, u16::MAX] {
        fed.inject(from, true, b"anything");
    }
    fed.inject(2, true, b"nonsense");
    assert!(fed.lost(2).is_some());
    let events = fed.events.len();
    fed.inject(2, true, b"more nonsense");
    assert_eq!(fed.events.len(), events, "and is not lost twice");
    assert_eq!(fed.ask_exact(b"b"), [0, 1, 3, 4]);
}

/// [INP-2], [KEX-13]: a site that says two things where one is due is out, by name; with keys also when the second ones come after
/// the directory.
#[test]
fn two_answers_to_one_question_and_two_advertisements_for_one_deck() {
    let turned: fn(&Parts) -> Vec<u8> = |p| p.rest.iter().map(|b| b ^ 1).collect();
    let committed: fn(&Parts) -> Vec<u8> = |p| {
        let words: Vec<u64> = p.words().iter().map(|w| w ^ 1).collect();
        [&commit(&words)[..], &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>()].concat()
    };
    let other_key: fn(&Parts) -> Vec<u8> = |p| {
        let keys: Keys = p.read();
        codec::encode(&([9u8; 32], keys.1, keys.2, keys.3))
    };
    for (kind, with, change, rule) in [
        (Kind::MaskedInput, Kind::MaskedInput, turned, Rule::Inp2),
        (Kind::MaskedInput, Kind::MaskedInput, committed, Rule::Inp2),
        (Kind::AdvertiseKeys, Kind::AdvertiseKeys, other_key, Rule::Kex13),
        (Kind::AdvertiseKeys, Kind::AcceptDirectory, other_key, Rule::Kex13),
    ] {
        let mut fed = World::noted(5, 49, |_| {});
        let (me, s) = (fed.identity(1), fed.session());
        let mut first = None;
        fed.tap(move |w| {
            let mut sent = vec![w.bytes.clone()];
            if w.from_site && w.site == 1 {
                first = first.take().or_else(|| (w.kind == kind).then(|| parts(&w.bytes)));
                if let Some(p) = first.as_ref().filter(|_| w.kind == with) {
                    sent.insert(usize::from(kind == with), raw(&me, &s, kind, &p.context, &change(p)));
                }
            }
            sent
        });
        assert_eq!(fed.ask_exact(b"q"), [0, 2, 3, 4]);
        assert!(fed.lost(1).is_some_and(|why| why.contains("site-1") && why.contains(rule.name())));
    }
}

/// Of nine sites, of which seven shares are needed, some give wrong ones: around enough right ones they are corrected and named,
/// else there is an error and no total.
#[test]
fn wrong_shares_are_corrected_and_named_or_end_the_round() {
    for (liars, corrected) in [(&[0u16][..], true), (&[0, 1, 2], false)] {
        let mut fed = World::noted(9, 52, |_| {});
        signs(&mut fed, liars, Kind::Unmask, |_, p| {
            let mut shares = p.shares();
            shares.iter_mut().for_each(|share| share[1] ^= 4);
            codec::encode(&shares)
        });
        let total = fed.total(b"q");
        if corrected {
            assert_eq!(total, Ok((sum(&everybody(9), b"q"), everybody(9))), "its input is in the total all the same");
            let named: Vec<&Event> = fed.events.iter().filter(|e| matches!(e, Event::WrongShare { .. })).collect();
            assert_eq!(named, [&Event::WrongShare { holder: 0, owner: 0 }], "after the first its shares are not used");
            fed.ask_exact(b"r");
        } else {
            assert_eq!(total.expect_err("six right shares of the seven needed").rule(), Some(Rule::Unm6));
        }
    }
}

#[test]
fn a_complaint_after_the_acknowledgement_is_too_late() {
    let mut fed = World::noted(7, 55, |_| {});
    let (me, s) = (fed.identity(4), fed.session());
    let context = Rc::new(RefCell::new(Hash::default()));
    let log = context.clone();
    fed.tap(move |w| {
        if w.kind == Kind::ShareAck && w.site == 4 {
            log.replace(parts(&w.bytes).context);
            return vec![w.bytes.clone(), raw(&me, &s, Kind::ShareComplaint, &log.borrow(), &codec::encode(&1u16))];
        }
        vec![w.bytes.clone()]
    });
    assert_eq!(fed.ask_exact(b"q").len(), 7);
    let late = raw(&fed.identity(4), &s, Kind::ShareComplaint, &context.borrow(), &codec::encode(&1u16));
    fed.inject(4, true, &late);
    assert_eq!(fed.ask_exact(b"r").len(), 7, "{:?}", fed.events);
}
