//! `veilsum simulate` on the sparse graph: what a site costs there, the committee's members apart.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use veilsum_proto::{
    plan::Terms,
    sparse::{AggregatorEvent, Params, Shape, Sizes},
};

use super::{SimulateArgs, memory};
use crate::{
    cli::exit::{Code, Failure},
    simulate::sparse::{Share, Stage, number},
};

/// What was spent between two points.
struct Part {
    sites: Vec<Share>,
    aggregator: Duration,
}

fn since(stage: &Stage, before: &Part) -> Part {
    let minus = |(now, was): (&Share, &Share)| Share {
        time: now.time - was.time,
        sent: now.sent - was.sent,
        received: now.received - was.received,
    };
    let sites = stage.spent.iter().zip(&before.sites).map(minus).collect();
    Part { sites, aggregator: stage.aggregator_time - before.aggregator }
}

fn all(stage: &Stage) -> Part {
    Part { sites: stage.spent.clone(), aggregator: stage.aggregator_time }
}

/// Runs the state machines and says what they cost.
///
/// # Errors
/// A [`Failure`] for numbers that the protocol does not allow, too few sites left, or a wrong total, which is a defect.
pub(super) fn simulate(args: &SimulateArgs, terms: Terms, json: bool) -> Result<(), Failure> {
    let n = args.sites;
    let params = Params { corrupt: args.corrupt, missing: args.missing, ..Params::default() };
    let sizes = params.sizes(n, n).map_err(|e| {
        Failure::new(Code::Usage, e, "fewer sites do with the complete graph: leave --graph out, or suppose less")
    })?;
    let mut stage = Stage::new(n, terms, Shape::Proved(params))?;
    let start = all(&stage);
    let event = stage.until(|e| matches!(e, AggregatorEvent::DeckReady { .. }))?;
    let committee: BTreeSet<u16> = match event {
        AggregatorEvent::DeckReady { committee, .. } => committee.into_iter().collect(),
        _ => BTreeSet::new(),
    };
    let deck = since(&stage, &start);
    let lost = (args.drop * n as f64).round() as u16;
    let mut before = all(&stage);
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        if round == 0 {
            // The last ones of the roster; whoever is gone stays away. Where they stand on the circle is random.
            let first = n as u16 - lost;
            stage.gone.extend(first..first + lost / 2);
            stage.leaving.extend(first + lost / 2..n as u16);
        }
        stage.ask(round.to_le_bytes().to_vec(), args.length);
        if let AggregatorEvent::Total { values, cohort, .. } =
            stage.until(|e| matches!(e, AggregatorEvent::Total { .. }))?
        {
            let sites = cohort.len() as u64;
            if values.iter().enumerate().any(|(place, v)| *v != number(place).wrapping_mul(sites)) {
                return Err(Failure::new(Code::Internal, "a total is wrong", "this is a defect, please report it"));
            }
            rounds.push((cohort.len(), since(&stage, &before)));
            before = all(&stage);
        }
    }
    let Sizes { degree, nearby, committee: size, quorum, floor } = sizes;
    let value = json!({
        "sites": n, "length": args.length, "missing": lost, "graph": "sparse",
        "sizes": {"degree": degree, "nearby": nearby, "committee": size, "quorum": quorum, "floor": floor},
        "deck": cost(&deck, &committee),
        "rounds": rounds.iter().map(|(sites, part)| {
            let mut value = cost(part, &committee);
            value["sites_in_total"] = json!(sites);
            value
        }).collect::<Vec<_>>(),
        "memory_mb": memory(),
    });
    let mut text = format!("{n} sites, {} numbers, {lost} missing; one thread for all parties\n", args.length);
    text += &format!(
        "{degree} neighbours of a site, {nearby} of them in the total at least; {quorum} of a committee of {size}; \
         {floor} sites at least\n"
    );
    text += "               a site: ms mean     max     sent B  received B   on the committee: ms mean     max     sent B  \
             received B   aggregator ms\n";
    text += &line("deck", &deck, &committee);
    for (round, (_, part)) in rounds.iter().enumerate() {
        text += &line(&format!("round {}", round + 1), part, &committee);
    }
    if let Some(memory) = memory() {
        text += &format!("memory of all parties together: {memory} MB\n");
    }
    crate::cli::print(json, &value, &text)
}

/// Mean and largest milliseconds, mean bytes sent and received.
fn of(part: &Part, committee: &BTreeSet<u16>, on_it: bool) -> (f64, f64, u64, u64) {
    let chosen = |(i, _): &(usize, &Share)| committee.contains(&(*i as u16)) == on_it;
    let shares: Vec<&Share> = part.sites.iter().enumerate().filter(chosen).map(|(_, s)| s).collect();
    let count = shares.len().max(1) as u64;
    let ms = |t: Duration| 1e3 * t.as_secs_f64();
    let mean = shares.iter().map(|s| ms(s.time)).sum::<f64>() / count as f64;
    let max = shares.iter().map(|s| ms(s.time)).fold(0.0, f64::max);
    let total = |f: fn(&Share) -> u64| shares.iter().map(|s| f(s)).sum::<u64>() / count;
    (mean, max, total(|s| s.sent), total(|s| s.received))
}

fn cost(part: &Part, committee: &BTreeSet<u16>) -> Value {
    let party = |on_it| {
        let (mean, max, sent, received) = of(part, committee, on_it);
        json!({"ms_mean": mean, "ms_max": max, "sent_bytes": sent, "received_bytes": received})
    };
    json!({
        "site": party(false),
        "committee_member": party(true),
        "aggregator_ms": 1e3 * part.aggregator.as_secs_f64(),
        "upload_bytes": part.sites.iter().map(|s| s.sent).sum::<u64>(),
        "download_bytes": part.sites.iter().map(|s| s.received).sum::<u64>(),
    })
}

fn line(what: &str, part: &Part, committee: &BTreeSet<u16>) -> String {
    let (mean, max, sent, received) = of(part, committee, false);
    let (c_mean, c_max, c_sent, c_received) = of(part, committee, true);
    format!(
        "{what:<12} {mean:>17.2} {max:>7.1} {sent:>10} {received:>11} {c_mean:>28.2} {c_max:>7.1} {c_sent:>10} \
         {c_received:>11} {:>15.1}\n",
        1e3 * part.aggregator.as_secs_f64()
    )
}
