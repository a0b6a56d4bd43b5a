//! What all documents have in common: a format, a limit, errors that name the file and the line.

use std::{fs, os::unix::fs::OpenOptionsExt, path::Path};

use serde::{Deserialize, de::DeserializeOwned};
use toml::Spanned;
use veilsum_federation::error::Failure;
use veilsum_proto::Error;

use crate::{files, table::nearest};

#[derive(Deserialize)]
struct Head {
    format: Option<Spanned<String>>,
}

/// A document of exactly this format from its text, in whose type the format has no part; errors call it `path`.
pub(super) fn document<T: DeserializeOwned>(path: &Path, text: &str, format: &str, next: &str) -> Result<T, Failure> {
    let head: Head = toml::from_str(text).map_err(|e| parse_failure(path, text, &e, next))?;
    let Some(said) = head.format.as_ref().filter(|said| said.get_ref() == format) else {
        let found = head.format.map_or("says no format".into(), |f| format!("says format = {:?}", f.get_ref()));
        let what = format!("{}: it {found} where {format:?} belongs", path.display());
        return Err(Failure::input(what, format!("check that it is the right file; {next}")));
    };
    // What is left keeps its place, and so its line.
    let end = said.span().end;
    let begin = text[..said.span().start].rfind('\n').map_or(0, |at| at + 1);
    let rest = format!("{}{}{}", &text[..begin], " ".repeat(end - begin), &text[end..]);
    toml::from_str(&rest).map_err(|e| parse_failure(path, text, &e, next))
}

/// Holds a document that several processes change: a lock beside it (mode 0600), until the file is dropped.
pub(super) fn locked(path: &Path) -> Result<fs::File, Failure> {
    let lock = path.with_added_extension("lock");
    opened(&lock).and_then(|file| file.lock().map(|()| file)).map_err(|e| no_lock(&lock, &e))
}

/// The same for a lock that is held for long: nothing where another process holds it.
pub(super) fn try_locked(path: &Path) -> Result<Option<fs::File>, Failure> {
    let lock = path.with_added_extension("serving");
    let file = opened(&lock).map_err(|e| no_lock(&lock, &e))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(e)) => Err(no_lock(&lock, &e)),
    }
}

fn opened(lock: &Path) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock)
}

fn no_lock(lock: &Path, e: &std::io::Error) -> Failure {
    let what = format!("{} cannot be locked ({e})", lock.display());
    files::unwritten(e, what, "check free space and permissions of its folder")
}

pub(super) fn read_text(path: &Path, max: usize) -> Result<String, Failure> {
    let bytes = files::read_limited(path, max)?;
    let odd =
        |_| Failure::input(format!("{}: it is not UTF-8 text", path.display()), "check that it is the right file");
    String::from_utf8(bytes).map_err(odd)
}

/// The parser's own rendering quotes the line; its message alone does not.
pub(super) fn parse_failure(path: &Path, text: &str, error: &toml::de::Error, next: &str) -> Failure {
    let why = error.message().lines().next().unwrap_or("it is not TOML");
    let why = format!("{why}{}", meant(why).map_or(String::new(), |near| format!("; do you mean {near:?}?")));
    let line = error.span().map(|s| 1 + text.bytes().take(s.start).filter(|b| *b == b'\n').count());
    let place = line.map_or(String::new(), |l| format!(", line {l}"));
    Failure::input(format!("{}{place}: {why}", path.display()), next)
}

/// Of a message about an unknown name, which names all that are known: the known one that is written most like it.
fn meant(why: &str) -> Option<&str> {
    let mut names = why.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    nearest(names.next()?, names)
}

/// A document whose contents or signature the protocol core refused.
pub(super) fn refused(path: &Path, error: &Error, next: impl Into<String>) -> Failure {
    // Whoever changed the file need not be the signer, so the signer is not accused.
    let why = match error {
        Error::PeerMisbehaved { what, rule, .. } => format!("{what} [{rule}]"),
        other => other.to_string(),
    };
    Failure::input(format!("{}: {why}", path.display()), next)
}

pub(super) fn in_file(path: &Path, failure: Failure) -> Failure {
    Failure { message: format!("{}: {}", path.display(), failure.message), ..failure }
}

/// The text of a document of this format.
pub(super) fn text_of<T: serde::Serialize>(comment: &str, format: &str, value: &T) -> Result<String, Failure> {
    // The types here always have one.
    let text = toml::to_string(value).map_err(|e| Failure::defect(format!("the document has no text form: {e}")))?;
    Ok(format!("{comment}format = {format:?}\n{text}"))
}
