//! What happens to the cohort of an attack, and how large it is.

/// Sites, in blocks of [`BLOCK`].
pub(super) const SITES: usize = 9;
/// Two contributors and one that may collude.
pub(super) const BLOCK: usize = 3;

/// What happens to the cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A site leaves in the middle of a run.
    Lost,
    /// A site comes with a second run of other first centres.
    Joiner,
    /// Six of nine sites are drawn in every round; with the rule two of three blocks.
    Sampled,
}
