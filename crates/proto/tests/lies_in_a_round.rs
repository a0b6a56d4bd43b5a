//! A coordinator that lies in a round, in more than one message: what a site refuses, and under which rule. Nothing leaves with a
//! refusal. Lies of one message are in `known_lies.txt`.

use std::collections::BTreeMap;

use veilsum_proto::{Rule, message::Kind, suite::Hash};
use veilsum_testkit::{hub::*, wire::*};

/// The site refuses, names the hub and sends nothing.
#[track_caller]
fn refuses(hub: &mut Hub, site: u16, bytes: &[u8], expected: Rule) -> String {
    let e = veilsum_testkit::hub::refuses(hub, site, bytes, expected);
    assert!(e.contains("hub"), "the culprit is named: {e}");
    e
}

fn started(n: usize) -> (Hub, Deck, Round) {
    let mut hub = Hub::new(n, 11, |_| {});
    let all = everybody(n);
    let deck = hub.deck(0, 8, &all);
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"q0");
    let round = hub.ask(&deck, &ask, &all).unwrap();
    (hub, deck, round)
}

/// What the parts around a site go by: journal, ledger, evidence.
#[test]
fn a_site_says_where_it_stands() {
    let mut hub = Hub::new(5, 11, |_| {});
    let fresh = &hub.sites[3];
    assert_eq!((fresh.number(), fresh.run(), fresh.round_context()), (3, None, None));
    assert!(fresh.round_sites().is_none() && fresh.round_directory().is_none());
    let all = everybody(5);
    hub.deck(0, 8, &[1, 2, 3]);
    let deck = hub.deck(1, 8, &all);
    assert_eq!((hub.sites[3].run(), hub.sites[3].round_context()), (Some(hub.run), None));
    let ask = hub.question(&deck, 2, &all, Hash::default(), b"q2");
    let round = hub.ask(&deck, &ask, &all).unwrap();
    let stands = |hub: &Hub, sites: &[u16]| {
        let site = &hub.sites[3];
        assert_eq!((site.number(), site.round_context()), (3, Some(round.context)));
        assert_eq!((site.round_sites(), site.round_directory()), (Some(((1, 2), sites)), Some(deck.hash)));
    };
    stands(&hub, &all);
    hub.sign(&round, &[0, 1, 2, 3], &[3]).unwrap();
    stands(&hub, &[0, 1, 2, 3]);
}

#[test]
fn slots_go_forward_also_over_those_that_were_passed_over() {
    let (mut hub, deck, round) = started(5);
    let later = hub.question(&deck, 3, &round.cohort, round.context, b"q3");
    let r3 = hub.ask(&deck, &later, &[2]).unwrap();
    let back = hub.question(&deck, 2, &round.cohort, r3.context, b"q2");
    let (_, frame) = hub.ask_frame(&deck, &back);
    refuses(&mut hub, 2, &frame, Rule::Rnd2);
}

#[test]
fn the_very_same_ask_gets_the_very_same_bytes() {
    let (mut hub, deck, _) = started(5);
    let ask = hub.question(&deck, 0, &everybody(5), Hash::default(), b"q0");
    let (_, frame) = hub.ask_frame(&deck, &ask);
    let first = hub.reply(1, &frame).unwrap();
    assert_eq!(hub.reply(1, &frame).unwrap(), first);
    assert_eq!(hub.asked[1].len(), 1, "and the rows are not read again");
}

#[test]
fn a_lost_site_is_not_let_back_in() {
    let (mut hub, deck, round) = started(6);
    let four = [0, 1, 2, 3, 4];
    let r1 = {
        let ask = hub.question(&deck, 1, &four, round.context, b"q1");
        hub.ask(&deck, &ask, &[0]).unwrap()
    };
    let ask = hub.question(&deck, 2, &everybody(6), r1.context, b"q2");
    let (_, frame) = hub.ask_frame(&deck, &ask);
    refuses(&mut hub, 0, &frame, Rule::Rnd5);
    // Nor after it was only named missing, and not through a new deck, nor after a restart.
    hub.sign(&round, &four, &[1]).unwrap();
    hub.restart(1).unwrap();
    let next = hub.deck(1, 8, &everybody(6));
    let ask = hub.question(&next, 0, &everybody(6), round.context, b"q2");
    let (_, frame) = hub.ask_frame(&next, &ask);
    refuses(&mut hub, 1, &frame, Rule::Rnd5);
}

#[test]
fn survivors_before_the_answer_and_of_another_round() {
    let mut hub = Hub::new(4, 3, |_| {});
    let deck = hub.deck(0, 4, &everybody(4));
    hub.answers = false;
    let ask = hub.question(&deck, 0, &everybody(4), Hash::default(), b"q");
    let (context, frame) = hub.ask_frame(&deck, &ask);
    let mut round = Round { context, cohort: everybody(4), inputs: BTreeMap::new() };
    for s in 0..4 {
        assert!(hub.tell(s, &frame).unwrap().is_empty());
        // The coordinator cannot sign for them; the worst it has is a signature of its own.
        let own = parts(&raw(&hub.kit.identities[0], &hub.session, Kind::MaskedInput, &context, b""));
        round.inputs.insert(s, own.proof);
    }
    let frame = hub.survivors(&round, &everybody(4));
    refuses(&mut hub, 0, &frame, Rule::Sur2);
    round.context = deck.hash;
    let frame = hub.survivors(&round, &everybody(4));
    refuses(&mut hub, 0, &frame, Rule::Frm7);
}

#[test]
fn the_survivors_never_grow_again() {
    let (mut hub, _, round) = started(7);
    let (six, five) = ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]);
    hub.sign(&round, &five, &[0]).unwrap();
    for alive in [&six[..], &everybody(7)[..], &[0, 1, 2, 3, 6][..]] {
        let frame = hub.survivors(&round, alive);
        refuses(&mut hub, 0, &frame, Rule::Sur2);
        hub.restart(0).unwrap();
        refuses(&mut hub, 0, &frame, Rule::Sur2);
    }
    hub.sign(&round, &six, &[1]).unwrap();
    let again = hub.sign(&round, &five, &[1]).unwrap();
    assert_eq!(again.len(), 1, "but it may shrink");
}

#[test]
fn no_seed_after_the_shares() {
    let (mut hub, _, round) = started(7);
    let all = everybody(7);
    let frame = hub.survivors(&round, &all);
    let shares = hub.reply(0, &frame).unwrap();
    assert_eq!((shares.kind, shares.read::<Vec<[u8; 32]>>().len()), (Kind::Unmask, 7));
    let fewer = hub.survivors(&round, &[0, 1, 2, 3, 4, 5]);
    refuses(&mut hub, 0, &fewer, Rule::Sur4);
    hub.restart(0).unwrap();
    refuses(&mut hub, 0, &fewer, Rule::Sur4);
    assert_eq!(hub.reply(0, &frame).unwrap().rest, shares.rest, "the same shares again, and only those");
}

#[test]
fn no_share_of_a_missing_site_after_its_seed() {
    let (mut hub, _, round) = started(7);
    let six = [0, 1, 2, 3, 4, 5];
    let signed = hub.sign(&round, &six, &six).unwrap();
    let everybody_lives = hub.survivors(&round, &everybody(7));
    refuses(&mut hub, 0, &everybody_lives, Rule::Sur2);
    let frame = hub.certificate(&round, &six, &signed);
    assert_eq!(hub.reply(0, &frame).unwrap().read::<Vec<[u8; 32]>>().len(), 6);
    refuses(&mut hub, 0, &everybody_lives, Rule::Sur4);
    let fewer = hub.survivors(&round, &[0, 1, 2, 3, 4]);
    refuses(&mut hub, 0, &fewer, Rule::Sur4);
}

#[test]
fn a_certificate_of_older_signatures_or_where_none_is_due() {
    let (mut hub, _, round) = started(7);
    let (six, five) = ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]);
    let signed = hub.sign(&round, &six, &six).unwrap();
    let older = hub.certificate(&round, &six, &signed);
    // Signatures on the set before do not open the smaller one that followed, under neither name.
    hub.sign(&round, &five, &[0]).unwrap();
    let renamed = hub.certificate(&round, &five, &signed);
    for frame in [&older, &renamed] {
        refuses(&mut hub, 0, frame, Rule::Unm2);
    }
    // Where one's own answer is not yet signed there is nothing to certify.
    let mut fresh = started(7);
    refuses(&mut fresh.0, 0, &older, Rule::Unm2);
}
