//! Lies of an authentic peer: every field of every message changed, under a signature that is right. Lies that somebody has to think
//! of are in the bad vectors; here are those besides that are made of more than one field.

use veilsum_proto::message::HEADER;

use crate::{prelude::*, recording::Course};

mod values;

pub use values::Lie;
use values::{Lies, bytes, flipped};

/// Every field of the message, changed in every way; `directory` is that in whose deck the round is.
pub fn typed(c: &Course, p: &Parts, directory: &Hash) -> Vec<Lie> {
    let n = c.told.len() as u16;
    let other = |what: &str, rest: Vec<u8>| (what.to_owned(), p.context, rest);
    match p.kind {
        Kind::OpenDeck => Lies::<Open>::of(p, n).renamed(|m| deck_id(&c.session, m)),
        Kind::AdvertiseKeys => Lies::<Keys>::of(p, n).keyed(),
        Kind::Directory => keys(c, p, n),
        Kind::AcceptDirectory => Lies::<Ciphertexts>::of(p, n).keyed(),
        Kind::DirectoryCertificate => Lies::<Certified>::of(p, n).keyed(),
        Kind::ShareKeys => Lies::<Sealed>::of(p, n).keyed(),
        Kind::DeliverShares => Lies::<Delivery>::of(p, n).keyed(),
        Kind::ShareComplaint => Lies::<u16>::of(p, n).keyed(),
        Kind::Ask => Lies::<Ask>::of(p, n).renamed(|m| round_context(&c.session, directory, m)),
        Kind::MaskedInput => bytes(&p.rest, |rest| rest).into_iter().map(|(w, rest)| other(&w[2..], rest)).collect(),
        Kind::Survivors => survivors(p, n),
        Kind::ConsistencyCheck => Lies::<Check>::of(p, n).keyed(),
        Kind::Certificate => certificate(p, n),
        Kind::Opening => Lies::<Opening>::of(p, n).keyed(),
        Kind::Unmask => Lies::<Vec<[u8; 32]>>::of(p, n).keyed(),
        Kind::Refusal => Lies::<String>::of(p, n).keyed(),
        Kind::ShareAck => vec![other("a byte", vec![0]), other("a hash", p.context.0.to_vec())],
        // The application's own kinds are nobody's here: `everywhere` below is all there is to try.
        _ => Vec::new(),
    }
}

/// A site's own fault, or a replay: keys of another in a directory, and a proof of another deck.
fn keys(c: &Course, p: &Parts, n: u16) -> Vec<Lie> {
    let mut l = Lies::<Directory>::of(p, n);
    let signed = |e: &(u16, Keys, Proof), deck: &Hash| {
        parts(&c.sign_as(e.0, Kind::AdvertiseKeys, deck, &codec::encode(&e.1))).proof
    };
    l.put("keys and proof of another", |m| {
        (m.entries[2].1, m.entries[2].2) = (m.entries[1].1.clone(), m.entries[1].2);
    });
    l.put("ML-KEM key of another, signed by its site", |m| {
        m.entries[2].1.1 = m.entries[1].1.1.clone();
        m.entries[2].2 = signed(&m.entries[2], &p.context);
    });
    l.put("a proof of another deck", |m| m.entries[2].2 = signed(&m.entries[2], &flipped(&p.context)));
    l.keyed()
}

/// Sites left out with their inputs: a story that fits together.
fn survivors(p: &Parts, n: u16) -> Vec<Lie> {
    let mut l = Lies::<Survivors>::of(p, n);
    for (k, who) in l.honest.alive.clone().into_iter().enumerate() {
        l.put(format!("without site {who} and its input"), |m| _ = (m.alive.remove(k), m.inputs.remove(k)));
    }
    l.keyed()
}

/// Signers with their signatures.
fn certificate(p: &Parts, n: u16) -> Vec<Lie> {
    let mut l = Lies::<Certificate>::of(p, n);
    l.put("nobody", |m| (m.alive, m.signers, m.proofs) = Default::default());
    l.put("the first two signers swapped, with their signatures", |m| {
        m.signers.swap(0, 1);
        m.proofs.swap(0, 1);
    });
    l.keyed()
}

/// Changes that every kind has in common: the frame, signed rightly where that is not the lie itself.
pub fn everywhere(c: &Course, p: &Parts, signer: &Identity) -> Vec<(String, Vec<u8>)> {
    let sign = |kind: Kind, context: &Hash, rest: &[u8]| raw(signer, &c.session, kind, context, rest);
    let honest = sign(p.kind, &p.context, &p.rest);
    let rest = |rest: &[u8]| sign(p.kind, &p.context, rest);
    let other = session(&c.kit.terms.hash(), &c.kit.roster.hash(), PartyId::Intermediary);
    let mut all: Vec<(String, Vec<u8>)> = vec![
        ("unsigned tail".into(), [&honest[..], &[0]].concat()),
        ("context zero".into(), sign(p.kind, &Hash::default(), &p.rest)),
        ("context other".into(), sign(p.kind, &flipped(&p.context), &p.rest)),
        // A length that nothing follows.
        ("a huge list".into(), rest(&u64::MAX.to_le_bytes())),
        ("of another session".into(), raw(signer, &other, p.kind, &p.context, &p.rest)),
    ];
    let ends = [0, 1, HEADER, honest.len() / 2, honest.len() - 1];
    all.extend(ends.map(|end| ("unsigned cut".into(), honest[..end].to_vec())));
    // All cuts of short messages; some of long ones, which are lists of the same.
    let cuts = (0..p.rest.len()).step_by(1 + p.rest.len() / 40);
    all.extend(cuts.map(|cut| ("cut".into(), rest(&p.rest[..cut]))));
    all.extend([1, 8, 32].map(|more| ("tail".into(), rest(&[&p.rest[..], &vec![0; more]].concat()))));
    let kinds = Kind::ALL.iter().filter(|k| **k != p.kind);
    all.extend(kinds.map(|kind| (format!("as a {kind:?}"), sign(*kind, &p.context, &p.rest))));
    let thieves = c.kit.identities.iter().enumerate().filter(|(_, i)| i.public() != signer.public());
    let stolen = |by: &Identity| raw(by, &c.session, p.kind, &p.context, &p.rest);
    all.extend(thieves.map(|(i, thief)| (format!("signed by party {i}"), stolen(thief))));
    all
}
