//! What a process told a person, and what it printed for a program.

use std::time::{Duration, Instant};

use serde_json::Value;
use veilsum_testkit::program::Ended;

/// These texts were told; behind `!` stands one that was not.
pub(crate) fn says(told: &str, texts: &[&str]) {
    for text in texts {
        let (text, holds) = text.strip_prefix('!').map_or((*text, true), |never| (never, false));
        assert_eq!(told.contains(text), holds, "{text:?} in\n{told}");
    }
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn until(limit: Duration, what: &str, mut enough: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !enough() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) trait Told {
    /// It told these texts, whether its lines were folded within them or not; behind `!` stands one that it did not tell.
    fn says(self, texts: &[&str]) -> Self;

    /// The one document that it printed.
    fn json(&self) -> Value;
}

impl Told for Ended {
    fn says(self, texts: &[&str]) -> Self {
        says(&format!("{}\n{}", self.text(), self.unfolded()), texts);
        self
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("one document: {e}: {self:#?}"))
    }
}
