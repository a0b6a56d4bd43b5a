//! The messages in the order in which they travel, and the hashes that name decks, directories and rounds (spec section 10).

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::Proof;
use crate::{
    codec,
    commit::Commitment,
    identity::Signature,
    kem::{CIPHERTEXT_BYTES, Ciphertext, KemKey},
    rule::Rule,
    standing::Standing,
    suite::{self, Hash},
};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct OpenDeck {
    pub(crate) run: Hash,
    pub(crate) index: u32,
    pub(crate) slots: u16,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct AdvertiseKeys {
    #[serde(with = "codec::fixed")]
    pub(crate) dh_key: [u8; 32],
    pub(crate) kem_key: KemKey,
    /// Hash of the list of commitments to the self-mask seeds.
    pub(crate) commitments: Hash,
    /// What the site states of its account ([LED-11]).
    pub(crate) standing: Standing,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct DirectoryEntry {
    pub(crate) site: u16,
    pub(crate) keys: AdvertiseKeys,
    pub(crate) proof: Proof,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Directory {
    pub(crate) threshold: u16,
    pub(crate) entries: Vec<DirectoryEntry>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct CiphertextFor {
    pub(crate) site: u16,
    /// Carries the secret that a pair needs beside X25519's.
    pub(crate) ciphertext: Ciphertext,
}

/// Bytes of one, encoded.
pub(crate) const CIPHERTEXT_FOR: usize = 2 + CIPHERTEXT_BYTES;

/// Whether of two members `from` makes the ciphertext that passes between them ([KEX-17]).
pub(crate) fn encapsulates(from: u16, to: u16) -> bool {
    from != to && (from < to) == ((from ^ to) & 1 == 1)
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct AcceptDirectory {
    /// `site` is the receiver.
    pub(crate) ciphertexts: Vec<CiphertextFor>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct DirectoryCertificate {
    /// In the order of the directory's entries.
    pub(crate) proofs: Vec<Proof>,
    /// `site` is the sender.
    pub(crate) ciphertexts: Vec<CiphertextFor>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct SealedFor {
    pub(crate) site: u16,
    #[serde(with = "codec::bytes")]
    pub(crate) sealed: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ShareKeys {
    pub(crate) commitments: Vec<Hash>,
    pub(crate) boxes: Vec<SealedFor>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct DeliverShares {
    /// Every member's commitments by slot, in the order of the directory's entries.
    pub(crate) commitments: Vec<Vec<Hash>>,
    /// `site` is the sender of the box.
    pub(crate) boxes: Vec<SealedFor>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ShareComplaint {
    pub(crate) against: u16,
}

/// A question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// Number of the deck.
    pub deck: u32,
    /// Its slot.
    pub slot: u16,
    /// Whose answers are asked for.
    pub cohort: Vec<u16>,
    /// Words of an answer.
    pub words: u32,
    /// The round before; zeros in the first round of a run.
    pub previous_context: Hash,
    /// The name of what was opened of the round before.
    pub previous_total: Hash,
    /// The application's query.
    #[serde(with = "codec::bytes")]
    pub query: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Survivors {
    pub(crate) alive: Vec<u16>,
    /// Their masked inputs' proofs, in the same order.
    pub(crate) inputs: Vec<Proof>,
}

/// A mask seed of one round, given away because its other owner is missing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(crate) struct RoundSeed {
    pub(crate) missing: u16,
    #[serde(with = "codec::fixed")]
    pub(crate) seed: [u8; 32],
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConsistencyCheck {
    pub(crate) round: Hash,
    pub(crate) seeds: Vec<RoundSeed>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Certificate {
    pub(crate) alive: Vec<u16>,
    /// Hash of what the survivors signed as their inputs, for a site that was not shown it.
    pub(crate) inputs: Hash,
    pub(crate) signers: Vec<u16>,
    pub(crate) proofs: Vec<Proof>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unmask {
    /// One for every survivor, in their order.
    #[serde(with = "codec::list")]
    pub(crate) shares: Vec<[u8; 32]>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The rule without its reason, which only the site's own operator learns.
    pub(crate) rule: Rule,
}

/// One survivor's masked input, without its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct OpenedInput {
    #[serde(with = "codec::fixed")]
    pub(crate) commitment: Commitment,
    /// Hash of the words.
    pub(crate) digest: Hash,
    /// The site's, on its `MaskedInput`.
    pub(crate) signature: Signature,
}

/// One survivor's consistency check: its seeds towards the missing, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct OpenedCheck {
    #[serde(with = "codec::list")]
    pub(crate) seeds: Vec<[u8; 32]>,
    /// The site's, on its `ConsistencyCheck`.
    pub(crate) signature: Signature,
}

/// The total proof (opening): everything that is needed to recompute a total and to see that it is the sum of what the
/// survivors sent. Nothing in it is secret any more: the aggregator has it, and knows no more than the total and which
/// inputs it is a total of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) alive: Vec<u16>,
    /// Of the survivors, in their order.
    pub(crate) inputs: Vec<OpenedInput>,
    /// The survivors' self-mask seeds of this slot.
    #[serde(with = "codec::list")]
    pub(crate) seeds: Vec<[u8; 32]>,
    /// The commitments to the self-mask seeds of the other members of the deck, in their order.
    pub(crate) others: Vec<Hash>,
    /// Of the survivors, where a site of the cohort is missing; else empty.
    pub(crate) checks: Vec<OpenedCheck>,
    /// Of t survivors, ascending, where nobody is missing; else empty: each one's signature on its `Unmask`, and with it on the
    /// survivors and inputs for which its shares left.
    pub(crate) agreed: Vec<(u16, Proof)>,
    /// The integer sums of the masked words: low 64 bits of each.
    pub(crate) low: Vec<u64>,
    /// How often each sum overflowed 2^64.
    pub(crate) high: Vec<u16>,
}

/// Names an opening in the next question ([OPN-7]).
pub(crate) fn opening_hash(context: &Hash, opening: &[u8]) -> Hash {
    suite::hash("opening", &[&context.0, opening])
}

/// Context of a consistency check and of shares: this round, exactly these survivors, and exactly these inputs of theirs
/// ([CON-2], [UNM-3]).
pub(crate) fn survivors_context(round: &Hash, alive: &[u16], inputs: &Hash) -> Hash {
    suite::hash("survivors", &[&round.0, &codec::encode(alive), &inputs.0])
}

/// Survivors, and the hash of what each of them signed as its input, in their order. No signature is verified twice: when a
/// survivor is named again, or opened, its input is compared with this.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) alive: Vec<u16>,
    pub(crate) inputs: Vec<Hash>,
}

impl Named {
    pub(crate) fn of(alive: &[u16], inputs: &[Proof]) -> Named {
        Named { alive: alive.to_vec(), inputs: inputs.iter().map(Proof::signed_message).collect() }
    }

    /// What this survivor signed.
    pub(crate) fn input(&self, site: u16) -> Option<&Hash> {
        self.alive.binary_search(&site).ok().and_then(|at| self.inputs.get(at))
    }

    /// Whether all of `other` is in this.
    pub(crate) fn holds(&self, other: &Named) -> bool {
        other.inputs.len() == other.alive.len()
            && other.alive.iter().zip(&other.inputs).all(|(site, input)| self.input(*site) == Some(input))
    }

    /// Hash of the inputs ([CON-2]).
    pub(crate) fn inputs_hash(&self) -> Hash {
        suite::hash("inputs", &[&codec::encode(&self.inputs)])
    }

    /// What they sign, and what shares for them are for.
    pub(crate) fn context(&self, round: &Hash) -> Hash {
        survivors_context(round, &self.alive, &self.inputs_hash())
    }
}

/// Session: one plan, one roster, one aggregator ([SES-1]).
pub fn session(plan: &Hash, roster: &Hash, role: crate::roster::PartyId) -> Hash {
    suite::hash("session", &[&plan.0, &roster.0, &codec::encode(&role)])
}

/// Identifies a deck ([KEX-1]).
pub(crate) fn deck_id(session: &Hash, open: &OpenDeck) -> Hash {
    suite::hash("deck", &[&session.0, &codec::encode(open)])
}

/// Identifies a directory ([KEX-3]).
pub(crate) fn directory_hash(deck: &Hash, directory: &Directory) -> Hash {
    suite::hash("directory", &[&deck.0, &codec::encode(directory)])
}

/// The context of a round, from which everything secret in it is derived ([RND-1]).
pub(crate) fn round_context(session: &Hash, directory: &Hash, ask: &Ask) -> Hash {
    let query = suite::hash("query", &[&ask.query]);
    suite::hash(
        "round",
        &[
            &session.0,
            &directory.0,
            &ask.deck.to_le_bytes(),
            &ask.slot.to_le_bytes(),
            &codec::encode(&ask.cohort),
            &ask.words.to_le_bytes(),
            &query.0,
            &ask.previous_context.0,
            &ask.previous_total.0,
        ],
    )
}

/// Commitment to the self-mask seed of one slot ([KEX-2]).
pub(crate) fn seed_commitment(deck: &Hash, site: u16, slot: u16, seed: &[u8; 32]) -> Hash {
    suite::hash("self-mask commitment", &[&deck.0, &site.to_le_bytes(), &slot.to_le_bytes(), seed])
}

/// Hash of a list of commitments.
pub(crate) fn commitments_hash(list: &[Hash]) -> Hash {
    suite::hash("commitments", &[&codec::encode(list)])
}

/// Hash of all members' commitments to their self-mask seeds of one slot, in the members' order ([SHR-8]).
pub(crate) fn slot_commitments_hash(list: &[Hash]) -> Hash {
    suite::hash("slot commitments", &[&codec::encode(list)])
}

/// That of every slot, from the members' lists by slot, all of one length.
pub(crate) fn slot_commitments(lists: &[Vec<Hash>]) -> Vec<Hash> {
    let slots = lists.first().map_or(0, Vec::len);
    let of_slot = |r: usize| slot_commitments_hash(&lists.iter().map(|list| list[r]).collect::<Vec<_>>());
    (0..slots).map(of_slot).collect()
}
