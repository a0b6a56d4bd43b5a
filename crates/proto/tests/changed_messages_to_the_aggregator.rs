//! Every message that the aggregator can get, changed in every field under its sender's true signature, cut, lengthened,
//! repeated, out of order, from the wrong party and in every state: the liar is lost under its own name and the rule,
//! nobody else is, and the others' total is exact; or it is one of the lies that `known_lies.txt` lists with the reason.

use veilsum_proto::aggregator::Event;
use veilsum_testkit::{
    lies::{everywhere, typed},
    prelude::*,
    recording::*,
};

use crate::known_lies::Found;

/// Seven sites, of which the last never answers, so that every kind of message is sent.
const N: usize = 7;
const LIAR: u16 = 3;
const SILENT: u16 = 6;

/// A federation on whose wire every frame of this kind by the liar becomes `instead`.
fn fed(instead: Option<(Kind, Vec<u8>)>) -> World {
    let mut fed = World::noted(N, 21, |t| t.slots = 2);
    fed.tap(move |w| match &instead {
        _ if w.from_site && w.site == SILENT && w.kind == Kind::MaskedInput => vec![],
        Some((kind, bytes)) if w.from_site && w.site == LIAR && w.kind == *kind => vec![bytes.clone()],
        _ => vec![w.bytes.clone()],
    });
    fed
}

/// The honest frames of an honest run, and in place of which frame each kind is sent: nobody refuses or complains there.
fn honest() -> (World, Vec<(Kind, Parts)>) {
    let mut run = fed(None);
    assert_eq!(run.ask_exact(b"q"), [0, 1, 2, 3, 4, 5]);
    let of = |run: &World, kind: Kind| {
        let sent = run.seen().iter().find(|w| w.from_site && w.site == LIAR && w.kind == kind);
        parts(&sent.unwrap_or_else(|| panic!("{kind:?} is not in the run")).bytes)
    };
    let all = OF_SITES.map(|kind| match kind {
        Kind::Refusal => {
            (Kind::MaskedInput, Parts { kind, rest: codec::encode(&Rule::Pol2), ..of(&run, Kind::MaskedInput) })
        }
        Kind::ShareComplaint => {
            (Kind::ShareAck, Parts { kind, rest: codec::encode(&1u16), ..of(&run, Kind::ShareAck) })
        }
        kind => (kind, of(&run, kind)),
    });
    (run, all.to_vec())
}

/// What came of a lie, in a word: the rule under which the liar is lost, and who is lost with it.
fn outcome(fed: &mut World) -> String {
    let total = fed.total(b"q");
    let lost = |who: u16| fed.losses().find(|(site, _)| *site == who).map(|(_, why)| why.clone());
    let mut word = match lost(LIAR) {
        None => "in".to_owned(),
        Some(Loss::Misbehaved(e)) => {
            assert!(e.to_string().contains("site-3"), "the liar is named: {e}");
            e.rule().expect("a rule").to_string()
        }
        Some(Loss::Silent) => "silent".to_owned(),
        Some(Loss::Refused(_)) => "refused".to_owned(),
        Some(other) => format!("{other:?}"),
    };
    for s in (0..N as u16).filter(|s| ![LIAR, SILENT].contains(s)) {
        if let Some(why) = lost(s) {
            assert!(why.to_string().contains("site-3"), "the liar is named: {why}");
            word += &format!(", with {s}");
        }
    }
    if fed.events.iter().any(|e| matches!(e, Event::WrongShare { holder: LIAR, .. })) {
        word += ", corrected";
    }
    match total {
        Ok((values, cohort)) if values == sum(&cohort, b"q") => word,
        Ok(_) => word + ", another total",
        Err(e) => panic!("{word}; one liar among seven ends the run: {e}"),
    }
}

#[test]
fn every_field_changed_under_a_true_signature() {
    let (run, frames) = honest();
    let course = Course::new(N, 2, 1, &[ALL]);
    let mut found = Found::new("to the aggregator");
    for (place, p) in frames {
        let lies = typed(&course, &p, &Hash::default());
        assert!(lies.len() >= 2, "{:?}: every field needs its lies", p.kind);
        for (name, context, rest) in lies {
            let bytes = raw(&run.identity(LIAR), &run.session(), p.kind, &context, &rest);
            found.add(format!("{:?}", p.kind), outcome(&mut fed(Some((place, bytes)))), name);
        }
    }
    found.must_be_known();
}

/// Sites of the small runs, of which one lies.
const FEW: usize = 4;

/// Why a site is out.
#[derive(PartialEq, Eq, Debug)]
enum Lost {
    Refused,
    Under(Rule),
}

/// Gives a fresh aggregator in its state of `step` a frame as if from `from`: whether its sender is lost, under which
/// rule. Nobody else is, and nothing fails but for want of sites.
fn given(course: &Course, step: usize, from: u16, frame: &[u8], what: &str) -> (Aggregator, Option<Lost>) {
    let mut hub = course.aggregator_at(step);
    let now = course.heard.get(step.max(1) - 1).map_or(0, |h| h.0);
    hear(&mut hub, &Heard::Frame(from, frame.to_vec()), now);
    let mut lost = None;
    for e in events(&mut hub) {
        match e {
            Event::Lost { site, why: Loss::Misbehaved(e) } if site == from => {
                let name = format!("site-{from}");
                assert!(e.to_string().contains(&name), "{what}: the culprit is named: {e}");
                lost = Some(Lost::Under(e.rule().unwrap_or_else(|| panic!("{what}: no rule"))));
            }
            Event::Lost { site, why: Loss::Refused(_) } if site == from => lost = Some(Lost::Refused),
            Event::Failed(e) => assert!(lost.is_some() && e.to_string().contains("too few"), "{what}: {e}"),
            Event::DeckReady { .. } | Event::Total { .. } => {}
            other => panic!("{what}: {other:?}"),
        }
    }
    (hub, lost)
}

#[test]
fn every_cut_tail_kind_signer_and_session() {
    let course = Course::new(FEW, 1, 5, &[DROP]);
    let mut found = Found::new("frames to the aggregator");
    for (step, from, bytes) in course.frames_from(|s| s == 1) {
        let p = parts(bytes);
        for (name, frame) in everywhere(&course, &p, course.identity(1)) {
            let what = format!("{:?}: {name}", p.kind);
            let outcome = match given(&course, step, from, &frame, &what).1 {
                // What is of another deck or round is dropped unread; so is what the state has no use for.
                None => "dropped".to_owned(),
                Some(Lost::Refused) => "refused".to_owned(),
                Some(Lost::Under(rule)) => rule.to_string(),
            };
            found.add(format!("{:?}", p.kind), outcome, name);
        }
    }
    found.must_be_known();
}

/// Every frame of one site in every state of the aggregator, in its own round and in the other one: dropped unread or a repetition, and
/// the totals are the honest ones; as if from another site it is that one's fault.
#[test]
fn every_frame_in_every_state() {
    let course = Course::new(FEW, 2, 7, &[ALL, DROP]);
    for step in FEW..=course.heard.len() {
        for (at, from, bytes) in course.frames_from(|s| s == 1) {
            let what = format!("in state {step}: {:?}, due in {at}", kind(bytes));
            goes_on(&course, step, from, bytes, &what);
            if at == step {
                let (_, lost) = given(&course, step, 2, bytes, &what);
                assert_eq!(lost, Some(Lost::Under(Rule::Frm4)), "{what}, as if from another");
                let (_, lost) = given(&course, step, 99, bytes, &what);
                assert!(lost.is_none(), "{what}: of nobody on the roster, dropped unread");
            }
        }
    }
}

fn goes_on(course: &Course, step: usize, from: u16, bytes: &[u8], what: &str) {
    let (mut hub, lost) = given(course, step, from, bytes, what);
    assert!(lost.is_none(), "{what}: an honest site's frame, early or late, is no fault of its own: {lost:?}");
    let mut totals = Vec::new();
    for (now, heard) in &course.heard[step..] {
        hear(&mut hub, heard, *now);
        for e in events(&mut hub) {
            match e {
                Event::Total { values, cohort, .. } => totals.push((values, cohort)),
                Event::Lost { site: 3, why: Loss::Silent } | Event::DeckReady { .. } => {}
                other => panic!("{what}: {other:?}"),
            }
        }
    }
    assert_eq!(totals, course.totals[course.totals.len() - totals.len()..], "{what}");
    // A total that came with the frame itself was seen by `given`; all others are due.
    let due = course.heard[step..].iter().filter(|(_, h)| matches!(h, Heard::Ask(_))).count();
    assert!(totals.len() >= due, "{what}: {} totals", totals.len());
}
