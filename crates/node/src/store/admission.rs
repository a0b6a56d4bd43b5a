//! The state of admission, kept beside the journal so that it survives a restart: how far the coordinator's questions
//! have come.

use std::path::{Path, PathBuf};

use veilsum_proto::suite::Hash;

use crate::{
    admission::{Admission, MAX_BYTES},
    error::Failure,
    files::{self, Existing, Replacement},
};

fn file(folder: &Path, session: &Hash) -> PathBuf {
    folder.join(format!("{}.course", &session.to_string()[..16]))
}

/// Reads what an earlier process left; `None` where there is nothing. A damaged file counts as missing: the next
/// question is then checked only against the plan, as after a restart without the file.
pub(crate) fn load(folder: &Path, session: &Hash) -> Admission {
    let read = files::read_limited(file(folder, session), MAX_BYTES).map_err(|e| e.to_string());
    match read.and_then(|bytes| Admission::from_bytes(&bytes).map_err(|e| e.to_string())) {
        Ok(admission) => admission,
        Err(why) => {
            tracing::warn!("what the coordinator asked before is not known any more ({why})");
            Admission::default()
        }
    }
}

/// Writes it for a later process.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub(crate) fn save(admission: &Admission, folder: &Path, session: &Hash) -> Result<(), Failure> {
    Ok(files::write_private(file(folder, session), &admission.to_bytes(), Existing::Replace)?)
}

/// The first of two steps of [`save`].
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub(crate) fn replacement(admission: &Admission, folder: &Path, session: &Hash) -> Result<Replacement, Failure> {
    Ok(Replacement::write(&file(folder, session), &admission.to_bytes())?)
}

/// The run is over, or another one begins.
pub(crate) fn forget(folder: &Path, session: &Hash) {
    // Where it cannot be removed it is replaced with the next run's first question.
    let _ = std::fs::remove_file(file(folder, session));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    #[test]
    fn another_session_s_is_not_this_one_s_and_a_damaged_one_is_none() {
        let folder = Folder::new("admission");
        let (session, other) = (Hash([3; 32]), Hash([4; 32]));
        let mut admission = Admission::default();
        admission.counted = Some(vec![0, 1, 2]);
        save(&admission, &folder.0, &session).unwrap();
        assert_eq!(load(&folder.0, &session).counted, Some(vec![0, 1, 2]));
        assert_eq!(load(&folder.0, &other).counted, None);
        std::fs::write(file(&folder.0, &session), b"damaged").unwrap();
        assert_eq!(load(&folder.0, &session).counted, None);
        forget(&folder.0, &session);
        assert!(!file(&folder.0, &session).exists());
    }
}
