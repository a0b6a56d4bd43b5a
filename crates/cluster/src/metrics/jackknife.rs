//! Standard errors of centres from runs that each leave one block of sites out.
//!
//! The delete-m_j jackknife (Busing, Meijer & van der Leeden 1999, Statistics and Computing 9): blocks j = 1..g of m_j rows among n,
//! `h_j = n / m_j`, the full result c and the results `c(-j)` of *complete* runs without a block:
//!
//! ```text
//! p_j = h_j c - (h_j - 1) c(-j)       c_J = g c - sum_j (1 - m_j / n) c(-j)       var(c) = 1/g sum_j (p_j - c_J)^2 / (h_j - 1)
//! ```
//!
//! For blocks of equal size that is the delete-a-group jackknife, `(g - 1)/g sum_j (c(-j) - mean)^2`. It takes the blocks as a sample
//! of independent parts of the same population. Where they differ by more than chance, so do the results without them, and the error
//! is that of drawing other such blocks. Of g blocks the error itself is known to about `1 / sqrt(2 (g - 1))` of it only.

use super::matched_distance;
use crate::{Centres, Error, distance};

/// Blocks that an error needs at least; of three it is known to half of itself.
pub const LEAST_BLOCKS: usize = 3;
/// A centre that moved by more than this part of the least distance between two centres is another cluster.
const MOVED: f64 = 0.5;

/// A run without one block.
#[derive(Debug, Clone, PartialEq)]
pub struct Without {
    /// Its centres, K x d.
    pub centres: Centres,
    /// Its rows, n - m_j.
    pub rows: u64,
}

/// What the runs without one block say of the centres.
#[derive(Debug, Clone, PartialEq)]
pub struct Jackknife {
    /// Standard error of every coordinate, K x d, units of the centres.
    pub errors: Vec<Vec<f64>>,
    /// The errors are known to about this part of them, `1 / sqrt(2 (g - 1))`.
    pub relative: f64,
    /// Places of runs that found other clusters: one of their centres is farther from its match than half the least distance between
    /// two centres. The errors then say that the clusters are not stable, and not how far each is off.
    pub other_clusters: Vec<usize>,
}

/// Standard errors of the centres of all n `rows`; those of the other runs are matched to them one to one.
///
/// # Errors
/// [`Error::CentreShapes`] for another K or d, [`Error::Blocks`] for fewer than three blocks, or blocks whose rows are
/// not all the rows.
pub fn jackknife(all: &Centres, rows: u64, without: &[Without]) -> Result<Jackknife, Error> {
    let g = without.len();
    let sizes: Vec<f64> = without.iter().map(|run| rows as f64 - run.rows as f64).collect();
    if g < LEAST_BLOCKS || sizes.iter().any(|size| *size < 1.0) || sizes.iter().sum::<f64>() != rows as f64 {
        return Err(Error::Blocks);
    }
    let (k, d, n) = (all.k(), all.columns(), rows as f64);
    let pairs = (0..k).flat_map(|a| (0..a).map(move |b| distance::euclidean(all.row(a), all.row(b))));
    let gap = pairs.fold(f64::INFINITY, f64::min);
    let matched: Vec<Vec<usize>> =
        without.iter().map(|run| Ok(matched_distance(all, &run.centres)?.permutation)).collect::<Result<_, Error>>()?;
    let moved = |(run, matched): (&Without, &Vec<usize>)| {
        (0..k).any(|c| distance::euclidean(all.row(c), run.centres.row(matched[c])) > MOVED * gap)
    };
    let other_clusters = (0..g).filter(|j| moved((&without[*j], &matched[*j]))).collect();
    let error = |c: usize, column: usize| {
        let (full, less) = (all.row(c)[column], |j: usize| without[j].centres.row(matched[j][c])[column]);
        let centre = g as f64 * full - (0..g).map(|j| (1.0 - sizes[j] / n) * less(j)).sum::<f64>();
        let part = |j: usize| {
            let h = n / sizes[j];
            (h * full - (h - 1.0) * less(j) - centre).powi(2) / (h - 1.0)
        };
        ((0..g).map(part).sum::<f64>() / g as f64).sqrt()
    };
    let errors = (0..k).map(|c| (0..d).map(|column| error(c, column)).collect()).collect();
    Ok(Jackknife { errors, relative: 1.0 / (2.0 * (g as f64 - 1.0)).sqrt(), other_clusters })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(centres: &[[f64; 1]], rows: u64) -> Without {
        Without { centres: Centres::from_rows(&centres.iter().map(|c| c.to_vec()).collect::<Vec<_>>()).unwrap(), rows }
    }

    /// The mean of 1, 2, 3, 6 with one row a block: the error is that of a mean, s / sqrt(n).
    #[test]
    fn of_a_mean_it_is_the_usual_standard_error() {
        let all = Centres::from_rows(&[vec![3.0]]).unwrap();
        let without: Vec<Without> = [1.0, 2.0, 3.0, 6.0].map(|x| run(&[[(12.0 - x) / 3.0]], 3)).to_vec();
        let found = jackknife(&all, 4, &without).unwrap();
        assert!((found.errors[0][0] - (14.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12, "{found:?}");
        assert!((found.relative - 6f64.sqrt().recip()).abs() < 1e-12);
    }

    #[test]
    fn centres_are_matched_and_other_clusters_are_told() {
        let all = Centres::from_rows(&[vec![0.0], vec![1.0]]).unwrap();
        let near = [run(&[[1.1], [0.0]], 20), run(&[[0.0], [0.9]], 20), run(&[[1.0], [0.0]], 20)];
        let found = jackknife(&all, 30, &near).unwrap();
        assert_eq!((found.errors[0][0], found.other_clusters.len()), (0.0, 0));
        assert!((found.errors[1][0] - (2.0 / 3.0 * 0.02f64).sqrt()).abs() < 1e-12, "{found:?}");
        let far = [run(&[[0.6], [1.0]], 20), near[1].clone(), near[2].clone()];
        assert_eq!(jackknife(&all, 30, &far).unwrap().other_clusters, [0]);
    }

    #[test]
    fn runs_that_do_not_leave_out_every_row_once_are_refused() {
        let all = Centres::from_rows(&[vec![0.0]]).unwrap();
        let runs = |rows: &[u64]| rows.iter().map(|rows| run(&[[0.0]], *rows)).collect::<Vec<_>>();
        for rows in [&[20, 20][..], &[20, 20, 21], &[30, 20, 10], &[31, 20, 9], &[]] {
            assert_eq!(jackknife(&all, 30, &runs(rows)), Err(Error::Blocks), "{rows:?}");
        }
        assert!(jackknife(&all, 30, &[run(&[[0.0], [1.0]], 20), run(&[[0.0]], 20), run(&[[0.0]], 20)]).is_err());
    }
}
