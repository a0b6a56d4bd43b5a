//! Work that all cores share, with the feature `parallel`; without it there is one. What comes out does not depend on how it was
//! shared.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

#[cfg(feature = "parallel")]
use rayon::{current_num_threads, in_place_scope};
use zeroize::Zeroizing;

#[cfg(not(feature = "parallel"))]
use alone::{current_num_threads, in_place_scope};

/// One core: what is handed to others is done at once.
#[cfg(not(feature = "parallel"))]
mod alone {
    pub(super) struct Scope;

    impl Scope {
        pub(super) fn spawn(&self, work: impl FnOnce(&Scope)) {
            work(self);
        }
    }

    pub(super) fn in_place_scope<R>(work: impl FnOnce(&Scope) -> R) -> R {
        work(&Scope)
    }

    pub(super) fn current_num_threads() -> usize {
        1
    }
}

/// Below this number of words, other threads would cost more than they save.
const WORTH_IT: usize = 1 << 17;

/// Calls into the core that are at work now, in all threads of the process.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// As long as it lives, its call counts as one that works. Where as many do as there are cores, each keeps to its own: sharing would
/// wake threads for which there is no core.
pub(crate) struct AtWork(());

impl AtWork {
    pub(crate) fn begin() -> Self {
        AT_WORK.fetch_add(1, Ordering::Relaxed);
        AtWork(())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many cores a call may use now.
fn cores() -> usize {
    (current_num_threads() / AT_WORK.load(Ordering::Relaxed).max(1)).max(1)
}

/// What `make` gives for 0 to `count`, in that order. The calling thread works too: it begins at once, while the others wake, and
/// most often needs not be woken itself. Each takes what is next.
fn share<R: Send>(count: usize, make: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    let work = || {
        let next = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count);
        let mut own: Vec<_> = std::iter::from_fn(next).map(|at| (at, make(at))).collect();
        made.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
    };
    in_place_scope(|scope| {
        (1..cores().min(count)).for_each(|_| scope.spawn(|_| work()));
        work();
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, made)| made).collect()
}

/// Adds to `words` what `add` makes of the items.
pub(crate) fn add_up<T: Sync>(words: &mut [u64], items: &[T], add: impl Fn(&mut [u64], &[T]) + Sync) {
    if items.len() < 2 || items.len().saturating_mul(words.len()) < WORTH_IT {
        return add(words, items);
    }
    let length = words.len();
    let sums = in_parts(items, 1, |part| {
        // What a site's masks add up to is as secret as its values.
        let mut sum = Zeroizing::new(vec![0; length]);
        add(&mut sum, part);
        sum
    });
    for sum in sums {
        words.iter_mut().zip(sum.iter()).for_each(|(w, s)| *w = w.wrapping_add(*s));
    }
}

/// How many parts of at least `least` pieces are worth a core each, of those that are free now.
pub(crate) fn parts(pieces: usize, least: usize) -> usize {
    most_parts(pieces, least).min(cores())
}

/// How many they are where nothing else is at work.
pub(crate) fn most_parts(pieces: usize, least: usize) -> usize {
    (pieces / least.max(1)).clamp(1, current_num_threads())
}

/// What `make` gives for every item, in their order; on all cores where there are at least `least` items for each.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], least: usize, make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if parts(items.len(), least) == 1 {
        return items.iter().map(make).collect();
    }
    let pieces: Vec<&[T]> = items.chunks(least.div_ceil(2).max(1)).collect();
    let made = share(pieces.len(), |at| pieces[at].iter().map(&make).collect::<Vec<R>>());
    made.into_iter().flatten().collect()
}

/// What `make` gives for every part of the items, in their order; on all cores where there are at least `least` items for
/// each.
pub(crate) fn in_parts<T: Sync, R: Send>(items: &[T], least: usize, make: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    let length = items.len().div_ceil(parts(items.len(), least)).max(1);
    let parts: Vec<&[T]> = items.chunks(length).collect();
    map(&parts, 1, |part| make(part))
}

/// Changes every item where it is; on all cores where there are at least `least` items for each.
pub(crate) fn each<T: Send>(items: &mut [T], least: usize, change: impl Fn(&mut T) + Sync) {
    let parts = parts(items.len(), least);
    let size = items.len().div_ceil(parts).max(1);
    let change = |part: &mut [T]| part.iter_mut().for_each(&change);
    if parts == 1 {
        return change(items);
    }
    in_place_scope(|scope| {
        let mut parts = items.chunks_mut(size);
        let own = parts.next();
        parts.for_each(|part| scope.spawn(|_| change(part)));
        own.into_iter().for_each(change);
    });
}

/// What both give, side by side.
pub(crate) fn both<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    if cores() == 1 {
        return (one(), other());
    }
    let mut second = None;
    let first = in_place_scope(|scope| {
        scope.spawn(|_| second = Some(other()));
        one()
    });
    (first, second.expect("a scope ends after what it began"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept() {
        shared_or_not();
        let _busy: Vec<_> = (0..1_000).map(|_| AtWork::begin()).collect();
        assert_eq!((parts(1_000, 1), cores()), (1, 1));
        shared_or_not();
    }

    fn shared_or_not() {
        assert_eq!(both(|| 1, || 2), (1, 2));
        let items: Vec<u64> = (0..1_000).collect();
        assert_eq!(map(&items, 1, |i| 2 * i), items.iter().map(|i| 2 * i).collect::<Vec<_>>());
        assert_eq!(in_parts(&items, 1, <[u64]>::to_vec).concat(), items);
        let mut changed = items.clone();
        each(&mut changed, 1, |i| *i += 1);
        assert!(changed.iter().zip(&items).all(|(changed, i)| *changed == i + 1));
        assert_eq!(in_parts(&items, 1_001, <[u64]>::len), [1_000]);
        assert!(in_parts(&items[..0], 1, <[u64]>::len).is_empty());
    }
}
