//! A coordinator that lies while a deck is set up, in more than one message, and what the roster and a site's own floor refuse.
//! Lies of one message are in `known_lies.txt`, lies in the bytes of all members in `protocol/vectors/v4/bad_deck.json`.

use veilsum_testkit::prelude::*;

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
fn a_second_directory_after_the_first_was_signed() {
    let mut hub = Hub::new(5, 25, |_| {});
    let (id, directory) = hub.advertise(0, 4, &everybody(5));
    let frame = hub.frame(Kind::Directory, &id, &directory);
    let signed = hub.reply(0, &frame).unwrap();
    let mut other = directory.clone();
    other.entries.remove(4);
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
fn a_member_that_advertised_too_few_commitments_is_not_let_through() {
    // Site 2 signed the hash of a list that is too short, and a coordinator that should have put it out relays the list.
    let mut hub = Hub::new(4, 33, |_| {});
    let (id, mut directory) = hub.advertise(0, 4, &everybody(4));
    let short = vec![Hash::default(); 3];
    directory.entries[2].1.2 = suite::hash("commitments", &[&codec::encode(&short)]);
    let keys = codec::encode(&directory.entries[2].1);
    directory.entries[2].2 = parts(&raw(hub.identity(2), &hub.session, Kind::AdvertiseKeys, &id, &keys)).proof;
    let hash = directory_hash(&id, &directory);
    let frame = hub.frame(Kind::Directory, &id, &directory);
    let mut accepted: Accepted = [0, 1, 3]
        .map(|s| {
            let reply = hub.reply(s, &frame).unwrap();
            (s, (reply.proof, reply.read()))
        })
        .into();
    let sent: Ciphertexts = vec![(0, [0; 1_088].into()), (3, [0; 1_088].into())];
    let reply = parts(&raw(hub.identity(2), &hub.session, Kind::AcceptDirectory, &hash, &codec::encode(&sent)));
    accepted.insert(2, (reply.proof, sent));
    let mut sealed: BTreeMap<u16, Sealed> = BTreeMap::new();
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
fn identities_that_the_roster_does_not_give_the_role() {
    let kit = Kit::new(3, |_| {});
    let stranger = Arc::new(Identity::from_seed(&[9; 32]));
    for identity in [&stranger, &kit.identities[0], &kit.identities[1]].map(Arc::clone) {
        let made = Site::new(SiteConfig { identity, ..kit.site(0) });
        assert_eq!(made.err().map(|e| rule(&e)), Some(Rule::Ros7));
    }
    let mut rng = Hub::new(3, 1, |_| {}).rng;
    for identity in kit.identities[1..3].iter().cloned() {
        let made = Aggregator::new(AggregatorConfig { identity, ..kit.coordinator() }, Millis(0), &mut rng);
        assert_eq!(made.err().map(|e| rule(&e)), Some(Rule::Ros7));
    }
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
