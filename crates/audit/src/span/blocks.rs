//! The release rule as the adversary meets it: the cohorts that it leaves of those that would have been asked.

use std::collections::BTreeSet;

/// Sites that stand together for the life of a data set: every total is over whole blocks (review of the protocol, "blocks").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks(Vec<BTreeSet<String>>);

/// Blocks that are none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a block has fewer than {least} sites, or a site is in two blocks: make blocks of at least {least} sites each")]
pub struct NoBlocks {
    /// Sites that a block must have.
    pub least: usize,
}

impl Blocks {
    /// Blocks of at least `least` sites (`contributors` and those that may collude), no site in two.
    ///
    /// # Errors
    /// [`NoBlocks`] where they are not.
    pub fn new(blocks: Vec<BTreeSet<String>>, least: usize) -> Result<Blocks, NoBlocks> {
        let sites: BTreeSet<&String> = blocks.iter().flatten().collect();
        let apart = sites.len() == blocks.iter().map(BTreeSet::len).sum::<usize>();
        if apart && blocks.iter().all(|b| b.len() >= least) { Ok(Blocks(blocks)) } else { Err(NoBlocks { least }) }
    }

    /// The blocks.
    pub fn all(&self) -> &[BTreeSet<String>] {
        &self.0
    }

    /// The cohort that the rule leaves of one that would be asked: the blocks that are whole in it; nobody where none is.
    pub fn allowed(&self, cohort: &BTreeSet<String>) -> Option<BTreeSet<String>> {
        let whole: BTreeSet<String> = self.0.iter().filter(|b| b.is_subset(cohort)).flatten().cloned().collect();
        (!whole.is_empty()).then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(of: std::ops::Range<u32>) -> BTreeSet<String> {
        of.map(|i| format!("site-{i}")).collect()
    }

    #[test]
    fn only_whole_blocks_are_left() {
        let blocks = Blocks::new(vec![set(0..3), set(3..7)], 3).unwrap();
        assert_eq!(blocks.allowed(&set(0..7)), Some(set(0..7)));
        assert_eq!(blocks.allowed(&set(0..6)), Some(set(0..3)));
        assert_eq!(blocks.allowed(&set(1..8)), Some(set(3..7)));
        assert_eq!(blocks.allowed(&set(2..6)), None);
        assert!(Blocks::new(vec![set(0..3), set(2..7)], 3).is_err());
        assert!(Blocks::new(vec![set(0..2), set(2..7)], 3).is_err());
    }
}
