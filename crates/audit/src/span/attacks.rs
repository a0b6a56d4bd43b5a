//! What honest totals over changing cohorts give away about single sites, and what remains of that where all cohorts
//! are unions of whole blocks. These are the audit's entries for a lost site, a late joiner and sampled sites.
//!
//! Nobody lies, every total is exact and behind masks, and no two questions are alike. The totals are those that the sites' own
//! code adds up to; the cohorts are those of the event, and with the rule those that [`Blocks::allowed`] leaves of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use anyhow::{Context as _, Result};
use veilsum_cluster::{Algorithm, Domain, Recipe, Scaling, method::Seeding, query::LocalSteps, random::Stream};

pub use super::event::Event;
use super::{
    Assumed, Blocks, Found, Told,
    event::{BLOCK, SITES},
    federations::Sites,
    real, span,
};
use crate::{
    finding::{Finding, Limit, Measure, Rate},
    scene::{CLUMPS, EDGE, Scene},
};

const LABEL: &[u8; 24] = b"veilsum audit span atk 1";
const ROWS: usize = 100;
/// Rounds on either side of a change.
const ROUNDS: u32 = 10;

/// Name on the command line.
pub const LOST: &str = "lost-site";
/// Of the joiner's attack.
pub const JOINER: &str = "late-joiner";
/// Of the attack on sampling.
pub const SAMPLED: &str = "sampling-sites";

/// All totals of the event under this algorithm.
fn released(
    event: Event,
    algorithm: &Algorithm,
    sites: &mut Sites,
    seed: u64,
    blocks: Option<&Blocks>,
) -> Result<Vec<Told>> {
    let everybody = sites.everybody();
    let mut fewer = everybody.clone();
    fewer.pop_first();
    let mut draws = Stream::new(seed, LABEL);
    let units: Vec<BTreeSet<String>> = match blocks {
        Some(blocks) => blocks.all().to_vec(),
        None => everybody.iter().map(|site| BTreeSet::from([site.clone()])).collect(),
    };
    // Hard groups come to rest soon.
    let before = if matches!(algorithm, Algorithm::Fcm { .. }) { ROUNDS as usize } else { 2 };
    let mut told = Vec::new();
    let runs = if event == Event::Joiner { 2 } else { 1 };
    for run in 0..runs {
        let recipe = Recipe::plain(algorithm.clone(), CLUMPS.len() as u32, Seeding::Uniform { seed: seed + run });
        told.extend(sites.play(&recipe, &mut |question, iterating| {
            let wanted = match event {
                Event::Lost if question < before => everybody.clone(),
                Event::Joiner if run > 0 => everybody.clone(),
                Event::Lost | Event::Joiner => fewer.clone(),
                // The last totals, which tell how good the result is, are over everybody.
                Event::Sampled if !iterating => everybody.clone(),
                Event::Sampled => {
                    let mut order = units.clone();
                    draws.shuffle(&mut order);
                    order.into_iter().take(units.len() * 2 / 3).flatten().collect()
                }
            };
            match blocks {
                None => Some(wanted),
                Some(blocks) => blocks.allowed(&wanted),
            }
        })?);
    }
    Ok(told)
}

/// The sites' numbers and what the adversary finds, with the rule and without.
fn played(event: Event, algorithm: &Algorithm, seed: u64, rule: bool) -> Result<Found> {
    let scene = Scene::clumps(seed, SITES, ROWS, 1)?;
    let rows: BTreeMap<_, _> = scene.sites.into_iter().collect();
    let mut sites = Sites::new(&rows, Domain::new(vec![-EDGE; 2], vec![EDGE; 2], Scaling::None)?, None)?;
    let names: Vec<String> = rows.keys().cloned().collect();
    let blocks = names.chunks(BLOCK).map(|b| b.iter().cloned().collect()).collect();
    let blocks = rule.then(|| Blocks::new(blocks, BLOCK)).transpose()?;
    let told = released(event, algorithm, &mut sites, seed, blocks.as_ref())?;
    let mut found = span(&told, &Assumed { contributors: BLOCK - 1, least: BLOCK, rows: ROWS as f64, seed })?;
    found.compare(&sites.rows);
    Ok(found)
}

/// Runs the linear adversary on an event, for k-means and for fuzzy c-means, with the rule and without.
///
/// # Errors
/// Where the federation cannot be played.
pub fn run(event: Event, seed: u64) -> Result<Finding> {
    let began = Instant::now();
    let name = match event {
        Event::Lost => LOST,
        Event::Joiner => JOINER,
        Event::Sampled => SAMPLED,
    };
    let max_rounds = if event == Event::Joiner { ROUNDS } else { 2 * ROUNDS };
    let methods = [
        ("k-means", Algorithm::Kmeans { epsilon: 0.0, max_rounds }, 1e-3),
        ("kumar", Algorithm::Kumar { epsilon: 0.0, max_rounds, local: LocalSteps::ONE }, 1e-3),
        ("fcm", Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds }, if event == Event::Sampled { 0.4 } else { 0.02 }),
    ];
    let (mut measures, mut details) = (Vec::new(), Vec::new());
    for (method, algorithm, limit) in methods {
        let (off, on) = (played(event, &algorithm, seed, false)?, played(event, &algorithm, seed, true)?);
        // Whose cohorts differ from all others'; with sampling everybody's.
        let alone: Vec<_> = off.parts.iter().filter(|p| p.apart).collect();
        let (mut found, mut left) = (Rate::default(), Rate::default());
        alone.iter().for_each(|p| found.add(p.flagged));
        on.parts.iter().for_each(|p| left.add(p.flagged));
        let worst = alone.iter().map(|p| p.rows.predicted).fold(0.0, f64::max);
        let least = on.parts.iter().map(|p| p.rows.predicted / p.floor).fold(f64::INFINITY, f64::min);
        let true_off = alone.iter().filter_map(|p| p.rows.off()).fold(0.0, f64::max);
        let first = alone.first().context("no site stands alone: the event did not happen")?;
        measures.push(Measure::rates(format!("sites determined ({method})"), found, left, 0.0));
        measures.push(Measure::new(
            format!("row count, predicted error; with the rule in floors ({method})"),
            worst,
            Limit::AtMost(limit),
            least,
            Limit::AtLeast(1.0 - 1e-9),
        ));
        let (before, now) =
            (real::answered(event, &algorithm, seed, false)?, real::answered(event, &algorithm, seed, true)?);
        measures.push(Measure::rates(format!("real sites' answers ({method})"), before.rate, now.rate, 0.0));
        let rules: Vec<String> = now.rules.into_iter().collect();
        details.push(format!("{method}: real sites refuse under {}", rules.join(", ")));
        details.push(format!(
            "{method}: {} has {} rows, estimated {}; sum of column 1 {}, estimated {}; row counts are off by at most {true_off:.1e}",
            first.sites.join(", "),
            first.rows.truth.unwrap_or(f64::NAN),
            crate::finding::short(first.rows.estimate.unwrap_or(f64::NAN)),
            crate::finding::short(first.columns[0].truth.unwrap_or(f64::NAN)),
            crate::finding::short(first.columns[0].estimate.unwrap_or(f64::NAN)),
        ));
    }
    Ok(Finding {
        attack: name,
        needs: "exact totals over cohorts that differ by single sites; nobody lies, no two questions are alike",
        control: "totals of the sites' own answers, cohorts as the event makes them: whoever is there",
        protection: "the release rule: every total is over whole blocks of at least three sites [REL-3], [REL-4], for the life of a \
                     data set [REL-2], [REL-5]",
        measures,
        also_broken: None,
        details,
        not_shown: "attackers that use more than sums of totals: against them stands the rule's lemma, not this measurement; a site \
                    that dominates its block",
        seconds: began.elapsed().as_secs_f64(),
    })
}
