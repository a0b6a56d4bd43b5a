//! `PARTY.joining`: what a party that joins has drawn and was answered, so that a second attempt says the same ([JOI-5]).

use std::path::Path;

use serde::{Deserialize, Serialize};
use veilsum_proto::{joining::Nonce, suite::Hash};

use super::file::{read_document, text_of};
use crate::{
    error::Failure,
    files::{self, Existing},
};

const FORMAT: &str = "veilsum-joining/1";
/// Bytes of the file: a few short lines.
const MAX_FILE: usize = 4 << 10;
const NEXT: &str = "move it away and ask the coordinator for a new invitation: this one cannot be used without it";

/// One attempt to join. It has no `Debug`: until it is shown, its number is a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begun {
    /// The hash of the token.
    pub invitation: Hash,
    /// What this party drew.
    pub nonce: Nonce,
    /// What the coordinator answered, once it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Nonce>,
}

impl Begun {
    /// The attempt with this invitation that was begun before; else one that begins with `fresh`, on the disk when this returns.
    ///
    /// # Errors
    /// A [`Failure`] where the file cannot be read or written.
    pub fn take_up(path: &Path, invitation: Hash, fresh: Nonce) -> Result<Begun, Failure> {
        if path.exists() {
            files::check_private(path)?;
            let found: Begun = read_document(path, MAX_FILE, FORMAT, NEXT)?;
            if found.invitation == invitation {
                return Ok(found);
            }
        }
        let begun = Begun { invitation, nonce: fresh, answer: None };
        begun.write(path)?;
        Ok(begun)
    }

    /// Keeps the coordinator's answer, before anything is shown to it. Another answer than before is none ([JOI-5]).
    ///
    /// # Errors
    /// A [`Failure`] where it is another, or cannot be written.
    pub fn answered(&mut self, path: &Path, answer: Nonce) -> Result<(), Failure> {
        match self.answer {
            Some(before) if before == answer => Ok(()),
            Some(_) => Err(Failure::new(
                crate::error::Code::Peer,
                "the coordinator answers the same invitation with another number than before [JOI-5]",
                "ask its operator by telephone for a new invitation; somebody may stand between you",
            )),
            None => {
                self.answer = Some(answer);
                self.write(path)
            }
        }
    }

    fn write(&self, path: &Path) -> Result<(), Failure> {
        let comment = "# An invitation that is being taken up; of no use once the roster is here.\n";
        Ok(files::write_private(path, text_of(comment, FORMAT, self)?.as_bytes(), Existing::Replace)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [JOI-5]: neither this party's number nor the other's changes with a second attempt.
    #[test]
    fn an_attempt_that_is_taken_up_says_the_same_and_hears_the_same() {
        let folder = std::env::temp_dir().join(format!("veilsum-begun-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.joining");
        let mut begun = Begun::take_up(&path, Hash([1; 32]), Nonce([2; 32])).unwrap();
        begun.answered(&path, Nonce([3; 32])).unwrap();
        let mut again = Begun::take_up(&path, Hash([1; 32]), Nonce([9; 32])).unwrap();
        assert_eq!((again.nonce, again.answer), (Nonce([2; 32]), Some(Nonce([3; 32]))));
        again.answered(&path, Nonce([3; 32])).unwrap();
        assert!(again.answered(&path, Nonce([4; 32])).unwrap_err().message.contains("[JOI-5]"));
        let other = Begun::take_up(&path, Hash([5; 32]), Nonce([9; 32])).unwrap();
        assert_eq!((other.nonce, other.answer), (Nonce([9; 32]), None));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
