//! Files that are written whole or not at all, read within a limit, and kept from other users where they hold secrets.
//!
//! Writing goes to a new file in the same folder, is flushed to the disk, and takes the target's name as the last step:
//! after a crash the target is the old file or the new one. A target that is a symbolic link is replaced, not followed.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use veilsum_door::sync_folder_of;
use zeroize::Zeroizing;

use crate::error::Failure;
pub use crate::error::may_pass;

/// What to do with a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and report it: a lost key can't be brought back.
    Refuse,
    /// Put the new file in its place.
    Replace,
}

/// What became of a step at the disk, with what to do next: [`Failure::storage`] if it may pass.
pub fn unwritten(error: &io::Error, what: impl std::fmt::Display, next: &str) -> Failure {
    if may_pass(error) { Failure::storage(what, next) } else { Failure::input(what, next) }
}

/// Writes a secret: from its first moment on, only its owner can read the file (mode 0600).
pub fn write_private(path: impl AsRef<Path>, bytes: &[u8], existing: Existing) -> Result<(), Failure> {
    write(path.as_ref(), bytes, existing, PRIVATE)
}

/// Writes a file for everybody whom the umask lets read, in place of an older one, whose permissions it keeps.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), Failure> {
    write(path.as_ref(), bytes, Existing::Replace, PUBLIC)
}

/// Reads a file of at most `max_bytes`.
pub fn read_limited(path: impl AsRef<Path>, max_bytes: usize) -> Result<Vec<u8>, Failure> {
    let path = path.as_ref();
    let (file, meta) = open(path)?;
    // A hint only: the file may grow, or be one whose length the system doesn't know.
    let expected = usize::try_from(meta.len()).unwrap_or(usize::MAX).min(max_bytes);
    let mut bytes = Vec::with_capacity(expected);
    read_into(&file, path, &mut bytes, max_bytes)?;
    Ok(bytes)
}

/// Reads a secret of at most `max_bytes`, if nobody else can; the bytes are wiped when dropped.
///
/// The permissions are those of the very file that is read, so that it can't be exchanged between look and read.
pub fn read_private(path: impl AsRef<Path>, max_bytes: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let path = path.as_ref();
    let (file, meta) = open(path)?;
    check_mode(path, &meta)?;
    // Room for all of it at once: a vector that grows leaves unwiped copies behind. Secrets are short.
    let mut bytes = Zeroizing::new(Vec::with_capacity(max_bytes.saturating_add(1)));
    read_into(&file, path, &mut bytes, max_bytes)?;
    Ok(bytes)
}

/// Refuses a secret's file that group or others can read, write or execute.
pub fn check_private(path: impl AsRef<Path>) -> Result<(), Failure> {
    let path = path.as_ref();
    let meta = fs::metadata(path).map_err(unread(path))?;
    check_mode(path, &meta)
}

// ---- Reading --------------------------------------------------------------------------------------------------------

fn open(path: &Path) -> Result<(File, fs::Metadata), Failure> {
    // Looked at before it is opened, as opening a named pipe would wait for somebody to write to it.
    if !fs::metadata(path).map_err(unread(path))?.is_file() {
        return Err(Failure::input(format!("{} is not a regular file", path.display()), "check the path"));
    }
    let file = File::open(path).map_err(unread(path))?;
    let meta = file.metadata().map_err(unread(path))?;
    Ok((file, meta))
}

fn read_into(file: &File, path: &Path, bytes: &mut Vec<u8>, max: usize) -> Result<(), Failure> {
    let one_more = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(one_more).read_to_end(bytes).map_err(unread(path))?;
    if bytes.len() > max {
        let what = format!("{} is longer than the {max} bytes allowed for it", path.display());
        return Err(Failure::input(what, "check that it is the right file"));
    }
    Ok(())
}

/// What became of the file at `path` where the system did not let it be read.
fn unread(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |e| Failure::input(format!("{} cannot be read ({e})", path.display()), "check the path and who may read it")
}

fn check_mode(path: &Path, meta: &fs::Metadata) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let what = format!("{} holds a secret and is open to other users (mode {mode:03o})", path.display());
        let next = format!("run: chmod 600 {}  (and replace the secret if others use this machine)", quoted(path));
        return Err(Failure::input(what, next));
    }
    Ok(())
}

/// The path as a shell takes it.
pub fn quoted(path: &Path) -> String {
    let plain = path.display().to_string();
    let safe = |c: char| c.is_alphanumeric() || "/._-+=:,@".contains(c);
    if !plain.is_empty() && !plain.starts_with('-') && plain.chars().all(safe) {
        plain
    } else {
        let dashes = if plain.starts_with('-') { "-- " } else { "" };
        format!("{dashes}'{}'", plain.replace('\'', "'\\''"))
    }
}

// ---- Writing --------------------------------------------------------------------------------------------------------

/// Who may read a new file: its owner alone, or everybody whom the umask lets.
const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o666;

/// A new file that is to become that at `target`, in the same folder; it is removed unless it takes that name.
fn draft(target: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let unnamed = || io::Error::new(io::ErrorKind::InvalidFilename, "it does not name a file");
    let name = target.file_name().ok_or_else(unnamed)?.to_string_lossy();
    let folder = target.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
    tempfile::Builder::new().prefix(&format!(".{name}.")).suffix(".new").permissions(permissions).tempfile_in(folder)
}

fn write(path: &Path, bytes: &[u8], existing: Existing, mode: u32) -> Result<(), Failure> {
    // Looked up first only to spare the work.
    if existing == Existing::Refuse && fs::symlink_metadata(path).is_ok() {
        return Err(exists(path));
    }
    if mode == PUBLIC && is_already(path, bytes) {
        // A process that ended between the last two steps may have left the name in memory alone.
        return sync_folder_of(path).map_err(failed(path));
    }
    let mut draft = draft(path, mode).map_err(failed(path))?;
    if mode == PUBLIC
        && let Ok(old) = fs::symlink_metadata(path)
        && old.is_file()
    {
        // Somebody may have closed the older file to others: the new one must not open it again.
        draft.as_file().set_permissions(old.permissions()).map_err(failed(path))?;
    }
    draft.write_all(bytes).and_then(|()| draft.as_file().sync_all()).map_err(failed(path))?;
    let put = match existing {
        Existing::Replace => draft.persist(path),
        Existing::Refuse => draft.persist_noclobber(path),
    };
    put.map_err(|e| match (existing, e.error.kind()) {
        (Existing::Refuse, io::ErrorKind::AlreadyExists) => exists(path),
        _ => failed(path)(e.error),
    })?;
    sync_folder_of(path).map_err(failed(path))
}

/// Whether just these bytes are there: then nothing has to be written, for which there may be no space.
fn is_already(path: &Path, bytes: &[u8]) -> bool {
    let same = |meta: &fs::Metadata| meta.is_file() && meta.len() == bytes.len() as u64;
    fs::symlink_metadata(path).is_ok_and(|meta| same(&meta)) && fs::read(path).is_ok_and(|there| there == bytes)
}

/// What became of the file at `path` where the system did not let it be written.
fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let next = "check that its folder exists, is yours to write to, and has free space";
    move |e| unwritten(&e, format!("{} cannot be written ({e})", path.display()), next)
}

/// There is a file of that name.
fn exists(path: &Path) -> Failure {
    let what = format!("{} is there already and was left as it is", path.display());
    Failure::input(what, "move it away, or ask for it to be replaced")
}

/// A file that is written bit by bit, for its owner's eyes alone. It takes its name, in place of an older one, when it is whole; until
/// then, and where it never becomes so, what was there stays as it was.
pub struct Growing {
    target: PathBuf,
    ahead: io::BufWriter<NamedTempFile>,
}

impl Growing {
    /// Begins a file that will be at `path`.
    ///
    /// # Errors
    /// A [`Failure`] where its folder cannot be written to.
    pub fn create(path: impl AsRef<Path>) -> Result<Growing, Failure> {
        let target = path.as_ref().to_owned();
        let ahead = io::BufWriter::new(draft(&target, PRIVATE).map_err(failed(&target))?);
        Ok(Growing { target, ahead })
    }

    /// It is whole.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be brought to the disk.
    pub fn finish(self) -> Result<(), Failure> {
        let Growing { target, ahead } = self;
        let put = || {
            let draft = ahead.into_inner().map_err(io::IntoInnerError::into_error)?;
            draft.as_file().sync_all()?;
            draft.persist(&target)?;
            sync_folder_of(&target)
        };
        put().map_err(failed(&target))
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.ahead.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ahead.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    fn names(folder: &Folder) -> Vec<String> {
        let entries = fs::read_dir(&folder.0).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
    }

    fn chmod(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is our file");
    }

    fn place(name: &str) -> (Folder, PathBuf) {
        let folder = Folder::new("files of one");
        let path = folder.0.join(name);
        (folder, path)
    }

    fn refused<T>(done: Result<T, Failure>, why: &str) {
        let failure = done.err().expect("refused").to_string();
        assert!(failure.contains(why), "{failure}");
    }

    #[test]
    fn a_secret_is_written_once_and_for_its_owner() {
        let (folder, path) = place("identity.key");
        write_private(&path, b"seed", Existing::Refuse).expect("a free name");
        assert_eq!(read_private(&path, 4).expect("ours alone").as_slice(), b"seed");
        refused(write_private(&path, b"other", Existing::Refuse), "is there already");
        assert_eq!(fs::read(&path).expect("the old one"), b"seed");
        write_private(&path, b"other", Existing::Replace).expect("as told");
        assert_eq!(fs::read(&path).expect("the new one"), b"other");
        assert_eq!(names(&folder), ["identity.key"]);
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_secret_open_to_others_is_refused_with_the_command_that_mends_it() {
        let (_folder, path) = place("identity.key");
        write_private(&path, b"seed", Existing::Refuse).expect("a free name");
        check_private(&path).expect("as written");
        for open in [0o640, 0o604, 0o620, 0o601, 0o666] {
            chmod(&path, open);
            refused(check_private(&path), &format!("chmod 600 '{}'", path.display()));
            refused(read_private(&path, 99), &format!("mode {open:o}"));
        }
        // Replacing it closes it.
        write_private(&path, b"seed", Existing::Replace).expect("as told");
        check_private(&path).expect("closed again");
        chmod(&path, 0o400);
        check_private(&path).expect("less than 600 is private as well");
    }

    #[test]
    fn a_link_does_not_lead_a_secret_elsewhere() {
        let (folder, path) = place("identity.key");
        let elsewhere = folder.0.join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, &path).expect("links work here");
        refused(write_private(&path, b"seed", Existing::Refuse), "is there already");
        write_private(&path, b"seed", Existing::Replace).expect("as told");
        assert!(!elsewhere.exists());
        assert_eq!(fs::read(&path).expect("the file itself"), b"seed");
    }

    #[test]
    fn one_of_many_writers_wins_and_its_bytes_are_whole() {
        let (folder, path) = place("identity.key");
        let winners: Vec<u8> = std::thread::scope(|scope| {
            let path = &path;
            let writers: Vec<_> = (0..8u8)
                .map(|i| scope.spawn(move || write_private(path, &[i; 5000], Existing::Refuse).is_ok().then_some(i)))
                .collect();
            writers.into_iter().filter_map(|writer| writer.join().expect("no panic")).collect()
        });
        assert_eq!(winners.len(), 1);
        assert_eq!(fs::read(&path).expect("the winner's"), [winners[0]; 5000]);
        assert_eq!(names(&folder), ["identity.key"]);
    }

    #[test]
    fn a_public_file_is_replaced_and_stays_as_closed_as_it_was() {
        let (folder, path) = place("result.csv");
        write_atomic(&path, b"one").expect("a free name");
        chmod(&path, 0o640);
        write_atomic(&path, b"two").expect("it is replaced");
        assert_eq!(fs::read(&path).expect("the new one"), b"two");
        assert_eq!(names(&folder), ["result.csv"]);
        assert_eq!(mode(&path), 0o640);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let folder = Folder::new("files of one");
        let missing = folder.0.join("missing").join("result.csv");
        refused(write_atomic(&missing, b"x"), "check that its folder exists");
        fs::create_dir(folder.0.join("taken")).expect("a new folder");
        fs::write(folder.0.join("taken").join("x"), b"").expect("a file in it");
        refused(write_atomic(folder.0.join("taken"), b"x"), "cannot be written");
        assert_eq!(names(&folder), ["taken"]);
        refused(write_atomic(folder.0.join(".."), b"x"), "does not name a file");
    }

    #[test]
    fn a_growing_file_takes_its_name_when_it_is_whole() {
        let (folder, path) = place("rows.csv");
        write_atomic(&path, b"before").expect("a free name");
        let mut growing = Growing::create(&path).expect("a folder of ours");
        growing.write_all(b"half").expect("room");
        assert_eq!(fs::read(&path).expect("the old one"), b"before");
        drop(growing);
        assert_eq!(names(&folder), ["rows.csv"], "nothing is left behind");
        let mut growing = Growing::create(&path).expect("a folder of ours");
        growing.write_all(b"whole").expect("room");
        growing.finish().expect("room");
        assert_eq!(fs::read(&path).expect("the new one"), b"whole");
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn reading_stops_at_the_limit() {
        let (folder, path) = place("plan.toml");
        write_atomic(&path, &[b'x'; 100]).expect("a free name");
        assert_eq!(read_limited(&path, 100).expect("just fits").len(), 100);
        refused(read_limited(&path, 99), "longer than the 99 bytes");
        refused(read_limited(&folder.0, 99), "not a regular file");
        refused(read_limited(folder.0.join("none"), 99), "cannot be read");
        assert_eq!(read_limited(&path, usize::MAX).expect("no limit").len(), 100);
    }
}
