//! Files that a role keeps between processes.

mod hub;
mod journal;
mod transcript;

pub(crate) use hub::HubJournal;
pub use hub::{Counting, HubEntry};
pub use journal::{Entry, Journal};
pub use transcript::{Said, Told, openings_from_bytes, openings_to_bytes};

use std::{
    num::NonZero,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
};

use crate::error::Failure;

/// As many threads of this process compute for long at the same time as there are cores. Of hundreds of parties in one process the network
/// work would otherwise have a hundredth of a core, and their links time out.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(thread::available_parallelism().map_or(1, NonZero::get)));

/// Computes for long, beside the network work of this process where there are other threads for it.
///
/// # Errors
/// A [`Failure`] where the work panicked.
pub(crate) async fn computed<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    if is_alone() {
        return Ok(work());
    }
    let _turn = TURNS.acquire().await;
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(Failure::defect)
}

/// Runs work that waits for a disk or computes for long. Where other threads can take over this thread's network work, they do so
/// meanwhile: a link of which nothing is heard for half a minute is lost.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    if is_alone() { work() } else { tokio::task::block_in_place(work) }
}

/// Whether there is no other thread that could take over.
fn is_alone() -> bool {
    !Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Computes on a frame of so many bytes: [`aside`] where they are many. For few, handing the network over to another thread would
/// cost more than it waits.
pub(crate) async fn aside_from<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= SHORT || is_alone() {
        return work();
    }
    let _turn = TURNS.acquire().await;
    aside(work)
}

/// Bytes of a frame that take a millisecond or two: some hundred signatures, or the keys of a dozen sites.
const SHORT: usize = 16 << 10;

/// What a mutex holds, also after somebody has panicked who held it.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A write that waits for the disk.
pub(crate) type Write<'a> = Box<dyn FnOnce() -> Result<(), Failure> + Send + 'a>;

/// Carries out writes to different files side by side, [`aside`], and comes back when all of them are on disk: a disk takes them
/// in together what it would take one after the other, and their waits do not add up.
///
/// # Errors
/// That of the first one that failed; the others may be on disk.
pub(crate) fn side_by_side(mut writes: Vec<Write<'_>>) -> Result<(), Failure> {
    let Some(own) = writes.pop() else { return Ok(()) };
    let writes: Vec<_> = writes.into_iter().map(|write| Mutex::new(Some(write))).collect();
    let carry_out = |write: &Mutex<Option<Write<'_>>>| held(write).take().map_or(Ok(()), |write| write());
    aside(|| {
        thread::scope(|scope| {
            let begin = |write| thread::Builder::new().spawn_scoped(scope, move || carry_out(write));
            let begun: Vec<_> = writes.iter().map(begin).collect();
            let own = own();
            // Every one is waited for, also behind one that failed.
            let others = begun.into_iter().zip(&writes).map(|(begun, write)| match begun {
                Ok(begun) => begun.join().map_err(|_| Failure::defect("a write to the disk panicked"))?,
                // The system has no thread to spare.
                Err(_) => carry_out(write),
            });
            let others: Vec<_> = others.collect();
            others.into_iter().chain([own]).collect()
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_more_compute_for_long_than_there_are_cores() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        let work = || {
            let now = NOW.fetch_add(1, Ordering::SeqCst) + 1;
            thread::sleep(std::time::Duration::from_millis(2));
            NOW.fetch_sub(1, Ordering::SeqCst);
            now
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let all: Vec<_> = (0..64).map(|_| tokio::spawn(aside_from(SHORT + 1, work))).collect();
        for one in all {
            assert!(one.await.expect("no panic") <= cores);
        }
        let all: Vec<_> = (0..64).map(|_| tokio::spawn(computed(work))).collect();
        for one in all {
            assert!(one.await.expect("no panic").expect("no failure") <= cores);
        }
    }
}
