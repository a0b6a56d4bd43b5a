//! Whether this party agreed to a roster, and to which of its data sets going there: looked up before a socket is opened or a
//! name is resolved ([ROS-8] to [ROS-10]).

use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::Path,
};

use clap::Args;
use veilsum_proto::{identity::Identity, roster::Roster};

use super::exit::{Code, Failure};
use crate::{
    documents::{Changes, Federations, Fingerprint, Standing},
    files::quoted,
    store::ledger::Data,
};

/// What the first use of a roster needs.
#[derive(Args, Debug, Clone, Default)]
pub struct FirstUse {
    /// First use of a roster: its fingerprint as another member's operator told it, at least 32 hexadecimal digits, with or
    /// without dashes; for fewer, a false roster with the same ones can be searched for. Remembered beside the key
    /// [default: asked for on a terminal]
    #[arg(long, value_name = "HEX", value_parser = Fingerprint::parse)]
    pub roster_fingerprint: Option<Fingerprint>,
}

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
        let heard = match given {
            None if known.standing(self.roster) == Standing::New => Some(self.ask()?),
            given => given.cloned(),
        };
        heard.as_ref().map_or(Ok(()), |heard| self.compare(heard))?;
        Federations::change(self.key, self.identity, |federations| {
            // Somebody may have answered in another window meanwhile.
            self.check(federations, data)?;
            if federations.standing(self.roster) == Standing::New {
                heard.as_ref().ok_or_else(|| self.unknown())?;
                federations.agreed.push(self.roster.clone());
            }
            if let Some(data) = data {
                federations.use_with(self.roster, data);
            }
            Ok(())
        })
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

    /// Asks for the fingerprint, without showing it: what has to be typed is what somebody else says, not what stands there.
    ///
    /// # Errors
    /// A [`Failure`] where nobody sits at a terminal, or what was typed is no fingerprint.
    pub fn ask(&self) -> Result<Fingerprint, Failure> {
        if io::stdin().is_terminal() && io::stderr().is_terminal() {
            return self.ask_there(&mut io::stdin().lock(), &mut io::stderr());
        }
        Err(self.unknown())
    }

    fn unknown(&self) -> Failure {
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

    fn ask_there(&self, from: &mut impl BufRead, to: &mut impl Write) -> Result<Fingerprint, Failure> {
        let roster = self.roster;
        let question = format!(
            "{} is a federation of {} sites, with {} as coordinator and {} as intermediary, and this party has not agreed to this \
             roster.\nCall another member, by a number that did not come with the roster. They run `veilsum roster verify` and read \
             the fingerprint of their copy to you.\nType its 8 groups: ",
            roster.name,
            roster.sites.len(),
            roster.coordinator.name,
            roster.intermediary.name
        );
        let mut line = String::new();
        let read = to.write_all(question.as_bytes()).and_then(|()| to.flush()).and_then(|()| from.read_line(&mut line));
        read.map_err(|e| Failure::new(Code::Internal, format!("the terminal cannot be read ({e})"), "try again"))?;
        Fingerprint::parse(&line)
            .map_err(|why| Failure::input(why, "type all 8 groups of four as they are read to you"))
    }

    fn accept(&self, more: &str) -> String {
        let (roster, key) = (quoted(self.file), quoted(self.key));
        format!("veilsum roster accept --roster {roster} --key {key} --fingerprint HEX{more}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::{Folder, kit};

    /// [ROS-8]: what is typed is compared, and the question does not give it away.
    #[test]
    fn the_question_on_a_terminal_does_not_show_the_answer() {
        let folder = Folder::new("agree");
        let (roster, ids) = kit(3);
        let (file, key) = (folder.at("roster.toml"), folder.at("a.key"));
        let offered = Offered { file: &file, roster: &roster, key: &key, identity: &ids[2] };
        let mut shown = Vec::new();
        let typed = crate::documents::roster_fingerprint(&roster.hash()) + "\n";
        let answer = offered.ask_there(&mut typed.as_bytes(), &mut shown).unwrap();
        offered.compare(&answer).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("3 sites") && shown.contains("hub") && !shown.contains(&typed[..4]), "{shown}");
        for bad in ["yes\n", "y\n", "\n", "", &typed[..20]] {
            assert!(offered.ask_there(&mut bad.as_bytes(), &mut Vec::new()).is_err(), "{bad:?}");
        }
        let other = "0123-4567-89ab-cdef-0123-4567-89ab-cdef";
        let answer = offered.ask_there(&mut other.as_bytes(), &mut Vec::new()).unwrap();
        assert!(offered.compare(&answer).unwrap_err().message.contains("[ROS-8]"));
    }
}
