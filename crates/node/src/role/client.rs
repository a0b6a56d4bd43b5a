//! A site: answers the coordinator's and the intermediary's questions under masks, from rows that never leave it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinSet};
use veilsum_door::Ledger;
use veilsum_proto::{journal::Record, roster::PartyId};

pub use super::config::{ClientConfig, ClientReport};
use super::{
    hand::{self, Hand},
    keeper::Keeper,
    progress::Progress,
    site_session::{SiteSession, Stop},
    status, stop,
};
use crate::{
    error::{Code, Failure},
    question,
    store::Journal,
};

/// Takes part in one run.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub async fn run(config: ClientConfig) -> Result<ClientReport, Failure> {
    // [NOI-8]: under noise a site takes part whatever its rows are, and however many.
    let exact = config.party.federation.work.recipe.noise.is_none();
    if config.rows.rows() == 0 && exact {
        let next = "a site without rows does not take part: leave it out of the roster";
        return Err(Failure::input("this site has no rows", next));
    }
    if config.rows.rows() > config.party.federation.terms.max_rows && exact {
        return Err(question::too_many_rows(config.party.federation.terms.max_rows));
    }
    config.party.tell(status::begins(&config.party, config.party.federation.whoami(&config.party.identity)?));
    let (stop, stopped) = watch::channel(Stop::Not);
    // What the one conversation lays down for the other.
    let hand = Hand::new(hand::PATIENCE);
    let keeper = Keeper::open(&config)?;
    let count = SiteSession::new(&config, PartyId::Intermediary, hand.clone(), keeper.clone())?;
    let cluster = SiteSession::new(&config, PartyId::Coordinator, hand, keeper.clone())?;
    // Whoever drops this half-way ends both conversations there and then, as a crash would.
    let (mut counting, mut clustering) = (Conversation::new(), Conversation::new());
    counting.spawn(count.run(stopped.clone()));
    clustering.spawn(cluster.run(stopped));
    let (mut counted, mut unreached) = (None, None);
    let mut left = false;
    let mut told = std::pin::pin!(stop::told());
    let mut result = loop {
        tokio::select! {
            done = ended(&mut counting), if !counting.is_empty() => match done {
                Ok(report) => counted = Some(report),
                // Whether the run goes on is the coordinator's to say, who is told the same.
                Err(failure) if [Code::Network, Code::Quorum, Code::Denied].contains(&failure.code) => {
                    tracing::warn!("{}", failure.message);
                    unreached = Some(failure).filter(|failure| failure.code == Code::Network);
                }
                Err(failure) => break Err(failure),
            },
            done = ended(&mut clustering) => break done,
            code = &mut told => {
                left = true;
                break Err(stop::failure(code, "start the same command again: a run waits for its sites"));
            }
        }
    };
    // This site's own refusal is the reason, whatever the others make of it.
    if result.as_ref().is_err_and(|failure| failure.code != Code::Policy) && !clustering.is_empty() && !left {
        // The coordinator tells the same story with its own words, or its last word is on its way.
        match tokio::time::timeout(LAST_WORD, ended(&mut clustering)).await {
            Ok(Ok(report)) => result = Ok(report),
            Ok(Err(failure)) if failure.code != Code::Network => result = Err(failure),
            _ => {}
        }
    }
    if result.is_ok() && !counting.is_empty() {
        counted = tokio::time::timeout(FAREWELL, ended(&mut counting)).await.ok().and_then(Result::ok);
    }
    config.party.tell(Progress::Ended);
    // Whatever still runs says goodbye, so that nobody waits for this site.
    // Where nothing can be written for now this site hangs up as in a crash, and comes back to the run.
    let left = left || result.as_ref().is_err_and(|failure| failure.code == Code::Storage);
    let _ = stop.send(if left { Stop::Away } else { Stop::Over });
    for conversation in [&mut counting, &mut clustering] {
        let _ = tokio::time::timeout(FAREWELL, conversation.join_next()).await;
        conversation.abort_all();
    }
    // Also after a failure: what left stays written down.
    let mut kept = keeper.with(Ledger::sync).map_err(Failure::from);
    let emptied = match &result {
        Err(failure) if !Code::ends_a_run(failure.code as u8) => Ok(()),
        _ => {
            // [POL-8]: the run is over, and what it has not spent is free again.
            let plan = config.party.federation.terms.hash();
            let freed = kept.and_then(|()| Ok(keeper.with(|ledger| ledger.end_run(&plan))?));
            // The result is not lost for it; whoever forgets the run ends it.
            kept = freed.or_else(|failure| match failure.code {
                Code::Storage => {
                    tracing::warn!(
                        "{}; what the run has not spent counts as spent until it is forgotten (veilsum ledger forget)",
                        failure.message
                    );
                    Ok(())
                }
                _ => Err(failure),
            });
            stop::until_written(|| empty_the_other(&config)).await
        }
    };
    // An aggregator that waited in vain for this site is not at fault where this site did not reach it.
    let mut report = result.map_err(|failure| match unreached.take() {
        Some(cause) if failure.code != Code::Policy => blamed(failure, &cause),
        _ => failure,
    })?;
    report.unreached = unreached.map(Arc::new);
    kept?;
    emptied?;
    if let Some(counted) = counted {
        report.traffic.add(&counted.traffic);
        report.answered += counted.answered;
    }
    Ok(report)
}

/// The end of a run for a site that could not reach an aggregator itself, which comes first.
pub fn blamed(failure: Failure, cause: &Failure) -> Failure {
    Failure {
        message: format!("this site could not take part: {}; then {}", cause.message, failure.message),
        advice: cause.advice.clone(),
        ..failure
    }
}

/// [JRN-4]: where nothing is left of the coordinator's run, nothing of the intermediary's stays, also where that conversation had
/// lost its line before and kept its journal to come back with.
fn empty_the_other(config: &ClientConfig) -> Result<(), Failure> {
    let Some(folder) = &config.state else { return Ok(()) };
    let journal = |aggregator| Journal::<Record>::open(folder, &config.party.session(aggregator));
    // One that cannot be opened is damaged, and was refused before.
    let (Ok((_, left)), Ok((mut other, kept))) = (journal(PartyId::Coordinator), journal(PartyId::Intermediary)) else {
        return Ok(());
    };
    if left.is_empty() && !kept.is_empty() {
        other.rewrite(&[])?;
    }
    Ok(())
}

/// How long the coordinator's last word is waited for where the other conversation failed.
const LAST_WORD: Duration = Duration::from_secs(2);
/// How long a conversation may take to end in good order.
const FAREWELL: Duration = Duration::from_secs(5);

/// One of this site's two conversations, until it has ended.
type Conversation = JoinSet<Result<ClientReport, Failure>>;

/// The end of a conversation that has not ended. Cancel-safe.
async fn ended(conversation: &mut Conversation) -> Result<ClientReport, Failure> {
    match conversation.join_next().await {
        Some(done) => done.unwrap_or_else(|e| Err(Failure::defect(e))),
        None => std::future::pending().await,
    }
}
