//! People as they usually are, and how near guesses come to them.

use veilsum_cluster::random::Stream;

use crate::scene::EDGE;

const LABEL: &[u8; 24] = b"veilsum audit crowd   v1";

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

    fn draw(&mut self) -> Vec<f64> {
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
}
