//! A coordinator that asks real sites whatever it likes over QUIC: the product's own roles on loopback.
//!
//! It follows the protocol, because the sites' state machines enforce it, and it chooses its own questions. A site replays the method on
//! the totals that it recomputed, and answers nothing else [OPN-9]. The control is the total of the same rows, as sites that answer
//! whatever they are asked would open it.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{sync::watch, task::JoinHandle};
use veilsum_cluster::{Batch, Prepared, Rows};
use veilsum_node::{
    error::Failure,
    loopback::{self, LOOPBACK_TIMING, LoopbackSite},
    method_session::{MethodSession, Turn},
    question::{Layout, Question, SumBounds},
    role::{
        aggregator_host::{AggregatorHost, HostEvent},
        client::{self, ClientConfig, ClientReport},
        config::Party,
        intermediary::Counted,
        progress::Progress,
        system_rng,
    },
};
use veilsum_proto::{Rule, aggregator, identity::Identity, plan::Terms, roster::PartyId};
use veilsum_testkit::cast::{Cast, counted};

use crate::scene::Scene;

/// What an attack by chosen centres needs.
pub const NEEDS: &str = "totals over the whole cohort, and a coordinator that chooses where to ask";
/// Where it succeeds.
pub const CONTROL: &str =
    "the same questions to sites that answer whatever they are asked: masks on, every centre inside the box";
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
    pub refusals: BTreeMap<u16, Failure>,
}

impl Told {
    /// Sites that refused under this rule.
    pub fn refused_under(&self, rule: Rule) -> usize {
        self.refusals.values().filter(|why| why.rule == Some(rule)).count()
    }
}

/// What a liar asks next: the number of the question from 1, the method's own question, and all totals so far.
pub type Lie<'a> = dyn FnMut(u32, &Batch, &[Vec<f64>]) -> Option<Batch> + 'a;

/// What is waited for is an event: so long only something that hangs takes, on a machine that has other work.
const HANGS: Duration = Duration::from_secs(600);

/// What the same coordinator is told by sites that answer whatever they are asked: the totals of the rows of `scene`.
///
/// # Errors
/// Where a question does not fit the rows.
pub fn answered(scene: &Scene, lie: &mut Lie<'_>) -> Result<Told> {
    let domain = scene.work.domain()?;
    let rows = scene.sites.iter().map(|(_, rows)| Ok(Prepared::new(rows, &domain, scene.work.out_of_box)?));
    let rows = rows.collect::<Result<Vec<_>>>()?;
    let own = scene.work.first_question(scene.sites.len()).map_err(|e| anyhow::anyhow!("{e}"))?;
    let mut totals = Vec::new();
    while let Some(batch) = lie(totals.len() as u32 + 1, &own, &totals) {
        totals.push(sum(&batch, &rows)?);
    }
    Ok(Told { totals, broken_off: None, refusals: BTreeMap::new() })
}

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

async fn federation(scene: &Scene, lie: &mut Lie<'_>) -> Result<Told> {
    let mut rng = system_rng();
    let identities = (0..scene.sites.len() + 2).map(|_| Arc::new(Identity::generate(&mut rng))).collect();
    let sites: Vec<LoopbackSite> = scene.sites.iter().cloned().map(LoopbackSite::from).collect();
    let names: Vec<&str> = scene.sites.iter().map(|(name, _)| name.as_str()).collect();
    let usual = |terms: &mut Terms| {
        let usual = loopback::default_terms(&sites, &scene.work);
        *terms = Terms { roster: terms.roster, ..usual };
    };
    let cast = Cast::of(identities, &scene.work, &names, usual).map_err(failed)?;
    let federation = &cast.federation;
    let timing =
        aggregator::Timing { join: HANGS.as_millis() as u64, phase: HANGS.as_millis() as u64, ..LOOPBACK_TIMING };
    let mut hub = cast.host(PartyId::Coordinator, timing, federation.terms.slots).await.map_err(failed)?;
    let coordinator = hub.address().context("a coordinator without an address")?;
    let (intermediary, mut counter) = cast.intermediary(coordinator, timing).await;
    // By site: it saw nothing wrong and dials the coordinator again.
    let (dialling, mut again): (Vec<_>, Vec<_>) = scene.sites.iter().map(|_| watch::channel(())).unzip();
    let site = |((i, (_, rows)), dials): ((usize, &(String, Rows)), watch::Sender<()>)| {
        let config = cast.site(i, rows, coordinator, intermediary);
        let hub = config.party.name_of(PartyId::Coordinator);
        let progress = move |p| {
            if matches!(p, Progress::Dialling { to, .. } if to == hub) {
                dials.send_replace(());
            }
        };
        let party = Party { progress: Arc::new(progress), ..config.party };
        tokio::spawn(client::run(ClientConfig { party, site: scene.site.clone(), patience: HANGS, ..config }))
    };
    let clients: Vec<JoinHandle<Result<ClientReport, Failure>>> =
        scene.sites.iter().enumerate().zip(dialling).map(site).collect();
    let form = federation.form()?;
    let conversation = MethodSession::of(&federation.work, form).map_err(failed)?;
    let (totals, broken_off) = match converse(&mut hub, &mut counter, conversation, scene, form, lie).await {
        Ok(told) => told,
        Err(e) => {
            // The sites know why none of them came.
            for client in clients.into_iter().filter(JoinHandle::is_finished) {
                client.await.context("a site's task failed")?.map_err(failed)?;
            }
            return Err(e);
        }
    };
    again.iter_mut().for_each(watch::Receiver::mark_unchanged);
    hub.close(|_| None).await;
    counter.abort();
    let mut refusals = BTreeMap::new();
    for (site, (mut client, mut dials)) in clients.into_iter().zip(again).enumerate() {
        // A site that refused leaves; any other one dials again.
        let ended = tokio::select! {
            biased;
            ended = &mut client => Some(ended),
            () = told(&mut dials), if broken_off.is_some() => None,
            () = std::future::ready(()), if broken_off.is_none() => None,
            () = tokio::time::sleep(HANGS) => None,
        };
        match ended {
            Some(ended) => {
                if let Err(failure) = ended.context("a site's task failed")? {
                    refusals.insert(site as u16, failure);
                }
            }
            None => client.abort(),
        }
    }
    // Sites that only lost the connection saw nothing wrong; a refusal names its rule.
    refusals.retain(|_, why| why.rule.is_some());
    Ok(Told { totals, broken_off, refusals })
}

/// Waits until something was told; for ever where nobody is left to tell it.
async fn told(dials: &mut watch::Receiver<()>) {
    if dials.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn converse(
    hub: &mut AggregatorHost,
    counter: &mut JoinHandle<Result<Counted, Failure>>,
    mut conversation: MethodSession,
    scene: &Scene,
    form: SumBounds,
    lie: &mut Lie<'_>,
) -> Result<(Vec<Vec<f64>>, Option<String>)> {
    let domain = scene.work.domain()?;
    let deadline = || Some(Instant::now() + HANGS);
    let (mut keys, until) = (false, Some(Instant::now() + HANGS));
    while !keys {
        match hub.next(until).await {
            HostEvent::Aggregator(aggregator::Event::DeckReady { .. }) => keys = true,
            HostEvent::Aggregator(aggregator::Event::Failed(e)) => bail!("no keys could be exchanged: {e}"),
            HostEvent::Deadline => bail!("nobody came"),
            _ => {}
        }
    }
    let all = hub.cohort();
    let heard = tokio::select! {
        heard = counted(hub, all, HANGS) => heard,
        ended = &mut *counter => {
            let why = ended.context("the intermediary's task failed")?.err().map(|f| f.message);
            bail!("nobody counted: {}", why.unwrap_or_else(|| "the intermediary was done before".to_owned()));
        }
    };
    ensure!(heard, "nobody counted");
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
                    break;
                }
                HostEvent::Aggregator(aggregator::Event::Lost { site, why }) => {
                    lost.push(format!("site {site}: {why}"));
                    if lost.len() < scene.sites.len() {
                        continue;
                    }
                }
                HostEvent::Aggregator(aggregator::Event::Failed(why)) => lost.push(why.to_string()),
                HostEvent::Deadline => lost.push(format!("nothing was heard for {HANGS:?}")),
                _ => continue,
            }
            return Ok((totals, Some(lost.join("; "))));
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
