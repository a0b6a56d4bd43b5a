//! The sum under noise: the bound of every row is enforced in whole numbers, whatever the question and the row are.
//!
//! A row's vector is multiplied by the plan's factors, so that its norm is at most 1 by the mathematics. Each entry is then a whole
//! number of parts of [`WHOLE`], truncated toward zero, and a row whose squares add up to more than [`MOST`] counts as nothing. So one
//! row moves the sum by at most 2^24, and what computes its vector need not be trusted ([NOI-6]).

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

use rayon::prelude::*;
use veilsum_contributions::Question;

use crate::Packed;
use crate::packed::read;

/// Rows that a thread takes at a time.
const CHUNK: usize = 8_192;
/// What an entry of 1 counts as.
pub const WHOLE: i32 = (1 << 24) - 1;
/// How far one row moves the sum at most, in the Euclidean norm, and the square of that.
pub const REACH: u64 = 1 << 24;
const MOST: u64 = REACH * REACH;

/// What a row adds is caught where it panics, so a program cannot be built to abort.
const _: () = assert!(cfg!(panic = "unwind"));

/// The sum over all rows of these questions, one behind the other; `factors` has one for each entry. What one row adds `add` says, as
/// [`veilsum_contributions::add`].
pub(crate) fn sum(
    rows: &Packed,
    questions: &[Question<'_>],
    factors: &[f64],
    add: impl Fn(&Question<'_>, &[f64], &mut [f64], &mut [f64]) + Sync,
) -> Vec<i64> {
    let width = factors.len();
    let part = |first: usize| {
        let mut sums = vec![0i64; width];
        let (mut x, mut own, mut words) = (vec![0.0; rows.columns()], vec![0.0; width], vec![0i32; width]);
        let mut scratch = vec![0.0; questions.iter().map(Question::scratch).max().unwrap_or(0)];
        for row in first..(first + CHUNK).min(rows.len()) {
            read(rows.lanes(), row, &mut x);
            own.fill(0.0);
            let whole = quietly(|| {
                let mut rest = own.as_mut_slice();
                for question in questions {
                    let (out, next) = rest.split_at_mut(question.width());
                    scratch.fill(0.0);
                    add(question, &x, &mut scratch, out);
                    rest = next;
                }
            });
            let taken = i64::from(guarded(&own, factors, &mut words) & whole);
            sums.iter_mut().zip(&words).for_each(|(sum, word)| *sum += i64::from(*word) & -taken);
        }
        sums
    };
    let firsts: Vec<usize> = (0..rows.len()).step_by(CHUNK).collect();
    let both = |mut a: Vec<i64>, b: Vec<i64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    firsts.into_par_iter().map(part).reduce(|| vec![0; width], both)
}

/// Whether this came to its end. What a panic would print could hold numbers of a row, so it prints nothing.
fn quietly(work: impl FnOnce()) -> bool {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let ended = panic::catch_unwind(AssertUnwindSafe(work)).is_ok();
    QUIET.set(false);
    ended
}

/// Squares that fit together into 64 bits, if each entry is at most 1.
const TOGETHER: usize = 1 << 15;

/// The row's whole numbers, and whether it may count. The work does not depend on what the values are.
fn guarded(own: &[f64], factors: &[f64], words: &mut [i32]) -> bool {
    let mut usable = true;
    for ((word, x), factor) in words.iter_mut().zip(own).zip(factors) {
        let scaled = x * factor;
        usable &= scaled.abs() <= 1.0;
        *word = (scaled * f64::from(WHOLE)) as i32;
    }
    let square = |word: &i32| u64::from(word.unsigned_abs()).pow(2);
    let of = |words: &[i32]| words.iter().map(square).fold(0, u64::wrapping_add);
    usable & (words.chunks(TOGETHER).map(of).fold(0, u64::saturating_add) <= MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use proptest::prelude::*;

    const MOMENTS: Question<'_> = Question::Moments { around: None, d: 1 };

    fn moments(rows: &[f64], factors: &[f64]) -> Vec<i64> {
        sum(&Packed::of(rows, 1), &[MOMENTS], factors, veilsum_contributions::add)
    }

    /// What is no number, too large in one entry or in all of them counts as nothing, and no other row is touched.
    #[test]
    fn a_row_that_is_too_long_counts_as_nothing() {
        let whole = i64::from(WHOLE);
        assert_eq!(moments(&[0.5, -0.5, 0.25], &[0.5, 0.5]), [3 * (whole / 2), whole / 8]);
        for bad in [f64::NAN, f64::INFINITY, 3.0, -3.0, 1e300, 1.99] {
            assert_eq!(moments(&[0.5, bad], &[0.5, 0.5]), moments(&[0.5], &[0.5, 0.5]), "{bad}");
        }
        assert_eq!(moments(&[1.0], &[f64::MAX, 1.0]), [0, 0]);
    }

    /// [NOI-3]: a thousand contributions that are wrong, each in its own way: one row more moves the sum by at most 2^24, no other row by
    /// anything, and what is right of the others stays.
    #[test]
    fn noi_3_wrong_contributions_move_the_sum_no_farther() {
        let mut stream = Stream::new(5, b"veilsum test stream     ");
        for _ in 0..1_000 {
            let (kind, at, size) = (stream.below(8), stream.below(3) as usize, 1e9f64.powf(stream.unit() - 0.5));
            let wrong = move |question: &Question<'_>, row: &[f64], scratch: &mut [f64], out: &mut [f64]| {
                veilsum_contributions::add(question, row, scratch, out);
                match kind {
                    0 => out.iter_mut().for_each(|x| *x *= 100.0),
                    1 => out[at % 2] = f64::NAN,
                    2 => out[at % 2] = f64::NEG_INFINITY,
                    3 => out[at] = 1.0,
                    4 => panic!("{row:?}"),
                    5 => out.iter_mut().for_each(|x| *x += size),
                    6 => out[at % 2] = -size * row[0],
                    _ => scratch[at] = 1.0,
                }
            };
            let rows: Vec<f64> = (0..stream.below(20)).map(|_| stream.unit() - 0.5).collect();
            let one = stream.unit() - 0.5;
            let of = |rows: &[f64]| sum(&Packed::of(rows, 1), &[MOMENTS], &[0.7, 0.7], wrong);
            let [without, with, alone] =
                [rows.clone(), [rows.clone(), vec![one]].concat(), vec![one]].map(|rows| of(&rows));
            let moved: Vec<i64> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
            assert_eq!(moved, alone, "kind {kind}: another row moved");
            let squares: u128 = moved.iter().map(|x| u128::from(x.unsigned_abs()).pow(2)).sum();
            assert!(squares <= u128::from(MOST), "kind {kind}: {moved:?}");
        }
    }

    proptest! {
        /// [NOI-6]: whatever a contribution is, one row more moves the sum by at most 2^24.
        #[test]
        fn noi_6_no_vector_moves_the_sum_farther(
            own in proptest::collection::vec(prop_oneof![-1.5f64..1.5, any::<f64>(), Just(1.0)], 1..40),
            factor in prop_oneof![Just(1.0), 0.0f64..2.0, any::<f64>()],
        ) {
            let mut words = vec![0; own.len()];
            let taken = guarded(&own, &vec![factor; own.len()], &mut words);
            let squares: u128 = words.iter().map(|word| u128::from(word.unsigned_abs()).pow(2)).sum();
            prop_assert!(!taken || squares <= u128::from(MOST));
            // A vector that the mathematics allows counts.
            let norm = own.iter().map(|x| x * factor).map(|x| x * x).sum::<f64>().sqrt();
            prop_assert!(taken || norm.is_nan() || norm > 1.0);
        }
    }
}
