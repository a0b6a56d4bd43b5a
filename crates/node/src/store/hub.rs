//! The journal of an aggregator: the entries of its machine and, at the intermediary, what it counts for: of which of the
//! coordinator's runs it is, what it was asked to judge, which is asked once a run, what the sites handed over to judge by, which they
//! send once, and whether the count has left.

use std::path::Path;

use serde::{Deserialize, Serialize};
use veilsum_proto::{aggregator::Record, suite::Hash};

use super::{Entry, Journal};
use crate::{
    app_messages::{CentreDistances, JudgeRequest},
    error::Failure,
};

/// An entry of an aggregator's journal.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum HubEntry {
    /// Of its machine.
    Machine(Record),
    /// What is counted for from now on.
    Counting(Counting),
}

/// The largest is the opening of a total of 8 MiB; a run has some hundreds of totals.
impl Entry for HubEntry {
    const ENDING: &str = "journal";
    const DAMAGED: &str = "move the file away and begin the run anew; never put an older copy in its place";
    const MAX_ENTRY: usize = 64 << 20;
    const MAX_FILE: u64 = 16 << 30;
}

/// What an intermediary counts for.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Counting {
    /// The coordinator's run, by its name.
    pub run: Hash,
    /// What the coordinator asked to have judged, from before the sites are asked for it.
    pub judged: Option<JudgeRequest>,
    /// What was handed over to judge by.
    pub distances: Option<CentreDistances>,
    /// Whether the count has left, after which nothing is taken to be judged.
    pub handed: bool,
}

/// An aggregator's journal, or none if a crash may end its run, and what it says.
pub(crate) struct HubJournal {
    journal: Option<Journal<HubEntry>>,
    /// What is counted for.
    pub(crate) counting: Counting,
}

impl HubJournal {
    /// Opens the journal of `session` in the state folder, and gives the entries of the machine.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub(crate) fn open(state: Option<&Path>, session: &Hash) -> Result<(HubJournal, Vec<Record>), Failure> {
        let mut hub = HubJournal { journal: None, counting: Counting::default() };
        let Some(folder) = state else { return Ok((hub, Vec::new())) };
        let (journal, entries) = Journal::open(folder, session)?;
        hub.journal = Some(journal);
        let mut records = Vec::new();
        for entry in entries {
            match entry {
                HubEntry::Machine(record) => records.push(record),
                HubEntry::Counting(counting) => hub.counting = counting,
            }
        }
        Ok((hub, records))
    }

    /// Writes an entry of the machine, which is on disk after the next [`HubJournal::sync`].
    pub(crate) fn write(&mut self, record: Record) -> Result<(), Failure> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.write(&HubEntry::Machine(record)))
    }

    /// Waits until every entry is on disk.
    pub(crate) fn sync(&mut self) -> Result<(), Failure> {
        self.journal.as_mut().map_or(Ok(()), Journal::sync)
    }

    /// An entry may be lost: nothing more is written.
    pub(crate) fn give_up(&mut self) {
        self.journal = None;
    }

    /// Another run begins, or none.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        self.counting = Counting::default();
        self.journal.as_mut().map_or(Ok(()), |journal| journal.rewrite(&[]))
    }

    /// Changes what is counted for, here and on disk.
    pub(crate) fn count(&mut self, change: impl FnOnce(&mut Counting)) -> Result<(), Failure> {
        change(&mut self.counting);
        let entry = HubEntry::Counting(self.counting.clone());
        self.journal.as_mut().map_or(Ok(()), |journal| journal.append(&entry))
    }

    /// [APP-5]: whether this is the question that is judged in this run: the first that is asked, which is on disk before a site is
    /// asked for it. None is taken once the count has left, which would show the rows of the sites that a verdict leaves out.
    pub(crate) fn takes_to_judge(&mut self, request: &JudgeRequest) -> Result<bool, Failure> {
        if let Some(before) = &self.counting.judged {
            return Ok(before == request);
        }
        if self.counting.handed {
            return Ok(false);
        }
        self.count(|counting| counting.judged = Some(request.clone()))?;
        tracing::info!("the coordinator asks to have its result judged");
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    /// [APP-5]: the question that is judged is one a run, also for a process that was started again, and another run has another.
    #[test]
    fn after_a_restart_no_other_question_is_judged_in_the_same_run() {
        let folder = Folder::new("judged");
        let request = |digest| JudgeRequest { digest: Hash([digest; 32]), clusters: vec![2], exponents: vec![1] };
        let again = || HubJournal::open(Some(&folder.0), &Hash([3; 32])).unwrap().0;
        let mut first = again();
        first.count(|counting| counting.run = Hash([1; 32])).unwrap();
        assert!(first.takes_to_judge(&request(7)).unwrap() && first.takes_to_judge(&request(7)).unwrap());
        assert!(!first.takes_to_judge(&request(8)).unwrap());
        let distances = CentreDistances { digest: Hash([7; 32]), matrices: vec![vec![0.0, 1.5, 1.5, 0.0]] };
        first.count(|counting| counting.distances = Some(distances.clone())).unwrap();
        drop(first);
        let mut second = again();
        let Counting { run, judged, distances: found, handed } = second.counting.clone();
        assert_eq!((run, judged, found, handed), (Hash([1; 32]), Some(request(7)), Some(distances), false));
        assert!(!second.takes_to_judge(&request(8)).unwrap() && second.takes_to_judge(&request(7)).unwrap());
        second.clear().unwrap();
        drop(second);
        let mut other = again();
        assert_eq!(other.counting, Counting::default());
        // [APP-5]: nor any where the count has left.
        other.count(|counting| counting.handed = true).unwrap();
        drop(other);
        assert!(!again().takes_to_judge(&request(7)).unwrap());
    }
}
