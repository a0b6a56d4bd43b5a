//! A site's conversation with one aggregator: frames in, state machine, frames out, over as many connections as it takes.

use std::{net::SocketAddr, time::Duration};

use tokio::sync::watch;
use veilsum_cluster::Query;
use veilsum_proto::{
    Error, Rule,
    message::{self, Disclosure, Kind},
    policy::{self, Asked},
    roster::PartyId,
    site::{Event, Input, Output, Site, SiteConfig},
    suite::Hash,
};

use super::{
    client::{ClientConfig, ClientReport, Step},
    line::{self, Line},
    system_rng,
};
use crate::{
    carrier::CarrierError,
    cli::exit::{Code, Failure},
    control::{Aborted, Finished, clean},
    model::Model,
    round::{self, Question},
    store::Journal,
};

/// Between two attempts to dial after a connection was lost: two processes of one identity would otherwise take the
/// connection from each other without pause.
const PAUSE: Duration = Duration::from_secs(1);

/// The conversation with one aggregator, over as many connections as it takes.
pub(super) struct Talk {
    config: ClientConfig,
    aggregator: PartyId,
    address: SocketAddr,
    site: Site,
    journal: Option<Journal>,
    first: Option<Query>,
    report: ClientReport,
    /// The last question of the run was put.
    validated: bool,
    /// Shares have left for at least one question, in this process or one before it.
    released: bool,
}

/// How a connection ended.
enum Ending {
    Finished,
    Lost(CarrierError),
}

impl Talk {
    pub(super) fn new(config: &ClientConfig, aggregator: PartyId) -> Result<Talk, Failure> {
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
        let mut released = false;
        let (journal, site) = match &config.state {
            None => (None, Site::new(site_config())?),
            Some(folder) => {
                let (journal, records) = Journal::open(folder, &session)?;
                if records.iter().any(|r| r.name() == "deck") {
                    tracing::info!("taking up an interrupted run from the journal");
                    released = records.iter().any(|r| r.name() == "released");
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
            validated: false,
            released,
        })
    }

    fn name(&self) -> String {
        self.config.roster.name_of(self.aggregator)
    }

    /// Talks until the aggregator says that the run is over, something fails, or `stop` says so.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<ClientReport, Failure> {
        let mut patience = self.config.patience;
        loop {
            let connect = Line::connect(
                &self.config.identity,
                &self.config.roster,
                &self.config.terms,
                self.aggregator,
                self.address,
                patience,
            );
            let line = tokio::select! {
                line = connect => line,
                Ok(_) = stop.wait_for(|s| *s) => return self.over(),
            };
            let mut line = match line {
                // The rows are counted before the first round; without the intermediary the run goes on.
                Err(f) if f.code == Code::Network && self.aggregator == PartyId::Intermediary && self.released => {
                    tracing::warn!("{}; its part is done, the run goes on", f.message);
                    return self.over();
                }
                line => line?,
            };
            let ending = tokio::select! {
                ending = self.converse(&mut line) => ending,
                // Only on a word to stop. Where this process is interrupted, the journal stays as it is, to come back with.
                Ok(_) = stop.wait_for(|s| *s) => Ok(Ending::Finished),
            };
            match ending {
                Ok(Ending::Finished) => {
                    if !self.report.vanished {
                        line.finish().await;
                    }
                    return self.over();
                }
                Ok(Ending::Lost(e)) => {
                    tracing::warn!(peer = %self.name(), "connection lost ({e}); dialling again");
                    tokio::time::sleep(PAUSE).await;
                    // Once the run is on, an aggregator that stays away is gone.
                    patience = self.config.patience.min(Duration::from_secs(30));
                }
                Err(failure) => {
                    line.finish().await;
                    return Err(failure);
                }
            }
        }
    }

    /// The run is over for this site: the keys are of no more use; what was consumed is remembered beyond it.
    fn over(mut self) -> Result<ClientReport, Failure> {
        if let Some(journal) = &mut self.journal
            && !self.report.vanished
        {
            journal.rewrite(&self.site.memory())?;
        }
        Ok(self.report)
    }

    async fn converse(&mut self, line: &mut Line) -> Result<Ending, Failure> {
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
                        let model = read_model(&finished.model, &self.config).map_err(|why| {
                            let what = format!("{} sent an unusable model: {}", self.name(), clean(&why));
                            Failure::new(
                                Code::Peer,
                                what,
                                "speak to its operator; the centres of the rounds are in nobody's file",
                            )
                        })?;
                        self.report.model = Some(model);
                    }
                    return Ok(Ending::Finished);
                }
                Some(Kind::Aborted) => {
                    let aborted: Aborted = line.open(&bytes, Kind::Aborted)?;
                    if self.aggregator == PartyId::Intermediary && self.released {
                        // The rows are counted; whether the run goes on is the coordinator's to say.
                        tracing::warn!("{} ended its part: {}", self.name(), clean(&aborted.why));
                        return Ok(Ending::Finished);
                    }
                    return Err(line::aborted(&self.name(), &aborted));
                }
                _ => {}
            }
            if let Err(e) = self.site.handle(Input::Message(&bytes), &mut system_rng()) {
                self.tell_refusal(&e, &bytes, line).await?;
                self.failed_message(e, &bytes)?;
            }
            if self.drain(line).await? {
                self.report.vanished = true;
                return Ok(Ending::Finished);
            }
        }
    }

    /// Where this site's own rules forbid what was asked, the aggregator is told under which rule.
    async fn tell_refusal(&mut self, error: &Error, bytes: &[u8], line: &mut Line) -> Result<(), Failure> {
        let context = bytes.get(8..40).and_then(|c| <[u8; 32]>::try_from(c).ok());
        if let (Error::Refused { rule, .. }, Some(Kind::Ask), Some(context)) = (error, message::kind_of(bytes), context)
        {
            let input = Input::Refuse { context: Hash(context), rule: rule.0.to_owned() };
            self.site.handle(input, &mut system_rng())?;
            self.drain(line).await?;
        }
        Ok(())
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
                self.validated = false;
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
                Output::Event(Event::Released { missing, .. }) => {
                    self.released = true;
                    if !missing.is_empty() {
                        tracing::info!(missing = missing.len(), "round closed without some sites");
                    }
                }
                Output::Event(_) => {}
            }
        }
        if let Some(e) = refused {
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
                if self.validated {
                    return Err("a question after the run's last one".into());
                }
                self.validated = matches!(query, Query::FuzzyValidation { .. });
                let (put, planned) = (asked.rounds.max(asked.spent), self.config.work.max_questions());
                if put > planned {
                    return Err(format!(
                        "this would be question {put} under a plan of {planned}, over all its runs: agree on a new plan"
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

/// A model that is sound in itself and is one of this very plan.
fn read_model(bytes: &[u8], config: &ClientConfig) -> Result<Model, String> {
    let model: Model = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    model.check()?;
    let ours = Model::new(&config.work, &config.terms.hash(), &model.centres()?).map_err(|e| e.to_string())?;
    let same = (&ours.method, ours.k, ours.m.to_bits(), &ours.columns, ours.scaling, &ours.plan)
        == (&model.method, model.k, model.m.to_bits(), &model.columns, model.scaling, &model.plan);
    if !same {
        return Err("it is not one of this plan".into());
    }
    config.work.admits(&Query::FuzzyValidation { centres: model.centres()?, m: model.m })?;
    Ok(model)
}
