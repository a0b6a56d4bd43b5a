//! The byte encoding of everything except masked words: bincode's fixed-width little-endian layout (spec section 3).
//!
//! This is the only module that names the codec. It adds three properties that the library does not guarantee. Bytes
//! left over after a value are an error. The input may not be longer than the caller's limit. A decoded value
//! re-encodes to exactly the bytes that it came from, so that a signature over bytes is a signature over a value.

use bincode::{
    enc::write::{SizeWriter, Writer},
    error::EncodeError,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{error::Error, limits::MAX_BODY, rule::Rule};

/// Bytes that the decoder may read and claim in all. A list grows with the elements that are really there, whatever
/// length it declares; so no list may have elements that take no bytes, because any number of them would be there. Bytes
/// that are read in one step ([`bytes`]) are claimed in one, which this limit bounds.
const CLAIM_LIMIT: usize = 2 * MAX_BODY;

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_little_endian().with_fixed_int_encoding().with_limit::<CLAIM_LIMIT>()
}

/// Encodes `value`.
///
/// # Panics
/// Only if a `Serialize` implementation of this workspace is wrong: derived ones over integers, arrays, strings and
/// vectors cannot fail.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut length = SizeWriter::default();
    write(value, &mut length).expect("types of this workspace always encode");
    // With its full capacity from the start: growing would leave copies of what may be secret behind.
    let mut out = Append(Vec::with_capacity(length.bytes_written));
    write(value, &mut out).expect("types of this workspace always encode");
    out.0
}

fn write<T: Serialize + ?Sized>(value: &T, to: impl Writer) -> Result<(), EncodeError> {
    bincode::serde::encode_into_writer(value, to, config())
}

struct Append(Vec<u8>);

impl Writer for &mut Append {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Compares what is written with the expected bytes, and keeps no copy.
struct Same<'a>(&'a [u8]);

impl Writer for &mut Same<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0 = self.0.strip_prefix(bytes).ok_or(EncodeError::Other("another byte"))?;
        Ok(())
    }
}

/// Decodes exactly one `T` from all of `bytes` ([ENC-1] no byte is left over, and canonical, [ENC-2] the limit).
///
/// # Errors
/// `Error::Malformed` with `what` where the bytes are too long, cut short, followed by others, or not canonical.
pub fn decode<T: Serialize + DeserializeOwned>(what: &'static str, bytes: &[u8], limit: usize) -> Result<T, Error> {
    if bytes.len() > limit {
        let why = format!("{} bytes where at most {limit} are allowed", bytes.len());
        return Err(Error::malformed(what, why, Rule::Enc2));
    }
    let (value, used): (T, usize) = bincode::serde::decode_from_slice(bytes, config())
        .map_err(|_| Error::malformed(what, "the bytes end early or hold a value that is not allowed", Rule::Enc1))?;
    if used != bytes.len() {
        return Err(Error::malformed(what, format!("{} bytes follow the end", bytes.len() - used), Rule::Enc1));
    }
    let mut same = Same(bytes);
    if write(&value, &mut same).is_err() || !same.0.is_empty() {
        return Err(Error::malformed(what, "not the canonical encoding of its value", Rule::Enc1));
    }
    Ok(value)
}

/// A list of arrays of 32 bytes and nothing else, where it stands: [`decode`] of a list of that kind takes exactly the same bytes.
///
/// # Errors
/// As [`decode`].
pub(crate) fn arrays<'a>(what: &'static str, bytes: &'a [u8], limit: usize) -> Result<&'a [[u8; 32]], Error> {
    let long = bytes.len() > limit;
    let parts = bytes.split_first_chunk::<8>().filter(|_| !long);
    let list = parts.map(|(length, rest)| (u64::from_le_bytes(*length), rest.as_chunks::<32>()));
    match list {
        Some((length, (arrays, []))) if length == arrays.len() as u64 => Ok(arrays),
        // In the words of the general decoder.
        _ => Err(decode::<list::Arrays>(what, bytes, limit).err().unwrap_or_else(|| {
            Error::malformed(what, "the bytes end early or hold a value that is not allowed", Rule::Enc1)
        })),
    }
}

/// Arrays whose length is a multiple of 16, as their bytes one after the other: what serde's arrays of bytes are encoded as, too,
/// but sixteen bytes in one step. In a form for people they are hexadecimal digits. For `#[serde(with = "...")]`.
pub(crate) mod fixed {
    use std::borrow::Borrow;

    use serde::{Deserialize, Deserializer, Serializer, de, ser::SerializeTuple};

    use super::{from_hex, to_hex};

    const STEP: usize = 16;

    pub(crate) fn serialize<const N: usize, B: Borrow<[u8; N]>, S: Serializer>(
        bytes: &B,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        const { assert!(N.is_multiple_of(STEP)) };
        let bytes = bytes.borrow();
        if to.is_human_readable() {
            return to.serialize_str(&to_hex(bytes));
        }
        let mut tuple = to.serialize_tuple(N / STEP)?;
        let (steps, _) = bytes.as_chunks::<STEP>();
        steps.iter().try_for_each(|step| tuple.serialize_element(&u128::from_le_bytes(*step)))?;
        tuple.end()
    }

    pub(crate) fn deserialize<'de, const N: usize, B: From<[u8; N]>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<B, D::Error> {
        struct Steps<const N: usize>;
        impl<'de, const N: usize> de::Visitor<'de> for Steps<N> {
            type Value = [u8; N];

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{N} bytes")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<[u8; N], A::Error> {
                let mut out = [0; N];
                let (steps, _) = out.as_chunks_mut::<STEP>();
                for (i, step) in steps.iter_mut().enumerate() {
                    let next =
                        seq.next_element::<u128>()?.ok_or_else(|| de::Error::invalid_length(STEP * i, &"more"))?;
                    *step = next.to_le_bytes();
                }
                Ok(out)
            }
        }
        if from.is_human_readable() {
            let bytes = from_hex(&String::deserialize(from)?).and_then(|bytes| bytes.try_into().ok());
            let bytes = bytes.ok_or_else(|| de::Error::custom(format!("these are not {} hexadecimal digits", 2 * N)));
            return bytes.map(<[u8; N]>::into);
        }
        from.deserialize_tuple(N / STEP, Steps).map(<[u8; N]>::into)
    }
}

/// Bytes as hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Bytes from hexadecimal digits, or nothing where `s` is anything else.
pub fn from_hex(s: &str) -> Option<Vec<u8>> {
    if !s.len().is_multiple_of(2) || !s.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    (0..s.len()).step_by(2).map(|i| u8::from_str_radix(&s[i..i + 2], 16).ok()).collect()
}

/// Lists of arrays of 32 bytes, as serde's are encoded.
pub(crate) mod list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Element(#[serde(with = "super::fixed")] [u8; 32]);

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    pub(crate) struct Arrays(Vec<Element>);

    pub(crate) fn serialize<S: Serializer>(list: &[[u8; 32]], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|bytes| Element(*bytes)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<[u8; 32]>, D::Error> {
        Ok(Vec::<Element>::deserialize(from)?.into_iter().map(|element| element.0).collect())
    }
}

/// Bytes of any length, as serde's lists of bytes are encoded, but in one step.
pub(crate) mod bytes {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl<'de> de::Visitor<'de> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "bytes")
            }

            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(bytes)
            }

            /// As forms for people have it.
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Vec<u8>, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq))
            }
        }
        from.deserialize_byte_buf(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read and written in long steps has the layout of what is read byte by byte.
    #[test]
    fn long_steps_give_the_same_bytes() {
        type Plain = (([u8; 32], Vec<[u8; 32]>), Vec<u8>);
        #[derive(Serialize, serde::Deserialize, PartialEq, Debug)]
        struct Fast {
            #[serde(with = "fixed")]
            one: [u8; 32],
            #[serde(with = "list")]
            many: Vec<[u8; 32]>,
            #[serde(with = "super::bytes")]
            any: Vec<u8>,
        }
        for length in [0usize, 1, 5, 400] {
            let bytes = |seed: usize| std::array::from_fn(|i| (i * 7 + seed * 13) as u8);
            let any: Vec<u8> = (0..length * 3).map(|i| i as u8).collect();
            let fast = Fast { one: bytes(1), many: (0..length).map(bytes).collect(), any: any.clone() };
            let encoded = encode(&fast);
            let plain: Plain = ((fast.one, fast.many.clone()), any);
            assert_eq!(encoded, encode(&plain));
            assert_eq!(decode::<Plain>("plain", &encoded, MAX_BODY).unwrap(), plain);
            assert_eq!(decode::<Fast>("fast", &encoded, MAX_BODY).unwrap(), fast);
            (0..encoded.len()).for_each(|n| assert!(decode::<Fast>("fast", &encoded[..n], MAX_BODY).is_err()));
            let mut hostile = encoded.clone();
            let at = encoded.len() - 3 * length - 8;
            hostile[at..at + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
            assert!(decode::<Fast>("fast", &hostile, MAX_BODY).is_err());
        }
    }

    /// A list that is looked at where it stands is taken exactly where the general decoder takes it.
    #[test]
    fn arrays_where_they_stand_are_those_that_are_decoded() {
        let same = |bytes: &[u8], limit| match (arrays("x", bytes, limit), decode::<Vec<[u8; 32]>>("x", bytes, limit)) {
            (Ok(seen), Ok(decoded)) => {
                assert_eq!(seen, decoded);
                true
            }
            (Err(seen), Err(decoded)) => {
                assert_eq!(seen.to_string(), decoded.to_string());
                false
            }
            _ => panic!("{bytes:?}"),
        };
        for length in [0usize, 1, 7] {
            let list: Vec<[u8; 32]> = (0..length).map(|i| [i as u8; 32]).collect();
            let encoded = encode(&list);
            assert!(same(&encoded, MAX_BODY) && same(&encoded, encoded.len()));
            assert!((0..encoded.len()).all(|n| !same(&encoded[..n], MAX_BODY)));
            assert!(!same(&[&encoded[..], &[0]].concat(), MAX_BODY) && !same(&encoded, encoded.len() - 1));
            for at in 0..8 {
                let mut wrong = encoded.clone();
                wrong[at] ^= 1;
                assert!(!same(&wrong, MAX_BODY));
            }
        }
    }
}
