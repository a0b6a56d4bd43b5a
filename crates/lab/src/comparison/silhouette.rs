//! The silhouette (Rousseeuw 1987), which needs pairs of rows, and the simplified one (Hruschka et al. 2004), which needs centres.

use veilsum_cluster::{Centres, Error, Rows, distance};

/// The mean silhouette of rows (n x d) by the clusters of their nearest centres, Euclidean distances: O(n^2 d). A row alone in its
/// cluster counts 0; 0 where all rows are in one cluster.
///
/// # Errors
/// [`Error::ColumnMismatch`].
pub fn silhouette(rows: &Rows, centres: &Centres) -> Result<f64, Error> {
    let labels = labels(rows, centres)?;
    let mut sizes = vec![0.0f64; centres.k()];
    labels.iter().for_each(|label| sizes[*label] += 1.0);
    let mut sum = 0.0;
    for (row, label) in rows.iter().zip(&labels) {
        let mut apart = vec![0.0; centres.k()];
        rows.iter().zip(&labels).for_each(|(other, at)| apart[*at] += distance::euclidean(row, other));
        if sizes[*label] > 1.0 {
            let others = (0..centres.k()).filter(|at| at != label && sizes[*at] > 0.0);
            let nearest = others.map(|at| apart[at] / sizes[at]).fold(f64::INFINITY, f64::min);
            sum += width(apart[*label] / (sizes[*label] - 1.0), nearest);
        }
    }
    Ok(sum / rows.len().max(1) as f64)
}

/// The mean simplified silhouette: distances to the own centre and the second nearest, K >= 2.
///
/// # Errors
/// [`Error::ColumnMismatch`].
pub fn simplified(rows: &Rows, centres: &Centres) -> Result<f64, Error> {
    labels(rows, centres)?;
    let mut sum = 0.0;
    for row in rows.iter() {
        let mut apart: Vec<f64> = centres.rows().map(|centre| distance::euclidean(row, centre)).collect();
        apart.sort_by(f64::total_cmp);
        sum += width(apart[0], apart.get(1).copied().unwrap_or(f64::INFINITY));
    }
    Ok(sum / rows.len().max(1) as f64)
}

fn labels(rows: &Rows, centres: &Centres) -> Result<Vec<usize>, Error> {
    if rows.columns() != centres.columns() {
        return Err(Error::ColumnMismatch { expected: rows.columns(), found: centres.columns() });
    }
    Ok(rows.iter().map(|row| distance::nearest(row, centres.rows()).0).collect())
}

fn width(own: f64, other: f64) -> f64 {
    let most = own.max(other);
    if most > 0.0 && most.is_finite() { (other - own) / most } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a = 1, b = 5 and 4 for the rows of the first cluster.
    #[test]
    fn two_pairs_by_hand() {
        let rows = Rows::new(vec![0.0, 1.0, 4.0, 6.0], 1).unwrap();
        let centres = Centres::new(2, 1, vec![0.5, 5.0]).unwrap();
        let expected = (0.8 + 0.75 + (3.5 - 2.0) / 3.5 + (5.5 - 2.0) / 5.5) / 4.0;
        assert!((silhouette(&rows, &centres).unwrap() - expected).abs() < 1e-15);
        let expected = (4.5 / 5.0 + 3.5 / 4.0 + 2.5 / 3.5 + 4.5 / 5.5) / 4.0;
        assert!((simplified(&rows, &centres).unwrap() - expected).abs() < 1e-15);
        assert!(silhouette(&rows, &Centres::new(1, 2, vec![0.0; 2]).unwrap()).is_err());
    }
}
