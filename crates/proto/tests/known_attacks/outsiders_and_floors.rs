//! Timing, floors, carriers and long runs: pitfalls 17 to 22 of the table in `mod.rs`.

use std::{fs, marker::PhantomData, path::Path};

use veilsum_proto::suite::Secret;
use veilsum_testkit::prelude::*;

use crate::sources::sources;

/// Whether a type has a trait: the inherent constant, where its bound holds, hides that of the trait.
macro_rules! implements {
    ($type:ty: $($bound:tt)+) => {{
        // Used where the bound does not hold.
        #[allow(dead_code)]
        trait Otherwise {
            const YES: bool = false;
        }
        struct Probe<T>(PhantomData<T>);
        impl<T> Otherwise for Probe<T> {}
        #[allow(dead_code)]
        impl<T: $($bound)+> Probe<T> {
            const YES: bool = true;
        }
        <Probe<$type>>::YES
    }};
}

/// **17.** Code whose time depends on secrets, and secrets that are copied, printed or left in memory. Section 15 leaves
/// constant time to the libraries; the core must not undo it. The test shows that secrets have no `==`, no `Debug`, no
/// `Clone` and are wiped on drop, and reads the sources for the libraries' variable-time functions. Fails if one of those
/// is derived, or a `vartime` function is called.
#[test]
fn timing_of_code_that_depends_on_secrets() {
    // The probe itself can say yes.
    assert!(implements!(Hash: PartialEq) && implements!(Hash: Clone) && implements!(Hash: std::fmt::Debug));
    assert!(!implements!(Secret: PartialEq) && !implements!(Identity: PartialEq));
    assert!(!implements!(Secret: std::fmt::Debug) && !implements!(Identity: std::fmt::Debug));
    assert!(!implements!(Secret: Clone) && !implements!(Identity: Clone));
    assert!(implements!(Secret: zeroize::ZeroizeOnDrop));
    assert!(std::mem::needs_drop::<Secret>() && std::mem::needs_drop::<Identity>());
    for (name, text) in sources() {
        // Commitments are to masked words, which are no secret from whoever is to check them.
        assert!(name.ends_with("commit.rs") || !text.contains("vartime"), "{name}");
        let share = text.split("pub(crate) struct Share(").next().filter(|before| before.len() < text.len());
        if let Some(before) = share {
            assert!(before.ends_with("#[derive(Zeroize, ZeroizeOnDrop)]\n"), "a share is wiped, and nothing else");
        }
    }
}

/// **18.** With too few sites left a total is nearly one site's vector. A site has a floor of its own ([POL-1],
/// [SUR-3]) that no plan and no aggregator lowers. The test asks for small cohorts and survivors; an honest
/// aggregator that is left with too few stops, as `protocol/vectors/v4/bad_round.json` has it. Fails if `policy::least` takes the plan's word alone, or
/// survivors are not counted.
#[test]
fn pol_1_too_few_sites_left() {
    let mut hub = Hub::new(7, 118, |_| {});
    let mut config = hub.kit.site(2);
    config.floor.min_cohort = 6;
    hub.sites[2] = Site::new(config).unwrap();
    let all = everybody(7);
    let deck = hub.deck(0, 4, &all);
    let ask = hub.question(&deck, 0, &all, Hash::default(), b"q");
    let round = hub.ask(&deck, &ask, &all).unwrap();
    let (five, four) = (hub.survivors(&round, &everybody(5)), hub.survivors(&round, &everybody(4)));
    refuses(&mut hub, 2, &five, Rule::Sur3);
    refuses(&mut hub, 0, &four, Rule::Sur3);
    assert_eq!(hub.reply(0, &five).unwrap().kind, Kind::ConsistencyCheck, "another site's floor is its own affair");
    let ask = hub.question(&deck, 1, &everybody(5), round.context, b"r");
    let (_, frame) = hub.ask_frame(&deck, &ask);
    refuses(&mut hub, 2, &frame, Rule::Pol1);
}

/// **19.** Whoever ends TLS before the aggregator reads and forges what passes. Every frame is signed end to end
/// ([FRM-4], [KEX-3]) and shares are sealed end to end ([SHR-2]). The test
/// searches the boxes for the shares; every kind of frame is signed by others in `changed_messages_to_*.rs`. Fails if a box is not
/// encrypted.
#[test]
fn shr_2_who_ends_tls_reads_no_share() {
    let mut hub = Hub::new(4, 119, |_| {});
    let all = everybody(4);
    let (id, directory) = hub.advertise(0, 4, &all);
    let (hash, boxes) = hub.seal(&id, &directory).unwrap();
    for s in &all {
        let frame = hub.delivery(&hash, &boxes, *s);
        hub.reply(*s, &frame).unwrap();
    }
    let sealed: Vec<u8> = boxes.values().flat_map(|s| &s.1).flat_map(|b| b.1.clone()).collect();
    assert_eq!(sealed.len(), 12 * (4 * 32 + 16));
    for s in &all {
        let own = Secrets::of(&hub, *s, 0);
        let inside = own.held.iter().flatten().chain(&own.seeds).chain(own.pairs.iter().map(|(_, pair)| pair));
        inside.for_each(|secret| assert!(!holds(&sealed, secret)));
    }
}

/// **20.** Totals drift and memory grows over hundreds of rounds. Every total is exact, keys of old decks go ([RND-8]),
/// and a journal keeps nothing of them ([JRN-4]). The test plays 240 rounds over 15 decks with
/// loss, delay, crashes and three sites that vanish. Fails if an error carries over into the next round, or a journal
/// keeps a deck that is done.
#[test]
fn jrn_4_drift_and_memory_over_hundreds_of_rounds() {
    const ROUNDS: u16 = 240;
    let mut w = World::new(Kit::new(9, |t| t.slots = 16), 120);
    w.network = Network { delay: 20, loss: 10, duplicates: 20 };
    let asked = Rc::new(Cell::new(0));
    let round = asked.clone();
    let mut state = 120u64;
    w.hook = Box::new(move |wire| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let leaves = [(50, 8, Kind::MaskedInput), (120, 3, Kind::Survivors), (190, 5, Kind::Unmask)];
        // In that round, or in the next where its frame of that round came when the total was open already.
        if leaves.iter().any(|(at, site, kind)| round.get() >= *at && (wire.site, wire.kind) == (*site, *kind)) {
            return Verdict::Vanish;
        }
        let in_round = matches!(wire.kind, Kind::Ask | Kind::MaskedInput | Kind::Survivors | Kind::Unmask);
        if in_round && (state >> 33) % 1000 < 2 { Verdict::Crash } else { Verdict::Pass }
    });
    let (mut bytes, mut present) = (Vec::new(), Vec::new());
    for r in 0..ROUNDS {
        asked.set(r);
        let query = r.to_le_bytes();
        let (values, cohort, _) = w.ask(&query, WORDS).unwrap_or_else(|e| panic!("round {r}: {e}"));
        assert_eq!(values, sum(&cohort, &query), "round {r}");
        bytes.push(w.journals[0].iter().map(|entry| entry.to_bytes().len()).max().unwrap_or(0));
        present.push(cohort.len());
        let decks = w.journals.iter().map(|j| j.iter().filter(|entry| entry.kind() == RecordKind::Deck).count()).max();
        assert!(decks.unwrap_or(0) <= 2, "round {r}: {decks:?} decks");
        let others = w.journals[0].len();
        assert!(others <= 3 * 2 * 16 + 4, "round {r}: {others} entries");
    }
    assert_eq!((present[0], *present.last().unwrap()), (9, 6), "three left, nobody else");
    assert!(bytes.iter().max() <= bytes[..32].iter().max(), "no entry grows: {bytes:?}");
    let decks = w.events.iter().filter(|e| matches!(e, veilsum_proto::aggregator::Event::DeckReady { .. })).count();
    assert!(decks >= 15, "{decks}");
}

/// **21.** Row counts, losses or metrics travel in the clear beside the mask. What a site sends is listed in section 10.4;
/// nothing but the masked words depends on its values. The test plays one round twice from one seed with other values:
/// every other byte of every site's frames is the same, and the words differ by exactly what the values do. Fails if a
/// frame of a site carries anything that comes from its rows. (`Disclosure` has no name for such a thing; the match below
/// would not compile.)
#[test]
fn counts_beside_the_mask_in_the_clear() {
    let frames = |shift: u64| {
        let mut w = World::new(Kit::new(5, |_| {}), 121);
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = seen.clone();
        w.answer = Box::new(move |site, asked| vec![u64::from(site).wrapping_mul(shift); asked.words]);
        w.hook = Box::new(move |wire| {
            if let Some(label) = wire.discloses {
                let expected = match label {
                    Disclosure::PublicKeys => vec![Kind::AdvertiseKeys],
                    Disclosure::Acknowledgement => vec![Kind::ShareAck],
                    Disclosure::EncapsulatedSecrets => vec![Kind::AcceptDirectory],
                    Disclosure::SealedShares => vec![Kind::ShareKeys],
                    Disclosure::MaskedWords => vec![Kind::MaskedInput],
                    Disclosure::RoundSeeds => vec![Kind::ConsistencyCheck],
                    Disclosure::SelfMaskShares => vec![Kind::Unmask],
                    Disclosure::Refusal => vec![Kind::ShareComplaint, Kind::Refusal],
                };
                assert!(expected.contains(&wire.kind), "{label:?}: {:?}", wire.kind);
                log.borrow_mut().push((wire.site, wire.kind, wire.bytes.to_vec()));
            }
            Verdict::Pass
        });
        w.ask(b"q", 6).unwrap();
        seen.take()
    };
    let (one, other) = (frames(1), frames(0x0123_4567_89ab_cdef));
    assert_eq!(one.len(), other.len());
    let mut compared = 0;
    for ((site, kind, a), (to, of, b)) in one.iter().zip(&other) {
        assert_eq!((site, kind, a.len()), (to, of, b.len()));
        if *kind != Kind::MaskedInput {
            // Shares are signed for the masked words of all.
            let (a, b) = if *kind == Kind::Unmask { (&parts(a).rest, &parts(b).rest) } else { (a, b) };
            assert_eq!(a, b, "{kind:?} of site {site}");
            continue;
        }
        assert_eq!(parts(a).context, parts(b).context);
        let by = u64::from(*site).wrapping_mul(0x0123_4567_89ab_cdee);
        let shifted: Vec<u64> = words(&parts(a).rest).iter().map(|v| v.wrapping_add(by)).collect();
        assert_eq!(words(&parts(b).rest), shifted);
        compared += 1;
    }
    assert_eq!(compared, 5);
}

/// **22.** One secret key lies in every client's kit, or the class that encrypts has a switch that does not. Each site has
/// an identity of its own ([ROS-4]) and draws its own secrets ([KEX-2]); the core has no feature but `testing`, which adds
/// no way to send. The test finds each seed at one site and each pair secret at two, and reads manifest and sources.
/// Fails if a secret is shared further, or a feature or switch of such a name appears.
#[test]
fn ros_4_one_key_for_all_and_a_switch_that_masks_nothing() {
    let (hub, ..) = started(6, 122);
    let mut keys: BTreeMap<[u8; 32], usize> = BTreeMap::new();
    let mut seeds = BTreeSet::new();
    for s in 0..6 {
        let own = Secrets::of(&hub, s, 0);
        own.pairs.iter().for_each(|(_, pair)| *keys.entry(*pair).or_default() += 1);
        seeds.extend(own.seeds);
    }
    // Fifteen pairs.
    let held_by = |n| keys.values().filter(|holders| **holders == n).count();
    assert_eq!((held_by(2), keys.len()), (15, 15));
    assert_eq!(seeds.len(), 6 * 4);

    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let features = manifest.split("[features]").nth(1).and_then(|t| t.split("\n[").next()).unwrap();
    let names: Vec<&str> =
        features.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(" = ")).map(|l| l.0).collect();
    assert_eq!(names, ["parallel", "testing"]);
    for (name, text) in sources() {
        for word in ["mock", "dummy", "insecure", "no_mask", "plaintext", "option_env!", "env::var"] {
            assert!(!text.contains(word), "{name} has a {word}");
        }
        // `parallel` says how many threads a mask is spread over.
        let text = if name.ends_with("spread.rs") { text.replace("feature = \"parallel\"", "") } else { text };
        if !name.ends_with("lib.rs") {
            assert!(!text.contains("cfg(feature") && !text.contains("feature = "), "{name} depends on a feature");
        }
    }
}
