//! Who belongs where: memberships of rows for a model's centres, and hard labels.

use ndarray::Array2;

use crate::distance::check_fuzzifier;
use crate::error::same_columns;
use crate::{Centres, Error, Rows, distance};

/// Memberships of n rows (n x d, working units) in K clusters: n x K, each row adds up to 1.
///
/// A row that coincides with z centres belongs to each of those by 1/z (Bezdek 1981).
///
/// # Errors
/// [`Error::ColumnMismatch`], [`Error::Fuzzifier`].
pub fn memberships(rows: &Rows, centres: &Centres, m: f64) -> Result<Array2<f64>, Error> {
    check_fuzzifier(m)?;
    same_columns(centres.columns(), rows.columns())?;
    let k = centres.k();
    let mut values = vec![0.0; rows.len() * k];
    for (row, u) in rows.iter().zip(values.chunks_exact_mut(k)) {
        distance::memberships(row, centres.rows(), m, u);
    }
    Array2::from_shape_vec((rows.len(), k), values).map_err(Error::parameter)
}

/// The cluster of largest membership for each row of an n x K array; among equals the lowest index.
pub fn hard_labels(memberships: &Array2<f64>) -> Vec<usize> {
    let largest =
        |u: ndarray::ArrayView1<'_, f64>| (0..u.len()).fold(0, |best, at| if u[at] > u[best] { at } else { best });
    memberships.outer_iter().map(largest).collect()
}

/// The `top` clusters of largest membership of a row, the largest first; among equals the lower index first, so that the first is
/// what [`hard_labels`] says.
pub fn largest(memberships: &[f64], top: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..memberships.len()).collect();
    order.sort_by(|a, b| memberships[*b].total_cmp(&memberships[*a]));
    order.truncate(top);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_ties() {
        let rows = Rows::new(vec![0.0, 1.0, 0.5, 0.9, 7.0], 1).unwrap();
        let centres = Centres::from_rows(&[vec![0.0], vec![1.0]]).unwrap();
        let u = memberships(&rows, &centres, 2.0).unwrap();
        assert_eq!(u.dim(), (5, 2));
        assert!(u.outer_iter().all(|row| (row.sum() - 1.0).abs() < 1e-15));
        assert_eq!(hard_labels(&u), [0, 1, 0, 1, 1]);
        for (row, label) in u.outer_iter().zip(hard_labels(&u)) {
            assert_eq!(largest(row.as_slice().unwrap(), 1), [label]);
        }
        assert_eq!(largest(&[0.2, 0.4, 0.0, 0.4], 3), [1, 3, 0]);
        assert_eq!(largest(&[0.5, 0.5], 9), [0, 1]);
        assert!(memberships(&rows, &centres, 1.0).is_err());
        assert!(memberships(&Rows::new(vec![], 2).unwrap(), &centres, 2.0).is_err());
        assert!(hard_labels(&memberships(&Rows::new(vec![], 1).unwrap(), &centres, 2.0).unwrap()).is_empty());
    }
}
