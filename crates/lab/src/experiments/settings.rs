//! How experiments are run, and why one has no result.

use std::path::PathBuf;

/// How experiments are run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Folder of data sets; `None` for nowhere.
    pub data: Option<PathBuf>,
    /// Few repetitions and the smallest sets: the form that continuous integration runs.
    pub quick: bool,
}

impl Settings {
    /// A tolerance; four times as wide where there are few repetitions.
    pub(super) fn loose(&self, tolerance: f64) -> f64 {
        if self.quick { 4.0 * tolerance } else { tolerance }
    }
}

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// Its data are not there.
    #[error("{0} is not in the data folder")]
    Missing(String),
    /// A data file cannot be read: which, and what is wrong with it.
    #[error("{0}: {1}")]
    File(String, String),
    /// A run failed, or its result cannot be measured.
    #[error(transparent)]
    Cluster(#[from] veilsum_cluster::Error),
    /// A masked run failed.
    #[error("the masked run failed: {0}")]
    Masked(String),
}
