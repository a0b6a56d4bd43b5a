//! ML-KEM-768 (FIPS 203), which protects the secrets of a deck even if X25519 is broken later (spec section 4.5).
//!
//! An attacker that records a deck's traffic today and breaks X25519 later still lacks one secret of this kind for
//! every pair. This secret is not used alone: every derivation takes X25519's result and this one
//! together ([`crate::site`], `pairs.rs`).

use ml_kem::{
    B32, DecapsulationKey, EncapsulationKey, MlKem768,
    kem::{Decapsulate, Key, KeyExport},
};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::{codec, suite::Secret};

/// Bytes of a public key on the wire.
pub const KEY_BYTES: usize = 1_184;
/// Bytes at the end of a public key from which its matrix is expanded.
const SEED_BYTES: usize = 32;
/// q of FIPS 203.
const MODULUS: u16 = 3_329;
/// Bytes of a ciphertext on the wire.
pub const CIPHERTEXT_BYTES: usize = 1_088;

/// Exactly `N` bytes, encoded as such.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fixed<const N: usize>(#[serde(with = "codec::fixed")] Box<[u8; N]>);

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

impl KemKey {
    /// [KEX-16]: the key check of FIPS 203, section 7.2: every coefficient is below the modulus. The key is not expanded
    /// for it, which costs twenty times as much.
    pub(crate) fn is_valid(&self) -> bool {
        let coefficients = &self.0[..KEY_BYTES - SEED_BYTES];
        let (triples, _) = coefficients.as_chunks::<3>();
        // Two numbers of twelve bits in three bytes.
        let both =
            |[a, b, c]: &[u8; 3]| [u16::from(*a) | u16::from(b & 15) << 8, u16::from(b >> 4) | u16::from(*c) << 4];
        triples.iter().flat_map(both).all(|coefficient| coefficient < MODULUS)
    }

    fn key(&self) -> Option<EncapsulationKey<MlKem768>> {
        let bytes: &Key<EncapsulationKey<MlKem768>> = self.bytes().try_into().ok()?;
        EncapsulationKey::new(bytes).ok()
    }

    /// A fresh secret for the owner of this key, and what takes it there, made of 32 random bytes that serve this once: drawn ahead, so
    /// that many are carried out at once. None where the key is not valid.
    pub(crate) fn encapsulate(&self, drawn: &Secret) -> Option<(Ciphertext, Secret)> {
        let (ciphertext, mut shared) = self.key()?.encapsulate_deterministic(drawn.bytes().into());
        let secret = Secret(shared.into());
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
        let secret = Secret(shared.into());
        shared.zeroize();
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

    /// [KEX-16]: the check of the bytes is that of the library, at the modulus and on both sides of it, wherever it stands.
    #[test]
    fn kex_16_a_key_is_valid_where_the_library_takes_it() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let key = KemSecret::generate(&mut rng).public();
        assert!(key.is_valid() && key.key().is_some());
        for at in [0, 3, 600, KEY_BYTES - SEED_BYTES - 3, KEY_BYTES - SEED_BYTES, KEY_BYTES - 3] {
            for value in [0, 1, MODULUS - 1, MODULUS, MODULUS + 1, 4_095] {
                for upper in [false, true] {
                    let mut changed = key.clone();
                    let (low, high) = (value as u8, (value >> 8) as u8);
                    let bytes = &mut changed.0[at..at + 3];
                    if upper {
                        (bytes[1], bytes[2]) = (bytes[1] & 15 | low << 4, (value >> 4) as u8);
                    } else {
                        (bytes[0], bytes[1]) = (low, bytes[1] & 0xf0 | high);
                    }
                    assert_eq!(changed.is_valid(), changed.key().is_some(), "{value} at {at}");
                }
            }
        }
    }
}
