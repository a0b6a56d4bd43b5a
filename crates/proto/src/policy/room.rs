//! The release rule in integers: how much may be given away about one data set (spec section 11.1, [POL-9]).
//!
//! Exact totals are equations on the rows. A party that has about as many of them as the rows have values can solve
//! them for the rows. A site therefore adds up everything that it ever released about the same rows and stops well
//! before. The rule is a tripwire and no proof: it says nothing about an outlier, about side knowledge, or about
//! centres that somebody placed.

/// Fractional bits of the logarithms here.
const SHIFT: u32 = 40;
/// One bit.
const ONE: i128 = 1 << SHIFT;
/// log2(e), rounded down and up.
const LOG2_E: (i128, i128) = (1_586_259_972_792, 1_586_259_972_793);
/// log2(2 pi) / 2, rounded down and up.
const HALF_LOG2_2PI: (i128, i128) = (1_457_675_412_678, 1_457_675_412_679);
/// Rows and domains beyond this count as this many: the logarithms stay exact to a few bits.
const LARGEST: u64 = 1 << 40;

/// What may be released on `rows` rows, all releases together; and in the same units what was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Room {
    /// Numbers: a quarter of the rows' values, or of the domain's. The rank of smooth questions counts twice.
    pub scalars: u64,
    /// Thousandths of a bit: half of what is unknown about the rows.
    pub milli_bits: u64,
}

/// The release rule's numbers for `rows` rows of `columns` columns, each worth `bits` bits, or drawn from `domain` possible
/// rows: whichever is less.
pub fn room(rows: u64, columns: u32, bits: u32, domain: Option<u64>) -> Room {
    let values = rows.saturating_mul(u64::from(columns));
    let (n, mut unknown) = (rows.min(LARGEST), continuous(rows.min(LARGEST), columns, bits));
    let mut scalars = values;
    if let Some(domain) = domain {
        unknown = unknown.min(multisets(n, domain.min(LARGEST)));
        scalars = scalars.min(domain);
    }
    Room { scalars: scalars / 4, milli_bits: u64::try_from((unknown / 2).max(0) * 1000 / ONE).unwrap_or(u64::MAX) }
}

/// N F b - log2(N!): what is unknown about N rows in no order, at b bits a value. Where there are about as many rows as
/// values that a row can have, rows repeat and the formula counts too little; then their multisets are counted.
fn continuous(n: u64, columns: u32, bits: u32) -> i128 {
    let row = u64::from(columns) * u64::from(bits);
    let plain = i128::from(n) * i128::from(row) * ONE - log2_factorial(n).1;
    if row < 40 { plain.max(multisets(n, 1 << row)) } else { plain }
}

/// log2 binom(n + d - 1, n): multisets of n rows out of d possible ones. From below.
fn multisets(n: u64, d: u64) -> i128 {
    if n == 0 || d == 0 {
        return 0;
    }
    log2_factorial(n + d - 1).0 - log2_factorial(n).1 - log2_factorial(d - 1).1
}

/// log2(n!) from below and above, by Stirling's series with Robbins' bounds (Amer. Math. Monthly 62, 1955).
fn log2_factorial(n: u64) -> (i128, i128) {
    if n < 2 {
        return (0, 0);
    }
    let (low, high) = log2(n);
    let n = i128::from(n);
    (
        n * low - n * LOG2_E.1 + low / 2 + HALF_LOG2_2PI.0 + LOG2_E.0 / (12 * n + 1),
        n * high - n * LOG2_E.0 + high / 2 + 1 + HALF_LOG2_2PI.1 + LOG2_E.1 / (12 * n) + 1,
    )
}

/// log2(n) from below and above, for n > 0: the bits after the point by squaring.
fn log2(n: u64) -> (i128, i128) {
    let whole = 63 - n.leading_zeros();
    let mut x = n << n.leading_zeros();
    let mut fraction = 0i128;
    for _ in 0..SHIFT {
        let square = (u128::from(x) * u128::from(x)) >> 63;
        let bit = square >> 64;
        fraction = 2 * fraction + bit as i128;
        x = (square >> bit) as u64;
    }
    let low = i128::from(whole) * ONE + fraction;
    (low, if n.is_power_of_two() { low } else { low + 1 })
}

/// Thousandths of a bit in a number of `steps` possible values, rounded up.
pub fn milli_bits(steps: u64) -> u64 {
    let bits = log2(steps.max(1)).1 * 1000;
    u64::try_from((bits + ONE - 1) / ONE).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_lie_between_their_bounds() {
        for n in (1..2_000).chain([u64::MAX, 1 << 40, (1 << 40) + 1, 12_345_678_901]) {
            let (low, high) = log2(n);
            let float = (n as f64).log2() * ONE as f64;
            assert!((low as f64 - float).abs() < 1.0 + float * 1e-15, "{n}");
            assert_eq!(high - low, i128::from(!n.is_power_of_two()), "{n}");
        }
        let mut exact = 0.0f64;
        for n in 1..=3_000u64 {
            exact += (n as f64).log2();
            let (low, high) = log2_factorial(n);
            let (low, high) = (low as f64 / ONE as f64, high as f64 / ONE as f64);
            assert!(low - 1e-6 <= exact && exact <= high + 1e-6 && high - low < 0.01, "{n}: {low} {exact} {high}");
        }
        assert_eq!([1, 2, 3, 1 << 20].map(milli_bits), [0, 1_000, 1_585, 20_000]);
    }

    #[test]
    fn multisets_are_counted() {
        // binom(4, 2) = 6, binom(52, 5) = 2,598,960, binom(128, 48).
        for (n, d, log2) in [(2, 3, 6f64.log2()), (5, 48, 2_598_960f64.log2())] {
            let found = multisets(n, d) as f64 / ONE as f64;
            assert!(found <= log2 && log2 - found < 0.02, "{found} {log2}");
        }
        assert_eq!((multisets(7, 1).max(0), multisets(0, 9), multisets(9, 0)), (0, 0, 0));
        // Many rows of one column: the plain formula is below nothing, their multisets are not.
        let (n, bits) = (5_000, 10);
        assert!(i128::from(n * bits) * ONE < log2_factorial(n).1);
        assert!(room(n, 1, 10, None).milli_bits > 1_900_000);
        // Few rows: both say the same.
        let plain = (60_000 * ONE - log2_factorial(3_000).1) / ONE;
        assert!((i128::from(room(3_000, 2, 10, None).milli_bits) / 500 - plain).abs() < 10);
        assert_eq!(room(0, 2, 10, None), Room::default());
        assert!(room(u64::MAX, u32::MAX, 64, None).milli_bits > 0);
    }
}
