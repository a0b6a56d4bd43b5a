//! `roster.toml`: who takes part, signed by the coordinator.

use std::path::Path;

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    identity::Signature,
    roster::{Member, Roster, SignedRoster},
};

use super::file::{document, read_text, refused, text_of};
use super::guests::GuestList;
use crate::{error::Failure, files};

const FORMAT: &str = "veilsum-roster/1";
/// Bytes of a roster file: 1,000 members of at most 450 bytes, and room for comments.
const MAX_FILE: usize = 1 << 20;
const NEXT: &str = "ask the coordinator for the roster again";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RosterFile {
    name: String,
    signature: Signature,
    coordinator: Member,
    intermediary: Member,
    #[serde(default)]
    site: Vec<Member>,
}

/// Writes a signed roster, whole or not at all.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write_roster(path: impl AsRef<Path>, signed: &SignedRoster) -> Result<(), Failure> {
    let SignedRoster { roster: Roster { name, coordinator, intermediary, sites: site }, signature } = signed.clone();
    let file = RosterFile { name, signature, coordinator, intermediary, site };
    let comment = "# Who takes part, signed by the coordinator: a change by hand breaks the signature.\n\
                   # Compare the fingerprint that `veilsum verify roster.toml` prints with the other operators.\n";
    files::write_atomic(path, text_of(comment, FORMAT, &file)?.as_bytes())
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
    if !path.exists() && path.parent().is_some_and(|folder| GuestList::within(folder).exists()) {
        let why = format!("{} is not there yet: not everybody who was invited has been let in", path.display());
        return Err(Failure::input(why, "see who is missing: veilsum federation show"));
    }
    let RosterFile { name, signature, coordinator, intermediary, site: sites } =
        document(path, &read_text(path, MAX_FILE)?, FORMAT, NEXT)?;
    let signed = SignedRoster { roster: Roster { name, coordinator, intermediary, sites }, signature };
    signed.clone().verify().map_err(|e| refused(path, &e, NEXT))?;
    Ok(signed)
}
