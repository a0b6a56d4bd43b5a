//! Directories, boxes, journals, shares and numbers: pitfalls 10 to 15 of the table in `mod.rs`.

use veilsum_proto::{
    fixed::{from_ring, scale, to_ring},
    site::{Input, Output},
};
use veilsum_testkit::prelude::*;

use crate::sources::sources;

/// **10.** The aggregator shows two groups two sets of keys, both signed throughout, because a site starts anew in between. [KEX-3] wants
/// every key signed by its site and [KEX-7] all signatures on one directory. Fails if a certificate may be partial. Invented members, keys
/// that nobody signed and other rosters are in `protocol/vectors/v4`.
#[test]
fn kex_7_two_directories_that_are_signed_throughout() {
    let all = everybody(5);
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
}

/// **11.** Where the server chooses who masks with whom, it surrounds a victim with its own. Here every site masks with
/// every other of the cohort ([MSK-3]). The test takes the masks off one vector: all but any one leave noise. Fails if `Round::mask`
/// leaves anybody out. Boxes that are withheld and cohorts that are small are in `protocol/vectors/v4`.
#[test]
fn msk_3_a_victim_among_neighbours_of_the_aggregators_choice() {
    let (hub, _, round, vectors) = started(7, 111);
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
}

/// **12.** Frames and boxes of another session, direction or deck pass for this one's, or a member shows another's keys
/// as its own. Session, kind and context are signed ([FRM-4]); a box's key and associated data name directory, sender
/// and receiver ([SHR-2], [SHR-4]); no key stands twice ([KEX-5], `known_lies.txt`). The test reflects and replays boxes; frames of
/// other sessions and senders are in `known_lies.txt`. Fails if the box's derivation leaves out the direction. (The older deck is shut
/// out twice: by its own keys, and by the directory in both derivations.)
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
}

/// What a site wants done, in order; and what it sends.
fn outputs(site: &mut Site) -> Vec<(&'static str, Option<Kind>)> {
    std::iter::from_fn(|| site.poll())
        .filter_map(|o| match o {
            Output::Persist(record) => match record.kind() {
                RecordKind::Checked => Some(("checked", None)),
                RecordKind::Released => Some(("released", None)),
                RecordKind::Deck => Some(("deck", None)),
                other => panic!("{other:?} comes with a rewritten journal, or is not expected here"),
            },
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
    for (name, text) in sources() {
        assert!(!text.contains("f64") && !text.contains("f32"), "{name} knows floats");
    }
}
