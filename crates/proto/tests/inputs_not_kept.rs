//! Rounds whose words are not kept ([RND-7]); here these are all above 256 bytes.

use veilsum_proto::aggregator::Event;
use veilsum_testkit::prelude::*;

use crate::{
    script::{of_sites, signs},
    signed_inputs::shifted,
};

const WORDS: usize = 40;

/// A federation of this kit whose aggregator keeps 256 bytes.
fn world_of(kit: Kit, seed: u64) -> World {
    let mut w = World::new(kit, seed);
    api::keep_at_most(&mut w.aggregator, 256);
    w.answer = Box::new(|site, asked| (0..asked.words).map(|i| (i as u64).wrapping_sub(u64::from(site))).collect());
    w
}

fn world(seed: u64) -> World {
    world_of(Kit::new(7, |_| {}), seed)
}

fn right(values: &[u64], cohort: &[u16]) -> bool {
    let sites: u64 = cohort.iter().map(|s| u64::from(*s)).sum();
    let n = cohort.len() as u64;
    values.iter().enumerate().all(|(i, v)| *v == (n * i as u64).wrapping_sub(sites))
}

/// Whom the right total of a question covers, and who is missing.
#[track_caller]
fn ask(w: &mut World, words: usize) -> (Vec<u16>, Vec<u16>) {
    let (values, cohort, missing) = w.ask(b"q", words).unwrap();
    assert!(right(&values, &cohort), "{values:?} over {cohort:?}");
    (cohort, missing)
}

/// How many sites have opened the total over this cohort at the end; no site complains.
#[track_caller]
fn opened(w: &mut World, cohort: &[u16]) -> usize {
    w.close();
    assert_eq!(w.site_errors, []);
    assert!(w.opened.iter().all(|(_, values, over)| over == cohort && right(values, over)));
    w.opened.len()
}

/// How many masked inputs each site has sent.
fn inputs(w: &World) -> Vec<usize> {
    let sent =
        |s: u16| w.sent_by_sites.iter().filter(|(site, kind, _)| (*site, *kind) == (s, Kind::MaskedInput)).count();
    (0..w.sites.len() as u16).map(sent).collect()
}

/// Who is lost for what it sent.
fn caught(w: &World) -> Vec<u16> {
    let misbehaved = |e: &Event| match e {
        Event::Lost { site, why: Loss::Misbehaved(_) } => Some(*site),
        _ => None,
    };
    w.events.iter().filter_map(misbehaved).collect()
}

/// Site 6 is gone before its input, and site 5 at this step: how many are missing, and how many masked inputs left the sites.
fn gone(words: usize, at: Kind) -> (usize, usize) {
    let mut w = world(1);
    of_sites(&mut w, move |wire, _| match (wire.site, wire.kind) {
        (6, Kind::MaskedInput) => Verdict::Vanish,
        (5, kind) if kind == at => Verdict::Vanish,
        _ => Verdict::Pass,
    });
    let (cohort, missing) = ask(&mut w, words);
    assert!(opened(&mut w, &cohort) >= 5);
    (missing.len(), inputs(&w).iter().sum())
}

/// With more words than are kept, a site that is gone after its input costs a repetition until shares are asked for. Eight bytes are
/// kept for a word and site: four words of seven sites are 224, five are 280.
#[test]
fn words_that_are_not_kept_are_asked_for_again() {
    assert_eq!(gone(WORDS, Kind::MaskedInput), (2, 5));
    assert_eq!(gone(WORDS, Kind::Unmask), (1, 6));
    assert_eq!([1, 4, 5, 10, WORDS].map(|words| gone(words, Kind::ConsistencyCheck).1), [6, 6, 11, 11, 11]);
}

/// Two sites that commit to other vectors than they send are found by looking at every input once more.
#[test]
fn liars_are_found_among_words_that_are_not_kept() {
    let mut w = world(2);
    signs(&mut w, &[2, 4], Kind::MaskedInput, |site, p| {
        // Each in a word of its own: in one word +1 and -1 may cancel.
        let mut rest = p.rest.clone();
        rest[100 + 8 * usize::from(site)] ^= 1;
        rest
    });
    assert_eq!((ask(&mut w, WORDS).1, caught(&w)), (vec![2, 4], vec![2, 4]));
}

/// Break E: two commitments that are off by +G and −G pass the plain sum; when one of the two is gone the other one's shows, and would be
/// the coordinator's fault. They are found before survivors are named, whether words are kept or not; and sites that leave
/// afterwards, so that words are added up again, leave nobody with an opening that is false.
#[test]
fn commitments_that_are_off_by_what_cancels_out_are_found_before_survivors_are_named() {
    for (kept, shifting) in [(1 << 20, true), (256, true), (256, false)] {
        let mut w = world(3);
        api::keep_at_most(&mut w.aggregator, kept);
        if shifting {
            signs(&mut w, &[2, 4], Kind::MaskedInput, |site, p| shifted(&p.rest, if site == 2 { 1 } else { -1 }));
        } else {
            of_sites(&mut w, |wire, _| match (wire.kind, wire.site) {
                (Kind::MaskedInput, 6) | (Kind::ConsistencyCheck, 5) => Verdict::Vanish,
                _ => Verdict::Pass,
            });
        }
        let (cohort, missing) = ask(&mut w, WORDS);
        assert_eq!((missing, caught(&w)), if shifting { (vec![2, 4], vec![2, 4]) } else { (vec![5, 6], vec![]) });
        opened(&mut w, &cohort);
    }
}

/// A site that is slow answers a question twice. Its second repetition is no frame, and it is out after what it repeated has
/// been added.
#[test]
fn whoever_is_lost_after_its_repetition_is_taken_out_of_the_sums() {
    let mut w = world_of(Kit::new(10, |_| {}), 6);
    (w.slow[4], w.slow[0]) = (400, 3_000);
    of_sites(&mut w, |wire, nth| match (wire.site, wire.kind, nth) {
        (9, Kind::MaskedInput, _) | (8, Kind::ConsistencyCheck, _) => Verdict::Vanish,
        (4, Kind::MaskedInput, 4) => Verdict::Replace(wire.bytes[..wire.bytes.len() - 1].to_vec()),
        _ => Verdict::Pass,
    });
    assert_eq!(ask(&mut w, WORDS).1, [4, 8, 9]);
}

/// What it would have repeated is in no sum, so nobody repeats anything for its sake.
#[test]
fn whoever_leaves_before_it_has_repeated_its_input_costs_nothing_more() {
    let mut w = world_of(Kit::new(10, |_| {}), 7);
    of_sites(&mut w, |wire, nth| match (wire.site, wire.kind, nth) {
        (9, Kind::MaskedInput, _) | (8, Kind::ConsistencyCheck, _) | (7, Kind::MaskedInput, 2) => Verdict::Vanish,
        _ => Verdict::Pass,
    });
    assert_eq!((ask(&mut w, WORDS).1, inputs(&w)[0]), (vec![7, 8, 9], 2));
}
