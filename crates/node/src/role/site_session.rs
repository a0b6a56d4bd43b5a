//! A site's conversation with one aggregator: frames in, state machine, frames out, over as many connections as it takes.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use tokio::sync::watch;
use veilsum_proto::{
    Error, Rule,
    journal::{Record, RecordKind},
    message::{self, Disclosure, Kind},
    roster::PartyId,
    site::{Event, Input, Output, Site, SiteConfig},
    suite::Hash,
};

use super::{
    config::{ClientConfig, ClientReport},
    dial::{self, Line},
    hand::Hand,
    keeper::Keeper,
    progress::Progress,
    run_state::RunState,
    stop,
};
use crate::{
    app_messages::{Aborted, CentreDistances, Finished, Held, clean},
    carrier::{Address, CarrierError},
    error::{Code, Failure},
    method_session::Moved,
    random::system_rng,
    store::{Journal, aside, aside_from},
};

mod answer;
mod disk;
mod result;

/// How long an aggregator that this site has answered may be out of reach.
const AGAIN: Duration = Duration::from_secs(30);

/// Between two attempts to dial after a connection was lost: two processes of one identity would otherwise take the
/// connection from each other without pause.
const PAUSE: Duration = Duration::from_secs(1);

/// The conversation with one aggregator, over as many connections as it takes.
pub(super) struct SiteSession {
    config: ClientConfig,
    aggregator: PartyId,
    address: Address,
    site: Site,
    journal: Option<Journal>,
    /// How far the run is, by what the coordinator said; the intermediary opens no totals.
    run: Option<RunState>,
    session: Hash,
    /// What ever left, shared with the other conversation.
    keeper: Keeper,
    hand: Hand,
    /// What is to replace the journal before anything else happens.
    rewrite: Option<Vec<Record>>,
    /// The round that was answered last: its answer may be asked for again, and is the same one.
    answered: Option<Hash>,
    /// What was handed over to be judged by.
    distances: Option<CentreDistances>,
    report: ClientReport,
    /// How far the centres had come when it was told last.
    moved: Vec<Moved>,
    /// Shares have left for at least one question, in this process or one before it.
    released: bool,
    /// Whether the run is over for good, once the aggregator has said its last word of it.
    over_for_good: Option<bool>,
}

/// Whether the conversations are to end, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// They go on.
    Not,
    /// The run is over for this site: nothing of it stays.
    Over,
    /// This process ends, and may come back to the run.
    Away,
}

/// Waits until the conversations are to end; for ever where nobody can say so any more.
async fn stopped(stop: &mut watch::Receiver<Stop>) -> Stop {
    let why = stop.wait_for(|stop| *stop != Stop::Not).await.map(|why| *why);
    match why {
        Ok(why) => why,
        Err(_) => std::future::pending().await,
    }
}

fn site_config(config: &ClientConfig, aggregator: PartyId) -> SiteConfig {
    SiteConfig {
        identity: config.party.identity.clone(),
        roster: config.party.federation.roster.clone(),
        terms: config.party.federation.terms.clone(),
        floor: config.site.policy.floor.clone(),
        aggregator,
    }
}

impl SiteSession {
    pub(super) fn new(
        config: &ClientConfig,
        aggregator: PartyId,
        hand: Hand,
        keeper: Keeper,
    ) -> Result<SiteSession, Failure> {
        let address = match aggregator {
            PartyId::Intermediary => config.intermediary.clone(),
            _ => config.coordinator.clone(),
        };
        let session = config.party.session(aggregator);
        let opened = config.state.as_ref().map(|folder| Journal::open(folder, &session)).transpose()?;
        let (journal, mut records) = opened.map_or((None, Vec::new()), |(journal, records)| (Some(journal), records));
        // [JRN-2]: the ledger knows the deck, and what was charged; an answer of which it knows no more never left.
        let unknown = keeper.with(|ledger| {
            let (account, mut run, mut unknown) = (ledger.account(), None, false);
            records.retain(|record: &Record| {
                if let Some(deck) = record.deck() {
                    unknown |= !account.met().has_deck(session, deck);
                    run = Some(deck.0);
                }
                let Some((slot, frame)) = record.answer() else { return true };
                unknown |= run.is_none_or(|run| !account.has_charged(session, run, slot));
                ledger.has_left(frame)
            });
            unknown
        });
        let has = |kind| records.iter().any(|record: &Record| record.kind() == kind);
        if has(RecordKind::Deck) {
            tracing::info!("taking up an interrupted run from the journal");
        }
        let released = has(RecordKind::Released);
        let site = Site::restore(site_config(config, aggregator), records)?;
        let gave = site.run().and_then(|run| keeper.with(|ledger| ledger.account().gave(session, run)));
        if unknown || gave.is_some_and(|(slot, shares)| !site.knows_of(slot, shares)) {
            return Err(Failure::input(
                "journal and ledger do not know the same of this run: one of the two was set back, or taken from elsewhere [JRN-2]",
                "put the newest copy of the whole state folder back; without it remove the `.journal` files: \
                 this site then takes no further part in this run",
            ));
        }
        // The entries of rounds that are over are replaced by those of the next one ([JRN-4]).
        let released = released || site.has_gone_on();
        let run = aggregator.opens().then(|| RunState::open(config, session, site.round_context())).transpose()?;
        Ok(SiteSession {
            config: config.clone(),
            aggregator,
            address,
            site,
            journal,
            run,
            session,
            keeper,
            hand,
            rewrite: None,
            answered: None,
            distances: None,
            report: ClientReport::default(),
            moved: Vec::new(),
            released,
            over_for_good: None,
        })
    }

    fn name(&self) -> String {
        self.config.party.name_of(self.aggregator)
    }

    /// Talks until the aggregator says that the run is over, something fails, or `stop` says so.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<Stop>) -> Result<ClientReport, Failure> {
        let mut line = None;
        let over = tokio::select! {
            over = self.until_over(&mut line) => over,
            why = stopped(&mut stop) => match why {
                Stop::Over => Ok(true),
                // The journal stays as it is, to come back with.
                _ => Err(stop::failure(Code::Interrupted, "start again")),
            },
        };
        if let Some(line) = &mut line {
            // The other side sees at once that this site is gone.
            line.finish().await;
            // [JRN-4]: nobody takes up this run with this site: the aggregator ended it, broke a rule, or was refused. An interrupted
            // one, and one whose aggregator is out of reach, may be taken up, and then needs the journal.
            if let Err(failure) = &over
                && failure.code != Code::Interrupted
                && self.over_for_good.unwrap_or([Code::Policy, Code::Peer].contains(&failure.code))
            {
                self.wipe()?;
            }
        }
        if over? { self.over().await } else { Ok(self.report) }
    }

    /// Talks over as many connections as it takes; the one that stands is in `there`. Whether the run is over for this site.
    async fn until_over(&mut self, there: &mut Option<Line>) -> Result<bool, Failure> {
        let mut patience = self.config.patience;
        loop {
            let line = match Line::connect(&self.config.party, self.aggregator, &self.address, patience).await {
                // The rows are counted; without the intermediary the run goes on.
                Err(f) if f.code == Code::Network && self.aggregator == PartyId::Intermediary && self.released => {
                    tracing::warn!("{}; its part is done, the run goes on", f.message);
                    return Ok(true);
                }
                // If the coordinator takes up the run, this site may be started again and goes on in it: the journal stays.
                Err(f) if f.code == Code::Network => {
                    let coordinator = self.config.party.federation.roster.coordinator.name.clone();
                    return self.alone(f, coordinator).map(|()| false);
                }
                // The run has ended while this site was away, and every total was opened to it: it came to the result itself.
                Err(f) if f.code == Code::Denied && self.run.as_ref().is_some_and(|run| run.replay().is_done()) => {
                    return self.alone(f, String::new()).map(|()| true);
                }
                line => there.insert(line?),
            };
            let Some(lost) = self.converse(line).await? else { return Ok(true) };
            let (to, why) = (self.name(), lost.to_string());
            self.config.party.tell(Progress::Dialling { to, why });
            *there = None;
            tokio::time::sleep(PAUSE).await;
            // Once this site has answered, a coordinator that stays away is gone. For the intermediary, which may have to
            // judge, the run waits as long as it lasts.
            if self.aggregator == PartyId::Coordinator && (self.released || self.report.answered > 0) {
                patience = self.config.patience.min(AGAIN);
            }
        }
    }

    /// Comes to the result on its own, from the totals that were opened to this site ([APP-8]).
    ///
    /// # Errors
    /// `why`, where there is none.
    fn alone(&mut self, why: Failure, lost: String) -> Result<(), Failure> {
        let Some(result) = self.run.as_ref().and_then(|run| run.replay().alone(&why.message, lost)) else {
            return Err(why);
        };
        let result = result?;
        self.report.model = result.model.clone();
        self.report.result = Some(result);
        Ok(())
    }

    /// The run is over for this site: the keys are of no more use. What was answered stands in the ledger.
    async fn over(mut self) -> Result<ClientReport, Failure> {
        stop::until_written(|| self.wipe()).await?;
        if let Some(run) = self.run.as_mut().filter(|_| self.journal.is_some()) {
            stop::until_written(|| run.restart()).await?;
        }
        Ok(self.report)
    }

    /// Nothing of the deck stays on disk ([RND-8], [JRN-4]).
    fn wipe(&mut self) -> Result<(), Failure> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.rewrite(&[]))
    }

    /// Talks over one connection. Why that was lost; nothing where the aggregator has no more to say.
    async fn converse(&mut self, line: &mut Line) -> Result<Option<CarrierError>, Failure> {
        // An intermediary that was started again may not have kept it.
        if let Some(distances) = &self.distances {
            line.tell(Kind::CentreDistances, distances).await;
        }
        loop {
            let bytes = match self.receive(line).await? {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(Some(CarrierError::closed("the other side hung up"))),
                Err(e @ CarrierError::Frame(_)) => return Err(e.into()),
                Err(e) => return Ok(Some(e)),
            };
            (self.config.party.heard)(self.aggregator, &bytes);
            match message::kind_of(&bytes) {
                Some(Kind::Finished) => {
                    let finished: Finished = line.open(&bytes, Kind::Finished)?;
                    self.over_for_good = Some(true);
                    if self.aggregator == PartyId::Coordinator {
                        self.last_word(&finished, line).await?;
                    }
                    return Ok(None);
                }
                Some(Kind::Aborted) => {
                    let aborted: Aborted = line.open(&bytes, Kind::Aborted)?;
                    if Code::is_told_to_stop(aborted.code) {
                        return Ok(Some(CarrierError::closed("its operator stopped it")));
                    }
                    self.over_for_good = Some(Code::ends_a_run(aborted.code));
                    // A refusal is another matter: the floor under the rows is the intermediary's to watch.
                    let refused = aborted.code == Code::Policy as u8;
                    if self.aggregator == PartyId::Intermediary && self.released && !refused {
                        // The rows are counted; whether the run goes on is the coordinator's to say.
                        tracing::warn!("{} ended its part: {}", self.name(), clean(&aborted.why));
                        return Ok(None);
                    }
                    return Err(dial::aborted(&self.name(), &aborted));
                }
                Some(Kind::Held) => {
                    let held: Held = line.open(&bytes, Kind::Held)?;
                    self.hold(held.batch).map_err(|why| {
                        let what =
                            format!("{} asked the intermediary to judge what this site refuses: {why}", self.name());
                        Failure::new(Code::Policy, what, "speak to its operator")
                    })?;
                    continue;
                }
                Some(Kind::CountReady) if self.aggregator == PartyId::Intermediary => {
                    self.hand.say(line.open(&bytes, Kind::CountReady)?);
                    continue;
                }
                _ => {}
            }
            self.site.set_standing(self.keeper.with(|ledger| ledger.standing()));
            let handled = aside_from(bytes.len(), || self.site.handle(Input::Message(&bytes), &mut system_rng())).await;
            if let Err(e) = handled {
                self.tell_refusal(&e, &bytes, line).await?;
                self.failed_message(e, &bytes)?;
            }
            self.drain(line, &bytes).await?;
        }
    }

    /// The next frame. Before it is waited for, what the coordinator said is on disk.
    async fn receive(&mut self, line: &mut Line) -> Result<Result<Option<Vec<u8>>, CarrierError>, Failure> {
        let mut next = pin!(line.recv());
        if let Poll::Ready(frame) = poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await {
            return Ok(frame);
        }
        if let Some(run) = self.run.as_mut().filter(|run| run.is_ahead()) {
            match aside(|| run.sync()) {
                // Nothing rests on it yet: it is tried again before this site answers anything more.
                Err(failure) if failure.code == Code::Storage => tracing::warn!("{}", failure.message),
                synced => synced?,
            }
        }
        Ok(next.await)
    }

    /// Where this site's own rules forbid what was asked, the aggregator is told under which rule.
    async fn tell_refusal(&mut self, error: &Error, bytes: &[u8], line: &mut Line) -> Result<(), Failure> {
        let context = message::context_of(bytes);
        if let (Error::Refused { rule, .. }, Some(Kind::Ask), Some(context)) = (error, message::kind_of(bytes), context)
        {
            let input = Input::Refuse { context, rule: *rule };
            self.site.handle(input, &mut system_rng())?;
            self.drain(line, bytes).await?;
        }
        Ok(())
    }

    /// Decides whether an error of the state machine ends this site's part.
    fn failed_message(&mut self, error: Error, bytes: &[u8]) -> Result<(), Failure> {
        match error.rule() {
            // A message of a deck or round that is over: it was under way when this side moved on.
            Some(Rule::Frm7) => {
                tracing::debug!("ignored: {error}");
                Ok(())
            }
            // The aggregator was started anew. What this site knew of the run before is of no use in this one.
            Some(Rule::Kex9) => {
                tracing::warn!("{} began a new run; joining it with fresh keys", self.name());
                self.wipe()?;
                self.site = Site::new(site_config(&self.config, self.aggregator))?;
                self.site.set_standing(self.keeper.with(|ledger| ledger.standing()));
                (self.released, self.distances) = (false, None);
                if self.aggregator == PartyId::Coordinator {
                    self.hand.lay(None);
                }
                if let Some(run) = &mut self.run {
                    run.restart()?;
                }
                aside(|| self.site.handle(Input::Message(bytes), &mut system_rng()))?;
                Ok(())
            }
            _ => Err(Failure::from(error)),
        }
    }

    /// Does what the state machine wants, in order. `bytes` is the frame that it follows from.
    async fn drain(&mut self, line: &mut Line, bytes: &[u8]) -> Result<(), Failure> {
        let mut refused = None;
        while let Some(output) = self.site.poll() {
            if !matches!(output, Output::Send { .. }) {
                self.replace_journal()?;
            }
            match output {
                Output::Persist(record) => {
                    if let Some(journal) = &mut self.journal {
                        journal.append(&record)?;
                    }
                }
                // Together with what else must be on disk before the frame that comes next.
                Output::Rewrite(records) => self.rewrite = Some(records),
                Output::Send { bytes, discloses } => {
                    let frame = self.write_down(bytes, discloses)?;
                    let name = self.config.party.name_of(PartyId::Site(self.site.number()));
                    self.report.traffic.sent(&name, frame.bytes());
                    tracing::debug!(bytes = frame.bytes().len(), ?discloses, "sent");
                    // A broken link shows at the next receive; the state machine repeats what is asked for again.
                    let sent = line.send(&frame).await;
                    if sent && discloses == Disclosure::MaskedWords {
                        let round = message::context_of(frame.bytes());
                        if self.answered != round {
                            self.answered = round;
                            self.report.answered += 1;
                            if self.aggregator == PartyId::Coordinator {
                                self.config.party.tell(Progress::Answered { number: self.report.answered });
                            }
                        }
                    }
                }
                Output::Event(Event::Met { deck, members }) => {
                    let talk = self.talk()?;
                    // [LED-11]: nothing of it is kept where the ledger of one of them was set back.
                    let met = aside(|| self.keeper.with(|ledger| ledger.meet(&talk, deck, &members)))?;
                    met.map_err(|back| back.error(self.config.party.name_of(PartyId::Site(back.site))))?;
                }
                Output::Event(Event::Asked(asked)) => refused = self.answer(asked, line, bytes).await?,
                Output::Event(Event::Opened { directory, values, cohort, .. }) => {
                    if let Some(run) = &mut self.run {
                        aside_from(bytes.len(), || run.total(bytes, directory, &values, &cohort)).await?;
                        let (party, session) = (&self.config.party, &run.replay().session);
                        party.tell_of_centres(&mut self.moved, session.moved());
                        let curve = session.curve();
                        if !curve.is_empty() {
                            party.tell(Progress::Judged { curve });
                        }
                    }
                }
                Output::Event(Event::Released { missing, .. }) => {
                    self.released = true;
                    if !missing.is_empty() {
                        tracing::info!(missing = missing.len(), "round closed without some sites");
                    }
                }
                Output::Event(_) => {}
            }
        }
        self.replace_journal()?;
        refused.map_or(Ok(()), Err)
    }
}
