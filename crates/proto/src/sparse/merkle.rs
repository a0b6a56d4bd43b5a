//! A Merkle tree over the entries of a directory: a site checks its own and its neighbours' without the rest (spec 17.3).
//!
//! A node without a sibling moves up as it is. Leaves and nodes are hashed under different labels, and the number of
//! leaves is known to both sides, so a path proves one leaf at one place.

use crate::suite::{self, Hash};

fn node(left: &Hash, right: &Hash) -> Hash {
    suite::hash("sparse node", &[&left.0, &right.0])
}

/// All levels, the leaves first and the root last.
pub(crate) struct Tree(Vec<Vec<Hash>>);

impl Tree {
    pub(crate) fn new(leaves: Vec<Hash>) -> Tree {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|l| l.len() > 1) {
            let above = below.chunks(2).map(|pair| if let [a, b] = pair { node(a, b) } else { pair[0] }).collect();
            levels.push(above);
        }
        Tree(levels)
    }

    pub(crate) fn root(&self) -> Hash {
        self.0.last().and_then(|l| l.first()).copied().unwrap_or_default()
    }

    /// The siblings on the way from leaf `i` to the root.
    pub(crate) fn path(&self, mut i: usize) -> Vec<Hash> {
        let mut path = Vec::with_capacity(self.0.len());
        for level in &self.0 {
            path.extend(level.get(i ^ 1));
            i /= 2;
        }
        path
    }
}

/// Whether `leaf` stands at place `i` of the `n` leaves under `root`.
pub(crate) fn proves(root: &Hash, mut n: usize, mut i: usize, leaf: Hash, path: &[Hash]) -> bool {
    let mut at = leaf;
    let mut path = path.iter();
    if i >= n {
        return false;
    }
    while n > 1 {
        if i ^ 1 < n {
            let Some(sibling) = path.next() else { return false };
            at = if i.is_multiple_of(2) { node(&at, sibling) } else { node(sibling, &at) };
        }
        (n, i) = (n.div_ceil(2), i / 2);
    }
    path.next().is_none() && at == *root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_proves_its_leaf_at_its_place_and_nothing_else() {
        for n in 1..=33usize {
            let leaves: Vec<Hash> = (0..n).map(|i| suite::hash("leaf", &[&i.to_le_bytes()])).collect();
            let tree = Tree::new(leaves.clone());
            for (i, leaf) in leaves.iter().enumerate() {
                let path = tree.path(i);
                assert!(proves(&tree.root(), n, i, *leaf, &path));
                assert!(!proves(&tree.root(), n, i, suite::hash("leaf", &[]), &path));
                for j in (0..=n).filter(|j| *j != i) {
                    assert!(!proves(&tree.root(), n, j, *leaf, &path), "n {n}: leaf {i} at {j}");
                }
                let mut longer = path.clone();
                longer.push(Hash::default());
                assert!(!proves(&tree.root(), n, i, *leaf, &longer));
                if let Some((_, shorter)) = path.split_last() {
                    assert!(!proves(&tree.root(), n, i, *leaf, shorter));
                }
            }
        }
    }
}
