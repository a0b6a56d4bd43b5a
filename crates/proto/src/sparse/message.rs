//! The messages of the sparse protocol and what is hashed of them, in the order in which they travel (spec 17.2).

use serde::{Deserialize, Serialize};

use super::{bits::Bits, frame::Proof, size::Shape};
use crate::{
    codec,
    suite::{self, Hash},
};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) run: Hash,
    pub(crate) index: u32,
    pub(crate) slots: u16,
}

/// What a site says of itself; with its proof it is the site's entry in the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Advertise {
    pub(crate) seal_key: [u8; 32],
    /// Commitment to its random number.
    pub(crate) random: Hash,
    /// Hash of its public keys of the slots.
    pub(crate) slot_keys: Hash,
    /// Hash of its commitments to the self-mask seeds.
    pub(crate) commitments: Hash,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Root {
    /// By number in the roster.
    pub(crate) members: Bits,
    /// Of the tree of entries.
    pub(crate) entries: Hash,
    /// Hash of all commitments to random numbers.
    pub(crate) randoms: Hash,
    /// From the receiver's own entry.
    pub(crate) path: Vec<Hash>,
}

/// A site's part of the seed: 128 bits are more than anybody can guess or find twice.
pub(crate) type Random = [u8; 16];

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Reveal {
    pub(crate) random: Random,
    pub(crate) slot_keys: Vec<[u8; 32]>,
}

/// An entry with its way to the root.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) keys: Advertise,
    pub(crate) proof: Proof,
    pub(crate) path: Vec<Hash>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Seed {
    /// Of every member, in order.
    pub(crate) randoms: Vec<Random>,
    /// The receiver's neighbours, in order, with their keys of the slots.
    pub(crate) near: Vec<(Shown, Vec<[u8; 32]>)>,
    /// The committee, in order.
    pub(crate) committee: Vec<Shown>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Certificate {
    /// Members of the committee, by place in the directory, ascending.
    pub(crate) signers: Vec<u16>,
    pub(crate) proofs: Vec<Proof>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Shares {
    pub(crate) commitments: Vec<Hash>,
    /// One for every member of the committee, in order; the sender's own place is empty.
    pub(crate) boxes: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Deliver {
    /// From whom, by place in the directory.
    pub(crate) boxes: Vec<(u16, Sealed)>,
}

/// A box and the entry of its sender, whose key it was sealed with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Sealed {
    pub(crate) keys: Advertise,
    pub(crate) proof: Proof,
    pub(crate) sealed: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) owners: Bits,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Ask {
    pub(crate) slot: u16,
    pub(crate) cohort: Bits,
    pub(crate) words: u32,
    pub(crate) previous_context: Hash,
    pub(crate) previous_total: Hash,
    pub(crate) query: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Survivors {
    pub(crate) alive: Bits,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Agreement {
    pub(crate) alive: Bits,
    pub(crate) signers: Vec<u16>,
    pub(crate) proofs: Vec<Proof>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unmask {
    /// For every member of the cohort, in order: of its self-mask seed where it survived, of its slot key's where not;
    /// nothing where the holder has no share of it.
    pub(crate) shares: Vec<Option<[u8; 32]>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) rule: String,
}

/// [SPA-1]: the session of the sparse protocol binds how its sizes are found.
pub(crate) fn session(of: &Hash, shape: &Shape) -> Hash {
    suite::hash("sparse session", &[&of.0, &codec::encode(shape)])
}

pub(crate) fn deck_id(session: &Hash, open: &Open) -> Hash {
    suite::hash("sparse deck", &[&session.0, &codec::encode(open)])
}

pub(crate) fn random_commitment(deck: &Hash, site: u16, random: &Random) -> Hash {
    suite::hash("sparse random", &[&deck.0, &site.to_le_bytes(), random])
}

pub(crate) fn list_hash(label: &str, list: &[Hash]) -> Hash {
    suite::hash(label, &[&codec::encode(list)])
}

pub(crate) fn keys_hash(list: &[[u8; 32]]) -> Hash {
    suite::hash("sparse slot keys", &[&codec::encode(list)])
}

/// The leaf of an entry in the directory's tree.
pub(crate) fn leaf(site: u16, proof: &Proof) -> Hash {
    suite::hash("sparse entry", &[&site.to_le_bytes(), &codec::encode(proof)])
}

/// Identifies a directory before its seed is known ([SPA-6]).
pub(crate) fn root_context(deck: &Hash, members: &Bits, entries: &Hash, randoms: &Hash) -> Hash {
    suite::hash("sparse root", &[&deck.0, &codec::encode(members), &entries.0, &randoms.0])
}

/// [SPA-8]: what the circle and the committee are drawn from.
pub(crate) fn seed(root: &Hash, randoms: &[Random]) -> Hash {
    suite::hash("sparse seed", &[&root.0, &codec::encode(randoms)])
}

/// Identifies a directory with its seed: what the certificate is on and every secret of the deck is bound to.
pub(crate) fn directory(root: &Hash, seed: &Hash) -> Hash {
    suite::hash("sparse directory", &[&root.0, &seed.0])
}

/// The context of a round ([SPA-13]).
pub(crate) fn round_context(session: &Hash, directory: &Hash, ask: &Ask) -> Hash {
    suite::hash(
        "sparse round",
        &[
            &session.0,
            &directory.0,
            &ask.slot.to_le_bytes(),
            &codec::encode(&ask.cohort),
            &ask.words.to_le_bytes(),
            &suite::hash("query", &[&ask.query]).0,
            &ask.previous_context.0,
            &ask.previous_total.0,
        ],
    )
}

/// The context of a signature on survivors ([SPA-20]).
pub(crate) fn survivors_context(round: &Hash, alive: &Bits) -> Hash {
    suite::hash("sparse survivors", &[&round.0, &codec::encode(alive)])
}

/// The name under which a query is remembered ([SPA-17]).
pub(crate) fn query_hash(query: &[u8]) -> Hash {
    suite::hash("consumed query", &[query])
}
