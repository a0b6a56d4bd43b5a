//! How many rows lack a value, by column: what a table of the cohort needs, and what rows that can be used do not tell.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family};
use crate::kernel::{Form, Sums};
use crate::{Domain, Error, Prepared};

/// For every column the rows that were read and have no value there, before any is left out (d). Those without a category stand at its
/// first indicator, and 0 at the others.
///
/// A row that lacks a value is none of those that other questions are about; of a person's, as many count here as there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Missing {}

impl Missing {
    /// The counts by entry; nothing for indicators behind the first of their column, to which no row adds.
    pub(crate) fn by_entry(self, rows: &Prepared) -> Vec<Option<u64>> {
        let (domain, counts) = (rows.domain(), rows.missing());
        let of_column = |of: &usize| (0..*of).map(|at| at == 0);
        let counted = std::iter::repeat_n(true, domain.numbers()).chain(domain.categories().iter().flat_map(of_column));
        let of = |(at, counted): (usize, bool)| counted.then(|| counts.get(at).copied().unwrap_or(0));
        counted.enumerate().map(of).collect()
    }
}

impl Family for Missing {
    fn check(&self, _: &Domain) -> Result<(), Error> {
        Ok(())
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        vec![Block::per_row("missing", domain.columns(), 1.0)]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let counts = rows.missing().iter().map(|count| *count as f64);
        let counts: Vec<f64> = counts.chain(std::iter::repeat(0.0)).take(rows.domain().columns()).collect();
        Ok(form.whole(counts))
    }

    /// A row may lack every column, and counts once in each.
    fn sensitivity(&self, domain: &Domain) -> Option<Vec<f64>> {
        let columns = domain.numbers() + domain.categories().len();
        Some(vec![(columns as f64).sqrt()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Query, Scaling, answer};

    #[test]
    fn parts_add_up_and_nobody_who_says_nothing_lacks_a_value() {
        let domain = Domain::new(vec![0.0, 0.0], vec![1.0, 1.0], Scaling::None).unwrap();
        let site = || Prepared::known(&[0.5, 0.5], &domain);
        let asked = |rows: &Prepared| answer(&Batch::from(Query::from(Missing {})), rows).unwrap().values;
        assert_eq!(asked(&site()), [0.0, 0.0]);
        let mut all = site().with_missing(vec![3, 0]).unwrap();
        all.append(&site().with_missing(vec![1, 7]).unwrap()).unwrap();
        assert_eq!(asked(&all), [4.0, 7.0]);
        assert!(site().with_missing(vec![3]).is_err());
        // A row that lacks everything moves as much as noise is made for.
        let noisy = Query::from(Missing {}).sensitivity(&domain);
        let one = asked(&site().with_missing(vec![1, 1]).unwrap());
        assert_eq!(noisy, Some(vec![one.iter().map(|x| x * x).sum::<f64>().sqrt()]));
        assert_eq!(asked(&Prepared::pooled(&[all, site()]).unwrap()), [4.0, 7.0]);
    }
}
