//! The one ciphersuite: SHA-256, HKDF-SHA-256, AES-256-GCM, AES-256-CTR, X25519 with ML-KEM-768 (`kem.rs`), Ed25519
//! (spec section 4).
//!
//! Every derivation carries a label and length-prefixed parts, so that no two uses can be confused with one another.

use std::sync::LazyLock;

use aes_gcm::{Aes256Gcm, KeyInit, Nonce, aead::Aead, aead::Payload};
use hkdf::{Hkdf, HkdfExtract};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{error::Error, rule::Rule};

/// Wire version; a peer with another one is told both numbers.
pub const VERSION: u16 = 4;

const SALT: &[u8] = b"veilsum/4";
/// Salt for the contents of files that outlive a wire version: a ledger counts for the life of its folder, a set of sites
/// keeps its name as long, and a roster is compared by telephone once.
const LASTING_SALT: &[u8] = b"veilsum/1";
/// Labels with that salt. None of them names a key.
const LASTING: [&str; 14] = [
    "roster",
    "cohort in a ledger",
    "ledger entry",
    "ledger link",
    "ledger head",
    "answers given",
    "ledger frame",
    "question in a ledger",
    "rows in a ledger",
    "row of a site",
    "rows of a site",
    "model file",
    "result",
    "result file",
];

/// A SHA-256 value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Hash(#[serde(with = "crate::codec::fixed")] pub [u8; 32]);

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// 32 secret bytes: a key, a seed or a Diffie–Hellman result. Wiped on drop, never printed, compared in constant time
/// by those who must compare.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Secret(pub(crate) [u8; 32]);

impl Secret {
    pub(crate) fn random(rng: &mut dyn CryptoRng) -> Self {
        let mut secret = Secret([0; 32]);
        rng.fill_bytes(&mut secret.0);
        secret
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// `H(label, parts)`: SHA-256 over the label's salt, the label and every part, each with its length before it.
pub fn hash(label: &str, parts: &[&[u8]]) -> Hash {
    let mut h = Sha256::new();
    absorb(label, parts, |bytes| h.update(bytes));
    Hash(h.finalize().into())
}

/// `H(label, [part])` of one long part that comes in pieces.
pub struct LongHash(Sha256);

impl LongHash {
    /// Of a part that will have `bytes` bytes; with another number it is the hash of nothing else.
    pub fn new(label: &str, bytes: u64) -> Self {
        let mut h = Sha256::new();
        absorb(label, &[], |bytes| h.update(bytes));
        h.update(bytes.to_le_bytes());
        LongHash(h)
    }

    /// The next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// After the last piece.
    pub fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

fn absorb(label: &str, parts: &[&[u8]], mut put: impl FnMut(&[u8])) {
    let salt = if LASTING.contains(&label) { LASTING_SALT } else { SALT };
    for part in [salt, label.as_bytes()].iter().chain(parts) {
        put(&(part.len() as u64).to_le_bytes());
        put(part);
    }
}

/// What secrets are derived for: a label and parts, hashed once for all secrets of one purpose.
pub(crate) struct Purpose(Hash);

impl Purpose {
    /// HKDF's info is itself a hash of label and parts, so its length is fixed whatever the parts are.
    pub(crate) fn new(label: &str, parts: &[&[u8]]) -> Self {
        Purpose(hash(label, parts))
    }

    /// That hash, for whatever else is bound to the same label and parts.
    pub(crate) fn hash(&self) -> Hash {
        self.0
    }

    /// A secret from input that is not uniformly distributed (a Diffie–Hellman result, several secrets in a row of which one
    /// may be known): HKDF extract, then expand.
    pub(crate) fn derive(&self, input: &[u8]) -> Secret {
        // The salt is public and always the same, so it is absorbed once.
        static SALTED: LazyLock<HkdfExtract<Sha256>> = LazyLock::new(|| HkdfExtract::new(Some(SALT)));
        let mut extract = SALTED.clone();
        extract.input_ikm(input);
        self.of(&extract.finalize().1)
    }

    /// A secret from a secret that is already uniform: HKDF expand alone.
    pub(crate) fn expand(&self, from: &Secret) -> Secret {
        self.of(&Hkdf::from_prk(&from.0).expect("32 bytes are a valid pseudorandom key"))
    }

    fn of(&self, hkdf: &Hkdf<Sha256>) -> Secret {
        let mut out = Secret([0; 32]);
        hkdf.expand(&self.0.0, &mut out.0).expect("32 bytes are within HKDF's output limit");
        out
    }
}

/// Seals `plain` under a key that is used for this one box only, hence the constant nonce ([SHR-2]).
pub(crate) fn seal(key: &Secret, associated: &Hash, plain: &[u8]) -> Vec<u8> {
    let cipher = Aes256Gcm::new(&key.0.into());
    cipher
        .encrypt(&Nonce::default(), Payload { msg: plain, aad: &associated.0 })
        .expect("a box is far shorter than AES-GCM's limit")
}

/// Opens what [`seal`] made. The plain bytes are secret; the caller wipes them.
pub(crate) fn open(key: &Secret, associated: &Hash, sealed: &[u8]) -> Result<zeroize::Zeroizing<Vec<u8>>, Error> {
    let cipher = Aes256Gcm::new(&key.0.into());
    cipher
        .decrypt(&Nonce::default(), Payload { msg: sealed, aad: &associated.0 })
        .map(zeroize::Zeroizing::new)
        .map_err(|_| Error::malformed("sealed box", "it does not open with the keys of the directory", Rule::Shr4))
}
