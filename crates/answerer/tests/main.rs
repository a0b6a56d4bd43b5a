//! Answerers that keep to the contract, and those that do not: each a process.

mod example;
mod faulty;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use veilsum_answerer::Launch;

/// Lines of standard error.
type Said = Arc<Mutex<Vec<String>>>;

fn launch(command: &[&str], limit: Duration) -> (Launch, Said) {
    let said = Said::default();
    let heard = said.clone();
    let log = Arc::new(move |line: &str| heard.lock().unwrap().push(line.to_owned()));
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    (Launch { command, limit, start: Duration::from_secs(30), log }, said)
}

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn fresh() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("veilsum-answerer-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
