//! What one masked round costs each party, without a network: `cargo bench --bench round_cost`.
//!
//! Sites and aggregator are the product's state machines in one thread; a step's wall time is its processor time up to
//! the machine's noise. "Dropped" means that a tenth of the sites vanish before they answer, so that the round takes
//! the path with signatures on the survivors and round seeds. "Behind losses" is the round after that: with its question
//! comes the opening of the one in which sites were lost. "In a row" is what a round waits for with a machine for each
//! party: the aggregator and one site.
//!
//! `cargo bench --bench round_cost -- --sites N` measures N sites alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use veilsum_testkit::{
    cost::{Cost, Timed},
    measure::{Spread, for_real, print_machine, signatures},
};

/// How the sites of a round fared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Clean,
    Dropped,
    Behind,
}

impl Fate {
    fn name(self) -> &'static str {
        match self {
            Fate::Clean => "nobody dropped",
            Fate::Dropped => "10 % dropped",
            Fate::Behind => "behind losses",
        }
    }
}

fn main() {
    let real = for_real();
    println!("one masked round by state machines in memory; `cargo bench --bench round_cost`");
    print_machine();
    let (sign, verify) = signatures(if real { 2_000 } else { 20 });
    println!("one signature: {sign:.1} us; one check of a signature: {verify:.1} us");
    let asked_for = std::env::args().skip_while(|a| a != "--sites").nth(1).and_then(|n| n.parse().ok());
    let sizes = asked_for.map_or(if real { vec![20, 100] } else { vec![5] }, |n| vec![n]);
    for n in sizes {
        // K = 10 centres of d = 16 columns are 170 words.
        let lengths: &[usize] = if real { &[170, 1_000] } else { &[10] };
        // With the last of them the next deck is not begun yet.
        let (clean, drops) = if real { (8, 3) } else { (2, 1) };
        let mut rounds: BTreeMap<(usize, Fate), Vec<Cost>> = BTreeMap::new();
        let mut decks = Vec::new();
        for &words in lengths {
            // A vanished site stays out: every dropped round needs a federation of its own.
            for repetition in 0..drops {
                let mut pump = Timed::new(n, 16);
                decks.push(pump.deck().clone());
                let mut note = |fate, cost| rounds.entry((words, fate)).or_default().push(cost);
                if repetition == 0 {
                    // The first round opens none before it.
                    pump.round(words, []);
                    (0..clean).for_each(|_| note(Fate::Clean, pump.round(words, [])));
                }
                let lost = (0..n.div_ceil(10) as u16).map(|i| i * 10);
                note(Fate::Dropped, pump.round(words, lost));
                note(Fate::Behind, pump.round(words, []));
            }
        }
        let milli =
            |costs: &[Cost], f: &dyn Fn(&Cost) -> Duration| Spread::of(costs.iter().map(|c| 1e3 * f(c).as_secs_f64()));
        let in_a_row = |c: &Cost| c.aggregator_total() + site_average(c);
        println!(
            "\nn = {n} sites; a deck of 16 slots: aggregator {} ms; a site {} ms, and {:.3} ms for each other one",
            milli(&decks, &Cost::aggregator_total),
            milli(&decks, &site_average),
            milli(&decks, &site_average).times(1.0 / (n - 1) as f64),
        );
        println!("  aggregator: {}", steps(&decks, |c| &c.aggregator, |_| 1));
        println!("  a site:     {}", steps(&decks, |c| &c.sites, |c| c.alive));
        println!(
            "{:<7}{:<16}{:>26}{:>26}{:>12}{:>10}{:>11}{:>12}",
            "L", "", "aggregator, ms", "site on average, ms", "in a row", "messages", "sent, B", "received, B"
        );
        for ((words, fate), costs) in &rounds {
            let (c, alive) = (&costs[0], costs[0].alive as f64);
            println!(
                "{words:<7}{:<16}{:>26}{:>26}{:>12.2}{:>10.1}{:>11.0}{:>12.0}",
                fate.name(),
                milli(costs, &Cost::aggregator_total).to_string(),
                format!("{:.3}", milli(costs, &site_average)),
                milli(costs, &in_a_row).median,
                c.messages as f64 / alive,
                c.sent as f64 / alive,
                c.received as f64 / alive,
            );
        }
        for ((words, fate), costs) in &rounds {
            println!("where it goes, L = {words}, {}:", fate.name());
            println!("  aggregator: {}", steps(costs, |c| &c.aggregator, |_| 1));
            println!("  a site:     {}", steps(costs, |c| &c.sites, |c| c.alive));
        }
    }
}

fn site_average(cost: &Cost) -> Duration {
    cost.sites_total() / cost.alive.max(1) as u32
}

type Steps = fn(&Cost) -> &BTreeMap<&'static str, Duration>;

/// Medians of the steps, per party.
fn steps(costs: &[Cost], part: Steps, among: impl Fn(&Cost) -> usize) -> String {
    let names: BTreeSet<&str> = costs.iter().flat_map(|c| part(c).keys().copied()).collect();
    let one = |name: &str| {
        let of = |c: &Cost| part(c).get(name).map_or(0.0, |d| 1e3 * d.as_secs_f64() / among(c) as f64);
        format!("{name} {:.3} ms", Spread::of(costs.iter().map(of)).median)
    };
    names.into_iter().map(one).collect::<Vec<_>>().join(", ")
}
