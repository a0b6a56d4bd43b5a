//! What a site has on disk before anything leaves it, and what goes from there.

use veilsum_proto::{
    message::{self, Disclosure},
    roster::PartyId,
    suite::Hash,
};

use super::SiteSession;
use crate::{
    error::Failure,
    question::Batch,
    release::{Left, cohort_digest},
    store::{self, Write},
};

impl SiteSession {
    pub(super) fn left(&self, slot: Option<(u32, u16)>, cohort: Option<&[u16]>, context: Hash) -> Left {
        Left {
            plan: self.config.party.federation.terms.hash(),
            session: self.session,
            run: self.site.run().unwrap_or_default(),
            slot,
            cohort: cohort.map(|cohort| cohort_digest(&self.config.party.federation.roster, cohort)),
            context,
        }
    }

    /// Everything that a frame rests on is on disk when this returns: the journal that protects it, the question that it answers,
    /// and its entry in the ledger, without which nothing leaves ([JRN-1], [LED-4]). The question comes first: a journal that is
    /// ahead of what was asked could not be followed after a loss of power. The other files may be written in any order: whichever
    /// of them a loss of power leaves behind, the frame has not left.
    pub(super) fn write_down(&mut self, frame: &[u8], discloses: Disclosure) -> Result<(), Failure> {
        use Disclosure::{MaskedWords, RoundSeeds, SelfMaskShares};
        let context = message::context_of(frame).unwrap_or_default();
        let round = self.site.round_sites().filter(|_| matches!(discloses, MaskedWords | RoundSeeds | SelfMaskShares));
        let left = self.left(round.map(|(slot, _)| slot), round.map(|(_, cohort)| cohort), context);
        let (records, unsaved) = (self.rewrite.take(), std::mem::take(&mut self.unsaved));
        let SiteSession { config, aggregator, journal, admission, follower, session, keeper, .. } = self;
        let mut writes: Vec<Write<'_>> = Vec::new();
        if discloses == MaskedWords {
            if let Some(follower) = follower {
                follower.sync()?;
            }
            if unsaved && let (Some(folder), PartyId::Coordinator) = (&config.state, *aggregator) {
                writes.push(Box::new(|| store::admission::save(admission, folder, session)));
            }
        }
        if let (Some(journal), Some(records)) = (journal, records) {
            writes.push(Box::new(move || Ok(journal.rewrite(&records)?)));
        }
        writes.push(Box::new(|| Ok(keeper.with(|ledger| ledger.record(frame, discloses, &left))?)));
        store::side_by_side(writes)
    }

    /// The journal is replaced where that waited for a frame that does not come.
    pub(super) fn replace_journal(&mut self) -> Result<(), Failure> {
        match (&mut self.journal, self.rewrite.take()) {
            (Some(journal), Some(records)) => Ok(journal.rewrite(&records)?),
            _ => Ok(()),
        }
    }

    /// Before an answer leaves, what it answered is on disk.
    pub(super) fn save(&self) -> Result<(), Failure> {
        match (&self.config.state, self.aggregator) {
            (Some(folder), PartyId::Coordinator) => store::admission::save(&self.admission, folder, &self.session),
            _ => Ok(()),
        }
    }

    pub(super) fn forget(&self) {
        if let (Some(folder), PartyId::Coordinator) = (&self.config.state, self.aggregator) {
            store::admission::forget(folder, &self.session);
        }
    }

    /// The final centres that the intermediary will ask about.
    pub(super) fn hold(&mut self, batch: Batch) -> Result<(), String> {
        if self.aggregator != PartyId::Coordinator {
            return Err("it is the coordinator's to lay centres before this site".into());
        }
        self.admission.check_held(&self.keeper.answering(&self.config), &batch)?;
        self.follower.as_ref().map_or(Ok(()), |follower| follower.replay().held(&batch))?;
        self.save().map_err(|f| f.message)?;
        self.hand.lay_judged(batch);
        Ok(())
    }
}
