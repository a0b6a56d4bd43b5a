//! Lies in a set-up and in a round, by the coordinator and by sites, and who is named.

use std::{cell::RefCell, rc::Rc};

use super::{federation::committee, forced, sum, world};
use crate::{
    sparse::{
        AggregatorEvent, Kind,
        bits::Bits,
        frame::{self, Verified},
        message::{self, Advertise, Ask, Open, Reveal, Root, Seed, Shares, Unmask, list_hash},
        site::commitments_hash,
        testing::{Verdict, World},
    },
    suite::Hash,
};

const N: usize = 50;

fn session(w: &World) -> Hash {
    let of = crate::message::session(&w.kit.terms.hash(), &w.kit.roster.hash(), crate::roster::PartyId::Coordinator);
    message::session(&of, &crate::sparse::Shape::Forced(forced(N)))
}

/// Changes the first frame of a kind to (or from) one site, signed again by whoever sent it.
fn change(w: &mut World, site: u16, kind: Kind, mut with: impl FnMut(&Verified<'_>) -> (Hash, Vec<u8>) + 'static) {
    let from_site = matches!(kind, Kind::Advertise | Kind::Reveal | Kind::Shares | Kind::Unmask | Kind::Input);
    let party = if from_site { usize::from(site) + 2 } else { 0 };
    let identity = w.kit.identities[party].clone();
    let session = session(w);
    let mut before = std::mem::replace(&mut w.hook, Box::new(|_| Verdict::Pass));
    w.hook = Box::new(move |wire| {
        if (wire.site, wire.from_site, wire.kind) != (site, from_site, kind) {
            return before(wire);
        }
        let frame = frame::verify(wire.bytes, &session, &identity.public(), &String::new).expect("its own frame");
        let (context, rest) = with(&frame);
        Verdict::Replace(frame::frame_raw(&identity, &session, kind, &context, &rest))
    });
}

fn rule_of(w: &World, site: u16) -> &'static str {
    let found = w.site_errors.iter().find(|(s, _)| *s == site).and_then(|(_, e)| e.rule());
    found.unwrap_or_else(|| panic!("site {site} found nothing wrong: {:?}", w.site_errors)).0
}

/// [SPA-1]: whoever holds another of the four numbers is in another session, and no frame passes between the two.
#[test]
fn other_numbers_are_another_session() {
    use crate::sparse::{Params, Shape};
    let of = Hash([1; 32]);
    let ours = Params::default();
    let session = |p: Params| message::session(&of, &Shape::Proved(p));
    let id = crate::identity::Identity::from_seed(&[1; 32]);
    let frame = frame::frame_raw(&id, &session(ours), Kind::Collect, &Hash::default(), &[]);
    assert!(frame::verify(&frame, &session(ours), &id.public(), &String::new).is_ok());
    for other in [
        Params { corrupt: ours.corrupt + 1, ..ours },
        Params { missing: ours.missing + 1, ..ours },
        Params { secrecy_bits: ours.secrecy_bits + 1, ..ours },
        Params { liveness_bits: ours.liveness_bits + 1, ..ours },
    ] {
        assert!(frame::verify(&frame, &session(other), &id.public(), &String::new).is_err(), "{other:?}");
    }
}

/// [SPA-3]: of too few or too many slots, under another name; then of another run, and with an index a second time.
#[test]
fn openings_that_are_none() {
    type Lie = fn(&mut Open, &mut Hash);
    let lies: [(bool, Lie); 5] = [
        (false, |open, _| open.slots = 0),
        (false, |open, _| open.slots = 2),
        (false, |_, name| name.0[0] ^= 1),
        (true, |open, _| open.run.0[0] ^= 1),
        (true, |open, _| open.index = 0),
    ];
    for (i, (second, lie)) in lies.into_iter().enumerate() {
        let mut w = world(N, forced(N), 1, 40 + i as u64);
        let (session, mut decks) = (session(&w), 0);
        change(&mut w, 11, Kind::Open, move |f| {
            decks += 1;
            let mut open: Open = f.decode("Open").unwrap();
            if second && decks == 1 {
                return (f.context, crate::codec::encode(&open));
            }
            let mut turned = Hash::default();
            lie(&mut open, &mut turned);
            // Under its own name, but where that is the lie.
            let mut name = message::deck_id(&session, &open);
            name.0[0] ^= turned.0[0];
            (name, crate::codec::encode(&open))
        });
        for (round, query) in [b"first", b"other"].into_iter().enumerate().take(1 + usize::from(second)) {
            let (values, cohort, _) = w.ask(query, 2).unwrap();
            assert_eq!(values, sum(&cohort, 2), "lie {i}");
            assert_eq!(cohort.contains(&11), second && round == 0, "lie {i}");
        }
        assert_eq!(rule_of(&w, 11), "SPA-3", "lie {i}");
    }
}

/// What a coordinator may show one site in a set-up, and the rule by which the site finds it out.
#[test]
fn another_directory_or_graph_for_one_site() {
    type Lie = Box<dyn FnMut(&Verified<'_>) -> (Hash, Vec<u8>)>;
    let seed = |change: fn(&mut Seed)| -> Lie {
        Box::new(move |f| {
            let mut seed: Seed = f.decode("Seed").unwrap();
            change(&mut seed);
            (f.context, crate::codec::encode(&seed))
        })
    };
    let root = |change: fn(&mut Root)| -> Lie {
        Box::new(move |f| {
            let mut root: Root = f.decode("Root").unwrap();
            change(&mut root);
            (f.context, crate::codec::encode(&root))
        })
    };
    let lies: Vec<(&str, Kind, Lie)> = vec![
        ("SPA-6", Kind::Root, root(|r| r.entries = Hash::default())),
        ("SPA-6", Kind::Root, root(|r| r.members.set(11, false))),
        ("SPA-6", Kind::Root, root(|r| r.path[0] = Hash::default())),
        ("POL-1", Kind::Root, root(|r| r.members = Bits::of(N, [11, 12]))),
        // Another root with the right entries: its number leaves for that root, and is of no use for the other.
        ("", Kind::Root, root(|r| r.randoms = Hash::default())),
        ("SPA-7", Kind::Seed, seed(|s| s.randoms[0][0] ^= 1)),
        ("SPA-7", Kind::Seed, seed(|s| s.randoms[11][0] ^= 1)),
        ("SPA-7", Kind::Seed, seed(|s| s.randoms.truncate(N - 1))),
        ("SPA-9", Kind::Seed, seed(|s| s.near[3].0.keys.seal_key[0] ^= 1)),
        ("SPA-9", Kind::Seed, seed(|s| s.near[3].1[0][0] ^= 1)),
        ("SPA-9", Kind::Seed, seed(|s| s.near.swap(0, 1))),
        ("SPA-9", Kind::Seed, seed(|s| s.committee[2].path[1] = Hash::default())),
        ("SPA-9", Kind::Seed, seed(|s| s.committee[2].proof = s.committee[3].proof)),
        ("SPA-9", Kind::Seed, seed(|s| s.committee.truncate(8))),
    ];
    for (i, (rule, kind, lie)) in lies.into_iter().enumerate() {
        let mut w = world(N, forced(N), 1, 60 + i as u64);
        change(&mut w, 11, kind, lie);
        committee(&mut w);
        if rule.is_empty() {
            assert!(w.events.iter().any(|e| matches!(e, AggregatorEvent::Lost { site: 11, .. })), "lie {i}");
        } else {
            assert_eq!(rule_of(&w, 11), rule, "lie {i}");
        }
        let (values, cohort, _) = w.ask(b"q", 2).unwrap();
        assert!(!cohort.contains(&11), "lie {i}: the site went on all the same");
        assert_eq!(values, sum(&cohort, 2), "lie {i}");
    }
}

/// A certificate of too few, or of others than the committee.
#[test]
fn a_certificate_that_is_none() {
    let cases: [fn(&mut message::Certificate); 3] = [
        |c| {
            c.signers.truncate(6);
            c.proofs.truncate(6);
        },
        |c| c.proofs.swap(0, 1),
        |c| c.signers[0] = c.signers[1],
    ];
    for (i, case) in cases.into_iter().enumerate() {
        let mut w = world(N, forced(N), 1, 80 + i as u64);
        change(&mut w, 11, Kind::Certificate, move |f| {
            let mut certificate = f.decode("Certificate").unwrap();
            case(&mut certificate);
            (f.context, crate::codec::encode(&certificate))
        });
        committee(&mut w);
        assert_eq!(rule_of(&w, 11), "SPA-10", "case {i}");
    }
}

/// A coordinator that draws again and again: every site gives its random number so many times and no more.
#[test]
fn a_graph_is_not_drawn_until_it_pleases() {
    let mut w = world(N, forced(N), 1, 90);
    let reveals = Rc::new(RefCell::new(0u32));
    let count = reveals.clone();
    w.hook = Box::new(move |wire| {
        if wire.site == 11 && wire.from_site && wire.kind == Kind::Reveal {
            *count.borrow_mut() += 1;
        }
        // Site 12's numbers never come; site 13 takes its place in the set-up after, and so on.
        let withheld = wire.from_site && wire.kind == Kind::Reveal && wire.site == 12 + *count.borrow() as u16;
        if withheld { Verdict::Drop } else { Verdict::Pass }
    });
    let error = w.ask(b"q", 2).unwrap_err();
    assert_eq!(error.rule().unwrap().0, "SPA-4", "the honest machine gives up by itself: {error}");
    assert_eq!(*reveals.borrow(), crate::limits::MAX_REVEALS);
    // A lying one that goes on finds that the sites do not.
    let session = session(&w);
    let mut open = |index: u32| {
        let run = w.journals[11].iter().find_map(|r| match r.0 {
            crate::sparse::journal::Entry::Revealed { run, .. } => Some(run),
            _ => None,
        });
        let open = message::Open { run: run.unwrap(), index, slots: 1 };
        let id = message::deck_id(&session, &open);
        let bytes = frame::frame(&w.kit.identities[0], &session, Kind::Open, &id, &open);
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = seen.clone();
        w.hook = Box::new(move |wire| {
            log.borrow_mut().push((wire.kind, wire.bytes.to_vec()));
            Verdict::Drop
        });
        w.deliver(11, &bytes);
        let advertised = seen.borrow()[0].1.clone();
        let leaf = message::leaf(11, &frame::Proof::of_own(&advertised));
        // A directory of which only site 11 is real, in its place.
        let leaves: Vec<Hash> = (0..N as u16).map(|i| if i == 11 { leaf } else { Hash([i as u8; 32]) }).collect();
        let tree = crate::sparse::merkle::Tree::new(leaves);
        let members = Bits::of(N, 0..N as u16);
        let root = Root { members, entries: tree.root(), randoms: Hash::default(), path: tree.path(11) };
        let bytes = frame::frame(&w.kit.identities[0], &session, Kind::Root, &id, &root);
        let errors = w.site_errors.len();
        w.deliver(11, &bytes);
        w.site_errors[errors..].iter().find_map(|(_, e)| e.rule()).map(|r| r.0)
    };
    assert_eq!(open(100), Some("SPA-4"));
    // Nor after a restart.
    w.kill(11, true);
    assert!(w.sites[11].is_some());
}

/// Questions that do not follow from what a site knows.
#[test]
fn questions_out_of_order() {
    let mut w = world(N, forced(N), 4, 91);
    committee(&mut w);
    w.ask(b"first", 2).unwrap();
    type Case = (&'static str, fn(&mut Ask));
    let cases: [Case; 8] = [
        ("SPA-14", |a| a.slot = 0),
        ("SPA-14", |a| a.slot = 4),
        ("SPA-15", |a| a.cohort.set(11, false)),
        ("SPA-15", |a| a.cohort = Bits::of(N, 11..40)),
        ("SPA-16", |a| a.previous_context = Hash::default()),
        ("SPA-17", |a| a.query = b"first".to_vec()),
        ("RND-3", |a| a.words = 0),
        ("SPA-15", |a| a.cohort = Bits::of(N + 8, 0..N as u16)),
    ];
    let session = session(&w);
    let (identity, coordinator) = (w.kit.identities[0].clone(), w.kit.roster.coordinator.key);
    let crate::sparse::journal::Entry::Deck(deck) =
        &w.journals[11].iter().find(|r| matches!(r.0, crate::sparse::journal::Entry::Deck(_))).unwrap().0
    else {
        unreachable!("looked for this one")
    };
    let directory = deck.directory;
    let caught: Rc<RefCell<Option<Ask>>> = Rc::default();
    let log = caught.clone();
    w.hook = Box::new(move |wire| {
        if wire.kind == Kind::Ask && wire.site == 11 {
            let frame = frame::verify(wire.bytes, &session, &coordinator, &String::new).ok().unwrap();
            *log.borrow_mut() = Some(frame.decode("Ask").unwrap());
            return Verdict::Drop;
        }
        Verdict::Pass
    });
    w.ask(b"second", 2).unwrap();
    let honest = caught.borrow().clone().unwrap();
    w.hook = Box::new(|wire| if wire.from_site { Verdict::Drop } else { Verdict::Pass });
    for (i, (rule, case)) in cases.into_iter().enumerate() {
        w.site_errors.clear();
        let mut ask = honest.clone();
        case(&mut ask);
        let context = message::round_context(&session, &directory, &ask);
        w.deliver(11, &frame::frame(&identity, &session, Kind::Ask, &context, &ask));
        assert_eq!(rule_of(&w, 11), rule, "case {i}");
    }
    w.site_errors.clear();
    w.deliver(11, &frame::frame(&identity, &session, Kind::Ask, &Hash::default(), &honest));
    assert_eq!(rule_of(&w, 11), "SPA-13");
    // The honest one is answered, though late.
    w.site_errors.clear();
    let context = message::round_context(&session, &directory, &honest);
    w.deliver(11, &frame::frame(&identity, &session, Kind::Ask, &context, &honest));
    assert!(w.site_errors.is_empty(), "{:?}", w.site_errors);
}

/// Wrong shares of two members are corrected where others are to spare, and their givers are named.
/// [SPA-23].
#[test]
fn wrong_shares_are_corrected_and_named() {
    let sizes = crate::sparse::Sizes { committee: 15, quorum: 9, ..forced(N) };
    let mut w = World::new(crate::testing::Kit::new(N, |t| t.slots = 2), crate::sparse::Shape::Forced(sizes), 92);
    println!("seed 92");
    w.answer = Box::new(|site, asked| (0..asked.words as u64).map(|p| super::value(site, p)).collect());
    let of = crate::message::session(&w.kit.terms.hash(), &w.kit.roster.hash(), crate::roster::PartyId::Coordinator);
    let session = message::session(&of, &crate::sparse::Shape::Forced(sizes));
    let liars: Vec<u16> = committee(&mut w)[..2].to_vec();
    let identities = w.kit.identities.clone();
    let told = liars.clone();
    w.hook = Box::new(move |wire| {
        if wire.kind != Kind::Unmask || !told.contains(&wire.site) {
            return if wire.from_site && wire.kind == Kind::Input && wire.site == told[0] + 1 {
                Verdict::Vanish
            } else {
                Verdict::Pass
            };
        }
        let id = &identities[usize::from(wire.site) + 2];
        let frame = frame::verify(wire.bytes, &session, &id.public(), &String::new).ok().unwrap();
        let mut unmask: Unmask = frame.decode("Unmask").unwrap();
        unmask.shares[5].as_mut().unwrap()[0] ^= 1;
        Verdict::Replace(frame::frame(id, &session, Kind::Unmask, &frame.context, &unmask))
    });
    let (values, cohort, _) = w.ask(b"q", 3).unwrap();
    assert_eq!(values, sum(&cohort, 3));
    let mut named: Vec<u16> = w
        .events
        .iter()
        .filter_map(|e| match e {
            AggregatorEvent::WrongShare { holder, owner: 5 } => Some(*holder),
            _ => None,
        })
        .collect();
    named.sort_unstable();
    assert_eq!(named, liars);
}

/// A site whose shares open to something else than it committed to: the round is lost, and says whose they are.
#[test]
fn a_dealer_of_wrong_shares_is_named() {
    let mut w = world(N, forced(N), 2, 93);
    let fake = vec![Hash([7; 32]); 2];
    let list = fake.clone();
    change(&mut w, 11, Kind::Advertise, move |f| {
        let mut keys: Advertise = f.decode("Advertise").unwrap();
        keys.commitments = commitments_hash(&list);
        (f.context, crate::codec::encode(&keys))
    });
    // The site itself holds to what it said; so its own leaf is another and it would stop. It plays along here.
    let error = w.ask(b"q", 2);
    let (_, cohort, _) = error.unwrap();
    assert!(!cohort.contains(&11));
    let mut w = world(N, forced(N), 2, 94);
    change(&mut w, 11, Kind::Shares, move |f| {
        let mut shares: Shares = f.decode("Shares").unwrap();
        shares.commitments.clone_from(&fake);
        (f.context, crate::codec::encode(&shares))
    });
    let (_, cohort, _) = w.ask(b"q", 2).unwrap();
    assert!(!cohort.contains(&11));
    let lost = w.events.iter().any(|e| matches!(e, AggregatorEvent::Lost { site: 11, .. }));
    assert!(lost, "{:?}", w.events);
}

/// Boxes that do not open have no holder; a site with too few holders is not asked.
/// [SPA-12].
#[test]
fn boxes_that_do_not_open() {
    let mut w = world(N, forced(N), 2, 95);
    change(&mut w, 11, Kind::Shares, move |f| {
        let mut shares: Shares = f.decode("Shares").unwrap();
        shares.boxes.iter_mut().filter(|b| !b.is_empty()).for_each(|b| b[0] ^= 1);
        (f.context, crate::codec::encode(&shares))
    });
    let (values, cohort, _) = w.ask(b"q", 2).unwrap();
    assert!(!cohort.contains(&11) && cohort.len() == N - 1);
    assert_eq!(values, sum(&cohort, 2));
}

/// A site that reveals another number than it committed to is out, and the set-up begins again without it.
#[test]
fn another_random_number_than_committed() {
    let mut w = world(N, forced(N), 2, 96);
    change(&mut w, 11, Kind::Reveal, move |f| {
        let mut reveal: Reveal = f.decode("Reveal").unwrap();
        reveal.random[0] ^= 1;
        (f.context, crate::codec::encode(&reveal))
    });
    let (values, cohort, _) = w.ask(b"q", 2).unwrap();
    assert_eq!((values, cohort.len()), (sum(&cohort, 2), N - 1));
    let named = |e: &AggregatorEvent| format!("{e:?}").contains("SPA-24");
    assert!(w.events.iter().any(|e| matches!(e, AggregatorEvent::Lost { site: 11, .. }) && named(e)));
}

/// A vector of another length, or another site's: its sender is out, and the total is the others'.
#[test]
fn inputs_that_are_none() {
    for copied in [false, true] {
        let mut w = world(N, forced(N), 2, 97);
        let seen: Rc<RefCell<Option<Vec<u8>>>> = Rc::default();
        let log = seen.clone();
        change(&mut w, 11, Kind::Input, move |f| {
            let rest = seen.borrow().clone().filter(|_| copied);
            (f.context, rest.unwrap_or_else(|| f.rest[8..].to_vec()))
        });
        let mut lie = std::mem::replace(&mut w.hook, Box::new(|_| Verdict::Pass));
        w.hook = Box::new(move |wire| {
            if wire.from_site && wire.kind == Kind::Input && wire.site == 3 {
                let end = wire.bytes.len() - 64;
                *log.borrow_mut() = Some(wire.bytes[40..end].to_vec());
            }
            lie(wire)
        });
        let (values, cohort, missing) = w.ask(b"q", 2).unwrap();
        assert_eq!((values, missing), (sum(&cohort, 2), vec![11]));
        assert!(w.events.iter().any(|e| format!("{e:?}").contains("SPA-24")));
    }
    let _ = list_hash("unused", &[]);
}
