//! Every frame of a run cut, changed, doubled, reordered or invented, in both directions: nobody panics, the culprit
//! is named, and the others' totals stay exact.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use veilsum_proto::{
    Rule,
    aggregator::Event,
    codec,
    identity::Identity,
    message::{HEADER, Kind, session},
    roster::PartyId,
    suite::Hash,
};
use veilsum_testkit::{
    federation::*,
    recording::{OF_HUB, OF_SITES},
    wire::*,
};

const VICTIM: u16 = 3;

/// What is sent where nobody complains and nobody is burned.
fn of_sites() -> impl Iterator<Item = Kind> {
    OF_SITES[..8].iter().copied().filter(|kind| *kind != Kind::ShareComplaint)
}

fn of_hub() -> &'static [Kind] {
    &OF_HUB[..7]
}

/// A change of a frame; the identity is that of its sender.
type Change = Rc<dyn Fn(&Parts, &[u8], &Identity, &Hash) -> Vec<u8>>;

fn changes(fed: &World) -> Vec<(&'static str, Change)> {
    let bytewise = |f: fn(&mut Vec<u8>)| -> Change {
        Rc::new(move |_, bytes, _, _| {
            let mut b = bytes.to_vec();
            f(&mut b);
            b
        })
    };
    let other = session(&fed.kit.terms.hash(), &fed.kit.roster.hash(), PartyId::Intermediary);
    let thief = fed.identity(2);
    let mut all: Vec<(&'static str, Change)> = vec![
        ("empty", bytewise(Vec::clear)),
        ("a byte", bytewise(|b| b.truncate(1))),
        ("a header", bytewise(|b| b.truncate(HEADER))),
        ("half", bytewise(|b| b.truncate(b.len() / 2))),
        ("one byte short", bytewise(|b| b.truncate(b.len() - 1))),
        ("one byte long", bytewise(|b| b.push(0))),
        ("another version", bytewise(|b| b[0] ^= 2)),
        ("an unknown kind", bytewise(|b| b[3] = 0xff)),
        ("a huge length", bytewise(|b| b[4..8].fill(0xff))),
        ("a bit of the context", bytewise(|b| b[HEADER] ^= 1)),
        ("a bit of the signature", bytewise(|b| *b.last_mut().unwrap() ^= 1)),
        ("another party's signature", Rc::new(move |p, _, _, s| raw(&thief, s, p.kind, &p.context, &p.rest))),
        ("another session", Rc::new(move |p, _, me, _| raw(me, &other, p.kind, &p.context, &p.rest))),
    ];
    if fed.seen().is_empty() {
        all.push((
            "a signed tail",
            Rc::new(|p, _, me, s| {
                let rest: Vec<u8> = p.rest.iter().copied().chain([1, 2, 3]).collect();
                raw(me, s, p.kind, &p.context, &rest)
            }),
        ));
        all.push((
            "a signed cut",
            Rc::new(|p, _, me, s| raw(me, s, p.kind, &p.context, &p.rest[..p.rest.len().saturating_sub(1)])),
        ));
        all.push((
            "a signed huge list",
            Rc::new(|p, _, me, s| raw(me, s, p.kind, &p.context, &(u64::MAX / 2).to_le_bytes())),
        ));
    }
    all
}

/// Seven sites, of which the last never answers, so that every kind of message is sent.
fn fed(seed: u64, tamper: impl Fn(&Frame) -> Option<Vec<u8>> + 'static) -> World {
    let mut fed = World::noted(7, seed, |_| {});
    fed.tap(move |w| {
        if w.site == 6 && w.kind == Kind::MaskedInput {
            return vec![];
        }
        vec![tamper(w).unwrap_or_else(|| w.bytes.clone())]
    });
    fed
}

#[test]
fn every_frame_of_a_site_damaged_in_every_way() {
    for kind in of_sites() {
        let probe = World::noted(7, 40, |_| {});
        let (me, s) = (probe.identity(VICTIM), probe.session());
        for (name, change) in changes(&probe) {
            // An acknowledgement has no contents to cut; its tail is in the regressions.
            if name.starts_with("a signed") && kind == Kind::ShareAck {
                continue;
            }
            let me = me.clone();
            let mut fed = fed(40, move |w| {
                let hit = w.from_site && w.site == VICTIM && w.kind == kind;
                hit.then(|| change(&parts(&w.bytes), &w.bytes, &me, &s))
            });
            let cohort = fed.ask_exact(b"q");
            let what = format!("{kind:?}: {name}: {:?}", fed.events);
            assert!([0, 1, 2, 4, 5].iter().all(|s| cohort.contains(s)), "{what}");
            // A share that comes after the total is open is not looked at.
            if kind != Kind::Unmask {
                assert!(fed.lost(VICTIM).is_some_and(|why| why.contains("site-3")), "{what}");
            }
            assert!([0, 1, 2, 4, 5].iter().all(|s| fed.lost(*s).is_none()), "{what}");
            assert!(fed.site_errors.iter().all(|(s, _)| *s == VICTIM), "{what}: {:?}", fed.site_errors);
        }
    }
}

#[test]
fn every_frame_to_a_site_damaged_once_is_survived_by_sending_it_again() {
    for kind in of_hub().iter().copied() {
        let probe = World::noted(7, 41, |_| {});
        let (hub, s) = (probe.kit.identities[0].clone(), probe.session());
        for (name, change) in changes(&probe) {
            let (hub, done) = (hub.clone(), Cell::new(false));
            let mut fed = fed(41, move |w| {
                let hit = !w.from_site && w.site == VICTIM && w.kind == kind && !done.get();
                done.set(done.get() || hit);
                hit.then(|| change(&parts(&w.bytes), &w.bytes, &hub, &s))
            });
            let cohort = fed.ask_exact(b"q");
            assert_eq!(cohort, everybody(6), "{kind:?}: {name}");
        }
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

/// Site `who` sends something else in place of every frame of `kind`; it alone is out, under `rule`.
#[track_caller]
fn culprit(who: u16, kind: Kind, rule: Rule, change: impl Fn(&Parts) -> Vec<u8> + 'static) {
    let probe = World::noted(7, 46, |_| {});
    let (me, s) = (probe.identity(who), probe.session());
    let mut fed = fed(46, move |w| {
        let hit = w.from_site && w.site == who && w.kind == kind;
        hit.then(|| {
            let p = parts(&w.bytes);
            raw(&me, &s, kind, &p.context, &change(&p))
        })
    });
    fed.ask_exact(b"q");
    let why = fed.lost(who).expect("the culprit is out");
    assert!(why.contains(&format!("site-{who}")) && why.contains(rule.name()), "{why}");
    assert!((0..6).all(|s| s == who || fed.lost(s).is_none()), "{:?}", fed.events);
}

#[test]
fn contents_that_a_site_may_not_send() {
    culprit(2, Kind::MaskedInput, Rule::Inp1, |p| p.rest[8..].to_vec());
    culprit(2, Kind::MaskedInput, Rule::Inp1, |p| p.rest[1..].to_vec());
    culprit(2, Kind::MaskedInput, Rule::Inp1, |p| [&p.rest[..], &[0; 8]].concat());
    culprit(2, Kind::ConsistencyCheck, Rule::Con3, |p| {
        codec::encode(&(p.read::<Check>().0, Vec::<(u16, [u8; 32])>::new()))
    });
    culprit(2, Kind::ConsistencyCheck, Rule::Con3, |p| {
        let (round, mut seeds): Check = p.read();
        seeds[0].0 = 1;
        codec::encode(&(round, seeds))
    });
    culprit(0, Kind::Unmask, Rule::Unm3, |p| codec::encode(&p.read::<Vec<[u8; 32]>>()[1..].to_vec()));
    culprit(0, Kind::Unmask, Rule::Unm3, |p| codec::encode(&vec![[0xffu8; 32]; p.read::<Vec<[u8; 32]>>().len()]));
    for change in [
        (|c: &mut Ciphertexts| drop(c.pop())) as fn(&mut Ciphertexts),
        |c| c.clear(),
        |c| c.swap(0, 1),
        |c| c.push(c[0].clone()),
        |c| c[0].0 = 2,
        |c| c[1].0 = 4,
    ] {
        culprit(2, Kind::AcceptDirectory, Rule::Kex17, move |p| {
            let mut ciphertexts: Ciphertexts = p.read();
            change(&mut ciphertexts);
            codec::encode(&ciphertexts)
        });
    }
    culprit(2, Kind::ShareKeys, Rule::Shr3, |p| {
        let (mut commitments, boxes): (Vec<Hash>, Boxes) = p.read();
        commitments[0] = Hash::default();
        codec::encode(&(commitments, boxes))
    });
    for change in
        [(|b: &mut Boxes| drop(b.pop())) as fn(&mut Boxes), |b| b.swap(0, 1), |b| b[0].0 = 2, |b| b[0].1.push(0)]
    {
        culprit(2, Kind::ShareKeys, Rule::Shr3, move |p| {
            let (commitments, mut boxes): (Vec<Hash>, Boxes) = p.read();
            change(&mut boxes);
            codec::encode(&(commitments, boxes))
        });
    }
}

#[test]
fn kinds_that_are_not_a_sites_to_send() {
    let others = Kind::ALL[16..].iter().filter(|kind| **kind != Kind::Burned);
    for kind in of_hub().iter().chain(others) {
        let mut fed = World::noted(5, 47, |_| {});
        assert_eq!(fed.ask_exact(b"a").len(), 5);
        let frame = raw(&fed.identity(2), &fed.session(), *kind, &Hash::default(), &[0; 8]);
        fed.inject(2, true, &frame);
        assert!(fed.lost(2).is_some_and(|why| why.contains("site-2") && why.contains("FRM-6")), "{kind:?}");
        assert_eq!(fed.ask_exact(b"b"), [0, 1, 3, 4]);
    }
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

#[test]
fn one_question_answered_twice_with_different_vectors() {
    let mut fed = World::noted(5, 49, |_| {});
    let (me, s) = (fed.identity(1), fed.session());
    fed.tap(move |w| {
        if !(w.from_site && w.site == 1 && w.kind == Kind::MaskedInput) {
            return vec![w.bytes.clone()];
        }
        let p = parts(&w.bytes);
        vec![w.bytes.clone(), raw(&me, &s, p.kind, &p.context, &p.rest.iter().map(|b| b ^ 1).collect::<Vec<_>>())]
    });
    assert_eq!(fed.ask_exact(b"q"), [0, 2, 3, 4]);
    assert!(fed.lost(1).is_some_and(|why| why.contains("site-1") && why.contains("INP-2")));
}

#[test]
fn two_advertisements_for_one_deck() {
    let mut fed = World::noted(5, 50, |_| {});
    let (me, s) = (fed.identity(1), fed.session());
    fed.tap(move |w| {
        if !(w.from_site && w.site == 1 && w.kind == Kind::AdvertiseKeys) {
            return vec![w.bytes.clone()];
        }
        let p = parts(&w.bytes);
        let keys: Keys = p.read();
        vec![w.bytes.clone(), raw(&me, &s, p.kind, &p.context, &codec::encode(&(keys.1, keys.0, keys.2, keys.3)))]
    });
    assert_eq!(fed.ask_exact(b"q"), [0, 2, 3, 4]);
    assert!(fed.lost(1).is_some_and(|why| why.contains("site-1") && why.contains("KEX-13")));
}

#[test]
fn another_sites_masked_vector_as_ones_own() {
    let mut fed = World::noted(5, 51, |_| {});
    let (me, s) = (fed.identity(2), fed.session());
    let copied = RefCell::new(Vec::new());
    fed.tap(move |w| {
        if !(w.from_site && w.kind == Kind::MaskedInput) {
            return vec![w.bytes.clone()];
        }
        let p = parts(&w.bytes);
        if w.site == 1 {
            copied.replace(p.rest);
        } else if w.site == 2 {
            return vec![raw(&me, &s, p.kind, &p.context, &copied.borrow())];
        }
        vec![w.bytes.clone()]
    });
    assert_eq!(fed.ask_exact(b"q"), [0, 1, 3, 4]);
    assert!(fed.lost(2).is_some_and(|why| why.contains("site-2") && why.contains("INP-3")));
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
fn a_box_that_does_not_open_costs_both_and_nobody_else() {
    let mut fed = World::noted(7, 53, |_| {});
    let (me, s) = (fed.identity(2), fed.session());
    fed.tap(move |w| {
        if !(w.from_site && w.site == 2 && w.kind == Kind::ShareKeys) {
            return vec![w.bytes.clone()];
        }
        let p = parts(&w.bytes);
        let (commitments, mut boxes): (Vec<Hash>, Boxes) = p.read();
        boxes.iter_mut().filter(|b| b.0 == 4).for_each(|b| b.1[5] ^= 1);
        vec![raw(&me, &s, p.kind, &p.context, &codec::encode(&(commitments, boxes)))]
    });
    assert_eq!(fed.ask_exact(b"q"), [0, 1, 3, 5, 6]);
    for s in [2, 4] {
        assert!(fed.lost(s).is_some_and(|why| why.contains("site-2") && why.contains("site-4")), "{:?}", fed.events);
    }
}

#[test]
fn a_complaint_about_nobody_or_oneself_costs_only_the_one_who_complains() {
    for against in [4u16, 7, 999, u16::MAX] {
        let mut fed = World::noted(7, 54, |_| {});
        let (me, s) = (fed.identity(4), fed.session());
        fed.tap(move |w| {
            if !(w.from_site && w.site == 4 && w.kind == Kind::ShareAck) {
                return vec![w.bytes.clone()];
            }
            vec![raw(&me, &s, Kind::ShareComplaint, &parts(&w.bytes).context, &codec::encode(&against))]
        });
        assert_eq!(fed.ask_exact(b"q"), [0, 1, 2, 3, 5, 6], "{against}");
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
