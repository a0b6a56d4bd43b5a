//! Reconstruction from disclosed centroids (TAR: Yang, Luo & Li 2025, arXiv 2511.07073): from one round of k-means to the next most rows
//! stay where they are. Where one cluster has one row less and another one more, the difference of the sums is the row that moved.

use anyhow::Result;

use crate::{
    account::{self, CONTROL, Honest, PROTECTION, groups, sums},
    chance::{Population, median, nearest},
    finding::{Attack, Context, Found, Limit, Rate, beyond_chance},
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "disclosed-centroids",
    shows: "centres of successive rounds of k-means give away rows that move alone",
    needs: "the centres of every round of an honest run of k-means",
    control: CONTROL,
    protection: PROTECTION,
    not_shown: "the paper's algebra for rows that move together; it needs exact centroids as well",
    run,
};
const ROWS: usize = 150;
const CLUSTERS: usize = 5;
const ROUNDS: usize = 12;
/// A guess this near to a record has it.
const HIT: f64 = 1e-3;

/// The rows that move alone in a run from these centres.
fn attack(honest: &Honest, start: Vec<Vec<f64>>, rho: Option<f64>, draw: [u64; 2]) -> Result<Vec<Vec<f64>>> {
    let off = if rho.is_none() { 1e-6 } else { 0.5 };
    let (mut centres, mut last, mut told) = (start, None::<Vec<f64>>, Vec::new());
    for round in 0..ROUNDS {
        let part = rho.map(|rho| rho / ROUNDS as f64);
        let total = honest.total(&sums(&centres, None)?, part, &[draw[0], draw[1], round as u64])?;
        if let Some(last) = &last {
            let change: Vec<f64> = total.iter().zip(last).map(|(a, b)| a - b).collect();
            let (rows, values) = change.split_at(CLUSTERS);
            let by = |wanted: f64| (0..CLUSTERS).filter(move |k| (rows[*k] - wanted).abs() < off);
            let columns = values.len() / CLUSTERS;
            let still = by(0.0).count() + 2 == CLUSTERS;
            if let (true, [from], [to]) = (still, &by(-1.0).collect::<Vec<_>>()[..], &by(1.0).collect::<Vec<_>>()[..]) {
                let x = |f: usize| f64::midpoint(values[to * columns + f], -values[from * columns + f]);
                told.push((0..columns).map(|f| x(f).clamp(-1.0, 1.0)).collect());
            }
        }
        for (centre, (weight, mean)) in centres.iter_mut().zip(groups(&total, CLUSTERS)) {
            if weight > 0.5 {
                *centre = mean;
            }
        }
        last = Some(total);
    }
    Ok(told)
}

/// Watches runs, exactly and with noise.
///
/// # Errors
/// Where a round cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let runs = account::times(quick, 30);
    let mut details = Vec::new();
    let found = |rho: Option<f64>| -> Result<Rate> {
        let (mut rate, mut records, mut off, mut guess) = (Rate::default(), 0, Vec::new(), Vec::new());
        for run in 0..runs as u64 {
            let mut people = Population::new(seed.wrapping_add(run), 2, 4, 0.3);
            let rows = people.people(ROWS);
            let told = attack(&Honest::new(&rows)?, people.people(CLUSTERS), rho, [seed, run])?;
            let far = nearest(&told, &rows);
            let hits = far.iter().filter(|far| **far < HIT).count();
            records += hits;
            rate.add(hits > 0);
            off.extend(far);
            guess.extend(nearest(&people.people(20), &rows));
        }
        let ratio = median(off) / median(guess);
        details.extend(match rho {
            None => Some(format!("{runs} runs of {ROUNDS} rounds over {ROWS} rows; exact ones give {records} records")),
            Some(rho) => {
                let what = format!("rho {rho}: guesses are {ratio:.1} times as far from records as other people are");
                ratio.is_finite().then_some(what)
            }
        });
        Ok(rate)
    };
    let chance = |of: u64| of as f64 * ROUNDS as f64 * ROWS as f64 * std::f64::consts::PI * HIT * HIT;
    let bound = |_, rate: Rate| Limit::hits(beyond_chance(chance(rate.of)), rate.of);
    let measures = account::on_each("runs that give a record to 1e-3 away", Limit::AtLeast(0.4), bound, found)?;
    Ok(Found::new(measures, details))
}
