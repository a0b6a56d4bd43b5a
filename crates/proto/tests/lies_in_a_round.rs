//! A coordinator that lies in a round, in more than one message: what a site refuses, and under which rule. Lies of one message are
//! in `known_lies.txt`; `model/conform.rs` tells a site everything in every state, of federations of up to five.

use veilsum_proto::{Rule, suite::Hash};
use veilsum_testkit::{hub::*, wire::*};

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
fn the_survivors_never_grow_again() {
    let (mut hub, _, round, _) = started(7, 11);
    let (six, five) = ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]);
    hub.sign(&round, &five, &[0]).unwrap();
    for alive in [&six[..], &everybody(7)[..], &[0, 1, 2, 3, 6][..]] {
        let frame = hub.survivors(&round, alive);
        refuses(&mut hub, 0, &frame, Rule::Sur2);
        hub.restart(0).unwrap();
        assert!(refuses(&mut hub, 0, &frame, Rule::Sur2).contains("hub"));
    }
    hub.sign(&round, &six, &[1]).unwrap();
    let again = hub.sign(&round, &five, &[1]).unwrap();
    assert_eq!(again.len(), 1, "but it may shrink");
}

/// Nor whoever was only named missing, in the deck as in the next one after a restart.
#[test]
fn a_lost_site_is_not_let_back_in() {
    let (mut hub, deck, round, _) = started(6, 11);
    let all = everybody(6);
    hub.sign(&round, &everybody(5), &[1]).unwrap();
    let ask = hub.question(&deck, 2, &all, round.context, b"q2");
    let (_, frame) = hub.ask_frame(&deck, &ask);
    refuses(&mut hub, 1, &frame, Rule::Rnd5);
    hub.restart(1).unwrap();
    let next = hub.deck(1, 8, &all);
    let ask = hub.question(&next, 0, &all, round.context, b"q2");
    let (_, frame) = hub.ask_frame(&next, &ask);
    assert!(refuses(&mut hub, 1, &frame, Rule::Rnd5).contains("hub"));
}
