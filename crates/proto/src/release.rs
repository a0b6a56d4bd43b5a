//! The rule of blocks: exact totals may be released only over whole blocks of sites, for the life of a data set (spec
//! section 11.3, [REL-1] to [REL-8]). This module is where a second cohort is refused ([`admit`]). It is pure, and it
//! is the only rule of its kind, for every question, run, plan and aggregator.
//!
//! *Why no rule about questions.* Totals over S and over S without one site, at any centres whatever, subtract to that site's
//! row count and sums: a few rounds of fuzzy c-means span a space of functions of a row that contains constants and
//! coordinates to three digits. So it does not help to ask how near two questions are.
//!
//! **Lemma.** Let every honest site belong to one block, and let every released total be a sum over whole blocks,
//! T_i = Σ_{B ∈ F_i} Σ_{u ∈ B} g_i(x_u), where the question g_i and the blocks F_i may depend in any way on the totals before
//! and on whatever the colluding sites know. Then everything that was released is a function of what the colluding sites hold
//! and of the sums s_i(B) = Σ_{u ∈ B honest} g_i(x_u). It does not change when honest sites of one block exchange their data.
//!
//! *Proof.* By induction over i. The choice of g_1 and F_1 depends on nothing that honest sites hold; if T_1 … T_{i−1} are
//! functions of the colluders' data and of the sums, so are g_i and F_i, and T_i is the sum of the s_i(B) over F_i and of what
//! the colluding sites of these blocks added. An exchange within a block permutes the terms of each s_i(B) and changes none of
//! these sums. ∎
//!
//! Adaptive and nonlinear computation on totals is covered. The lemma does not protect a site that dominates its block,
//! or a site whose rows lie apart from all others'.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    identity::PublicKey,
    rule::Rule,
    suite::{self, Hash},
};

/// What a site states of its data set, signed with its keys for a deck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// What the account is known by that its answers go to, whichever key it has ([LED-9]); nothing where it keeps none.
    pub account: Option<Hash>,
    /// The block that it belongs to for the life of the data set; nothing before its first masked words have left.
    pub block: Option<Hash>,
    /// How often its rows have changed since then.
    pub version: u32,
    /// How far its ledger has come ([LED-11]).
    pub answered: Answered,
}

/// How far a ledger has come: answers alone count, because a site that others refuse gives none, and so does not catch up with what it
/// stated before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Answered {
    /// Answers that ever left, under any plan.
    pub number: u64,
    /// Names all of them by where they were given; zeros where there is none. No row enters it.
    pub link: Hash,
}

impl Answered {
    /// After one more answer, in this session and run and in this deck and slot.
    #[must_use]
    pub fn and(&self, session: &Hash, run: &Hash, (deck, slot): (u32, u16)) -> Answered {
        let parts: [&[u8]; 5] = [&self.link.0, &session.0, &run.0, &deck.to_le_bytes(), &slot.to_le_bytes()];
        Answered { number: self.number + 1, link: suite::hash("answers given", &parts) }
    }
}

/// A site of a directory and what it states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its number in the roster.
    pub site: u16,
    /// Its key in the roster.
    pub key: PublicKey,
    /// What it states.
    pub standing: Standing,
}

impl Member {
    /// What it is known by in every roster: its account, else its key.
    pub fn id(&self) -> Hash {
        self.standing.account.unwrap_or(Hash(self.key.0))
    }
}

/// Sites whose parts are released only together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Block {
    /// Names it in every roster, plan and run.
    pub id: Hash,
    /// Its sites by their numbers in the roster, ascending.
    pub sites: Vec<u16>,
    /// What each is known by ([`Member::id`]), in the order of `sites`.
    pub ids: Vec<Hash>,
    /// How often each one's rows have changed, in the order of `sites`.
    pub versions: Vec<u32>,
}

/// The blocks of a directory: every member is in one of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Blocks(pub Vec<Block>);

/// A site's own block as it is known in every roster, plan and run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OwnBlock {
    /// Names it.
    pub id: Hash,
    /// What its members are known by ([`Member::id`]), ascending, and how often each one's rows have changed.
    pub members: Vec<(Hash, u32)>,
}

/// A rule that does not hold, and which site's statement contradicts it, if it is one site's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// What is wrong, as the end of a sentence about the party that proposed it.
    pub what: &'static str,
    /// The site that it is about.
    pub site: Option<u16>,
    /// The rule.
    pub rule: Rule,
}

fn broken<T>(what: &'static str, site: Option<u16>, rule: Rule) -> Result<T, Broken> {
    Err(Broken { what, site, rule })
}

/// [REL-2]: names these sites, whatever their order: a block by what its members are known by, or a cohort in a ledger by their keys.
pub fn block_id(ids: impl IntoIterator<Item = Hash>) -> Hash {
    let keys: BTreeSet<[u8; 32]> = ids.into_iter().map(|id| id.0).collect();
    suite::hash("cohort in a ledger", &[&keys.into_iter().collect::<Vec<_>>().concat()])
}

/// [REL-3]: sites that a block has at least, so that `contributors` honest ones stand behind whatever is released of it.
/// `colluders` is the larger of the plan's and the site's own number. Totals are opened, so every member sees them, and
/// one of the others at least is taken to look. With `contributors` of 0 or 1 a site may be a block by itself: what it sent can
/// be computed once it has left.
pub fn least_sites(contributors: u32, colluders: usize) -> usize {
    match contributors {
        0 | 1 => 1,
        c => (c as usize).saturating_add(colluders.max(1)),
    }
}

/// [REL-6]: the number of signatures that show that a slot gives no total. The sites that have not signed, and
/// `colluders` that sign and share nevertheless, are then fewer than the `threshold` of a deck of `members`.
pub fn burned_by(members: usize, threshold: usize, colluders: usize) -> usize {
    (members + colluders + 1).saturating_sub(threshold)
}

/// [REL-7]: whether a block's rows may be another version than at its last total: nobody's, or those of at least `least`
/// sites at once. A difference of two totals is then that of as many sites.
///
/// # Errors
/// [`Broken`] where fewer changed, or a version went back.
pub fn may_change(before: &[(Hash, u32)], now: &[(Hash, u32)], least: usize) -> Result<(), Broken> {
    let before: BTreeMap<[u8; 32], u32> = before.iter().map(|(key, version)| (key.0, *version)).collect();
    let mut changed = 0;
    for (key, version) in now {
        match before.get(&key.0) {
            Some(old) if version < old => {
                return broken("shows rows that an earlier version has replaced", None, Rule::Rel7);
            }
            Some(old) if version == old => {}
            _ => changed += 1,
        }
    }
    if changed > 0 && changed < least {
        return broken("shows a block in which the rows of too few sites have changed", None, Rule::Rel7);
    }
    Ok(())
}

/// [REL-3] to [REL-5], [REL-7]: whether a data set's answer may enter a total over `cohort`. `before` is the block that this
/// data set belongs to, with the versions at its last answer, if it has answered; `drawn` are the sites whose rows a public
/// draw takes, where there is one; `least` is [`least_sites`].
///
/// # Errors
/// [`Broken`].
pub fn admit(
    own: &OwnBlock,
    before: Option<&OwnBlock>,
    blocks: &Blocks,
    cohort: &[u16],
    drawn: Option<&[u16]>,
    least: usize,
) -> Result<(), Broken> {
    if own.members.len() < least {
        return broken("asks a block of too few sites", None, Rule::Rel3);
    }
    blocks.whole(cohort)?;
    blocks.whole(drawn.unwrap_or_default())?;
    match before {
        Some(before) if before.id != own.id => {
            broken("asks these rows in another block than the one they were released in before", None, Rule::Rel5)
        }
        Some(before) => may_change(&before.members, &own.members, least),
        None => Ok(()),
    }
}

impl Blocks {
    /// [REL-1], [REL-2]: the blocks that a directory names, if they are a partition of its members, and nobody is in another
    /// block than it states.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn of(members: &[Member], partition: &[Vec<u16>]) -> Result<Blocks, Broken> {
        let by_site: BTreeMap<u16, &Member> = members.iter().map(|member| (member.site, member)).collect();
        let mut seen = BTreeSet::new();
        let mut blocks = Vec::with_capacity(partition.len());
        for sites in partition {
            if sites.is_empty() || !sites.is_sorted_by(|a, b| a < b) {
                return broken("names an empty block, or one that is not sorted", None, Rule::Rel1);
            }
            let mut found = Vec::with_capacity(sites.len());
            for site in sites {
                let Some(member) = by_site.get(site) else {
                    return broken("names a block with a site that is not in the directory", Some(*site), Rule::Rel1);
                };
                if !seen.insert(*site) {
                    return broken("names a site in two blocks", Some(*site), Rule::Rel1);
                }
                found.push(**member);
            }
            let id = block_id(found.iter().map(Member::id));
            if let Some(other) = found.iter().find(|member| member.standing.block.is_some_and(|stated| stated != id)) {
                return broken(
                    "puts a site into another block than the one it belongs to",
                    Some(other.site),
                    Rule::Rel2,
                );
            }
            let versions = found.iter().map(|member| member.standing.version).collect();
            let ids = found.iter().map(Member::id).collect();
            blocks.push(Block { id, sites: sites.clone(), ids, versions });
        }
        let mut ids = BTreeSet::new();
        if let Some(twice) = members.iter().find(|member| !ids.insert(member.id().0)) {
            return broken("shows one account at two sites", Some(twice.site), Rule::Rel1);
        }
        if let Some(left_out) = members.iter().find(|member| !seen.contains(&member.site)) {
            return broken("leaves a site out of all blocks", Some(left_out.site), Rule::Rel1);
        }
        Ok(Blocks(blocks))
    }

    /// Of `sites`, ascending, those whose block is not whole among them.
    pub fn cut_among(&self, sites: &[u16]) -> Vec<u16> {
        let whole = self.whole_among(sites);
        sites.iter().copied().filter(|site| whole.binary_search(site).is_err()).collect()
    }

    /// The block of a site.
    pub fn block_of(&self, site: u16) -> Option<&Block> {
        self.0.iter().find(|block| block.sites.binary_search(&site).is_ok())
    }

    /// [REL-4]: whether these sites, ascending, are whole blocks.
    ///
    /// # Errors
    /// [`Broken`] with a site whose block is cut.
    pub fn whole(&self, sites: &[u16]) -> Result<(), Broken> {
        let within = |site: &u16| sites.binary_search(site).is_ok();
        match self.0.iter().find(|block| block.sites.iter().any(within) && !block.sites.iter().all(within)) {
            Some(cut) => broken("cuts a block", cut.sites.iter().copied().find(|site| !within(site)), Rule::Rel4),
            None => Ok(()),
        }
    }

    /// All sites, ascending, of the blocks that are complete in `present`.
    pub fn whole_among(&self, present: &[u16]) -> Vec<u16> {
        let here = |site: &u16| present.binary_search(site).is_ok();
        let whole = self.0.iter().filter(|block| block.sites.iter().all(here));
        let mut sites: Vec<u16> = whole.flat_map(|block| block.sites.iter().copied()).collect();
        sites.sort_unstable();
        sites
    }
}

/// How an aggregator arranges the members of a directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proposal {
    /// The blocks.
    pub blocks: Vec<Vec<u16>>,
    /// Sites that cannot take part because somebody of their block is missing.
    pub incomplete: Vec<u16>,
    /// Sites without a block that are too few for one of their own.
    pub too_few: Vec<u16>,
}

/// Arranges `members`. Sites that state a block form that block if all of it is here. All others form new blocks of at
/// least `size` sites each, as many as possible, or one block where `size` is 0. A new block has at least `least`
/// sites. A block of an earlier deck, in `known`, stays if all of its sites are here and none states another.
pub fn propose(members: &[Member], known: &Blocks, size: u16, least: usize) -> Proposal {
    let mut proposal = Proposal::default();
    let by_site: BTreeMap<u16, &Member> = members.iter().map(|member| (member.site, member)).collect();
    // Of two that state one account, one does not have it.
    let mut ids = BTreeSet::new();
    let (by_site, twice): (BTreeMap<_, _>, BTreeMap<_, _>) =
        by_site.into_iter().partition(|(_, member)| ids.insert(member.id().0));
    proposal.incomplete.extend(twice.into_keys());
    let mut kept = BTreeSet::new();
    for block in &known.0 {
        let stays = |site: &u16| {
            by_site.get(site).is_some_and(|member| member.standing.block.is_none_or(|stated| stated == block.id))
        };
        if block.sites.iter().all(stays) {
            kept.extend(block.sites.iter().copied());
            proposal.blocks.push(block.sites.clone());
        }
    }
    let mut stated: BTreeMap<[u8; 32], Vec<&Member>> = BTreeMap::new();
    let mut fresh = Vec::new();
    for member in by_site.into_values().filter(|member| !kept.contains(&member.site)) {
        match member.standing.block {
            Some(block) => stated.entry(block.0).or_default().push(member),
            None => fresh.push(member),
        }
    }
    for (id, mut block) in stated {
        let whole = |block: &[&Member]| block_id(block.iter().map(|member| member.id())).0 == id;
        // A member that lost its block's first round states no block; a new site beside it would make another block.
        if !whole(&block) && whole(&[&block[..], &fresh[..]].concat()) {
            block.append(&mut fresh);
        }
        let mut sites: Vec<u16> = block.iter().map(|member| member.site).collect();
        sites.sort_unstable();
        if whole(&block) {
            proposal.blocks.push(sites);
        } else {
            proposal.incomplete.extend(sites);
        }
    }
    let fresh: Vec<u16> = fresh.iter().map(|member| member.site).collect();
    let smallest = least.max(usize::from(size)).max(1);
    if fresh.len() < smallest {
        proposal.too_few.extend(fresh);
    } else {
        let count = if size == 0 { 1 } else { fresh.len() / smallest };
        // As even as can be; the first ones have one more.
        let (each, more) = (fresh.len() / count, fresh.len() % count);
        let mut rest = &fresh[..];
        for i in 0..count {
            let (block, after) = rest.split_at(each + usize::from(i < more));
            proposal.blocks.push(block.to_vec());
            rest = after;
        }
    }
    proposal.blocks.sort_unstable();
    proposal.incomplete.sort_unstable();
    proposal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(site: u16) -> Hash {
        let mut bytes = [7; 32];
        bytes[..2].copy_from_slice(&site.to_be_bytes());
        Hash(bytes)
    }

    fn member(site: u16, block: Option<&[u16]>) -> Member {
        let block = block.map(|sites| block_id(sites.iter().map(|s| key(*s))));
        Member { site, key: PublicKey(key(site).0), standing: Standing { block, ..Standing::default() } }
    }

    /// [REL-6].
    #[test]
    fn rel_6_as_many_promises_as_a_slot_takes_and_no_more() {
        for n in 3..60usize {
            for t in 2..=n {
                for c in (0..n).filter(|c| 2 * t > n + c && t >= c + 2) {
                    let burned = burned_by(n, t, c);
                    // What is left cannot open anything, and as many signatures can be had when a site is missing.
                    assert!(n - burned + c < t && burned < n, "{n} {t} {c}");
                    assert!(n - (burned - 1) + c >= t, "tight");
                }
            }
        }
    }

    proptest! {
        /// Whatever sites state, what an aggregator proposes passes the check that every site makes.
        #[test]
        fn what_is_proposed_is_accepted(
            of in prop::collection::vec(0u8..5, 1..24), here in prop::collection::vec(any::<bool>(), 24),
            stated in prop::collection::vec(any::<bool>(), 24), size in 0u16..5, least in 1usize..4,
        ) {
            let block = |b: u8| (0..).zip(&of).filter(|(_, o)| **o == b).map(|(s, _)| s).collect::<Vec<u16>>();
            let members: Vec<Member> = (0u16..).zip(&of).filter(|(s, _)| here[usize::from(*s)])
                .map(|(s, b)| member(s, (*b < 4 && stated[usize::from(s)]).then(|| block(*b)).as_deref()))
                .collect();
            let proposal = propose(&members, &Blocks::default(), size, least);
            let out = |s: &u16| proposal.incomplete.contains(s) || proposal.too_few.contains(s);
            let kept: Vec<Member> = members.iter().filter(|m| !out(&m.site)).copied().collect();
            let blocks = Blocks::of(&kept, &proposal.blocks).unwrap();
            let all: Vec<u16> = kept.iter().map(|m| m.site).collect();
            prop_assert!(blocks.whole(&all).is_ok());
            prop_assert_eq!(blocks.whole_among(&all), all);
            for block in &blocks.0 {
                let fresh = block.sites.iter().all(|s| kept.iter().any(|m| m.site == *s && m.standing.block.is_none()));
                prop_assert!(!fresh || block.sites.len() >= least.max(usize::from(size)));
            }
        }
    }
}
