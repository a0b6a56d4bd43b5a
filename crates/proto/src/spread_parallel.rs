//! Sums that all cores add up together.

use rayon::prelude::*;
use zeroize::Zeroizing;

/// Below this number of words, other threads would cost more than they save.
const WORTH_IT: usize = 1 << 17;

/// Adds to `words` what `add` makes of the items.
pub(crate) fn add_up<T: Sync>(words: &mut [u64], items: &[T], add: impl Fn(&mut [u64], &[T]) + Sync) {
    if items.len() < 2 || items.len().saturating_mul(words.len()) < WORTH_IT {
        return add(words, items);
    }
    let part = items.len().div_ceil(rayon::current_num_threads());
    let sums = items.par_chunks(part).map(|part| {
        // What a site's masks add up to is as secret as its values.
        let mut sum = Zeroizing::new(vec![0; words.len()]);
        add(&mut sum, part);
        sum
    });
    for sum in sums.collect::<Vec<_>>() {
        words.iter_mut().zip(sum.iter()).for_each(|(w, s)| *w = w.wrapping_add(*s));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_parts_as_in_one() {
        let items: Vec<u64> = (0..1_000u64).map(|i| (u64::MAX / 3).wrapping_mul(i)).collect();
        let add = |words: &mut [u64], items: &[u64]| {
            items.iter().for_each(|item| words.iter_mut().for_each(|w| *w = w.wrapping_sub(*item)));
        };
        for length in [1, 4_096] {
            let (mut a, mut b) = (vec![7; length], vec![7; length]);
            add_up(&mut a, &items, add);
            add(&mut b, &items);
            assert_eq!(a, b);
        }
    }
}
