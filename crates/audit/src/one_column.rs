//! One column at a time: a plan that names one column of a schema has as many centres as the column has places, and every value has a
//! nearest one of its own. A second question looks closer where more than one row was.

use std::time::Instant;

use anyhow::Result;

use crate::{
    account::{self, CONTROL, Honest, PROTECTION, groups, sums},
    chance::Population,
    finding::{Finding, Limit, Measure, Rate, beyond_chance},
    scene::EDGE,
};

/// Name on the command line.
pub const NAME: &str = "one-column";
const ROWS: usize = 100;
/// Centres of a question.
const CENTRES: usize = 400;
/// Times that other people's values are tried.
const OTHERS: usize = 20;
/// Places of the column: four digits.
const PLACES: f64 = 1e4;

fn rounded(x: f64) -> f64 {
    (x * PLACES).round() / PLACES
}

/// Values that two totals give.
fn attack(honest: &Honest, rho: Option<f64>, draw: [u64; 2]) -> Result<Vec<f64>> {
    let off = if rho.is_none() { 1e-6 } else { 0.5 };
    let ask = |centres: &[Vec<f64>], question: u64| -> Result<Vec<(f64, f64)>> {
        let part = rho.map(|rho| rho / 2.0);
        let total = honest.total(&sums(centres, None)?, part, &[draw[0], draw[1], question])?;
        Ok(groups(&total, centres.len()).into_iter().map(|(w, mean)| (w, mean[0])).collect())
    };
    let first: Vec<Vec<f64>> =
        (0..CENTRES).map(|i| vec![EDGE * (2.0 * (i as f64 + 0.5) / CENTRES as f64 - 1.0)]).collect();
    let found = ask(&first, 0)?;
    let alone = |(w, mean): &(f64, f64)| ((w - 1.0).abs() < off).then(|| rounded(*mean));
    let many: Vec<f64> =
        found.iter().zip(&first).filter(|((w, _), _)| *w > 1.0 + off).map(|(_, centre)| centre[0]).collect();
    let mut values: Vec<f64> = found.iter().filter_map(alone).collect();
    if !many.is_empty() {
        let each = (2 * CENTRES / many.len()).max(2);
        let width = 2.0 * EDGE / CENTRES as f64;
        let place = |c: f64, i: usize| vec![c + width * ((i as f64 + 0.5) / each as f64 - 0.5)];
        let second: Vec<Vec<f64>> = many.iter().flat_map(|c| (0..each).map(move |i| place(*c, i))).collect();
        // Centres at the edges of a stretch also get rows that were alone before.
        values.extend(ask(&second, 1)?.iter().filter_map(alone));
    }
    values.sort_by(f64::total_cmp);
    values.dedup();
    Ok(values)
}

/// Reads the column, exactly and with noise.
///
/// # Errors
/// Where a question cannot be answered.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    let began = Instant::now();
    let sets = account::times(quick, 5);
    // Values that were found, values that other people's values hit by chance, and guesses.
    let found = |rho: Option<f64>| -> Result<(Rate, f64, usize)> {
        let (mut rate, mut chance, mut guesses) = (Rate::default(), 0.0, 0);
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), 1, 3, 0.25);
            let mut values = |n: usize| people.people(n).iter().map(|x| rounded(x[0])).collect::<Vec<f64>>();
            let truth = values(ROWS);
            let said = attack(&Honest::new(&truth.iter().map(|x| vec![*x]).collect::<Vec<_>>())?, rho, [seed, set])?;
            let among = |x: &f64, all: &[f64]| all.iter().any(|y| (x - y).abs() < 0.5 / PLACES);
            truth.iter().for_each(|x| rate.add(among(x, &said)));
            for _ in 0..OTHERS {
                let others = values(said.len());
                chance += truth.iter().filter(|x| among(x, &others)).count() as f64 / OTHERS as f64;
            }
            guesses += said.len();
        }
        Ok((rate, chance, guesses))
    };
    let (control, _, _) = found(None)?;
    let (mut measures, mut details) = (Vec::new(), Vec::new());
    for rho in account::ACCOUNTS {
        let (rate, chance, guesses) = found(Some(rho))?;
        let most = Limit::hits(beyond_chance(chance), rate.of);
        let what = format!("values to four digits, rho {rho}");
        measures.push(Measure::new(what, control, Limit::AtLeast(0.9), rate, most));
        details.push(format!(
            "rho {rho}: {guesses} guesses; as many other people's values hit {chance:.1} of {}",
            rate.of
        ));
    }
    Ok(Finding {
        attack: NAME,
        needs: "plans that name one column of the schema each",
        control: CONTROL,
        protection: PROTECTION,
        measures,
        also_broken: None,
        details,
        not_shown: "the other columns: each pays from the same account",
        seconds: began.elapsed().as_secs_f64(),
    })
}
