//! A site: answers the coordinator's and the intermediary's questions under masks, from rows that never leave it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use veilsum_cluster::{Prepared, Query};
use veilsum_proto::{
    Error, Rule,
    identity::Identity,
    message::{self, Disclosure, Kind},
    plan::Terms,
    policy::{self, Asked, Floor},
    roster::{PartyId, Roster},
    site::{Event, Input, Output, Site, SiteConfig},
};

use super::{
    View,
    line::{self, Line},
    system_rng,
};
use crate::{
    carrier::CarrierError,
    cli::exit::{Code, Failure},
    control::{Aborted, Finished},
    model::Model,
    round::{self, Question},
    store::Journal,
    traffic::Traffic,
    work::Work,
};

/// Who this site is, what it holds, and whom it talks to.
#[derive(Clone)]
pub struct ClientConfig {
    /// Its identity.
    pub identity: Arc<Identity>,
    /// The verified roster.
    pub roster: Arc<Roster>,
    /// The verified plan.
    pub terms: Arc<Terms>,
    /// The plan's method part.
    pub work: Arc<Work>,
    /// Its own floor.
    pub floor: Floor,
    /// Its rows, in working units.
    pub rows: Arc<Prepared>,
    /// Where the coordinator listens.
    pub coordinator: SocketAddr,
    /// Where the intermediary listens.
    pub intermediary: SocketAddr,
    /// Folder of its journals; without one, a crash takes it out of the run.
    pub state: Option<PathBuf>,
    /// How long to keep trying to reach the others.
    pub patience: Duration,
    /// For demonstrations and tests: leave at this point without a word.
    pub vanish: Option<Vanish>,
    /// Records received frames.
    pub view: Option<View>,
}

/// Where a site vanishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vanish {
    /// In this round of the method, counted from 1.
    pub round: u32,
    /// At this step of it.
    pub at: Step,
}

/// A step of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Before its masked input leaves.
    BeforeInput,
    /// After its masked input has arrived.
    AfterInput,
    /// Before its shares leave.
    BeforeUnmask,
}

/// What a site got out of a run.
#[derive(Debug, Clone, Default)]
pub struct ClientReport {
    /// The centres, where the run came to its end.
    pub model: Option<Model>,
    /// Questions it answered.
    pub answered: u32,
    /// Whether it left on purpose (see [`ClientConfig::vanish`]).
    pub vanished: bool,
    /// Frames it sent, by phase, under the name of the receiver.
    pub traffic: Traffic,
}

/// Takes part in one run.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub async fn run(config: ClientConfig) -> Result<ClientReport, Failure> {
    if config.rows.is_empty() {
        return Err(Failure::input(
            "this site has no rows",
            "a site without rows does not take part: leave it out of the roster",
        ));
    }
    if config.rows.len() as u64 > config.terms.max_rows {
        return Err(round::RoundError::TooManyRows { max_rows: config.terms.max_rows }.into());
    }
    let mut counting = tokio::spawn(Talk::new(&config, PartyId::Intermediary)?.run());
    let mut clustering = tokio::spawn(Talk::new(&config, PartyId::Coordinator)?.run());
    let abort = [counting.abort_handle(), clustering.abort_handle()];
    let _guard = AbortOnDrop(abort);
    let mut counted = None;
    loop {
        tokio::select! {
            done = &mut counting, if counted.is_none() => match flatten(done) {
                Ok(report) => counted = Some(report),
                // The coordinator tells the same story, with its own words; give it a moment.
                Err(failure) => {
                    return match tokio::time::timeout(Duration::from_secs(2), &mut clustering).await {
                        Ok(done) => Err(flatten(done).err().filter(|f| f.code != Code::Network).unwrap_or(failure)),
                        Err(_) => Err(failure),
                    };
                }
            },
            done = &mut clustering => {
                let mut report = flatten(done)?;
                if report.model.is_some() && counted.is_none() {
                    // Let the farewell of the intermediary arrive.
                    counted = tokio::time::timeout(Duration::from_secs(5), &mut counting).await.ok().and_then(|d| flatten(d).ok());
                }
                if let Some(counted) = counted {
                    report.traffic.add(&counted.traffic);
                    report.answered += counted.answered;
                }
                return Ok(report);
            }
        }
    }
}

struct AbortOnDrop([tokio::task::AbortHandle; 2]);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

fn flatten<T>(done: Result<Result<T, Failure>, tokio::task::JoinError>) -> Result<T, Failure> {
    done.unwrap_or_else(|e| Err(Failure::new(Code::Internal, e, "this is a defect, please report it")))
}

/// The conversation with one aggregator, over as many connections as it takes.
struct Talk {
    config: ClientConfig,
    aggregator: PartyId,
    address: SocketAddr,
    site: Site,
    journal: Option<Journal>,
    first: Option<Query>,
    report: ClientReport,
}

/// How a connection ended.
enum Ending {
    Finished,
    Lost(CarrierError),
}

impl Talk {
    fn new(config: &ClientConfig, aggregator: PartyId) -> Result<Talk, Failure> {
        let address = match aggregator {
            PartyId::Intermediary => config.intermediary,
            _ => config.coordinator,
        };
        let session = message::session(&config.terms.hash(), &config.roster.hash(), aggregator);
        let site_config = || SiteConfig {
            identity: config.identity.clone(),
            roster: config.roster.clone(),
            terms: config.terms.clone(),
            floor: config.floor.clone(),
            aggregator,
        };
        let (journal, site) = match &config.state {
            None => (None, Site::new(site_config())?),
            Some(folder) => {
                let (journal, records) = Journal::open(folder, &session)?;
                if !records.is_empty() {
                    tracing::info!("taking up an interrupted run from the journal");
                }
                (Some(journal), Site::restore(site_config(), records)?)
            }
        };
        let first = config.work.first_query()?;
        Ok(Talk {
            config: config.clone(),
            aggregator,
            address,
            site,
            journal,
            first: Some(first),
            report: ClientReport::default(),
        })
    }

    fn name(&self) -> String {
        self.config.roster.name_of(self.aggregator)
    }

    async fn run(mut self) -> Result<ClientReport, Failure> {
        let mut patience = self.config.patience;
        loop {
            let line = Line::connect(
                &self.config.identity,
                &self.config.roster,
                &self.config.terms,
                self.aggregator,
                self.address,
                patience,
            )
            .await?;
            match self.converse(line).await? {
                Ending::Finished => {
                    if let Some(journal) = &mut self.journal
                        && !self.report.vanished
                    {
                        // The keys are of no more use; what was consumed is remembered beyond the run.
                        journal.rewrite(&self.site.memory())?;
                    }
                    return Ok(self.report);
                }
                Ending::Lost(e) => {
                    tracing::warn!(peer = %self.name(), "connection lost ({e}); dialling again");
                    // Once the run is on, an aggregator that stays away is gone.
                    patience = self.config.patience.min(Duration::from_secs(30));
                }
            }
        }
    }

    async fn converse(&mut self, mut line: Line) -> Result<Ending, Failure> {
        loop {
            let bytes = match line.recv().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(Ending::Lost(CarrierError::Closed { reason: "the other side hung up".into() })),
                Err(e @ CarrierError::Frame(_)) => return Err(e.into()),
                Err(e) => return Ok(Ending::Lost(e)),
            };
            if let Some(view) = &self.config.view
                && let Ok(mut view) = view.lock()
            {
                view.push((self.aggregator, bytes.clone()));
            }
            match message::kind_of(&bytes) {
                Some(Kind::Finished) => {
                    let finished: Finished = line.open(&bytes, Kind::Finished)?;
                    if self.aggregator == PartyId::Coordinator {
                        let model = read_model(&finished.model).map_err(|why| {
                            Failure::new(Code::Peer, format!("{} sent an unusable model: {why}", self.name()), "")
                        })?;
                        self.report.model = Some(model);
                    }
                    line.finish().await;
                    return Ok(Ending::Finished);
                }
                Some(Kind::Aborted) => {
                    let aborted: Aborted = line.open(&bytes, Kind::Aborted)?;
                    return Err(line::aborted(&self.name(), &aborted));
                }
                _ => {}
            }
            if let Err(e) = self.site.handle(Input::Message(&bytes), &mut system_rng()) {
                self.failed_message(e, &bytes)?;
            }
            if self.drain(&mut line).await? {
                self.report.vanished = true;
                return Ok(Ending::Finished);
            }
        }
    }

    /// Decides whether an error of the state machine ends this site's part.
    fn failed_message(&mut self, error: Error, bytes: &[u8]) -> Result<(), Failure> {
        match error.rule() {
            // A message of a deck or round that is over: it was under way when this side moved on.
            Some(Rule("FRM-7")) => {
                tracing::debug!("ignored: {error}");
                Ok(())
            }
            // The aggregator was started anew. What this site knew of the run before is of no use in this one.
            Some(Rule("KEX-9")) => {
                tracing::warn!("{} began a new run; joining it with fresh keys", self.name());
                let memory = self.site.memory();
                if let Some(journal) = &mut self.journal {
                    journal.rewrite(&memory)?;
                }
                let config = SiteConfig {
                    identity: self.config.identity.clone(),
                    roster: self.config.roster.clone(),
                    terms: self.config.terms.clone(),
                    floor: self.config.floor.clone(),
                    aggregator: self.aggregator,
                };
                self.site = Site::restore(config, memory)?;
                self.first = Some(self.config.work.first_query()?);
                self.site.handle(Input::Message(bytes), &mut system_rng())?;
                Ok(())
            }
            _ => Err(error.into()),
        }
    }

    /// Does what the state machine wants, in order. True where this site is to vanish.
    async fn drain(&mut self, line: &mut Line) -> Result<bool, Failure> {
        let mut refused = None;
        while let Some(output) = self.site.poll() {
            match output {
                Output::Persist(record) => {
                    if let Some(journal) = &mut self.journal {
                        journal.append(&record)?;
                    }
                }
                Output::Rewrite(records) => {
                    if let Some(journal) = &mut self.journal {
                        journal.rewrite(&records)?;
                    }
                }
                Output::Send { bytes, discloses } => {
                    if self.vanishes(Step::BeforeUnmask) && discloses == Disclosure::SelfMaskShares {
                        return Ok(true);
                    }
                    let name = self.config.roster.name_of(PartyId::Site(self.site.number()));
                    self.report.traffic.sent(&name, &bytes);
                    tracing::debug!(bytes = bytes.len(), ?discloses, "sent");
                    // A broken link shows at the next receive; the state machine repeats what is asked for again.
                    let sent = line.send(&bytes).await;
                    if sent && discloses == Disclosure::MaskedWords {
                        if self.vanishes(Step::AfterInput) {
                            line.finish().await;
                            return Ok(true);
                        }
                        self.report.answered += 1;
                    }
                }
                Output::Event(Event::Asked(asked)) => {
                    if self.vanish_now(&asked) {
                        return Ok(true);
                    }
                    refused = self.answer(asked).await?;
                }
                Output::Event(Event::Released { missing, .. }) if !missing.is_empty() => {
                    tracing::info!(missing = missing.len(), "round closed without some sites");
                }
                Output::Event(_) => {}
            }
        }
        if let Some(e) = refused {
            line.finish().await;
            return Err(e.into());
        }
        Ok(false)
    }

    fn vanishes(&self, at: Step) -> bool {
        // The round under way is the one after those answered; the answer to it counts once it is sent.
        self.aggregator == PartyId::Coordinator
            && self.config.vanish.is_some_and(|v| {
                let round = if at == Step::BeforeUnmask { self.report.answered } else { self.report.answered + 1 };
                v.at == at && v.round == round
            })
    }

    fn vanish_now(&self, asked: &Asked) -> bool {
        self.aggregator == PartyId::Coordinator
            && self.config.vanish.is_some_and(|v| v.at == Step::BeforeInput && v.round == asked.rounds)
    }

    /// Checks a question against plan and policy, computes the answer and hands it to the state machine. Returns the
    /// reason where this site refuses instead.
    async fn answer(&mut self, asked: Asked) -> Result<Option<Error>, Failure> {
        let refusal = |why: String, rule: &'static str| Error::Refused { what: why, rule: Rule(rule) };
        let checked = self.check(&asked).map_err(|why| refusal(why, "POL-3")).and_then(|question| {
            policy::decide(&self.config.terms, &self.config.floor, &asked).map(|consent| (question, consent))
        });
        let (question, consent) = match checked {
            Ok(ok) => ok,
            Err(e) => {
                let rule = e.rule().map_or("POL-3", |r| r.0).to_owned();
                self.site.handle(Input::Refuse { context: asked.context, rule }, &mut system_rng())?;
                return Ok(Some(e));
            }
        };
        let rows = self.config.rows.clone();
        let (sites, max_rows) = (self.config.roster.sites.len(), self.config.terms.max_rows);
        let values = tokio::task::spawn_blocking(move || round::contribute(&question, &rows, sites, max_rows))
            .await
            .map_err(|e| Failure::new(Code::Internal, e, "this is a defect, please report it"))??;
        self.site.handle(Input::Contribute { consent, values }, &mut system_rng())?;
        Ok(None)
    }

    fn check(&mut self, asked: &Asked) -> Result<Question, String> {
        let question = Question::from_bytes(&asked.query).map_err(|e| e.to_string())?;
        let domain = self.config.rows.domain();
        let layout = question
            .layout(domain, self.config.roster.sites.len(), self.config.terms.max_rows)
            .map_err(|e| e.to_string())?;
        if layout.words() != asked.words {
            return Err(format!("the answer has {} words, {} were asked for", layout.words(), asked.words));
        }
        match (&question, self.aggregator) {
            (Question::CountRows, PartyId::Intermediary) => Ok(question),
            (Question::Cluster(query), PartyId::Coordinator) => {
                self.config.work.admits(query)?;
                if asked.rounds > self.config.work.max_questions() {
                    return Err(format!(
                        "question {} where the plan has {}",
                        asked.rounds,
                        self.config.work.max_questions()
                    ));
                }
                if asked.rounds == 1 && self.first.take().is_some_and(|first| first != *query) {
                    return Err("the first question does not start from the plan's centres".into());
                }
                Ok(question)
            }
            _ => Err(format!("{} is not this aggregator's to ask", question.name())),
        }
    }
}

fn read_model(bytes: &[u8]) -> Result<Model, String> {
    let model: Model = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    model.check()?;
    Ok(model)
}
