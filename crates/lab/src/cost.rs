//! `veilsum-lab simulate`: the protocol alone, for so many sites and numbers, in one process and in virtual time: what it costs.

use std::time::Instant;

use clap::Args;
use serde_json::json;
use veilsum_node::error::Failure;
use veilsum_proto::roster::check_sites;
use veilsum_testkit::{
    cost::{Cost, Timed},
    measure::cpu,
};

/// `veilsum-lab simulate`. Times are processor time, but for a whole round, which is time on the wall.
#[derive(Args, Debug, Clone)]
pub(crate) struct SimulateArgs {
    /// Sites
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub sites: usize,
    /// Numbers in a round's vector
    #[arg(long, value_name = "L", default_value_t = 170)]
    pub length: usize,
    /// Share of the sites that is missing from every round: half of them before their masked input, half after it
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub drop: f64,
    /// Rounds
    #[arg(long, value_name = "R", default_value_t = 3)]
    pub rounds: u32,
}

/// Runs the state machines and says what they cost.
///
/// # Errors
/// A [`Failure`] for numbers that the protocol does not allow, or too few sites left. A wrong total is a defect, and ends it.
pub(crate) fn simulate(args: &SimulateArgs, json: bool) -> Result<(), Failure> {
    let n = args.sites;
    check_sites(n).map_err(|e| Failure::input(e, "simulate 3 to 1,000 --sites"))?;
    if !(0.0..1.0).contains(&args.drop) {
        return Err(Failure::usage("--drop is a share from 0 to below 1", "try --drop 0.1"));
    }
    if args.rounds == 0 || args.rounds > 256 || args.length == 0 {
        return Err(Failure::usage("1 to 256 --rounds, of 1 number or more", "see `veilsum-lab simulate --help`"));
    }
    // Twice as many slots as are used, so that no further deck is made ready in the last round that is measured.
    let slots = (2 * args.rounds).min(256) as u16;
    let mut timed = Timed::by(Some(|| cpu().unwrap_or_default()), n, slots);
    let lost = (args.drop * n as f64).round() as u16;
    // The last ones of the roster; whoever is gone stays away.
    let (first, half) = (n as u16 - lost, n as u16 - lost + lost / 2);
    let mut rounds = Vec::new();
    for round in 1..=args.rounds {
        let begun = Instant::now();
        let cost = timed.lossy(args.length, first..half, half..n as u16, round == args.rounds)?;
        rounds.push((cost, begun.elapsed()));
    }
    let value = json!({
        "sites": n, "length": args.length, "missing": lost,
        "deck": cost(timed.deck(), n),
        "rounds": rounds.iter().map(|(spent, whole)| {
            let mut value = cost(spent, n);
            value["sites_in_total"] = json!(spent.alive);
            value["whole_ms"] = json!(1e3 * whole.as_secs_f64());
            value
        }).collect::<Vec<_>>(),
        "memory_mb": memory(),
    });
    crate::print(json, &value, &format!("{value:#}"))
}

fn cost(cost: &Cost, n: usize) -> serde_json::Value {
    json!({
        "aggregator_ms": 1e3 * cost.aggregator_total().as_secs_f64(),
        "site_ms": 1e3 * cost.sites_total().as_secs_f64() / n as f64,
        "upload_bytes_per_site": cost.sent / n as u64,
        "download_bytes": cost.received,
    })
}

/// The largest memory of this process so far, in MB, where the system says it.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
}
