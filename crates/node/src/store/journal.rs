//! What a role keeps of a run: a file of mode 0600, every entry checksummed and on disk before what rests on it leaves. It grows at
//! its end; a site's secrets are replaced with every answer, so that nothing of a closed slot stays in them ([JRN-4]).
//!
//! A torn last entry was not followed by a send, so it is dropped. Anything else that does not read back whole is
//! refused, because guessing could mean masking two vectors with one key.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write as _},
    marker::PhantomData,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Serialize, de::DeserializeOwned};
use veilsum_door::{self as door, Log};
use veilsum_proto::{
    codec,
    journal::Record,
    suite::{self, Hash},
};
use zeroize::Zeroizing;

use super::{Write, aside, side_by_side};
use crate::{error::Failure, files};

const MAGIC: &[u8; 16] = b"veilsum-journal1";
/// Bytes before an entry: its length, a checksum of the length, a checksum of the entry.
const HEAD: usize = 16;

/// The entries of a journal.
pub trait Entry: Serialize + DeserializeOwned + Sync {
    /// How the name of the file ends.
    const ENDING: &str;
    /// What to do about a damaged file.
    const DAMAGED: &str;
    /// Bytes of the largest entry.
    const MAX_ENTRY: usize;
    /// Bytes of the largest file that is read back.
    const MAX_FILE: u64;
    /// Whether what cannot be read at its end is dropped, because whoever reads it knows how far it has to reach.
    const MAY_LOSE_ITS_END: bool = false;
}

/// The entries of a site. The largest is a deck of 1,000 members and 256 slots.
impl Entry for Record {
    const ENDING: &str = "journal";
    const DAMAGED: &str =
        "never put an older copy in its place: a site needs a new plan, as it can no longer tell what it answered";
    const MAX_ENTRY: usize = 16 << 20;
    const MAX_FILE: u64 = 256 << 20;
}

/// The disk or its permissions.
fn io_at(path: &Path, source: &io::Error) -> Failure {
    let what = format!("the journal {}: {source}", path.display());
    files::unwritten(source, what, "check free space and permissions of the folder (--state)")
}

/// It was changed or cut.
fn damaged<R: Entry>(path: &Path, what: &str) -> Failure {
    let path = path.display();
    Failure::input(
        format!("the journal {path} is damaged ({what}): what was sent before can no longer be told"),
        R::DAMAGED,
    )
}

/// An open, locked journal.
pub struct Journal<R = Record> {
    log: Log,
    _lock: File,
    entries: PhantomData<R>,
}

impl<R: Entry> Journal<R> {
    /// Opens (or makes) the journal of `session` in `folder` and reads its entries.
    ///
    /// # Errors
    /// A [`Failure`] where the disk fails, another process has it, or it is damaged.
    pub fn open(folder: &Path, session: &Hash) -> Result<(Journal<R>, Vec<R>), Failure> {
        let mut journal = Journal::locked(folder, session)?;
        let records = journal.read()?;
        Ok((journal, records))
    }

    /// The same without entries, whatever an earlier process left there.
    ///
    /// # Errors
    /// A [`Failure`] where the disk fails, or another process has it.
    pub(crate) fn empty(folder: &Path, session: &Hash) -> Result<Journal<R>, Failure> {
        let mut journal = Journal::locked(folder, session)?;
        journal.rewrite(&[])?;
        Ok(journal)
    }

    /// Overwrites and removes what was kept of `session` in `folder`. Whether there was anything.
    ///
    /// # Errors
    /// A [`Failure`] where its entries cannot be taken away.
    pub fn forget(folder: &Path, session: &Hash) -> Result<bool, Failure> {
        let path = file_of::<R>(folder, session);
        if !path.exists() {
            return Ok(false);
        }
        let journal = Journal::<R>::empty(folder, session)?;
        fs::remove_file(&path).map_err(|e| journal.io(e)).and_then(|()| journal.sync_folder())?;
        Ok(true)
    }

    fn locked(folder: &Path, session: &Hash) -> Result<Journal<R>, Failure> {
        let path = file_of::<R>(folder, session);
        let io = |source: io::Error| io_at(&path, &source);
        door::make_private_folder(folder).map_err(|e| io_at(folder, &e))?;
        // The lock is a file of its own, because the journal's file is replaced when it is rewritten.
        let lock = door::lock(&path.with_added_extension("lock"), "").map_err(io)?;
        let lock = lock.map_err(|_| {
            let path = path.display();
            let what =
                format!("the journal {path} is in use by another process: two processes must not share one identity");
            Failure::input(what, "stop the other process")
        })?;
        Ok(Journal { log: Log::open(path.clone()).map_err(io)?, _lock: lock, entries: PhantomData })
    }

    /// The entries of the journal of `session` in `folder`, without locking or mending it; nothing where there is none.
    ///
    /// # Errors
    /// A [`Failure`] where the disk fails, another process has it, or it is damaged.
    pub fn look(folder: &Path, session: &Hash) -> Result<Option<(Vec<R>, SystemTime)>, Failure> {
        let path = file_of::<R>(folder, session);
        let io = |source: io::Error| io_at(&path, &source);
        let file = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io)?,
        };
        let bytes = all(&file, R::MAX_FILE).map_err(io)?;
        if bytes.as_ref().is_some_and(|bytes| bytes.len() < MAGIC.len()) {
            return Ok(None);
        }
        let (records, _) = entries(bytes.as_deref()).map_err(|what| damaged::<R>(&path, what))?;
        Ok(Some((records, file.metadata().and_then(|about| about.modified()).map_err(io)?)))
    }

    fn io(&self, source: io::Error) -> Failure {
        io_at(self.log.path(), &source)
    }

    fn read(&mut self) -> Result<Vec<R>, Failure> {
        let path = self.log.path().to_owned();
        let io = |source: io::Error| io_at(&path, &source);
        let bytes = all(self.log.file(), R::MAX_FILE).map_err(io)?;
        let left = left_over(&path).map_err(io)?;
        if bytes.as_ref().is_some_and(|bytes| bytes.len() < MAGIC.len()) {
            // New, or torn before its first entry; or somebody removed it, and what was to replace it stayed.
            left.map_or(Ok(()), |left| self.drop_left_over(left)).map_err(io)?;
            self.rewrite(&[])?;
            return Ok(Vec::new());
        }
        let damaged = |what| damaged::<R>(&path, what);
        match (entries(bytes.as_deref()), left) {
            (Ok((records, good)), left) => {
                self.log.keep(good).map_err(io)?;
                // What was to replace these entries protects no frame that left.
                left.map_or(Ok(()), |left| self.drop_left_over(left)).map_err(io)?;
                Ok(records)
            }
            // These entries were being overwritten when the process ended, and all that replaces them was on disk by then.
            (Err(what), Some(left)) => {
                let bytes = all(&left, R::MAX_FILE).map_err(io)?;
                let whole =
                    entries(bytes.as_deref()).ok().filter(|(_, good)| bytes.is_some_and(|b| b.len() as u64 == *good));
                let (records, _) = whole.ok_or_else(|| damaged(what))?;
                let old = self.take(left)?;
                self.sync_folder()?;
                wipe(old, R::MAX_FILE).map_err(io)?;
                Ok(records)
            }
            (Err(what), None) => Err(damaged(what)),
        }
    }

    /// Writes an entry, which is on disk after the next [`Journal::sync`].
    ///
    /// # Errors
    /// A [`Failure`] of the disk; what it protects must then not be sent.
    pub fn write(&mut self, record: &R) -> Result<(), Failure> {
        let bytes = lines(&[], std::slice::from_ref(record));
        aside(|| self.log.append(&bytes)).map_err(|e| self.io(e))
    }

    /// Waits until every entry is on disk.
    ///
    /// # Errors
    /// A [`Failure`] of the disk; what they protect must then not be sent.
    pub fn sync(&mut self) -> Result<(), Failure> {
        aside(|| self.log.sync()).map(drop).map_err(|e| self.io(e))
    }

    /// Appends an entry and waits until it is on disk.
    ///
    /// # Errors
    /// A [`Failure`] of the disk; what it protects must then not be sent.
    pub fn append(&mut self, record: &R) -> Result<(), Failure> {
        self.write(record).and_then(|()| self.sync())
    }

    /// Replaces all entries by `records`, durably: the new file is complete on disk before it takes the old one's name.
    /// The old bytes are overwritten; on a disk that copies on write they may live on.
    ///
    /// # Errors
    /// A [`Failure`] of the disk; what the new entries protect must then not be sent.
    pub fn rewrite(&mut self, records: &[R]) -> Result<(), Failure> {
        self.replace(records, None)
    }

    /// The same in two steps, each of which takes as long as its longest wait: the bytes and the name of the new file, and what is written
    /// `beside` it; then its own name, while the bytes of the old one are overwritten.
    ///
    /// # Errors
    /// As [`Journal::rewrite`]; if the first step fails, all stays as it was.
    pub(crate) fn replace(&mut self, records: &[R], beside: Option<Write<'_>>) -> Result<(), Failure> {
        let journal = &*self;
        let write = || {
            let mut fresh = door::private().truncate(true).open(fresh_path(journal.log.path()))?;
            fresh.write_all(&lines(MAGIC, records)).map(|()| fresh)
        };
        let fresh = write().map_err(|e| journal.io(e))?;
        let mut writes: Vec<Write<'_>> = beside.into_iter().collect();
        writes.push(Box::new(|| fresh.sync_all().map_err(|e| journal.io(e))));
        writes.push(Box::new(|| journal.sync_folder()));
        side_by_side(writes)?;
        let old = self.take(fresh)?;
        let journal = &*self;
        let wipe = || wipe(old, R::MAX_FILE).map_err(|e| journal.io(e));
        side_by_side(vec![Box::new(|| journal.sync_folder()), Box::new(wipe)])
    }

    /// Puts what is to replace all entries in their place; the file that they are in is still to be overwritten.
    fn take(&mut self, fresh: File) -> Result<File, Failure> {
        let path = self.log.path().to_owned();
        let take = || {
            let good = fresh.metadata()?.len();
            fs::rename(fresh_path(&path), &path)?;
            self.log.exchange(fresh, good)
        };
        take().map_err(|e| self.io(e))
    }

    /// Removes what an earlier process wrote to replace everything, and overwrites it, unless it is the log itself: some file systems may
    /// have one file under both names after a loss of power.
    fn drop_left_over(&self, file: File) -> io::Result<()> {
        let id = |file: &File| file.metadata().map(|about| (about.dev(), about.ino()));
        if id(self.log.file())? != id(&file)? {
            wipe(file, R::MAX_FILE)?;
        }
        fs::remove_file(fresh_path(self.log.path()))
    }

    /// Whether entries may not be on disk yet.
    pub(crate) fn is_ahead(&self) -> bool {
        self.log.is_dirty()
    }

    /// Waits until the names in its folder are on disk.
    fn sync_folder(&self) -> Result<(), Failure> {
        door::sync_folder_of(self.log.path()).map_err(|e| self.io(e))
    }
}

/// Overwrites the bytes of a file that has no name any more, `most` of them, and waits until that is on disk; on a disk that copies on write
/// they may live on.
fn wipe(mut file: File, most: u64) -> io::Result<()> {
    let length = file.metadata()?.len().min(most);
    file.seek(SeekFrom::Start(0))?;
    io::copy(&mut io::repeat(0).take(length), &mut file)?;
    file.sync_data()
}

fn fresh_path(path: &Path) -> PathBuf {
    path.with_added_extension("new")
}

/// What an earlier process wrote to replace everything, if it did not come to take the name.
fn left_over(path: &Path) -> io::Result<Option<File>> {
    match door::private().create(false).open(fresh_path(path)) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// All bytes of a file; none where they are more than any journal has.
fn all(mut file: &File, most: u64) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let length = file.metadata()?.len();
    if length > most {
        return Ok(None);
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(length as usize));
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The whole entries of a file, and where they end; a torn end is left out.
fn entries<R: Entry>(bytes: Option<&Vec<u8>>) -> Result<(Vec<R>, u64), &'static str> {
    let bytes = bytes.ok_or("it is larger than any journal")?;
    let mut rest = bytes.strip_prefix(MAGIC).ok_or("its first line is not a journal's")?;
    let mut records = Vec::new();
    let mut good = MAGIC.len() as u64;
    while !rest.is_empty() {
        match first(rest) {
            Ok(Some((record, after))) => {
                records.push(record);
                good += (rest.len() - after.len()) as u64;
                rest = after;
            }
            Ok(None) => break,
            Err(_) if R::MAY_LOSE_ITS_END => break,
            Err(what) => return Err(what),
        }
    }
    Ok((records, good))
}

/// The first entry, and what follows it; none where it is torn.
fn first<R: Entry>(bytes: &[u8]) -> Result<Option<(R, &[u8])>, &'static str> {
    let Some((head, more)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
    let ([l0, l1, l2, l3, ..], sum) = (head, &head[8..]);
    let length = u32::from_le_bytes([*l0, *l1, *l2, *l3]);
    if head[..8] != length_field(length) {
        return Err("an entry's length does not match its checksum");
    }
    let length = length as usize;
    if length > R::MAX_ENTRY {
        return Err("an entry declares an impossible length");
    }
    let Some((entry, after)) = more.split_at_checked(length) else { return Ok(None) };
    if checksum(entry) != sum {
        return Err("a checksum does not match");
    }
    let record = codec::decode("journal entry", entry, R::MAX_ENTRY).map_err(|_| "an entry cannot be read")?;
    Ok(Some((record, after)))
}

fn file_of<R: Entry>(folder: &Path, session: &Hash) -> PathBuf {
    folder.join(format!("{}.{}", &session.to_string()[..16], R::ENDING))
}

/// The entries as the file has them, after `first`.
fn lines<R: Entry>(first: &[u8], records: &[R]) -> Zeroizing<Vec<u8>> {
    let entries: Vec<_> = records.iter().map(|record| Zeroizing::new(codec::encode(record))).collect();
    // With its full capacity from the start: growing would leave copies of secrets behind.
    let length = first.len() + entries.iter().map(|e| HEAD + e.len()).sum::<usize>();
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    bytes.extend_from_slice(first);
    for entry in &entries {
        bytes.extend_from_slice(&length_field(entry.len() as u32));
        bytes.extend_from_slice(&checksum(entry));
        bytes.extend_from_slice(entry);
    }
    bytes
}

/// A length with a checksum of its own: a damaged length must not pass for a torn end.
fn length_field(length: u32) -> [u8; 8] {
    let length = length.to_le_bytes();
    let sum = suite::hash("journal length", &[&length]).0;
    [length[0], length[1], length[2], length[3], sum[0], sum[1], sum[2], sum[3]]
}

fn checksum(entry: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    out.copy_from_slice(&suite::hash("journal entry", &[entry]).0[..8]);
    out
}

#[cfg(test)]
mod tests;
