//! One site's answer to a query: a dispatcher over one function per family of queries.

use crate::{AnswerError, Prepared, Query, Statistic, kernel};

/// The statistic of one site, in the layout of [`Query::layout`] for the site's public box.
///
/// # Errors
/// [`AnswerError::Query`] if the query does not fit the box, [`AnswerError::NotFinite`] if a sum overflows.
pub fn answer(query: &Query, rows: &Prepared) -> Result<Statistic, AnswerError> {
    query.check(rows.domain())?;
    let values = match query {
        Query::FuzzySums { centres, m } => {
            let sums = kernel::fuzzy_sums(rows.packed(), centres, *m)?;
            let mut values = sums.weighted_sums;
            values.extend(sums.weights);
            values
        }
        Query::FuzzyValidation { centres, m } => {
            let sums = kernel::fuzzy_validation(rows.packed(), centres, *m)?;
            let mut values = sums.distances;
            values.extend(sums.memberships);
            values.push(sums.objective);
            values
        }
    };
    finite(query, rows, values)
}

/// A sum that left the range of `f64` must not be rounded, masked and sent: it is refused here, by block.
fn finite(query: &Query, rows: &Prepared, values: Vec<f64>) -> Result<Statistic, AnswerError> {
    let mut rest = values.as_slice();
    for block in query.layout(rows.domain()) {
        let (head, tail) = rest.split_at(block.len.min(rest.len()));
        if head.iter().any(|value| !value.is_finite()) {
            return Err(AnswerError::NotFinite { block: block.name });
        }
        rest = tail;
    }
    Ok(Statistic { values })
}
