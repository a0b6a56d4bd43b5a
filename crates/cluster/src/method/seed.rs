//! First centres from totals: row counts of the cells of a tree over the box, then weighted greedy k-means++ off-line.
//!
//! A cell is halved across its widest side, and so are its halves; where the rows are plays no part in where a cell ends. A
//! question asks for the rows of all cells that are [`EACH`] halvings smaller than those before it. Of these only the fullest are halved
//! further, and what holds no rows is forgotten. The middles of the cells, weighted with their rows, are then points for
//! k-means++ (Arthur & Vassilvitskii 2007), tried many times off-line.
//!
//! *Under noise* a row is in one cell of each question, so that a question's sensitivity is 1 (specification, section 17.4).
//! What follows a count is post-processing: a cell whose count could be noise is forgotten, and if all parts of a cell are, the
//! cell itself stays. No count is an error.
//!
//! *What the coordinator sees*: the counts, exact in a plan without noise.
//!
//! *It falls short* with fewer cells than clusters: rows that coincide. Every cell is then a first centre, the others are drawn
//! uniformly in the box. A cell is a box: clusters that no axis separates share cells until the cells are small. With more
//! columns than halvings only the widest ones are looked at.
//!
//! ```
//! use veilsum_cluster::method::{TreeSearch, TreeSeeding};
//! use veilsum_cluster::{OutOfBox, Prepared, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let params = TreeSeeding::usual(1, 5, 2);
//! let mut search = TreeSearch::new(&params, 0.0, &domain)?;
//! let cells = loop {
//!     let totals = pooled::totals(&search.ask().into(), &sites)?;
//!     if let Some(cells) = search.take(&totals.values)? {
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

use crate::offline::kmeans::best_of;
use crate::query::{Cells, Split, Tree};
use crate::random::Stream;
use crate::totals_check::check_values;
use crate::{Centres, Domain, MethodError, Query, Start};

const LABEL: &[u8; 24] = b"veilsum tree seeding v1 ";

/// Halvings between two questions at most: 256 cells of each that is halved.
const EACH: u32 = 8;
/// Cells that a question asks about at most, all of one question's halvings of one cell aside.
const MOST_CELLS: usize = 4_096;
/// What the rounding of standardised columns stays far below: sides that are as close to each other are equal, and a cell is halved so far
/// above its middle, where a row often lies, so that rounding does not say on which side the row is.
const TIE: f64 = 1.0 / (1u64 << 30) as f64;
/// Halvings at most.
const MOST_LEVELS: u32 = 32;

/// First centres from totals: row counts of cells, then weighted greedy k-means++ off-line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSeeding {
    /// Seed of the off-line k-means++; restart r uses seed + r.
    pub seed: u64,
    /// How often the box is halved, 1 to 32.
    pub levels: u32,
    /// Off-line tries, of which the best counts (20 is usual), 1 to 1,000.
    pub tries: u32,
}

impl TreeSeeding {
    /// What is usual for at most `k` clusters in `columns` columns: some thirty-two cells a cluster if rows were everywhere, and every column
    /// halved once as far as that goes.
    pub fn usual(seed: u64, k: u32, columns: usize) -> Self {
        let cells = k.max(4).saturating_mul(32).next_power_of_two().ilog2();
        let levels = cells.max(u32::try_from(columns).unwrap_or(MOST_LEVELS)).min(MOST_LEVELS);
        Self { seed, levels, tries: 20 }
    }

    /// Questions that it asks.
    pub fn questions(&self) -> u32 {
        self.levels.div_ceil(EACH)
    }

    /// Halvings between two questions.
    fn each(&self) -> u32 {
        self.levels.div_ceil(self.questions().max(1))
    }

    /// Numbers that a question asks for at most.
    pub fn most_words(&self) -> u64 {
        if self.questions() == 1 { 1 << self.levels } else { MOST_CELLS as u64 }
    }

    /// Whether it can be asked.
    ///
    /// # Errors
    /// [`MethodError::Parameter`].
    pub fn check(&self) -> Result<(), MethodError> {
        if !(1..=MOST_LEVELS).contains(&self.levels) {
            return Err(MethodError::parameter(format!(
                "first centres from totals take 1 to {MOST_LEVELS} halvings of the box"
            )));
        }
        if !(1..=1000).contains(&self.tries) {
            return Err(MethodError::parameter("first centres from totals take 1 to 1000 tries"));
        }
        Ok(())
    }
}

/// The cells that were found to hold rows.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedCells {
    /// Rows of each cell.
    pub weights: Vec<f64>,
    /// The middle of each cell, cells x d.
    pub middles: Centres,
    /// Standard deviation of every column over all rows, d, units of the questions, as far as the cells tell it: rows are taken to
    /// be spread evenly in their cell.
    pub deviations: Vec<f64>,
}

impl SeedCells {
    /// First centres for K clusters (K x d, units of the questions): the best of `tries` weighted greedy k-means++ starts, each
    /// followed by weighted Lloyd. If there are fewer cells than clusters, the middles of all cells, and the rest as
    /// [`Start::Uniform`] draws them in `domain` from the same seed.
    ///
    /// # Errors
    /// [`MethodError::NoClusters`], [`MethodError::Parameter`] if `domain` has other columns.
    pub fn start(&self, k: usize, seed: u64, tries: u32, domain: &Domain) -> Result<Centres, MethodError> {
        if k == 0 {
            return Err(MethodError::NoClusters);
        }
        if self.count() >= k {
            return Ok(best_of(&self.middles, &self.weights, k, tries, &mut Stream::new(seed, LABEL)).centres);
        }
        let unusable = |error: crate::DataError| MethodError::parameter(error.to_string());
        let drawn = Start::Uniform { seed }.centres(domain, k - self.count()).map_err(unusable)?;
        let values = self.middles.as_slice().iter().chain(drawn.as_slice()).copied().collect();
        Centres::new(k, self.middles.columns(), values).map_err(unusable)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.middles.k()
    }
}

/// A leaf of the tree, with its part of the box.
#[derive(Debug, Clone)]
struct Leaf {
    node: u32,
    rows: f64,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Leaf {
    fn middle(&self, column: usize) -> f64 {
        self.lower[column] + (self.upper[column] - self.lower[column]) / 2.0
    }

    fn width(&self, column: usize) -> f64 {
        self.upper[column] - self.lower[column]
    }

    /// Its halves, which split `i` of the tree makes, and the split.
    fn halves(&self, i: usize) -> (Split, [Leaf; 2]) {
        let wider = |best: usize, column: usize| {
            if self.width(column) > self.width(best) * (1.0 + TIE) { column } else { best }
        };
        let column = (1..self.lower.len()).fold(0, wider);
        let middle = self.middle(column);
        let at = middle + self.width(column) * TIE;
        let node = |child: usize| u32::try_from(2 * i + child).unwrap_or(u32::MAX);
        let mut halves = [Leaf { node: node(1), ..self.clone() }, Leaf { node: node(2), ..self.clone() }];
        halves[0].upper[column] = middle;
        halves[1].lower[column] = middle;
        (Split { column: u32::try_from(column).unwrap_or(u32::MAX), at }, halves)
    }
}

/// The conversation that finds the cells.
#[derive(Debug, Clone)]
pub struct TreeSearch {
    params: TreeSeeding,
    /// Standard deviation of the noise of a count; 0 if there is none.
    noise: f64,
    tree: Tree,
    /// Those that stay, and those that are halved now.
    leaves: Vec<Leaf>,
    halved: Vec<Leaf>,
    /// The parts of the latter, one after the other, of each as many.
    parts: Vec<Leaf>,
    /// Halvings that are still to come after the open question.
    left: u32,
}

impl TreeSearch {
    /// Its beginning over `domain`, with counts whose noise has this standard deviation (0 for exact ones).
    ///
    /// # Errors
    /// [`MethodError::Parameter`].
    pub fn new(params: &TreeSeeding, noise: f64, domain: &Domain) -> Result<Self, MethodError> {
        params.check()?;
        let (lower, upper) = (0..domain.columns()).map(|column| domain.working_interval(column)).unzip();
        let root = Leaf { node: 0, rows: 0.0, lower, upper };
        let mut search = Self {
            params: *params,
            noise,
            tree: Tree::default(),
            leaves: Vec::new(),
            halved: vec![root],
            parts: Vec::new(),
            left: params.levels,
        };
        search.propose();
        Ok(search)
    }

    /// The open question.
    pub fn ask(&self) -> Query {
        Query::Cells(Cells { tree: self.tree.clone(), nodes: self.parts.iter().map(|part| part.node).collect() })
    }

    /// Takes its totals; the cells once they are found.
    ///
    /// # Errors
    /// [`MethodError::Implausible`] for totals that are none, and nothing has changed then.
    pub fn take(&mut self, values: &[f64]) -> Result<Option<SeedCells>, MethodError> {
        check_values(values, self.parts.len())?;
        let mut next = self.clone();
        // Of so many counts of nothing hardly one is larger.
        let least = (self.noise * (2.0 * (self.parts.len().max(2) as f64).ln()).sqrt()).max(0.5);
        let mut found = Vec::new();
        let each = self.parts.len() / self.halved.len().max(1);
        for (i, whole) in self.halved.iter().enumerate() {
            let parts = || (i * each..(i + 1) * each).map(|at| Leaf { rows: values[at], ..self.parts[at].clone() });
            let full: Vec<Leaf> = parts().filter(|part| part.rows >= least).collect();
            match (full.is_empty(), whole.node) {
                (false, _) => found.extend(full),
                // Nothing is known of the whole box yet.
                (true, 0) => found.extend(parts().filter(|part| part.rows > 0.0)),
                (true, _) => next.leaves.push(whole.clone()),
            }
        }
        if self.left == 0 {
            next.leaves.append(&mut found);
            let cells = next.cells(&self.halved)?;
            *self = next;
            return Ok(Some(cells));
        }
        // The fullest first; of equal ones the earlier.
        found.sort_by(|a, b| b.rows.total_cmp(&a.rows).then(a.node.cmp(&b.node)));
        let rest = found.split_off(found.len().min(MOST_CELLS >> self.params.each()));
        next.leaves.extend(rest);
        if found.is_empty() {
            let cells = next.cells(&self.halved)?;
            *self = next;
            return Ok(Some(cells));
        }
        found.sort_by_key(|leaf| leaf.node);
        next.halved = found;
        next.propose();
        *self = next;
        Ok(None)
    }

    /// Halves what is to be halved, as often as one question does.
    fn propose(&mut self) {
        let levels = self.params.each().min(self.left);
        self.left -= levels;
        self.parts = Vec::new();
        for whole in &self.halved {
            let mut parts = vec![whole.clone()];
            for _ in 0..levels {
                let mut halves = Vec::with_capacity(2 * parts.len());
                for part in &parts {
                    let (split, both) = part.halves(self.tree.splits.len());
                    self.tree.of.push(part.node);
                    self.tree.splits.push(split);
                    halves.extend(both);
                }
                parts = halves;
            }
            self.parts.append(&mut parts);
        }
    }

    /// The leaves as points; if nothing is left, those that were halved last as one point each.
    fn cells(&self, last: &[Leaf]) -> Result<SeedCells, MethodError> {
        let full: Vec<&Leaf> = self.leaves.iter().filter(|leaf| leaf.rows > 0.0 && leaf.rows.is_finite()).collect();
        let (full, weights): (Vec<&Leaf>, Vec<f64>) = match full.is_empty() {
            false => (full.clone(), full.iter().map(|leaf| leaf.rows).collect()),
            true => (last.iter().collect(), vec![1.0; last.len()]),
        };
        let d = full.first().map_or(0, |leaf| leaf.lower.len());
        let values: Vec<f64> = full.iter().flat_map(|leaf| (0..d).map(|column| leaf.middle(column))).collect();
        let middles =
            Centres::new(full.len(), d, values).map_err(|error| MethodError::implausible(error.to_string()))?;
        let rows: f64 = weights.iter().sum();
        let mean_of =
            |of: &dyn Fn(&Leaf) -> f64| full.iter().zip(&weights).map(|(leaf, w)| w * of(leaf)).sum::<f64>() / rows;
        let deviation = |column: usize| {
            let mean = mean_of(&|leaf| leaf.middle(column));
            mean_of(&|leaf| (leaf.middle(column) - mean).powi(2) + leaf.width(column).powi(2) / 12.0).sqrt()
        };
        let deviations = (0..d).map(deviation).collect();
        Ok(SeedCells { weights, middles, deviations })
    }
}
