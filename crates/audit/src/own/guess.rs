//! Guessing one value of a row from what every value would add to the totals.

use std::ops::Range;

use veilsum_cluster::{distance::euclidean, random::Stream};

use crate::finding::short;

/// A column as the plan's header has it.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Its name.
    pub(super) name: String,
    /// Where its number or its indicators stand in a row.
    pub(super) places: Range<usize>,
    /// Whether it holds categories.
    pub(super) is_category: bool,
    /// Smallest and largest possible value.
    pub(super) ends: [f64; 2],
    /// What all its values are multiples of: 1 of a column of whole years.
    pub(super) step: Option<f64>,
    /// An error that makes a value known: half a step, or where there are none a part of what values usually differ by.
    pub(super) known: f64,
}

impl Column {
    /// How far off two values of it are: in its units, or 1 for two categories.
    fn off(&self, a: &[f64], b: &[f64]) -> f64 {
        if self.is_category { f64::from(u8::from(a != b)) } else { (a[0] - b[0]).abs() }
    }

    /// The next values of a number that has steps.
    pub(super) fn neighbours(&self, of: &[f64]) -> Vec<Vec<f64>> {
        let Some(step) = self.step.filter(|_| !self.is_category) else { return Vec::new() };
        let inside = |x: &f64| (self.ends[0]..=self.ends[1]).contains(x);
        [of[0] - step, of[0] + step].into_iter().filter(inside).map(|x| vec![x]).collect()
    }

    /// A value that comes out as it is, for people.
    pub(super) fn exactly(&self, share: f64) -> String {
        let steps = self.step.filter(|_| !self.is_category).map(|step| format!(" (in steps of {})", short(step)));
        format!("{}: exactly{} in {} % of tries", self.name, steps.unwrap_or_default(), short(100.0 * share))
    }

    /// An expected error, for people.
    pub(super) fn error(&self, error: f64) -> String {
        if self.is_category {
            format!("{}: the wrong category in {} % of tries", self.name, short(100.0 * error))
        } else {
            format!("{}: off by {} on average", self.name, short(error))
        }
    }
}

/// How well a value is guessed.
#[derive(Debug, Clone)]
pub(super) struct Guessed {
    /// The mean error of the value that fits best, in the column's units; of a category the chance to be wrong.
    pub(super) error: f64,
    /// How often the guess is not the value itself.
    pub(super) wrong: f64,
    /// The same as the error, of the best guess without any total.
    pub(super) blind: f64,
    /// How many deviations apart another value and the true one are at most.
    pub(super) farthest: f64,
}

/// The value of a column, the first of `guesses` being true and all held for equally likely before. `left` is what each adds to the totals, as
/// far as unknown rows do not explain it, and `between` how far the best test keeps two of them apart.
pub(super) fn guessed(
    column: &Column,
    guesses: &[Vec<f64>],
    left: &[Vec<f64>],
    between: impl Fn(usize, usize) -> f64,
    draws: usize,
    stream: &mut Stream,
) -> Guessed {
    let n = guesses.len();
    let off = |a: usize, b: usize| column.off(&guesses[a], &guesses[b]);
    // Whoever guesses blindly takes the value with the least mean error.
    let mean = |of: usize| (0..n).map(|other| off(of, other)).sum::<f64>() / n as f64;
    let blind_guess = (0..n).min_by(|a, b| mean(*a).total_cmp(&mean(*b))).unwrap_or(0);
    let blind = off(blind_guess, 0);
    let far: Vec<f64> = (0..n).map(|v| between(v, 0)).collect();
    let farthest = far.iter().copied().fold(0.0, f64::max);
    // The likelihood of guess v is -far^2 / 2 + far z_v: z is normal, correlated as the differences from the truth are.
    let lengths: Vec<f64> = left.iter().map(|x| euclidean(x, &left[0])).collect();
    let roots = correlated(left, &lengths);
    let mut errors = Vec::with_capacity(draws);
    for _ in 0..draws {
        let fresh: Vec<f64> = (0..n).map(|_| stream.normal_pair()[0]).collect();
        let score = |v: usize| {
            let z: f64 = roots[v].iter().zip(&fresh).map(|(r, x)| r * x).sum();
            far[v] * z - far[v] * far[v] / 2.0
        };
        let scores: Vec<f64> = (0..n).map(score).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let likely: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
        let all: f64 = likely.iter().sum();
        let expected = |of: usize| (0..n).map(|other| likely[other] * off(of, other)).sum::<f64>() / all;
        let taken = (0..n).min_by(|a, b| expected(*a).total_cmp(&expected(*b))).unwrap_or(0);
        errors.push(off(taken, 0));
    }
    let count = errors.len().max(1) as f64;
    let error = errors.iter().sum::<f64>() / count;
    let wrong = errors.iter().filter(|x| **x > 0.0).count() as f64 / count;
    Guessed { error, wrong, blind, farthest }
}

/// Square root (Cholesky) of the correlations of the differences from the first; rows of zeros where there is no difference.
fn correlated(left: &[Vec<f64>], far: &[f64]) -> Vec<Vec<f64>> {
    let n = left.len();
    let mut root = vec![vec![0.0; n]; n];
    for a in 0..n {
        for b in 0..=a {
            let dot: f64 = left[a].iter().zip(&left[b]).zip(&left[0]).map(|((a, b), o)| (a - o) * (b - o)).sum();
            let scale = far[a] * far[b];
            let apart = if scale > 0.0 { dot / scale } else { 0.0 };
            let correlation = if a == b { 1.0 + 1e-9 } else { apart };
            let before: f64 = (0..b).map(|i| root[a][i] * root[b][i]).sum();
            let left = correlation - before;
            root[a][b] = match (a == b, root[b][b]) {
                (true, _) => left.max(0.0).sqrt(),
                (false, pivot) if pivot > 0.0 => left / pivot,
                (false, _) => 0.0,
            };
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: &[u8; 24] = b"guessing a value     v01";

    fn number() -> Column {
        Column {
            name: "age".into(),
            places: 0..1,
            is_category: false,
            ends: [0.0, 100.0],
            step: Some(10.0),
            known: 4.9,
        }
    }

    fn of(spread: f64) -> Guessed {
        let guesses: Vec<Vec<f64>> = [50.0, 10.0, 20.0, 30.0, 90.0].iter().map(|x| vec![*x]).collect();
        let left: Vec<Vec<f64>> = guesses.iter().map(|x| vec![x[0] * spread, 1.0]).collect();
        let mut stream = Stream::new(1, LABEL);
        let between = |a: usize, b: usize| euclidean(&left[a], &left[b]);
        guessed(&number(), &guesses, &left, between, 400, &mut stream)
    }

    #[test]
    fn far_totals_tell_and_near_ones_do_not() {
        let sharp = of(10.0);
        assert!(sharp.error == 0.0 && sharp.blind == 20.0 && sharp.farthest == 400.0, "{sharp:?}");
        let none = of(0.0);
        assert_eq!((none.error, none.farthest), (none.blind, 0.0));
        // One deviation apart at 20 units: better than nothing, and far from right.
        let some = of(0.1);
        assert!((3.0..20.0).contains(&some.error), "{some:?}");
    }

    /// Whoever looks at totals with much noise is no worse than somebody who looks at none, over everything that may be true.
    #[test]
    fn weak_totals_are_no_worse_than_none() {
        let values = [10.0, 20.0, 30.0, 50.0, 90.0];
        let mut stream = Stream::new(2, LABEL);
        for spread in [0.0, 0.001, 0.01, 0.03, 0.1] {
            let of = |truth: usize| {
                let mut guesses: Vec<Vec<f64>> = values.iter().map(|x| vec![*x]).collect();
                guesses.swap(0, truth);
                let left: Vec<Vec<f64>> = guesses.iter().map(|x| vec![x[0] * spread, 1.0]).collect();
                let between = |a: usize, b: usize| euclidean(&left[a], &left[b]);
                guessed(&number(), &guesses, &left, between, 2_000, &mut stream)
            };
            let found: Vec<Guessed> = (0..values.len()).map(of).collect();
            let mean = |of: fn(&Guessed) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
            let (error, blind) = (mean(|of| of.error), mean(|of| of.blind));
            // 10,000 errors of at most 80.
            assert!(error <= blind + 1.0, "{spread}: {error}, {blind}");
            assert!(spread < 0.1 || error < 0.7 * blind, "{spread}: {error}, {blind}");
        }
    }

    #[test]
    fn a_column_of_whole_numbers_has_neighbours() {
        let column = number();
        assert_eq!(column.neighbours(&[100.0]), [[90.0]]);
        assert_eq!(column.exactly(1.0), "age: exactly (in steps of 10) in 100 % of tries");
    }
}
