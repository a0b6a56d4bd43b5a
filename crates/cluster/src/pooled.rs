//! Drives a method against rows at hand: pooled, or at several sites whose statistics are plainly added up.
//!
//! Neither hides anything. They are the yardstick for a masked run, which must come to the same result.

use crate::{AnswerError, DriveError, Method, Outcome, Prepared, Query, Step, Totals, answer};

/// Runs `method` to its end on the rows of one place; the number of rows is known.
///
/// # Errors
/// [`DriveError`] from either side.
pub fn run(method: &mut dyn Method, rows: &Prepared) -> Result<Outcome, DriveError> {
    plain_federated(method, std::slice::from_ref(rows))
}

/// Runs `method` to its end on the plain sums over `sites`, added in the order of the list.
///
/// # Errors
/// [`DriveError::NoSites`], or an error from either side.
pub fn plain_federated(method: &mut dyn Method, sites: &[Prepared]) -> Result<Outcome, DriveError> {
    let mut step = method.next(None)?;
    loop {
        match step {
            Step::Done(outcome) => return Ok(outcome),
            Step::Ask(query) => step = method.next(Some(&totals(&query, sites)?))?,
        }
    }
}

/// The plain sum of all sites' answers to one query, with the number of rows.
///
/// # Errors
/// [`DriveError::NoSites`], or the error of a site.
pub fn totals(query: &Query, sites: &[Prepared]) -> Result<Totals, DriveError> {
    let answers = sites.iter().map(|site| answer(query, site)).collect::<Result<Vec<_>, AnswerError>>()?;
    let mut answers = answers.into_iter();
    let mut values = answers.next().ok_or(DriveError::NoSites)?.values;
    for statistic in answers {
        for (total, part) in values.iter_mut().zip(statistic.values) {
            *total += part;
        }
    }
    let rows = sites.iter().map(|site| site.len() as u64).sum();
    Ok(Totals { values, rows: Some(rows) })
}
