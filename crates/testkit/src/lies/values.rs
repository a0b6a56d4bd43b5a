//! A message changed in every field, whatever it is made of: its numbers, bytes, texts and lists are found in its form in JSON. What
//! is no message of this kind any more is left out.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use veilsum_proto::{codec, identity::from_hex, suite::Hash};

use crate::{vectors::text, wire::Parts};

/// A changed message: its name, its context and what stands behind the context.
pub type Lie = (String, Hash, Vec<u8>);

/// An honest message and what was made of it.
pub(super) struct Lies<T> {
    pub(super) honest: T,
    context: Hash,
    all: Vec<(String, T)>,
}

impl<T: Clone + PartialEq + Serialize + DeserializeOwned> Lies<T> {
    /// Every field changed, in a federation of `n` sites.
    pub(super) fn of(p: &Parts, n: u16) -> Lies<T> {
        let honest: T = p.read();
        Lies { all: changes(&honest, n), honest, context: p.context }
    }

    /// One change more.
    pub(super) fn put(&mut self, what: impl Into<String>, change: impl Fn(&mut T)) {
        let mut changed = self.honest.clone();
        change(&mut changed);
        self.all.push((what.into(), changed));
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

/// All changes of a value that leave it one of its type, in a federation of `n` sites.
fn changes<T: Serialize + DeserializeOwned>(honest: &T, n: u16) -> Vec<(String, T)> {
    let honest = serde_json::to_value(honest).expect("a form in JSON");
    let read = |(what, value): (String, Value)| {
        Some((what.trim_start_matches([':', ' ']).to_owned(), serde_json::from_value(value).ok()?))
    };
    changed(&honest, n).into_iter().filter_map(read).collect()
}

/// Entries of a list that are looked into: all of a short one, which may be several fields, or the first and the last.
fn looked_into(length: usize) -> Vec<usize> {
    if length > 4 { vec![0, length - 1] } else { (0..length).collect() }
}

/// A value changed in each way, with the way to the place.
fn changed(value: &Value, n: u16) -> Vec<(String, Value)> {
    let at = |place: &dyn Fn(&mut Value) -> &mut Value, name: String| {
        let inside = changed(place(&mut value.clone()), n).into_iter();
        let put = |(what, new): (String, Value)| {
            let mut whole = value.clone();
            *place(&mut whole) = new;
            (format!(" {name}{what}"), whole)
        };
        inside.map(put).collect::<Vec<_>>()
    };
    match value {
        Value::Null => vec![(": there".into(), text(&[1; 32]))],
        Value::Bool(_) => Vec::new(),
        Value::Number(number) => numbers(number.as_u64().expect("a whole number"), n),
        Value::String(said) => match from_hex(said).filter(|bytes| bytes.len() >= 32) {
            Some(found) => bytes(&found, |bytes| text(&bytes)),
            None => ["", "\u{1b}[31m", "a rule whose name is longer than any", "POL\n2", "\u{202e}LOP"]
                .map(|text| (format!(": {text:?}"), json!(text)))
                .into(),
        },
        Value::Object(fields) => fields.keys().flat_map(|key| at(&|v| &mut v[key], key.clone())).collect(),
        Value::Array(list) => match serde_json::from_value::<Vec<u8>>(value.clone()) {
            Ok(found) if found.len() >= 32 => bytes(&found, |bytes| json!(bytes)),
            _ => {
                let inside = looked_into(list.len()).into_iter().flat_map(|i| at(&|v| &mut v[i], i.to_string()));
                lists(list, n).into_iter().chain(inside).collect()
            }
        },
    }
}

fn numbers(x: u64, n: u16) -> Vec<(String, Value)> {
    let near =
        [("zero", 0), ("one more", x.wrapping_add(1)), ("one less", x.wrapping_sub(1)), ("a stranger's", n.into())];
    let most = [("the most of 16 bits", u16::MAX.into()), ("of 32", u32::MAX.into()), ("of 64", u64::MAX)];
    near.into_iter().chain(most).map(|(what, x)| (format!(": {what}"), json!(x))).collect()
}

/// A way to change a list, and what it is called.
type Way<'a, T> = (&'a str, &'a dyn Fn(&mut Vec<T>));

fn ways<T: Clone, V>(list: &[T], ways: &[Way<'_, T>], form: impl Fn(Vec<T>) -> V) -> Vec<(String, V)> {
    let changed = |(what, way): &Way<'_, T>| {
        let mut list = list.to_vec();
        way(&mut list);
        (format!(": {what}"), form(list))
    };
    ways.iter().map(changed).collect()
}

/// Keys, hashes, signatures, ciphertexts, boxes: other ones; and of those that may have any, of another length.
pub(super) fn bytes<V>(bytes: &[u8], form: impl Fn(Vec<u8>) -> V) -> Vec<(String, V)> {
    let last = bytes.len() - 1;
    let all: [Way<'_, u8>; 9] = [
        ("zeros", &|l| l.fill(0)),
        ("ones", &|l| l.fill(0xff)),
        ("a bit of the first byte", &|l| l[0] ^= 1),
        ("a bit of the last byte", &|l| l[last] ^= 0x80),
        ("empty", &|l| l.clear()),
        ("cut", &|l| l.truncate(last)),
        ("longer", &|l| l.push(0)),
        ("one slot less", &|l| drop(l.drain(..32))),
        ("one slot more", &|l| l.extend([0; 32])),
    ];
    ways(bytes, &all, form)
}

/// Entries dropped, doubled, in another order; of sites, or of what belongs to sites, also of somebody who is missing or a stranger.
fn lists(list: &[Value], n: u16) -> Vec<(String, Value)> {
    let all: [Way<'_, Value>; 8] = [
        ("empty", &|l| l.clear()),
        ("without the first", &|l| drop(l.remove(0))),
        ("without the last", &|l| drop(l.pop())),
        ("first twice", &|l| l.insert(0, l[0].clone())),
        ("last twice", &|l| l.push(l[l.len() - 1].clone())),
        ("first two swapped", &|l| l.swap(0, 1)),
        ("backwards", &|l| l.reverse()),
        ("one in place of the next", &|l| l[1] = l[0].clone()),
    ];
    let mut all = ways(list, &all[..[1, 5, 8][list.len().min(2)]], Value::Array);
    // The site that an entry is about.
    let site = |entry: &Value| if entry.is_array() { entry[0].as_u64() } else { entry.as_u64() };
    if list.is_empty() || !list.iter().all(|entry| site(entry).is_some_and(|site| site < u64::from(n))) {
        return all;
    }
    if list.len() > 1 && list[..2].iter().all(|entry| entry.as_array().is_some_and(|entry| entry.len() > 1)) {
        let swapped = |l: &mut Vec<Value>| (l[0][1], l[1][1]) = (list[1][1].clone(), list[0][1].clone());
        all.extend(ways(list, &[("contents swapped", &swapped)], Value::Array));
    }
    for other in (0..=u64::from(n)).chain([u16::MAX.into()]).filter(|of| list.iter().all(|e| site(e) != Some(*of))) {
        let mut entry = list[0].clone();
        *(if entry.is_array() { &mut entry[0] } else { &mut entry }) = json!(other);
        let put = |l: &mut Vec<Value>| l.insert(l.partition_point(|e| site(e) < Some(other)), entry.clone());
        all.extend(ways(list, &[(&format!("with {other}"), &put)], Value::Array));
        all.extend(ways(list, &[(&format!("with {other} at the end"), &|l| l.push(entry.clone()))], Value::Array));
    }
    all
}

pub(super) fn flipped(h: &Hash) -> Hash {
    let mut h = *h;
    h.0[7] ^= 4;
    h
}
