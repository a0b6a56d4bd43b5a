//! How a process is told to stop: from the keyboard, or by its supervisor.

use std::future::Future;

use crate::error::{Code, Failure};

/// Waits until this process is told to stop, and says with which exit code it then ends.
pub async fn told() -> Code {
    let keyboard = async {
        // Where the signal cannot be listened for, it ends the process by itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Code::Interrupted
    };
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        return tokio::select! {
            code = keyboard => code,
            _ = terminate.recv() => Code::Terminated,
        };
    }
    keyboard.await
}

/// The failure of a process that was told to stop, with what to do next.
pub fn failure(code: Code, next: &str) -> Failure {
    let what = if code == Code::Terminated { "told to stop (SIGTERM)" } else { "interrupted" };
    Failure::new(code, what, next)
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
