//! The published centre is a patient: fuzzy c-means with m = 1.5, everybody honest, and one record far from all others. Its cluster's
//! other memberships are next to nothing, so the centre of the result is that record to many digits.

use anyhow::{Context as _, Result};

use crate::{
    account::{self, ACCOUNTS, CONTROL, Honest, PROTECTION, groups, sums},
    chance::{Population, Secret, auc, distance, median},
    finding::{Attack, Context, Found},
    scene::EDGE,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "published-outlier",
    shows: "a published centre is an outlier's record, everybody honest",
    needs: "nothing: the published result of an honest run",
    control: CONTROL,
    protection: PROTECTION,
    not_shown: "several records that are alike far from the others: a group that is large enough is what a run looks for",
    run,
};
const ROWS: usize = 150;
const M: f64 = 1.5;
const ROUNDS: u64 = 6;
/// The patient: 241 days and 487,350 in ranges of 365 and 1,000,000.
const OUTLIER: [f64; 2] = [0.3205, -0.0253];

/// The centre that ends nearest to the outlier. A weight below one row moves no centre: it would only divide by noise.
fn published(honest: &Honest, start: &[Vec<f64>], rho: Option<f64>, draw: [u64; 3]) -> Result<f64> {
    let mut centres = start.to_vec();
    for round in 0..ROUNDS {
        let query = sums(&centres, Some(M))?;
        let total = honest.total(&query, rho.map(|rho| rho / ROUNDS as f64), &[draw[0], draw[1], draw[2], round])?;
        for (centre, (weight, mean)) in centres.iter_mut().zip(groups(&total, start.len())) {
            if weight > 0.5 {
                *centre = mean;
            }
        }
    }
    Ok(centres.iter().map(|c| distance(c, &OUTLIER)).fold(f64::INFINITY, f64::min))
}

/// Runs the method with the outlier among the rows, and without.
///
/// # Errors
/// Where a round cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let runs = account::times(quick, 200);
    let both = |rho: Option<f64>| -> Result<(Vec<f64>, Vec<f64>)> {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for run in 0..runs as u64 {
            // Two clumps in the corner that stays and costs usually are in.
            let mut people = Population::new(seed.wrapping_add(run), 2, 2, 0.3);
            let shrunk = |x: &Vec<f64>| x.iter().map(|x| -EDGE + 0.06 * (x + EDGE)).collect::<Vec<f64>>();
            let rows: Vec<Vec<f64>> = people.people(ROWS).iter().map(shrunk).collect();
            let start = [rows[0].clone(), rows[1].clone(), vec![0.5, 0.5]];
            without.push(published(&Honest::new(&rows)?, &start, rho, [seed, run, 0])?);
            let more = [rows, vec![OUTLIER.to_vec()]].concat();
            with.push(published(&Honest::new(&more)?, &start, rho, [seed, run, 1])?);
        }
        Ok((with, without))
    };
    let away = |distances: Vec<f64>| distances.into_iter().map(|d| -d).collect::<Vec<f64>>();
    let runs_of: Vec<_> =
        [None].into_iter().chain(ACCOUNTS.map(Some)).map(|rho| Ok((rho, both(rho)?))).collect::<Result<_>>()?;
    let of = |wanted: Option<f64>| {
        let found = runs_of.iter().find(|(rho, _)| *rho == wanted).context("runs of another account")?;
        Ok::<_, anyhow::Error>(found.1.clone())
    };
    let mut measures = account::near("distance of a centre to the outlier", 1e-3, 0.8, |rho| {
        let (with, without) = of(rho)?;
        // The guess of somebody who runs the same where the record is not there.
        let guess = if rho.is_none() { 0.5 } else { median(without) };
        Ok(median(with) / guess)
    })?;
    measures.extend(account::told("is the outlier there, by the published centres", Secret::Row, |rho| {
        let (with, without) = of(rho)?;
        Ok(auc(&away(with), &away(without)))
    })?);
    Ok(Found::new(
        measures,
        vec![format!("{runs} runs of {ROUNDS} rounds over {ROWS} rows and one outlier, K = 3, m = {M}")],
    ))
}
