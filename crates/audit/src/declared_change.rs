//! Totals before and after a declared change: their difference is the totals of the rows that came, however many others there are. A
//! few rounds have more numbers than the new rows have values.

use anyhow::{Context as _, Result};

use crate::{
    account::{self, CONTROL, Honest, PROTECTION, sums},
    chance::{Population, median, nearest},
    finding::{Attack, Context, Found},
    releases::{self, Round},
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "declared-change",
    shows: "totals before and after a declared change are solved for the new rows",
    needs: "the same questions before and after a change, and how many rows came",
    control: CONTROL,
    protection: PROTECTION,
    not_shown: "exact totals on both sides of a change: after a declared change there is noise only",
    run,
};
const ROWS: usize = 200;
/// Rows that come.
const NEW: usize = 5;
/// Rounds before and after.
const ROUNDS: usize = 4;
/// Starts of a descent.
const STARTS: usize = 12;

/// Solves for the rows that came, exactly and with noise.
///
/// # Errors
/// Where a round cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let sets = account::times(quick, 30);
    let measures = account::near("median distance to the new rows", 0.02, 0.8, |rho| {
        let (mut off, mut guess) = (Vec::new(), Vec::new());
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), 2, 3, 0.2);
            let (rows, new) = (people.people(ROWS), people.people(NEW));
            let (before, after) = (Honest::new(&rows)?, Honest::new(&[rows.clone(), new.clone()].concat())?);
            let (mut rounds, mut totals): (Vec<Round>, _) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                let centres = people.people(3 + round % 3);
                let m = 2.0 + 0.1 * round as f64;
                let query = sums(&centres, Some(m))?;
                let part = rho.map(|rho| rho / (2 * ROUNDS) as f64);
                let ask = |of: &Honest, when: u64| of.total(&query, part, &[seed, set, round as u64, when]);
                let (old, now) = (ask(&before, 0)?, ask(&after, 1)?);
                totals.push(now.iter().zip(&old).map(|(a, b)| a - b).collect::<Vec<f64>>());
                rounds.push((centres, m));
            }
            let found = releases::solve(&rounds, &totals, NEW, STARTS, || people.draw()).context("no centres")?;
            off.extend(nearest(&new, &found));
            (0..20).for_each(|_| guess.extend(nearest(&new, &people.people(NEW))));
        }
        Ok(median(off) / median(guess))
    })?;
    Ok(Found::new(
        measures,
        vec![format!(
            "{sets} sets of {ROWS} rows to which {NEW} come; {ROUNDS} rounds before and after; both versions are on one account; \
             guesses are as many other people"
        )],
    ))
}
