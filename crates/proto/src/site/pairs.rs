//! The hybrid key agreement between two members of a deck, from X25519 and ML-KEM-768 together (spec section 8,
//! [KEX-8], [KEX-16], [SHR-2]).
//!
//! X25519 gives both ends one result without a message; an ML-KEM secret travels from the one to the other, in a ciphertext that goes
//! with the signature on the directory. What the two agree on takes both, and breaking one of the two schemes is not enough: HKDF over the
//! concatenation of secrets of fixed length, with everything public bound in, is a combiner of KEMs (Giacon, Heuer, Poettering, PKC
//! 2018; NIST SP 800-56C rev. 2, section 2).

use curve25519_dalek::{montgomery::MontgomeryPoint, traits::IsIdentity};
use rand_core::CryptoRng;
use x25519_dalek::{PublicKey as DhPublic, StaticSecret};
use zeroize::Zeroizing;

use super::env::Env;
use crate::{
    error::Error,
    kem::{Ciphertext, Decapsulator, KemSecret},
    message::AdvertiseKeys,
    rule::Rule,
    standing::Standing,
    suite::{Hash, Purpose, Secret},
};

/// The private keys of a deck ([KEX-2]), each in a block of its own: a key that is moved with its state would leave its bytes
/// in the map of decks.
pub(super) struct Keys {
    dh: Box<StaticSecret>,
    kem: KemSecret,
}

impl Keys {
    pub(super) fn generate(rng: &mut dyn CryptoRng) -> Keys {
        let mut bytes = Zeroizing::new([0u8; 32]);
        rng.fill_bytes(&mut bytes[..]);
        Keys { dh: Box::new(StaticSecret::from(*bytes)), kem: KemSecret::generate(rng) }
    }

    pub(super) fn advertise(&self, commitments: Hash, standing: Standing) -> AdvertiseKeys {
        let (dh_key, kem_key) = (DhPublic::from(&*self.dh).to_bytes(), self.kem.public());
        AdvertiseKeys { dh_key, kem_key, commitments, standing }
    }

    /// The private ML-KEM key, ready for many ciphertexts.
    pub(super) fn decapsulator(&self) -> Decapsulator {
        self.kem.expand()
    }

    /// What this site and the owner of `dh_key` agree on, with the ML-KEM secret of the one ciphertext between them.
    ///
    /// # Errors
    /// Where the other's key is of small order.
    pub(super) fn agree<'a>(
        &self,
        env: &Env,
        directory: &'a Hash,
        (site, dh_key): (u16, &[u8; 32]),
        (ciphertext, secret): (&'a Ciphertext, &Secret),
    ) -> Result<Agreed<'a>, Error> {
        let exchanged = exchange(&self.dh, dh_key)
            .ok_or_else(|| Error::peer(env.name_of(site), "advertised a key of small order", Rule::Kex8))?;
        let mut secrets = Zeroizing::new([0; 64]);
        secrets[..32].copy_from_slice(exchanged.bytes());
        secrets[32..].copy_from_slice(secret.bytes());
        Ok(Agreed { secrets, directory, ciphertext })
    }
}

/// What two members agreed on. It lives only until the keys that they need are derived from it.
pub(super) struct Agreed<'a> {
    /// X25519's result, then ML-KEM's.
    secrets: Zeroizing<[u8; 64]>,
    directory: &'a Hash,
    ciphertext: &'a Ciphertext,
}

impl Agreed<'_> {
    /// Key and associated data of the one box between these two ([SHR-2]).
    pub(super) fn of_box(&self, from: u16, to: u16) -> (Secret, Hash) {
        let (from, to) = (from.to_le_bytes(), to.to_le_bytes());
        let purpose = Purpose::new("box", &self.parts(&from, &to));
        (purpose.derive(&self.secrets[..]), purpose.hash())
    }

    /// [KEX-8]: the pair secret, the same at both ends.
    pub(super) fn pair(&self, a: u16, b: u16) -> Secret {
        let (low, high) = (a.min(b).to_le_bytes(), a.max(b).to_le_bytes());
        Purpose::new("pair", &self.parts(&low, &high)).derive(&self.secrets[..])
    }

    fn parts<'b>(&'b self, one: &'b [u8; 2], other: &'b [u8; 2]) -> [&'b [u8]; 4] {
        [&self.directory.0, one, other, self.ciphertext.bytes()]
    }
}

/// X25519, or None where the other's key is of small order.
fn exchange(own: &StaticSecret, theirs: &[u8; 32]) -> Option<Secret> {
    let shared = shared(own, theirs);
    (!shared.is_identity()).then(|| Secret(shared.0))
}

/// X25519.
///
/// Where the curve's arithmetic has vector instructions, multiplying on the Edwards form takes half of the time of the ladder on
/// the Montgomery form, the way there and back included; both are of the library and take the same time for every private key. A
/// point on the curve's twist has no Edwards form, and goes up the ladder.
pub(crate) fn shared(own: &StaticSecret, theirs: &[u8; 32]) -> Zeroizing<MontgomeryPoint> {
    let lifted = if cfg!(target_arch = "x86_64") { MontgomeryPoint(*theirs).to_edwards(0) } else { None };
    let Some(point) = lifted else {
        return Zeroizing::new(MontgomeryPoint(*own.diffie_hellman(&DhPublic::from(*theirs)).as_bytes()));
    };
    let product = Zeroizing::new(point.mul_clamped(*own.as_bytes()));
    Zeroizing::new(product.to_montgomery())
}

#[cfg(test)]
mod tests {
    use super::*;
    use curve25519_dalek::{constants::EIGHT_TORSION, scalar::Scalar};

    /// [KEX-8]: on the Edwards form as up the ladder, and eight times a key tells small order: for points on the curve and its twist, of
    /// small order and with a part of it, and in encodings that are not canonical.
    #[test]
    fn kex_8_both_forms_of_the_curve_agree() {
        let mut keys: Vec<[u8; 32]> = (0..60u8).map(|i| [i; 32]).collect();
        keys.extend((1..40u64).map(|i| MontgomeryPoint::mul_base(&Scalar::from(i * i)).0));
        for torsion in EIGHT_TORSION {
            let point = curve25519_dalek::EdwardsPoint::mul_base(&Scalar::from(5u64)) + torsion;
            keys.extend([torsion.to_montgomery().0, point.to_montgomery().0]);
        }
        let mut prime = [0xff; 32];
        (prime[0], prime[31]) = (0xed, 0x7f);
        keys.extend([0xecu8, 0xed, 0xee, 0xef, 0xff].map(|low| {
            let mut key = prime;
            key[0] = low;
            key
        }));
        let high = keys.clone().into_iter().map(|mut key| {
            key[31] |= 0x80;
            key
        });
        keys.extend(high.collect::<Vec<_>>());
        let (mut lifted, mut small) = (0, 0);
        for own in [[0; 32], [0xff; 32], [7; 32], std::array::from_fn(|i| i as u8)].map(StaticSecret::from) {
            for key in &keys {
                let ladder = own.diffie_hellman(&DhPublic::from(*key));
                let expected = ladder.was_contributory().then(|| *ladder.as_bytes());
                assert_eq!(exchange(&own, key).map(|secret| *secret.bytes()), expected, "{key:?}");
                // As an aggregator looks at it.
                let eight = MontgomeryPoint(*key).mul_bits_be([true, false, false, false].into_iter());
                assert_eq!(eight.0 == [0; 32], expected.is_none(), "{key:?}");
                lifted += usize::from(MontgomeryPoint(*key).to_edwards(0).is_some());
                small += usize::from(expected.is_none());
            }
        }
        let all = 4 * keys.len();
        assert!(lifted > all / 4 && all - lifted > all / 10 && small > 40, "{lifted} and {small} of {all}");
    }
}
