//! Lies of the coordinator: every field of what it sends to sites, in the order of the messages.

use veilsum_proto::{codec, identity::Signature, message::Kind, suite::Hash, vectors_api::commit};

use super::values::{
    Lie, bent, boxes, ciphertexts, flipped, hashes, keyed, lists, numbers, order, proofs, renamed, sites,
};
use crate::{recording::Course, wire::*};

pub(super) fn open_deck(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: Open = p.read();
    let mut all: Vec<(String, Open)> = Vec::new();
    all.extend(hashes("run", &m.0).into_iter().map(|(w, v)| (w, (v, m.1, m.2))));
    all.extend(numbers!("index", m.1, u32::MAX).into_iter().map(|(w, v)| (w, (m.0, v, m.2))));
    all.extend(numbers!("slots", m.2, u16::MAX).into_iter().map(|(w, v)| (w, (m.0, m.1, v))));
    all.retain(|(_, v)| *v != m);
    renamed(all, &p.context, |m| deck_id(&c.session, m))
}

/// No partition any more.
type Partition = (&'static str, fn(&mut Vec<Vec<u16>>));
const BLOCKS: [Partition; 5] = [
    ("none", Vec::clear),
    ("without the last", |b| drop(b.pop())),
    ("an empty one", |b| b.push(Vec::new())),
    ("one twice", |b| b.push(b[0].clone())),
    ("a stranger", |b| b.push(vec![u16::MAX])),
];

pub(super) fn directory(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: Directory = p.read();
    let n = c.told.len() as u16;
    let mut all: Vec<(String, Directory)> = Vec::new();
    let with = |f: &dyn Fn(&mut Directory)| {
        let mut d = m.clone();
        f(&mut d);
        d
    };
    for (w, v) in numbers!("threshold", m.threshold, u16::MAX) {
        all.push((w, with(&|d| d.threshold = v)));
    }
    for (w, v) in lists("entries", &m.entries) {
        // The blocks fit, so that they are not what is wrong.
        let here = |site: &u16| v.iter().any(|e| e.0 == *site);
        let blocks = m.blocks.iter().filter(|block| block.iter().all(here)).cloned().collect();
        all.push((w, Directory { entries: v, blocks, ..m.clone() }));
    }
    for (what, change) in BLOCKS {
        let mut blocks = m.blocks.clone();
        change(&mut blocks);
        all.push((format!("blocks: {what}"), Directory { blocks, ..m.clone() }));
    }
    for (who, k) in [("own", 0), ("other", 2)] {
        let mut put = |what: &str, f: &dyn Fn(&mut (u16, Keys, Proof))| {
            all.push((format!("{who} entry: {what}"), with(&|d| f(&mut d.entries[k]))));
        };
        put("a stranger's number", &|e| e.0 = n);
        put("the largest number", &|e| e.0 = u16::MAX);
        put("X25519 key zero", &|e| e.1.0 = [0; 32]);
        put("X25519 key other", &|e| e.1.0[0] ^= 1);
        put("ML-KEM key zero", &|e| e.1.1 = bent(&e.1.1, |b| b.fill(0)));
        put("ML-KEM key other", &|e| e.1.1 = bent(&e.1.1, |b| b[0] ^= 1));
        put("ML-KEM key with another seed", &|e| e.1.1 = bent(&e.1.1, |b| b[1_183] ^= 1));
        put("ML-KEM key that is none", &|e| e.1.1 = bent(&e.1.1, |b| b.fill(0xff)));
        put("commitments zero", &|e| e.1.2 = Hash::default());
        put("commitments other", &|e| e.1.2 = flipped(&e.1.2));
        put("another block", &|e| e.1.3.0 = Some(flipped(&e.1.2)));
        put("another version", &|e| e.1.3.1 += 1);
        put("more answers", &|e| e.1.3.2.0 += 1);
        put("another last answer", &|e| e.1.3.2.1.0[0] ^= 1);
        put("proof of another message", &|e| e.2.rest = flipped(&e.2.rest));
        put("proof without signature", &|e| e.2.signature = Signature::from_bytes(&[0; 64]));
        put("keys and proof of another site", &|e| (e.1, e.2) = (m.entries[1].1.clone(), m.entries[1].2));
        // Keys that the liar made itself, signed by the liar.
        let (id, hub) = (p.context, &c.kit.identities[0]);
        put("keys of the hub's making", &|e| {
            e.1.0[5] ^= 1;
            e.2 = parts(&raw(hub, &c.session, Kind::AdvertiseKeys, &id, &codec::encode(&e.1))).proof;
        });
        // Keys that the site signed for another deck.
        put("a proof of another deck", &|e| {
            e.2 = parts(&c.sign_as(e.0, Kind::AdvertiseKeys, &flipped(&id), &codec::encode(&e.1))).proof;
        });
    }
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

pub(super) fn directory_certificate(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: Certified = p.read();
    let mut all: Vec<(String, Certified)> = Vec::new();
    all.extend(proofs("proofs", &m.0).into_iter().map(|(w, v)| (w, (v, m.1.clone()))));
    // Everybody signed, but another directory.
    let other = |k: usize| parts(&c.sign_as(k as u16, Kind::AcceptDirectory, &flipped(&p.context), &[0; 8])).proof;
    all.push(("proofs of another directory".into(), ((0..m.0.len()).map(other).collect(), m.1.clone())));
    all.extend(ciphertexts("ciphertexts", &m.1, c.told.len() as u16).into_iter().map(|(w, v)| (w, (m.0.clone(), v))));
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

pub(super) fn delivery(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: Delivery = p.read();
    let mut all: Vec<(String, Delivery)> = Vec::new();
    all.extend(lists("commitments", &m.0).into_iter().map(|(w, v)| (w, (v, m.1.clone()))));
    for (who, k) in [("own", 0), ("other", 2)] {
        let mut put = |what: String, list: Vec<Hash>| {
            let mut lists = m.0.clone();
            lists[k] = list;
            all.push((format!("{who} commitments: {what}"), (lists, m.1.clone())));
        };
        lists("list", &m.0[k]).into_iter().for_each(|(w, list)| put(w, list));
        for slot in 0..m.0[k].len() {
            let mut list = m.0[k].clone();
            list[slot] = flipped(&list[slot]);
            put(format!("that of slot {slot} other"), list);
        }
    }
    all.extend(boxes("boxes", &m.1, c.told.len() as u16).into_iter().map(|(w, v)| (w, (m.0.clone(), v))));
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

pub(super) fn ask(c: &Course, p: &Parts, directory: &Hash) -> Vec<Lie> {
    let m: Ask = p.read();
    let mut all: Vec<(String, Ask)> = Vec::new();
    all.extend(numbers!("deck", m.deck, u32::MAX).map(|(w, deck)| (w, Ask { deck, ..m.clone() })));
    all.extend(numbers!("slot", m.slot, u16::MAX).map(|(w, slot)| (w, Ask { slot, ..m.clone() })));
    all.extend(numbers!("words", m.words, u32::MAX).map(|(w, words)| (w, Ask { words, ..m.clone() })));
    let cohorts = sites("cohort", &m.cohort, c.told.len() as u16);
    all.extend(cohorts.into_iter().map(|(w, cohort)| (w, Ask { cohort, ..m.clone() })));
    let before = hashes("context before", &m.previous_context);
    all.extend(before.into_iter().map(|(w, h)| (w, Ask { previous_context: h, ..m.clone() })));
    let total = hashes("total before", &m.previous_total);
    all.extend(total.into_iter().map(|(w, h)| (w, Ask { previous_total: h, ..m.clone() })));
    all.extend(lists("query", &m.query).into_iter().map(|(w, query)| (w, Ask { query, ..m.clone() })));
    all.retain(|(_, v)| *v != m);
    renamed(all, &p.context, |m| round_context(&c.session, directory, m))
}

pub(super) fn survivors(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: Survivors = p.read();
    let mut all: Vec<(String, Survivors)> = Vec::new();
    let alive = sites("alive", &m.alive, c.told.len() as u16);
    all.extend(alive.into_iter().map(|(w, alive)| (w, Survivors { alive, ..m.clone() })));
    all.extend(proofs("inputs", &m.inputs).into_iter().map(|(w, inputs)| (w, Survivors { inputs, ..m.clone() })));
    // Sites left out with their inputs: a story that fits together.
    for k in 0..m.alive.len() {
        let (mut alive, mut inputs) = (m.alive.clone(), m.inputs.clone());
        let site = alive.remove(k);
        inputs.remove(k);
        all.push((format!("without site {site} and its input"), Survivors { alive, inputs }));
    }
    for keep in [0, 1, 2, 3, 4] {
        let (alive, inputs) = (m.alive[..keep].to_vec(), m.inputs[..keep].to_vec());
        all.push((format!("only the first {keep}"), Survivors { alive, inputs }));
    }
    // A missing site is said to have answered: the liar signs in its place.
    if let Some(missing) = (0..c.told.len() as u16).find(|s| !m.alive.contains(s)) {
        let (mut alive, mut inputs) = (m.alive.clone(), m.inputs.clone());
        alive.push(missing);
        inputs.push(parts(&c.sign(Kind::MaskedInput, &p.context, &[0; 8 * WORDS])).proof);
        all.push(("a missing site whose input the hub signed".into(), Survivors { alive, inputs }));
    }
    // An answer to another question.
    let mut inputs = m.inputs.clone();
    inputs[1] = parts(&c.sign_as(m.alive[1], Kind::MaskedInput, &flipped(&p.context), &[0; 8 * WORDS])).proof;
    all.push(("an input in another context".into(), Survivors { inputs, ..m.clone() }));
    // A signature of the right site, but on something else than an input.
    let mut inputs = m.inputs.clone();
    inputs[1] = parts(&c.sign_as(m.alive[1], Kind::ConsistencyCheck, &p.context, &[0; 8 * WORDS])).proof;
    all.push(("a signature on another kind".into(), Survivors { inputs, ..m.clone() }));
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

pub(super) fn certificate(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: Certificate = p.read();
    let inputs = c.inputs(&p.context, &m.alive);
    let n = c.told.len() as u16;
    let mut all: Vec<(String, Certificate)> = Vec::new();
    all.extend(sites("alive", &m.alive, n).into_iter().map(|(w, alive)| (w, Certificate { alive, ..m.clone() })));
    let signers = sites("signers", &m.signers, n);
    all.extend(signers.into_iter().map(|(w, signers)| (w, Certificate { signers, ..m.clone() })));
    all.extend(proofs("proofs", &m.proofs).into_iter().map(|(w, proofs)| (w, Certificate { proofs, ..m.clone() })));
    let mut put = |what: &str, f: &dyn Fn(&mut Certificate)| {
        let mut l = m.clone();
        f(&mut l);
        all.push((what.into(), l));
    };
    put("another hash of the inputs", &|l| l.inputs = flipped(&l.inputs));
    put("one signature too few", &|l| {
        l.signers.pop();
        l.proofs.pop();
    });
    put("one signer twice, with its signature", &|l| {
        l.signers[1] = l.signers[0];
        l.proofs[1] = l.proofs[0];
    });
    put("the first signer twice beside the others", &|l| {
        l.signers.insert(0, l.signers[0]);
        l.proofs.insert(0, l.proofs[0]);
    });
    put("signatures on fewer survivors", &|l| {
        let context = survivors_context(&p.context, &l.alive[1..], &inputs[1..]);
        l.proofs =
            l.signers.iter().map(|s| parts(&c.sign_as(*s, Kind::ConsistencyCheck, &context, b"")).proof).collect();
    });
    put("signatures of another round", &|l| {
        let context = survivors_context(&flipped(&p.context), &l.alive, &inputs);
        l.proofs =
            l.signers.iter().map(|s| parts(&c.sign_as(*s, Kind::ConsistencyCheck, &context, b"")).proof).collect();
    });
    put("signatures on another input", &|l| {
        let mut inputs = inputs.clone();
        inputs[1] = flipped(&inputs[1]);
        let context = survivors_context(&p.context, &l.alive, &inputs);
        l.proofs =
            l.signers.iter().map(|s| parts(&c.sign_as(*s, Kind::ConsistencyCheck, &context, b"")).proof).collect();
    });
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

pub(super) fn opening(p: &Parts, n: u16) -> Vec<Lie> {
    let m: Opening = p.read();
    let mut all: Vec<(String, Opening)> = Vec::new();
    all.extend(sites("alive", &m.alive, n).into_iter().map(|(w, alive)| (w, Opening { alive, ..m.clone() })));
    all.extend(lists("inputs", &m.inputs).into_iter().map(|(w, inputs)| (w, Opening { inputs, ..m.clone() })));
    all.extend(lists("seeds", &m.seeds).into_iter().map(|(w, seeds)| (w, Opening { seeds, ..m.clone() })));
    all.extend(lists("others", &m.others).into_iter().map(|(w, others)| (w, Opening { others, ..m.clone() })));
    all.extend(lists("checks", &m.checks).into_iter().map(|(w, checks)| (w, Opening { checks, ..m.clone() })));
    all.extend(lists("agreed", &m.agreed).into_iter().map(|(w, agreed)| (w, Opening { agreed, ..m.clone() })));
    all.extend(lists("low", &m.low).into_iter().map(|(w, low)| (w, Opening { low, ..m.clone() })));
    all.extend(lists("high", &m.high).into_iter().map(|(w, high)| (w, Opening { high, ..m.clone() })));
    let mut put = |what: String, f: &dyn Fn(&mut Opening)| {
        let mut o = m.clone();
        f(&mut o);
        all.push((what, o));
    };
    let damaged = |s: &Signature| {
        let mut bytes = s.to_bytes();
        bytes[40] ^= 1;
        Signature::from_bytes(&bytes)
    };
    // The site that is told it is the first; what is said of it and what is said of another are checked differently.
    for k in [0, m.alive.len() - 1] {
        put(format!("input {k}: commitment of zeros"), &|o| o.inputs[k].commitment = [0; 32]);
        put(format!("input {k}: commitment that is no point"), &|o| o.inputs[k].commitment = [0xff; 32]);
        put(format!("input {k}: commitment other"), &|o| o.inputs[k].commitment = commit(&[1]));
        put(format!("input {k}: hash zero"), &|o| o.inputs[k].digest = Hash::default());
        put(format!("input {k}: hash other"), &|o| o.inputs[k].digest = flipped(&o.inputs[k].digest));
        put(format!("self-mask {k}: zero"), &|o| o.seeds[k] = [0; 32]);
        put(format!("self-mask {k}: other"), &|o| o.seeds[k][1] ^= 1);
        put(format!("self-mask {k}: the group order"), &|o| o.seeds[k] = order());
        put(format!("self-mask {k}: all ones"), &|o| o.seeds[k] = [0xff; 32]);
        put(format!("a stranger in place {k}"), &|o| o.alive[k] = n);
        put(format!("signature {k} of an input damaged"), &|o| {
            o.inputs[k].signature = damaged(&o.inputs[k].signature);
        });
        put(format!("signature {k} of an input zero"), &|o| {
            o.inputs[k].signature = Signature::from_bytes(&[0; 64]);
        });
        if m.checks.is_empty() {
            continue;
        }
        put(format!("signature {k} of a check damaged"), &|o| o.checks[k].signature = damaged(&o.checks[k].signature));
        put(format!("check {k}: seed zero"), &|o| o.checks[k].seeds[0] = [0; 32]);
        put(format!("check {k}: no seed"), &|o| o.checks[k].seeds.clear());
        put(format!("check {k}: a seed too many"), &|o| o.checks[k].seeds.push([1; 32]));
    }
    for k in 0..m.low.len() {
        put(format!("word {k} one more"), &|o| o.low[k] = o.low[k].wrapping_add(1));
        put(format!("word {k} other in its highest bit"), &|o| o.low[k] ^= 1 << 63);
        put(format!("carry {k} one more"), &|o| o.high[k] += 1);
        put(format!("carry {k} the most"), &|o| o.high[k] = u16::MAX);
    }
    put("everything of the last site left out".into(), &|o| {
        o.alive.pop();
        o.inputs.pop();
        o.seeds.pop();
        o.checks.pop();
        o.others.push(Hash::default());
    });
    put("a commitment too many".into(), &|o| o.others.push(Hash::default()));
    put("everything empty".into(), &|o| {
        *o = Opening {
            alive: vec![],
            inputs: vec![],
            seeds: vec![],
            others: vec![],
            checks: vec![],
            agreed: vec![],
            low: vec![],
            high: vec![],
        };
    });
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}
