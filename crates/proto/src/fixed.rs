//! Fixed point in Z_2^64, with the proof that a sum cannot wrap (spec section 7).
//!
//! Only integers here: an entry's bound for one row is a power of two, so the scale is a shift. The caller multiplies
//! floats by 2^f and rounds; this module says which f is safe and which integers are allowed.

use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    limits::{MAX_STEP_BITS, MAX_WORDS, MIN_PRECISION_BITS},
    rule::Rule,
};

/// `len` entries, each of which one row changes by at most 2^`bound_exp` in absolute value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Block {
    /// Number of entries.
    pub len: u32,
    /// Exponent of the bound for one row.
    pub bound_exp: i16,
}

/// The scale of one block: an entry x travels as round(x · 2^`fraction_bits`), of size at most `limit` at one site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Fractional bits f; negative where the unit is larger than one.
    pub fraction_bits: i32,
    /// Largest absolute value of one site's integer; `sites * limit < 2^63` ([FIX-2]).
    pub limit: u64,
}

/// The largest safe scale for `sites` sites of at most `max_rows` rows each ([FIX-1], [FIX-2]).
///
/// The limit is taken for `max_rows + 1` rows: rounding inside a site's own sum may exceed the exact bound by a few
/// units in the last place, and that must not be an error.
///
/// # Errors
/// `Error::Invalid` where the sum could overflow or would keep fewer than the least number of precise bits.
pub fn scale(sites: usize, max_rows: u64, bound_exp: i16) -> Result<Scale, Error> {
    let rows = u128::from(max_rows) + 1;
    let all = rows * sites.max(1) as u128;
    let room = 1u128 << 63;
    // Largest s up to 50 with sites * rows * 2^s < 2^63.
    let bits = (0..=MAX_STEP_BITS).rev().find(|s| all.checked_shl(*s).is_some_and(|v| v < room && v >> s == all));
    let Some(bits) = bits.filter(|bits| *bits >= MIN_PRECISION_BITS) else {
        let why = format!(
            "{sites} sites of up to {max_rows} rows could overflow the sum or leave it under \
             {MIN_PRECISION_BITS} precise bits: lower max_rows"
        );
        return Err(Error::invalid("plan", why, Rule::Fix2));
    };
    Ok(Scale { fraction_bits: bits as i32 - i32::from(bound_exp), limit: (rows << bits) as u64 })
}

impl Scale {
    /// The same with a step of at least 2^-`step_bits` of 2^`bound_exp` ([FIX-4]): what a total says about a row is
    /// counted in steps, so a coarse total says less.
    pub fn capped(self, bound_exp: i16, step_bits: u8) -> Scale {
        let fine = self.fraction_bits + i32::from(bound_exp);
        let cut = (fine - i32::from(step_bits)).max(0);
        Scale { fraction_bits: self.fraction_bits - cut, limit: self.limit >> cut }
    }
}

/// A number of steps in steps 2^`bits` as large, rounded to the nearest, ties to even ([FIX-4]).
pub fn coarser(steps: i64, bits: u32) -> i64 {
    if bits == 0 || bits > 62 {
        return if bits == 0 { steps } else { 0 };
    }
    let (whole, rest, half) = (steps >> bits, steps & ((1 << bits) - 1), 1i64 << (bits - 1));
    whole + i64::from(rest > half || rest == half && whole & 1 == 1)
}

/// Words of a layout.
///
/// # Errors
/// `Error::Invalid` where it is empty or over the limit ([FIX-3]).
pub fn words(layout: &[Block]) -> Result<usize, Error> {
    let n: u64 = layout.iter().map(|b| u64::from(b.len)).sum();
    if n == 0 || n > MAX_WORDS as u64 {
        let why = format!("a vector of {n} words, 1 to {MAX_WORDS} are possible");
        return Err(Error::invalid("plan", why, Rule::Fix3));
    }
    Ok(n as usize)
}

/// A signed entry as a ring element.
pub fn to_ring(v: i64) -> u64 {
    v as u64
}

/// A total as a signed integer; exact because the sum was proved to lie below 2^63.
pub fn from_ring(v: u64) -> i64 {
    v as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sum_never_wraps_and_one_more_bit_could(n in 1usize..1000, rows in 1u64..1 << 30, e in -40i16..40) {
            let s = scale(n, rows, e).unwrap();
            prop_assert!((n as u128) * u128::from(s.limit) < 1 << 63);
            prop_assert!((n as u128) * u128::from(s.limit) * 2 >= 1 << 63 || s.fraction_bits + i32::from(e) == 50);
            prop_assert_eq!(u128::from(s.limit), (u128::from(rows) + 1) << (s.fraction_bits + i32::from(e)));
        }
    }

    /// [FIX-4].
    #[test]
    fn fix_4_whole_steps_are_rounded_to_the_nearest_ties_to_even() {
        for (steps, bits, expected) in
            [(5, 0, 5), (5, 1, 2), (7, 1, 4), (-5, 1, -2), (-7, 1, -4), (6, 2, 2), (-6, 2, -2)]
        {
            assert_eq!(coarser(steps, bits), expected, "{steps} / 2^{bits}");
        }
        assert_eq!((coarser(i64::MAX, 62), coarser(i64::MIN, 62), coarser(i64::MAX, 63)), (2, -2, 0));
    }

    /// [FIX-4].
    #[test]
    fn fix_4_a_coarser_step_keeps_the_rows_that_fit() {
        let fine = scale(20, 150, 3).unwrap();
        let coarse = fine.capped(3, 8);
        assert_eq!((coarse.fraction_bits, coarse.limit), (5, 151 << 8));
        assert_eq!(fine.capped(3, 62), fine);
    }
}
