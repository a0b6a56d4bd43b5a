//! Row counts of the cells of a tree over the box: what first centres from totals need.

use std::any::Any;

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, MAX_WORDS, Sensitivity, Stage};
use crate::kernel::{Form, Sums};
use crate::{AnswerError, Domain, Prepared, QueryError, kernel};

/// Splits that a tree may have.
pub(crate) const MAX_SPLITS: usize = 65_536;
/// Splits between the root and a node; a row walks through all of them.
pub(crate) const MAX_DEPTH: u32 = 64;

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

/// For each node asked about the number of rows in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cells {
    /// The tree.
    pub tree: Tree,
    /// The nodes asked about, ascending.
    pub nodes: Vec<u32>,
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

    /// The nodes that a row (d) passes, from the root to its leaf.
    fn walk(&self, split_of: &[Option<u32>], x: &[f64], mut at: impl FnMut(usize)) {
        let mut node = 0;
        loop {
            at(node);
            let Some(i) = split_of[node] else { return };
            let split = self.splits[i as usize];
            node = 2 * i as usize + 1 + usize::from(x[split.column as usize] >= split.at);
        }
    }
}

impl Cells {
    /// The place of every node among those asked about.
    fn places(&self) -> Vec<Option<usize>> {
        let mut places = vec![None; self.tree.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            places[*node as usize] = Some(at);
        }
        places
    }

    /// The most nodes asked about on one way from the root to a leaf: a row is in all of them. 0 for a tree that is not one.
    pub(crate) fn most_on_a_path(&self) -> usize {
        let mut on_path = vec![0usize; self.tree.len()];
        let places = self.places();
        let own = |node: usize| usize::from(places[node].is_some());
        on_path[0] = own(0);
        for (i, of) in self.tree.of.iter().enumerate() {
            for child in [2 * i + 1, 2 * i + 2] {
                on_path[child] = on_path[*of as usize] + own(child);
            }
        }
        on_path.into_iter().max().unwrap_or(0)
    }

    /// What rows of these weights (d values each) add up to, one number for every node asked about.
    pub(crate) fn counts<'a>(&self, rows: impl Iterator<Item = (&'a [f64], f64)>, columns: usize) -> Vec<f64> {
        let mut counts = vec![0.0; self.nodes.len()];
        let Ok(split_of) = self.tree.split_of(columns) else { return counts };
        let places = self.places();
        for (x, weight) in rows {
            self.tree.walk(&split_of, x, |node| {
                if let Some(at) = places[node] {
                    counts[at] += weight;
                }
            });
        }
        counts
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
        if self.nodes.len() > MAX_WORDS {
            return refuse("too many counts are asked at once");
        }
        Ok(())
    }

    fn layout(&self, _: &Domain) -> Vec<Block> {
        vec![Block::per_row("rows", self.nodes.len(), 1.0)]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, AnswerError> {
        let split_of = self.tree.split_of(rows.domain().columns()).map_err(|what| QueryError::Parameter { what })?;
        let places = self.places();
        Ok(kernel::over_rows(rows.packed(), form, self.nodes.len(), |x, _, sums| {
            self.tree.walk(&split_of, x, |node| {
                if let Some(at) = places[node] {
                    sums.add(at, 1.0);
                }
            });
        }))
    }

    fn adds_up_over_rows(&self) -> bool {
        true
    }

    /// A tree only grows.
    fn follows(&self, before: &dyn Family) -> bool {
        let Some(before) = (before as &dyn Any).downcast_ref::<Self>() else { return true };
        let old = before.tree.splits.len();
        let same = |(a, b): (&Split, &Split)| (a.column, a.at.to_bits()) == (b.column, b.at.to_bits());
        old < self.tree.splits.len()
            && self.tree.of[..old] == before.tree.of[..]
            && self.tree.splits.iter().zip(&before.tree.splits).all(same)
    }

    /// A row counts once in each node that it passes.
    fn sensitivity(&self, _: &Domain) -> Option<Sensitivity> {
        Some(Sensitivity::Blocks(vec![(self.most_on_a_path() as f64).sqrt()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, OutOfBox, Query, Rows, Scaling, answer};

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

    fn cells(nodes: &[u32]) -> Cells {
        Cells { tree: tree(), nodes: nodes.to_vec() }
    }

    #[test]
    fn counts_by_hand() {
        let ask = |nodes: &[u32]| answer(&Batch::from(Query::Cells(cells(nodes))), &site()).unwrap().values;
        assert_eq!(ask(&[0, 1, 2, 3, 4]), [3.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(ask(&[1, 2]), [1.0, 2.0]);
        let rows = [([1.0, -1.0], 0.5), ([3.0, 2.0], 2.0)];
        assert_eq!(cells(&[0, 1, 4]).counts(rows.iter().map(|(x, w)| (&x[..], *w)), 2), [2.5, 0.5, 2.0]);
    }

    /// [NOI-6]: nodes on one way from the root to a leaf have rows in common.
    #[test]
    fn nodes_on_one_path_add_up() {
        let most = |nodes: &[u32]| cells(nodes).most_on_a_path();
        assert_eq!(
            [most(&[0, 1, 2, 3, 4]), most(&[1, 3, 4]), most(&[0, 1]), most(&[2, 3]), most(&[3])],
            [3, 1, 2, 2, 1]
        );
        assert_eq!(cells(&[0, 1, 2, 3, 4]).sensitivity(&domain()), Some(Sensitivity::Blocks(vec![3f64.sqrt()])));
    }

    #[test]
    fn a_tree_only_grows() {
        let root = Cells { tree: Tree::default(), nodes: vec![0] };
        let half = Cells { tree: Tree { of: vec![0], splits: tree().splits[..1].to_vec() }, nodes: vec![1] };
        let whole = cells(&[3, 4]);
        assert!(whole.follows(&half) && half.follows(&root) && !half.follows(&half) && !half.follows(&whole));
        let mut other = cells(&[3]);
        other.tree.splits[0].at = 2.5;
        assert!(!other.follows(&half));
    }

    #[test]
    fn trees_that_are_none_are_refused() {
        let split = Split { column: 0, at: 1.0 };
        let tree = |of: &[u32]| Tree { of: of.to_vec(), splits: vec![split; of.len()] };
        let asked = |tree: Tree| Cells { tree, nodes: vec![0] }.check(&domain());
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
        for bad in [cells(&[]), cells(&[5]), cells(&[1, 1]), cells(&[2, 1])] {
            assert!(bad.check(&domain()).is_err(), "{bad:?}");
        }
    }
}
