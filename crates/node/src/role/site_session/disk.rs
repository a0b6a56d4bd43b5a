//! What a site has on disk before anything leaves it, and what goes from there.

use std::{io, sync::Arc};

use veilsum_door::{Ledger, Place, Replacement, Talk};
use veilsum_proto::{Error, journal::Record, message::Disclosure};

use super::SiteSession;
use crate::{
    egress::Egress,
    error::Failure,
    facts::cohort_digest,
    files,
    question::Batch,
    store::{Journal, Write, aside, side_by_side},
};

impl SiteSession {
    /// This conversation, once it has a run: nothing leaves before.
    pub(super) fn talk(&self) -> Result<Talk, Error> {
        let run = self.site.run().ok_or(Error::ApiMisuse("a frame before there is a run"))?;
        Ok(Talk { plan: self.config.party.federation.terms.hash(), session: self.session, run })
    }

    pub(super) fn place(&self, (deck, slot): (u32, u16), cohort: &[u16]) -> Place {
        Place { deck, slot, cohort: cohort_digest(&self.config.party.federation.roster, cohort) }
    }

    /// A frame that may leave ([LED-4]): everything that it rests on is on disk when this returns: the journal that protects it, the question that it answers,
    /// and its entry in the ledger, without which nothing leaves ([JRN-1], [LED-4]).
    ///
    /// It goes there in steps, each of which takes as long as its longest wait: the question, and under other names the new journal and the
    /// ledger's head; the journal's name, while the bytes of the one before are overwritten; the entry; the head's name. So an entry has its
    /// answer in the journal, and a round that the ledger knows is answered from there or not at all. A journal that is ahead of what was
    /// asked could not be followed, and a head that is ahead of its ledger would show a cut.
    pub(super) fn write_down(&mut self, frame: Arc<Vec<u8>>, discloses: Disclosure) -> Result<Egress, Failure> {
        use Disclosure::{MaskedWords, RoundSeeds, SelfMaskShares};
        let round = self.site.round_sites().filter(|_| matches!(discloses, MaskedWords | RoundSeeds | SelfMaskShares));
        let (talk, place) = (self.talk()?, round.map(|(slot, cohort)| self.place(slot, cohort)));
        let records = self.rewrite.take();
        let SiteSession { config, journal, run, keeper, .. } = self;
        let answers = discloses == MaskedWords;
        let journal = journal.as_mut().zip(records);
        let goes_to_disk = config.state.is_some() && (answers || journal.is_some());
        let write = || {
            keeper.with(|ledger| {
                let entered = ledger.enter(&frame, discloses, (&talk, place))?;
                if !goes_to_disk {
                    return Ok(entered);
                }
                let question = run.as_mut().map(|run| Box::new(move || run.sync()) as Write<'_>);
                let written = together(journal, question, answers.then_some(&mut *ledger));
                if answers && written.is_err() {
                    ledger.give_up();
                }
                written.map(|()| entered)
            })
        };
        let entered = if goes_to_disk { aside(write) } else { write() }?;
        Ok(Egress::in_ledger(frame, entered))
    }

    /// The journal is replaced where that waited for a frame that does not come.
    pub(super) fn replace_journal(&mut self) -> Result<(), Failure> {
        match (&mut self.journal, self.rewrite.take()) {
            (Some(journal), Some(records)) => journal.rewrite(&records),
            _ => Ok(()),
        }
    }

    /// The final centres that the intermediary will ask about.
    pub(super) fn hold(&mut self, batch: Batch) -> Result<(), String> {
        let run = self.run.as_mut().ok_or("it is the coordinator's to lay centres before this site")?;
        run.judged(&batch)?;
        self.hand.lay(Some(batch));
        Ok(())
    }
}

/// The steps of [`SiteSession::write_down`].
fn together(
    journal: Option<(&mut Journal, Vec<Record>)>,
    question: Option<Write<'_>>,
    ledger: Option<&mut Ledger>,
) -> Result<(), Failure> {
    let unwritten = |e: io::Error| {
        files::unwritten(
            &e,
            format!("the ledger's head: {e}"),
            "check free space and permissions of the folder (--state)",
        )
    };
    let head = ledger.as_deref().map(Ledger::next_head).transpose()?.flatten();
    let journal =
        journal.map(|(journal, records)| Ok::<_, Failure>((journal.fresh(&records)?, journal))).transpose()?;
    let mut bytes: Vec<Write<'_>> = question.into_iter().collect();
    if let Some((fresh, journal)) = &journal {
        bytes.push(Box::new(move || journal.step(fresh.sync())));
        bytes.push(Box::new(move || journal.sync_folder()));
    }
    if let Some(replacement) = &head {
        bytes.push(Box::new(move || replacement.sync().map_err(unwritten)));
    }
    side_by_side(bytes)?;

    if let Some((fresh, journal)) = journal {
        let old = journal.take(fresh)?;
        let journal: &Journal = journal;
        side_by_side(vec![Box::new(move || journal.step(old.wipe())), Box::new(move || journal.sync_folder())])?;
    }
    let Some(ledger) = ledger else { return Ok(()) };
    ledger.sync_entries()?;
    let folder = head.map(Replacement::take_name).transpose().map_err(unwritten)?;
    folder.map_or(Ok(()), |folder| folder.sync().map_err(unwritten))?;
    ledger.head_is_there();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        io::Read,
        path::Path,
        sync::Arc,
    };

    use veilsum_proto::{identity::Identity, suite::Hash};

    use super::*;
    use veilsum_door::{Data, ledger};

    use crate::{documents::tests::Folder, random::system_rng};

    const SESSION: Hash = Hash([3; 32]);

    fn record() -> Record {
        Record::from_bytes(&veilsum_proto::codec::encode(&(0u32, SESSION, None::<Vec<u16>>, 0u32, None::<Hash>)))
            .unwrap()
    }

    /// What stands under the names of journal and head.
    fn names(folder: &Path) -> [Vec<u8>; 2] {
        let short = &SESSION.to_string()[..16];
        [format!("{short}.journal"), ledger::HEAD.into()].map(|name| fs::read(folder.join(name)).unwrap_or_default())
    }

    /// [JRN-4] [LED-4]: whatever of the first step fails, no name moves and nothing is overwritten.
    #[test]
    fn jrn_4_no_name_moves_before_all_bytes_are_on_disk() {
        let folder = Folder::new("together");
        let at = &folder.0;
        let identity = Arc::new(Identity::generate(&mut system_rng()));
        let data = Data::unread("rows");
        ledger::begin(at, &identity.digest_secret()).unwrap();
        let mut ledger = Ledger::open(at, identity, data, Some(Hash([9; 32]))).unwrap();
        let (mut journal, _) = Journal::<Record>::open(at, &SESSION).unwrap();
        let talk = Talk { plan: Hash([9; 32]), session: SESSION, run: Hash([1; 32]) };
        let enter = |ledger: &mut Ledger, frame: u8| {
            ledger.enter(&[frame], Disclosure::Acknowledgement, (&talk, None)).unwrap();
        };
        enter(&mut ledger, 1);
        let ok = || -> Option<Write<'static>> { Some(Box::new(|| Ok(()))) };
        let broken = || -> Option<Write<'static>> {
            Some(Box::new(|| Err(Failure::input("the question is not on disk", "nothing"))))
        };
        together(Some((&mut journal, Vec::new())), ok(), Some(&mut ledger)).unwrap();
        let before = names(at);
        assert!(before.iter().all(|bytes| !bytes.is_empty()));

        // The question is not there.
        enter(&mut ledger, 2);
        let records = || vec![record()];
        assert!(together(Some((&mut journal, records())), broken(), Some(&mut ledger)).is_err());
        assert!(names(at) == before, "a name moved before the question was on disk");
        // The new journal is not there: a file that cannot be brought to a disk stands in its place.
        #[cfg(target_os = "linux")]
        {
            let fresh = at.join(format!("{}.journal.new", &SESSION.to_string()[..16]));
            let _ = fs::remove_file(&fresh);
            std::os::unix::fs::symlink("/dev/null", &fresh).unwrap();
            enter(&mut ledger, 3);
            assert!(together(Some((&mut journal, records())), ok(), Some(&mut ledger)).is_err());
            assert!(names(at) == before, "a name moved before the journal was on disk");
            fs::remove_file(&fresh).unwrap();
        }

        // All is there: every name is the new one's, and of the old journal no byte is left.
        enter(&mut ledger, 4);
        let mut old = File::open(at.join(format!("{}.journal", &SESSION.to_string()[..16]))).unwrap();
        together(Some((&mut journal, records())), ok(), Some(&mut ledger)).unwrap();
        assert!(names(at).iter().zip(&before).all(|(now, before)| now != before));
        let mut bytes = Vec::new();
        old.read_to_end(&mut bytes).unwrap();
        assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0));
        // The entry is not there: of the journal it has its answer, and the head knows nothing of it.
        let [_, before] = names(at);
        enter(&mut ledger, 5);
        ledger.give_up();
        assert!(together(Some((&mut journal, Vec::new())), ok(), Some(&mut ledger)).is_err());
        assert!(names(at)[1] == before, "the head moved before the entry was on disk");
        // Nothing but the files is left.
        let drafts =
            fs::read_dir(at).unwrap().filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
        assert_eq!(drafts.count(), 0);
    }
}
