//! `veilsum rekey`: a party makes its next key and states it, with the old one and the new one; or, where its key is lost, takes the
//! one that its recovery file holds.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    documents::{
        Federations, Recovery, fingerprint, load_identity, load_recovery, load_roster, statement_beside, write_key,
        write_rekey,
    },
    error::Failure,
    files::Existing,
    store::{Ledger, next_of},
};
use veilsum_proto::{
    history::Rekey,
    identity::PublicKey,
    roster::{PartyId, Roster},
};

use crate::{
    keygen::{next_identity, recovery_of},
    party::place_of,
    verb::Verb,
};

/// Make a party's next key, and state it with the old one; or bring back a party whose key is lost
///
/// Nothing else changes until a roster with the new key is there and was agreed to: the party then takes it up when it is started.
#[derive(Args, Debug)]
pub(crate) struct RekeyArgs {
    /// This party's secret key file; the next one waits beside it, as FILE.key.next (mode 0600)
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
    /// A roster on which it is, beside those that this party agreed to last
    #[arg(long, value_name = "FILE")]
    pub roster: Option<PathBuf>,
    /// The key is lost: put the one of this recovery file in its place
    ///
    /// Ledger, block and account go on. Every operator has to agree to a roster with such a key.
    #[arg(long, value_name = "FILE.recovery")]
    pub recovery: Option<PathBuf>,
    /// Folder of the ledger of a lost key [default: beside the key]
    #[arg(long, value_name = "DIR", requires = "recovery")]
    pub state: Option<PathBuf>,
}

impl Verb for RekeyArgs {
    /// Makes the key, unless it waits already, and the statements.
    ///
    /// # Errors
    /// A [`Failure`] where the key is on no roster, or is a coordinator's.
    fn run(&self, json: bool) -> Result<(), Failure> {
        match &self.recovery {
            Some(file) => self.recover(&load_recovery(file)?, json),
            None => self.next(json),
        }
    }
}

impl RekeyArgs {
    fn next(&self, json: bool) -> Result<(), Failure> {
        let (identity, name) = load_identity(&self.key)?;
        let on = places(&self.key, &[identity.public()], self.roster.as_deref())?;
        let waiting = next_of(&self.key);
        if !waiting.exists() {
            let fresh = next_identity(&identity)?;
            // Where a process ends in between, a key that is there has its recovery file.
            recovery_of(&waiting, &name, &fresh)?;
            write_key(&waiting, &name, &fresh, Existing::Refuse)?;
        }
        let (next, _) = load_identity(&waiting)?;
        let make = |(roster, id): &(Roster, PartyId)| Rekey::make(&roster.name, &roster.name_of(*id), &identity, &next);
        let text = "nothing has changed yet: start this party as before; with the roster that has the new key it takes that key up";
        self.state_them(&on, on.iter().map(make), (&name, &waiting), text, json)
    }

    /// Everything that the lost key signed is signed by the one that it had named. Where a process ends in between, the same command
    /// goes on; the key comes last.
    fn recover(&self, recovery: &Recovery, json: bool) -> Result<(), Failure> {
        let Recovery { name, old, by_old, new } = recovery;
        if self.key.exists() && load_identity(&self.key)?.0.public() != new.public() {
            return Err(Failure::input(
                format!("{}: the key is there, and another than that of the recovery file", self.key.display()),
                "a key that is there needs no recovery: veilsum rekey --key FILE.key",
            ));
        }
        let place = place_of(&self.key, self.state.as_ref());
        let on = places(&self.key, &[*old, new.public()], self.roster.as_deref())?;
        if on.iter().any(|(_, id)| matches!(id, PartyId::Site(_))) && !place.head.exists() {
            return Err(Failure::input(
                format!(
                    "{}: the ledger of the lost key is not here, and without it nobody knows what its rows have answered [LED-9]",
                    place.head.display()
                ),
                "bring back its folder; if it is lost, too, these rows count as having answered everything: let the party be taken out, \
                 and join anew with other rows. One that has never taken part in a run joins anew, too",
            ));
        }
        let named = |(roster, id): &(Roster, PartyId)| {
            Rekey::recovered(&roster.name, &roster.name_of(*id), (*old, *by_old), new)
        };
        let stated: Vec<Rekey> = on.iter().map(named).collect();
        if let Some(first) = stated.first() {
            Ledger::hand_over(&place.state, &place.head, new, new, first)?;
        }
        Federations::hand_over(&self.key, old, new)?;
        if !self.key.exists() {
            write_key(&self.key, name, new, Existing::Refuse)?;
        }
        let again = recovery_of(&self.key, name, new)?;
        let text = format!(
            "{} is for the next time: move it to a safe place now, and destroy the one that was used, which is a copy of this key.\n\
             Once the coordinator has applied the file below, start this party as before: it fetches the roster, which you agree to with the \
             words that all compare (veilsum roster accept)",
            again.display()
        );
        self.state_them(&on, stated, (name, &self.key), &text, json)
    }

    /// Writes the statements, and says what to do with them.
    fn state_them(
        &self,
        on: &[(Roster, PartyId)],
        stated: impl IntoIterator<Item = Rekey>,
        (name, kept): (&str, &Path),
        next: &str,
        json: bool,
    ) -> Result<(), Failure> {
        let public = load_identity(kept)?.0.public();
        let short = fingerprint(&public.0);
        let mut text = format!("the next key of {name} is in {} (mode 0600): {short}\n", kept.display());
        let mut files = Vec::new();
        for ((roster, _), rekey) in on.iter().zip(stated) {
            let path = statement_beside(&self.key, &roster.name);
            write_rekey(&path, &rekey)?;
            files.push(json!({ "federation": roster.name, "file": path.display().to_string() }));
            let (coordinator, file) = (&roster.coordinator.name, path.display());
            text +=
                &format!("send {file} to {coordinator}, and call its operator: veilsum roster change --rekey FILE\n");
        }
        let value = json!({ "party": name, "public_key": public.to_string(), "fingerprint": short,
            "waits_in": kept.display().to_string(), "statements": files });
        crate::verb::print(json, &value, &(text + next))
    }
}

/// The rosters that have one of these keys, the oldest first, and its place there: the newest of every federation that was agreed to,
/// and the one of the file. All of them at once, because the old key is gone when the first of them has the new one.
fn places(key: &Path, owners: &[PublicKey], given: Option<&Path>) -> Result<Vec<(Roster, PartyId)>, Failure> {
    let last = owners.last().copied().unwrap_or(PublicKey([0; 32]));
    let known = owners.iter().find_map(|owner| Federations::load_of(key, owner).ok());
    let known = known.map_or_else(|| Federations::load_of(key, &last), Ok)?;
    let newest = known.agreed.iter().filter(|roster| known.last(&roster.name) == Some(*roster));
    let mut rosters: Vec<Roster> = given.map(load_roster).transpose()?.into_iter().collect();
    let on = |roster: &Roster| owners.iter().find_map(|owner| roster.find(owner));
    for roster in newest.filter(|roster| on(roster).is_some()) {
        if !rosters.iter().any(|there| there.name == roster.name) {
            rosters.push(roster.clone());
        }
    }
    if rosters.is_empty() {
        let what = format!("{}: this party has agreed to no roster that has its key", key.display());
        return Err(Failure::input(what, "say which roster it is on: --roster roster.toml"));
    }
    let mut places = Vec::new();
    for roster in rosters {
        let Some(id) = on(&roster) else {
            let what = format!("{}: this key is not on the roster of {}", key.display(), roster.name);
            return Err(Failure::input(what, "name the roster that this party is on"));
        };
        if id == PartyId::Coordinator {
            return Err(Failure::input(
                format!("this is the key of {}, the coordinator of {} [ROS-12]", roster.name_of(id), roster.name),
                "a coordinator with a new key founds a new federation: every invitation, roster and plan rests on its key; a copy of its \
                 key file is what brings it back",
            ));
        }
        places.push((roster, id));
    }
    Ok(places)
}
