//! One round of one site's sums gives its records away (federated FCM without masks; Bárcena et al. 2021, Eqs. 7-9).
//!
//! A site with N rows sends `WS_c = sum_j u_jc^m x_j` and `U_c = sum_j u_jc^m`: C(F+1) numbers about N F unknowns. Below
//! N = C(F+1)/F they are over-determined, and least squares from many starts finds every record. N need not be known:
//! `C^(1-m) <= sum_c u_c^m <= 1` for every row puts it between `sum U` and `C^(m-1) sum U`, and the smallest N without
//! a residual is the right one.

use std::time::Instant;

use anyhow::{Context, Result};
use rayon::prelude::*;
use veilsum_cluster::{Batch, Query, Rows, query::FuzzySums, random::Stream};

use crate::{
    finding::{Finding, Measure, Rate},
    least_squares::{Patience, Solution, descend},
    releases::{Releases, Sums},
    scene::EDGE,
    view::{Recording, read_as_plain},
};

/// Name on the command line.
pub const NAME: &str = "one-round-records";
const LABEL: &[u8; 24] = b"veilsum audit starts  v1";
/// Euclidean distance, box [-1, 1]^F, under which a record counts as recovered.
const RECOVERED: f64 = 1e-3;
/// Residual under which a point is a solution.
const ZERO: f64 = 1e-9;

/// What to spend.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Starts for each N at most.
    pub starts: usize,
    /// Sites to attack.
    pub victims: usize,
    /// Rounds to attack, each for itself.
    pub rounds: usize,
}

impl Budget {
    /// For a first look.
    pub const QUICK: Budget = Budget { starts: 400, victims: 2, rounds: 1 };
    /// For the record.
    pub const FULL: Budget = Budget { starts: 1000, victims: 4, rounds: 2 };
}

/// What the attack says about one site and round.
#[derive(Debug, Clone)]
pub struct Guess {
    /// Its records, row-major.
    pub records: Vec<f64>,
    /// Residual of the sums at these records.
    pub residual: f64,
    /// Starts that were used.
    pub starts: usize,
}

impl Guess {
    /// Whether the records explain the sums.
    pub fn is_solution(&self) -> bool {
        self.residual < ZERO
    }
}

/// Looks for the records behind `observed`: C x F weighted sums, then C weights.
pub fn attack(batch: &Batch, observed: &[f64], starts: usize, stream: &mut Stream) -> Option<Guess> {
    let [Query::FuzzySums(FuzzySums { centres, m })] = &batch.queries[..] else { return None };
    let (clusters, columns) = (centres.k(), centres.columns());
    let releases = Releases::of([batch])?;
    let system = Sums { releases: &releases, observed };
    let (sums, weights) = observed.split_at(clusters * columns);
    // More records than equations allow would solve anything: a residual of zero would mean nothing.
    let most = clusters * (columns + 1) / columns;
    let all: f64 = weights.iter().sum();
    let (low, high) = ((all - ZERO).ceil().max(1.0), (clusters as f64).powf(m - 1.0) * all + ZERO);
    // Sums that no number of records can have, such as masked ones: the attacker tries every number nevertheless.
    let bracket = if low > high || low > most as f64 { 1..=most } else { low as usize..=(high as usize).min(most) };

    let mut best: Option<Guess> = None;
    let mut used = 0;
    for n in bracket {
        for start in 0..starts {
            used += 1;
            let from = if start % 2 == 0 {
                (0..n * columns).map(|_| EDGE * (2.0 * stream.unit() - 1.0)).collect()
            } else {
                (0..n).flat_map(|_| around_means(sums, weights, columns, stream)).collect()
            };
            let Solution { x, residual } = descend(&system, from, EDGE, ZERO / 10.0, Patience::SHORT);
            if best.as_ref().is_none_or(|b| residual < b.residual) {
                best = Some(Guess { records: x, residual, starts: used });
            }
            if residual < ZERO {
                return best;
            }
        }
    }
    best.map(|b| Guess { starts: used, ..b })
}

/// A start near the weighted mean of a cluster, drawn in proportion to its weight.
fn around_means(sums: &[f64], weights: &[f64], columns: usize, stream: &mut Stream) -> Vec<f64> {
    let all: f64 = weights.iter().map(|w| w.max(0.0)).sum();
    let mut left = stream.unit() * all;
    let c = weights.iter().position(|w| {
        left -= w.max(0.0);
        left < 0.0
    });
    let c = c.unwrap_or(0);
    let noise = [stream.normal_pair(), stream.normal_pair()].concat();
    (0..columns)
        .map(|f| {
            let mean = sums[c * columns + f] / weights[c];
            let mean = if mean.is_finite() { mean.clamp(-EDGE, EDGE) } else { 0.0 };
            (mean + 0.3 * noise[f % noise.len()]).clamp(-EDGE, EDGE)
        })
        .collect()
}

/// Records of `truth` that `guess` hits, each guess used once, and the largest distance among the hits.
pub fn hits(truth: &Rows, guess: &[f64]) -> (u64, f64) {
    let mut free: Vec<&[f64]> = guess.chunks_exact(truth.columns()).collect();
    let (mut count, mut largest) = (0, 0.0f64);
    for row in truth.iter() {
        let distance = |g: &[f64]| row.iter().zip(g).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        let nearest = (0..free.len()).min_by(|a, b| distance(free[*a]).total_cmp(&distance(free[*b])));
        if let Some(at) = nearest.filter(|at| distance(free[*at]) < RECOVERED) {
            largest = largest.max(distance(free[at]));
            count += 1;
            free.swap_remove(at);
        }
    }
    (count, largest)
}

/// One attack to be run: a victim, a round, and with or without protection.
struct Job {
    victim: usize,
    observed: Vec<f64>,
    round: usize,
    masked: bool,
}

/// Runs the attack on plain statistics and on recorded frames of the same sites and rounds.
///
/// # Errors
/// Where a victim is missing from the recording.
pub fn run(recording: &Recording, seed: u64, budget: Budget) -> Result<Finding> {
    let began = Instant::now();
    let updates = recording.rounds.iter().filter(|r| matches!(r.query.queries[..], [Query::FuzzySums { .. }])).count();
    // The first round (random centres) and the last (nearly settled ones) where there are more than are wanted.
    let rounds: Vec<usize> = (0..budget.rounds.min(updates)).map(|i| if i == 0 { 0 } else { updates - i }).collect();
    let mut jobs = Vec::new();
    for victim in 0..budget.victims.min(recording.victims) {
        for round in rounds.iter().copied() {
            let seen = &recording.rounds[round];
            let plain = seen.plain[victim].values.clone();
            let words = seen.received.get(&(victim as u16)).context("a victim sent nothing")?;
            let masked = read_as_plain(&seen.layout, words);
            jobs.push(Job { victim, observed: plain, round, masked: false });
            jobs.push(Job { victim, observed: masked, round, masked: true });
        }
    }
    let solve = |(i, job): (usize, &Job)| {
        let mut stream = Stream::new(seed.wrapping_mul(1_000_003).wrapping_add(i as u64), LABEL);
        attack(&recording.rounds[job.round].query, &job.observed, budget.starts, &mut stream)
    };
    let guesses: Vec<_> = jobs.par_iter().enumerate().map(solve).collect();

    let (mut plain, mut masked) = (Rate::default(), Rate::default());
    let (mut solved, mut false_solutions, mut worst, mut chance) = (0, 0, 0.0f64, 0.0);
    let (mut residual_plain, mut residual_masked, mut starts) = (0.0f64, f64::INFINITY, (0, 0));
    for (job, guess) in jobs.iter().zip(&guesses) {
        let truth = &recording.truth[job.victim];
        let rate = if job.masked { &mut masked } else { &mut plain };
        rate.of += truth.len() as u64;
        let Some(guess) = guess else { continue };
        let (found, error) = hits(truth, &guess.records);
        rate.hit += found;
        if job.masked {
            // Area of the disc of 1e-3 around a guess, over that of the box.
            let pairs = truth.len() * guess.records.len() / truth.columns();
            chance += pairs as f64 * std::f64::consts::PI * RECOVERED * RECOVERED / (4.0 * EDGE * EDGE);
            false_solutions += u64::from(guess.is_solution());
            residual_masked = residual_masked.min(guess.residual);
            starts.1 += guess.starts;
        } else {
            let counted = guess.records.len() == truth.as_slice().len();
            solved += u64::from(guess.is_solution() && counted);
            worst = worst.max(error);
            residual_plain = residual_plain.max(guess.residual);
            starts.0 += guess.starts;
        }
    }
    let attacks = jobs.len() / 2;
    Ok(Finding {
        attack: NAME,
        needs: "one site's sums of one round; N unknown",
        control: "the same sums of the same sites and rounds as plain federated clustering sends them",
        protection: "masks: what arrives from one site is uniformly random",
        measures: vec![Measure::rates("records within 1e-3", plain, masked, chance)],
        also_broken: (false_solutions > 0)
            .then(|| format!("{false_solutions} masked vectors were explained by records")),
        details: vec![
            format!(
                "control: {solved} of {attacks} solved with the right N, largest error {worst:.1e}, largest residual \
                 {residual_plain:.1e}, {} starts",
                starts.0
            ),
            format!(
                "masked: no N gives a residual under {residual_masked:.3} ({} starts); hits expected by chance {chance:.0e}",
                starts.1
            ),
        ],
        not_shown: "what the same sums over the whole cohort, which the coordinator does learn, give away",
        seconds: began.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests;
