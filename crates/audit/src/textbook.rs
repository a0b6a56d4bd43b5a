//! The control for attacks on masks: Bonawitz et al. (CCS 2017) as printed and without its consistency check. A site shares one
//! key with every other, keeps it over rounds, and derives its masks from the pair and the round alone.
//!
//! It is built from the protocol core's own primitives, so that only the missing protection differs.

use anyhow::{Context, Result};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use veilsum_proto::vectors_api as core;

/// A long-term key of one site with its shares, and the same of its self-mask.
struct Member {
    key: [u8; 32],
    key_shares: Vec<[u8; 32]>,
    own: [u8; 32],
    own_shares: Vec<[u8; 32]>,
}

/// A federation after its exchange of keys.
pub struct Textbook {
    members: Vec<u16>,
    t: usize,
    sites: Vec<Member>,
}

impl Textbook {
    /// `n` sites of which `t` open a secret.
    pub fn new(n: u16, t: usize, seed: u64) -> Textbook {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let members: Vec<u16> = (0..n).collect();
        let mut site = |_: &u16| {
            let (key, key_shares) = core::dealt(t, &members, &mut rng);
            let (own, own_shares) = core::dealt(t, &members, &mut rng);
            Member { key, key_shares, own, own_shares }
        };
        let sites = members.iter().map(&mut site).collect();
        Textbook { members, t, sites }
    }

    /// What `site` sends in a round.
    pub fn masked(&self, site: u16, round: u32, words: &[u64]) -> Vec<u64> {
        let (mut out, me) = (words.to_vec(), &self.sites[usize::from(site)]);
        core::mask(&mut out, &of_round(&me.own, round), None);
        for other in self.members.iter().filter(|o| **o != site) {
            let theirs = core::public_key(&self.sites[usize::from(*other)].key);
            core::mask(&mut out, &pair(&me.key, &theirs, round), Some((site, *other)));
        }
        out
    }

    /// An honest opening: the self-masks of all sites come off the sum.
    pub fn total(&self, received: &[Vec<u64>], round: u32) -> Vec<u64> {
        let mut sum = vec![0u64; received.first().map_or(0, Vec::len)];
        received.iter().for_each(|words| sum.iter_mut().zip(words).for_each(|(t, w)| *t = t.wrapping_add(*w)));
        self.sites.iter().for_each(|site| core::unmask(&mut sum, &of_round(&site.own, round), None));
        sum
    }

    /// The words of `target` from what it sent in `round`, with its self-mask from one group's shares, who believe it alive,
    /// and its key from another's, who believe it gone.
    ///
    /// # Errors
    /// Where a group is too small.
    pub fn opened(&self, target: u16, round: u32, received: &[u64], groups: [&[u16]; 2]) -> Result<Vec<u64>> {
        let it = &self.sites[usize::from(target)];
        let from = |group: &[u16], shares: &[[u8; 32]]| {
            let group = group.get(..self.t).context("too few shares")?;
            let shares: Vec<_> = group.iter().map(|m| shares[usize::from(*m)]).collect();
            anyhow::Ok(core::recover(group, &shares))
        };
        let (own, key) = (from(groups[0], &it.own_shares)?, from(groups[1], &it.key_shares)?);
        let mut out = received.to_vec();
        core::unmask(&mut out, &of_round(&own, round), None);
        for other in self.members.iter().filter(|o| **o != target) {
            let theirs = core::public_key(&self.sites[usize::from(*other)].key);
            core::unmask(&mut out, &pair(&key, &theirs, round), Some((target, *other)));
        }
        Ok(out)
    }
}

fn pair(own: &[u8; 32], theirs: &[u8; 32], round: u32) -> [u8; 32] {
    core::agreed(own, theirs, "audit pair", &[&round.to_le_bytes()])
}

fn of_round(own: &[u8; 32], round: u32) -> [u8; 32] {
    core::expand(own, "audit self", &[&round.to_le_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_honest_total_is_the_sum() {
        let t = Textbook::new(5, 3, 1);
        let sent: Vec<Vec<u64>> = (0..5).map(|s| t.masked(s, 7, &[u64::from(s), 10])).collect();
        assert_ne!(sent[1], [1, 10]);
        assert_eq!(t.total(&sent, 7), [10, 50]);
        assert_ne!(t.total(&sent, 8), [10, 50]);
    }

    #[test]
    fn both_secrets_of_a_site_open_its_words_and_one_does_not() {
        let t = Textbook::new(6, 3, 2);
        let sent = t.masked(2, 1, &[77]);
        assert_eq!(t.opened(2, 1, &sent, [&[0, 1, 3], &[4, 5, 0]]).unwrap(), [77]);
        assert!(t.opened(2, 1, &sent, [&[0, 1], &[4, 5, 0]]).is_err());
    }
}
