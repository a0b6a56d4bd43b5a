//! Cohorts, directories, journals, shares and numbers: pitfalls 9 to 15 of the table in `mod.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::sources;
use veilsum_proto::{
    Error, Rule, codec,
    fixed::{from_ring, scale, to_ring},
    journal::RecordKind,
    message::{Kind, session},
    plan::Terms,
    roster::PartyId,
    site::{Input, Output, Site},
    suite::Hash,
    vectors_api as api,
};
use veilsum_testkit::{federation::*, hub::*, secrets::*, wire::*};

/// **9.** Broadcasts over A and over A without w: the difference is w's vector (So et al. 2023), or nearly, also where they
/// differ. [POL-1] wants all sites of the roster where the plan does, and [RND-5] lets nobody back in. The test asks four of
/// five sites, with the question before and with another one, at once, after a restart and in a new run with a directory of
/// four. Fails if a cohort or a directory is not held against the roster.
#[test]
fn pol_1_broadcasts_over_two_cohorts() {
    let (mut hub, deck, round) = of_the_same(5, 109);
    let (all, four) = (everybody(5), everybody(4));
    let frame = hub.survivors(&round, &all);
    all.iter().for_each(|s| assert_eq!(hub.reply(*s, &frame).unwrap().kind, Kind::Unmask));
    for query in [&b"q"[..], b"another"] {
        let ask = hub.question(&deck, 1, &four, round.context, query);
        let (_, frame) = hub.ask_frame(&deck, &ask);
        refuses(&mut hub, 0, &frame, Rule::Pol1);
        hub.restart(0).unwrap();
        refuses(&mut hub, 0, &frame, Rule::Pol1);
    }
    hub.run = Hash([9; 32]);
    for s in &all {
        hub.sites[usize::from(*s)] = Site::new(hub.kit.site(*s)).unwrap();
    }
    let (id, directory) = hub.advertise(0, 4, &four);
    let frame = hub.frame(Kind::Directory, &id, &directory);
    four.iter().for_each(|s| drop(refuses(&mut hub, *s, &frame, Rule::Pol1)));
    // Where a plan lets any site be lost, nobody comes back.
    let (mut hub, deck, round, _) = started(5, 109);
    let fewer = hub.question(&deck, 1, &four, round.context, b"r");
    let next = hub.ask(&deck, &fewer, &[0]).unwrap();
    let back = hub.question(&deck, 2, &all, next.context, b"s");
    let (_, frame) = hub.ask_frame(&deck, &back);
    refuses(&mut hub, 0, &frame, Rule::Rnd5);
}

/// **10.** The aggregator shows two groups two sets of keys, invents members, or brings another roster. [KEX-3] wants
/// every key signed by its site, [KEX-7] all signatures on one directory, [ROS-4] distinct members, and the session of
/// [FRM-4] the roster. The test tries each. Fails if a proof of the directory is not verified, a certificate may be
/// partial, or the session leaves the roster out.
#[test]
fn kex_3_two_directories_another_roster_and_doubled_members() {
    // Keys of the aggregator's own under the name of site 3.
    let mut hub = Hub::new(5, 110, |_| {});
    let all = everybody(5);
    let (id, honest) = hub.advertise(0, 4, &all);
    let mut forged = honest.clone();
    forged.entries[3].1 = ([7; 32], [9; 1_184].into(), Hash::default(), (None, Default::default()));
    let frame =
        raw(&hub.kit.identities[0], &hub.session, Kind::AdvertiseKeys, &id, &codec::encode(&forged.entries[3].1));
    forged.entries[3].2 = parts(&frame).proof;
    let frame = hub.frame(Kind::Directory, &id, &forged);
    refuses(&mut hub, 0, &frame, Rule::Kex3);

    // Two directories, both signed throughout: site 3 starts anew in between and has two sets of keys.
    let mut hub = Hub::new(5, 110, |_| {});
    let (id, one) = hub.advertise(0, 4, &all);
    hub.restart(3).unwrap();
    let (_, open) = hub.open(0, 4);
    let again = hub.reply(3, &open).unwrap();
    let mut other = one.clone();
    (other.entries[3].1, other.entries[3].2) = (again.read(), again.proof);
    let mut accepted = Accepted::new();
    for s in &all {
        let frame = hub.frame(Kind::Directory, &id, if *s < 2 { &one } else { &other });
        let reply = hub.reply(*s, &frame).unwrap();
        accepted.insert(*s, (reply.proof, reply.read()));
    }
    for (directory, readers, unsigned) in [(&one, [0, 1], "site-2"), (&other, [3, 4], "site-0")] {
        for reader in readers {
            let frame = hub.directory_certificate(&directory_hash(&id, directory), &accepted, reader);
            let e = refuses(&mut hub, reader, &frame, Rule::Kex7);
            assert!(e.contains("hub") && e.contains(unsigned) && e.contains("may show others another"), "{e}");
        }
    }

    // One key twice on a roster, and a roster that is not the one this site pinned.
    let kit = Kit::new(5, |_| {});
    let mut sybil = (*kit.roster).clone();
    sybil.sites[4].key = sybil.sites[3].key;
    assert_eq!(sybil.check().map_err(|e| rule(&e)), Err(Rule::Ros4));
    let mut longer = (*kit.roster).clone();
    longer.sites.push(Kit::new(6, |_| {}).roster.sites[5].clone());
    longer.check().expect("a roster by itself");
    assert_eq!(kit.terms.check(&longer).map_err(|e| rule(&e)), Err(Rule::Pln1));
    let terms = Terms { roster: longer.hash(), ..(*kit.terms).clone() };
    let mut hub = Hub::new(5, 110, |_| {});
    hub.session = session(&terms.hash(), &longer.hash(), PartyId::Coordinator);
    let (_, frame) = hub.open(0, 4);
    refuses(&mut hub, 0, &frame, Rule::Frm4);
}

/// **11.** Where the server chooses who masks with whom, it surrounds a victim with its own. Here every site masks with
/// every other of the cohort ([MSK-3]), gets a box of every member ([SHR-8]), and refuses a small cohort ([POL-1]). The
/// test takes the masks off one vector: all but any one leave noise. Fails if `Round::mask` leaves anybody out, or a
/// deck or cohort may be smaller than threshold and floor.
#[test]
fn msk_3_a_victim_among_neighbours_of_the_aggregators_choice() {
    let (mut hub, deck, round, vectors) = started(7, 111);
    let all = everybody(7);
    for me in &all {
        let masks = Secrets::of(&hub, *me, 0).masks(*me, 0, &round.context, &all);
        assert_eq!((masks.len(), without(&vectors[me], &masks)), (7, values(*me, b"q")));
        for open in 0..masks.len() {
            let mut but_one = masks.clone();
            but_one.remove(open);
            assert!(without(&vectors[me], &but_one).iter().zip(values(*me, b"q")).all(|(a, b)| *a != b));
        }
    }
    for cohort in [&[0u16, 5, 6][..], &[0, 4, 5, 6]] {
        let ask = hub.question(&deck, 1, cohort, round.context, b"r");
        let (_, frame) = hub.ask_frame(&deck, &ask);
        refuses(&mut hub, 0, &frame, Rule::Pol1);
    }
    let (id, directory) = hub.advertise(1, 4, &all);
    let (hash, mut boxes) = hub.seal(&id, &directory).unwrap();
    for (from, sent) in &boxes {
        let to: Vec<u16> = sent.1.iter().map(|b| b.0).collect();
        assert_eq!(to, all.iter().copied().filter(|s| s != from).collect::<Vec<_>>());
    }
    boxes.remove(&3);
    let frame = hub.delivery(&hash, &boxes, 0);
    let e = hub.tell(0, &frame).expect_err("a neighbour is withheld");
    assert_eq!((rule(&e), hub.left[0].kind), (Rule::Shr8, Kind::ShareComplaint));
}

/// **12.** Frames and boxes of another session, direction or deck pass for this one's, or a member shows another's keys
/// as its own. Session, kind and context are signed ([FRM-4]); a box's key and associated data name directory, sender
/// and receiver ([SHR-2], [SHR-4]); no key stands twice ([KEX-5], `known_lies.txt`). The test reflects and replays. Fails if the
/// box's derivation leaves out the direction, or if a frame's signature leaves out the session. (The older deck is shut out
/// twice: by its own keys, and by the directory in both derivations.)
#[test]
fn frm_4_replay_reflection_and_anothers_key() {
    let mut hub = Hub::new(3, 112, |_| {});
    let all = everybody(3);
    let (id, directory) = hub.advertise(0, 4, &all);
    let (_, old) = hub.seal(&id, &directory).unwrap();
    let of = |boxes: &BTreeMap<u16, Sealed>, from: u16, to: u16| {
        boxes[&from].1.iter().find(|b| b.0 == to).unwrap().1.clone()
    };
    // A set-up ends with a bad box, so each is tried in its own.
    type Forge<'a> = &'a dyn Fn(&BTreeMap<u16, Sealed>) -> Vec<u8>;
    let forged: [(&str, Forge<'_>); 3] = [
        ("site 1's own box for site 0, sent back", &|new| of(new, 1, 0)),
        ("site 2's box in place of site 0's", &|new| of(new, 2, 1)),
        ("site 0's box of an older deck", &|_| of(&old, 0, 1)),
    ];
    for (index, (what, forge)) in (1..).zip(forged) {
        let (id, directory) = hub.advertise(index, 4, &all);
        let (hash, boxes) = hub.seal(&id, &directory).unwrap();
        let mut delivered: Delivery = parts(&hub.delivery(&hash, &boxes, 1)).read();
        assert_eq!(delivered.1[0].0, 0);
        delivered.1[0].1 = forge(&boxes);
        let frame = hub.frame(Kind::DeliverShares, &hash, &delivered);
        assert_eq!(hub.tell(1, &frame).map_err(|e| rule(&e)), Err(Rule::Shr4), "{what}");
    }

    // A question of the other aggregator's session, and a site's own frame, come in as the coordinator's.
    let (mut hub, deck, round, _) = started(3, 112);
    let ask = hub.question(&deck, 1, &all, round.context, b"r");
    let (context, good) = hub.ask_frame(&deck, &ask);
    let other = session(&hub.kit.terms.hash(), &hub.kit.roster.hash(), PartyId::Intermediary);
    let frame = raw(&hub.kit.identities[0], &other, Kind::Ask, &context, &parts(&good).rest);
    refuses(&mut hub, 0, &frame, Rule::Frm4);
    let reflected = raw(hub.identity(1), &hub.session, Kind::Ask, &context, &parts(&good).rest);
    refuses(&mut hub, 0, &reflected, Rule::Frm4);
    assert_eq!(hub.reply(0, &good).unwrap().kind, Kind::MaskedInput);
}

/// What a site wants done, in order; and what it sends.
fn outputs(site: &mut Site) -> Vec<(&'static str, Option<Kind>)> {
    std::iter::from_fn(|| site.poll())
        .filter_map(|o| match o {
            Output::Persist(record) => Some((
                match record.kind() {
                    RecordKind::Checked => "checked",
                    RecordKind::Released => "released",
                    RecordKind::Deck => "deck",
                    other => panic!("{other:?} comes with a rewritten journal, or is not expected here"),
                },
                None,
            )),
            Output::Rewrite(_) => Some(("rewritten", None)),
            Output::Send { bytes, .. } => Some(("sent", Some(parts(&bytes).kind))),
            Output::Event(_) => None,
        })
        .collect()
}

/// **13.** A site that was set back answers one question in two ways, and two vectors under one mask are open to a
/// subtraction. [JRN-1] makes durable before it sends, [JRN-3] sends the recorded frame or none, and [JRN-2] refuses a
/// journal that contradicts itself. The test watches the order of the outputs in all four steps, and brings a site back with
/// other rows and with no journal. Fails if a `Persist` or `Rewrite` comes behind its `Send`, or a restored round takes any vector.
#[test]
fn jrn_1_a_site_set_back_answers_twice() {
    let mut hub = Hub::new(4, 113, |_| {});
    let (all, three) = (everybody(4), everybody(3));
    let (id, directory) = hub.advertise(0, 4, &all);
    let (hash, boxes) = hub.seal(&id, &directory).unwrap();
    let tell = |hub: &mut Hub, frame: &[u8]| {
        hub.sites[0].handle(Input::Message(frame), &mut hub.rng).unwrap();
    };
    let delivery = hub.delivery(&hash, &boxes, 0);
    tell(&mut hub, &delivery);
    assert_eq!(outputs(&mut hub.sites[0]), [("deck", None), ("sent", Some(Kind::ShareAck))]);

    // The same once more, with a journal kept.
    let mut hub = Hub::new(4, 113, |_| {});
    let deck = hub.deck(0, 4, &all);
    hub.answers = false;
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
    let (context, frame) = hub.ask_frame(&deck, &ask);
    assert!(hub.tell(0, &frame).unwrap().is_empty());
    let consent = |hub: &Hub| hub.kit.consents(&hub.asked[0][0]).unwrap();
    let input = Input::Contribute { consent: consent(&hub), values: values(0, b"q") };
    let mut twin = Site::restore(hub.kit.site(0), hub.journals[0].clone()).unwrap();
    hub.sites[0].handle(input, &mut hub.rng).unwrap();
    assert_eq!(outputs(&mut hub.sites[0]), [("rewritten", None), ("sent", Some(Kind::MaskedInput))]);
    // A process that comes back gives the journal's frame and takes no other.
    twin.handle(Input::Message(&frame), &mut hub.rng).unwrap();
    twin.handle(Input::Contribute { consent: consent(&hub), values: values(0, b"q") }, &mut hub.rng).unwrap();
    let masked = std::iter::from_fn(|| twin.poll()).find_map(|o| match o {
        Output::Rewrite(records) => Some(records),
        _ => None,
    });
    hub.journals[0] = masked.unwrap();
    hub.restart(0).unwrap();
    let sent = hub.tell(0, &frame).unwrap();
    assert_eq!((sent.len(), sent[0].kind), (1, Kind::MaskedInput));
    let other = Input::Contribute { consent: consent(&hub), values: values(0, b"other rows") };
    assert!(matches!(hub.sites[0].handle(other, &mut hub.rng), Err(Error::ApiMisuse(_))));
    assert!(hub.sites[0].poll().is_none());
    hub.answers = true;
    let mut round = hub.ask(&deck, &ask, &[1, 2, 3]).unwrap();
    assert_eq!(round.context, context);

    // Sites 0 to 2 sign that site 3 is missing: the signature, then the release.
    hub.restart(0).unwrap();
    round.inputs.insert(0, hub.reply(0, &frame).unwrap().proof);
    let signed = hub.sign(&round, &three, &[1, 2]).unwrap();
    let survivors = hub.survivors(&round, &three);
    tell(&mut hub, &survivors);
    assert_eq!(outputs(&mut hub.sites[0]), [("checked", None), ("sent", Some(Kind::ConsistencyCheck))]);
    let signed_for = survivors_context(&context, &three, &round.signed(&three));
    let own = parts(&raw(hub.identity(0), &hub.session, Kind::ConsistencyCheck, &signed_for, b""));
    let proofs = signed.into_iter().chain([(0, own.proof)]).collect();
    let certificate = hub.certificate(&round, &three, &proofs);
    tell(&mut hub, &certificate);
    assert_eq!(outputs(&mut hub.sites[0]), [("released", None), ("sent", Some(Kind::Unmask))]);

    // No journal at all; those that go back are in `lies_that_once_worked.rs`.
    hub.journals[0].clear();
    hub.restart(0).unwrap();
    refuses(&mut hub, 0, &frame, Rule::Frm7);
}

/// **14.** Shares that are malformed, doubled, at the point zero or not canonical open what they must not, or stop what
/// they should open. Points begin at one and bytes are canonical ([SHA-2]), there is one share a survivor
/// ([UNM-3]), an answer counts once, and the commitment decides ([UNM-6]). Fails if site 0 holds the value at zero, or if two
/// answers of one site count as two. That ℓ is no share is in `shamir.rs`; what becomes of wrong lists, in `known_lies.txt`.
#[test]
fn sha_2_malformed_doubled_zero_index_and_non_canonical_shares() {
    let (hub, ..) = started(4, 114);
    let secrets: Vec<Secrets> = (0..4).map(|s| Secrets::of(&hub, s, 0)).collect();
    for (owner, secret) in (0..).zip(&secrets) {
        let shares: BTreeSet<[u8; 32]> = secrets.iter().map(|s| s.share(owner, 0)).collect();
        assert!(shares.len() == 4 && !shares.contains(&secret.seeds[0]), "no share is the seed, none stands twice");
        let three: Vec<[u8; 32]> = secrets[..3].iter().map(|s| s.share(owner, 0)).collect();
        assert_eq!(api::recover(&[0, 1, 2], &three), secret.seeds[0]);
    }
    // Two answers of one site, in different words, are one or none; the two of others are not enough.
    let mut fed = World::noted(4, 114, |_| {});
    fed.tap(|w| match (w.kind, w.site) {
        (Kind::Unmask, 0) => vec![w.bytes.clone(); 3],
        (Kind::Unmask, 2 | 3) => vec![],
        _ => vec![w.bytes.clone()],
    });
    let e = fed.total(b"q").expect_err("two sites' shares where three are needed");
    assert!(matches!(e, Error::Quorum { .. }), "{e}");
}

/// **15.** A sum that wraps, a NaN made an integer, or an entry clipped in silence gives a wrong total that looks right.
/// [FIX-1] and [FIX-2] prove from the plan that no sum wraps; the core knows no float. The test adds the largest and
/// smallest integers of all sites through a masked round, sees that one bit more would wrap, and reads the sources. Fails
/// if the scale forgets a site or a row, or a float comes into the core.
#[test]
fn fix_1_overflow_wrap_nan_and_silent_clip() {
    let s = scale(5, 1_000, 0).unwrap();
    let limit = i64::try_from(s.limit).unwrap();
    assert!(limit.checked_mul(5).is_some() && limit.checked_mul(10).is_none());
    for signs in [[1i64; 5], [-1; 5], [1, -1, 1, -1, 1]] {
        let mut w = World::new(Kit::new(5, |_| {}), 115);
        w.answer = Box::new(move |site, asked| vec![to_ring(limit * signs[usize::from(site)]); asked.words]);
        let (total, ..) = w.ask(b"q", 3).unwrap();
        assert_eq!(total.iter().map(|v| from_ring(*v)).collect::<Vec<_>>(), [limit * signs.iter().sum::<i64>(); 3]);
    }
    for (sites, rows) in [(1_000, u64::MAX), (3, u64::MAX - 1), (1_000, 1 << 34)] {
        assert_eq!(scale(sites, rows, 0).map_err(|e| rule(&e)), Err(Rule::Fix2));
    }
    for (name, text) in sources() {
        assert!(!text.contains("f64") && !text.contains("f32"), "{name} knows floats");
    }
}
