//! `roster.toml`: who takes part, signed by the coordinator, and how it came about.

use std::path::Path;

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    history::{Rekey, RosterDocument, SignedChange, rekeyed},
    identity::{Identity, PublicKey, Signature},
    roster::{Member, Roster, SignedRoster},
};

use super::change::ChangePart;
use super::file::{hex, parse_document, read_text, refused, to_toml};
use super::guests::GuestList;
use crate::{error::Failure, files};
use veilsum_proto::identity::to_hex;

const FORMAT: &str = "veilsum-roster/1";
/// Bytes of a roster file: 1,000 members of at most 450 bytes, as many changes and new keys of at most 400 and 700, and room for
/// comments.
const MAX_FILE: usize = 2 << 20;
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
    /// How it came about, oldest change first; none in a first roster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    change: Vec<ChangePart>,
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

/// Writes a first roster, which has no history, whole or not at all.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write_roster(path: impl AsRef<Path>, signed: &SignedRoster) -> Result<(), Failure> {
    write_roster_document(path, &signed.clone().into())
}

/// Writes a signed roster with its history, whole or not at all.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write_roster_document(path: impl AsRef<Path>, document: &RosterDocument) -> Result<(), Failure> {
    let roster = &document.signed.roster;
    let file = RosterFile {
        format: FORMAT.into(),
        name: roster.name.clone(),
        signature: to_hex(&document.signed.signature.to_bytes()),
        coordinator: MemberPart::from_member(&roster.coordinator),
        intermediary: MemberPart::from_member(&roster.intermediary),
        site: roster.sites.iter().map(MemberPart::from_member).collect(),
        change: document.history.iter().map(ChangePart::of).collect(),
    };
    let comment = "# Who takes part, signed by the coordinator: a change by hand breaks the signature.\n\
                   # Compare the fingerprint that `veilsum verify roster.toml` prints with the other operators.\n";
    Ok(files::write_atomic(path, to_toml(comment, &file)?.as_bytes())?)
}

/// Reads a roster and verifies its contents, the coordinator's signature and its history.
///
/// # Errors
/// A [`Failure`] that names the file and what is wrong with it.
pub fn load_roster(path: impl AsRef<Path>) -> Result<Roster, Failure> {
    load_roster_document(path).map(|document| document.signed.roster)
}

/// A roster with its signature, verified.
///
/// # Errors
/// As [`load_roster`].
pub fn load_signed_roster(path: impl AsRef<Path>) -> Result<SignedRoster, Failure> {
    load_roster_document(path).map(|document| document.signed)
}

/// A roster with its signature and its history, verified ([ROS-12]).
///
/// # Errors
/// As [`load_roster`].
pub fn load_roster_document(path: impl AsRef<Path>) -> Result<RosterDocument, Failure> {
    let path = path.as_ref();
    let document = unverified(path)?;
    document.verify().map_err(|e| refused(path, &e, NEXT))?;
    Ok(document)
}

/// The same from a text; errors call it `path`.
pub(super) fn parse_roster(path: &Path, text: &str) -> Result<SignedRoster, Failure> {
    let document = unverified_text(path, text)?;
    document.verify().map_err(|e| refused(path, &e, NEXT))?;
    Ok(document.signed)
}

/// Signs `wanted` as what follows the roster at `path`, with the change behind the others, and writes it there; a first roster where
/// there is none. A key of `wanted` that was replaced since it came in is followed to the one that took its place, and `rekeys`
/// are applied behind that, so that whoever lists members needs to know the keys alone with which they came.
///
/// # Errors
/// A [`Failure`] where the roster there cannot be read, or the next one may not be signed.
pub fn sign_next(
    path: impl AsRef<Path>,
    wanted: Roster,
    rekeys: Vec<Rekey>,
    signer: &Identity,
) -> Result<RosterDocument, Failure> {
    let path = path.as_ref();
    let document = if path.exists() {
        let before = load_roster_document(path)?;
        let known: Vec<Rekey> = before.rekeys().cloned().collect();
        let fresh: Vec<Rekey> = rekeys.into_iter().filter(|rekey| !known.contains(rekey)).collect();
        let now = rekeyed(&wanted, known.iter().chain(&fresh));
        let next =
            before.followed_by(now, fresh, signer).map_err(|e| refused(path, &e, "correct it; nothing was signed"))?;
        if next == before {
            return Ok(next);
        }
        next
    } else {
        wanted.sign(signer)?.into()
    };
    write_roster_document(path, &document)?;
    Ok(document)
}

/// A roster with its signature and history, which are not checked.
fn unverified(path: &Path) -> Result<RosterDocument, Failure> {
    if !path.exists() && path.parent().is_some_and(|folder| GuestList::within(folder).exists()) {
        let why = format!("{} is not there yet: not everybody who was invited has been let in", path.display());
        return Err(Failure::input(why, "see who is missing: veilsum federation show"));
    }
    unverified_text(path, &read_text(path, MAX_FILE)?)
}

fn unverified_text(path: &Path, text: &str) -> Result<RosterDocument, Failure> {
    let file: RosterFile = parse_document(path, text, FORMAT, NEXT)?;
    let signature = Signature::from_bytes(&hex(path, "signature", &file.signature)?);
    let roster = Roster {
        name: file.name,
        coordinator: file.coordinator.into_member(path)?,
        intermediary: file.intermediary.into_member(path)?,
        sites: file.site.into_iter().map(|m| m.into_member(path)).collect::<Result<_, _>>()?,
    };
    let history: Vec<SignedChange> = file.change.into_iter().map(|part| part.read(path)).collect::<Result<_, _>>()?;
    Ok(RosterDocument { signed: SignedRoster { roster, signature }, history })
}
