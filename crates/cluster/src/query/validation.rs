//! Totals that the validity indices need, at given centres.
//!
//! Every row belongs to its nearest centre, among equals to the first one.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, MAX_WORDS, Sensitivity, fuzzy_centres, same_columns};
use crate::kernel::{Form, Sums};
use crate::scale::{MARGIN, farthest, reach};
use crate::validity::{self, Geometry, Verdict};
use crate::{Centres, Domain, Error, Prepared, distance, kernel};

/// Labels that rows are counted by at most.
pub(crate) const MAX_CLASSES: u32 = 4096;

/// Everything of round A: what every index but the silhouettes around cluster means needs.
///
/// Totals, K each: rows; `sum ||x - c||^2` and `sum ||x - c||` of own rows; `D_k = sum ||x - c_k||`, `A_k = sum u_k`,
/// `sum u_k^m` and `sum u_k^m ||x - c_k||^2` over all rows. Then, 1 each: `sum u^2`, `-sum u ln u`, the sum of distances to
/// the other centres, that of their squares, `sum (b - a) / max(a, b)` with a and b the distances to the nearest and second
/// nearest centre (0 for K = 1). With `vectors` also, of own rows, `sum x` (K x d) and for every column `sum (x - c)^2` (d x K).
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

/// Round B: the simplified silhouette with respect to the cluster means (1) and the silhouette with squared Euclidean
/// distances (1); every row belongs to its nearest centre.
///
/// The sum of squared distances from x to the rows of cluster k is `n_k ||x - mean_k||^2 + W_k`, so that the silhouette
/// needs no pair of rows. A row that is alone in its cluster counts 0, as in Rousseeuw (1987); clusters without rows are
/// nobody's neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Silhouette {
    /// Final centres, K x d.
    pub centres: Centres,
    /// Means of the clusters, K x d.
    pub means: Centres,
    /// Rows of the clusters, K.
    pub rows: Vec<f64>,
    /// `W_k`, sums of squared distances to the means, K.
    pub scatter: Vec<f64>,
}

/// Rows by nearest centre and label, K x classes: what the adjusted Rand index needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contingency {
    /// Final centres, K x d.
    pub centres: Centres,
    /// Number of labels, 1 to 4096; a site's labels are 0..classes.
    pub classes: u32,
}

impl Family for Validation {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        fuzzy_centres(&self.centres, self.m, domain)
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let k = self.centres.k();
        let Reach { nearest, farthest, .. } = Reach::of(&self.centres, domain);
        let mut blocks = vec![
            Block::per_row("cluster_rows", k, 1.0),
            // A row is no farther from its nearest centre than from any other.
            Block::per_row("own_squares", k, nearest * nearest),
            Block::per_row("own_distances", k, nearest),
            Block::per_row("distances", k, farthest),
            Block::per_row("memberships", k, 1.0),
            Block::per_row("powers", k, 1.0),
            // One row adds min over u of sum_k u^m d^2 to J, hence at most its squared distance to any one centre.
            Block::per_row("objectives", k, nearest * nearest),
        ];
        blocks.extend(over_all_rows(&self.centres, domain));
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
    fn sensitivity(&self, domain: &Domain) -> Option<Sensitivity> {
        let (k, far) = (self.centres.k() as f64, 2.0 * reach(domain));
        let objective = far * far * k.powf(1.0 - self.m);
        let mut blocks = vec![1.0, far * far, far, k.sqrt() * far, 1.0, 1.0, objective];
        blocks.extend([1.0, k.ln().max(1.0), k * far, k * far * far, 1.0]);
        if self.vectors {
            blocks.push(farthest(domain));
            blocks.extend((0..domain.columns()).map(|column| {
                let (low, high) = domain.working_interval(column);
                (high - low) * (high - low) * MARGIN
            }));
        }
        Some(Sensitivity::Blocks(blocks))
    }

    fn verdict(&self, geometry: Geometry<'_>, values: &[f64], rows: Option<u64>) -> Result<Verdict, Error> {
        validity::full(&self.centres, self.vectors, geometry, values, rows)
    }
}

/// How far rows may be from centres.
struct Reach {
    nearest: f64,
    farthest: f64,
    all: f64,
    all_squares: f64,
}

impl Reach {
    fn of(centres: &Centres, domain: &Domain) -> Self {
        let mut found = Self { nearest: f64::INFINITY, farthest: 0.0, all: 0.0, all_squares: 0.0 };
        for centre in centres.rows() {
            let reach = domain.reach(centre);
            found.nearest = found.nearest.min(reach);
            found.farthest = found.farthest.max(reach);
            found.all += reach;
            found.all_squares += reach * reach;
        }
        found
    }
}

/// The five sums over memberships and distances.
fn over_all_rows(centres: &Centres, domain: &Domain) -> [Block; 5] {
    let Reach { all, all_squares, .. } = Reach::of(centres, domain);
    [
        Block::per_row("partition", 1, 1.0),
        Block::per_row("entropy", 1, (centres.k() as f64).ln().max(1.0)),
        Block::per_row("other_distances", 1, all),
        Block::per_row("other_squares", 1, all_squares),
        Block::per_row("simplified_silhouette", 1, 1.0),
    ]
}

impl Family for Silhouette {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        same_columns(&self.centres, domain)?;
        same_columns(&self.means, domain)?;
        let k = self.centres.k();
        if self.means.k() != k || self.rows.len() != k || self.scatter.len() != k {
            return Err(Error::Question { what: "there is not one mean, size and scatter for every centre" });
        }
        let usable = |value: &f64| value.is_finite() && *value >= 0.0;
        if !self.rows.iter().all(usable) || !self.scatter.iter().all(usable) {
            return Err(Error::Question { what: "a size or scatter of a cluster is negative or no number" });
        }
        Ok(())
    }

    fn layout(&self, _: &Domain) -> Vec<Block> {
        vec![Block::per_row("simplified_silhouette_means", 1, 1.0), Block::per_row("silhouette", 1, 1.0)]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        Ok(kernel::each_row(rows.packed(), form, 2, |x, sums| {
            let (own, _) = distance::nearest(x, self.centres.rows());
            if self.rows[own] < 1.5 {
                return;
            }
            let (mut to_own, mut to_other) = ([0.0; 2], [f64::INFINITY; 2]);
            for (k, mean) in self.means.rows().enumerate().filter(|(k, _)| self.rows[*k] > 0.5) {
                let square = distance::squared(x, mean);
                let within = self.scatter[k] / self.rows[k];
                if k == own {
                    let n = self.rows[k];
                    to_own = [square.sqrt(), (square + within) * n / (n - 1.0)];
                } else {
                    to_other = [to_other[0].min(square.sqrt()), to_other[1].min(square + within)];
                }
            }
            for (sum, (a, b)) in sums.iter_mut().zip(to_own.into_iter().zip(to_other)) {
                let width = (b - a) / a.max(b);
                // Neither for a row without a neighbouring cluster nor for one in the midst of copies of itself.
                *sum += if width.is_finite() { width } else { 0.0 };
            }
        }))
    }

    /// Both widths lie between -1 and 1.
    fn sensitivity(&self, _: &Domain) -> Option<Sensitivity> {
        Some(Sensitivity::Blocks(vec![1.0, 1.0]))
    }
}

impl Family for Contingency {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        if !(1..=MAX_CLASSES).contains(&self.classes) || self.centres.k() > MAX_WORDS / self.classes as usize {
            return Err(Error::Question { what: "rows are counted by 1 to 4096 labels" });
        }
        same_columns(&self.centres, domain)
    }

    fn layout(&self, _: &Domain) -> Vec<Block> {
        vec![Block::per_row("counts", self.centres.k() * self.classes as usize, 1.0)]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let labels = match rows.labels() {
            Some(labels) => labels,
            None if rows.is_empty() => &[],
            None => return Err(Error::NoLabels),
        };
        if labels.len() != rows.len() || labels.iter().any(|label| *label >= self.classes) {
            return Err(Error::NoLabels);
        }
        let classes = self.classes as usize;
        Ok(kernel::over_rows(rows.packed(), form, self.centres.k() * classes, |x, row, counts| {
            let (own, _) = distance::nearest(x, self.centres.rows());
            counts.add(own * classes + labels[row] as usize, 1.0);
        }))
    }

    /// A row has one centre and one label.
    fn sensitivity(&self, _: &Domain) -> Option<Sensitivity> {
        Some(Sensitivity::Blocks(vec![1.0]))
    }
}
