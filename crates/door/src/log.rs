//! A file that grows at its end: for its owner's eyes alone, cut back to whole entries when it is opened, and on disk before what
//! rests on it leaves. What an entry looks like is its user's: journal, ledger or transcript.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// An open log.
pub struct Log {
    path: PathBuf,
    pub(crate) file: File,
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
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: PathBuf) -> io::Result<Log> {
        let new = !path.exists();
        let file = private().truncate(false).open(&path)?;
        if new {
            // Its name lasts before anything says that it is there.
            sync_folder_of(&path)?;
        }
        Ok(Log { path, file, good: 0, dirty: false, broken: false })
    }

    /// The same of a file that stands there now, and has `good` bytes of whole entries; the one before is given back.
    ///
    /// # Errors
    /// What the system says.
    pub fn exchange(&mut self, file: File, good: u64) -> io::Result<File> {
        let old = std::mem::replace(&mut self.file, file);
        (self.good, self.dirty, self.broken) = (good, false, false);
        self.file.seek(SeekFrom::Start(good)).map(|_| old)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// To be read from its beginning, once.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Drops what stands behind the first `good` bytes.
    ///
    /// # Errors
    /// What the system says.
    pub fn keep(&mut self, good: u64) -> io::Result<()> {
        if self.file.metadata()?.len() > good {
            self.file.set_len(good)?;
        }
        self.file.seek(SeekFrom::Start(good))?;
        self.good = good;
        Ok(())
    }

    /// Writes again what stands behind the first `from` bytes, and brings it to the disk: it may be in no more than the system's memory.
    ///
    /// # Errors
    /// What the system says.
    pub fn again(&mut self, from: u64) -> io::Result<()> {
        let mut tail = Vec::new();
        self.file.seek(SeekFrom::Start(from))?;
        self.file.read_to_end(&mut tail)?;
        self.file.seek(SeekFrom::Start(from))?;
        self.file.write_all(&tail)?;
        self.file.sync_data()
    }

    /// Adds a whole entry. It is on disk after the next [`Log::sync`].
    ///
    /// # Errors
    /// What the system says.
    pub fn append(&mut self, entry: &[u8]) -> io::Result<()> {
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
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&mut self) -> io::Result<bool> {
        let synced = match (self.broken, self.dirty) {
            (true, _) => Err(io::Error::other("an entry was lost")),
            (false, false) => return Ok(false),
            (false, true) => self.file.sync_data(),
        };
        // What the system lost of it cannot be told.
        self.broken |= synced.is_err();
        self.dirty = synced.is_err();
        synced.map(|()| true)
    }

    /// Whether entries may not be on disk yet.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// What rests on the last entries could not be written: nothing more may follow.
    pub fn give_up(&mut self) {
        (self.broken, self.dirty) = (true, true);
    }
}

/// Makes the name of this file last through a power cut.
///
/// # Errors
/// What the system says.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Replaces the file at `path` by these bytes, in mode 0600, durably: they are on disk under another name, and `before` has come to its end,
/// before it takes this one. For whoever holds the lock of all that write it.
///
/// # Errors
/// What the system says, and that of `before`.
pub(crate) fn replace(path: &Path, bytes: &[u8], before: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let draft = path.with_added_extension("new");
    let mut file = private().truncate(true).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    before()?;
    fs::rename(&draft, path)?;
    sync_folder_of(path)
}

/// Takes the lock at `path`, for as long as the file that is returned stays open, and writes into it who has it; or what another
/// process that holds it says of itself.
///
/// # Errors
/// What the system says.
pub fn lock(path: &Path, who: &str) -> io::Result<Result<File, String>> {
    let mut lock = private().truncate(false).open(path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut who = String::new();
            // Whatever stands there is shown, if it is what another process of ours wrote.
            let _ = lock.take(128).read_to_string(&mut who);
            let plain = who.lines().next().filter(|line| line.chars().all(|c| c.is_ascii_graphic() || c == ' '));
            return Ok(Err(plain.filter(|line| !line.is_empty()).unwrap_or("which did not say who it is").to_owned()));
        }
        Err(TryLockError::Error(source)) => return Err(source),
    }
    lock.set_len(0).and_then(|()| lock.write_all(who.as_bytes()))?;
    Ok(Ok(lock))
}

/// Makes the folder, in mode 0700, where it is missing.
///
/// # Errors
/// What the system says.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A file that is made in mode 0600, to be read and written.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;

    impl Log {
        fn add(&mut self, entry: &[u8]) -> io::Result<()> {
            self.append(entry).and_then(|()| self.sync()).map(drop)
        }
    }

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
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
    }

    #[test]
    fn nothing_follows_an_entry_that_was_lost_until_all_is_replaced() {
        let folder = Folder::new("log-lost");
        let mut log = Log::open(folder.0.join("a.log")).unwrap();
        log.keep(0).unwrap();
        log.add(b"one").unwrap();
        log.give_up();
        assert!(log.append(b"two").is_err() && log.sync().is_err() && log.sync().is_err());
        let new = folder.0.join("new");
        fs::write(&new, b"new").unwrap();
        log.exchange(private().open(&new).unwrap(), 3).unwrap();
        log.add(b"er").unwrap();
        assert_eq!(fs::read(new).unwrap(), b"newer");
    }

    /// An entry that could not be written is no reason to say later that everything is on disk.
    #[test]
    fn after_a_write_that_failed_nothing_is_on_disk() {
        let folder = Folder::new("log-full");
        let mut log = Log::open(folder.0.join("a.log")).unwrap();
        log.keep(0).unwrap();
        // Whatever is written to a file that is open for reading fails.
        log.file = File::open(log.path()).unwrap();
        assert!(log.append(b"one").is_err() && log.sync().is_err() && log.sync().is_err());
    }

    #[test]
    fn a_lock_is_one_holders_and_says_whose() {
        let folder = Folder::new("log-lock");
        let path = folder.0.join("a.lock");
        let held = lock(&path, "process 7\n").unwrap().unwrap();
        assert!(lock(&path, "").unwrap().is_err_and(|who| who == "process 7"));
        drop(held);
        assert!(lock(&path, "").unwrap().is_ok());
    }
}
