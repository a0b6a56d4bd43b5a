//! What is left of a slot once it is closed: nothing from which its keys come ([RND-8], [MSK-1], [JRN-4]).
//!
//! An attacker who takes a site's journal has all that the site could compute. He is played here with the core's own
//! derivations: from every secret of the journal, by every step forward, he looks for the keys of the closed slots.

use veilsum_proto::site::{Input, Output};
use veilsum_testkit::prelude::*;

type Bytes = [u8; 32];

const SITES: usize = 4;
const SLOTS: u16 = 4;

/// All keys of one round at one site: what a journal of that slot gives away, and one of a later slot must not.
fn keys(secrets: &Secrets, me: u16, slot: u16, context: &Hash) -> BTreeSet<Bytes> {
    let mut keys: BTreeSet<Bytes> = secrets.masks(me, slot, context, &everybody(SITES)).iter().map(|m| m.0).collect();
    keys.extend(secrets.pairs.iter().map(|(other, _)| secrets.pair_in(*other, slot)));
    keys.extend(everybody(SITES).iter().map(|m| secrets.share(*m, slot)));
    keys.insert(secrets.seeds[usize::from(slot - secrets.first)]);
    keys
}

/// All that follows from these secrets in the rounds of these contexts, whatever slot they are tried in.
fn reachable(secrets: &Secrets, contexts: &[Hash]) -> BTreeSet<Bytes> {
    let mut all = BTreeSet::new();
    let scalars = secrets.seeds.iter().chain(secrets.held.iter().flatten());
    for seed in scalars {
        all.insert(*seed);
        all.extend(contexts.iter().map(|context| api::self_mask_key(seed, context)));
    }
    for (_, pair) in &secrets.pairs {
        let mut pair = *pair;
        for _ in 0..=SLOTS {
            all.insert(pair);
            all.extend(contexts.iter().map(|context| api::expand(&pair, "round seed", &[&context.0])));
            pair = api::next_slot(&pair);
        }
    }
    all
}

/// Puts a question to a site and gives what it sends.
fn answered(hub: &mut Hub, site: u16, frame: &[u8]) -> Parts {
    let sent = hub.tell(site, frame).expect("an honest question");
    sent.into_iter().next().expect("its vector")
}

/// A journal gives the keys of its slot, and all journals together, with what their shares open to, none of a slot before it.
#[test]
fn all_journals_together_do_not_open_a_closed_slot() {
    let mut hub = Hub::new(SITES, 401, |_| {});
    let all = everybody(SITES);
    let deck = hub.deck(0, SLOTS, &all);
    let at_first: Vec<Secrets> = all.iter().map(|s| Secrets::of(&hub, *s, 0)).collect();
    let (mut contexts, mut previous) = (Vec::new(), Hash::default());
    for slot in 0..SLOTS {
        let ask = hub.question(&deck, slot, &all, previous, b"the same");
        let round = hub.ask(&deck, &ask, &all).expect("a round");
        previous = round.context;
        contexts.push(previous);
        let frame = hub.survivors(&round, &all);
        all.iter().for_each(|s| assert!(hub.reply(*s, &frame).is_ok()));
        let journals: Vec<Secrets> = all.iter().map(|s| Secrets::of(&hub, *s, 0)).collect();
        let mut stolen: BTreeSet<Bytes> = journals.iter().flat_map(|now| reachable(now, &contexts)).collect();
        // What the shares of every slot that is left open.
        for (owner, open) in (0..SITES).flat_map(|owner| (0..journals[0].held.len()).map(move |open| (owner, open))) {
            let shares: Vec<Bytes> = journals.iter().map(|now| now.held[open][owner]).collect();
            stolen.insert(api::recover(&all, &shares));
        }
        for (me, now) in all.iter().zip(&journals) {
            let left = usize::from(SLOTS - slot);
            assert_eq!((now.first, now.seeds.len(), now.held.len()), (slot, left, left));
            let before = &at_first[usize::from(*me)];
            for (closed, context) in (0..).zip(&contexts[..usize::from(slot)]) {
                assert!(!stolen.contains(&before.seeds[usize::from(closed)]));
                let found = keys(before, *me, closed, context).intersection(&stolen).count();
                assert_eq!(found, 0, "keys of slot {closed} at site {me} in slot {slot}");
            }
            // The search finds what is there: all keys of the current slot, and of the first one where it was open.
            let current = keys(before, *me, slot, &previous);
            assert!(current.is_subset(&reachable(now, &contexts)) && current.len() == 3 * SITES);
            assert!(!keys(before, *me, 0, &contexts[0]).is_disjoint(&reachable(before, &contexts)));
        }
    }
}

#[test]
fn slots_may_be_skipped_and_stay_closed() {
    let mut hub = Hub::new(SITES, 403, |_| {});
    let all = everybody(SITES);
    let deck = hub.deck(0, SLOTS, &all);
    let at_first: Vec<Secrets> = all.iter().map(|s| Secrets::of(&hub, *s, 0)).collect();
    let ask = hub.question(&deck, 2, &all, Hash::default(), b"third");
    let (round, vectors) = asked(&mut hub, &deck, &ask, &all).expect("slots 0 and 1 are skipped");
    for me in &all {
        let masks = at_first[usize::from(*me)].masks(*me, 2, &round.context, &all);
        assert_eq!(without(&vectors[me], &masks), values(*me, b"third"), "the keys of slot 2");
    }
    // A skipped slot is gone, also for a process that comes back.
    let back = hub.question(&deck, 1, &all, round.context, b"second");
    let (_, frame) = hub.ask_frame(&deck, &back);
    refuses(&mut hub, 0, &frame, Rule::Rnd2);
    hub.restart(0).expect("its journal");
    refuses(&mut hub, 0, &frame, Rule::Rnd2);
    assert_eq!(Secrets::of(&hub, 0, 0).first, 2);
}

/// [RND-7], [JRN-3]: a process that comes back in the middle of a slot, in any stage of it, sends the same bytes and asks nobody for
/// another answer. One that comes back without an answer asks for one, and what it masks is another one's.
#[test]
fn jrn_3_a_restart_sends_the_same_bytes_or_none_were_sent() {
    let (mut hub, deck, round, _) = started(SITES, 404);
    let all = everybody(SITES);
    let frame = hub.survivors(&round, &all);
    all.iter().for_each(|s| assert!(hub.reply(*s, &frame).is_ok()));
    let ask = hub.question(&deck, 1, &all, round.context, b"second");
    let (_, question) = hub.ask_frame(&deck, &ask);
    let before = hub.journals[0].clone();
    let first = answered(&mut hub, 0, &question);
    let (masked, computed) = (hub.journals[0].clone(), hub.asked[0].len());
    hub.restart(0).expect("its journal");
    assert!(answered(&mut hub, 0, &question) == first && hub.journals[0] == masked);
    let mut round = hub.ask(&deck, &ask, &[1, 2, 3]).expect("the others");
    round.inputs.insert(0, first.proof);
    let site = &hub.sites[0];
    assert_eq!((site.number(), site.run(), site.round_context()), (0, Some(hub.run), Some(round.context)));
    assert_eq!((site.round_sites(), site.round_directory()), (Some(((0, 1), &all[..])), Some(deck.hash)));
    let frame = hub.survivors(&round, &all);
    let stages = |hub: &Hub| [false, true].map(|shares| hub.sites[0].knows_of((0, 1), shares));
    assert!(stages(&hub) == [false, false] && hub.sites[0].knows_of((0, 0), true), "slot 0 is closed");
    assert!(!hub.sites[0].knows_of((1, 0), true), "nothing of a deck that it never had");
    assert!(Site::new(hub.kit.site(0)).unwrap().knows_of((1, 0), true), "without keys nothing is left to give");
    let shares = hub.reply(0, &frame).expect("its shares").rest;
    hub.restart(0).expect("its journal");
    assert_eq!(stages(&hub), [true, true]);
    assert_eq!(hub.reply(0, &frame).expect("its shares again").rest, shares);
    assert!(answered(&mut hub, 0, &question) == first, "also after its shares have left");
    assert_eq!(hub.asked[0].len(), computed, "the answer was computed once");
    // It ended before the answer was on disk, so nothing had left.
    hub.journals[0] = before;
    hub.restart(0).expect("its journal");
    assert_eq!(answered(&mut hub, 0, &question).kind, Kind::MaskedInput);
    assert_eq!(hub.asked[0].len(), computed + 1);
}

/// A refusal closes the slots before as an answer does.
#[test]
fn a_refusal_takes_closed_slots_off_the_disk() {
    let (mut hub, deck, round, _) = started(SITES, 405);
    let all = everybody(SITES);
    hub.answers = false;
    let ask = hub.question(&deck, 1, &all, round.context, b"second");
    let (context, frame) = hub.ask_frame(&deck, &ask);
    hub.tell(0, &frame).unwrap();
    hub.sites[0].handle(Input::Refuse { context, rule: Rule::Pol3 }, &mut hub.rng).unwrap();
    let first = hub.sites[0].poll();
    let Some(Output::Rewrite(records)) = first else { panic!("the journal is replaced before the refusal leaves") };
    assert_eq!(Secrets::among(&records, 0).first, 1);
    hub.journals[0] = records;
    hub.restart(0).expect("the journal stands by itself");
    // Neither the round before nor this one left an entry, and still the slot is closed.
    let back = hub.question(&deck, 0, &all, round.context, b"again");
    let (_, closed) = hub.ask_frame(&deck, &back);
    refuses(&mut hub, 0, &closed, Rule::Rnd2);
    hub.answers = true;
    assert_eq!(answered(&mut hub, 0, &frame).kind, Kind::MaskedInput);
}
