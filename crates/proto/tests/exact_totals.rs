//! Whole federations in virtual time: totals are exact, whatever is lost, late, doubled or restarted.

use std::collections::BTreeMap;

use proptest::prelude::*;
use veilsum_proto::{Error, aggregator::Event, message::Kind};
use veilsum_testkit::federation::{Kit, Network, Verdict, World};

const WORDS: usize = 5;

/// A value that depends on everything, so that no two sums agree by accident.
fn value(site: u16, query: &[u8], word: usize) -> u64 {
    let mut x = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(u64::from(site) + 1).wrapping_add(word as u64);
    for b in query {
        x = (x ^ u64::from(*b)).wrapping_mul(0x1000_0000_01b3);
    }
    x
}

fn sum(cohort: &[u16], query: &[u8]) -> Vec<u64> {
    (0..WORDS).map(|w| cohort.iter().fold(0u64, |a, s| a.wrapping_add(value(*s, query, w)))).collect()
}

fn world(n: usize, seed: u64) -> World {
    let mut w = World::new(Kit::new(n, |_| {}), seed);
    w.answer = Box::new(|site, asked| (0..asked.words).map(|k| value(site, &asked.query, k)).collect());
    w
}

#[test]
fn nobody_missing_is_two_messages_a_site_and_round() {
    let mut w = world(5, 1);
    for r in 0..3u8 {
        let (values, cohort, missing) = w.ask(&[r], WORDS).unwrap();
        assert_eq!(values, sum(&[0, 1, 2, 3, 4], &[r]));
        assert_eq!((cohort.len(), missing.len()), (5, 0));
    }
    let mut per_site: BTreeMap<(u16, Kind), usize> = BTreeMap::new();
    w.sent_by_sites.iter().for_each(|(s, k, _)| *per_site.entry((*s, *k)).or_default() += 1);
    for s in 0..5 {
        assert_eq!(per_site[&(s, Kind::MaskedInput)], 3);
        // The last round's total needs t answers only; a late one may still be under way.
        assert!((2..=3).contains(&per_site[&(s, Kind::Unmask)]), "{per_site:?}");
        assert!(!per_site.contains_key(&(s, Kind::ConsistencyCheck)));
    }
    assert!(w.site_errors.is_empty(), "{:?}", w.site_errors);
}

/// [KEX-12].
#[test]
fn kex_12_decks_refill_before_they_run_out() {
    let mut w = world(4, 2);
    for r in 0..30u8 {
        assert_eq!(w.ask(&[r], WORDS).unwrap().0, sum(&[0, 1, 2, 3], &[r]));
    }
    let decks = w.events.iter().filter(|e| matches!(e, Event::DeckReady { .. })).count();
    assert!(decks >= 4, "30 rounds of 8 slots need at least 4 decks, saw {decks}");
}

/// Where in a round a site is lost.
#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
    BeforeInput,
    AfterInput,
    BeforeCheckReply,
    BeforeUnmask,
}

fn lose(w: &mut World, at: At, round: usize, who: Vec<u16>) {
    let mut asked: BTreeMap<u16, usize> = BTreeMap::new();
    w.hook = Box::new(move |wire| {
        if !wire.from_site && wire.kind == Kind::Ask {
            *asked.entry(wire.site).or_default() += 1;
        }
        let now = asked.get(&wire.site).copied().unwrap_or(0) == round + 1;
        if !now || !who.contains(&wire.site) {
            return Verdict::Pass;
        }
        let hit = match at {
            At::BeforeInput => wire.from_site && wire.kind == Kind::MaskedInput,
            At::AfterInput => !wire.from_site && wire.kind == Kind::Survivors,
            At::BeforeCheckReply => wire.from_site && wire.kind == Kind::ConsistencyCheck,
            At::BeforeUnmask => wire.from_site && wire.kind == Kind::Unmask,
        };
        if hit { Verdict::Vanish } else { Verdict::Pass }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Any set of up to n - t sites, at any step: the total is exactly that of the survivors, and the run goes on.
    #[test]
    fn any_loss_within_the_threshold(n in 3usize..13, seed: u64, at in 0usize..4, pick: u64, count: usize) {
        let at = [At::BeforeInput, At::AfterInput, At::BeforeCheckReply, At::BeforeUnmask][at];
        let t = 2 * n / 3 + 1;
        let count = count % (n - t + 1);
        let mut who: Vec<u16> = (0..count as u64).map(|k| ((pick.wrapping_add(k * 7)) % n as u64) as u16).collect();
        who.sort_unstable();
        who.dedup();
        let mut w = world(n, seed);
        lose(&mut w, at, 1, who.clone());
        let all: Vec<u16> = (0..n as u16).collect();
        for r in 0..4u8 {
            let (values, cohort, missing) = w.ask(&[r], WORDS).unwrap();
            prop_assert_eq!(&values, &sum(&cohort, &[r]), "round {}", r);
            let mut together: Vec<u16> = cohort.iter().chain(&missing).copied().collect();
            together.sort_unstable();
            if r == 0 {
                prop_assert_eq!(&cohort, &all);
            }
            if r == 3 && at != At::BeforeCheckReply {
                prop_assert!(who.iter().all(|s| !cohort.contains(s)));
            }
            prop_assert!(cohort.len() >= t);
        }
    }

    /// Loss, delay, duplication and restarts on every wire: no total is ever wrong, and on this network none is lost.
    #[test]
    fn chaos(seed: u64, n in 4usize..9, loss in 0u64..80, duplicates in 0u64..200, delay in 0u64..60, crashes in 0u64..25) {
        let mut w = world(n, seed);
        w.network = Network { delay, loss, duplicates };
        let mut state = seed;
        let mut left = 3;
        w.hook = Box::new(move |wire| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Crashes during rounds only: a site that restarts while a deck is set up is replaced, tested elsewhere.
            let in_round = matches!(wire.kind, Kind::Ask | Kind::MaskedInput | Kind::Survivors | Kind::Unmask);
            if in_round && left > 0 && (state >> 33) % 1000 < crashes {
                left -= 1;
                return Verdict::Crash;
            }
            Verdict::Pass
        });
        for r in 0..12u8 {
            match w.ask(&[r], WORDS) {
                Ok((values, cohort, _)) => prop_assert_eq!(values, sum(&cohort, &[r])),
                Err(Error::Quorum { .. }) => break,
                Err(e) => prop_assert!(false, "round {}: {} / {:?}", r, e, w.site_errors),
            }
        }
    }
}

#[test]
fn fewer_than_t_left_reveals_nothing() {
    for at in [At::BeforeInput, At::AfterInput] {
        let mut w = world(5, 3);
        assert!(w.ask(&[0], WORDS).is_ok());
        lose(&mut w, at, 0, vec![1, 2]);
        let e = w.ask(&[1], WORDS).unwrap_err();
        assert!(matches!(e, Error::Quorum { .. }), "{e}");
        assert!(e.to_string().contains("nothing was revealed"));
    }
}

#[test]
fn a_site_that_crashes_in_a_round_comes_back_with_the_same_bytes() {
    for kind in [Kind::MaskedInput, Kind::Unmask] {
        let mut w = world(5, 4);
        let mut done = false;
        w.hook = Box::new(move |wire| {
            if wire.site == 2 && wire.kind == kind && wire.from_site && !done {
                done = true;
                return Verdict::Crash;
            }
            Verdict::Pass
        });
        for r in 0..3u8 {
            let (values, cohort, _) = w.ask(&[r], WORDS).unwrap();
            assert_eq!(values, sum(&cohort, &[r]));
            assert_eq!(cohort.len(), 5, "{kind:?}: the site came back in time");
        }
        assert!(w.site_errors.is_empty(), "{:?}", w.site_errors);
    }
}

/// [MSK-4].
#[test]
fn msk_4_a_site_whose_rows_changed_between_crash_and_return_sends_nothing() {
    let mut w = world(5, 5);
    let mut calls = 0;
    w.answer = Box::new(move |site, asked| {
        calls += u64::from(site == 2);
        (0..asked.words).map(|k| value(site, &asked.query, k) + if site == 2 { calls } else { 0 }).collect()
    });
    let mut done = false;
    let mut masked = Vec::new();
    w.hook = Box::new(move |wire| {
        if wire.site == 2 && wire.kind == Kind::MaskedInput {
            masked.push(wire.bytes.to_vec());
            assert!(masked.iter().all(|m| *m == masked[0]), "two different vectors under one slot");
            if !done {
                done = true;
                return Verdict::Crash;
            }
        }
        Verdict::Pass
    });
    let (_, cohort, missing) = w.ask(&[0], WORDS).unwrap();
    assert_eq!((cohort, missing), (vec![0, 1, 3, 4], vec![2]));
    assert!(matches!(w.site_errors[0], (2, Error::Journal(_))));
}

/// [KEX-11].
#[test]
fn kex_11_members_that_vanish_while_the_deck_is_set_up_are_left_out() {
    for kind in [Kind::AcceptDirectory, Kind::ShareKeys, Kind::ShareAck] {
        let mut w = world(6, 6);
        w.hook =
            Box::new(move |wire| if wire.site == 3 && wire.kind == kind { Verdict::Vanish } else { Verdict::Pass });
        let (values, cohort, _) = w.ask(&[0], WORDS).unwrap();
        assert_eq!(cohort, [0, 1, 2, 4, 5], "{kind:?}");
        assert_eq!(values, sum(&cohort, &[0]));
    }
}

#[test]
fn a_site_that_restarts_while_keys_are_collected_joins_all_the_same() {
    let mut w = world(4, 7);
    let mut done = false;
    w.hook = Box::new(move |wire| {
        if wire.site == 1 && wire.kind == Kind::AdvertiseKeys && !done {
            done = true;
            return Verdict::Crash;
        }
        Verdict::Pass
    });
    assert_eq!(w.ask(&[0], WORDS).unwrap().1, [0, 1, 2, 3]);
}

#[test]
fn opposite_changes_at_two_sites_leave_the_total_equal() {
    let total = |shift: u64| {
        let mut w = world(5, 8);
        w.answer = Box::new(move |site, asked| {
            let v = match site {
                1 => shift,
                3 => shift.wrapping_neg(),
                _ => 0,
            };
            (0..asked.words).map(|k| value(site, &asked.query, k).wrapping_add(v)).collect()
        });
        w.ask(&[0], WORDS).unwrap().0
    };
    assert_eq!(total(0), total(0x1234_5678_9abc_def0));
}

#[test]
fn masked_words_look_uniform_and_never_repeat() {
    // The same values in every round: a mask used twice would show as an equal word.
    let mut w = world(4, 9);
    w.answer = Box::new(|_, asked| vec![7; asked.words]);
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::<u64>::new()));
    let log = seen.clone();
    w.hook = Box::new(move |wire| {
        if wire.kind == Kind::MaskedInput {
            let body = &wire.bytes[8 + 32 + 32..wire.bytes.len() - 64];
            log.borrow_mut().extend(body.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())));
        }
        Verdict::Pass
    });
    for r in 0..20u8 {
        assert_eq!(w.ask(&[r], 200).unwrap().0, vec![28; 200]);
    }
    let mut words = seen.borrow().clone();
    let ones: u32 = words.iter().map(|w| w.count_ones()).sum();
    let share = f64::from(ones) / (64.0 * words.len() as f64);
    // 16,000 words: the standard deviation of the share is 0.0005.
    assert!((share - 0.5).abs() < 0.003, "{share}");
    let n = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), n);
}
