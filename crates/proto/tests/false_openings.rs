//! A coordinator that opens totals that are none: every lie is refused by the site that is told it, before it answers
//! anything more, and the honest opening is taken ([OPN-1] to [OPN-8]).

use std::{cell::RefCell, rc::Rc};

use veilsum_proto::{
    Error, Rule,
    aggregator::Event,
    codec,
    identity::Signature,
    message::Kind,
    recompute::{Blame, Documents, Opened},
    roster::PartyId,
    suite::{self, Hash},
    vectors_api::commit,
};
use veilsum_testkit::federation::{Kit, Verdict, World};
use veilsum_testkit::wire::{
    Ask, OpenedCheck, OpenedInput, Opening, Proof, parts, raw, round_context, survivors_context,
};

const WORDS: usize = 5;

/// What the coordinator does to the opening that site 0 is shown, and the rule under which site 0 must refuse it.
type Lie = (&'static str, Rule, fn(&mut Opening));

const LIES: &[Lie] = &[
    ("a number added to the total", Rule::Opn4, |o| o.low[2] = o.low[2].wrapping_add(1)),
    ("a carry added", Rule::Opn4, |o| o.high[1] = if o.high[1] == 0 { 1 } else { 0 }),
    ("more carries than inputs", Rule::Opn2, |o| o.high[0] = u16::MAX),
    ("another commitment", Rule::Opn4, |o| o.inputs[1].commitment = o.inputs[2].commitment),
    ("a commitment that is no point", Rule::Opn4, |o| o.inputs[1].commitment = [0xff; 32]),
    ("a number added and a commitment to fit it", Rule::Opn5, |o| {
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
    ("another hash of an input", Rule::Opn5, |o| o.inputs[1].digest = Hash([1; 32])),
    ("two inputs in each other's place", Rule::Opn5, |o| o.inputs.swap(1, 2)),
    ("another input of the site itself", Rule::Opn5, |o| o.inputs[0].digest = Hash([1; 32])),
    ("another self-mask", Rule::Opn3, |o| o.seeds[1][0] ^= 1),
    ("a self-mask that is no scalar", Rule::Opn3, |o| o.seeds[1] = [0xff; 32]),
    ("two self-masks in each other's place", Rule::Opn3, |o| o.seeds.swap(1, 2)),
    ("a survivor left out", Rule::Opn2, |o| {
        o.alive.pop();
        o.inputs.pop();
        o.seeds.pop();
        o.checks.pop();
    }),
    ("a survivor twice", Rule::Opn2, |o| o.alive[1] = o.alive[2]),
    ("a survivor that was not asked", Rule::Opn2, |o| *o.alive.last_mut().unwrap() = 60),
    ("a survivor twice with all that belongs to it", Rule::Opn2, |o| beside(o, 2, o.alive[2])),
    ("a survivor that was not asked beside the others", Rule::Opn2, |o| beside(o, o.alive.len() - 1, 60)),
    ("an input too few", Rule::Opn2, |o| {
        o.inputs.pop();
    }),
    ("a self-mask too few", Rule::Opn2, |o| {
        o.seeds.pop();
    }),
    ("a self-mask too many", Rule::Opn2, |o| o.seeds.push([0; 32])),
    ("a commitment of a member too many", Rule::Opn3, |o| o.others.push(Hash([0; 32]))),
    ("a word too few", Rule::Opn2, |o| {
        o.low.pop();
    }),
    ("a carry too few", Rule::Opn2, |o| {
        o.high.pop();
    }),
    ("no survivors", Rule::Opn2, |o| {
        o.alive.clear();
        o.inputs.clear();
        o.seeds.clear();
        o.checks.clear();
    }),
];

/// Lies about what only a round without missing sites has.
const LIES_WITH_EVERYBODY: &[Lie] = &[
    ("nobody's agreement", Rule::Opn2, |o| o.agreed.clear()),
    ("too few agreements", Rule::Opn2, |o| {
        o.agreed.pop();
    }),
    ("an agreement twice", Rule::Opn2, |o| o.agreed[1] = o.agreed[0]),
    ("an agreement of a stranger", Rule::Opn2, |o| o.agreed.last_mut().unwrap().0 = 60),
    ("an agreement of another", Rule::Opn6, |o| o.agreed[1].1 = o.agreed[0].1),
    ("an agreement to something else", Rule::Opn6, |o| o.agreed[0].1.rest = Hash([1; 32])),
];

/// Lies about what only a round with a missing site has.
const LIES_WITH_A_DROP: &[Lie] = &[
    ("another seed", Rule::Opn6, |o| o.checks[1].seeds[0][0] ^= 1),
    ("no seeds", Rule::Opn2, |o| o.checks.clear()),
    ("a seed too many", Rule::Opn2, |o| o.checks[1].seeds.push([0; 32])),
    ("agreements beside checks", Rule::Opn2, |o| {
        o.agreed.push((0, Proof { rest: Hash([1; 32]), signature: o.checks[0].signature }));
    }),
    ("two checks in each other's place", Rule::Opn6, |o| o.checks.swap(1, 2)),
    ("another commitment of the missing site", Rule::Opn3, |o| o.others[0] = Hash([0; 32])),
    ("no commitment of the missing site", Rule::Opn3, |o| o.others.clear()),
];

/// One more survivor after the one at `at`, with a copy of everything that is opened of that one.
fn beside(o: &mut Opening, at: usize, site: u16) {
    o.alive.insert(at + 1, site);
    o.inputs.insert(at + 1, o.inputs[at].clone());
    o.seeds.insert(at + 1, o.seeds[at]);
    if let Some(check) = o.checks.get(at).cloned() {
        o.checks.insert(at + 1, check);
    }
}

fn honest(n: usize, seed: u64) -> World {
    let mut w = World::new(Kit::new(n, |_| {}), seed);
    w.answer = Box::new(|site, asked| {
        let round = u64::from(asked.slot.1) << 40;
        (0..asked.words).map(|i| (round + i as u64).wrapping_sub(7 * u64::from(site))).collect()
    });
    w
}

/// What the coordinator said to site 0 of one round, for a third party.
#[derive(Clone, Default)]
struct Shown {
    directory: Hash,
    ask: Vec<u8>,
    opening: Vec<u8>,
}

impl Shown {
    fn judged(&self, kit: &Kit) -> Result<Result<Opened, Blame>, Error> {
        documents(kit).opened(&self.directory, &self.ask, &self.opening)
    }
}

fn documents(kit: &Kit) -> Documents<'_> {
    Documents { roster: &kit.roster, terms: &kit.terms }
}

/// Errors of site 0 when its opening of the first round is changed so and signed again, and what it was shown of that round;
/// one site misses the round where `drop` says so.
fn lied_to(lie: fn(&mut Opening), drop: bool) -> (Vec<Error>, Shown, World) {
    let mut w = honest(6, 11);
    let (hub, session) = (w.kit.identities[0].clone(), w.session());
    let kept = Rc::new(RefCell::new(Shown::default()));
    let shown = kept.clone();
    w.hook = Box::new(move |wire| match wire.kind {
        Kind::MaskedInput if drop && wire.site == 5 => Verdict::Vanish,
        Kind::DirectoryCertificate => {
            shown.borrow_mut().directory = parts(wire.bytes).context;
            Verdict::Pass
        }
        Kind::Ask if wire.site == 0 && shown.borrow().ask.is_empty() => {
            shown.borrow_mut().ask = wire.bytes.to_vec();
            Verdict::Pass
        }
        Kind::Opening if wire.site == 0 => {
            let frame = parts(wire.bytes);
            let mut opening: Opening = frame.read();
            lie(&mut opening);
            let lying = raw(&hub, &session, Kind::Opening, &frame.context, &codec::encode(&opening));
            let mut shown = shown.borrow_mut();
            if shown.opening.is_empty() {
                shown.opening.clone_from(&lying);
            }
            Verdict::Replace(lying)
        }
        _ => Verdict::Pass,
    });
    w.ask(b"first", WORDS).unwrap();
    // Site 0 answers the second question no more, so the others go on without it, or the run ends.
    let _ = w.ask(b"second", WORDS);
    let errors = w.site_errors.iter().filter(|(site, _)| *site == 0).map(|(_, e)| e.clone()).collect();
    let shown = kept.borrow().clone();
    (errors, shown, w)
}

#[test]
fn every_lie_is_refused_and_named() {
    let whole = LIES.iter().chain(LIES_WITH_EVERYBODY).map(|lie| (lie, false));
    for ((what, rule, lie), drop) in whole.chain(LIES.iter().chain(LIES_WITH_A_DROP).map(|lie| (lie, true))) {
        let (errors, shown, w) = lied_to(*lie, drop);
        let first = errors.first().unwrap_or_else(|| panic!("{what} (drop: {drop}): accepted"));
        assert!(matches!(first, Error::PeerMisbehaved { who, .. } if who == "hub"), "{what}: {first}");
        assert_eq!(first.rule().unwrap(), *rule, "{what} (drop: {drop}): {first}");
        // And the question that came with it is not answered.
        assert!(errors.iter().any(|e| e.rule().unwrap() == Rule::Opn7), "{what}: {errors:?}");
        // Whoever holds roster and plan sees the same in the two frames; only what was committed to before the first round
        // is known to the deck alone.
        match shown.judged(&w.kit).unwrap_or_else(|e| panic!("{what}: proves nothing: {e}")) {
            Err(blame) => assert_eq!((blame.culprit, blame.rule), (PartyId::Coordinator, *rule), "{what}: {blame:?}"),
            Ok(_) => assert_eq!(*rule, Rule::Opn3, "{what} (drop: {drop}): nobody is to blame"),
        }
    }
}

#[test]
fn an_unchanged_opening_signed_again_is_taken() {
    for drop in [false, true] {
        let (errors, shown, w) = lied_to(|_| {}, drop);
        assert_eq!(errors, []);
        let opened = shown.judged(&w.kit).unwrap().expect("nobody is to blame");
        let sums = w.events.iter().find_map(|e| match e {
            Event::Total { values, cohort, .. } => Some((values.clone(), cohort.clone())),
            _ => None,
        });
        assert_eq!(Some((opened.values, opened.cohort)), sums, "a third party's total is the coordinator's");
    }
}

/// What is of another run, or of nobody's, accuses nobody: a lie does not become another's by being shown elsewhere.
#[test]
fn frames_of_another_federation_prove_nothing() {
    let (_, shown, w) = lied_to(|o| o.low[2] = o.low[2].wrapping_add(1), false);
    assert!(shown.judged(&w.kit).unwrap().is_err(), "here it proves something");
    let kits = [("another roster", Kit::new(7, |_| {})), ("another plan", Kit::new(6, |t| t.slots = 7))];
    for (what, kit) in &kits {
        assert!(shown.judged(kit).is_err(), "{what}");
    }
    let (session, counter) = (w.session(), &w.kit.identities[1]);
    let signed_by_another = |bytes: &[u8]| {
        let p = parts(bytes);
        raw(counter, &session, p.kind, &p.context, &p.rest)
    };
    let other = raw(&w.kit.identities[0], &session, Kind::Opening, &Hash([9; 32]), &parts(&shown.opening).rest);
    let other = Shown { opening: other, ..shown.clone() };
    let worthless = [
        ("another directory", Shown { directory: Hash([1; 32]), ..shown.clone() }),
        ("a question signed by another", Shown { ask: signed_by_another(&shown.ask), ..shown.clone() }),
        ("an opening signed by another", Shown { opening: signed_by_another(&shown.opening), ..shown.clone() }),
        ("an opening of another round", other),
        ("the two in each other's place", Shown { ask: shown.opening.clone(), opening: shown.ask.clone(), ..shown }),
    ];
    for (what, shown) in worthless {
        assert!(shown.judged(&w.kit).is_err(), "{what}");
    }
}

/// What the sites recompute is the coordinator's total, with and without missing sites, over few sites and many.
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
    assert!(w.site_errors.iter().all(|(_, e)| e.rule().unwrap() == Rule::Opn7) && !w.site_errors.is_empty());
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
        let mut ask: veilsum_testkit::wire::Ask = frame.read();
        if ask.previous_total == Hash::default() {
            return Verdict::Pass;
        }
        ask.previous_total = Hash([5; 32]);
        let context = veilsum_testkit::wire::round_context(&session, &seen.borrow(), &ask);
        Verdict::Replace(raw(&hub, &session, Kind::Ask, &context, &codec::encode(&ask)))
    });
    w.ask(b"first", WORDS).unwrap();
    let _ = w.ask(b"second", WORDS);
    let errors: Vec<_> = w.site_errors.iter().map(|(site, e)| (*site, e.rule().unwrap())).collect();
    assert_eq!(errors.first(), Some(&(0, Rule::Opn7)), "{errors:?}");
}

/// [OPN-8]: whoever signs two openings of one round is caught by whoever sees both.
#[test]
fn opn_8_two_openings_of_one_round() {
    let mut w = honest(5, 4);
    let (hub, session) = (w.kit.identities[0].clone(), w.session());
    let openings: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let kept = openings.clone();
    w.hook = Box::new(move |wire| {
        if wire.kind != Kind::Opening || wire.site != 0 {
            return Verdict::Pass;
        }
        if kept.borrow().is_empty() {
            kept.borrow_mut().push(wire.bytes.to_vec());
            return Verdict::Pass;
        }
        let frame = parts(wire.bytes);
        let mut opening: Opening = frame.read();
        opening.low[0] ^= 1;
        let other = raw(&hub, &session, Kind::Opening, &frame.context, &codec::encode(&opening));
        kept.borrow_mut().push(other.clone());
        Verdict::Replace(other)
    });
    w.network.duplicates = 0;
    w.ask(b"first", WORDS).unwrap();
    w.close();
    w.close();
    let errors: Vec<_> = w.site_errors.iter().map(|(site, e)| (*site, e.rule().unwrap())).collect();
    assert_eq!(errors, [(0, Rule::Opn8)]);
}

/// [INP-4]: a site that commits to another vector than it sends is out, by name, and the total is of the others.
#[test]
fn inp_4_a_site_that_commits_to_another_vector_is_named() {
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

/// [INP-2]: a site that answers one question twice is out, by name.
#[test]
fn inp_2_a_site_that_answers_twice_is_named() {
    let mut fed = World::noted(6, 6, |_| {});
    let (liar, session) = (fed.identity(3), fed.session());
    fed.tap(move |wire| {
        if wire.kind != Kind::MaskedInput || wire.site != 3 {
            return vec![wire.bytes.clone()];
        }
        let frame = parts(&wire.bytes);
        let mut words: Vec<u64> = frame.rest[32..].as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        words[0] ^= 1;
        let rest: Vec<u8> = commit(&words).into_iter().chain(words.iter().flat_map(|w| w.to_le_bytes())).collect();
        vec![wire.bytes.clone(), raw(&liar, &session, Kind::MaskedInput, &frame.context, &rest)]
    });
    let cohort = fed.ask_exact(b"q");
    let named = fed.events.iter().any(|e| format!("{e:?}").contains("INP-2") && format!("{e:?}").contains("site-3"));
    assert!(named && !cohort.contains(&3), "{:?}", fed.events);
}

/// [OPN-2]: a site that has not seen who survived is told that hardly anybody did.
#[test]
fn opn_2_a_total_over_fewer_sites_than_the_floor_is_refused() {
    let mut w = honest(6, 12);
    let (hub, session) = (w.kit.identities[0].clone(), w.session());
    w.hook = Box::new(move |wire| {
        if wire.kind != Kind::Survivors || wire.site != 0 {
            return Verdict::Pass;
        }
        let input =
            OpenedInput { commitment: [0; 32], digest: Hash::default(), signature: Signature::from_bytes(&[0; 64]) };
        let check = OpenedCheck { seeds: vec![[0; 32]; 2], signature: Signature::from_bytes(&[0; 64]) };
        let opening = Opening {
            alive: vec![0, 1, 2, 3],
            inputs: vec![input; 4],
            seeds: vec![[0; 32]; 4],
            others: vec![Hash::default(); 2],
            checks: vec![check; 4],
            agreed: vec![],
            low: vec![0; WORDS],
            high: vec![0; WORDS],
        };
        let context = parts(wire.bytes).context;
        Verdict::Replace(raw(&hub, &session, Kind::Opening, &context, &codec::encode(&opening)))
    });
    let _ = w.ask(b"first", WORDS);
    let (_, first) = w.site_errors.iter().find(|(site, _)| *site == 0).expect("it is refused");
    assert!(first.to_string().contains("over fewer sites than the floor"), "{first}");
    assert_eq!(first.rule().unwrap(), Rule::Opn2);
}

/// [OPN-2]: what a coordinator makes up with a few sites is no total for anybody else, although both signed all of it: it is over
/// fewer sites than a deck that is shown has a threshold for, or than the plan demands.
#[test]
fn opn_2_a_third_party_takes_no_total_over_fewer_sites_than_the_floor() {
    let world = honest(6, 13);
    let (kit, session, directory) = (&world.kit, world.session(), Hash([3; 32]));
    let [hub, _, sites @ ..] = &kit.identities[..] else { unreachable!("six sites") };
    let ask = Ask {
        deck: 0,
        slot: 0,
        cohort: (0..6).collect(),
        words: WORDS as u32,
        previous_context: Hash::default(),
        previous_total: Hash::default(),
        query: b"any".to_vec(),
    };
    let context = round_context(&session, &directory, &ask);
    let masked = [7u64; WORDS];
    let commitment = commit(&masked);
    let input: Vec<u8> = commitment.iter().copied().chain(masked.iter().flat_map(|word| word.to_le_bytes())).collect();
    let proof = |site: u16, kind, context: &Hash, rest: &[u8]| {
        parts(&raw(&sites[usize::from(site)], &session, kind, context, rest)).proof
    };
    let judged = |alive: u16, shown: u16| {
        let (alive, missing): (Vec<u16>, Vec<u16>) = (0..6).partition(|site| *site < alive);
        let inputs: Vec<Proof> = alive.iter().map(|site| proof(*site, Kind::MaskedInput, &context, &input)).collect();
        let named: Vec<Hash> = inputs.iter().map(|proof| proof.rest).collect();
        let agreed = survivors_context(&context, &alive, &named);
        let seeds: Vec<(u16, [u8; 32])> = missing.iter().map(|site| (*site, [1; 32])).collect();
        let check = |site: &u16| {
            let rest = codec::encode(&(context, seeds.clone()));
            let signature = proof(*site, Kind::ConsistencyCheck, &agreed, &rest).signature;
            OpenedCheck { seeds: seeds.iter().map(|(_, seed)| *seed).collect(), signature }
        };
        let opening = Opening {
            inputs: inputs
                .iter()
                .map(|proof| {
                    let digest = suite::hash("masked", &[&input[32..]]);
                    OpenedInput { commitment, digest, signature: proof.signature }
                })
                .collect(),
            seeds: vec![[0; 32]; alive.len()],
            others: vec![Hash::default(); usize::from(shown)],
            checks: alive.iter().map(check).collect(),
            agreed: vec![],
            low: vec![7 * alive.len() as u64; WORDS],
            high: vec![0; WORDS],
            alive,
        };
        let [ask, opening] = [(Kind::Ask, codec::encode(&ask)), (Kind::Opening, codec::encode(&opening))]
            .map(|(kind, rest)| raw(hub, &session, kind, &context, &rest));
        documents(kit).opened(&directory, &ask, &opening).expect("it is the coordinator's")
    };
    for (alive, shown) in [(1, 0), (1, 5), (2, 0), (2, 4), (3, 3), (4, 2)] {
        let blame = judged(alive, shown).expect_err("no total");
        assert_eq!(
            (blame.culprit, blame.rule),
            (PartyId::Coordinator, Rule::Opn2),
            "{alive} of {shown} more: {blame:?}"
        );
    }
    // It is for their number alone: five sites of six are enough, and it is a total.
    assert_eq!(judged(5, 1).expect("a total").cohort, [0, 1, 2, 3, 4]);
}
