//! Rounds whose words are not kept ([RND-7]); here these are all above 256 bytes.

use veilsum_proto::{
    aggregator::{Event, Loss},
    message::{Kind, frame_encoded},
    suite::Hash,
    vectors_api::generator,
};
use veilsum_testkit::federation::{Kit, Verdict, World};

const WORDS: usize = 40;

/// A federation of this kit whose aggregator keeps 256 bytes.
fn world_of(kit: Kit, seed: u64) -> World {
    let mut w = World::new(kit, seed);
    w.aggregator.keep_at_most(256);
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

/// With more words than are kept, sites that are gone before and after their input, and at the check, cost a repetition.
#[test]
fn words_that_are_not_kept_are_asked_for_again() {
    for gone_at in [Kind::MaskedInput, Kind::ConsistencyCheck, Kind::Unmask] {
        let mut w = world(1);
        w.hook = Box::new(move |wire| match (wire.site, wire.kind) {
            (6, Kind::MaskedInput) => Verdict::Vanish,
            (5, kind) if kind == gone_at => Verdict::Vanish,
            _ => Verdict::Pass,
        });
        let (values, cohort, missing) = w.ask(b"q", WORDS).unwrap();
        assert!(right(&values, &cohort), "{gone_at:?}");
        assert_eq!(missing.len(), if gone_at == Kind::Unmask { 1 } else { 2 });
        w.close();
        assert_eq!(w.site_errors, []);
        assert!(w.opened.iter().all(|(_, v, c)| *v == values && *c == cohort) && w.opened.len() >= 5);
        let again = w.sent_by_sites.iter().filter(|(_, kind, _)| *kind == Kind::MaskedInput).count();
        assert_eq!(again > 7, gone_at == Kind::ConsistencyCheck, "{again} inputs");
    }
}

/// Two sites that commit to other vectors than they send are found by looking at every input once more.
#[test]
fn liars_are_found_among_words_that_are_not_kept() {
    let mut w = world(2);
    let keys = [2, 4].map(|site: usize| w.kit.identities[2 + site].clone());
    let session = w.session();
    w.hook = Box::new(move |wire| {
        let (Kind::MaskedInput, 2 | 4) = (wire.kind, wire.site) else { return Verdict::Pass };
        let key = &keys[usize::from(wire.site) / 2 - 1];
        let context = Hash(wire.bytes[8..40].try_into().unwrap());
        let mut rest = wire.bytes[40..wire.bytes.len() - 64].to_vec();
        // Each in a word of its own: in one word +1 and -1 may cancel.
        rest[100 + 8 * usize::from(wire.site)] ^= 1;
        Verdict::Replace(frame_encoded(key, &session, wire.kind, &context, &rest))
    });
    let (values, cohort, missing) = w.ask(b"q", WORDS).unwrap();
    assert_eq!((missing, right(&values, &cohort)), (vec![2, 4], true));
    let misbehaved = |e: &Event| match e {
        Event::Lost { site, why: Loss::Misbehaved(_) } => Some(*site),
        _ => None,
    };
    let caught: Vec<u16> = w.events.iter().filter_map(misbehaved).collect();
    assert_eq!(caught, [2, 4]);
}

/// Two commitments that are off by +G and −G are found although the words are not kept, before survivors are named; and
/// sites that leave afterwards, so that words are added up again, leave nobody with an opening that is false.
#[test]
fn commitments_that_cancel_are_found_among_words_that_are_not_kept() {
    use curve25519_dalek::ristretto::CompressedRistretto;
    for shifting in [true, false] {
        let mut w = world(3);
        let keys = [2, 4].map(|site: usize| w.kit.identities[2 + site].clone());
        let session = w.session();
        w.hook = Box::new(move |wire| match (wire.kind, wire.site) {
            (Kind::MaskedInput, 2 | 4) if shifting => {
                let key = &keys[usize::from(wire.site) / 2 - 1];
                let context = Hash(wire.bytes[8..40].try_into().unwrap());
                let mut rest = wire.bytes[40..wire.bytes.len() - 64].to_vec();
                let point = CompressedRistretto(rest[..32].try_into().unwrap()).decompress().unwrap();
                let g = CompressedRistretto(generator(0)).decompress().unwrap();
                let off = if wire.site == 2 { point + g } else { point - g };
                rest[..32].copy_from_slice(&off.compress().to_bytes());
                Verdict::Replace(frame_encoded(key, &session, wire.kind, &context, &rest))
            }
            (Kind::MaskedInput, 6) if !shifting => Verdict::Vanish,
            (Kind::ConsistencyCheck, 5) if !shifting => Verdict::Vanish,
            _ => Verdict::Pass,
        });
        let (values, cohort, missing) = w.ask(b"q", WORDS).unwrap();
        assert_eq!(missing, if shifting { vec![2, 4] } else { vec![5, 6] });
        assert!(right(&values, &cohort));
        w.close();
        assert_eq!(w.site_errors, []);
    }
}

/// How many masked inputs left the sites, with seven sites of which one vanishes at its check: seven, and six more where the
/// words were not kept.
fn inputs_sent(words: usize) -> usize {
    let mut w = world(4);
    w.hook = Box::new(|wire| match (wire.site, wire.kind) {
        (6, Kind::MaskedInput) | (5, Kind::ConsistencyCheck) => Verdict::Vanish,
        _ => Verdict::Pass,
    });
    let (values, cohort, _) = w.ask(b"q", words).unwrap();
    assert!(right(&values, &cohort) && cohort.len() == 5);
    w.sent_by_sites.iter().filter(|(_, kind, _)| *kind == Kind::MaskedInput).count()
}

/// Eight bytes a word and site: four words of seven sites are 224, five are 280.
#[test]
fn words_are_kept_up_to_the_limit() {
    assert_eq!([1, 4, 5, 10].map(inputs_sent), [6, 6, 11, 11]);
}

/// Seven blocks of three, of which three lose a site: at its input, while all inputs are repeated for that, and at its
/// check. The others of the second one have repeated their inputs before it is lost, and what these added is in no total.
#[test]
fn whoever_leaves_after_it_has_repeated_its_input_leaves_no_words_behind() {
    let kit = Kit::with_blocks(21, 3, |t| (t.colluders, t.threshold) = (1, 12));
    let mut w = world_of(kit, 5);
    let mut inputs = 0;
    w.hook = Box::new(move |wire| {
        inputs += usize::from((wire.from_site, wire.site, wire.kind) == (true, 10, Kind::MaskedInput));
        match (wire.site, wire.kind) {
            (19, Kind::MaskedInput) | (16, Kind::ConsistencyCheck) => Verdict::Vanish,
            (10, Kind::MaskedInput) if inputs == 2 => Verdict::Vanish,
            _ => Verdict::Pass,
        }
    });
    let (values, cohort, missing) = w.ask(b"q", WORDS).unwrap();
    assert!(right(&values, &cohort));
    assert_eq!(missing, (9..12).chain(15..21).collect::<Vec<u16>>());
    w.close();
    assert_eq!(w.site_errors, []);
    assert!(w.opened.iter().all(|(_, v, c)| *v == values && *c == cohort));
    assert_eq!(w.opened.len(), 12);
    let inputs = |site| w.sent_by_sites.iter().filter(|(s, k, _)| (*s, *k) == (site, Kind::MaskedInput)).count();
    assert_eq!((inputs(0), inputs(11), inputs(16)), (4, 2, 3));
}

/// A site that is slow answers a question twice. Its second repetition is no frame, and it is out after what it repeated has
/// been added.
#[test]
fn whoever_is_lost_after_its_repetition_is_taken_out_of_the_sums() {
    let mut w = world_of(Kit::new(10, |_| {}), 6);
    (w.slow[4], w.slow[0]) = (400, 3_000);
    let mut inputs = 0;
    w.hook = Box::new(move |wire| {
        inputs += usize::from((wire.from_site, wire.site, wire.kind) == (true, 4, Kind::MaskedInput));
        match (wire.site, wire.kind) {
            (9, Kind::MaskedInput) | (8, Kind::ConsistencyCheck) => Verdict::Vanish,
            (4, Kind::MaskedInput) if inputs == 4 => Verdict::Replace(wire.bytes[..wire.bytes.len() - 1].to_vec()),
            _ => Verdict::Pass,
        }
    });
    let (values, cohort, missing) = w.ask(b"q", WORDS).unwrap();
    assert_eq!(missing, [4, 8, 9]);
    assert!(right(&values, &cohort));
}

/// What it would have repeated is in no sum, so nobody repeats anything for its sake.
#[test]
fn whoever_leaves_before_it_has_repeated_its_input_costs_nothing_more() {
    let mut w = world_of(Kit::new(10, |_| {}), 7);
    let mut inputs = 0;
    w.hook = Box::new(move |wire| {
        inputs += usize::from((wire.from_site, wire.site, wire.kind) == (true, 7, Kind::MaskedInput));
        match (wire.site, wire.kind) {
            (9, Kind::MaskedInput) | (8, Kind::ConsistencyCheck) => Verdict::Vanish,
            (7, Kind::MaskedInput) if inputs == 2 => Verdict::Vanish,
            _ => Verdict::Pass,
        }
    });
    let (values, cohort, missing) = w.ask(b"q", WORDS).unwrap();
    assert_eq!((missing, right(&values, &cohort)), (vec![7, 8, 9], true));
    let sent = w.sent_by_sites.iter().filter(|(site, kind, _)| (*site, *kind) == (0, Kind::MaskedInput)).count();
    assert_eq!(sent, 2);
}
