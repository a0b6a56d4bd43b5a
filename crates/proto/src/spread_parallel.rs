//! Work that all cores share. What comes out does not depend on how it was shared.

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

/// How many parts of at least `least` pieces are worth a core each.
pub(crate) fn parts(pieces: usize, least: usize) -> usize {
    (pieces / least.max(1)).clamp(1, rayon::current_num_threads())
}

/// What `make` gives for every item, in their order; on all cores where there are at least `least` items for each.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], least: usize, make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    match parts(items.len(), least) {
        1 => items.iter().map(make).collect(),
        _ => items.par_iter().map(&make).collect(),
    }
}

/// What `make` gives for every part of the items, in their order; on all cores where there are at least `least` items for
/// each.
pub(crate) fn in_parts<T: Sync, R: Send>(items: &[T], least: usize, make: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    match parts(items.len(), least) {
        1 => vec![make(items)],
        parts => items.par_chunks(items.len().div_ceil(parts)).map(&make).collect(),
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

    #[test]
    fn order_is_kept() {
        let items: Vec<u64> = (0..1_000).collect();
        assert_eq!(map(&items, 1, |i| 2 * i), items.iter().map(|i| 2 * i).collect::<Vec<_>>());
        assert_eq!(in_parts(&items, 1, <[u64]>::to_vec).concat(), items);
        assert_eq!(
            (in_parts(&items, 1_001, <[u64]>::len), in_parts(&items[..0], 1, <[u64]>::len)),
            (vec![1_000], vec![0])
        );
    }
}
