//! What it costs to show how a run goes: `cargo bench --bench progress_cost`.
//!
//! The same federation on loopback, in turns, once with nobody who watches and once with everything at the coordinator: its events are
//! folded into its status, formatted as sentences, and written to a file, a line each. What a run takes is measured from its
//! beginning to its result, and the parts of one event alone.

use std::{
    fs::OpenOptions,
    io::Write,
    sync::{Arc, Mutex},
    time::Instant,
};

use veilsum_cluster::{Algorithm, Rows, method::Seeding, random::Stream};
use veilsum_node::{
    clock::seconds_since_1970,
    loopback::{self, LoopbackConfig, LoopbackSite},
    plan::{Column, PlanSpec},
    role::{
        progress::{Progress, Watcher},
        status::Status,
    },
};
use veilsum_testkit::measure::{Spread, for_real, print_machine};

fn main() {
    println!("showing how a run goes beside not showing it; `cargo bench --bench progress_cost`");
    print_machine();
    let (sites, rounds, repetitions) = if for_real() { (20, 40, 15) } else { (3, 3, 1) };
    let [mut bare, mut watched, mut alone] = [Vec::new(), Vec::new(), Vec::new()];
    let mut events = 0;
    // In turns, so that what else the machine does falls on both alike.
    for _ in 0..repetitions {
        bare.push(run(sites, rounds, Arc::new(|_| {})));
        let (watcher, seen) = everything();
        watched.push(run(sites, rounds, watcher));
        let seen = seen.lock().expect("nobody panicked");
        events = seen.0;
        alone.push(seen.1);
    }
    let [bare, watched, alone] = [bare, watched, alone].map(Spread::of);
    println!("{sites} sites, {rounds} rounds, K = 3, {events} events");
    println!("  nobody watches        {:.1} ms a run", bare.times(1e3));
    println!(
        "  everything is shown   {:.1} ms a run, {:+.2} %",
        watched.times(1e3),
        100.0 * (watched.median / bare.median - 1.0)
    );
    println!("  of which showing      {:.3} ms a run, {:.3} %", alone.times(1e3), 100.0 * alone.median / bare.median);
}

/// How many events there were, and the seconds that they took.
type Seen = Arc<Mutex<(usize, f64)>>;

/// What a party does with its events, and what that took.
fn everything() -> (Watcher, Seen) {
    let path = std::env::temp_dir().join(format!("veilsum-progress-{}.jsonl", std::process::id()));
    let file = OpenOptions::new().append(true).create(true).open(&path).expect("a file");
    let _ = std::fs::remove_file(path);
    let kept = Mutex::new((Status::new("lead", "coordinator"), file));
    let seen = Seen::default();
    let counted = seen.clone();
    let watcher: Watcher = Arc::new(move |progress: Progress| {
        let began = Instant::now();
        let mut kept = kept.lock().expect("nobody panicked");
        kept.0.fold(&progress, seconds_since_1970());
        let line = format!("{}\n{progress}\n", serde_json::to_string(&progress).expect("a document"));
        kept.1.write_all(line.as_bytes()).expect("room");
        let mut seen = seen.lock().expect("nobody panicked");
        *seen = (seen.0 + 1, seen.1 + began.elapsed().as_secs_f64());
    });
    (watcher, counted)
}

/// Seconds of one run.
fn run(sites: usize, rounds: u32, progress: Watcher) -> f64 {
    let mut stream = Stream::new(7, b"veilsum progress rows v1");
    let mut site = |i: usize| {
        let values = (0..2_000).flat_map(|row| {
            let [x, y] = stream.normal_pair();
            let (cx, cy) = [(0.2, 0.3), (0.8, 0.4), (0.5, 0.9)][row % 3];
            [(cx + 0.1 * x).clamp(0.0, 1.0), (cy + 0.1 * y).clamp(0.0, 1.0)]
        });
        LoopbackSite::new(format!("site-{i}"), Rows::new(values.collect(), 2).expect("rows of two columns"))
    };
    let sites: Vec<LoopbackSite> = (0..sites).map(&mut site).collect();
    let rows_in_all = 2_000 * sites.len() as u64;
    let column = |name: &str| Column { name: name.into(), lower: 0.0, upper: 1.0 };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: rounds };
    let work = PlanSpec::plain(vec![column("x"), column("y")], fcm, 3, Seeding::Uniform { seed: 1 });
    let config = LoopbackConfig {
        terms: Box::new(move |terms| terms.min_total_rows = rows_in_all),
        progress,
        ..LoopbackConfig::new(sites, work)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let began = Instant::now();
    let run = runtime.block_on(loopback::run(config)).expect("a federation");
    run.result.expect("a result");
    began.elapsed().as_secs_f64()
}
