//! The intermediary as the one who judges: it asks the sites for the validation totals, and draws the verdicts ([`Oracle`]).

use std::collections::BTreeMap;

use veilsum_proto::{Error, Rule, aggregator, message::Kind, roster::PartyId};

use super::{
    aggregator_host::{AggregatorHost, HostEvent},
    config::IntermediaryConfig,
    notice::Notice,
};
use crate::{
    app_messages::{CentreDistances, JudgeReply, JudgeRequest},
    error::{Code, Failure},
    oracle::Oracle,
};

/// Asks the sites for the validation totals of what they hold, and draws the verdicts. `rows` is the count, `counted` whom
/// it covers. `early` is what sites handed over before the coordinator asked. What is handed over is written down for a process after
/// this one: sites hand it over once. How long a site may stay away is the state machine's to say; until then it is named.
pub(super) async fn judge(
    hub: &mut AggregatorHost,
    config: &IntermediaryConfig,
    request: &JudgeRequest,
    (counted, rows): (&[u16], u64),
    early: &BTreeMap<PartyId, Vec<u8>>,
) -> Result<JudgeReply, Failure> {
    let oracle = Oracle::new(&config.party.federation.work, request, &config.party.federation.form()?)?;
    let (question, words) = oracle.question();
    hub.ask(question.to_bytes(), words);
    let mut distances = hub.journal.counting.distances.clone().filter(|kept| oracle.fits(kept));
    for (from, bytes) in early {
        take_distances(hub, config, (*from, bytes), &oracle, &mut distances)?;
    }
    let mut written = false;
    let mut notice = Notice::new();
    let (values, cohort) = loop {
        // Before there is a total.
        if let (false, Some(distances)) = (written, &distances) {
            hub.journal.count(|counting| counting.distances = Some(distances.clone()))?;
            written = true;
        }
        match hub.next(Some(notice.next())).await {
            HostEvent::Aggregator(aggregator::Event::Total { values, cohort, .. }) => break (values, cohort),
            HostEvent::Aggregator(aggregator::Event::Failed(e)) => return Err(e.into()),
            HostEvent::Aggregator(event) => super::server::log(&config.party.federation.roster, &event),
            HostEvent::Control { from, kind: Kind::CentreDistances, bytes } => {
                take_distances(hub, config, (from, &bytes), &oracle, &mut distances)?;
            }
            HostEvent::Control { .. } => {}
            HostEvent::Deadline => hub.tell_of_wait(&mut notice),
        }
    };
    let none = "no site handed over the distances between the centres";
    let distances = distances.ok_or_else(|| Failure::new(Code::Peer, none, "speak to the sites"))?;
    let known = (cohort == counted).then_some(rows);
    let verdicts = oracle.verdicts(&distances, &values, cohort.len(), known)?;
    // [APP-2] holds for those who are left, too.
    let floor = config.party.federation.terms.min_total_rows;
    if verdicts.iter().any(|verdict| verdict.rows < floor) {
        let what = format!("the rows that are left are below the plan's floor of {floor}");
        return Err(Failure::new(Code::Policy, what, "run again when the missing sites are there"));
    }
    Ok(JudgeReply::new(cohort, &verdicts))
}

/// Every site sends the same distances: they follow from what all hold.
fn take_distances(
    hub: &AggregatorHost,
    config: &IntermediaryConfig,
    (from, bytes): (PartyId, &[u8]),
    oracle: &Oracle,
    distances: &mut Option<CentreDistances>,
) -> Result<(), Failure> {
    let found: CentreDistances = hub.open_control(from, Kind::CentreDistances, bytes)?;
    if !oracle.fits(&found) {
        let who = config.party.name_of(from);
        let what = "sent distances that do not fit the question".to_owned();
        return Err(Error::PeerMisbehaved { who, what, rule: Rule::App5 }.into());
    }
    match distances {
        None => *distances = Some(found),
        Some(known) if *known == found => {}
        Some(_) => {
            let what = "sites hold different centres: somebody laid different questions before them, or a site lies";
            let next = "speak to the coordinator and the sites; nothing was handed over";
            return Err(Failure::new(Code::Peer, what, next));
        }
    }
    Ok(())
}
