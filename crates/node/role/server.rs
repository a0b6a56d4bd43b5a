//! The coordinator: runs the plan's method as a conversation in totals.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use veilsum_cluster::{Batch, Outcome, Query};
use veilsum_proto::{
    aggregator::{self, Timing},
    codec,
    evidence::Documents,
    identity::Identity,
    message::{self, Kind},
    plan::Terms,
    roster::{PartyId, Roster},
    suite::Hash,
};

use super::{
    View,
    hub::{Hub, HubConfig, HubEvent},
};
use crate::{
    cli::exit::{Code, Failure},
    control::{Aborted, CountReady, CountReply, CountRequest, Finished, Held, JudgeReply, JudgeRequest, clean},
    conversation::{Conversation, Turn},
    evidence::{self, Case},
    model::Model,
    privacy::Privacy,
    round::{self, Form, Layout},
    store::Said,
    traffic::Traffic,
    work::Work,
};

/// Who runs, and where.
pub struct ServerConfig {
    /// This party's identity.
    pub identity: Arc<Identity>,
    /// The verified roster.
    pub roster: Arc<Roster>,
    /// The verified plan.
    pub terms: Arc<Terms>,
    /// The plan's method part.
    pub work: Arc<Work>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// How long to wait.
    pub timing: Timing,
    /// Records received frames.
    pub view: Option<View>,
    /// Folder for signed evidence against sites, if it is to be kept.
    pub evidence: Option<PathBuf>,
    /// Folder of the journal from which a restart takes the run up; without one, a crash ends the run.
    pub state: Option<PathBuf>,
    /// Told the bound address once the port is open.
    pub bound: Option<tokio::sync::oneshot::Sender<SocketAddr>>,
    /// Told how the run goes.
    pub progress: Box<dyn Fn(Progress) + Send + Sync>,
}

/// How a run goes, for a person who watches.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Keys are exchanged.
    Ready {
        /// Sites in the deck.
        sites: usize,
        /// Threshold.
        threshold: usize,
    },
    /// A question was answered.
    Round {
        /// Counted from 1.
        number: u32,
        /// Questions of the whole run at most.
        of: u32,
        /// What was asked.
        what: &'static str,
        /// Sites in the total.
        sites: usize,
    },
    /// A site is out of the run.
    Lost {
        /// Its name.
        site: String,
        /// Why.
        why: String,
    },
}

/// The result of a run, as the coordinator knows it.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// Name of the method.
    pub method: &'static str,
    /// Number of clusters.
    pub k: u32,
    /// Fuzzifier that memberships are computed with.
    pub m: f64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// K x d, original units.
    pub centres: Vec<Vec<f64>>,
    /// K x d, box units.
    pub centres_box: Vec<Vec<f64>>,
    /// Weight of every cluster in the last round: sums of u^m, rows or mass, as the method counts.
    pub weights: Vec<f64>,
    /// Rows of the cohort.
    pub n_total: Option<u64>,
    /// Who told `n_total`: the intermediary's count, or the sum of all memberships where a counted site left the run.
    pub n_total_from: &'static str,
    /// Rounds that moved the centres.
    pub rounds: u32,
    /// Whether the centres came to rest on totals that were asked.
    pub converged: bool,
    /// How much of the result rests on totals that were estimated from earlier ones, where the run could not ask to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extrapolated: Option<veilsum_cluster::method::Extrapolation>,
    /// Objective: J_m for fuzzy methods, sum of squared distances to the nearest centre for hard ones; squared units of the
    /// questions. `null` where the run ended before it was asked for, as is `fuzzy_davies_bouldin` then.
    pub objective: f64,
    /// The objective over N.
    pub objective_per_row: f64,
    /// Validity indices.
    pub indices: veilsum_cluster::Indices,
    /// One point for every K that was tried; empty where the plan names one K.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<veilsum_cluster::method::CurvePoint>,
    /// Questions put to the sites, each one masked sum.
    pub questions: u32,
    /// How the cohort standardised working units, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardisation: Option<veilsum_cluster::Transform>,
    /// Rows by cluster and label, K x classes row-major, where the plan releases them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contingency: Option<Vec<f64>>,
    /// Sites in the last total.
    pub cohort: Vec<String>,
    /// Sites of the roster that are not in it.
    pub missing: Vec<String>,
    /// Hash of the plan.
    pub plan_hash: String,
    /// The shift of every round.
    pub history: Vec<veilsum_cluster::Round>,
    /// Frames by sender and phase, as the coordinator saw them.
    pub traffic: Traffic,
    /// The differential privacy that the run promises, if it does: then weights, counts and indices are noisy too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
    /// The model that the sites received.
    #[serde(skip)]
    pub model: Option<Model>,
}

/// Runs the coordinator to the end of one run.
///
/// # Errors
/// A [`Failure`] with its exit code; everybody else is told before it returns.
pub async fn run(mut config: ServerConfig) -> Result<RunResult, Failure> {
    let mut hub = Hub::open(
        HubConfig {
            identity: config.identity.clone(),
            roster: config.roster.clone(),
            terms: config.terms.clone(),
            role: PartyId::Coordinator,
            timing: config.timing,
            slots: config.terms.slots,
            view: config.view.clone(),
            state: config.state.clone(),
        },
        config.listen,
    )
    .await?;
    if let (Some(bound), Some(address)) = (config.bound.take(), hub.address()) {
        let _ = bound.send(address);
    }
    let mut run = Run { hub: &mut hub, config: &config, counted: None, lost: Vec::new() };
    let result = tokio::select! {
        result = run.whole() => result,
        _ = tokio::signal::ctrl_c() => Err(Failure::new(Code::Interrupted, "interrupted", "start the run again")),
    };
    // Where its files lie is nobody else's business.
    let unwritten = hub.broken.as_ref().map(|_| "it cannot write its journal");
    let result = result.map_err(|failure| hub.broken.take().unwrap_or(failure));
    // An interruption can be mended, and the run taken up; what was found wrong is found again.
    if result.as_ref().is_err_and(|f| [Code::Quorum, Code::Peer, Code::Policy, Code::Denied].contains(&f.code)) {
        hub.forget();
    }
    let model = result.as_ref().ok().and_then(|r| r.model.as_ref()).and_then(|m| serde_json::to_vec(m).ok());
    let traffic = hub
        .close(|party| match (&result, &model) {
            (Ok(_), Some(model)) => {
                let model = if matches!(party, PartyId::Site(_)) { model.clone() } else { Vec::new() };
                Some((Kind::Finished, codec::encode(&Finished { model })))
            }
            (Err(failure), _) => Some((
                Kind::Aborted,
                codec::encode(&Aborted { code: failure.code as u8, why: clean(unwritten.unwrap_or(&failure.message)) }),
            )),
            _ => None,
        })
        .await;
    result.map(|mut r| {
        r.traffic = traffic;
        r
    })
}

struct Run<'a> {
    hub: &'a mut Hub,
    config: &'a ServerConfig,
    counted: Option<Vec<u16>>,
    lost: Vec<String>,
}

impl Run<'_> {
    async fn whole(&mut self) -> Result<RunResult, Failure> {
        self.prepare().await?;
        let work = &self.config.work;
        let mut conversation = Conversation::of(work, self.form()?)?;
        let of = work.max_questions();
        let mut cohort = Vec::new();
        loop {
            let number = conversation.questions();
            match conversation.turn() {
                Turn::Done(_) => break,
                Turn::Judge(batch) => {
                    let (what, batch) = (batch.kind(), (**batch).clone());
                    // No question of this party follows a judgement.
                    self.hub.close_rounds();
                    let reply = self.ask_judge(batch, &cohort).await?;
                    (self.config.progress)(Progress::Round { number, of, what, sites: reply.cohort.len() });
                    let verdicts = reply.open().map_err(|why| {
                        let what = format!("the intermediary's verdicts are not usable: {}", clean(&why));
                        Failure::new(Code::Peer, what, "speak to its operator")
                    })?;
                    if !reply.cohort.iter().all(|site| cohort.contains(site)) {
                        let what = "the intermediary's verdicts cover a site that was not in the last round";
                        return Err(Failure::new(Code::Peer, what, "speak to its operator"));
                    }
                    cohort = reply.cohort;
                    conversation.judged(&verdicts)?;
                }
                Turn::Ask(question, layout) => {
                    let what = question.name();
                    self.hub.ask(question.to_bytes(), layout.words());
                    let (values, answered) = self.total().await?;
                    (self.config.progress)(Progress::Round { number, of, what, sites: answered.len() });
                    cohort = answered;
                    conversation.take(&values, cohort.len())?;
                }
            }
        }
        self.hub.close_rounds();
        let Turn::Done(outcome) = conversation.turn() else {
            return Err(Failure::new(Code::Internal, "a run without an outcome", "this is a defect, please report it"));
        };
        if outcome.n_total.is_some_and(|n| n < self.config.terms.min_total_rows) {
            return Err(Failure::new(
                Code::Policy,
                format!(
                    "the rows of the sites that are left are below the plan's floor of {}",
                    self.config.terms.min_total_rows
                ),
                "run again when the missing sites are there",
            ));
        }
        let n = self.ask_count(&cohort).await;
        self.result(outcome, &cohort, n)
    }

    /// Waits for the first deck and for the intermediary's word that the rows are counted.
    async fn prepare(&mut self) -> Result<(), Failure> {
        let waited = Duration::from_millis(self.config.timing.join + 4 * self.config.timing.phase);
        let deadline = Instant::now() + waited;
        let mut ready = false;
        // The first question is put after the count: where there is a total, the rows were counted.
        if self.hub.known > 0 {
            self.counted = Some(Vec::new());
        }
        while !ready || self.counted.is_none() {
            match self.hub.next(Some(deadline)).await {
                HubEvent::Aggregator(aggregator::Event::DeckReady { members, threshold, .. }) => {
                    ready = true;
                    (self.config.progress)(Progress::Ready { sites: members.len(), threshold });
                }
                HubEvent::Aggregator(event) => self.event(event)?,
                HubEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
                HubEvent::Deadline => {
                    let who = if ready { self.config.roster.intermediary.name.as_str() } else { "enough sites" };
                    return Err(Failure::new(
                        Code::Network,
                        format!("waited {} s for {who} in vain", waited.as_secs()),
                        "check that every party runs and reaches its port, then start the run again",
                    ));
                }
            }
        }
        Ok(())
    }

    async fn total(&mut self) -> Result<(Vec<u64>, Vec<u16>), Failure> {
        loop {
            match self.hub.next(None).await {
                HubEvent::Aggregator(aggregator::Event::Total { values, cohort, .. }) => return Ok((values, cohort)),
                HubEvent::Aggregator(event) => self.event(event)?,
                HubEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
                HubEvent::Deadline => {}
            }
        }
    }

    fn event(&mut self, event: aggregator::Event) -> Result<(), Failure> {
        log(&self.config.roster, &event);
        match event {
            aggregator::Event::Failed(e) => Err(e.into()),
            aggregator::Event::Lost { site, why } => {
                let site = self.config.roster.name_of(PartyId::Site(site));
                (self.config.progress)(Progress::Lost { site: site.clone(), why: why.to_string() });
                self.lost.push(format!("{site}: {why}"));
                Ok(())
            }
            aggregator::Event::Caught { site, frames } => {
                self.keep_evidence(site, frames);
                Ok(())
            }
            aggregator::Event::WrongShare { holder, owner } => {
                let name = |s| self.config.roster.name_of(PartyId::Site(s));
                self.lost.push(format!(
                    "a share of the self-mask of {} that came from {} was wrong and was corrected; one of the two is at fault",
                    name(owner),
                    name(holder)
                ));
                Ok(())
            }
            aggregator::Event::TooLate(site) => {
                too_late(self.hub, site);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What a site signed against the rules, for somebody else to judge.
    fn keep_evidence(&mut self, site: u16, frames: Vec<Vec<u8>>) {
        let Some(folder) = &self.config.evidence else { return };
        let documents = Documents { roster: &self.config.roster, terms: &self.config.terms };
        let (case, claim) = match frames.len() {
            1 => (Case::Input, ("INP-4", "committed to another vector than it sent")),
            _ => (Case::Twice, ("INP-2", "answered one question twice, with different vectors")),
        };
        let said = |frame| Said { directory: Hash::default(), frame };
        let frames: Vec<Said> = frames.into_iter().map(said).collect();
        let name = self.config.roster.name_of(PartyId::Site(site));
        let kept = std::fs::create_dir_all(folder).map_err(|e| e.to_string()).and_then(|()| {
            evidence::write(folder, documents, PartyId::Site(site), claim, case, &frames).map_err(|f| f.message)
        });
        self.lost.push(match kept {
            Ok(path) => format!("{name} {} [{}]; signed evidence: {}", claim.1, claim.0, path.display()),
            Err(why) => format!("{name} {} [{}]; the evidence could not be kept: {why}", claim.1, claim.0),
        });
    }

    fn control(&mut self, from: PartyId, kind: Kind, bytes: &[u8]) -> Result<(), Failure> {
        let session = self.hub.session();
        match (from, kind) {
            (PartyId::Intermediary, Kind::CountReady) => {
                let ready: CountReady = self.hub.open_control(from, &session, kind, bytes)?;
                self.counted = Some(ready.cohort);
                Ok(())
            }
            (PartyId::Intermediary, Kind::Aborted) => {
                let aborted: Aborted = self.hub.open_control(from, &session, kind, bytes)?;
                Err(super::line::aborted(&self.config.roster.intermediary.name, &aborted))
            }
            _ => {
                tracing::warn!(from = %self.config.roster.name_of(from), ?kind, "ignored a message out of place");
                Ok(())
            }
        }
    }

    fn form(&self) -> Result<Form, Failure> {
        let config = &self.config;
        Ok(Form::of(&config.work, &config.terms, config.roster.sites.len())?)
    }

    /// Lays the final centres before the sites and has the intermediary judge them.
    async fn ask_judge(&mut self, batch: Batch, cohort: &[u16]) -> Result<JudgeReply, Failure> {
        let domain = self.config.work.domain()?;
        let layout = Layout::of_judged(&batch, &domain, &self.form()?)?;
        let clusters = batch.queries.iter().flat_map(Query::points).map(|c| c.k() as u32).collect();
        let grouped = batch.queries.iter().map(|query| !matches!(query, Query::Ungrouped(_))).collect();
        let digest = round::digest(&batch);
        let request = JudgeRequest { digest, clusters, grouped, exponents: layout.exponents() };
        let held = Held { batch };
        for site in cohort {
            self.hub.tell(PartyId::Site(*site), Kind::Held, &held);
        }
        let gone = || {
            Failure::new(
                Code::Network,
                "the intermediary, which judges the result by the plan, is gone",
                "start the run again with a new plan, or let the coordinator judge",
            )
        };
        if !self.hub.tell(PartyId::Intermediary, Kind::JudgeRequest, &request) {
            return Err(gone());
        }
        let deadline = Instant::now() + Duration::from_millis(5 * self.config.timing.phase);
        loop {
            let again = Instant::now() + Duration::from_millis(self.config.timing.resend);
            match self.hub.next(Some(deadline.min(again))).await {
                HubEvent::Control { from: PartyId::Intermediary, kind: Kind::JudgeReply, bytes } => {
                    let session = self.hub.session();
                    return Ok(self.hub.open_control(PartyId::Intermediary, &session, Kind::JudgeReply, &bytes)?);
                }
                HubEvent::Deadline if Instant::now() >= deadline => return Err(gone()),
                // A site whose link was down, or whose queue was full, has not got it.
                HubEvent::Deadline => {
                    for site in cohort {
                        self.hub.tell(PartyId::Site(*site), Kind::Held, &held);
                    }
                }
                HubEvent::Aggregator(event) => self.event(event)?,
                HubEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
            }
        }
    }

    /// Asks the intermediary for the total row count; `None` where it is withheld or the intermediary has gone.
    async fn ask_count(&mut self, cohort: &[u16]) -> Option<u64> {
        let request = CountRequest { cohort: cohort.to_vec() };
        if !self.hub.tell(PartyId::Intermediary, Kind::CountRequest, &request) {
            return None;
        }
        let deadline = Instant::now() + Duration::from_millis(self.config.timing.phase);
        loop {
            match self.hub.next(Some(deadline)).await {
                HubEvent::Control { from: PartyId::Intermediary, kind: Kind::CountReply, bytes } => {
                    let session = self.hub.session();
                    let reply =
                        self.hub.open_control::<CountReply>(PartyId::Intermediary, &session, Kind::CountReply, &bytes);
                    return reply.ok().and_then(|r| r.total);
                }
                HubEvent::Control { from: PartyId::Intermediary, kind: Kind::Aborted, .. } | HubEvent::Deadline => {
                    return None;
                }
                // Every total is in: whoever leaves now takes nothing from the result.
                HubEvent::Aggregator(event) => log(&self.config.roster, &event),
                HubEvent::Control { .. } => {}
            }
        }
    }

    fn result(&self, outcome: &Outcome, cohort: &[u16], counted: Option<u64>) -> Result<RunResult, Failure> {
        let work = &self.config.work;
        let (centres, centres_box) = work.units(&outcome.centres)?;
        let all: Vec<u16> = (0..self.config.roster.sites.len() as u16).collect();
        let missing: Vec<u16> = all.into_iter().filter(|s| !cohort.contains(s)).collect();
        let mut warnings = self.lost.clone();
        let privacy = Privacy::of(work, &self.form()?);
        let promised = |note: &&String| privacy.as_ref().is_some_and(|privacy| privacy.promise == **note);
        warnings.extend(outcome.notes.iter().filter(|note| !promised(note)).cloned());
        if !missing.is_empty() {
            warnings.push(
                "a site left the run: the totals before and after differ by what it had sent; see threat-model.md"
                    .into(),
            );
        }
        if let (Some(counted), Some(summed)) = (counted, outcome.n_total)
            && counted != summed
            && work.recipe.noise.is_none()
        {
            warnings.push(
                "the intermediary's row count and the sum of all memberships differ: a site told them different things"
                    .into(),
            );
        }
        let model = Model::of(work, &self.config.terms.hash(), outcome)?;
        Ok(RunResult {
            method: work.method_name(),
            k: outcome.centres.k() as u32,
            m: outcome.m,
            columns: work.columns.iter().map(|c| c.name.clone()).collect(),
            centres,
            centres_box,
            weights: outcome.weights.clone(),
            n_total: counted.or(outcome.n_total),
            n_total_from: if counted.is_some() { "intermediary" } else { "sum of memberships" },
            rounds: outcome.rounds,
            converged: outcome.converged,
            extrapolated: outcome.extrapolated,
            objective: outcome.objective,
            objective_per_row: outcome.objective_per_row,
            indices: outcome.indices.clone(),
            curve: outcome.curve.clone(),
            questions: outcome.questions,
            standardisation: outcome.transform.clone(),
            contingency: outcome.contingency.clone(),
            cohort: self.hub.names(cohort),
            missing: self.hub.names(&missing),
            plan_hash: self.config.terms.hash().to_string(),
            history: outcome.history.clone(),
            traffic: Traffic::default(),
            privacy,
            warnings,
            model: Some(model),
        })
    }
}

/// Tells a site that this run goes on without it.
pub(crate) fn too_late(hub: &mut Hub, site: u16) {
    let aborted = Aborted {
        code: Code::Denied as u8,
        why: "this run began without this site, or went on without it; it can take part in the next one".into(),
    };
    hub.tell(PartyId::Site(site), Kind::Aborted, &aborted);
}

/// One line for what an aggregator's machine reports.
pub(crate) fn log(roster: &Roster, event: &aggregator::Event) {
    match event {
        aggregator::Event::Lost { site, why } => {
            tracing::info!(site = %roster.name_of(PartyId::Site(*site)), "out of this run: {}", clean(&why.to_string()));
        }
        aggregator::Event::TooLate(site) => {
            tracing::warn!(site = %roster.name_of(PartyId::Site(*site)), "came too late for this run; it joins the next");
        }
        aggregator::Event::DeckReady { index, members, threshold } => {
            tracing::info!(deck = index, sites = members.len(), threshold, "keys are exchanged");
        }
        // The caller reports it as its own failure.
        aggregator::Event::Failed(e) => tracing::debug!("{e}"),
        _ => {}
    }
}

/// The kind of a frame, for those who look at views.
pub fn kind(frame: &[u8]) -> Option<Kind> {
    message::kind_of(frame)
}
