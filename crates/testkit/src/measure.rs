//! What the benches share: statistics over repetitions, and the machine's noise.

use std::time::Duration;

/// Median, smallest and largest of some measurements.
#[derive(Clone, Copy)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of at least one measurement.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut v: Vec<f64> = values.into_iter().collect();
        v.sort_by(f64::total_cmp);
        let median = v.get(v.len() / 2).copied().unwrap_or(f64::NAN);
        let (min, max) = (v.first().copied().unwrap_or(f64::NAN), v.last().copied().unwrap_or(f64::NAN));
        Spread { median, min, max }
    }

    /// With another unit.
    pub fn times(self, factor: f64) -> Spread {
        Spread { median: self.median * factor, min: self.min * factor, max: self.max * factor }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({:.digits$} to {:.digits$})", self.median, self.min, self.max)
    }
}

/// Whether `cargo bench` runs this, and not a test run that only wants to see that it still works.
pub fn for_real() -> bool {
    std::env::args().any(|a| a == "--bench")
}

/// Prints processors and load, and how much a fixed piece of arithmetic varies right now.
pub fn print_machine() {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    let noise = Spread::of((0..30).map(|_| seconds(spin))).times(1e3);
    println!("machine: {cores} processors, load {}, a fixed loop takes {noise:.1} ms", load.join(" "));
}

fn spin() {
    let mut x = 1u64;
    for _ in 0..8_000_000 {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Wall time of `work`.
pub fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let began = std::time::Instant::now();
    std::hint::black_box(work());
    began.elapsed().as_secs_f64()
}

/// Processor time of all threads of this process so far; `None` where the system does not tell.
pub fn cpu() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    let found = Some(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime));
    #[cfg(not(target_os = "linux"))]
    let found = None;
    found.map(|t| Duration::new(t.tv_sec as u64, t.tv_nsec as u32))
}
