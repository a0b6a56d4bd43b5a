//! A finding: its name, its sentence, its numbers.

use std::collections::BTreeMap;

use serde::Serialize;

/// Something to doubt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    /// Its name, which does not change.
    pub name: &'static str,
    /// One or two sentences for people.
    pub text: String,
    /// The numbers it rests on, by name.
    pub numbers: BTreeMap<String, f64>,
}

impl Warning {
    pub(super) fn new<const N: usize>(name: &'static str, text: String, numbers: [(&str, f64); N]) -> Self {
        Self { name, text, numbers: numbers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }
}
