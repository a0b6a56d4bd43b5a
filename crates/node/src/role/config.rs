//! Who a party is, and what each role is given to run.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use veilsum_proto::{aggregator::Timing, identity::Identity, message, roster::PartyId, suite::Hash};

use super::{
    progress::{Bytes, Progress, Watcher},
    reception::Entrance,
};
use crate::{
    agreed::Federation,
    answerer::Answerer,
    carrier::{Address, Carrier, Network, Transport},
    documents::SitePolicy,
    error::Failure,
    method_session::Moved,
    model::Model,
    result::RunResult,
    signing::Writer,
    traffic::Traffic,
};

/// Told of a frame that came, and from whom.
pub type Heard = Arc<dyn Fn(PartyId, &[u8]) + Send + Sync>;

/// Who takes part in what, and how its frames travel: the same for every role.
#[derive(Clone)]
pub struct Party {
    /// Its identity.
    pub identity: Arc<Identity>,
    /// What was agreed on, verified.
    pub federation: Federation,
    /// What its links run on.
    pub carrier: Arc<dyn Carrier>,
    /// Told of every frame that it receives, and from whom.
    pub heard: Heard,
    /// Told how the run goes.
    pub progress: Watcher,
    /// What went over its links.
    pub bytes: Arc<Bytes>,
}

impl Party {
    /// On this machine's network, over any transport and through no proxy, watched by nobody.
    pub fn new(identity: Arc<Identity>, federation: Federation) -> Party {
        Party {
            identity,
            federation,
            carrier: Arc::new(Network::new(Transport::Auto, None)),
            progress: Arc::new(|_| {}),
            bytes: Arc::default(),
            heard: Arc::new(|_, _| {}),
        }
    }

    /// Who writes this party's result.
    pub fn writer(&self) -> Writer {
        Writer { identity: self.identity.clone(), federation: self.federation.clone() }
    }

    /// The session of this run with an aggregator.
    pub fn session(&self, aggregator: PartyId) -> Hash {
        message::session(&self.federation.terms.hash(), &self.federation.roster.hash(), aggregator)
    }

    /// The name of a party of the roster.
    pub fn name_of(&self, party: PartyId) -> String {
        self.federation.roster.name_of(party)
    }

    /// Tells whoever watches, and after a round what went over the links so far.
    pub(super) fn tell(&self, progress: Progress) {
        let settles = matches!(progress, Progress::Round { .. } | Progress::Answered { .. } | Progress::Ended);
        (self.progress)(progress.cleaned());
        if settles {
            let [sent, received] = [&self.bytes.sent, &self.bytes.received].map(|bytes| bytes.load(Ordering::Relaxed));
            (self.progress)(Progress::Bytes { sent, received });
        }
    }

    /// Tells how far the centres have come, where they have since it was `told` last.
    pub(super) fn tell_of_centres(&self, told: &mut Vec<Moved>, now: Vec<Moved>) {
        if *told != now {
            told.clone_from(&now);
            self.tell(Progress::Moved { clusters: now });
        }
    }
}

/// How long parties are waited for where nobody set a limit: longer than anybody waits, and little enough to be added to a clock.
pub const WITHOUT_END: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How long a party that was there may at least stay away, where nobody limits the wait for those that never were.
const RETURN: u64 = 120_000;

/// The time in which parties that were there come back: that in which they have to appear, where it is limited.
pub(super) fn returning(timing: Timing) -> Timing {
    let limited = u128::from(timing.join) < WITHOUT_END.as_millis();
    Timing { join: if limited { timing.join } else { timing.phase.max(RETURN) }, ..timing }
}

/// How long the state machine waits, if a site that is lost in the midst of a run is waited for so long at `least`. Only then the run goes on, or
/// ends, without it.
pub(super) fn waiting(timing: Timing, least: Duration) -> Timing {
    let least = u64::try_from(least.as_millis()).unwrap_or(u64::MAX);
    Timing { phase: timing.phase.max(least), grace: timing.grace.max(least), ..timing }
}

/// From the first connection to a total.
pub(super) fn patience(timing: Timing) -> Duration {
    Duration::from_millis(timing.join.saturating_add(timing.phase.saturating_mul(6)))
}

/// What the intermediary is given.
pub struct IntermediaryConfig {
    /// This party.
    pub party: Party,
    /// How sites come to it.
    pub entrance: Entrance,
    /// Where the coordinator listens.
    pub coordinator: Address,
    /// How long to wait.
    pub timing: Timing,
    /// How long a site is waited for at least that is lost in the midst of a run.
    pub loss_wait: Duration,
    /// Folder of the journal from which a restart goes on; without one, a restart counts again.
    pub state: Option<PathBuf>,
}

/// What a site is given: its rows, its policy, and whom it talks to.
#[derive(Clone)]
pub struct ClientConfig {
    /// This party.
    pub party: Party,
    /// Its own policy.
    pub site: SitePolicy,
    /// Its rows, in working units.
    pub rows: Arc<dyn Answerer>,
    /// Where the coordinator listens.
    pub coordinator: Address,
    /// Where the intermediary listens.
    pub intermediary: Address,
    /// Folder of its journals and its ledger; without one, a crash takes it out of the run, and nothing of what it gave away
    /// is remembered.
    pub state: Option<PathBuf>,
    /// How long to keep trying to reach the others, or [`WITHOUT_END`].
    pub patience: Duration,
    /// The operator agrees, as this process starts, to the plan and its sites ([POL-9], [POL-10]): of demonstrations and laboratories, whose rows are
    /// nobody's secret. Everybody else agrees in the ledger.
    pub agreed: bool,
}

/// What a site got out of a run.
#[derive(Debug, Clone, Default)]
pub struct ClientReport {
    /// The centres; where the run ended early, the model says so.
    pub model: Option<Model>,
    /// The result as this site's own copy of the method has it, where totals are opened and the coordinator judges.
    pub result: Option<RunResult>,
    /// Questions that this process answered; after a restart those since.
    pub answered: u32,
    /// Why the intermediary was not reached, where this site gave up and the run ended early or went on without it.
    pub unreached: Option<Arc<Failure>>,
    /// Frames it sent to both aggregators, by phase, under its own name; after a restart those since.
    pub traffic: Traffic,
}
