//! How a process is told to stop: from the keyboard, or by its supervisor.

use std::{
    future::Future,
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use crate::error::{Code, Failure};

/// The exit code that whoever told this process to stop gave it, once somebody did.
static TOLD: LazyLock<watch::Sender<Option<Code>>> = LazyLock::new(watch::Sender::default);

/// Whether signals belong to the program that this library is a part of.
static LEFT_ALONE: AtomicBool = AtomicBool::new(false);

/// From now on no role listens to signals: they belong to the program that embeds it, which ends a role by dropping it.
pub fn leave_signals_alone() {
    LEFT_ALONE.store(true, Ordering::Release);
}

/// The pause before something is written once more; it doubles up to the other.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long what runs may take to end in good order.
const IN_GOOD_ORDER: Duration = Duration::from_secs(15);

/// Listens from now on, so that a word that comes before a role waits for it is not lost, and does not end the process at once. What
/// has not ended in good order after 15 seconds, or when it is told again, ends all the same. For programs, which call it once, within
/// a tokio runtime.
pub fn listen() {
    let first = signalled();
    tokio::spawn(async {
        let code = first.await;
        TOLD.send_replace(Some(code));
        let _ = tokio::time::timeout(IN_GOOD_ORDER, signalled()).await;
        std::process::exit(code as i32);
    });
}

/// Waits until this process is told to stop, and says with which exit code it then ends.
pub async fn told() -> Code {
    let mut told = TOLD.subscribe();
    let before = async { told.wait_for(Option::is_some).await.ok().and_then(|code| *code) };
    tokio::select! {
        Some(code) = before => code,
        code = signalled() => code,
    }
}

/// The next signal, of those that come once this was called, whenever it is awaited. Where a signal cannot be listened for, it ends the
/// process by itself.
fn signalled() -> impl Future<Output = Code> + Send {
    let alone = LEFT_ALONE.load(Ordering::Acquire);
    let [interrupt, terminate, hangup] = {
        use tokio::signal::unix::{SignalKind, signal};
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
            .map(|kind| (!alone).then(|| signal(kind).ok()).flatten())
    };
    async {
        tokio::select! {
            () = heard(interrupt) => Code::Interrupted,
            () = heard(terminate) => Code::Terminated,
            // Whose terminal or session is gone says goodbye as well.
            () = heard(hangup) => Code::Terminated,
        }
    }
}

async fn heard(signal: Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(mut signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// The failure of a process that was told to stop, with what to do next.
pub fn failure(code: Code, next: &str) -> Failure {
    let what = if code == Code::Terminated { "told to stop" } else { "interrupted" };
    Failure::new(code, what, next)
}

/// Repeats a write, with a pause that doubles from one second to half a minute, for as long as a disk is full or fails; this is said once.
/// For what ends something: nobody waits for it, and it may not be lost.
///
/// # Errors
/// Those of `write` that do not pass by themselves.
pub async fn until_written<T>(mut write: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let (mut pause, mut said) = (FIRST_PAUSE, false);
    loop {
        match write() {
            Err(failure) if failure.code == Code::Storage => {
                if !std::mem::replace(&mut said, true) {
                    tracing::warn!("{}; it is tried again until it can be written", failure.message);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            ended => return ended,
        }
    }
}

/// What `run` comes to, unless this process is told to stop before.
///
/// # Errors
/// Those of `run`, and [`failure`].
pub async fn unless_told<T>(run: impl Future<Output = Result<T, Failure>>, next: &str) -> Result<T, Failure> {
    tokio::select! {
        result = run => result,
        code = told() => Err(failure(code, next)),
    }
}
