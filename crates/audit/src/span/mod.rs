//! The linear adversary: it measures how far totals over several cohorts determine the part of a single site or of a
//! few.
//!
//! A total over a cohort is a sum over the cohort's rows of functions that everybody knows, because everybody knows the
//! questions. So the adversary looks for a combination of all totals that is 1 on the rows of some sites and 0 on those
//! of all others. Where there is one, those sites' row count is known, and with a column's value in place of 1, that
//! column's sum. It needs no list of cases, no equal questions and no knowledge of the data: it tries the functions at
//! [`probes`], rows at random, solves least squares on one half of them and predicts its own error on the other.
//! Questions are read by the code with which sites answer ([`reading`]).
//!
//! The steps:
//! 1. every number of a total is divided by the standard deviation of its rounding; totals of one cohort are taken together;
//! 2. within a cohort, what stands above rounding is kept, in orthonormal combinations ([`crate::qr::row_space`]);
//! 3. sites that are in the same cohorts are an atom; groups of fewer than `contributors` sites are looked at: every union of
//!    whole atoms, and as a check every part of them, for which a share of the atom's sum is guessed;
//! 4. one least-squares problem with all atoms as right-hand sides ([`crate::qr`], no Gram matrix): the error on a group's rows counts as often as it
//!    has rows, for they may err alike, and the rounding counts with it;
//! 5. the error is predicted on the held-out probes, and a group is flagged where that is below half of what a site hides by
//!    standing in a sum of `least` sites: t of m sites guessed as t/m of their sum are off by (m - t) / sqrt((m - t)^2 + t^2).
//!
//! **What it shows and what it does not show.** It is linear: it looks for sums of released numbers. It does not use
//! further constraints (counts are whole and not negative, rows lie in the box), and it takes all sites to be of one
//! size. A group that it flags is in danger. If it flags nothing, that is a check of the release rule and no proof; the
//! proof is the rule's lemma, which holds against every adversary. With blocks it has nothing to find and must say so;
//! with the rule off it must find what was planted ([`federations`]).

mod adversary;
pub mod attacks;
mod blocks;
mod event;
pub mod federations;
pub mod probes;
pub mod read;
pub mod reading;
mod real;
pub mod report;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;
use veilsum_cluster::Prepared;

use adversary::{Group, Space};
pub use blocks::{Blocks, NoBlocks};
pub use told::Told;

/// What is taken for granted.
#[derive(Debug, Clone, Copy)]
pub struct Assumed {
    /// Groups of fewer sites than this are looked at: the release rule's `contributors`.
    pub contributors: usize,
    /// Sites of the smallest block that the rule allows.
    pub least: usize,
    /// Rows of a site, about.
    pub rows: f64,
    /// Of the probes.
    pub seed: u64,
}

/// The largest number of groups that are looked at, larger groups being dropped first: a federation of 100 sites has
/// this many pairs.
const MOST_GROUPS: usize = 5_000;

/// One sum over a group of sites.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sum {
    /// Error that the adversary expects, as a part of what there is.
    pub predicted: f64,
    /// Its estimate, in original units, where totals are known.
    pub estimate: Option<f64>,
    /// The true sum, where somebody knows it.
    pub truth: Option<f64>,
}

impl Sum {
    /// The true error, as a part of the truth.
    pub fn off(&self) -> Option<f64> {
        Some((self.estimate? - self.truth?).abs() / self.truth?.abs().max(f64::MIN_POSITIVE))
    }
}

/// How far a group of sites is determined.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// The sites.
    pub sites: Vec<String>,
    /// Whether cohorts separate them from all others.
    pub apart: bool,
    /// So many rows.
    pub rows: Sum,
    /// The sum of every column.
    pub columns: Vec<Sum>,
    /// The error of somebody who knows no more than a block's sum.
    pub floor: f64,
    /// Whether a predicted error is below half of the floor.
    pub flagged: bool,
}

/// What the adversary found.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Numbers that were released as sums over rows.
    pub numbers: usize,
    /// The number of these that are independent and above rounding.
    pub rank: usize,
    /// Sites that no cohort tells apart.
    pub atoms: Vec<Vec<String>>,
    /// Every group that was looked at; the most exposed first.
    pub parts: Vec<Part>,
    /// Whether there were more groups than are looked at.
    pub cut: bool,
}

impl Found {
    /// The groups that are flagged.
    pub fn flagged(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|p| p.flagged)
    }

    /// The part of exactly these sites.
    pub fn part(&self, sites: &[&str]) -> Option<&Part> {
        self.parts.iter().find(|p| p.sites == sites)
    }

    /// Puts the truth beside the estimates: every site's rows.
    pub fn compare(&mut self, rows: &BTreeMap<String, Prepared>) {
        for part in &mut self.parts {
            let own: Option<Vec<&Prepared>> = part.sites.iter().map(|s| rows.get(s)).collect();
            let Some(own) = own else { continue };
            part.rows.truth = Some(own.iter().map(|p| p.len() as f64).sum());
            for (j, sum) in part.columns.iter_mut().enumerate() {
                let one = |p: &&Prepared| -> f64 {
                    let (low, high) = p.domain().working_interval(j);
                    let (lower, upper) = (p.domain().lower()[j], p.domain().upper()[j]);
                    p.packed().to_rows().iter().map(|x| lower + (x[j] - low) / (high - low) * (upper - lower)).sum()
                };
                sum.truth = Some(own.iter().map(one).sum());
            }
        }
    }
}

/// The number of sites from each atom.
type Counts = Vec<usize>;

/// Runs the linear adversary on these totals.
///
/// # Errors
/// Where there is no total, or one cannot be read.
pub fn span(told: &[Told], assumed: &Assumed) -> Result<Found> {
    let space = Space::of(told, assumed.seed)?;
    let sites: BTreeSet<&String> = space.cohorts.iter().flatten().collect();
    let mut atoms: BTreeMap<Vec<bool>, Vec<String>> = BTreeMap::new();
    for site in sites {
        let pattern = space.cohorts.iter().map(|c| c.contains(site)).collect();
        atoms.entry(pattern).or_default().push(site.clone());
    }
    let atoms: Vec<(Vec<bool>, Vec<String>)> = atoms.into_iter().collect();
    let sizes: Counts = atoms.iter().map(|(_, sites)| sites.len()).collect();
    let mut sets = smaller(&sizes, assumed.contributors);
    let cut = sets.len() > MOST_GROUPS;
    sets.truncate(MOST_GROUPS);

    let all_of = |set: &Counts| set.iter().zip(&sizes).all(|(k, n)| *k == 0 || k == n);
    let groups = atoms.iter().map(|(inside, s)| Group { sites: s.len(), inside: inside.clone() }).collect();
    let solved = space.solve(groups, assumed.rows);
    let domain = &told[0].domain;
    let mut parts = Vec::new();
    for set in sets {
        let known = solved.known(&set);
        let t: usize = set.iter().sum();
        let rest = assumed.least.saturating_sub(t) as f64;
        let floor = rest / rest.hypot(t as f64);
        let column = |j: usize| {
            let (lower, upper) = (domain.lower()[j], domain.upper()[j]);
            let (rows, own) = (known[0].estimate, known[j + 1].estimate);
            let estimate = rows.zip(own).map(|(rows, own)| lower * rows + (upper - lower) * own);
            Sum { predicted: known[j + 1].predicted, estimate, truth: None }
        };
        parts.push(Part {
            // Sites of one atom are the same to the adversary: the first ones stand for all.
            sites: atoms.iter().zip(&set).flat_map(|((_, sites), k)| sites[..*k].to_vec()).collect(),
            apart: all_of(&set),
            rows: Sum { predicted: known[0].predicted, estimate: known[0].estimate, truth: None },
            columns: (0..space.targets() - 1).map(column).collect(),
            floor,
            flagged: known.iter().any(|k| k.predicted < floor / 2.0),
        });
    }
    parts.sort_by(|a, b| (a.rows.predicted / a.floor).total_cmp(&(b.rows.predicted / b.floor)));
    let atoms = atoms.into_iter().map(|(_, sites)| sites).collect();
    Ok(Found { numbers: space.numbers, rank: space.rank(), atoms, parts, cut })
}

/// Every way to take fewer than `contributors` sites, and at least one, from atoms of these sizes; few sites first.
fn smaller(sizes: &[usize], contributors: usize) -> Vec<Counts> {
    let mut out: Vec<Counts> = Vec::new();
    let mut last = vec![vec![0; sizes.len()]];
    for _ in 1..contributors {
        let mut next = BTreeSet::new();
        for set in &last {
            for g in (0..sizes.len()).filter(|g| set[*g] < sizes[*g]) {
                let mut more = set.clone();
                more[g] += 1;
                next.insert(more);
            }
        }
        last = next.into_iter().collect();
        out.extend(last.iter().cloned());
        if out.len() > MOST_GROUPS {
            break;
        }
    }
    out
}
