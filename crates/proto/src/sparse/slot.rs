//! The two secrets of a site for one slot, and the masks that come of them (spec section 17.6).
//!
//! One is the seed of its own mask, opened where the site is in the total. The other is the seed of its key pair for
//! this slot, opened where it is not: then every mask that it shares can be computed, in this slot and no other.

use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::{
    shamir::{self, Share},
    suite::{self, Hash, Secret},
};

/// Both secrets of one slot.
pub(crate) struct SlotSecrets {
    pub(crate) own: Share,
    pub(crate) key: Share,
}

impl SlotSecrets {
    pub(crate) fn fresh(rng: &mut dyn CryptoRng) -> SlotSecrets {
        SlotSecrets { own: Share(shamir::random_scalar(rng)), key: Share(shamir::random_scalar(rng)) }
    }
}

/// The key pair of a slot, from its shared seed.
pub(crate) fn key_pair(seed: &Scalar) -> (StaticSecret, [u8; 32]) {
    let bytes = Zeroizing::new(seed.to_bytes());
    let secret = StaticSecret::from(*suite::derive(&bytes[..], "sparse slot key", &[]).bytes());
    let public = PublicKey::from(&secret).to_bytes();
    (secret, public)
}

/// The commitment to a self-mask seed ([SPA-5]).
pub(crate) fn commitment(deck: &Hash, site: u16, slot: u16, seed: &Scalar) -> Hash {
    let bytes = Zeroizing::new(seed.to_bytes());
    suite::hash("sparse self-mask commitment", &[&deck.0, &site.to_le_bytes(), &slot.to_le_bytes(), &bytes[..]])
}

/// [SPA-18]: a site's own mask in one round.
pub(crate) fn own_mask(seed: &Scalar, context: &Hash) -> Secret {
    suite::derive(&Zeroizing::new(seed.to_bytes())[..], "sparse self-mask", &[&context.0])
}

/// [SPA-18]: the mask that two neighbours share in one round; nothing where the other's key is of small order.
pub(crate) fn pair_mask(own: &StaticSecret, theirs: &[u8; 32], context: &Hash, a: u16, b: u16) -> Option<Secret> {
    let shared = own.diffie_hellman(&PublicKey::from(*theirs));
    let (low, high) = (a.min(b).to_le_bytes(), a.max(b).to_le_bytes());
    shared.was_contributory().then(|| suite::derive(shared.as_bytes(), "sparse pair", &[&context.0, &low, &high]))
}

/// [SPA-11]: key and associated data of the one box from `from` to `to` in this directory.
pub(crate) fn box_key(
    own: &StaticSecret,
    theirs: &[u8; 32],
    directory: &Hash,
    from: u16,
    to: u16,
) -> Option<(Secret, Hash)> {
    let shared = own.diffie_hellman(&PublicKey::from(*theirs));
    let (from, to) = (from.to_le_bytes(), to.to_le_bytes());
    let parts: [&[u8]; 3] = [&directory.0, &from, &to];
    shared
        .was_contributory()
        .then(|| (suite::derive(shared.as_bytes(), "sparse box", &parts), suite::hash("sparse box", &parts)))
}

/// A fresh key pair.
pub(crate) fn fresh_key(rng: &mut dyn CryptoRng) -> (StaticSecret, [u8; 32]) {
    let mut bytes = Zeroizing::new([0u8; 32]);
    rng.fill_bytes(&mut bytes[..]);
    let secret = StaticSecret::from(*bytes);
    let public = PublicKey::from(&secret).to_bytes();
    (secret, public)
}
