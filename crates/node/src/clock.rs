//! The time of day.

use std::time::SystemTime;

/// Of this machine's clock.
pub fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
