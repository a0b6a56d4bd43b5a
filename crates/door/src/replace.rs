//! A file that is replaced whole or not at all, in steps, so that several go to the disk side by side.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Who may read a new file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Its owner alone.
    Private,
    /// Everybody whom the umask lets.
    Public,
}

/// A file that is to become that at `target`, in two steps, so that several files go to the disk side by side: its bytes are there before
/// it takes the name, and the name is there once its folder is. Until then its own name is one that nobody looks for; it is removed unless it
/// took the other.
pub struct Replacement {
    target: PathBuf,
    path: PathBuf,
    file: File,
}

impl Replacement {
    /// Writes a secret beside the file at `path`.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(path: &Path, bytes: &[u8]) -> io::Result<Replacement> {
        let mut draft = Replacement::create(path, Access::Private)?;
        draft.file.write_all(bytes)?;
        Ok(draft)
    }

    /// Begins it, empty.
    ///
    /// # Errors
    /// What the system says; `InvalidFilename` where the path names no file.
    pub fn create(target: &Path, access: Access) -> io::Result<Replacement> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let unnamed = || io::Error::new(io::ErrorKind::InvalidFilename, "it does not name a file");
        let name = target.file_name().ok_or_else(unnamed)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if access == Access::Private {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        // An earlier process of our number may have left a draft behind; that one is not ours to touch.
        for _ in 0..64 {
            let mut draft = OsString::from(".");
            draft.push(name);
            draft.push(format!(".{}-{}.new", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
            let path = folder_of(target).join(draft);
            match options.open(&path) {
                Ok(file) => return Ok(Replacement { target: target.to_owned(), path, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        let why = "too many unfinished files of earlier runs are in the folder";
        Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
    }

    /// What is written so far.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The name that it has until then.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the drafts of this file that processes left behind when they died; for whoever holds the lock of all that write it.
    pub fn remove_drafts(target: &Path) {
        let Some(name) = target.file_name().map(|name| name.to_string_lossy()) else { return };
        let is_draft = |of: &str| of.starts_with(&format!(".{name}.")) && of.ends_with(".new");
        let drafts = fs::read_dir(folder_of(target)).into_iter().flatten().flatten();
        for draft in drafts.filter(|file| file.file_name().to_str().is_some_and(is_draft)) {
            // One that stays is in nobody's way.
            let _ = fs::remove_file(draft.path());
        }
    }

    /// Waits until its bytes are on disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Takes the name; gives the folder that is to be brought to the disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn take_name(self) -> io::Result<Folder> {
        // Dropping `self` then finds nothing to remove; where the renaming fails, it removes the draft.
        fs::rename(&self.path, &self.target)?;
        Ok(Folder::of(&self.target))
    }

    /// All steps: its bytes are on disk, then its name.
    ///
    /// # Errors
    /// What the system says.
    pub fn put(self) -> io::Result<()> {
        self.sync()?;
        self.take_name()?.sync()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Nobody could act on a failure: the draft is then left for the operator to find.
        let _ = fs::remove_file(&self.path);
    }
}

/// A folder in which a file has taken a name.
#[derive(PartialEq)]
pub struct Folder(PathBuf);

impl Folder {
    /// That of this file.
    pub fn of(path: &Path) -> Folder {
        Folder(folder_of(path).to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Waits until the names in it are on disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        sync_folder(&self.0)
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes a new name last through a power cut.
///
/// # Errors
/// What the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether the system may let the same be done later, without anybody who changes a document, a name or a permission: the disk is full,
/// fails, or is mounted for reading alone.
pub fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    !matches!(
        error.kind(),
        K::NotFound
            | K::PermissionDenied
            | K::AlreadyExists
            | K::NotADirectory
            | K::IsADirectory
            | K::InvalidInput
            | K::InvalidData
            | K::InvalidFilename
            | K::Unsupported
    )
}
