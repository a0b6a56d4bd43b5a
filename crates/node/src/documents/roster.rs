//! `roster.toml`: who takes part, signed by the coordinator, and how it came about.

use std::path::Path;

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    history::{Rekey, RosterDocument, SignedChange, rekeyed},
    identity::{Identity, PublicKey, Signature},
    roster::{Member, Roster, SignedRoster},
};

use super::change::ChangePart;
use super::digits;
use super::file::{parse_document, read_text, refused, text_of};
use super::guests::GuestList;
use crate::{error::Failure, files};

const FORMAT: &str = "veilsum-roster/1";
/// Bytes of a roster file: 1,000 members of at most 450 bytes, as many changes and new keys of at most 400 and 700, and room for
/// comments.
const MAX_FILE: usize = 2 << 20;
const NEXT: &str = "ask the coordinator for the roster again";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RosterFile {
    name: String,
    #[serde(with = "digits")]
    signature: Signature,
    coordinator: MemberPart,
    intermediary: MemberPart,
    #[serde(default)]
    site: Vec<MemberPart>,
    /// How it came about, oldest change first; none in a first roster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    change: Vec<ChangePart>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Member", deny_unknown_fields)]
struct MemberText {
    name: String,
    #[serde(with = "digits")]
    key: PublicKey,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    address: String,
}

/// One member, as text.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct MemberPart(#[serde(with = "MemberText")] pub(super) Member);

/// The members of a roster as they stand in a document: coordinator, intermediary, sites.
pub(super) type Parts = (MemberPart, MemberPart, Vec<MemberPart>);

pub(super) fn parts_of(roster: &Roster) -> Parts {
    let part = |member: &Member| MemberPart(member.clone());
    (part(&roster.coordinator), part(&roster.intermediary), roster.sites.iter().map(part).collect())
}

pub(super) fn roster_of(name: String, (MemberPart(coordinator), MemberPart(intermediary), sites): Parts) -> Roster {
    Roster { name, coordinator, intermediary, sites: sites.into_iter().map(|MemberPart(site)| site).collect() }
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
    let SignedRoster { roster, signature } = &document.signed;
    let (coordinator, intermediary, site) = parts_of(roster);
    let change = document.history.iter().map(ChangePart::from).collect();
    let file = RosterFile { name: roster.name.clone(), signature: *signature, coordinator, intermediary, site, change };
    let comment = "# Who takes part, signed by the coordinator: a change by hand breaks the signature.\n\
                   # Compare the fingerprint that `veilsum verify roster.toml` prints with the other operators.\n";
    Ok(files::write_atomic(path, text_of(comment, FORMAT, &file)?.as_bytes())?)
}

/// Reads a roster and verifies its contents, the coordinator's signature and its history.
///
/// # Errors
/// A [`Failure`] that names the file and what is wrong with it.
pub fn load_roster(path: impl AsRef<Path>) -> Result<Roster, Failure> {
    load_roster_document(path).map(|document| document.signed.roster)
}

/// A roster with its signature and its history, verified ([ROS-12]).
///
/// # Errors
/// As [`load_roster`].
pub fn load_roster_document(path: impl AsRef<Path>) -> Result<RosterDocument, Failure> {
    let path = path.as_ref();
    if !path.exists() && path.parent().is_some_and(|folder| GuestList::within(folder).exists()) {
        let why = format!("{} is not there yet: not everybody who was invited has been let in", path.display());
        return Err(Failure::input(why, "see who is missing: veilsum federation show"));
    }
    parse_roster(path, &read_text(path, MAX_FILE)?)
}

/// The same from a text; errors call it `path`.
pub(super) fn parse_roster(path: &Path, text: &str) -> Result<RosterDocument, Failure> {
    let file: RosterFile = parse_document(path, text, FORMAT, NEXT)?;
    let roster = roster_of(file.name, (file.coordinator, file.intermediary, file.site));
    let history = file.change.into_iter().map(SignedChange::from).collect();
    let document = RosterDocument { signed: SignedRoster { roster, signature: file.signature }, history };
    document.verify().map_err(|e| refused(path, &e, NEXT))?;
    Ok(document)
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
