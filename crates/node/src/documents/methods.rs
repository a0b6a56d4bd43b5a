//! Names of methods in `site.toml`.

use serde::{Deserialize, Deserializer, de::Error};
use veilsum_cluster::algorithm::ALGORITHMS;

/// Names of methods: one that there is none of would refuse every plan.
pub(super) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let names = Option::<Vec<String>>::deserialize(from)?;
    match names.iter().flatten().find(|name| !ALGORITHMS.iter().any(|about| about.name == **name)) {
        None => Ok(names),
        Some(unknown) => {
            let known: Vec<String> = ALGORITHMS.iter().map(|about| format!("`{}`", about.name)).collect();
            Err(D::Error::custom(format!("unknown method `{unknown}`, expected one of {}", known.join(", "))))
        }
    }
}
