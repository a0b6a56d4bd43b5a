//! A site's journal: an append-only file of mode 0600, every entry checksummed and on disk before bytes leave.
//!
//! A torn last entry was never followed by a send, so it is dropped; anything else that does not read back whole is
//! refused, because guessing could mean masking two vectors with one key.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use veilsum_proto::{
    journal::Record,
    suite::{self, Hash},
};
use zeroize::Zeroizing;

use crate::cli::exit::Failure;

const MAGIC: &[u8; 16] = b"veilsum-journal1";
/// Largest entry: a deck of 1,000 members and 256 slots.
const MAX_ENTRY: usize = 16 << 20;
/// Largest file that is read back.
const MAX_FILE: u64 = 256 << 20;

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The disk or its permissions.
    #[error("the journal {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody else holds it.
    #[error("the journal {path} is in use by another process: two processes must not share one identity")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It was changed or cut.
    #[error("the journal {path} is damaged ({what}): what this site has sent can no longer be told from it")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        what: &'static str,
    },
}

impl From<JournalError> for Failure {
    fn from(e: JournalError) -> Self {
        let next = match e {
            JournalError::Io { .. } => "check free space and permissions of the folder (--state)",
            JournalError::Locked { .. } => "stop the other process",
            JournalError::Damaged { .. } => {
                "this site sits out the current run: move the file away and join the next one"
            }
        };
        Failure::input(e, next)
    }
}

/// An open, locked journal.
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens (or makes) the journal of `session` in `folder` and reads its entries.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(folder: &Path, session: &Hash) -> Result<(Journal, Vec<Record>), JournalError> {
        let path = folder.join(format!("{}.journal", &session.to_string()[..16]));
        let io = |source| JournalError::Io { path: path.clone(), source };
        make_private_folder(folder).map_err(|source| JournalError::Io { path: folder.to_owned(), source })?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Locked { path }),
            Err(TryLockError::Error(source)) => return Err(JournalError::Io { path, source }),
        }
        let mut journal = Journal { path, file };
        let records = journal.read()?;
        Ok((journal, records))
    }

    fn io(&self, source: io::Error) -> JournalError {
        JournalError::Io { path: self.path.clone(), source }
    }

    fn read(&mut self) -> Result<Vec<Record>, JournalError> {
        let damaged = |what| JournalError::Damaged { path: self.path.clone(), what };
        let length = self.file.metadata().map_err(|e| self.io(e))?.len();
        if length > MAX_FILE {
            return Err(damaged("it is larger than any journal"));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(length as usize));
        (&self.file).read_to_end(&mut bytes).map_err(|e| self.io(e))?;
        if bytes.len() < MAGIC.len() {
            // New, or torn before its first entry.
            self.clear()?;
            return Ok(Vec::new());
        }
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
            return Err(damaged("its first line is not a journal's"));
        };
        let mut records = Vec::new();
        let mut good = MAGIC.len() as u64;
        while !rest.is_empty() {
            let Some((head, more)) = rest.split_first_chunk::<12>() else { break };
            let (length, sum) = head.split_at(4);
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
            if length > MAX_ENTRY {
                return Err(damaged("an entry declares an impossible length"));
            }
            let Some((entry, after)) = more.split_at_checked(length) else { break };
            if checksum(entry) != sum {
                return Err(damaged("a checksum does not match"));
            }
            records.push(Record::from_bytes(entry).map_err(|_| damaged("an entry cannot be read"))?);
            good += 12 + length as u64;
            rest = after;
        }
        self.file.set_len(good).map_err(|e| self.io(e))?;
        self.file.seek(SeekFrom::End(0)).map_err(|e| self.io(e))?;
        Ok(records)
    }

    /// Appends an entry and waits until it is on disk.
    ///
    /// # Errors
    /// [`JournalError::Io`]; what it protects must then not be sent.
    pub fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        let entry = record.to_bytes();
        let mut bytes = Zeroizing::new(Vec::with_capacity(12 + entry.len()));
        bytes.extend_from_slice(&(entry.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&checksum(&entry));
        bytes.extend_from_slice(&entry);
        self.file.write_all(&bytes).and_then(|()| self.file.sync_data()).map_err(|e| self.io(e))
    }

    /// Forgets everything: the keys in it are of no more use. The old bytes are overwritten first; on a disk that
    /// copies on write they may live on.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn clear(&mut self) -> Result<(), JournalError> {
        self.wipe().map_err(|e| self.io(e))
    }

    fn wipe(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len().min(MAX_FILE);
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut io::repeat(0).take(length), &mut self.file)?;
        self.file.sync_data()?;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(MAGIC)?;
        self.file.sync_data()
    }

    /// Wipes and removes the journal of a run that is over.
    pub fn remove(mut self) {
        if self.wipe().and_then(|()| fs::remove_file(&self.path)).is_err() {
            tracing::warn!("could not remove the journal {}", self.path.display());
        }
    }
}

fn checksum(entry: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    out.copy_from_slice(&suite::hash("journal entry", &[entry]).0[..8]);
    out
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
