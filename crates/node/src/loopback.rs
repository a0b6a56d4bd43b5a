//! A whole federation on loopback in one process: every role for real, on QUIC, with identities made for the occasion.
//!
//! For the demonstration, for tests, and for auditors who want to record what a party really receives.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::task::JoinHandle;
use veilsum_proto::{
    aggregator::Timing,
    identity::Identity,
    plan::{Sites, Terms},
    roster::{Member, PartyId, Roster},
    suite::Hash,
};

use crate::{
    answerer::{Domain, Prepared, Rows},
    carrier::{Carrier, Network, Transport},
    cost::usual_slots,
    documents::{Federation, SitePolicy},
    door::{Bound, Data, Ledger, Policy, ledger},
    error::Failure,
    plan::{OutOfBox, PlanSpec},
    random::system_rng,
    role::{
        client::{self, ClientConfig, ClientReport},
        config::Party,
        intermediary::{self, Counted, IntermediaryConfig},
        progress::Watcher,
        reception::Entrance,
        server::{self, RunResult, ServerConfig},
    },
};

/// One site.
#[derive(Clone)]
pub struct LoopbackSite {
    /// Its name on the roster.
    pub name: String,
    /// Its rows, original units.
    pub rows: Rows,
    /// Rows without a value by column of the box, of those that are not among its rows too; none where nobody counted them.
    pub missing: Vec<u64>,
}

impl LoopbackSite {
    /// A site that counted no missing values.
    pub fn new(name: impl Into<String>, rows: Rows) -> Self {
        Self { name: name.into(), rows, missing: Vec::new() }
    }

    /// Its rows ready to answer.
    ///
    /// # Errors
    /// A [`Failure`] where they do not fit the box.
    pub fn prepare(&self, domain: &Domain, out_of_box: OutOfBox) -> Result<Prepared, Failure> {
        let prepared = Prepared::new(&self.rows, domain, out_of_box)?;
        Ok(if self.missing.is_empty() { prepared } else { prepared.with_missing(self.missing.clone())? })
    }
}

impl From<(String, Rows)> for LoopbackSite {
    fn from((name, rows): (String, Rows)) -> Self {
        LoopbackSite::new(name, rows)
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
        sites: Sites::Same,
        slots: usual_slots(sites.len()),
        max_rows: largest.next_power_of_two(),
        min_total_rows: u64::from(work.recipe.clusters.max),
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
    /// Whether to record what every aggregator receives.
    pub record: bool,
    /// How long to wait.
    pub timing: Timing,
    /// How long a site is waited for at least that is lost in the midst of a run.
    pub loss_wait: Duration,
    /// Folder under which every site keeps its journals and its ledger; without one, nothing is kept.
    pub state: Option<PathBuf>,
    /// What the links of a party run on: coordinator, intermediary, then the sites.
    pub carrier: Box<dyn Fn(usize) -> Arc<dyn Carrier> + Send + Sync>,
    /// Told how the run goes.
    pub progress: Watcher,
}

impl LoopbackConfig {
    /// On QUIC, under the toys' policy and the default terms; nobody is missing, and nothing is kept.
    pub fn new(sites: Vec<LoopbackSite>, work: PlanSpec) -> LoopbackConfig {
        let network = Arc::new(Network::new(Transport::Quic, None));
        LoopbackConfig {
            timing: timing_of(sites.len()),
            sites,
            work,
            site: toy_policy(),
            terms: Box::new(|_| {}),
            record: false,
            loss_wait: Duration::ZERO,
            state: None,
            carrier: Box::new(move |_| network.clone()),
            progress: Arc::new(|_| {}),
        }
    }
}

/// Every frame that an aggregator received, in order: the view that an auditor attacks.
pub type View = Arc<Mutex<Vec<(PartyId, Vec<u8>)>>>;

/// The policy of sites whose data are made up: the protocol's own floor, and nothing else.
pub fn toy_policy() -> SitePolicy {
    Policy { nano_rho: Some(u64::MAX - 1), max_rows: 0, ..Policy::default() }.into()
}

/// Waits that suit one machine: whoever leaves is missed at once, and whoever computes beside much other work is waited for.
pub const LOOPBACK_TIMING: Timing = Timing { join: 30_000, phase: 300_000, grace: 250, resend: 5_000 };

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

/// Identities for the two aggregators and so many sites.
pub fn fresh(sites: usize) -> Vec<Arc<Identity>> {
    let mut rng = system_rng();
    (0..sites + 2).map(|_| Arc::new(Identity::generate(&mut rng))).collect()
}

/// Coordinator, intermediary, and sites of these names.
pub fn roster_of(identities: &[Arc<Identity>], names: &[impl AsRef<str>]) -> Roster {
    let member = |i: usize, name: &str, address: &str| Member {
        name: name.into(),
        key: identities[i].public(),
        address: address.into(),
    };
    Roster {
        name: "loopback".into(),
        coordinator: member(0, "coordinator", "127.0.0.1:0"),
        intermediary: member(1, "intermediary", "127.0.0.1:0"),
        sites: names.iter().enumerate().map(|(i, name)| member(i + 2, name.as_ref(), "")).collect(),
    }
}

/// Makes identities, roster and plan, runs every role to its end.
///
/// # Errors
/// A [`Failure`] where the federation cannot be set up; failures of roles are in the result.
pub async fn run(config: LoopbackConfig) -> Result<LoopbackRun, Failure> {
    let identities = fresh(config.sites.len());
    let names: Vec<&str> = config.sites.iter().map(|site| &*site.name).collect();
    let roster = roster_of(&identities, &names);
    roster.check()?;
    let mut terms = default_terms(&config.sites, &config.work);
    (config.terms)(&mut terms);
    let terms = Terms { roster: roster.hash(), ..terms };
    terms.check(&roster)?;
    let federation = Federation::new(roster, terms)?;
    let work = &federation.work;
    let domain = work.domain()?;
    let prepared: Vec<Prepared> =
        config.sites.iter().map(|site| site.prepare(&domain, work.out_of_box)).collect::<Result<_, _>>()?;
    let (coordinator_view, intermediary_view) = (View::default(), View::default());
    let party =
        |i: usize| Party { carrier: (config.carrier)(i), ..Party::new(identities[i].clone(), federation.clone()) };
    let recorded = |view: &View| {
        let view = view.clone();
        move |from: PartyId, frame: &[u8]| {
            if let Some(mut view) = config.record.then(|| view.lock().ok()).flatten() {
                view.push((from, frame.to_vec()));
            }
        }
    };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));

    let entrance = Entrance::from(any).open(&party(0)).await?;
    let coordinator = entrance.address();
    let server = tokio::spawn(server::run(ServerConfig {
        party: Party { progress: config.progress, heard: Arc::new(recorded(&coordinator_view)), ..party(0) },
        entrance: Entrance::Shared(entrance),
        without: Vec::new(),
        timing: config.timing,
        loss_wait: config.loss_wait,
        state: None,
    }));
    let entrance = Entrance::from(any).open(&party(1)).await?;
    let intermediary = entrance.address();
    let counter = tokio::spawn(intermediary::run(IntermediaryConfig {
        party: Party { heard: Arc::new(recorded(&intermediary_view)), ..party(1) },
        entrance: Entrance::Shared(entrance),
        coordinator: coordinator.into(),
        timing: config.timing,
        loss_wait: config.loss_wait,
        state: None,
    }));
    let mut clients = Vec::new();
    for (i, rows) in prepared.into_iter().enumerate() {
        let state = config.state.as_ref().map(|folder| folder.join(format!("site-{i}")));
        if let Some(state) = &state {
            let (identity, data) = (identities[i + 2].clone(), Data::unread(&config.site.data));
            ledger::begin(state, &identity.digest_secret())?;
            let bound = config.site.policy.nano_rho.map_or_else(Bound::default, Bound::of);
            Ledger::open(state, identity, data, None)?.bind(bound)?;
        }
        clients.push(tokio::spawn(client::run(ClientConfig {
            party: party(i + 2),
            site: config.site.clone(),
            rows: Arc::new(rows),
            coordinator: coordinator.into(),
            intermediary: intermediary.into(),
            state,
            patience: Duration::from_millis(config.timing.join),
            agreed: true,
        })));
    }
    let result = joined(server).await;
    let counted = joined(counter).await;
    let mut sites = Vec::with_capacity(clients.len());
    for c in clients {
        sites.push(joined(c).await);
    }
    let coordinator = identities[0].clone();
    Ok(LoopbackRun { result, counted, sites, coordinator_view, intermediary_view, federation, coordinator })
}

async fn joined<T>(task: JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    task.await.unwrap_or_else(|e| Err(Failure::defect(e)))
}
