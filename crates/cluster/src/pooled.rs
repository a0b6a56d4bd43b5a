//! Drives a method against rows at hand: pooled, or at several sites whose statistics are plainly added up.
//!
//! None of it hides anything. They are the yardstick for a masked run, which must come to the same result.
//!
//! Sums here are plain. The noise of a recipe that promises differential privacy belongs to fixed-point totals and is added by
//! whoever carries them; a run in this module keeps no such promise, whatever its recipe says.

use crate::method::Stage;
use crate::sampling::Sampling;
use crate::{Batch, Error, Outcome, Prepared, Run, Totals, answer};

/// Makes a run to its end on the rows of one place; the number of rows is known.
///
/// # Errors
/// [`Error`] from either side.
pub fn run(run: &mut Run, rows: &Prepared) -> Result<Outcome, Error> {
    plain_federated(run, std::slice::from_ref(rows))
}

/// Makes a run to its end on the plain sums over `sites`, added in the order of the list.
///
/// # Errors
/// [`Error::NoSites`], or an error from either side.
pub fn plain_federated(run: &mut Run, sites: &[Prepared]) -> Result<Outcome, Error> {
    run.through(|_, batch| totals(batch, sites))
}

/// What a masked run is compared with: the same method on `whole`, all rows in one place, or where there is none on the plain
/// sums over `sites`. In the rounds of the algorithm only those contribute that `sampling` draws (Bárcena et al. 2021); before
/// and after it all do.
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
    run.through(|stage, batch| {
        let drawn = match (sampling, stage) {
            (Some(sampling), Some(Stage::Iterating)) => {
                number += 1;
                sampling.drawn(number, sites.len())
            }
            _ => vec![true; sites.len()],
        };
        let found = match whole {
            Some(whole) => totals(batch, std::slice::from_ref(whole))?,
            None => some_totals(batch, sites, &drawn)?,
        };
        Ok(Totals { rows: found.rows.filter(|_| sampling.is_none()), ..found })
    })
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
