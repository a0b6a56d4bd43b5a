//! Windows of possibilistic c-means: a row weighs by its distance to one centre alone. With m near 1 the weight is a step at the plan's
//! distance, so two windows whose weights differ by 1 differ in their sums by one record; halving finds such pairs (shells). Windows
//! that nobody else is in are pinholes, and all centres of a plan may look through one.

use std::time::Instant;

use anyhow::Result;
use veilsum_cluster::{
    Centres, Query,
    query::{TypicalSums, Typicality},
};

use crate::{
    account::{self, CONTROL, Honest, Neighbours, PROTECTION},
    chance::{Population, Secret, nearest},
    finding::{Finding, Limit, Measure, Rate, beyond_chance},
    scene::EDGE,
};

/// Name on the command line.
pub const NAME: &str = "windows";
const ROWS: usize = 120;
/// Windows that are asked for shells, and the fuzzifier that makes them steep.
const SHELLS: usize = 60;
const STEEP: f64 = 1.001;
/// Centres on one patient.
const PINHOLES: usize = 4;
/// A guess this near to a record has it.
const HIT: f64 = 1e-3;

/// The weight of a window and its weighted sum.
fn window(honest: &Honest, centre: &[f64], m: f64, far: f64, rho: Option<f64>, draw: &[u64]) -> Result<Vec<f64>> {
    let centres = Centres::from_rows(&[centre.to_vec()])?;
    let query = Query::from(TypicalSums { centres, m, distance: far, typicality: Typicality::Possibilistic });
    // Sums come first.
    let mut total = honest.total(&query, rho, draw)?;
    total.rotate_right(1);
    Ok(total)
}

/// The records that shells tell, by halving the shell that has fewest rows but more than one.
fn shells(honest: &Honest, centre: &[f64], rho: Option<f64>, draw: [u64; 2]) -> Result<Vec<Vec<f64>>> {
    let off = if rho.is_none() { 1e-3 } else { 0.5 };
    let mut told: Vec<(f64, Vec<f64>)> = Vec::new();
    let part = rho.map(|rho| rho / SHELLS as f64);
    let mut next = vec![0.05, 2.9];
    while told.len() < SHELLS {
        let Some(far) = next.pop() else { break };
        let total = window(honest, centre, STEEP, far, part, &[draw[0], draw[1], told.len() as u64])?;
        told.push((far, total));
        told.sort_by(|a, b| a.0.total_cmp(&b.0));
        if next.is_empty() {
            let wide = |p: &[(f64, Vec<f64>)]| (p[1].1[0] - p[0].1[0], p[1].0 - p[0].0, f64::midpoint(p[0].0, p[1].0));
            let split = told.windows(2).map(wide).filter(|(rows, width, _)| *rows > 1.0 + off && *width > 1e-4);
            next.extend(split.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, _, middle)| middle));
        }
    }
    let pair = |p: &[(f64, Vec<f64>)]| -> Option<Vec<f64>> {
        let apart: Vec<f64> = p[1].1.iter().zip(&p[0].1).map(|(a, b)| a - b).collect();
        ((apart[0] - 1.0).abs() < off).then(|| apart[1..].iter().map(|x| (x / apart[0]).clamp(-1.0, 1.0)).collect())
    };
    Ok(told.windows(2).filter_map(pair).collect())
}

/// Asks the windows, exactly and with noise.
///
/// # Errors
/// Where a window cannot be answered.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    let began = Instant::now();
    let sets = account::times(quick, 40);
    // By set whether a record came out, and how many guesses there were.
    let found = |rho: Option<f64>| -> Result<(Rate, usize)> {
        let (mut rate, mut guesses) = (Rate::default(), 0);
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), 2, 3, 0.2);
            let rows = people.people(ROWS);
            let told = shells(&Honest::new(&rows)?, &people.anywhere(2), rho, [seed, set])?;
            rate.add(nearest(&rows, &told).iter().any(|d| *d < HIT));
            guesses += told.len();
        }
        Ok((rate, guesses))
    };
    let (control, _) = found(None)?;
    let (mut measures, mut details) = (Vec::new(), Vec::new());
    for rho in account::ACCOUNTS {
        let (rate, guesses) = found(Some(rho))?;
        let chance = (guesses * ROWS) as f64 * std::f64::consts::PI * HIT * HIT / 0.5;
        let most = Limit::hits(beyond_chance(chance), rate.of);
        let what = format!("sets with a record within 1e-3 by shells, rho {rho}");
        measures.push(Measure::new(what, control, Limit::AtLeast(0.8), rate, most));
        details.push(format!("rho {rho}: {guesses} guesses by shells in {sets} sets of {ROWS} rows"));
    }
    // All centres of a plan on one patient: its memberships do not add up to 1.
    let mut people = Population::new(seed, 2, 3, 0.2);
    let (rest, patient) = (people.people(ROWS), vec![EDGE; 2]);
    let (without, with) = (Honest::new(&rest)?, Honest::new(&[rest, vec![patient.clone()]].concat())?);
    let centres = Centres::from_rows(&vec![patient; PINHOLES])?;
    let queries = [TypicalSums { centres, m: 2.0, distance: 0.01, typicality: Typicality::Possibilistic }.into()];
    let pinholes = Neighbours { without: &without, with: &with, queries: &queries };
    let tries = account::times(quick, 1000);
    measures.extend(account::told("is a patient in four pinholes there, all others known", Secret::Row, |rho| {
        pinholes.told_apart(rho, tries, seed)
    })?);
    Ok(Finding {
        attack: NAME,
        needs: "plans with the distance of typical rows and the centre of the coordinator's choice",
        control: CONTROL,
        protection: PROTECTION,
        measures,
        also_broken: None,
        details,
        not_shown: "more windows: each costs its part of the account",
        seconds: began.elapsed().as_secs_f64(),
    })
}
