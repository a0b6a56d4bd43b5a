//! The messages, written a second time after sections 8 to 10 of the specification and apart from the product's, so that
//! they are a test of the codec; and the numbers that sites answer with in tests.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
/// A signed frame around any bytes at all.
pub use veilsum_proto::message::frame_encoded as raw;
use veilsum_proto::{
    codec,
    identity::Signature,
    kem::{Ciphertext, KemKey},
    message::{HEADER, Kind, kind_of},
    suite::{self, Hash},
};

/// Words of an answer.
pub const WORDS: usize = 4;

/// X25519 key, ML-KEM key, hash of the commitments; account, and how far the ledger has come.
pub type Keys = ([u8; 32], KemKey, Hash, (Option<Hash>, (u64, Hash)));
/// AcceptDirectory: member, ciphertext.
pub type Ciphertexts = Vec<(u16, Ciphertext)>;
/// DirectoryCertificate: everybody's proofs, the ciphertexts for one site.
pub type Certified = (Vec<Proof>, Ciphertexts);
/// Member, sealed shares.
pub type Boxes = Vec<(u16, Vec<u8>)>;
/// ShareKeys: commitments by slot, a box for every other member.
pub type Sealed = (Vec<Hash>, Boxes);
/// DeliverShares: every member's commitments, the boxes for one site.
pub type Delivery = (Vec<Vec<Hash>>, Boxes);
/// Run, index, slots.
pub type Open = (Hash, u32, u16);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proof {
    pub rest: Hash,
    pub signature: Signature,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Directory {
    pub threshold: u16,
    pub entries: Vec<(u16, Keys, Proof)>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ask {
    pub deck: u32,
    pub slot: u16,
    pub cohort: Vec<u16>,
    pub words: u32,
    pub previous_context: Hash,
    pub previous_total: Hash,
    pub query: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Survivors {
    pub alive: Vec<u16>,
    pub inputs: Vec<Proof>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Certificate {
    pub alive: Vec<u16>,
    pub inputs: Hash,
    pub signers: Vec<u16>,
    pub proofs: Vec<Proof>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenedInput {
    pub commitment: [u8; 32],
    pub digest: Hash,
    pub signature: Signature,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenedCheck {
    pub seeds: Vec<[u8; 32]>,
    pub signature: Signature,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Opening {
    pub alive: Vec<u16>,
    pub inputs: Vec<OpenedInput>,
    pub seeds: Vec<[u8; 32]>,
    pub others: Vec<Hash>,
    pub checks: Vec<OpenedCheck>,
    pub agreed: Vec<(u16, Proof)>,
    pub low: Vec<u64>,
    pub high: Vec<u16>,
}

/// The round and the seeds towards the missing.
pub type Check = (Hash, Vec<(u16, [u8; 32])>);

/// A frame taken apart, unchecked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    pub kind: Kind,
    pub context: Hash,
    pub rest: Vec<u8>,
    pub proof: Proof,
}

pub fn parts(bytes: &[u8]) -> Parts {
    let kind = kind_of(bytes).expect("a whole frame");
    let body = &bytes[HEADER..];
    let (rest, signature) = body[32..].split_at(body.len() - 96);
    let signature = Signature::from_bytes(signature.try_into().unwrap());
    let proof = Proof { rest: rest_digest(kind, rest), signature };
    Parts { kind, context: Hash(body[..32].try_into().unwrap()), rest: rest.to_vec(), proof }
}

/// Of a masked input the commitment and the hash of the words are signed apart.
pub fn rest_digest(kind: Kind, rest: &[u8]) -> Hash {
    if kind == Kind::MaskedInput && rest.len() >= 32 {
        let words = suite::hash("masked", &[&rest[32..]]);
        return suite::hash("input", &[&rest[..32], &words.0]);
    }
    suite::hash("rest", &[rest])
}

impl Parts {
    /// The words of a masked input.
    pub fn words(&self) -> Vec<u64> {
        words(&self.rest)
    }

    /// Its shares of the survivors' self-masks, in their order.
    pub fn shares(&self) -> Vec<[u8; 32]> {
        self.read()
    }

    /// Its seeds towards the missing.
    pub fn seeds(&self) -> Vec<(u16, [u8; 32])> {
        self.read::<Check>().1
    }

    pub fn read<T: Serialize + DeserializeOwned>(&self) -> T {
        codec::decode("test", &self.rest, usize::MAX).expect("an honest message")
    }
}

pub fn deck_id(session: &Hash, open: &Open) -> Hash {
    suite::hash("deck", &[&session.0, &codec::encode(open)])
}

pub fn directory_hash(deck: &Hash, directory: &Directory) -> Hash {
    suite::hash("directory", &[&deck.0, &codec::encode(directory)])
}

pub fn round_context(session: &Hash, directory: &Hash, ask: &Ask) -> Hash {
    let query = suite::hash("query", &[&ask.query]);
    let (deck, slot, words) = (ask.deck.to_le_bytes(), ask.slot.to_le_bytes(), ask.words.to_le_bytes());
    let cohort = codec::encode(&ask.cohort);
    let (pc, pt) = (&ask.previous_context.0, &ask.previous_total.0);
    suite::hash("round", &[&session.0, &directory.0, &deck, &slot, &cohort, &words, &query.0, pc, pt])
}

pub fn survivors_context(round: &Hash, alive: &[u16], inputs: &[Hash]) -> Hash {
    suite::hash("survivors", &[&round.0, &codec::encode(alive), &inputs_hash(inputs).0])
}

pub fn inputs_hash(inputs: &[Hash]) -> Hash {
    suite::hash("inputs", &[&codec::encode(inputs)])
}

/// The rows' answer: depends on the site, the query and the place.
pub fn value(site: u16, query: &[u8], word: usize) -> u64 {
    let h = suite::hash("value", &[&site.to_le_bytes(), query, &(word as u64).to_le_bytes()]);
    u64::from_le_bytes(h.0[..8].try_into().unwrap())
}

pub fn sum(cohort: &[u16], query: &[u8]) -> Vec<u64> {
    (0..WORDS).map(|w| cohort.iter().fold(0u64, |a, s| a.wrapping_add(value(*s, query, w)))).collect()
}

pub fn everybody(n: usize) -> Vec<u16> {
    (0..n as u16).collect()
}

/// What the rows of a site give.
pub fn values(site: u16, query: &[u8]) -> Vec<u64> {
    (0..WORDS).map(|w| value(site, query, w)).collect()
}

/// The words of a masked input, behind the commitment.
pub fn words(rest: &[u8]) -> Vec<u64> {
    rest[32..].chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()
}

pub fn added(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect()
}
