//! Sums over all rows isolate a far row. A few set-ups have the same centres where rows are many and another last centre; the far row is
//! alone at that one. Everything else in the objective is the same, so the difference of two objectives is |x - c|² - |x - c'|²,
//! which is linear in the far row x.

use std::time::Instant;

use anyhow::{Context as _, Result};
use veilsum_cluster::{Centres, Query};

use crate::{
    account::{self, CONTROL, Honest, PROTECTION},
    chance::{Population, distance, median},
    finding::Finding,
    least_squares::solve_symmetric,
    scene::EDGE,
};

/// Name on the command line.
pub const NAME: &str = "far-row";
const ROWS: usize = 150;
/// Memberships are those of the nearest centre.
const M: f64 = 1.02;
/// Where the last centre stands in turn.
const LAST: [[f64; 2]; 4] = [[0.3, 0.3], [1.0, 0.3], [0.3, 1.0], [1.0, 1.0]];

/// Where the far row is, by the objectives of the set-ups.
fn attack(honest: &Honest, rho: Option<f64>, draw: [u64; 2]) -> Result<Vec<f64>> {
    let objective = |(i, last): (usize, &[f64; 2])| -> Result<f64> {
        let centres = Centres::from_rows(&[vec![-0.7, -0.4], vec![-0.4, -0.7], last.to_vec()])?;
        let query = Query::fuzzy_validation(centres, M);
        let total = honest.total(&query, rho.map(|rho| rho / LAST.len() as f64), &[draw[0], draw[1], i as u64])?;
        total.last().copied().context("no objective")
    };
    let found: Vec<f64> = LAST.iter().enumerate().map(objective).collect::<Result<_>>()?;
    // 2 (c_0 - c_i) x = J_i - J_0 - |c_i|² + |c_0|², by least squares.
    let (mut normal, mut against) = (vec![0.0; 4], vec![0.0; 2]);
    let size = |c: &[f64; 2]| c[0] * c[0] + c[1] * c[1];
    for (c, j) in LAST.iter().zip(&found).skip(1) {
        let row = [2.0 * (LAST[0][0] - c[0]), 2.0 * (LAST[0][1] - c[1])];
        let right = j - found[0] - size(c) + size(&LAST[0]);
        for a in 0..2 {
            (0..2).for_each(|b| normal[a * 2 + b] += row[a] * row[b]);
            against[a] += row[a] * right;
        }
    }
    let x = solve_symmetric(normal, against).context("set-ups that are all alike")?;
    Ok(x.into_iter().map(|x| x.clamp(0.3 * EDGE, EDGE)).collect())
}

/// Looks for a far row, exactly and with noise.
///
/// # Errors
/// Where a set-up cannot be answered.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    let began = Instant::now();
    let sets = account::times(quick, 40);
    let measures = account::near("median distance to the far row", 1e-3, 0.9, |rho| {
        let (mut off, mut guess) = (Vec::new(), Vec::new());
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), 2, 3, 0.2);
            let shrunk = |x: &Vec<f64>| x.iter().map(|x| 0.45 * x - 0.55).collect::<Vec<f64>>();
            let mut rows: Vec<Vec<f64>> = people.people(ROWS).iter().map(shrunk).collect();
            // Anywhere in the far corner: the adversary knows no more.
            let mut far = || people.anywhere(2).iter().map(|x| 0.65 + 0.35 * x).collect::<Vec<f64>>();
            let (x, other) = (far(), far());
            rows.push(x.clone());
            off.push(distance(&attack(&Honest::new(&rows)?, rho, [seed, set])?, &x));
            guess.push(distance(&other, &x));
        }
        Ok(median(off) / median(guess))
    })?;
    Ok(Finding {
        attack: NAME,
        needs: "four set-ups whose other centres agree, as honest starts give them; no centre beside a row",
        control: CONTROL,
        protection: PROTECTION,
        measures,
        also_broken: None,
        details: vec![format!(
            "{sets} sets of {ROWS} rows and a far one; guesses are other places of the same far corner"
        )],
        not_shown: "more set-ups: each costs its part of the account",
        seconds: began.elapsed().as_secs_f64(),
    })
}
