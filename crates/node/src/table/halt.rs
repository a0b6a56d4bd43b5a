//! Whether rows are still wanted: whoever has no more use for them says so, and the reader stops at its next batch.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Says it to all that read under it.
#[derive(Clone, Debug, Default)]
pub struct Halt(Arc<AtomicBool>);

impl Halt {
    /// Nobody wants the rows any more.
    pub fn say(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether that was said.
    pub fn is_said(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
