//! What is written of rows, whatever the form.

use crate::error::Failure;

/// What a column of memberships holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holds {
    Id,
    /// The number of a cluster.
    Cluster,
    Membership,
    Outside,
}

/// Which columns a row's line has, beside its id, whether it lies outside the box, and its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Its membership in every cluster.
    Memberships,
    /// The clusters of its largest memberships, with them.
    Top(usize),
    /// No more than these.
    Hard,
}

/// Rows with what they were assigned.
pub struct Part<'a> {
    /// One a row, where they have any.
    pub ids: Option<Vec<String>>,
    /// n x K, row by row; n x (K + 1) where there is a noise cluster, which comes last.
    pub memberships: &'a [f64],
    /// The clusters of the largest memberships, n x the number shown at least, or n x 1; the largest first. The noise cluster has the
    /// number K.
    pub largest: Vec<Vec<usize>>,
    /// Whether a row lies outside the box.
    pub outside: Vec<bool>,
}

/// The error of a table that cannot be written.
pub(super) fn unwritten(why: impl std::fmt::Display) -> Failure {
    Failure::input(
        format!("the memberships cannot be written ({why})"),
        "check free space and permissions of the folder; what was there before is unchanged",
    )
}
