//! Changes of a roster and statements of new keys as text.

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    history::{Change, Rekey, SignedChange},
    identity::{PublicKey, Signature},
    suite::Hash,
};

use super::digits;

/// One change of a roster.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangePart {
    number: u32,
    #[serde(with = "digits")]
    previous: Hash,
    #[serde(with = "digits")]
    roster: Hash,
    #[serde(with = "digits")]
    signature: Signature,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rekey: Vec<RekeyPart>,
}

/// One new key.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct RekeyPart(#[serde(with = "RekeyText")] pub(super) Rekey);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Rekey", deny_unknown_fields)]
struct RekeyText {
    federation: String,
    party: String,
    #[serde(with = "digits")]
    old: PublicKey,
    #[serde(with = "digits")]
    new: PublicKey,
    #[serde(with = "digits")]
    by_old: Signature,
    #[serde(with = "digits")]
    by_new: Signature,
}

impl From<&SignedChange> for ChangePart {
    fn from(SignedChange { change, signature }: &SignedChange) -> ChangePart {
        let rekey = change.rekeys.iter().cloned().map(RekeyPart).collect();
        ChangePart {
            number: change.number,
            previous: change.previous,
            roster: change.roster,
            signature: *signature,
            rekey,
        }
    }
}

impl From<ChangePart> for SignedChange {
    fn from(ChangePart { number, previous, roster, signature, rekey }: ChangePart) -> SignedChange {
        let rekeys = rekey.into_iter().map(|RekeyPart(rekey)| rekey).collect();
        SignedChange { change: Change { number, previous, roster, rekeys }, signature }
    }
}
