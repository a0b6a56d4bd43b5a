//! Every message that a site can get, changed in every field under the coordinator's true signature, cut, lengthened,
//! repeated, out of order, from the wrong party and in every state of the site: an error that names the culprit and the
//! rule, or one of the acceptances that `known_lies.txt` lists with its reason; and never a share or a seed too many.

use veilsum_testkit::{
    lies::{everywhere, typed},
    prelude::*,
    recording::*,
};

use crate::known_lies::Found;

/// Sites of the run; the threshold of seven is five, so at most two seeds a slot leave.
const N: usize = 7;
const MOST_SEEDS: usize = 2;
const ME: u16 = 0;

fn course() -> Course {
    Course::new(N, 4, 1, &[ALL, DROP, REFUSE])
}

/// Under which rule the site refuses, whom it names, and what else it speaks of.
fn refusal(e: &Error, what: &str) -> String {
    let rule = e.rule().unwrap_or_else(|| panic!("{what}: no rule in {e:?}"));
    let text = e.to_string();
    let who = match e {
        Error::PeerMisbehaved { who, .. } if who == "hub" || who.starts_with("site-") => who,
        // The site's own floor or memory says no: nobody need have lied.
        Error::Refused { .. } | Error::Invalid { .. } => "nobody",
        _ => panic!("{what}: nobody is named: {e:?}"),
    };
    assert!(text.contains(rule.name()), "{what}: {text}");
    let mut told = format!("{rule} by {who}");
    for site in (0..N).map(|s| format!("site-{s}")).filter(|s| s != who && text.contains(s)) {
        told += &format!(", {site}");
    }
    told
}

/// Tells a fresh site in its state of `step` the frame; then the honest rest. What left stays in bounds. What became of it.
fn told(course: &Course, honest: &Ledger, step: usize, frame: &[u8], what: &str) -> String {
    let mut v = Victim::at(course, ME, step);
    let mut outcome = match v.hear(frame) {
        Ok(()) => "taken".to_owned(),
        Err(e) => refusal(&e, what),
    };
    let taken = outcome == "taken";
    if !taken {
        let complaints = v.left.iter().filter(|p| p.kind == Kind::ShareComplaint);
        let complaints: Vec<_> = complaints.map(|p| format!(", complains of {}", p.read::<u16>())).collect();
        assert_eq!(complaints.len(), v.left.len(), "{what}: something left with the refusal");
        outcome += &complaints.concat();
        if !complaints.is_empty() {
            let complaint = v.left.clone();
            v.hear(frame).expect("the same again is complained of the same");
            assert!(v.left == complaint && v.journal.is_empty(), "{what}: a deck with a bad box is no deck");
        }
    }
    let next = course.frames_to(ME).into_iter().find(|(i, b)| *i > step && kind(b) == Kind::Ask);
    if let (Kind::Opening, false, Some((_, next))) = (kind(frame), taken, next) {
        let e = v.hear(next).expect_err("a question after a lie about the total before it");
        assert_eq!(e.rule(), Some(Rule::Opn7), "{what}");
    }
    v.go_on(step);
    v.ledger.check(MOST_SEEDS, what);
    if !taken {
        v.ledger.within(honest, what);
    }
    if kind(frame) == Kind::Opening {
        assert!(taken || v.ledger == *honest, "{what}: a lie about a total that was refused changes nothing");
        outcome += &judged(course, step, frame, &outcome, what);
    }
    outcome
}

/// The question before this step, and in which directory.
fn asked_before(course: &Course, step: usize) -> (Hash, &[u8]) {
    let mut before = course.frames_to(ME).into_iter().filter(|(i, b)| *i < step && kind(b) == Kind::Ask);
    (directory_before(course, step), before.next_back().expect("a question before its opening").1)
}

fn documents(kit: &Kit) -> Documents<'_> {
    Documents { roster: &kit.roster, terms: &kit.terms }
}

/// What somebody sees who holds roster and plan, and is shown the question and this opening: the same, unless it is said here.
fn judged(course: &Course, step: usize, opening: &[u8], outcome: &str, what: &str) -> String {
    let (directory, ask) = asked_before(course, step);
    match documents(&course.kit).opened(&directory, ask, opening) {
        Err(e) => panic!("{what}: proves nothing: {e}"),
        Ok(Ok(_)) if outcome == "taken" => String::new(),
        Ok(Ok(_)) => "; who has the documents alone sees nothing".to_owned(),
        Ok(Err(fault)) if outcome.starts_with(fault.rule.name()) => String::new(),
        Ok(Err(fault)) => format!("; {} for others", fault.rule),
    }
}

/// A third party's total is the coordinator's. What is of another run, or of nobody's, accuses nobody and proves nothing: a lie
/// does not become another's by being shown elsewhere.
#[test]
fn openings_are_judged_with_their_own_documents_alone() {
    let course = course();
    let openings = course.frames_to(ME).into_iter().filter(|(_, b)| kind(b) == Kind::Opening);
    for ((step, opening), (values, cohort)) in openings.zip(&course.totals) {
        let (directory, ask) = asked_before(&course, step);
        let opened = documents(&course.kit).opened(&directory, ask, opening).unwrap().expect("nobody is to blame");
        assert_eq!((&opened.values, &opened.cohort), (values, cohort));
        let p = parts(opening);
        let mut lie: Opening = p.read();
        lie.low[2] = lie.low[2].wrapping_add(1);
        let lie = veilsum_proto::codec::encode(&lie);
        let told = course.sign(Kind::Opening, &p.context, &lie);
        let of = |kit: &Kit, directory, ask: &[u8], opening: &[u8]| documents(kit).opened(&directory, ask, opening);
        assert!(of(&course.kit, directory, ask, &told).unwrap().is_err(), "here it proves something");
        for kit in [Kit::new(N + 1, |t| t.slots = 4), Kit::new(N, |t| t.slots = 7)] {
            assert!(of(&kit, directory, ask, &told).is_err(), "another roster or plan");
        }
        let counter = &course.kit.identities[1];
        let other_ask = raw(counter, &course.session, Kind::Ask, &p.context, &parts(ask).rest);
        let other = raw(counter, &course.session, Kind::Opening, &p.context, &lie);
        let other_round = course.sign(Kind::Opening, &Hash([9; 32]), &lie);
        for (what, directory, ask, opening) in [
            ("another directory", Hash([1; 32]), ask, &told[..]),
            ("a question signed by another", directory, &other_ask, &told),
            ("an opening signed by another", directory, ask, &other),
            ("an opening of another round", directory, ask, &other_round),
            ("the two in each other's place", directory, &told, ask),
        ] {
            assert!(of(&course.kit, directory, ask, opening).is_err(), "{what}");
        }
    }
}

fn honest(course: &Course) -> Ledger {
    let v = Victim::at(course, ME, course.told[usize::from(ME)].len());
    v.ledger.check(MOST_SEEDS, "the honest run");
    // All there is to give away was given away: three slots, of which two had somebody missing.
    assert_eq!((v.ledger.seeds.len(), v.ledger.shares.len(), v.ledger.masked.len()), (2, 7 + 6 + 5, 3));
    v.ledger
}

/// The directory that the site accepted before this step.
fn directory_before(course: &Course, step: usize) -> Hash {
    let mut before =
        course.frames_to(ME).into_iter().filter(|(i, b)| *i < step && kind(b) == Kind::DirectoryCertificate);
    before.next_back().map_or_else(Hash::default, |(_, b)| parts(b).context)
}

#[test]
fn every_kind_has_its_place() {
    for k in Kind::ALL {
        let places = [OF_HUB.contains(k), OF_SITES.contains(k), of_the_application(*k)];
        assert_eq!(places.iter().filter(|p| **p).count(), 1, "{k:?}: who sends it, and who is told lies with it?");
    }
    let course = course();
    for k in OF_HUB {
        let frames = course.frames_to(ME);
        let (step, bytes) =
            frames.iter().find(|(_, b)| kind(b) == k).unwrap_or_else(|| panic!("{k:?} is not in the run"));
        let directory = directory_before(&course, *step);
        assert!(typed(&course, &parts(bytes), &directory).len() >= 10, "{k:?}: every field needs its lies");
    }
}

#[test]
fn every_field_changed_under_a_true_signature() {
    let course = course();
    let honest = honest(&course);
    let mut found = Found::new("to a site");
    let frames = course.frames_to(ME);
    for &(step, bytes) in &frames {
        let p = parts(bytes);
        // Once for the first deck; twice for what is said in rounds, with everybody there and with somebody missing.
        let seen = frames.iter().filter(|(i, b)| *i < step && kind(b) == p.kind).count();
        if seen > usize::from(matches!(p.kind, Kind::Ask | Kind::Survivors | Kind::Opening)) {
            continue;
        }
        let message = format!("{:?}{}", p.kind, ["", " again"][seen]);
        for (name, context, rest) in typed(&course, &p, &directory_before(&course, step)) {
            let what = format!("{message}: {name}");
            let outcome = told(&course, &honest, step, &course.sign(p.kind, &context, &rest), &what);
            found.add(message.clone(), outcome, name);
        }
    }
    found.must_be_known();
}

#[test]
fn every_cut_tail_kind_signer_and_session() {
    let course = course();
    let honest = honest(&course);
    let hub = course.kit.identities[0].clone();
    let mut seen = BTreeSet::new();
    let mut found = Found::new("frames to a site");
    for (step, bytes) in course.frames_to(ME) {
        let p = parts(bytes);
        if !seen.insert(p.kind) {
            continue;
        }
        // None of these changes the site: one site is told them all, and then the honest rest.
        let mut v = Victim::at(&course, ME, step);
        for (name, frame) in everywhere(&course, &p, &hub) {
            let what = format!("{:?}: {name}", p.kind);
            // A delivery that cannot be used ends the deck, with a complaint; a directory that does not hold, too.
            let e = v.hear(&frame).expect_err(&what);
            found.add(format!("{:?}", p.kind), refusal(&e, &what), name);
            assert!(v.left.is_empty(), "{what}: something left");
        }
        v.go_on(step);
        assert_eq!(v.ledger, honest, "{:?}: what never passed has changed nothing", p.kind);
    }
    found.must_be_known();
}

/// Every frame of the run, to whomever and from whomever, in every state of the site: in order, early, late, again.
#[test]
fn every_frame_in_every_state() {
    let course = course();
    let honest = honest(&course);
    let told_to_me = course.told[usize::from(ME)].len();
    let mut frames: Vec<(String, &[u8])> = Vec::new();
    for s in [ME, 3] {
        // What others are told is the same but for the boxes.
        let sent = course.frames_to(s).into_iter().filter(|(_, b)| s == ME || kind(b) == Kind::DeliverShares);
        frames.extend(sent.map(|(i, b)| (format!("{:?} that site {s} was told at {i}", kind(b)), b)));
    }
    let vectors = |l: &Ledger| l.masked.values().flatten().cloned().collect::<BTreeSet<_>>();
    let check = |mut v: Victim<'_>, step: usize, what: &str| {
        v.go_on(step);
        v.ledger.check(MOST_SEEDS, what);
        v.ledger.within(&honest, what);
        assert!(vectors(&v.ledger).is_subset(&vectors(&honest)), "{what}: another vector left");
    };
    for step in 0..=told_to_me {
        for (name, frame) in &frames {
            let what = format!("in state {step}: {name}");
            let mut v = Victim::at(&course, ME, step);
            if let Err(e) = v.hear(frame) {
                refusal(&e, &what);
            }
            check(v, step, &what);
        }
        // What the sites say, turned back on one of them: never theirs to say, and nothing changes.
        let mut v = Victim::at(&course, ME, step);
        for (i, s, b) in course.frames_from(|s| s < 2) {
            let what = format!("in state {step}: {:?} of site {s}, heard at {i}", kind(b));
            refusal(&v.hear(b).expect_err(&what), &what);
            assert!(v.left.is_empty(), "{what}");
        }
        v.go_on(step);
        assert_eq!(v.ledger, honest, "in state {step}: reflections change nothing");
    }
}
