//! Masks, self-masks and what opens them: pitfalls 3 to 5 and 8 of the table in `mod.rs`.

use veilsum_testkit::prelude::*;

/// **3.** A peer folded its seeds to 32 bits of a Mersenne Twister; one client's vector fell in seconds. [MSK-3] and
/// [KEX-2] give 256-bit keys, AES in counter mode, the whole ring, and scalars from 64 bytes. The test flips every bit
/// of a key and demands another stream for each, counts the bytes a scalar takes, and looks at every bit of masked
/// zeros. Fails if a key is cut or folded, a scalar is reduced from 32 bytes, or masks are smaller than a word.
#[test]
fn msk_3_short_seeds_a_weak_generator_and_modulo_bias() {
    let flipped = |bit: usize| -> [u8; 32] { std::array::from_fn(|i| if i == bit / 8 { 1 << (bit % 8) } else { 0 }) };
    let stream = |key: [u8; 32]| {
        let mut words = [0; 2];
        api::mask(&mut words, &key, None);
        words
    };
    let context = Hash::default();
    let mut streams: BTreeSet<_> = (0..=256).map(|bit| stream(flipped(bit))).collect();
    assert_eq!(streams.len(), 257);
    streams.extend((0..=256).map(|bit| stream(api::expand(&flipped(bit), "round seed", &[&context.0]))));
    assert_eq!(streams.len(), 2 * 257);
    let (mut one, mut other) = (ChaCha20Rng::seed_from_u64(3), ChaCha20Rng::seed_from_u64(3));
    api::random_scalar(&mut one);
    other.fill_bytes(&mut [0; 64]);
    assert_eq!(one.next_u64(), other.next_u64(), "a scalar takes 64 bytes");

    let mut w = World::new(Kit::new(5, |_| {}), 103);
    w.answer = Box::new(|_, asked| vec![0; asked.words]);
    let counts = Rc::new(RefCell::new((0u32, [0u32; 64])));
    let log = counts.clone();
    w.hook = Box::new(move |wire| {
        if wire.kind == Kind::MaskedInput {
            let (all, ones) = &mut *log.borrow_mut();
            for word in words(&parts(wire.bytes).rest) {
                *all += 1;
                ones.iter_mut().enumerate().for_each(|(bit, n)| *n += (word >> bit & 1) as u32);
            }
        }
        Verdict::Pass
    });
    assert_eq!(w.ask(b"q", 400).unwrap().0, [0; 400]);
    let (all, ones) = *counts.borrow();
    assert_eq!(all, 2_000);
    // Standard deviation 22: seven of them.
    assert!(ones.iter().all(|n| n.abs_diff(1_000) < 160), "{ones:?}");
}

/// **4.** Two vectors under one mask differ by the difference of their values; one shipped library drew one scalar mask
/// for a whole run. The context of [RND-1] is in every derivation, and [RND-2] uses a slot once. The test puts one
/// question over one cohort in five slots of two decks and demands that all keys differ, that no two vectors of a site
/// share a word or differ by a constant, and that no slot is answered again. Fails if [MSK-1] leaves the context out,
/// if a key serves all words alike, or if `Site::ask` takes an old slot.
#[test]
fn rnd_1_a_mask_used_twice() {
    let mut hub = Hub::new(4, 104, |_| {});
    let all = everybody(4);
    let (mut previous, mut keys, mut count) = (Hash::default(), BTreeSet::new(), 0);
    let mut vectors: Vec<BTreeMap<u16, Vec<u64>>> = Vec::new();
    for index in 0..2 {
        let deck = hub.deck(index, 3, &all);
        let secrets: Vec<Secrets> = all.iter().map(|s| Secrets::of(&hub, *s, index)).collect();
        for slot in 0..3 {
            let ask = hub.question(&deck, slot, &all, previous, b"the same");
            let (round, masked) = asked(&mut hub, &deck, &ask, &all).unwrap();
            for (me, secret) in all.iter().zip(&secrets) {
                let masks = secret.masks(*me, slot, &round.context, &all);
                assert_eq!(without(&masked[me], &masks), values(*me, b"the same"), "these are the masks");
                // A pair's key is counted at the lower end.
                let mine = masks.iter().filter(|(_, pair)| pair.is_none_or(|(me, other)| me < other));
                mine.for_each(|(key, _)| {
                    keys.insert(*key);
                    count += 1;
                });
            }
            let again = hub.question(&deck, slot, &all, round.context, b"another");
            let (_, frame) = hub.ask_frame(&deck, &again);
            refuses(&mut hub, 2, &frame, Rule::Rnd2);
            vectors.push(masked);
            previous = round.context;
        }
    }
    assert_eq!((keys.len(), count), (60, 60), "6 rounds of 4 own and 6 pair keys");
    for (i, a) in vectors.iter().enumerate() {
        for b in &vectors[i + 1..] {
            for s in &all {
                let difference: BTreeSet<u64> = a[s].iter().zip(&b[s]).map(|(a, b)| a.wrapping_sub(*b)).collect();
                assert!(difference.len() == WORDS && !difference.contains(&0));
            }
        }
    }
}

/// **5.** Where the session key of a missing site is rebuilt, every earlier round of it opens. Here only the seed of
/// one context leaves ([CON-3], [MSK-1]), given by the other end of the pair. The test opens round 0 with everybody,
/// recovers site 4 in round 1, and searches all that left for secrets of the deck and of round 0; then it takes what is
/// known of round 0 and the seeds of round 1 to site 4's old vector. Fails if `Round::check` gives the pair secret, or
/// the seeds do not depend on the context.
#[test]
fn msk_1_recovery_in_one_round_opens_the_past() {
    let (mut hub, deck, r0, vectors) = started(5, 105);
    let (all, four) = (everybody(5), everybody(4));
    // Before the first slot is closed.
    let secrets: Vec<Secrets> = all.iter().map(|s| Secrets::of(&hub, *s, 0)).collect();
    let frame = hub.survivors(&r0, &all);
    all.iter().for_each(|s| assert_eq!(hub.reply(*s, &frame).unwrap().kind, Kind::Unmask));
    let ask = hub.question(&deck, 1, &all, r0.context, b"q1");
    let (r1, _) = asked(&mut hub, &deck, &ask, &four).unwrap();
    let frame = hub.survivors(&r1, &four);
    let checks: Vec<Parts> = four.iter().map(|s| hub.reply(*s, &frame).unwrap()).collect();
    assert_eq!(hub.sites[0].round_sites(), Some(((0, 1), &four[..])), "among whom it is from now on");
    let signed = four.iter().zip(&checks).map(|(s, p)| (*s, p.proof)).collect();
    let frame = hub.certificate(&r1, &four, &signed);
    let mut left: Vec<Parts> = four.iter().map(|s| hub.reply(*s, &frame).unwrap()).collect();
    left.extend(checks.clone());
    for (me, s) in (0..).zip(&secrets) {
        let others = |slot: usize| s.held[slot].iter().copied();
        let mut never: Vec<[u8; 32]> = s.pairs.iter().map(|(_, pair)| *pair).chain(s.seeds.iter().copied()).collect();
        never.extend(others(0).chain(others(2)).chain(others(3)));
        never.extend(all.iter().filter(|o| **o != me).map(|o| s.pair_in(*o, 1)));
        never.extend(all.iter().filter(|o| **o != me).map(|o| s.round_seed(*o, 0, &r0.context)));
        assert!(left.iter().all(|p| never.iter().all(|secret| !holds(&p.rest, secret))));
    }
    // Round 0: its self-mask is open. With the seeds of round 0 the vector would be, with those of round 1 it is not.
    let masks = secrets[4].masks(4, 0, &r0.context, &all);
    assert_eq!(without(&vectors[&4], &masks), values(4, b"q"));
    let mut known = vec![masks[0]];
    for (giver, check) in four.iter().zip(&checks) {
        let seeds: Check = check.read();
        assert_eq!(seeds.1, [(4, secrets[4].round_seed(*giver, 1, &r1.context))], "both ends agree");
        known.push((seeds.1[0].1, Some((4, *giver))));
    }
    assert!(without(&vectors[&4], &known).iter().zip(values(4, b"q")).all(|(a, b)| *a != b));
}

/// **8.** One victim is shown other centres than everybody else (Pasquini et al. 2022): with the others' parts known,
/// the total is the victim's. The masks are bound to the question ([RND-1]) and do not cancel; [SUR-5] finds the liar
/// before a share leaves. The test sums the five vectors with all self-masks off: the total where all were asked the
/// same, noise where one was not. Fails if [MSK-1] or the context leaves the query out.
#[test]
fn rnd_1_another_broadcast_for_one_victim() {
    for victims_query in [&b"same"[..], b"poison"] {
        let mut hub = Hub::new(5, 108, |_| {});
        let all = everybody(5);
        let deck = hub.deck(0, 4, &all);
        let honest = hub.question(&deck, 0, &all, Hash::default(), b"same");
        let other = hub.question(&deck, 0, &all, Hash::default(), victims_query);
        let (mut round, mut vectors) = asked(&mut hub, &deck, &honest, &[0, 1, 2, 3]).unwrap();
        let (victims, own) = asked(&mut hub, &deck, &other, &[4]).unwrap();
        round.inputs.extend(victims.inputs);
        vectors.extend(own);
        let (mut opened, mut expected) = (vec![0; WORDS], vec![0; WORDS]);
        for s in &all {
            let (context, query) =
                if *s == 4 { (victims.context, victims_query) } else { (round.context, &b"same"[..]) };
            let masks = Secrets::of(&hub, *s, 0).masks(*s, 0, &context, &all);
            opened = added(&opened, &without(&vectors[s], &masks[..1]));
            expected = added(&expected, &values(*s, query));
        }
        let shown = hub.survivors(&round, &all);
        if victims_query == b"same" {
            assert_eq!(opened, expected);
            assert_eq!(hub.reply(0, &shown).unwrap().kind, Kind::Unmask);
        } else {
            assert!(opened.iter().zip(&expected).all(|(a, b)| a != b));
            (0..4).for_each(|s| drop(refuses(&mut hub, s, &shown, Rule::Sur5)));
            let to_victim = hub.survivors(&Round { context: victims.context, ..round }, &all);
            refuses(&mut hub, 4, &to_victim, Rule::Sur5);
        }
    }
}
