//! Row counts in bins of every column: what the candidates for first centres are drawn from.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, Sensitivity};
use super::{Bracket, Histogram};
use crate::kernel::{Form, Sums};
use crate::{Domain, Error, Prepared};

/// For every column what a [`Histogram`] counts in one bracket, its whole interval (1 + bins).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Margins {
    /// Bins of each column, 2 to 1024.
    pub bins: u32,
}

impl Margins {
    /// The counts that it is short for.
    pub fn histogram(self, domain: &Domain) -> Histogram {
        let whole = |column: usize| {
            let (lower, upper) = domain.working_interval(column);
            Bracket { column: u32::try_from(column).unwrap_or(u32::MAX), lower, upper }
        };
        Histogram { brackets: (0..domain.columns()).map(whole).collect(), bins: self.bins }
    }
}

impl Family for Margins {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        self.histogram(domain).check(domain)
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        self.histogram(domain).layout(domain)
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        self.histogram(rows.domain()).answer(rows, form)
    }

    /// A row counts once in every column.
    fn sensitivity(&self, domain: &Domain) -> Option<Sensitivity> {
        self.histogram(domain).sensitivity(domain)
    }
}
