//! Lies about single values (a hash, a number, a list, proofs, boxes), and the messages that are made of them.

use serde::{Serialize, de::DeserializeOwned};
use veilsum_proto::{codec, identity::Signature, kem::Fixed, suite::Hash};

use crate::wire::{Boxes, Ciphertexts, Parts, Proof};

/// A changed message: its name, its context and what stands behind the context.
pub type Lie = (String, Hash, Vec<u8>);

/// An honest message and what was made of it.
pub(super) struct Lies<T> {
    pub(super) honest: T,
    context: Hash,
    all: Vec<(String, T)>,
}

impl<T: Clone + PartialEq + Serialize + DeserializeOwned> Lies<T> {
    pub(super) fn of(p: &Parts) -> Lies<T> {
        Lies { honest: p.read(), context: p.context, all: Vec::new() }
    }

    /// One change.
    pub(super) fn put(&mut self, what: impl Into<String>, change: impl Fn(&mut T)) {
        let mut changed = self.honest.clone();
        change(&mut changed);
        self.all.push((what.into(), changed));
    }

    /// A field that becomes each of these.
    pub(super) fn field<V>(&mut self, values: impl IntoIterator<Item = (String, V)>, set: impl Fn(&mut T, V)) {
        for (what, value) in values {
            let mut changed = self.honest.clone();
            set(&mut changed, value);
            self.all.push((what, changed));
        }
    }

    /// Under the context of the honest message.
    pub(super) fn keyed(mut self) -> Vec<Lie> {
        self.all.retain(|(_, m)| *m != self.honest);
        self.all.into_iter().map(|(what, m)| (what, self.context, codec::encode(&m))).collect()
    }

    /// Under the context of the honest message, and under the one that belongs to the changed one.
    pub(super) fn renamed(mut self, name: impl Fn(&T) -> Hash) -> Vec<Lie> {
        self.all.retain(|(_, m)| *m != self.honest);
        let own = |(what, m): &(String, T)| (format!("{what}, renamed"), name(m), codec::encode(m));
        let own: Vec<Lie> = self.all.iter().map(own).collect();
        self.keyed().into_iter().chain(own).collect()
    }
}

pub(super) fn flipped(h: &Hash) -> Hash {
    let mut h = *h;
    h.0[7] ^= 4;
    h
}

pub(super) fn damaged(s: &Signature) -> Signature {
    let mut bytes = s.to_bytes();
    bytes[40] ^= 1;
    Signature::from_bytes(&bytes)
}

/// Bytes of one length, changed.
pub(super) fn bend<const N: usize>(bytes: &mut Fixed<N>, change: impl Fn(&mut [u8])) {
    let mut all: [u8; N] = bytes.bytes().try_into().expect("so many");
    change(&mut all);
    *bytes = all.into();
}

/// Changes of a hash: nothing, another one.
pub(super) fn hashes(name: &str, h: &Hash) -> [(String, Hash); 2] {
    [(format!("{name} zero"), Hash::default()), (format!("{name} other"), flipped(h))]
}

/// Changes of a number: none, the most, one more, one less.
macro_rules! numbers {
    ($what:expr, $value:expr, $max:expr) => {
        [("zero", 0), ("max", $max), ("one more", $value.wrapping_add(1)), ("one less", $value.wrapping_sub(1))]
            .map(|(name, v)| (format!("{} {name}", $what), v))
    };
}
pub(super) use numbers;

/// A way to change a list, and what it is called.
type Way<'a, T> = (&'a str, &'a dyn Fn(&mut Vec<T>));

/// A list changed in each of these ways.
fn ways<T: Clone>(name: &str, list: &[T], ways: &[Way<'_, T>]) -> Vec<(String, Vec<T>)> {
    let changed = |(what, way): &Way<'_, T>| {
        let mut list = list.to_vec();
        way(&mut list);
        (format!("{name} {what}"), list)
    };
    ways.iter().map(changed).collect()
}

/// Changes of a list: entries dropped, doubled, in another order.
pub(super) fn lists<T: Clone>(name: &str, list: &[T]) -> Vec<(String, Vec<T>)> {
    let all: [Way<'_, T>; 8] = [
        ("empty", &|l| l.clear()),
        ("without the first", &|l| drop(l.remove(0))),
        ("without the last", &|l| drop(l.pop())),
        ("first twice", &|l| l.insert(0, l[0].clone())),
        ("last twice", &|l| l.push(l[l.len() - 1].clone())),
        ("first two swapped", &|l| l.swap(0, 1)),
        ("backwards", &|l| l.reverse()),
        ("one in place of the next", &|l| l[1] = l[0].clone()),
    ];
    ways(name, list, &all[..[1, 5, 8][list.len().min(2)]])
}

/// Changes of a list of sites: also somebody who is not of it, and not of the roster.
pub(super) fn sites(name: &str, list: &[u16], n: u16) -> Vec<(String, Vec<u16>)> {
    let mut all = lists(name, list);
    let with = [("a stranger", n), ("the largest number", u16::MAX)];
    all.extend(with.map(|(what, site)| (format!("{name} with {what}"), [list, &[site]].concat())));
    if let Some(missing) = (0..n).find(|s| !list.contains(s)) {
        let mut with = [list, &[missing]].concat();
        all.push((format!("{name} with a missing site"), with.clone()));
        with.sort_unstable();
        all.push((format!("{name} with a missing site in its place"), with));
    }
    all
}

/// Changes of a list of proofs; of its last one, since the first may be the receiver's own, which it need not check.
pub(super) fn proofs(name: &str, list: &[Proof]) -> Vec<(String, Vec<Proof>)> {
    let mut all = lists(name, list);
    if let Some(last) = list.len().checked_sub(1) {
        all.extend(ways(
            name,
            list,
            &[
                ("of another message", &|l| l[last].rest = flipped(&l[last].rest)),
                ("with a zero signature", &|l| l[last].signature = Signature::from_bytes(&[0; 64])),
                ("with a damaged signature", &|l| l[last].signature = damaged(&l[last].signature)),
            ],
        ));
    }
    all
}

/// Ciphertexts as they travel either way.
pub(super) fn ciphertexts(name: &str, list: &Ciphertexts, n: u16) -> Vec<(String, Ciphertexts)> {
    let mut all = lists(name, list);
    all.extend(ways(
        &format!("{name}:"),
        list,
        &[
            ("a stranger's number", &|l| l[0].0 = n),
            ("the largest number", &|l| l.last_mut().unwrap().0 = u16::MAX),
            ("one more of a stranger", &|l| l.push((n, l[0].1.clone()))),
            ("contents swapped", &|l| (l[0].1, l[1].1) = (l[1].1.clone(), l[0].1.clone())),
            ("one of zeros", &|l| bend(&mut l[0].1, |b| b.fill(0))),
            ("one bit", &|l| bend(&mut l[0].1, |b| b[1_087] ^= 0x80)),
        ],
    ));
    for site in (0..n).filter(|site| list.iter().all(|c| c.0 != *site)) {
        let mut more = list.clone();
        more.push((site, list[0].1.clone()));
        more.sort_by_key(|c| c.0);
        all.push((format!("{name}: one more of site {site}"), more));
    }
    all
}

/// Boxes as they travel either way.
pub(super) fn boxes(name: &str, list: &Boxes, n: u16) -> Vec<(String, Boxes)> {
    let mut all = lists(name, list);
    all.extend(ways(
        &format!("{name}:"),
        list,
        &[
            ("a stranger's number", &|l| l[0].0 = n),
            ("the largest number", &|l| l.last_mut().unwrap().0 = u16::MAX),
            ("numbers swapped", &|l| (l[0].0, l[1].0) = (l[1].0, l[0].0)),
            ("contents swapped", &|l| (l[0].1, l[1].1) = (l[1].1.clone(), l[0].1.clone())),
            ("one empty", &|l| l[0].1.clear()),
            ("one of zeros", &|l| l[0].1.fill(0)),
            ("one bit of the first byte", &|l| l[0].1[0] ^= 1),
            ("one bit of the tag", &|l| *l[0].1.last_mut().unwrap() ^= 0x80),
            ("one cut", &|l| l[0].1.truncate(100)),
            ("one longer", &|l| l[0].1.push(0)),
            ("one slot less", &|l| drop(l[0].1.drain(..32))),
            ("one slot more", &|l| l[0].1.extend([0; 32])),
        ],
    ));
    all
}

/// The order of the scalar field: zero in disguise.
pub(super) fn order() -> [u8; 32] {
    let low = 27_742_317_777_372_353_535_851_937_790_883_648_493_u128;
    let mut order = [0; 32];
    order[..16].copy_from_slice(&low.to_le_bytes());
    order[31] = 0x10;
    order
}

/// Values for what is a scalar where it is honest.
pub(super) fn scalars() -> [(&'static str, [u8; 32]); 4] {
    let mut one = [0; 32];
    one[0] = 1;
    [("zero", [0; 32]), ("one", one), ("the group order", order()), ("all ones", [0xff; 32])]
}
