//! Rows that move between rounds of a method with hard groups (TAR: Yang, Luo & Li 2025, arXiv 2511.07073): where one group loses what another
//! one wins, and both by one row, that is the row.

use anyhow::Result;
use veilsum_cluster::{Centres, Query, random::Stream};

use super::{
    attacks::Told,
    scene::Scene,
    solve::{RARE, tail},
    tried::{Answer, Tried, not_applicable},
};
use crate::finding::short;

const LABEL: &[u8; 24] = b"veilsum audit moving  v1";
/// Deviations up to which two numbers are the same.
const SAME: f64 = 4.0;
/// A guess is a row where no column is off by more than this part of its range.
const HIT: f64 = 1e-4;
/// Guesses by which blind guessing is measured.
const GUESSES: usize = 2_000;

/// Row counts and sums of every group in one round, with their deviations.
struct Round<'a> {
    rows: [&'a [f64]; 2],
    sums: [&'a [f64]; 2],
    /// What is taken off each row before it is summed up, K x d; nothing where sums are of the rows themselves.
    from: Option<Vec<f64>>,
}

fn rounds<'a>(scene: &Scene, told: &'a Told) -> Result<Vec<Round<'a>>> {
    let domain = scene.work.domain()?;
    let of = |asked: &'a super::play::Asked| {
        let (names, from) = match asked.query()? {
            Query::LocalMeans(means) if means.local.most == 1 && !means.nearest => (["rows", "sums"], None),
            Query::Shifts(shifts) if shifts.m.is_none() => (["weights", "shifts"], Some(shifts.references(&domain))),
            _ => return None,
        };
        let [rows, sums] = [asked.block(names[0])?, asked.block(names[1])?];
        let both = |at: std::ops::Range<usize>| [&asked.total[at.clone()], &asked.deviations[at]];
        Some(Round { rows: both(rows), sums: both(sums), from })
    };
    Ok(told.played.asked.iter().filter_map(of).collect())
}

/// What looks like a row that moved alone, working units.
fn moved(before: &Round<'_>, after: &Round<'_>) -> Vec<Vec<f64>> {
    let k = after.rows[0].len();
    if before.rows[0].len() != k || before.sums[0].len() != after.sums[0].len() {
        return Vec::new();
    }
    let d = after.sums[0].len() / k.max(1);
    let whole = |round: &Round<'_>, group: usize, f: usize| {
        let at = group * d + f;
        round.sums[0][at] + round.from.as_ref().map_or(0.0, |from| from[at] * round.rows[0][group])
    };
    let change = |group: usize| after.rows[0][group] - before.rows[0][group];
    let give = |group: usize| (SAME * after.rows[1][group]).clamp(1e-6, 0.5);
    let by = |wanted: f64| (0..k).filter(move |group| (change(*group) - wanted).abs() < give(*group));
    let mut found = Vec::new();
    for lost in by(-1.0) {
        for won in by(1.0) {
            let x = |group: usize, f: usize| whole(after, group, f) - whole(before, group, f);
            let near = |f: usize| {
                let spread = after.sums[1][won * d + f].max(after.sums[1][lost * d + f]);
                (x(won, f) + x(lost, f)).abs() <= SAME * 2.0 * spread + 1e-7
            };
            if (0..d).all(near) {
                found.push((0..d).map(|f| f64::midpoint(x(won, f), -x(lost, f))).collect());
            }
        }
    }
    found
}

/// Rows that move alone.
///
/// # Errors
/// Where a guess has other columns than the plan.
pub(super) fn moving(scene: &Scene, told: &Told, seed: u64) -> Result<Vec<Tried>> {
    let tries = "somebody subtracts the totals of successive rounds, and takes what one group loses and another one wins for a row";
    let no = |why| Ok(vec![not_applicable("moving rows", tries, why)]);
    let seen = rounds(scene, told)?;
    if seen.len() < 2 {
        return no("the plan has no rounds with hard groups");
    }
    if scene.work.recipe.prepares() {
        return no("columns are scaled by totals first, and rows are compared in the plan's units");
    }
    let guesses: Vec<Vec<f64>> = seen.windows(2).flat_map(|pair| moved(&pair[0], &pair[1])).collect();
    let rows: Vec<Vec<f64>> = scene.sites.iter().flat_map(|site| &site.values).map(|row| scene.boxed(row)).collect();
    let hit = |guess: &[f64]| rows.iter().any(|row| row.iter().zip(guess).all(|(a, b)| (a - b).abs() <= HIT));
    let boxed = if guesses.is_empty() { Vec::new() } else { scene.work.units(&Centres::from_rows(&guesses)?)?.1 };
    let hits = boxed.iter().filter(|guess| hit(guess)).count();
    // Blindly: what each column usually is.
    let mut stream = Stream::new(seed, LABEL);
    let mut blind = 0;
    for _ in 0..GUESSES {
        let drawn: Vec<f64> = (0..rows[0].len()).map(|f| rows[stream.below(rows.len() as u64) as usize][f]).collect();
        blind += usize::from(hit(&drawn));
    }
    let chance = (blind as f64 + 1.0) / GUESSES as f64;
    let answer = Answer::of(false, hits > 0 && tail(hits, guesses.len(), chance) < RARE);
    let gets = format!("{hits} rows, in {} tries over {} rounds", guesses.len(), seen.len());
    let blindly = blind as f64 / GUESSES as f64;
    let more = hits as f64 / guesses.len().max(1) as f64 - blindly;
    let said = [gets, format!("{} % of guesses are rows", short(100.0 * blindly))];
    Ok(vec![Tried::new(("moving rows", tries), None, said, answer, more)])
}
