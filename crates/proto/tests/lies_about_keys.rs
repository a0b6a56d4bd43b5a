//! A coordinator that lies while a deck is set up, in more than one message, and what the roster, the plan and a site's own floor
//! refuse. Lies of one message are in `known_lies.txt`.

use veilsum_proto::{
    Rule,
    aggregator::{Aggregator, Millis},
    identity::{Identity, PublicKey},
    kem::Ciphertext,
    message::Kind,
    site::Site,
    suite::Hash,
};
use veilsum_testkit::{federation::Kit, hub::*, wire::*};

#[test]
fn the_keys_of_a_process_that_is_gone() {
    // Both pairs are signed by site-1, for the same deck; only the process that lives knows which are its own.
    let mut hub = Hub::new(4, 22, |_| {});
    let (id, first) = hub.advertise(0, 4, &everybody(4));
    hub.restart(1).unwrap();
    let (_, open) = hub.open(0, 4);
    let again = hub.reply(1, &open).unwrap();
    assert_ne!(again.read::<Keys>(), first.entries[1].1);
    let frame = hub.frame(Kind::Directory, &id, &first);
    refuses(&mut hub, 1, &frame, Rule::Kex3);
}

#[test]
fn different_directories_for_two_sites() {
    let mut hub = Hub::new(5, 23, |_| {});
    let (id, one) = hub.advertise(0, 4, &everybody(5));
    let mut other = one.clone();
    other.entries.remove(2);
    other.blocks.remove(2);
    other.threshold = hub.kit.terms.threshold_of(4, hub.kit.roster.sites.len()).unwrap() as u16;
    let mut accepted = Accepted::new();
    for s in 0..5 {
        let frame = hub.frame(Kind::Directory, &id, if s < 3 { &one } else { &other });
        let reply = hub.reply(s, &frame).unwrap();
        accepted.insert(s, (reply.proof, reply.read()));
    }
    let hash = directory_hash(&id, &one);
    for s in 0..3 {
        let frame = hub.directory_certificate(&hash, &accepted, s);
        let e = refuses(&mut hub, s, &frame, Rule::Kex7);
        assert!(e.contains("hub") && e.contains("site-3") && e.contains("may show others another"), "{e}");
    }
}

#[test]
fn a_second_directory_after_the_first_was_signed() {
    let mut hub = Hub::new(5, 25, |_| {});
    let (id, directory) = hub.advertise(0, 4, &everybody(5));
    let frame = hub.frame(Kind::Directory, &id, &directory);
    let signed = hub.reply(0, &frame).unwrap();
    let mut other = directory.clone();
    other.entries.remove(4);
    other.blocks.remove(4);
    other.threshold = hub.kit.terms.threshold_of(4, hub.kit.roster.sites.len()).unwrap() as u16;
    let second = hub.frame(Kind::Directory, &id, &other);
    refuses(&mut hub, 0, &second, Rule::Frm7);
    assert_eq!(hub.reply(0, &frame).unwrap(), signed, "the first is still the one it signed");
}

/// [KEX-17], [SHR-3]: what a site sent is there again for the same frame until the coordinator shows that it has it; then it is
/// forgotten, and the same frame is no fault.
#[test]
fn kex_17_what_was_sent_is_kept_as_long_as_it_may_be_lost() {
    let mut hub = Hub::new(4, 28, |_| {});
    let (id, directory) = hub.advertise(0, 4, &everybody(4));
    let (hash, accepted) = hub.accept(&id, &directory).unwrap();
    let told = hub.frame(Kind::Directory, &id, &directory);
    assert_eq!(hub.reply(0, &told).unwrap().proof, accepted[&0].0);
    let boxes = hub.certify(&hash, &accepted).unwrap();
    let certificate = hub.directory_certificate(&hash, &accepted, 0);
    assert_eq!(hub.tell(0, &told), Ok(Vec::new()));
    assert_eq!(hub.reply(0, &certificate).unwrap().read::<Sealed>(), boxes[&0]);
    let delivery = hub.delivery(&hash, &boxes, 0);
    assert_eq!(hub.reply(0, &delivery).unwrap().kind, Kind::ShareAck);
    for frame in [&told, &certificate] {
        assert_eq!(hub.tell(0, frame), Ok(Vec::new()));
    }
    assert_eq!(hub.reply(0, &delivery).unwrap().kind, Kind::ShareAck);
}

#[test]
fn decks_opened_twice_backwards_or_of_another_run() {
    let mut hub = Hub::new(3, 26, |t| t.slots = 8);
    let (_, good) = hub.open(4, 8);
    hub.reply(0, &good).unwrap();
    for (index, slots, expected) in [(4, 7, Rule::Kex1), (3, 8, Rule::Kex1)] {
        let (_, frame) = hub.open(index, slots);
        refuses(&mut hub, 0, &frame, expected);
    }
    let run = hub.run;
    hub.run = Hash([9; 32]);
    let (_, frame) = hub.open(5, 8);
    refuses(&mut hub, 0, &frame, Rule::Kex9);
    hub.run = run;
    let (_, frame) = hub.open(u32::MAX, 8);
    hub.reply(0, &frame).unwrap();
}

#[test]
fn messages_of_one_deck_do_not_pass_for_another() {
    let mut hub = Hub::new(3, 27, |_| {});
    let all = everybody(3);
    let (id, directory) = hub.advertise(0, 4, &all);
    let (hash, boxes) = hub.seal(&id, &directory).unwrap();
    let (id1, _) = hub.advertise(1, 4, &all);
    // The set-up of deck 0 was given up when deck 1 was opened.
    let frame = hub.delivery(&hash, &boxes, 0);
    refuses(&mut hub, 0, &frame, Rule::Frm7);
    let stale = hub.frame(Kind::Directory, &id1, &directory);
    refuses(&mut hub, 0, &stale, Rule::Kex3);
    // The boxes of deck 2 in the delivery of deck 3; then its commitments, too.
    for (with_commitments, expected) in [(false, Rule::Shr4), (true, Rule::Shr8)] {
        let index = 2 + 2 * u32::from(with_commitments);
        let (id2, directory2) = hub.advertise(index, 4, &all);
        let (_, mut boxes2) = hub.seal(&id2, &directory2).unwrap();
        let (id3, directory3) = hub.advertise(index + 1, 4, &all);
        let (hash3, boxes3) = hub.seal(&id3, &directory3).unwrap();
        if !with_commitments {
            boxes2.iter_mut().for_each(|(s, sent)| sent.0.clone_from(&boxes3[s].0));
        }
        let frame = hub.delivery(&hash3, &boxes2, 0);
        let e = hub.tell(0, &frame).expect_err("a box of another deck");
        assert_eq!(rule(&e), expected);
    }
}

/// [KEX-8], [SHR-4]: ML-KEM refuses no ciphertext of the right length. One that is not the sender's shows in boxes that do not open,
/// at both ends, and neither end has a deck.
#[test]
fn a_ciphertext_that_was_exchanged_on_the_way_leaves_both_ends_without_a_deck() {
    let flipped = |c: &Ciphertext, at: usize| {
        let mut bytes: [u8; 1_088] = c.bytes().try_into().unwrap();
        bytes[at] ^= 1;
        Ciphertext::from(bytes)
    };
    type Exchange<'a> = &'a dyn Fn(&mut Hub, &Directory, &Accepted, &Ciphertext) -> Ciphertext;
    let exchanges: [Exchange<'_>; 6] = [
        &|_, _, _, c| flipped(c, 0),
        &|_, _, _, c| flipped(c, 500),
        &|_, _, _, c| flipped(c, 1_087),
        &|_, _, _, _| [0; 1_088].into(),
        // The coordinator's own, made for the reader's key.
        &|hub, d, _, _| veilsum_proto::vectors_api::kem_encapsulate(&d.entries[2].1.1, &mut hub.rng).unwrap().0,
        // One that the sender made for another reader.
        &|_, _, accepted, _| accepted[&1].1.iter().find(|c| c.0 != 2).unwrap().1.clone(),
    ];
    for exchange in exchanges {
        let mut hub = Hub::new(5, 28, |_| {});
        let (id, directory) = hub.advertise(0, 4, &everybody(5));
        let (hash, mut accepted) = hub.accept(&id, &directory).unwrap();
        let at = accepted[&1].1.iter().position(|c| c.0 == 2).expect("site 1 encapsulates to site 2");
        let other = exchange(&mut hub, &directory, &accepted, &accepted[&1].1[at].1);
        assert_ne!(other, accepted[&1].1[at].1);
        accepted.get_mut(&1).unwrap().1[at].1 = other;
        let boxes = hub.certify(&hash, &accepted).unwrap();
        for (reader, against) in [(1, 2), (2, 1)] {
            let frame = hub.delivery(&hash, &boxes, reader);
            let e = hub.tell(reader, &frame).expect_err("a box under another secret");
            assert_eq!(rule(&e), Rule::Shr4, "{e}");
            assert_eq!((hub.left[0].kind, hub.left[0].read::<u16>()), (Kind::ShareComplaint, against));
            assert!(hub.journals[usize::from(reader)].is_empty(), "a deck with a bad box is no deck");
        }
        for reader in [0, 3, 4] {
            let frame = hub.delivery(&hash, &boxes, reader);
            assert_eq!(hub.reply(reader, &frame).unwrap().kind, Kind::ShareAck);
        }
    }
}

/// [KEX-17]: between any two members one ciphertext passes, whichever of them makes it. Every member makes about half where the
/// numbers follow one another, and the deck completes where they do not.
#[test]
fn one_ciphertext_passes_between_every_two_members() {
    let all_even = vec![0u16, 2, 4, 6, 8];
    for (seed, members) in (60u64..).zip((3..9).map(everybody).chain([all_even.clone()])) {
        let n = members.len();
        let mut hub = Hub::new(usize::from(members[n - 1]) + 1, seed, |_| {});
        let (id, directory) = hub.advertise(0, 2, &members);
        let (hash, accepted) = hub.accept(&id, &directory).unwrap();
        let mut passed = std::collections::BTreeSet::new();
        for (from, (_, sent)) in &accepted {
            assert!(members == all_even || [n / 2, (n - 1) / 2].contains(&sent.len()), "{n}: {} of {from}", sent.len());
            sent.iter().for_each(|(to, _)| assert!(passed.insert((*from.min(to), *from.max(to))), "twice"));
        }
        assert_eq!(passed.len(), n * (n - 1) / 2);
        let boxes = hub.certify(&hash, &accepted).unwrap();
        for m in members {
            let frame = hub.delivery(&hash, &boxes, m);
            assert_eq!(hub.reply(m, &frame).unwrap().kind, Kind::ShareAck);
        }
    }
}

/// [SHR-3], and why the nonce of a box may be zero: a second certificate with other ciphertexts gets nothing, and the first one the
/// very same bytes again.
#[test]
fn a_second_certificate_with_other_ciphertexts_gets_no_second_box() {
    let mut hub = Hub::new(5, 37, |_| {});
    let (id, directory) = hub.advertise(0, 4, &everybody(5));
    let (hash, mut accepted) = hub.accept(&id, &directory).unwrap();
    let first = hub.directory_certificate(&hash, &accepted, 2);
    let sealed = hub.reply(2, &first).unwrap();
    accepted.get_mut(&1).unwrap().1.iter_mut().for_each(|c| c.1 = [7; 1_088].into());
    let second = hub.directory_certificate(&hash, &accepted, 2);
    assert_ne!(first, second);
    let e = refuses(&mut hub, 2, &second, Rule::Frm7);
    assert!(e.contains("hub"), "{e}");
    assert_eq!(hub.reply(2, &first).unwrap(), sealed);
}

#[test]
fn a_ciphertext_or_an_ml_kem_key_of_another_length_does_not_decode() {
    let mut hub = Hub::new(4, 35, |_| {});
    let (id, directory) = hub.advertise(0, 4, &everybody(4));
    let whole = veilsum_proto::codec::encode(&directory);
    let frame = raw(&hub.kit.identities[0], &hub.session, Kind::Directory, &id, &whole[..whole.len() - 1]);
    refuses(&mut hub, 0, &frame, Rule::Enc1);
    let (hash, accepted) = hub.accept(&id, &directory).unwrap();
    let whole = parts(&hub.directory_certificate(&hash, &accepted, 1)).rest;
    let ciphertext = accepted[&0].1.iter().find(|c| c.0 == 1).expect("site 0's ciphertext for site 1").1.bytes();
    let at = whole.windows(1_088).position(|w| w == ciphertext).expect("it stands there");
    let longer = [&whole[..at], &[0], &whole[at..]].concat();
    let shorter = [&whole[..at], &whole[at + 1..]].concat();
    for rest in [longer, shorter] {
        let frame = raw(&hub.kit.identities[0], &hub.session, Kind::DirectoryCertificate, &hash, &rest);
        refuses(&mut hub, 1, &frame, Rule::Enc1);
    }
    // Nothing of this ended the set-up.
    let boxes = hub.certify(&hash, &accepted).unwrap();
    let frame = hub.delivery(&hash, &boxes, 1);
    assert_eq!(hub.reply(1, &frame).unwrap().kind, Kind::ShareAck);
}

#[test]
fn every_member_keeps_one_and_the_same_digest_of_a_slots_commitments() {
    let mut hub = Hub::new(4, 32, |_| {});
    let (id, directory) = hub.advertise(0, 4, &everybody(4));
    let (hash, sealed) = hub.seal(&id, &directory).unwrap();
    for s in 0..4 {
        let frame = hub.delivery(&hash, &sealed, s);
        hub.reply(s, &frame).unwrap();
    }
    for slot in 0..4 {
        let list: Vec<Hash> = sealed.values().map(|sent| sent.0[slot]).collect();
        let digest = veilsum_proto::suite::hash("slot commitments", &[&veilsum_proto::codec::encode(&list)]);
        for s in 0..4 {
            assert_eq!(veilsum_testkit::secrets::Secrets::of(&hub, s, 0).slot_commitments[slot], digest);
        }
    }
}

#[test]
fn a_member_that_advertised_too_few_commitments_is_not_let_through() {
    // Site 2 signed the hash of a list that is too short, and a coordinator that should have put it out relays the list.
    let mut hub = Hub::new(4, 33, |_| {});
    let (id, mut directory) = hub.advertise(0, 4, &everybody(4));
    let short = vec![Hash::default(); 3];
    directory.entries[2].1.2 = veilsum_proto::suite::hash("commitments", &[&veilsum_proto::codec::encode(&short)]);
    let keys = veilsum_proto::codec::encode(&directory.entries[2].1);
    directory.entries[2].2 = parts(&raw(hub.identity(2), &hub.session, Kind::AdvertiseKeys, &id, &keys)).proof;
    let hash = directory_hash(&id, &directory);
    let frame = hub.frame(Kind::Directory, &id, &directory);
    let mut accepted = Accepted::new();
    for s in [0, 1, 3] {
        let reply = hub.reply(s, &frame).unwrap();
        accepted.insert(s, (reply.proof, reply.read()));
    }
    let sent: Ciphertexts = vec![(0, [0; 1_088].into()), (3, [0; 1_088].into())];
    let reply =
        parts(&raw(hub.identity(2), &hub.session, Kind::AcceptDirectory, &hash, &veilsum_proto::codec::encode(&sent)));
    accepted.insert(2, (reply.proof, sent));
    let mut sealed: std::collections::BTreeMap<u16, Sealed> = std::collections::BTreeMap::new();
    for s in [0, 1, 3] {
        let frame = hub.directory_certificate(&hash, &accepted, s);
        sealed.insert(s, hub.reply(s, &frame).unwrap().read());
    }
    let boxes = everybody(4).iter().filter(|s| **s != 2).map(|s| (*s, vec![0; 32 * 4 + 16])).collect();
    sealed.insert(2, (short, boxes));
    let frame = hub.delivery(&hash, &sealed, 1);
    let e = hub.tell(1, &frame).expect_err("a list that is too short");
    assert_eq!(rule(&e), Rule::Shr8, "{e}");
    assert!(e.to_string().contains("hub") && e.to_string().contains("site-2"), "{e}");
}

#[test]
fn one_key_for_two_members_and_keys_nobody_may_use() {
    let mut roster = (*Kit::new(4, |_| {}).roster).clone();
    roster.sites[2].key = roster.sites[0].key;
    let e = roster.check().unwrap_err();
    assert_eq!(rule(&e), Rule::Ros4);
    assert!(e.to_string().contains("site-0") && e.to_string().contains("site-2"), "{e}");
    roster.sites[2].key = roster.coordinator.key;
    assert!(roster.check().unwrap_err().to_string().contains("hub"));
    let mut small_order = [0; 32];
    small_order[0] = 1;
    for key in [[0; 32], [0xff; 32], small_order] {
        roster.sites[2].key = PublicKey(key);
        assert_eq!(rule(&roster.check().unwrap_err()), Rule::Key2);
    }
}

#[test]
fn identities_that_the_roster_does_not_give_the_role() {
    let kit = Kit::new(3, |_| {});
    let mut config = kit.site(0);
    config.identity = std::sync::Arc::new(Identity::from_seed(&[9; 32]));
    assert_eq!(Site::new(config).err().map(|e| rule(&e)), Some(Rule::Ros7));
    for hub in [0, 1] {
        let mut config = kit.site(0);
        config.identity = kit.identities[hub].clone();
        assert_eq!(Site::new(config).err().map(|e| rule(&e)), Some(Rule::Ros7));
    }
    let mut rng = Hub::new(3, 1, |_| {}).rng;
    for other in [1, 2] {
        let mut config = kit.coordinator();
        config.identity = kit.identities[other].clone();
        assert_eq!(Aggregator::new(config, Millis(0), &mut rng).err().map(|e| rule(&e)), Some(Rule::Ros7));
    }
}

#[test]
fn a_plan_with_a_lowered_threshold() {
    let kit = Kit::new(20, |t| (t.threshold, t.colluders) = (11, 4));
    assert_eq!(kit.terms.check(&kit.roster).map_err(|e| rule(&e)), Err(Rule::Thr2));
    // A plan that was never checked does not get past a site either.
    let mut hub = Hub::new(6, 29, |t| (t.threshold, t.colluders) = (5, 3));
    let (id, directory) = hub.advertise(0, 4, &everybody(6));
    let mut low = directory.clone();
    low.threshold = 4;
    let frame = hub.frame(Kind::Directory, &id, &low);
    let e = refuses(&mut hub, 0, &frame, Rule::Thr1);
    assert!(e.contains("the plan gives 5 for 6"), "{e}");
}

#[test]
fn a_sites_own_floor_holds_against_the_plan() {
    for (colluders, min_cohort, expected) in [(5, 0, Rule::Thr2), (0, 7, Rule::Pol1)] {
        let mut hub = Hub::new(6, 30, |_| {});
        let mut config = hub.kit.site(2);
        (config.floor.colluders, config.floor.min_cohort) = (colluders, min_cohort);
        hub.sites[2] = Site::new(config).unwrap();
        let (id, directory) = hub.advertise(0, 4, &everybody(6));
        let frame = hub.frame(Kind::Directory, &id, &directory);
        refuses(&mut hub, 2, &frame, expected);
        hub.reply(0, &frame).expect("others have their own floor");
    }
}

#[test]
fn the_other_aggregators_site_does_not_listen() {
    // The very same party, plan and roster, towards the intermediary.
    let mut hub = Hub::new(3, 31, |_| {});
    let mut config = hub.kit.site(0);
    config.aggregator = veilsum_proto::roster::PartyId::Intermediary;
    hub.sites[0] = Site::new(config).unwrap();
    let (_, frame) = hub.open(0, 4);
    let e = refuses(&mut hub, 0, &frame, Rule::Frm4);
    assert!(e.contains("counter"), "{e}");
}
