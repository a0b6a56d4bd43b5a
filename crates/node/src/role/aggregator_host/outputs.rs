//! What the state machine wants: entries that are on disk before anything that rests on them leaves ([JRN-5]), frames, reports.

use veilsum_proto::{Error, aggregator, roster::PartyId};

use super::AggregatorHost;
use crate::error::Failure;

impl AggregatorHost {
    /// Does what the machine wants, and gives what it reports. An entry is on disk before anything that comes after it leaves, or is
    /// told. Only a coordinator's total is told first: what the application makes of it leaves in a frame of this host, and the question
    /// after it then goes to the disk with it. An intermediary speaks of its total over another link.
    pub(super) fn carry_out(&mut self, output: aggregator::Output) -> Option<aggregator::Event> {
        match output {
            aggregator::Output::Persist(record) => {
                let written = self.journal.write(record);
                self.kept(written)
            }
            aggregator::Output::Send { to, bytes } => {
                if let Some(failed) = self.sync() {
                    return Some(failed);
                }
                self.keep_said(self.aggregator.directory().unwrap_or_default(), &bytes);
                self.send(PartyId::Site(to), bytes);
                None
            }
            aggregator::Output::Event(event) => {
                let total = matches!(event, aggregator::Event::Total { .. });
                if total {
                    self.open = None;
                }
                let first = total && self.role == PartyId::Coordinator;
                Some(if first { event } else { self.sync().unwrap_or(event) })
            }
        }
    }

    /// Every entry of the journal is on disk; otherwise the event that ends the run, after which nothing leaves but the word that it ended.
    pub(in crate::role) fn sync(&mut self) -> Option<aggregator::Event> {
        let synced = self.journal.sync();
        self.kept(synced)
    }

    /// Where an entry may not be on disk, nothing that it was to protect leaves.
    fn kept(&mut self, written: Result<(), Failure>) -> Option<aggregator::Event> {
        let failed = written.err()?;
        self.journal.give_up();
        let why = failed.message.clone();
        self.broken = Some(failed);
        Some(aggregator::Event::Failed(Error::Journal(why)))
    }
}
