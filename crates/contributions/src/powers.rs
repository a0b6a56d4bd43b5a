//! Logarithm and exponential function without a branch: the work is the same for every number, which that of a library is not.

use core::f64::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

/// Bits of the fraction of a double.
const FRACTION: u32 = 52;

/// The natural logarithm of a number from 2^-1022 on, to about 2^-52 of it.
///
/// The number is 2^e times one between the roots of 1/2 and 2, whose logarithm is 2 artanh((x-1)/(x+1)), a series that falls by 34 a term.
pub(crate) fn ln(x: f64) -> f64 {
    let root = FRAC_1_SQRT_2.to_bits();
    let moved = x.to_bits().wrapping_add(1f64.to_bits() - root);
    let exponent = (moved >> FRACTION) as i32 - 1023;
    let rest = f64::from_bits((moved & ((1 << FRACTION) - 1)) + root);
    let s = (rest - 1.0) / (rest + 1.0);
    let square = s * s;
    let series = (0..11).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    f64::from(exponent) * LN_2 + 2.0 * s * series
}

/// The exponential function, to about 2^-44 of it; of what lies outside of -708 to 709 that of the nearer end.
///
/// The number is k ln 2 and a rest of at most ln 2 / 2, for which thirteen terms of the series are enough.
pub(crate) fn exp(x: f64) -> f64 {
    // Added to a number, what is behind the point is rounded away, and the last bits of the sum are a whole number.
    const WHOLE: f64 = 1.5 * (1u64 << FRACTION) as f64;
    let x = x.clamp(-708.0, 709.0);
    let moved = x * LOG2_E + WHOLE;
    let k = moved - WHOLE;
    let high = f64::from_bits(LN_2.to_bits() >> 32 << 32);
    let rest = (x - k * high) - k * (LN_2 - high);
    let series = (1..14).rev().fold(1.0, |sum, term| 1.0 + sum * rest * (1.0 / f64::from(term)));
    series * f64::from_bits(moved.to_bits().wrapping_add(1023) << FRACTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a library has it, over all that weights and entropies ask for.
    #[test]
    fn powers_are_those_of_a_library() {
        for step in 0..200_000 {
            let x = f64::from(step) / 145.0 - 700.0;
            assert!((exp(x) / libm::exp(x) - 1.0).abs() < 1e-13, "exp {x}");
            let y = libm::exp(x.max(-667.0));
            assert!((ln(y) - libm::log(y)).abs() <= 1e-15 * libm::log(y).abs().max(1.0), "ln {y}");
            let near = 1.0 + x * 1e-6;
            assert!((ln(near) - libm::log(near)).abs() <= 1e-15 * libm::log(near).abs(), "ln {near}");
        }
        assert_eq!([ln(1.0), exp(0.0)], [0.0, 1.0]);
        assert!(exp(1e300).is_finite() && exp(-1e300) > 0.0);
    }
}
