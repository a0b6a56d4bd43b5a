//! Row counts and moments of the cells of a tree over the box: what seeding from totals needs.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, MAX_WORDS, RoundHalf, Stage};
use crate::kernel::{Form, Sums};
use crate::random::Stream;
use crate::{AnswerError, Domain, Prepared, QueryError, kernel};

/// Splits that a tree may have.
pub(crate) const MAX_SPLITS: usize = 65_536;
/// Splits between the root and a node; a row walks through all of them.
pub(crate) const MAX_DEPTH: u32 = 64;
/// Noise beyond so many standard deviations is drawn again (once in 10^15 draws), so that an answer has a bound.
const NOISE_BOUND: f64 = 8.0;

/// One split: rows with `x[column] < at` go to `below`, the others to `above`; both are node numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Column index.
    pub column: u32,
    /// Threshold, in the units of the question.
    pub at: f64,
}

/// A binary tree of axis-parallel splits. Node 0 is the root, the whole box.
///
/// Splits stand in the order in which they were made: split i turns node `of[i]`, a leaf until then, into an inner node
/// with the children `2 i + 1` (below) and `2 i + 2` (above).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tree {
    /// The node that each split divides.
    pub of: Vec<u32>,
    /// The splits.
    pub splits: Vec<Split>,
}

/// Blur: every site adds normal noise of standard deviation `strength / sqrt(sites)` times one row's largest influence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Blur {
    /// Standard deviation of the noise in the total, in units of one row's largest influence; 0 to 1000.
    pub strength: f64,
    /// Number of sites that share it.
    pub sites: u32,
}

impl Blur {
    /// Standard deviation of one site's share, in units of one row's largest influence.
    fn share(&self) -> f64 {
        self.strength / f64::from(self.sites).sqrt()
    }
}

/// For each node asked about: number of rows, `sum x` (d), `sum x^2` (d), and whether the site has rows there (a count of
/// sites in the total).
///
/// The blocks follow each other: rows of all nodes, then their sums, squares, sites. [`RoundHalf::Counts`] leaves out sums and
/// squares, [`RoundHalf::Sums`] (of no list: the nodes name themselves) the sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cells {
    /// The tree.
    pub tree: Tree,
    /// The nodes asked about, ascending.
    pub nodes: Vec<u32>,
    /// Counts, sums, or both.
    pub part: RoundHalf,
    /// Noise on sums and counts of rows, if any.
    pub blur: Option<Blur>,
}

impl Tree {
    /// Number of nodes.
    fn len(&self) -> usize {
        2 * self.splits.len() + 1
    }

    /// The split that divides each node; `None` for a leaf. `Err` for a tree that is not one.
    fn split_of(&self, columns: usize) -> Result<Vec<Option<u32>>, &'static str> {
        if self.of.len() != self.splits.len() || self.splits.len() > MAX_SPLITS {
            return Err("the tree has too many splits, or not one node for each");
        }
        let mut split_of = vec![None; self.len()];
        let mut depth = vec![0; self.len()];
        for (i, (of, split)) in self.of.iter().zip(&self.splits).enumerate() {
            let node = *of as usize;
            // Before split i there are nodes 0 to 2 i.
            if node > 2 * i || split_of[node].is_some() {
                return Err("a split of the tree divides a node that is no leaf");
            }
            if split.column as usize >= columns || !split.at.is_finite() {
                return Err("a split of the tree is not in the columns of the box");
            }
            if depth[node] >= MAX_DEPTH {
                return Err("the tree is too deep");
            }
            split_of[node] = Some(i as u32);
            depth[2 * i + 1] = depth[node] + 1;
            depth[2 * i + 2] = depth[node] + 1;
        }
        Ok(split_of)
    }
}

impl Cells {
    fn has_sums(&self) -> bool {
        self.part != RoundHalf::Counts
    }

    fn has_sites(&self) -> bool {
        !matches!(self.part, RoundHalf::Sums(_))
    }

    /// Noise on every block but the sites.
    fn add_noise(&self, sums: &mut Sums<'_>, domain: &Domain, blur: Blur, noise: &mut Stream) {
        let (n, d) = (self.nodes.len(), domain.columns());
        let mut spare = None;
        let mut normal = || loop {
            let draw = spare.take().unwrap_or_else(|| {
                let [first, second] = noise.normal_pair();
                spare = Some(second);
                first
            });
            if draw.abs() <= NOISE_BOUND {
                return draw;
            }
        };
        let mut add = |first: usize, len: usize, influence: &dyn Fn(usize) -> f64| {
            (0..len).for_each(|i| sums.add_whole(first + i, normal() * blur.share() * influence(i)));
        };
        add(0, n, &|_| 1.0);
        if self.has_sums() {
            add(n, n * d, &|i| domain.max_abs(i % d));
            add(n + n * d, n * d, &|i| domain.max_abs(i % d) * domain.max_abs(i % d));
        }
    }
}

impl Family for Cells {
    fn stage(&self) -> Stage {
        Stage::Seeding
    }

    fn check(&self, domain: &Domain) -> Result<(), QueryError> {
        let refuse = |what| Err(QueryError::Parameter { what });
        if let Err(what) = self.tree.split_of(domain.columns()) {
            return refuse(what);
        }
        let ascending = self.nodes.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || self.nodes.last().is_none_or(|last| *last as usize >= self.tree.len()) {
            return refuse("the nodes asked about are none, not ascending, or not in the tree");
        }
        if self.nodes.len() > MAX_WORDS / domain.columns().saturating_mul(2).saturating_add(2) {
            return refuse("too many sums are asked at once");
        }
        if matches!(&self.part, RoundHalf::Sums(list) if !list.is_empty()) {
            return refuse("the nodes of a tree name themselves");
        }
        match self.blur {
            Some(blur) if blur.sites == 0 || !(0.0..=1000.0).contains(&blur.strength) => {
                refuse("the blur is not 0 to 1000, or there are no sites to share it")
            }
            _ => Ok(()),
        }
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let (n, d) = (self.nodes.len(), domain.columns());
        let largest = domain.largest();
        // A site's share of the noise is bounded like that of one more row.
        let stretch = 1.0 + self.blur.map_or(0.0, |blur| NOISE_BOUND * blur.share());
        let mut blocks = vec![Block::per_row("rows", n, stretch)];
        if self.has_sums() {
            blocks.push(Block::per_row("sums", n * d, largest * stretch));
            blocks.push(Block::per_row("squares", n * d, largest * largest * stretch));
        }
        if self.has_sites() {
            blocks.push(Block::per_site("sites", n, 1.0));
        }
        blocks
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form, noise: Option<&mut Stream>) -> Result<Sums<'f>, AnswerError> {
        let blur = self.blur.filter(|blur| blur.strength > 0.0);
        if blur.is_some() && noise.is_none() {
            return Err(AnswerError::NoNoise);
        }
        let (n, d) = (self.nodes.len(), rows.domain().columns());
        let split_of = self.tree.split_of(d).map_err(|what| QueryError::Parameter { what })?;
        let mut place = vec![None; self.tree.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            place[*node as usize] = Some(at);
        }
        let width = n + if self.has_sums() { 2 * n * d } else { 0 };
        let sites = if self.has_sites() { n } else { 0 };
        let mut sums = kernel::over_rows(rows.packed(), form, width + sites, |x, _, sums| {
            let mut node = 0;
            loop {
                if let Some(at) = place[node] {
                    sums.add(at, 1.0);
                    if self.has_sums() {
                        for (column, x) in x.iter().enumerate() {
                            sums.add(n + at * d + column, *x);
                            sums.add(n + n * d + at * d + column, x * x);
                        }
                    }
                }
                let Some(i) = split_of[node] else { break };
                let split = self.tree.splits[i as usize];
                let above = usize::from(x[split.column as usize] >= split.at);
                node = 2 * i as usize + 1 + above;
            }
        });
        // Sites are counted before the noise, and carry none.
        for at in (0..sites).filter(|at| sums.value(*at) > 0.0).collect::<Vec<_>>() {
            sums.add(width + at, 1.0);
        }
        if let (Some(blur), Some(noise)) = (blur, noise) {
            self.add_noise(&mut sums, rows.domain(), blur, noise);
        }
        Ok(sums)
    }

    fn adds_up_over_rows(&self) -> bool {
        self.blur.is_none_or(|blur| blur.strength == 0.0)
    }

    /// Noise is rounded by itself: one part draws it, and the others are asked without ([`Batch::without_blur`](crate::Batch::without_blur)).
    fn comes_in_parts(&self) -> bool {
        true
    }

    fn is_blurred(&self) -> bool {
        self.blur.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, OutOfBox, Query, Rows, Scaling, answer, answer_with_noise};

    fn domain() -> Domain {
        Domain::new(vec![0.0, -2.0], vec![4.0, 2.0], Scaling::None).unwrap()
    }

    fn site() -> Prepared {
        let rows = Rows::new(vec![1.0, -1.0, 2.0, 1.0, 3.0, 2.0], 2).unwrap();
        Prepared::new(&rows, &domain(), OutOfBox::Refuse).unwrap()
    }

    /// x < 2, and of the rest y < 1.5.
    fn tree() -> Tree {
        Tree { of: vec![0, 2], splits: vec![Split { column: 0, at: 2.0 }, Split { column: 1, at: 1.5 }] }
    }

    fn cells(nodes: &[u32], part: RoundHalf) -> Cells {
        Cells { tree: tree(), nodes: nodes.to_vec(), part, blur: None }
    }

    fn batch(cells: Cells) -> Batch {
        Batch::from(Query::Cells(cells))
    }

    #[test]
    fn totals_by_hand() {
        let ask = |cells: Cells| answer(&batch(cells), &site()).unwrap().values;
        assert_eq!(ask(cells(&[0, 1, 2, 3, 4], RoundHalf::Counts)), [3.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(
            ask(cells(&[1, 2], RoundHalf::Both)),
            [1.0, 2.0, 1.0, -1.0, 5.0, 3.0, 1.0, 1.0, 13.0, 5.0, 1.0, 1.0]
        );
        assert_eq!(ask(cells(&[3], RoundHalf::Sums(vec![]))), [1.0, 2.0, 1.0, 4.0, 1.0]);
        let lengths = |part| cells(&[1, 2], part).layout(&domain()).iter().map(|b| b.len).collect::<Vec<_>>();
        assert_eq!(lengths(RoundHalf::Both), [2, 4, 4, 2]);
        assert_eq!(lengths(RoundHalf::Counts), [2, 2]);
        assert_eq!(lengths(RoundHalf::Sums(vec![])), [2, 4, 4]);
    }

    #[test]
    fn trees_that_are_none_are_refused() {
        let split = Split { column: 0, at: 1.0 };
        let tree = |of: &[u32]| Tree { of: of.to_vec(), splits: vec![split; of.len()] };
        let asked = |tree: Tree| Cells { tree, ..cells(&[0], RoundHalf::Both) }.check(&domain());
        assert!(asked(Tree::default()).is_ok() && asked(tree(&[0, 1, 2, 5])).is_ok());
        let chain: Vec<u32> = (0..u32::from(u8::MAX)).map(|i| 2 * i).collect();
        for bad in [
            tree(&[1]),
            tree(&[0, 0]),
            tree(&[0, 3]),
            tree(&chain),
            Tree { of: vec![0], splits: vec![] },
            Tree { of: vec![0], splits: vec![Split { column: 2, at: 1.0 }] },
            Tree { of: vec![0], splits: vec![Split { column: 0, at: f64::NAN }] },
        ] {
            assert!(asked(bad.clone()).is_err(), "{bad:?}");
        }
        for bad in [
            cells(&[], RoundHalf::Both),
            cells(&[5], RoundHalf::Both),
            cells(&[1, 1], RoundHalf::Both),
            cells(&[2, 1], RoundHalf::Both),
            cells(&[1], RoundHalf::Sums(vec![1])),
            Cells { blur: Some(Blur { strength: 1.0, sites: 0 }), ..cells(&[1], RoundHalf::Both) },
            Cells { blur: Some(Blur { strength: f64::NAN, sites: 1 }), ..cells(&[1], RoundHalf::Both) },
            Cells { blur: Some(Blur { strength: 1e9, sites: 1 }), ..cells(&[1], RoundHalf::Both) },
        ] {
            assert!(bad.check(&domain()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn blur_has_the_declared_size_and_spares_the_bits() {
        let blurred = Cells { blur: Some(Blur { strength: 2.0, sites: 4 }), ..cells(&[0], RoundHalf::Both) };
        assert_eq!(answer(&batch(blurred.clone()), &site()).unwrap_err(), AnswerError::NoNoise);
        let exact = answer(&batch(cells(&[0], RoundHalf::Both)), &site()).unwrap().values;
        let mut noise = Stream::new(5, b"veilsum test stream     ");
        let mut squares = vec![0.0; exact.len()];
        for _ in 0..2000 {
            let values = answer_with_noise(&batch(blurred.clone()), &site(), &mut noise).unwrap().values;
            squares.iter_mut().zip(values.iter().zip(&exact)).for_each(|(s, (a, b))| *s += (a - b) * (a - b));
        }
        // Share of one site: 2 / sqrt(4) = 1; influences 1, (4, 2), (16, 4), none on the bit.
        for (square, influence) in squares.iter().zip([1.0, 4.0, 2.0, 16.0, 4.0, 0.0]) {
            let sd = (square / 2000.0).sqrt();
            assert!((sd - influence).abs() <= 0.08 * influence, "{sd} {influence}");
        }
        assert_eq!(blurred.layout(&domain())[0].bound, 9.0);
    }
}
