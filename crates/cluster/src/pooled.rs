//! Drives a method against rows at hand: pooled, or at several sites whose statistics are plainly added up.
//!
//! None of it hides anything. They are the yardstick for a masked run, which must come to the same result.
//!
//! Sums here are plain. The noise of a recipe that promises differential privacy belongs to fixed-point totals and is added by
//! whoever carries them; a run in this module keeps no such promise, whatever its recipe says.

use crate::method::Stage;
use crate::sampling::Sampling;
use crate::{Batch, Error, Method, Outcome, Prepared, Run, Step, Totals, answer};

/// Runs `method` to its end on the rows of one place; the number of rows is known.
///
/// # Errors
/// [`Error`] from either side.
pub fn run(method: &mut dyn Method, rows: &Prepared) -> Result<Outcome, Error> {
    plain_federated(method, std::slice::from_ref(rows))
}

/// Runs `method` to its end on the plain sums over `sites`, added in the order of the list.
///
/// # Errors
/// [`Error::NoSites`], or an error from either side.
pub fn plain_federated(method: &mut dyn Method, sites: &[Prepared]) -> Result<Outcome, Error> {
    let mut step = method.next(None)?;
    loop {
        match step {
            Step::Done(outcome) => return Ok(*outcome),
            Step::Ask(batch) => step = method.next(Some(&totals(&batch, sites)?))?,
        }
    }
}

/// As [`plain_federated`], but in the rounds of the algorithm only the drawn sites contribute (Bárcena et al. 2021); before
/// and after it all do.
///
/// # Errors
/// As [`plain_federated`].
pub fn sampled(run: &mut Run, sites: &[Prepared], sampling: Sampling) -> Result<Outcome, Error> {
    beside(run, sites, None, Some(sampling))
}

/// What a masked run is compared with: the same method on `whole`, all rows in one place, or where there is none on the plain
/// sums over `sites`, drawn as `sampling` says.
///
/// # Errors
/// As [`plain_federated`].
pub fn beside(
    run: &mut Run,
    sites: &[Prepared],
    whole: Option<&Prepared>,
    sampling: Option<Sampling>,
) -> Result<Outcome, Error> {
    let mut number = 0;
    let all = vec![true; sites.len()];
    let mut step = run.next(None)?;
    loop {
        let batch = match step {
            Step::Done(outcome) => return Ok(*outcome),
            Step::Ask(batch) => batch,
        };
        let drawn = match (sampling, run.stage()) {
            (Some(sampling), Some(Stage::Iterating)) => {
                number += 1;
                sampling.drawn(number, sites.len())
            }
            _ => all.clone(),
        };
        let mut totals = match whole {
            Some(whole) => totals(&batch, std::slice::from_ref(whole))?,
            None => some_totals(&batch, sites, &drawn)?,
        };
        if sampling.is_some() {
            totals.rows = None;
        }
        step = run.next(Some(&totals))?;
    }
}

/// The plain sum of all sites' answers to one question, with the number of rows.
///
/// # Errors
/// [`Error::NoSites`], or the error of a site.
pub fn totals(batch: &Batch, sites: &[Prepared]) -> Result<Totals, Error> {
    some_totals(batch, sites, &vec![true; sites.len()])
}

fn some_totals(batch: &Batch, sites: &[Prepared], drawn: &[bool]) -> Result<Totals, Error> {
    let mut values: Option<Vec<f64>> = None;
    for (site, _) in sites.iter().zip(drawn).filter(|(_, drawn)| **drawn) {
        let part = answer(batch, site)?.values;
        match &mut values {
            None => values = Some(part),
            Some(values) => values.iter_mut().zip(part).for_each(|(total, part)| *total += part),
        }
    }
    let rows = sites.iter().map(|site| site.len() as u64).sum();
    Ok(Totals { values: values.ok_or(Error::NoSites)?, rows: Some(rows) })
}
