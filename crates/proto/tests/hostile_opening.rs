//! A coordinator that opens totals that are none: every lie is refused by the site that is told it, before it answers
//! anything more, and the honest opening is taken ([OPN-1] to [OPN-8]).

mod hostile_kit;

use std::{cell::RefCell, rc::Rc};

use hostile_kit::{parts, raw};
use serde::{Deserialize, Serialize};
use veilsum_proto::{
    Error, codec,
    identity::Signature,
    message::Kind,
    suite::{self, Hash},
    testing::{Kit, Verdict, World},
};

#[derive(Clone, Serialize, Deserialize)]
struct Input {
    commitment: [u8; 32],
    digest: Hash,
    signature: Signature,
}

#[derive(Clone, Serialize, Deserialize)]
struct Check {
    seeds: Vec<[u8; 32]>,
    signature: Signature,
}

/// The message, written a second time.
#[derive(Clone, Serialize, Deserialize)]
struct Opening {
    alive: Vec<u16>,
    inputs: Vec<Input>,
    seeds: Vec<[u8; 32]>,
    others: Vec<Hash>,
    checks: Vec<Check>,
    low: Vec<u64>,
    high: Vec<u16>,
}

const WORDS: usize = 5;

/// What the coordinator does to the opening that site 0 is shown, and the rule under which site 0 must refuse it.
type Lie = (&'static str, &'static str, fn(&mut Opening));

const LIES: &[Lie] = &[
    ("a number added to the total", "OPN-4", |o| o.low[2] = o.low[2].wrapping_add(1)),
    ("a carry added", "OPN-4", |o| o.high[1] = if o.high[1] == 0 { 1 } else { 0 }),
    ("more carries than inputs", "OPN-2", |o| o.high[0] = u16::MAX),
    ("another commitment", "OPN-4", |o| o.inputs[1].commitment = o.inputs[2].commitment),
    ("a commitment that is no point", "OPN-4", |o| o.inputs[1].commitment = [0xff; 32]),
    ("a number added and a commitment to fit it", "OPN-5", |o| {
        // The commitment to the vector (1, 0, 0, ...) is the first generator; the coordinator adds it to one input.
        use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
        let mut uniform = [0; 64];
        for half in 0..2u8 {
            let part = suite::hash("generator", &[&0u64.to_le_bytes(), &[half]]).0;
            uniform[32 * usize::from(half)..][..32].copy_from_slice(&part);
        }
        let point = CompressedRistretto(o.inputs[1].commitment).decompress().unwrap();
        let (sum, over) = o.low[0].overflowing_add(1);
        (o.low[0], o.high[0]) = (sum, o.high[0] + u16::from(over));
        o.inputs[1].commitment = (point + RistrettoPoint::from_uniform_bytes(&uniform)).compress().to_bytes();
    }),
    ("another hash of an input", "OPN-5", |o| o.inputs[1].digest = Hash([1; 32])),
    ("two inputs in each other's place", "OPN-5", |o| o.inputs.swap(1, 2)),
    ("another input of the site itself", "OPN-5", |o| o.inputs[0].digest = Hash([1; 32])),
    ("another self-mask", "OPN-3", |o| o.seeds[1][0] ^= 1),
    ("a self-mask that is no scalar", "OPN-3", |o| o.seeds[1] = [0xff; 32]),
    ("two self-masks in each other's place", "OPN-3", |o| o.seeds.swap(1, 2)),
    ("a survivor left out", "OPN-2", |o| {
        o.alive.pop();
        o.inputs.pop();
        o.seeds.pop();
        o.checks.pop();
    }),
    ("a survivor twice", "OPN-2", |o| o.alive[1] = o.alive[2]),
    ("a survivor that was not asked", "OPN-2", |o| *o.alive.last_mut().unwrap() = 60),
    ("an input too few", "OPN-2", |o| {
        o.inputs.pop();
    }),
    ("a self-mask too few", "OPN-2", |o| {
        o.seeds.pop();
    }),
    ("a self-mask too many", "OPN-2", |o| o.seeds.push([0; 32])),
    ("a commitment of a member too many", "OPN-3", |o| o.others.push(Hash([0; 32]))),
    ("a word too few", "OPN-2", |o| {
        o.low.pop();
    }),
    ("a carry too few", "OPN-2", |o| {
        o.high.pop();
    }),
    ("no survivors", "OPN-2", |o| {
        o.alive.clear();
        o.inputs.clear();
        o.seeds.clear();
        o.checks.clear();
    }),
];

/// Lies about what only a round with a missing site has.
const LIES_WITH_A_DROP: &[Lie] = &[
    ("another seed", "OPN-6", |o| o.checks[1].seeds[0][0] ^= 1),
    ("no seeds", "OPN-2", |o| o.checks.clear()),
    ("a seed too many", "OPN-2", |o| o.checks[1].seeds.push([0; 32])),
    ("two checks in each other's place", "OPN-6", |o| o.checks.swap(1, 2)),
    ("another commitment of the missing site", "OPN-3", |o| o.others[0] = Hash([0; 32])),
    ("no commitment of the missing site", "OPN-3", |o| o.others.clear()),
];

fn honest(n: usize, seed: u64) -> World {
    let mut w = World::new(Kit::new(n, |_| {}), seed);
    w.answer = Box::new(|site, asked| {
        let round = u64::from(asked.slot.1) << 40;
        (0..asked.words).map(|i| (round + i as u64).wrapping_sub(7 * u64::from(site))).collect()
    });
    w
}

/// Errors of site 0 when its opening of the first round is changed so and signed again; one site misses the round where
/// `drop` says so.
fn lied_to(lie: fn(&mut Opening), drop: bool) -> Vec<Error> {
    let mut w = honest(6, 11);
    let (hub, session) = (w.kit.identities[0].clone(), w.session());
    w.hook = Box::new(move |wire| match wire.kind {
        Kind::MaskedInput if drop && wire.site == 5 => Verdict::Vanish,
        Kind::Opening if wire.site == 0 => {
            let frame = parts(wire.bytes);
            let mut opening: Opening = frame.read();
            lie(&mut opening);
            Verdict::Replace(raw(&hub, &session, Kind::Opening, &frame.context, &codec::encode(&opening)))
        }
        _ => Verdict::Pass,
    });
    w.ask(b"first", WORDS).unwrap();
    // Site 0 answers the second question no more, so the others go on without it, or the run ends.
    let _ = w.ask(b"second", WORDS);
    w.site_errors.into_iter().filter(|(site, _)| *site == 0).map(|(_, e)| e).collect()
}

#[test]
fn every_lie_is_refused_and_named() {
    let both = LIES.iter().map(|lie| (lie, false)).chain(LIES.iter().chain(LIES_WITH_A_DROP).map(|lie| (lie, true)));
    for ((what, rule, lie), drop) in both {
        let errors = lied_to(*lie, drop);
        let first = errors.first().unwrap_or_else(|| panic!("{what} (drop: {drop}): accepted"));
        assert!(matches!(first, Error::PeerMisbehaved { who, .. } if who == "hub"), "{what}: {first}");
        assert_eq!(first.rule().unwrap().0, *rule, "{what} (drop: {drop}): {first}");
        // And the question that came with it is not answered.
        assert!(errors.iter().any(|e| e.rule().unwrap().0 == "OPN-7"), "{what}: {errors:?}");
    }
}

#[test]
fn an_unchanged_opening_signed_again_is_taken() {
    assert_eq!(lied_to(|_| {}, false), []);
    assert_eq!(lied_to(|_| {}, true), []);
}

/// What the sites recompute is the coordinator's total, with and without missing sites, and over more sites than signatures
/// are looked at.
#[test]
fn sites_recompute_the_total() {
    for (n, drop) in [(3, false), (7, true), (40, true)] {
        let mut w = honest(n, n as u64);
        let last = n as u16 - 1;
        w.hook = Box::new(move |wire| match wire.kind {
            Kind::MaskedInput if drop && wire.site == last => Verdict::Vanish,
            Kind::ConsistencyCheck if drop && wire.site == last - 1 => Verdict::Vanish,
            _ => Verdict::Pass,
        });
        let mut totals = Vec::new();
        for round in 0..3u8 {
            let (values, cohort, _) = w.ask(&[round], WORDS).unwrap();
            totals.push((values, cohort));
        }
        w.close();
        for (values, cohort) in totals {
            let of_round = w.opened.iter().filter(|(_, v, over)| *v == values && *over == cohort).count();
            assert_eq!(of_round, cohort.len(), "n = {n}");
        }
        assert_eq!(w.site_errors, []);
    }
}

#[test]
fn a_question_without_the_opening_before_it_is_not_answered() {
    let mut w = honest(5, 2);
    w.hook = Box::new(|wire| if wire.kind == Kind::Opening { Verdict::Drop } else { Verdict::Pass });
    w.ask(b"first", WORDS).unwrap();
    assert!(w.ask(b"second", WORDS).is_err());
    assert!(w.site_errors.iter().all(|(_, e)| e.rule().unwrap().0 == "OPN-7") && !w.site_errors.is_empty());
}

/// The coordinator opens the true total to everybody but asks on as if another had been opened.
#[test]
fn a_question_that_names_another_opening_is_not_answered() {
    let mut w = honest(5, 3);
    let (hub, session) = (w.kit.identities[0].clone(), w.session());
    let deck = Rc::new(RefCell::new(Hash::default()));
    let seen = deck.clone();
    w.hook = Box::new(move |wire| {
        let frame = parts(wire.bytes);
        if wire.kind == Kind::DirectoryCertificate {
            *seen.borrow_mut() = frame.context;
        }
        if wire.kind != Kind::Ask || wire.site != 0 {
            return Verdict::Pass;
        }
        let mut ask: hostile_kit::Ask = frame.read();
        if ask.previous_total == Hash::default() {
            return Verdict::Pass;
        }
        ask.previous_total = Hash([5; 32]);
        let context = hostile_kit::round_context(&session, &seen.borrow(), &ask);
        Verdict::Replace(raw(&hub, &session, Kind::Ask, &context, &codec::encode(&ask)))
    });
    w.ask(b"first", WORDS).unwrap();
    let _ = w.ask(b"second", WORDS);
    let errors: Vec<_> = w.site_errors.iter().map(|(site, e)| (*site, e.rule().unwrap().0)).collect();
    assert_eq!(errors.first(), Some(&(0, "OPN-7")), "{errors:?}");
}

/// [OPN-8]: whoever signs two openings of one round is caught by whoever sees both.
#[test]
fn two_openings_of_one_round() {
    let mut w = honest(5, 4);
    let (hub, session) = (w.kit.identities[0].clone(), w.session());
    let mut shown = 0;
    w.hook = Box::new(move |wire| {
        if wire.kind != Kind::Opening || wire.site != 0 {
            return Verdict::Pass;
        }
        shown += 1;
        if shown == 1 {
            return Verdict::Pass;
        }
        let frame = parts(wire.bytes);
        let mut opening: Opening = frame.read();
        opening.low[0] ^= 1;
        Verdict::Replace(raw(&hub, &session, Kind::Opening, &frame.context, &codec::encode(&opening)))
    });
    w.network.duplicates = 0;
    w.ask(b"first", WORDS).unwrap();
    w.close();
    w.close();
    let errors: Vec<_> = w.site_errors.iter().map(|(site, e)| (*site, e.rule().unwrap().0)).collect();
    assert_eq!(errors, [(0, "OPN-8")]);
}

/// [INP-4]: a site that commits to another vector than it sends is out, by name, and the total is of the others.
#[test]
fn a_site_that_commits_to_another_vector_is_named() {
    let mut w = honest(6, 5);
    let (liar, session) = (w.kit.identities[2 + 3].clone(), w.session());
    w.hook = Box::new(move |wire| {
        if wire.kind != Kind::MaskedInput || wire.site != 3 {
            return Verdict::Pass;
        }
        let mut frame = parts(wire.bytes);
        frame.rest[32] ^= 1;
        Verdict::Replace(raw(&liar, &session, Kind::MaskedInput, &frame.context, &frame.rest))
    });
    let (values, cohort, missing) = w.ask(b"first", WORDS).unwrap();
    assert_eq!((cohort.len(), missing), (5, vec![3]));
    let sites: u64 = cohort.iter().map(|s| u64::from(*s)).sum();
    assert_eq!(values[0], 0u64.wrapping_sub(7 * sites));
    let named = w.events.iter().any(|e| format!("{e:?}").contains("INP-4") && format!("{e:?}").contains("site-3"));
    assert!(named, "{:?}", w.events);
}
