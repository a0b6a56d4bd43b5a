//! A whole federation on loopback in one process: every role for real, on QUIC, with identities made for the occasion.
//!
//! For the demonstration, for tests, and for auditors who want to record what a party really receives.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle};
use veilsum_proto::{
    aggregator::Timing,
    identity::Identity,
    plan::Terms,
    policy::{Floor, Policy},
    roster::{Member, Roster},
    suite::Hash,
};

use crate::{
    carrier::{Carrier, Network, Transport},
    documents::{Federation, SitePolicy},
    error::{Code, Failure},
    plan::{OutOfBox, PlanSpec},
    release::{Domain, Origin, Prepared, Rows},
    role::{
        View,
        client::{self, ClientConfig, ClientReport, Vanish},
        config::Party,
        intermediary::{self, Counted, IntermediaryConfig},
        progress::Watcher,
        server::{self, OnLoss, RunResult, ServerConfig},
        system_rng,
    },
};

/// One site.
#[derive(Clone)]
pub struct LoopbackSite {
    /// Its name on the roster.
    pub name: String,
    /// Its rows, original units.
    pub rows: Rows,
    /// One label a row, as places in the plan's list, where the plan releases them.
    pub labels: Option<Vec<u32>>,
}

impl LoopbackSite {
    /// A site without labels.
    pub fn new(name: impl Into<String>, rows: Rows) -> Self {
        Self { name: name.into(), rows, labels: None }
    }

    /// Its rows ready to answer.
    ///
    /// # Errors
    /// A [`Failure`] where they do not fit the box.
    pub fn prepare(&self, domain: &Domain, out_of_box: OutOfBox) -> Result<Prepared, Failure> {
        let prepared = Prepared::new(&self.rows, domain, out_of_box)?;
        Ok(match &self.labels {
            Some(labels) => prepared.with_labels(labels.clone())?,
            None => prepared,
        })
    }

    /// The same in original units, by which a ledger knows them again.
    fn origin(&self, work: &PlanSpec) -> Origin {
        let class = |label: &u32| label.to_string();
        let labels = work.labels.as_ref().zip(self.labels.as_ref());
        let labels = labels.map(|(of, labels)| (of.column.clone(), labels.iter().map(class).collect()));
        Origin::new(work.names(), self.rows.clone(), labels)
    }
}

impl From<(String, Rows)> for LoopbackSite {
    fn from((name, rows): (String, Rows)) -> Self {
        LoopbackSite::new(name, rows)
    }
}

/// Terms under which sampled totals never cover too few sites: nobody may be missing, and as many colluders are assumed as
/// the drawn sites allow. Changes nothing where nobody is sampled.
pub fn sampled_terms(work: &PlanSpec, sites: usize) -> impl FnOnce(&mut Terms) + Send + use<> {
    let drawn = work.sampling.map(|sampling| sampling.count(sites));
    move |terms| {
        if let Some(drawn) = drawn {
            terms.min_cohort = sites as u16;
            // The papers draw single sites.
            terms.block_size = 1;
            terms.colluders = drawn.saturating_sub(2).min(sites.saturating_sub(1) / 3).max(1) as u16;
        }
    }
}

/// The terms of a run on one machine, but for the roster that is made for it.
pub fn default_terms(sites: &[LoopbackSite], work: &PlanSpec) -> Terms {
    let largest = sites.iter().map(|site| site.rows.len() as u64).max().unwrap_or(1);
    Terms {
        roster: Hash::default(),
        // Shares of noise are sized for the sites that every total covers.
        min_cohort: if work.recipe.noise.is_some() { sites.len() as u16 } else { 3 },
        threshold: 0,
        colluders: 0,
        block_size: 0,
        slots: 64,
        max_rows: largest.next_power_of_two(),
        min_total_rows: u64::from(work.most_clusters()),
        application: work.to_bytes(),
    }
}

/// What to run.
pub struct LoopbackConfig {
    /// The sites.
    pub sites: Vec<LoopbackSite>,
    /// What to compute.
    pub work: PlanSpec,
    /// The policy of every site.
    pub site: SitePolicy,
    /// Changes the default terms.
    pub terms: Box<dyn FnOnce(&mut Terms) + Send>,
    /// Sites that vanish, by place.
    pub vanish: Vec<(usize, Vanish)>,
    /// Whether to record what every aggregator receives.
    pub record: bool,
    /// How long to wait.
    pub timing: Timing,
    /// What to do about a site that is lost.
    pub on_loss: OnLoss,
    /// Folder under which every site keeps its journals and its ledger; without one, nothing is kept.
    pub state: Option<PathBuf>,
    /// The address at which sites reach an aggregator that listens at another; at that one itself where there is none.
    pub way: Option<Way>,
    /// What links run on; the usual carrier where there is none.
    pub carrier: Option<Arc<dyn Carrier>>,
    /// Told how the run goes.
    pub progress: Watcher,
}

/// From the address of an aggregator to the one at which sites reach it, such as a relay's.
pub type Way = Box<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

/// The policy of sites whose data are made up: the protocol's own floor, and nothing else; what a site that leaves sent may
/// be computed, where the plan lets it.
pub fn toy_policy() -> SitePolicy {
    let floor = Floor { contributors: 1, ..Floor::default() };
    Policy { floor, nano_rho: u64::MAX, max_rows: 0, ..Policy::default() }.into()
}

/// Waits that suit one machine.
pub const LOOPBACK_TIMING: Timing = Timing { join: 30_000, phase: 30_000, grace: 250, resend: 5_000 };

/// [`LOOPBACK_TIMING`] for so many sites in one process: each exchanges keys with each, on the cores that all of them share.
pub fn timing_of(sites: usize) -> Timing {
    // 200 seconds for 100 sites; a build without optimisation needs 25 of them on two idle cores.
    let pairs = (sites as u64).saturating_mul(sites as u64);
    // So long nobody may be heard while all compute, and a link that broke over it is dialled again.
    let grace = LOOPBACK_TIMING.grace.max(pairs);
    let busy = pairs.saturating_mul(20);
    // Nor does a party answer a dial sooner, or begin its own, while keys of all the others are computed.
    let (join, phase) = (LOOPBACK_TIMING.join.max(busy), LOOPBACK_TIMING.phase.max(busy));
    Timing { join, phase, grace, ..LOOPBACK_TIMING }
}

/// What came of it.
pub struct LoopbackRun {
    /// The coordinator's result.
    pub result: Result<RunResult, Failure>,
    /// The intermediary's result.
    pub counted: Result<Counted, Failure>,
    /// The sites' results, in order.
    pub sites: Vec<Result<ClientReport, Failure>>,
    /// Frames that the coordinator received.
    pub coordinator_view: View,
    /// Frames that the intermediary received.
    pub intermediary_view: View,
    /// Everybody's documents.
    pub federation: Federation,
    /// The coordinator, who writes the result.
    pub coordinator: Arc<Identity>,
}

/// Makes identities, roster and plan, runs every role to its end.
///
/// # Errors
/// A [`Failure`] where the federation cannot be set up; failures of roles are in the result.
pub async fn run(config: LoopbackConfig) -> Result<LoopbackRun, Failure> {
    let mut rng = system_rng();
    let identities: Vec<Arc<Identity>> =
        (0..config.sites.len() + 2).map(|_| Arc::new(Identity::generate(&mut rng))).collect();
    let member = |i: usize, name: &str, address: &str| Member {
        name: name.into(),
        key: identities[i].public(),
        address: address.into(),
    };
    let roster = Roster {
        name: "loopback".into(),
        coordinator: member(0, "coordinator", "127.0.0.1:0"),
        intermediary: member(1, "intermediary", "127.0.0.1:0"),
        sites: config.sites.iter().enumerate().map(|(i, site)| member(i + 2, &site.name, "")).collect(),
    };
    roster.check()?;
    let mut terms = Terms { roster: roster.hash(), ..default_terms(&config.sites, &config.work) };
    (config.terms)(&mut terms);
    terms.check(&roster)?;
    let federation = Federation::new(roster, terms)?;
    let work = &federation.work;
    let domain = work.domain()?;
    let rows: Vec<(Arc<Prepared>, Arc<Origin>)> = config
        .sites
        .iter()
        .map(|site| {
            let prepared = site.prepare(&domain, work.out_of_box)?;
            Ok((Arc::new(prepared), Arc::new(site.origin(work))))
        })
        .collect::<Result<_, Failure>>()?;

    let (coordinator_view, intermediary_view) = (View::default(), View::default());
    let carrier = config.carrier.unwrap_or_else(|| Arc::new(Network::new(Transport::Quic, None)));
    let party = |i: usize, view: Option<&View>| Party {
        identity: identities[i].clone(),
        federation: federation.clone(),
        carrier: carrier.clone(),
        progress: Arc::new(|_| {}),
        bytes: Arc::default(),
        view: view.filter(|_| config.record).cloned(),
    };
    let any: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 0));

    let (bound, coordinator) = oneshot::channel();
    let server = tokio::spawn(server::run(ServerConfig {
        party: Party { progress: config.progress, ..party(0, Some(&coordinator_view)) },
        entrance: any.into(),
        without: Vec::new(),
        timing: config.timing,
        on_loss: config.on_loss,
        evidence: None,
        out: None,
        state: None,
        bound: Some(bound),
    }));
    let coordinator = coordinator.await.map_err(not_bound)?;
    let (bound, address) = oneshot::channel();
    let counter = tokio::spawn(intermediary::run(IntermediaryConfig {
        party: party(1, Some(&intermediary_view)),
        listen: any,
        coordinator: coordinator.into(),
        timing: config.timing,
        on_loss: config.on_loss,
        state: None,
        bound: Some(bound),
    }));
    let intermediary = address.await.map_err(not_bound)?;
    let way = |address| config.way.as_ref().map_or(address, |way| way(address));
    let (near_coordinator, near_intermediary) = (way(coordinator), way(intermediary));
    let clients: Vec<JoinHandle<Result<ClientReport, Failure>>> = rows
        .into_iter()
        .enumerate()
        .map(|(i, (rows, origin))| {
            tokio::spawn(client::run(ClientConfig {
                party: party(i + 2, None),
                site: config.site.clone(),
                rows,
                origin,
                coordinator: near_coordinator.into(),
                intermediary: near_intermediary.into(),
                state: config.state.as_ref().map(|folder| folder.join(format!("site-{i}"))),
                head: config.state.as_ref().map(|folder| folder.join(format!("site-{i}.head"))),
                patience: Duration::from_millis(config.timing.join),
                agreed: config.work.recipe.noise.is_none(),
                vanish: config.vanish.iter().find(|(site, _)| *site == i).map(|(_, v)| *v),
            }))
        })
        .collect();
    let result = joined(server).await;
    let counted = joined(counter).await;
    let mut sites = Vec::with_capacity(clients.len());
    for c in clients {
        sites.push(joined(c).await);
    }
    let coordinator = identities[0].clone();
    Ok(LoopbackRun { result, counted, sites, coordinator_view, intermediary_view, federation, coordinator })
}

fn not_bound(_: oneshot::error::RecvError) -> Failure {
    Failure::new(Code::Network, "a port on 127.0.0.1 could not be opened", "check that loopback UDP is allowed")
}

async fn joined<T>(task: JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    task.await.unwrap_or_else(|e| Err(Failure::new(Code::Internal, e, "this is a defect, please report it")))
}
