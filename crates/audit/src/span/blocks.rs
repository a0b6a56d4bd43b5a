//! The release rule from the adversary's side: the cohorts that remain of those that would have been asked. The rule
//! itself is the product's, [`veilsum_proto::release`].

use std::collections::{BTreeMap, BTreeSet};

use veilsum_proto::{
    identity::PublicKey,
    release::{self, Broken, Member, OwnBlock, Standing},
};

/// Sites that are released together for the life of a data set: every total is over whole blocks (spec section 11.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// By number.
    names: Vec<String>,
    rule: release::Blocks,
    /// Sites of a block at least.
    least: usize,
    all: Vec<BTreeSet<String>>,
}

/// Blocks that the rule refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("whoever made these blocks {} [{}]: make blocks of at least {least} sites each, no site in two", .broken.what, .broken.rule)]
pub struct NoBlocks {
    /// What does not hold.
    pub broken: Broken,
    /// Sites that a block must have.
    pub least: usize,
}

/// A site of this number, for the rule, which knows sites by their keys.
fn key(number: usize) -> PublicKey {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
    PublicKey(bytes)
}

impl Blocks {
    /// Blocks of at least `least` sites ([`release::least_sites`]), no site in two.
    ///
    /// # Errors
    /// [`NoBlocks`] where they are not.
    pub fn new(all: Vec<BTreeSet<String>>, least: usize) -> Result<Blocks, NoBlocks> {
        let names: BTreeSet<&String> = all.iter().flatten().collect();
        let numbers: BTreeMap<&String, u16> = names.iter().copied().zip(0..).collect();
        let partition: Vec<Vec<u16>> = all.iter().map(|b| b.iter().map(|site| numbers[site]).collect()).collect();
        let standing = Standing::default();
        let members: Vec<Member> =
            numbers.values().map(|site| Member { site: *site, key: key(usize::from(*site)), standing }).collect();
        let refused = |broken| NoBlocks { broken, least };
        let rule = release::Blocks::of(&members, &partition).map_err(refused)?;
        let blocks = Blocks { names: names.into_iter().cloned().collect(), rule, least, all };
        let everybody: Vec<u16> = (0..blocks.names.len() as u16).collect();
        blocks.admitted(&everybody).map_err(refused)?;
        Ok(blocks)
    }

    /// The blocks.
    pub fn all(&self) -> &[BTreeSet<String>] {
        &self.all
    }

    /// Whether every site of a cohort answers, each by the rule and the block that its data set belongs to.
    fn admitted(&self, cohort: &[u16]) -> Result<(), Broken> {
        for block in self.rule.0.iter().filter(|b| b.sites.iter().any(|site| cohort.binary_search(site).is_ok())) {
            let members = block.sites.iter().map(|site| (key(usize::from(*site)), 0)).collect();
            let own = OwnBlock { id: block.id, members };
            release::admit(&own, Some(&own), &self.rule, cohort, None, self.least)?;
        }
        Ok(())
    }

    fn numbers(&self, cohort: &BTreeSet<String>) -> Vec<u16> {
        let present = |(number, name): (u16, &String)| cohort.contains(name).then_some(number);
        (0..).zip(&self.names).filter_map(present).collect()
    }

    /// Why sites do not answer over this cohort, if they do not.
    pub fn refused(&self, cohort: &BTreeSet<String>) -> Option<Broken> {
        self.admitted(&self.numbers(cohort)).err()
    }

    /// The cohort that the rule leaves of one that would be asked: the blocks that are whole in it; nobody where none is.
    pub fn allowed(&self, cohort: &BTreeSet<String>) -> Option<BTreeSet<String>> {
        let whole = self.rule.whole_among(&self.numbers(cohort));
        let left = (!whole.is_empty()).then_some(whole)?;
        self.admitted(&left).ok()?;
        Some(left.into_iter().map(|site| self.names[usize::from(site)].clone()).collect())
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
        assert_eq!(blocks.refused(&set(0..7)), None);
        assert_eq!(blocks.refused(&set(0..6)).map(|b| b.rule), Some("REL-4"));
        let rule = |blocks| Blocks::new(blocks, 3).unwrap_err().broken.rule;
        assert_eq!(rule(vec![set(0..3), set(2..7)]), "REL-1");
        assert_eq!(rule(vec![set(0..2), set(2..7)]), "REL-3");
    }
}
