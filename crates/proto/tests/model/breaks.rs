//! The same search with a rule taken away must find the attack that the rule is there against; each is printed.

use super::{
    explore::{Attack, Machine},
    knowledge::holds_what_is_claimed,
    rules::{Fault, Message, Setting, everybody, members, size},
};

/// The shortest transcript after which the claim does not hold.
fn broken(machine: &Machine) -> Option<Attack<'_>> {
    machine.find(|sums| !holds_what_is_claimed(&machine.setting, sums))
}

#[track_caller]
fn breaks(setting: Setting) {
    let machine = Machine::new(setting);
    let s = &machine.setting;
    let Some(attack) = broken(&machine) else {
        panic!("n = {}, c = {}, t = {}, {:?}: nothing is found", s.n, s.c, s.t, s.fault)
    };
    println!("{attack}");
}

#[track_caller]
fn holds(setting: Setting) {
    let machine = Machine::new(setting);
    if let Some(attack) = broken(&machine) {
        panic!("{attack}");
    }
}

/// One message instead of two after a loss: three sites lose every single input, four sites two different sums, five
/// sites every single input.
#[test]
fn seeds_and_shares_in_one_reply() {
    for (n, t, expected) in [(3, 2, vec![1, 1, 1]), (4, 3, vec![2, 2]), (5, 3, vec![1; 5])] {
        let machine = Machine::new(Setting::new(n, 0, t).with(Fault::MergedReply));
        let attack = machine.find(|sums| sums.len() == expected.len()).expect("the attack");
        println!("{attack}");
        assert_eq!(attack.learnt.iter().map(|s| size(*s)).collect::<Vec<_>>(), expected);
        holds(Setting::new(n, 0, t));
    }
}

/// Where only neighbours share masks, a coordinator tells the two neighbours of a victim that it is missing, and all
/// others that nobody is. The very same stories open the total and nothing else where everybody shares masks with everybody.
#[test]
fn two_steps_on_a_ring() {
    breaks(Setting::new(5, 0, 3).on_a_ring(1));
    for (n, t) in [(5, 3), (6, 4), (7, 5), (8, 6)] {
        let (all, without) = (everybody(n), everybody(n) & !1);
        let told = |u: usize| Message::Survivors(if u == 1 || u == n - 1 { without } else { all });
        let script: Vec<_> = (0..n).map(|u| (u, Message::Ask(0))).chain((0..n).map(|u| (u, told(u)))).collect();
        let (ring, complete) = (Machine::new(Setting::new(n, 0, t).on_a_ring(1)), Machine::new(Setting::new(n, 0, t)));
        let attack = ring.play(&script).expect("every site answers");
        println!("{attack}");
        assert_eq!(attack.learnt[0], 1, "the victim alone");
        assert_eq!(complete.play(&script).expect("every site answers").learnt, [all], "the total alone");
    }
    // Seeds against the certificate only are the remedy, as long as the survivors hold together.
    holds(Setting::new(5, 0, 4).on_a_ring(1).with(Fault::CertifiedSeeds));
    breaks(Setting::new(5, 0, 3).on_a_ring(1).with(Fault::CertifiedSeeds));
    // Also with two questions in the slot, since what leaves of a pair is bound to the question (docs/src/decisions.md).
    holds(Setting::new(5, 0, 4).on_a_ring(1).with(Fault::CertifiedSeeds).with_questions(2));
}

#[test]
fn half_of_the_sites_as_threshold() {
    breaks(Setting::new(4, 0, 2));
    let machine = Machine::new(Setting::new(4, 0, 2));
    let halves = machine.find(|sums| sums == [0b0011, 0b1100]).expect("either half");
    println!("{halves}");
}

/// 2t > n + c is sharp: one share less breaks for all n and c.
#[test]
fn the_threshold_cannot_be_lower() {
    for n in 3..=5 {
        for c in 0..=n - 2 {
            breaks(Setting::new(n, c, (n + c) / 2));
        }
    }
}

/// Each rule that the argument rests on, taken away alone, with a threshold that is safe with it.
#[test]
fn every_rule_is_needed() {
    for fault in [
        Fault::MergedReply,
        Fault::BackToOthers,
        Fault::BackToCohort,
        Fault::AnySignature,
        Fault::ShortCertificate,
        Fault::SeedsAfterShares,
        Fault::SharesOfAll,
        Fault::SeedsOfAll,
        Fault::NoFloor,
        Fault::Strangers,
    ] {
        breaks(Setting::new(3, 0, 2).with(fault));
        breaks(Setting::new(4, 1, 3).with(fault));
    }
    // Only where two can be missing is there a set before the last.
    breaks(Setting::new(5, 0, 3).with(Fault::EarlierSet));
}

/// What the claim does not rest on: each of the two rules makes up for the other.
#[test]
fn a_signer_outside_or_a_set_without_oneself_alone_is_harmless() {
    for fault in [Fault::OutsideSigners, Fault::WithoutItself, Fault::CertifiedSeeds] {
        for n in 3..=4 {
            for (c, t) in (0..n).flat_map(|c| (1..=n).map(move |t| (c, t))).filter(|(c, t)| 2 * t > n + c) {
                holds(Setting::new(n, c, t).with(fault));
            }
        }
        holds(Setting::new(5, 1, 4).with(fault));
    }
}

/// What is printed is a transcript that can be played.
#[test]
fn an_attack_can_be_played_again() {
    let machine = Machine::new(Setting::new(4, 1, 3).with(Fault::AnySignature));
    let attack = broken(&machine).expect("it breaks");
    let again = machine.play(&attack.script()).expect("the steps follow from each other");
    assert_eq!(again.learnt, attack.learnt);
    assert!(again.learnt.iter().all(|s| members(*s).all(|u| u < 3)));
}
