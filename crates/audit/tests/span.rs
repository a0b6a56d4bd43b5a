//! The linear adversary at random federations.

use std::time::Instant;

use rayon::prelude::*;
use veilsum_audit::span::{self, Found, federations};

/// How many federations; `VEILSUM_SPAN_FEDERATIONS` says another number.
fn number() -> u64 {
    std::env::var("VEILSUM_SPAN_FEDERATIONS").map_or(200, |n| n.parse().expect("VEILSUM_SPAN_FEDERATIONS is a number"))
}

#[test]
fn explore() {
    let began = Instant::now();
    let rule = std::env::var("RULE").is_ok();
    let lines: Vec<String> = (0..number()).into_par_iter().map(|seed| {
        let t = Instant::now();
        let f = federations::draw(seed, rule).unwrap();
        let t1 = t.elapsed().as_secs_f64();
        let mut found: Found = span::span(&f.told, &f.assumed).unwrap();
        found.compare(&f.rows);
        let worst = f.planted.iter().map(|p| found.part(&[p]).map_or(9.0, |p| p.rows.predicted / p.floor * 2.0)).fold(0.0, f64::max);
        let off = f.planted.iter().filter_map(|p| found.part(&[p])?.rows.off()).fold(0.0, f64::max);
        let least = found.parts.iter().map(|p| p.rows.predicted.min(p.columns.iter().map(|c| c.predicted).fold(9.0, f64::min)) / p.floor).fold(9.0, f64::min);
        format!("{} | E {} rank {} | missed {} worst planted/half floor {worst:.2e} off {off:.1e} | least/floor {least:.3} atoms {} | {t1:.2} s {:.2} s", f.what, found.numbers, found.rank,
            f.planted.iter().filter(|p| !found.part(&[p]).is_some_and(|p| p.flagged)).count(), found.atoms.len(), t.elapsed().as_secs_f64())
    }).collect();
    for l in lines {
        println!("{l}");
    }
    println!("{} s", began.elapsed().as_secs_f64());
}
