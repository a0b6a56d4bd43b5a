//! Disks that fail: a library before the C library's own, for the processes that [`start_in`](crate::program::start_in) starts.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// What a disk says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no space left.
    Full = 28,
    /// It is broken.
    Broken = 5,
    /// It is mounted for reading alone.
    ReadOnly = 30,
}

/// All of them.
pub const ALL: [Fault; 3] = [Fault::Full, Fault::Broken, Fault::ReadOnly];

static LIBRARY: OnceLock<PathBuf> = OnceLock::new();

/// From now on the disks of processes can be made to fail.
///
/// # Panics
/// Where there is no C compiler.
pub fn prepare() {
    LIBRARY.get_or_init(|| {
        let name = format!("veilsum-faults-{}", std::process::id());
        let [source, library] = ["c", "so"].map(|ending| std::env::temp_dir().join(format!("{name}.{ending}")));
        std::fs::write(&source, include_str!("faults.c")).expect("a source");
        let made =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]).arg("-ldl").status();
        assert!(made.expect("a C compiler").success());
        let _ = std::fs::remove_file(source);
        library
    });
}

/// What a command needs whose disk may fail, in this folder.
pub(crate) fn environment(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let of = |library: &PathBuf| vec![("LD_PRELOAD", library.clone()), ("FAULTS", folder.join(".faults"))];
    LIBRARY.get().map_or(Vec::new(), of)
}

/// The disk below this folder fails after so many changes that go well, until it is dropped.
pub struct Failing {
    control: PathBuf,
    number: u64,
}

impl Failing {
    /// # Panics
    /// Where the folder cannot be written to.
    pub fn new(folder: &Path, fault: Fault, after: u64) -> Failing {
        static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let control = folder.join(".faults");
        std::fs::write(folder.join(".faults.new"), format!("{} {after} {number}", fault as i32))
            .expect("a control file");
        std::fs::rename(folder.join(".faults.new"), &control).expect("a control file");
        Failing { control, number }
    }

    /// What failed so far, a change a line.
    pub fn hit(&self) -> Vec<String> {
        let all = std::fs::read_to_string(self.control.with_file_name(".faults.hit")).unwrap_or_default();
        let begins = format!("{} ", self.number);
        all.lines().filter_map(|line| line.strip_prefix(&begins)).map(str::to_owned).collect()
    }

    /// Whether anything failed within this time.
    pub fn hits_within(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while self.hit().is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        !self.hit().is_empty()
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.control);
    }
}
