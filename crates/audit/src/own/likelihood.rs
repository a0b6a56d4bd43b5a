//! What the best test makes of totals: the likelihood ratio of an adversary who knows the questions, the noise, and some of the rows.
//!
//! A total is the sum of what rows add, and of noise. The rows that the adversary does not know add what rows of their kind usually do:
//! it sees them as a normal number with the covariance of such rows (the tracing of Homer et al. 2008 and Dwork et al. 2015, with
//! all totals of a run at once; Neyman & Pearson 1933). Two guesses are then as far apart as their difference, measured in that
//! covariance; the area under the curve of the best test is Phi(distance / sqrt 2).

use rayon::prelude::*;
use veilsum_cluster::privacy;

use crate::least_squares::dot;

/// How much an adversary distrusts what the sample says, in variances of the noise: with more totals than rows in the sample, what these
/// do not show is not certain. It takes what works best.
const RIDGES: [f64; 6] = [1.0, 1e4, 1e8, 1e12, 1e16, 1e20];
/// What is left of a row by rounding, as a part of it.
const ROUNDED: f64 = 1e-13;

/// What rows of a sample usually add to the totals. Half of them says what unknown rows add, and the other half how well the test does that
/// was made of the first: a test is never measured on the rows that it was made of.
pub(super) struct Usual {
    /// Orthonormal directions in which rows of the first half differ, p each, and their variances.
    directions: Vec<(Vec<f64>, f64)>,
    /// What each of the second half adds beside the mean: along the directions, and p entries.
    others: Vec<(Vec<f64>, Vec<f64>)>,
    /// What a row usually adds, p.
    pub(super) mean: Vec<f64>,
}

impl Usual {
    /// Of these rows (R x p, in deviations of the noise).
    pub(super) fn of(sample: &[Vec<f64>]) -> Usual {
        let (entries, count) = (sample.first().map_or(0, Vec::len), sample.len());
        let mean: Vec<f64> =
            (0..entries).map(|e| sample.iter().map(|row| row[e]).sum::<f64>() / count.max(1) as f64).collect();
        let beside = |row: &Vec<f64>| row.iter().zip(&mean).map(|(x, m)| x - m).collect::<Vec<f64>>();
        if count < 4 {
            return Usual { directions: Vec::new(), others: Vec::new(), mean };
        }
        let made: Vec<Vec<f64>> = sample.iter().step_by(2).map(beside).collect();
        let directions = principal(&made);
        let along = |row: Vec<f64>| (directions.iter().map(|(d, _)| dot(d, &row)).collect(), row);
        let others = sample.par_iter().skip(1).step_by(2).map(beside).map(along).collect();
        Usual { directions, others, mean }
    }

    /// The same with so many unknown rows.
    pub(super) fn unknown(&self, rows: f64) -> Unknown<'_> {
        Unknown { usual: self, rows: if self.others.is_empty() { 0.0 } else { rows } }
    }

    /// Splits what a guess adds to the totals (p).
    pub(super) fn split(&self, numbers: &[f64]) -> Split {
        let (mut along, mut rest) = (vec![0.0; self.directions.len()], numbers.to_vec());
        // Twice, because the first pass leaves what rounding left.
        for _ in 0..2 {
            for (x, (direction, _)) in along.iter_mut().zip(&self.directions) {
                *x += take_away(&mut rest, direction);
            }
        }
        let across = self.others.iter().map(|(_, row)| dot(&rest, row)).collect();
        Split { along, rest, across }
    }
}

/// What a guess adds to the totals: along the directions in which unknown rows differ, the rest, and by row of the second half what the rest
/// has in common with it.
#[derive(Clone)]
pub(super) struct Split {
    along: Vec<f64>,
    rest: Vec<f64>,
    across: Vec<f64>,
}

impl Split {
    /// What one guess adds more than another one.
    pub(super) fn less(&self, other: &Split) -> Split {
        let take = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
        Split {
            along: take(&self.along, &other.along),
            rest: take(&self.rest, &other.rest),
            across: take(&self.across, &other.across),
        }
    }
}

/// What is unknown to an adversary beside the target.
pub(super) struct Unknown<'a> {
    usual: &'a Usual,
    rows: f64,
}

impl Unknown<'_> {
    /// How many deviations apart two guesses are for the best test whose totals differ by `change`, as measured.
    pub(super) fn apart(&self, change: &Split) -> f64 {
        let (along, square) = (&change.along, dot(&change.rest, &change.rest));
        if self.rows <= 0.0 {
            return (square + dot(along, along)).sqrt();
        }
        let of = |ridge: &f64| {
            // The test is the change, weighed down along what unknown rows add.
            let test: Vec<f64> =
                along.iter().zip(&self.usual.directions).map(|(x, d)| x * self.weight(d.1, *ridge)).collect();
            let moved = square + dot(&test, along);
            let on = |((row, _), across): (&(Vec<f64>, Vec<f64>), &f64)| (dot(&test, row) + across).powi(2);
            let spread: f64 = self.usual.others.iter().zip(&change.across).map(on).sum();
            let variance = square + dot(&test, &test) + self.rows * spread / self.usual.others.len() as f64;
            if variance > 0.0 { (moved / variance.sqrt()).max(0.0) } else { 0.0 }
        };
        RIDGES.iter().map(of).fold(0.0, f64::max)
    }

    /// What of a guess the unknown rows do not explain: its products are those by the inverse of the covariance.
    pub(super) fn unexplained(&self, guess: &Split) -> Vec<f64> {
        let along = guess.along.iter().zip(&self.usual.directions).map(|(x, d)| x * self.weight(d.1, 1.0).sqrt());
        guess.rest.iter().copied().chain(along).collect()
    }

    /// The part of the noise in the variance of a direction.
    fn weight(&self, variance: f64, ridge: f64) -> f64 {
        ridge / (ridge + self.rows * variance)
    }
}

/// The directions in which these rows differ, and their variances: Gram and Schmidt, then one-sided rotations (Hestenes 1958) of what is
/// left, which keep small variances beside large ones.
fn principal(rows: &[Vec<f64>]) -> Vec<(Vec<f64>, f64)> {
    let n = rows.len();
    let (mut basis, mut parts): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), vec![vec![0.0; n]; n]);
    for (row, part) in rows.iter().zip(&mut parts) {
        let (mut rest, whole) = (row.clone(), dot(row, row).sqrt());
        for _ in 0..2 {
            basis.iter().zip(part.iter_mut()).for_each(|(own, x)| *x += take_away(&mut rest, own));
        }
        let norm = dot(&rest, &rest).sqrt();
        if norm > ROUNDED * whole {
            rest.iter_mut().for_each(|x| *x /= norm);
            part[basis.len()] = norm;
            basis.push(rest);
        }
    }
    parts.iter_mut().for_each(|part| part.truncate(basis.len()));
    // The largest first: fewer turns.
    parts.sort_by(|a, b| dot(b, b).total_cmp(&dot(a, a)));
    // What rounding leaves is no direction.
    let least = parts.first().map_or(0.0, |part| ROUNDED * ROUNDED * dot(part, part));
    rotate(&mut parts, least);
    let direction = |part: &Vec<f64>| {
        let size = dot(part, part);
        let mut all = vec![0.0; rows[0].len()];
        for (x, own) in part.iter().zip(&basis) {
            all.iter_mut().zip(own).for_each(|(sum, o)| *sum += x / size.sqrt() * o);
        }
        (all, size / (n - 1) as f64)
    };
    parts.par_iter().filter(|part| dot(part, part) > least).map(direction).collect()
}

/// Turns vectors whose squares are larger than `least` in pairs until all are at right angles.
fn rotate(vectors: &mut [Vec<f64>], least: f64) {
    for _ in 0..60 {
        let mut turned = false;
        for b in 1..vectors.len() {
            let (before, rest) = vectors.split_at_mut(b);
            let second = &mut rest[0];
            for first in before {
                let (p, q, both) = (dot(first, first), dot(second, second), dot(first, second));
                if p.min(q) <= least || both.abs() <= ROUNDED * (p * q).sqrt() {
                    continue;
                }
                turned = true;
                let cot = (q - p) / (2.0 * both);
                let tan = cot.signum() / (cot.abs() + cot.hypot(1.0));
                let cos = 1.0 / tan.hypot(1.0);
                for (x, y) in first.iter_mut().zip(second.iter_mut()) {
                    (*x, *y) = (cos * (*x - tan * *y), cos * (tan * *x + *y));
                }
            }
        }
        if !turned {
            return;
        }
    }
}

/// The area under the curve of the best test for guesses that are so many deviations apart.
pub(super) fn area(apart: f64) -> f64 {
    // A Gaussian of rho moves a mean by sqrt(2 rho) deviations.
    privacy::best_auc(apart * apart / 2.0)
}

/// Takes off `from` what it has of a direction, and says how much that was.
fn take_away(from: &mut [f64], own: &[f64]) -> f64 {
    let part = dot(from, own);
    from.iter_mut().zip(own).for_each(|(x, q)| *x -= part * q);
    part
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
        let usual = Usual::of(&sample());
        let unknown = usual.unknown(2.0);
        let (along, across) = (unknown.apart(&usual.split(&[1.0, 0.0])), unknown.apart(&usual.split(&[0.0, 1.0])));
        // Variance of the noise and of two rows.
        assert!((along - (1.0f64 / 3.0).sqrt()).abs() < 0.03, "{along}");
        assert!((across - 1.0).abs() < 1e-9, "{across}");
        assert_eq!(usual.unknown(0.0).apart(&usual.split(&[3.0, 4.0])), 5.0);
    }

    /// More totals than rows in the sample: what the sample does not show is no knowledge.
    #[test]
    fn a_small_sample_makes_nobody_sure() {
        let mut stream = Stream::new(4, b"likelihood of totals v01");
        let mut row = || (0..300).map(|_| 1e6 * stream.normal_pair()[0]).collect::<Vec<f64>>();
        let sample: Vec<Vec<f64>> = (0..60).map(|_| row()).collect();
        let usual = Usual::of(&sample);
        let found = usual.unknown(1_000.0).apart(&usual.split(&row()));
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
