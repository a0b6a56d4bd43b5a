//! A federation whose roles are real and whose coordinator or intermediary the test plays: identities, documents, and the
//! configurations of the others on loopback.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use veilsum_cluster::{Prepared, Rows};
use veilsum_node::{
    agreed::Federation,
    app_messages::Count,
    error::Failure,
    loopback::{self, toy_policy},
    plan::PlanSpec,
    role::{
        aggregator_host::{AggregatorHost, HostEvent},
        client::ClientConfig,
        config::Party,
        intermediary::{self, Counted, IntermediaryConfig},
        reception::Entrance,
        server::ServerConfig,
    },
};
use veilsum_proto::aggregator::Event;

use crate::prelude::*;

/// A free port on this machine.
pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

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
pub struct Cast {
    /// The identities of all parties, in that order.
    pub identities: Vec<Arc<Identity>>,
    /// What they agreed on.
    pub federation: Federation,
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
        let roster = loopback::roster_of(&identities, sites);
        let usual = loopback::default_terms(&[], work);
        let mut terms =
            Terms { roster: roster.hash(), min_cohort: 3, slots: 16, max_rows: 64, min_total_rows: 3, ..usual };
        change(&mut terms);
        let federation = Federation::new(roster, terms)?;
        Ok(Cast { identities, federation })
    }

    /// Party `i`: coordinator, intermediary, then the sites.
    pub fn party(&self, i: usize) -> Party {
        Party::new(self.identities[i].clone(), self.federation.clone())
    }

    /// The host that a test drives as this aggregator.
    ///
    /// # Errors
    /// A [`Failure`] where no port can be opened.
    pub async fn host(&self, role: PartyId, timing: Timing) -> Result<AggregatorHost, Failure> {
        let party = self.party(usize::from(role == PartyId::Intermediary));
        AggregatorHost::open(party, role, timing, ANY.into(), None).await
    }

    /// The port of this aggregator, open, and where it is.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub async fn port(&self, i: usize) -> (SocketAddr, Entrance) {
        let reception = Entrance::Port(ANY).open(&self.party(i)).await.expect("a free port");
        (reception.address(), Entrance::Shared(reception))
    }

    /// The real coordinator behind this entrance.
    pub fn server(&self, timing: Timing, entrance: Entrance) -> ServerConfig {
        ServerConfig {
            party: self.party(0),
            entrance,
            without: Vec::new(),
            timing,
            loss_wait: Duration::ZERO,
            state: None,
        }
    }

    /// The real intermediary, in the same way.
    pub fn counter(&self, coordinator: SocketAddr, timing: Timing, entrance: Entrance) -> IntermediaryConfig {
        IntermediaryConfig {
            party: self.party(1),
            entrance,
            coordinator: coordinator.into(),
            timing,
            loss_wait: Duration::ZERO,
            state: None,
        }
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
        let (address, entrance) = self.port(1).await;
        (address, tokio::spawn(intermediary::run(self.counter(coordinator, timing, entrance))))
    }

    /// Site `i` with these rows, in their own units, under the toys' policy.
    ///
    /// # Panics
    /// Where the rows do not fit the plan's box.
    pub fn site(&self, i: usize, rows: &Rows, coordinator: SocketAddr, intermediary: SocketAddr) -> ClientConfig {
        let work = &self.federation.work;
        let domain = work.domain().expect("a box");
        let prepared = Prepared::new(rows, &domain, work.out_of_box).expect("rows inside the box");
        ClientConfig {
            party: self.party(i + 2),
            site: toy_policy(),
            rows: Arc::new(prepared),
            coordinator: coordinator.into(),
            intermediary: intermediary.into(),
            state: None,
            patience: Duration::from_secs(20),
            agreed: true,
        }
    }
}
