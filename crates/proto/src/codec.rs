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

use crate::{error::Error, limits::MAX_BODY};

/// Bytes that the decoder may read and claim in all. A list grows with the elements that are really there, whatever
/// length it declares; so no list may have elements that take no bytes, because any number of them would be there.
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

/// Decodes exactly one `T` from all of `bytes` ([ENC-1] no byte is left over, [ENC-2] the limit, [ENC-3] canonical).
///
/// # Errors
/// `Error::Malformed` with `what` where the bytes are too long, cut short, followed by others, or not canonical.
pub fn decode<T: Serialize + DeserializeOwned>(what: &'static str, bytes: &[u8], limit: usize) -> Result<T, Error> {
    if bytes.len() > limit {
        return Err(Error::malformed(
            what,
            format!("{} bytes where at most {limit} are allowed", bytes.len()),
            "ENC-2",
        ));
    }
    let (value, used): (T, usize) = bincode::serde::decode_from_slice(bytes, config())
        .map_err(|_| Error::malformed(what, "the bytes end early or hold a value that is not allowed", "ENC-1"))?;
    if used != bytes.len() {
        return Err(Error::malformed(what, format!("{} bytes follow the end", bytes.len() - used), "ENC-1"));
    }
    let mut same = Same(bytes);
    if write(&value, &mut same).is_err() || !same.0.is_empty() {
        return Err(Error::malformed(what, "not the canonical encoding of its value", "ENC-3"));
    }
    Ok(value)
}

/// The bytes of a vector on the wire: little-endian words ([ENC-4]).
pub(crate) fn words_to_bytes(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 * values.len());
    values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Sample = (u16, Vec<u64>, Option<[u8; 32]>, String, Vec<(u16, Vec<u8>)>, bool);

    proptest! {
        #[test]
        fn round_trip_and_canonical(v: Sample) {
            let bytes = encode(&v);
            prop_assert_eq!(decode::<Sample>("sample", &bytes, MAX_BODY).unwrap(), v);
        }

        #[test]
        fn what_decodes_re_encodes_to_itself(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(v) = decode::<Sample>("sample", &bytes, MAX_BODY) {
                prop_assert_eq!(encode(&v), bytes);
            }
        }

        #[test]
        fn every_truncation_and_extension_is_an_error(v: Sample, extra: u8) {
            let mut bytes = encode(&v);
            for n in 0..bytes.len() {
                prop_assert!(decode::<Sample>("sample", &bytes[..n], MAX_BODY).is_err());
            }
            bytes.push(extra);
            prop_assert!(decode::<Sample>("sample", &bytes, MAX_BODY).is_err());
        }
    }

    #[test]
    fn a_hostile_length_is_refused_before_it_allocates() {
        // Declares 2^60 words and brings none.
        let bytes = (1u64 << 60).to_le_bytes();
        assert!(decode::<Vec<u64>>("words", &bytes, MAX_BODY).is_err());
        let bytes = 1_000_000u64.to_le_bytes();
        assert!(decode::<Vec<[u8; 32]>>("hashes", &bytes, MAX_BODY).is_err());
    }

    #[test]
    fn the_layout_is_pinned() {
        // Spec section 3: u16 and u64 little-endian, lengths as u64, option tag one byte, variant index as u32.
        assert_eq!(encode(&0x0102u16), [2, 1]);
        assert_eq!(encode(&vec![7u16]), [1, 0, 0, 0, 0, 0, 0, 0, 7, 0]);
        assert_eq!(encode(&Some(1u8)), [1, 1]);
        assert_eq!(encode(&None::<u8>), [0]);
        assert_eq!(encode("ab"), [2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b']);
        assert_eq!(encode(&[9u8; 3]), [9, 9, 9]);
    }
}
