//! What becomes of every generated lie, by message and outcome: `known_lies.txt`.

use std::collections::{BTreeMap, BTreeSet};

/// Lies that were told, in one direction: by message and outcome.
pub(crate) struct Found(&'static str, BTreeMap<(String, String), BTreeSet<String>>);

impl Found {
    pub(crate) fn new(direction: &'static str) -> Found {
        Found(direction, BTreeMap::new())
    }

    pub(crate) fn add(&mut self, message: String, outcome: String, lie: String) {
        self.1.entry((message, outcome)).or_default().insert(lie);
    }

    /// Every lie has the outcome that is written down, and no lie is written down that nobody told.
    #[track_caller]
    pub(crate) fn must_be_known(self) {
        let line = |((message, outcome), lies): (&(String, String), &BTreeSet<String>)| {
            let lies: Vec<&str> = lies.iter().map(String::as_str).collect();
            format!("{} | {message} | {outcome} | {}", self.0, lies.join("; "))
        };
        let found: Vec<String> = self.1.iter().map(line).collect();
        let known = include_str!("known_lies.txt").lines().filter(|line| line.split(" | ").next() == Some(self.0));
        let known: Vec<&str> = known.collect();
        known.iter().filter(|line| found.iter().all(|f| f != *line)).for_each(|line| println!("- {line}"));
        found.iter().filter(|line| !known.contains(&&***line)).for_each(|line| println!("+ {line}"));
        assert!(found == known, "another outcome than `known_lies.txt` says: see the lines above");
    }
}
