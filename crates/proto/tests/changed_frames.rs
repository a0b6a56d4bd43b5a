//! Frames of a whole run changed, doubled, reordered, replayed or said twice, in both directions: nobody panics, the culprit
//! is named, and the others' totals stay exact. Changes of one message are in `known_lies.txt`.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use veilsum_proto::{Rule, aggregator::Event, codec, message::Kind, suite::Hash, vectors_api::commit};
use veilsum_testkit::{federation::*, recording::OF_HUB, wire::*};

#[test]
fn every_frame_to_a_site_damaged_once_is_survived_by_sending_it_again() {
    for kind in OF_HUB[..7].iter().copied() {
        let mut fed = World::noted(7, 41, |_| {});
        let done = Cell::new(false);
        fed.tap(move |w| {
            let mut bytes = w.bytes.clone();
            if !w.from_site && w.site == 3 && w.kind == kind && !done.replace(true) {
                *bytes.last_mut().unwrap() ^= 1;
            }
            // The last one never answers, so that every kind of message is sent.
            if w.site == 6 && w.kind == Kind::MaskedInput { vec![] } else { vec![bytes] }
        });
        assert_eq!(fed.ask_exact(b"q"), everybody(6), "{kind:?}");
    }
}

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

/// [INP-2], [KEX-13]: a site that says two things where one is due is out, by name.
#[test]
fn two_answers_to_one_question_and_two_advertisements_for_one_deck() {
    let turned: fn(&Parts) -> Vec<u8> = |p| p.rest.iter().map(|b| b ^ 1).collect();
    let committed: fn(&Parts) -> Vec<u8> = |p| {
        let words: Vec<u64> = p.words().iter().map(|w| w ^ 1).collect();
        [&commit(&words)[..], &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>()].concat()
    };
    let swapped: fn(&Parts) -> Vec<u8> = |p| {
        let keys: Keys = p.read();
        codec::encode(&(keys.1, keys.0, keys.2, keys.3))
    };
    for (kind, change, rule) in [
        (Kind::MaskedInput, turned, Rule::Inp2),
        (Kind::MaskedInput, committed, Rule::Inp2),
        (Kind::AdvertiseKeys, swapped, Rule::Kex13),
    ] {
        let mut fed = World::noted(5, 49, |_| {});
        let (me, s) = (fed.identity(1), fed.session());
        fed.tap(move |w| {
            let mut sent = vec![w.bytes.clone()];
            if w.from_site && w.site == 1 && w.kind == kind {
                let p = parts(&w.bytes);
                sent.push(raw(&me, &s, kind, &p.context, &change(&p)));
            }
            sent
        });
        assert_eq!(fed.ask_exact(b"q"), [0, 2, 3, 4]);
        assert!(fed.lost(1).is_some_and(|why| why.contains("site-1") && why.contains(rule.name())));
    }
}

/// Sites below `liars` give wrong shares; nine sites, threshold 7.
fn wrong_shares(liars: u16) -> World {
    let mut fed = World::noted(9, 52, |_| {});
    let ids: Vec<_> = (0..liars).map(|s| fed.identity(s)).collect();
    let s = fed.session();
    fed.tap(move |w| match ids.get(usize::from(w.site)) {
        Some(me) if w.from_site && w.kind == Kind::Unmask => {
            let p = parts(&w.bytes);
            let mut shares: Vec<[u8; 32]> = p.read();
            shares.iter_mut().for_each(|b| b[1] ^= 4);
            vec![raw(me, &s, p.kind, &p.context, &codec::encode(&shares))]
        }
        _ => vec![w.bytes.clone()],
    });
    fed
}

#[test]
fn a_wrong_share_among_enough_right_ones_is_corrected_and_named() {
    let mut fed = wrong_shares(1);
    assert_eq!(fed.ask_exact(b"q").len(), 9, "its input is in the total all the same");
    let wrong = |e: &&Event| matches!(e, Event::WrongShare { .. });
    let named: Vec<&Event> = fed.events.iter().filter(wrong).collect();
    assert_eq!(named, [&Event::WrongShare { holder: 0, owner: 0 }], "after the first one its shares are not used");
    fed.ask_exact(b"r");
}

#[test]
fn too_many_wrong_shares_end_in_a_clear_error_and_no_total() {
    let mut fed = wrong_shares(3);
    let e = fed.total(b"q").expect_err("six right shares of the seven needed");
    assert_eq!(e.rule(), Some(Rule::Unm6), "{e}");
    assert!(!fed.events.iter().any(|e| matches!(e, Event::Total { .. })));
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
