//! Changes of a roster and statements of new keys as text.

use std::path::Path;

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    history::{Change, Rekey, SignedChange},
    identity::{PublicKey, Signature, to_hex},
};

use super::file::{hash_of, hex};
use crate::error::Failure;

/// One change of a roster.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangePart {
    number: u32,
    previous: String,
    roster: String,
    signature: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rekey: Vec<RekeyPart>,
}

/// One new key.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RekeyPart {
    federation: String,
    party: String,
    old: String,
    new: String,
    by_old: String,
    by_new: String,
}

impl ChangePart {
    pub(super) fn of(signed: &SignedChange) -> Self {
        ChangePart {
            number: signed.change.number,
            previous: signed.change.previous.to_string(),
            roster: signed.change.roster.to_string(),
            signature: to_hex(&signed.signature.to_bytes()),
            rekey: signed.change.rekeys.iter().map(RekeyPart::of).collect(),
        }
    }

    pub(super) fn read(self, path: &Path) -> Result<SignedChange, Failure> {
        let change = Change {
            number: self.number,
            previous: hash_of(path, "previous", &self.previous)?,
            roster: hash_of(path, "roster", &self.roster)?,
            rekeys: self.rekey.into_iter().map(|part| part.read(path)).collect::<Result<_, _>>()?,
        };
        Ok(SignedChange { change, signature: Signature::from_bytes(&hex(path, "signature", &self.signature)?) })
    }
}

impl RekeyPart {
    pub(super) fn of(rekey: &Rekey) -> Self {
        RekeyPart {
            federation: rekey.federation.clone(),
            party: rekey.party.clone(),
            old: rekey.old.to_string(),
            new: rekey.new.to_string(),
            by_old: to_hex(&rekey.by_old.to_bytes()),
            by_new: to_hex(&rekey.by_new.to_bytes()),
        }
    }

    pub(super) fn read(self, path: &Path) -> Result<Rekey, Failure> {
        let signature = |name, digits: &str| Ok::<_, Failure>(Signature::from_bytes(&hex(path, name, digits)?));
        Ok(Rekey {
            old: PublicKey(hex(path, "old", &self.old)?),
            new: PublicKey(hex(path, "new", &self.new)?),
            by_old: signature("by_old", &self.by_old)?,
            by_new: signature("by_new", &self.by_new)?,
            federation: self.federation,
            party: self.party,
        })
    }
}
