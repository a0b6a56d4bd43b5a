//! Bytes as people write them: `#[serde(with = "size")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The least that streaming works with.
const LEAST_MEMORY: u64 = 64 << 20;

const SIZES: [(&str, u64); 6] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];

pub(super) fn serialize<S: Serializer>(bytes: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    bytes.map(shown).serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    bytes_of(&String::deserialize(from)?).map(Some).map_err(D::Error::custom)
}

fn bytes_of(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("rows.memory is a size such as \"512 MiB\" or \"4 GiB\", and at least {}", shown(LEAST_MEMORY));
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let (_, unit) = SIZES.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit)).ok_or_else(wrong)?;
    if bytes < LEAST_MEMORY { Err(wrong()) } else { Ok(bytes) }
}

/// A size in words.
pub(crate) fn shown(bytes: u64) -> String {
    let fits = SIZES.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    let (name, unit) = fits.unwrap_or(&("bytes", 1));
    format!("{} {name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes) in [("512 MiB", 512 << 20), ("4GiB", 4 << 30), ("100 MB", 100_000_000)] {
            assert_eq!(bytes_of(text), Ok(bytes));
            assert_eq!(bytes_of(&shown(bytes)), Ok(bytes));
        }
        for text in
            ["", "512", "MiB", "-1 GiB", "1 MiB", "9 PB", "99999999999999999999 GiB", "18446744073709551615 GiB"]
        {
            assert!(bytes_of(text).is_err(), "{text}");
        }
    }
}
