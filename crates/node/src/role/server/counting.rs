//! The coordinator and the intermediary: that it is there, that it counts, that it judges.

use std::time::{Duration, Instant};

use veilsum_proto::{message::Kind, roster::PartyId};

use super::{Run, in_vain, log};
use crate::{
    app_messages::{Count, CountReply, CountRequest, Held, JudgeReply},
    error::{Code, Failure},
    oracle,
    question::Batch,
    role::{aggregator_host::HostEvent, notice::Notice},
};

impl Run<'_> {
    /// Nothing is asked while nobody could count the rows: a round that cannot be counted gives its totals away for nothing.
    pub(super) async fn intermediary_is_there(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        let appear = Duration::from_millis(self.config.timing.join);
        let mut notice = Notice::new();
        while !self.counted && !self.hub.is_connected(PartyId::Intermediary) {
            self.hub.tell_of_wait(&mut notice);
            if began.elapsed() > appear {
                return Err(in_vain(&self.config.party.federation.roster.intermediary.name, began.elapsed()));
            }
            match self.hub.next(Some(Instant::now() + Duration::from_millis(100))).await {
                HostEvent::Aggregator(event) => self.event(event)?,
                HostEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
                HostEvent::Deadline => {}
            }
        }
        Ok(())
    }

    /// [APP-2]: tells the intermediary that the first total is out over this cohort, and waits for its word that the rows
    /// are counted.
    pub(super) async fn have_counted(&mut self, cohort: &[u16]) -> Result<(), Failure> {
        let began = Instant::now();
        let deadline = began + self.config.patience_in_run();
        let appear = self.config.back_within();
        let mut seen = began;
        let mut notice = Notice::new();
        while !self.counted {
            self.hub.tell_of_wait(&mut notice);
            if self.hub.tell(PartyId::Intermediary, Kind::Count, &Count { cohort: cohort.to_vec() }) {
                seen = Instant::now();
            }
            let again = Instant::now() + Duration::from_millis(self.config.timing.resend.min(1_000));
            while !self.counted {
                match self.hub.next(Some(deadline.min(again))).await {
                    HostEvent::Aggregator(event) => self.event(event)?,
                    HostEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
                    HostEvent::Deadline => break,
                }
            }
            let waited = if seen.elapsed() > appear { appear } else { began.elapsed() };
            if !self.counted && (Instant::now() >= deadline || seen.elapsed() > appear) {
                return Err(in_vain(&self.config.party.federation.roster.intermediary.name, waited));
            }
        }
        Ok(())
    }

    /// Lays the final centres before the sites and has the intermediary judge them.
    pub(super) async fn ask_judge(&mut self, batch: Batch, cohort: &[u16]) -> Result<JudgeReply, Failure> {
        let federation = &self.config.party.federation;
        let request = oracle::request(&batch, &federation.work, &federation.form()?)?;
        let held = Held { batch };
        for site in cohort {
            self.hub.tell(PartyId::Site(*site), Kind::Held, &held);
        }
        let gone = || {
            Failure::new(
                Code::Network,
                "the intermediary, which judges the result by the plan, is gone",
                "find out from its operator why it stopped; when it is there again, start the run under a new plan",
            )
        };
        self.have_counted_again(cohort);
        if !self.hub.tell(PartyId::Intermediary, Kind::JudgeRequest, &request) {
            return Err(gone());
        }
        let deadline = Instant::now() + self.config.patience_in_run();
        loop {
            let again = Instant::now() + Duration::from_millis(self.config.timing.resend);
            match self.hub.next(Some(deadline.min(again))).await {
                HostEvent::Control { from: PartyId::Intermediary, kind: Kind::JudgeReply, bytes } => {
                    let session = self.hub.session();
                    return Ok(self.hub.open_control(PartyId::Intermediary, &session, Kind::JudgeReply, &bytes)?);
                }
                HostEvent::Deadline if Instant::now() >= deadline => return Err(gone()),
                // A site whose link was down, or whose queue was full, has not got it.
                HostEvent::Deadline => {
                    for site in cohort {
                        self.hub.tell(PartyId::Site(*site), Kind::Held, &held);
                    }
                }
                HostEvent::Aggregator(event) => self.event(event)?,
                HostEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
            }
        }
    }

    /// An intermediary that was started again counts once more, before it is asked for anything.
    pub(super) fn have_counted_again(&mut self, cohort: &[u16]) {
        if self.hub.link(PartyId::Intermediary) != self.counted_on {
            self.hub.tell(PartyId::Intermediary, Kind::Count, &Count { cohort: cohort.to_vec() });
        }
    }

    /// Asks the intermediary for the total row count; `None` where it is withheld or the intermediary has gone.
    pub(super) async fn ask_count(&mut self, cohort: &[u16]) -> Option<u64> {
        self.have_counted_again(cohort);
        let request = CountRequest { cohort: cohort.to_vec() };
        if !self.hub.tell(PartyId::Intermediary, Kind::CountRequest, &request) {
            return None;
        }
        let deadline = Instant::now() + Duration::from_millis(self.config.timing.phase);
        loop {
            match self.hub.next(Some(deadline)).await {
                HostEvent::Control { from: PartyId::Intermediary, kind: Kind::CountReply, bytes } => {
                    let session = self.hub.session();
                    let reply =
                        self.hub.open_control::<CountReply>(PartyId::Intermediary, &session, Kind::CountReply, &bytes);
                    return reply.ok().and_then(|r| r.total);
                }
                HostEvent::Control { from: PartyId::Intermediary, kind: Kind::Aborted, .. } | HostEvent::Deadline => {
                    return None;
                }
                // Every total is in: whoever leaves now takes nothing from the result.
                HostEvent::Aggregator(event) => log(&self.config.party.federation.roster, &event),
                HostEvent::Control { .. } => {}
            }
        }
    }
}
