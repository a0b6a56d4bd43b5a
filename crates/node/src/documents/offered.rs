//! Whether this party agreed to a roster, and to which of its data sets going there: looked up before a socket is opened or a
//! name is resolved ([ROS-8] to [ROS-10]).

use std::path::Path;

use veilsum_proto::{identity::Identity, roster::Roster};

use super::{Changes, Federations, Fingerprint, Standing};
use crate::{error::Failure, files::quoted, release::Data};

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
    /// Lets this roster pass, with these rows, if its owner agreed to it; where they agreed to none of this name yet, if they
    /// give its fingerprint now. What they agreed to is on the disk when this returns.
    ///
    /// # Errors
    /// A [`Failure`] that says what is another than before, and which command accepts it.
    pub fn agree(&self, given: Option<&Fingerprint>, data: Option<&Data>) -> Result<(), Failure> {
        let known = Federations::load(self.key, self.identity)?;
        self.check(&known, data)?;
        if known.standing(self.roster) == Standing::New && given.is_none() {
            return Err(self.unheard());
        }
        given.map_or(Ok(()), |given| self.compare(given))?;
        Federations::change(self.key, self.identity, |federations| {
            // Somebody may have answered in another window meanwhile.
            self.check(federations, data)?;
            if federations.standing(self.roster) == Standing::New {
                given.ok_or_else(|| self.unheard())?;
                federations.agreed.push(self.roster.clone());
            }
            if let Some(data) = data {
                federations.use_with(self.roster, data);
            }
            Ok(())
        })
    }

    /// Whether [`Offered::agree`] would let this roster pass, with these rows, without a fingerprint. Nothing is written.
    ///
    /// # Errors
    /// As there.
    pub fn passes(&self, data: Option<&Data>) -> Result<(), Failure> {
        let known = Federations::load(self.key, self.identity)?;
        self.check(&known, data)?;
        if known.standing(self.roster) == Standing::New { Err(self.unheard()) } else { Ok(()) }
    }

    /// Neither is it another roster than before, nor another federation that these rows would go to.
    fn check(&self, known: &Federations, data: Option<&Data>) -> Result<(), Failure> {
        let (roster, file) = (self.roster, self.file.display());
        if let Standing::Changed { from } = known.standing(roster) {
            let changes = Changes::between(&from, roster);
            return Err(Failure::input(
                format!("{file}: this is not the roster of {} that was agreed to [ROS-9]: {changes}", roster.name),
                format!(
                    "ask the operators by telephone whether they want this, and why; if so, accept it with the fingerprint that \
                     they tell: {}",
                    self.accept("")
                ),
            ));
        }
        let Some(used) = data.and_then(|data| known.elsewhere(&roster.name, data)) else { return Ok(()) };
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
        if given.fits(self.roster) {
            return Ok(());
        }
        let (file, name) = (self.file.display(), &self.roster.name);
        Err(Failure::input(
            format!("{file}: this roster of {name} has another fingerprint than the one that was given [ROS-8]"),
            format!(
                "do not use it: get the roster that the others have, or ask {}, by a number that you know, whether this one is theirs",
                self.roster.coordinator.name
            ),
        ))
    }

    /// Whether this key agreed to no roster of this name yet, so that a fingerprint is needed.
    ///
    /// # Errors
    /// A [`Failure`] where what was agreed to cannot be read.
    pub fn is_new(&self) -> Result<bool, Failure> {
        Ok(Federations::load(self.key, self.identity)?.standing(self.roster) == Standing::New)
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
                "have another member's operator read its fingerprint to you by telephone, then accept it: {}",
                self.accept("")
            ),
        )
    }

    fn accept(&self, more: &str) -> String {
        let (roster, key) = (quoted(self.file), quoted(self.key));
        format!("veilsum roster accept --roster {roster} --key {key} --fingerprint HEX{more}")
    }
}
