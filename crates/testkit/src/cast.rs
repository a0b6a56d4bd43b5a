//! A federation whose roles are real and whose coordinator or intermediary the test plays.

use std::{
    net::SocketAddr,
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::oneshot, task::JoinHandle};
use veilsum_cluster::Rows;
pub use veilsum_node::loopback::ANY;
use veilsum_node::{
    app_messages::Count,
    error::Failure,
    loopback::{self, LoopbackSite},
    plan::PlanSpec,
    role::{
        aggregator_host::{AggregatorHost, HostConfig, HostEvent},
        client::ClientConfig,
        intermediary::{self, Counted},
    },
};
use veilsum_proto::{
    aggregator::{Event, Timing},
    identity::Identity,
    message::Kind,
    plan::Terms,
    roster::PartyId,
    suite::Hash,
};

/// Has the intermediary count the rows of these sites, without which no site answers ([APP-2]), and waits for its word so long; it may
/// come later. Whether it came.
pub async fn counted(hub: &mut AggregatorHost, cohort: Vec<u16>, patience: Duration) -> bool {
    let run = hub.run();
    hub.stand_by(Kind::Count, &Count { run, cohort });
    loop {
        match hub.next(Some(Instant::now() + patience)).await {
            HostEvent::Control { from: PartyId::Intermediary, kind: Kind::CountReady, .. } => return true,
            HostEvent::Aggregator(Event::Failed(_)) | HostEvent::Deadline => return false,
            _ => {}
        }
    }
}

/// Who takes part: coordinator, intermediary, then the sites.
pub struct Cast(loopback::Cast);

impl Deref for Cast {
    type Target = loopback::Cast;

    fn deref(&self) -> &loopback::Cast {
        &self.0
    }
}

impl Cast {
    /// Fresh identities for sites of these names; `terms` are the usual ones of a small test after `change`.
    ///
    /// # Errors
    /// A [`Failure`] where the plan cannot be agreed on.
    pub fn new(work: &PlanSpec, sites: &[&str], change: impl FnOnce(&mut Terms)) -> Result<Cast, Failure> {
        Cast::of(loopback::fresh(sites.len()), work, sites, change)
    }

    /// The same with identities that live longer than one run.
    ///
    /// # Errors
    /// As [`Cast::new`].
    pub fn of(
        identities: Vec<Arc<Identity>>,
        work: &PlanSpec,
        sites: &[&str],
        change: impl FnOnce(&mut Terms),
    ) -> Result<Cast, Failure> {
        let mut terms = Terms {
            roster: Hash::default(),
            min_cohort: 3,
            threshold: 0,
            colluders: 0,
            block_size: 0,
            slots: 16,
            max_rows: 64,
            min_total_rows: 3,
            application: work.to_bytes(),
        };
        change(&mut terms);
        loopback::Cast::of(identities, sites, terms).map(Cast)
    }

    /// The host that a test drives as this aggregator.
    ///
    /// # Errors
    /// A [`Failure`] where no port can be opened.
    pub async fn host(&self, role: PartyId, timing: Timing, slots: u16) -> Result<AggregatorHost, Failure> {
        let party = self.party(usize::from(role == PartyId::Intermediary));
        AggregatorHost::open(HostConfig { party, role, timing, slots, state: None }, ANY.into()).await
    }

    /// Starts the real intermediary, and says where it listens.
    ///
    /// # Panics
    /// Where it cannot listen.
    pub async fn intermediary(
        &self,
        coordinator: SocketAddr,
        timing: Timing,
    ) -> (SocketAddr, JoinHandle<Result<Counted, Failure>>) {
        let (bound, address) = oneshot::channel();
        let task = tokio::spawn(intermediary::run(self.counter(coordinator, timing, bound)));
        (address.await.expect("the intermediary's address"), task)
    }

    /// Site `i` with these rows, in their own units, under the toys' policy.
    ///
    /// # Panics
    /// Where the rows do not fit the plan's box.
    pub fn site(&self, i: usize, rows: &Rows, coordinator: SocketAddr, intermediary: SocketAddr) -> ClientConfig {
        let site = LoopbackSite::new("", rows.clone());
        self.0.site(i, &site, coordinator, intermediary).expect("rows inside the box")
    }
}
