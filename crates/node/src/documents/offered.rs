//! Whether this party agreed to a roster, and to which of its data sets going there: looked up before a socket is opened or a
//! name is resolved ([ROS-8] to [ROS-10], [ROS-13]).

use std::path::Path;

use serde::Serialize;
use veilsum_proto::{
    Rule,
    history::SignedChange,
    identity::Identity,
    roster::{PartyId, Roster},
};

use super::change::ChangePart;
use super::file::to_toml;
use super::roster::load_roster_document;
use super::{Changes, Federations, Fingerprint, Never, Standing, whoami};
use crate::{
    error::{Code, Failure},
    files::{self, quoted},
    release::Data,
};

/// A roster as somebody is about to use it.
pub struct Offered<'a> {
    /// Its file.
    pub file: &'a Path,
    /// Verified.
    pub roster: &'a Roster,
    /// The key file of the party that is to agree.
    pub key: &'a Path,
    /// Its identity.
    pub identity: &'a Identity,
}

impl Offered<'_> {
    /// Which party of the roster this key is.
    ///
    /// # Errors
    /// A [`Failure`] where it is none of them. If its owner agreed to another roster of this name, it says so first ([ROS-9]).
    pub fn whoami(&self) -> Result<PartyId, Failure> {
        whoami(self.roster, self.identity).map_err(|none| {
            let Ok(known) = Federations::load(self.key, self.identity) else { return none };
            let Some(last) = known.last(&self.roster.name).filter(|last| *last != self.roster) else { return none };
            Failure::input(
                format!(
                    "{}: this is not the roster of {} that was agreed to, and this key is not on it [ROS-9]: {}",
                    self.file.display(),
                    self.roster.name,
                    Changes::between(last, self.roster)
                ),
                "do not use it: ask the other members' operators by telephone, on numbers that you know, which roster is theirs, and why this \
                 party is not on this one",
            )
        })
    }

    /// Lets this roster pass, with these rows, if its owner agreed to it; where they agreed to none of this name yet, if they
    /// give its fingerprint now; and where only keys are others, and the keys before them say so, without anything more. What they
    /// agreed to is on the disk when this returns. Tells what was taken without being asked for.
    ///
    /// # Errors
    /// A [`Failure`] that says what is another than before, and which command accepts it.
    pub fn agree(&self, given: Option<&Fingerprint>, data: Option<&Data>) -> Result<Changes, Failure> {
        let history = self.history()?;
        let known = Federations::load(self.key, self.identity)?;
        if self.check(&known, &history, data)? == Standing::New && given.is_none() {
            return Err(self.unheard());
        }
        given.map_or(Ok(()), |given| self.compare(given))?;
        let mut told = Changes(Vec::new());
        Federations::change(self.key, self.identity, |federations| {
            // Somebody may have answered in another window meanwhile.
            match self.check(federations, &history, data)? {
                Standing::New => drop(given.ok_or_else(|| self.unheard())?),
                Standing::Rekeyed { from } => told = Changes::along(&from, self.roster, &history),
                Standing::Agreed | Standing::Changed { .. } => {}
            }
            federations.take(self.roster, &history);
            if let Some(data) = data {
                federations.use_with(self.roster, data);
            }
            Ok(())
        })?;
        Ok(told)
    }

    /// Remembers the changes that lead to this roster, which is not agreed to thereby. A fork is kept as evidence, and is not
    /// remembered.
    ///
    /// # Errors
    /// As [`Offered::standing`].
    pub fn see(&self) -> Result<(), Failure> {
        let history = self.history()?;
        Federations::change(self.key, self.identity, |federations| {
            self.standing(federations, &history)?;
            federations.see(&history);
            Ok(())
        })
    }

    /// The changes that lead to this roster, as its file has them; none where there is no such file.
    ///
    /// # Errors
    /// A [`Failure`] where the file has another roster by now, or one that does not hold.
    pub fn history(&self) -> Result<Vec<SignedChange>, Failure> {
        if !self.file.exists() {
            return Ok(Vec::new());
        }
        let document = load_roster_document(self.file)?;
        if document.signed.roster == *self.roster {
            return Ok(document.history);
        }
        let what = format!("{}: it was replaced a moment ago", self.file.display());
        Err(Failure::input(what, "start again"))
    }

    /// How it stands to what was agreed to before ([ROS-9], [ROS-13]).
    ///
    /// # Errors
    /// A [`Failure`] where nobody can agree to it. Two changes that contradict each other are kept beside the key.
    pub fn standing(&self, known: &Federations, history: &[SignedChange]) -> Result<Standing, Failure> {
        let (file, roster) = (self.file.display(), self.roster);
        let coordinator = &roster.coordinator.name;
        let refused = |what: String, next: String| Failure::new(Code::Peer, format!("{file}: {what} [ROS-13]"), next);
        known.judge(roster, history).map_err(|never| match never {
            Never::Fork(both) => {
                let number = both[0].change.number;
                let [one, two] = both.each_ref().map(|signed| signed.change.roster.to_string());
                let kept = match self.keep(&both) {
                    Ok(path) => format!("both stand in {}", path.display()),
                    Err(failure) => failure.to_string(),
                };
                refused(
                    format!(
                        "{coordinator} signed two rosters of {} behind one and the same, as change {number}: {one} and {two}; it tells \
                         different members different histories ({kept})",
                        roster.name
                    ),
                    format!(
                        "do not use it: show both to the other members' operators, on numbers that you know; if it is an accident, \
                         {coordinator} has to hand out the history that you have"
                    ),
                )
            }
            Never::Coordinator => {
                let changes = known.last(&roster.name).map(|last| Changes::between(last, roster).to_string());
                Failure::input(
                    format!(
                        "{file}: this is not the roster of {} that was agreed to [ROS-9]: {}; a coordinator's key is never another \
                         [ROS-13]",
                        roster.name,
                        changes.unwrap_or_default()
                    ),
                    format!(
                        "do not use it: ask {coordinator}, on a number that you know; a coordinator with a new key founds a federation \
                         of another name"
                    ),
                )
            }
            Never::Replaced(name) => refused(
                format!("{name} has a key that it replaced by another one"),
                format!("ask {name} and {coordinator}, on numbers that you know, which roster is the newest"),
            ),
        })
    }

    /// Whether [`Offered::agree`] would let this roster pass, with these rows, without a fingerprint. Nothing is written.
    ///
    /// # Errors
    /// As there.
    pub fn passes(&self, data: Option<&Data>) -> Result<(), Failure> {
        let known = Federations::load(self.key, self.identity)?;
        let standing = self.check(&known, &self.history()?, data)?;
        if standing == Standing::New { Err(self.unheard()) } else { Ok(()) }
    }

    /// Writes two changes that contradict each other beside the key: the coordinator's signatures convict it.
    fn keep(&self, both: &[SignedChange; 2]) -> Result<std::path::PathBuf, Failure> {
        #[derive(Serialize)]
        struct Fork {
            federation: String,
            coordinator: String,
            change: Vec<ChangePart>,
        }
        let fork = Fork {
            federation: self.roster.name.clone(),
            coordinator: self.roster.coordinator.key.to_string(),
            change: both.iter().map(ChangePart::from).collect(),
        };
        let path = self.key.with_added_extension(format!("fork-{}.toml", both[0].change.number));
        let comment = "# Two changes of one roster, both signed by the coordinator whose key this is [ROS-12].\n";
        files::write_atomic(&path, to_toml(comment, &fork)?.as_bytes())?;
        Ok(path)
    }

    /// Neither is it another roster than before, nor another federation that these rows would go to.
    fn check(&self, known: &Federations, history: &[SignedChange], data: Option<&Data>) -> Result<Standing, Failure> {
        let (roster, file) = (self.roster, self.file.display());
        let standing = self.standing(known, history)?;
        if let Standing::Changed { from } = &standing {
            let changes = Changes::along(from, roster, history);
            let meaning = Changes::meaning(from, roster, history).join("\n  ");
            return Err(Failure::input(
                format!(
                    "{file}: this is not the roster of {} that was agreed to [ROS-9]: {changes}\n  {meaning}",
                    roster.name
                )
                .trim_end(),
                format!(
                    "ask the operators by telephone whether they want this, and why; if so, accept it with the words that all of \
                     them compare: {}",
                    self.accept("")
                ),
            )
            .under(Rule::Ros9));
        }
        let Some(used) = data.and_then(|data| known.elsewhere(&roster.name, data)) else { return Ok(standing) };
        let more = format!(" --data-set {}", quoted(Path::new(&used.data.name)));
        Err(Failure::input(
            format!(
                "the data set {:?} was used with the federation {}, and {file} is the roster of {} [ROS-10]: who sees totals of \
                 both learns more than either shows",
                used.data.name, used.federation, roster.name
            ),
            format!(
                "if both may have totals of these rows, say so: {} (the ledger goes on counting them as one data set)",
                self.accept(&more)
            ),
        ))
    }

    /// The fingerprint that somebody heard on the telephone is this roster's.
    ///
    /// # Errors
    /// A [`Failure`] where it is not.
    pub fn compare(&self, given: &Fingerprint) -> Result<(), Failure> {
        if given.is_of(&self.roster.hash()) {
            return Ok(());
        }
        let (file, name) = (self.file.display(), &self.roster.name);
        Err(Failure::input(
            format!("{file}: this roster of {name} has other words than those that were given [ROS-8]"),
            format!(
                "do not use it: get the roster that the others have, or ask {}, by a number that you know, whether this one is theirs",
                self.roster.coordinator.name
            ),
        )
        .under(Rule::Ros8))
    }

    /// Whether this key agreed to no roster of this name yet, so that a fingerprint is needed.
    ///
    /// # Errors
    /// A [`Failure`] where what was agreed to cannot be read.
    pub fn is_new(&self) -> Result<bool, Failure> {
        Ok(Federations::load(self.key, self.identity)?.last(&self.roster.name).is_none())
    }

    /// Nobody has compared this roster with another member's copy.
    pub fn unheard(&self) -> Failure {
        Failure::input(
            format!(
                "{}: nobody has compared this roster of {} with another member's, for this key [ROS-8]",
                self.file.display(),
                self.roster.name
            ),
            format!(
                "in a call with all operators, let the coordinator's read the words of the roster, then accept it: {}",
                self.accept("")
            ),
        )
        .under(Rule::Ros8)
    }

    fn accept(&self, more: &str) -> String {
        let (roster, key) = (quoted(self.file), quoted(self.key));
        format!("veilsum roster accept --roster {roster} --key {key} --fingerprint 'WORDS'{more}")
    }
}

#[cfg(test)]
mod tests;
