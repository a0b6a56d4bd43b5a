//! Lies of a site: every field of what it sends to the coordinator, in the order of the messages.

use veilsum_proto::{Rule, codec, suite::Hash, vectors_api::commit};

use super::values::{Lie, Lies, bend, boxes, ciphertexts, flipped, hashes, lists, scalars, sites};
use crate::{recording::Course, wire::*};

pub(super) fn advertise(p: &Parts, other: &Keys) -> Vec<Lie> {
    let mut l = Lies::<Keys>::of(p);
    l.put("X25519 key zero", |k| k.0 = [0; 32]);
    l.put("X25519 key of all ones", |k| k.0 = [0xff; 32]);
    l.put("ML-KEM key that is none", |k| bend(&mut k.1, |b| b.fill(0xff)));
    l.put("ML-KEM key with one coefficient too large", |k| bend(&mut k.1, |b| (b[0], b[1]) = (0xff, b[1] | 0x0f)));
    l.put("ML-KEM key zero", |k| bend(&mut k.1, |b| b.fill(0)));
    l.put("ML-KEM key with another seed", |k| bend(&mut k.1, |b| b[1_183] ^= 1));
    l.field(hashes("commitments", &l.honest.2), |k, v| k.2 = v);
    l.put("X25519 key of another", |k| k.0 = other.0);
    l.put("ML-KEM key of another", |k| k.1 = other.1.clone());
    l.put("another's advertisement", |k| *k = other.clone());
    l.keyed()
}

pub(super) fn accept_directory(c: &Course, p: &Parts) -> Vec<Lie> {
    let mut l = Lies::<Ciphertexts>::of(p);
    l.field(ciphertexts("ciphertexts", &l.honest, c.told.len() as u16), |m, v| *m = v);
    l.keyed()
}

pub(super) fn share_keys(c: &Course, p: &Parts) -> Vec<Lie> {
    let mut l = Lies::<Sealed>::of(p);
    l.field(lists("commitments", &l.honest.0), |m, v| m.0 = v);
    l.put("commitments: one other", |m| m.0[0] = flipped(&m.0[0]));
    l.field(boxes("boxes", &l.honest.1, c.told.len() as u16), |m, v| m.1 = v);
    l.keyed()
}

pub(super) fn complaint(c: &Course, p: &Parts, me: u16) -> Vec<Lie> {
    let n = c.told.len() as u16;
    let mut l = Lies::<u16>::of(p);
    let against = [("a stranger", n), ("the largest number", u16::MAX), ("oneself", me), ("another", (me + 1) % 3)];
    l.field(against.map(|(w, v)| (format!("against {w}"), v)), |m, v| *m = v);
    l.keyed()
}

pub(super) fn masked_input(p: &Parts, other: &[u8]) -> Vec<Lie> {
    let (own, end) = (&p.rest[..], p.rest.len());
    let mut off = p.rest.clone();
    off[32] = off[32].wrapping_add(1);
    let mut turned = p.rest.clone();
    turned[3] ^= 1;
    let all = [
        ("no words", Vec::new()),
        ("one word less", own[..end - 8].to_vec()),
        ("one word more", [own, &[0; 8]].concat()),
        ("one byte less", own[..end - 1].to_vec()),
        ("zeros", vec![0; end]),
        ("ones", vec![0xff; end]),
        ("another site's vector", other.to_vec()),
        ("another site's words behind the own commitment", [&own[..32], &other[32..]].concat()),
        ("another site's commitment before the own words", [&other[..32], &own[32..]].concat()),
        ("no point for a commitment", [&[0xff; 32], &own[32..]].concat()),
        ("the commitment to nothing", [&[0; 32], &own[32..]].concat()),
        ("no commitment", own[32..].to_vec()),
        ("a commitment alone", own[..32].to_vec()),
        ("half a commitment", own[..16].to_vec()),
        ("one word other, and committed to", [&commit(&words(&off))[..], &off[32..]].concat()),
        ("one word other", off),
        ("one bit of the commitment", turned),
    ];
    all.into_iter().map(|(name, rest)| (name.into(), p.context, rest)).collect()
}

pub(super) fn consistency(c: &Course, p: &Parts, alive: &[u16]) -> Vec<Lie> {
    let n = c.told.len() as u16;
    let mut l = Lies::<Check>::of(p);
    let round = l.honest.0;
    l.field(hashes("round", &round), |m, v| m.0 = v);
    l.field(lists("seeds", &l.honest.1), |m, v| m.1 = v);
    for (w, site) in [("a survivor", alive[1]), ("a stranger", n), ("the largest", u16::MAX)] {
        l.put(format!("seed of {w}"), |m| m.1.iter_mut().for_each(|s| s.0 = site));
        l.put(format!("one more seed, of {w}"), |m| m.1.push((site, [7; 32])));
    }
    l.put("seed zero", |m| m.1.iter_mut().for_each(|s| s.1 = [0; 32]));
    l.put("seed other", |m| m.1.iter_mut().for_each(|s| s.1 = [0x5a; 32]));
    let mut lies = l.keyed();
    // Signatures on other survivors.
    for (w, set) in sites("signed alive", alive, n) {
        lies.push((w, survivors_context(&round, &set, &c.inputs(&round, &set)), p.rest.clone()));
    }
    let mut inputs: Vec<Hash> = c.inputs(&round, alive);
    // Nothing is known of a round whose inputs the hub never showed.
    if let Some(first) = inputs.first_mut() {
        *first = flipped(first);
        lies.push(("signed another input".into(), survivors_context(&round, alive, &inputs), p.rest.clone()));
    }
    lies.retain(|(_, context, rest)| *context != p.context || *rest != p.rest);
    lies
}

pub(super) fn unmask(p: &Parts, other: &[[u8; 32]]) -> Vec<Lie> {
    let mut l = Lies::<Vec<[u8; 32]>>::of(p);
    l.field(lists("shares", &l.honest), |m, v| *m = v);
    for (w, value) in scalars() {
        l.put(format!("a share {w}"), |m| m[0] = value);
        l.put(format!("every share {w}"), |m| m.fill(value));
    }
    l.put("another site's shares", |m| *m = other.to_vec());
    l.keyed()
}

pub(super) fn refusal(p: &Parts) -> Vec<Lie> {
    let texts = ["", "\u{1b}[31m", "a rule whose name is longer than any", "POL\n2", "\u{202e}LOP"];
    let mut l = Lies::<String>::of(p);
    l.field(texts.map(|t| (format!("rule {t:?}"), t.to_owned())), |m, v| *m = v);
    let mut all = l.keyed();
    let mut bytes = codec::encode(&Rule::Pol2);
    bytes[8] = 0xff;
    all.push(("rule that is no text".into(), p.context, bytes));
    all
}
