//! The same work on one core.

/// Adds to `words` what `add` makes of the items.
pub(crate) fn add_up<T: Sync>(words: &mut [u64], items: &[T], add: impl Fn(&mut [u64], &[T]) + Sync) {
    add(words, items);
}

/// There is nothing to share.
pub(crate) struct AtWork(());

impl AtWork {
    pub(crate) fn begin() -> Self {
        AtWork(())
    }
}

/// How many parts of at least `least` pieces are worth a core each.
pub(crate) fn parts(_pieces: usize, _least: usize) -> usize {
    1
}

/// The same.
pub(crate) fn most_parts(_pieces: usize, _least: usize) -> usize {
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

/// Changes every item where it is.
pub(crate) fn each<T: Send>(items: &mut [T], _least: usize, change: impl Fn(&mut T) + Sync) {
    items.iter_mut().for_each(change);
}

/// What both give.
pub(crate) fn both<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    (one(), other())
}
