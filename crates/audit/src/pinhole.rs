//! Is this record in the data? Two centres that nearly coincide there answer it from the total alone (the audit's own; the
//! masks do not help, for nothing but the total is used).
//!
//! With v1 = x and v2 = x + d, a record at x weighs 1 at v1 and 0 at v2; every other record weighs nearly the same at both. So
//! U1 - U2 counts the records at x, in a whole federation.

use std::time::Instant;

use anyhow::Result;
use veilsum_cluster::{Batch, Centres, Query, random::Stream};

use crate::{
    finding::{Finding, Limit, Measure, Rate},
    liar,
    scene::{EDGE, FUZZIFIER, Scene},
};

/// Name on the command line.
pub const NAME: &str = "pinhole-membership";
const LABEL: &[u8; 24] = b"veilsum audit pinhole v1";
/// Between the two centres of a pair.
const APART: f64 = 1e-6;
/// Centres of the plan: half as many candidates a question.
const CLUSTERS: usize = 10;

/// A question of pairs around these candidates; the plan's number of centres in all.
pub fn probe(candidates: &[Vec<f64>], clusters: usize) -> Result<Batch> {
    let pair = |x: &Vec<f64>| {
        let mut other = x.clone();
        // Inside the box, on whichever side there is room.
        other[0] += if x[0] > 0.0 { -APART } else { APART };
        [x.clone(), other]
    };
    let mut rows: Vec<Vec<f64>> = candidates.iter().flat_map(pair).collect();
    let columns = candidates.first().map_or(1, Vec::len);
    let mut corner = EDGE;
    while rows.len() < clusters {
        rows.push(vec![corner; columns]);
        corner *= 0.5;
    }
    Ok(Query::FuzzySums { centres: Centres::from_rows(&rows)?, m: FUZZIFIER }.into())
}

/// The count at each candidate of [`probe`], read from a total.
pub fn counts(total: &[f64], candidates: usize, clusters: usize) -> Vec<f64> {
    let weights = &total[total.len() - clusters..];
    (0..candidates).map(|i| weights[2 * i] - weights[2 * i + 1]).collect()
}

/// Who is asked about: records of the data, and as many points that are none.
struct Candidates {
    points: Vec<Vec<f64>>,
    present: Vec<bool>,
}

fn candidates(scene: &Scene, pairs: usize, stream: &mut Stream) -> Candidates {
    let (mut points, mut present) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        let (_, rows) = &scene.sites[stream.below(scene.sites.len() as u64) as usize];
        let row = rows.row(stream.below(rows.len() as u64) as usize);
        points.push(row.to_vec());
        // As near to data as the records themselves: another one's neighbour.
        let [a, b] = stream.normal_pair();
        let move_by = [0.02 * a, 0.02 * b];
        points.push(row.iter().zip(move_by).map(|(x, d)| (x + d).clamp(-EDGE, EDGE)).collect());
        present.extend([true, false]);
    }
    Candidates { points, present }
}

/// True positives less false positives, as shares.
pub fn advantage(said: &[bool], present: &[bool]) -> f64 {
    let share = |of: bool| {
        let all = present.iter().filter(|p| **p == of).count().max(1);
        said.iter().zip(present).filter(|(s, p)| **s && **p == of).count() as f64 / all as f64
    };
    share(true) - share(false)
}

/// Puts the probes to real sites, under a plan without opening (the control) and under one with it.
///
/// # Errors
/// Where a federation cannot be set up.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    run_against(seed, quick, true)
}

/// As [`run`]; `opening` says whether the protected plan really is one that opens its totals.
///
/// # Errors
/// As [`run`].
pub fn run_against(seed: u64, quick: bool, opening: bool) -> Result<Finding> {
    let began = Instant::now();
    let (sites, rows, questions) = if quick { (6, 30, 2) } else { (20, 50, 8) };
    let mut scene = Scene::clumps(seed, sites, rows, questions as u32 + 1)?;
    scene.work.recipe.clusters = veilsum_cluster::Clusters::exactly(CLUSTERS as u32);
    let each = CLUSTERS / 2;
    let Candidates { points, present } = candidates(&scene, questions * each / 2, &mut Stream::new(seed, LABEL));
    let batches: Vec<Batch> = points.chunks(each).map(|c| probe(c, CLUSTERS)).collect::<Result<_>>()?;
    let ask = |opening: bool| {
        let scene = Scene { opening, ..scene.clone() };
        liar::ask(&scene, &mut |number, own, _| match number {
            1 => Some(own.clone()),
            n => batches.get(n as usize - 2).cloned(),
        })
    };
    let (open, closed) = (ask(false)?, ask(opening)?);
    let tell = |told: &liar::Told| {
        let found = told.totals.iter().skip(1).flat_map(|total| counts(total, each, CLUSTERS)).collect::<Vec<_>>();
        let mut said: Vec<bool> = found.iter().map(|count| *count > 0.5).collect();
        said.resize(present.len(), false);
        (advantage(&said, &present), found)
    };
    let ((with, found), (without, _)) = (tell(&open), tell(&closed));
    let rate = |told: &liar::Told| {
        let refused = told.refused_under("OPN-9") as u64;
        Rate { hit: sites as u64 - refused, of: sites as u64 }
    };
    let off = found.iter().zip(&present).map(|(f, p)| (f - f64::from(u8::from(*p))).abs()).fold(0.0, f64::max);
    let why = closed.refusals.values().next().map_or("nothing", String::as_str);
    Ok(Finding {
        attack: NAME,
        needs: "totals over the whole cohort, and a coordinator that chooses where to ask",
        control: "the same questions to the same sites under a plan that opens no totals: masks on, every centre inside the \
                  box [POL-3]",
        protection: "opening: a site asks its own copy of the method what comes next and answers nothing else [OPN-9]",
        measures: vec![
            Measure::new("membership advantage", with, Limit::AtLeast(1.0), without, Limit::AtMost(0.06)),
            Measure::rates("sites that answer the probe", rate(&open), rate(&closed), 0.0),
        ],
        also_broken: (closed.totals.len() > 1).then(|| "the probe's total became known".to_owned()),
        details: vec![
            format!(
                "control: {} candidates in {questions} questions over {} rows; counts are off by at most {off:.4}",
                present.len(),
                scene.rows()
            ),
            format!("what a site says: {why}"),
        ],
        not_shown: "what an honest method's own centres, or centres that colluding sites steer, tell (poison-and-steer)",
        seconds: began.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advantage_is_the_difference_of_the_shares() {
        assert_eq!(advantage(&[true, false, true, false], &[true, false, true, false]), 1.0);
        assert_eq!(advantage(&[true, true, false, false], &[true, false, true, false]), 0.0);
        assert_eq!(advantage(&[false; 4], &[true, false, true, false]), 0.0);
    }
}
