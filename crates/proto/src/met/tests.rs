use super::*;
use crate::{identity::PublicKey, release::Standing};

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
        standing: Standing { answered: Answered { number: *number, link: link(*number) }, ..Standing::default() },
    };
    (0..).zip(numbers).map(member).collect()
}

fn link(number: u64) -> Hash {
    if number == 0 { Hash::default() } else { Hash([number as u8; 32]) }
}

fn meets(met: &mut Met, talk: &Talk, deck: u32, numbers: &[u64]) {
    let members = members(numbers);
    met.check(talk, &members).unwrap();
    met.take(talk, deck, (Met::all(&members), &Met::list(&members)));
}

fn all(n: usize) -> Hash {
    Met::all(&members(&vec![0; n]))
}

fn back(met: &Met, talk: &Talk, numbers: &[u64]) -> Option<(u16, u64, u64)> {
    met.check(talk, &members(numbers)).err().map(|back| (back.site, back.before, back.now))
}

/// [LED-11]: who was never met is taken; fewer answers than stated are not, nor as many with another last one.
#[test]
fn led_11_fewer_answers_or_another_last_one() {
    let mut met = Met::default();
    meets(&mut met, &talk(1, 0, 1), 0, &[5, 0, u64::MAX]);
    let later = talk(2, 0, 1);
    assert_eq!(back(&met, &later, &[5, 0, u64::MAX, 3]), None);
    assert_eq!(back(&met, &later, &[6, 1]), None);
    assert_eq!(back(&met, &later, &[4, 0]), Some((0, 5, 4)));
    // Whoever claims all answers that there can be is refused from then on, and nobody else is.
    assert_eq!(back(&met, &later, &[5, 0, 7]), Some((2, u64::MAX, 7)));
    let mut forked = members(&[5, 0]);
    forked[0].standing.answered.link = hash(99);
    let error = met.check(&later, &forked).unwrap_err();
    assert_eq!(error, SetBack { site: 0, before: 5, now: 5 });
    let said = error.error("site-0".into()).to_string();
    assert!(said.contains("site-0") && said.contains("5 answers as before, and another"), "{said}");
    let said = met.check(&later, &members(&[4])).unwrap_err().error("site-0".into());
    assert!(said.to_string().contains("it states 4 answers, and at least 5 had left it"), "{said}");
    assert_eq!(said.rule(), Some(Rule::Led11));
}

/// [LED-11]: a total over all members of a deck adds an answer of each, under another plan and in another run of the session.
#[test]
fn led_11_totals_count() {
    let mut met = Met::default();
    let first = talk(1, 0, 1);
    meets(&mut met, &first, 0, &[5, 5, 5]);
    for slot in [0, 0, 1, 2] {
        met.total(first.session, first.run, (0, slot), &all(3));
    }
    // Of others, in another deck, or in another run.
    met.total(first.session, first.run, (0, 3), &all(2));
    met.total(first.session, first.run, (1, 4), &all(3));
    met.total(first.session, hash(9), (0, 4), &all(3));
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
    assert!(met.has(&at, 0, &Met::list(&members(&[5, 5]))));
    assert!(!met.has(&at, 0, &Met::list(&members(&[5, 6]))));
    assert!(!met.has(&at, 1, &Met::list(&members(&[5, 5]))));
    assert!(!met.has(&talk(1, 0, 2), 0, &Met::list(&members(&[5, 5]))));
}
