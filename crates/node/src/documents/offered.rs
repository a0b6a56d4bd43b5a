//! Whether this party agreed to a roster: looked up before a socket is opened or a name is resolved ([ROS-8], [ROS-9]).

use std::path::Path;

use veilsum_proto::{
    Rule,
    identity::Identity,
    roster::{PartyId, Roster},
};

use super::{Changes, Fingerprint, Pinned, Standing, whoami};
use crate::{error::Failure, files::quoted};

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
    /// A [`Failure`] where it is none of them. If its owner agreed to another roster, it says so first ([ROS-9]).
    pub fn whoami(&self) -> Result<PartyId, Failure> {
        whoami(self.roster, self.identity).map_err(|none| {
            let Some(last) = Pinned::load(self.key).ok().and_then(|pinned| pinned.roster) else { return none };
            if last == *self.roster {
                return none;
            }
            let (file, name, between) = (self.file.display(), &last.name, Changes::between(&last, self.roster));
            let what = format!(
                "{file}: this is not the roster of {name} that was agreed to, and this key is not on it [ROS-9]: {between}"
            );
            let next = "do not use it: ask the other members' operators by telephone, on numbers that you know, which roster is theirs, and why \
                        this party is not on this one";
            Failure::input(what, next)
        })
    }

    /// How it stands to what was agreed to before ([ROS-9]).
    ///
    /// # Errors
    /// A [`Failure`] where nobody can agree to it in this folder: it is another coordinator's.
    pub fn standing(&self) -> Result<Standing, Failure> {
        let (roster, file) = (self.roster, self.file.display());
        let Some(last) = Pinned::load(self.key)?.roster else { return Ok(Standing::New) };
        if last == *roster {
            return Ok(Standing::Agreed);
        }
        if (&last.name, last.coordinator.key) == (&roster.name, roster.coordinator.key) {
            return Ok(Standing::Changed(Box::new(last)));
        }
        let changes = Changes::between(&last, roster);
        let what = format!(
            "{file}: this is the roster of {}, and this folder is of {} [ROS-9]: {changes}; neither a federation's name nor its coordinator's key \
             is ever another",
            roster.name, last.name
        );
        let next = format!(
            "do not use it: ask {}, on a number that you know; each federation has a folder of its own, and one with another coordinator's key is \
             another federation",
            last.coordinator.name
        );
        Err(Failure::input(what, next).under(Rule::Ros9))
    }

    /// Keeps this roster, with the words that were heard ([ROS-8]).
    ///
    /// # Errors
    /// A [`Failure`] where they are another's, nobody can agree to it, or it cannot be written.
    pub fn agree(&self, heard: &Fingerprint) -> Result<(), Failure> {
        self.standing()?;
        if !heard.is_of(&self.roster.hash()) {
            let (file, name) = (self.file.display(), &self.roster.name);
            let what = format!("{file}: this roster of {name} has other words than those that were given [ROS-8]");
            let next = format!(
                "do not use it: get the roster that the others have, or ask {}, by a number that you know, whether this one is theirs",
                self.roster.coordinator.name
            );
            return Err(Failure::input(what, next).under(Rule::Ros8));
        }
        Pinned::change(self.key, |pinned| pinned.roster = Some(self.roster.clone()))
    }

    /// Whether its owner agreed to this very roster. Nothing is written.
    ///
    /// # Errors
    /// A [`Failure`] that says what is another than before, and which command agrees to it.
    pub fn passes(&self) -> Result<(), Failure> {
        let (roster, file) = (self.roster, self.file.display());
        match self.standing()? {
            Standing::Agreed => Ok(()),
            Standing::New => Err(self.unheard()),
            Standing::Changed(from) => {
                let (changes, meaning) =
                    (Changes::between(&from, roster), Changes::meaning(&from, roster).join("\n  "));
                let what = format!(
                    "{file}: this is not the roster of {} that was agreed to [ROS-9]: {changes}\n  {meaning}",
                    roster.name
                );
                let next = format!(
                    "ask the operators by telephone whether they want this, and why; if so, agree to it with the words that all of them \
                     compare: {}",
                    self.command()
                );
                Err(Failure::input(what.trim_end(), next).under(Rule::Ros9))
            }
        }
    }

    /// Nobody has compared this roster with another member's copy.
    pub fn unheard(&self) -> Failure {
        let (file, name, command) = (self.file.display(), &self.roster.name, self.command());
        let what =
            format!("{file}: nobody has compared this roster of {name} with another member's, for this key [ROS-8]");
        let next = format!(
            "in a call with all operators, let the coordinator's read the words of the roster, then agree to it: {command}"
        );
        Failure::input(what, next).under(Rule::Ros8)
    }

    fn command(&self) -> String {
        format!("veilsum agree {} --key {} --fingerprint 'WORDS'", quoted(self.file), quoted(self.key))
    }
}
