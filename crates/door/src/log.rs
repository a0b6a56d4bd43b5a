//! A file that grows at its end: for its owner's eyes alone, cut back to whole entries when it is opened, and on disk before what
//! rests on it leaves. What an entry looks like is its user's: journal, ledger or transcript.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::replace::sync_folder;

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
        if let (true, Some(folder)) = (new, path.parent()) {
            // Its name lasts before anything says that it is there.
            sync_folder(folder)?;
        }
        Ok(Log { path, file, good: 0, dirty: false, broken: false })
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

    /// Replaces everything by `bytes`, durably: the new file is complete on disk before it takes the old one's name, and has it on
    /// disk before the old bytes are overwritten.
    ///
    /// # Errors
    /// What the system says.
    pub fn replace(&mut self, bytes: &[u8], wiped: u64) -> io::Result<()> {
        let fresh = self.fresh(bytes)?;
        fresh.sync()?;
        let old = self.take(fresh, wiped)?;
        self.sync_folder()?;
        old.wipe()
    }

    fn fresh_path(&self) -> PathBuf {
        self.path.with_added_extension("new")
    }

    /// Writes what is to replace everything, under another name. It is on disk after [`Fresh::sync`] and [`Log::sync_folder`].
    ///
    /// # Errors
    /// What the system says.
    pub fn fresh(&self, bytes: &[u8]) -> io::Result<Fresh> {
        let mut file = private().truncate(true).open(self.fresh_path())?;
        file.write_all(bytes)?;
        Ok(Fresh { file, length: bytes.len() as u64 })
    }

    /// What an earlier process wrote to replace everything, where it did not come to take the name.
    ///
    /// # Errors
    /// What the system says.
    pub fn left_over(&self) -> io::Result<Option<Fresh>> {
        match private().create(false).open(self.fresh_path()) {
            Ok(file) => Ok(Some(Fresh { length: file.metadata()?.len(), file })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Gives what is on disk under another name the log's own. The name is on disk after [`Log::sync_folder`]. The old file is given
    /// back, of which at most `wiped` bytes are to be overwritten.
    ///
    /// # Errors
    /// What the system says.
    pub fn take(&mut self, fresh: Fresh, wiped: u64) -> io::Result<Old> {
        fs::rename(self.fresh_path(), &self.path)?;
        let file = std::mem::replace(&mut self.file, fresh.file);
        (self.good, self.dirty, self.broken) = (fresh.length, false, false);
        self.file.seek(SeekFrom::Start(self.good))?;
        Ok(Old { file, wiped })
    }

    /// Removes what an earlier process wrote to replace everything, and overwrites it, unless it is the log itself: some file systems
    /// may have one file under both names after a loss of power.
    ///
    /// # Errors
    /// What the system says.
    pub fn drop_left_over(&self, left: Fresh, wiped: u64) -> io::Result<()> {
        if !is_same(&self.file, &left.file)? {
            Old { file: left.file, wiped }.wipe()?;
        }
        fs::remove_file(self.fresh_path())
    }

    /// Waits until the names in its folder are on disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync_folder(&self) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), sync_folder)
    }
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// What is to replace a log.
pub struct Fresh {
    file: File,
    length: u64,
}

impl Fresh {
    /// To be read from its beginning, once.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Waits until its bytes are on disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// A file that has no name any more.
pub struct Old {
    file: File,
    wiped: u64,
}

impl Old {
    /// Overwrites its bytes, and waits until that is on disk; on a disk that copies on write they may live on.
    ///
    /// # Errors
    /// What the system says.
    pub fn wipe(mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len().min(self.wiped);
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut io::repeat(0).take(length), &mut self.file)?;
        self.file.sync_data()
    }
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
fn private() -> OpenOptions {
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
        log.replace(b"new", 1 << 20).unwrap();
        log.add(b"er").unwrap();
        assert_eq!(fs::read(log.path()).unwrap(), b"newer");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
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
