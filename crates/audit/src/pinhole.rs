//! Membership inference: is this record in the data? Two centres that nearly coincide there answer the question from
//! the total alone. Masks do not help, because only the total is used. (An attack of our own.)
//!
//! With v1 = x and v2 = x + d, a record at x weighs 1 at v1 and 0 at v2; every other record weighs nearly the same at
//! both. So U1 - U2 counts the records at x, in a whole federation. Where a site requires centres to be apart, a ring
//! works: one centre at x, less the mean of five around it, in which everything that changes evenly from place to place
//! cancels.

use std::time::Instant;

use anyhow::Result;
use veilsum_cluster::{Batch, Centres, Query, random::Stream};
use veilsum_proto::Rule;

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
/// Between the centres of a ring, in half-widths of the box: an attacker's choice, and the least that the default policy lets
/// through where totals are not opened.
const RINGS: [f64; 2] = [0.01, 0.101];
/// Centres of a ring: the one in the middle, and those around it.
const RING: usize = 6;
/// Centres of the plan: half as many candidates a question as pairs, a sixth as rings.
const CLUSTERS: usize = 12;

/// A question of pairs around these candidates; the plan's number of centres in all.
pub fn probe(candidates: &[Vec<f64>], clusters: usize) -> Result<Batch> {
    let pair = |x: &Vec<f64>| {
        let mut other = x.clone();
        // Inside the box, on whichever side there is room.
        other[0] += if x[0] > 0.0 { -APART } else { APART };
        [x.clone(), other]
    };
    filled(candidates.iter().flat_map(pair).collect(), clusters)
}

/// A question of rings around these candidates, records of two columns, `apart` in the columns' own unit.
fn rings(candidates: &[Vec<f64>], clusters: usize, apart: f64) -> Result<Batch> {
    let around = |x: &Vec<f64>| {
        let place = |i: usize| {
            let (sin, cos) = (std::f64::consts::TAU * i as f64 / (RING - 1) as f64).sin_cos();
            vec![x[0] + apart * cos, x[1] + apart * sin]
        };
        [vec![x.clone()], (0..RING - 1).map(place).collect()].concat()
    };
    filled(candidates.iter().flat_map(around).collect(), clusters)
}

/// These centres, and as many more as the plan has, far from them.
fn filled(mut rows: Vec<Vec<f64>>, clusters: usize) -> Result<Batch> {
    let columns = rows.first().map_or(1, Vec::len);
    let mut corner = EDGE;
    while rows.len() < clusters {
        rows.push(vec![corner; columns]);
        corner *= 0.5;
    }
    Ok(Query::fuzzy_sums(Centres::from_rows(&rows)?, FUZZIFIER).into())
}

/// The count at each candidate of [`probe`], read from a total.
pub fn counts(total: &[f64], candidates: usize, clusters: usize) -> Vec<f64> {
    let weights = &total[total.len() - clusters..];
    (0..candidates).map(|i| weights[2 * i] - weights[2 * i + 1]).collect()
}

/// The middle's weight less the mean of those around it, for each candidate of [`rings`].
fn ring_counts(total: &[f64], candidates: usize, clusters: usize) -> Vec<f64> {
    let weights = &total[total.len() - clusters..];
    let count = |ring: &[f64]| ring[0] - ring[1..].iter().sum::<f64>() / (RING - 1) as f64;
    weights.chunks(RING).take(candidates).map(count).collect()
}

/// The candidates: records of the data, and as many points that are not records.
struct Candidates {
    points: Vec<Vec<f64>>,
    present: Vec<bool>,
}

/// As many records as other points, none nearer to the edge of the box than `room`.
fn candidates(scene: &Scene, pairs: usize, room: f64, stream: &mut Stream) -> Candidates {
    let (mut points, mut present) = (Vec::new(), Vec::new());
    let edge = EDGE - room;
    while points.len() < 2 * pairs {
        let (_, rows) = &scene.sites[stream.below(scene.sites.len() as u64) as usize];
        let row = rows.row(stream.below(rows.len() as u64) as usize);
        if row.iter().any(|x| x.abs() > edge) {
            continue;
        }
        points.push(row.to_vec());
        // As near to data as the records themselves: another one's neighbour.
        let [a, b] = stream.normal_pair();
        let move_by = [0.02 * a, 0.02 * b];
        points.push(row.iter().zip(move_by).map(|(x, d)| (x + d).clamp(-edge, edge)).collect());
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

/// The advantage of saying yes where more than half a record is counted; no for what was not answered.
fn said(found: &[f64], present: &[bool]) -> f64 {
    let mut said: Vec<bool> = found.iter().map(|count| *count > 0.5).collect();
    said.resize(present.len(), false);
    advantage(&said, present)
}

/// Puts the probes to sites that answer whatever they are asked (the control), and to real ones.
///
/// # Errors
/// Where a federation cannot be set up.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    run_against(seed, quick, true)
}

/// As [`run`]; `real` says whether the protected sites are.
///
/// # Errors
/// As [`run`].
pub fn run_against(seed: u64, quick: bool, real: bool) -> Result<Finding> {
    let began = Instant::now();
    let (sites, rows, questions, of_rings) = if quick { (6, 30, 2, 6) } else { (20, 50, 8, 16) };
    let mut scene = Scene::clumps(seed, sites, rows, (questions + 2 * of_rings) as u32 + 1)?;
    scene.work.recipe.clusters = veilsum_cluster::Clusters::exactly(CLUSTERS as u32);
    let each = CLUSTERS / 2;
    let mut stream = Stream::new(seed, LABEL);
    let Candidates { points, present } = candidates(&scene, questions * each / 2, 0.0, &mut stream);
    let mut batches: Vec<Batch> = points.chunks(each).map(|c| probe(c, CLUSTERS)).collect::<Result<_>>()?;
    let a_ring = CLUSTERS / RING;
    let around = RINGS.map(|apart| candidates(&scene, of_rings * a_ring / 2, apart * EDGE, &mut stream));
    for (apart, ring) in RINGS.iter().zip(&around) {
        for points in ring.points.chunks(a_ring) {
            batches.push(rings(points, CLUSTERS, apart * EDGE)?);
        }
    }
    let ask = |real: bool| {
        let lie = &mut |number: u32, own: &Batch, _: &[Vec<f64>]| match number {
            1 => Some(own.clone()),
            n => batches.get(n as usize - 2).cloned(),
        };
        if real { liar::ask(&scene, lie) } else { liar::answered(&scene, lie) }
    };
    let (open, closed) = (ask(false)?, ask(real)?);
    let tell = |told: &liar::Told| {
        let pairs = told.totals.iter().skip(1).take(questions);
        let found = pairs.flat_map(|total| counts(total, each, CLUSTERS)).collect::<Vec<_>>();
        (said(&found, &present), found)
    };
    let ((with, found), (without, _)) = (tell(&open), tell(&closed));
    let tell_rings = |told: &liar::Told, which: usize| {
        let answered = told.totals.iter().skip(1 + questions + which * of_rings).take(of_rings);
        let found: Vec<f64> = answered.flat_map(|total| ring_counts(total, a_ring, CLUSTERS)).collect();
        said(&found, &around[which].present)
    };
    let rate = |told: &liar::Told| {
        let refused = told.refused_under(Rule::Opn9) as u64;
        Rate { hit: sites as u64 - refused, of: sites as u64 }
    };
    let off = found.iter().zip(&present).map(|(f, p)| (f - f64::from(u8::from(*p))).abs()).fold(0.0, f64::max);
    let why = closed.refusals.values().next().map_or("nothing", |failure| failure.message.as_str());
    Ok(Finding {
        attack: NAME,
        needs: liar::NEEDS,
        control: liar::CONTROL,
        protection: liar::PROTECTION,
        measures: vec![
            Measure::new("membership advantage", with, Limit::AtLeast(1.0), without, Limit::AtMost(0.06)),
            Measure::new(
                "the same by rings of six, 0.01 apart",
                tell_rings(&open, 0),
                Limit::AtLeast(0.6),
                tell_rings(&closed, 0),
                Limit::AtMost(0.06),
            ),
            Measure::rates("sites that answer the probe", rate(&open), rate(&closed), 0.0),
        ],
        also_broken: (closed.totals.len() > 1).then(|| "the probe's total became known".to_owned()),
        details: vec![
            format!(
                "control: {} candidates in {questions} questions over {} rows; counts are off by at most {off:.4}",
                present.len(),
                scene.rows()
            ),
            format!(
                "centres 0.1 apart do not stop it: their rings have an advantage of {:.2} ({} candidates, {} rows), and more as rows are \
                 fewer",
                tell_rings(&open, 1),
                around[1].present.len(),
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
