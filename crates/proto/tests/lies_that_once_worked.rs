//! Attacks and accidents that once worked. Each test says what must hold instead.

use veilsum_proto::aggregator::{Event, Input};
use veilsum_testkit::prelude::*;

use crate::script::{of_sites, signs, wrong_shares};

/// While a site still computes, a second ask under the context of the first puts another question to it: masks that
/// cancel around a poisoned answer.
#[test]
fn a_second_question_under_the_context_of_the_first() {
    let mut hub = Hub::new(4, 1, |_| {});
    let all = everybody(4);
    let deck = hub.deck(0, 4, &all);
    hub.answers = false;
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"centres");
    let (context, frame) = hub.ask_frame(&deck, &ask);
    assert!(hub.tell(0, &frame).unwrap().is_empty());
    for poison in [
        Ask { query: b"poison".to_vec(), ..ask.clone() },
        Ask { cohort: vec![0, 1, 2], ..ask.clone() },
        Ask { words: 99, ..ask.clone() },
        Ask { deck: 77, ..ask.clone() },
    ] {
        let frame = hub.frame(Kind::Ask, &context, &poison);
        let e = hub.tell(0, &frame).expect_err("the question is not that of its context");
        assert!([Rule::Rnd1, Rule::Frm7].contains(&rule(&e)), "{e}");
    }
    assert_eq!(hub.asked[0].len(), 1, "the application never sees it");
}

#[test]
fn a_site_that_crashed_twice_in_one_round_still_has_a_usable_journal() {
    let (mut hub, deck, ..) = started(4, 3);
    let ask = hub.question(&deck, 0, &everybody(4), Hash::default(), b"q");
    let (_, frame) = hub.ask_frame(&deck, &ask);
    let first = hub.reply(0, &frame).unwrap();
    assert_eq!(hub.reply(0, &frame).unwrap(), first);
    assert_eq!(hub.asked[0].len(), 1, "and the rows are not read again");
    for _ in 0..3 {
        hub.restart(0).expect("its journal says what it sent");
        assert_eq!(hub.reply(0, &frame).unwrap(), first);
    }
}

/// [KEX-1].
#[test]
fn kex_1_a_deck_that_some_finished_and_others_did_not_is_no_reason_to_refuse_the_next() {
    // Three decks in a row whose last step one more site does not survive; each time the others have it ready.
    let mut w = World::new(Kit::new(9, |_| {}), 4);
    of_sites(&mut w, |wire, nth| {
        let last = wire.kind == Kind::ShareAck && usize::from(wire.site) + nth == 9 && nth <= 3;
        if last { Verdict::Vanish } else { Verdict::Pass }
    });
    let (_, cohort, _) = w.ask(b"q", 3).unwrap_or_else(|e| panic!("{e} {:?}", w.site_errors.first()));
    assert_eq!(cohort, [0, 1, 2, 3, 4, 5]);
    assert!(w.site_errors.is_empty(), "{:?}", w.site_errors.first());
}

#[test]
fn a_refill_that_fails_at_its_last_step_is_begun_again() {
    let mut w = World::new(Kit::new(6, |t| t.slots = 4), 5);
    of_sites(&mut w, |wire, nth| {
        if (wire.site, wire.kind, nth) == (5, Kind::ShareAck, 2) { Verdict::Vanish } else { Verdict::Pass }
    });
    for r in 0..10u8 {
        let (_, cohort, _) = w.ask(&[r], 3).unwrap_or_else(|e| panic!("round {r}: {e} {:?}", w.site_errors.first()));
        assert!(cohort.len() >= 5, "round {r}: {cohort:?} {:?}", w.site_errors.first());
    }
}

#[test]
fn a_site_that_crashed_with_its_deck_ready_acknowledges_it_when_asked_again() {
    let mut hub = Hub::new(3, 6, |_| {});
    let all = everybody(3);
    let (id, directory) = hub.advertise(0, 4, &all);
    let (hash, boxes) = hub.seal(&id, &directory).unwrap();
    let frame = hub.delivery(&hash, &boxes, 1);
    assert_eq!(hub.reply(1, &frame).unwrap().kind, Kind::ShareAck);
    hub.restart(1).unwrap();
    assert_eq!(hub.reply(1, &frame).expect("the deck is in its journal").kind, Kind::ShareAck);
}

/// A site that connects and leaves while the others are still awaited must not make the driver spin: with a timer that
/// is always due, virtual time stands still.
#[test]
fn a_site_that_comes_and_goes_while_joining_does_not_stop_the_clock() {
    let mut fed = World::noted(5, 7, |_| {});
    fed.tap(|w| if w.site == 4 { vec![] } else { vec![w.bytes.clone()] });
    fed.aggregator.handle(Input::Detached(4), Millis(0));
    let mut now = 0;
    for _ in 0..200 {
        let Some(Millis(at)) = fed.aggregator.next_wake() else { break };
        assert!(at > now, "a wake that is due for ever: {at} at {now}");
        now = at;
        fed.aggregator.handle(Input::Tick, Millis(now));
        while fed.aggregator.poll().is_some() {}
        if now > 50_000 {
            return;
        }
    }
}

/// A site signs keys that nobody can use. It is to blame, and alone is out.
/// [KEX-5].
#[test]
fn kex_5_unusable_keys_in_an_advertisement_are_their_signers_fault() {
    fn one() -> [u8; 32] {
        std::array::from_fn(|i| u8::from(i == 0))
    }
    /// The first coefficient of the ML-KEM key, 12 bits: the largest that is one, and the modulus.
    fn coefficient(mut keys: Keys, value: u16) -> Keys {
        let mut bytes: [u8; 1_184] = keys.1.bytes().try_into().unwrap();
        bytes[0] = value as u8;
        bytes[1] = bytes[1] & 0xf0 | (value >> 8) as u8;
        keys.1 = bytes.into();
        keys
    }
    // The two points of the smallest order, an ML-KEM key out of range at its start and throughout.
    type Change = fn(Keys) -> Keys;
    let changes: [(Change, Rule); 4] = [
        (|k| ([0; 32], k.1, k.2, k.3), Rule::Kex8),
        (|k| (one(), k.1, k.2, k.3), Rule::Kex8),
        (|k| coefficient(k, 3_329), Rule::Kex16),
        (|k| (k.0, [0xff; 1_184].into(), k.2, k.3), Rule::Kex16),
    ];
    for (change, rule) in changes {
        let mut fed = World::noted(5, 8, |_| {});
        signs(&mut fed, &[3], Kind::AdvertiseKeys, move |_, p| codec::encode(&change(p.read())));
        assert_eq!(fed.ask_exact(b"q"), [0, 1, 2, 4]);
        let why = fed.lost(3).expect("the signer is out");
        assert!(why.contains("site-3") && why.contains(rule.name()), "{why}");
        assert!(fed.site_errors.is_empty(), "nobody blames the hub: {:?}", fed.site_errors);
    }
    // A coefficient just within the range is a key: nobody can know that it is not the owner's. The boxes to it do not
    // open, and the complaint costs the pair its place ([SHR-7]), not the federation.
    let mut fed = World::noted(7, 8, |_| {});
    signs(&mut fed, &[3], Kind::AdvertiseKeys, |_, p| codec::encode(&coefficient(p.read(), 3_328)));
    let cohort = fed.ask_exact(b"q");
    assert!(!cohort.contains(&3), "{cohort:?}");
}

/// A second member advertises a key of another under its own signature: of X25519 or of ML-KEM.
#[test]
fn one_key_for_two_members_is_the_second_ones_fault() {
    let copies: [fn(&mut Keys, Keys); 2] = [|own, of| own.0 = of.0, |own, of| own.1 = of.1];
    for copy in copies {
        let mut fed = World::noted(5, 8, |_| {});
        let mut copied: Option<Keys> = None;
        signs(&mut fed, &[2, 3], Kind::AdvertiseKeys, move |_, p| {
            let mut keys: Keys = p.read();
            let of = copied.get_or_insert_with(|| keys.clone()).clone();
            copy(&mut keys, of);
            codec::encode(&keys)
        });
        assert_eq!(fed.ask_exact(b"q"), [0, 1, 2, 4]);
        assert!(fed.lost(3).is_some_and(|why| why.contains("site-3") && why.contains("KEX-5")));
    }
}

/// n = 5, t = 4: one wrong share, one to spare. The commitment says which four are right.
#[test]
fn one_wrong_share_with_one_to_spare_is_corrected_and_blames_who_gave_it() {
    for culprit in 0..5u16 {
        let mut fed = World::noted(5, 9, |_| {});
        signs(&mut fed, &[culprit], Kind::Unmask, |_, p| wrong_shares(p));
        let (values, cohort) = fed.total(b"q").unwrap_or_else(|e| panic!("site-{culprit} is at fault, not: {e}"));
        assert_eq!(values, sum(&cohort, b"q"));
        // Whoever answers after the total is open is not looked at any more.
        if let Some(why) = fed.lost(culprit) {
            assert!(why.contains(&format!("site-{culprit}")), "{why}");
        }
        assert!((0..5).all(|s| s == culprit || fed.lost(s).is_none()), "{:?}", fed.events);
    }
}

/// n = 4, t = 3: a wrong share without enough to spare ends the round, but nobody is called the culprit by guess.
#[test]
fn a_wrong_share_that_cannot_be_told_apart_blames_no_innocent() {
    let mut fed = World::noted(4, 10, |_| {});
    let (bad, session) = (fed.identity(2), fed.session());
    of_sites(&mut fed, move |wire, _| match (wire.site, wire.kind) {
        (3, Kind::Unmask) => Verdict::Drop,
        (2, Kind::Unmask) => {
            let p = parts(wire.bytes);
            Verdict::Replace(raw(&bad, &session, p.kind, &p.context, &wrong_shares(&p)))
        }
        _ => Verdict::Pass,
    });
    let e = fed.total(b"q").expect_err("three shares, one of them wrong, three needed");
    let text = e.to_string();
    assert!(!matches!(&e, Error::PeerMisbehaved { who, .. } if who != "site-2"), "an innocent is blamed: {text}");
}

/// A refusal is of one question. An old one, or one of another run with the same plan, is nobody's leave-taking.
#[test]
fn a_refusal_of_another_question_does_not_take_its_signer_out() {
    let mut fed = World::noted(4, 11, |_| {});
    assert_eq!(fed.ask_exact(b"q0").len(), 4);
    let stale = raw(&fed.identity(1), &fed.session(), Kind::Refusal, &Hash::default(), &codec::encode(&Rule::Pol2));
    fed.inject(1, true, &stale);
    assert_eq!(fed.ask_exact(b"q1").len(), 4, "{:?}", fed.events);
}

#[test]
fn a_refusal_is_repeated_when_it_is_asked_for_again() {
    let mut hub = Hub::new(3, 12, |_| {});
    let all = everybody(3);
    let deck = hub.deck(0, 4, &all);
    hub.answers = false;
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
    let (context, frame) = hub.ask_frame(&deck, &ask);
    assert!(hub.tell(0, &frame).unwrap().is_empty());
    let refuse = veilsum_proto::site::Input::Refuse { context, rule: Rule::Pol3 };
    hub.sites[0].handle(refuse, &mut hub.rng).unwrap();
    assert!(matches!(hub.sites[0].poll(), Some(veilsum_proto::site::Output::Rewrite(_))));
    assert!(matches!(hub.sites[0].poll(), Some(veilsum_proto::site::Output::Send { .. })));
    let again = hub.tell(0, &frame).unwrap();
    assert!(again.iter().any(|p| p.kind == Kind::Refusal), "the first may have been lost on the way");
}

/// Every deck opened and dropped leaves something behind; a hub that opens decks for ever must not fill the memory.
#[test]
fn replies_of_dropped_decks_are_forgotten() {
    let mut hub = Hub::new(3, 13, |_| {});
    let (_, first) = hub.open(0, 1);
    hub.reply(0, &first).unwrap();
    for index in 1..50 {
        let (_, frame) = hub.open(index, 1);
        hub.reply(0, &frame).unwrap();
    }
    let e = hub.tell(0, &first).expect_err("a deck given up long ago has no reply any more");
    assert_eq!(rule(&e), Rule::Kex1, "{e}");
}

#[test]
fn a_journal_that_goes_back_is_refused() {
    use veilsum_proto::journal::RecordKind::{Chain, Checked, Deck, Masked, Released};
    let (mut hub, _, round, _) = started(5, 14);
    let four = [0, 1, 2, 3];
    let signed = hub.sign(&round, &four, &four).unwrap();
    let frame = hub.certificate(&round, &four, &signed);
    hub.reply(0, &frame).unwrap();
    let good = hub.journals[0].clone();
    assert_eq!(good.iter().map(|r| r.kind()).collect::<Vec<_>>(), [Deck, Chain, Masked, Checked, Released]);
    for (name, order) in [
        ("no deck", vec![2, 3, 4]),
        ("a release before its signature", vec![0, 2, 4, 3]),
        ("a signature after its release", vec![0, 2, 3, 4, 3]),
        ("a deck twice", vec![0, 0, 2, 3, 4]),
        ("a slot twice", vec![0, 2, 2]),
        ("a slot again after its release", vec![0, 2, 3, 4, 2]),
        ("a summary after its round", vec![0, 2, 1]),
        ("released twice", vec![0, 2, 3, 4, 4]),
        ("a release of survivors that nobody signed", vec![0, 2, 4]),
        ("a signature without its vector", vec![0, 3]),
    ] {
        hub.journals[0] = order.iter().map(|i| good[*i].clone()).collect();
        let result = hub.restart(0);
        assert!(matches!(result, Err(Error::Journal(_))), "{name}: {result:?}");
    }
}

#[test]
fn a_journal_entry_damaged_in_any_byte_or_cut_is_refused_or_still_a_whole_entry() {
    let (mut hub, deck, ..) = started(4, 18);
    let ask = hub.question(&deck, 0, &everybody(4), Hash::default(), b"q");
    for (k, record) in hub.journals[0].clone().iter().enumerate() {
        let bytes = record.to_bytes();
        for n in 0..bytes.len() {
            assert!(matches!(Record::from_bytes(&bytes[..n]), Err(Error::Journal(_))));
        }
        for i in 0..bytes.len() {
            let mut bad = bytes.to_vec();
            bad[i] ^= 0x41;
            // Nothing panics, in reading or in what follows from it.
            let Ok(bad) = Record::from_bytes(&bad) else { continue };
            let mut journal = hub.journals[0].clone();
            journal[k] = bad;
            let Ok(mut site) = Site::restore(hub.kit.site(0), journal) else { continue };
            let (_, frame) = hub.ask_frame(&deck, &ask);
            drop(site.handle(veilsum_proto::site::Input::Message(&frame), &mut hub.rng));
        }
    }
}

/// A journal that was rewritten brings the site back to where it was.
#[test]
fn a_rewritten_journal_keeps_the_chain_and_the_cohort() {
    let (mut hub, _, r0, _) = started(5, 20);
    let (all, four) = (everybody(5), [0, 1, 2, 3]);
    let signed = hub.sign(&r0, &four, &four).unwrap();
    let frame = hub.certificate(&r0, &four, &signed);
    four.iter().for_each(|s| assert_eq!(hub.reply(*s, &frame).unwrap().kind, Kind::Unmask));
    let next = hub.deck(1, 4, &all);
    let ask = hub.question(&next, 0, &four, r0.context, b"q1");
    let r1 = hub.ask(&next, &ask, &four).unwrap();
    let decks = hub.journals[0].iter().filter(|r| r.kind() == RecordKind::Deck);
    assert_eq!(decks.count(), 1, "the old deck's keys are gone");
    hub.restart(0).expect("the journal stands by itself");
    let (_, first) = hub.ask_frame(&next, &ask);
    assert_eq!(hub.reply(0, &first).unwrap().kind, Kind::MaskedInput);
    let back = hub.question(&next, 1, &all, r1.context, b"q2");
    let (_, frame) = hub.ask_frame(&next, &back);
    assert_eq!(hub.tell(0, &frame).map_err(|e| rule(&e)), Err(Rule::Rnd5));
    let again = hub.question(&next, 1, &four, r1.context, b"q0");
    hub.restart(0).expect("and again");
    hub.ask(&next, &again, &[0]).expect("the chain goes on");
}

#[test]
fn a_malformed_frame_names_who_sent_it() {
    let mut hub = Hub::new(3, 21, |_| {});
    let (id, frame) = hub.open(0, 4);
    for bad in [frame[..20].to_vec(), raw(&hub.kit.identities[0], &hub.session, Kind::OpenDeck, &id, b"cut")] {
        let e = hub.tell(0, &bad).expect_err("no frame");
        assert!(e.to_string().contains("hub"), "{e}");
    }
}

/// The same survivors under ever new signatures: one entry in the journal, not one for each.
#[test]
fn the_same_survivors_again_do_not_fill_the_journal() {
    let (mut hub, _, mut round, _) = started(5, 22);
    let four = [0, 1, 2, 3];
    hub.sign(&round, &four, &[0]).unwrap();
    let before = hub.journals[0].len();
    for tail in 0..10u8 {
        // A colluding site signs its input once more, so that the frame is another one.
        let own = round.inputs.get_mut(&3).unwrap();
        own.signature = Signature::from_bytes(&[tail; 64]);
        hub.sign(&round, &four, &[0]).unwrap();
    }
    assert_eq!(hub.journals[0].len(), before);
}

/// With colluders given and the threshold by the rule, every deck that a run can shrink to has a threshold: a run never
/// has fewer sites than the threshold of its deck.
#[test]
fn a_plan_is_checked_for_every_size_of_its_cohort() {
    for colluders in 1..4u16 {
        let kit = Kit::new(9, |t| t.colluders = colluders);
        if kit.terms.check(&kit.roster).is_ok() {
            let least = kit.terms.threshold_of(9, 9).unwrap();
            for n in least..=9 {
                assert!(kit.terms.threshold_of(n, 9).is_ok(), "{colluders} colluders: a deck of {n} ends the run");
            }
        }
    }
}

#[test]
fn a_question_no_site_can_be_asked_is_the_callers_mistake() {
    for (query, words) in [(0, 0), (0, (1 << 20) + 1), (0, 1 << 33), ((9 << 20) + 1, 4)] {
        let mut fed = World::noted(3, 23, |_| {});
        fed.ask_exact(b"q");
        fed.aggregator.handle(Input::Ask { query: vec![0; query], words }, Millis(fed.now()));
        let e = fed.until(|e| matches!(e, Event::Total { .. })).expect_err("no such question");
        assert!(matches!(e, Error::ApiMisuse(_)), "{words}: {e}");
    }
}

#[test]
fn two_questions_at_once_are_the_callers_mistake() {
    for deck_first in [false, true] {
        let mut fed = World::noted(3, 24, |_| {});
        if deck_first {
            fed.ask_exact(b"q");
        }
        for query in [b"one", b"two"] {
            fed.aggregator.handle(Input::Ask { query: query.to_vec(), words: 4 }, Millis(fed.now()));
        }
        let e = fed.until(|e| matches!(e, Event::Total { .. })).expect_err("one at a time");
        assert!(matches!(e, Error::ApiMisuse(_)), "{e}");
    }
}

#[test]
fn a_deck_has_as_many_slots_as_the_plan_allows() {
    let kit = Kit::new(3, |_| {});
    for (slots, sound) in [(0, false), (1, true), (kit.terms.slots, true), (kit.terms.slots + 1, false)] {
        let config = AggregatorConfig { slots, ..kit.coordinator() };
        let made = Aggregator::new(config, Millis(0), &mut ChaCha20Rng::seed_from_u64(1));
        assert_eq!(made.is_ok(), sound, "{slots}");
    }
}

/// The journal of one plan or role says nothing about another.
#[test]
fn a_journal_of_another_session_is_refused() {
    let mut hub = Hub::new(3, 15, |_| {});
    hub.deck(0, 4, &everybody(3));
    let other = Kit::new(3, |t| t.max_rows = 77);
    let result = Site::restore(other.site(0), hub.journals[0].clone());
    assert!(matches!(result, Err(Error::Journal(_))));
}

#[test]
fn a_site_too_slow_to_join_is_told() {
    let mut fed = World::noted(5, 16, |_| {});
    fed.tap(|w| if w.site == 4 { vec![] } else { vec![w.bytes.clone()] });
    assert_eq!(fed.ask_exact(b"q").len(), 4);
    let told = fed.events.iter().any(|e| matches!(e, Event::TooLate(4) | Event::Lost { site: 4, .. }));
    assert!(told, "it stays connected and waits for ever: {:?}", fed.events);
}

/// A reply that only acknowledges carries nothing else, and a signature on the directory nothing but its ciphertexts.
#[test]
fn an_acknowledgement_with_a_tail_is_malformed() {
    for kind in [Kind::AcceptDirectory, Kind::ShareAck] {
        let mut fed = World::noted(5, 17, |_| {});
        signs(&mut fed, &[2], kind, |_, p| [&p.rest[..], b"tail"].concat());
        assert_eq!(fed.ask_exact(b"q"), [0, 1, 3, 4], "{kind:?}");
        assert!(fed.lost(2).is_some_and(|why| why.contains("site-2")));
    }
}
