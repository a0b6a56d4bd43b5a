//! What the intermediary keeps beside its journal: of which of the coordinator's runs it is, what it was asked to judge, which is
//! asked once a run, what the sites handed over to judge by, which they send once, and whether the count has left.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use veilsum_proto::{codec, suite::Hash};

use crate::{
    app_messages::{CentreDistances, JudgeRequest},
    error::Failure,
    files::{self, Existing},
};

/// Distances and a request as long as their messages may be (9 MiB each), and a name.
const MAX_BYTES: usize = 2 * (9 << 20) + 1_024;

/// Of which run a journal is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Counting {
    /// The coordinator's run, by its name.
    pub run: Hash,
    /// What the coordinator asked to have judged, from before the sites are asked for it.
    pub judged: Option<JudgeRequest>,
    /// What was handed over to judge by.
    pub distances: Option<CentreDistances>,
    /// Whether the count has left, after which nothing is taken to be judged.
    pub handed: bool,
}

fn file(folder: &Path, session: &Hash) -> PathBuf {
    folder.join(format!("{}.counting", &session.to_string()[..16]))
}

/// Reads what an earlier process left. A damaged file counts as missing: the rows are then counted again.
pub(crate) fn load(folder: &Path, session: &Hash) -> Option<Counting> {
    let file = file(folder, session);
    if !file.exists() {
        return None;
    }
    let read = files::read_limited(file, MAX_BYTES).map_err(|e| e.to_string());
    match read.and_then(|bytes| codec::decode("what is counted", &bytes, MAX_BYTES).map_err(|e| e.to_string())) {
        Ok(counting) => Some(counting),
        Err(why) => {
            tracing::warn!("of which run the journal is, is not known any more ({why})");
            None
        }
    }
}

/// Writes it for a later process.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub(crate) fn save(counting: &Counting, folder: &Path, session: &Hash) -> Result<(), Failure> {
    Ok(files::write_private(file(folder, session), &codec::encode(counting), Existing::Replace)?)
}

/// The run is over.
pub(crate) fn forget(folder: &Path, session: &Hash) {
    // Where it cannot be removed it names a run that does not come again.
    let _ = std::fs::remove_file(file(folder, session));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    #[test]
    fn what_is_counted_is_found_again_and_a_damaged_file_is_none() {
        let folder = Folder::new("counting");
        let (session, other) = (Hash([3; 32]), Hash([4; 32]));
        assert_eq!(load(&folder.0, &session), None);
        let distances = CentreDistances { digest: Hash([5; 32]), matrices: vec![vec![0.0, 1.5, 1.5, 0.0]] };
        let judged = JudgeRequest { digest: Hash([5; 32]), clusters: vec![2], exponents: vec![1, 2] };
        let counting = Counting { run: Hash([6; 32]), judged: Some(judged), distances: Some(distances), handed: true };
        save(&counting, &folder.0, &session).unwrap();
        assert_eq!((load(&folder.0, &session), load(&folder.0, &other)), (Some(counting), None));
        std::fs::write(file(&folder.0, &session), b"damaged").unwrap();
        assert_eq!(load(&folder.0, &session), None);
        forget(&folder.0, &session);
        assert!(!file(&folder.0, &session).exists());
    }
}
