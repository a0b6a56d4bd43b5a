//! A party's secret key, which is made where it lives.

use std::path::{Path, PathBuf};

use veilsum_node::{
    documents::{load_identity, write_key},
    error::Failure,
    files::Existing,
    random::system_rng,
};
use veilsum_proto::identity::Identity;

use crate::party::{head_of, state_of};

/// The identity of a party whose key is at `path`; it is made there (mode 0600) where there is none.
///
/// # Errors
/// A [`Failure`] where it cannot be written or read, or is another party's.
pub(crate) fn key_of(path: &Path, name: &str) -> Result<Identity, Failure> {
    if std::fs::symlink_metadata(path).is_err() {
        without_past(path)?;
        write_key(path, name, &Identity::generate(&mut system_rng()), Existing::Refuse)?;
    }
    let (identity, of) = load_identity(path)?;
    if of == name {
        return Ok(identity);
    }
    let what = format!("{}: this is the key of {of}, and not of {name}", path.display());
    Err(Failure::input(what, "choose another --folder"))
}

/// What was given away under a key is counted under it: another one in its place would begin the count anew.
fn without_past(key: &Path) -> Result<(), Failure> {
    let beside: [PathBuf; 2] = [head_of(key), state_of(key, None)];
    beside.into_iter().find(|path| path.exists()).map_or(Ok(()), |past| {
        Err(Failure::input(
            format!("{} is a key with a past: {} is beside it", key.display(), past.display()),
            "put the key back; a key for another party gets another name or folder",
        ))
    })
}
