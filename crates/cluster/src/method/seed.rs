//! Seeding from totals: cells of a tree over the rows, then weighted greedy k-means++ off-line.
//!
//! The coordinator knows number, sum and sum of squares of the rows of every leaf, at first of the whole cohort. Level by
//! level it splits all leaves that can be split (those of largest scatter first, where fewer are missing than there are
//! leaves), each at the mean of its column of largest variance, and asks for the totals of one child; the other's are the
//! difference. A split is undone where a child holds fewer than p rows or rows of fewer than t sites, so that no row is
//! lost, and that leaf is not tried again. The means of the leaves, weighted with their rows, are then points for
//! k-means++ (Arthur & Vassilvitskii 2007), tried many times off-line. It is the variance-based splitting of Su & Dy
//! (2007) done on totals.
//!
//! *What the coordinator sees*: the totals of every leaf that was opened, hence of at least p rows and t sites. With
//! [`GroupThreshold::ask_first`] counts are asked in a question of their own, of both children, and sums only where both counts are
//! enough; without it the sums of a split that is undone have been seen. A cluster's total minus a union of cells may be a
//! single row. Against that there is blur: all sites together add normal noise of half the influence of one row or so to
//! the totals of the cells, never to those of the model. Here it means that counts may be off and even negative; weights
//! are then clamped to 0 and means into their cells. It is no differential privacy.
//!
//! *It falls short* with fewer cells than clusters: rows that coincide, K close to N / p, or t sites required where every cluster
//! lives at one site. Every cell is then a first centre, the others are drawn uniformly in the box, and the result says so. A cell
//! is a box: clusters that no axis separates share cells until the cells are small. Where p is a
//! large part of a cluster's rows, the cluster may not get a cell of its own.
//!
//! ```
//! use veilsum_cluster::method::{GroupThreshold, TreeSearch, TreeSeeding};
//! use veilsum_cluster::{OutOfBox, Prepared, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let params = TreeSeeding { seed: 1, cells_per_cluster: 4, tries: 20, min_rows: 10, blur: 0.5 };
//! let mut search = TreeSearch::new(&params, 20, GroupThreshold::NONE, &domain, 3)?;
//! let cells = loop {
//!     let totals = pooled::totals(&search.ask().into(), &sites)?;
//!     if let Some(cells) = search.take(&totals.values, totals.rows)? {
//!         break cells;
//!     }
//! };
//! let start = cells.start(5, params.seed, params.tries, &domain)?;
//! let truth = domain.centres_to_box(&example.truth)?;
//! assert!(veilsum_cluster::metrics::matched_distance(&start, &truth)?.max_abs < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::algorithm::GroupThreshold;
use crate::offline::kmeans::best_of;
use crate::query::{Blur, Cells, MAX_SPLITS, MAX_WORDS, RoundHalf, Split, Tree};
use crate::random::Stream;
use crate::totals_check::{SLACK, check_values};
use crate::{Centres, Domain, MethodError, Query, Start};

const LABEL: &[u8; 24] = b"veilsum tree seeding v1 ";

/// What totals of the same rows may differ by: variances that are as close together are equal (after standardisation all
/// are), and a split lies on a grid as fine, so that where rows lie at the mean, neither the split of the rows over sites
/// nor the rounding of sums decides on which side.
const TIE: f64 = 1e-9;

/// Seeding from totals: cells by repeated splits, then weighted greedy k-means++ off-line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSeeding {
    /// Seed of the off-line k-means++; restart r uses seed + r.
    pub seed: u64,
    /// Cells for each cluster of the largest K (4 to 8 are usual).
    pub cells_per_cluster: u32,
    /// Off-line tries, of which the best counts (20 is usual).
    pub tries: u32,
    /// Rows that a cell must hold.
    pub min_rows: u64,
    /// Standard deviation of the noise that all sites together add to the seeding totals, in units of one row's largest
    /// influence; 0 for none, 0.5 costs nothing in practice.
    pub blur: f64,
}

/// Totals of the cells that seeding opened.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedCells {
    /// Rows of each cell.
    pub weights: Vec<f64>,
    /// Mean of each cell, cells x d.
    pub means: Centres,
    /// Standard deviation of every column over all rows, d, units of the questions; a little off where cells are blurred.
    pub deviations: Vec<f64>,
}

impl SeedCells {
    /// First centres for K clusters (K x d, units of the questions): the best of `tries` weighted greedy k-means++ starts, each
    /// followed by weighted Lloyd. Where there are fewer cells than clusters, the means of all cells, and the rest as
    /// [`Start::Uniform`] draws them in `domain` from the same seed.
    ///
    /// # Errors
    /// [`MethodError::NoClusters`], [`MethodError::Parameter`] where `domain` has other columns.
    pub fn start(&self, k: usize, seed: u64, tries: u32, domain: &Domain) -> Result<Centres, MethodError> {
        if k == 0 {
            return Err(MethodError::NoClusters);
        }
        if self.count() >= k {
            return Ok(best_of(&self.means, &self.weights, k, tries, &mut Stream::new(seed, LABEL)).centres);
        }
        let unusable = |error: crate::DataError| MethodError::parameter(error.to_string());
        let drawn = Start::Uniform { seed }.centres(domain, k - self.count()).map_err(unusable)?;
        let values = self.means.as_slice().iter().chain(drawn.as_slice()).copied().collect();
        Centres::new(k, self.means.columns(), values).map_err(unusable)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.means.k()
    }
}

/// A leaf of the tree, with its totals and its part of the box.
#[derive(Debug, Clone)]
struct Leaf {
    node: u32,
    /// Number, sum (d) and sum of squares (d) of its rows.
    rows: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// It cannot be split.
    closed: bool,
}

impl Leaf {
    /// The mean, inside the cell whatever noise the totals carry.
    fn mean(&self, column: usize) -> f64 {
        let mean = self.sums[column] / self.rows;
        let mean = if mean.is_nan() { self.lower[column] } else { mean };
        mean.clamp(self.lower[column], self.upper[column])
    }

    fn variance(&self, column: usize) -> f64 {
        let (mean, square) = (self.sums[column] / self.rows, self.squares[column] / self.rows);
        let variance = square - mean * mean;
        // What is left of equal rows after rounding.
        if variance > 64.0 * f64::EPSILON * square { variance } else { 0.0 }
    }

    /// The sum of squared distances to the mean.
    fn scatter(&self) -> f64 {
        (0..self.sums.len()).map(|column| self.variance(column) * self.rows).sum()
    }

    /// Where it is split next, if it can be.
    fn split(&self, min_rows: f64, domain: &Domain) -> Option<Split> {
        if self.closed || self.rows < 2.0 * min_rows - 0.5 || self.rows < 1.5 {
            return None;
        }
        let wider = |best: (usize, f64), column: usize| {
            let variance = self.variance(column);
            if variance > best.1 * (1.0 + TIE) { (column, variance) } else { best }
        };
        let (column, variance) = (0..self.sums.len()).fold((0, 0.0), wider);
        let (low, high) = domain.working_interval(column);
        let step = TIE * (high - low);
        // A quarter of a step above a multiple of it, as a row often lies on the mean itself.
        let at = ((self.mean(column) / step).round() + 0.25) * step;
        let inside = self.lower[column] < at && at < self.upper[column];
        (variance > 0.0 && inside).then_some(Split { column: column as u32, at })
    }
}

/// What is asked about the splits at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The totals of the whole cohort.
    Root,
    /// Counts of both children of every split.
    Counts,
    /// Totals of the lower child; the counts are known to be enough, or t = 1 and the difference tells all.
    Below,
    /// Totals of both children: their sites are not known otherwise.
    Children,
}

/// The conversation that finds the cells.
#[derive(Debug, Clone)]
pub struct TreeSearch {
    wanted: usize,
    rule: GroupThreshold,
    blur: Option<Blur>,
    sites: u32,
    domain: Domain,
    tree: Tree,
    leaves: Vec<Leaf>,
    /// Places in `leaves` that are split now, ascending, and how.
    splits: Vec<(usize, Split)>,
    phase: Phase,
    /// Levels that were proposed.
    levels: u32,
}

impl TreeSearch {
    /// Its beginning: up to `leaves` cells over `domain`, for a cohort of `sites` sites (they share the blur).
    ///
    /// # Errors
    /// [`MethodError::Parameter`].
    pub fn new(
        params: &TreeSeeding,
        leaves: usize,
        rule: GroupThreshold,
        domain: &Domain,
        sites: u32,
    ) -> Result<Self, MethodError> {
        // One level asks about 2 children of each leaf at most.
        let most = (MAX_SPLITS + 1).min(MAX_WORDS / (4 * domain.columns() + 4));
        if leaves == 0 || leaves > most {
            return Err(MethodError::parameter(format!("seeding would need {leaves} cells, 1 to {most} are possible")));
        }
        if sites == 0 || !(0.0..=1000.0).contains(&params.blur) {
            return Err(MethodError::parameter("seeding needs a site, and a blur of 0 to 1000"));
        }
        let min_rows = rule.min_rows.max(params.min_rows).max(1);
        let blur = Blur { strength: params.blur, sites };
        Ok(Self {
            wanted: leaves,
            rule: GroupThreshold { min_rows, ..rule },
            blur: (params.blur > 0.0).then_some(blur),
            sites,
            domain: domain.clone(),
            tree: Tree::default(),
            leaves: Vec::new(),
            splits: Vec::new(),
            phase: Phase::Root,
            levels: 0,
        })
    }

    /// Questions that it asks at most; `rule` with the rows that a cell must hold in it.
    pub fn max_questions(leaves: usize, rule: GroupThreshold) -> u32 {
        let each = if rule.two_steps() { 2 } else { 1 };
        1 + each * max_levels(leaves)
    }

    /// The open question.
    pub fn ask(&self) -> Query {
        let first = 2 * self.tree.splits.len() as u32;
        let count = self.splits.len() as u32;
        let (nodes, part) = match self.phase {
            Phase::Root => (vec![0], RoundHalf::Sums(Vec::new())),
            Phase::Counts => ((first + 1..=first + 2 * count).collect(), RoundHalf::Counts),
            Phase::Below => ((0..count).map(|i| first + 2 * i + 1).collect(), RoundHalf::Sums(Vec::new())),
            Phase::Children => ((first + 1..=first + 2 * count).collect(), RoundHalf::Both),
        };
        let mut tree = self.tree.clone();
        for (at, split) in &self.splits {
            tree.of.push(self.leaves[*at].node);
            tree.splits.push(*split);
        }
        Query::Cells(Cells { tree, nodes, part, blur: self.blur })
    }

    /// Takes its totals; the cells once they are found.
    ///
    /// # Errors
    /// [`MethodError::Implausible`], and nothing has changed then.
    pub fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<Option<SeedCells>, MethodError> {
        let d = self.domain.columns();
        let n = self.splits.len();
        let (nodes, words) = match self.phase {
            Phase::Root => (1, 1 + 2 * d),
            Phase::Counts => (2 * n, 2),
            Phase::Below => (n, 1 + 2 * d),
            Phase::Children => (2 * n, 2 + 2 * d),
        };
        check_values(values, nodes * words)?;
        let totals = NodeTotals { values, nodes, d };
        self.check_counts(&totals, rows)?;
        let mut next = self.clone();
        match self.phase {
            Phase::Root => {
                let (lower, upper) = (0..d).map(|column| self.domain.working_interval(column)).unzip();
                let (sums, squares) = (totals.sums(0).to_vec(), totals.squares(0).to_vec());
                next.leaves.push(Leaf { node: 0, rows: values[0], sums, squares, lower, upper, closed: false });
                next.propose();
            }
            Phase::Counts => {
                next.keep(|i| {
                    (0..2).all(|side| self.rule.allows(totals.rows(2 * i + side), totals.last(2 * i + side)))
                });
                next.phase = Phase::Below;
                if next.splits.is_empty() {
                    next.propose();
                }
            }
            Phase::Below => {
                // Counts come first where sites matter, so only rows are looked at here.
                let enough = |leaf: &Leaf| self.rule.allows(leaf.rows, f64::from(self.rule.min_sites));
                let children = (0..n).map(|i| {
                    let children = self.children(i, &totals, i, None);
                    (self.rule.two_steps() || children.iter().all(enough)).then_some(children)
                });
                next.grow(children);
                next.propose();
            }
            Phase::Children => {
                let enough = |at: usize| self.rule.allows(totals.rows(at), totals.last(at));
                let children = (0..n).map(|i| {
                    let (below, above) = (2 * i, 2 * i + 1);
                    (enough(below) && enough(above)).then(|| self.children(i, &totals, below, Some(above)))
                });
                next.grow(children);
                next.propose();
            }
        }
        let found = if next.splits.is_empty() { Some(next.cells()?) } else { None };
        *self = next;
        Ok(found)
    }

    /// Counts that no rows can have. Blurred ones can be anything.
    fn check_counts(&self, totals: &NodeTotals<'_>, rows: Option<u64>) -> Result<(), MethodError> {
        let sites = f64::from(self.sites) + 0.5;
        for at in 0..totals.nodes {
            if matches!(self.phase, Phase::Counts | Phase::Children) && !(-0.5..=sites).contains(&totals.last(at)) {
                return Err(MethodError::implausible("a cell has more sites than the cohort"));
            }
            if self.blur.is_some() {
                continue;
            }
            let count = totals.rows(at);
            let most = match self.phase {
                Phase::Root => rows.map_or(f64::MAX, |rows| rows as f64),
                Phase::Below => self.leaves[self.splits[at].0].rows,
                Phase::Counts | Phase::Children => self.leaves[self.splits[at / 2].0].rows,
            };
            if count < 0.0 {
                return Err(MethodError::implausible("a cell has a negative number of rows"));
            }
            if count > most + 0.5 + SLACK * most {
                return Err(MethodError::implausible("a cell has more rows than the one that holds it"));
            }
        }
        if self.phase == Phase::Root && totals.rows(0) < 0.5 {
            return Err(MethodError::implausible("there are no rows"));
        }
        Ok(())
    }

    /// The children of split `i`, of which `below` (and perhaps `above`) are places among the totals. Their node numbers
    /// are given in [`TreeSearch::grow`].
    fn children(&self, i: usize, totals: &NodeTotals<'_>, below: usize, above: Option<usize>) -> [Leaf; 2] {
        let (at, split) = &self.splits[i];
        let parent = &self.leaves[*at];
        let mut low = Leaf {
            rows: totals.rows(below),
            sums: totals.sums(below).to_vec(),
            squares: totals.squares(below).to_vec(),
            ..parent.clone()
        };
        low.upper[split.column as usize] = split.at;
        let less = |all: &[f64], part: &[f64]| all.iter().zip(part).map(|(all, part)| all - part).collect();
        let mut high = match above {
            Some(at) => Leaf {
                rows: totals.rows(at),
                sums: totals.sums(at).to_vec(),
                squares: totals.squares(at).to_vec(),
                ..parent.clone()
            },
            None => Leaf {
                rows: parent.rows - low.rows,
                sums: less(&parent.sums, &low.sums),
                squares: less(&parent.squares, &low.squares),
                ..parent.clone()
            },
        };
        high.lower[split.column as usize] = split.at;
        [low, high]
    }

    /// Undoes the splits that may not be made; those leaves stay as they are.
    fn keep(&mut self, allowed: impl Fn(usize) -> bool) {
        let mut i = 0;
        let leaves = &mut self.leaves;
        self.splits.retain(|(at, _)| {
            let keep = allowed(i);
            leaves[*at].closed |= !keep;
            i += 1;
            keep
        });
    }

    /// Makes the splits that have children and undoes the others, in their order.
    fn grow(&mut self, children: impl Iterator<Item = Option<[Leaf; 2]>>) {
        for ((at, split), children) in std::mem::take(&mut self.splits).into_iter().zip(children) {
            let Some([mut low, mut high]) = children else {
                self.leaves[at].closed = true;
                continue;
            };
            let first = 2 * self.tree.splits.len() as u32;
            self.tree.of.push(self.leaves[at].node);
            self.tree.splits.push(split);
            low.node = first + 1;
            high.node = first + 2;
            self.leaves[at] = low;
            self.leaves.push(high);
        }
    }

    /// The next level: every leaf that can be split, those of largest scatter where there is not room for all.
    fn propose(&mut self) {
        self.phase = match self.rule {
            rule if rule.two_steps() => Phase::Counts,
            rule if rule.min_sites > 1 => Phase::Children,
            _ => Phase::Below,
        };
        if self.levels >= max_levels(self.wanted) {
            self.splits.clear();
            return;
        }
        self.levels += 1;
        let min_rows = self.rule.min_rows as f64;
        let mut candidates: Vec<(usize, Split)> = self
            .leaves
            .iter()
            .enumerate()
            .filter_map(|(at, leaf)| Some((at, leaf.split(min_rows, &self.domain)?)))
            .collect();
        candidates.sort_by(|(a, _), (b, _)| self.leaves[*b].scatter().total_cmp(&self.leaves[*a].scatter()));
        candidates.truncate(self.wanted - self.leaves.len());
        candidates.sort_by_key(|(at, _)| *at);
        self.splits = candidates;
    }

    /// The leaves as points; one without rows (blur can make it such) is none.
    fn cells(&self) -> Result<SeedCells, MethodError> {
        let d = self.domain.columns();
        let full = || self.leaves.iter().filter(|leaf| leaf.rows >= 0.5 && leaf.rows.is_finite());
        let values: Vec<f64> = full().flat_map(|leaf| (0..d).map(|column| leaf.mean(column))).collect();
        let weights: Vec<f64> = full().map(|leaf| leaf.rows).collect();
        let means = Centres::new(weights.len(), d, values)
            .map_err(|_| MethodError::implausible("no cell is left that holds rows"))?;
        let sum = |of: &dyn Fn(&Leaf) -> f64| full().map(of).sum::<f64>();
        let rows = sum(&|leaf| leaf.rows);
        let deviation = |column: usize| {
            let mean = sum(&|leaf| leaf.sums[column]) / rows;
            (sum(&|leaf| leaf.squares[column]) / rows - mean * mean).max(0.0).sqrt()
        };
        Ok(SeedCells { weights, means, deviations: (0..d).map(deviation).collect() })
    }
}

/// Levels that are tried: twice those of a balanced tree and some, so that a few far rows do not use them up.
fn max_levels(leaves: usize) -> u32 {
    if leaves < 2 { 0 } else { 2 * leaves.next_power_of_two().ilog2() + 8 }
}

/// The totals of a question by node.
struct NodeTotals<'a> {
    values: &'a [f64],
    nodes: usize,
    d: usize,
}

impl<'a> NodeTotals<'a> {
    fn rows(&self, at: usize) -> f64 {
        self.values[at]
    }

    fn sums(&self, at: usize) -> &'a [f64] {
        &self.values[self.nodes + at * self.d..][..self.d]
    }

    fn squares(&self, at: usize) -> &'a [f64] {
        &self.values[self.nodes + (self.nodes + at) * self.d..][..self.d]
    }

    /// Number of sites, where it was asked: the last block.
    fn last(&self, at: usize) -> f64 {
        self.values[self.values.len() - self.nodes + at]
    }
}
