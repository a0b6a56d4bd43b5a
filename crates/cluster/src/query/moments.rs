//! Number of rows and moments of every column: what federated standardisation needs, in two rounds.
//!
//! Squares are taken around the mean of the first round: the difference of raw second moments would lose in fixed point
//! what it is meant to find.

use serde::{Deserialize, Serialize};
use veilsum_contributions::Question;

use super::family::{Block, Family};
use crate::kernel::{Form, Sums};
use crate::{Domain, Error, Prepared, kernel, refuse};

/// Without `around`: N and `sum x` (d). With it: N and `sum (x - around)^2` (d).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Point inside the box around which squares are taken, d.
    pub around: Option<Vec<f64>>,
}

impl Family for Moments {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        let Some(around) = &self.around else { return Ok(()) };
        domain.same_columns(around.len())?;
        let inside = |(column, value): (usize, &f64)| {
            let (low, high) = domain.working_interval(column);
            (low..=high).contains(value)
        };
        let outside = !around.iter().enumerate().all(inside);
        refuse(outside, || Error::Question("squares are taken around a point outside the box"))
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let d = domain.columns();
        // Every column has a bound of its own: beside one in millions, the squares of one in thousandths would be rounded
        // away, and columns are standardised because their units differ.
        let moment = |column: usize| match &self.around {
            None => Block::per_row("sums", 1, domain.max_abs(column)),
            Some(around) => {
                let (low, high) = domain.working_interval(column);
                let far = (around[column] - low).max(high - around[column]);
                Block::per_row("squares", 1, far * far)
            }
        };
        std::iter::once(Block::per_row("rows", 1, 1.0)).chain((0..d).map(moment)).collect()
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        Ok(kernel::contributions(rows.packed(), form, &self.of_row(rows.domain().columns())))
    }

    /// Every column is a block of its own, and its bound is that of a row's value.
    fn sensitivity(&self, domain: &Domain) -> Option<Vec<f64>> {
        Some(self.layout(domain).iter().map(|block| block.bound).collect())
    }
}

impl Moments {
    /// As it is asked of every row of d columns.
    pub(crate) fn of_row(&self, d: usize) -> Question<'_> {
        Question::Moments { around: self.around.as_deref(), d }
    }
}
