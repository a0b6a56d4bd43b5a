//! Row counts in bins of brackets: one round of the refinement that finds quantiles.

use serde::{Deserialize, Serialize};
use veilsum_contributions::Question;

use super::family::{Block, Family, MAX_WORDS};
use crate::kernel::{Form, Sums};
use crate::{Domain, Error, Prepared, kernel, refuse};

/// Bins that a bracket may be cut into at most.
pub(crate) const MAX_BINS: u32 = 1024;

/// An interval of one column, working units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bracket {
    /// Column index.
    pub column: u32,
    /// Lower end.
    pub lower: f64,
    /// Upper end, above the lower one.
    pub upper: f64,
}

impl Bracket {
    /// Lower edge of bin `bin` of `bins`, and for `bin = bins` the upper end. Sites and coordinator compute every edge by
    /// this expression, so that both mean the same bins to the last bit.
    pub fn edge(&self, bin: u32, bins: u32) -> f64 {
        self.of_row().edge(bin, bins)
    }

    fn of_row(&self) -> veilsum_contributions::Bracket {
        veilsum_contributions::Bracket { column: self.column as usize, lower: self.lower, upper: self.upper }
    }
}

/// For every bracket the number of rows below it (1), and in each of `bins` equal bins of it (bins).
///
/// A bin holds its lower edge and not its upper one; the last one holds both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// The brackets, inside the box.
    pub brackets: Vec<Bracket>,
    /// Bins of each, 2 to 1024.
    pub bins: u32,
}

impl Histogram {
    /// Of the whole interval of each of the first columns.
    pub(crate) fn whole(domain: &Domain, columns: usize, bins: u32) -> Self {
        let whole = |column: usize| {
            let (lower, upper) = domain.working_interval(column);
            Bracket { column: u32::try_from(column).unwrap_or(u32::MAX), lower, upper }
        };
        Self { brackets: (0..columns).map(whole).collect(), bins }
    }

    /// Numbers of the answer.
    pub(crate) fn width(&self) -> usize {
        self.brackets.len() * (self.bins as usize + 1)
    }

    /// The brackets as they are asked of every row.
    pub(crate) fn of_row(&self) -> Vec<veilsum_contributions::Bracket> {
        self.brackets.iter().map(Bracket::of_row).collect()
    }
}

impl Family for Histogram {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        let bins = (2..=MAX_BINS).contains(&self.bins);
        refuse(!bins, || Error::Question("a bracket is cut into 2 to 1024 bins"))?;
        let some = (1..=MAX_WORDS / (self.bins as usize + 1)).contains(&self.brackets.len());
        refuse(!some, || Error::Question("there are no brackets, or too many"))?;
        for bracket in &self.brackets {
            let column = bracket.column as usize;
            if column >= domain.columns() {
                return Err(Error::ColumnMismatch { expected: domain.columns(), found: column + 1 });
            }
            let (low, high) = domain.working_interval(column);
            let inside = low <= bracket.lower && bracket.lower < bracket.upper && bracket.upper <= high;
            refuse(!inside, || Error::Question("a bracket is empty or leaves the box"))?;
        }
        Ok(())
    }

    fn layout(&self, _: &Domain) -> Vec<Block> {
        vec![Block::per_row("rows", self.width(), 1.0)]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let question = Question::Bins { brackets: &self.of_row(), bins: self.bins };
        Ok(kernel::contributions(rows.packed(), form, &question))
    }

    /// A row counts once at most in every bracket.
    fn sensitivity(&self, _: &Domain) -> Option<Vec<f64>> {
        Some(vec![(self.brackets.len() as f64).sqrt()])
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_lies_between_the_edges_of_its_bin(lower in -1e3f64..1e3, width in 1e-12f64..1e3, at in 0.0f64..=1.0, bins in 2u32..=1024) {
            let bracket = Bracket { column: 0, lower, upper: lower + width };
            prop_assume!(bracket.lower < bracket.upper);
            let x = (lower + at * width).min(bracket.upper);
            let mut counts = vec![0.0; bins as usize + 1];
            let question = Question::Bins { brackets: &[bracket.of_row()], bins };
            veilsum_contributions::add(&question, &[x], &mut [], &mut counts);
            prop_assert_eq!(counts.iter().sum::<f64>(), 1.0);
            let bin = counts.iter().position(|n| *n > 0.0).unwrap() as u32 - 1;
            prop_assert!(bracket.edge(bin, bins) <= x);
            prop_assert!(x < bracket.edge(bin + 1, bins) || bin + 1 == bins);
        }
    }
}
