//! Row counts in bins of every column: what the candidates for first centres are drawn from.

use serde::{Deserialize, Serialize};

use super::Histogram;
use super::family::{Block, Family};
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
        Histogram::whole(domain, domain.columns(), self.bins)
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
    fn sensitivity(&self, domain: &Domain) -> Option<Vec<f64>> {
        self.histogram(domain).sensitivity(domain)
    }
}
