//! A real site in every state of the model, told everything the model can be told: it answers exactly where the model
//! answers, with exactly the seeds and shares that the model counts, and otherwise nothing new leaves it.

use veilsum_testkit::prelude::*;

use super::{
    explore::Machine,
    real::{Bench, list},
    rules::{Local, Message, Set, Setting, Stage, everybody, has, members, size},
};

/// A message of the model as bytes, and whether the site may take it for a certificate.
struct Told {
    message: Message,
    bytes: Vec<u8>,
    certified: bool,
}

/// Every set of survivors, and for every set certificates of every size and with every defect; the questions too.
fn everything(bench: &mut Bench) -> Vec<Told> {
    let t = bench.setting.t;
    let all = everybody(bench.setting.n);
    let mut out: Vec<Told> = [false, true]
        .map(|other| Told { message: Message::Ask(u8::from(other)), bytes: bench.ask_frame(other), certified: false })
        .into();
    for alive in 0..=all {
        out.push(Told { message: Message::Survivors(alive), bytes: bench.survivors(alive), certified: false });
        let signed = bench.all_sign(alive);
        let mut show = |bench: &Bench, proofs: &BTreeMap<u16, Proof>, certified: bool| {
            let bytes = bench.certificate(alive, proofs);
            out.push(Told { message: Message::Certificate(alive), bytes, certified });
        };
        // The first of its members, and the last.
        for k in 0..=size(alive) {
            let first: BTreeMap<u16, Proof> = signed.iter().take(k).map(|(u, p)| (*u, *p)).collect();
            let last: BTreeMap<u16, Proof> = signed.iter().rev().take(k).map(|(u, p)| (*u, *p)).collect();
            show(bench, &first, k >= t);
            show(bench, &last, k >= t);
        }
        // A good certificate of a set like this one, under this name.
        for other in (0..=all).filter(|other| size(*other) >= t && (1..=2).contains(&size(other ^ alive))) {
            let signed = bench.all_sign(other);
            show(bench, &signed, false);
        }
        // One short of t, made up by a signature for another set, by another's, or by a stranger's.
        if size(alive) >= t {
            let (last, few) = (list(alive)[t - 1], signed.iter().take(t - 1).map(|(u, p)| (*u, *p)));
            let few: BTreeMap<u16, Proof> = few.collect();
            let mut other_set = few.clone();
            other_set.insert(last, bench.signature(last, if alive == all { alive & (alive - 1) } else { all }));
            show(bench, &other_set, false);
            let mut other_signer = few.clone();
            other_signer.insert(last, few[&list(alive)[0]]);
            show(bench, &other_signer, false);
            if let Some(stranger) = members(all & !alive).next() {
                let mut strange = few;
                let stranger = stranger as u16;
                strange.insert(stranger, bench.signature(stranger, alive));
                show(bench, &strange, false);
            }
        }
    }
    out
}

/// Takes the real site `me` down to a state; what left it on the way.
fn bring(bench: &mut Bench, me: usize, state: &Local) -> Vec<Parts> {
    bench.reset(me);
    let mut sent = Vec::new();
    for message in bench.way_to(state) {
        let bytes = match message {
            Message::Certificate(alive) => {
                let proofs = bench.all_sign(alive);
                bench.certificate(alive, &proofs)
            }
            Message::Survivors(alive) => bench.survivors(alive),
            Message::Ask(_) => unreachable!("it is asked already"),
        };
        sent.push(bench.hub.reply(me as u16, &bytes).unwrap());
    }
    sent
}

#[derive(Default)]
struct Counted {
    states: usize,
    told: usize,
    answered: usize,
    repeated: usize,
    refused: BTreeMap<Rule, usize>,
}

/// Tells `me` everything in every state but the first, in which it has not answered. With `restart`, its process comes
/// back from the journal before each message.
fn conforms(bench: &mut Bench, me: usize, restart: bool, counted: &mut Counted) {
    // Two questions over everybody: the second is only ever put to a site that has answered the first.
    let all = everybody(bench.setting.n);
    let setting = Setting { questions: vec![all, all], c: 0, ..bench.setting.clone() };
    let machine = Machine::new(setting.clone());
    let told = everything(bench);
    for node in machine.sites[me].iter().filter(|node| node.local.question == Some(0)) {
        let state = &node.local;
        let mut known = bring(bench, me, state);
        counted.states += 1;
        for Told { message, bytes, certified } in &told {
            if restart {
                bench.hub.restart(me as u16).unwrap();
            }
            let expected = setting.answer(me, state, *message, *certified);
            let result = bench.hub.tell(me as u16, bytes);
            counted.told += 1;
            let what = || format!("site {me} of {} in {state:?} told {message:?} ({certified})", setting.n);
            match (expected, result) {
                (None, Err(e)) => {
                    assert!(bench.hub.left.is_empty(), "{}: something leaves with a refusal", what());
                    *counted.refused.entry(rule(&e)).or_default() += 1;
                }
                (None, Ok(sent)) => panic!("{}: {} frames where the model refuses", what(), sent.len()),
                (Some(next), result) if next == *state => match result {
                    Ok(sent) => {
                        let vector = |p: &Parts| p.proof == bench.round.inputs[&(me as u16)];
                        assert!(sent.iter().all(|p| known.contains(p) || vector(p)), "{}: something new", what());
                        assert!(!sent.is_empty(), "{}: it repeats itself", what());
                        counted.repeated += 1;
                    }
                    // Only the question itself is not answered again once the round went on and memory was lost.
                    Err(e) => {
                        assert!(restart && matches!(message, Message::Ask(0)), "{}: {e}", what());
                        assert!(bench.hub.left.is_empty());
                    }
                },
                (Some(next), Ok(sent)) => {
                    bench.gives_what_the_model_says(me, state, &next, &sent);
                    counted.answered += 1;
                    known = bring(bench, me, state);
                }
                (Some(_), Err(e)) => panic!("{}: {e}", what()),
            }
        }
    }
}

fn check(n: usize, c: usize, t: usize, sites: &[usize]) {
    let mut bench = Bench::new(n, c, t);
    let mut counted = Counted::default();
    for me in sites {
        for restart in [false, true] {
            conforms(&mut bench, *me, restart, &mut counted);
        }
    }
    let Counted { states, told, answered, repeated, refused } = counted;
    println!(
        "n = {n}, t = {t}, {} sites: {states} states, {told} messages: {answered} answered, {repeated} repeated, refused {refused:?}",
        sites.len()
    );
    let rules: BTreeSet<Rule> = refused.keys().copied().collect();
    let expected = if t < n {
        &[Rule::Rnd2, Rule::Sur2, Rule::Sur3, Rule::Sur4, Rule::Unm2][..]
    } else {
        &[Rule::Rnd2, Rule::Sur2, Rule::Sur4, Rule::Unm2]
    };
    assert!(expected.iter().all(|r| rules.contains(r)), "{rules:?}");
    assert!(answered > 0 && repeated > 0);
}

/// Before it has answered, a site takes no survivors and no certificate, whether it was asked or not.
#[test]
fn a_site_that_has_not_answered_gives_nothing() {
    for (n, t) in [(3, 2), (4, 3)] {
        let mut bench = Bench::new(n, 0, t);
        let told = everything(&mut bench);
        for asked in [false, true] {
            bench.unasked(0);
            bench.hub.answers = false;
            if asked {
                let frame = bench.ask_frame(false);
                assert!(bench.hub.tell(0, &frame).unwrap().is_empty());
            }
            for Told { message, bytes, certified } in &told {
                if let Message::Ask(_) = message {
                    continue;
                }
                assert_eq!(bench.setting.answer(0, &Local::new(), *message, *certified), None);
                let e = bench.hub.tell(0, bytes).expect_err("it must refuse");
                let under = if asked { &[Rule::Sur2, Rule::Unm2][..] } else { &[Rule::Frm7] };
                assert!(under.contains(&rule(&e)) && bench.hub.left.is_empty(), "{e}");
            }
            bench.hub.answers = true;
        }
    }
}

#[test]
fn real_sites_answer_where_the_model_answers() {
    check(3, 0, 2, &[0, 1, 2]);
    check(3, 0, 3, &[0, 1, 2]);
    check(4, 1, 3, &[0, 1, 2, 3]);
    check(4, 1, 4, &[0, 3]);
    check(5, 1, 4, &[0, 4]);
}

/// Six sites, two of which may be missing: the smallest plan under which a site signs two sets in turn.
#[test]
#[ignore = "it takes a minute or two, and smaller ones run always; protocol/README.md has the command"]
fn real_sites_answer_where_the_model_answers_down_a_chain() {
    check(6, 1, 4, &[0]);
}

/// What this file leans on: a state's chain and stage are all that its history can be.
#[test]
fn a_state_has_one_history() {
    for (n, t) in [(3, 2), (4, 3), (5, 4), (5, 3), (6, 4)] {
        let machine = Machine::new(Setting { least: t.max(3), ..Setting::new(n, 0, t) });
        for node in &machine.sites[0] {
            let mut chain = node.local.signed.clone();
            chain.sort_by_key(|s: &Set| size(*s));
            assert!(chain.is_sorted_by(|a, b| a & b == *a && a != b) && chain.iter().all(|s| has(*s, 0)));
            if let Stage::Checked(last) = node.local.stage {
                assert_eq!(chain[0], last);
                assert_eq!(node.local.seeds, everybody(n) & !last);
            }
        }
    }
}
