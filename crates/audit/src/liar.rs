//! A coordinator that puts whatever questions it likes, over QUIC, to real sites: the product's own roles on loopback.
//!
//! It keeps the protocol (the sites' state machines see to that); what it asks is its own. Which of the sites' rules stand in
//! its way depends on the plan: without opening a site checks a question against the plan alone [POL-3], with it a site
//! follows the method on the totals that it recomputed [OPN-9].

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{sync::oneshot, task::JoinHandle};
use veilsum_cluster::{Batch, Prepared};
use veilsum_node::{
    documents::Federation,
    error::Failure,
    loopback::{self, LOOPBACK_TIMING, LoopbackSite},
    method_session::{MethodSession, Turn},
    question::{Layout, Question, SumBounds},
    release::Origin,
    role::{
        aggregator_host::{AggregatorHost, HostConfig, HostEvent},
        client::{self, ClientConfig, ClientReport},
        intermediary::{self, IntermediaryConfig},
        system_rng,
    },
};
use veilsum_proto::{
    aggregator,
    identity::Identity,
    message::Kind,
    plan::Terms,
    roster::{Member, PartyId, Roster},
    suite,
};

use crate::{scene::Scene, view::prepared};

/// What the lie of one round came to.
pub struct Told {
    /// Totals of the questions that were answered, in order: those of the method and those of the liar.
    pub totals: Vec<Vec<f64>>,
    /// Whether the run broke off before the liar's last question had its total.
    pub broken_off: bool,
    /// By site: why it left, in its own words; nothing for one that saw nothing wrong.
    pub refusals: BTreeMap<u16, String>,
}

impl Told {
    /// Sites that refused under this rule.
    pub fn refused_under(&self, rule: &str) -> usize {
        self.refusals.values().filter(|why| why.contains(rule)).count()
    }
}

/// What a liar asks next: the number of the question from 1, the method's own question, and all totals so far.
pub type Lie<'a> = dyn FnMut(u32, &Batch, &[Vec<f64>]) -> Option<Batch> + 'a;

/// How long a silent site is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a site that was lied to may take to leave.
const LAST_WORD: Duration = Duration::from_secs(3);

/// Lets a coordinator ask `lie`'s questions of `scene`'s sites, until it asks nothing more.
///
/// # Errors
/// Where the federation cannot be set up.
pub fn ask(scene: &Scene, lie: &mut Lie<'_>) -> Result<Told> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let told = runtime.block_on(federation(scene, lie));
    runtime.shutdown_background();
    told
}

/// The identity of a party that lives longer than one run: coordinator, intermediary, then the sites.
pub fn identity(seed: u64, party: usize) -> Identity {
    let (seed, party) = (seed.to_le_bytes(), (party as u64).to_le_bytes());
    Identity::from_seed(&suite::hash("audit identity", &[&seed, &party]).0)
}

async fn federation(scene: &Scene, lie: &mut Lie<'_>) -> Result<Told> {
    let mut rng = system_rng();
    let n = scene.sites.len();
    let identities: Vec<Arc<Identity>> = (0..n + 2)
        .map(|i| match &scene.state {
            Some((_, seed)) => Arc::new(identity(*seed, i)),
            None => Arc::new(Identity::generate(&mut rng)),
        })
        .collect();
    let member = |i: usize, name: &str, address: &str| Member {
        name: name.into(),
        key: identities[i].public(),
        address: address.into(),
    };
    let roster = Roster {
        name: "loopback".into(),
        coordinator: member(0, "coordinator", "127.0.0.1:0"),
        intermediary: member(1, "intermediary", "127.0.0.1:0"),
        sites: scene.sites.iter().enumerate().map(|(i, (name, _))| member(i + 2, name, "")).collect(),
    };
    let sites: Vec<LoopbackSite> = scene.sites.iter().cloned().map(LoopbackSite::from).collect();
    let terms = Terms { roster: roster.hash(), opening: scene.opening, ..loopback::default_terms(&sites, &scene.work) };
    let federation = Federation::new(roster, terms).map_err(failed)?;
    let Federation { roster, terms, work } = federation.clone();
    let any = ([127, 0, 0, 1], 0).into();
    let config = HostConfig {
        identity: identities[0].clone(),
        roster: roster.clone(),
        terms: terms.clone(),
        role: PartyId::Coordinator,
        timing: LOOPBACK_TIMING,
        slots: terms.slots,
        view: None,
        state: None,
    };
    let mut hub = AggregatorHost::open(config, any).await.map_err(failed)?;
    let coordinator = hub.address().context("a coordinator without an address")?;
    let (bound, address) = oneshot::channel();
    let counter = tokio::spawn(intermediary::run(IntermediaryConfig {
        identity: identities[1].clone(),
        federation: Federation { roster: roster.clone(), terms: terms.clone(), work: work.clone() },
        listen: any,
        coordinator,
        timing: LOOPBACK_TIMING,
        on_loss: veilsum_node::role::server::OnLoss::Stop,
        view: None,
        bound: Some(bound),
    }));
    let intermediary = address.await.context("the intermediary has no address")?;
    let names: Vec<String> = work.columns.iter().map(|column| column.name.clone()).collect();
    let clients: Vec<JoinHandle<Result<ClientReport, Failure>>> = prepared(scene)?
        .into_iter()
        .enumerate()
        .map(|(i, rows)| {
            tokio::spawn(client::run(ClientConfig {
                identity: identities[i + 2].clone(),
                federation: Federation { roster: roster.clone(), terms: terms.clone(), work: work.clone() },
                site: scene.site.clone(),
                rows: Arc::new(rows),
                origin: Arc::new(Origin::new(names.clone(), scene.sites[i].1.clone(), None)),
                coordinator,
                intermediary,
                state: scene.state.as_ref().map(|(folder, _)| folder.join(format!("site-{i}"))),
                head: scene.state.as_ref().map(|(folder, _)| folder.join(format!("head-{i}"))),
                patience: PATIENCE,
                vanish: None,
                view: None,
            }))
        })
        .collect();
    let form = federation.form()?;
    let conversation = MethodSession::of(&work, form).map_err(failed)?;
    let (totals, broken_off) = match converse(&mut hub, conversation, scene, form, lie).await {
        Ok(told) => told,
        Err(e) => {
            // Why nobody came, the sites know.
            for client in clients.into_iter().filter(JoinHandle::is_finished) {
                client.await.context("a site's task failed")?.map_err(failed)?;
            }
            return Err(e);
        }
    };
    hub.close(|_| None).await;
    counter.abort();
    let mut refusals = BTreeMap::new();
    for (site, mut client) in clients.into_iter().enumerate() {
        // A site that refused has left by now; any other one would dial again.
        match tokio::time::timeout(if broken_off { LAST_WORD } else { Duration::ZERO }, &mut client).await {
            Ok(ended) => {
                if let Err(failure) = ended.context("a site's task failed")? {
                    refusals.insert(site as u16, failure.message);
                }
            }
            Err(_) => client.abort(),
        }
    }
    // Sites that only lost the connection saw nothing wrong; a refusal names its rule.
    refusals.retain(|_, why| why.contains('['));
    Ok(Told { totals, broken_off, refusals })
}

async fn converse(
    hub: &mut AggregatorHost,
    mut conversation: MethodSession,
    scene: &Scene,
    form: SumBounds,
    lie: &mut Lie<'_>,
) -> Result<(Vec<Vec<f64>>, bool)> {
    let domain = scene.work.domain()?;
    let deadline = || Some(Instant::now() + PATIENCE);
    let mut keys = false;
    while !keys {
        match hub.next(deadline()).await {
            HostEvent::Aggregator(aggregator::Event::DeckReady { .. }) => keys = true,
            HostEvent::Aggregator(aggregator::Event::Failed(e)) => bail!("no keys could be exchanged: {e}"),
            HostEvent::Deadline => bail!("nobody came"),
            _ => {}
        }
    }
    let mut totals: Vec<Vec<f64>> = Vec::new();
    let mut number = 0;
    loop {
        number += 1;
        let own = match conversation.turn() {
            Turn::Ask(question, _) => match &**question {
                Question::Cluster(batch) => Some(batch.clone()),
                _ => bail!("the liar knows plain questions only"),
            },
            _ => None,
        };
        let Some(batch) = lie(number, own.as_ref().unwrap_or(&Batch { transform: None, queries: vec![] }), &totals)
        else {
            return Ok((totals, false));
        };
        let followed = own.as_ref() == Some(&batch);
        let layout = Layout::of_batch(&batch, &domain, &form)?;
        hub.ask(Question::Cluster(batch).to_bytes(), layout.words());
        let mut lost = 0;
        loop {
            match hub.next(deadline()).await {
                HostEvent::Aggregator(aggregator::Event::Total { values, cohort, .. }) => {
                    ensure!(cohort.len() == scene.sites.len(), "a site was lost while nobody lied");
                    if followed {
                        conversation.take(&values, &cohort).map_err(failed)?;
                    }
                    totals.push(layout.decode(&values, cohort.len(), None)?.values);
                    if totals.len() == 1 {
                        counted(hub, cohort).await?;
                    }
                    break;
                }
                HostEvent::Aggregator(aggregator::Event::Lost { .. }) if lost + 1 < scene.sites.len() => lost += 1,
                HostEvent::Aggregator(aggregator::Event::Lost { .. } | aggregator::Event::Failed(_))
                | HostEvent::Deadline => return Ok((totals, true)),
                _ => {}
            }
        }
    }
}

/// Has the intermediary count the rows behind the first total.
async fn counted(hub: &mut AggregatorHost, cohort: Vec<u16>) -> Result<()> {
    hub.tell(PartyId::Intermediary, Kind::Count, &veilsum_node::app_messages::Count { cohort });
    loop {
        match hub.next(Some(Instant::now() + PATIENCE)).await {
            HostEvent::Control { from: PartyId::Intermediary, kind: Kind::CountReady, .. } => return Ok(()),
            HostEvent::Aggregator(aggregator::Event::Failed(e)) => bail!("nobody counted: {e}"),
            HostEvent::Deadline => bail!("nobody counted"),
            _ => {}
        }
    }
}

fn failed(failure: Failure) -> anyhow::Error {
    anyhow::anyhow!("{}", failure.message)
}

/// What the totals of `rows` would be: for comparing.
///
/// # Errors
/// Where the question does not fit the rows.
pub fn sum(batch: &Batch, rows: &[Prepared]) -> Result<Vec<f64>> {
    Ok(veilsum_cluster::pooled::totals(batch, rows)?.values)
}
