//! Membership inference by a coordinator that chooses its questions: is this record in the data? Two centres that nearly coincide there
//! answer from the total alone. Masks do not help, because only the total is used. (An attack of our own.)
//!
//! With v1 = x and v2 = x + d, a record at x weighs 1 at v1 and 0 at v2; every other record weighs nearly the same at
//! both. So U1 - U2 counts the records at x, in a whole federation. What stops it is that a site asks its own copy of the method what
//! comes next. Here that copy decides; `tests/hostile_plans.rs` has it decide at real sites on QUIC.

use anyhow::{Context as _, Result, ensure};
use veilsum_cluster::{Batch, Centres, Query, pooled, random::Stream};
use veilsum_node::{
    agreed::Federation,
    question::{Question, Terms, contribute},
    replay::Replay,
};
use veilsum_testkit::kit::Kit;

use crate::{
    finding::{Attack, Found, Limit, Measure, Rate},
    scene::{EDGE, FUZZIFIER, Scene},
    view::prepared,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "pinhole-membership",
    shows: "two centres that nearly coincide tell from a total whether a record is in the data",
    needs: "totals over the whole cohort, and a coordinator that chooses where to ask",
    control: "the same questions to sites that answer whatever they are asked: masks on, every centre inside the box",
    protection: "opening: a site asks its own copy of the method what comes next and answers nothing else [OPN-9]",
    not_shown: "what an honest method's own centres, or centres that colluding sites steer, tell (poison-and-steer)",
    run: |c| run_against(c.seed, c.quick, true),
};
const LABEL: &[u8; 24] = b"veilsum audit pinhole v1";
/// Between the two centres of a pair.
const APART: f64 = 1e-6;
/// Centres of the plan: two for each candidate of a question.
const CLUSTERS: usize = 12;

/// A question of pairs around these candidates.
fn probe(candidates: &[Vec<f64>]) -> Result<Batch> {
    let pair = |x: &Vec<f64>| {
        let mut other = x.clone();
        // Inside the box, on whichever side there is room.
        other[0] += if x[0] > 0.0 { -APART } else { APART };
        [x.clone(), other]
    };
    let pairs: Vec<Vec<f64>> = candidates.iter().flat_map(pair).collect();
    Ok(Query::fuzzy_sums(Centres::from_rows(&pairs)?, FUZZIFIER).into())
}

/// The count at each candidate of [`probe`], read from a total.
fn counts(total: &[f64]) -> Vec<f64> {
    total[total.len() - CLUSTERS..].chunks(2).map(|pair| pair[0] - pair[1]).collect()
}

/// Records of the data, each before another one's neighbour, as near to data as the records themselves.
fn candidates(scene: &Scene, pairs: usize, stream: &mut Stream) -> Vec<Vec<f64>> {
    let mut points = Vec::new();
    while points.len() < 2 * pairs {
        let (_, rows) = &scene.sites[stream.below(scene.sites.len() as u64) as usize];
        let row = rows.row(stream.below(rows.len() as u64) as usize);
        points.push(row.to_vec());
        let beside = stream.normal_pair();
        points.push(row.iter().zip(beside).map(|(x, d)| (x + 0.02 * d).clamp(-EDGE, EDGE)).collect());
    }
    points
}

/// True positives less false positives, as shares.
pub fn advantage(said: &[bool], present: &[bool]) -> f64 {
    let share = |of: bool| {
        let all = present.iter().filter(|p| **p == of).count().max(1);
        said.iter().zip(present).filter(|(s, p)| **s && **p == of).count() as f64 / all as f64
    };
    share(true) - share(false)
}

/// Puts the probes to sites that answer whatever they are asked (the control), and to a site's own copy of the method; `real` says
/// whether the protected sites ask their copies.
///
/// # Errors
/// Where a federation cannot be set up.
pub fn run_against(seed: u64, quick: bool, real: bool) -> Result<Found> {
    let (sites, rows, questions) = if quick { (6, 30, 2) } else { (20, 50, 8) };
    let mut scene = Scene::clumps(seed, sites, rows, questions as u32 + 1)?;
    scene.work.recipe.clusters = veilsum_cluster::Clusters::exactly(CLUSTERS as u32);
    let points = candidates(&scene, questions * CLUSTERS / 4, &mut Stream::new(seed, LABEL));
    let present: Vec<bool> = (0..points.len()).map(|i| i % 2 == 0).collect();
    let probes: Vec<Batch> = points.chunks(CLUSTERS / 2).map(probe).collect::<Result<_>>()?;
    let rows = prepared(&scene)?;

    // The copy has seen the first total, by which everybody knows where the next centres are.
    let kit = Kit::new(sites, |terms| terms.max_rows = 64);
    let work = scene.work.clone().into();
    let federation = Federation { roster: kit.roster.clone(), terms: kit.terms.clone(), work };
    let form = federation.form()?;
    let mut copy = Replay::new(federation)?;
    let first = copy.asks().context("a method without questions")?.clone();
    let mut total = vec![0u64; first.layout(&scene.work.domain()?, &form)?.words()];
    for rows in &rows {
        let words = contribute(&first, rows, &Terms::everybody(form))?;
        total.iter_mut().zip(words).for_each(|(t, w)| *t = t.wrapping_add(w));
    }
    copy.session.take(&total, &(0..sites as u16).collect::<Vec<_>>())?;
    let own = copy.asks().context("a method of one question")?;
    ensure!(copy.ask(own).is_ok(), "a copy that refuses the method's own question");

    let (mut open, mut closed) = (Vec::new(), Vec::new());
    let (mut answered, mut refused, mut why) = (Rate::default(), Rate::default(), None);
    for batch in &probes {
        let found = counts(&pooled::totals(batch, &rows)?.values);
        answered.add(true);
        let asked = if real { copy.ask(&Question::Cluster(batch.clone())) } else { Ok(()) };
        refused.add(asked.is_ok());
        // No is said of what was not answered.
        closed.extend(found.iter().map(|count| asked.is_ok() && *count > 0.5));
        why = asked.err().or(why);
        open.extend(found);
    }
    let said: Vec<bool> = open.iter().map(|count| *count > 0.5).collect();
    let off = open.iter().zip(&present).map(|(f, p)| (f - f64::from(u8::from(*p))).abs()).fold(0.0, f64::max);
    let (open, closed) = (advantage(&said, &present), advantage(&closed, &present));
    let (n, rows) = (present.len(), scene.rows());
    Ok(Found::new(
        vec![
            Measure::new("membership advantage", open, Limit::AtLeast(1.0), closed, Limit::AtMost(0.06)),
            Measure::rates("probes that a site answers", answered, refused, 0.0),
        ],
        vec![
            format!(
                "control: {n} candidates in {questions} questions over {rows} rows; counts are off by at most {off:.4}"
            ),
            format!("what a site says: {}", why.as_deref().unwrap_or("nothing")),
        ],
    ))
}
