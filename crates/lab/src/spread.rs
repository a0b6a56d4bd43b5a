//! "Within and outside SSE" (FFCM, FFCF) and means over sites.
//!
//! The papers' formulas square the distances, their tables do not (unit variance in the plane gives .627 unsquared, and
//! that is what they print). Both are here. The federated columns of the tables are unweighted means over the sites.

use veilsum_cluster::{Centres, Error, Rows, distance};

use veilsum_cluster::metrics::adjusted_rand_index;

/// Distances of rows to the nearest and to all other centres, per row and column.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    /// Sum of distances to the nearest centre over (n d): what the papers print as WSSE.
    pub within: f64,
    /// Sum of distances to all other centres over (n d): what they print as OSSE.
    pub outside: f64,
}

impl Spread {
    /// Of rows (n x d) around centres (K x d), in their units; zeros for no rows.
    ///
    /// # Errors
    /// [`Error::CentreShapes`] for different numbers of columns.
    pub fn new(rows: &Rows, centres: &Centres) -> Result<Self, Error> {
        if rows.columns() != centres.columns() {
            return Err(Error::CentreShapes);
        }
        let mut sum = Self::default();
        for row in rows.iter() {
            let apart: Vec<f64> = centres.rows().map(|centre| distance::euclidean(row, centre)).collect();
            let nearest = apart.iter().copied().fold(f64::INFINITY, f64::min);
            sum.add(nearest, apart.iter().sum::<f64>() - nearest);
        }
        Ok(sum.over((rows.len() * rows.columns()) as f64))
    }

    /// The unweighted mean over sites with their centres, as the papers take it; sites without rows are left out.
    ///
    /// # Errors
    /// As [`Spread::new`].
    pub fn mean<'a>(sites: impl IntoIterator<Item = (&'a Rows, &'a Centres)>) -> Result<Self, Error> {
        let (mut sum, mut count) = (Self::default(), 0.0);
        for (rows, centres) in sites.into_iter().filter(|(rows, _)| !rows.is_empty()) {
            let own = Self::new(rows, centres)?;
            sum.add(own.within, own.outside);
            count += 1.0;
        }
        Ok(sum.over(count))
    }

    fn add(&mut self, within: f64, outside: f64) {
        self.within += within;
        self.outside += outside;
    }

    fn over(self, count: f64) -> Self {
        Self { within: self.within / count.max(1.0), outside: self.outside / count.max(1.0) }
    }
}

/// Adjusted Rand index of every site's own labelling, averaged with the sites' numbers of rows as weights (Garst &
/// Reinders 2024); 1 where there are no rows.
///
/// `sites` pairs found with true labels.
///
/// # Errors
/// [`Error::LabelCount`].
pub fn adjusted_rand_over_sites(sites: &[(&[usize], &[usize])]) -> Result<f64, Error> {
    let (mut sum, mut rows) = (0.0, 0);
    for (found, truth) in sites {
        sum += adjusted_rand_index(found, truth)? * found.len() as f64;
        rows += found.len();
    }
    Ok(if rows > 0 { sum / rows as f64 } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let centres = Centres::from_rows(&[vec![0.0, 0.0], vec![6.0, 8.0], vec![0.0, 4.0]]).unwrap();
        let rows = Rows::new(vec![0.0, 0.0, 3.0, 4.0], 2).unwrap();
        let spread = Spread::new(&rows, &centres).unwrap();
        // Row 1: 0, 10, 4. Row 2: 5, 5, 3.
        let expected = Spread { within: 3.0, outside: 24.0 }.over(4.0);
        assert_eq!(spread, expected);
        let lone = Rows::new(vec![0.0, 0.0], 2).unwrap();
        let none = Rows::new(vec![], 2).unwrap();
        let mean = Spread::mean([&rows, &lone, &none].map(|rows| (rows, &centres))).unwrap();
        assert_eq!((mean.within, mean.outside), (0.375, (6.0 + 7.0) / 2.0));
        assert_eq!(Spread::new(&none, &centres), Ok(Spread::default()));
        assert_eq!(Spread::mean([]), Ok(Spread::default()));
        assert!(Spread::new(&Rows::new(vec![1.0], 1).unwrap(), &centres).is_err());
    }

    #[test]
    fn large_sites_count_more() {
        let sites: [(&[usize], &[usize]); 3] =
            [(&[0, 0, 1, 1, 2, 2], &[5, 5, 4, 4, 3, 3]), (&[0, 0, 1, 1], &[0, 0, 0, 1]), (&[], &[])];
        let ari = adjusted_rand_over_sites(&sites).unwrap();
        assert!((ari - 0.6).abs() < 1e-15, "{ari}");
        assert_eq!(adjusted_rand_over_sites(&[]), Ok(1.0));
        assert!(adjusted_rand_over_sites(&[(&[0], &[])]).is_err());
    }
}
