//! Validity at the intermediary: it opens the totals that the indices need and knows no centre, only how far the centres
//! are from each other; the coordinator knows the centres and gets the indices (the framework's second option, Stallmann &
//! Wilbik 2022).

use std::time::{Duration, Instant};

use veilsum_cluster::{
    Block, Centres, Domain, Query, Scaling,
    validity::{self, Geometry, Verdict},
};
use veilsum_proto::{Error, Rule, aggregator, message::Kind, roster::PartyId};

use super::{
    aggregator_host::{AggregatorHost, HostEvent},
    config::IntermediaryConfig,
};
use crate::{
    app_messages::{CentreDistances, JudgeReply, JudgeRequest},
    error::{Code, Failure},
    plan::PlanSpec,
    question::{Layout, Question, SumBounds},
};

/// What the intermediary asks and how it reads the answer, without a centre.
struct Blind {
    queries: Vec<Query>,
    layout: Layout,
}

/// Questions of the right shape about no place in particular.
fn blind(work: &PlanSpec, request: &JudgeRequest, form: &SumBounds) -> Result<Blind, Failure> {
    let columns = work.columns.len();
    let recipe = &work.recipe;
    let members = recipe.clusters.count() * recipe.restarts as usize;
    let wrong =
        |what: &str| Failure::new(Code::Peer, format!("the coordinator's request {what}"), "speak to its operator");
    if request.clusters.is_empty() || request.clusters.len() > members {
        return Err(wrong("does not have one K for each run of the plan"));
    }
    let domain = Domain::new(vec![0.0; columns], vec![1.0; columns], Scaling::None)?;
    if request.grouped.len() != request.clusters.len()
        || (request.grouped.contains(&false) && !recipe.counts_clusters())
    {
        return Err(wrong("asks sums over all rows where the plan has none"));
    }
    let mut queries = Vec::with_capacity(request.clusters.len());
    for (k, grouped) in request.clusters.iter().zip(&request.grouped) {
        if !recipe.clusters.each().any(|planned| planned == *k) {
            return Err(wrong("names a K that the plan does not"));
        }
        let centres = Centres::new(*k as usize, columns, vec![0.0; *k as usize * columns])?;
        queries.push(recipe.validation_of(centres, *grouped));
    }
    let blocks: Vec<Block> = queries.iter().flat_map(|query| query.layout(&domain)).collect();
    let layout = Layout::with_exponents(blocks, &request.exponents, form)?;
    Ok(Blind { queries, layout })
}

/// Asks the sites for the validation totals of what they hold, and draws the verdicts. `rows` is the count, `counted` whom
/// it covers.
pub(super) async fn judge(
    hub: &mut AggregatorHost,
    config: &IntermediaryConfig,
    request: &JudgeRequest,
    counted: &[u16],
    rows: u64,
) -> Result<JudgeReply, Failure> {
    let Blind { queries, layout } = blind(&config.party.federation.work, request, &config.party.federation.form()?)?;
    let words = u32::try_from(layout.words()).unwrap_or(u32::MAX);
    hub.ask(Question::Judge { digest: request.digest, words }.to_bytes(), layout.words());
    let mut distances: Option<CentreDistances> = None;
    let phase = config.on_loss.applied(config.timing).phase;
    let deadline = Instant::now() + Duration::from_millis(phase.saturating_mul(5));
    let (values, cohort) = loop {
        match hub.next(Some(deadline)).await {
            HostEvent::Aggregator(aggregator::Event::Total { values, cohort, .. }) => break (values, cohort),
            HostEvent::Aggregator(aggregator::Event::Failed(e)) => return Err(e.into()),
            HostEvent::Aggregator(event) => super::server::log(&config.party.federation.roster, &event),
            HostEvent::Control { from, kind: Kind::CentreDistances, bytes } => {
                take_distances(hub, config, (from, &bytes), request, &mut distances)?;
            }
            HostEvent::Control { .. } => {}
            HostEvent::Deadline => {
                return Err(Failure::new(
                    Code::Network,
                    "waited for the validation totals in vain",
                    "check that the sites run, then start the run again",
                ));
            }
        }
    };
    let distances = distances.ok_or_else(|| {
        Failure::new(Code::Peer, "no site handed over the distances between the centres", "speak to the sites")
    })?;
    let known = (cohort == counted).then_some(rows);
    let totals = layout.decode(&values, cohort.len(), known)?.values;
    let verdicts = verdicts(&queries, &distances, &totals, known, config.party.federation.work.columns.len())?;
    // [APP-2] holds for those who are left, too.
    if verdicts.iter().any(|verdict| verdict.rows < config.party.federation.terms.min_total_rows) {
        return Err(Failure::new(
            Code::Policy,
            format!(
                "the rows that are left are below the plan's floor of {}",
                config.party.federation.terms.min_total_rows
            ),
            "run again when the missing sites are there",
        ));
    }
    Ok(JudgeReply::new(cohort, &verdicts))
}

/// Every site sends the same distances: they follow from what all hold.
fn take_distances(
    hub: &AggregatorHost,
    config: &IntermediaryConfig,
    (from, bytes): (PartyId, &[u8]),
    request: &JudgeRequest,
    distances: &mut Option<CentreDistances>,
) -> Result<(), Failure> {
    let found: CentreDistances = hub.open_control(from, &hub.session(), Kind::CentreDistances, bytes)?;
    let shaped = found.matrices.len() == request.clusters.len()
        && found.matrices.iter().zip(&request.clusters).all(|(matrix, k)| {
            matrix.len() == (*k as usize) * (*k as usize) && matrix.iter().all(|x| x.is_finite() && *x >= 0.0)
        });
    if found.digest != request.digest || !shaped {
        let who = config.party.name_of(from);
        let what = "sent distances that do not fit the question".to_owned();
        return Err(Error::PeerMisbehaved { who, what, rule: Rule("APP-5") }.into());
    }
    match distances {
        None => *distances = Some(found),
        Some(known) if *known == found => {}
        Some(_) => {
            return Err(Failure::new(
                Code::Peer,
                "sites hold different centres: somebody laid different questions before them, or a site lies",
                "speak to the coordinator and the sites; nothing was handed over",
            ));
        }
    }
    Ok(())
}

fn verdicts(
    queries: &[Query],
    distances: &CentreDistances,
    totals: &[f64],
    rows: Option<u64>,
    columns: usize,
) -> Result<Vec<Verdict>, Failure> {
    let domain = Domain::new(vec![0.0; columns], vec![1.0; columns], Scaling::None)?;
    let mut rest = totals;
    let mut verdicts = Vec::with_capacity(queries.len());
    for (query, matrix) in queries.iter().zip(&distances.matrices) {
        let length = query.layout(&domain).iter().map(|block| block.len).sum();
        let (head, tail) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        rest = tail;
        let verdict = validity::judge(query, Geometry::Apart(matrix, columns), head, rows);
        verdicts.push(verdict.map_err(crate::method_session::bad_method)?);
    }
    Ok(verdicts)
}

/// Euclidean distances between centres, K x K.
pub(super) fn distances_between(centres: &Centres) -> Vec<f64> {
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
    centres.rows().flat_map(|a| centres.rows().map(move |b| apart(a, b))).collect()
}
