//! Records from two questions of one plan: far more centres than rows, and a fuzzifier near 1, so that every row is alone at its
//! centre. Where a weight is 1, the mean beside it is a record. The second question leaves the centres that have found theirs and
//! spends the others where more rows are. (625 of 720 records of a released program that proved honest its own plan's numbers.)

use anyhow::Result;

use crate::{
    account::{self, CONTROL, Honest, PROTECTION, groups, sums},
    chance::{Population, median, nearest},
    finding::{Attack, Context, Found, Limit, Measure, Rate},
    scene::EDGE,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "records-in-two-questions",
    shows: "far more centres than rows and a steep fuzzifier tell records in two questions of one plan",
    needs: "a plan of the coordinator's making: clusters, fuzzifier and first centres",
    control: CONTROL,
    protection: PROTECTION,
    not_shown: "where people usually are, which totals are for",
    run,
};
const COLUMNS: usize = 3;
/// The absurd fuzzifier.
const M: f64 = 1.005;
/// Centres for each row.
const CENTRES: usize = 6;
/// A guess this near to a record has it.
const HIT: f64 = 1e-3;

/// The records that two totals give; `ask` answers.
fn attack(
    ask: impl Fn(u64, &[Vec<f64>]) -> Result<Vec<f64>>,
    clusters: usize,
    exact: bool,
    any: &mut Population,
) -> Result<Vec<Vec<f64>>> {
    let off = if exact { 2e-3 } else { 0.5 };
    let alone = |w: f64| (w - 1.0).abs() < off;
    let first: Vec<Vec<f64>> = (0..clusters).map(|_| any.anywhere(COLUMNS)).collect();
    let found = groups(&ask(0, &first)?, clusters);
    let mut next: Vec<Vec<f64>> = found.iter().filter(|(w, _)| alone(*w)).map(|(_, mean)| mean.clone()).collect();
    next.truncate(clusters);
    let more: Vec<&(f64, Vec<f64>)> = found.iter().filter(|(w, _)| *w > 1.0 + off).collect();
    let all: f64 = more.iter().map(|(w, _)| w).sum();
    let left = clusters - next.len();
    for (weight, mean) in more {
        for _ in 0..((left as f64 * weight / all) as usize).max(2) {
            let shift = any.anywhere(COLUMNS);
            next.push(mean.iter().zip(shift).map(|(c, s)| (c + 0.12 * s).clamp(-EDGE, EDGE)).collect());
        }
    }
    while next.len() < clusters {
        next.push(any.anywhere(COLUMNS));
    }
    next.truncate(clusters);
    let second = groups(&ask(1, &next)?, clusters);
    Ok(found.into_iter().chain(second).filter(|(w, _)| alone(*w)).map(|(_, mean)| mean).collect())
}

/// Asks the two questions, exactly and with noise.
///
/// # Errors
/// Where they cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let n = if quick { 150 } else { 400 };
    let clusters = CENTRES * n;
    let mut people = Population::new(seed, COLUMNS, 4, 0.18);
    let rows = people.people(n);
    let honest = Honest::new(&rows)?;
    let mut found_of = |rho: Option<f64>| -> Result<Vec<Vec<f64>>> {
        let ask = |question: u64, centres: &[Vec<f64>]| {
            honest.total(&sums(centres, Some(M))?, rho.map(|rho| rho / 2.0), &[seed, question])
        };
        attack(ask, clusters, rho.is_none(), &mut people)
    };
    let hits = |guesses: &[Vec<f64>]| {
        let near = nearest(&rows, guesses);
        Rate { hit: near.iter().filter(|d| **d < HIT).count() as u64, of: n as u64 }
    };
    let exact = found_of(None)?;
    let (control, mut measures) = (hits(&exact), Vec::new());
    let mut details = vec![format!("{n} rows, {clusters} centres, m = {M}, two questions")];
    for rho in account::ACCOUNTS {
        let guesses = found_of(Some(rho))?;
        let what = format!("records within 1e-3, rho {rho}");
        let chance = guesses.len() as f64 * n as f64 * HIT.powi(3);
        let most = Limit::hits(crate::finding::beyond_chance(chance), n as u64);
        measures.push(Measure::new(what, control, Limit::AtLeast(0.5), hits(&guesses), most));
        let mut others = Population::new(seed, COLUMNS, 4, 0.18);
        let blind = others.people(n + guesses.len()).split_off(n);
        let ratio = median(nearest(&rows, &guesses)) / median(nearest(&rows, &blind));
        let blind = others.people(exact.len());
        let unprotected = median(nearest(&rows, &exact)) / median(nearest(&rows, &blind));
        let what = format!("median distance to the nearest guess, of that of other people's records, rho {rho}");
        measures.push(Measure::new(what, unprotected, Limit::AtMost(0.05), ratio, Limit::AtLeast(0.9)));
        details.push(format!("rho {rho}: {} guesses", guesses.len()));
    }
    Ok(Found::new(measures, details))
}
