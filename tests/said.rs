//! What a process told a person, and what it printed for a program.

use std::time::{Duration, Instant};

use serde_json::Value;
use veilsum_testkit::program::{Ended, Folder, veilsum};

/// A demonstration that leaves its result in the folder `name`. It is without noise, unless it says what it spends.
pub(crate) fn demo(folder: &Folder, name: &str, more: &[&str]) -> Ended {
    let noisy = more.iter().any(|option| option.starts_with("--rho"));
    let exact = if noisy { &[][..] } else { &["--exact"] };
    veilsum(&[&["demo", "--out", &folder.path(name)], exact, more].concat())
}

/// What `veilsum check --json` says of one thing.
pub(crate) fn check<'a>(found: &'a Value, name: &str) -> &'a Value {
    let all = found["checks"].as_array().expect("checks");
    all.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no check {name:?}: {found:#}"))
}

/// Names in a list.
pub(crate) fn strings(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|v| v.as_str().expect("a string")).collect()
}

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
