//! A role without I/O: letters in, letters out, and nothing happens but within a call.
//!
//! The role is the one that runs over QUIC, with its policy, its journal and its ledger; only the carrier is another
//! ([`Letters`]). It runs in the thread of the caller, and stops where it has nothing to do but wait for a letter or for time to pass.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    task::JoinHandle,
};

use crate::{
    carrier::{Carrier, Letter, Letters, PeerKey},
    error::{Code, Failure},
};

/// A role that is run by whoever carries its letters.
pub struct ByHand<T> {
    runtime: Option<Runtime>,
    letters: Letters,
    running: Option<JoinHandle<Result<T, Failure>>>,
    /// How often the role had nothing to do.
    idle: watch::Receiver<u64>,
}

/// Between two looks at whether there are letters while time passes.
const LOOK: Duration = Duration::from_millis(5);

impl<T: Send + 'static> ByHand<T> {
    /// The role of the party that holds `key`. It has not begun.
    ///
    /// # Errors
    /// A [`Failure`] where the system refuses what a runtime needs.
    pub fn new(key: PeerKey) -> Result<ByHand<T>, Failure> {
        let (times, idle) = watch::channel(0);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || times.send_modify(|times| *times += 1))
            .build()
            .map_err(|e| Failure::new(Code::Internal, e, "check the limits on open files"))?;
        Ok(ByHand { runtime: Some(runtime), letters: Letters::new(key), running: None, idle })
    }

    /// What the role's links run on.
    pub fn carrier(&self) -> Arc<dyn Carrier> {
        Arc::new(self.letters.clone())
    }

    /// Begins; the first letters are out then.
    pub fn begin(&mut self, role: impl Future<Output = Result<T, Failure>> + Send + 'static) -> Vec<Letter> {
        if let Some(runtime) = &self.runtime {
            self.running = Some(runtime.spawn(role));
        }
        self.rest();
        self.letters.take()
    }

    /// Hands in a letter, and gives out those that come of it.
    ///
    /// # Errors
    /// As [`Letters::deliver`].
    pub fn handle(&mut self, letter: &[u8]) -> Result<Vec<Letter>, Failure> {
        if let Some(runtime) = &self.runtime {
            let _within = runtime.enter();
            self.letters.deliver(letter)?;
        }
        self.rest();
        Ok(self.letters.take())
    }

    /// Lets time pass, until there is a letter or `most` is over: whoever is missed is given up only so.
    pub fn wait(&mut self, most: Duration) -> Vec<Letter> {
        let begun = Instant::now();
        loop {
            self.rest();
            let letters = self.letters.take();
            let left = most.saturating_sub(begun.elapsed());
            if !letters.is_empty() || left.is_zero() || self.is_over() {
                return letters;
            }
            if let Some(runtime) = &self.runtime {
                runtime.block_on(async { tokio::time::sleep(left.min(LOOK)).await });
            }
        }
    }

    /// Whether the role has ended.
    pub fn is_over(&self) -> bool {
        self.running.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What the role came to, once, where it has ended.
    pub fn outcome(&mut self) -> Option<Result<T, Failure>> {
        let running = self.running.take_if(|running| running.is_finished())?;
        let ended = self.runtime.as_ref()?.block_on(running);
        Some(ended.unwrap_or_else(|e| Err(Failure::defect(e))))
    }

    /// Runs until there is nothing to do: found twice, because a timer that was due shows only after the first time.
    fn rest(&self) {
        let Some(runtime) = &self.runtime else { return };
        runtime.block_on(async {
            let mut idle = self.idle.clone();
            let seen = *idle.borrow();
            let _ = idle.wait_for(|times| *times >= seen + 2).await;
        });
    }
}

impl<T> Drop for ByHand<T> {
    /// As a crash would: whoever wants a good end carries letters until [`ByHand::is_over`].
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
