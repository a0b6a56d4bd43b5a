//! Wall time of a masked run against the same run unmasked: `cargo bench --bench masked_ratio`.
//!
//! 20 sites of 5,000 rows, K = 10, d = 16, 20 rounds and the validation, all parties in one process over QUIC on
//! loopback. Masked is the product. Unmasked is code of this file only: the same carrier, the same statistic and fixed
//! point, but each site sends its plain words in one frame a round to a server that adds them up. The product has no
//! such path.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use veilsum_cluster::{Algorithm, Prepared, Rows, Step, method::Seeding, random::Stream};
use veilsum_node::{
    carrier::{self, Call, Carrier, Credentials, HEADER_LEN, HeaderCheck, Network, Transport},
    egress::Egress,
    loopback::{self, LoopbackConfig, LoopbackSite},
    plan::{Column, PlanSpec},
    question::{Question, SumBounds, Terms, contribute},
    random::system_rng,
    role::server::Progress,
};
use veilsum_proto::identity::Identity;
use veilsum_testkit::{
    cost::{Cost, Timed},
    measure::{Spread, for_real, print_machine, seconds},
};

const LABEL: &[u8; 24] = b"veilsum bench ratio   v1";
const K: usize = 10;
const COLUMNS: usize = 16;

struct Size {
    sites: usize,
    rows: usize,
    rounds: u32,
    repetitions: usize,
}

/// One run: when each total was there.
struct Run {
    marks: Vec<Instant>,
    centres: Vec<Vec<f64>>,
}

impl Run {
    /// Milliseconds of a round on the wall, from the first total to the last: keys and connections stay outside.
    fn per_round(&self) -> f64 {
        let [first, rest @ .., last] = &self.marks[..] else { return f64::NAN };
        1e3 * (*last - *first).as_secs_f64() / (rest.len() + 1) as f64
    }
}

type Marks = Arc<Mutex<Vec<Instant>>>;

fn mark(marks: &Marks) {
    if let Ok(mut marks) = marks.lock() {
        marks.push(Instant::now());
    }
}

fn main() {
    println!("masked against unmasked, both over QUIC on loopback; `cargo bench --bench masked_ratio`");
    print_machine();
    let size = if for_real() {
        Size { sites: 20, rows: rows_asked_for().unwrap_or(5_000), rounds: 20, repetitions: 7 }
    } else {
        Size { sites: 4, rows: 50, rounds: 2, repetitions: 1 }
    };
    let (sites, work) = example(&size);
    let Size { sites: n, rows, rounds, .. } = size;
    println!("{n} sites x {rows} rows, K = {K}, d = {COLUMNS}, {rounds} rounds and a validation");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (mut masked, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..size.repetitions {
        // In turn, so that what else the machine does meets both.
        masked.push(runtime.block_on(masked_run(&sites, &work)));
        plain.push(runtime.block_on(plain_run(&sites, &work)));
    }
    for (a, b) in masked.iter().zip(&plain) {
        assert_eq!(a.centres, b.centres, "both runs end at the same centres, to the last bit");
    }
    let wall = |runs: &[Run]| Spread::of(runs.iter().map(Run::per_round)).to_string();
    let ratio = Spread::of(masked.iter().zip(&plain).map(|(a, b)| a.per_round() / b.per_round())).to_string();
    println!("\n{:<42}{:>30}{:>30}{:>24}", "median (smallest to largest)", "masked", "unmasked", "ratio");
    println!("{:<42}{:>30}{:>30}{ratio:>24}", "wall time of a round, ms", wall(&masked), wall(&plain));
    in_memory(&size, &sites, &work);
    println!();
    print_machine();
}

/// `cargo bench --bench masked_ratio -- --rows 100000`: more to compute for the same protocol.
fn rows_asked_for() -> Option<usize> {
    std::env::args().skip_while(|a| a != "--rows").nth(1)?.parse().ok()
}

/// What a round waits for, from the same round played in memory.
fn in_memory(size: &Size, sites: &[(String, Rows)], work: &PlanSpec) {
    let domain = work.domain().expect("a box");
    let question = Question::Cluster(work.first_question(size.sites).expect("a question"));
    let rows = Prepared::new(&sites[0].1, &domain, work.out_of_box).expect("rows");
    let limit = size.rows.next_power_of_two() as u64;
    let terms = Terms::everybody(SumBounds::new(size.sites, limit));
    let sums = Spread::of((0..20).map(|_| 1e3 * seconds(|| contribute(&question, &rows, &terms))));
    let mut pump = Timed::new(size.sites, 16);
    let costs: Vec<Cost> = (0..12).map(|_| pump.round(K * COLUMNS + K, [])).collect();
    let milli = |of: &dyn Fn(&Cost) -> Duration| Spread::of(costs.iter().map(|c| 1e3 * of(c).as_secs_f64()));
    let in_a_row = milli(&|c| c.aggregator_total() + c.sites_total() / size.sites as u32);
    println!("\na site's own sums, one core: {sums:.3} ms");
    println!("with a machine for each party a round waits for {in_a_row:.2} ms of protocol (aggregator and one site)");
}

fn example(size: &Size) -> (Vec<(String, Rows)>, PlanSpec) {
    let mut stream = Stream::new(1, LABEL);
    let means: Vec<f64> = (0..K * COLUMNS).map(|_| 0.2 + 0.6 * stream.unit()).collect();
    let mut row = || {
        let k = stream.below(K as u64) as usize;
        let mut noise = std::iter::repeat_with(|| stream.normal_pair()).flatten();
        means[k * COLUMNS..(k + 1) * COLUMNS]
            .iter()
            .map(|m| (m + 0.05 * noise.next().unwrap_or(0.0)).clamp(0.0, 1.0))
            .collect::<Vec<f64>>()
    };
    let sites = (0..size.sites)
        .map(|s| {
            let values = (0..size.rows).flat_map(|_| row()).collect();
            (format!("site-{s}"), Rows::new(values, COLUMNS).expect("whole rows"))
        })
        .collect();
    let column = |i| Column { name: format!("c{i}"), lower: 0.0, upper: 1.0 };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: size.rounds };
    let columns = (0..COLUMNS).map(column).collect();
    (sites, PlanSpec::plain(columns, fcm, K as u32, Seeding::Uniform { seed: 1 }))
}

async fn masked_run(sites: &[(String, Rows)], work: &PlanSpec) -> Run {
    let marks = Marks::default();
    let seen = marks.clone();
    let config = LoopbackConfig {
        progress: Arc::new(move |p| {
            if matches!(p, Progress::Round { .. }) {
                mark(&seen);
            }
        }),
        ..LoopbackConfig::new(sites.iter().cloned().map(LoopbackSite::from).collect(), work.clone())
    };
    let run = loopback::run(config).await.expect("a federation");
    let result = run.result.expect("a result");
    let marks = std::mem::take(&mut *marks.lock().expect("marks"));
    Run { marks, centres: result.centres }
}

// ---- the unmasked run: nothing of this is in the product ----

fn header_only(header: &[u8; HEADER_LEN]) -> Result<usize, String> {
    let [.., a, b, c, d] = *header;
    Ok((u32::from_le_bytes([a, b, c, d]) as usize).min(1 << 24))
}

fn frame(body: &[u8]) -> Vec<u8> {
    [&[1, 0, 0, 0], &(body.len() as u32).to_le_bytes()[..], body].concat()
}

async fn plain_run(sites: &[(String, Rows)], work: &PlanSpec) -> Run {
    let (sites, work) = (sites.to_vec(), work.clone());
    let marks = Marks::default();
    let domain = work.domain().expect("a box");
    let identities: Vec<Identity> = (0..=sites.len()).map(|_| Identity::generate(&mut system_rng())).collect();
    let credentials = |i: usize| Credentials::from_seed(&identities[i].seed()).expect("credentials");
    let keys = identities[1..].iter().map(|i| i.public().0).collect();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut listener =
        carrier::listen(&Network::new(Transport::Quic, None), any, &credentials(0), carrier::only(keys), header_only)
            .await
            .expect("a port");
    let (address, server_key) = (listener.local_addr(), identities[0].public().0);
    let n = sites.len();
    let limit = sites.iter().map(|(_, r)| r.len() as u64).max().unwrap_or(1).next_power_of_two();
    let form = SumBounds::new(n, limit);
    let mut clients = Vec::new();
    for (i, (_, rows)) in sites.iter().enumerate() {
        let rows = Arc::new(Prepared::new(rows, &domain, work.out_of_box).expect("rows"));
        clients.push(tokio::spawn(plain_site(credentials(i + 1), address, server_key, rows, form)));
    }
    let mut links = Vec::new();
    for _ in 0..n {
        let (sender, mut receiver) = listener.accept().await.expect("a site").split();
        // The first frame is the greeting.
        let _ = receiver.recv().await;
        links.push((sender, receiver));
    }
    let mut method = work.run(n).expect("a method");
    let mut step = method.next(None).expect("a question");
    let outcome = loop {
        let query = match step {
            Step::Done(outcome) => break *outcome,
            Step::Ask(query) => query,
        };
        let question = Question::Cluster(query);
        let layout = question.layout(&domain, &form).expect("a layout");
        let asked = frame(&question.to_bytes());
        for (sender, _) in &mut links {
            sender.send(&Egress::foreign(&asked)).await.expect("a site that listens");
        }
        let mut total = vec![0u64; layout.words()];
        for (_, receiver) in &mut links {
            let frame = receiver.recv().await.ok().flatten().expect("an answer");
            let (values, _) = frame[HEADER_LEN..].as_chunks::<8>();
            total.iter_mut().zip(values).for_each(|(t, w)| *t = t.wrapping_add(u64::from_le_bytes(*w)));
        }
        mark(&marks);
        step = method.next(Some(&layout.decode(&total, n, None).expect("a total"))).expect("a step");
    };
    for (sender, _) in &mut links {
        let _ = sender.finish(Duration::from_secs(5)).await;
    }
    for client in clients {
        client.await.expect("a site");
    }
    let marks = std::mem::take(&mut *marks.lock().expect("marks"));
    Run { marks, centres: work.units(&outcome.centres).expect("units").0 }
}

async fn plain_site(me: Credentials, to: SocketAddr, key: [u8; 32], rows: Arc<Prepared>, form: SumBounds) {
    let (to, check, limit) = (&to.into(), header_only as HeaderCheck, Duration::from_secs(5));
    let call = Call { to, expected: &key, credentials: &me, check, limit };
    let link = Network::new(Transport::Quic, None).dial(call).await.expect("the server");
    let (mut sender, mut receiver) = link.split();
    sender.send(&Egress::foreign(&frame(&[]))).await.expect("a greeting");
    while let Ok(Some(asked)) = receiver.recv().await {
        let question = Question::from_bytes(&asked[HEADER_LEN..]).expect("a question");
        let rows = rows.clone();
        let answer = tokio::task::spawn_blocking(move || contribute(&question, &*rows, &Terms::everybody(form))).await;
        let words = answer.expect("a thread").expect("an answer");
        let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        sender.send(&Egress::foreign(&frame(&body))).await.expect("a server that listens");
    }
}
