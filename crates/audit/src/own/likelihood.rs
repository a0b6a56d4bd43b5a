//! What the best test makes of totals: the likelihood ratio of an adversary who knows the questions, the noise, and some of the rows.
//!
//! A total is the sum of what rows add, and of noise. The rows that the adversary does not know add what rows of their kind usually do:
//! it sees them as a normal number with the covariance of such rows (the tracing of Homer et al. 2008 and Dwork et al. 2015, with
//! all totals of a run at once; Neyman & Pearson 1933). Two guesses are then as far apart as their difference, measured in that
//! covariance; the area under the curve of the best test is Phi(distance / sqrt 2).

use rayon::prelude::*;
use veilsum_cluster::privacy;

/// What is unknown to an adversary beside the target.
pub(super) struct Unknown {
    /// An orthonormal basis of what the unknown rows explain, each p + R long: p entries of totals, then one for each row of the sample.
    basis: Vec<Vec<f64>>,
    entries: usize,
    sample: usize,
    /// What an unknown row usually adds, p.
    pub(super) mean: Vec<f64>,
}

impl Unknown {
    /// `rows` unknown rows, each like those of the sample (R x p, in deviations of the noise).
    pub(super) fn rows(rows: f64, sample: &[Vec<f64>]) -> Unknown {
        let (entries, count) = (sample.first().map_or(0, Vec::len), sample.len());
        let mean: Vec<f64> =
            (0..entries).map(|e| sample.iter().map(|row| row[e]).sum::<f64>() / count.max(1) as f64).collect();
        if rows <= 0.0 || count < 2 {
            return Unknown { basis: Vec::new(), entries, sample: 0, mean };
        }
        let weight = (rows / (count - 1) as f64).sqrt();
        let column = |(at, row): (usize, &Vec<f64>)| {
            let mut column: Vec<f64> = row.iter().zip(&mean).map(|(x, m)| weight * (x - m)).collect();
            column.extend((0..count).map(|i| f64::from(u8::from(i == at))));
            column
        };
        let mut columns: Vec<Vec<f64>> = sample.iter().enumerate().map(column).collect();
        // Gram and Schmidt, modified; with the identity below, no column vanishes.
        for at in 0..count {
            let (done, rest) = columns.split_at_mut(at + 1);
            let own = &mut done[at];
            let norm = dot(own, own).sqrt();
            own.iter_mut().for_each(|x| *x /= norm);
            rest.par_iter_mut().for_each(|other| take_away(other, own));
        }
        Unknown { basis: columns, entries, sample: count, mean }
    }

    /// What of these numbers (p) the unknown rows do not explain.
    pub(super) fn unexplained(&self, numbers: &[f64]) -> Vec<f64> {
        let mut rest = numbers.to_vec();
        rest.resize(self.entries + self.sample, 0.0);
        // Twice, because the first pass leaves what rounding left.
        for _ in 0..2 {
            self.basis.iter().for_each(|own| take_away(&mut rest, own));
        }
        rest
    }
}

/// How far apart two guesses are, in deviations.
pub(super) fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// The area under the curve of the best test for guesses that are so many deviations apart.
pub(super) fn area(apart: f64) -> f64 {
    // A Gaussian of rho moves a mean by sqrt(2 rho) deviations.
    privacy::best_auc(apart * apart / 2.0)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn take_away(from: &mut [f64], own: &[f64]) {
    let part = dot(from, own);
    from.iter_mut().zip(own).for_each(|(x, q)| *x -= part * q);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_that_of_the_covariance() {
        // Two entries; unknown rows vary in the first alone, with variance 1 over two rows: 2 rows unknown add variance 2.
        let sample = vec![vec![-0.5f64.sqrt(), 3.0], vec![0.5f64.sqrt(), 3.0]];
        let unknown = Unknown::rows(2.0, &sample);
        assert_eq!(unknown.mean, [0.0, 3.0]);
        let zero = unknown.unexplained(&[0.0, 0.0]);
        let along = apart(&unknown.unexplained(&[1.0, 0.0]), &zero);
        let across = apart(&unknown.unexplained(&[0.0, 1.0]), &zero);
        assert!((along - (1.0f64 / 3.0).sqrt()).abs() < 1e-12, "{along}");
        assert!((across - 1.0).abs() < 1e-12, "{across}");
        let nobody = Unknown::rows(0.0, &sample);
        assert_eq!(apart(&nobody.unexplained(&[3.0, 4.0]), &nobody.unexplained(&[0.0, 0.0])), 5.0);
    }

    #[test]
    fn the_area_is_that_of_the_account() {
        assert_eq!(area(0.0), 0.5);
        assert!((area(2f64.sqrt()) - 0.841_344_7).abs() < 1e-6);
        assert!(area(50.0) > 0.999_999);
    }
}
