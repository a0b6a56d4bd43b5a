use super::*;
use veilsum_proto::{identity::PublicKey, standing::Standing};

fn hash(n: u8) -> Hash {
    Hash([n; 32])
}

/// A conversation under plan `plan`, with one of its two aggregators, in run `run`.
fn talk(plan: u8, aggregator: u8, run: u8) -> Talk {
    Talk { plan: hash(plan), session: hash(plan * 2 + aggregator), run: hash(run) }
}

/// Sites 0, 1, … that state so many answers, the last of which has a link that follows from the number.
fn members(numbers: &[u64]) -> Vec<Member> {
    let member = |(site, number): (u16, &u64)| Member {
        site,
        key: PublicKey([site as u8 + 1; 32]),
        standing: Standing { answered: Answered { number: *number, link: hash(*number as u8) }, ..Standing::default() },
    };
    (0..).zip(numbers).map(member).collect()
}

fn meets(met: &mut Met, talk: &Talk, deck: u32, numbers: &[u64]) {
    let members = members(numbers);
    met.check(talk, &members).unwrap();
    met.take(talk, deck, (Met::all(&members), &Met::list(&members)));
}

fn back(met: &Met, talk: &Talk, numbers: &[u64]) -> Option<(u16, u64, u64)> {
    met.check(talk, &members(numbers)).err().map(|back| (back.site, back.before, back.now))
}

/// [LED-11]: a total over all members of a deck adds an answer of each, under another plan and in another run of the session. Who is
/// refused else is in `protocol/vectors/v4/met.json`.
#[test]
fn led_11_totals_count() {
    let mut met = Met::default();
    let first = talk(1, 0, 1);
    meets(&mut met, &first, 0, &[5, 5, 5]);
    // Once for each slot; not those of others, in another deck, or in another run.
    for (run, deck, slot, of) in
        [(1, 0, 0, 3), (1, 0, 0, 3), (1, 0, 1, 3), (1, 0, 2, 3), (1, 0, 3, 2), (1, 1, 4, 3), (9, 0, 4, 3)]
    {
        met.total(first.session, hash(run), (deck, slot), &Met::all(&members(&vec![0; of])));
    }
    for other in [talk(2, 0, 1), talk(2, 1, 7), talk(1, 0, 2)] {
        assert_eq!(back(&met, &other, &[8, 8, 7]), Some((2, 8, 7)), "{other:?}");
        assert_eq!(back(&met, &other, &[8, 8, 8]), None);
    }
    // A deck of this run may be made ahead of its totals, and the plan's other conversation beside it.
    assert_eq!(back(&met, &first, &[5, 5, 5]), None);
    assert_eq!(back(&met, &first, &[5, 4, 5]), Some((1, 5, 4)));
    assert_eq!(back(&met, &talk(1, 1, 1), &[0, 0, 0]), None);
    // It is not lost by what comes later.
    meets(&mut met, &talk(2, 0, 1), 0, &[8, 8]);
    meets(&mut met, &talk(2, 0, 1), 1, &[9, 8]);
    for later in [talk(3, 0, 1), talk(1, 0, 1), talk(1, 1, 1)] {
        assert_eq!(back(&met, &later, &[8, 8, 8]), Some((0, 9, 8)), "{later:?}");
    }
    // Site 2 was not there, so it may still be in the first plan.
    assert_eq!(back(&met, &first, &[9, 8, 5]), None);
    assert_eq!(back(&met, &talk(3, 0, 1), &[9, 8, 7]), Some((2, 8, 7)));
}

/// A deck is noted once.
#[test]
fn what_is_kept_already_is_not_noted_again() {
    let mut met = Met::default();
    let at = talk(1, 0, 1);
    meets(&mut met, &at, 0, &[5, 5]);
    let has = |at: &Talk, deck, of: &[Member]| met.has(at, deck, (Met::all(of), &Met::list(of)));
    assert!(has(&at, 0, &members(&[5, 5])));
    assert!(!has(&at, 0, &members(&[5, 6])));
    assert!(!has(&at, 1, &members(&[5, 5])));
    assert!(!has(&talk(1, 0, 2), 0, &members(&[5, 5])));
}
