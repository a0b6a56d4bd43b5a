//! NumPy's legacy generator (MT19937, Matsumoto & Nishimura 1998), as far as published experiments depend on it: the
//! starting centres of Bárcena et al. and the training part of FFCF.

const N: usize = 624;
const M: usize = 397;

/// `numpy.random.RandomState(seed)`.
pub(super) struct RandomState {
    state: [u32; N],
    next: usize,
}

impl RandomState {
    /// From its seed.
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [0; N];
        state[0] = seed;
        for i in 1..N {
            let before: u32 = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: N }
    }

    fn word(&mut self) -> u32 {
        if self.next == N {
            for i in 0..N {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
                let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ twist;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// One number of `rand()`: uniform in [0, 1), 53 bits.
    pub(super) fn unit(&mut self) -> f64 {
        let (high, low) = (f64::from(self.word() >> 5), f64::from(self.word() >> 6));
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// `permutation(n)`.
    pub(super) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            // Uniform in 0..=i: bits below the next power of two, until one fits.
            let mask = (i + 1).next_power_of_two() as u32 - 1;
            let j = loop {
                let draw = (self.word() & mask) as usize;
                if draw <= i {
                    break draw;
                }
            };
            order.swap(i, j);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of seed 5489 are published with the generator; the rest was read off NumPy itself.
    #[test]
    fn it_is_numpys() {
        let mut state = RandomState::new(5489);
        assert_eq!([state.word(), state.word(), state.word()], [3_499_211_612, 581_869_302, 3_890_346_734]);
        let mut state = RandomState::new(0);
        assert!((state.unit() - 0.548_813_503_927_324_8).abs() < 1e-16);
        assert!((state.unit() - 0.715_189_366_372_419_5).abs() < 1e-16);
        assert_eq!(RandomState::new(0).permutation(10), [2, 8, 4, 9, 1, 6, 7, 3, 0, 5]);
    }
}
