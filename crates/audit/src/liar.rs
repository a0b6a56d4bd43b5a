//! A coordinator that asks real sites whatever it likes over QUIC: the product's own roles on loopback.
//!
//! It follows the protocol, because the sites' state machines enforce it, and it chooses its own questions. Which rules
//! of the sites stop it depends on the plan. Without opening a site checks a question only against the plan [POL-3];
//! with opening a site replays the method on the totals that it recomputed [OPN-9].

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tokio::task::JoinHandle;
use veilsum_cluster::{Batch, Prepared, Rows};
use veilsum_node::{
    error::Failure,
    loopback::{self, LOOPBACK_TIMING, LoopbackSite},
    method_session::{MethodSession, Turn},
    question::{Layout, Question, SumBounds},
    role::{
        aggregator_host::{AggregatorHost, HostEvent},
        client::{self, ClientConfig, ClientReport},
        system_rng,
    },
};
use veilsum_proto::{aggregator, identity::Identity, message::Kind, plan::Terms, roster::PartyId, suite};
use veilsum_testkit::cast::Cast;

use crate::scene::Scene;

/// What an attack by chosen centres needs.
pub const NEEDS: &str = "totals over the whole cohort, and a coordinator that chooses where to ask";
/// Where it succeeds.
pub const CONTROL: &str = "the same questions to the same sites under a plan that opens no totals: masks on, every centre inside \
                           the box [POL-3]";
/// What stops it.
pub const PROTECTION: &str =
    "opening: a site asks its own copy of the method what comes next and answers nothing else [OPN-9]";

/// The result of one lie.
pub struct Told {
    /// Totals of the questions that were answered, in order: those of the method and those of the liar.
    pub totals: Vec<Vec<f64>>,
    /// What happened where the run broke off before the liar's last question had its total.
    pub broken_off: Option<String>,
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

/// How long a silent site is awaited: longer than a link that broke takes to be missed, which is half a minute, and to be dialled again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long they may take to come: sites that were here before dial again ever more slowly, beside other attacks.
const COMING: Duration = Duration::from_secs(90);
/// How long they may then take to exchange keys.
const KEYS: Duration = Duration::from_secs(30);
/// How long a site that was lied to may take to leave.
const LAST_WORD: Duration = Duration::from_secs(3);

/// Lets a coordinator put the questions of `lie` to the sites of `scene` until it asks nothing more.
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
    let identities: Vec<Arc<Identity>> = (0..scene.sites.len() + 2)
        .map(|i| match &scene.state {
            Some((_, seed)) => Arc::new(identity(*seed, i)),
            None => Arc::new(Identity::generate(&mut rng)),
        })
        .collect();
    let sites: Vec<LoopbackSite> = scene.sites.iter().cloned().map(LoopbackSite::from).collect();
    let names: Vec<&str> = scene.sites.iter().map(|(name, _)| name.as_str()).collect();
    let usual = |terms: &mut Terms| {
        let usual = loopback::default_terms(&sites, &scene.work);
        *terms = Terms { roster: terms.roster, opening: scene.opening, ..usual };
    };
    let cast = Cast::of(identities, &scene.work, &names, usual).map_err(failed)?;
    let federation = &cast.federation;
    let timing = aggregator::Timing { join: COMING.as_millis() as u64, ..LOOPBACK_TIMING };
    let mut hub = cast.host(PartyId::Coordinator, timing, federation.terms.slots).await.map_err(failed)?;
    let coordinator = hub.address().context("a coordinator without an address")?;
    let (intermediary, counter) = cast.intermediary(coordinator, timing).await;
    let site = |(i, (_, rows)): (usize, &(String, Rows))| {
        let state = |what: &str| scene.state.as_ref().map(|(folder, _)| folder.join(format!("{what}-{i}")));
        let config = cast.site(i, rows, coordinator, intermediary);
        tokio::spawn(client::run(ClientConfig {
            site: scene.site.clone(),
            state: state("site"),
            head: state("head"),
            patience: PATIENCE,
            ..config
        }))
    };
    let clients: Vec<JoinHandle<Result<ClientReport, Failure>>> = scene.sites.iter().enumerate().map(site).collect();
    let form = federation.form()?;
    let conversation = MethodSession::of(&federation.work, form).map_err(failed)?;
    let (totals, broken_off) = match converse(&mut hub, conversation, scene, form, lie).await {
        Ok(told) => told,
        Err(e) => {
            // The sites know why none of them came.
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
        match tokio::time::timeout(if broken_off.is_some() { LAST_WORD } else { Duration::ZERO }, &mut client).await {
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
) -> Result<(Vec<Vec<f64>>, Option<String>)> {
    let domain = scene.work.domain()?;
    let deadline = || Some(Instant::now() + PATIENCE);
    let (mut keys, until) = (false, Some(Instant::now() + COMING + KEYS));
    while !keys {
        match hub.next(until).await {
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
            return Ok((totals, None));
        };
        let followed = own.as_ref() == Some(&batch);
        let layout = Layout::of_batch(&batch, &domain, &form)?;
        hub.ask(Question::Cluster(batch).to_bytes(), layout.words());
        let mut lost = Vec::new();
        loop {
            match hub.next(deadline()).await {
                HostEvent::Aggregator(aggregator::Event::Total { values, cohort, .. }) => {
                    ensure!(
                        cohort.len() == scene.sites.len(),
                        "a site was lost while nobody lied: {}",
                        lost.join("; ")
                    );
                    if followed {
                        conversation.take(&values, &cohort).map_err(failed)?;
                    }
                    totals.push(layout.decode(&values, cohort.len(), None)?.values);
                    if totals.len() == 1 {
                        counted(hub, cohort).await?;
                    }
                    break;
                }
                HostEvent::Aggregator(aggregator::Event::Lost { site, why }) => {
                    lost.push(format!("site {site}: {why}"));
                    if lost.len() < scene.sites.len() {
                        continue;
                    }
                }
                HostEvent::Aggregator(aggregator::Event::Failed(why)) => lost.push(why.to_string()),
                HostEvent::Deadline => lost.push(format!("nothing was heard for {PATIENCE:?}")),
                _ => continue,
            }
            return Ok((totals, Some(lost.join("; "))));
        }
    }
}

/// Has the intermediary count the rows behind the first total.
async fn counted(hub: &mut AggregatorHost, cohort: Vec<u16>) -> Result<()> {
    let run = hub.run();
    // It may come after the first total.
    hub.stand_by(Kind::Count, &veilsum_node::app_messages::Count { run, cohort });
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
