//! What a site has on disk before anything leaves it, and what goes from there.

use std::sync::Arc;

use veilsum_door::{Place, Talk};
use veilsum_proto::{Error, message::Disclosure};

use super::SiteSession;
use crate::{
    egress::Egress,
    error::Failure,
    facts::cohort_digest,
    question::Batch,
    store::{Write, aside},
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
    /// It goes there in steps, each of which takes as long as its longest wait: the question, and under another name the new journal; the
    /// journal's name, while the bytes of the one before are overwritten; then the entry. So an entry has its answer in the journal, and a
    /// round that the ledger knows is answered from there or not at all. A journal that is ahead of what was asked could not be followed.
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
            if goes_to_disk {
                let question = run.as_mut().map(|run| Box::new(move || run.sync()) as Write<'_>);
                match journal {
                    Some((journal, records)) => journal.replace(&records, question)?,
                    None => question.map_or(Ok(()), |write| write())?,
                }
            }
            Ok::<_, Failure>(keeper.with(|ledger| ledger.enter(&frame, discloses, (&talk, place)))?)
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

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        io::Read,
        path::Path,
    };

    use veilsum_proto::{journal::Record, suite::Hash};

    use super::*;
    use crate::{documents::tests::Folder, store::Journal};

    const SESSION: Hash = Hash([3; 32]);

    fn record() -> Record {
        Record::from_bytes(&veilsum_proto::codec::encode(&(0u32, SESSION, None::<Vec<u16>>, 0u32, None::<Hash>)))
            .unwrap()
    }

    fn at(folder: &Path, ending: &str) -> std::path::PathBuf {
        folder.join(format!("{}.{ending}", &SESSION.to_string()[..16]))
    }

    /// [JRN-4] [LED-4]: whatever of the first step fails, the journal keeps its name and nothing is overwritten.
    #[test]
    fn jrn_4_no_name_moves_before_all_bytes_are_on_disk() {
        let folder = Folder::new("together");
        let (mut journal, _) = Journal::<Record>::open(&folder.0, &SESSION).unwrap();
        let named = || fs::read(at(&folder.0, "journal")).unwrap_or_default();
        let ok = || -> Option<Write<'static>> { Some(Box::new(|| Ok(()))) };
        let broken = || -> Option<Write<'static>> {
            Some(Box::new(|| Err(Failure::input("the question is not on disk", "nothing"))))
        };
        journal.replace(&[], ok()).unwrap();
        let before = named();
        assert!(!before.is_empty());

        // The question is not there.
        let records = || [record()];
        assert!(journal.replace(&records(), broken()).is_err());
        assert!(named() == before, "the name moved before the question was on disk");
        // The new journal is not there: a file that cannot be brought to a disk stands in its place.
        #[cfg(target_os = "linux")]
        {
            let fresh = at(&folder.0, "journal.new");
            let _ = fs::remove_file(&fresh);
            std::os::unix::fs::symlink("/dev/null", &fresh).unwrap();
            assert!(journal.replace(&records(), ok()).is_err());
            assert!(named() == before, "the name moved before the journal was on disk");
            fs::remove_file(&fresh).unwrap();
        }

        // All is there: the name is the new one's, and of the old journal no byte is left.
        let mut old = File::open(at(&folder.0, "journal")).unwrap();
        journal.replace(&records(), ok()).unwrap();
        assert!(named() != before);
        let mut bytes = Vec::new();
        old.read_to_end(&mut bytes).unwrap();
        assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0));
    }
}
