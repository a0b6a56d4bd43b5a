//! The same work on one core.

/// Adds to `words` what `add` makes of the items.
pub(crate) fn add_up<T: Sync>(words: &mut [u64], items: &[T], add: impl Fn(&mut [u64], &[T]) + Sync) {
    add(words, items);
}

/// How many parts of at least `least` pieces are worth a core each.
pub(crate) fn parts(_pieces: usize, _least: usize) -> usize {
    1
}

/// What `make` gives for every item, in their order.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], _least: usize, make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    items.iter().map(make).collect()
}

/// What `make` gives for all items.
pub(crate) fn in_parts<T: Sync, R: Send>(items: &[T], _least: usize, make: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    vec![make(items)]
}
