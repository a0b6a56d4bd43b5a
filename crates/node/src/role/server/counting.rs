//! The coordinator and the intermediary: that it is there, that it counts, that it judges.

use std::time::{Duration, Instant};

use veilsum_proto::{message::Kind, roster::PartyId};

use super::{Run, in_vain, log};
use crate::{
    app_messages::{Count, CountReady, CountReply, CountRequest, Held, JudgeReply},
    error::{Code, Failure},
    oracle,
    question::Batch,
    role::{aggregator_host::HostEvent, notice::Notice},
};

/// How long whoever was in a run dials a coordinator that is gone.
const RETURN: Duration = Duration::from_secs(30);

/// How often it is looked whether the intermediary is there.
const LOOK: Duration = Duration::from_millis(500);

impl Run<'_> {
    /// [APP-2]: has the intermediary count the rows of these sites, now and whenever it comes back.
    pub(super) fn ask_for_the_count(&mut self, cohort: Vec<u16>) {
        let run = self.hub.run();
        self.hub.stand_by(Kind::Count, &Count { run, cohort });
    }

    /// [APP-2]: takes the intermediary's word. Sites that it did not count are asked nothing.
    pub(super) fn is_counted(&mut self, word: &CountReady) -> Result<(), Failure> {
        if word.run != self.hub.run() {
            return Ok(());
        }
        // A word that comes again, or was had by a process before this one.
        if std::mem::replace(&mut self.counted, true) {
            self.conversation.is_counted(&word.cohort);
            return Ok(());
        }
        let here = self.hub.cohort();
        if !word.cohort.iter().all(|site| here.contains(site)) {
            let what = "the intermediary counted a site that it was not to count";
            return Err(Failure::new(Code::Peer, what, "speak to its operator"));
        }
        self.conversation.is_counted(&word.cohort);
        self.hub.without(here.into_iter().filter(|site| !word.cohort.contains(site)));
        Ok(())
    }

    /// [APP-2]: waits for the intermediary's word that the rows reach the floor. Nothing is asked while nobody could count them.
    pub(super) async fn have_counted(&mut self) -> Result<(), Failure> {
        let patience = self.config.patience_in_run();
        // Whoever was not there yet has longer than whoever comes back.
        let (mut seen, mut appear) = (Instant::now(), Duration::from_millis(self.config.timing.join));
        let (mut deadline, mut notice) = (None, Notice::new());
        while !self.counted {
            if self.hub.is_connected(PartyId::Intermediary) {
                (seen, appear) = (Instant::now(), self.config.back_within());
                deadline.get_or_insert(seen + patience);
            }
            match self.hub.next(Some(Instant::now() + LOOK)).await {
                HostEvent::Aggregator(event) => self.event(event)?,
                HostEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
                HostEvent::Deadline => {
                    self.hub.stand_again();
                    self.hub.tell_of_wait(&mut notice);
                }
            }
            let away = seen.elapsed() > appear;
            if !self.counted && (away || deadline.is_some_and(|deadline| Instant::now() >= deadline)) {
                let waited = if away { appear } else { patience };
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
            let next =
                "find out from its operator why it stopped; when it is there again, start the run under a new plan";
            Failure::new(Code::Network, "the intermediary, which judges the result by the plan, is gone", next)
        };
        let deadline = Instant::now() + self.config.patience_in_run();
        let resend = Duration::from_millis(self.config.timing.resend);
        let (mut again, mut seen, mut asked) = (Instant::now() + resend, Instant::now(), None);
        let mut notice = Notice::new();
        loop {
            self.hub.tell_of_wait(&mut notice);
            if self.tell_once(&mut asked, Kind::JudgeRequest, &request) {
                seen = Instant::now();
            }
            match self.hub.next(Some(deadline.min(Instant::now() + LOOK))).await {
                HostEvent::Control { from: PartyId::Intermediary, kind: Kind::JudgeReply, bytes } => {
                    return Ok(self.hub.open_control(PartyId::Intermediary, Kind::JudgeReply, &bytes)?);
                }
                HostEvent::Deadline if Instant::now() >= deadline || seen.elapsed() > self.config.back_within() => {
                    return Err(gone());
                }
                // A site whose link was down, or whose queue was full, has not got it.
                HostEvent::Deadline if Instant::now() >= again => {
                    again = Instant::now() + resend;
                    for site in cohort {
                        self.hub.tell(PartyId::Site(*site), Kind::Held, &held);
                    }
                }
                HostEvent::Deadline => {}
                HostEvent::Aggregator(event) => self.event(event)?,
                HostEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
            }
        }
    }

    /// Tells the intermediary something over each link that it has, once: another link may be another process, which has not got it. Whether
    /// it is there.
    fn tell_once<T: serde::Serialize>(&mut self, over: &mut Option<u64>, kind: Kind, message: &T) -> bool {
        let link = self.hub.link(PartyId::Intermediary);
        if link != *over && self.hub.tell(PartyId::Intermediary, kind, message) {
            *over = link;
        }
        link.is_some()
    }

    /// Whoever was in the last total, and the intermediary, is to have the last word: where this process took the run up they are on
    /// their way back, and whose link broke has the time of `--grace`.
    pub(super) async fn all_are_there(&mut self, cohort: &[u16]) {
        let grace = Duration::from_millis(self.config.timing.grace);
        let deadline = Instant::now() + if self.hub.begun { RETURN.min(self.config.back_within()) } else { grace };
        let all = || cohort.iter().map(|site| PartyId::Site(*site)).chain([PartyId::Intermediary]);
        while !all().all(|party| self.hub.is_connected(party)) && Instant::now() < deadline {
            match self.hub.next(Some(Instant::now() + Duration::from_millis(100))).await {
                HostEvent::Aggregator(event) => {
                    log(&self.config.party.federation.roster, &event);
                    if let veilsum_proto::aggregator::Event::Lost { site, why } = event {
                        self.note(site, &why);
                    }
                }
                HostEvent::Control { .. } | HostEvent::Deadline => {}
            }
        }
    }

    /// Asks the intermediary for the total row count; `None` where it is withheld or the intermediary has gone.
    pub(super) async fn ask_count(&mut self, cohort: &[u16]) -> Option<u64> {
        let request = CountRequest { cohort: cohort.to_vec() };
        let mut asked = None;
        let deadline = Instant::now() + Duration::from_millis(self.config.timing.phase);
        loop {
            self.tell_once(&mut asked, Kind::CountRequest, &request);
            asked?;
            match self.hub.next(Some(deadline.min(Instant::now() + LOOK))).await {
                HostEvent::Control { from: PartyId::Intermediary, kind: Kind::CountReply, bytes } => {
                    let reply = self.hub.open_control::<CountReply>(PartyId::Intermediary, Kind::CountReply, &bytes);
                    return reply.ok().and_then(|r| r.total);
                }
                HostEvent::Control { from: PartyId::Intermediary, kind: Kind::Aborted, .. } => return None,
                HostEvent::Deadline if Instant::now() >= deadline => return None,
                HostEvent::Deadline => {}
                // Every total is in: whoever leaves now takes nothing from the result.
                HostEvent::Aggregator(event) => log(&self.config.party.federation.roster, &event),
                HostEvent::Control { .. } => {}
            }
        }
    }
}
