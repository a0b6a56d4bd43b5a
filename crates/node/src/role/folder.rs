//! What the folder of a federation says: whom the coordinator let in, which roster and plan are in force, and which run is not over.

use std::path::{Path, PathBuf};

use veilsum_proto::{identity::PublicKey, plan::SignedTerms, roster::SignedRoster, suite::Hash};

use crate::{
    documents::{self, Guest, GuestList, Run, Stage},
    error::Failure,
};

/// What the folder says now.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) list: Option<GuestList>,
    pub(super) roster: Option<SignedRoster>,
    pub(super) plan: Option<SignedTerms>,
    /// The text of `columns.toml`, where the federation has one.
    pub(super) columns: Option<String>,
    pub(super) unusable: Option<String>,
    /// Whether the parties of the run that is not over can greet.
    pub(super) running: bool,
}

impl State {
    /// Roster and plan of the run that is not over, from its own folder, or else those that are agreed to or proposed.
    pub(super) fn read(folder: &Path) -> Result<State, Failure> {
        let list = GuestList::load(folder)?;
        let mut state = State::default();
        match documents::columns_text(folder) {
            Ok(text) => state.columns = text,
            Err(failure) => state.unusable = Some(failure.message),
        }
        if let Err(failure) = state.read_documents(folder, &list) {
            state.unusable = Some(failure.message);
        }
        state.list = Some(list);
        Ok(state)
    }

    /// As far as they can be used.
    fn read_documents(&mut self, folder: &Path, list: &GuestList) -> Result<(), Failure> {
        let run = list.run.as_ref().filter(|run| run.ended.is_none());
        let roster = run.map_or_else(|| folder.to_owned(), |run| folder_of(folder, run)).join("roster.toml");
        let plan = roster.with_file_name("plan.toml");
        if run.is_none() && !roster.exists() {
            return Ok(());
        }
        let signed_roster = documents::load_signed_roster(&roster)?;
        if let Some(run) = run {
            let (_, signed) = documents::load_signed(&roster, &plan)?;
            if signed.terms.hash() != run.plan {
                let kept = folder_of(folder, run);
                let what = format!("{}: this is not the plan of run {}", kept.display(), run.number);
                return Err(Failure::input(what, "put it back, or end the run: veilsum plan stop"));
            }
            self.plan = Some(signed);
        }
        // While somebody is invited, the last roster is in force.
        let agreed = list.roster().filter(|_| run.is_none());
        if agreed.is_some_and(|agreed| signed_roster.roster != agreed) {
            return Err(Failure::input("roster.toml is not the roster of those who were let in", "approve it anew"));
        }
        self.roster = Some(signed_roster);
        if run.is_none() && plan.exists() {
            self.plan = Some(documents::load_signed(&roster, &plan)?.1);
        }
        Ok(())
    }

    /// The hashes of what there is to have.
    pub(super) fn documents(&self) -> Option<[Hash; 2]> {
        Some([self.roster.as_ref()?.roster.hash(), self.plan.as_ref()?.terms.hash()])
    }

    /// Whether this key has a place in the roster that is handed out. A party that is let in during a run waits for the end of it.
    pub(super) fn lists(&self, key: &PublicKey) -> bool {
        self.roster.as_ref().is_some_and(|signed| signed.roster.find(key).is_some())
    }

    /// The member with this key ([PRO-1]).
    pub(super) fn member(&self, key: &PublicKey) -> Option<&Guest> {
        self.guest(|guest| {
            guest.stage == Stage::Approved && guest.knocked.as_ref().is_some_and(|knocked| knocked.key == *key)
        })
    }

    /// The run that is not over.
    pub(super) fn run(&self) -> Option<&Run> {
        self.list.as_ref()?.run.as_ref().filter(|run| run.ended.is_none())
    }

    pub(super) fn guest(&self, is: impl Fn(&&Guest) -> bool) -> Option<&Guest> {
        self.list.as_ref()?.guests.iter().find(is)
    }
}

/// Where a run's roster, plan and result lie.
pub fn folder_of(folder: &Path, run: &Run) -> PathBuf {
    folder.join("results").join(run_name(run.number, &run.plan))
}

/// The name of a run's folder, the same at every party: `007-0123abcd`.
pub fn run_name(number: u64, plan: &Hash) -> String {
    format!("{number:03}-{}", &plan.to_string()[..8])
}
