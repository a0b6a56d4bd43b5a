//! The socket in a party's state folder over which it says how it stands.

use std::{
    fs::{self, Permissions},
    io::{self, ErrorKind, Read, Write},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;

use veilsum_door::make_private_folder;

use crate::error::Failure;

/// The socket in the state folder.
const FILE: &str = "status.sock";
/// What is handed to whoever connects.
pub(super) type Document = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// The name under which a socket is made, before it takes its place with the right mode.
const FRESH: &str = "status.new";
/// How long one who asks may take to read, and an answer may take.
const LIMIT: Duration = Duration::from_secs(2);
/// A roster of 1,000 sites, each with two sentences of 500 characters, takes less.
const MAX_BYTES: u64 = 4 << 20;
/// Where a connection cannot be taken, as without free file descriptors, the next one is tried after so long.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) struct Socket {
    path: PathBuf,
    /// The file that this process made; another one may have taken its place.
    inode: u64,
    closing: Arc<AtomicBool>,
}

impl Socket {
    pub(super) fn open(folder: &Path, document: Document) -> Result<Socket, String> {
        let path = place(folder);
        let told = |e: io::Error| explained(&path, &e);
        make_private_folder(folder).map_err(told)?;
        match UnixStream::connect(&path) {
            Ok(_) => return Err(format!("another process shows itself at {}", path.display())),
            // What a process left that was killed.
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(told(e)),
        }
        let fresh = folder.join(FRESH);
        let _ = fs::remove_file(&fresh);
        let listener = UnixListener::bind(&fresh).map_err(told)?;
        fs::set_permissions(&fresh, Permissions::from_mode(0o600)).map_err(told)?;
        let inode = fs::symlink_metadata(&fresh).map_err(told)?.ino();
        fs::rename(&fresh, &path).map_err(told)?;
        let closing = Arc::new(AtomicBool::new(false));
        let (seen, own) = (closing.clone(), path.clone());
        // A thread of its own answers also where everything else is busy.
        let answering = move || answer(&listener, &document, &seen);
        std::thread::Builder::new().name("status".into()).spawn(answering).map_err(told)?;
        Ok(Socket { path: own, inode, closing })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if ours {
            // Wakes the thread.
            drop(UnixStream::connect(&self.path));
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn answer(listener: &UnixListener, document: &Document, closing: &AtomicBool) {
    loop {
        let stream = listener.accept();
        if closing.load(Ordering::Acquire) {
            return;
        }
        match stream {
            Ok((mut stream, _)) => {
                // One who does not read holds up the next for two seconds, and the run not at all.
                let _ = stream.set_write_timeout(Some(LIMIT));
                let _ = stream.write_all(&document());
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// How the process stands whose state is in `folder`; nothing where none runs there.
///
/// # Errors
/// A [`Failure`] where one runs that may not be asked, or answers something else.
pub fn ask<T: DeserializeOwned>(folder: &Path) -> Result<Option<T>, Failure> {
    let path = place(folder);
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
        Err(e) => {
            let next = "ask as the user under whom the party runs; it is its alone";
            return Err(Failure::input(explained(&path, &e), next));
        }
    };
    let odd = |why: String| {
        let next = "look whether the party runs, with this version of veilsum";
        Failure::input(format!("whoever listens at {} does not say how it stands ({why})", path.display()), next)
    };
    let mut bytes = Vec::new();
    stream.set_read_timeout(Some(LIMIT * 2)).map_err(|e| odd(e.to_string()))?;
    (&stream).take(MAX_BYTES).read_to_end(&mut bytes).map_err(|e| odd(e.to_string()))?;
    // The process ended just now.
    if bytes.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|e| odd(e.to_string()))
}

fn place(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

fn explained(path: &Path, e: &io::Error) -> String {
    // What the standard library says of a path that does not fit `sockaddr_un`.
    if e.kind() == ErrorKind::InvalidInput {
        return format!(
            "the path {} is too long for a Unix-domain socket, which takes some 100 bytes: give a shorter one (--state DIR)",
            path.display()
        );
    }
    format!("{}: {e}", path.display())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::documents::tests::Folder;

    fn board(name: &str) -> Document {
        let text = json!({ "party": name }).to_string();
        Arc::new(move || text.clone().into_bytes())
    }

    fn ask(folder: &Path) -> Result<Option<Value>, Failure> {
        super::ask(folder)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn one_document_a_connection_for_the_owner_alone_and_nothing_is_left() {
        let folder = Folder::new("status");
        let state = folder.0.join("a.state");
        assert_eq!(ask(&state).unwrap(), None);
        let socket = Socket::open(&state, board("a")).unwrap();
        assert_eq!((mode(&state), mode(&place(&state))), (0o700, 0o600));
        for _ in 0..3 {
            assert_eq!(ask(&state).unwrap().unwrap()["party"], "a");
        }
        // Somebody who never reads does not stop the next one.
        let silent = UnixStream::connect(place(&state)).unwrap();
        assert!(ask(&state).unwrap().is_some());
        drop((silent, socket));
        assert!(!place(&state).exists());
        assert_eq!(ask(&state).unwrap(), None);
    }

    #[test]
    fn a_dead_process_s_socket_is_replaced_and_a_living_one_s_is_not() {
        let folder = Folder::new("stale");
        drop(UnixListener::bind(place(&folder.0)).unwrap());
        assert_eq!(ask(&folder.0).unwrap(), None);
        let first = Socket::open(&folder.0, board("first")).unwrap();
        let why = Socket::open(&folder.0, board("second")).map(drop).unwrap_err();
        assert!(why.contains("another process"), "{why}");
        assert_eq!(ask(&folder.0).unwrap().unwrap()["party"], "first");
        drop(first);
        let _second = Socket::open(&folder.0, board("second")).unwrap();
        assert_eq!(ask(&folder.0).unwrap().unwrap()["party"], "second");
    }

    #[test]
    fn what_is_no_status_is_refused() {
        let folder = Folder::new("odd");
        let listener = UnixListener::bind(place(&folder.0)).unwrap();
        let other = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
        assert!(ask(&folder.0).unwrap_err().message.contains("does not say how it stands"));
        other.join().unwrap();
    }
}
