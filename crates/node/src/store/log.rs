//! A file that grows at its end: for its owner's eyes alone, cut back to whole entries when it is opened, and on disk before what
//! rests on it leaves. What an entry looks like is its user's: journal, ledger or transcript.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::aside;
use crate::files;

/// An open log.
pub(super) struct Log {
    path: PathBuf,
    pub(super) file: File,
    /// Bytes of whole entries.
    good: u64,
    /// Entries may not be on disk yet.
    dirty: bool,
    /// An entry could not be written, or may not be on disk: nothing may follow it.
    broken: bool,
}

impl Log {
    /// Opens or makes the file, in mode 0600. Its user reads it through [`Log::file`] and then says with [`Log::keep`] where its whole
    /// entries end.
    pub(super) fn open(path: PathBuf) -> io::Result<Log> {
        let new = !path.exists();
        let file = private().truncate(false).open(&path)?;
        if let (true, Some(folder)) = (new, path.parent()) {
            // Its name lasts before anything says that it is there.
            files::sync_folder(folder)?;
        }
        Ok(Log { path, file, good: 0, dirty: false, broken: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// To be read from its beginning, once.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Drops what stands behind the first `good` bytes.
    pub(super) fn keep(&mut self, good: u64) -> io::Result<()> {
        if self.file.metadata()?.len() > good {
            self.file.set_len(good)?;
        }
        self.file.seek(SeekFrom::Start(good))?;
        self.good = good;
        Ok(())
    }

    /// Adds a whole entry. It is on disk after the next [`Log::sync`].
    pub(super) fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("an entry could not be written before"));
        }
        if let Err(error) = self.file.write_all(entry) {
            // A part of the entry may stand there; nothing may follow it.
            self.broken = true;
            let _ = self.file.set_len(self.good);
            return Err(error);
        }
        self.good += entry.len() as u64;
        self.dirty = true;
        Ok(())
    }

    /// Waits until everything so far is on disk. Whether anything was not.
    pub(super) fn sync(&mut self) -> io::Result<bool> {
        let synced = match (self.broken, self.dirty) {
            (_, false) => return Ok(false),
            (true, true) => Err(io::Error::other("an entry was lost")),
            (false, true) => self.file.sync_data(),
        };
        // What the system lost of it cannot be told.
        self.broken |= synced.is_err();
        self.dirty = synced.is_err();
        synced.map(|()| true)
    }

    /// What rests on the last entries could not be written: nothing more may follow.
    pub(super) fn give_up(&mut self) {
        (self.broken, self.dirty) = (true, true);
    }

    /// Adds an entry, and waits until it is on disk.
    pub(super) fn add(&mut self, entry: &[u8]) -> io::Result<()> {
        aside(|| self.append(entry).and_then(|()| self.sync()).map(drop))
    }

    /// Replaces everything by `bytes`, durably: the new file is complete on disk before it takes the old one's name. Of the old
    /// bytes at most `wiped` are overwritten; on a disk that copies on write they may live on.
    pub(super) fn replace(&mut self, bytes: &[u8], wiped: u64) -> io::Result<()> {
        aside(|| {
            let fresh = self.path.with_added_extension("new");
            let mut file = private().truncate(true).open(&fresh)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&fresh, &self.path)?;
            let mut old = std::mem::replace(&mut self.file, file);
            (self.good, self.dirty, self.broken) = (bytes.len() as u64, false, false);
            if let Some(folder) = self.path.parent() {
                // The rename itself must survive a power cut. Not every system lets a folder be opened; then it is left to it.
                if let Ok(folder) = File::open(folder) {
                    folder.sync_all()?;
                }
            }
            let length = old.metadata()?.len().min(wiped);
            old.seek(SeekFrom::Start(0))?;
            io::copy(&mut io::repeat(0).take(length), &mut old)?;
            old.sync_data()
        })
    }
}

/// Why a lock is not to be had.
pub(super) enum NoLock {
    /// Another process holds it, and says this of itself.
    Held(String),
    /// The disk or its permissions.
    Io(io::Error),
}

/// Takes the lock at `path`, for as long as the file that is returned stays open, and writes into it who has it.
pub(super) fn lock(path: &Path, who: &str) -> Result<File, NoLock> {
    let mut lock = private().truncate(false).open(path).map_err(NoLock::Io)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut who = String::new();
            // Whatever stands there is shown, if it is what another process of ours wrote.
            let _ = lock.take(128).read_to_string(&mut who);
            let plain = who.lines().next().filter(|line| line.chars().all(|c| c.is_ascii_graphic() || c == ' '));
            let who = plain.filter(|line| !line.is_empty()).unwrap_or("which did not say who it is");
            return Err(NoLock::Held(who.to_owned()));
        }
        Err(TryLockError::Error(source)) => return Err(NoLock::Io(source)),
    }
    lock.set_len(0).and_then(|()| lock.write_all(who.as_bytes())).map_err(NoLock::Io)?;
    Ok(lock)
}

/// Makes the folder, in mode 0700, where it is missing.
pub(super) fn make_private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A file that is made in mode 0600, to be read and written.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    #[test]
    fn a_torn_end_is_dropped_and_what_follows_stands_behind_whole_entries() {
        let folder = Folder::new("log");
        let path = folder.0.join("a.log");
        let mut log = Log::open(path.clone()).unwrap();
        log.keep(0).unwrap();
        log.add(b"one").unwrap();
        log.append(b"tw").unwrap();
        assert!(log.sync().unwrap() && !log.sync().unwrap());
        let mut log = Log::open(path.clone()).unwrap();
        log.keep(3).unwrap();
        log.add(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"onetwo");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
    }

    #[test]
    fn nothing_follows_an_entry_that_was_lost_until_all_is_replaced() {
        let folder = Folder::new("log-lost");
        let mut log = Log::open(folder.0.join("a.log")).unwrap();
        log.keep(0).unwrap();
        log.add(b"one").unwrap();
        log.give_up();
        assert!(log.append(b"two").is_err() && log.sync().is_err());
        log.replace(b"new", 1 << 20).unwrap();
        log.add(b"er").unwrap();
        assert_eq!(fs::read(log.path()).unwrap(), b"newer");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn a_lock_is_one_holders_and_says_whose() {
        let folder = Folder::new("log-lock");
        let path = folder.0.join("a.lock");
        let held = lock(&path, "process 7\n").ok().unwrap();
        assert!(matches!(lock(&path, ""), Err(NoLock::Held(who)) if who == "process 7"));
        drop(held);
        assert!(lock(&path, "").is_ok());
    }
}
