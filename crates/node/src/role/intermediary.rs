//! The intermediary: counts the cohort's rows under masks, and hands the coordinator the total and nothing else.
//!
//! It counts after the coordinator's first total and over the same sites, so that a site that is lost between the two
//! fixes one block and not two. It is asked for the total only after the last round, and gives it only if every counted
//! site was in the run to its end. Otherwise the coordinator, whose own totals tell it how many rows the remaining sites
//! have, could subtract.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use veilsum_proto::{
    aggregator,
    message::{self, Kind},
    roster::PartyId,
};

pub use super::config::IntermediaryConfig;
use super::{
    aggregator_host::{AggregatorHost, HostConfig, HostEvent},
    dial::{self, Line},
    stop,
    validity_oracle::judge,
};
use crate::{
    app_messages::{Aborted, Count, CountReady, CountReply, CountRequest, Finished, JudgeReply, JudgeRequest, clean},
    cost::slots_of,
    error::{Code, Failure},
    plan::Judge,
    question::Question,
    traffic::Traffic,
};

/// Frames of the coordinator that are kept while rows are counted: it sends one or two.
const LATER: usize = 16;

/// How long a coordinator that was cut off may take to come back once the rows are counted.
const AGAIN: Duration = Duration::from_secs(30);

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

/// Runs the intermediary to the end of one run.
///
/// # Errors
/// A [`Failure`] with its exit code; the sites and the coordinator are told before it returns.
pub async fn run(mut config: IntermediaryConfig) -> Result<Counted, Failure> {
    // The coordinator must be there before anybody's rows are counted for it.
    let patience = Duration::from_millis(config.timing.join);
    let dialling = dial(&config, patience);
    let mut link = stop::unless_told(dialling, "start it again; nothing was counted").await?;
    let mut hub = AggregatorHost::open(
        HostConfig {
            party: config.party.clone(),
            role: PartyId::Intermediary,
            timing: config.on_loss.applied(config.timing),
            slots: slots_of(&config.party.federation.terms, PartyId::Intermediary),
            state: None,
        },
        config.listen,
    )
    .await?;
    if let (Some(bound), Some(address)) = (config.bound.take(), hub.address()) {
        let _ = bound.send(address);
    }
    let counted = tokio::select! {
        counted = count(&mut hub, &mut link, &config) => Ok(counted),
        code = stop::told() => Err(code),
    };
    let result = match counted {
        Ok(result) => result,
        // It hangs up and tells nobody that the run is over: it keeps nothing that a restart would need, and counts again.
        Err(code) => {
            link.finish().await;
            hub.close(|_| None).await;
            return Err(stop::failure(
                code,
                "start it again while the coordinator waits for it; the rows are then counted again",
            ));
        }
    };
    let last = match &result {
        Ok(_) => (Kind::Finished, veilsum_proto::codec::encode(&Finished { model: Vec::new() })),
        Err(failure) => {
            let aborted = Aborted { code: failure.code as u8, why: clean(&failure.message) };
            link.tell(Kind::Aborted, &aborted).await;
            (Kind::Aborted, veilsum_proto::codec::encode(&aborted))
        }
    };
    link.finish().await;
    let traffic = hub.close(|_| Some(last.clone())).await;
    result.map(|mut counted| {
        counted.traffic = traffic;
        counted
    })
}

async fn dial(config: &IntermediaryConfig, patience: Duration) -> Result<Line, Failure> {
    Line::connect(&config.party, PartyId::Coordinator, &config.coordinator, patience).await
}

async fn count(hub: &mut AggregatorHost, link: &mut Line, config: &IntermediaryConfig) -> Result<Counted, Failure> {
    let first = first_total(link, config).await?;
    let (mut values, mut cohort) = (Vec::new(), Vec::new());
    // What the coordinator says meanwhile.
    let mut later = VecDeque::new();
    let domain = config.party.federation.work.domain()?;
    let layout = Question::CountRows.layout(&domain, &config.party.federation.form()?)?;
    hub.begin();
    hub.without(
        (0..config.party.federation.roster.sites.len() as u16).filter(|site| first.binary_search(site).is_err()),
    );
    hub.ask(Question::CountRows.to_bytes(), layout.words());
    while cohort.is_empty() {
        let event = tokio::select! {
            event = hub.next(None) => event,
            frame = link.recv() => match frame {
                Ok(Some(bytes)) => {
                    over(link, config, &bytes)?;
                    if later.len() < LATER {
                        later.push_back(bytes);
                    }
                    continue;
                }
                gone => {
                    again(link, config, gone, "before the rows were counted").await?;
                    continue;
                }
            },
        };
        match event {
            HostEvent::Aggregator(aggregator::Event::Total { values: v, cohort: c, .. }) => (values, cohort) = (v, c),
            HostEvent::Aggregator(aggregator::Event::Failed(e)) => return Err(e.into()),
            HostEvent::Aggregator(event) => {
                super::server::log(&config.party.federation.roster, &event);
                if let aggregator::Event::TooLate(site) = event {
                    super::server::too_late(hub, site);
                }
            }
            HostEvent::Control { .. } | HostEvent::Deadline => {}
        }
    }
    let total = layout.decode(&values, cohort.len(), None)?.values.first().copied().unwrap_or(0.0);
    let total = total.max(0.0).round() as u64;
    let k = config.party.federation.work.recipe.clusters.min;
    if total < u64::from(k) {
        return Err(Failure::input(
            format!("the plan asks for K = {k} clusters, and the whole cohort has fewer rows than that"),
            "agree on a smaller K",
        ));
    }
    if total < config.party.federation.terms.min_total_rows {
        return Err(Failure::new(
            Code::Policy,
            format!(
                "the cohort's rows are below the plan's floor of {}: {} of the roster's {} sites are left",
                config.party.federation.terms.min_total_rows,
                cohort.len(),
                config.party.federation.roster.sites.len()
            ),
            "run again when more sites, or sites with more rows, are there",
        ));
    }
    // Where this does not arrive, the coordinator asks for it again.
    link.tell(Kind::CountReady, &CountReady { cohort: cohort.clone() }).await;
    // The rest of the run is the coordinator's; sites may hang up here in the meantime.
    let counted = CountReady { cohort: cohort.clone() };
    let mut judged: Option<(JudgeRequest, JudgeReply)> = None;
    let request = loop {
        tokio::select! {
            _ = hub.next(Some(Instant::now() + Duration::from_secs(3600))) => {}
            frame = next_frame(link, &mut later) => match frame {
                Ok(Some(bytes)) => match message::kind_of(&bytes) {
                    Some(Kind::CountRequest) => break link.open::<CountRequest>(&bytes, Kind::CountRequest)?,
                    // Once a run, and only where the plan says so.
                    Some(Kind::JudgeRequest) if config.party.federation.work.judge == Judge::Intermediary && judged.is_none() => {
                        let request: JudgeRequest = link.open(&bytes, Kind::JudgeRequest)?;
                        let reply = judge(hub, config, &request, &cohort, total).await?;
                        link.tell(Kind::JudgeReply, &reply).await;
                        judged = Some((request, reply));
                    }
                    // A coordinator that took its run up asks again, and gets the same.
                    Some(Kind::JudgeRequest) => {
                        let again: JudgeRequest = link.open(&bytes, Kind::JudgeRequest)?;
                        if let Some((_, reply)) = judged.as_ref().filter(|(request, _)| *request == again) {
                            link.tell(Kind::JudgeReply, reply).await;
                        }
                    }
                    Some(Kind::Count) => {
                        link.tell(Kind::CountReady, &counted).await;
                    }
                    _ => over(link, config, &bytes)?,
                },
                gone => {
                    // The count stands, and the sites need not be asked again.
                    again(link, config, gone, "before it asked for the total").await?;
                    link.tell(Kind::CountReady, &counted).await;
                }
            },
        }
    };
    // The verdicts say how many rows they cover. Where they cover others than the count, the difference would be the rows of
    // those who left.
    let handed_over = request.cohort == cohort && judged.is_none_or(|(_, reply)| reply.cohort == cohort);
    let reply = CountReply { total: handed_over.then_some(total) };
    link.tell(Kind::CountReply, &reply).await;
    Ok(Counted { cohort: hub.names(&cohort), total, handed_over, traffic: Traffic::default() })
}

/// [APP-2]: waits for the coordinator's word that the first total is out, and over which sites.
async fn first_total(link: &mut Line, config: &IntermediaryConfig) -> Result<Vec<u16>, Failure> {
    loop {
        match link.recv().await {
            Ok(Some(bytes)) if message::kind_of(&bytes) == Some(Kind::Count) => {
                return Ok(link.open::<Count>(&bytes, Kind::Count)?.cohort);
            }
            Ok(Some(bytes)) => over(link, config, &bytes)?,
            gone => again(link, config, gone, "before its first total").await?,
        }
    }
}

/// The next frame of the coordinator, those first that came while rows were counted. Cancel-safe.
async fn next_frame(
    link: &mut Line,
    later: &mut VecDeque<Vec<u8>>,
) -> Result<Option<Vec<u8>>, crate::carrier::CarrierError> {
    match later.pop_front() {
        Some(bytes) => Ok(Some(bytes)),
        None => link.recv().await,
    }
}

/// Whether the coordinator says that the run is over.
fn over(link: &Line, config: &IntermediaryConfig, bytes: &[u8]) -> Result<(), Failure> {
    match message::kind_of(bytes) {
        Some(Kind::Aborted) => {
            let aborted: Aborted = link.open(bytes, Kind::Aborted)?;
            Err(dial::aborted(&config.party.federation.roster.coordinator.name, &aborted))
        }
        Some(Kind::Finished) => {
            link.open::<Finished>(bytes, Kind::Finished)?;
            Err(Failure::new(
                Code::Denied,
                "the run ended early, before the rows were counted",
                "see the coordinator's message; nothing was handed over",
            ))
        }
        _ => Ok(()),
    }
}

/// Dials a coordinator that is gone again: it may be taking up its run.
async fn again(
    link: &mut Line,
    config: &IntermediaryConfig,
    gone: Result<Option<Vec<u8>>, crate::carrier::CarrierError>,
    when: &str,
) -> Result<(), Failure> {
    let why = ended(gone, when);
    tracing::warn!("{}; dialling again", why.message);
    *link = dial(config, AGAIN.min(Duration::from_millis(config.timing.join))).await.map_err(|_| why)?;
    Ok(())
}

fn ended(gone: Result<Option<Vec<u8>>, crate::carrier::CarrierError>, when: &str) -> Failure {
    let why = match gone {
        Err(e) => e.to_string(),
        Ok(None) => "it closed the connection".into(),
        Ok(Some(_)) => "it sent something out of order".into(),
    };
    Failure::new(Code::Network, format!("lost the coordinator {when}: {why}"), "start the run again")
}
