//! How the contributions of rows are added up: as doubles, or rounded to the steps of a plan and added as integers.
//!
//! With steps the sum is a whole number of them and does not depend on the order of the rows, on batches, threads, or on who
//! computed which part of it (specification, SUM-1). Doubles are for whoever has all rows in one place and no plan.

/// The step of one block of an answer: its entries are whole numbers of 2^-`fraction_bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Step {
    /// Entries of the block.
    pub len: usize,
    /// Fractional bits f; negative where a step is larger than one.
    pub fraction_bits: i32,
}

/// Adding this and taking it away again rounds a number below 2^51 in size to the nearest integer, ties to even.
pub(super) const ROUNDER: f64 = 1.5 * (1u64 << 52) as f64;

/// Steps that one contribution may have: below this the rounding is exact, and no honest contribution comes near (FIX-1).
const MOST: f64 = (1u64 << 51) as f64;

/// Steps that a whole site's entry may have.
const MOST_WHOLE: f64 = (1u64 << 62) as f64;

/// A contribution as a number of steps, of which there are `factor` in one unit; `None` where it is no number or far too large.
#[inline(always)]
pub(super) fn rounded(value: f64, factor: f64) -> Option<i64> {
    let steps = value * factor;
    // The rounded number is in the lowest bits of this sum's representation.
    (steps.abs() <= MOST).then_some((steps + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i64)
}

/// In which form an answer is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    /// Steps in one unit, a power of two, by entry; `None` for doubles.
    factors: Option<Vec<f64>>,
}

impl Form {
    /// Doubles.
    pub(crate) const PLAIN: Self = Self { factors: None };

    /// Whole steps.
    pub(crate) fn steps(steps: &[Step]) -> Self {
        let of = |step: &Step| std::iter::repeat_n(2f64.powi(step.fraction_bits), step.len);
        Self { factors: Some(steps.iter().flat_map(of).collect()) }
    }

    /// The steps in one unit of an entry; `None` for doubles.
    pub(super) fn factor(&self, at: usize) -> Option<f64> {
        self.factors.as_ref().map(|factors| factors[at])
    }

    /// Nothing added up yet, in `width` entries.
    pub(crate) fn nothing(&self, width: usize) -> Sums<'_> {
        match &self.factors {
            None => Sums { form: self, plain: vec![0.0; width], words: Vec::new(), wild: None },
            Some(_) => Sums { form: self, plain: Vec::new(), words: vec![0; width], wild: None },
        }
    }

    /// What a site adds that no single row adds: every entry is rounded once.
    pub(crate) fn whole(&self, values: Vec<f64>) -> Sums<'_> {
        let Some(factors) = &self.factors else { return Sums { plain: values, ..self.nothing(0) } };
        let mut sums = self.nothing(values.len());
        for (at, (value, factor)) in values.into_iter().zip(factors).enumerate() {
            let steps = (value * factor).round_ties_even();
            match steps.abs() <= MOST_WHOLE {
                true => sums.words[at] = steps as i64,
                false => sums.wild = sums.wild.or(Some(at)),
            }
        }
        sums
    }
}

/// Sums of contributions, in one form.
pub(crate) struct Sums<'a> {
    form: &'a Form,
    plain: Vec<f64>,
    words: Vec<i64>,
    /// The first entry that got a contribution which is no number or far too large.
    wild: Option<usize>,
}

impl<'a> Sums<'a> {
    /// Words that were added up elsewhere.
    pub(super) fn of_words(form: &'a Form, words: Vec<i64>) -> Self {
        Self { form, plain: Vec::new(), words, wild: None }
    }

    /// Adds what a row contributes to an entry.
    #[inline(always)]
    pub(crate) fn add(&mut self, at: usize, value: f64) {
        match &self.form.factors {
            None => self.plain[at] += value,
            Some(factors) => match rounded(value, factors[at]) {
                Some(word) => self.words[at] = self.words[at].wrapping_add(word),
                None => self.wild = self.wild.or(Some(at)),
            },
        }
    }

    /// Adds what a row contributes to neighbouring entries, from `first` on.
    #[inline(always)]
    pub(crate) fn add_all(&mut self, first: usize, values: impl IntoIterator<Item = f64>) {
        values.into_iter().enumerate().for_each(|(i, value)| self.add(first + i, value));
    }

    /// Adds what other rows gave.
    pub(super) fn merge(&mut self, other: Self) {
        self.plain.iter_mut().zip(other.plain).for_each(|(sum, value)| *sum += value);
        self.words.iter_mut().zip(other.words).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        self.wild = self.wild.or(other.wild);
    }

    /// The sums as doubles; there are none in steps.
    pub(crate) fn into_plain(self) -> Vec<f64> {
        self.plain
    }

    /// The sums as whole steps; the entry where one is no number or far too large. Doubles have none.
    pub(crate) fn into_words(self) -> Result<Vec<i64>, usize> {
        self.wild.map_or(Ok(self.words), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form(fraction_bits: i32) -> Form {
        Form::steps(&[Step { len: 1, fraction_bits }])
    }

    proptest! {
        /// [SUM-1]: a contribution is rounded to the nearest step, ties to even, whatever came before it.
        #[test]
        fn sum_1_contributions_are_rounded_one_by_one(
            values in proptest::collection::vec(prop_oneof![-1.0f64..=1.0, (-64i64..64).prop_map(|x| x as f64 / 64.0)], 0..200),
            fraction_bits in prop::sample::select(vec![-3i32, 4, 5, 20, 38, 50]),
            at in any::<prop::sample::Index>(),
        ) {
            let form = form(fraction_bits);
            let expected: i64 = values.iter().map(|x| (x * 2f64.powi(fraction_bits)).round_ties_even() as i64).sum();
            let sum = |values: &[f64]| {
                let mut sums = form.nothing(1);
                values.iter().for_each(|x| sums.add(0, *x));
                sums
            };
            let (left, right) = values.split_at(if values.is_empty() { 0 } else { at.index(values.len()) });
            let mut parts = sum(right);
            parts.merge(sum(left));
            prop_assert_eq!(sum(&values).into_words().unwrap(), vec![expected]);
            prop_assert_eq!(parts.into_words().unwrap(), vec![expected]);
        }
    }

    #[test]
    fn contributions_that_are_no_numbers_are_named() {
        for bad in [f64::NAN, f64::INFINITY, -1e300] {
            let form = Form::steps(&[Step { len: 2, fraction_bits: 10 }]);
            let mut sums = form.nothing(2);
            sums.add(0, 1.0);
            sums.add(1, bad);
            assert_eq!(sums.into_words(), Err(1));
            assert_eq!(form.whole(vec![bad, 0.0]).into_words(), Err(0));
        }
        assert_eq!(form(3).whole(vec![2.5 / 8.0]).into_words(), Ok(vec![2]));
    }
}
