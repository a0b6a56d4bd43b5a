//! Rounds that are opened to the cohort, over QUIC on loopback: every site follows the method on totals that it recomputed,
//! and refuses what does not follow.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use veilsum_cluster::{Algorithm, Query, Rows, method::Seeding, query::FuzzySums};
use veilsum_node::{
    documents::Federation,
    door::ledger,
    error::{Code, Failure},
    loopback::LOOPBACK_TIMING,
    method_session::{MethodSession, Turn},
    plan::PlanSpec,
    question::{Question, SumBounds},
    role::{
        aggregator_host::{AggregatorHost, HostEvent},
        client::{self, ClientConfig, ClientReport},
    },
};
use veilsum_proto::{aggregator, roster::PartyId};
use veilsum_testkit::{
    cast::{Cast, counted},
    in_process::{made_up, unit_square},
    program::Folder,
};

const SIZES: [usize; 4] = [31, 44, 58, 37];

fn work() -> PlanSpec {
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 4 };
    PlanSpec::plain(unit_square(), fcm, 3, Seeding::Uniform { seed: 11 })
}

/// A coordinator that puts the method's own questions but for what `change` makes of the question with that number; what
/// became of the sites, each of which keeps its state below `folder`.
fn against(folder: &Path, change: impl Fn(u32, &mut Question) + Send) -> Vec<Result<ClientReport, Failure>> {
    let names: Vec<String> = (0..SIZES.len()).map(|i| format!("site-{i}")).collect();
    let cast = Cast::new(&work(), &names.iter().map(String::as_str).collect::<Vec<_>>(), |_| {}).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let found = runtime.block_on(async {
        let Federation { terms, work, .. } = cast.federation.clone();
        let mut hub = cast.host(PartyId::Coordinator, LOOPBACK_TIMING, terms.slots).await.unwrap();
        let coordinator = hub.address().unwrap();
        let (intermediary, counter) = cast.intermediary(coordinator, LOOPBACK_TIMING).await;
        let made = made_up(&SIZES, 0.2, 3);
        let site = |(i, (_, rows)): (usize, &(String, Rows))| {
            let state = folder.join(format!("site-{i}"));
            ledger::begin(&state, &cast.identities[2 + i].digest_secret()).unwrap();
            let state = Some(state);
            tokio::spawn(client::run(ClientConfig { state, ..cast.site(i, rows, coordinator, intermediary) }))
        };
        let sites: Vec<JoinHandle<_>> = made.iter().enumerate().map(site).collect();
        lie(&mut hub, MethodSession::of(&work, SumBounds::new(SIZES.len(), terms.max_rows)).unwrap(), change).await;
        hub.close(|_| None).await;
        counter.abort();
        let mut found = Vec::new();
        for site in sites {
            found.push(site.await.unwrap());
        }
        found
    });
    runtime.shutdown_background();
    found
}

async fn lie(hub: &mut AggregatorHost, mut conversation: MethodSession, change: impl Fn(u32, &mut Question)) {
    let mut keys = false;
    while !keys {
        match hub.next(Some(Instant::now() + Duration::from_secs(30))).await {
            HostEvent::Aggregator(aggregator::Event::DeckReady { .. }) => keys = true,
            HostEvent::Deadline => panic!("nobody came"),
            _ => {}
        }
    }
    let all = hub.cohort();
    assert!(counted(hub, all, Duration::from_secs(30)).await, "nobody counted");
    while let Turn::Ask(question, layout) = conversation.turn() {
        let mut question = (**question).clone();
        change(conversation.questions(), &mut question);
        hub.ask(question.to_bytes(), layout.words());
        loop {
            match hub.next(Some(Instant::now() + Duration::from_secs(30))).await {
                HostEvent::Aggregator(aggregator::Event::Total { values, cohort, .. }) => {
                    conversation.take(&values, &cohort).unwrap();
                    break;
                }
                HostEvent::Aggregator(aggregator::Event::Failed(_)) | HostEvent::Deadline => return,
                _ => {}
            }
        }
    }
}

/// Moves a centre of the question: the coordinator looks where it likes.
fn place_a_centre(question: &mut Question) {
    let Question::Cluster(batch) = question else { panic!("nothing is drawn here") };
    for query in &mut batch.queries {
        if let Query::FuzzySums(FuzzySums { centres, .. }) = query {
            let mut rows: Vec<Vec<f64>> = centres.rows().map(<[f64]>::to_vec).collect();
            rows[0][0] = (rows[0][0] + 0.03) % 1.0;
            *centres = veilsum_cluster::Centres::from_rows(&rows).unwrap();
        }
    }
}

#[test]
fn a_coordinator_that_places_a_centre_is_caught_by_every_site() {
    // The last puts the method's own questions alone; as it says no last word, the sites end without a result.
    for question in [2, 3, u32::MAX] {
        let folder = Folder::fresh();
        let sites = against(&folder.0, |number, asked| {
            if number == question {
                place_a_centre(asked);
            }
        });
        for site in &sites {
            if question == u32::MAX {
                assert!(!site.as_ref().is_err_and(|e| e.code == Code::Policy), "an accusation");
                continue;
            }
            let failure = site.as_ref().expect_err("nobody goes on with it");
            assert_eq!(failure.code, Code::Policy, "{failure:?}");
            assert!(failure.message.contains("OPN-9") && failure.message.contains("coordinator"), "{failure:?}");
        }
    }
}
