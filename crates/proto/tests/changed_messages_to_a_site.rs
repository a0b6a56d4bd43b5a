//! Every message that a site can get, changed in every field under the coordinator's true signature, cut, lengthened,
//! repeated, out of order, from the wrong party and in every state of the site: an error that names the culprit and the
//! rule, or one of the acceptances listed here with its reason; and never a share or a seed too many.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

use veilsum_proto::{Error, message::Kind, suite::Hash};
use veilsum_testkit::{
    lies::{Around, everywhere, typed},
    recording::*,
    wire::*,
};

/// Sites of the run; the threshold of seven is five, so at most two seeds a slot leave.
const N: usize = 7;
const MOST_SEEDS: usize = 2;
const ME: u16 = 0;

fn course() -> Course {
    Course::new(N, 4, 1, &[ALL, DROP, REFUSE], false)
}

/// Frames that a lying but authentic coordinator may send, because they are a message of their own that an honest one
/// could have sent. What follows from them is less, never more.
const STORIES: [(Kind, &str, &str); 14] = [
    (Kind::OpenDeck, "run", "the first deck a site sees names the run; later decks must keep it"),
    (Kind::OpenDeck, "index", "decks may be numbered with gaps, as those given up were"),
    (Kind::OpenDeck, "slots", "any number of slots up to the plan's"),
    (Kind::Directory, "entries without the last", "a smaller federation; nothing leaves before all of it signs"),
    (Kind::DirectoryCertificate, "ciphertexts: contents", "any bytes are a ciphertext; later no box of the two opens"),
    (Kind::DirectoryCertificate, "ciphertexts: one of zeros", "so here"),
    (Kind::DirectoryCertificate, "ciphertexts: one bit", "and here"),
    (Kind::Ask, "slot", "a later slot; those before it are burnt"),
    (Kind::Ask, "words", "another question: its masks cancel with nobody's"),
    (Kind::Ask, "query", "another question: its masks cancel with nobody's"),
    (Kind::Ask, "total before", "another story of the past: its masks cancel with nobody's"),
    (Kind::Ask, "cohort without", "a smaller cohort above the floor"),
    (Kind::Survivors, "without site", "fewer survivors, above the threshold: their seeds instead of their shares"),
    (
        Kind::Opening,
        "signature",
        "verified when the survivors were named; compared by what was signed, and its name is another",
    ),
];

fn another_story(kind: Kind, name: &str) -> Option<usize> {
    STORIES.iter().position(|(k, prefix, _)| *k == kind && name.starts_with(prefix))
}

fn names_the_culprit(e: &Error, what: &str) {
    let rule = e.rule().unwrap_or_else(|| panic!("{what}: no rule in {e:?}"));
    let text = e.to_string();
    let names = match e {
        Error::PeerMisbehaved { who, .. } => who == "hub" || who.starts_with("site-"),
        // The site's own floor or memory says no: nobody need have lied.
        Error::Refused { .. } | Error::Invalid { .. } => true,
        _ => false,
    };
    assert!(names && text.contains(rule.name()), "{what}: {text}");
}

/// Tells a fresh site in its state of `step` the frame; then the honest rest. What left stays in bounds.
fn told(
    course: &Course,
    honest: &Ledger,
    step: usize,
    frame: &[u8],
    story: bool,
    what: &str,
) -> Result<Vec<Parts>, Error> {
    let mut v = Victim::at(course, ME, step);
    let result = v.hear(frame).map(|()| v.left.clone());
    if let Err(e) = &result {
        names_the_culprit(e, what);
        let quiet = v.left.iter().all(|p| p.kind == Kind::ShareComplaint);
        assert!(quiet, "{what}: something left with the refusal");
    }
    v.go_on(step);
    v.ledger.check(MOST_SEEDS, what);
    if !story {
        v.ledger.within(honest, what);
    }
    if kind(frame) == Kind::Opening && !story {
        assert_eq!(v.ledger, *honest, "{what}: a lie about a total that was refused changes nothing");
    }
    result
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
    // What is said of burned slots has its lies in `lies_about_blocks.rs`: no run here burns one.
    for k in OF_HUB.into_iter().filter(|k| ![Kind::Burn, Kind::BurnCertificate].contains(k)) {
        let frames = course.frames_to(ME);
        let (step, bytes) =
            frames.iter().find(|(_, b)| kind(b) == k).unwrap_or_else(|| panic!("{k:?} is not in the run"));
        let around = Around { directory: directory_before(&course, *step), ..Around::default() };
        assert!(typed(&course, &parts(bytes), &around).len() >= 10, "{k:?}: every field needs its lies");
    }
}

#[test]
fn every_field_changed_under_a_true_signature() {
    let course = course();
    let honest = honest(&course);
    let mut counted: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
    let mut told_well = BTreeSet::new();
    let frames = course.frames_to(ME);
    for &(step, bytes) in &frames {
        let p = parts(bytes);
        // Once for the first deck; twice for what is said in rounds, with everybody there and with somebody missing.
        let seen = frames.iter().filter(|(i, b)| *i < step && kind(b) == p.kind).count();
        if seen > usize::from(matches!(p.kind, Kind::Ask | Kind::Survivors | Kind::Opening)) {
            continue;
        }
        let around = Around { directory: directory_before(&course, step), ..Around::default() };
        for (name, context, rest) in typed(&course, &p, &around) {
            let what = format!("{:?} of step {step}: {name}", p.kind);
            let story = another_story(p.kind, &name);
            let result = told(&course, &honest, step, &course.sign(p.kind, &context, &rest), story.is_some(), &what);
            let count = counted.entry(p.kind).or_default();
            count.0 += 1;
            count.1 += usize::from(result.is_ok());
            match story {
                None => assert!(result.is_err(), "{what}: accepted"),
                Some(story) => drop(result.is_ok().then(|| told_well.insert(story))),
            }
        }
    }
    assert_eq!(told_well.len(), STORIES.len(), "a story that nobody believes: {told_well:?}");
    // Most lies are told to no effect.
    for (kind, (tried, believed)) in counted {
        assert!(tried >= 10 && believed < tried / 2, "{kind:?}: {believed} of {tried}");
    }
}

#[test]
fn every_cut_tail_kind_signer_and_session() {
    let course = course();
    let honest = honest(&course);
    let hub = course.kit.identities[0].clone();
    let mut seen = BTreeSet::new();
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
            names_the_culprit(&e, &what);
            assert!(v.left.is_empty(), "{what}: something left");
        }
        v.go_on(step);
        assert_eq!(v.ledger, honest, "{:?}: what never passed has changed nothing", p.kind);
    }
}

#[test]
fn every_bit_of_every_frame() {
    let course = Course::new(4, 2, 2, &[DROP, ALL], false);
    for (step, bytes) in course.frames_to(ME) {
        let mut v = Victim::at(&course, ME, step);
        let stride = if env::var_os("VEILSUM_EVERY_BIT").is_some() { 1 } else { 7 };
        for bit in (0..8 * bytes.len()).step_by(stride) {
            let mut bad = bytes.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            let what = format!("{:?}: bit {bit}", kind(bytes));
            names_the_culprit(&v.hear(&bad).expect_err(&what), &what);
            assert!(v.left.is_empty(), "{what}");
        }
        for cut in 0..bytes.len() {
            assert!(v.hear(&bytes[..cut]).is_err(), "cut to {cut}");
        }
        v.hear(bytes).expect("the honest frame still passes");
        assert!(!v.left.is_empty() || matches!(kind(bytes), Kind::Ask | Kind::Opening));
    }
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
                names_the_culprit(&e, &what);
            }
            check(v, step, &what);
        }
        // What the sites say, turned back on one of them: never theirs to say, and nothing changes.
        let mut v = Victim::at(&course, ME, step);
        for (i, s, b) in course.frames_from(|s| s < 2) {
            let what = format!("in state {step}: {:?} of site {s}, heard at {i}", kind(b));
            names_the_culprit(&v.hear(b).expect_err(&what), &what);
            assert!(v.left.is_empty(), "{what}");
        }
        v.go_on(step);
        assert_eq!(v.ledger, honest, "in state {step}: reflections change nothing");
    }
}

/// A delivery with a box that does not open: the site says so, about whom, and the deck is gone.
#[test]
fn a_spoiled_box_costs_a_complaint_and_no_more() {
    let course = Course::new(N, 4, 3, &[ALL], true);
    let complaints: Vec<(u16, Parts)> = course
        .frames_from(|_| true)
        .into_iter()
        .map(|(_, s, b)| (s, parts(b)))
        .filter(|(_, p)| p.kind == Kind::ShareComplaint)
        .collect();
    assert_eq!(complaints.len(), 1);
    assert_eq!((complaints[0].0, complaints[0].1.read::<u16>()), (2, 1));
    assert_eq!(course.totals[0].1, [0, 3, 4, 5, 6]);
}
