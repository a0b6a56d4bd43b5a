//! Seeded random numbers that never change: ChaCha20 (RFC 8439 core) from a 64-bit seed and a fixed label.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
///
/// The key is the seed as 8 little-endian bytes followed by a 24-byte label, so that streams of different purposes never
/// overlap. Published seeds depend on this recipe (specification, QRY-7) and on the order of draws: changing either breaks
/// them.
pub struct Stream(ChaCha20Rng);

impl Stream {
    /// The stream of this seed and purpose.
    pub fn new(seed: u64, label: &[u8; 24]) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..].copy_from_slice(label);
        Self(ChaCha20Rng::from_seed(key))
    }

    /// Uniform in [0, 1): the upper 53 bits of the next 64, times 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..`bound` without bias, by rejection; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // The largest multiple of `bound` that 64 bits hold.
        let usable = u64::MAX - (u64::MAX % bound + 1) % bound;
        loop {
            let draw = self.0.next_u64();
            if draw <= usable {
                return draw % bound;
            }
        }
    }

    /// A uniform permutation (Fisher & Yates, Durstenfeld's form).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Two independent standard normal numbers (Marsaglia's polar form of Box & Muller 1958).
    pub fn normal_pair(&mut self) -> [f64; 2] {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                return [x * factor, y * factor];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut stream = Stream::new(7, b"veilsum test stream     ");
        let draws: Vec<f64> = (0..20_000).flat_map(|_| stream.normal_pair()).collect();
        let mean = draws.iter().sum::<f64>() / 40_000.0;
        let variance = draws.iter().map(|z| (z - mean) * (z - mean)).sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}
