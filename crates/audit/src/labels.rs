//! Linear reconstruction of labels (Dinur & Nissim 2003): the adversary knows all rows and not their labels. Every plan counts labels in
//! other cells, each count is a linear equation in the unknown bits, and least squares solves them once there are as many as rows.

use anyhow::{Context as _, Result};
use veilsum_cluster::{Centres, Query, query::Contingency};

use crate::{
    account::{self, CONTROL, Honest, PROTECTION},
    chance::{Population, Secret, auc},
    finding::{Attack, Context, Found, Limit, Rate},
    least_squares::solve_symmetric,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "labels-from-cells",
    shows: "counts of labels in many plans' cells are solved for every row's label",
    needs: "all rows without their labels, and plans that count labels in cells of the coordinator's choice",
    control: CONTROL,
    protection: PROTECTION,
    not_shown: "what a row's values say of its label without any total",
    run,
};
const ROWS: usize = 60;
const CELLS: usize = 6;
/// Plans: exact counts of so many cells determine every label.
const PLANS: usize = 24;
/// Share of the rows with the label.
const SHARE: f64 = 0.3;

/// Every row's label, about, by the counts of all plans.
fn attack(
    rows: &[Vec<f64>],
    honest: &Honest,
    people: &mut Population,
    rho: Option<f64>,
    draw: [u64; 2],
) -> Result<Vec<f64>> {
    let n = rows.len();
    // Around what is known without any total.
    let (mut normal, mut against) = (vec![0.0; n * n], vec![0.0; n]);
    let sigma = rho.map_or(1e-4, |rho| (PLANS as f64 / (2.0 * rho)).sqrt());
    (0..n).for_each(|i| normal[i * n + i] = sigma * sigma / (SHARE * (1.0 - SHARE)));
    for plan in 0..PLANS {
        let centres = Centres::from_rows(&people.people(CELLS))?;
        let nearest = |x: &Vec<f64>| {
            let far = centres.rows().map(|c| crate::chance::distance(x, c));
            far.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(cell, _)| cell)
        };
        let own: Vec<usize> = rows.iter().map(nearest).collect();
        let query = Query::from(Contingency { centres, classes: 2 });
        let part = rho.map(|rho| rho / PLANS as f64);
        let total = honest.total(&query, part, &[draw[0], draw[1], plan as u64])?;
        for cell in 0..CELLS {
            let members: Vec<usize> = (0..n).filter(|i| own[*i] == cell).collect();
            // Rows are known, so that the two labels' counts say the same twice.
            let ones = f64::midpoint(total[2 * cell + 1], members.len() as f64 - total[2 * cell]);
            let right = ones - SHARE * members.len() as f64;
            for i in &members {
                members.iter().for_each(|j| normal[i * n + j] += 2.0);
                against[*i] += 2.0 * right;
            }
        }
    }
    solve_symmetric(normal, against).context("plans that are all alike")
}

/// Solves for the labels, exactly and with noise.
///
/// # Errors
/// Where a plan cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let sets = account::times(quick, 10);
    // By label the estimates, and how many are right.
    let found = |rho: Option<f64>| -> Result<(Vec<f64>, Vec<f64>, Rate)> {
        let (mut ones, mut zeros, mut right) = (Vec::new(), Vec::new(), Rate::default());
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), 3, 4, 0.25);
            let rows = people.people(ROWS);
            let labels: Vec<u32> = (0..ROWS).map(|_| u32::from((people.below(1000) as f64) < 1000.0 * SHARE)).collect();
            let honest = Honest::labelled(&rows, &labels)?;
            for (said, label) in attack(&rows, &honest, &mut people, rho, [seed, set])?.iter().zip(&labels) {
                right.add((said + SHARE > 0.5) == (*label == 1));
                if *label == 1 { ones.push(*said) } else { zeros.push(*said) }
            }
        }
        Ok((ones, zeros, right))
    };
    let mut measures = account::told("a label, over all rows", Secret::Cell, |rho| {
        let (ones, zeros, _) = found(rho)?;
        Ok(auc(&ones, &zeros))
    })?;
    // Every label is told no better than the best test for one, weighed by how rare it is, and usually far worse.
    let bound = |rho, _| Limit::AtMost(Secret::Cell.bound(rho));
    measures.extend(account::on_each("labels right", Limit::AtLeast(0.95), bound, |rho| Ok(found(rho)?.2))?);
    Ok(Found::new(
        measures,
        vec![format!(
            "{sets} sets of {ROWS} rows, {PLANS} plans of {CELLS} cells; always saying the commoner label is right in {:.0} %",
            100.0 * (1.0 - SHARE)
        )],
    ))
}
