//! Lies of a site: every field of what it sends to the coordinator, in the order of the messages.

use veilsum_proto::{Rule, codec, suite::Hash, vectors_api::commit};

use super::values::{Lie, bent, boxes, ciphertexts, flipped, hashes, keyed, lists, one, order, sites};
use crate::{recording::Course, wire::*};

pub(super) fn advertise(p: &Parts, others: &[Keys]) -> Vec<Lie> {
    let m: Keys = p.read();
    let mut all: Vec<(String, Keys)> = Vec::new();
    let mut put = |what: &str, f: &dyn Fn(&mut Keys)| {
        let mut keys = m.clone();
        f(&mut keys);
        all.push((what.to_owned(), keys));
    };
    put("X25519 key zero", &|k| k.0 = [0; 32]);
    put("X25519 key of all ones", &|k| k.0 = [0xff; 32]);
    put("ML-KEM key that is none", &|k| k.1 = bent(&k.1, |b| b.fill(0xff)));
    put("ML-KEM key with one coefficient too large", &|k| k.1 = bent(&k.1, |b| (b[0], b[1]) = (0xff, b[1] | 0x0f)));
    put("ML-KEM key zero", &|k| k.1 = bent(&k.1, |b| b.fill(0)));
    put("ML-KEM key with another seed", &|k| k.1 = bent(&k.1, |b| b[1_183] ^= 1));
    put("commitments zero", &|k| k.2 = Hash::default());
    put("commitments other", &|k| k.2 = flipped(&k.2));
    for o in others {
        put("X25519 key of another", &|k| k.0 = o.0);
        put("ML-KEM key of another", &|k| k.1 = o.1.clone());
        put("another's advertisement", &|k| *k = o.clone());
    }
    keyed(all, &p.context)
}

pub(super) fn accept_directory(c: &Course, p: &Parts) -> Vec<Lie> {
    let m: Ciphertexts = p.read();
    let mut all = ciphertexts("ciphertexts", &m, c.told.len() as u16);
    all.retain(|(_, v)| *v != m);
    keyed(all, &p.context)
}

pub(super) fn share_keys(c: &Course, p: &Parts) -> Vec<Lie> {
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

pub(super) fn complaint(c: &Course, p: &Parts, me: u16) -> Vec<Lie> {
    let n = c.told.len() as u16;
    let against = [("a stranger", n), ("the largest number", u16::MAX), ("oneself", me), ("another", (me + 1) % 3)];
    let honest: u16 = p.read();
    let all = against.into_iter().filter(|a| a.1 != honest);
    keyed(all.map(|(w, v)| (format!("against {w}"), v)).collect(), &p.context)
}

pub(super) fn masked_input(p: &Parts, other: &[u8]) -> Vec<Lie> {
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

pub(super) fn consistency(c: &Course, p: &Parts, alive: &[u16]) -> Vec<Lie> {
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

pub(super) fn unmask(p: &Parts, other: &[[u8; 32]]) -> Vec<Lie> {
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

pub(super) fn refusal(p: &Parts) -> Vec<Lie> {
    let texts = ["", "\u{1b}[31m", "a rule whose name is longer than any", "POL\n2", "\u{202e}LOP"];
    let mut all = keyed(texts.into_iter().map(|t| (format!("rule {t:?}"), t.to_owned())).collect(), &p.context);
    let mut bytes = codec::encode(&Rule::Pol2);
    bytes[8] = 0xff;
    all.push(("rule that is no text".into(), p.context, bytes));
    all
}
