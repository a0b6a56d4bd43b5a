//! Lies of the coordinator: every field of what it sends to sites, in the order of the messages.

use curve25519_dalek::ristretto::CompressedRistretto;
use veilsum_proto::{
    codec,
    identity::Signature,
    message::Kind,
    suite::Hash,
    vectors_api::{commit, generator},
};

use super::values::{
    Lie, Lies, bend, boxes, ciphertexts, damaged, flipped, hashes, lists, numbers, order, proofs, sites,
};
use crate::{recording::Course, wire::*};

pub(super) fn open_deck(c: &Course, p: &Parts) -> Vec<Lie> {
    let mut l = Lies::<Open>::of(p);
    l.field(hashes("run", &l.honest.0), |m, v| m.0 = v);
    l.field(numbers!("index", l.honest.1, u32::MAX), |m, v| m.1 = v);
    l.field(numbers!("slots", l.honest.2, u16::MAX), |m, v| m.2 = v);
    l.renamed(|m| deck_id(&c.session, m))
}

pub(super) fn directory(c: &Course, p: &Parts) -> Vec<Lie> {
    let (id, n) = (p.context, c.told.len() as u16);
    let threshold = |m: &mut Directory| {
        m.threshold = c.kit.terms.threshold_of(m.entries.len(), c.told.len()).unwrap_or_default() as u16;
    };
    let of_its_own_block = |m: &Directory| vec![m.entries.iter().map(|e| e.0).collect()];
    let mut l = Lies::<Directory>::of(p);
    l.field(numbers!("threshold", l.honest.threshold, u16::MAX), |m, v| m.threshold = v);
    for (w, entries) in lists("entries", &l.honest.entries) {
        l.put(&w, |m| m.entries.clone_from(&entries));
        // The rest fits, so that it is not what is wrong.
        l.put(format!("{w}, and all that follows"), |m| {
            m.entries.clone_from(&entries);
            threshold(m);
            m.blocks = of_its_own_block(m);
        });
    }
    l.put("last entry: a stranger's number", |m| m.entries.last_mut().expect("the last").0 = n + 1);
    l.put("entries but two", |m| {
        m.entries.truncate(2);
        m.blocks = of_its_own_block(m);
    });
    l.put("blocks: none", |m| m.blocks.clear());
    l.put("blocks: without the last", |m| drop(m.blocks.pop()));
    l.put("blocks: an empty one", |m| m.blocks.push(Vec::new()));
    l.put("blocks: one twice", |m| m.blocks.push(m.blocks[0].clone()));
    l.put("blocks: a stranger", |m| m.blocks.push(vec![u16::MAX]));
    for (who, k) in [("own", 0), ("other", 2)] {
        let whole = l.honest.clone();
        let mut put = |what: &str, change: &dyn Fn(&mut (u16, Keys, Proof))| {
            l.put(format!("{who} entry: {what}"), |m| change(&mut m.entries[k]));
        };
        put("a stranger's number", &|e| e.0 = n);
        put("the largest number", &|e| e.0 = u16::MAX);
        put("X25519 key zero", &|e| e.1.0 = [0; 32]);
        put("X25519 key other", &|e| e.1.0[0] ^= 1);
        put("ML-KEM key zero", &|e| bend(&mut e.1.1, |b| b.fill(0)));
        put("ML-KEM key other", &|e| bend(&mut e.1.1, |b| b[0] ^= 1));
        put("ML-KEM key with another seed", &|e| bend(&mut e.1.1, |b| b[1_183] ^= 1));
        put("ML-KEM key that is none", &|e| bend(&mut e.1.1, |b| b.fill(0xff)));
        put("commitments zero", &|e| e.1.2 = Hash::default());
        put("commitments other", &|e| e.1.2 = flipped(&e.1.2));
        put("another account", &|e| e.1.3.0 = Some(flipped(&e.1.2)));
        put("another block", &|e| e.1.3.1 = Some(flipped(&e.1.2)));
        put("another version", &|e| e.1.3.2 += 1);
        put("more answers", &|e| e.1.3.3.0 += 1);
        put("another last answer", &|e| e.1.3.3.1.0[0] ^= 1);
        put("proof of another message", &|e| e.2.rest = flipped(&e.2.rest));
        put("proof of another site", &|e| e.2 = whole.entries[1].2);
        put("proof without signature", &|e| e.2.signature = Signature::from_bytes(&[0; 64]));
        put("keys and proof of another site", &|e| (e.1, e.2) = (whole.entries[1].1.clone(), whole.entries[1].2));
        // Keys that the liar or a colluder made and signed.
        for (forger, signer) in [("the hub", &*c.kit.identities[0]), ("a colluder", c.identity(1))] {
            put(&format!("keys of {forger}'s making"), &|e| {
                e.1.0[5] ^= 1;
                e.2 = parts(&raw(signer, &c.session, Kind::AdvertiseKeys, &id, &codec::encode(&e.1))).proof;
            });
        }
        let signed = |e: &(u16, Keys, Proof), id: &Hash| {
            parts(&c.sign_as(e.0, Kind::AdvertiseKeys, id, &codec::encode(&e.1))).proof
        };
        put("a proof of another deck", &|e| e.2 = signed(e, &flipped(&id)));
        // Its site's own fault: the largest coefficient is 3328, of the first and of the last one.
        put("a first coefficient too large, signed by its site", &|e| {
            bend(&mut e.1.1, |b| (b[0], b[1]) = (0x01, b[1] & 0xf0 | 0x0d));
            e.2 = signed(e, &id);
        });
        put("a last coefficient too large, signed by its site", &|e| {
            bend(&mut e.1.1, |b| (b[1_150], b[1_151]) = (b[1_150] & 0x0f | 0x10, 0xd0));
            e.2 = signed(e, &id);
        });
        put("ML-KEM key of another, signed by its site", &|e| {
            e.1.1 = whole.entries[1].1.1.clone();
            e.2 = signed(e, &id);
        });
    }
    l.keyed()
}

pub(super) fn directory_certificate(c: &Course, p: &Parts) -> Vec<Lie> {
    let mut l = Lies::<Certified>::of(p);
    l.field(proofs("proofs", &l.honest.0), |m, v| m.0 = v);
    // Everybody signed, but another directory.
    let other = |k: usize| parts(&c.sign_as(k as u16, Kind::AcceptDirectory, &flipped(&p.context), &[0; 8])).proof;
    l.put("proofs of another directory", |m| m.0 = (0..m.0.len()).map(other).collect());
    l.field(ciphertexts("ciphertexts", &l.honest.1, c.told.len() as u16), |m, v| m.1 = v);
    l.keyed()
}

pub(super) fn delivery(c: &Course, p: &Parts) -> Vec<Lie> {
    let mut l = Lies::<Delivery>::of(p);
    l.field(lists("commitments", &l.honest.0), |m, v| m.0 = v);
    for (who, k) in [("own", 0), ("other", 2)] {
        l.field(lists(&format!("{who} commitments: list"), &l.honest.0[k]), |m, v| m.0[k] = v);
        for slot in 0..l.honest.0[k].len() {
            l.put(format!("{who} commitments: that of slot {slot} other"), |m| m.0[k][slot] = flipped(&m.0[k][slot]));
        }
    }
    l.field(boxes("boxes", &l.honest.1, c.told.len() as u16), |m, v| m.1 = v);
    l.keyed()
}

pub(super) fn ask(c: &Course, p: &Parts, directory: &Hash) -> Vec<Lie> {
    let n = c.told.len();
    let mut l = Lies::<Ask>::of(p);
    l.field(numbers!("deck", l.honest.deck, u32::MAX), |m, v| m.deck = v);
    l.field(numbers!("slot", l.honest.slot, u16::MAX), |m, v| m.slot = v);
    l.field(numbers!("words", l.honest.words, u32::MAX), |m, v| m.words = v);
    l.put("words beyond the most", |m| m.words = (1 << 20) + 1);
    l.field(sites("cohort", &l.honest.cohort, n as u16), |m, v| m.cohort = v);
    let threshold = c.kit.terms.threshold_of(n, n).expect("a threshold");
    l.put("cohort below the threshold", |m| m.cohort.truncate(threshold - 1));
    l.field(hashes("context before", &l.honest.previous_context), |m, v| m.previous_context = v);
    l.field(hashes("total before", &l.honest.previous_total), |m, v| m.previous_total = v);
    l.field(lists("query", &l.honest.query), |m, v| m.query = v);
    l.renamed(|m| round_context(&c.session, directory, m))
}

pub(super) fn survivors(c: &Course, p: &Parts) -> Vec<Lie> {
    let n = c.told.len() as u16;
    let mut l = Lies::<Survivors>::of(p);
    l.field(sites("alive", &l.honest.alive, n), |m, v| m.alive = v);
    l.field(proofs("inputs", &l.honest.inputs), |m, v| m.inputs = v);
    l.put("the first input for all", |m| m.inputs = vec![m.inputs[0]; m.inputs.len()]);
    // Sites left out with their inputs: a story that fits together.
    for k in 0..l.honest.alive.len() {
        l.put(format!("without site {} and its input", l.honest.alive[k]), |m| {
            m.alive.remove(k);
            m.inputs.remove(k);
        });
    }
    for keep in 0..5 {
        l.put(format!("only the first {keep}"), |m| {
            m.alive.truncate(keep);
            m.inputs.truncate(keep);
        });
    }
    // A missing site is said to have answered: the liar signs in its place.
    if let Some(missing) = (0..n).find(|s| !l.honest.alive.contains(s)) {
        l.put("a missing site whose input the hub signed", |m| {
            m.alive.push(missing);
            m.inputs.push(parts(&c.sign(Kind::MaskedInput, &p.context, &[0; 8 * WORDS])).proof);
        });
    }
    // An answer to another question, and a signature of the right site on something else than an input.
    for (what, kind, context) in [
        ("an input in another context", Kind::MaskedInput, flipped(&p.context)),
        ("a signature on another kind", Kind::ConsistencyCheck, p.context),
    ] {
        l.put(what, |m| m.inputs[1] = parts(&c.sign_as(m.alive[1], kind, &context, &[0; 8 * WORDS])).proof);
    }
    l.keyed()
}

pub(super) fn certificate(c: &Course, p: &Parts) -> Vec<Lie> {
    let n = c.told.len() as u16;
    let mut l = Lies::<Certificate>::of(p);
    let honest = l.honest.clone();
    let missing = (0..n).find(|s| !honest.alive.contains(s)).expect("somebody is missing");
    let last = honest.signers.len() - 1;
    l.field(sites("alive", &honest.alive, n), |m, v| m.alive = v);
    l.field(sites("signers", &honest.signers, n), |m, v| m.signers = v);
    l.field(proofs("proofs", &honest.proofs), |m, v| m.proofs = v);
    l.put("another hash of the inputs", |m| m.inputs = flipped(&m.inputs));
    l.put("one signature too few", |m| {
        m.signers.pop();
        m.proofs.pop();
    });
    l.put("nobody", |m| (m.alive, m.signers, m.proofs) = Default::default());
    l.put("one signer twice, with its signature", |m| (m.signers[1], m.proofs[1]) = (m.signers[0], m.proofs[0]));
    l.put("the first signer twice beside the others", |m| {
        m.signers.insert(0, m.signers[0]);
        m.proofs.insert(0, m.proofs[0]);
    });
    l.put("the first two signers swapped, with their signatures", |m| {
        m.signers.swap(0, 1);
        m.proofs.swap(0, 1);
    });
    l.put("a missing site in place of a signer", |m| m.signers[last] = missing);
    l.put("a stranger in place of a signer", |m| m.signers[last] = n);
    let signed = |m: &mut Certificate, kind, context: &Hash| {
        m.proofs = m.signers.iter().map(|s| parts(&c.sign_as(*s, kind, context, b"")).proof).collect();
    };
    let inputs = c.inputs(&p.context, &honest.alive);
    let here = survivors_context(&p.context, &honest.alive, &inputs);
    let fewer = survivors_context(&p.context, &honest.alive[1..], &inputs[1..]);
    let there = survivors_context(&flipped(&p.context), &honest.alive, &inputs);
    let mut others = inputs.clone();
    others[1] = flipped(&others[1]);
    let others = survivors_context(&p.context, &honest.alive, &others);
    l.put("signatures on fewer survivors", |m| signed(m, Kind::ConsistencyCheck, &fewer));
    l.put("signatures of another round", |m| signed(m, Kind::ConsistencyCheck, &there));
    l.put("signatures on another input", |m| signed(m, Kind::ConsistencyCheck, &others));
    l.put("signatures on the inputs alone", |m| signed(m, Kind::MaskedInput, &p.context));
    l.put("one that another signed", |m| {
        m.proofs[last] = parts(&c.sign_as(m.signers[0], Kind::ConsistencyCheck, &here, b"")).proof;
    });
    l.keyed()
}

/// One more survivor after the one at `at`, with a copy of everything that is opened of that one.
fn beside(o: &mut Opening, at: usize, site: u16) {
    o.alive.insert(at + 1, site);
    o.inputs.insert(at + 1, o.inputs[at].clone());
    o.seeds.insert(at + 1, o.seeds[at]);
    if let Some(check) = o.checks.get(at).cloned() {
        o.checks.insert(at + 1, check);
    }
}

pub(super) fn opening(p: &Parts, n: u16) -> Vec<Lie> {
    let mut l = Lies::<Opening>::of(p);
    let m = l.honest.clone();
    let last = m.alive.len() - 1;
    l.field(sites("alive", &m.alive, n), |o, v| o.alive = v);
    l.field(lists("inputs", &m.inputs), |o, v| o.inputs = v);
    l.field(lists("seeds", &m.seeds), |o, v| o.seeds = v);
    l.field(lists("others", &m.others), |o, v| o.others = v);
    l.field(lists("checks", &m.checks), |o, v| o.checks = v);
    l.field(lists("agreed", &m.agreed), |o, v| o.agreed = v);
    l.field(lists("low", &m.low), |o, v| o.low = v);
    l.field(lists("high", &m.high), |o, v| o.high = v);
    // The site that is told it is the first; what is said of it and what is said of another are checked differently.
    for k in [0, last] {
        let mut put = |what: &str, change: &dyn Fn(&mut Opening)| l.put(format!("of {k}: {what}"), change);
        put("commitment of zeros", &|o| o.inputs[k].commitment = [0; 32]);
        put("commitment that is no point", &|o| o.inputs[k].commitment = [0xff; 32]);
        put("commitment other", &|o| o.inputs[k].commitment = commit(&[1]));
        put("hash zero", &|o| o.inputs[k].digest = Hash::default());
        put("hash other", &|o| o.inputs[k].digest = flipped(&o.inputs[k].digest));
        put("self-mask zero", &|o| o.seeds[k] = [0; 32]);
        put("self-mask other", &|o| o.seeds[k][1] ^= 1);
        put("self-mask the group order", &|o| o.seeds[k] = order());
        put("self-mask all ones", &|o| o.seeds[k] = [0xff; 32]);
        put("a stranger in its place", &|o| o.alive[k] = n);
        put("a stranger beside it, with all that belongs to it", &|o| beside(o, k, n));
        put("twice, with all that belongs to it", &|o| beside(o, k, o.alive[k]));
        put("signature of its input damaged", &|o| o.inputs[k].signature = damaged(&o.inputs[k].signature));
        put("signature of its input zero", &|o| o.inputs[k].signature = Signature::from_bytes(&[0; 64]));
        if m.checks.is_empty() {
            continue;
        }
        put("signature of its check damaged", &|o| o.checks[k].signature = damaged(&o.checks[k].signature));
        put("seed of its check zero", &|o| o.checks[k].seeds[0] = [0; 32]);
        put("no seed in its check", &|o| o.checks[k].seeds.clear());
        put("a seed too many in its check", &|o| o.checks[k].seeds.push([1; 32]));
    }
    for k in 0..m.low.len() {
        l.put(format!("word {k} one more"), |o| o.low[k] = o.low[k].wrapping_add(1));
        l.put(format!("word {k} other in its highest bit"), |o| o.low[k] ^= 1 << 63);
        l.put(format!("carry {k} one more"), |o| o.high[k] += 1);
        l.put(format!("carry {k} the most"), |o| o.high[k] = u16::MAX);
    }
    l.put("a number added and a commitment to fit it", |o| {
        let point = |bytes| CompressedRistretto(bytes).decompress().expect("a point");
        let (sum, over) = o.low[0].overflowing_add(1);
        (o.low[0], o.high[0]) = (sum, o.high[0] + u16::from(over));
        let more = point(o.inputs[1].commitment) + point(generator(0));
        o.inputs[1].commitment = more.compress().to_bytes();
    });
    l.put("two others' inputs swapped", |o| o.inputs.swap(1, 2));
    l.put("two others' self-masks swapped", |o| o.seeds.swap(1, 2));
    for (what, others) in [("", 0), (", and named as missing", 1)] {
        l.put(format!("everything of the last site left out{what}"), |o| {
            drop((o.alive.pop(), o.inputs.pop(), o.seeds.pop(), o.checks.pop()));
            o.others.extend(vec![Hash::default(); others]);
        });
    }
    l.put("a commitment too many", |o| o.others.push(Hash::default()));
    if !m.others.is_empty() {
        l.put("another commitment of a missing site", |o| o.others[0] = Hash::default());
    }
    match m.agreed.len() {
        0 => l.put("agreements beside checks", |o| {
            o.agreed.push((0, Proof { rest: Hash([1; 32]), signature: o.checks[0].signature }));
        }),
        agreed => {
            l.put("an agreement of a stranger", |o| o.agreed[agreed - 1].0 = n);
            l.put("an agreement that another signed", |o| o.agreed[1].1 = o.agreed[0].1);
            l.put("an agreement to something else", |o| o.agreed[0].1.rest = Hash([1; 32]));
        }
    }
    l.put("everything empty", |o| {
        (o.alive, o.inputs, o.seeds, o.others) = Default::default();
        (o.checks, o.agreed, o.low, o.high) = Default::default();
    });
    l.keyed()
}
