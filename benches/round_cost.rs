//! What one masked round costs each party, without a network: `cargo bench --bench round_cost`.
//!
//! Sites and aggregator are the product's state machines in one thread; a step's wall time is its processor time up to
//! the machine's noise. "Dropped" means that a tenth of the sites vanish before they answer, so that the round takes
//! the path with signatures on the survivors and round seeds.

use std::{collections::BTreeMap, time::Duration};

use veilsum_testkit::{
    cost::{Cost, Timed},
    measure::{Spread, for_real, print_machine, seconds, signatures},
};

fn main() {
    println!("one masked round by state machines in memory; `cargo bench --bench round_cost`");
    print_machine();
    let real = for_real();
    let (sign, verify) = signatures(if real { 2_000 } else { 20 });
    println!("one signature: {sign:.1} us; one check of a signature: {verify:.1} us");
    let sizes: &[usize] = if real { &[20, 100] } else { &[5] };
    for &n in sizes {
        let lengths: &[usize] = if real { &[100, 1_000] } else { &[10] };
        let (clean, drops) = if real { (7, 3) } else { (1, 1) };
        let mut rounds: BTreeMap<(usize, bool), Vec<Cost>> = BTreeMap::new();
        let mut setups = Vec::new();
        for &words in lengths {
            // A vanished site stays out: every dropped round needs a federation of its own.
            for repetition in 0..drops {
                let mut pump = None;
                setups.push(seconds(|| pump = Some(Timed::new(n, 16))));
                let Some(mut pump) = pump else { continue };
                if repetition == 0 {
                    let costs = (0..clean).map(|_| pump.round(words, []));
                    rounds.entry((words, false)).or_default().extend(costs);
                }
                let lost = (0..n.div_ceil(10) as u16).map(|i| i * 10);
                rounds.entry((words, true)).or_default().push(pump.round(words, lost));
            }
        }
        let setup = Spread::of(setups);
        println!("\nn = {n} sites; a deck of 16 slots for all of them together: {setup:.2} s");
        println!(
            "{:<7}{:<9}{:>28}{:>28}{:>10}{:>12}{:>12}",
            "L", "dropped", "aggregator, ms", "site on average, ms", "messages", "sent, B", "received, B"
        );
        for ((words, dropped), costs) in &rounds {
            let milli = |f: &dyn Fn(&Cost) -> Duration| Spread::of(costs.iter().map(|c| 1e3 * f(c).as_secs_f64()));
            let (c, alive) = (&costs[0], costs[0].alive as f64);
            println!(
                "{words:<7}{:<9}{:>28}{:>28}{:>10.1}{:>12.0}{:>12.0}",
                if *dropped { "10 %" } else { "nobody" },
                milli(&Cost::aggregator_total).to_string(),
                format!("{:.3}", milli(&site_average)),
                c.messages as f64 / alive,
                c.sent as f64 / alive,
                c.received as f64 / alive,
            );
        }
        for ((words, dropped), costs) in &rounds {
            println!("where it goes, L = {words}, {}:", if *dropped { "10 % dropped" } else { "nobody dropped" });
            println!("  aggregator: {}", steps(costs, |c| &c.aggregator, |_| 1));
            println!("  a site:     {}", steps(costs, |c| &c.sites, |c| c.alive));
        }
    }
    let (speed, words) = if real { (mask_speed(100_000, 5), 100_000) } else { (mask_speed(1_000, 1), 1_000) };
    println!("\nmask expansion and addition, one core, vectors of {words} words: {speed:.2} GB/s");
}

fn site_average(cost: &Cost) -> Duration {
    cost.sites_total() / cost.alive.max(1) as u32
}

/// Medians of the steps, per party.
fn steps(
    costs: &[Cost],
    part: impl Fn(&Cost) -> &BTreeMap<&'static str, Duration>,
    among: impl Fn(&Cost) -> usize,
) -> String {
    let mut names: Vec<&str> = costs.iter().flat_map(|c| part(c).keys().copied()).collect();
    names.sort_unstable();
    names.dedup();
    let one = |name: &str| {
        let of = |c: &Cost| part(c).get(name).map_or(0.0, |d| 1e3 * d.as_secs_f64() / among(c) as f64);
        format!("{name} {:.3} ms", Spread::of(costs.iter().map(of)).median)
    };
    names.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// From the difference between masking among 20 and among 5 sites: what is left is 15 masks.
fn mask_speed(words: usize, repetitions: usize) -> Spread {
    let mask = |n: usize| {
        let mut pump = Timed::new(n, 16);
        let times = (0..repetitions).map(|_| pump.round(words, []).sites["mask and sign"].as_secs_f64() / n as f64);
        times.collect::<Vec<_>>()
    };
    let (few, many) = (mask(5), mask(20));
    let bytes = 15.0 * 8.0 * words as f64;
    Spread::of(few.iter().zip(&many).map(|(f, m)| bytes / (m - f).max(1e-12) / 1e9))
}
