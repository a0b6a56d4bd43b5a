//! Whole federations in virtual time: totals are exact, whatever is lost or restarted.

use std::collections::BTreeMap;

use proptest::prelude::*;
use veilsum_proto::message::Kind;
use veilsum_testkit::{
    federation::{Kit, Verdict, World},
    wire::{WORDS, everybody, sum, value},
};

use crate::script::of_sites;

fn world(n: usize, seed: u64) -> World {
    let mut w = World::new(Kit::new(n, |_| {}), seed);
    w.answer = Box::new(|site, asked| (0..asked.words).map(|k| value(site, &asked.query, k)).collect());
    w
}

/// Where in a round a site is lost: before its input, after it, and before its reply to each way of asking for secrets.
const STEPS: [(bool, Kind); 4] =
    [(true, Kind::MaskedInput), (false, Kind::Survivors), (true, Kind::ConsistencyCheck), (true, Kind::Unmask)];

/// In this round these sites vanish with such a frame, which they send or are sent.
fn lose(w: &mut World, at: (bool, Kind), round: usize, who: Vec<u16>) {
    let mut asked: BTreeMap<u16, usize> = BTreeMap::new();
    w.hook = Box::new(move |wire| {
        let asked = asked.entry(wire.site).or_default();
        *asked += usize::from(!wire.from_site && wire.kind == Kind::Ask);
        let hit = *asked == round + 1 && who.contains(&wire.site) && (wire.from_site, wire.kind) == at;
        if hit { Verdict::Vanish } else { Verdict::Pass }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Any set of up to n - t sites, at any step: the total is exactly that of the survivors, and the run goes on.
    #[test]
    fn any_loss_within_the_threshold(n in 3usize..13, seed: u64, at in 0usize..4, pick: u64, count: usize) {
        let at = STEPS[at];
        let t = 2 * n / 3 + 1;
        let count = count % (n - t + 1);
        let mut who: Vec<u16> = (0..count as u64).map(|k| ((pick.wrapping_add(k * 7)) % n as u64) as u16).collect();
        who.sort_unstable();
        who.dedup();
        let mut w = world(n, seed);
        lose(&mut w, at, 1, who.clone());
        for r in 0..4u8 {
            let (values, cohort, _) = w.ask(&[r], WORDS).unwrap();
            prop_assert_eq!(&values, &sum(&cohort, &[r]), "round {}", r);
            if r == 0 {
                prop_assert_eq!(&cohort, &everybody(n));
            }
            if r == 3 && at.1 != Kind::ConsistencyCheck {
                prop_assert!(who.iter().all(|s| !cohort.contains(s)));
            }
            prop_assert!(cohort.len() >= t);
        }
    }
}

/// [MSK-4], [RND-7], [JRN-3]: whatever the rows are by then, what is in the journal is sent again.
#[test]
fn msk_4_a_site_whose_rows_changed_between_crash_and_return_sends_the_same_bytes() {
    let mut w = world(5, 5);
    let mut calls = 0;
    w.answer = Box::new(move |site, asked| {
        calls += u64::from(site == 2);
        let change = if site == 2 { calls - 1 } else { 0 };
        (0..asked.words).map(|k| value(site, &asked.query, k).wrapping_add(change)).collect()
    });
    let mut first = None;
    of_sites(&mut w, move |wire, nth| {
        if (wire.site, wire.kind) != (2, Kind::MaskedInput) {
            return Verdict::Pass;
        }
        let first = first.get_or_insert_with(|| wire.bytes.to_vec());
        assert!(*first == wire.bytes, "two different vectors under one slot");
        if nth == 1 { Verdict::Crash } else { Verdict::Pass }
    });
    let (values, cohort, missing) = w.ask(&[0], WORDS).unwrap();
    assert_eq!((values, cohort, missing), (sum(&everybody(5), &[0]), everybody(5), vec![]));
}

/// [KEX-11].
#[test]
fn kex_11_members_that_vanish_while_the_deck_is_set_up_are_left_out() {
    for kind in [Kind::AcceptDirectory, Kind::ShareKeys, Kind::ShareAck] {
        let mut w = world(6, 6);
        of_sites(
            &mut w,
            move |wire, _| {
                if (wire.site, wire.kind) == (3, kind) { Verdict::Vanish } else { Verdict::Pass }
            },
        );
        let (values, cohort, _) = w.ask(&[0], WORDS).unwrap();
        assert_eq!(cohort, [0, 1, 2, 4, 5], "{kind:?}");
        assert_eq!(values, sum(&cohort, &[0]));
    }
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
