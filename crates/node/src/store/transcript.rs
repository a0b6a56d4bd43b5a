//! What was said to a site in a run, as far as it decides what the site may answer next: the coordinator's questions and openings as
//! it signed them, over whom the floor is reached, and what is to be judged. With it a restarted process follows the run from its
//! first question, and a third party can judge who broke which rule.
//!
//! It holds no secret: a coordinator says the same to every site.

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    codec,
    limits::MAX_OPENING,
    message::{Kind, kind_of},
    suite::Hash,
};

use super::Entry;
use crate::question::Batch;

/// One frame, and the directory of the deck it was used in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Said {
    /// Hash of the directory.
    pub directory: Hash,
    /// The whole frame.
    pub frame: Vec<u8>,
}

/// An entry of a transcript.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Told {
    /// The coordinator asked a question, or opened a total.
    Said(Said),
    /// The rows of these sites reach the plan's floor, by the intermediary's word ([APP-2]).
    Counted(Vec<u16>),
    /// The intermediary is to judge these centres ([APP-5]).
    Judged(Batch),
}

impl Entry for Told {
    const ENDING: &str = "transcript";
    const DAMAGED: &str =
        "put the file back as it was; without it this site takes no further part under this plan: agree on a new one";
    // An opening, or a question, which is smaller.
    const MAX_ENTRY: usize = MAX_OPENING + 4096;
    const MAX_FILE: u64 = 16 << 30;
    // The site's secrets say which question was answered last, and it must be among what is left.
    const MAY_LOSE_ITS_END: bool = true;
}

/// Frames as a file of openings has them. An opening stands under the directory of the question before it, where a transcript that a
/// run goes on with has what was known when it came.
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
pub fn openings_from_bytes(mut bytes: &[u8]) -> Option<Vec<Said>> {
    let mut said = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok().filter(|length| *length <= Told::MAX_ENTRY)?;
        let (entry, rest) = rest.split_at_checked(length)?;
        said.push(codec::decode("transcript", entry, Told::MAX_ENTRY).ok()?);
        bytes = rest;
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_are_read_whole_or_not_at_all() {
        let said: Vec<Said> = (1..4).map(|n| Said { directory: Hash::default(), frame: vec![n; 100] }).collect();
        let bytes = openings_to_bytes(&said);
        assert_eq!(openings_from_bytes(&bytes), Some(said));
        assert!(openings_from_bytes(&[]).is_some_and(|none| none.is_empty()));
        let whole = |length: &usize| openings_from_bytes(&bytes[..*length]).is_some();
        assert!((1..bytes.len()).filter(whole).eq([bytes.len() / 3, 2 * bytes.len() / 3]));
    }
}
