//! What a frame that leaves a site gives away (spec section 10).

use serde::{Deserialize, Serialize};

use super::Kind;

/// What an outgoing frame of a site gives away. There is no variant for plain values, because nothing sends them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disclosure {
    /// Public keys and hashes of fresh random values.
    PublicKeys,
    /// A signature on values the receiver sent or already knows.
    Acknowledgement,
    /// Boxes that only another site can open.
    SealedShares,
    /// Words that are uniformly random to everyone who lacks the masks.
    MaskedWords,
    /// The mask seeds of one round that this site shares with sites that are missing from it.
    RoundSeeds,
    /// Shares of the self-masks of one round.
    SelfMaskShares,
    /// That this site refuses, and under which rule.
    Refusal,
    /// Secrets that only another site can open, and a signature on values the receiver already knows.
    EncapsulatedSecrets,
}

impl Disclosure {
    /// What a site's frame of this kind gives away. A frame that has no label here does not leave.
    pub(crate) fn of(kind: Kind) -> Option<Disclosure> {
        Some(match kind {
            Kind::AdvertiseKeys => Disclosure::PublicKeys,
            Kind::AcceptDirectory => Disclosure::EncapsulatedSecrets,
            Kind::ShareKeys => Disclosure::SealedShares,
            Kind::ShareAck => Disclosure::Acknowledgement,
            Kind::MaskedInput => Disclosure::MaskedWords,
            Kind::ConsistencyCheck => Disclosure::RoundSeeds,
            Kind::Unmask => Disclosure::SelfMaskShares,
            Kind::ShareComplaint | Kind::Refusal => Disclosure::Refusal,
            _ => return None,
        })
    }
}
