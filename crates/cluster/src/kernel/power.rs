//! Powers that are at most 1, eight at a time: `x^e = 2^(e log2 x)`, by polynomials alone. The specification prescribes them ([SUM-2]), and
//! their constants are public, for engines that find the same sums elsewhere.
//!
//! Every operation is rounded by itself, so the result is the same with every kind of vectors. With `t = -e log2 x` the relative
//! error is below `2^-52 (8 + 4 t)`: what counts in a sum beside a 1 is the error itself, `2^-t` of that, which is at most 8 units of
//! 2^-52, at t = 0. (The logarithm is good to 4 units of the last place of itself or of its integral part; the product has another
//! half; and an error δ of an exponent is a relative error δ ln 2 of the power. `tests` measures both.)

use fearless_simd::{Simd, prelude::*};

/// The root of a half: mantissas are taken from it up to its double, so that logarithms near 1 are small.
pub const ROOT_OF_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// The sign bit, which stands for an exponent of 2048.
const SIGN: u64 = 1 << 63;

/// All but the mantissa.
const EXPONENT: u64 = 0xfff << 52;

/// The representation of 2^52: with an integer below 2^52 in its lowest bits it is that number above 2^52.
const TWO_52: u64 = 0x4330_0000_0000_0000;

/// The smallest exponent of a normal number; lower ones are taken as this.
pub const LEAST: f64 = -1022.0;

/// Added to a number and taken off again, this leaves the nearest integer (at a tie [`OF_EXP`] gives the same double for both). Before that its
/// lowest bits are the integer, plus 1023.
pub const ROUNDER: f64 = 1.5 * (1u64 << 52) as f64 + 1023.0;

/// `2 / ln 2` times 1, 1/3, 1/5, ...: coefficients of `log2((1 + z) / (1 - z))` in odd powers of z.
pub const OF_LOG: [f64; 11] = {
    let mut coefficients = [0.0; 11];
    let mut i = 0;
    while i < coefficients.len() {
        coefficients[i] = 2.0 * std::f64::consts::LOG2_E / (2 * i + 1) as f64;
        i += 1;
    }
    coefficients
};

/// `(ln 2)^n / n!`: coefficients of `2^f`.
pub const OF_EXP: [f64; 14] = {
    let mut coefficients = [1.0; 14];
    let mut i = 1;
    while i < coefficients.len() {
        coefficients[i] = coefficients[i - 1] * std::f64::consts::LN_2 / i as f64;
        i += 1;
    }
    coefficients
};

/// Vectors whose chains of operations run side by side: each operation waits for the one before it, so one vector alone leaves most of a
/// processor idle.
pub(super) type Several<S, const V: usize, const C: usize> = [[<S as Simd>::f64s; V]; C];

/// Horner's rule, from the highest power down.
#[inline(always)]
fn polynomial<S: Simd, const V: usize, const C: usize>(
    simd: S,
    x: Several<S, V, C>,
    coefficients: &[f64],
) -> Several<S, V, C> {
    let mut value = [[S::f64s::splat(simd, 0.0); V]; C];
    for coefficient in coefficients.iter().rev() {
        let coefficient = S::f64s::splat(simd, *coefficient);
        for c in 0..C {
            for v in 0..V {
                value[c][v] = value[c][v] * x[c][v] + coefficient;
            }
        }
    }
    value
}

/// The logarithm to base 2 of normal numbers above 0; of smaller ones something around -1023.
#[inline(always)]
pub(super) fn log2<S: Simd, const V: usize, const C: usize>(simd: S, x: Several<S, V, C>) -> Several<S, V, C> {
    type Bits<S> = <<S as Simd>::f64s as SimdFloat<S>>::Bits;
    let constant = |bits: u64| Bits::<S>::splat(simd, bits);
    let one = S::f64s::splat(simd, 1.0);
    let (mut log, mut z, mut square) = (x, x, x);
    for c in 0..C {
        for v in 0..V {
            let bits = x[c][v].to_bits();
            let shifted = bits - constant(ROOT_OF_HALF.to_bits()) + constant(SIGN);
            let mantissa = S::f64s::from_bits(bits - (shifted & constant(EXPONENT)) + constant(SIGN));
            let whole = S::f64s::from_bits((shifted >> 52u32) | constant(TWO_52));
            log[c][v] = whole - S::f64s::splat(simd, (1u64 << 52) as f64 + 2048.0);
            z[c][v] = (mantissa - one) / (mantissa + one);
            square[c][v] = z[c][v] * z[c][v];
        }
    }
    let value = polynomial::<S, V, C>(simd, square, &OF_LOG);
    for c in 0..C {
        for v in 0..V {
            log[c][v] += z[c][v] * value[c][v];
        }
    }
    log
}

/// 2 to the power of numbers up to 0; below -1022 as of -1022.
#[inline(always)]
pub(super) fn exp2<S: Simd, const V: usize, const C: usize>(simd: S, x: Several<S, V, C>) -> Several<S, V, C> {
    let rounder = S::f64s::splat(simd, ROUNDER);
    let (mut rest, mut scale) = (x, x);
    for c in 0..C {
        for v in 0..V {
            let x = x[c][v].max(S::f64s::splat(simd, LEAST));
            let shifted = x + rounder;
            rest[c][v] = x - (shifted - rounder);
            scale[c][v] = S::f64s::from_bits(shifted.to_bits() << 52u32);
        }
    }
    let value = polynomial::<S, V, C>(simd, rest, &OF_EXP);
    for c in 0..C {
        for v in 0..V {
            scale[c][v] *= value[c][v];
        }
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use fearless_simd::{Level, dispatch};
    use proptest::prelude::*;

    #[inline(always)]
    fn each<S: Simd>(simd: S, x: f64, e: f64) -> [f64; 3] {
        let vector = S::f64s::splat(simd, x);
        let [[log]] = log2::<S, 1, 1>(simd, [[vector]]);
        let [[power], [of_vector]] = exp2::<S, 1, 2>(simd, [[log * S::f64s::splat(simd, e)], [vector]]);
        [log, of_vector, power].map(|vector| vector.as_slice()[0])
    }

    fn of(level: Level, x: f64, e: f64) -> [f64; 3] {
        dispatch!(level, simd => each(simd, x, e))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn powers_keep_their_bound(
            x in prop_oneof![
                0.5f64..=1.0, (-300.0f64..0.0).prop_map(f64::exp2), (-40i32..0).prop_map(|i| 1.0 - f64::from(i).exp2()), 1.0f64..1e4
            ],
            e in prop_oneof![0.01f64..12.0, 12.0f64..200.0],
        ) {
            let e = if x > 1.0 { -e } else { e };
            let [log, _, power] = of(Level::new(), x, e);
            prop_assert!((log - x.log2()).abs() <= 4.0 * f64::EPSILON * x.log2().abs().max(1e-300), "log2 {x}: {log}");
            let exact = x.powf(e);
            let t = -e * x.log2();
            if t < 1000.0 {
                prop_assert!((power / exact - 1.0).abs() <= f64::EPSILON * (8.0 + 4.0 * t), "{x}^{e}: {power} and {exact}");
            }
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            if let Some(narrow) = Level::new().as_sse2() {
                prop_assert_eq!(of(Level::Sse2(narrow), x, e)[2].to_bits(), power.to_bits());
            }
        }
    }

    #[test]
    fn at_a_tie_both_integers_give_the_same() {
        let horner = |x: f64| OF_EXP.iter().rev().fold(0.0, |value, c| value * x + c);
        assert_eq!(horner(0.5), 2.0 * horner(-0.5));
    }

    #[test]
    fn the_ends_of_the_range() {
        let level = Level::new();
        assert_eq!(of(level, 1.0, 3.0)[0], 0.0);
        assert_eq!(of(level, 1.0, 3.0)[2], 1.0);
        for (x, exact) in [(-1022.0, f64::MIN_POSITIVE), (-5000.0, f64::MIN_POSITIVE), (0.0, 1.0), (-1.0, 0.5)] {
            assert_eq!(of(level, x, 1.0)[1], exact, "2^{x}");
        }
        let [log, _, power] = of(level, 0.0, 0.25);
        assert!(log < -1000.0 && power > 0.0 && power < 1e-70, "{log} {power}");
    }
}
