//! The intermediary as the one who judges: it asks the sites for the validation totals, and draws the verdicts ([`Oracle`]).

use std::collections::BTreeMap;

use veilsum_proto::{Error, Rule, message::Kind, roster::PartyId};

use super::{
    aggregator_host::AggregatorHost,
    config::IntermediaryConfig,
    intermediary::{Coordinator, End, total},
};
use crate::{
    app_messages::{CentreDistances, JudgeReply, JudgeRequest},
    error::{Code, Failure},
    oracle::Oracle,
};

/// Asks the sites for the validation totals of what they hold, and draws the verdicts. `rows` is the count, `counted` whom
/// it covers. `early` is what sites handed over before the coordinator asked. How long a site may stay away is the state machine's to say;
/// until then it is named.
pub(super) async fn judge(
    hub: &mut AggregatorHost,
    link: &mut Coordinator<'_>,
    request: &JudgeRequest,
    (counted, rows): (&[u16], u64),
    early: &BTreeMap<PartyId, Vec<u8>>,
) -> Result<JudgeReply, End> {
    let config = link.config;
    let oracle = Oracle::new(&config.party.federation.work, request, &config.party.federation.form()?)?;
    let (question, words) = oracle.question();
    hub.ask(question.to_bytes(), words);
    let mut distances = hub.journal.counting.distances.clone().filter(|kept| oracle.fits(kept));
    for (from, bytes) in early {
        take_distances(hub, config, (*from, bytes), &oracle, &mut distances)?;
    }
    let take = |hub: &mut AggregatorHost, from, kind, bytes: Vec<u8>| match kind {
        Kind::CentreDistances => take_distances(hub, config, (from, &bytes), &oracle, &mut distances),
        _ => Ok(()),
    };
    // The same question again is answered with the verdicts.
    let (values, cohort) = total(hub, link, Kind::JudgeRequest, take).await?;
    let none = "no site handed over the distances between the centres";
    let distances = distances.ok_or_else(|| Failure::new(Code::Peer, none, "speak to the sites"))?;
    let known = (cohort == counted).then_some(rows);
    let verdicts = oracle.verdicts(&distances, &values, cohort.len(), known)?;
    // [APP-2] holds for those who are left, too.
    let floor = config.party.federation.terms.min_total_rows;
    if verdicts.iter().any(|verdict| verdict.rows < floor) {
        let what = format!("the rows that are left are below the plan's floor of {floor}");
        return Err(Failure::new(Code::Policy, what, "run again when the missing sites are there").into());
    }
    Ok(JudgeReply::new(cohort, &verdicts))
}

/// Every site sends the same distances: they follow from what all hold. They are written down, before there is a total, for a process after
/// this one: sites hand them over once.
fn take_distances(
    hub: &mut AggregatorHost,
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
        None => {
            hub.journal.count(|counting| counting.distances = Some(found.clone()))?;
            *distances = Some(found);
        }
        Some(known) if *known == found => {}
        Some(_) => {
            let what = "sites hold different centres: somebody laid different questions before them, or a site lies";
            let next = "speak to the coordinator and the sites; nothing was handed over";
            return Err(Failure::new(Code::Peer, what, next));
        }
    }
    Ok(())
}
