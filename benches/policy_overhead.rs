//! What a round costs more where every site has a strict policy and a ledger on disk:
//! `cargo bench --bench policy_overhead`.
//!
//! Twenty sites, coordinator and intermediary on loopback QUIC in one process, so that what twenty machines would do side by
//! side waits here for the processors and the disk of one. Every site has a state folder in both forms: what is compared
//! is policy and ledger, not the journal. A round is the time between two totals.

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use veilsum_cluster::{Algorithm, Rows, method::Seeding, random::Stream};
use veilsum_node::{
    documents::SitePolicy,
    loopback::{self, LoopbackConfig, LoopbackSite},
    plan::{Column, PlanSpec},
    role::server::Progress,
};
use veilsum_testkit::measure::{Spread, for_real, print_machine};

const LABEL: &[u8; 24] = b"veilsum overhead rows v1";

#[derive(Clone, Copy, PartialEq, Eq)]
enum SumBounds {
    Opened,
    Kept,
}

fn main() {
    println!("policy and ledger beside the bare round; `cargo bench --bench policy_overhead`");
    print_machine();
    let (sites, rounds, repetitions) = if for_real() { (20, 12, 5) } else { (3, 3, 1) };
    println!("{sites} sites of 150 rows, K = 3, 2 columns, {} rounds each", repetitions * (rounds as usize - 1));
    let mut times = [Vec::new(), Vec::new()];
    // In turns, so that what else the machine does falls on all alike.
    for _ in 0..repetitions {
        for (form, times) in [SumBounds::Opened, SumBounds::Kept].into_iter().zip(&mut times) {
            times.extend(run(sites, rounds, form));
        }
    }
    let [opened, kept] = times.map(|t| Spread::of(t).times(1e3));
    let more = 100.0 * (kept.median / opened.median - 1.0);
    println!("  bare round                        {opened:.1} ms");
    println!("  strict policy and ledger          {kept:.1} ms, {more:+.0} %");
}

/// Seconds between the totals of one run.
fn run(sites: usize, rounds: u32, form: SumBounds) -> Vec<f64> {
    let mut stream = Stream::new(7, LABEL);
    let mut site = |i: usize| {
        let values = (0..150).flat_map(|row| {
            let [x, y] = stream.normal_pair();
            let (cx, cy) = [(0.2, 0.3), (0.8, 0.4), (0.5, 0.9)][row % 3];
            [(cx + 0.1 * x).clamp(0.0, 1.0), (cy + 0.1 * y).clamp(0.0, 1.0)]
        });
        let rows = Rows::new(values.collect(), 2).expect("rows of two columns");
        LoopbackSite::new(format!("site-{i}"), rows)
    };
    let sites: Vec<LoopbackSite> = (0..sites).map(&mut site).collect();
    let column = |name: &str| Column { name: name.into(), lower: 0.0, upper: 1.0 };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: rounds };
    let work = PlanSpec::plain(vec![column("x"), column("y")], fcm, 3, Seeding::Uniform { seed: 1 });
    let rows_in_all = 150 * sites.len() as u64;
    let seen: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let told = seen.clone();
    let folder = std::env::temp_dir().join(format!("veilsum-overhead-{}", std::process::id()));
    let config = LoopbackConfig {
        site: if form == SumBounds::Kept { SitePolicy::default() } else { loopback::toy_policy() },
        terms: Box::new(move |terms| {
            terms.min_total_rows = rows_in_all;
        }),
        state: Some(folder.clone()),
        progress: Arc::new(move |progress| {
            if let Progress::Round { .. } = progress {
                told.lock().expect("nobody panicked").push(Instant::now());
            }
        }),
        ..LoopbackConfig::new(sites, PlanSpec { step_bits: Some(20), ..work })
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let run = runtime.block_on(loopback::run(config)).expect("a federation");
    if let Err(failure) = run.result {
        run.sites.iter().filter_map(|site| site.as_ref().err()).for_each(|e| eprintln!("a site: {}", e.message));
        panic!("no result: {}", failure.message);
    }
    let _ = std::fs::remove_dir_all(&folder);
    let seen = seen.lock().expect("nobody panicked");
    // The last total is that of the validation.
    seen[..seen.len() - 1].windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
}
