//! What the coordinator said to this site in a run, as it signed it: every question and every opening, in order. With
//! it a restarted process replays the method from its first total, and a third party can judge who broke which rule.
//!
//! It holds no secret: a coordinator says the same to every site.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    codec,
    limits::MAX_OPENING,
    message::{Kind, kind_of},
    suite::Hash,
};

use super::log::Log;
use crate::error::Failure;

/// One frame, and the directory of the deck it was used in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Said {
    /// Hash of the directory.
    pub directory: Hash,
    /// The whole frame.
    pub frame: Vec<u8>,
}

/// Largest entry: an opening, or a question, which is smaller.
const MAX_ENTRY: usize = MAX_OPENING + 4096;

/// A transcript on disk.
pub struct Transcript {
    log: Log,
}

impl Transcript {
    /// Opens (or makes) the transcript of `session` in `folder`, and reads it. An entry that was being written when the
    /// process ended is dropped: it was never acted on.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be read or written.
    pub fn open(folder: &Path, session: &Hash) -> Result<(Transcript, Vec<Said>), Failure> {
        let path = folder.join(format!("{}.transcript", &session.to_string()[..16]));
        let mut log = Log::open(path.clone()).map_err(|e| failure(&path, &e))?;
        let (said, good) = entries(log.file());
        log.keep(good).map_err(|e| failure(&path, &e))?;
        Ok((Transcript { log }, said))
    }

    /// What a transcript holds, without a change to it: for an auditor.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be read.
    pub fn look(path: &Path) -> Result<Vec<Said>, Failure> {
        let file = File::open(path).map_err(|e| failure(path, &e))?;
        Ok(entries(&file).0)
    }

    /// Adds a frame. It is on disk after the next [`Transcript::sync`].
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be written; the site then goes no further.
    pub fn add(&mut self, said: &Said) -> Result<(), Failure> {
        let entry = codec::encode(said);
        let bytes = [&(entry.len() as u64).to_le_bytes()[..], &entry].concat();
        self.log.append(&bytes).map_err(|e| failure(self.log.path(), &e))
    }

    /// Whether something may not be on disk yet.
    pub fn is_ahead(&self) -> bool {
        self.log.is_dirty()
    }

    /// Waits until everything so far is on disk.
    ///
    /// # Errors
    /// As [`Transcript::add`].
    pub fn sync(&mut self) -> Result<(), Failure> {
        self.log.sync().map(drop).map_err(|e| failure(self.log.path(), &e))
    }

    /// Everything so far.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be read.
    pub fn all(&self) -> Result<Vec<Said>, Failure> {
        Transcript::look(self.log.path())
    }

    /// Begins anew: the run is over, or another one begins.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be emptied.
    pub fn clear(&mut self) -> Result<(), Failure> {
        self.log.keep(0).map_err(|e| failure(self.log.path(), &e))
    }
}

/// Frames as a transcript has them. An opening stands under the directory of the question before it, where a transcript that a run
/// goes on with has what was known when it came.
pub fn openings_to_bytes(said: &[Said]) -> Vec<u8> {
    let mut directory = Hash::default();
    let entry = |said: &Said| {
        if kind_of(&said.frame) == Some(Kind::Ask) {
            directory = said.directory;
        }
        let entry = codec::encode(&Said { directory, frame: said.frame.clone() });
        [&(entry.len() as u64).to_le_bytes()[..], &entry].concat()
    };
    said.iter().flat_map(entry).collect()
}

/// The frames of bytes that are whole entries and nothing else.
pub fn openings_from_bytes(bytes: &[u8]) -> Option<Vec<Said>> {
    let (said, good) = entries(bytes);
    (good == bytes.len() as u64).then_some(said)
}

/// The whole entries, and how many bytes they take.
fn entries(file: impl Read) -> (Vec<Said>, u64) {
    let mut reader = io::BufReader::new(file);
    let (mut said, mut good, mut length) = (Vec::new(), 0u64, [0u8; 8]);
    while reader.read_exact(&mut length).is_ok() {
        let Some(n) = usize::try_from(u64::from_le_bytes(length)).ok().filter(|n| *n <= MAX_ENTRY) else { break };
        let mut bytes = vec![0; n];
        let whole = reader.read_exact(&mut bytes).is_ok();
        let Some(entry) = whole.then(|| codec::decode("transcript", &bytes, MAX_ENTRY).ok()).flatten() else { break };
        said.push(entry);
        good += 8 + n as u64;
    }
    (said, good)
}

fn failure(path: &Path, e: &io::Error) -> Failure {
    Failure::input(
        format!("what the coordinator said, {}: {e}", path.display()),
        "check free space and permissions of the folder (--state)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    #[test]
    fn what_was_said_comes_back_but_for_a_torn_end() {
        let folder = Folder::new("transcript");
        let session = Hash([7; 32]);
        let said = |n: u8| Said { directory: Hash([n; 32]), frame: vec![n; 100] };
        let (mut transcript, before) = Transcript::open(&folder.0, &session).unwrap();
        assert!(before.is_empty());
        transcript.add(&said(1)).unwrap();
        transcript.add(&said(2)).unwrap();
        assert_eq!(transcript.all().unwrap(), [said(1), said(2)]);
        let path = transcript.log.path().to_owned();
        let whole = std::fs::metadata(&path).unwrap().len();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(whole - 1).unwrap();
        let (mut transcript, before) = Transcript::open(&folder.0, &session).unwrap();
        assert_eq!(before, [said(1)]);
        transcript.add(&said(3)).unwrap();
        assert_eq!(Transcript::open(&folder.0, &session).unwrap().1, [said(1), said(3)]);
        transcript.clear().unwrap();
        assert!(Transcript::open(&folder.0, &session).unwrap().1.is_empty());
    }
}
