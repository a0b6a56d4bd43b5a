//! Traffic of a deck that was recorded and is attacked later: with all of X25519 broken, and with all of ML-KEM broken.

use std::collections::{BTreeMap, BTreeSet};

use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use veilsum_proto::{kem::Ciphertext, suite::Hash, vectors_api as api};
use veilsum_testkit::{hub::*, secrets::Secrets, wire::*};

const SITES: usize = 4;
const SLOTS: u16 = 3;
const SEED: u64 = 71;

/// The private keys of a site's deck, by the order of its draws.
struct Private {
    mask: x25519_dalek::StaticSecret,
    seal: x25519_dalek::StaticSecret,
    kem: [u8; 64],
}

/// What was on the wire, and what its makers kept to themselves.
struct Recording {
    hub: Hub,
    hash: Hash,
    directory: Directory,
    sealed: BTreeMap<u16, Sealed>,
    private: Vec<Private>,
}

fn record(index: u32) -> Recording {
    println!("seed {SEED}");
    let mut hub = Hub::new(SITES, SEED + u64::from(index), |_| {});
    let mut twin = ChaCha20Rng::seed_from_u64(SEED + u64::from(index));
    let (id, directory) = hub.advertise(index, SLOTS, &everybody(SITES));
    let private: Vec<Private> = directory
        .entries
        .iter()
        .map(|entry| {
            let mut bytes = [0; 128 + 64 * SLOTS as usize];
            twin.fill_bytes(&mut bytes);
            let x25519 =
                |at: usize| x25519_dalek::StaticSecret::from(<[u8; 32]>::try_from(&bytes[at..at + 32]).unwrap());
            let private = Private { mask: x25519(0), seal: x25519(32), kem: bytes[64..128].try_into().unwrap() };
            // Else everything below would fail to open for a reason that is none.
            assert_eq!(x25519_dalek::PublicKey::from(&private.mask).to_bytes(), entry.1.0);
            assert_eq!(x25519_dalek::PublicKey::from(&private.seal).to_bytes(), entry.1.1);
            assert_eq!(api::kem_public(&private.kem), entry.1.2);
            private
        })
        .collect();
    let (hash, sealed) = hub.seal(&id, &directory).unwrap();
    for s in 0..SITES as u16 {
        let frame = hub.delivery(&hash, &sealed, s);
        hub.reply(s, &frame).unwrap();
    }
    Recording { hub, hash, directory, sealed, private }
}

impl Recording {
    fn sent(&self, from: u16, to: u16) -> &(u16, Ciphertext, Vec<u8>) {
        self.sealed[&from].1.iter().find(|b| b.0 == to).expect("its box")
    }

    /// X25519's result of two members, as one who has broken it computes it.
    fn x25519(&self, own: impl Fn(&Private) -> &x25519_dalek::StaticSecret, u: u16, theirs: [u8; 32]) -> [u8; 32] {
        own(&self.private[usize::from(u)]).diffie_hellman(&x25519_dalek::PublicKey::from(theirs)).to_bytes()
    }

    fn sealing(&self, u: u16, v: u16) -> [u8; 32] {
        self.x25519(|p| &p.seal, u, self.directory.entries[usize::from(v)].1.1)
    }

    fn masking(&self, u: u16, v: u16) -> [u8; 32] {
        self.x25519(|p| &p.mask, u, self.directory.entries[usize::from(v)].1.0)
    }

    /// The secret of one direction, as one who has broken ML-KEM computes it.
    fn kem(&self, from: u16, to: u16) -> [u8; 32] {
        api::kem_decapsulate(&self.private[usize::from(to)].kem, &self.sent(from, to).1)
    }

    /// Whether these secrets open the box; then the shares are those the receiver keeps.
    fn opens(&self, from: u16, to: u16, secrets: &[u8]) -> bool {
        let (f, t) = (from.to_le_bytes(), to.to_le_bytes());
        let (_, ciphertext, sealed) = self.sent(from, to);
        let parts: [&[u8]; 4] = [&self.hash.0, &f, &t, ciphertext.bytes()];
        let associated = veilsum_proto::suite::hash("box", &parts);
        let Ok(plain) = api::open(&api::derive(secrets, "box", &parts), &associated, sealed) else { return false };
        let held = Secrets::of(&self.hub, to, 0);
        let shares: Vec<[u8; 32]> = (0..SLOTS).map(|r| held.share(from, r)).collect();
        assert_eq!(plain, shares.concat(), "the box of {from} to {to}");
        true
    }

    /// Whether these secrets are those from which the pair's masks are made.
    fn masks(&self, low: u16, high: u16, secrets: &[u8]) -> bool {
        let (l, h) = (low.to_le_bytes(), high.to_le_bytes());
        let (up, down) = (self.sent(low, high).1.bytes(), self.sent(high, low).1.bytes());
        let kept = Secrets::of(&self.hub, low, 0).pair(high);
        assert_eq!(kept, Secrets::of(&self.hub, high, 0).pair(low));
        api::derive(secrets, "pair", &[&self.hash.0, &l, &h, up, down]) == kept
    }

    /// What can be put in the place of a secret by one who has only what was on the wire.
    fn guesses(&self, from: u16, to: u16) -> Vec<Vec<u8>> {
        let (_, ciphertext, sealed) = self.sent(from, to);
        let key = &self.directory.entries[usize::from(to)].1.2;
        let mut out = vec![Vec::new(), vec![0; 32], vec![0xff; 32], self.hash.0.to_vec(), sealed[..32].to_vec()];
        for public in [ciphertext.bytes(), key.bytes()] {
            out.extend(public.chunks(32).map(<[u8]>::to_vec));
        }
        // Another's key and another's ciphertext give other secrets.
        out.extend(
            (0..SITES)
                .filter(|s| *s != usize::from(to))
                .map(|s| api::kem_decapsulate(&self.private[s].kem, ciphertext).to_vec()),
        );
        out
    }
}

fn pairs() -> impl Iterator<Item = (u16, u16)> {
    (0..SITES as u16).flat_map(|u| (0..SITES as u16).map(move |v| (u, v))).filter(|(u, v)| u != v)
}

/// Who has every X25519 private key of the recorded deck opens no box and has no pair secret; nor does who has every
/// ML-KEM private key instead. Who has both has all. Fails if either is left out of a derivation.
#[test]
fn neither_broken_scheme_alone_opens_a_recorded_deck() {
    let r = record(0);
    for (from, to) in pairs() {
        let (x, k) = (r.sealing(from, to), r.kem(from, to));
        assert!(r.opens(from, to, &[x, k].concat()), "with both");
        for guess in r.guesses(from, to) {
            assert!(!r.opens(from, to, &[&x[..], &guess].concat()), "X25519 alone");
            assert!(!r.opens(from, to, &[&guess[..], &k].concat()), "ML-KEM alone");
        }
        if from > to {
            continue;
        }
        let (x, down) = (r.masking(from, to), r.kem(to, from));
        assert!(r.masks(from, to, &[x, k, down].concat()), "with both");
        // The other direction's secret is not enough either.
        for guess in r.guesses(from, to).iter().chain(&r.guesses(to, from)) {
            assert!(!r.masks(from, to, &[&x[..], guess, guess].concat()), "X25519 alone");
            assert!(!r.masks(from, to, &[&x[..], &k, guess].concat()), "X25519 and one direction");
            assert!(!r.masks(from, to, &[&x[..], guess, &down].concat()), "X25519 and the other direction");
            assert!(!r.masks(from, to, &[&guess[..], &k, &down].concat()), "ML-KEM alone");
        }
        assert!(!r.masks(from, to, &[x, down, k].concat()), "the directions exchanged");
    }
}

/// No ML-KEM key, ciphertext or secret stands twice, in one deck or in two.
#[test]
fn everything_of_ml_kem_is_fresh_for_every_deck_and_direction() {
    let (mut keys, mut ciphertexts, mut secrets) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for index in 0..2 {
        let r = record(index);
        keys.extend(r.directory.entries.iter().map(|e| e.1.2.bytes().to_vec()));
        for (from, to) in pairs() {
            ciphertexts.insert(r.sent(from, to).1.bytes().to_vec());
            secrets.insert(r.kem(from, to));
        }
    }
    let directions = 2 * SITES * (SITES - 1);
    assert_eq!((keys.len(), ciphertexts.len(), secrets.len()), (2 * SITES, directions, directions));
}
