//! Long-term Ed25519 identities. A key is made on the machine where it is used, and the roster pins it (spec section
//! 5).

use std::{collections::BTreeMap, fmt, sync::LazyLock};

use curve25519_dalek::constants::EIGHT_TORSION;
use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use crate::codec::{from_hex, to_hex};
use crate::{error::Error, rule::Rule, spread, suite};

/// The short form of a hash or key that two people can compare by telephone: 16 hexadecimal digits in groups of four.
pub fn fingerprint(bytes: &[u8; 32]) -> String {
    bytes[..8].chunks(2).map(to_hex).collect::<Vec<_>>().join("-")
}

/// An Ed25519 public key: the name by which everybody else knows a party.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PublicKey(#[serde(with = "crate::codec::fixed")] pub [u8; 32]);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for PublicKey {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        let bytes = from_hex(s).and_then(|b| <[u8; 32]>::try_from(b).ok());
        let malformed = || Error::malformed("public key", "it is not 64 hexadecimal digits", Rule::Key1);
        bytes.map(PublicKey).ok_or_else(malformed)
    }
}

/// Public keys that are decoded already. When hundreds of signatures are checked together, decoding the key is a
/// quarter of the cost of each.
#[derive(Clone, Default)]
pub(crate) struct DecodedKeys(BTreeMap<PublicKey, VerifyingKey>);

impl DecodedKeys {
    /// Decodes those of these keys that can be decoded, except for keys of small order, which verify anything
    /// ([KEY-2]).
    pub(crate) fn new(keys: impl IntoIterator<Item = PublicKey>) -> DecodedKeys {
        DecodedKeys(keys.into_iter().filter_map(|key| Some((key, decode(&key)?))).collect())
    }

    /// Verifies one signature as [`PublicKey::verify`] does.
    pub(crate) fn verify(&self, key: &PublicKey, label: &str, parts: &[&[u8]], signature: &Signature) -> bool {
        match self.0.get(key) {
            Some(decoded) => verify_strict(decoded, label, parts, signature),
            None => key.verify(label, parts, signature),
        }
    }

    /// Verifies many signatures on hashes together, at about a third of their cost one by one, and on all cores. Returns
    /// false if at least one is not valid, without saying which; the caller then checks each ([FRM-4]). Keys that are not
    /// cached here are decoded.
    ///
    /// What passes here shows what its owner signed, but is not always what [`PublicKey::verify`] takes: a part of small
    /// order in R is seen only at random. So a site, which has to believe what it was shown, may use this, and an
    /// aggregator may not: it would hand on what some sites refuse, and they would blame it.
    pub(crate) fn verify_all(&self, signed: &[(PublicKey, suite::Hash, Signature)]) -> bool {
        spread::in_parts(signed, WORTH_A_CORE, |part| self.verify_together(part)).into_iter().all(|sound| sound)
    }

    fn verify_together(&self, signed: &[(PublicKey, suite::Hash, Signature)]) -> bool {
        let key = |key| self.0.get(key).copied().or_else(|| decode(key));
        let Some(keys) = signed.iter().map(|(k, _, _)| key(k)).collect::<Option<Vec<_>>>() else { return false };
        let messages: Vec<&[u8]> = signed.iter().map(|(_, digest, _)| &digest.0[..]).collect();
        let signatures: Vec<_> =
            signed.iter().map(|(_, _, s)| ed25519_dalek::Signature::from_bytes(&s.to_bytes())).collect();
        ed25519_dalek::verify_batch(&messages, &signatures, &keys).is_ok()
    }
}

/// Fewer signatures than this are not worth another core.
const WORTH_A_CORE: usize = 6;

/// Strict verification under a key that [`decode`] gave, which is not of small order.
///
/// `Verifier::verify` compares the bytes of R with those of the point that S, the key and the message give. Bytes that pass are
/// therefore the one encoding of a point, and that the point is not of small order is seen from eight encodings. This refuses
/// exactly what the library's `verify_strict` refuses, which decodes R for the second check at a quarter of its cost.
fn verify_strict(key: &VerifyingKey, label: &str, parts: &[&[u8]], signature: &Signature) -> bool {
    let digest = suite::hash(label, parts);
    !SMALL_ORDER.iter().any(|point| signature.0.starts_with(point))
        && key.verify(&digest.0, &ed25519_dalek::Signature::from_bytes(&signature.to_bytes())).is_ok()
}

/// The points of small order, each in its one encoding.
static SMALL_ORDER: LazyLock<[[u8; 32]; 8]> = LazyLock::new(|| EIGHT_TORSION.map(|point| point.compress().0));

fn decode(key: &PublicKey) -> Option<VerifyingKey> {
    VerifyingKey::from_bytes(&key.0).ok().filter(|key| !key.is_weak())
}

/// An Ed25519 signature: R ‖ S.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Signature(#[serde(with = "crate::codec::fixed")] [u8; 64]);

impl Signature {
    /// The 64 bytes R ‖ S.
    pub fn to_bytes(self) -> [u8; 64] {
        self.0
    }

    /// Reads the 64 bytes R ‖ S. This does not say whether the signature verifies.
    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        Signature(*bytes)
    }
}

impl PublicKey {
    /// Verifies strictly: canonical encoding, no key of small order ([KEY-2]).
    pub fn verify(&self, label: &str, parts: &[&[u8]], signature: &Signature) -> bool {
        decode(self).is_some_and(|key| verify_strict(&key, label, parts, signature))
    }

    /// Whether the bytes are a point that may serve as a key: canonical and not of small order ([KEY-2]).
    pub fn is_usable(&self) -> bool {
        let point = curve25519_dalek::edwards::CompressedEdwardsY(self.0).decompress();
        // Decompression accepts y ≥ p; the same point would then have two names.
        point.is_some_and(|p| p.compress().0 == self.0 && !p.is_small_order())
    }
}

/// A party's secret identity. It has no `Debug` and no `Clone`, and is wiped on drop.
pub struct Identity {
    key: SigningKey,
    /// What its digests of rows are keyed with, where an account has a secret already.
    digests: Option<Zeroizing<[u8; 32]>>,
}

impl Identity {
    /// A fresh identity from `rng`.
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut seed = Zeroizing::new([0u8; 32]);
        rng.fill_bytes(&mut seed[..]);
        Identity::from_seed(&seed)
    }

    /// The identity of a stored seed.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Identity { key: SigningKey::from_bytes(seed), digests: None }
    }

    /// The same identity with the secret for digests that an account has, which outlives the key ([LED-9]).
    pub fn with_digests(self, secret: Zeroizing<[u8; 32]>) -> Self {
        Identity { digests: Some(secret), ..self }
    }

    /// The secret with which rows are digested ([LED-9]): of the account, or where it has none yet, one that follows from the
    /// seed.
    pub fn digest_secret(&self) -> Zeroizing<[u8; 32]> {
        let own = || Zeroizing::new(suite::hash("digest secret", &[&*self.seed()]).0);
        self.digests.clone().unwrap_or_else(own)
    }

    /// What the account is known by, whichever key signs ([LED-9]).
    pub fn account(&self) -> suite::Hash {
        suite::hash("account", &[&*self.digest_secret()])
    }

    /// The seed, for the file that keeps it (mode 0600) and for the transport's key.
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.key.to_bytes())
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    /// Signs `H(label, parts)`.
    pub fn sign(&self, label: &str, parts: &[&[u8]]) -> Signature {
        Signature::from_bytes(&self.key.sign(&suite::hash(label, parts).0).to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::{edwards::EdwardsPoint, scalar::Scalar};
    use sha2::{Digest, Sha512};

    use super::*;

    /// What the owner of a secret can sign with an R that has a part of small order.
    fn crafted(r: &Scalar, torsion: EdwardsPoint, key: &PublicKey, secret: &Scalar, digest: &suite::Hash) -> Signature {
        let point = (EdwardsPoint::mul_base(r) + torsion).compress().0;
        let hashed = Sha512::new().chain_update(point).chain_update(key.0).chain_update(digest.0).finalize();
        let s = r + Scalar::from_bytes_mod_order_wide(&hashed.into()) * secret;
        Signature([point, s.to_bytes()].concat().try_into().unwrap())
    }

    /// [KEY-2], [FRM-4]: the owner of a key can sign with an R that has a part of small order. One by one, as an aggregator checks,
    /// that is always refused; in a batch, as a site may check, it passes at random.
    #[test]
    fn key_2_a_part_of_small_order_in_r_passes_only_in_batches() {
        let key = SigningKey::from_bytes(&[5; 32]);
        let public = PublicKey(key.verifying_key().to_bytes());
        let keys = DecodedKeys::new([public]);
        let (mut together, mut plain) = (0, 0);
        for i in 0..64u64 {
            let digest = suite::hash("test", &[&i.to_le_bytes()]);
            let r = Scalar::from(i + 1_000_000);
            for (at, torsion) in EIGHT_TORSION.iter().enumerate() {
                let signature = crafted(&r, *torsion, &public, &key.to_scalar(), &digest);
                let alone = keys.verify(&public, "test", &[&i.to_le_bytes()], &signature);
                assert_eq!((alone, alone), (at == 0, public.verify("test", &[&i.to_le_bytes()], &signature)));
                let batch = keys.verify_all(&[(public, digest, signature)]);
                assert!(batch || at > 0, "what passes alone passes in every batch");
                (together, plain) = (together + usize::from(batch && at > 0), plain + usize::from(alone));
            }
        }
        assert!(plain == 64 && (20..200).contains(&together), "{together} of 448");
    }

    /// [KEY-2]: what is strict here is what the library calls strict, for keys and values of R with parts of small order or
    /// nothing else, of which many pass a check that is not strict.
    #[test]
    fn key_2_strict_is_what_the_library_calls_strict() {
        let secret = Scalar::from(7_000_003u64);
        let (mut loose, mut strict) = (0, 0);
        for in_key in EIGHT_TORSION {
            for base in [EdwardsPoint::mul_base(&secret), EdwardsPoint::default()] {
                let public = PublicKey((base + in_key).compress().0);
                let secret = if base == EdwardsPoint::default() { Scalar::ZERO } else { secret };
                let key = VerifyingKey::from_bytes(&public.0).unwrap();
                for (i, r) in (0..200u64).flat_map(|i| [(i, Scalar::ZERO), (i, Scalar::from(i + 9))]) {
                    let digest = suite::hash("test", &[&i.to_le_bytes()]);
                    let signature = crafted(&r, EIGHT_TORSION[i as usize % 8], &public, &secret, &digest);
                    let theirs = ed25519_dalek::Signature::from_bytes(&signature.to_bytes());
                    let expected = key.verify_strict(&digest.0, &theirs).is_ok();
                    assert_eq!(public.verify("test", &[&i.to_le_bytes()], &signature), expected);
                    let keys = DecodedKeys::new([public]);
                    assert_eq!(keys.verify(&public, "test", &[&i.to_le_bytes()], &signature), expected);
                    loose += usize::from(key.verify(&digest.0, &theirs).is_ok());
                    strict += usize::from(expected);
                }
            }
        }
        assert!(strict > 100 && loose > strict + 100, "{strict} and {loose}");
    }

    /// The neutral element: a key of order 1.
    const IDENTITY_POINT: [u8; 32] = {
        let mut point = [0; 32];
        point[0] = 1;
        point
    };

    /// The names of rows in a ledger are made from it: a constant would make them known.
    #[test]
    fn a_seed_is_its_identitys_own() {
        for seed in [[1; 32], [2; 32]] {
            assert_eq!(*Identity::from_seed(&seed).seed(), seed);
        }
    }

    /// [FRM-4].
    #[test]
    fn frm_4_many_at_once_agree_with_one_by_one() {
        let ids: Vec<Identity> = (0..20).map(|i| Identity::from_seed(&[i; 32])).collect();
        let digest = |i: usize| suite::hash("many", &[&i.to_le_bytes()]);
        let signed: Vec<_> = ids
            .iter()
            .enumerate()
            .map(|(i, id)| (id.public(), digest(i), id.sign("many", &[&i.to_le_bytes()])))
            .collect();
        // None, some and all of the keys decoded before: no difference.
        for known in [0, 9, 20] {
            let keys = DecodedKeys::new(ids[..known].iter().map(Identity::public));
            let mut signed = signed.clone();
            assert!(keys.verify_all(&signed) && keys.verify_all(&[]));
            signed[7].1 = digest(8);
            assert!(!keys.verify_all(&signed));
            signed.remove(7);
            assert!(keys.verify_all(&signed));
            let other = signed[4].0;
            signed[3].0 = other;
            assert!(!keys.verify_all(&signed));
            for unusable in [[0; 32], IDENTITY_POINT] {
                signed[3].0 = PublicKey(unusable);
                assert!(!keys.verify_all(&signed));
                assert!(!DecodedKeys::new([signed[3].0]).verify_all(&signed[3..4]));
            }
        }
    }
}
