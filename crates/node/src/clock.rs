//! The time of day.

use std::time::{Duration, SystemTime};

/// Of this machine's clock.
pub fn seconds_since_1970() -> u64 {
    since_1970().as_secs()
}

/// The same to the finest part that the clock has.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
