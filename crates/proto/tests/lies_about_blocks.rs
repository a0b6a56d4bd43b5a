//! A coordinator that lies about burned slots, in more than one message, and what a site refuses then ([REL-6]). Other lies about
//! blocks are in `known_lies.txt`, `protocol/vectors/v4/bad_deck.json` and `bad_round.json` ([REL-1] to [REL-4], [REL-6], [REL-8]).

use std::collections::BTreeMap;

use veilsum_proto::{Rule, message::Kind, policy::Floor, site::Site, suite::Hash};
use veilsum_testkit::{federation::Kit, hub::*, wire::*};

/// Lets these sites give up the slot.
fn burn(hub: &mut Hub, round: &Round, by: &[u16]) -> BTreeMap<u16, Proof> {
    let frame = burn_frame(hub, round);
    by.iter()
        .map(|s| {
            let reply = hub.reply(*s, &frame).unwrap();
            assert_eq!((reply.kind, reply.context, &reply.rest[..]), (Kind::Burned, round.context, &[][..]));
            (*s, reply.proof)
        })
        .collect()
}

fn burn_frame(hub: &Hub, round: &Round) -> Vec<u8> {
    raw(&hub.kit.identities[0], &hub.session, Kind::Burn, &round.context, &[])
}

/// [REL-6]: n − t + c + 1 promises, with the larger of the plan's c and the site's own.
#[test]
fn rel_6_a_burned_slot_needs_enough_promises_for_the_site_too() {
    for own in [0u16, 2] {
        let mut hub = Hub::closed(Kit::with_blocks(7, 0, |t| (t.colluders, t.threshold) = (1, 6)), 31);
        let all = everybody(7);
        let mut config = hub.kit.site(0);
        config.floor = Floor { colluders: own, ..config.floor };
        hub.sites[0] = Site::new(config).unwrap();
        let deck = hub.deck(0, 8, &all);
        let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
        let round = hub.ask(&deck, &ask, &all).unwrap();
        let signed = burn(&mut hub, &round, &[1, 2, 3, 4, 5]);
        let needed = 7 - 6 + usize::from(own.max(1)) + 1;
        for promises in needed - 1..=needed {
            let (signers, proofs) = signed.iter().take(promises).map(|(s, p)| (*s, *p)).unzip();
            let frame = hub.frame(Kind::BurnCertificate, &round.context, &BurnCertificate { signers, proofs });
            if promises < needed {
                assert!(refuses(&mut hub, 0, &frame, Rule::Rel6).contains("hub"));
            } else {
                assert_eq!(hub.tell(0, &frame), Ok(Vec::new()));
            }
        }
        // It was asked for no promise of its own, and gives nothing away all the same.
        let frame = hub.survivors(&round, &all);
        refuses(&mut hub, 0, &frame, Rule::Rel6);
    }
}

/// [REL-6]: a promise and shares exclude each other, over restarts too.
#[test]
fn rel_6_no_share_after_a_promise_and_no_promise_after_a_share() {
    let (mut hub, deck, round) = in_one_block(5, 32);
    let all = everybody(5);
    burn(&mut hub, &round, &[0, 1]);
    hub.restart(1).unwrap();
    let frame = hub.survivors(&round, &all);
    refuses(&mut hub, 0, &frame, Rule::Rel6);
    refuses(&mut hub, 1, &frame, Rule::Rel6);
    // The others may still release; then they promise nothing.
    assert_eq!(hub.reply(2, &frame).unwrap().kind, Kind::Unmask);
    let frame = burn_frame(&hub, &round);
    refuses(&mut hub, 2, &frame, Rule::Rel6);
    hub.restart(2).unwrap();
    refuses(&mut hub, 2, &frame, Rule::Rel6);
    // What the promise says cannot be undone by another question for the slot.
    hub.restart(1).unwrap();
    let other = hub.question(&deck, 0, &all, Hash::default(), b"other");
    let (_, frame) = hub.ask_frame(&deck, &other);
    refuses(&mut hub, 1, &frame, Rule::Rnd2);
}

/// [REL-6]: what a site said before it promised is not said again after it: not its vector, not its seeds, and not its shares of
/// the slot; in the same process, where its answers are kept for repetitions, as after a restart.
#[test]
fn rel_6_nothing_said_before_a_promise_is_repeated_after_it() {
    for restarted in [false, true] {
        let mut hub = Hub::closed(Kit::with_blocks(9, 3, |t| (t.colluders, t.threshold) = (1, 6)), 31);
        let (all, six) = (everybody(9), everybody(6));
        let deck = hub.deck(0, 8, &all);
        let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
        let (_, question) = hub.ask_frame(&deck, &ask);
        let round = hub.ask(&deck, &ask, &all).unwrap();
        let named = hub.survivors(&round, &six);
        let signed = hub.sign(&round, &six, &six).unwrap();
        let certificate = hub.certificate(&round, &six, &signed);
        assert_eq!(hub.reply(0, &question).unwrap().kind, Kind::MaskedInput, "repeated until then");
        assert_eq!(hub.reply(0, &named).unwrap().kind, Kind::ConsistencyCheck);
        burn(&mut hub, &round, &[0]);
        if restarted {
            hub.restart(0).unwrap();
        }
        assert!(hub.tell(0, &question).unwrap().is_empty(), "restarted: {restarted}");
        refuses(&mut hub, 0, &named, Rule::Rel6);
        refuses(&mut hub, 0, &certificate, Rule::Unm2);
        burn(&mut hub, &round, &[0]);
    }
}

/// A slot may be given up before the application has answered; its answer then stays where it is, over a restart too.
#[test]
fn an_answer_that_comes_after_the_promise_stays() {
    use veilsum_proto::journal::RecordKind::{Burned, Chain, Deck};
    let (mut hub, deck, round) = in_one_block(5, 33);
    let all = everybody(5);
    let frame = hub.survivors(&round, &all);
    all.iter().for_each(|s| assert_eq!(hub.reply(*s, &frame).unwrap().kind, Kind::Unmask));
    hub.answers = false;
    let ask = hub.question(&deck, 1, &all, round.context, b"r");
    let (context, frame) = hub.ask_frame(&deck, &ask);
    assert!(hub.tell(0, &frame).unwrap().is_empty());
    let open = Round { context, ..round.clone() };
    burn(&mut hub, &open, &[0]);
    assert!(hub.answer(0, 1).unwrap().is_empty(), "nothing leaves");
    // A refusal that comes after it does not take the promise out of the journal.
    assert_eq!(hub.refusal(0, context).unwrap()[0].kind, Kind::Refusal);
    assert_eq!(hub.journals[0].iter().map(|r| r.kind()).collect::<Vec<_>>(), [Deck, Chain, Burned]);
    hub.restart(0).unwrap();
    assert!(hub.tell(0, &frame).unwrap().is_empty(), "the question is not put to it again");
    burn(&mut hub, &open, &[0]);
    // What follows follows the round before the burned one.
    hub.answers = true;
    let next = hub.question(&deck, 2, &all, round.context, b"s");
    assert_eq!(hub.ask(&deck, &next, &[0]).unwrap().inputs.len(), 1);
}
