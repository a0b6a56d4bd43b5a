//! Exact discrete Gaussian noise and the stream it is drawn from (spec section 17; Canonne, Kamath & Steinke, "The Discrete
//! Gaussian for Differential Privacy", NeurIPS 2020, Algorithms 1 to 3).
//!
//! Only integers are used, so a draw has exactly the distribution that the accounting assumes, and there are no low
//! bits of a float that could give a value away (Mironov 2012). Drawing is **not** constant-time: how long a draw takes
//! depends on the draw, as in every rejection sampler. Noise is therefore drawn before anything is sent, together with
//! the answer, whose computation takes longer and varies more.

use std::convert::Infallible;

use aes::Aes256;
use ctr::{
    Ctr64LE,
    cipher::{KeyIvInit, StreamCipher},
};
use rand_core::{CryptoRng, Rng, TryCryptoRng, TryRng};
use zeroize::Zeroizing;

use crate::{error::Error, rule::Rule, suite::Secret};

/// The largest standard deviation in steps: its square, and the squares of all likely draws, stay far below 2^128.
pub const MAX_SIGMA: u64 = 1 << 40;

/// Adds independent noise of standard deviation `sigma` steps to every word, in the ring ([NOI-1], [NOI-3]).
///
/// # Errors
/// `Error::Invalid` where `sigma` is 0 or above [`MAX_SIGMA`].
pub fn add(words: &mut [u64], sigma: u64, rng: &mut impl Rng) -> Result<(), Error> {
    for word in words {
        *word = word.wrapping_add_signed(gaussian(sigma, rng)?);
    }
    Ok(())
}

/// One draw from the discrete Gaussian: x with a probability in proportion to exp(-x² / (2 `sigma`²)) ([NOI-1]).
///
/// # Errors
/// `Error::Invalid` where `sigma` is 0 or above [`MAX_SIGMA`].
pub fn gaussian(sigma: u64, rng: &mut impl Rng) -> Result<i64, Error> {
    if sigma == 0 || sigma > MAX_SIGMA {
        return Err(Error::invalid(
            "plan",
            format!("noise of {sigma} steps; 1 to {MAX_SIGMA} are possible"),
            Rule::Noi1,
        ));
    }
    let square = 2 * u128::from(sigma) * u128::from(sigma);
    loop {
        // Algorithm 3 with t = sigma, for which the exponent (|y| - sigma²/t)² / (2 sigma²) is a ratio of integers.
        let y = laplace(sigma, rng);
        let off = u128::from(y.unsigned_abs().abs_diff(sigma));
        if off.checked_mul(off).is_some_and(|off| exponential(off, square, rng)) {
            return Ok(y);
        }
    }
}

/// One draw from the discrete Laplace of scale `t` ≥ 1: y with a probability in proportion to exp(-|y| / t) (Algorithm 2).
fn laplace(t: u64, rng: &mut impl Rng) -> i64 {
    loop {
        let low = below(u128::from(t), rng);
        if !exponential_below_one(low, u128::from(t), rng) {
            continue;
        }
        let mut high = 0u64;
        while exponential_below_one(1, 1, rng) {
            high += 1;
        }
        let negative = below(2, rng) == 1;
        // More than 2^22 successes of e^-1 in a row: nobody has seen them.
        let size = high.checked_mul(t).and_then(|high| i64::try_from(u128::from(high) + low).ok());
        match size {
            Some(0) if negative => {}
            Some(size) => return if negative { -size } else { size },
            None => {}
        }
    }
}

/// True with probability exp(-p / q), p ≥ 0, q > 0 (Algorithm 1).
fn exponential(mut p: u128, q: u128, rng: &mut impl Rng) -> bool {
    while p > q {
        if !exponential_below_one(1, 1, rng) {
            return false;
        }
        p -= q;
    }
    exponential_below_one(p, q, rng)
}

/// The same for p ≤ q: the parity of how many draws in a row succeed with probabilities p/q, p/2q, p/3q …
fn exponential_below_one(p: u128, q: u128, rng: &mut impl Rng) -> bool {
    let mut k = 1u128;
    while below(q.saturating_mul(k), rng) < p {
        k += 1;
    }
    k % 2 == 1
}

/// Uniform in 0..`n`, n ≥ 1: the low bits of one word of the stream, or of two, drawn again where they are not below n.
fn below(n: u128, rng: &mut impl Rng) -> u128 {
    let bits = 128 - (n - 1).leading_zeros();
    let mask = u128::MAX.checked_shr(128 - bits).unwrap_or(0);
    loop {
        let draw = match bits {
            0 => 0,
            1..=64 => u128::from(rng.next_u64()),
            _ => u128::from(rng.next_u64()) | u128::from(rng.next_u64()) << 64,
        } & mask;
        if draw < n {
            return draw;
        }
    }
}

/// What the noise of one answer is drawn with ([NOI-2]): fresh for every answer that is computed, and kept nowhere. One answer
/// leaves in one question, in the same bytes for ever ([RND-7]), so nothing averages out.
pub struct Key(Secret);

impl Key {
    /// Fresh.
    pub fn random(rng: &mut dyn CryptoRng) -> Key {
        Key(Secret::random(rng))
    }

    /// Of bytes that serve one answer only, for rehearsals and tests.
    pub fn from_bytes(bytes: [u8; 32]) -> Key {
        Key(Secret(bytes))
    }
}

/// The random words of a key.
pub struct Stream {
    cipher: Ctr64LE<Aes256>,
    block: Zeroizing<[u8; 512]>,
    used: usize,
}

impl Stream {
    /// From its beginning.
    pub fn new(key: &Key) -> Stream {
        let cipher = Ctr64LE::<Aes256>::new(key.0.bytes().into(), &[0u8; 16].into());
        Stream { cipher, block: Zeroizing::new([0; 512]), used: 512 }
    }

    fn take(&mut self) -> u64 {
        if self.used == self.block.len() {
            self.block.fill(0);
            self.cipher.apply_keystream(&mut self.block[..]);
            self.used = 0;
        }
        let mut word = [0; 8];
        word.copy_from_slice(&self.block[self.used..self.used + 8]);
        self.used += 8;
        u64::from_le_bytes(word)
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.take() as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.take())
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        for chunk in dst.chunks_mut(8) {
            let word = self.take().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Stream {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    /// Another seed every time, printed where a test fails.
    fn stream(what: &str) -> Stream {
        use std::hash::{BuildHasher, RandomState};
        let seed = RandomState::new().hash_one(what);
        println!("{what}: seed {seed}");
        Stream::new(&Key::from_bytes(suite::hash("test noise", &[&seed.to_le_bytes(), what.as_bytes()]).0))
    }

    /// How many standard deviations a chi-square statistic lies above its mean (Wilson & Hilferty 1931).
    fn excess(chi: f64, freedom: f64) -> f64 {
        let spread = 2.0 / (9.0 * freedom);
        ((chi / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
    }

    fn fits(what: &str, draws: &[i64], weight: impl Fn(f64) -> f64, reach: i64) {
        let all: f64 = (-reach..=reach).map(|x| weight(x as f64)).sum();
        let n = draws.len() as f64;
        // Every value on its own as long as 10 draws are expected, all beyond together.
        let edge = (0..reach).find(|x| n * weight(*x as f64) / all < 10.0).unwrap_or(reach);
        let (mut expected, mut found) = (vec![0.0; 2 * edge as usize + 1], vec![0.0; 2 * edge as usize + 1]);
        let cell = |x: i64| (x.clamp(-edge, edge) + edge) as usize;
        (-reach..=reach).for_each(|x| expected[cell(x)] += n * weight(x as f64) / all);
        draws.iter().for_each(|x| found[cell(*x)] += 1.0);
        let chi: f64 = expected.iter().zip(&found).map(|(e, f)| (e - f) * (e - f) / e).sum();
        let above = excess(chi, 2.0 * edge as f64);
        assert!(above < 5.0, "{what}: chi-square {chi:.1} over {} cells, {above:.1} deviations above", 2 * edge + 1);
    }

    /// [NOI-1]: a million draws against the exact probabilities.
    #[test]
    fn noi_1_draws_have_the_distribution_that_the_accounting_assumes() {
        for sigma in [1u64, 4, 37] {
            let what = format!("gaussian {sigma}");
            let mut rng = stream(&what);
            let draws: Vec<i64> = (0..1_000_000).map(|_| gaussian(sigma, &mut rng).unwrap()).collect();
            let s = sigma as f64;
            fits(&what, &draws, |x| (-x * x / (2.0 * s * s)).exp(), 40 * sigma as i64);
        }
        let mut rng = stream("laplace 3");
        let draws: Vec<i64> = (0..300_000).map(|_| laplace(3, &mut rng)).collect();
        fits("laplace 3", &draws, |x| (-x.abs() / 3.0).exp(), 300);
    }

    /// Mean and variance where no table of probabilities fits.
    #[test]
    fn large_deviations() {
        for sigma in [1u64 << 20, 123_456_789_012, MAX_SIGMA] {
            let mut rng = stream("large");
            let n = 100_000;
            let draws: Vec<f64> = (0..n).map(|_| gaussian(sigma, &mut rng).unwrap() as f64 / sigma as f64).collect();
            let mean = draws.iter().sum::<f64>() / f64::from(n);
            let variance = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
            assert!(mean.abs() < 5.5 / f64::from(n).sqrt(), "{sigma}: mean {mean}");
            assert!((variance - 1.0).abs() < 5.5 * (2.0 / f64::from(n)).sqrt(), "{sigma}: variance {variance}");
            let fourth = draws.iter().map(|x| x.powi(4)).sum::<f64>() / f64::from(n);
            assert!((fourth - 3.0).abs() < 5.5 * (96.0 / f64::from(n)).sqrt(), "{sigma}: fourth moment {fourth}");
        }
    }
}
