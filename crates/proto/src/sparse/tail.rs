//! Hypergeometric tails as proved upper bounds, in integers (spec section 17.1).
//!
//! Every party must find the same sizes, and floats are not for this crate. A number here is a 64-bit mantissa with an
//! exponent of its own, rounded up by every operation, so a tail is never smaller than the true one and larger by a
//! relative 2^-50 at most.

/// mantissa · 2^exponent, the mantissa's top bit set; or zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Up {
    mantissa: u64,
    exponent: i32,
}

impl Up {
    const ZERO: Up = Up { mantissa: 0, exponent: 0 };
    const ONE: Up = Up { mantissa: 1 << 63, exponent: -63 };

    /// `wide` · 2^`exponent`, rounded up to 64 bits.
    fn round(wide: u128, exponent: i32) -> Up {
        if wide == 0 {
            return Up::ZERO;
        }
        let zeros = wide.leading_zeros();
        let top = wide << zeros;
        let up = u64::from(top as u64 != 0);
        match ((top >> 64) as u64).checked_add(up) {
            Some(mantissa) => Up { mantissa, exponent: exponent + 64 - zeros as i32 },
            None => Up { mantissa: 1 << 63, exponent: exponent + 65 - zeros as i32 },
        }
    }

    /// Times `numerator` / `denominator`, rounded up. The denominator is below 2^48, so the quotient keeps 80 bits.
    fn times(self, numerator: u64, denominator: u64) -> Up {
        let product = u128::from(self.mantissa) * u128::from(numerator);
        if product == 0 {
            return Up::ZERO;
        }
        let shift = product.leading_zeros();
        Up::round((product << shift).div_ceil(u128::from(denominator)), self.exponent - shift as i32)
    }

    /// The sum, rounded up.
    fn plus(self, other: Up) -> Up {
        if self.mantissa == 0 || other.mantissa == 0 {
            return if self.mantissa == 0 { other } else { self };
        }
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let distance = (high.exponent - low.exponent) as u32;
        let low = if distance >= 124 { 1 } else { (u128::from(low.mantissa) << 60).div_ceil(1 << distance) };
        Up::round((u128::from(high.mantissa) << 60) + low, high.exponent - 60)
    }

    /// Whether it is at most 2^-bits.
    fn at_most(self, bits: u32) -> bool {
        let top = if self.mantissa == 1 << 63 { 63 } else { 64 };
        self.mantissa == 0 || self.exponent + top <= -(bits as i32)
    }
}

/// P[X = x] where `draws` of `population` are drawn without putting back and `marked` are marked; within its support.
fn mass(population: u64, marked: u64, draws: u64, x: u64) -> Up {
    let mut p = Up::ONE;
    for j in 0..x {
        // C(draws, x), a factor at a time, and the marked ones.
        p = p.times(draws - x + j + 1, j + 1).times(marked - j, population - j);
    }
    for j in 0..draws - x {
        p = p.times(population - marked - j, population - x - j);
    }
    p
}

/// The least x for which P[X ≥ x] ≤ 2^-bits is proved, X as in [`mass`]; one past the largest possible X at most.
pub(crate) fn least_improbable(population: usize, marked: usize, draws: usize, bits: u32) -> usize {
    let (n, c, m) = (population as u64, marked.min(population) as u64, draws.min(population) as u64);
    let mut x = c.min(m);
    let mut p = mass(n, c, m, x);
    let mut tail = Up::ZERO;
    loop {
        tail = tail.plus(p);
        if !tail.at_most(bits) {
            return x as usize + 1;
        }
        if x == 0 || n + x <= c + m {
            return x as usize;
        }
        p = p.times(x * (n - c + x - m), (c - x + 1) * (m - x + 1));
        x -= 1;
    }
}

/// The least b with `value` ≤ 2^b.
pub(crate) fn log2_up(value: usize) -> u32 {
    value.max(1).next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P[X ≥ x] by counting, in exact integers.
    fn counted(n: u128, c: u128, m: u128, x: u128) -> (u128, u128) {
        let choose = |n: u128, k: u128| if k > n { 0 } else { (0..k).fold(1, |a, j| a * (n - j) / (j + 1)) };
        ((x..=m).map(|i| choose(c, i) * choose(n - c, m - i)).sum(), choose(n, m))
    }

    #[test]
    fn exact_on_small_populations() {
        for n in 1..=24u128 {
            for c in 0..=n {
                for m in 0..=n {
                    for bits in [0, 1, 2, 3, 5, 8, 13] {
                        let found = least_improbable(n as usize, c as usize, m as usize, bits) as u128;
                        let holds = |x| {
                            let (tail, all) = counted(n, c, m, x);
                            tail << bits <= all
                        };
                        assert!(holds(found), "n {n} c {c} m {m} bits {bits}: {found} is not improbable");
                        // Equality may be lost to rounding up, nothing else may.
                        let (tail, all) = if found > 0 { counted(n, c, m, found - 1) } else { (1, 0) };
                        assert!(tail << bits >= all, "n {n} c {c} m {m} bits {bits}: {found} is not the least");
                    }
                }
            }
        }
    }

    #[test]
    fn every_operation_rounds_up_and_by_little() {
        let mut p = Up::ONE;
        for j in 1..=1_000u64 {
            p = p.times(j, j + 1).times(j + 1, j);
        }
        // 2,000 roundings of a number that stays one.
        assert!(p.exponent == -63 && p.mantissa >= 1 << 63 && p.mantissa < (1 << 63) + (1 << 13), "{p:?}");
        let third = Up::ONE.times(1, 3);
        let one = third.plus(third).plus(third);
        assert!(one.at_most(0) == (one == Up::ONE) && !one.at_most(1));
        let tiny = Up { mantissa: 1 << 63, exponent: -5_000 };
        assert!(!Up::ONE.plus(tiny).at_most(0), "a sum is never rounded down");
        assert!(tiny.at_most(4_937) && !tiny.at_most(4_938));
    }

    #[test]
    fn logarithms() {
        assert_eq!([0, 1, 2, 3, 4, 5, 1024, 1025].map(log2_up), [0, 0, 1, 2, 2, 3, 10, 11]);
    }
}
