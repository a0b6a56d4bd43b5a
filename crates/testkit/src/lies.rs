//! Lies of an authentic peer: every field of every message changed, under a signature that is right.
//!
//! One list, in the order of the messages, so that a field that is missing from it is seen.

use serde::Serialize;
use veilsum_proto::{
    codec,
    identity::{Identity, Signature},
    kem::Fixed,
    message::{Kind, session},
    roster::PartyId,
    suite::Hash,
    vectors_api::commit,
};

use crate::{recording::Course, wire::*};

/// A changed message: its name, its context and what stands behind the context.
pub type Lie = (String, Hash, Vec<u8>);

fn flipped(h: &Hash) -> Hash {
    let mut h = *h;
    h.0[7] ^= 4;
    h
}

/// Bytes of one length, changed.
fn bent<const N: usize>(bytes: &Fixed<N>, change: impl Fn(&mut [u8])) -> Fixed<N> {
    let mut all: [u8; N] = bytes.bytes().try_into().expect("so many");
    change(&mut all);
    all.into()
}

/// Changes of a hash: nothing, another one.
fn hashes(name: &str, h: &Hash) -> Vec<(String, Hash)> {
    vec![(format!("{name} zero"), Hash::default()), (format!("{name} other"), flipped(h))]
}

macro_rules! numbers {
    ($what:expr, $value:expr, $max:expr) => {
        [("zero", 0), ("max", $max), ("one more", $value.wrapping_add(1)), ("one less", $value.wrapping_sub(1))]
            .map(|(name, v)| (format!("{} {name}", $what), v))
    };
}

/// Changes of a list: entries dropped, doubled, in another order.
fn lists<T: Clone>(name: &str, list: &[T]) -> Vec<(String, Vec<T>)> {
    let change = |what: &str, f: &dyn Fn(&mut Vec<T>)| {
        let mut l = list.to_vec();
        f(&mut l);
        (format!("{name} {what}"), l)
    };
    let mut all = vec![change("empty", &|l| l.clear())];
    if !list.is_empty() {
        all.push(change("without the first", &|l| drop(l.remove(0))));
        all.push(change("without the last", &|l| drop(l.pop())));
        all.push(change("first twice", &|l| l.insert(0, l[0].clone())));
        all.push(change("last twice", &|l| l.push(l[l.len() - 1].clone())));
    }
    if list.len() > 1 {
        all.push(change("first two swapped", &|l| l.swap(0, 1)));
        all.push(change("backwards", &|l| l.reverse()));
        all.push(change("one in place of the next", &|l| l[1] = l[0].clone()));
    }
    all
}

/// Changes of a list of sites: also somebody who is not of it, and not of the roster.
fn sites(name: &str, list: &[u16], n: u16) -> Vec<(String, Vec<u16>)> {
    let mut all = lists(name, list);
    let mut with = |what: &str, s: u16| {
        let mut l = list.to_vec();
        l.push(s);
        all.push((format!("{name} with {what}"), l));
    };
    with("a stranger", n);
    with("the largest number", u16::MAX);
    if let Some(missing) = (0..n).find(|s| !list.contains(s)) {
        with("a missing site", missing);
        let mut l = list.to_vec();
        l.push(missing);
        l.sort_unstable();
        all.push((format!("{name} with a missing site in its place"), l));
    }
    all
}

/// Changes of a list of proofs; of its last one, since the first may be the receiver's own, which it need not check.
fn proofs(name: &str, list: &[Proof]) -> Vec<(String, Vec<Proof>)> {
    let mut all = lists(name, list);
    let mut put = |what: &str, f: &dyn Fn(&mut Proof)| {
        let mut l = list.to_vec();
        l.last_mut().into_iter().for_each(f);
        all.push((format!("{name} {what}"), l));
    };
    put("of another message", &|p| p.rest = flipped(&p.rest));
    put("with a zero signature", &|p| p.signature = Signature::from_bytes(&[0; 64]));
    put("with a damaged signature", &|p| {
        let mut s = p.signature.to_bytes();
        s[40] ^= 1;
        p.signature = Signature::from_bytes(&s);
    });
    all
}

fn keyed<T: Serialize>(list: Vec<(String, T)>, context: &Hash) -> Vec<Lie> {
    list.into_iter().map(|(name, m)| (name, *context, codec::encode(&m))).collect()
}

/// Under the context of the honest message, and under the one that belongs to the changed one.
fn renamed<T: Serialize>(list: Vec<(String, T)>, context: &Hash, name: impl Fn(&T) -> Hash) -> Vec<Lie> {
    let own: Vec<Lie> = list.iter().map(|(what, m)| (format!("{what}, renamed"), name(m), codec::encode(m))).collect();
    keyed(list, context).into_iter().chain(own).collect()
}

fn open_deck(c: &Course, p: &Parts) -> Vec<Lie> {
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

fn directory(c: &Course, p: &Parts) -> Vec<Lie> {
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
        put("mask key zero", &|e| e.1.0 = [0; 32]);
        put("mask key other", &|e| e.1.0[0] ^= 1);
        put("seal key zero", &|e| e.1.1 = [0; 32]);
        put("seal key other", &|e| e.1.1[0] ^= 1);
        put("keys swapped", &|e| std::mem::swap(&mut e.1.0, &mut e.1.1));
        put("ML-KEM key zero", &|e| e.1.2 = bent(&e.1.2, |b| b.fill(0)));
        put("ML-KEM key other", &|e| e.1.2 = bent(&e.1.2, |b| b[0] ^= 1));
        put("ML-KEM key with another seed", &|e| e.1.2 = bent(&e.1.2, |b| b[1_183] ^= 1));
        put("ML-KEM key that is none", &|e| e.1.2 = bent(&e.1.2, |b| b.fill(0xff)));
        put("commitments zero", &|e| e.1.3 = Hash::default());
        put("commitments other", &|e| e.1.3 = flipped(&e.1.3));
        put("another block", &|e| e.1.4.0 = Some(flipped(&e.1.3)));
        put("another version", &|e| e.1.4.1 += 1);
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

fn directory_certificate(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: Vec<Proof> = p.read();
    let mut all = proofs("proofs", &m);
    // Everybody signed, but another directory.
    let other = |k: usize| parts(&c.sign_as(k as u16, Kind::AcceptDirectory, &flipped(&p.context), b"")).proof;
    all.push(("proofs of another directory".into(), (0..m.len()).map(other).collect()));
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

/// Boxes as they travel either way.
fn boxes(name: &str, list: &Boxes, n: u16) -> Vec<(String, Boxes)> {
    let mut all = lists(name, list);
    let mut put = |what: &str, f: &dyn Fn(&mut Boxes)| {
        let mut l = list.clone();
        f(&mut l);
        all.push((format!("{name}: {what}"), l));
    };
    put("a stranger's number", &|l| l[0].0 = n);
    put("the largest number", &|l| l.last_mut().unwrap().0 = u16::MAX);
    put("numbers swapped", &|l| {
        let first = l[0].0;
        l[0].0 = l[1].0;
        l[1].0 = first;
    });
    put("contents swapped", &|l| {
        let first = l[0].2.clone();
        l[0].2 = l[1].2.clone();
        l[1].2 = first;
    });
    put("ciphertexts swapped", &|l| {
        let first = l[0].1.clone();
        l[0].1 = l[1].1.clone();
        l[1].1 = first;
    });
    put("a ciphertext of zeros", &|l| l[0].1 = bent(&l[0].1, |b| b.fill(0)));
    put("one bit of a ciphertext", &|l| l[0].1 = bent(&l[0].1, |b| b[1_087] ^= 0x80));
    put("one empty", &|l| l[0].2.clear());
    put("one of zeros", &|l| l[0].2.fill(0));
    put("one bit of the first byte", &|l| l[0].2[0] ^= 1);
    put("one bit of the tag", &|l| *l[0].2.last_mut().unwrap() ^= 0x80);
    put("one cut", &|l| l[0].2.truncate(100));
    put("one longer", &|l| l[0].2.push(0));
    put("one slot less", &|l| drop(l[0].2.drain(..32)));
    put("one slot more", &|l| l[0].2.extend([0; 32]));
    all
}

fn delivery(c: &Course, p: &Parts) -> Vec<Lie> {
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

fn ask(c: &Course, p: &Parts, directory: &Hash) -> Vec<Lie> {
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

fn survivors(c: &Course, p: &Parts) -> Vec<Lie> {
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

fn certificate(c: &Course, p: &Parts) -> Vec<Lie> {
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

fn advertise(p: &Parts, others: &[Keys]) -> Vec<Lie> {
    let m: Keys = p.read();
    let mut all: Vec<(String, Keys)> = Vec::new();
    let mut put = |what: &str, f: &dyn Fn(&mut Keys)| {
        let mut keys = m.clone();
        f(&mut keys);
        all.push((what.to_owned(), keys));
    };
    put("mask key zero", &|k| k.0 = [0; 32]);
    put("seal key zero", &|k| k.1 = [0; 32]);
    put("one key twice", &|k| k.1 = k.0);
    put("keys swapped", &|k| std::mem::swap(&mut k.0, &mut k.1));
    put("mask key of all ones", &|k| k.0 = [0xff; 32]);
    put("ML-KEM key that is none", &|k| k.2 = bent(&k.2, |b| b.fill(0xff)));
    put("ML-KEM key with one coefficient too large", &|k| k.2 = bent(&k.2, |b| (b[0], b[1]) = (0xff, b[1] | 0x0f)));
    put("ML-KEM key zero", &|k| k.2 = bent(&k.2, |b| b.fill(0)));
    put("ML-KEM key with another seed", &|k| k.2 = bent(&k.2, |b| b[1_183] ^= 1));
    put("commitments zero", &|k| k.3 = Hash::default());
    put("commitments other", &|k| k.3 = flipped(&k.3));
    for o in others {
        put("mask key of another", &|k| k.0 = o.0);
        put("seal key of another", &|k| k.1 = o.1);
        put("another's mask key for sealing", &|k| k.1 = o.0);
        put("ML-KEM key of another", &|k| k.2 = o.2.clone());
        put("another's advertisement", &|k| *k = o.clone());
    }
    keyed(all, &p.context)
}

fn share_keys(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: (Vec<Hash>, Boxes) = p.read();
    let mut all: Vec<(String, (Vec<Hash>, Boxes))> = Vec::new();
    all.extend(lists("commitments", &m.0).into_iter().map(|(w, v)| (w, (v, m.1.clone()))));
    let mut other = m.0.clone();
    other[0] = flipped(&other[0]);
    all.push(("commitments: one other".into(), (other, m.1.clone())));
    all.extend(boxes("boxes", &m.1, c.told.len() as u16).into_iter().map(|(w, v)| (w, (m.0.clone(), v))));
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

fn opening(p: &Parts, n: u16) -> Vec<Lie> {
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

fn complaint(c: &Course, p: &Parts, me: u16) -> Vec<Lie> {
    let n = c.told.len() as u16;
    let against = [("a stranger", n), ("the largest number", u16::MAX), ("oneself", me), ("another", (me + 1) % 3)];
    let honest: u16 = p.read();
    let all = against.into_iter().filter(|a| a.1 != honest);
    keyed(all.map(|(w, v)| (format!("against {w}"), v)).collect(), &p.context)
}

fn masked_input(p: &Parts, other: &[u8]) -> Vec<Lie> {
    let mut all: Vec<(&str, Vec<u8>)> = vec![
        ("no words", Vec::new()),
        ("one word less", p.rest[..p.rest.len() - 8].to_vec()),
        ("one word more", [&p.rest[..], &[0; 8]].concat()),
        ("one byte less", p.rest[..p.rest.len() - 1].to_vec()),
        ("zeros", vec![0; p.rest.len()]),
        ("ones", vec![0xff; p.rest.len()]),
        ("another site's vector", other.to_vec()),
        ("another site's words behind the own commitment", [&p.rest[..32], &other[32..]].concat()),
        ("another site's commitment before the own words", [&other[..32], &p.rest[32..]].concat()),
        ("no point for a commitment", [&[0xff; 32], &p.rest[32..]].concat()),
        ("the commitment to nothing", [&[0; 32], &p.rest[32..]].concat()),
        ("no commitment", p.rest[32..].to_vec()),
        ("a commitment alone", p.rest[..32].to_vec()),
        ("half a commitment", p.rest[..16].to_vec()),
    ];
    let mut off = p.rest.clone();
    off[32] = off[32].wrapping_add(1);
    all.push(("one word other", off.clone()));
    let mut turned = p.rest.clone();
    turned[3] ^= 1;
    all.push(("one bit of the commitment", turned));
    let words: Vec<u64> = off[32..].as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    off[..32].copy_from_slice(&commit(&words));
    all.push(("one word other, and committed to", off));
    all.into_iter().map(|(name, rest)| (name.into(), p.context, rest)).collect()
}

fn consistency(c: &Course, p: &Parts, alive: &[u16]) -> Vec<Lie> {
    let (round, seeds): Check = p.read();
    let mut all: Vec<(String, Check)> = Vec::new();
    all.extend(hashes("round", &round).into_iter().map(|(w, h)| (w, (h, seeds.clone()))));
    all.extend(lists("seeds", &seeds).into_iter().map(|(w, v)| (w, (round, v))));
    for (w, site) in [("a survivor", alive[1]), ("a stranger", c.told.len() as u16), ("the largest", u16::MAX)] {
        let of = |s: &(u16, [u8; 32])| (site, s.1);
        all.push((format!("seed of {w}"), (round, seeds.iter().map(of).collect())));
        let more: Vec<_> = seeds.iter().copied().chain([(site, [7; 32])]).collect();
        all.push((format!("one more seed, of {w}"), (round, more)));
    }
    for (w, value) in [("zero", [0; 32]), ("other", [0x5a; 32])] {
        all.push((format!("seed {w}"), (round, seeds.iter().map(|s| (s.0, value)).collect())));
    }
    let mut lies = keyed(all, &p.context);
    // Signatures on other survivors.
    for (w, set) in sites("signed alive", alive, c.told.len() as u16) {
        lies.push((w, survivors_context(&round, &set, &c.inputs(&round, &set)), p.rest.clone()));
    }
    let mut inputs = c.inputs(&round, alive);
    // Nothing is known of a round whose inputs the hub never showed.
    if let Some(first) = inputs.first_mut() {
        *first = flipped(first);
        lies.push(("signed another input".into(), survivors_context(&round, alive, &inputs), p.rest.clone()));
    }
    lies.retain(|(_, context, rest)| *context != p.context || *rest != p.rest);
    lies
}

fn unmask(p: &Parts, other: &[[u8; 32]]) -> Vec<Lie> {
    let m: Vec<[u8; 32]> = p.read();
    let mut all = lists("shares", &m);
    for (w, value) in [("zero", [0; 32]), ("one", one()), ("the group order", order()), ("all ones", [0xff; 32])] {
        let mut l = m.clone();
        l[0] = value;
        all.push((format!("a share {w}"), l));
        all.push((format!("every share {w}"), vec![value; m.len()]));
    }
    all.push(("another site's shares".into(), other.to_vec()));
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

fn one() -> [u8; 32] {
    let mut b = [0; 32];
    b[0] = 1;
    b
}

/// The order of the scalar field: zero in disguise.
fn order() -> [u8; 32] {
    let mut b = [0; 32];
    b[..16].copy_from_slice(&[
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    ]);
    b[31] = 0x10;
    b
}

fn refusal(p: &Parts) -> Vec<Lie> {
    let texts = ["", "\u{1b}[31m", "a rule whose name is longer than any", "POL\n2", "\u{202e}LOP"];
    let mut all = keyed(texts.into_iter().map(|t| (format!("rule {t:?}"), t.to_owned())).collect(), &p.context);
    let mut bytes = codec::encode("POL-2");
    bytes[8] = 0xff;
    all.push(("rule that is no text".into(), p.context, bytes));
    all
}

/// What else a lie may be made of: taken from the honest run.
#[derive(Default)]
pub struct Around {
    /// The directory in whose deck the round is.
    pub directory: Hash,
    /// The same message as another site sent it.
    pub other: Vec<u8>,
    /// The survivors that the message is about.
    pub alive: Vec<u16>,
    /// The site that sends, where one does.
    pub me: u16,
}

/// Every field of the message, changed in every way.
pub fn typed(c: &Course, p: &Parts, around: &Around) -> Vec<Lie> {
    let other = |_: ()| parts(&around.other);
    match p.kind {
        Kind::OpenDeck => open_deck(c, p),
        Kind::AdvertiseKeys => advertise(p, &[other(()).read()]),
        Kind::Directory => directory(c, p),
        Kind::AcceptDirectory | Kind::ShareAck | Kind::Burned => {
            vec![("something".into(), p.context, vec![0]), ("a hash".into(), p.context, p.context.0.to_vec())]
        }
        Kind::DirectoryCertificate => directory_certificate(c, p),
        Kind::ShareKeys => share_keys(c, p),
        Kind::DeliverShares => delivery(c, p),
        Kind::ShareComplaint => complaint(c, p, around.me),
        Kind::Ask => ask(c, p, &around.directory),
        Kind::MaskedInput => masked_input(p, &other(()).rest),
        Kind::Survivors => survivors(c, p),
        Kind::ConsistencyCheck => consistency(c, p, &around.alive),
        Kind::Certificate => certificate(c, p),
        Kind::Opening => opening(p, c.told.len() as u16),
        Kind::Unmask => unmask(p, &other(()).read::<Vec<[u8; 32]>>()),
        Kind::Refusal => refusal(p),
        // The application's own kinds are nobody's here: `everywhere` below is all there is to try.
        _ => Vec::new(),
    }
}

/// Changes that every kind has in common: the frame, signed rightly where that is not the lie itself.
pub fn everywhere(c: &Course, p: &Parts, signer: &Identity) -> Vec<(String, Vec<u8>)> {
    let sign = |kind: Kind, context: &Hash, rest: &[u8]| raw(signer, &c.session, kind, context, rest);
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    for (w, context) in hashes("context", &p.context) {
        all.push((w, sign(p.kind, &context, &p.rest)));
    }
    // All cuts of short messages; some of long ones, which are lists of the same.
    for cut in (0..p.rest.len()).step_by(1 + p.rest.len() / 40) {
        all.push((format!("cut to {cut}"), sign(p.kind, &p.context, &p.rest[..cut])));
    }
    for more in [1, 8, 32] {
        all.push((format!("{more} bytes more"), sign(p.kind, &p.context, &[&p.rest[..], &vec![0; more]].concat())));
    }
    // A length that nothing follows.
    all.push(("a huge list".into(), sign(p.kind, &p.context, &u64::MAX.to_le_bytes())));
    for kind in Kind::ALL.iter().filter(|k| **k != p.kind) {
        all.push((format!("as a {kind:?}"), sign(*kind, &p.context, &p.rest)));
    }
    let other = session(&c.kit.terms.hash(), &c.kit.roster.hash(), PartyId::Intermediary);
    all.push(("of another session".into(), raw(signer, &other, p.kind, &p.context, &p.rest)));
    for (i, thief) in c.kit.identities.iter().enumerate().filter(|(_, i)| i.public() != signer.public()) {
        all.push((format!("signed by party {i}"), raw(thief, &c.session, p.kind, &p.context, &p.rest)));
    }
    all
}
