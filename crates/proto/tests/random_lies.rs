//! A coordinator that tells every site another story, at random: what the honest sites gave away between them never
//! opens two sums, nor one over too few.

use std::collections::{BTreeMap, BTreeSet};

use chacha20::rand_core::Rng;
use proptest::prelude::*;
use veilsum_proto::{message::Kind, suite::Hash};
use veilsum_testkit::{hub::*, wire::*};

/// Everything the coordinator has seen of one slot, by context.
#[derive(Default)]
struct Learnt {
    /// Context: cohort, and who answered in it.
    rounds: BTreeMap<Hash, Round>,
    /// (context, giver, missing): the seed they share.
    seeds: BTreeMap<(Hash, u16, u16), [u8; 32]>,
    /// owner: holders whose share of its self-mask seed is out. A seed belongs to the slot, whatever the context.
    shares: BTreeMap<u16, BTreeSet<u16>>,
    /// (context, giver): the sets it released for.
    released: BTreeMap<(Hash, u16), Vec<u16>>,
}

impl Learnt {
    /// The sums of honest inputs that can be opened: in each context, a component of honest sites held together by
    /// unknown pair masks opens if all its members answered there and all their self-masks are known.
    fn sums(&self, t: usize, colluders: &BTreeSet<u16>) -> Vec<BTreeSet<u16>> {
        let mut out = Vec::new();
        for (context, round) in &self.rounds {
            let mut left: BTreeSet<u16> = round.cohort.iter().copied().filter(|s| !colluders.contains(s)).collect();
            while let Some(first) = left.pop_first() {
                let (mut component, mut edge) = (BTreeSet::from([first]), vec![first]);
                while let Some(a) = edge.pop() {
                    let unknown = |b: &u16| {
                        !self.seeds.contains_key(&(*context, a, *b)) && !self.seeds.contains_key(&(*context, *b, a))
                    };
                    let next: Vec<u16> = left.iter().copied().filter(unknown).collect();
                    for b in next {
                        left.remove(&b);
                        component.insert(b);
                        edge.push(b);
                    }
                }
                let opens = |s: &u16| {
                    let known = self.shares.get(s).map_or(0, BTreeSet::len) + colluders.len();
                    round.inputs.contains_key(s) && known >= t
                };
                if component.iter().all(opens) {
                    out.push(component);
                }
            }
        }
        out
    }

    fn take(&mut self, from: u16, context: Hash, alive: &[u16], p: &Parts) -> Result<(), TestCaseError> {
        match p.kind {
            Kind::ConsistencyCheck => {
                let (round, seeds): Check = p.read();
                prop_assert_eq!(round, context);
                prop_assert_eq!(
                    p.context,
                    survivors_context(&context, alive, &self.rounds[&context].signed(alive)),
                    "a signature on what it was shown"
                );
                for (missing, seed) in seeds {
                    prop_assert!(!alive.contains(&missing));
                    // The very same reply may come again, also later; a new seed may not.
                    let news = self.seeds.insert((context, from, missing), seed) != Some(seed);
                    let after = self.released.contains_key(&(context, from));
                    prop_assert!(!(news && after), "site-{} gives a seed after its shares", from);
                    if let Some(other) = self.seeds.get(&(context, missing, from)) {
                        prop_assert_eq!(*other, seed, "both ends derive the same");
                    }
                }
            }
            Kind::Unmask => {
                let agreed = survivors_context(&context, alive, &self.rounds[&context].signed(alive));
                prop_assert_eq!(p.context, agreed, "shares for what it was shown");
                let shares: Vec<[u8; 32]> = p.read();
                prop_assert_eq!(shares.len(), alive.len());
                let before = self.released.insert((context, from), alive.to_vec());
                prop_assert!(before.is_none_or(|b| b == alive), "site-{} releases twice", from);
                for owner in alive {
                    let both = self.seeds.contains_key(&(context, from, *owner));
                    prop_assert!(!both, "site-{} gives both secrets of site-{}", from, owner);
                    self.shares.entry(*owner).or_default().insert(from);
                }
            }
            other => prop_assert!(false, "a {:?} in a round", other),
        }
        Ok(())
    }
}

/// A few sets that the stories are made of: nested ones and others, all at or above the threshold.
fn stories(hub: &mut Hub, n: usize, t: usize) -> Vec<Vec<u16>> {
    let mut sets = vec![everybody(n)];
    for _ in 0..4 {
        let from = sets[hub.rng.next_u32() as usize % sets.len()].clone();
        let drop = if from.len() > t { hub.rng.next_u32() as usize % (from.len() - t + 1) } else { 0 };
        let mut set = from;
        for _ in 0..drop {
            let k = hub.rng.next_u32() as usize % set.len();
            set.remove(k);
        }
        sets.push(set);
    }
    sets.sort();
    sets.dedup();
    sets
}

/// One random schedule. `n` sites, the last `c` of which help the coordinator with all they have.
fn play(n: usize, c: usize, threshold: u16, contexts: u32, seed: u64, steps: usize) -> Result<bool, TestCaseError> {
    let mut hub = Hub::new(n, seed, |t| {
        t.slots = 1;
        t.threshold = threshold;
    });
    let all = everybody(n);
    let deck = hub.deck(0, 1, &all);
    let t = deck.threshold;
    prop_assert!(2 * t > n + c);
    let honest = n - c;
    let colluders: BTreeSet<u16> = (honest as u16..n as u16).collect();
    let mut learnt = Learnt::default();
    // Every honest site is asked once: mostly the same question, sometimes another one, or over other sites.
    let mut of: Vec<Hash> = Vec::new();
    for s in 0..honest as u16 {
        let which = hub.rng.next_u32() % contexts;
        let mut ask = hub.question(&deck, 0, &all, Hash::default(), &which.to_le_bytes());
        if which > 0 && n > t.max(3) {
            // Of another cohort, which the site itself is in.
            let other = (which as u16 + 1) % n as u16;
            if other != s {
                ask.cohort.retain(|m| *m != other);
            }
        }
        let round = hub.ask(&deck, &ask, &[s]).map_err(|e| TestCaseError::fail(e.to_string()))?;
        of.push(round.context);
        let known =
            learnt.rounds.entry(round.context).or_insert_with(|| Round { inputs: BTreeMap::new(), ..round.clone() });
        known.inputs.extend(round.inputs);
    }
    // Colluders sign an input in every context.
    let session = hub.session;
    for (context, round) in &mut learnt.rounds {
        for s in &colluders {
            let frame = raw(hub.identity(*s), &session, Kind::MaskedInput, context, b"");
            round.inputs.insert(*s, parts(&frame).proof);
        }
    }
    let sets = stories(&mut hub, n, t);
    let mut signed: BTreeMap<(Hash, Vec<u16>), BTreeMap<u16, Proof>> = BTreeMap::new();
    let mut last: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for _ in 0..steps {
        let site = hub.rng.next_u32() as u16 % honest as u16;
        let context = of[usize::from(site)];
        let round = learnt.rounds[&context].clone();
        if hub.rng.next_u32().is_multiple_of(12) {
            hub.restart(site).map_err(|e| TestCaseError::fail(e.to_string()))?;
            continue;
        }
        let k = hub.rng.next_u32() as usize % sets.len();
        let mut alive = sets[k].clone();
        alive.retain(|s| round.cohort.contains(s));
        let certificate = hub.rng.next_u32().is_multiple_of(2);
        if certificate && hub.rng.next_u32().is_multiple_of(2) {
            alive = last.get(&site).cloned().unwrap_or(alive);
        }
        let frame = if certificate {
            // Sometimes what was signed for another set is shown for this one.
            let of = if hub.rng.next_u32().is_multiple_of(3) {
                &sets[hub.rng.next_u32() as usize % sets.len()]
            } else {
                &alive
            };
            let mut proofs = signed.get(&(context, of.clone())).cloned().unwrap_or_default();
            proofs.retain(|s, _| alive.contains(s));
            for s in colluders.iter().filter(|s| alive.contains(s)) {
                let own = survivors_context(&context, &alive, &round.signed(&alive));
                let frame = raw(hub.identity(*s), &session, Kind::ConsistencyCheck, &own, b"");
                proofs.insert(*s, parts(&frame).proof);
            }
            hub.certificate(&round, &alive, &proofs)
        } else {
            // Where it has no input of a site in this context it shows one that it has.
            let any = round.inputs.values().next().copied();
            let inputs = alive.iter().filter_map(|s| round.inputs.get(s).copied().or(any)).collect();
            hub.frame(Kind::Survivors, &context, &Survivors { alive: alive.clone(), inputs })
        };
        // What it refuses is its own affair; what it says is learnt.
        for p in hub.tell(site, &frame).unwrap_or_default() {
            learnt.take(site, context, &alive, &p)?;
            if p.kind == Kind::ConsistencyCheck {
                last.insert(site, alive.clone());
                signed.entry((context, alive.clone())).or_default().insert(site, p.proof);
            }
        }
    }
    let sums = learnt.sums(t, &colluders);
    prop_assert!(sums.len() <= 1, "two sums are learnt: {:?}", sums);
    for s in &sums {
        prop_assert!(s.len() >= t - c, "a sum over {:?} only, t = {}, c = {}", s, t, c);
    }
    Ok(!sums.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 0, ..ProptestConfig::default() })]

    /// Nobody helps the coordinator; the threshold is the rule's.
    #[test]
    fn a_lying_coordinator_alone(n in 3usize..8, seed: u64, contexts in 1u32..3, steps in 5usize..80) {
        play(n, 0, 0, contexts, seed, steps)?;
    }

    /// As many as the threshold is made for help it.
    #[test]
    fn a_lying_coordinator_with_colluders(n in 4usize..8, seed: u64, contexts in 1u32..3, steps in 5usize..80) {
        play(n, (n - 1) / 3, 0, contexts, seed, steps)?;
    }

    /// The lowest threshold that three sites allow.
    #[test]
    fn three_sites_two_shares(seed: u64, contexts in 1u32..3, steps in 5usize..40) {
        play(3, 0, 2, contexts, seed, steps)?;
    }
}

/// The schedules would show a leak: some of them do open their one sum, with and without colluders.
#[test]
fn the_schedules_reach_an_open_sum() {
    for (n, c) in [(4, 0), (5, 0), (7, 0), (7, 2)] {
        let opened = (0..40).filter(|seed| play(n, c, 0, 1, *seed, 80).unwrap()).count();
        assert!(opened >= 2, "n = {n}, c = {c}: {opened} of 40 schedules opened a sum");
    }
}
