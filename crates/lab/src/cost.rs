//! `veilsum-lab simulate`: the protocol alone, for so many sites and numbers, in one process and in virtual time: what it costs.

use std::time::Instant;

use clap::Args;
use serde_json::json;
use veilsum_proto::{
    aggregator,
    plan::Terms,
    policy::Asked,
    roster::{PartyId, check_sites},
};

use veilsum_node::error::{Code, Failure};
use veilsum_node::simulate::{Spent, Stage};

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
/// A [`Failure`] for numbers that the protocol does not allow, too few sites left, or a wrong total, which is a defect.
pub(crate) fn simulate(args: &SimulateArgs, json: bool) -> Result<(), Failure> {
    let n = args.sites;
    check_sites(n).map_err(|e| Failure::input(e, "simulate 3 to 1,000 --sites"))?;
    if !(0.0..1.0).contains(&args.drop) {
        return Err(Failure::new(Code::Usage, "--drop is a share from 0 to below 1", "try --drop 0.1"));
    }
    if args.rounds == 0 || args.rounds > 256 || args.length == 0 {
        return Err(Failure::new(
            Code::Usage,
            "1 to 256 --rounds, of 1 number or more",
            "see `veilsum-lab simulate --help`",
        ));
    }
    let terms = Terms {
        roster: veilsum_proto::suite::Hash::default(),
        min_cohort: 3,
        threshold: 0,
        colluders: 0,
        block_size: 1,
        // Twice as many as are used, so that no further deck is made ready in the last round that is measured.
        slots: (2 * args.rounds).min(256) as u16,
        max_rows: 1_000,
        min_total_rows: 0,
        application: Vec::new(),
    };
    // Any numbers do: masks hide them all alike. The same ones for every site make the total easy to check.
    let number = |place: usize| (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let answer = |_: u16, asked: &Asked| Ok((0..asked.words).map(number).collect());
    let mut stage = Stage::new(n, PartyId::Coordinator, terms, Box::new(answer))?;
    stage.until(|e| matches!(e, aggregator::Event::DeckReady { .. }))?;
    let deck = stage.spent;
    let lost = (args.drop * n as f64).round() as u16;
    let mut before = stage.spent;
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        if round == 0 {
            // The last ones of the roster; whoever is gone stays away.
            let first = n as u16 - lost;
            stage.gone.extend(first..first + lost / 2);
            stage.leaving.extend(first + lost / 2..n as u16);
        }
        let begun = Instant::now();
        stage.ask(round.to_le_bytes().to_vec(), args.length);
        let event = stage.until(|e| matches!(e, aggregator::Event::Total { .. }))?;
        if let aggregator::Event::Total { values, cohort, .. } = event {
            let sites = cohort.len() as u64;
            if values.iter().enumerate().any(|(place, v)| *v != number(place).wrapping_mul(sites)) {
                return Err(Failure::new(Code::Internal, "a total is wrong", "this is a defect, please report it"));
            }
            if round + 1 == args.rounds {
                stage.close()?;
            }
            rounds.push((cohort.len(), since(before, stage.spent), begun.elapsed()));
            before = stage.spent;
        }
    }
    let value = json!({
        "sites": n, "length": args.length, "missing": lost,
        "deck": cost(&deck, n),
        "rounds": rounds.iter().map(|(sites, spent, whole)| {
            let mut value = cost(spent, n);
            value["sites_in_total"] = json!(sites);
            value["whole_ms"] = json!(1e3 * whole.as_secs_f64());
            value
        }).collect::<Vec<_>>(),
        "memory_mb": memory(),
    });
    crate::print(json, &value, &format!("{value:#}"))
}

fn since(before: Spent, now: Spent) -> Spent {
    Spent {
        aggregator: now.aggregator - before.aggregator,
        sites: now.sites - before.sites,
        upload: now.upload - before.upload,
        download: now.download - before.download,
    }
}

fn cost(spent: &Spent, n: usize) -> serde_json::Value {
    json!({
        "aggregator_ms": 1e3 * spent.aggregator.as_secs_f64(),
        "site_ms": 1e3 * spent.sites.as_secs_f64() / n as f64,
        "upload_bytes_per_site": spent.upload / n as u64,
        "download_bytes": spent.download,
    })
}

/// The largest memory of this process so far, in MB, where the system says it.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
}
