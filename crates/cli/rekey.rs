//! `veilsum rekey`: a party makes its next key and states it, with the old one and the new one.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    documents::{Federations, fingerprint, load_identity, load_roster, whoami, write_key, write_rekey},
    error::Failure,
    files::Existing,
    store::next_of,
};
use veilsum_proto::{
    history::Rekey,
    identity::Identity,
    roster::{PartyId, Roster},
};

use crate::{keygen::seed, verb::Verb};

/// Make a party's next key, and state it with the old one
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
}

impl Verb for RekeyArgs {
    /// Makes the key, unless it waits already, and the statements.
    ///
    /// # Errors
    /// A [`Failure`] where the key is on no roster, or is a coordinator's.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let (identity, name) = load_identity(&self.key)?;
        let mut on = Vec::new();
        for roster in rosters(&self.key, &identity, self.roster.as_deref())? {
            let id = whoami(&roster, &identity)?;
            if id == PartyId::Coordinator {
                return Err(Failure::input(
                    format!("this is the key of {}, the coordinator of {} [ROS-12]", roster.name_of(id), roster.name),
                    "a coordinator with a new key founds a new federation: every invitation, roster and plan rests on its key",
                ));
            }
            on.push((roster.name_of(id), roster));
        }
        let waiting = next_of(&self.key);
        if !waiting.exists() {
            let fresh = Identity::from_seed(&*seed()?).with_digests(identity.digest_secret());
            write_key(&waiting, &name, &fresh, Existing::Refuse)?;
        }
        let (next, _) = load_identity(&waiting)?;
        let mut written = Vec::new();
        for (party, roster) in &on {
            let path = self.key.with_extension(format!("{}.rekey", roster.name));
            write_rekey(&path, &Rekey::make(&roster.name, party, &identity, &next))?;
            written.push((roster, path));
        }
        let short = fingerprint(&next.public().0);
        let files: Vec<_> = written
            .iter()
            .map(|(roster, path)| json!({ "federation": roster.name, "file": path.display().to_string() }))
            .collect();
        let value = json!({ "party": name, "public_key": next.public().to_string(), "fingerprint": short,
            "waits_in": waiting.display().to_string(), "statements": files });
        let mut text = format!("the next key of {name} waits in {} (mode 0600): {short}\n", waiting.display());
        for (roster, path) in &written {
            let (coordinator, file) = (&roster.coordinator.name, path.display());
            text +=
                &format!("send {file} to {coordinator}, and call its operator: veilsum roster change --rekey FILE\n");
        }
        text += "nothing has changed yet: start this party as before; with the roster that has the new key it takes that key up";
        crate::verb::print(json, &value, &text)
    }
}

/// The rosters that have this key: the newest of every federation that was agreed to, and the one of the file. All of them at once,
/// because the old key is gone when the first of them has the new one.
fn rosters(key: &Path, identity: &Identity, given: Option<&Path>) -> Result<Vec<Roster>, Failure> {
    let known = Federations::load(key, identity)?;
    let newest = known.agreed.iter().filter(|roster| known.last(&roster.name) == Some(*roster));
    let mut rosters: Vec<Roster> = given.map(load_roster).transpose()?.into_iter().collect();
    for roster in newest.filter(|roster| roster.find(&identity.public()).is_some()) {
        if !rosters.iter().any(|there| there.name == roster.name) {
            rosters.push(roster.clone());
        }
    }
    if rosters.is_empty() {
        let what = format!("{}: this party has agreed to no roster that has its key", key.display());
        return Err(Failure::input(what, "say which roster it is on: --roster roster.toml"));
    }
    Ok(rosters)
}
