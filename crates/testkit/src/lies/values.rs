//! Lies about single values (a hash, a number, a list, proofs, boxes), of which the lies about whole messages are made.

use serde::Serialize;
use veilsum_proto::{codec, identity::Signature, kem::Fixed, suite::Hash};

use crate::wire::{Boxes, Ciphertexts, Proof};

/// A changed message: its name, its context and what stands behind the context.
pub type Lie = (String, Hash, Vec<u8>);

pub(super) fn flipped(h: &Hash) -> Hash {
    let mut h = *h;
    h.0[7] ^= 4;
    h
}

/// Bytes of one length, changed.
pub(super) fn bent<const N: usize>(bytes: &Fixed<N>, change: impl Fn(&mut [u8])) -> Fixed<N> {
    let mut all: [u8; N] = bytes.bytes().try_into().expect("so many");
    change(&mut all);
    all.into()
}

/// Changes of a hash: nothing, another one.
pub(super) fn hashes(name: &str, h: &Hash) -> Vec<(String, Hash)> {
    vec![(format!("{name} zero"), Hash::default()), (format!("{name} other"), flipped(h))]
}

/// Changes of a number: none, the most, one more, one less.
macro_rules! numbers {
    ($what:expr, $value:expr, $max:expr) => {
        [("zero", 0), ("max", $max), ("one more", $value.wrapping_add(1)), ("one less", $value.wrapping_sub(1))]
            .map(|(name, v)| (format!("{} {name}", $what), v))
    };
}
pub(super) use numbers;

/// Changes of a list: entries dropped, doubled, in another order.
pub(super) fn lists<T: Clone>(name: &str, list: &[T]) -> Vec<(String, Vec<T>)> {
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
pub(super) fn sites(name: &str, list: &[u16], n: u16) -> Vec<(String, Vec<u16>)> {
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
pub(super) fn proofs(name: &str, list: &[Proof]) -> Vec<(String, Vec<Proof>)> {
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

pub(super) fn keyed<T: Serialize>(list: Vec<(String, T)>, context: &Hash) -> Vec<Lie> {
    list.into_iter().map(|(name, m)| (name, *context, codec::encode(&m))).collect()
}

/// Under the context of the honest message, and under the one that belongs to the changed one.
pub(super) fn renamed<T: Serialize>(list: Vec<(String, T)>, context: &Hash, name: impl Fn(&T) -> Hash) -> Vec<Lie> {
    let own: Vec<Lie> = list.iter().map(|(what, m)| (format!("{what}, renamed"), name(m), codec::encode(m))).collect();
    keyed(list, context).into_iter().chain(own).collect()
}

/// Ciphertexts as they travel either way.
pub(super) fn ciphertexts(name: &str, list: &Ciphertexts, n: u16) -> Vec<(String, Ciphertexts)> {
    let mut all = lists(name, list);
    let mut put = |what: &str, f: &dyn Fn(&mut Ciphertexts)| {
        let mut l = list.clone();
        f(&mut l);
        all.push((format!("{name}: {what}"), l));
    };
    put("a stranger's number", &|l| l[0].0 = n);
    put("the largest number", &|l| l.last_mut().unwrap().0 = u16::MAX);
    put("contents swapped", &|l| {
        let first = l[0].1.clone();
        l[0].1 = l[1].1.clone();
        l[1].1 = first;
    });
    put("one of zeros", &|l| l[0].1 = bent(&l[0].1, |b| b.fill(0)));
    put("one bit", &|l| l[0].1 = bent(&l[0].1, |b| b[1_087] ^= 0x80));
    all
}

/// Boxes as they travel either way.
pub(super) fn boxes(name: &str, list: &Boxes, n: u16) -> Vec<(String, Boxes)> {
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
        let first = l[0].1.clone();
        l[0].1 = l[1].1.clone();
        l[1].1 = first;
    });
    put("one empty", &|l| l[0].1.clear());
    put("one of zeros", &|l| l[0].1.fill(0));
    put("one bit of the first byte", &|l| l[0].1[0] ^= 1);
    put("one bit of the tag", &|l| *l[0].1.last_mut().unwrap() ^= 0x80);
    put("one cut", &|l| l[0].1.truncate(100));
    put("one longer", &|l| l[0].1.push(0));
    put("one slot less", &|l| drop(l[0].1.drain(..32)));
    put("one slot more", &|l| l[0].1.extend([0; 32]));
    all
}

pub(super) fn one() -> [u8; 32] {
    let mut b = [0; 32];
    b[0] = 1;
    b
}

/// The order of the scalar field: zero in disguise.
pub(super) fn order() -> [u8; 32] {
    let mut b = [0; 32];
    b[..16].copy_from_slice(&[
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    ]);
    b[31] = 0x10;
    b
}
