//! Traffic of a deck that was recorded and is attacked later: with all of X25519 broken, and with all of ML-KEM broken.

use veilsum_proto::kem::Ciphertext;
use veilsum_testkit::prelude::*;

const SITES: usize = 4;
const SLOTS: u16 = 3;
const SEED: u64 = 71;

/// The private keys of a site's deck, by the order of its draws.
struct Private {
    dh: x25519_dalek::StaticSecret,
    kem: [u8; 64],
}

/// What was on the wire, and what its makers kept to themselves.
struct Recording {
    hub: Hub,
    hash: Hash,
    directory: Directory,
    accepted: Accepted,
    sealed: BTreeMap<u16, Sealed>,
    private: Vec<Private>,
}

fn record() -> Recording {
    let mut hub = Hub::new(SITES, SEED, |_| {});
    let mut twin = ChaCha20Rng::seed_from_u64(SEED);
    let (id, directory) = hub.advertise(0, SLOTS, &everybody(SITES));
    let private: Vec<Private> = directory
        .entries
        .iter()
        .map(|entry| {
            let mut bytes = [0; 96 + 64 * SLOTS as usize];
            twin.fill_bytes(&mut bytes);
            let dh = x25519_dalek::StaticSecret::from(<[u8; 32]>::try_from(&bytes[..32]).unwrap());
            let private = Private { dh, kem: bytes[32..96].try_into().unwrap() };
            // Else everything below would fail to open for a reason that is none.
            assert_eq!(x25519_dalek::PublicKey::from(&private.dh).to_bytes(), entry.1.0);
            assert_eq!(api::kem_public(&private.kem), entry.1.1);
            private
        })
        .collect();
    let (hash, accepted) = hub.accept(&id, &directory).unwrap();
    let sealed = hub.certify(&hash, &accepted).unwrap();
    for s in 0..SITES as u16 {
        let frame = hub.delivery(&hash, &sealed, s);
        hub.reply(s, &frame).unwrap();
    }
    Recording { hub, hash, directory, accepted, sealed, private }
}

impl Recording {
    /// The one ciphertext between two members, who made it, and for whom.
    fn passed(&self, u: u16, v: u16) -> (u16, u16, &Ciphertext) {
        let of = |from: u16, to: u16| Some((from, to, &self.accepted[&from].1.iter().find(|c| c.0 == to)?.1));
        of(u, v).or_else(|| of(v, u)).expect("one of the two makes it")
    }

    fn sealed(&self, from: u16, to: u16) -> &[u8] {
        &self.sealed[&from].1.iter().find(|b| b.0 == to).expect("its box").1
    }

    /// X25519's result of two members, as one who has broken it computes it.
    fn x25519(&self, u: u16, v: u16) -> [u8; 32] {
        let theirs = self.directory.entries[usize::from(v)].1.0;
        self.private[usize::from(u)].dh.diffie_hellman(&x25519_dalek::PublicKey::from(theirs)).to_bytes()
    }

    /// ML-KEM's secret of two members, as one who has broken it computes it.
    fn kem(&self, u: u16, v: u16) -> [u8; 32] {
        let (_, to, ciphertext) = self.passed(u, v);
        api::kem_decapsulate(&self.private[usize::from(to)].kem, ciphertext)
    }

    /// Whether these secrets open the box; then the shares are those the receiver keeps.
    fn opens(&self, from: u16, to: u16, secrets: &[u8]) -> bool {
        let (f, t) = (from.to_le_bytes(), to.to_le_bytes());
        let parts: [&[u8]; 4] = [&self.hash.0, &f, &t, self.passed(from, to).2.bytes()];
        let associated = veilsum_proto::suite::hash("box", &parts);
        let key = api::derive(secrets, "box", &parts);
        let Ok(plain) = api::open(&key, &associated, self.sealed(from, to)) else { return false };
        let held = Secrets::of(&self.hub, to, 0);
        let shares: Vec<[u8; 32]> = (0..SLOTS).map(|r| held.share(from, r)).collect();
        assert_eq!(plain, shares.concat(), "the box of {from} to {to}");
        true
    }

    /// Whether these secrets are those from which the pair's masks are made.
    fn masks(&self, low: u16, high: u16, secrets: &[u8]) -> bool {
        let (l, h) = (low.to_le_bytes(), high.to_le_bytes());
        let kept = Secrets::of(&self.hub, low, 0).pair(high);
        assert_eq!(kept, Secrets::of(&self.hub, high, 0).pair(low));
        api::derive(secrets, "pair", &[&self.hash.0, &l, &h, self.passed(low, high).2.bytes()]) == kept
    }

    /// What can be put in the place of a secret by one who has only what was on the wire.
    fn guesses(&self, u: u16, v: u16) -> Vec<Vec<u8>> {
        let (_, to, ciphertext) = self.passed(u, v);
        let key = &self.directory.entries[usize::from(to)].1.1;
        let mut out =
            vec![Vec::new(), vec![0; 32], vec![0xff; 32], self.hash.0.to_vec(), self.sealed(u, v)[..32].to_vec()];
        for public in [ciphertext.bytes(), key.bytes()] {
            out.extend(public.chunks(32).map(<[u8]>::to_vec));
        }
        // Another's key gives another secret.
        let others = (0..SITES).filter(|s| *s != usize::from(to));
        out.extend(others.map(|s| api::kem_decapsulate(&self.private[s].kem, ciphertext).to_vec()));
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
    let r = record();
    for (from, to) in pairs() {
        let (x, k) = (r.x25519(from, to), r.kem(from, to));
        assert!(r.opens(from, to, &[x, k].concat()), "with both");
        let masks = |secrets: &[u8]| from < to && r.masks(from, to, secrets);
        assert_eq!(masks(&[x, k].concat()), from < to, "with both");
        for guess in r.guesses(from, to) {
            for secrets in [[&x[..], &guess].concat(), [&guess[..], &k].concat()] {
                assert!(!r.opens(from, to, &secrets) && !masks(&secrets), "one of the two alone");
            }
        }
        assert!(!r.opens(from, to, &[k, x].concat()) && !masks(&[k, x].concat()), "the two exchanged");
    }
}
