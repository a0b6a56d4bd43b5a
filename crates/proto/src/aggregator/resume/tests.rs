//! What an aggregator takes from a journal, entry by entry ([JRN-5]).

use super::*;
use crate::{
    aggregator::{Input, record::ReadyDeck},
    codec,
    testing::Kit,
};
use veilsum_testkit::federation::{self, World};

fn kit() -> Kit {
    Kit::new(4, |t| t.slots = 2)
}

/// The entries of a run: `rounds` questions, decks of so many slots. They cross as bytes, because the test kit is built on the
/// crate without its unit tests.
fn entries_of(rounds: u8, slots: u16) -> Vec<Entry> {
    let mut w = World::new(federation::Kit::new(4, |t| t.slots = slots), 5);
    (0..rounds).for_each(|r| drop(w.ask(&[r], 3).unwrap()));
    let read = |bytes: Vec<u8>| codec::decode::<Record>("journal entry", &bytes, usize::MAX).unwrap().0;
    w.log.iter().map(|record| read(codec::encode(record))).collect()
}

fn entries(rounds: u8) -> Vec<Entry> {
    entries_of(rounds, 2)
}

fn at(entries: &[Entry], wanted: impl Fn(&Entry) -> bool) -> usize {
    entries.iter().position(wanted).expect("an entry of this kind")
}

fn resume(entries: Vec<Entry>) -> Result<Aggregator, Error> {
    Aggregator::resume(kit().coordinator(), entries.into_iter().map(Record), Millis(0))
}

#[track_caller]
fn refused(entries: Vec<Entry>, why: &str) {
    match resume(entries) {
        Err(Error::Journal(said)) => assert_eq!(said, why),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("taken, and not refused: {why}"),
    }
}

fn events(a: &mut Aggregator) -> Vec<Event> {
    std::iter::from_fn(|| a.poll()).filter_map(|o| if let Output::Event(e) = o { Some(e) } else { None }).collect()
}

/// Sets of sites that are none among four: out of order, one twice, a fifth one.
const UNSOUND: [&[u16]; 3] = [&[1, 0, 2, 3], &[0, 1, 1, 2], &[0, 1, 2, 4]];

#[test]
fn a_deck_that_was_opened_twice_or_never() {
    let whole = entries(1);
    let (opened, deck) =
        (at(&whole, |e| matches!(e, Entry::Opened { .. })), at(&whole, |e| matches!(e, Entry::Deck(_))));
    let mut twice = whole.clone();
    twice.insert(opened, whole[opened].clone());
    refused(twice, "a deck in it was opened twice");
    let never = "a deck in it was never opened";
    let with = |change: &dyn Fn(&mut ReadyDeck)| {
        let mut changed = whole[..=deck].to_vec();
        let Entry::Deck(deck) = &mut changed[deck] else { panic!() };
        change(deck);
        changed
    };
    assert!(resume(with(&|_| {})).is_ok());
    refused(with(&|d| d.index += 1), never);
    refused(with(&|d| d.slots = 0), never);
    for sites in UNSOUND {
        refused(with(&|d| d.members = sites.to_vec()), never);
    }
}

/// A deck gets ready at any time between the question with which it is begun and its own first one.
#[test]
fn a_deck_that_was_ready_early_or_late() {
    let kit = Kit::new(4, |t| t.slots = 4);
    let mut rest = entries_of(6, 4);
    let deck = rest.remove(at(&rest, |e| matches!(e, Entry::Deck(d) if d.index == 1)));
    let opened = at(&rest, |e| matches!(e, Entry::Opened { index: 1 }));
    let asked = at(&rest, |e| matches!(e, Entry::Asked(q) if q.deck == 1));
    for ready in opened + 1..=asked {
        let mut whole = rest.clone();
        whole.insert(ready, deck.clone());
        let resumed = Aggregator::resume(kit.coordinator(), whole.into_iter().map(Record), Millis(0));
        assert_eq!(resumed.map(drop), Ok(()), "ready at {ready} of {opened} to {asked}");
    }
    assert!(asked > opened + 5);
}

#[test]
fn a_question_without_a_slot_or_a_cohort() {
    let whole = entries(1);
    let asked = at(&whole, |e| matches!(e, Entry::Asked(_)));
    let with = |change: &dyn Fn(&mut u32, &mut u16, &mut Vec<u16>)| {
        let mut changed = whole[..=asked].to_vec();
        let Entry::Asked(q) = &mut changed[asked] else { panic!() };
        change(&mut q.deck, &mut q.slot, &mut q.cohort);
        changed
    };
    assert!(resume(with(&|_, _, _| {})).is_ok());
    refused(with(&|deck, _, _| *deck += 1), "a question in it has no slot");
    refused(with(&|_, slot, _| *slot += 1), "a question in it has no slot");
    for sites in UNSOUND {
        refused(with(&|_, _, cohort| *cohort = sites.to_vec()), "a question in it has no total and another follows");
    }
    // A third question in a deck of two slots.
    let mut third: Vec<Entry> = entries(2);
    let last = third.iter().rposition(|e| matches!(e, Entry::Asked(_))).unwrap();
    let Entry::Asked(q) = third[last].clone() else { panic!() };
    third.retain(|e| !matches!(e, Entry::Opened { index: 1 }) && !matches!(e, Entry::Deck(d) if d.index == 1));
    third.push(Entry::Asked(Question { slot: 2, ..q }));
    refused(third, "a question in it has no slot");
    // Another one before the total of the first.
    let mut second = whole[..=asked].to_vec();
    let Entry::Asked(q) = whole[asked].clone() else { panic!() };
    second.push(Entry::Asked(Question { slot: 1, ..q }));
    refused(second, "a question in it has no total and another follows");
}

#[test]
fn survivors_that_were_not_asked() {
    let whole = entries(1);
    let (asked, named) =
        (at(&whole, |e| matches!(e, Entry::Asked(_))), at(&whole, |e| matches!(e, Entry::Named { .. })));
    let with = |cohort: &[u16], alive: &[u16]| {
        let mut changed = whole[..=named].to_vec();
        let Entry::Asked(q) = &mut changed[asked] else { panic!() };
        q.cohort = cohort.to_vec();
        let Entry::Named { named: of, .. } = &mut changed[named] else { panic!() };
        of.alive = alive.to_vec();
        changed
    };
    assert!(resume(with(&[0, 1, 2, 3], &[0, 1, 3])).is_ok());
    let none = "survivors in it belong to no question";
    refused(with(&[0, 1, 2], &[0, 1, 3]), none);
    refused(with(&[0, 1, 2, 3], &[1, 0, 3]), none);
    refused(with(&[0, 1, 2, 3], &[0, 1, 1]), none);
}

/// Another query or another number of words is another question; the run does not go on with it.
#[test]
fn a_run_that_is_taken_up_asks_what_it_asked_before() {
    let whole = entries(1);
    let asked = at(&whole, |e| matches!(e, Entry::Asked(_)));
    for known in [&whole[..], &whole[..=asked]] {
        for (query, words, same) in [(&[0u8][..], 3, true), (&[0], 4, false), (&[1], 3, false)] {
            let mut a = resume(known.to_vec()).unwrap_or_else(|e| panic!("{e}"));
            drop(events(&mut a));
            a.handle(Input::Ask { query: query.to_vec(), words }, Millis(1));
            let failed = events(&mut a).iter().any(|e| matches!(e, Event::Failed(Error::Journal(_))));
            assert_eq!(failed, !same, "{query:?} {words}");
        }
    }
}

/// Sites have the time of joining to notice that they speak to another process, and not only that of one step.
#[test]
fn sites_have_time_to_notice_that_the_process_is_another() {
    let whole = entries(1);
    let asked = at(&whole, |e| matches!(e, Entry::Asked(_)));
    let mut a = resume(whole[..=asked].to_vec()).unwrap_or_else(|e| panic!("{e}"));
    a.handle(Input::Ask { query: vec![0], words: 3 }, Millis(0));
    let lost = |a: &mut Aggregator| events(a).iter().any(|e| matches!(e, Event::Lost { .. }));
    a.handle(Input::Tick, Millis(59_999));
    assert!(!lost(&mut a));
    a.handle(Input::Tick, Millis(60_000));
    assert!(lost(&mut a));
}
