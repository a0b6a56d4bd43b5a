//! A coordinator that opens totals over too few sites ([OPN-2]). Lies in one opening are in `known_lies.txt`; what it asks after none,
//! another or two of them is refused in `protocol/vectors/v4/bad_opening.json` ([OPN-7], [OPN-8]).

use veilsum_proto::{
    Rule, codec,
    identity::Signature,
    message::Kind,
    recompute::Documents,
    roster::PartyId,
    suite::{self, Hash},
    vectors_api::commit,
};
use veilsum_testkit::federation::{Kit, Verdict, World};
use veilsum_testkit::wire::{
    Ask, OpenedCheck, OpenedInput, Opening, Proof, parts, raw, round_context, survivors_context,
};

const WORDS: usize = 5;

fn honest(n: usize, seed: u64) -> World {
    let mut w = World::new(Kit::new(n, |_| {}), seed);
    w.answer = Box::new(|site, asked| {
        let round = u64::from(asked.slot.1) << 40;
        (0..asked.words).map(|i| (round + i as u64).wrapping_sub(7 * u64::from(site))).collect()
    });
    w
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
        Documents { roster: &kit.roster, terms: &kit.terms }
            .opened(&directory, &ask, &opening)
            .expect("it is the coordinator's")
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
