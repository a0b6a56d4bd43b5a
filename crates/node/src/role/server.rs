//! The coordinator: runs the plan's method as a conversation in totals.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use veilsum_proto::{
    aggregator::{self, Loss, Timing},
    codec,
    identity::from_hex,
    message::Kind,
    roster::{PartyId, Roster},
};

pub use super::progress::Progress;
use super::{
    aggregator_host::{AggregatorHost, HostEvent},
    config::{Party, patience, returning, waiting},
    notice::Notice,
    reception::Entrance,
    stop,
};
use crate::result::Outcome;
pub use crate::result::RunResult;
use crate::{
    agreed::Federation,
    app_messages::{Aborted, CountReady, Finished, clean},
    error::{Code, Failure},
    files::{self, Existing},
    method_session::{MethodSession, Turn},
    model::{Early, Model},
    report,
    signed::is_recomputed,
    store::{HubEntry, Journal},
};

/// What the coordinator is given.
pub struct ServerConfig {
    /// This party.
    pub party: Party,
    /// How the others come to it.
    pub entrance: Entrance,
    /// Sites, by their places in the roster, that take no part: they are not waited for.
    pub without: Vec<u16>,
    /// How long to wait.
    pub timing: Timing,
    /// How long a site is waited for at least that is lost in the midst of a run.
    pub loss_wait: Duration,
    /// Folder of the journal from which a restart takes the run up; without one, a crash ends the run.
    pub state: Option<PathBuf>,
}

impl ServerConfig {
    /// How long keys may take at most, from the first connection on.
    pub(super) fn patience(&self) -> Duration {
        patience(waiting(self.timing, self.loss_wait))
    }

    /// How long whatever the intermediary does may take at most, once keys are exchanged.
    pub(super) fn patience_in_run(&self) -> Duration {
        patience(returning(waiting(self.timing, self.loss_wait)))
    }

    /// How long the intermediary may stay away in the midst of a run.
    pub(super) fn back_within(&self) -> Duration {
        Duration::from_millis(returning(waiting(self.timing, self.loss_wait)).join)
    }
}

/// Runs the coordinator to the end of one run.
///
/// # Errors
/// A [`Failure`] with its exit code; everybody else is told before it returns.
pub async fn run(config: ServerConfig) -> Result<RunResult, Failure> {
    run_to(config, None).await
}

/// The same, with the result in the folder `out` before anybody is told that the run is over.
async fn run_to(config: ServerConfig, out: Option<&Path>) -> Result<RunResult, Failure> {
    let (party, timing, state) =
        (config.party.clone(), waiting(config.timing, config.loss_wait), config.state.as_deref());
    let mut hub = AggregatorHost::open(party, PartyId::Coordinator, timing, config.entrance.clone(), state).await?;
    if !hub.begun && hub.known == 0 {
        forget_the_end(config.state.as_deref())?;
    }
    hub.without(config.without.iter().copied());
    let conversation = MethodSession::of(&config.party.federation.work, config.party.federation.form()?)?;
    let mut run = Run {
        hub: &mut hub,
        config: &config,
        conversation,
        counted: false,
        first: Vec::new(),
        lost: BTreeSet::new(),
        refused: BTreeSet::new(),
        told: Vec::new(),
        said_why: false,
        reasons: BTreeMap::new(),
    };
    let result = stop::unless_told(run.until_it_ends(), "start the run again").await;
    config.party.tell(Progress::Ended);
    // A result rests on every total: where one may not be on disk there is none.
    hub.sync();
    let result = match hub.broken.take() {
        Some(failed) => Err(Failure { code: Code::Storage, ..failed }),
        None => result,
    };
    if result.as_ref().err().is_none_or(|failure| Code::ends_a_run(failure.code as u8)) {
        forget_the_end(config.state.as_deref())?;
        if result.is_err() {
            hub.forget();
        }
    }
    let writer = config.party.writer();
    let signed = async {
        let mut result = result?;
        result.traffic = hub.traffic.clone();
        result.openings = hub.openings().map(Into::into);
        result.signed = Some((hub.run(), writer.sign(&result, &hub.run())?));
        // Whoever waits for the end waits on: an end that is told is on disk.
        if let Some(out) = out {
            let write = stop::until_written(|| report::write(out, &result, None, &writer));
            let written = stop::unless_told(write, "start the run again").await;
            written.map_err(|failure| with_a_way_back(failure, config.state.as_deref()))?;
        }
        Ok::<_, Failure>(result)
    };
    let mut result = match signed.await {
        Ok(result) => result,
        Err(failure) => {
            // Nobody is told an end that is not on disk: links close as in a crash, and the run is taken up once there is space.
            let told = failure.code != Code::Storage;
            let last = codec::encode(&Aborted { code: failure.code as u8, why: clean(&failure.message) });
            hub.close(|_| told.then(|| (Kind::Aborted, last.clone()))).await;
            return Err(failure);
        }
    };
    let finished = last_word(&config.party.federation, &result);
    let last = [codec::encode(&Finished::default()), codec::encode(&finished)];
    let last = |party| Some((Kind::Finished, last[usize::from(matches!(party, PartyId::Site(_)))].clone()));
    result.traffic = match (&mut result.signed, finished.result.is_empty()) {
        (Some((_, signed)), false) => {
            hub.close_countersigned(last, |site, message| {
                if !signed.take(&writer.about(), site, &message) {
                    let site = config.party.name_of(PartyId::Site(site));
                    tracing::warn!(%site, "signed something else than the result: its signature was not taken");
                }
            })
            .await
        }
        _ => hub.close(last).await,
    };
    Ok(result)
}

/// A result that could not be written is not lost where there is a journal.
fn with_a_way_back(failure: Failure, state: Option<&Path>) -> Failure {
    let Some(state) = state.filter(|_| !Code::is_told_to_stop(failure.code as u8)) else { return failure };
    let back = "then start it again with the same command: it has all totals of this run";
    Failure { code: Code::Storage, advice: format!("{}; {back} ({})", failure.advice, state.display()), ..failure }
}

/// What the sites are told: the model, and where they recompute it the result ([RES-2]).
fn last_word(federation: &Federation, result: &RunResult) -> Finished {
    let model = result.model.as_ref().map_or_else(Vec::new, Model::to_bytes);
    let signed = result.signed.as_ref().filter(|_| is_recomputed(&federation.work));
    let fits = |text: &str| model.len() + text.len() + 1024 <= Kind::Finished.body_limit();
    match signed.map(|(_, signed)| signed) {
        Some(signed) if fits(&signed.text) => Finished {
            model,
            result: signed.text.clone().into_bytes(),
            signature: signed.by.first().and_then(|by| from_hex(&by.signature)).unwrap_or_default(),
        },
        _ => Finished { model, ..Finished::default() },
    }
}

/// The same, with the result written into `out` before the journal, from which a restart finds all totals, is emptied.
///
/// # Errors
/// Those of [`run`], and a [`Failure`] where nothing can be written.
pub async fn run_and_write(config: ServerConfig, out: &Path) -> Result<(RunResult, Vec<PathBuf>), Failure> {
    let (state, session) = (config.state.clone(), config.party.session(PartyId::Coordinator));
    let writer = config.party.writer();
    let result = run_to(config, Some(out)).await?;
    // Once more, with the sites' signatures and what went over the links until its end. What lies there is whole but for these.
    let mut written = stop::until_written(|| report::write(out, &result, None, &writer)).await?;
    written.extend(report::page::kept_beside(&out.join("result.json"), &writer.federation));
    if let Some(state) = state {
        stop::until_written(|| Journal::<HubEntry>::empty(&state, &session).map(drop)).await?;
    }
    Ok((result, written))
}

/// The file in the coordinator's state folder by which its operator ends a run for everybody.
const END: &str = "end";
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// Ends the run for everybody whose coordinator keeps its journal in `state`, now or when it is started again. All are told if members left it
/// because the ledger of another one was set back: that one has nobody else to tell it.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn end(state: &Path, set_back: bool) -> Result<(), Failure> {
    let why = if set_back { SET_BACK } else { "" };
    files::write_private(state.join(END), why.as_bytes(), Existing::Replace)
}

/// Why a run was ended that a member had left, by that member's word.
const SET_BACK: &str = ": a member left it and says that the ledger of another one was set back [LED-11]; whoever put a state folder back from \
                        a copy puts the newest one in its place";

/// Removes a word that no run is left for.
fn forget_the_end(state: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = state.map(|state| state.join(END)) else { return Ok(()) };
    match fs::remove_file(&path) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            let what = format!("{} cannot be removed ({e})", path.display());
            Err(Failure::input(what, "remove it: it ends every run"))
        }
        _ => Ok(()),
    }
}

async fn ended_by_operator(state: Option<&Path>) -> Failure {
    let Some(path) = state.map(|state| state.join(END)) else { return std::future::pending().await };
    while !path.exists() {
        tokio::time::sleep(LOOK).await;
    }
    let why = if fs::metadata(&path).is_ok_and(|end| end.len() > 0) { SET_BACK } else { "" };
    let what = format!("the coordinator's operator ended the run{why}");
    Failure::new(Code::Denied, what, "ask why, before it is run again")
}

mod absent;
mod counting;
pub(crate) use absent::with_reasons;

struct Run<'a> {
    hub: &'a mut AggregatorHost,
    config: &'a ServerConfig,
    conversation: MethodSession,
    /// Whether the intermediary has said that the rows reach the floor.
    counted: bool,
    /// The sites of the first total.
    first: Vec<u16>,
    /// Who was lost, and who refused to answer.
    lost: BTreeSet<u16>,
    refused: BTreeSet<u16>,
    /// What a reader of the result should know; of a site that went, with its place in the roster.
    told: Vec<(Option<u16>, String)>,
    /// Whether a failure has said why the sites went that are gone.
    said_why: bool,
    /// Why each site went that was lost, by its place in the roster.
    reasons: BTreeMap<u16, String>,
}

impl Run<'_> {
    /// The whole run, or what is out of it where it cannot go on ([APP-8]).
    async fn until_it_ends(&mut self) -> Result<RunResult, Failure> {
        let state = self.config.state.clone();
        let whole = tokio::select! {
            whole = self.whole() => whole,
            ended = ended_by_operator(state.as_deref()) => Err(ended),
        };
        let failure = match whole {
            Ok(()) => return self.done().await,
            Err(failure) => failure,
        };
        // Where somebody broke a rule, or a floor of the plan is not kept, there is nothing to use.
        if ![Code::Quorum, Code::Network, Code::Denied].contains(&failure.code) {
            return Err(failure);
        }
        let Some(outcome) = self.conversation.finish() else { return Err(failure) };
        // The sites' own copies of the method need the last total to come to the same.
        self.hub.close_rounds();
        let cohort = self.conversation.cohort().to_vec();
        let n = if self.counted { self.ask_count(&cohort).await } else { None };
        let floor = self.config.party.federation.terms.min_total_rows;
        if !self.conversation.reaches(&outcome, floor, n) {
            let what = format!(
                "{}; there is no result, because the rows behind the last total are not known to reach the plan's floor of \
                     {floor} [APP-8]",
                failure.message
            );
            return Err(Failure::new(failure.code, what, "run again when the missing parties are there"));
        }
        let more = self.told.iter().filter(|(site, _)| site.is_none() || !self.said_why).map(|(_, line)| line);
        let reason: Vec<&str> = std::iter::once(&failure.message).chain(more).map(String::as_str).collect();
        let (lost, refused) = (self.hub.names(&self.lost), self.hub.names(&self.refused));
        let early = Early::of(&outcome, &reason.join("; "), lost, refused);
        tracing::warn!("the run ends early: {}", early.reason);
        self.result(&outcome, n, Some(early))
    }

    /// Puts the method's questions until it has its outcome.
    async fn whole(&mut self) -> Result<(), Failure> {
        let mut told = self.prepare().await?;
        let of = self.config.party.federation.work.recipe.max_questions();
        let (mut cohort, mut moved) = (Vec::new(), Vec::new());
        loop {
            let (number, why) = (self.conversation.questions(), self.conversation.why());
            match self.conversation.turn() {
                Turn::Done(_) => {
                    self.config.party.tell(Progress::Judged { curve: self.conversation.curve() });
                    return Ok(());
                }
                Turn::Judge(batch) => {
                    let (what, batch) = (batch.kind(), (**batch).clone());
                    self.config.party.tell(Progress::Asked { number, of, what, why });
                    // No question of this party follows a judgement.
                    self.hub.close_rounds();
                    let reply = self.ask_judge(batch, &cohort).await?;
                    self.config.party.tell(Progress::Round { number, of, what, sites: reply.cohort.len() });
                    let verdicts = reply.open().map_err(|why| {
                        let what = format!("the intermediary's verdicts are not usable: {}", clean(&why));
                        Failure::new(Code::Peer, what, "speak to its operator")
                    })?;
                    if !reply.cohort.iter().all(|site| cohort.contains(site)) {
                        let what = "the intermediary's verdicts cover a site that was not in the last round";
                        return Err(Failure::new(Code::Peer, what, "speak to its operator"));
                    }
                    self.conversation.judged(&verdicts, &reply.cohort)?;
                }
                Turn::Ask(question, layout) => {
                    let what = question.name();
                    self.config.party.tell(Progress::Asked { number, of, what, why });
                    self.hub.ask(question.to_bytes(), layout.words());
                    let (values, answered) = self.total().await?;
                    self.config.party.tell(Progress::Round { number, of, what, sites: answered.len() });
                    cohort = answered;
                    if told != cohort {
                        told.clone_from(&cohort);
                        self.ask_for_the_count(cohort.clone());
                    }
                    if self.first.is_empty() {
                        self.first.clone_from(&cohort);
                    }
                    self.conversation.take(&values, &cohort)?;
                    self.config.party.tell_of_centres(&mut moved, self.conversation.moved());
                }
            }
        }
    }

    /// The result of a run that came to its end.
    async fn done(&mut self) -> Result<RunResult, Failure> {
        self.hub.close_rounds();
        let Turn::Done(outcome) = self.conversation.turn() else {
            return Err(Failure::defect("a run without an outcome"));
        };
        let (outcome, cohort) = ((**outcome).clone(), self.conversation.cohort().to_vec());
        let floor = self.config.party.federation.terms.min_total_rows;
        if outcome.n_total.is_some_and(|n| n < floor) {
            let what = format!("the rows of the sites that are left are below the plan's floor of {floor}");
            return Err(Failure::new(Code::Policy, what, "run again when the missing sites are there"));
        }
        self.all_are_there(&cohort).await;
        let n = self.ask_count(&cohort).await;
        self.result(&outcome, n, None)
    }

    /// Waits for the first deck, and for the count of these sites ([APP-2]).
    async fn prepare(&mut self) -> Result<Vec<u16>, Failure> {
        // No question was put before it.
        self.counted = self.hub.known > 0;
        let deadline = Instant::now() + self.config.patience();
        let mut notice = Notice::new();
        loop {
            match self.hub.next(Some(deadline.min(notice.next()))).await {
                HostEvent::Aggregator(aggregator::Event::DeckReady { members, threshold, .. }) => {
                    self.config.party.tell(Progress::Ready { sites: members.len(), threshold });
                    self.ask_for_the_count(members.clone());
                    self.have_counted().await?;
                    return Ok(members);
                }
                HostEvent::Aggregator(event) => self.event(event).map_err(|failure| self.with_the_absent(failure))?,
                HostEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
                HostEvent::Deadline if Instant::now() >= deadline => {
                    return Err(in_vain("enough sites", self.config.patience()));
                }
                HostEvent::Deadline => self.hub.tell_of_wait(&mut notice),
            }
        }
    }

    async fn total(&mut self) -> Result<(Vec<u64>, Vec<u16>), Failure> {
        let mut notice = Notice::new();
        loop {
            match self.hub.next(Some(notice.next())).await {
                HostEvent::Aggregator(aggregator::Event::Total { values, cohort, .. }) => return Ok((values, cohort)),
                HostEvent::Aggregator(event) => self.event(event)?,
                HostEvent::Control { from, kind, bytes } => self.control(from, kind, &bytes)?,
                HostEvent::Deadline => self.hub.tell_of_wait(&mut notice),
            }
        }
    }

    fn event(&mut self, event: aggregator::Event) -> Result<(), Failure> {
        log(&self.config.party.federation.roster, &event);
        match event {
            aggregator::Event::Failed(e) => Err(self.with_the_reasons(e.into())),
            aggregator::Event::Lost { site: number, why } => {
                let site = self.config.party.name_of(PartyId::Site(number));
                self.config.party.tell(Progress::Lost { site: site.clone(), why: why.to_string() });
                self.told.push((Some(number), format!("{site}: {why}")));
                self.note(number, &why);
                let refused = matches!(why, Loss::Refused(_));
                if refused { &mut self.refused } else { &mut self.lost }.insert(number);
                Ok(())
            }
            aggregator::Event::WrongShare { holder, owner } => {
                let [owner, holder] = [owner, holder].map(|site| self.config.party.name_of(PartyId::Site(site)));
                let line = format!(
                    "a share of the self-mask of {owner} that came from {holder} was wrong and was corrected; one of the two is at fault"
                );
                self.told.push((None, line));
                Ok(())
            }
            aggregator::Event::TooLate(site) => {
                too_late(self.hub, site);
                let why = "it came when this run had begun without it, or had gone on";
                self.reasons.entry(site).or_insert_with(|| why.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn control(&mut self, from: PartyId, kind: Kind, bytes: &[u8]) -> Result<(), Failure> {
        match (from, kind) {
            (PartyId::Intermediary, Kind::CountReady) => {
                let ready: CountReady = self.hub.open_control(from, kind, bytes)?;
                self.is_counted(&ready)
            }
            (PartyId::Intermediary, Kind::Aborted) => {
                let aborted: Aborted = self.hub.open_control(from, kind, bytes)?;
                Err(super::dial::aborted(&self.config.party.federation.roster.intermediary.name, &aborted))
            }
            _ => {
                tracing::warn!(from = %self.config.party.name_of(from), ?kind, "ignored a message out of place");
                Ok(())
            }
        }
    }

    fn result(&self, outcome: &Outcome, counted: Option<u64>, early: Option<Early>) -> Result<RunResult, Failure> {
        let federation = &self.config.party.federation;
        let mut result = RunResult::of(federation, outcome, &self.conversation, counted, early)?;
        result.warnings.splice(0..0, self.told.iter().map(|(_, line)| line.clone()));
        self.give_reasons(&mut result.departures);
        // What a site that is in no total sent can be computed from none.
        let last = self.conversation.cohort();
        if self.first.iter().any(|site| !last.contains(site)) {
            let told =
                "a site left the run: what it sent can be computed, up to noise, from the totals before and after";
            result.warnings.push(told.into());
        }
        Ok(result)
    }
}

fn in_vain(who: &str, waited: Duration) -> Failure {
    let next = "check that every party runs and reaches its port, then start the run again";
    Failure::new(Code::Network, format!("waited {} s for {who} in vain", waited.as_secs()), next)
}

/// Tells a site that this run goes on without it.
pub(crate) fn too_late(hub: &mut AggregatorHost, site: u16) {
    let why = "this run began without this site, or went on without it; it can take part in the next one";
    hub.tell(PartyId::Site(site), Kind::Aborted, &Aborted { code: Code::Denied as u8, why: why.into() });
}

/// One line for what an aggregator's machine reports.
pub(crate) fn log(roster: &Roster, event: &aggregator::Event) {
    let name = |site: &u16| roster.name_of(PartyId::Site(*site));
    match event {
        aggregator::Event::Lost { site, why } => {
            tracing::info!(site = %name(site), "out of this run: {}", clean(&why.to_string()));
        }
        aggregator::Event::TooLate(site) => {
            tracing::warn!(site = %name(site), "came too late for this run; it joins the next")
        }
        aggregator::Event::DeckReady { index, members, threshold } => {
            tracing::info!(deck = index, sites = members.len(), threshold, "keys are exchanged");
        }
        // The caller reports it as its own failure.
        aggregator::Event::Failed(e) => tracing::debug!("{e}"),
        _ => {}
    }
}
