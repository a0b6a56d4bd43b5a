//! Measures of the quality of a result: the adjusted Rand index (Hubert & Arabie 1985), distances between sets of
//! centres after the best permutation (Kuhn 1955, Munkres 1957).

use std::collections::BTreeMap;

use ndarray::Array2;

use crate::{Centres, Domain, Error, distance, refuse};

/// Adjusted Rand index of two labellings of the same n rows: 1 for equal partitions, about 0 for unrelated ones.
///
/// Two trivial partitions that agree (n < 2, one cluster each, all singletons) score 1.
///
/// # Errors
/// [`Error::LabelCount`].
pub fn adjusted_rand_index(a: &[usize], b: &[usize]) -> Result<f64, Error> {
    refuse(a.len() != b.len(), || Error::LabelCount)?;
    let (mut cells, mut in_a, mut in_b) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (x, y) in a.iter().zip(b) {
        *cells.entry((x, y)).or_insert(0u64) += 1;
        *in_a.entry(x).or_insert(0u64) += 1;
        *in_b.entry(y).or_insert(0u64) += 1;
    }
    let pairs = |n: u64| n as f64 * (n as f64 - 1.0) / 2.0;
    let both: f64 = cells.into_values().map(pairs).sum();
    let (pairs_a, pairs_b): (f64, f64) = (in_a.into_values().map(pairs).sum(), in_b.into_values().map(pairs).sum());
    let all = pairs(a.len() as u64);
    let expected = if all > 0.0 { pairs_a * pairs_b / all } else { 0.0 };
    let largest = (pairs_a + pairs_b) / 2.0;
    // Equal only if both partitions are trivial in the same way.
    Ok(if largest == expected { 1.0 } else { (both - expected) / (largest - expected) })
}

/// Two sets of K centres compared after the permutation with the smallest sum of squared distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// Frobenius norm of the difference of the matched centres; no permutation has a smaller one.
    pub frobenius: f64,
    /// Largest absolute difference of a coordinate of matched centres.
    pub max_abs: f64,
}

/// Compares `found` with `truth`, both K x d.
///
/// # Errors
/// [`Error::CentreShapes`], or [`Error::Cost`] if a squared distance overflows.
pub fn matched_distance(found: &Centres, truth: &Centres) -> Result<Matched, Error> {
    refuse(found.shape() != truth.shape(), || Error::CentreShapes)?;
    let cost = Array2::from_shape_fn((found.k(), found.k()), |(i, j)| distance::squared(found.row(i), truth.row(j)));
    let permutation = assignment(&cost)?;
    let matched = || permutation.iter().enumerate().map(|(i, j)| (found.row(i), truth.row(*j)));
    let frobenius = matched().map(|(a, b)| distance::squared(a, b)).sum::<f64>().sqrt();
    let max_abs = matched().flat_map(|(a, b)| a.iter().zip(b)).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    Ok(Matched { frobenius, max_abs })
}

/// The assignment problem: for a K x K cost matrix the column of each row such that no column is used twice and the sum
/// of costs is smallest. O(K^3).
///
/// # Errors
/// [`Error::Cost`] for a matrix that is not square or not finite.
pub fn assignment(cost: &Array2<f64>) -> Result<Vec<usize>, Error> {
    let n = cost.nrows();
    refuse(cost.ncols() != n || cost.iter().any(|value| !value.is_finite()), || Error::Cost)?;
    // Rows enter one by one. Potentials keep all reduced costs >= 0 and those of assigned pairs = 0; a shortest path in
    // reduced costs from the new row to a free column then keeps the assignment optimal.
    let mut row_potential = vec![0.0; n];
    let mut column_potential = vec![0.0; n];
    let mut row_of: Vec<Option<usize>> = vec![None; n];
    for new_row in 0..n {
        let mut reach = vec![f64::INFINITY; n];
        let mut before: Vec<Option<usize>> = vec![None; n]; // previous column on the path
        let mut settled = vec![false; n];
        let (mut row, mut last, mut length) = (new_row, None, 0.0);
        let free = loop {
            let mut next: Option<usize> = None;
            for column in (0..n).filter(|column| !settled[*column]) {
                let reduced = cost[(row, column)] - row_potential[row] - column_potential[column];
                if length + reduced < reach[column] {
                    reach[column] = length + reduced;
                    before[column] = last;
                }
                if next.is_none_or(|best| reach[column] < reach[best]) {
                    next = Some(column);
                }
            }
            // There are as many columns as rows, so a free column is found before the columns run out.
            let Some(column) = next else { return Err(Error::Cost) };
            settled[column] = true;
            length = reach[column];
            last = Some(column);
            match row_of[column] {
                Some(assigned) => row = assigned,
                None => break column,
            }
        };
        row_potential[new_row] += length;
        for column in (0..n).filter(|column| settled[*column] && *column != free) {
            let slack = length - reach[column];
            column_potential[column] -= slack;
            if let Some(assigned) = row_of[column] {
                row_potential[assigned] += slack;
            }
        }
        let mut column = free;
        while let Some(previous) = before[column] {
            row_of[column] = row_of[previous];
            column = previous;
        }
        row_of[column] = Some(new_row);
    }
    let mut column_of = vec![0; n];
    for (column, row) in row_of.into_iter().enumerate() {
        if let Some(row) = row {
            column_of[row] = column;
        }
    }
    Ok(column_of)
}

/// The least distance between two centres; of a single one half the narrowest side of the box.
pub fn gap(centres: &Centres, domain: &Domain) -> f64 {
    let half = |column| domain.side(column) / 2.0;
    closest(centres).unwrap_or_else(|| (0..domain.columns()).map(half).fold(f64::INFINITY, f64::min))
}

/// The least distance of two centres; `None` of a single one.
pub fn closest(centres: &Centres) -> Option<f64> {
    let pairs = (0..centres.k()).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.map(|(i, j)| distance::euclidean(centres.row(i), centres.row(j))).min_by(f64::total_cmp)
}

/// Clusters of `truth` that no centre of `found` is near to: none lies within half the way to the next cluster.
pub fn lost(found: &Centres, truth: &Centres, domain: &Domain) -> usize {
    let gap_of = |i: usize| {
        let others = (0..truth.k()).filter(|j| *j != i).map(|j| distance::euclidean(truth.row(i), truth.row(j)));
        others.min_by(f64::total_cmp).unwrap_or_else(|| gap(truth, domain))
    };
    let near = |i: usize| distance::nearest(truth.row(i), found.rows()).1 <= gap_of(i) * gap_of(i) / 4.0;
    (0..truth.k()).filter(|i| !near(*i)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ari_by_hand() {
        assert_eq!(adjusted_rand_index(&[0, 0, 1, 1], &[5, 5, 2, 2]), Ok(1.0));
        // Contingency (2,0 / 1,1): both = 1, a = 2, b = 3, all = 6.
        let ari = adjusted_rand_index(&[0, 0, 1, 1], &[0, 0, 0, 1]).unwrap();
        assert_eq!(ari, 0.0);
        let ari = adjusted_rand_index(&[0, 0, 1, 2], &[0, 0, 1, 1]).unwrap();
        assert!((ari - 4.0 / 7.0).abs() < 1e-15, "{ari}");
        assert!(adjusted_rand_index(&[0], &[]).is_err());
        assert_eq!(adjusted_rand_index(&[], &[]), Ok(1.0));
        assert_eq!(adjusted_rand_index(&[3, 3], &[0, 0]), Ok(1.0));
        assert_eq!(adjusted_rand_index(&[0, 1, 2], &[2, 1, 0]), Ok(1.0));
    }

    #[test]
    fn matching_undoes_a_permutation() {
        let truth = Centres::from_rows(&[vec![0.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]]).unwrap();
        let found = Centres::from_rows(&[vec![0.0, 1.0], vec![0.0, 0.0], vec![1.0, 0.5]]).unwrap();
        let matched = matched_distance(&found, &truth).unwrap();
        assert_eq!((matched.frobenius, matched.max_abs), (0.5, 0.5));
        assert!(matched_distance(&found, &Centres::from_rows(&[vec![0.0, 0.0]]).unwrap()).is_err());
    }

    #[test]
    fn only_square_and_finite_costs() {
        assert!(assignment(&Array2::zeros((2, 3))).is_err());
        assert!(assignment(&Array2::from_elem((1, 1), f64::NAN)).is_err());
        assert_eq!(assignment(&Array2::zeros((0, 0))), Ok(vec![]));
    }

    /// The smallest sum by trying everything.
    fn brute_force(cost: &Array2<f64>, row: usize, used: &mut Vec<bool>) -> f64 {
        if row == cost.nrows() {
            return 0.0;
        }
        let mut best = f64::INFINITY;
        for column in 0..cost.ncols() {
            if !used[column] {
                used[column] = true;
                best = best.min(cost[(row, column)] + brute_force(cost, row + 1, used));
                used[column] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn assignment_is_optimal(n in 1usize..7, values in prop::collection::vec(-10i32..10, 36)) {
            let cost = Array2::from_shape_fn((n, n), |(i, j)| f64::from(values[i * 6 + j]));
            let columns = assignment(&cost).unwrap();
            let mut used = vec![false; n];
            columns.iter().for_each(|column| used[*column] = true);
            prop_assert!(used.iter().all(|used| *used));
            let sum: f64 = columns.iter().enumerate().map(|(i, j)| cost[(i, *j)]).sum();
            prop_assert_eq!(sum, brute_force(&cost, 0, &mut vec![false; n]));
        }
    }
}
