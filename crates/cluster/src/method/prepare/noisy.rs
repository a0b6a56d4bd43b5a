//! What a preparation makes of totals with noise ([NOI-7]).

use super::{Phase, Preparing, Scale};
use crate::Error;
use crate::algorithm::describe::counted;
use crate::shape::triangle;
use crate::totals_check::{check_values, plausible_moments};

impl Preparing {
    /// Under noise, the totals that rows could have given and that are nearest to these: no count is negative, all brackets of whole
    /// columns have the same rows, sums are those of values in the box, variances at most a quarter of its square.
    pub(super) fn plausible(&self, values: &[f64]) -> Result<Vec<f64>, Error> {
        let whitens = self.preparation.scale == Scale::Whiten;
        let d = self.domain.columns();
        if let Phase::Quantiles(_) = self.phase {
            let each = self.preparation.bins as usize + 1;
            check_values(values, self.brackets().len() * each)?;
            return Ok(counted(values, each));
        }
        let squares = matches!(self.phase, Phase::Squares(_));
        let products = squares && whitens;
        check_values(values, if products { 1 + d + triangle(d) + 1 } else { 1 + d })?;
        let ends: Vec<(f64, f64)> =
            self.transform.lower.iter().copied().zip(self.transform.upper.iter().copied()).collect();
        Ok(plausible_moments(values, &ends, squares && !products))
    }

    /// Under noise, clips rows where hardly any lie.
    pub(super) fn narrow(&mut self) {
        for column in 0..self.domain.numbers() {
            let (middle, factor) = (self.transform.shift[column], self.spreads.get(column).copied().flatten());
            let Some(spread) = factor else { continue };
            let reach = spread * if self.preparation.scale == Scale::Robust { 3.0 } else { 4.0 };
            let (lower, upper) = (&mut self.transform.lower[column], &mut self.transform.upper[column]);
            let (low, high) = ((middle - reach).max(*lower), (middle + reach).min(*upper));
            if low < high {
                (*lower, *upper) = (low, high);
            }
        }
    }
}
