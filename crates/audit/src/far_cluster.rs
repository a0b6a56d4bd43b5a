//! A far cluster is solved by itself: several centres stand around a few rows far from all others, whose memberships there are next to
//! nothing. However many rows there are in all, the unknowns are those of the few.

use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::{
    account::{self, CONTROL, Honest, PROTECTION, sums},
    chance::{Population, median, nearest},
    few_rows::{self, Round},
    finding::Finding,
};

/// Name on the command line.
pub const NAME: &str = "far-cluster";
const ROWS: usize = 200;
/// Rows of the far cluster.
const FAR: usize = 5;
const ROUNDS: usize = 4;
/// Centres around it.
const AROUND: usize = 4;
/// Low enough that rows far off weigh nothing, high enough that near ones are told apart.
const M: f64 = 1.3;
/// Starts of a descent.
const STARTS: usize = 24;

/// Solves for the rows of the far cluster, exactly and with noise.
///
/// # Errors
/// Where a round cannot be answered.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    let began = Instant::now();
    let sets = account::times(quick, 60);
    let measures = account::near("median distance to the far rows", 0.02, 0.7, |rho| {
        let (mut off, mut guess) = (Vec::new(), Vec::new());
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), 2, 3, 0.1);
            let near = |x: Vec<f64>| x.iter().map(|x| 0.25 * x - 0.7).collect::<Vec<f64>>();
            let rows: Vec<Vec<f64>> = people.people(ROWS).into_iter().map(near).collect();
            let mut far = move || -> Vec<f64> { people.anywhere(2).iter().map(|x| 0.8 + 0.2 * x).collect() };
            let truth: Vec<Vec<f64>> = (0..FAR).map(|_| far()).collect();
            let honest = Honest::new(&[rows, truth.clone()].concat())?;
            let (mut rounds, mut totals): (Vec<Round>, _) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                let around: Vec<Vec<f64>> = (0..AROUND).map(|_| far()).collect();
                // What the centres among all other rows tell is not used: they take these rows' weights.
                let all = [around.clone(), vec![vec![-0.8, -0.6], vec![-0.6, -0.8]]].concat();
                let part = rho.map(|rho| rho / ROUNDS as f64);
                let total = honest.total(&sums(&all, Some(M))?, part, &[seed, set, round as u64])?;
                totals.push([&total[..AROUND], &total[all.len()..all.len() + 2 * AROUND]].concat());
                rounds.push((around, M));
            }
            let found = few_rows::solve(&rounds, &totals, FAR, STARTS, &mut far).context("no centres")?;
            off.extend(nearest(&truth, &found));
            for _ in 0..20 {
                let others: Vec<Vec<f64>> = (0..FAR).map(|_| far()).collect();
                guess.extend(nearest(&truth, &others));
            }
        }
        Ok(median(off) / median(guess))
    })?;
    Ok(Finding {
        attack: NAME,
        needs: "first centres in a region with few rows, and about how many they are",
        control: CONTROL,
        protection: PROTECTION,
        measures,
        also_broken: None,
        details: vec![format!(
            "{sets} sets of {ROWS} rows and {FAR} far ones, {AROUND} centres around these in {ROUNDS} rounds, m = {M}; guesses are \
             as many places of the same region"
        )],
        not_shown: "where a far group as a whole is, if it has many rows: that is what a run looks for",
        seconds: began.elapsed().as_secs_f64(),
    })
}
