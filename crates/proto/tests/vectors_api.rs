//! What the vectors of `protocol/vectors` and the fuzzer reach inside the core: one function a layer, on plain bytes; for
//! tests only.

use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    aggregator::Aggregator,
    codec, commit,
    error::Error,
    identity::{DecodedKeys, PublicKey, Signature},
    kem::{Ciphertext, KemKey, KemSecret},
    mask::{self, Sign},
    message::{self, Kind},
    shamir::{self, Polynomial, Powers, Share},
    site::{self, Site},
    suite::{self, Hash, Purpose, Secret},
};

/// A scalar's 32 bytes.
pub type Bytes = [u8; 32];

/// `derive` of section 4.2.
pub fn derive(input: &[u8], label: &str, parts: &[&[u8]]) -> Bytes {
    *Purpose::new(label, parts).derive(input).bytes()
}

/// `expand` of section 4.2.
pub fn expand(from: &Bytes, label: &str, parts: &[&[u8]]) -> Bytes {
    *Purpose::new(label, parts).expand(&Secret(*from)).bytes()
}

/// The ML-KEM key of a seed d ‖ z.
pub fn kem_public(seed: &[u8; 64]) -> KemKey {
    KemSecret::from_seed(seed).public()
}

/// A ciphertext and its secret from 32 bytes of `rng`; none where the key is not valid.
pub fn kem_encapsulate(key: &KemKey, rng: &mut dyn CryptoRng) -> Option<(Ciphertext, Bytes)> {
    key.encapsulate(&Secret::random(rng)).map(|(ciphertext, secret)| (ciphertext, *secret.bytes()))
}

/// The secret of a ciphertext.
pub fn kem_decapsulate(seed: &[u8; 64], ciphertext: &Ciphertext) -> Bytes {
    *KemSecret::from_seed(seed).expand().decapsulate(ciphertext).bytes()
}

/// The secrets of many ciphertexts to one key, which is expanded once, as a deck's is.
pub fn kem_decapsulator(seed: &[u8; 64]) -> impl Fn(&Ciphertext) -> Bytes + use<> {
    let key = KemSecret::from_seed(seed).expand();
    move |ciphertext| *key.decapsulate(ciphertext).bytes()
}

/// Whether of two members `from` makes the ciphertext that passes between them ([KEX-17]).
pub fn encapsulates(from: u16, to: u16) -> bool {
    message::encapsulates(from, to)
}

/// `seal` of section 4.3.
pub fn seal(key: &Bytes, associated: &Hash, plain: &[u8]) -> Vec<u8> {
    suite::seal(&Secret(*key), associated, plain)
}

/// Opens what [`seal`] made.
///
/// # Errors
/// `Error::Malformed` where it does not open.
pub fn open(key: &Bytes, associated: &Hash, sealed: &[u8]) -> Result<Vec<u8>, Error> {
    suite::open(&Secret(*key), associated, sealed).map(|plain| plain.to_vec())
}

/// Adds the mask that site `me` shares with `other`, or its own where there is no other ([MSK-3]).
pub fn mask(words: &mut [u64], key: &Bytes, pair: Option<(u16, u16)>) {
    let sign = pair.map_or(Sign::Plus, |(me, other)| mask::pair_sign(me, other));
    mask::apply_all(words, &[(Secret(*key), sign)]);
}

/// Adds the masks of all these keys one after another, as a round does.
pub fn mask_all(words: &mut [u64], keys: &[Bytes]) {
    let masks: Vec<_> = keys.iter().map(|key| (Secret(*key), Sign::Plus)).collect();
    mask::apply_all(words, &masks);
}

/// Takes off what `mask` added.
pub fn unmask(words: &mut [u64], key: &Bytes, pair: Option<(u16, u16)>) {
    let sign = pair.map_or(Sign::Plus, |(me, other)| mask::pair_sign(me, other));
    mask::apply_all(words, &[(Secret(*key), sign.reversed())]);
}

/// A pair secret or noise secret of the next slot, from that of this one ([MSK-1]).
pub fn next_slot(secret: &Bytes) -> Bytes {
    *site::deck::next_slots().expand(&Secret(*secret)).bytes()
}

/// s(u) of [MSK-1].
pub fn self_mask_key(seed: &Bytes, context: &Hash) -> Bytes {
    *mask::self_mask_key(&scalar(seed), context).bytes()
}

/// The commitment to one seed ([KEX-2]).
pub fn seed_commitment(deck: &Hash, site: u16, slot: u16, seed: &Bytes) -> Hash {
    message::seed_commitment(deck, site, slot, seed)
}

/// The commitment to all seeds of a site ([KEX-2]).
pub fn commitments_hash(list: &[Hash]) -> Hash {
    message::commitments_hash(list)
}

/// The digests of all members' commitments, one a slot ([SHR-8]).
pub fn slot_commitments(lists: &[Vec<Hash>]) -> Vec<Hash> {
    message::slot_commitments(lists)
}

/// A uniform scalar from 64 bytes of `rng`.
pub fn random_scalar(rng: &mut dyn CryptoRng) -> Bytes {
    shamir::random_scalar(rng).to_bytes()
}

/// The generator with this number ([OPN-1]).
pub fn generator(index: u64) -> Bytes {
    commit::generator(index).compress().to_bytes()
}

/// The commitment to a masked vector ([OPN-1]).
pub fn commit(words: &[u64]) -> Bytes {
    commit::commit(words)
}

/// Whether these are the sums of what was committed to: the low 64 bits of each, and how often it ran over ([OPN-4]).
pub fn are_sums(low: &[u64], high: &[u16], commitments: &[Bytes]) -> bool {
    commit::are_sums_of(low, high, commitments.iter())
}

/// Whether the bytes are a share ([SHA-2]).
pub fn is_share(bytes: &Bytes) -> bool {
    Share::from_bytes(bytes).is_some()
}

/// The shares of `members` ([SHR-1]).
pub fn split(secret: &Bytes, t: usize, members: &[u16], rng: &mut dyn CryptoRng) -> Vec<Bytes> {
    shares(&scalar(secret), t, members, rng).iter().map(Share::bytes).collect()
}

fn shares(secret: &Scalar, t: usize, members: &[u16], rng: &mut dyn CryptoRng) -> Vec<Share> {
    let polynomial = Polynomial::through(secret, t, rng);
    members.iter().map(|m| Powers::of(*m, t).share(&polynomial)).collect()
}

/// Checks many signatures on hashes at once ([FRM-4]), for keys that are decoded before, as a site's roster is.
pub fn signed_at_once(keys: impl IntoIterator<Item = PublicKey>) -> impl Fn(&[(PublicKey, Hash, Signature)]) -> bool {
    let keys = DecodedKeys::new(keys);
    move |signed| keys.verify_all(signed)
}

/// The secret from exactly the threshold's number of shares.
pub fn recover(members: &[u16], shares: &[Bytes]) -> Bytes {
    shamir::recover(&shamir::lagrange_at_zero(members), shares.iter()).to_bytes()
}

/// Around one wrong share among the first t + 1, where `secret` is the one that fits; and the wrong ones' givers.
pub fn recover_committed(members: &[u16], shares: &[Bytes], t: usize, secret: &Bytes) -> Option<(Bytes, Vec<u16>)> {
    let found = shamir::recover_committed(members, &scalars(shares), t, |s| s.to_bytes() == *secret);
    found.map(|(s, wrong)| (s.to_bytes(), wrong))
}

/// Around several wrong shares (Berlekamp and Welch), and their givers.
pub fn recover_robust(members: &[u16], shares: &[Bytes], t: usize) -> Option<(Bytes, Vec<u16>)> {
    shamir::recover_robust(members, &scalars(shares), t).map(|(s, wrong)| (s.to_bytes(), wrong))
}

/// A fresh seed and its shares, as a site deals them ([SHR-1]).
pub fn dealt(t: usize, members: &[u16], rng: &mut dyn CryptoRng) -> (Bytes, Vec<Bytes>) {
    let seed = shamir::random_scalar(rng);
    let shares = self::shares(&seed, t, members, rng);
    (seed.to_bytes(), shares.iter().map(Share::bytes).collect())
}

/// A fresh seed, and what the first t of its shares open to.
pub fn dealt_and_recovered(t: usize, members: &[u16], rng: &mut dyn CryptoRng) -> (Bytes, Bytes) {
    let seed = shamir::random_scalar(rng);
    let shares: Vec<Bytes> = self::shares(&seed, t, members, rng).iter().take(t).map(Share::bytes).collect();
    (seed.to_bytes(), shamir::recover(&shamir::lagrange_at_zero(&members[..t]), shares.iter()).to_bytes())
}

/// s(u) of [MSK-1] from a fresh seed.
pub fn fresh_self_mask_key(rng: &mut dyn CryptoRng, context: &Hash) -> Bytes {
    *mask::self_mask_key(&shamir::random_scalar(rng), context).bytes()
}

/// The public key that belongs to a private one ([KEX-2]).
pub fn public_key(own: &Bytes) -> Bytes {
    x25519_dalek::PublicKey::from(&x25519_dalek::StaticSecret::from(*own)).to_bytes()
}

/// What two members have in common, before it is looked at for small order ([KEX-8]).
pub fn exchanged(own: &Bytes, theirs: &Bytes) -> Bytes {
    site::pairs::shared(&x25519_dalek::StaticSecret::from(*own), theirs).0
}

/// A secret from what two members have in common.
pub fn agreed(own: &Bytes, theirs: &Bytes, label: &str, parts: &[&[u8]]) -> Bytes {
    let shared = site::pairs::shared(&x25519_dalek::StaticSecret::from(*own), theirs);
    *Purpose::new(label, parts).derive(&shared.0).bytes()
}

/// Reads the message of a core kind as its receiver does: what it re-encodes to, or `None` where it is refused. Kinds of
/// the application have no reader here.
pub fn decode(kind: Kind, bytes: &[u8]) -> Option<Option<Vec<u8>>> {
    fn read<T: Serialize + DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Option<Vec<u8>> {
        codec::decode::<T>("message", bytes, kind.body_limit()).ok().map(|m| codec::encode(&m))
    }
    Some(match kind {
        Kind::OpenDeck => read::<message::OpenDeck>(kind, bytes),
        Kind::AdvertiseKeys => read::<message::AdvertiseKeys>(kind, bytes),
        Kind::Directory => read::<message::Directory>(kind, bytes),
        Kind::ShareAck => bytes.is_empty().then(Vec::new),
        Kind::AcceptDirectory => read::<message::AcceptDirectory>(kind, bytes),
        Kind::DirectoryCertificate => read::<message::DirectoryCertificate>(kind, bytes),
        Kind::ShareKeys => read::<message::ShareKeys>(kind, bytes),
        Kind::DeliverShares => read::<message::DeliverShares>(kind, bytes),
        Kind::ShareComplaint => read::<message::ShareComplaint>(kind, bytes),
        Kind::Ask => read::<message::Ask>(kind, bytes),
        Kind::MaskedInput => {
            let words = bytes.len().checked_sub(message::COMMITMENT);
            words.is_some_and(|w| w.is_multiple_of(8)).then(|| bytes.to_vec())
        }
        Kind::Survivors => read::<message::Survivors>(kind, bytes),
        Kind::ConsistencyCheck => read::<message::ConsistencyCheck>(kind, bytes),
        Kind::Certificate => read::<message::Certificate>(kind, bytes),
        Kind::Unmask => read::<message::Unmask>(kind, bytes),
        Kind::Refusal => read::<message::Refusal>(kind, bytes),
        Kind::Opening => read::<message::Opening>(kind, bytes),
        _ => return None,
    })
}

fn scalar(bytes: &Bytes) -> Scalar {
    Share::from_bytes(bytes).expect("the vectors give canonical scalars here").0
}

fn scalars(bytes: &[Bytes]) -> Vec<Scalar> {
    bytes.iter().map(scalar).collect()
}

/// For tests that say every word of a coordinator by hand: this site commits to nothing and awaits no opening.
pub fn await_no_opening(site: &mut Site) {
    site.env.opening = false;
}

/// Masked inputs of so many bytes at most are kept until the round is over, in place of 64 MiB; larger ones are added up as they come,
/// and asked for again where somebody leaves ([RND-7]).
pub fn keep_at_most(aggregator: &mut Aggregator, bytes: usize) {
    aggregator.env.kept = bytes;
}
