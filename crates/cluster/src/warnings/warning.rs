//! A finding: its name, its sentence, its numbers.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

/// Something to doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Its name, which does not change.
    pub name: Cow<'static, str>,
    /// One or two sentences for people.
    pub text: String,
    /// The numbers it rests on, by name; one that is not finite is written and read as `null`.
    pub numbers: BTreeMap<String, Option<f64>>,
}

impl Warning {
    pub(super) fn new<const N: usize>(name: &'static str, text: String, numbers: [(&str, f64); N]) -> Self {
        let numbers = numbers.into_iter().map(|(name, value)| (name.to_owned(), Some(value))).collect();
        Self { name: name.into(), text, numbers }
    }
}
