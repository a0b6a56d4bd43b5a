//! `roster.toml`: who takes part, signed by the coordinator.

use std::path::Path;

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    identity::{PublicKey, Signature},
    roster::{Member, Roster, SignedRoster},
};

use super::file::{hex, read_document, refused, to_toml};
use crate::{error::Failure, files};
use veilsum_proto::identity::to_hex;

const FORMAT: &str = "veilsum-roster/1";
/// Bytes of a roster file: 1,000 members of at most 450 bytes, and room for comments.
const MAX_FILE: usize = 1 << 20;
const NEXT: &str = "ask the coordinator for the roster again";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RosterFile {
    format: String,
    name: String,
    signature: String,
    coordinator: MemberPart,
    intermediary: MemberPart,
    #[serde(default)]
    site: Vec<MemberPart>,
}

/// One member as text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemberPart {
    name: String,
    key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    address: String,
}

impl MemberPart {
    pub(super) fn from_member(m: &Member) -> Self {
        MemberPart { name: m.name.clone(), key: m.key.to_string(), address: m.address.clone() }
    }

    pub(super) fn into_member(self, path: &Path) -> Result<Member, Failure> {
        let key = PublicKey(hex(path, &format!("the key of {:?}", self.name), &self.key)?);
        Ok(Member { name: self.name, key, address: self.address })
    }
}

/// Writes a signed roster, whole or not at all.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write_roster(path: impl AsRef<Path>, signed: &SignedRoster) -> Result<(), Failure> {
    let roster = &signed.roster;
    let file = RosterFile {
        format: FORMAT.into(),
        name: roster.name.clone(),
        signature: to_hex(&signed.signature.to_bytes()),
        coordinator: MemberPart::from_member(&roster.coordinator),
        intermediary: MemberPart::from_member(&roster.intermediary),
        site: roster.sites.iter().map(MemberPart::from_member).collect(),
    };
    let comment = "# Who takes part, signed by the coordinator: a change by hand breaks the signature.\n\
                   # Compare the fingerprint that `veilsum roster verify` prints with the other operators.\n";
    Ok(files::write_atomic(path, to_toml(comment, &file)?.as_bytes())?)
}

/// Reads a roster and verifies its contents and the coordinator's signature.
///
/// # Errors
/// A [`Failure`] that names the file and what is wrong with it.
pub fn load_roster(path: impl AsRef<Path>) -> Result<Roster, Failure> {
    load_signed_roster(path).map(|signed| signed.roster)
}

/// A roster with its signature, verified.
///
/// # Errors
/// As [`load_roster`].
pub fn load_signed_roster(path: impl AsRef<Path>) -> Result<SignedRoster, Failure> {
    let path = path.as_ref();
    let signed = unverified(path)?;
    signed.clone().verify().map_err(|e| refused(path, &e, NEXT))?;
    Ok(signed)
}

/// A roster with its signature, which is not checked.
fn unverified(path: &Path) -> Result<SignedRoster, Failure> {
    let file: RosterFile = read_document(path, MAX_FILE, FORMAT, NEXT)?;
    let signature = Signature::from_bytes(&hex(path, "signature", &file.signature)?);
    let roster = Roster {
        name: file.name,
        coordinator: file.coordinator.into_member(path)?,
        intermediary: file.intermediary.into_member(path)?,
        sites: file.site.into_iter().map(|m| m.into_member(path)).collect::<Result<_, _>>()?,
    };
    Ok(SignedRoster { roster, signature })
}
