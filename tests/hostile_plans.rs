//! Plans that must not be agreed on, and aggregators that deviate from a plan against real sites on loopback.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::oneshot, task::AbortHandle};
use veilsum_cluster::{
    Algorithm, Batch, Centres, Clusters, Query, Rows,
    method::{Choice, GroupThreshold, Pick, Seeding, TreeSeeding},
    query::{LocalMeans, LocalSteps, RoundHalf},
    sampling::Sampling,
};
use veilsum_node::{
    app_messages::{Count, CountReady, CountReply, CountRequest, Held, JudgeReply, JudgeRequest},
    documents::Federation,
    loopback::LOOPBACK_TIMING,
    plan::{Column, Judge, PlanSpec},
    question::{self, Question},
    replay::Replay,
    role::{
        View,
        aggregator_host::{AggregatorHost, HostEvent},
        client::{self, ClientConfig},
        dial::Line,
        server::{self},
        system_rng,
    },
};
use veilsum_proto::{
    aggregator::{self, Timing},
    identity::Identity,
    message::{self, Kind},
    plan::Terms,
    roster::PartyId,
    suite::Hash,
};
use veilsum_testkit::cast::Cast;
use veilsum_testkit::in_process::{federate, made_up, unit_square};

const SIZES: [usize; 5] = [31, 44, 58, 37, 49];
const K: u32 = 3;

fn fcm(max_rounds: u32) -> PlanSpec {
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds };
    PlanSpec::plain(unit_square(), fcm, K, Seeding::Uniform { seed: 11 })
}

// ---- plans ----------------------------------------------------------------------------------------------------------

fn cast(work: &PlanSpec, sites: usize, change: impl FnOnce(&mut Terms)) -> Result<Cast, String> {
    let identities = (0..sites + 2).map(|_| Arc::new(Identity::generate(&mut system_rng()))).collect();
    cast_of(identities, work, change)
}

/// A plan of these parties: coordinator, intermediary, sites.
fn cast_of(identities: Vec<Arc<Identity>>, work: &PlanSpec, change: impl FnOnce(&mut Terms)) -> Result<Cast, String> {
    let names: Vec<String> = (0..identities.len() - 2).map(|i| format!("site-{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let cast = Cast::of(identities, work, &names, |terms| {
        (terms.block_size, terms.slots) = (u16::from(work.sampling.is_some()), 64);
        terms.min_total_rows = u64::from(work.most_clusters());
        // What a site admits without a copy of the method of its own; tests/opening.rs has one.
        terms.opening = false;
        change(terms);
    });
    let cast = cast.map_err(|e| e.message)?;
    cast.federation.terms.check(&cast.federation.roster).map_err(|e| e.to_string())?;
    Ok(cast)
}

#[test]
fn a_sampled_plan_reckons_with_losses_in_every_deck_and_not_only_in_the_first() {
    let mut work = fcm(5);
    work.sampling = Some(Sampling { share: 0.7, seed: 1 });
    // 14 of 20 drawn. A deck of 20 keeps 14, but a deck of 14 keeps 11, and so on down to 8: 12 may be missing, not 6.
    let refused = cast(&work, 20, |_| {}).err().expect("a total could show a single site");
    assert!(refused.contains("12 that may be missing"), "{refused}");
    assert!(cast(&work, 20, |terms| terms.min_cohort = 14).is_ok());
}

#[test]
fn a_plan_whose_distances_fit_no_frame_is_refused_before_a_site_computes_them() {
    let columns = vec![Column { name: "x".into(), lower: 0.0, upper: 1.0 }];
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 1 };
    let mut work = PlanSpec::plain(columns, fcm, 4_096, Seeding::Uniform { seed: 1 });
    work.judge = Judge::Intermediary;
    let many = |terms: &mut Terms| terms.max_rows = 4_096;
    let refused = cast(&work, 3, many).err().expect("130 MB of distances at every site");
    assert!(refused.contains("one frame"), "{refused}");
    work.recipe.clusters = Clusters::exactly(1000);
    assert!(cast(&work, 3, many).is_ok());
}

#[test]
fn a_plan_whose_indices_take_80_gb_at_the_coordinator_is_refused() {
    let columns = vec![Column { name: "x".into(), lower: 0.0, upper: 1.0 }];
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 1 };
    let work = PlanSpec::plain(columns, fcm, 100_000, Seeding::Uniform { seed: 1 });
    let refused = cast(&work, 3, |terms| terms.max_rows = 100_000).err().expect("80 GB");
    assert!(!refused.contains("PLN-4"), "{refused}");
}

#[test]
fn seeding_without_counts_first_is_answered_by_real_sites() {
    for rule in [GroupThreshold::NONE, GroupThreshold { min_rows: 5, min_sites: 2, ask_first: false }] {
        let mut work = fcm(5);
        work.recipe.rule = rule;
        work.recipe.seeding =
            Seeding::Tree(TreeSeeding { seed: 1, cells_per_cluster: 4, tries: 5, min_rows: 5, blur: 0.5 });
        let (run, _) = federate(made_up(&SIZES, 0.2, 3), &work, Vec::new(), false);
        run.result.unwrap_or_else(|e| panic!("{rule:?}: {e}"));
    }
}

// ---- a coordinator that asks what it likes --------------------------------------------------------------------------

/// The real sites; what the first one receives goes to `view`.
fn sites(cast: &Cast, coordinator: SocketAddr, intermediary: SocketAddr, view: &View) -> Vec<AbortHandle> {
    let site = |(i, (_, rows)): (usize, (String, Rows))| {
        let view = (i == 0).then(|| view.clone());
        let mut config = cast.site(i, &rows, coordinator, intermediary);
        config.party.view = view;
        tokio::spawn(client::run(config)).abort_handle()
    };
    made_up(&SIZES, 0.2, 3).into_iter().enumerate().map(site).collect()
}

async fn hub(cast: &Cast, role: PartyId, timing: Timing) -> AggregatorHost {
    let slots = if role == PartyId::Intermediary { 4 } else { cast.federation.terms.slots };
    cast.host(role, timing, slots).await.unwrap()
}

fn words(cast: &Cast, question: &Question) -> usize {
    let work = &cast.federation.work;
    question.layout(&work.domain().unwrap(), &cast.federation.form().unwrap()).unwrap().words()
}

/// Ends its tasks with it.
struct Tasks(Vec<AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let found = runtime.block_on(future);
    runtime.shutdown_background();
    found
}

/// Waits for keys.
async fn ready(hub: &mut AggregatorHost) {
    loop {
        match hub.next(Some(Instant::now() + Duration::from_secs(30))).await {
            HostEvent::Aggregator(aggregator::Event::DeckReady { .. }) => return,
            HostEvent::Aggregator(aggregator::Event::Failed(e)) => panic!("{e}"),
            HostEvent::Deadline => panic!("nobody came"),
            _ => {}
        }
    }
}

/// Has the intermediary count the rows of all sites, and waits for its word.
async fn counted(hub: &mut AggregatorHost) {
    let run = hub.run();
    hub.stand_by(Kind::Count, &Count { run, cohort: (0..SIZES.len() as u16).collect() });
    loop {
        match hub.next(Some(Instant::now() + Duration::from_secs(30))).await {
            HostEvent::Control { from: PartyId::Intermediary, kind: Kind::CountReady, .. } => return,
            HostEvent::Deadline => panic!("nobody counted"),
            _ => {}
        }
    }
}

/// The total, where the sites open one.
async fn total(hub: &mut AggregatorHost, question: &Question, words: usize) -> Option<Vec<u64>> {
    hub.ask(question.to_bytes(), words);
    loop {
        match hub.next(Some(Instant::now() + Duration::from_secs(30))).await {
            HostEvent::Aggregator(aggregator::Event::Total { values, .. }) => return Some(values),
            HostEvent::Aggregator(aggregator::Event::Failed(_)) | HostEvent::Deadline => return None,
            _ => {}
        }
    }
}

async fn answered(hub: &mut AggregatorHost, question: &Question, words: usize) -> bool {
    total(hub, question, words).await.is_some()
}

/// What real sites open to a coordinator that puts these questions, up to the first that they refuse.
fn totals(work: &PlanSpec, change: impl FnOnce(&mut Terms), questions: &[Question]) -> Vec<Vec<u64>> {
    session(&cast(work, SIZES.len(), change).unwrap(), questions)
}

/// The same in one session of these parties.
fn session(cast: &Cast, questions: &[Question]) -> Vec<Vec<u64>> {
    run(async {
        let mut hub = hub(cast, PartyId::Coordinator, LOOPBACK_TIMING).await;
        let coordinator = hub.address().unwrap();
        let (intermediary, task) = cast.intermediary(coordinator, LOOPBACK_TIMING).await;
        let mut tasks = Tasks(sites(cast, coordinator, intermediary, &View::default()));
        tasks.0.push(task.abort_handle());
        ready(&mut hub).await;
        let mut found = Vec::new();
        for question in questions {
            let Some(values) = total(&mut hub, question, words(cast, question)).await else { break };
            found.push(values);
        }
        found
    })
}

/// The place of the first question that they refuse.
fn refused_at(work: &PlanSpec, change: impl FnOnce(&mut Terms), questions: &[Question]) -> Option<usize> {
    let found = totals(work, change, questions).len();
    (found < questions.len()).then_some(found)
}

fn centres(last: f64) -> Centres {
    Centres::from_rows(&[vec![0.2, 0.2], vec![0.8, 0.3], vec![0.5, last]]).unwrap()
}

/// [APP-6].
#[test]
fn app_6_draws_begin_at_one_and_no_question_is_put_to_two_draws() {
    let mut work = fcm(6);
    work.sampling = Some(Sampling { share: 0.8, seed: 1 });
    let terms = |terms: &mut Terms| (terms.min_cohort, terms.colluders) = (SIZES.len() as u16, 1);
    let first = work.first_question(SIZES.len()).unwrap();
    let next: Batch = Query::fuzzy_sums(centres(0.8), 2.0).into();
    let drawn = |number, batch: &Batch| Question::Drawn { number, batch: batch.clone() };
    assert_eq!(refused_at(&work, terms, &[drawn(1, &first), drawn(2, &next)]), None);
    assert_eq!(refused_at(&work, terms, &[drawn(0, &first)]), Some(0), "the draws begin at 1");
    assert_eq!(refused_at(&work, terms, &[drawn(1, &first), drawn(3, &next)]), Some(1), "a draw is left out");
    let twice = [drawn(1, &first), drawn(2, &next), drawn(3, &first)];
    assert_eq!(refused_at(&work, terms, &twice), Some(2), "the difference is that of two draws");
}

#[test]
fn sites_refuse_sums_of_centres_that_were_not_counted() {
    let mut work = fcm(6);
    work.recipe.algorithm = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 6 };
    work.recipe.rule = GroupThreshold { min_rows: 5, min_sites: 2, ask_first: true };
    let first = work.first_question(SIZES.len()).unwrap();
    let means = |centres, part| {
        let query = LocalMeans { centres, local: LocalSteps::ONE, min_rows: 1, nearest: false, part };
        Question::Cluster(Query::LocalMeans(query).into())
    };
    let counted = match &first.queries[0] {
        Query::LocalMeans(q) => q.centres.clone(),
        _ => unreachable!(),
    };
    let asked = |centres| [Question::Cluster(first.clone()), means(centres, RoundHalf::Sums(vec![0]))];
    assert_eq!(refused_at(&work, |_| {}, &asked(counted)), None);
    assert_eq!(refused_at(&work, |_| {}, &asked(centres(0.8))), Some(1));
}

#[test]
fn one_part_of_a_run_does_not_use_the_questions_of_another() {
    let mut work = fcm(2);
    work.recipe.algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 1 };
    work.recipe.preparation.scale = veilsum_cluster::method::Scale::Standard;
    let first = work.first_question(SIZES.len()).unwrap();
    let around = |x: f64| {
        let moments = veilsum_cluster::query::Moments { around: Some(vec![x, 0.5]) };
        Question::Cluster(Query::Moments(moments).into())
    };
    let asked = [Question::Cluster(first), around(0.5), around(0.4)];
    assert_eq!(refused_at(&work, |_| {}, &asked), Some(2), "squares around another point");
}

/// [APP-7].
#[test]
fn app_7_blur_does_not_average_out_over_repeated_questions() {
    let mut work = fcm(3);
    let tree = |blur| TreeSeeding { seed: 1, cells_per_cluster: 4, tries: 5, min_rows: 5, blur };
    work.recipe.seeding = Seeding::Tree(tree(0.5));
    let first = Question::Cluster(work.first_question(SIZES.len()).unwrap());
    let found = totals(&work, |_| {}, &[first.clone(), first]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], found[1], "fresh noise");
    assert!(totals(&work, |_| {}, &[Question::Cluster(work.first_question(SIZES.len()).unwrap())])[0] != found[0]);
}

/// [APP-7]: plans that differ in what comes after a blurred question do not show it under several noises, of which the ledger would count one.
#[test]
fn app_7_blur_does_not_average_out_over_plans() {
    let plan = |max_rounds| {
        let mut work = fcm(max_rounds);
        work.recipe.seeding =
            Seeding::Tree(TreeSeeding { seed: 1, cells_per_cluster: 4, tries: 5, min_rows: 5, blur: 0.5 });
        work
    };
    let before = cast(&plan(3), SIZES.len(), |_| {}).unwrap();
    let after = cast_of(before.identities.clone(), &plan(4), |_| {}).unwrap();
    let first = Question::Cluster(plan(3).first_question(SIZES.len()).unwrap());
    let [once, again] = [&before, &after].map(|cast| session(cast, std::slice::from_ref(&first)));
    assert_eq!((once.len(), once), (1, again), "fresh noise under another plan");
}

/// [APP-7]: how far a column reaches says how much its blur is. Where working units are the columns' own, the same question under another
/// box has another noise: two multiples of one noise would be taken off each other.
#[test]
fn app_7_blur_cannot_be_taken_off_by_another_box() {
    let plan = |upper: f64| {
        let mut work = fcm(3);
        work.recipe.seeding =
            Seeding::Tree(TreeSeeding { seed: 1, cells_per_cluster: 4, tries: 5, min_rows: 5, blur: 0.5 });
        work.scaling = veilsum_cluster::Scaling::None;
        work.columns.iter_mut().for_each(|column| column.upper = upper);
        work
    };
    let cast = |identities, upper: f64| cast_of(identities, &plan(upper), |_| {}).unwrap();
    let fresh = (0..SIZES.len() + 2).map(|_| Arc::new(Identity::generate(&mut system_rng()))).collect();
    let before = cast(fresh, 1.0);
    let first = Question::Cluster(plan(1.0).first_question(SIZES.len()).unwrap());
    assert_eq!(first, Question::Cluster(plan(1.5).first_question(SIZES.len()).unwrap()), "one question");
    let rows = |cast: &Cast| {
        let found = session(cast, std::slice::from_ref(&first));
        let federation = &cast.federation;
        let layout = first.layout(&federation.work.domain().unwrap(), &federation.form().unwrap()).unwrap();
        layout.decode(&found[0], SIZES.len(), None).unwrap().values[0]
    };
    // The number of rows has the same blur in either box, but for the noise.
    let (one, same, other) =
        (rows(&before), rows(&cast(before.identities.clone(), 1.0)), rows(&cast(before.identities.clone(), 1.5)));
    assert!(one == same && one != other, "{one} {same} {other}");
}

/// [APP-7], [OPN-9]: where sites follow the method by opened totals, a question under blur is the copy's to the last digit: answers to two
/// that differ by so little would differ by less than their blur.
#[test]
fn app_7_a_question_under_blur_is_the_copys_to_the_bit() {
    let mut work = fcm(3);
    work.recipe.seeding =
        Seeding::Tree(TreeSeeding { seed: 1, cells_per_cluster: 4, tries: 5, min_rows: 5, blur: 0.5 });
    let cast = cast(&work, SIZES.len(), |terms| terms.opening = true).unwrap();
    let Federation { roster, terms, work, .. } = &cast.federation;
    let mut copy = Replay::new(roster.clone(), terms.clone(), work.clone()).unwrap();
    let first = copy.asks().unwrap().clone();
    let begun = session(&cast, std::slice::from_ref(&first));
    copy.take(&begun[0], &[0, 1, 2, 3, 4]).unwrap();
    let Some(Question::Cluster(batch)) = copy.asks().cloned() else { panic!("no second question") };
    let moved = |by: f64| {
        let mut batch = batch.clone();
        let Query::Cells(cells) = &mut batch.queries[0] else { panic!("not about cells") };
        assert!(cells.blur.is_some());
        cells.tree.splits.last_mut().expect("a split").at += by;
        Question::Cluster(batch)
    };
    for (by, answers) in [(0.0, 2), (1e-12, 1)] {
        let found = session(&cast, &[first.clone(), moved(by)]);
        assert_eq!((found.len(), &found[0]), (answers, &begun[0]), "{by}");
    }
}

/// [NOI-2]: the same parties, plan, question and rows, and noise of its own in every session: what the sites have in common would
/// cancel where one of them changed.
#[test]
fn noi_2_noise_is_new_in_every_session_of_a_plan() {
    let mut work = fcm(3);
    work.recipe.noise = Some(veilsum_cluster::privacy::Noise::usual(50.0, 200));
    (work.step_bits, work.out_of_box) = (Some(20), veilsum_cluster::OutOfBox::Clip);
    let first = Question::Cluster(work.first_question(SIZES.len()).unwrap());
    let cast = cast(&work, SIZES.len(), |terms| terms.opening = true).unwrap();
    let [once, again] = [0; 2].map(|_| session(&cast, std::slice::from_ref(&first)).concat());
    assert_eq!((once.len(), again.len()), (9, 9));
    assert!(once.iter().zip(&again).all(|(a, b)| a != b), "equal noise in two sessions");
}

// ---- an intermediary that asks what it likes ------------------------------------------------------------------------

/// [JRN-4], [RND-8]: an intermediary that went away may come back to the deck that a site holds, until the coordinator ends the
/// run: then nothing of it stays on disk.
#[test]
fn a_run_that_ended_without_its_intermediary_leaves_no_secrets() {
    let folder = veilsum_testkit::program::Folder::fresh();
    let cast = cast(&fcm(2), SIZES.len(), |_| {}).unwrap();
    let state = |i: usize| folder.0.join(format!("site-{i}"));
    let journals = |i: usize| -> Vec<u64> {
        let files = std::fs::read_dir(state(i)).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|e| e == "journal"));
        files.map(|path| std::fs::metadata(path).unwrap().len().saturating_sub(16)).collect()
    };
    run(async {
        let (bound, address) = oneshot::channel();
        let server = tokio::spawn(server::run(cast.server(LOOPBACK_TIMING, bound)));
        let coordinator = address.await.unwrap();
        let patience = Duration::from_secs(20);
        let me = cast.party(1);
        let mut link = Line::connect(&me, PartyId::Coordinator, &coordinator.into(), patience).await.unwrap();
        let mut hub = hub(&cast, PartyId::Intermediary, LOOPBACK_TIMING).await;
        let site = |(i, (_, rows)): (usize, (String, Rows))| {
            let config = cast.site(i, &rows, coordinator, hub.address().unwrap());
            let (state, patience) = (Some(state(i)), Duration::from_secs(2));
            tokio::spawn(client::run(ClientConfig { state, patience, ..config }))
        };
        let sites: Vec<_> = made_up(&SIZES, 0.2, 3).into_iter().enumerate().map(site).collect();
        ready(&mut hub).await;
        drop(hub);
        // Time is what this is about: more than the sites' patience, so that each gives the intermediary up.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!((0..SIZES.len()).all(|i| journals(i).iter().all(|secrets| *secrets > 0)), "two decks");
        link.tell(Kind::CountReady, &CountReady { cohort: (0..SIZES.len() as u16).collect() }).await;
        for site in sites {
            let _ = site.await.unwrap();
        }
        drop((link, server));
    });
    for i in 0..SIZES.len() {
        assert_eq!(journals(i), [0, 0], "site {i}");
    }
}

#[test]
fn the_intermediary_cannot_put_one_judgement_in_two_forms() {
    // One question has one form, so that the same one again is known by its bytes.
    let mut work = fcm(2);
    work.judge = Judge::Intermediary;
    let cast = cast(&work, SIZES.len(), |_| {}).unwrap();
    run(async {
        let (bound, address) = oneshot::channel();
        let config = cast.server(LOOPBACK_TIMING, bound);
        let server = tokio::spawn(server::run(config));
        let coordinator = address.await.unwrap();
        let patience = Duration::from_secs(20);
        let me = cast.party(1);
        let mut link = Line::connect(&me, PartyId::Coordinator, &coordinator.into(), patience).await.unwrap();
        let mut hub = hub(&cast, PartyId::Intermediary, LOOPBACK_TIMING).await;
        let mut tasks = Tasks(sites(&cast, coordinator, hub.address().unwrap(), &View::default()));
        tasks.0.push(server.abort_handle());
        assert!(answered(&mut hub, &Question::CountRows, 1).await);
        link.tell(Kind::CountReady, &CountReady { cohort: (0..SIZES.len() as u16).collect() }).await;
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

// ---- open -----------------------------------------------------------------------------------------------------------

/// [APP-5]: the verdict first, and then the count.
#[test]
fn verdict_and_count_together_do_not_show_the_rows_of_a_site_that_was_left_out() {
    let (judged, counted) = verdict_and_count(false);
    assert!(judged.is_some(), "no verdict");
    assert_eq!(counted, None, "the rows of the first site are {judged:?} less");
}

/// [APP-5]: the count first, and then the verdict.
#[test]
fn count_and_verdict_together_do_not_show_the_rows_of_a_site_that_was_left_out() {
    let (judged, counted) = verdict_and_count(true);
    assert_eq!(counted, Some(SIZES.iter().sum::<usize>() as u64));
    assert_eq!(judged, None, "the rows of the first site are {counted:?} less");
}

/// The rows that a coordinator is told which has the result judged without the first site, by the verdict and by the count; the count is
/// asked for `first` or last.
fn verdict_and_count(first: bool) -> (Option<u64>, Option<u64>) {
    let mut work = fcm(2);
    work.judge = Judge::Intermediary;
    // Each site is a block by itself: of a block, none is left out.
    let cast = cast(&work, SIZES.len(), |terms| terms.block_size = 1).unwrap();
    run(async {
        let mut hub = hub(&cast, PartyId::Coordinator, LOOPBACK_TIMING).await;
        let coordinator = hub.address().unwrap();
        let timing = Timing { phase: 6_000, ..LOOPBACK_TIMING };
        let (intermediary, task) = cast.intermediary(coordinator, timing).await;
        let mut tasks = Tasks(sites(&cast, coordinator, intermediary, &View::default()));
        tasks.0.push(task.abort_handle());
        ready(&mut hub).await;
        let start = Question::Cluster(work.first_question(SIZES.len()).unwrap());
        assert!(answered(&mut hub, &start, words(&cast, &start)).await);
        counted(&mut hub).await;
        let batch: Batch = Query::fuzzy_validation(centres(0.8), 2.0).into();
        let domain = work.domain().unwrap();
        let layout = question::Layout::of_judged(&batch, &domain, &cast.federation.form().unwrap()).unwrap();
        let request = JudgeRequest {
            digest: question::digest(&batch),
            clusters: vec![K],
            grouped: vec![true],
            exponents: layout.exponents(),
        };
        for site in 1..SIZES.len() as u16 {
            hub.tell(PartyId::Site(site), Kind::Held, &Held { batch: batch.clone() });
        }
        let count = || CountRequest { cohort: (0..SIZES.len() as u16).collect() };
        match first {
            true => hub.tell(PartyId::Intermediary, Kind::CountRequest, &count()),
            false => hub.tell(PartyId::Intermediary, Kind::JudgeRequest, &request),
        };
        let (mut judged, mut counted) = (None, None);
        let session = hub.session();
        loop {
            match hub.next(Some(Instant::now() + Duration::from_secs(if first { 20 } else { 40 }))).await {
                HostEvent::Control { from, kind: Kind::JudgeReply, bytes } => {
                    let reply: JudgeReply = hub.open_control(from, &session, Kind::JudgeReply, &bytes).unwrap();
                    judged = Some(reply.open().unwrap()[0].rows);
                    if first {
                        return (judged, counted);
                    }
                    hub.tell(PartyId::Intermediary, Kind::CountRequest, &count());
                }
                HostEvent::Control { from, kind: Kind::CountReply, bytes } => {
                    let reply: CountReply = hub.open_control(from, &session, Kind::CountReply, &bytes).unwrap();
                    counted = reply.total;
                    if !first {
                        return (judged, counted);
                    }
                    hub.tell(PartyId::Intermediary, Kind::JudgeRequest, &request);
                }
                HostEvent::Control { kind: Kind::Aborted, .. } | HostEvent::Deadline => return (judged, counted),
                _ => {}
            }
        }
    })
}

/// Deck, slot, cohort, words, context and total before, query.
type Ask = (u32, u16, Vec<u16>, u32, Hash, Hash, Vec<u8>);

#[test]
fn sums_are_of_the_sites_whose_counts_allowed_them() {
    let mut work = fcm(6);
    work.recipe.algorithm = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 4 };
    work.recipe.rule = GroupThreshold { min_rows: 5, min_sites: 2, ask_first: true };
    work.recipe.choice = Choice { by: Pick::DaviesBouldin, elbow: false };
    work.sampling = Some(Sampling { share: 0.8, seed: 1 });
    let cast = cast(&work, SIZES.len(), |terms| (terms.min_cohort, terms.colluders) = (SIZES.len() as u16, 1)).unwrap();
    let view = View::default();
    run(async {
        let Federation { roster: _, terms: _, .. } = cast.federation.clone();
        let (bound, address) = oneshot::channel();
        let config = cast.server(LOOPBACK_TIMING, bound);
        let server = tokio::spawn(server::run(config));
        let coordinator = address.await.unwrap();
        let (intermediary, task) = cast.intermediary(coordinator, LOOPBACK_TIMING).await;
        let mut tasks = Tasks(sites(&cast, coordinator, intermediary, &view));
        tasks.0.push(task.abort_handle());
        server.await.unwrap().unwrap();
    });
    let Federation { roster, terms, .. } = &cast.federation;
    let session = message::session(&terms.hash(), &roster.hash(), PartyId::Coordinator);
    let mut draws = Vec::new();
    for (from, bytes) in view.lock().unwrap().iter() {
        if *from == PartyId::Coordinator && message::kind_of(bytes) == Some(Kind::Ask) {
            let ask: Ask = message::open(bytes, &session, &roster.coordinator.key, "coordinator", Kind::Ask).unwrap();
            if let Question::Drawn { number, batch } = Question::from_bytes(&ask.6).unwrap() {
                let Query::LocalMeans(q) = &batch.queries[0] else { continue };
                draws.push((number, q.part.clone()));
            }
        }
    }
    for pair in draws.windows(2) {
        if let [(counted, RoundHalf::Counts), (summed, RoundHalf::Sums(_))] = pair {
            assert_eq!(counted, summed, "counts of one draw, sums of another");
        }
    }
    assert!(draws.len() > 1);
}
