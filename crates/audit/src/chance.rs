//! What chance gives, and what an account lets anybody do at best.
//!
//! An account of rho (zCDP; Bun & Steinke 2016) lets a test for one row do no better than one that sees a Gaussian number whose mean
//! the row moves by sqrt(2 rho) deviations. The area under the curve of such a test is Phi(sqrt(rho)).

use veilsum_cluster::{privacy, random::Stream};

use crate::scene::EDGE;

const LABEL: &[u8; 24] = b"veilsum audit crowd   v1";

/// What an adversary wants to know of one person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secret {
    /// Whether the row is there.
    Row,
    /// In which of two cells it is, or which label it has: one number less and one more.
    Cell,
    /// Which of two values it has: one row less and one more.
    Value,
}

impl Secret {
    /// The largest area under the curve that an account of `rho` allows.
    pub fn bound(self, rho: f64) -> f64 {
        let times = match self {
            Secret::Row => 1.0,
            Secret::Cell => 2.0,
            Secret::Value => 4.0,
        };
        // Phi(x) = (1 + (2 Phi(x) - 1)) / 2, and the advantage at r is 2 Phi(sqrt(r / 2)) - 1.
        f64::midpoint(1.0, privacy::advantage(2.0 * times * rho))
    }
}

/// An area under the curve of true positives over false ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Auc {
    /// The estimate.
    pub value: f64,
    /// It is off by no more than this, but for one time in a thousand.
    pub give: f64,
}

/// Normal deviations that are exceeded on either side once in a thousand times.
const RARE: f64 = 3.29;

/// Of scores where the secret is so, and where it is not. Equal scores count one half; the interval is that of Hanley & McNeil (1982).
pub fn auc(present: &[f64], absent: &[f64]) -> Auc {
    let mut all: Vec<(f64, bool)> =
        present.iter().map(|x| (*x, true)).chain(absent.iter().map(|x| (*x, false))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (n, m) = (present.len() as f64, absent.len() as f64);
    let (mut below, mut pairs) = (0.0, 0.0);
    for equal in all.chunk_by(|a, b| a.0 == b.0) {
        let own = equal.iter().filter(|(_, is)| *is).count() as f64;
        let others = equal.len() as f64 - own;
        pairs += own * (below + others / 2.0);
        below += others;
    }
    let a = pairs / (n * m);
    let (one, two) = (a / (2.0 - a), 2.0 * a * a / (1.0 + a));
    let variance = (a * (1.0 - a) + (n - 1.0) * (one - a * a) + (m - 1.0) * (two - a * a)) / (n * m);
    Auc { value: a, give: RARE * variance.max(0.0).sqrt() }
}

/// The median, NaN of nothing.
pub fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Euclidean distance.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// By true record the distance to the nearest guess; infinite where there is no guess.
pub fn nearest(truth: &[Vec<f64>], guesses: &[Vec<f64>]) -> Vec<f64> {
    truth.iter().map(|x| guesses.iter().map(|g| distance(x, g)).fold(f64::INFINITY, f64::min)).collect()
}

/// People of whom nothing more is known than where such people usually are: clumps in the box.
pub struct Population {
    clumps: Vec<Vec<f64>>,
    spread: f64,
    stream: Stream,
}

impl Population {
    /// Of this many columns and clumps; a clump's rows spread by so much in every column.
    pub fn new(seed: u64, columns: usize, clumps: usize, spread: f64) -> Population {
        let mut stream = Stream::new(seed, LABEL);
        let room = EDGE - 2.0 * spread;
        let clumps = (0..clumps).map(|_| (0..columns).map(|_| room * (2.0 * stream.unit() - 1.0)).collect()).collect();
        Population { clumps, spread, stream }
    }

    /// One person more.
    pub fn draw(&mut self) -> Vec<f64> {
        let clump = &self.clumps[self.stream.below(self.clumps.len() as u64) as usize];
        let stream = &mut self.stream;
        clump.iter().map(|c| (c + self.spread * stream.normal_pair()[0]).clamp(-EDGE, EDGE)).collect()
    }

    /// `n` persons more.
    pub fn people(&mut self, n: usize) -> Vec<Vec<f64>> {
        (0..n).map(|_| self.draw()).collect()
    }

    /// Uniform in the box.
    pub fn anywhere(&mut self, columns: usize) -> Vec<f64> {
        (0..columns).map(|_| EDGE * (2.0 * self.stream.unit() - 1.0)).collect()
    }

    /// Uniform in 0..`n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.stream.below(n as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_design() {
        let of = |secret: Secret| [1.0, 0.25].map(|rho| (100.0 * secret.bound(rho)).round() / 100.0);
        assert_eq!(of(Secret::Row), [0.84, 0.69]);
        assert_eq!(of(Secret::Cell), [0.92, 0.76]);
        assert_eq!(of(Secret::Value), [0.98, 0.84]);
    }

    #[test]
    fn areas() {
        assert_eq!(auc(&[2.0, 3.0], &[0.0, 1.0]).value, 1.0);
        assert_eq!(auc(&[1.0], &[1.0]).value, 0.5);
        assert_eq!(auc(&[0.0, 2.0], &[1.0]).value, 0.5);
        let mut stream = Stream::new(1, LABEL);
        let mut draws = |shift: f64| (0..4000).map(|_| stream.normal_pair()[0] + shift).collect::<Vec<f64>>();
        let found = auc(&draws(2f64.sqrt()), &draws(0.0));
        assert!((found.value - 0.841).abs() < found.give && found.give < 0.02, "{found:?}");
    }
}
