//! Sums that one core adds up.

/// Adds to `words` what `add` makes of the items.
pub(crate) fn add_up<T: Sync>(words: &mut [u64], items: &[T], add: impl Fn(&mut [u64], &[T]) + Sync) {
    add(words, items);
}
