//! ML-KEM-768 (FIPS 203), which protects the secrets of a deck even if X25519 is broken later (spec section 4.5).
//!
//! An attacker that records a deck's traffic today and breaks X25519 later still lacks one secret of this kind for
//! every direction of every pair. This secret is not used alone: every derivation takes X25519's result and this one
//! together ([`crate::site`], `pairs.rs`).

use ml_kem::{
    B32, DecapsulationKey, EncapsulationKey, MlKem768,
    kem::{Decapsulate, Encapsulate, Key, KeyExport},
};
use rand_core::CryptoRng;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeTuple};
use zeroize::{Zeroize, Zeroizing};

use crate::suite::Secret;

/// Bytes of a public key on the wire.
pub const KEY_BYTES: usize = 1_184;
/// Bytes of a ciphertext on the wire.
pub const CIPHERTEXT_BYTES: usize = 1_088;

/// Exactly `N` bytes, encoded as such.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fixed<const N: usize>(Box<[u8; N]>);

/// An encapsulation key as it travels, unchecked.
pub type KemKey = Fixed<KEY_BYTES>;
/// A ciphertext as it travels. Any bytes of this length are a ciphertext; wrong ones decapsulate to a secret that
/// nobody else has.
pub type Ciphertext = Fixed<CIPHERTEXT_BYTES>;

impl<const N: usize> Fixed<N> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0[..]
    }
}

impl<const N: usize> From<[u8; N]> for Fixed<N> {
    fn from(bytes: [u8; N]) -> Self {
        Fixed(Box::new(bytes))
    }
}

impl<const N: usize> Serialize for Fixed<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(N)?;
        self.0.iter().try_for_each(|b| tuple.serialize_element(b))?;
        tuple.end()
    }
}

impl<'de, const N: usize> Deserialize<'de> for Fixed<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes<const N: usize>;
        impl<'de, const N: usize> de::Visitor<'de> for Bytes<N> {
            type Value = Fixed<N>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{N} bytes")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Fixed<N>, A::Error> {
                let mut out = Fixed(Box::new([0; N]));
                for (i, byte) in out.0.iter_mut().enumerate() {
                    *byte = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(i, &self))?;
                }
                Ok(out)
            }
        }
        deserializer.deserialize_tuple(N, Bytes::<N>)
    }
}

impl KemKey {
    /// [KEX-16]: the key check of FIPS 203, section 7.2: every coefficient is below the modulus.
    pub(crate) fn is_valid(&self) -> bool {
        self.key().is_some()
    }

    fn key(&self) -> Option<EncapsulationKey<MlKem768>> {
        let bytes: &Key<EncapsulationKey<MlKem768>> = self.bytes().try_into().ok()?;
        EncapsulationKey::new(bytes).ok()
    }

    /// A fresh secret for the owner of this key, and what takes it there. None where the key is not valid.
    pub(crate) fn encapsulate(&self, rng: &mut dyn CryptoRng) -> Option<(Ciphertext, Secret)> {
        let (ciphertext, mut shared) = self.key()?.encapsulate_with_rng(rng);
        let secret = Secret::new(shared.into());
        shared.zeroize();
        Some((Fixed(Box::new(ciphertext.into())), secret))
    }
}

/// The private side of a [`KemKey`]: the seed d ‖ z of FIPS 203, from which the key is made when it is needed.
/// In a block of its own, so that nothing is left where it was when it is moved.
pub(crate) struct KemSecret(Box<Zeroizing<[u8; 64]>>);

impl KemSecret {
    /// From 64 fresh bytes.
    pub(crate) fn generate(rng: &mut dyn CryptoRng) -> KemSecret {
        let mut secret = KemSecret::from_seed(&[0; 64]);
        rng.fill_bytes(&mut secret.0[..]);
        secret
    }

    pub(crate) fn from_seed(seed: &[u8; 64]) -> KemSecret {
        KemSecret(Box::new(Zeroizing::new(*seed)))
    }

    pub(crate) fn public(&self) -> KemKey {
        Fixed(Box::new(self.expand().key.encapsulation_key().to_bytes().into()))
    }

    /// The key ready for use with many ciphertexts.
    pub(crate) fn expand(&self) -> Decapsulator {
        let mut seed = (**self.0).into();
        let key = Box::new(DecapsulationKey::from_seed(seed));
        seed.zeroize();
        Decapsulator { key }
    }
}

/// An expanded private key, wiped on drop.
pub(crate) struct Decapsulator {
    key: Box<DecapsulationKey<MlKem768>>,
}

impl Decapsulator {
    /// The secret that a ciphertext carries. A wrong ciphertext gives another one, never an error (implicit rejection).
    pub(crate) fn decapsulate(&self, ciphertext: &Ciphertext) -> Secret {
        let mut shared: B32 = self.key.decapsulate(&(*ciphertext.0).into());
        let secret = Secret::new(shared.into());
        shared.zeroize();
        secret
    }
}
