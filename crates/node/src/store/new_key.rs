//! A party takes up its new key, once it has agreed to a roster that has it ([LED-9]).
//!
//! The old key is needed until everything that it signed is signed by the new one. So the new key waits beside it, and takes its
//! place in the last step: ledger, head, rounds and questions (in [`Ledger::hand_over`]), what was agreed to, the key itself. Wherever
//! a process ends in between, the same command begins again and finds done what is done.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use veilsum_proto::{
    history::Rekey,
    identity::Identity,
    roster::{PartyId, Roster},
};

use super::Ledger;
use crate::{
    documents::{Changes, Federations, Offered, fingerprint, load_identity, whoami},
    error::{Code, Failure},
    files,
};

/// Where a party keeps what is its own.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its key.
    pub key: PathBuf,
    /// The folder of its ledger.
    pub state: PathBuf,
    /// The head of its ledger.
    pub head: PathBuf,
}

/// Where the next key of a party waits: beside the one that it has.
pub fn next_of(key: &Path) -> PathBuf {
    key.with_added_extension("next")
}

/// The identity with which the party at `place` acts under the roster of `file`, and its name. Where that is the key that waits
/// beside its own, and this party agrees to the roster, everything that the old one signed is handed over first. Tells what was
/// taken without being asked for.
///
/// # Errors
/// A [`Failure`] where the roster has neither key, or has the next one and was not agreed to, or something cannot be written.
pub fn identity_for(place: &Place, file: &Path, roster: &Roster) -> Result<(Identity, String, Changes), Failure> {
    let (old, name) = load_identity(&place.key)?;
    let waiting = next_of(&place.key);
    let none = Changes(Vec::new());
    if roster.find(&old.public()).is_some() {
        return Ok((old, name, none));
    }
    let next = if waiting.exists() { Some(load_identity(&waiting)?.0) } else { None };
    unknown_key(file, roster, &old, next.as_ref())?;
    let Some(new) = next else { return Ok((old, name, none)) };
    let id = match whoami(roster, &new) {
        Ok(PartyId::Coordinator) | Err(_) => return Ok((old, name, none)),
        Ok(id) => id,
    };
    // Where it was signed by the new key already, it was agreed to before.
    let mut told = none;
    if Federations::load(&place.key, &new).is_err() || !Federations::beside(&place.key).exists() {
        told = Offered { file, roster, key: &place.key, identity: &old }.agree(None, None)?;
    }
    let rekey = Rekey::make(&roster.name, &roster.name_of(id), &old, &new);
    let old = Arc::new(old);
    Ledger::hand_over(&place.state, &place.head, &old, &new, &rekey)?;
    Federations::hand_over(&place.key, &rekey.old, &new)?;
    let moved = fs::rename(&waiting, &place.key).and_then(|()| match place.key.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => files::sync_folder(folder),
        _ => Ok(()),
    });
    moved.map_err(|e| {
        let what = format!("{} cannot take the place of {} ({e})", waiting.display(), place.key.display());
        Failure::new(Code::Input, what, "check free space and permissions of its folder, and start again")
    })?;
    told.0.push(format!("this party acts with its new key from now on, and {} holds it", place.key.display()));
    Ok((new, name, told))
}

/// Whoever has the old key can state a new one; the party itself is the first to see that it did not.
fn unknown_key(file: &Path, roster: &Roster, old: &Identity, next: Option<&Identity>) -> Result<(), Failure> {
    let history = Offered { file, roster, key: file, identity: old }.history()?;
    let mut stated = history.iter().flat_map(|signed| &signed.change.rekeys).filter(|rekey| rekey.old == old.public());
    let Some(other) = stated.find(|rekey| next.is_none_or(|next| next.public() != rekey.new)) else { return Ok(()) };
    Err(Failure::input(
        format!(
            "{}: {} has another key there, {}, which this party's own key has signed [ROS-11], and which does not wait here",
            file.display(),
            other.party,
            fingerprint(&other.new.0)
        ),
        format!(
            "find that key, if you made it elsewhere with `veilsum rekey`; if nobody here did, somebody has stolen this one: call {} and the \
             other members, let the party be taken out, and join anew",
            roster.coordinator.name
        ),
    ))
}

/// Lets the ledger at `place` follow the new keys of other sites of its block, by the roster that was agreed to.
///
/// # Errors
/// A [`Failure`] where its ledger cannot be used.
pub fn follow(place: &Place, file: &Path, roster: &Roster, identity: &Arc<Identity>) -> Result<(), Failure> {
    let history = Offered { file, roster, key: &place.key, identity }.history()?;
    let rekeys = history.iter().flat_map(|signed| &signed.change.rekeys).filter(|rekey| rekey.new != identity.public());
    Ok(Ledger::follow(&place.state, &place.head, identity, rekeys)?)
}

#[cfg(test)]
mod tests;
