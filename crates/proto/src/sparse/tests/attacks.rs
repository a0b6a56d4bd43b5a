//! A coordinator that wants one site's vector. Each attack is run twice: with the rule that forbids it, and with sizes
//! that switch the rule off, where it must succeed; else the test would show nothing.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use curve25519_dalek::scalar::Scalar;

use super::{federation::committee, forced, value, world};
use crate::{
    mask::{self, Sign},
    shamir::{self, Share},
    sparse::{
        Kind, Sizes,
        bits::Bits,
        frame::{self, Verified},
        graph::Graph,
        message::{self, Agreement, Ask, Seed, Survivors, Unmask, survivors_context},
        slot,
        testing::{Verdict, World},
    },
    suite::Hash,
};

const N: usize = 50;
const WORDS: usize = 3;

/// All that a coordinator has: every frame on the wire, in both directions.
#[derive(Default)]
struct Seen {
    frames: Vec<(u16, bool, Kind, Vec<u8>)>,
}

/// A federation whose sites have all sent their inputs for one round; from here on nothing passes by itself.
struct Taken {
    world: World,
    seen: Rc<RefCell<Seen>>,
    session: Hash,
    round: Hash,
    committee: Vec<u16>,
    graph: Graph,
}

impl Taken {
    fn new(sizes: Sizes, seed: u64) -> Taken {
        let mut world = world(N, sizes, 1, seed);
        let seen = Rc::new(RefCell::new(Seen::default()));
        let log = seen.clone();
        world.hook = Box::new(move |wire| {
            log.borrow_mut().frames.push((wire.site, wire.from_site, wire.kind, wire.bytes.to_vec()));
            let ours = matches!(wire.kind, Kind::Survivors | Kind::Agree | Kind::Agreement | Kind::Unmask);
            if ours { Verdict::Drop } else { Verdict::Pass }
        });
        let committee = committee(&mut world);
        // The coordinator's own machine waits for answers that never come, and gives the slot up.
        world.ask(b"q", WORDS).unwrap_err();
        let of = crate::message::session(
            &world.kit.terms.hash(),
            &world.kit.roster.hash(),
            crate::roster::PartyId::Coordinator,
        );
        let session = message::session(&of, &crate::sparse::Shape::Forced(sizes));
        let mut taken = Taken {
            world,
            seen,
            session,
            round: Hash::default(),
            committee,
            graph: Graph::draw(&Hash::default(), N, &sizes),
        };
        let (context, seed) = taken.last(0, false, Kind::Seed, |f| (f.context, f.decode::<Seed>("Seed").unwrap()));
        taken.graph = Graph::draw(&message::seed(&context, &seed.randoms), N, &sizes);
        taken.round = taken.last(0, false, Kind::Ask, |f| f.context);
        taken
    }

    /// The last frame of a kind to or from a site.
    fn last<T>(&self, site: u16, from_site: bool, kind: Kind, read: impl FnOnce(&Verified<'_>) -> T) -> T {
        let seen = self.seen.borrow();
        let found = seen.frames.iter().rev().find(|(s, f, k, _)| (*s, *f, *k) == (site, from_site, kind));
        let key = if from_site {
            self.world.kit.roster.sites[usize::from(site)].key
        } else {
            self.world.kit.roster.coordinator.key
        };
        let bytes = &found.unwrap_or_else(|| panic!("no {kind:?} of {site}")).3;
        read(&frame::verify(bytes, &self.session, &key, &String::new).expect("its own frame"))
    }

    fn send<T: serde::Serialize>(&mut self, to: u16, kind: Kind, message: &T) {
        let bytes = frame::frame(&self.world.kit.identities[0], &self.session, kind, &self.round, message);
        self.world.deliver(to, &bytes);
    }

    /// Names survivors to some of the committee and shows them the signatures that came of it; what they then reveal.
    fn story(&mut self, to: &[u16], alive: &Bits) -> BTreeMap<u16, Vec<Scalar>> {
        let mark = self.seen.borrow().frames.len();
        for site in to {
            self.send(*site, Kind::Survivors, &Survivors { alive: alive.clone() });
        }
        let context = survivors_context(&self.round, alive);
        let signed: BTreeMap<u16, _> = self.seen.borrow().frames[mark..]
            .iter()
            .filter(|(_, from, kind, _)| *from && *kind == Kind::Agree)
            .map(|(site, _, _, bytes)| {
                let key = self.world.kit.roster.sites[usize::from(*site)].key;
                (*site, frame::verify(bytes, &self.session, &key, &String::new).ok().unwrap())
            })
            .filter(|(_, f)| f.context == context)
            .map(|(site, f)| (site, f.proof))
            .collect();
        let agreement = Agreement {
            alive: alive.clone(),
            signers: signed.keys().copied().collect(),
            proofs: signed.into_values().collect(),
        };
        for site in to {
            self.send(*site, Kind::Agreement, &agreement);
        }
        let seen = self.seen.borrow();
        let unmasks = seen.frames[mark..].iter().filter(|(_, from, kind, _)| *from && *kind == Kind::Unmask);
        unmasks
            .map(|(site, _, _, bytes)| {
                let key = self.world.kit.roster.sites[usize::from(*site)].key;
                let unmask: Unmask =
                    frame::verify(bytes, &self.session, &key, &String::new).ok().unwrap().decode("Unmask").unwrap();
                let shares = unmask.shares.iter().map(|s| Share::from_bytes(&s.unwrap()).unwrap().0).collect();
                (*site, shares)
            })
            .collect()
    }

    /// What the shares of some members give of one site.
    fn secret(&self, shares: &BTreeMap<u16, Vec<Scalar>>, t: usize, of: u16) -> Option<Scalar> {
        let members: Vec<u16> = shares.keys().copied().take(t).collect();
        let column: Vec<Scalar> = members.iter().map(|m| shares[m][usize::from(of)]).collect();
        (members.len() == t).then(|| shamir::recover(&shamir::lagrange_at_zero(&members), &column))
    }

    /// Takes masks off the victim's vector: its own, and those of these pairs, each opened from one end.
    fn bare(&self, victim: u16, own: &Scalar, ends: &[(u16, Scalar, u16)]) -> Vec<u64> {
        let mut words = self.last(victim, true, Kind::Input, |f| {
            f.rest.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect::<Vec<u64>>()
        });
        mask::apply(&mut words, &slot::own_mask(own, &self.round), Sign::Minus);
        for (end, secret, other) in ends {
            let theirs =
                self.last(*other, true, Kind::Reveal, |f| f.decode::<message::Reveal>("Reveal").unwrap().slot_keys[0]);
            let key = slot::pair_mask(&slot::key_pair(secret).0, &theirs, &self.round, *end, *other).unwrap();
            let neighbour = if *end == victim { *other } else { *end };
            mask::apply(&mut words, &key, mask::pair_sign(victim, neighbour).reversed());
        }
        words
    }
}

fn truth(victim: u16) -> Vec<u64> {
    (0..WORDS as u64).map(|p| value(victim, p)).collect()
}

/// Half of the committee is told that the victim is there and gives shares of its own mask; the other half is told that
/// it dropped and gives shares of its key. This is "tell only the victim's neighbours" of the complete graph's rule.
fn two_stories(quorum: usize) -> (Option<Vec<u64>>, Taken) {
    let mut t = Taken::new(Sizes { committee: 10, quorum, floor: N - 1, ..forced(N) }, 40);
    let victim = (0..N as u16).find(|s| !t.committee.contains(s)).unwrap();
    let all = Bits::of(N, 0..N as u16);
    let mut without = all.clone();
    without.set(victim, false);
    let (one, other) = (t.committee[..5].to_vec(), t.committee[5..].to_vec());
    let there = t.story(&one, &all);
    let gone = t.story(&other, &without);
    let found = t.secret(&there, quorum, victim).zip(t.secret(&gone, quorum, victim)).map(|(own, key)| {
        let ends: Vec<_> = t.graph.neighbours(victim).into_iter().map(|v| (victim, key, v)).collect();
        t.bare(victim, &own, &ends)
    });
    assert!(found.as_ref().is_none_or(|x| *x == truth(victim)));
    (found, t)
}

#[test]
fn two_stories_fail_where_two_quorums_share_a_member() {
    let (found, mut t) = two_stories(6);
    assert!(found.is_none());
    // Nor does the other story to everybody help: whoever signed once does not sign another set.
    let mut without = Bits::of(N, 0..N as u16);
    without.set((0..N as u16).find(|s| !t.committee.contains(s)).unwrap(), false);
    let committee = t.committee.clone();
    assert!(t.story(&committee, &without).is_empty());
    let rules: Vec<_> = t.world.site_errors.iter().filter_map(|(_, e)| e.rule()).map(|r| r.0).collect();
    assert!(rules.contains(&"SPA-20") && rules.contains(&"SPA-21"), "{rules:?}");
}

#[test]
fn two_stories_succeed_where_a_quorum_is_half() {
    assert!(two_stories(5).0.is_some(), "the attack no longer works where it should, so the test above shows nothing");
}

/// One story for all: everybody is there but the victim's neighbours. Its own mask is opened, and so is each neighbour's
/// key; nothing protects it but the rule that a survivor has neighbours among the survivors.
fn eclipse(nearby: usize) -> (Option<Vec<u64>>, Taken) {
    let mut t = Taken::new(Sizes { nearby, floor: N - 12, ..forced(N) }, 41);
    let victim = 7;
    let near = t.graph.neighbours(victim);
    let alive = Bits::of(N, (0..N as u16).filter(|s| !near.contains(s)));
    let committee = t.committee.clone();
    let shares = t.story(&committee, &alive);
    let own = t.secret(&shares, 7, victim);
    let found = own.map(|own| {
        let ends: Vec<_> = near.iter().map(|v| (*v, t.secret(&shares, 7, *v).unwrap(), victim)).collect();
        t.bare(victim, &own, &ends)
    });
    assert!(found.as_ref().is_none_or(|x| *x == truth(victim)));
    (found, t)
}

#[test]
fn an_eclipse_fails_where_survivors_have_neighbours() {
    let (found, t) = eclipse(7);
    assert!(found.is_none());
    assert!(t.world.site_errors.iter().filter(|(_, e)| e.rule().is_some_and(|r| r.0 == "SPA-19")).count() >= 9);
}

#[test]
fn an_eclipse_succeeds_without_that_rule() {
    assert!(eclipse(0).0.is_some(), "the attack no longer works where it should, so the test above shows nothing");
}

/// Nothing before the certificate: neither an agreement out of the blue, nor one on other survivors, nor signatures of
/// sites outside the committee, nor the same signature twice.
#[test]
fn nothing_leaves_before_enough_signatures() {
    let mut t = Taken::new(forced(N), 42);
    let all = Bits::of(N, 0..N as u16);
    let one = t.committee[0];
    t.send(one, Kind::Agreement, &Agreement { alive: all.clone(), signers: vec![], proofs: vec![] });
    let committee = t.committee.clone();
    for site in &committee {
        t.send(*site, Kind::Survivors, &Survivors { alive: all.clone() });
    }
    let proofs: Vec<_> = committee.iter().map(|s| t.last(*s, true, Kind::Agree, |f| f.proof)).collect();
    let outsider = (0..N as u16).find(|s| !committee.contains(s)).unwrap();
    let forged = {
        let context = survivors_context(&t.round, &all);
        let id = &t.world.kit.identities[usize::from(outsider) + 2];
        let bytes = frame::frame_raw(id, &t.session, Kind::Agree, &context, &[]);
        frame::Proof::of_own(&bytes)
    };
    let mut with_outsider: Vec<(u16, frame::Proof)> =
        committee.iter().copied().zip(proofs.iter().copied()).take(6).chain([(outsider, forged)]).collect();
    with_outsider.sort_by_key(|(s, _)| *s);
    let swapped: Vec<(u16, frame::Proof)> =
        committee.iter().copied().zip(proofs.iter().skip(1).chain(&proofs[..1]).copied()).collect();
    let few: Vec<_> = committee.iter().copied().zip(proofs.iter().copied()).take(6).collect();
    let twice: Vec<_> = few.iter().copied().chain([few[5]]).collect();
    for bad in [with_outsider, swapped, few, twice] {
        let (signers, proofs) = bad.into_iter().unzip();
        t.send(one, Kind::Agreement, &Agreement { alive: all.clone(), signers, proofs });
    }
    let refused = t.world.site_errors.iter().filter(|(s, e)| *s == one && e.rule().is_some_and(|r| r.0 == "SPA-21"));
    assert_eq!(refused.count(), 5);
    assert!(!t.seen.borrow().frames.iter().any(|(s, from, kind, _)| (*s, *from, *kind) == (one, true, Kind::Unmask)));
    let (signers, proofs) = committee.iter().copied().zip(proofs).take(7).unzip();
    t.send(one, Kind::Agreement, &Agreement { alive: all, signers, proofs });
    assert!(t.seen.borrow().frames.iter().any(|(s, from, kind, _)| (*s, *from, *kind) == (one, true, Kind::Unmask)));
}

/// Other questions to some: their masks do not cancel, so what is opened is noise and not their part.
#[test]
fn another_question_to_the_victim_gives_noise() {
    let mut w = world(N, forced(N), 1, 43);
    committee(&mut w);
    let (identity, victim) = (w.kit.identities[0].clone(), 9u16);
    let of = crate::message::session(&w.kit.terms.hash(), &w.kit.roster.hash(), crate::roster::PartyId::Coordinator);
    let session = message::session(&of, &crate::sparse::Shape::Forced(forced(N)));
    let coordinator = w.kit.roster.coordinator.key;
    let crate::sparse::journal::Entry::Deck(deck) =
        &w.journals[0].iter().find(|r| matches!(r.0, crate::sparse::journal::Entry::Deck(_))).unwrap().0
    else {
        unreachable!("looked for this one")
    };
    let directory = deck.directory;
    w.hook = Box::new(move |wire| {
        if wire.from_site || wire.kind != Kind::Ask || wire.site != victim {
            return Verdict::Pass;
        }
        let frame = frame::verify(wire.bytes, &session, &coordinator, &String::new).ok().unwrap();
        let mut ask: Ask = frame.decode("Ask").unwrap();
        ask.query = b"where the victim stands alone".to_vec();
        let context = message::round_context(&session, &directory, &ask);
        Verdict::Replace(frame::frame(&identity, &session, Kind::Ask, &context, &ask))
    });
    let (values, cohort, missing) = w.ask(b"q", WORDS).unwrap();
    // Its answer stands in another context: an honest machine drops it; a lying one that adds it gets unknown masks.
    assert_eq!(missing, vec![victim]);
    assert_eq!(values, super::sum(&cohort, WORDS as u64));
}
