//! The linear adversary at random federations.

use std::time::Instant;

use rayon::prelude::*;
use veilsum_audit::{
    scene::Scene,
    span::{self, Assumed, Found, federations, federations::Sites},
};
use veilsum_cluster::{Algorithm, Domain, Recipe, Scaling, method::Seeding};

/// Of which federations; `VEILSUM_SPAN_FEDERATIONS` says how many, `VEILSUM_SPAN_SEEDS` which ones, with commas.
fn seeds() -> Vec<u64> {
    let read = |n: &str| n.parse().expect("VEILSUM_SPAN_FEDERATIONS and VEILSUM_SPAN_SEEDS are numbers");
    match std::env::var("VEILSUM_SPAN_SEEDS") {
        Ok(seeds) => seeds.split(',').map(read).collect(),
        Err(_) => (0..std::env::var("VEILSUM_SPAN_FEDERATIONS").map_or(200, |n| read(&n))).collect(),
    }
}

/// Half of what a guess from a block's sum is off by: the adversary's own limit.
const HALF: f64 = 0.5;

/// How a federation ended, in one line, and what is wrong with it.
fn played(seed: u64, rule: bool) -> (String, Vec<String>, f64) {
    let federation = federations::draw(seed, rule).unwrap();
    if federation.told.is_empty() {
        // No block was whole in any cohort: nothing was released.
        assert!(rule);
        return (federation.what, Vec::new(), f64::INFINITY);
    }
    let mut found: Found = span::span(&federation.told, &federation.assumed).unwrap();
    found.compare(&federation.rows);
    let mut wrong = Vec::new();
    for planted in &federation.planted {
        let part = found
            .part(&[&planted.site])
            .unwrap_or_else(|| panic!("{}: {} was not looked at", federation.what, planted.site));
        let off = part.rows.off().unwrap();
        // The prediction is the cautious one of the two: groups that hardly a probe falls on count in it.
        if !part.flagged || planted.exact && (part.rows.predicted > 0.1 || off > 1e-2) {
            wrong.push(format!(
                "{} missed, exact {}: predicted {:.1e}, off {off:.1e}",
                planted.site, planted.exact, part.rows.predicted
            ));
        }
    }
    let ratio =
        |p: &span::Part| p.columns.iter().chain([&p.rows]).map(|s| s.predicted / p.floor).fold(f64::INFINITY, f64::min);
    let least = found.parts.iter().map(ratio).fold(f64::INFINITY, f64::min);
    if rule {
        let small = found.atoms.iter().map(Vec::len).min().unwrap_or(0);
        // A single site not below the floor at all.
        let single = found.parts.iter().filter(|p| p.sites.len() == 1).map(ratio).fold(f64::INFINITY, f64::min);
        if single < 1.0 - 1e-9 {
            wrong.push(format!("a single site is known to {single} of the floor"));
        }
        if small < federation.assumed.least || found.flagged().next().is_some() || least < HALF {
            wrong.push(format!(
                "the rule is on, and {least} of the floor is reached; the smallest atom has {small} sites"
            ));
        }
    }
    let line = format!(
        "{} | {} numbers, rank {}, {} atoms, planted {} | least {least:.2e} of the floor",
        federation.what,
        found.numbers,
        found.rank,
        found.atoms.len(),
        federation.planted.len()
    );
    (line, wrong, least)
}

fn all(rule: bool) {
    let began = Instant::now();
    let played: Vec<_> = seeds().into_par_iter().map(|seed| played(seed, rule)).collect();
    let least = played.iter().map(|p| p.2).fold(f64::INFINITY, f64::min);
    let planted = played.iter().filter(|p| !p.0.contains("planted 0")).count();
    println!(
        "{} federations, rule {}: {planted} with planted sites, least {least:.3} of the floor, {:.1} s",
        played.len(),
        if rule { "on" } else { "off" },
        began.elapsed().as_secs_f64()
    );
    if std::env::var("VEILSUM_SPAN_LINES").is_ok() {
        played.iter().for_each(|p| println!("{}", p.0));
    }
    let wrong: Vec<String> =
        played.into_iter().filter(|p| !p.1.is_empty()).map(|p| format!("{}: {}", p.0, p.1.join("; "))).collect();
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn without_the_rule_every_planted_site_is_found() {
    all(false);
}

#[test]
fn with_the_rule_nobody_comes_below_the_floor() {
    all(true);
}

/// What it costs: run with `--ignored --nocapture`, by itself.
#[test]
#[ignore = "a measurement"]
fn cost_by_released_numbers() {
    for runs in [4, 20] {
        let rows = Scene::clumps(1, 10, 100, 1).unwrap().sites.into_iter().collect();
        let domain = Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None).unwrap();
        let mut sites = Sites::new(&rows, domain, None).unwrap();
        let everybody = sites.everybody();
        let mut fewer = everybody.clone();
        fewer.pop_first();
        let mut told = Vec::new();
        for run in 0..runs {
            let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
            let recipe = Recipe::plain(fcm, 3, Seeding::Uniform { seed: run });
            let cohort = if run % 2 == 0 { &everybody } else { &fewer };
            told.extend(sites.play(&recipe, &mut |_, _| Some(cohort.clone())).unwrap());
        }
        let began = Instant::now();
        let found = span::span(&told, &Assumed { contributors: 2, least: 3, rows: 100.0, seed: 1 }).unwrap();
        println!("{} numbers, rank {}: {:.2} s", found.numbers, found.rank, began.elapsed().as_secs_f64());
        assert!(found.flagged().next().is_some());
    }
}
