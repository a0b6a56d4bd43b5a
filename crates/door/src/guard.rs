//! The sum under noise: the bound of every row is enforced in whole numbers, whatever the question and the row are; and the noise that is
//! added to it, which its price alone decides. Rows lie in plain memory, and nothing is called to read one. An answer leaves with the noise
//! that it was charged for, or without any, as its plan has it.
//!
//! A row's vector is multiplied by the plan's factors, so that its norm is at most 1 by the mathematics. Each entry is then a whole
//! number of parts of [`WHOLE`], truncated toward zero, and a row whose squares add up to more than 2^48 counts as nothing. So one
//! row moves the sum by at most 2^24, whatever function of one row computes its vector ([NOI-3]).

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

use rand_core::CryptoRng;
use rayon::prelude::*;
use veilsum_contributions::{Change, Question, Rows};
use veilsum_proto::{Error, Rule, noise, policy::Consent, site::Input};
use zeroize::Zeroizing;

/// Rows that a thread takes at a time.
const CHUNK: usize = 8_192;
/// What an entry of 1 counts as.
pub const WHOLE: i32 = (1 << 24) - 1;
/// How far one row moves the sum at most, in the Euclidean norm, and the square of that.
pub const REACH: u64 = 1 << 24;
const MOST: u64 = REACH * REACH;

/// What a row adds is caught where it panics, so a program cannot be built to abort.
const _: () = assert!(cfg!(panic = "unwind"));

/// The price of an answer, and what follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priced {
    /// What its site's own noise leaves to be said, whatever all others do, in 10^-9 of rho.
    pub nano_rho: u64,
    /// The deviation of that noise, a whole number ([NOI-3]).
    pub deviation: u64,
    /// The largest entry of a site: all its rows, and forty deviations, which are never exceeded ([NOI-4]).
    pub limit: u64,
}

impl Priced {
    /// Of a plan of so many sites with at most `max_rows` each, if a unit has `rows_of_unit`.
    ///
    /// # Errors
    /// As [`deviation_of`], or if a total would not fit.
    pub fn of(nano_rho: u64, rows_of_unit: u64, (sites, max_rows): (usize, u64)) -> Result<Priced, Error> {
        let deviation = deviation_of(nano_rho, rows_of_unit)?;
        let limit = u128::from(max_rows) * u128::from(REACH) + 40 * u128::from(deviation);
        if limit.saturating_mul(sites as u128) >= 1 << 63 {
            return Err(invalid("so many rows and so much noise do not fit into 64 bits: fewer rows, or a larger rho"));
        }
        Ok(Priced { nano_rho, deviation, limit: limit as u64 })
    }
}

/// [NOI-3]: the least whole deviation whose noise costs no more than `nano_rho`, if a unit has so many rows.
///
/// # Errors
/// [`Error::Invalid`] if that is more noise than can be drawn.
pub fn deviation_of(nano_rho: u64, rows_of_unit: u64) -> Result<u64, Error> {
    // A unit moves the vector by this much at most.
    let moved = u128::from(REACH) * u128::from(rows_of_unit);
    let square = moved.checked_pow(2).and_then(|square| square.checked_mul(500_000_000)).filter(|square| *square > 0);
    let square = square.and_then(|square| square.checked_div(u128::from(nano_rho)));
    let deviation = square.and_then(|square| u64::try_from(square.isqrt() + 1).ok());
    deviation.filter(|deviation| *deviation <= noise::MAX_SIGMA).ok_or_else(|| {
        invalid("a question has so little of rho that its noise is more than 2^40: a larger rho, or fewer rounds")
    })
}

fn invalid(why: &str) -> Error {
    Error::Invalid { document: "plan", why: why.into(), rule: Rule::Noi3 }
}

/// Where a sum under noise comes from.
pub enum Source<'a> {
    /// Each of these rows, so changed, adds to these questions, one behind the other.
    Table(Rows<'a>, Option<Change<'a>>, &'a [Question<'a>]),
    /// Rows that each add 1 to some entries: how many to which, and nothing for those that no row adds to. Whoever counted them is trusted that
    /// no row counts twice in one.
    Counts(&'a [Option<u64>]),
    /// Rows in other processes, which are trusted to run [`Source::sum`] on each row once and to add the sums up.
    Elsewhere(&'a mut dyn FnMut() -> Vec<i64>),
}

/// What one row adds, as [`veilsum_contributions::add`] says it.
type Add = dyn Fn(&Question<'_>, &[f64], &mut [f64], &mut [f64]) + Sync;

impl Source<'_> {
    /// The sum; `factors` has one for each entry.
    ///
    /// # Errors
    /// An error, whatever the rows are, if the answer has another length than `factors`, or a row that adds to all entries that it may add to
    /// would count as nothing. A row of another width than the questions counts as nothing.
    pub fn sum(self, factors: &[f64]) -> Result<Vec<i64>, Error> {
        let sum = match self {
            Self::Table(rows, change, questions) => {
                if questions.iter().map(Question::width).sum::<usize>() != factors.len() {
                    return Err(OTHER_LENGTH);
                }
                sum_of(rows, change, questions, factors, &veilsum_contributions::add)
            }
            Self::Counts(counts) => counted(counts, factors)?,
            Self::Elsewhere(sum) => sum(),
        };
        if sum.len() == factors.len() { Ok(sum) } else { Err(OTHER_LENGTH) }
    }

    /// The sum with noise of this deviation, which is drawn before a row is visited.
    ///
    /// # Errors
    /// As [`noise::add`] and [`Source::sum`].
    pub fn noisy(self, factors: &[f64], deviation: u64, key: &noise::Key) -> Result<Vec<u64>, Error> {
        let mut noisy = Zeroizing::new(vec![0; factors.len()]);
        noise::add(&mut noisy, deviation, &mut noise::Stream::new(key))?;
        let sum = self.sum(factors)?;
        Ok(noisy.iter().zip(sum).map(|(noise, sum)| noise.wrapping_add_signed(sum)).collect())
    }
}

/// Consent to one answer. What becomes of it is decided by what was charged: whoever has it can neither leave the noise out nor draw less of
/// it. The randomness is the caller's, who passes the operating system's. That nobody else makes words for the masks, or passes sums from
/// elsewhere, is read in the sources (`tests/layering.rs`).
#[derive(Debug)]
pub struct Granted {
    consent: Consent,
    words: usize,
    /// Deviation of the noise of an answer that was charged.
    deviation: Option<u64>,
}

impl Granted {
    pub(crate) fn new(consent: Consent, words: usize, deviation: Option<u64>) -> Granted {
        Granted { consent, words, deviation }
    }

    /// The answer of a plan with noise: the sum is made here, and its noise is drawn here, fresh, before a row is visited ([NOI-2], [NOI-3]).
    ///
    /// # Errors
    /// `Error::ApiMisuse` if the plan has no noise, or the answer another length.
    pub fn noisy(self, factors: &[f64], source: Source<'_>, rng: &mut dyn CryptoRng) -> Result<Input<'static>, Error> {
        let Some(deviation) = self.deviation else {
            return Err(Error::ApiMisuse("noise in an answer of a plan without noise"));
        };
        let values = source.noisy(factors, deviation, &noise::Key::random(rng))?;
        self.sealed(values)
    }

    /// The answer of an exact plan that its site's operator agreed to.
    ///
    /// # Errors
    /// `Error::ApiMisuse` if the plan has noise, or the answer another length.
    pub fn exact(self, values: Vec<u64>) -> Result<Input<'static>, Error> {
        match self.deviation {
            Some(_) => Err(Error::ApiMisuse("an answer without noise, of a plan with noise [NOI-3]")),
            None => self.sealed(values),
        }
    }

    fn sealed(self, values: Vec<u64>) -> Result<Input<'static>, Error> {
        if values.len() == self.words {
            return Ok(Input::Contribute { consent: self.consent, values });
        }
        Err(Error::ApiMisuse("an answer of another length than was asked for"))
    }
}

const OTHER_LENGTH: Error = Error::ApiMisuse("an answer of another length than its layout");

/// The sum of [`Source::Counts`].
fn counted(counts: &[Option<u64>], factors: &[f64]) -> Result<Vec<i64>, Error> {
    let mut one = vec![0i32; factors.len()];
    let all: Vec<f64> = counts.iter().map(|count| f64::from(u8::from(count.is_some()))).collect();
    if all.len() != factors.len() || !guarded(&all, factors, &mut one) {
        return Err(Error::ApiMisuse("counts that no row may add to"));
    }
    Ok(one.iter().zip(counts).map(|(one, count)| i64::from(*one).wrapping_mul(count.unwrap_or(0) as i64)).collect())
}

fn sum_of(
    rows: Rows<'_>,
    change: Option<Change<'_>>,
    questions: &[Question<'_>],
    factors: &[f64],
    add: &Add,
) -> Vec<i64> {
    let width = factors.len();
    let needed = questions.iter().map(Question::scratch).max().unwrap_or(0);
    let part = |first: usize| {
        let mut sums = vec![0i64; width];
        let (mut x, mut own, mut words) = (vec![0.0; rows.columns], vec![0.0; width], vec![0i32; width]);
        let mut scratch = vec![0.0; needed];
        for row in first..(first + CHUNK).min(rows.len) {
            x.fill(0.0);
            own.fill(0.0);
            let whole = quietly(|| {
                rows.read(row, &mut x);
                change.iter().for_each(|change| change.apply(&mut x));
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
    let firsts: Vec<usize> = (0..rows.len).step_by(CHUNK).collect();
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
    use chacha20::{
        ChaCha20Rng,
        rand_core::{Rng, SeedableRng},
    };

    use veilsum_contributions::{LANES, Lanes};

    use super::*;

    const MOMENTS: Question<'_> = Question::Moments { around: None, d: 1 };
    /// One that works with scratch.
    const DISTANCES: Question<'_> = Question::Distances { centres: &[0.1, 0.4], d: 1, m: 2.0 };

    /// Rows of one column.
    fn groups(rows: &[f64]) -> Vec<Lanes> {
        let group = |rows: &[f64]| Lanes(std::array::from_fn(|at| rows.get(at).copied().unwrap_or(f64::NAN)));
        rows.chunks(LANES).map(group).collect()
    }

    fn moments_of(rows: &[f64], factors: &[f64], add: &Add) -> Vec<i64> {
        sum_of(Rows { groups: &groups(rows), len: rows.len(), columns: 1 }, None, &[MOMENTS], factors, add)
    }

    fn moments(rows: &[f64], factors: &[f64]) -> Vec<i64> {
        moments_of(rows, factors, &veilsum_contributions::add)
    }

    fn unit(dice: &mut ChaCha20Rng) -> f64 {
        f64::from(dice.next_u32()) / 2f64.powi(32)
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
        let mut dice = ChaCha20Rng::seed_from_u64(5);
        for _ in 0..1_000 {
            let (kind, at, size) =
                (dice.next_u32() % 9, dice.next_u32() as usize % 6, 1e9f64.powf(unit(&mut dice) - 0.5));
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
                    7 => (out[at % 2], scratch[at]) = (scratch[at] / 4.0, 1.0),
                    _ => out[at] = 1.0 / f64::from(u8::from(row[0] > 0.0)),
                }
            };
            let rows: Vec<f64> = (0..dice.next_u32() % 20).map(|_| unit(&mut dice) - 0.5).collect();
            let one = unit(&mut dice) - 0.5;
            let [without, with, alone] = [rows.clone(), [rows.clone(), vec![one]].concat(), vec![one]].map(|rows| {
                let groups = groups(&rows);
                let rows = Rows { groups: &groups, len: rows.len(), columns: 1 };
                sum_of(rows, None, &[DISTANCES], &[0.4; 5], &wrong)
            });
            let moved: Vec<i64> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
            assert_eq!(moved, alone, "kind {kind}: another row moved");
            let squares: u128 = moved.iter().map(|x| u128::from(x.unsigned_abs()).pow(2)).sum();
            assert!(squares <= u128::from(MOST), "kind {kind}: {moved:?}");
        }
    }

    /// [NOI-3]: whatever a contribution is, one row more moves the sum by at most 2^24, and a vector that the mathematics allows counts.
    #[test]
    fn noi_3_no_vector_moves_the_sum_farther() {
        let mut dice = ChaCha20Rng::seed_from_u64(6);
        for _ in 0..20_000 {
            let any = |dice: &mut ChaCha20Rng| match dice.next_u32() % 4 {
                0 => f64::from_bits(dice.next_u64()),
                1 => 1.0,
                2 => 3.0 * unit(dice) - 1.5,
                _ => (unit(dice) - 0.5) / 4.0,
            };
            let own: Vec<f64> = (0..1 + dice.next_u32() % 40).map(|_| any(&mut dice)).collect();
            let factor = any(&mut dice).abs();
            let mut words = vec![0; own.len()];
            let taken = guarded(&own, &vec![factor; own.len()], &mut words);
            let squares: u128 = words.iter().map(|word| u128::from(word.unsigned_abs()).pow(2)).sum();
            assert!(!taken || squares <= u128::from(MOST));
            let norm = own.iter().map(|x| x * factor).map(|x| x * x).sum::<f64>().sqrt();
            assert!(taken || norm.is_nan() || norm > 1.0);
        }
    }

    /// [NOI-3]: rows that are counted add no more than others, and what no row may add to is no part of what one adds.
    #[test]
    fn noi_3_a_counted_row_is_bounded() {
        let whole = i64::from(WHOLE);
        let half = whole / 2;
        let sum = |counts: &[Option<u64>], factors: &[f64]| Source::Counts(counts).sum(factors);
        assert_eq!(sum(&[Some(3), Some(2), None], &[0.5, 0.5, 1.0]).unwrap(), [3 * half, 2 * half, 0]);
        assert_eq!(sum(&[Some(3), None, None], &[1.0; 3]).unwrap(), [3 * whole, 0, 0]);
        for bad in [&[1.0, 1.0][..], &[1.5, 0.1], &[f64::NAN, 0.1], &[0.5], &[0.5, 0.5, 0.5]] {
            assert!(sum(&[Some(3), Some(2)], bad).is_err(), "{bad:?}");
        }
    }

    /// What does not fit is an error before a row is visited, with rows and without.
    #[test]
    fn questions_of_another_width_are_an_error() {
        for rows in [&[][..], &[0.5], &[f64::NAN]] {
            let sum = |factors: &[f64]| {
                let groups = groups(rows);
                Source::Table(Rows { groups: &groups, len: rows.len(), columns: 1 }, None, &[MOMENTS]).sum(factors)
            };
            assert!(sum(&[0.5; 2]).is_ok() && sum(&[0.5; 1]).is_err() && sum(&[0.5; 3]).is_err());
        }
    }

    /// A row is changed by the question alone: clipped, shifted, multiplied.
    #[test]
    fn a_row_is_changed_before_it_is_asked() {
        let change = Change { lower: &[0.0], upper: &[1.0], shift: &[0.5], factor: &[2.0] };
        let of = |rows: &[f64], change| {
            let groups = groups(rows);
            let rows = Rows { groups: &groups, len: rows.len(), columns: 1 };
            Source::Table(rows, change, &[MOMENTS]).sum(&[0.5, 0.5]).unwrap()
        };
        assert_eq!(of(&[-7.0, 0.25, 9.0], Some(change)), of(&[-1.0, -0.5, 1.0], None));
        // Bounds that are no interval: the row counts as nothing.
        assert_eq!(of(&[0.5], Some(Change { lower: &[1.0], upper: &[0.0], ..change })), [0, 0]);
    }

    /// [NOI-3], [NOI-4]: noise of a price costs no more than it, and a deviation less would.
    #[test]
    fn noi_3_a_price_has_the_least_deviation() {
        for (nano_rho, rows) in [(1, 1), (4_325, 1), (500_000_000, 1), (500_000_000, 5), (1_000_000_000_000, 1_000)] {
            let priced = Priced::of(nano_rho, rows, (3, 1 << 20)).unwrap();
            let costs = |deviation: u64| {
                let s = REACH as f64 * rows as f64;
                s * s / (2.0 * (deviation as f64).powi(2)) * 1e9
            };
            assert!(costs(priced.deviation) <= nano_rho as f64, "{priced:?}");
            assert!(costs(priced.deviation - 2) > nano_rho as f64 || priced.deviation < 1 << 20, "{priced:?}");
        }
        let priced = |nano_rho, rows_of_unit, form| Priced::of(nano_rho, rows_of_unit, form);
        for bad in [
            priced(0, 1, (3, 1 << 20)),
            priced(1, 1_000, (3, 1 << 20)),
            priced(1_000, 1, (1_000, 1 << 40)),
            priced(1_000_000_000, 0, (3, 1 << 20)),
            priced(u64::MAX, u64::MAX, (3, 1 << 20)),
        ] {
            assert_eq!(bad.unwrap_err().rule(), Some(Rule::Noi3));
        }
    }
}
