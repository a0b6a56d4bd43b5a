//! Plans that must not be agreed on, and aggregators that deviate from a plan against real sites on loopback.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use veilsum_cluster::{Centres, Clusters, Query, Rows, method::Seeding, query::FuzzySums, sampling::Sampling};
use veilsum_node::{
    app_messages::{Count, CountReady, CountReply, JudgeRequest},
    door::ledger,
    error::{Code, Failure},
    loopback::{LOOPBACK_TIMING, View},
    method_session::{MethodSession, Turn},
    plan::{Judge, PlanSpec},
    question::{Question, SumBounds},
    role::{
        aggregator_host::{AggregatorHost, HostEvent},
        client::{self, ClientConfig, ClientReport},
        dial::Line,
        server::{self, RunResult},
    },
};
use veilsum_proto::{
    aggregator::{self, Timing},
    message::{self, Kind},
    plan::{Sites, Terms},
    roster::PartyId,
};
use veilsum_testkit::{
    cast::{self, Cast},
    in_process::{self, made_up, unit_square},
    program::{Folder, ending},
};

const SIZES: [usize; 5] = [31, 44, 58, 37, 49];
const K: u32 = 3;

fn fcm(max_rounds: u32) -> PlanSpec {
    in_process::fcm(unit_square(), K, 0.0, max_rounds, Seeding::Uniform { seed: 11 })
}

// ---- plans ----------------------------------------------------------------------------------------------------------

fn cast(work: &PlanSpec, sites: usize, change: impl FnOnce(&mut Terms)) -> Result<Cast, String> {
    let names: Vec<String> = (0..sites).map(|i| format!("site-{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let cast = Cast::new(work, &names, |terms| {
        terms.slots = 64;
        terms.min_total_rows = u64::from(work.recipe.clusters.max);
        change(terms);
    });
    let cast = cast.map_err(|e| e.message)?;
    cast.federation.terms.check(&cast.federation.roster).map_err(|e| e.to_string())?;
    Ok(cast)
}

#[test]
fn a_sampled_plan_draws_more_sites_than_may_collude() {
    let mut work = fcm(5);
    // Six of 20 may collude, and two must be left.
    for (share, enough) in [(0.35, false), (0.4, true)] {
        work.sampling = Some(Sampling { share, seed: 1 });
        let refused = cast(&work, 20, |_| {}).err();
        assert_eq!(refused.is_none(), enough, "{refused:?}");
        assert!(refused.is_none_or(|refused| refused.contains("could show a single site")));
    }
}

/// A round over one column, for so many clusters.
fn narrow(k: u32) -> PlanSpec {
    in_process::fcm(unit_square()[..1].to_vec(), k, 0.0, 1, Seeding::Uniform { seed: 1 })
}

#[test]
fn plans_whose_distances_fit_no_frame_and_no_memory_are_refused() {
    let mut work = narrow(4_096);
    work.judge = Judge::Intermediary;
    let many = |terms: &mut Terms| terms.max_rows = 4_096;
    let refused = cast(&work, 3, many).err().expect("130 MB of distances at every site");
    assert!(refused.contains("one frame"), "{refused}");
    work.recipe.clusters = Clusters::exactly(1000);
    assert!(cast(&work, 3, many).is_ok());
    // Indices of 80 GB at the coordinator.
    let refused = cast(&narrow(100_000), 3, |terms| terms.max_rows = 100_000).err().expect("80 GB");
    assert!(!refused.contains("PLN-2"), "{refused}");
}

// ---- a coordinator that asks what it likes --------------------------------------------------------------------------

/// The real sites; what the first one receives goes to `view`.
fn sites(
    cast: &Cast,
    coordinator: SocketAddr,
    intermediary: SocketAddr,
    view: &View,
) -> Vec<JoinHandle<Result<ClientReport, Failure>>> {
    let site = |(i, (_, rows)): (usize, (String, Rows))| {
        let mut config = cast.site(i, &rows, coordinator, intermediary);
        if i == 0 {
            let view = view.clone();
            config.party.heard = Arc::new(move |from, frame| view.lock().unwrap().push((from, frame.to_vec())));
        }
        tokio::spawn(client::run(config))
    };
    made_up(&SIZES, 0.2, 3).into_iter().enumerate().map(site).collect()
}

async fn hub(cast: &Cast, role: PartyId, timing: Timing) -> AggregatorHost {
    cast.host(role, timing).await.unwrap()
}

fn words(cast: &Cast, question: &Question) -> usize {
    let work = &cast.federation.work;
    question.layout(&work.domain().unwrap(), &cast.federation.form().unwrap()).unwrap().words()
}

/// Runs this; what it has begun ends with it.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let found = runtime.block_on(future);
    runtime.shutdown_background();
    found
}

/// Waits for such an event; nothing where the run fails before.
async fn until<T>(hub: &mut AggregatorHost, wanted: impl Fn(aggregator::Event) -> Option<T>) -> Option<T> {
    loop {
        let found = match hub.next(Some(Instant::now() + Duration::from_secs(30))).await {
            HostEvent::Aggregator(aggregator::Event::Failed(_)) | HostEvent::Deadline => return None,
            HostEvent::Aggregator(event) => wanted(event),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
}

/// Waits for keys.
async fn ready(hub: &mut AggregatorHost) {
    until(hub, |event| matches!(event, aggregator::Event::DeckReady { .. }).then_some(())).await.expect("keys");
}

/// Has the intermediary count the rows of these sites, and waits for its word.
async fn counted_over(hub: &mut AggregatorHost, cohort: Vec<u16>) {
    assert!(cast::counted(hub, cohort, Duration::from_secs(30)).await, "nobody counted");
}

/// Says as the intermediary to all sites, once the coordinator has said who is to be counted, that the floor is reached; the word is then
/// also for the coordinator.
async fn says_counted(hub: &mut AggregatorHost, link: &mut Line) -> CountReady {
    let run = loop {
        let bytes = link.recv().await.unwrap().expect("a word of the coordinator");
        if message::kind_of(&bytes) == Some(Kind::Count) {
            break link.open::<Count>(&bytes, Kind::Count).unwrap().run;
        }
    };
    let word = CountReady { run, cohort: (0..SIZES.len() as u16).collect() };
    hub.stand_by(Kind::CountReady, &word);
    word
}

/// The total, where the sites open one.
async fn total(hub: &mut AggregatorHost, question: &Question, words: usize) -> Option<Vec<u64>> {
    hub.ask(question.to_bytes(), words);
    until(hub, |event| if let aggregator::Event::Total { values, .. } = event { Some(values) } else { None }).await
}

async fn answered(hub: &mut AggregatorHost, question: &Question, words: usize) -> bool {
    total(hub, question, words).await.is_some()
}

/// A coordinator whom these real sites and the real intermediary have given their keys.
async fn opened(cast: &Cast, timing: Timing) -> (AggregatorHost, Vec<JoinHandle<Result<ClientReport, Failure>>>) {
    let mut hub = hub(cast, PartyId::Coordinator, timing).await;
    let coordinator = hub.address().unwrap();
    let (intermediary, _) = cast.intermediary(coordinator, LOOPBACK_TIMING).await;
    let sites = sites(cast, coordinator, intermediary, &View::default());
    ready(&mut hub).await;
    (hub, sites)
}

/// What becomes of real sites under a coordinator that puts the method's own questions but for what `change` makes of the question with
/// that number.
fn against(cast: &Cast, change: impl Fn(u32, &mut Question)) -> Vec<Result<ClientReport, Failure>> {
    let terms = &cast.federation.terms;
    let mut conversation =
        MethodSession::of(&cast.federation.work, SumBounds::new(SIZES.len(), terms.max_rows)).unwrap();
    run(async {
        let (mut hub, sites) = opened(cast, LOOPBACK_TIMING).await;
        let all = hub.cohort();
        counted_over(&mut hub, all.clone()).await;
        while let Turn::Ask(question, layout) = conversation.turn() {
            let (mut question, words) = ((**question).clone(), layout.words());
            change(conversation.questions(), &mut question);
            let Some(values) = total(&mut hub, &question, words).await else { break };
            conversation.take(&values, &all).unwrap();
        }
        hub.close(|_| None).await;
        let mut found = Vec::new();
        for site in sites {
            found.push(site.await.unwrap());
        }
        found
    })
}

/// [OPN-9]: a coordinator that moves a centre of a question, and looks where it likes, is caught by every site; one that puts the method's
/// own questions and says no last word is accused by none.
#[test]
fn opn_9_a_coordinator_that_places_a_centre_is_caught_by_every_site() {
    let cast = cast(&fcm(4), SIZES.len(), |_| {}).unwrap();
    let moved = |question: &mut Question| {
        let Question::Cluster(batch) = question else { panic!("nothing is drawn here") };
        for query in &mut batch.queries {
            let Query::FuzzySums(FuzzySums { centres, .. }) = query else { panic!("a round") };
            let mut rows: Vec<Vec<f64>> = centres.rows().map(<[f64]>::to_vec).collect();
            rows[0][0] = (rows[0][0] + 0.03) % 1.0;
            *centres = Centres::from_rows(&rows).unwrap();
        }
    };
    for lie in [Some(2), Some(3), None] {
        for site in against(&cast, |number, asked| {
            if Some(number) == lie {
                moved(asked)
            }
        }) {
            let failure = site.err().filter(|failure| failure.code == Code::Policy);
            let caught = |it: &Failure| it.message.contains("OPN-9") && it.message.contains("coordinator");
            assert_eq!(failure.as_ref().map(caught), lie.map(|_| true), "{failure:?}");
        }
    }
}

fn noisy(rounds: u32) -> PlanSpec {
    let mut work = fcm(rounds);
    work.recipe.noise = Some(veilsum_cluster::privacy::Noise::usual(19.0, 200).from_anywhere());
    work.out_of_box = veilsum_cluster::OutOfBox::Clip;
    work
}

/// [APP-2]: what real sites send a coordinator that has the rows of `counted` counted, if of any, and asks all sites.
fn answers_over(counted: Option<Vec<u16>>) -> usize {
    let work = noisy(2);
    let cast = cast(&work, SIZES.len(), |terms| terms.sites = Sites::Any).unwrap();
    run(async {
        let (mut hub, _) = opened(&cast, Timing { phase: 4_000, ..LOOPBACK_TIMING }).await;
        if let Some(cohort) = counted {
            counted_over(&mut hub, cohort).await;
        }
        let first = Question::Cluster(work.first_question(SIZES.len()).unwrap());
        answered(&mut hub, &first, words(&cast, &first)).await;
        (0..SIZES.len())
            .filter(|i| {
                let sent = hub.traffic.0.get(&cast.federation.roster.sites[*i].name);
                sent.is_some_and(|sent| sent.contains_key("masked_input"))
            })
            .count()
    })
}

#[test]
fn app_2_no_site_answers_before_the_count_or_beyond_it() {
    let all = 0..SIZES.len() as u16;
    assert_eq!(answers_over(Some(all.clone().collect())), SIZES.len());
    assert_eq!(answers_over(None), 0, "answers before the count");
    assert_eq!(answers_over(Some(all.skip(1).collect())), 0, "a site is asked that was not counted");
}

/// [NOI-2]: the same parties, plan, question and rows, and noise of its own in every session: what the sites have in common would
/// cancel where one of them changed.
#[test]
fn noi_2_noise_is_new_in_every_session_of_a_plan() {
    let work = noisy(3);
    let first = Question::Cluster(work.first_question(SIZES.len()).unwrap());
    let cast = cast(&work, SIZES.len(), |_| {}).unwrap();
    let session = |_| {
        run(async {
            let (mut hub, _) = opened(&cast, LOOPBACK_TIMING).await;
            counted_over(&mut hub, (0..SIZES.len() as u16).collect()).await;
            total(&mut hub, &first, words(&cast, &first)).await.expect("a total")
        })
    };
    let [once, again] = [0; 2].map(session);
    assert_eq!((once.len(), again.len()), (10, 10));
    assert!(once.iter().zip(&again).all(|(a, b)| a != b), "equal noise in two sessions");
}

// ---- an intermediary that asks what it likes ------------------------------------------------------------------------

/// The real coordinator, and the test in the intermediary's place.
struct Played {
    server: JoinHandle<Result<RunResult, Failure>>,
    coordinator: SocketAddr,
    link: Line,
    hub: AggregatorHost,
}

impl Played {
    async fn by(cast: &Cast) -> Played {
        let (coordinator, entrance) = cast.port(0).await;
        let server = tokio::spawn(server::run(cast.server(LOOPBACK_TIMING, entrance)));
        let (me, patience) = (cast.party(1), Duration::from_secs(20));
        let link = Line::connect(&me, PartyId::Coordinator, &coordinator.into(), patience).await.unwrap();
        Played { server, coordinator, link, hub: hub(cast, PartyId::Intermediary, LOOPBACK_TIMING).await }
    }
}

/// [JRN-4], [RND-8]: an intermediary that went away may come back to the deck that a site holds, until the coordinator ends the
/// run: then nothing of it stays on disk.
#[test]
fn a_run_that_ended_without_its_intermediary_leaves_no_secrets() {
    let folder = Folder::fresh();
    let cast = cast(&fcm(2), SIZES.len(), |_| {}).unwrap();
    let state = |i: usize| folder.0.join(format!("site-{i}"));
    let journals = |i: usize| -> Vec<u64> {
        let files = ending(state(i), ".journal").into_iter();
        files.map(|path| std::fs::metadata(path).unwrap().len().saturating_sub(16)).collect()
    };
    run(async {
        let Played { server, coordinator, mut link, mut hub } = Played::by(&cast).await;
        let site = |(i, (_, rows)): (usize, (String, Rows))| {
            let config = cast.site(i, &rows, coordinator, hub.address().unwrap());
            ledger::begin(&state(i), &cast.identities[2 + i].digest_secret()).unwrap();
            let (state, patience) = (Some(state(i)), Duration::from_secs(2));
            tokio::spawn(client::run(ClientConfig { state, patience, ..config }))
        };
        let sites: Vec<_> = made_up(&SIZES, 0.2, 3).into_iter().enumerate().map(site).collect();
        ready(&mut hub).await;
        let word = says_counted(&mut hub, &mut link).await;
        drop(hub);
        // Time is what this is about: more than the sites' patience, so that each gives the intermediary up.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!((0..SIZES.len()).all(|i| journals(i).iter().all(|secrets| *secrets > 0)), "two decks");
        link.tell(Kind::CountReady, &word).await;
        for site in sites {
            let _ = site.await.unwrap();
        }
        drop((link, server));
    });
    for i in 0..SIZES.len() {
        assert_eq!(journals(i), [0, 0], "site {i}");
    }
}

/// [APP-2]: an intermediary that is killed when the sites' shares have left, and before its word, counts once more, and no site answers
/// the coordinator before that.
#[test]
fn app_2_an_intermediary_that_is_killed_before_its_word_counts_again() {
    let cast = cast(&fcm(2), SIZES.len(), |_| {}).unwrap();
    run(async {
        let Played { server, coordinator, mut link, hub: mut first } = Played::by(&cast).await;
        let at = first.address().unwrap();
        let view = View::default();
        sites(&cast, coordinator, at, &view);
        assert!(answered(&mut first, &Question::CountRows, 1).await);
        drop(first);
        let mut second = loop {
            let (party, role, timing) = (cast.party(1), PartyId::Intermediary, LOOPBACK_TIMING);
            // The port is free once the first one's tasks have ended.
            match AggregatorHost::open(party, role, timing, at.into(), None).await {
                Ok(hub) => break hub,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert!(answered(&mut second, &Question::CountRows, 1).await);
        let asked = |(from, bytes): &(PartyId, Vec<u8>)| {
            *from == PartyId::Coordinator && message::kind_of(bytes) == Some(Kind::Ask)
        };
        assert!(!view.lock().unwrap().iter().any(asked), "the coordinator asked before the word");
        let word = says_counted(&mut second, &mut link).await;
        link.tell(Kind::CountReady, &word).await;
        // The coordinator would wait for the last count as long as for a round.
        let last = async {
            while let Some(bytes) = link.recv().await.unwrap() {
                if message::kind_of(&bytes) == Some(Kind::CountRequest) {
                    link.tell(Kind::CountReply, &CountReply { total: None }).await;
                }
            }
        };
        let (result, ()) = tokio::join!(server, last);
        assert_eq!(result.unwrap().unwrap().cohort.len(), SIZES.len());
    });
}

#[test]
fn the_intermediary_cannot_put_one_judgement_in_two_forms() {
    // One question has one form, so that the same one again is known by its bytes.
    let mut work = fcm(2);
    work.judge = Judge::Intermediary;
    let cast = cast(&work, SIZES.len(), |_| {}).unwrap();
    run(async {
        let Played { coordinator, mut link, mut hub, .. } = Played::by(&cast).await;
        sites(&cast, coordinator, hub.address().unwrap(), &View::default());
        assert!(answered(&mut hub, &Question::CountRows, 1).await);
        let word = says_counted(&mut hub, &mut link).await;
        link.tell(Kind::CountReady, &word).await;
        let request: JudgeRequest = loop {
            let bytes = link.recv().await.unwrap().expect("a request");
            if message::kind_of(&bytes) == Some(Kind::JudgeRequest) {
                break link.open(&bytes, Kind::JudgeRequest).unwrap();
            }
        };
        let words = 2 * K + 1;
        let judge = |words| Question::Judge { digest: request.digest, words };
        assert!(answered(&mut hub, &judge(words), words as usize).await);
        assert!(!answered(&mut hub, &judge(words + 1), words as usize).await, "the same question under another name");
    });
}
