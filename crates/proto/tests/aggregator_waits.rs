//! Whom an aggregator asks, asks again, waits for and gives up, and what it tells its application of that.

use veilsum_proto::aggregator::{Event, Input, Output};
use veilsum_testkit::prelude::*;

use crate::script::{of_sites, signs};

const WAITED_FOR: u16 = 3;

/// The first 8 kinds that a site answers with, and what it is asked with.
const STEPS: [(Kind, Kind); 7] = [
    (Kind::OpenDeck, Kind::AdvertiseKeys),
    (Kind::Directory, Kind::AcceptDirectory),
    (Kind::DirectoryCertificate, Kind::ShareKeys),
    (Kind::DeliverShares, Kind::ShareAck),
    (Kind::Ask, Kind::MaskedInput),
    (Kind::Survivors, Kind::ConsistencyCheck),
    (Kind::Certificate, Kind::Unmask),
];

/// Whoever has answered a step is not asked again, however long another site takes; that one is asked again every 500 ms.
#[test]
fn only_who_has_not_answered_is_asked_again() {
    for (asked, answered) in STEPS {
        let sent = Rc::new(RefCell::new(BTreeMap::<(u16, Kind), usize>::new()));
        let log = sent.clone();
        let mut w = World::new(Kit::new(5, |t| t.threshold = 4), 1);
        let mut lost = 0;
        w.hook = Box::new(move |wire| {
            if !wire.from_site {
                *log.borrow_mut().entry((wire.site, wire.kind)).or_default() += 1;
            }
            // Of five sites one is missing, and of the other four each is needed.
            if (wire.site, wire.kind) == (4, Kind::MaskedInput) {
                return Verdict::Vanish;
            }
            if wire.from_site && (wire.site, wire.kind) == (WAITED_FOR, answered) {
                lost += 1;
            }
            if (1..4).contains(&lost) && wire.from_site && (wire.site, wire.kind) == (WAITED_FOR, answered) {
                return Verdict::Drop;
            }
            Verdict::Pass
        });
        assert_eq!(w.ask(b"q", 3).unwrap().1, [0, 1, 2, 3], "{asked:?}");
        let times = |site| sent.borrow()[&(site, asked)];
        assert_eq!([0, 1, 2].map(times), [1; 3], "{asked:?}");
        // The question is repeated to it anyway while the deadline of the site that is missing runs.
        assert!(times(WAITED_FOR) >= 4, "{asked:?}: {}", times(WAITED_FOR));
        assert_eq!(w.site_errors, []);
    }
}

/// Each time a set-up is at its last step another site vanishes. Eight times it begins anew; no more ([KEX-11]).
#[test]
fn kex_11_set_ups_begin_anew_a_limited_number_of_times() {
    let play = |times: usize| {
        let mut w = World::new(Kit::new(20, |_| {}), 3);
        of_sites(&mut w, move |wire, nth| {
            // In the nth deck the nth site from the end.
            let last = wire.kind == Kind::ShareAck && usize::from(wire.site) + nth == 20 && nth <= times;
            if last { Verdict::Vanish } else { Verdict::Pass }
        });
        w.ask(b"q", 3).map(|(_, cohort, _)| cohort.len())
    };
    assert_eq!(play(8), Ok(12));
    let error = play(9).unwrap_err();
    assert!(matches!(&error, Error::Quorum { alive: 11, rule: Rule::Kex11, .. }), "{error}");
}

/// A site that is out before the directory is made costs no other set-up.
#[test]
fn a_loss_while_keys_are_collected_begins_nothing_anew() {
    let mut fed = World::noted(5, 4, |_| {});
    signs(&mut fed, &[2], Kind::AdvertiseKeys, |_, _| b"cut".to_vec());
    assert_eq!(fed.ask_exact(b"q"), [0, 1, 3, 4]);
    assert_eq!(fed.seen().iter().filter(|w| w.kind == Kind::OpenDeck).count(), 5);
}

/// Who is there and late is told so, once; not who is a member, and not who never came.
#[test]
fn who_is_too_late_is_told() {
    let mut fed = World::noted(6, 5, |_| {});
    fed.aggregator.handle(Input::Detached(5), Millis(0));
    fed.tap(|w| if w.from_site && w.site >= 4 { vec![] } else { vec![w.bytes.clone()] });
    assert_eq!(fed.ask_exact(b"q"), [0, 1, 2, 3]);
    let late = |fed: &World| -> Vec<Event> {
        fed.events.iter().filter(|e| matches!(e, Event::TooLate(_) | Event::Lost { .. })).cloned().collect()
    };
    assert_eq!(late(&fed), [Event::TooLate(4)]);
    // One comes a minute later. A member that comes back is not late, and of later decks only members hear.
    let opened = |fed: &World| fed.seen().iter().filter(|w| w.kind == Kind::OpenDeck && w.site >= 4).count();
    let before = opened(&fed);
    for input in [Input::Attached(5), Input::Detached(1), Input::Attached(1)] {
        fed.aggregator.handle(input, Millis(fed.now()));
    }
    for r in 0..10 {
        fed.ask_exact(&[r]);
    }
    assert_eq!(late(&fed), [Event::TooLate(4), Event::TooLate(5)]);
    assert_eq!(opened(&fed), before);
}

/// A site whose connection breaks has the grace of two seconds, or the end of the phase where that comes first.
#[test]
fn a_connection_that_breaks_is_waited_for() {
    for (back, lost) in [(1_999, false), (2_000, true)] {
        let mut fed = World::noted(4, 11, |_| {});
        fed.ask_exact(b"a");
        fed.tap(|w| if w.from_site && w.site == 3 { vec![] } else { vec![w.bytes.clone()] });
        fed.aggregator.handle(Input::Ask { query: b"b".to_vec(), words: WORDS }, Millis(fed.now()));
        fed.aggregator.handle(Input::Detached(3), Millis(fed.now()));
        fed.aggregator.handle(Input::Tick, Millis(fed.now() + back));
        while let Some(output) = fed.aggregator.poll() {
            if let Output::Event(e) = output {
                fed.events.push(e);
            }
        }
        let gone = fed.events.contains(&Event::Lost { site: 3, why: Loss::Gone });
        assert_eq!(gone, lost, "{back}");
        assert_eq!(fed.lost(3).is_some(), lost);
    }
}

/// A member that comes back in the middle of a set-up may be a process without its keys, so the set-up begins anew with it:
/// four times, and then without it.
#[test]
fn whoever_comes_back_in_a_set_up_is_in_the_next_one() {
    let play = |times: usize| {
        let mut w = World::new(Kit::new(5, |_| {}), 12);
        of_sites(&mut w, move |wire, nth| {
            let dies = (wire.site, wire.kind) == (3, Kind::ShareKeys) && nth <= times;
            if dies { Verdict::Crash } else { Verdict::Pass }
        });
        let (_, cohort, _) = w.ask(b"q", 3).unwrap();
        let keys = w.sent_by_sites.iter().filter(|(site, kind, _)| (*site, *kind) == (0, Kind::AdvertiseKeys));
        (cohort.len(), keys.count())
    };
    assert_eq!([0, 1, 4, 5].map(play), [(5, 1), (5, 2), (5, 5), (4, 6)]);
}

/// The deck after the next fails for want of members while a round is open: the round has its total all the same.
#[test]
fn a_set_up_that_fails_beside_a_round_does_not_end_it() {
    let mut w = World::new(Kit::new(7, |t| (t.slots, t.min_cohort, t.threshold) = (4, 6, 5)), 13);
    let (mut begun, mut shares) = (false, 0);
    of_sites(&mut w, move |wire, nth| match (wire.site, wire.kind, nth) {
        (5 | 6, Kind::AdvertiseKeys, 2) => {
            begun = true;
            Verdict::Vanish
        }
        // The last share that the round needs comes after the two are given up.
        (0, Kind::Unmask, _) if begun && shares < 6 => {
            shares += 1;
            Verdict::Drop
        }
        _ => Verdict::Pass,
    });
    for r in 0..3u8 {
        assert_eq!(w.ask(&[r], 3).map(|(_, cohort, _)| cohort.len()), Ok(7), "{r}");
    }
    assert_eq!(w.events.iter().filter(|e| matches!(e, Event::Lost { .. })).count(), 2);
}

/// In a later deck, too, who does not answer is lost at the end of the phase, and not before.
#[test]
fn a_member_that_is_silent_in_a_later_set_up_is_lost() {
    let mut fed = World::noted(5, 14, |t| t.slots = 4);
    of_sites(&mut fed, |wire, nth| {
        let silent = (wire.site, wire.kind) == (3, Kind::AdvertiseKeys) && nth > 1;
        if silent { Verdict::Drop } else { Verdict::Pass }
    });
    let cohorts: Vec<usize> = (0..6).map(|r| fed.ask_exact(&[r]).len()).collect();
    assert_eq!(cohorts, [5, 5, 5, 5, 4, 4]);
    assert!(fed.events.contains(&Event::Lost { site: 3, why: Loss::Silent }), "{:?}", fed.events);
}

/// Where the run has failed, its last total is opened to the cohort when the application closes, and nothing else happens.
#[test]
fn a_run_that_failed_still_opens_its_last_total() {
    let mut w = World::new(Kit::new(5, |_| {}), 15);
    let total = w.ask(b"a", 3).unwrap().0;
    assert!(w.ask(b"b", 0).is_err(), "no question");
    assert!(w.opened.is_empty());
    let events = w.events.len();
    w.kill(4, true);
    w.close();
    assert!(w.opened.iter().all(|(_, values, _)| *values == total) && w.opened.len() >= 4, "{:?}", w.opened);
    assert_eq!(w.events.len(), events);
}

/// Until it has answered a site is awaited, and only then.
#[test]
fn the_sites_that_are_awaited() {
    let mut fed = World::noted(4, 16, |_| {});
    assert_eq!(fed.aggregator.awaited(), [0, 1, 2, 3].into());
    fed.ask_exact(b"a");
    assert!(fed.aggregator.awaited().is_empty());
    fed.tap(|w| if w.from_site && w.site == 2 { vec![] } else { vec![w.bytes.clone()] });
    fed.aggregator.handle(Input::Ask { query: b"b".to_vec(), words: WORDS }, Millis(fed.now()));
    assert_eq!(fed.aggregator.awaited(), [0, 1, 2, 3].into());
    let answered = fed.until(|e| matches!(e, Event::Lost { site: 2, .. }));
    assert!(answered.is_ok());
    assert!(!fed.aggregator.awaited().contains(&2));
}

/// While keys are collected a site that comes back is asked for them again, whatever the process before it sent.
#[test]
fn whoever_comes_back_while_keys_are_collected_is_asked_again() {
    // Before and after its keys leave.
    for boundary in 0..2 {
        let mut w = World::new(Kit::new(4, |_| {}), 17);
        w.slow[3] = 5_000;
        w.crashes = vec![Crash { site: 1, boundary, away: Some(100) }];
        assert_eq!(w.ask(b"q", 3).unwrap().1, [0, 1, 2, 3], "boundary {boundary}");
        let ready = w.events.iter().filter(|e| matches!(e, Event::DeckReady { index: 0, .. })).count();
        assert_eq!((ready, &w.site_errors), (1, &Vec::new()), "boundary {boundary}");
    }
}

/// [KEX-12]: of eight slots the sixth question leaves a quarter; with it the next deck is begun. It waits until the slots of the one in
/// use are gone, also while nothing is asked.
#[test]
fn kex_12_a_deck_that_is_ready_early_waits() {
    let mut fed = World::noted(4, 18, |t| t.slots = 8);
    let begun = |fed: &mut World, r: u8| {
        fed.ask_exact(&[r]);
        fed.seen().iter().filter(|w| w.kind == Kind::OpenDeck).count() / 4
    };
    assert_eq!([0, 1, 2, 3, 4, 5].map(|r| begun(&mut fed, r)), [1, 1, 1, 1, 1, 2]);
    let next = |e: &Event| matches!(e, Event::DeckReady { index: 1, .. });
    if !fed.events.iter().any(next) {
        fed.until(next).unwrap();
    }
    assert_eq!([6, 7, 8, 9, 10, 11, 12, 13].map(|r| begun(&mut fed, r)), [2, 2, 2, 2, 2, 2, 2, 3]);
    let asks: Vec<(u32, u16)> = fed
        .seen()
        .iter()
        .filter(|w| (w.site, w.kind) == (0, Kind::Ask))
        .map(|w| parts(&w.bytes).read::<Ask>())
        .map(|ask| (ask.deck, ask.slot))
        .collect();
    assert_eq!(asks[5..9], [(0, 5), (0, 6), (0, 7), (1, 0)]);
}

/// [RND-7], [APP-2]: a total was there without a site's shares. When the site comes back it is asked for them again, so that it
/// learns that its vector is in the total.
#[test]
fn whoever_comes_back_behind_a_total_learns_that_it_is_in_it() {
    let mut fed = World::noted(5, 19, |t| t.threshold = 4);
    let to_it = |w: &Frame| (w.from_site, w.site, w.kind) == (false, 2, Kind::Survivors);
    fed.tap(move |w| if to_it(w) { vec![] } else { vec![w.bytes.clone()] });
    assert_eq!(fed.ask_exact(b"a").len(), 5);
    let shares =
        |fed: &World| fed.seen().iter().filter(|w| w.from_site && w.site == 2 && w.kind == Kind::Unmask).count();
    assert_eq!(shares(&fed), 0);
    fed.tap(|w| vec![w.bytes.clone()]);
    for back in 1..3 {
        fed.kill(2, true);
        assert!(fed.until(|_| false).is_err(), "nothing else happens");
        assert_eq!(shares(&fed), back, "the same bytes whenever it comes back");
    }
    assert_eq!(fed.ask_exact(b"b").len(), 5);
    assert_eq!((shares(&fed), &fed.site_errors), (3, &Vec::new()));
}

/// [APP-2]: an aggregator that goes on without a site before its first question sets another deck up; after a total it does not.
#[test]
fn app_2_a_site_that_was_not_counted_is_in_no_deck_that_is_asked() {
    let decks = |fed: &World| fed.seen().iter().filter(|w| w.kind == Kind::OpenDeck).count();
    let mut fed = World::noted(5, 4, |_| {});
    fed.until(|e| matches!(e, Event::DeckReady { .. })).unwrap();
    let now = Millis(fed.now());
    fed.aggregator.handle(Input::Without(3), now);
    assert_eq!(fed.ask_exact(b"a"), [0, 1, 2, 4]);
    assert_eq!(decks(&fed), 5 + 4);
    assert_eq!(fed.lost(3).unwrap(), Loss::LeftOut.to_string());
    assert_eq!(fed.ask_exact(b"b"), [0, 1, 2, 4]);
    assert!(decks(&fed) == 5 + 4 && fed.site_errors.is_empty());
}
