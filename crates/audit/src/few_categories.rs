//! Four columns of two categories: sixteen possible rows. A total is the sum over the possible rows d of n_d phi(d), and phi is public.
//! One round has fewer numbers than there are possible rows, but counts are whole and small, and numbers have many digits: a lattice
//! says which counts fit. Behind masks, nobody lying.

use anyhow::Result;
use veilsum_cluster::{
    Centres,
    query::{TypicalSums, Typicality},
};

use crate::{
    account::{self, CONTROL, Honest, Neighbours, PROTECTION, sums},
    chance::{Population, Secret},
    finding::{Attack, Context, Found, Limit, Rate},
    lattice,
    scene::EDGE,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "few-categories",
    shows: "totals tell how often each of a few possible rows occurs, and in which cell a person is",
    needs: "totals of an honest run over columns with few possible values",
    control: CONTROL,
    protection: PROTECTION,
    not_shown: "how often a category occurs, about: that is what totals are for",
    run,
};
const COLUMNS: usize = 4;
/// Possible rows.
const CELLS: usize = 1 << COLUMNS;
const ROWS: usize = 200;

fn cell(number: usize) -> Vec<f64> {
    (0..COLUMNS).map(|bit| if number >> bit & 1 == 1 { EDGE } else { -EDGE }).collect()
}

/// How often each possible row occurs, from a single round: the six numbers of one window, the number of rows among them, which is
/// known.
fn counts(honest: &Honest, people: &mut Population, rho: Option<f64>, draw: &[u64]) -> Result<Vec<f64>> {
    let centres = Centres::from_rows(&[people.anywhere(COLUMNS).iter().map(|x| 0.6 * x).collect::<Vec<f64>>()])?;
    let query = TypicalSums { centres, m: 2.0, distance: EDGE, typicality: Typicality::Possibilistic }.into();
    let numbers = |of: &Honest, rows: usize, rho: Option<f64>| -> Result<Vec<f64>> {
        Ok([of.total(&query, rho, draw)?, vec![rows as f64]].concat())
    };
    let one = |number| numbers(&Honest::new(&[cell(number)])?, 1, None);
    let parts: Vec<Vec<f64>> = (0..CELLS).map(one).collect::<Result<_>>()?;
    let guess = ROWS as f64 / CELLS as f64;
    Ok(lattice::whole_numbers(&parts, &numbers(honest, ROWS, rho)?, guess).unwrap_or_default())
}

/// Counts the cells, exactly and with noise, and asks in which of two a person is.
///
/// # Errors
/// Where a round cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let sets = account::times(quick, 20);
    let found = |rho: Option<f64>| -> Result<Rate> {
        let mut whole = Rate::default();
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), COLUMNS, 3, 0.5);
            let numbers: Vec<usize> =
                (0..ROWS).map(|_| people.draw().iter().rev().fold(0, |n, x| 2 * n + usize::from(*x > 0.0))).collect();
            let honest = Honest::new(&numbers.iter().map(|n| cell(*n)).collect::<Vec<_>>())?;
            let truth: Vec<f64> =
                (0..CELLS).map(|cell| numbers.iter().filter(|n| **n == cell).count() as f64).collect();
            whole.add(counts(&honest, &mut people, rho, &[seed, set])? == truth);
        }
        Ok(whole)
    };
    let what = "sets in which all sixteen counts come out, by six numbers";
    let mut measures = account::on_each(what, Limit::AtLeast(0.9), |_, _| Limit::AtMost(0.0), found)?;
    // One person, all others known, and the cells asked one by one.
    let mut people = Population::new(seed, COLUMNS, 3, 0.5);
    let others: Vec<Vec<f64>> = (0..ROWS).map(|_| cell(people.below(CELLS))).collect();
    let with = |number| Honest::new(&[others.clone(), vec![cell(number)]].concat());
    let (one, other) = (with(0)?, with(CELLS - 1)?);
    let queries = [sums(&(0..CELLS).map(cell).collect::<Vec<_>>(), None)?];
    let pair = Neighbours { without: &one, with: &other, queries: &queries };
    let tries = account::times(quick, 1000);
    measures.extend(account::told("in which of two cells a person is, all others known", Secret::Cell, |rho| {
        pair.told_apart(rho, tries, seed)
    })?);
    Ok(Found::new(measures, vec![format!("{sets} sets of {ROWS} rows")]))
}
