//! The hybrid key agreement between two members of a deck, from X25519 and ML-KEM-768 together (spec section 8,
//! [KEX-8], [KEX-16], [SHR-2]).
//!
//! X25519 gives both ends one result without a message; an ML-KEM secret travels from the one to the other. So each
//! member sends every other one a ciphertext beside its box of shares. The box takes the secret of its own direction;
//! the pair secret of the masks, which is needed only after the boxes are there, takes those of both. Breaking one of
//! the two schemes is not enough: HKDF over the concatenation of secrets of fixed length, with everything public bound
//! in, is a combiner of KEMs (Giacon, Heuer, Poettering, PKC 2018; NIST SP 800-56C rev. 2, section 2).

use curve25519_dalek::{montgomery::MontgomeryPoint, traits::IsIdentity};
use rand_core::CryptoRng;
use x25519_dalek::{PublicKey as DhPublic, StaticSecret};
use zeroize::Zeroizing;

use super::env::Env;
use crate::{
    error::Error,
    kem::{Ciphertext, Drawn, KemSecret},
    message::{AdvertiseKeys, DirectoryEntry},
    release::Standing,
    suite::{self, Hash, Secret},
};

/// The private keys of a deck ([KEX-2]), each in a block of its own: a key that is moved with its state would leave its bytes
/// in the map of decks.
pub(super) struct Keys {
    mask: Box<StaticSecret>,
    seal: Box<StaticSecret>,
    kem: KemSecret,
}

impl Keys {
    pub(super) fn generate(rng: &mut dyn CryptoRng) -> Keys {
        Keys { mask: fresh(rng), seal: fresh(rng), kem: KemSecret::generate(rng) }
    }

    pub(super) fn advertise(&self, commitments: Hash, standing: Standing) -> AdvertiseKeys {
        AdvertiseKeys {
            mask_key: DhPublic::from(&*self.mask).to_bytes(),
            seal_key: DhPublic::from(&*self.seal).to_bytes(),
            kem_key: self.kem.public(),
            commitments,
            standing,
        }
    }

    /// All that can be agreed on before the other's ciphertext is here.
    pub(super) fn agree(
        &self,
        env: &Env,
        directory: &Hash,
        entry: &DirectoryEntry,
        drawn: Drawn,
    ) -> Result<(Peer, Ciphertext), Error> {
        let fault = |what: &str, rule| Error::peer(env.name_of(entry.site), what, rule);
        let small = || fault("advertised a key of small order", "KEX-8");
        let mask = exchange(&self.mask, &entry.keys.mask_key).ok_or_else(small)?;
        let seal = exchange(&self.seal, &entry.keys.seal_key).ok_or_else(small)?;
        let sent = entry.keys.kem_key.encapsulate(drawn);
        let (ciphertext, sent) = sent.ok_or_else(|| fault("advertised an ML-KEM key that is none", "KEX-16"))?;
        Ok((Peer { directory: *directory, me: env.me, other: entry.site, mask, seal, sent }, ciphertext))
    }

    /// The one private key that is needed until the deck is ready.
    pub(super) fn into_kem(self) -> KemSecret {
        self.kem
    }
}

/// This site and one other member, from the certificate to the delivery.
pub(super) struct Peer {
    directory: Hash,
    me: u16,
    other: u16,
    /// X25519's results.
    mask: Secret,
    seal: Secret,
    /// What went to the other. The ciphertext in which it went, 34 times as long, is in the frame that left.
    sent: Secret,
}

impl Peer {
    /// Key and associated data of the one box to the other ([SHR-2]).
    pub(super) fn outgoing(&self, ciphertext: &Ciphertext) -> (Secret, Hash) {
        self.box_key(self.me, self.other, &self.sent, ciphertext)
    }

    /// Key and associated data of the one box from the other.
    pub(super) fn incoming(&self, received: &Secret, ciphertext: &Ciphertext) -> (Secret, Hash) {
        self.box_key(self.other, self.me, received, ciphertext)
    }

    fn box_key(&self, from: u16, to: u16, secret: &Secret, ciphertext: &Ciphertext) -> (Secret, Hash) {
        let (from, to) = (from.to_le_bytes(), to.to_le_bytes());
        let parts: [&[u8]; 4] = [&self.directory.0, &from, &to, ciphertext.bytes()];
        (suite::derive(&joined([&self.seal, secret])[..], "box", &parts), suite::hash("box", &parts))
    }

    /// [KEX-8]: the pair secret, the same at both ends, from the lower number's direction first; `sent` is the ciphertext that
    /// went to the other.
    pub(super) fn pair(&self, sent: &Ciphertext, received: &Secret, ciphertext: &Ciphertext) -> Secret {
        let (mine, theirs) = ((&self.sent, sent), (received, ciphertext));
        let (up, down) = if self.me < self.other { (mine, theirs) } else { (theirs, mine) };
        let (low, high) = (self.me.min(self.other).to_le_bytes(), self.me.max(self.other).to_le_bytes());
        let parts: [&[u8]; 5] = [&self.directory.0, &low, &high, up.1.bytes(), down.1.bytes()];
        suite::derive(&joined([&self.mask, up.0, down.0])[..], "pair", &parts)
    }
}

fn joined<const N: usize>(secrets: [&Secret; N]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(32 * N));
    secrets.iter().for_each(|s| out.extend_from_slice(s.bytes()));
    out
}

fn fresh(rng: &mut dyn CryptoRng) -> Box<StaticSecret> {
    let mut bytes = Zeroizing::new([0u8; 32]);
    rng.fill_bytes(&mut bytes[..]);
    Box::new(StaticSecret::from(*bytes))
}

/// X25519, or None where the other's key is of small order.
fn exchange(own: &StaticSecret, theirs: &[u8; 32]) -> Option<Secret> {
    let shared = shared(own, theirs);
    (!shared.is_identity()).then(|| Secret::new(shared.0))
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

    /// [KEX-8]: on the Edwards form as up the ladder: for points on the curve and its twist, of small order and with a part of it,
    /// and in encodings that are not canonical.
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
                lifted += usize::from(MontgomeryPoint(*key).to_edwards(0).is_some());
                small += usize::from(expected.is_none());
            }
        }
        let all = 4 * keys.len();
        assert!(lifted > all / 4 && all - lifted > all / 10 && small > 40, "{lifted} and {small} of {all}");
    }
}
