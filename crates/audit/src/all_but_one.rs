//! Prior knowledge of all rows but one: whoever subtracts the totals of the rows that are known has those of the last one, and a round
//! has more numbers than a row has values. Under noise nothing is solved. The adversary then weighs people as they usually are by how
//! well they fit the totals, and takes the mean: nobody comes nearer on average (Bayes).

use anyhow::{Context as _, Result};
use veilsum_cluster::Query;

use crate::{
    account::{self, CONTROL, Honest, Neighbours, PROTECTION, sums},
    chance::{Population, Secret, distance, median},
    finding::{Attack, Context, Found},
    releases::{self, Round},
    scene::EDGE,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "all-but-one",
    shows: "who knows all rows but one solves for the last",
    needs: "all rows but one, and totals of an honest run",
    control: CONTROL,
    protection: PROTECTION,
    not_shown: "rho 1 is weak here: a value replaced by its opposite is told apart nearly always; 0.25 is advised",
    run,
};
const ROWS: usize = 200;
const ROUNDS: usize = 2;
const STARTS: usize = 8;
/// People whom the adversary takes for usual.
const USUAL: usize = 150;

/// The mean of these people, weighed by how well each explains what the last row adds to the totals.
fn weighed(people: &[Vec<f64>], queries: &[Query], totals: &[Vec<f64>], rho: f64) -> Result<Vec<f64>> {
    let columns = people.first().context("nobody")?.len();
    let mut logs = vec![0.0; people.len()];
    for (query, total) in queries.iter().zip(totals) {
        let deviations = account::deviations(query, columns, rho)?;
        for (log, x) in logs.iter_mut().zip(people) {
            let own = Honest::new(std::slice::from_ref(x))?.total(query, None, &[])?;
            let misfit = own.iter().zip(total).zip(&deviations).map(|((a, b), s)| ((a - b) / s).powi(2));
            *log -= misfit.sum::<f64>() / 2.0;
        }
    }
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let all: f64 = weights.iter().sum();
    Ok((0..columns).map(|f| people.iter().zip(&weights).map(|(x, w)| x[f] * w / all).sum()).collect())
}

/// Solves for the last row, and asks which of two values it has.
///
/// # Errors
/// Where a round cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let sets = account::times(quick, 100);
    let mut measures = account::near("median distance to the last row", 1e-3, 0.7, |rho| {
        let (mut off, mut guess) = (Vec::new(), Vec::new());
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), 3, 4, 0.2);
            let (known, last) = (people.people(ROWS), people.draw());
            let (before, after) = (Honest::new(&known)?, Honest::new(&[known, vec![last.clone()]].concat())?);
            let (mut rounds, mut queries, mut totals): (Vec<Round>, _, _) = (Vec::new(), Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                let centres = people.people(3);
                let query = sums(&centres, Some(2.0))?;
                let part = rho.map(|rho| rho / ROUNDS as f64);
                let all = after.total(&query, part, &[seed, set, round as u64])?;
                let known = before.total(&query, None, &[])?;
                totals.push(all.iter().zip(&known).map(|(a, b)| a - b).collect::<Vec<f64>>());
                rounds.push((centres, 2.0));
                queries.push(query);
            }
            let usual = people.people(USUAL);
            let found = match rho {
                None => releases::solve(&rounds, &totals, 1, STARTS, || people.draw()).context("no centres")?,
                Some(rho) => vec![weighed(&usual, &queries, &totals, rho / ROUNDS as f64)?],
            };
            off.push(distance(&found[0], &last));
            guess.push(distance(&weighed(&usual, &[], &[], 1.0)?, &last));
        }
        Ok(median(off) / median(guess))
    })?;
    let mut people = Population::new(seed, 2, 3, 0.2);
    let known = people.people(ROWS);
    let with = |x: f64| Honest::new(&[known.clone(), vec![vec![x; 2]]].concat());
    let (one, other) = (with(-EDGE)?, with(EDGE)?);
    let queries = [sums(&[vec![0.0; 2]], Some(2.0))?];
    let pair = Neighbours { without: &one, with: &other, queries: &queries };
    let tries = account::times(quick, 1000);
    measures.extend(account::told("which of two values the last row has", Secret::Value, |rho| {
        pair.told_apart(rho, tries, seed)
    })?);
    Ok(Found::new(
        measures,
        vec![format!("{sets} sets of {ROWS} known rows, {ROUNDS} rounds; a guess is the mean person")],
    ))
}
