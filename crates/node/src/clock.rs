//! Processor time: what a computation costs, however busy the machine is beside it; and the time of day.

use std::time::{Duration, SystemTime};

/// Of this machine's clock.
pub fn seconds_since_1970() -> u64 {
    since_1970().as_secs()
}

/// The same to the finest part that the clock has.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// A reading of the clock of this process.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime(Duration);

impl CpuTime {
    /// Processor time of all threads of this process so far; time on the wall where the system does not tell, or without the feature
    /// `cpu-clock`.
    pub fn now() -> CpuTime {
        CpuTime(read())
    }

    /// What was spent since.
    pub fn elapsed(self) -> Duration {
        read().saturating_sub(self.0)
    }
}

#[cfg(all(unix, feature = "cpu-clock"))]
fn read() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(t.tv_sec).unwrap_or(0), u32::try_from(t.tv_nsec).unwrap_or(0))
}

#[cfg(not(all(unix, feature = "cpu-clock")))]
fn read() -> Duration {
    static BEGUN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGUN.get_or_init(std::time::Instant::now).elapsed()
}
