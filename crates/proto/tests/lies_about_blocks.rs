//! A coordinator that lies about blocks: directories, cohorts, survivors and burned slots that a site refuses, and under
//! which rule (spec section 11.3, [REL-1] to [REL-8]).

use std::collections::BTreeMap;

use veilsum_proto::{
    Error, Rule,
    message::Kind,
    plan::Terms,
    policy::Floor,
    release::{Standing, block_id},
    roster::PartyId,
    site::{self, Site},
    suite::Hash,
};
use veilsum_testkit::{federation::Kit, hub::*, wire::*};

/// The site refuses, names the hub unless its own floor says no, and sends nothing.
#[track_caller]
fn refuses(hub: &mut Hub, site: u16, bytes: &[u8], expected: Rule) -> String {
    let e = veilsum_testkit::hub::refuses(hub, site, bytes, expected);
    assert!(e.contains("hub") || expected == Rule::Rel3, "the culprit is named: {e}");
    e
}

fn with_blocks(n: usize, size: u16, change: impl FnOnce(&mut Terms)) -> Hub {
    Hub::closed(Kit::with_blocks(n, size, change), 31)
}

/// Nine sites in three blocks have answered a question.
fn three_blocks() -> (Hub, Deck, Round) {
    let mut hub = with_blocks(9, 3, |t| (t.colluders, t.threshold) = (1, 6));
    let all = everybody(9);
    let deck = hub.deck(0, 8, &all);
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
    let round = hub.ask(&deck, &ask, &all).unwrap();
    (hub, deck, round)
}

fn id_of(hub: &Hub, sites: &[u16]) -> Hash {
    block_id(sites.iter().map(|s| Hash(hub.kit.roster.member(PartyId::Site(*s)).unwrap().key.0)))
}

/// [REL-1] to [REL-3].
#[test]
fn directories_whose_blocks_are_none_contradict_somebody_or_are_too_small() {
    let of = |blocks: &[&[u16]]| blocks.iter().map(|block| block.to_vec()).collect::<Vec<_>>();
    let cases: [(Vec<Vec<u16>>, Rule, &str); 11] = [
        (of(&[&[0, 1, 2], &[3, 4, 5], &[6, 7]]), Rule::Rel1, "site-8"),
        (of(&[&[0, 1, 2], &[3, 4, 5], &[6, 7, 8], &[]]), Rule::Rel1, ""),
        (of(&[&[0, 2, 1], &[3, 4, 5], &[6, 7, 8]]), Rule::Rel1, ""),
        (of(&[&[0, 1, 2], &[2, 3, 4, 5], &[6, 7, 8]]), Rule::Rel1, "site-2"),
        (of(&[&[0, 1, 2], &[3, 4, 5], &[6, 7, 8, 9]]), Rule::Rel1, ""),
        (of(&[]), Rule::Rel1, "site-0"),
        // Sites 3 to 5 state their block.
        (of(&[&[0, 1, 2, 3], &[4, 5], &[6, 7, 8]]), Rule::Rel2, "site-3"),
        (of(&[&[0, 1, 2], &[3, 4, 5, 6], &[7, 8]]), Rule::Rel2, "site-3"),
        (of(&[&[0, 1, 2], &[3, 4], &[5, 6, 7, 8]]), Rule::Rel2, "site-3"),
        (of(&[&[0, 1, 2, 3, 4, 5, 6, 7, 8]]), Rule::Rel2, "site-3"),
        (of(&[&[0, 1], &[3, 4, 5], &[2, 6, 7, 8]]), Rule::Rel3, "1 others"),
    ];
    for (blocks, expected, about) in cases {
        let mut hub = with_blocks(9, 3, |t| t.colluders = 1);
        for s in 3..6u16 {
            let block = Some(id_of(&hub, &[3, 4, 5]));
            hub.sites[usize::from(s)].set_standing(Standing { block, ..Standing::default() });
        }
        let (id, honest) = hub.advertise(0, 4, &everybody(9));
        let frame = hub.frame(Kind::Directory, &id, &Directory { blocks: blocks.clone(), ..honest });
        let told = refuses(&mut hub, 0, &frame, expected);
        assert!(told.contains(about), "{blocks:?}: {told}");
        if expected == Rule::Rel3 {
            // The others have enough company.
            assert_eq!(hub.reply(7, &frame).unwrap().kind, Kind::AcceptDirectory);
        }
    }
    // What a site states is signed: nobody else's word counts.
    let mut hub = with_blocks(9, 3, |t| t.colluders = 1);
    let (id, mut directory) = hub.advertise(0, 4, &everybody(9));
    directory.entries[4].1.3 = (None, Some(Hash([1; 32])), 0, Default::default());
    let frame = hub.frame(Kind::Directory, &id, &directory);
    refuses(&mut hub, 0, &frame, Rule::Kex3);
}

/// [REL-4]: for every block, not only for that of the site that is asked.
#[test]
fn rel_4_cohorts_and_survivors_that_cut_a_block() {
    let (mut hub, deck, round) = three_blocks();
    for (alive, missing) in [
        (vec![0, 1, 2, 3, 4, 5, 6, 7], "site-8"),
        (vec![0, 1, 2, 3, 4, 6, 7, 8], "site-5"),
        (vec![0, 2, 3, 4, 5, 6, 7, 8], "site-1"),
    ] {
        let frame = hub.survivors(&round, &alive);
        let told = refuses(&mut hub, 0, &frame, Rule::Rel4);
        assert!(told.contains(missing), "{told}");
    }
    let six = [0, 1, 2, 3, 4, 5];
    let signed = hub.sign(&round, &six, &six).unwrap();
    let frame = hub.certificate(&round, &six, &signed);
    assert_eq!(hub.reply(0, &frame).unwrap().kind, Kind::Unmask);
    for cohort in [vec![0, 1, 2, 3, 4], vec![0, 1, 3, 4, 5]] {
        let ask = hub.question(&deck, 1, &cohort, round.context, b"r");
        let (_, frame) = hub.ask_frame(&deck, &ask);
        // Below the threshold too, and refused for whichever comes first.
        let e = hub.tell(0, &frame).expect_err("it must refuse");
        assert!([Rule::Pol1, Rule::Rel4].contains(&rule(&e)), "{e}");
    }
    let (mut hub, deck, round) = three_blocks();
    hub.restart(0).unwrap();
    let ask = hub.question(&deck, 1, &[0, 1, 2, 3, 4, 5, 6, 8], round.context, b"r");
    let (_, frame) = hub.ask_frame(&deck, &ask);
    let told = refuses(&mut hub, 0, &frame, Rule::Rel4);
    assert!(told.contains("site-7"), "after a restart: {told}");
}

/// Lets these sites give up the slot.
fn burn(hub: &mut Hub, round: &Round, by: &[u16]) -> BTreeMap<u16, Proof> {
    let frame = raw(&hub.kit.identities[0], &hub.session, Kind::Burn, &round.context, &[]);
    by.iter()
        .map(|s| {
            let reply = hub.reply(*s, &frame).unwrap();
            assert_eq!((reply.kind, reply.context, &reply.rest[..]), (Kind::Burned, round.context, &[][..]));
            (*s, reply.proof)
        })
        .collect()
}

fn burn_certificate(hub: &Hub, round: &Round, signed: &BTreeMap<u16, Proof>) -> Vec<u8> {
    let (signers, proofs) = signed.iter().map(|(s, p)| (*s, *p)).unzip();
    hub.frame(Kind::BurnCertificate, &round.context, &BurnCertificate { signers, proofs })
}

/// Tells a site; the slots that it then knows to be undone.
fn undone(hub: &mut Hub, site: u16, bytes: &[u8]) -> Result<Vec<(u32, u16)>, Error> {
    let k = usize::from(site);
    hub.sites[k].handle(site::Input::Message(bytes), &mut hub.rng)?;
    let mut slots = Vec::new();
    while let Some(output) = hub.sites[k].poll() {
        match output {
            site::Output::Persist(record) => hub.journals[k].push(record),
            site::Output::Event(site::Event::Undone { slot, .. }) => slots.push(slot),
            site::Output::Send { .. } => panic!("nothing leaves"),
            _ => {}
        }
    }
    Ok(slots)
}

/// [REL-6]: n − t + c + 1 promises of distinct members, each signed; with the larger of the plan's c and the site's own.
#[test]
fn rel_6_a_burned_slot_needs_enough_promises_of_distinct_members() {
    for own in [0u16, 2] {
        let mut hub = with_blocks(7, 0, |t| (t.colluders, t.threshold) = (1, 6));
        let all = everybody(7);
        let mut config = hub.kit.site(0);
        config.floor = Floor { colluders: own, ..config.floor };
        hub.sites[0] = Site::new(config).unwrap();
        let deck = hub.deck(0, 8, &all);
        let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
        let round = hub.ask(&deck, &ask, &all).unwrap();
        let signed = burn(&mut hub, &round, &[1, 2, 3, 4, 5]);
        let needed = 7 - 6 + usize::from(own.max(1)) + 1;
        let some = |k: usize| signed.iter().take(k).map(|(s, p)| (*s, *p)).collect::<BTreeMap<_, _>>();
        for k in 0..needed {
            let frame = burn_certificate(&hub, &round, &some(k));
            refuses(&mut hub, 0, &frame, Rule::Rel6);
        }
        type Change = fn(&mut BurnCertificate, &Hub);
        let changes: [Change; 6] = [
            |c, _| (c.signers[1], c.proofs[1]) = (c.signers[0], c.proofs[0]),
            |c, _| c.signers.swap(0, 1),
            |c, _| c.signers[4] = 99,
            |c, _| c.proofs.truncate(4),
            |c, _| c.proofs[2] = c.proofs[1],
            // The coordinator's own signature, and one on another round.
            |c, hub| {
                let frame = raw(hub.identity(3), &hub.session, Kind::Burned, &Hash([5; 32]), &[]);
                c.proofs[2] = parts(&frame).proof;
            },
        ];
        for change in changes {
            let (signers, proofs) = signed.iter().map(|(s, p)| (*s, *p)).unzip();
            let mut certificate = BurnCertificate { signers, proofs };
            change(&mut certificate, &hub);
            let frame = hub.frame(Kind::BurnCertificate, &round.context, &certificate);
            refuses(&mut hub, 0, &frame, Rule::Rel6);
        }
        let frame = burn_certificate(&hub, &round, &some(needed));
        assert_eq!(undone(&mut hub, 0, &frame).unwrap(), [(0, 0)]);
        assert_eq!(undone(&mut hub, 0, &frame).unwrap(), [], "told once");
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
    let frame = raw(&hub.kit.identities[0], &hub.session, Kind::Burn, &round.context, &[]);
    refuses(&mut hub, 2, &frame, Rule::Rel6);
    hub.restart(2).unwrap();
    refuses(&mut hub, 2, &frame, Rule::Rel6);
    // Asked again, the same bytes; and what the promise says cannot be undone by the question put once more.
    let again = burn(&mut hub, &round, &[0, 1]);
    assert_eq!(again.len(), 2);
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
    let (_, frame) = hub.ask_frame(&deck, &ask);
    hub.restart(1).unwrap();
    assert!(hub.tell(1, &frame).unwrap().is_empty());
    let other = hub.question(&deck, 0, &all, Hash::default(), b"other");
    let (_, frame) = hub.ask_frame(&deck, &other);
    refuses(&mut hub, 1, &frame, Rule::Rnd2);
    // Bytes where none belong, and a slot that is not open.
    let frame = raw(&hub.kit.identities[0], &hub.session, Kind::Burn, &round.context, &[0]);
    refuses(&mut hub, 3, &frame, Rule::Enc1);
    let frame = raw(&hub.kit.identities[0], &hub.session, Kind::Burn, &Hash([4; 32]), &[]);
    refuses(&mut hub, 3, &frame, Rule::Frm7);
}

/// [REL-6]: what a site said before it promised is not said again after it: not its vector, not its seeds, and not its shares of
/// the slot; in the same process, where its answers are kept for repetitions, as after a restart.
#[test]
fn rel_6_nothing_said_before_a_promise_is_repeated_after_it() {
    for restarted in [false, true] {
        let (mut hub, deck, round) = three_blocks();
        let ask = hub.question(&deck, 0, &everybody(9), Hash::default(), b"q");
        let (_, question) = hub.ask_frame(&deck, &ask);
        let six = [0, 1, 2, 3, 4, 5];
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

/// [REL-6]: a certificate over survivors without this site undoes what it sent; one with it does not.
#[test]
fn rel_6_whoever_is_left_out_of_a_certified_set_is_undone() {
    let (mut hub, _, round) = three_blocks();
    let six = [0, 1, 2, 3, 4, 5];
    let signed = hub.sign(&round, &six, &six).unwrap();
    let few = signed.iter().take(5).map(|(s, p)| (*s, *p)).collect();
    let frame = hub.certificate(&round, &six, &few);
    refuses(&mut hub, 7, &frame, Rule::Unm2);
    let mut forged = signed.clone();
    forged.insert(2, forged[&1]);
    let frame = hub.certificate(&round, &six, &forged);
    refuses(&mut hub, 7, &frame, Rule::Unm2);
    // It does not know what the six signed; it knows that they signed what the certificate names.
    let (signers, proofs) = signed.iter().map(|(s, p)| (*s, *p)).unzip();
    let other = Certificate { alive: six.to_vec(), inputs: inputs_hash(&[Hash([1; 32])]), signers, proofs };
    let frame = hub.frame(Kind::Certificate, &round.context, &other);
    refuses(&mut hub, 7, &frame, Rule::Unm2);
    let frame = hub.certificate(&round, &six, &signed);
    assert_eq!(undone(&mut hub, 7, &frame).unwrap(), [(0, 0)]);
    let all = hub.survivors(&round, &everybody(9));
    refuses(&mut hub, 7, &all, Rule::Rel6);
    assert_eq!(hub.reply(0, &frame).unwrap().kind, Kind::Unmask, "who is in it releases");
}

/// [REL-8]: towards the intermediary nothing is released without a certificate, also where nobody is missing.
#[test]
fn rel_8_the_intermediary_always_needs_a_certificate() {
    let mut hub = with_blocks(5, 0, |_| {});
    hub.session = veilsum_proto::message::session(&hub.kit.terms.hash(), &hub.kit.roster.hash(), PartyId::Intermediary);
    hub.kit.identities.swap(0, 1);
    let all = everybody(5);
    for s in &all {
        let config = site::SiteConfig { aggregator: PartyId::Intermediary, ..hub.kit.site(*s) };
        hub.sites[usize::from(*s)] = Site::new(config).unwrap();
    }
    let deck = hub.deck(0, 8, &all);
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
    let round = hub.ask(&deck, &ask, &all).unwrap();
    let mut signed = BTreeMap::new();
    let frame = hub.survivors(&round, &all);
    for s in &all {
        let reply = hub.reply(*s, &frame).unwrap();
        assert_eq!(reply.kind, Kind::ConsistencyCheck, "no share yet");
        assert_eq!(reply.read::<Check>().1, [], "and no seed");
        signed.insert(*s, reply.proof);
    }
    let config = site::SiteConfig { aggregator: PartyId::Intermediary, ..hub.kit.site(0) };
    hub.sites[0] = Site::restore(config, hub.journals[0].clone()).unwrap();
    let few = signed.iter().take(3).map(|(s, p)| (*s, *p)).collect();
    let frame = hub.certificate(&round, &all, &few);
    assert_eq!(rule(&hub.tell(0, &frame).unwrap_err()), Rule::Unm2);
    let frame = hub.certificate(&round, &all, &signed);
    all.iter().for_each(|s| assert_eq!(hub.reply(*s, &frame).unwrap().kind, Kind::Unmask));
    let config = site::SiteConfig { aggregator: PartyId::Intermediary, ..hub.kit.site(0) };
    hub.sites[0] = Site::restore(config, hub.journals[0].clone()).unwrap();
    assert_eq!(hub.reply(0, &frame).unwrap().kind, Kind::Unmask, "the same again after a restart");
}
