//! The file of events: one JSON document a line, as `docs/src/events.schema.json` says.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
    sync::{Mutex, PoisonError},
};

use serde::Serialize;
use serde_json::json;
use veilsum_node::{clock::since_1970, error::Failure, role::progress::Progress};

/// The form of a line.
pub(crate) const FORMAT: &str = "veilsum-events/1";

/// A file that events are added to. A line is a few hundred bytes into the system's own memory, so a run does not wait for a disk.
pub(crate) struct Events(Mutex<Kept<File>>);

struct Kept<W> {
    file: W,
    /// Events that could not be written since the last one that could, which may have cut off a line.
    left_out: u64,
    /// Its operator knows.
    told: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    format: &'static str,
    at: f64,
    #[serde(flatten)]
    progress: &'a Progress,
}

impl Events {
    /// The file at its end, which is made where there is none; its owner's alone.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Events, Failure> {
        let opened = open(path).map_err(|e| {
            let next = "choose another place, or make this one writable; nothing has been sent yet";
            Failure::input(format!("--events: {} cannot be written ({e})", path.display()), next)
        })?;
        Ok(Events(Mutex::new(Kept::new(opened))))
    }

    /// Adds an event. Where that fails the run goes on, and a warning says so once.
    pub(crate) fn add(&self, progress: &Progress) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(progress);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

impl<W: Write> Kept<W> {
    fn new(file: W) -> Kept<W> {
        Kept { file, left_out: 0, told: false }
    }

    fn add(&mut self, progress: &Progress) {
        let at = since_1970().as_millis() as f64 / 1e3;
        let mut text = String::new();
        if self.left_out > 0 {
            let gap = json!({ "format": FORMAT, "at": at, "event": "left-out", "count": self.left_out });
            text = format!("\n{gap}\n");
        }
        // Text and numbers always have a JSON form.
        text += &serde_json::to_string(&Line { format: FORMAT, at, progress }).unwrap_or_default();
        text.push('\n');
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => self.left_out = 0,
            Err(why) => {
                self.left_out += 1;
                if !std::mem::replace(&mut self.told, true) {
                    tracing::warn!("events cannot be written ({why}); the run goes on, and later ones are tried");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many bytes.
    struct Disk {
        held: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.room - self.held.len());
            self.held.extend_from_slice(&bytes[..fits]);
            if fits == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(fits) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a full disk leaves out is counted, and a line that it cut off spoils none after it.
    #[test]
    fn a_full_disk_leaves_events_out_and_says_how_many() {
        let mut kept = Kept::new(Disk { held: Vec::new(), room: 250 });
        for number in 1..=8 {
            kept.add(&Progress::Answered { number });
        }
        assert!(kept.left_out > 3 && kept.told);
        let left_out = kept.left_out;
        kept.file.room = 10_000;
        kept.add(&Progress::Ended);
        let text = String::from_utf8(kept.file.held.clone()).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let [.., gap, last] = &lines[..] else { panic!("{text}") };
        assert_eq!((&gap["event"], &gap["count"]), (&json!("left-out"), &json!(left_out)));
        assert_eq!((&last["event"], &last["format"]), (&json!("ended"), &json!(FORMAT)));
        assert_eq!(lines.len() as u64 + left_out, 8 + 2);
    }
}
