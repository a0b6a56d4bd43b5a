//! Totals that the validity indices need, at given centres.
//!
//! Every row belongs to its nearest centre, among equals to the first one.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, fuzzy_centres, reaches};
use crate::kernel::{Form, Sums};
use crate::scale::{MARGIN, farthest, reach};
use crate::validity::{self, Geometry, Verdict};
use crate::{Centres, Domain, Error, Prepared, kernel};

/// What every index needs.
///
/// Totals, K each: rows; `sum ||x - c||^2` and `sum ||x - c||` of own rows; `D_k = sum ||x - c_k||`, `A_k = sum u_k`,
/// `sum u_k^m` and `sum u_k^m ||x - c_k||^2` over all rows. Then, 1 each: `sum u^2`, `-sum u ln u`, the sum of distances to
/// the other centres, that of their squares. With `vectors` also, of own rows, `sum x` (K x d) and for every column
/// `sum (x - c)^2` (d x K).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Final centres, K x d.
    pub centres: Centres,
    /// Fuzzifier, m > 1.
    pub m: f64,
    /// Whether the sums of coordinates and of their squared deviations are asked too (Calinski-Harabasz, Fukuyama-Sugeno, cluster
    /// means and deviations need them).
    pub vectors: bool,
}

impl Family for Validation {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        fuzzy_centres(&self.centres, self.m, domain)
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let k = self.centres.k();
        let (reaches, nearest) = reaches(&self.centres, domain);
        let mut blocks = vec![
            Block::per_row("cluster_rows", k, 1.0),
            // A row is no farther from its nearest centre than from any other.
            Block::per_row("own_squares", k, nearest * nearest),
            Block::per_row("own_distances", k, nearest),
            Block::per_row("distances", k, reaches.iter().copied().fold(0.0, f64::max)),
            Block::per_row("memberships", k, 1.0),
            Block::per_row("powers", k, 1.0),
            // One row adds min over u of sum_k u^m d^2 to J, hence at most its squared distance to any one centre.
            Block::per_row("objectives", k, nearest * nearest),
            Block::per_row("partition", 1, 1.0),
            Block::per_row("entropy", 1, (k as f64).ln().max(1.0)),
            Block::per_row("other_distances", 1, reaches.iter().sum()),
            Block::per_row("other_squares", 1, reaches.iter().map(|reach| reach * reach).sum()),
        ];
        if self.vectors {
            let largest = domain.largest();
            blocks.push(Block::per_row("cluster_sums", k * domain.columns(), largest));
            // Every column has a bound of its own, as in `Moments`.
            let squares = |column: usize| {
                let (low, high) = domain.working_interval(column);
                let far = self
                    .centres
                    .rows()
                    .fold(0.0f64, |far, c| far.max((c[column] - low).abs().max((high - c[column]).abs())));
                Block::per_row("cluster_squares", k, far * far)
            };
            blocks.extend((0..domain.columns()).map(squares));
        }
        blocks
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        kernel::validity_sums(rows.packed(), &self.centres, self.m, self.vectors, form)
    }

    /// Own rows are those of one centre, so that one entry of a block by cluster moves; memberships and their powers add up to 1 at most.
    fn sensitivity(&self, domain: &Domain) -> Option<Vec<f64>> {
        let (k, far) = (self.centres.k() as f64, 2.0 * reach(domain));
        let objective = far * far * k.powf(1.0 - self.m);
        let mut blocks = vec![1.0, far * far, far, k.sqrt() * far, 1.0, 1.0, objective];
        blocks.extend([1.0, k.ln().max(1.0), k * far, k * far * far]);
        if self.vectors {
            blocks.push(farthest(domain));
            blocks.extend((0..domain.columns()).map(|column| {
                let (low, high) = domain.working_interval(column);
                (high - low) * (high - low) * MARGIN
            }));
        }
        Some(blocks)
    }

    fn verdict(&self, geometry: Geometry<'_>, values: &[f64], rows: Option<u64>) -> Result<Verdict, Error> {
        validity::full(&self.centres, self.vectors, geometry, values, rows)
    }
}
