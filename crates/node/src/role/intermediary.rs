//! The intermediary: counts the cohort's rows under masks, and hands the coordinator the total and nothing else.
//!
//! It counts before the coordinator asks anything, over the sites that have keys there, and tells them and the coordinator that the floor
//! is reached ([APP-2]). It is asked for the total only after the last round, and gives it only if every counted
//! site was in the run to its end. Otherwise the coordinator, whose own totals tell it how many rows the remaining sites
//! have, could subtract.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use veilsum_proto::{
    aggregator, codec,
    message::{self, Kind},
    roster::PartyId,
    suite::Hash,
};

pub use super::config::IntermediaryConfig;
use super::{
    aggregator_host::{AggregatorHost, HostEvent},
    config::{returning, waiting},
    dial::{self, Line},
    notice::Notice,
    progress::Progress,
    server::{log, too_late, with_reasons},
    status, stop,
    validity_oracle::judge,
};
use crate::{
    app_messages::{Aborted, Count, CountReady, CountReply, CountRequest, Finished, JudgeReply, JudgeRequest, clean},
    error::{Code, Failure},
    plan::Judge,
    question::Question,
    traffic::Traffic,
};

/// Frames of the coordinator that are kept while rows are counted: it sends one or two.
const LATER: usize = 16;

/// How long a coordinator that was cut off may take to come back once the rows are counted.
const AGAIN: Duration = Duration::from_secs(30);

/// What to do after this process was told to stop.
const AFTERWARDS: &str = "start it again while the coordinator waits for it; it goes on where it was";

/// What the intermediary learnt.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Names of the sites that were counted.
    pub cohort: Vec<String>,
    /// Their rows together.
    pub total: u64,
    /// Whether the coordinator was given the total.
    pub handed_over: bool,
    /// Frames by sender.
    pub traffic: Traffic,
}

/// How the conversation ended without a count.
pub(super) enum End {
    /// The coordinator began another run.
    Another(Count),
    /// The coordinator was interrupted, and its run may be taken up.
    Interrupted(Failure),
    /// Otherwise.
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for End {
    fn from(e: E) -> End {
        End::Failed(e.into())
    }
}

/// Runs the intermediary to the end of one run.
///
/// # Errors
/// A [`Failure`] with its exit code; the sites and the coordinator are told before it returns.
pub async fn run(config: IntermediaryConfig) -> Result<Counted, Failure> {
    // The sites that it asks have keys with the coordinator.
    let timing = returning(waiting(config.timing, config.loss_wait));
    let (party, entrance, state) = (config.party.clone(), config.entrance.clone(), config.state.as_deref());
    let mut hub = AggregatorHost::open(party, PartyId::Intermediary, timing, entrance, state).await?;
    // Nobody's rows are counted for a coordinator that is not there. Sites may come before it, and wait.
    let patience = Duration::from_millis(config.timing.join);
    let dialled = tokio::select! {
        link = Coordinator::dial(&config, patience) => link,
        code = stop::told() => Err(stop::failure(code, AFTERWARDS)),
        never = hub.let_in() => match never {},
    };
    let mut link = match dialled {
        Ok(link) => link,
        // The sites are told nothing: they dial whoever comes after this process.
        Err(failure) => {
            hub.close(|_| None).await;
            return Err(failure);
        }
    };
    let counted = tokio::select! {
        counted = of_runs(&mut hub, &mut link) => counted,
        code = stop::told() => Err(End::Interrupted(stop::failure(code, AFTERWARDS))),
    };
    config.party.tell(Progress::Ended);
    // Where nothing can be written for now, the count is taken up again as after a crash.
    let counted = counted.map_err(|end| match (hub.broken.take(), end) {
        (Some(failed), _) => End::Interrupted(Failure { code: Code::Storage, ..failed }),
        (None, End::Failed(failure)) if failure.code == Code::Storage => End::Interrupted(failure),
        (None, end) => end,
    });
    // And the last word to the sites. Where another process goes on, this one hangs up and tells nobody that the run is over.
    let (result, last) = match counted {
        Ok(counted) => (Ok(counted), Some((Kind::Finished, codec::encode(&Finished::default())))),
        Err(End::Failed(failure)) => {
            let aborted = Aborted { code: failure.code as u8, why: clean(&failure.message) };
            link.line.tell(Kind::Aborted, &aborted).await;
            (Err(failure), Some((Kind::Aborted, codec::encode(&aborted))))
        }
        Err(End::Interrupted(failure)) => (Err(failure), None),
        Err(End::Another(_)) => (Err(Failure::defect("a run was left")), None),
    };
    link.line.finish().await;
    if last.is_some() && result.as_ref().err().is_none_or(|failure| Code::ends_a_run(failure.code as u8)) {
        hub.forget();
    }
    let traffic = hub.close(|_| last.clone()).await;
    Ok(Counted { traffic, ..result? })
}

/// Counts for the coordinator's run, and anew where it begins another one.
async fn of_runs(hub: &mut AggregatorHost, link: &mut Coordinator<'_>) -> Result<Counted, End> {
    let mut count = told_to_count(hub, link).await?;
    loop {
        // A journal that is of another run, or of none that is known.
        if hub.journal.counting.run != count.run {
            hub.begin_anew()?;
            hub.journal.count(|counting| counting.run = count.run)?;
        }
        (link.run, link.later) = (count.run, VecDeque::new());
        match of_run(hub, link, &count.cohort).await {
            Err(End::Another(another)) => count = another,
            ended => return ended,
        }
    }
}

/// What is counted for one run of the coordinator.
async fn of_run(hub: &mut AggregatorHost, link: &mut Coordinator<'_>, asked: &[u16]) -> Result<Counted, End> {
    // What sites hand over before they are asked.
    let (config, mut early) = (link.config, BTreeMap::new());
    let domain = config.party.federation.work.domain()?;
    let layout = Question::CountRows.layout(&domain, &config.party.federation.form()?)?;
    hub.begin();
    // The sites of a deck that is there already are some of them.
    if !hub.begun {
        let others = 0..config.party.federation.roster.sites.len() as u16;
        hub.without(others.filter(|site| asked.binary_search(site).is_err()));
    }
    let why = "nothing else is asked before the rows are known to reach the plan's floor";
    let (of, what) = (status::questions(&config.party, PartyId::Intermediary), Question::CountRows.name());
    config.party.tell(Progress::Asked { number: 1, of, what, why });
    hub.ask(Question::CountRows.to_bytes(), layout.words());
    let by = |_: &mut AggregatorHost, from, kind, bytes| {
        put_by(&mut early, from, kind, bytes);
        Ok(())
    };
    let (values, cohort) = total(hub, link, Kind::Count, by).await?;
    config.party.tell(Progress::Round { number: 1, of, what, sites: cohort.len() });
    let total = layout.decode(&values, cohort.len(), None)?.values.first().copied().unwrap_or(0.0);
    let total = total.max(0.0).round() as u64;
    enough(config, total, cohort.len())?;
    // Where this does not arrive, the coordinator asks for it again, and a site connects again.
    let counted = CountReady { run: link.run, cohort: cohort.clone() };
    hub.stand_by(Kind::CountReady, &counted);
    link.line.tell(Kind::CountReady, &counted).await;
    // The rest of the run is the coordinator's; sites may hang up here in the meantime.
    let mut verdicts: Option<JudgeReply> = None;
    let mut handed: Option<CountReply> = None;
    loop {
        // What a process before this one was asked to judge is judged before the count leaves: the two must cover the same sites.
        let open = hub.journal.counting.judged.clone().filter(|_| verdicts.is_none());
        if let Some(request) = open {
            let reply = judge(hub, link, &request, (&cohort, total), &early).await?;
            config.party.tell(Progress::Round { number: 2, of, what: "Judge", sites: reply.cohort.len() });
            link.line.tell(Kind::JudgeReply, &reply).await;
            verdicts = Some(reply);
        }
        let frame = tokio::select! {
            event = hub.next(None) => {
                match event {
                    HostEvent::Control { from, kind, bytes } => put_by(&mut early, from, kind, bytes),
                    HostEvent::Aggregator(aggregator::Event::Failed(why)) => return Err(why.into()),
                    _ => {}
                }
                continue;
            }
            frame = link.next() => frame,
        };
        let bytes = match frame {
            Ok(bytes) => bytes,
            // The count stands, and the coordinator asks for it again.
            Err(why) => match link.again(why, "before its last word").await {
                Err(_) if handed.is_some() => break,
                back => {
                    back?;
                    continue;
                }
            },
        };
        match message::kind_of(&bytes) {
            // A coordinator that took its run up asks again, and gets the same.
            Some(Kind::CountRequest) => {
                let request: CountRequest = link.line.open(&bytes, Kind::CountRequest)?;
                if handed.is_none() {
                    // The verdicts say how many rows they cover. Where they cover others than the count, the difference would be the
                    // rows of those who left.
                    let of_all = verdicts.as_ref().is_none_or(|reply| reply.cohort == cohort);
                    let leaves = of_all && request.cohort == cohort;
                    if leaves {
                        hub.journal.count(|counting| counting.handed = true)?;
                    }
                    handed = Some(CountReply { total: leaves.then_some(total) });
                }
                if let Some(reply) = &handed {
                    link.line.tell(Kind::CountReply, reply).await;
                }
            }
            // One question a run, and only where the plan says so.
            Some(Kind::JudgeRequest) if config.party.federation.work.judge == Judge::Intermediary => {
                let request: JudgeRequest = link.line.open(&bytes, Kind::JudgeRequest)?;
                if !hub.journal.takes_to_judge(&request)? {
                    tracing::warn!(
                        "the coordinator asks to have another question judged, or one after the count; it is one a run, before the \
                         count [APP-5]"
                    );
                } else if let Some(reply) = &verdicts {
                    // A coordinator that took its run up gets the same.
                    link.line.tell(Kind::JudgeReply, reply).await;
                }
            }
            // Its last word: nobody asks for the total again.
            Some(Kind::Finished) if handed.is_some() => {
                link.line.open::<Finished>(&bytes, Kind::Finished)?;
                break;
            }
            kind => match link.over(&bytes) {
                Err(End::Another(another)) => return Err(End::Another(another)),
                // This party's part is done, whatever became of the run.
                Err(_) if handed.is_some() => break,
                goes_on => {
                    goes_on?;
                    if kind == Some(Kind::Count) {
                        link.line.tell(Kind::CountReady, &counted).await;
                    }
                }
            },
        }
    }
    let handed_over = handed.is_some_and(|reply| reply.total.is_some());
    Ok(Counted { cohort: hub.names(&cohort), total, handed_over, traffic: Traffic::default() })
}

/// The total of the question that is open. What else sites say is for `take`, and what the coordinator says is kept for later, unless it is of
/// the kind `known`, or ends the question: another run of its does, and its last word. Where it is away its result is judged all the same,
/// and told when it is back.
pub(super) async fn total(
    hub: &mut AggregatorHost,
    link: &mut Coordinator<'_>,
    known: Kind,
    mut take: impl FnMut(&mut AggregatorHost, PartyId, Kind, Vec<u8>) -> Result<(), Failure>,
) -> Result<(Vec<u64>, Vec<u16>), End> {
    let (mut notice, mut reasons, mut gone) = (Notice::new(), Vec::new(), None);
    loop {
        tokio::select! {
            event = hub.next(Some(notice.next())) => match event {
                HostEvent::Aggregator(aggregator::Event::Total { values, cohort, .. }) => {
                    if let Some(gone) = gone {
                        link.again(gone, "while the result was judged").await?;
                    }
                    return Ok((values, cohort));
                }
                HostEvent::Aggregator(aggregator::Event::Failed(e)) => return Err(with_reasons(e.into(), &reasons).into()),
                HostEvent::Aggregator(event) => {
                    if let aggregator::Event::Lost { site, why } = &event {
                        reasons.push(format!("{}: {why}", link.config.party.name_of(PartyId::Site(*site))));
                    }
                    log(&link.config.party.federation.roster, &event);
                    match event {
                        aggregator::Event::DeckReady { members, threshold, .. } => {
                            link.config.party.tell(Progress::Ready { sites: members.len(), threshold });
                        }
                        aggregator::Event::TooLate(site) => too_late(hub, site),
                        _ => {}
                    }
                }
                HostEvent::Deadline => hub.tell_of_wait(&mut notice),
                HostEvent::Control { from, kind, bytes } => take(hub, from, kind, bytes)?,
            },
            frame = link.recv(), if gone.is_none() => match frame {
                Ok(bytes) => link.put_off(bytes, known)?,
                Err(why) if known == Kind::JudgeRequest => gone = Some(why),
                Err(why) => link.again(why, "before the rows were counted").await?,
            },
        }
    }
}

/// The coordinator, at the other end of a line that is dialled again where it breaks.
pub(super) struct Coordinator<'a> {
    pub(super) config: &'a IntermediaryConfig,
    line: Line,
    /// The run that is counted for.
    run: Hash,
    /// What it said while something else was done.
    later: VecDeque<Vec<u8>>,
}

impl<'a> Coordinator<'a> {
    async fn dial(config: &'a IntermediaryConfig, patience: Duration) -> Result<Coordinator<'a>, Failure> {
        let line = Line::connect(&config.party, PartyId::Coordinator, &config.coordinator, patience).await?;
        Ok(Coordinator { config, line, run: Hash::default(), later: VecDeque::new() })
    }

    /// Its next frame, or why there is none. Cancel-safe.
    async fn recv(&mut self) -> Result<Vec<u8>, String> {
        let frame = self.line.recv().await.map_err(|e| e.to_string())?;
        frame.ok_or_else(|| "it closed the connection".into())
    }

    /// The same, those first that came while something else was done.
    async fn next(&mut self) -> Result<Vec<u8>, String> {
        match self.later.pop_front() {
            Some(bytes) => Ok(bytes),
            None => self.recv().await,
        }
    }

    /// Keeps a frame for later, unless it is of a kind that is then known or comes again, or ends what is done.
    fn put_off(&mut self, bytes: Vec<u8>, not: Kind) -> Result<(), End> {
        self.over(&bytes)?;
        if message::kind_of(&bytes) != Some(not) && self.later.len() < LATER {
            self.later.push_back(bytes);
        }
        Ok(())
    }

    /// Whether the coordinator says that the run is over.
    fn over(&self, bytes: &[u8]) -> Result<(), End> {
        match message::kind_of(bytes) {
            Some(Kind::Count) => {
                let count: Count = self.line.open(bytes, Kind::Count)?;
                if count.run == self.run { Ok(()) } else { Err(End::Another(count)) }
            }
            Some(Kind::Aborted) => {
                let aborted: Aborted = self.line.open(bytes, Kind::Aborted)?;
                // It hangs up next, and is dialled again.
                if Code::is_told_to_stop(aborted.code) {
                    return Ok(());
                }
                let failure = dial::aborted(&self.config.party.federation.roster.coordinator.name, &aborted);
                Err(if Code::ends_a_run(aborted.code) { End::Failed(failure) } else { End::Interrupted(failure) })
            }
            Some(Kind::Finished) => {
                self.line.open::<Finished>(bytes, Kind::Finished)?;
                let what = "the run ended early, before the rows were counted";
                let next = "see the coordinator's message; nothing was handed over";
                Err(Failure::new(Code::Denied, what, next).into())
            }
            _ => Ok(()),
        }
    }

    /// Dials a coordinator that is gone again: it may be taking up its run.
    async fn again(&mut self, gone: String, when: &str) -> Result<(), Failure> {
        let why = self.lost(gone, when);
        let patience = AGAIN.min(Duration::from_millis(self.config.timing.join));
        self.line = Coordinator::dial(self.config, patience).await.map_err(|_| why)?.line;
        Ok(())
    }

    /// Tells that it is gone.
    fn lost(&self, why: String, when: &str) -> Failure {
        let why = Failure::new(Code::Network, format!("lost the coordinator {when}: {why}"), "start the run again");
        tracing::warn!("{}; dialling again", why.message);
        let to = self.config.party.federation.roster.coordinator.name.clone();
        self.config.party.tell(Progress::Dialling { to, why: why.message.clone() });
        why
    }
}

/// [APP-2]: whether the plan's floor is reached. Others learn nothing else of the rows.
fn enough(config: &IntermediaryConfig, total: u64, sites: usize) -> Result<(), Failure> {
    let federation = &config.party.federation;
    let floor = federation.terms.min_total_rows;
    if total >= floor {
        return Ok(());
    }
    let roster = federation.roster.sites.len();
    let what = format!(
        "the cohort's rows are below the plan's floor of {floor}: {sites} of the roster's {roster} sites are left"
    );
    Err(Failure::new(Code::Policy, what, "run again when more sites, or sites with more rows, are there"))
}

/// What sites hand over to be judged by, before the coordinator has asked for a judgement: the last of each site.
fn put_by(early: &mut BTreeMap<PartyId, Vec<u8>>, from: PartyId, kind: Kind, bytes: Vec<u8>) {
    if kind == Kind::CentreDistances && matches!(from, PartyId::Site(_)) {
        early.insert(from, bytes);
    }
}

/// [APP-2]: waits for the coordinator's word which sites it is going to ask, and in which run.
async fn told_to_count(hub: &mut AggregatorHost, link: &mut Coordinator<'_>) -> Result<Count, End> {
    let (config, patience) = (link.config, Duration::from_millis(link.config.timing.join));
    loop {
        let frame = tokio::select! {
            frame = link.recv() => frame,
            never = hub.let_in() => match never {},
        };
        match frame {
            Ok(bytes) => match link.over(&bytes) {
                Err(End::Another(count)) => return Ok(count),
                goes_on => goes_on?,
            },
            Err(why) => {
                link.lost(why, "before it said whose rows to count");
                link.line = tokio::select! {
                    link = Coordinator::dial(config, patience) => link?.line,
                    never = hub.let_in() => match never {},
                };
            }
        }
    }
}
