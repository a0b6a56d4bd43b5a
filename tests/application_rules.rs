//! Rules of the application that no vector can hold, on real connections: who is let in ([APP-1]), and a count that is too
//! small to be told ([APP-2]).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use veilsum_cluster::method::Seeding;
use veilsum_node::{
    app_messages::{self, Denied, Hello, Welcome},
    carrier::{Call, Carrier, Credentials, LinkReceiver, LinkSender, Network, Transport},
    documents::Federation,
    egress::Egress,
    error::Code,
    loopback::{LOOPBACK_TIMING, LoopbackConfig, LoopbackRun},
    plan::PlanSpec,
    role::server,
};
use veilsum_proto::{
    identity::Identity,
    message::{self, Kind, kind_of},
    plan::Terms,
    roster::PartyId,
    suite::Hash,
};
use veilsum_testkit::{
    cast::Cast,
    in_process::{config, fcm, made_up, prepared, run, unit_square},
};

const SIZES: [usize; 3] = [20, 25, 30];

fn work() -> PlanSpec {
    fcm(unit_square(), 2, 0.0, 2, Seeding::Uniform { seed: 1 })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), future).await.expect("an end") })
}

/// A coordinator that waits for its sites, and the documents.
async fn coordinator() -> (Vec<Arc<Identity>>, Federation, SocketAddr) {
    let small = |terms: &mut Terms| (terms.slots, terms.max_rows, terms.min_total_rows) = (4, 32, 2);
    let cast = Cast::new(&work(), &["site-2", "site-3", "site-4"], small).expect("a federation");
    let (address, entrance) = cast.port(0).await;
    tokio::spawn(server::run(cast.server(LOOPBACK_TIMING, entrance)));
    (cast.identities.clone(), cast.federation.clone(), address)
}

/// The first answer to a first frame, and whether the connection ends after it.
async fn knock(identity: &Identity, to: &Identity, address: SocketAddr, frame: &[u8]) -> (Option<Vec<u8>>, bool) {
    let credentials = Credentials::from_seed(&identity.seed()).expect("credentials");
    let key = to.public();
    let carrier = Network::new(Transport::Auto, None);
    let (to, check, limit) = (&address.into(), app_messages::header_check, Duration::from_secs(10));
    let link = carrier.dial(Call { to, expected: &key.0, credentials: &credentials, check, limit });
    let (mut sender, mut receiver): (LinkSender, LinkReceiver) = link.await.expect("a link").split();
    sender.send(&Egress::foreign(frame)).await.expect("sent");
    let answer = receiver.recv().await.ok().flatten();
    let quiet = tokio::time::timeout(Duration::from_millis(200), receiver.recv()).await;
    // Somebody who was let in is sent the opening of a deck.
    (answer, !matches!(quiet, Ok(Ok(Some(_)))))
}

/// [APP-1].
#[test]
fn app_1_only_a_greeting_with_the_same_documents_lets_somebody_in() {
    block_on(async {
        let (identities, Federation { roster, terms, .. }, address) = coordinator().await;
        let (hub, greeting) = (&identities[0], app_messages::greeting_session());
        let hello = |roster: Hash, plan: Hash| Hello { roster, plan: Some(plan), software: "test".into() };
        let good = hello(roster.hash(), terms.hash());
        for (what, bad) in [
            ("another plan", hello(roster.hash(), Hash([1; 32]))),
            ("another roster", hello(Hash([1; 32]), terms.hash())),
        ] {
            let frame = app_messages::frame(&identities[2], &greeting, Kind::Hello, &bad);
            let (answer, over) = knock(&identities[2], hub, address, &frame).await;
            let answer = answer.unwrap_or_else(|| panic!("{what}: no answer"));
            let denied: Denied =
                message::open(&answer, &greeting, &hub.public(), "hub", Kind::Denied).expect("a signed denial");
            let wanted =
                if bad.roster == roster.hash() { Denied::Plan(terms.hash()) } else { Denied::Roster(roster.hash()) };
            assert!(denied == wanted && over, "{what}: {denied}");
        }
        // Another frame first, a greeting signed by another site, and one for another session than that of greetings.
        let session = message::session(&terms.hash(), &roster.hash(), PartyId::Coordinator);
        for (what, frame) in [
            (
                "no greeting",
                app_messages::frame(&identities[2], &greeting, Kind::Welcome, &Welcome { software: "x".into() }),
            ),
            ("another's greeting", app_messages::frame(&identities[3], &greeting, Kind::Hello, &good)),
            ("another session", app_messages::frame(&identities[2], &session, Kind::Hello, &good)),
        ] {
            let (answer, over) = knock(&identities[2], hub, address, &frame).await;
            assert!(answer.as_deref().and_then(kind_of) != Some(Kind::Welcome) && over, "{what}");
        }
        let frame = app_messages::frame(&identities[2], &greeting, Kind::Hello, &good);
        let (answer, over) = knock(&identities[2], hub, address, &frame).await;
        let answer = answer.expect("an answer");
        message::open::<Welcome>(&answer, &greeting, &hub.public(), "hub", Kind::Welcome).expect("a signed welcome");
        assert!(!over, "and the first deck is opened to it");
    });
}

fn counted(least: u64) -> LoopbackRun {
    let work = work();
    // Rows are what they are, whatever the plan wants of them.
    assert_eq!(prepared(&work, &made_up(&SIZES, 0.2, 5)).iter().map(|p| p.len()).sum::<usize>(), 75);
    let terms = move |terms: &mut Terms| terms.min_total_rows = least;
    run(LoopbackConfig { terms: Box::new(terms), record: true, ..config(made_up(&SIZES, 0.2, 5), &work) })
}

/// [APP-2]: to the last row.
#[test]
fn app_2_a_count_below_the_floor_is_told_to_nobody_and_ends_the_run() {
    let enough = counted(75);
    assert_eq!(enough.counted.expect("a count").total, 75);
    assert_eq!(enough.result.expect("a result").n_total, Some(75));

    let few = counted(76);
    let failure = few.counted.expect_err("too few rows");
    assert_eq!(failure.code, Code::Policy, "{failure:?}");
    assert!(!format!("{failure:?}").contains("75"), "the number itself is told to nobody: {failure:?}");
    few.result.expect_err("no run");
    let view = few.coordinator_view.lock().expect("the view");
    let told = view.iter().filter(|(from, _)| *from == PartyId::Intermediary).filter_map(|(_, frame)| kind_of(frame));
    assert!(told.into_iter().all(|kind| matches!(kind, Kind::Hello | Kind::Aborted)), "the coordinator was told more");
    // Nothing else was asked or answered.
    assert!(view.iter().all(|(_, frame)| kind_of(frame) != Some(Kind::MaskedInput)), "a site answered below the floor");
    for site in few.sites {
        let why = site.expect_err("no run");
        assert!(why.message.contains("below the plan's floor"), "{why:?}");
    }
}
