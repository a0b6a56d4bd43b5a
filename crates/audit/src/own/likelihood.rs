//! What the best test makes of totals: the likelihood ratio of an adversary who knows the questions, the noise, and some of the rows.
//!
//! A total is the sum of what rows add, and of noise. The rows that the adversary does not know add what rows of their kind usually do:
//! it sees them as a normal number with the covariance of such rows (the tracing of Homer et al. 2008 and Dwork et al. 2015, with
//! all totals of a run at once; Neyman & Pearson 1933). Two guesses are then as far apart as their difference, measured in that
//! covariance; the area under the curve of the best test is Phi(distance / sqrt 2).

use rayon::prelude::*;
use veilsum_cluster::privacy;

/// How much an adversary distrusts what the sample says, in variances of the noise: with more totals than rows in the sample, what these
/// do not show is not certain. It takes what works best.
const RIDGES: [f64; 6] = [1.0, 1e4, 1e8, 1e12, 1e16, 1e20];

/// What is unknown to an adversary beside the target. Half of a sample of rows says what unknown rows usually add, and the other half how
/// well the test does that was made of the first: a test is never measured on the rows that it was made of.
pub(super) struct Unknown {
    /// By ridge an orthonormal basis of what the unknown rows explain, each p + R / 2 long: p entries of totals, then one for each row.
    bases: Vec<(f64, Vec<Vec<f64>>)>,
    entries: usize,
    /// Unknown rows, and what each of the second half adds beside the mean, p.
    rows: f64,
    others: Vec<Vec<f64>>,
    /// What an unknown row usually adds, p.
    pub(super) mean: Vec<f64>,
}

impl Unknown {
    /// `rows` unknown rows, each like those of the sample (R x p, in deviations of the noise).
    pub(super) fn rows(rows: f64, sample: &[Vec<f64>]) -> Unknown {
        let (entries, count) = (sample.first().map_or(0, Vec::len), sample.len());
        let mean: Vec<f64> =
            (0..entries).map(|e| sample.iter().map(|row| row[e]).sum::<f64>() / count.max(1) as f64).collect();
        let beside = |row: &Vec<f64>| row.iter().zip(&mean).map(|(x, m)| x - m).collect::<Vec<f64>>();
        if rows <= 0.0 || count < 4 {
            return Unknown { bases: vec![(1.0, Vec::new())], entries, rows: 0.0, others: Vec::new(), mean };
        }
        let made: Vec<Vec<f64>> = sample.iter().step_by(2).map(beside).collect();
        let others = sample.iter().skip(1).step_by(2).map(beside).collect();
        let weight = (rows / (made.len() - 1) as f64).sqrt();
        let basis = |ridge: &f64| {
            let column = |(at, row): (usize, &Vec<f64>)| {
                let mut column: Vec<f64> = row.iter().map(|x| weight * x / ridge.sqrt()).collect();
                column.extend((0..made.len()).map(|i| f64::from(u8::from(i == at))));
                column
            };
            (*ridge, orthonormal(made.iter().enumerate().map(column).collect()))
        };
        Unknown { bases: RIDGES.iter().map(basis).collect(), entries, rows, others, mean }
    }

    /// How many deviations apart two guesses are for the best test whose totals differ by `change` (p), as measured.
    pub(super) fn apart(&self, change: &[f64]) -> f64 {
        let of = |(ridge, basis): &(f64, Vec<Vec<f64>>)| {
            let scaled: Vec<f64> = change.iter().map(|x| x / ridge.sqrt()).collect();
            let mut test = unexplained(&scaled, basis);
            test.truncate(self.entries);
            let moved = dot(&test, change);
            let spread = self.others.iter().map(|row| dot(&test, row).powi(2)).sum::<f64>();
            let variance = dot(&test, &test) + self.rows * spread / self.others.len().max(1) as f64;
            if variance > 0.0 { (moved / variance.sqrt()).max(0.0) } else { 0.0 }
        };
        self.bases.iter().map(of).fold(0.0, f64::max)
    }

    /// What of these numbers (p) the unknown rows do not explain.
    pub(super) fn unexplained(&self, numbers: &[f64]) -> Vec<f64> {
        self.bases.first().map_or_else(|| numbers.to_vec(), |(_, basis)| unexplained(numbers, basis))
    }
}

/// Gram and Schmidt, modified; no column vanishes here, because each has a one of its own.
fn orthonormal(mut columns: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for at in 0..columns.len() {
        let (done, rest) = columns.split_at_mut(at + 1);
        let own = &mut done[at];
        let norm = dot(own, own).sqrt();
        own.iter_mut().for_each(|x| *x /= norm);
        rest.par_iter_mut().for_each(|other| take_away(other, own));
    }
    columns
}

fn unexplained(numbers: &[f64], basis: &[Vec<f64>]) -> Vec<f64> {
    let mut rest = numbers.to_vec();
    rest.resize(basis.first().map_or(rest.len(), Vec::len), 0.0);
    // Twice, because the first pass leaves what rounding left.
    for _ in 0..2 {
        basis.iter().for_each(|own| take_away(&mut rest, own));
    }
    rest
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
    use veilsum_cluster::random::Stream;

    use super::*;

    /// 2,000 rows whose first entry varies with variance 1; the second does not vary.
    fn sample() -> Vec<Vec<f64>> {
        let mut stream = Stream::new(3, b"likelihood of totals v01");
        (0..2_000).map(|_| vec![stream.normal_pair()[0], 3.0]).collect()
    }

    #[test]
    fn distance_is_that_of_the_covariance() {
        let unknown = Unknown::rows(2.0, &sample());
        let (along, across) = (unknown.apart(&[1.0, 0.0]), unknown.apart(&[0.0, 1.0]));
        // Variance of the noise and of two rows.
        assert!((along - (1.0f64 / 3.0).sqrt()).abs() < 0.03, "{along}");
        assert!((across - 1.0).abs() < 1e-9, "{across}");
        let nobody = Unknown::rows(0.0, &sample());
        assert_eq!(nobody.apart(&[3.0, 4.0]), 5.0);
    }

    /// More totals than rows in the sample: what the sample does not show is no knowledge.
    #[test]
    fn a_small_sample_makes_nobody_sure() {
        let mut stream = Stream::new(4, b"likelihood of totals v01");
        let mut row = || (0..300).map(|_| 1e6 * stream.normal_pair()[0]).collect::<Vec<f64>>();
        let sample: Vec<Vec<f64>> = (0..60).map(|_| row()).collect();
        let unknown = Unknown::rows(1_000.0, &sample);
        let found = unknown.apart(&row());
        // The true covariance is 1,000 times the identity: the root of 300 / 1,000.
        assert!((0.3..0.8).contains(&found), "{found}");
    }

    #[test]
    fn the_area_is_that_of_the_account() {
        assert_eq!(area(0.0), 0.5);
        assert!((area(2f64.sqrt()) - 0.841_344_7).abs() < 1e-6);
        assert!(area(50.0) > 0.999_999);
    }
}
