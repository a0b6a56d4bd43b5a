//! Distances between found and true centres ("knowledge gap", Stallmann & Wilbik 2022), as the papers' code computes them.
//!
//! The text pairs centres by index. The published numbers are something else: every found centre counts its distance to
//! the NEAREST true one, so that several may share one and a missed cluster hardly shows. [`gap_by_permutation`] has no such
//! blind spot.

use ndarray::Array2;

use veilsum_cluster::metrics::assignment;
use veilsum_cluster::{Centres, Error, distance};

/// Sum over the found centres of the Euclidean distance to the nearest true one (Tables 3 and 5 of the FFCM paper). The
/// numbers of centres may differ.
///
/// # Errors
/// [`Error::CentreShapes`] for different numbers of columns.
pub fn gap_to_nearest(found: &Centres, truth: &Centres) -> Result<f64, Error> {
    if found.columns() != truth.columns() {
        return Err(Error::CentreShapes);
    }
    let nearest =
        |centre| truth.rows().map(|true_one| distance::euclidean(centre, true_one)).fold(f64::INFINITY, f64::min);
    Ok(found.rows().map(nearest).sum())
}

/// [`gap_to_nearest`] after each column has been divided by the standard deviation (divisor one less than their number)
/// that it has over the found and true centres together (Table 4 of the FFCM paper, Tables 6 and 7 of the framework paper).
///
/// A column in which all centres agree counts nothing.
///
/// # Errors
/// As [`gap_to_nearest`].
pub fn gap_to_nearest_standardised(found: &Centres, truth: &Centres) -> Result<f64, Error> {
    if found.columns() != truth.columns() {
        return Err(Error::CentreShapes);
    }
    let (columns, n) = (found.columns(), (found.k() + truth.k()) as f64);
    let both = || found.rows().chain(truth.rows());
    let scale: Vec<f64> = (0..columns)
        .map(|j| {
            let mean = both().map(|centre| centre[j] / n).sum::<f64>();
            let deviation =
                (both().map(|centre| (centre[j] - mean) * (centre[j] - mean)).sum::<f64>() / (n - 1.0)).sqrt();
            if deviation > 0.0 { 1.0 / deviation } else { 0.0 }
        })
        .collect();
    let scaled = |centres: &Centres| {
        let values = centres.as_slice().iter().zip(scale.iter().cycle()).map(|(value, scale)| value * scale).collect();
        Centres::new(centres.k(), columns, values).map_err(|_| Error::Cost)
    };
    gap_to_nearest(&scaled(found)?, &scaled(truth)?)
}

/// Sum of the Euclidean distances between found and true centres under the permutation that makes it smallest.
///
/// # Errors
/// [`Error::CentreShapes`], or [`Error::Cost`] if a distance overflows.
pub fn gap_by_permutation(found: &Centres, truth: &Centres) -> Result<f64, Error> {
    if found.shape() != truth.shape() {
        return Err(Error::CentreShapes);
    }
    let apart = |(i, j): (usize, usize)| distance::euclidean(found.row(i), truth.row(j));
    let cost = Array2::from_shape_fn((found.k(), truth.k()), apart);
    Ok(assignment(&cost)?.into_iter().enumerate().map(|pair| cost[pair]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn centres(rows: &[[f64; 2]]) -> Centres {
        Centres::from_rows(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn by_hand() {
        let truth = centres(&[[0.0, 0.0], [3.0, 4.0]]);
        let found = centres(&[[0.0, 1.0], [0.0, -1.0]]);
        // Both are nearest to the first; one of them has to take the second.
        assert_eq!(gap_to_nearest(&found, &truth), Ok(2.0));
        assert!((gap_by_permutation(&found, &truth).unwrap() - (1.0 + 18f64.sqrt())).abs() < 1e-12);
        // Columns over (0,1) (0,-1) (0,0) (3,4): mean .75 and 1, sums of squares 6.75 and 14.
        let expected = 2.0 / (14f64 / 3.0).sqrt();
        assert!((gap_to_nearest_standardised(&found, &truth).unwrap() - expected).abs() < 1e-12);
        // A column in which all agree counts nothing.
        let flat = centres(&[[1.0, 0.0], [3.0, 0.0]]);
        assert_eq!(gap_to_nearest_standardised(&flat, &flat), Ok(0.0));
    }

    #[test]
    fn other_shapes_are_refused() {
        let one = Centres::from_rows(&[vec![0.0]]).unwrap();
        let two = centres(&[[0.0, 0.0]]);
        assert!(gap_to_nearest(&one, &two).is_err() && gap_to_nearest_standardised(&one, &two).is_err());
        assert!(gap_by_permutation(&two, &centres(&[[0.0, 0.0], [1.0, 1.0]])).is_err());
        assert_eq!(gap_to_nearest(&two, &centres(&[[5.0, 5.0], [0.0, 1.0]])), Ok(1.0));
    }
}
