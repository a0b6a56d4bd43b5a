//! The headings under which `--help` and `--help-all` list the options of `plan make` and `demo`.

pub(crate) const ROWS: &str = "Rows and files";
pub(crate) const METHOD: &str = "Method";
pub(crate) const CHOICE: &str = "Preparation, choice of K, validity";
pub(crate) const NOISE: &str = "Differential privacy";
pub(crate) const COHORT: &str = "Sites and losses";
