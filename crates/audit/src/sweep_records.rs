//! A sweep over K gives a site's records away, however many there are (the papers consider one round only).
//!
//! The sums are linear in the rows' empirical measure. Non-negative least squares on a grid of candidate records needs no N
//! (the weights add up to it); finer grids around what has a weight follow, and Levenberg-Marquardt ends it.
//!
//! How many they are, their memberships say alone: a row's add up to one, so that `sum_i A_i = N_l` (FedFuzzDB; Stallmann & Wilbik 2022,
//! Eqs. 15-17). That scheme hides every N_l behind an intermediary and then sends `A_i = sum_j u_ij` to the coordinator.

use anyhow::{Context, Result};
use rayon::prelude::*;
use veilsum_cluster::{Query, Rows, distance::euclidean as distance, random::Stream};

use crate::{
    finding::{Attack, Found, Measure, Rate},
    least_squares::{Patience, Solution, descend},
    nnls::Columns,
    releases::{Releases, Sums},
    scene::EDGE,
    view::{Recording, SeenRound, read_as_plain},
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "k-sweep-records",
    shows: "a sweep over K tells all 50 records of a site, and how many they are",
    needs: "one site's sums of all rounds of a sweep over K, or its count at the intermediary; N unknown",
    control: "the same sums and counts of the same sites and rounds as plain federated clustering sends them",
    protection: "masks on the sums and on the count: what arrives from one site is uniformly random",
    not_shown: "what the totals of a sweep say about the whole cohort (with few rows in all, just as much)",
    run: |c| run(c.sweep()?, c.seed, if c.quick { 1 } else { 4 }),
};
const LABEL: &[u8; 24] = b"veilsum audit sweep   v1";
/// Points of the first grid in each column.
const GRID: usize = 41;
/// Times the grid is made finer around the points with weight.
const LEVELS: usize = 3;
/// Records that are tried where sums do not tell how many.
const MOST: usize = 50;
/// How long a descent goes on before it is judged.
const FIRST: Patience = Patience { steps: 150, stale: 12 };
/// A residual, relative, that is worth more steps.
const PROMISING: f64 = 3e-6;
/// Steps of non-negative least squares.
const STEPS: usize = 60;
/// A residual below this part of what was observed counts as zero.
const ZERO: f64 = 1e-11;
/// Euclidean distance, box [-1, 1]^F, under which a record counts as recovered.
const RECOVERED: f64 = 1e-3;
/// A sum this close to a whole number is taken for a count.
const CLOSE: f64 = 1e-6;

/// What the attack says about one site.
#[derive(Debug, Clone)]
pub struct Guess {
    /// Its records, row-major.
    pub records: Vec<f64>,
    /// The weights of the measure add up to this: an estimate of N.
    pub count: f64,
    /// Residual over the norm of what was observed.
    pub residual: f64,
    /// Tries that it took.
    pub tries: usize,
}

impl Guess {
    /// Whether the records explain everything.
    pub fn is_solution(&self) -> bool {
        self.residual < ZERO
    }
}

/// Points with weights.
type Measured = Vec<([f64; 2], f64)>;

/// Looks for the records of two columns behind everything that was released, at most `most` of them.
pub fn attack(releases: &Releases, observed: &[f64], most: usize, tries: usize, stream: &mut Stream) -> Option<Guess> {
    let size = observed.iter().map(|x| x * x).sum::<f64>().sqrt();
    let system = Sums { releases, observed };
    let mut best: Option<Guess> = None;
    for attempt in 0..tries {
        // From a grid of its own, or around the best records so far, each moved a little.
        let (mut points, mut step) = match &best {
            Some(best) if attempt % 3 != 0 => {
                let spread = 0.003 * 20f64.powf(stream.unit());
                let moved = best.records.chunks_exact(2).map(|p| {
                    let [a, b] = stream.normal_pair();
                    ([(p[0] + spread * a).clamp(-EDGE, EDGE), (p[1] + spread * b).clamp(-EDGE, EDGE)], 1.0)
                });
                (moved.collect(), EDGE * 2.0 / (GRID - 1) as f64)
            }
            _ => {
                let points = GRID - attempt.min(9);
                (measure(releases, observed, grid(points)), EDGE * 2.0 / (points - 1) as f64)
            }
        };
        for _ in 0..LEVELS {
            step /= 2.0;
            points = measure(releases, observed, stencils(&points, step));
        }
        let count: f64 = points.iter().map(|(_, w)| w).sum();
        let n = count.round().clamp(1.0, most.min(4 * MOST) as f64) as usize;
        let mut start = singles(&points, 8.0 * step, n);
        if start.is_empty() {
            // No measure explains anything: any records are as good.
            start = (0..2 * most.min(MOST)).map(|_| EDGE * (2.0 * stream.unit() - 1.0)).collect();
        }
        let zero = ZERO * size / 10.0;
        let mut end = descend(&system, start, EDGE, zero, FIRST);
        if end.residual < PROMISING * size && end.residual > zero {
            end = descend(&system, end.x, EDGE, zero, Patience::LONG);
        }
        let Solution { x, residual } = end;
        let guess = Guess { records: x, count, residual: residual / size, tries: attempt + 1 };
        let solved = guess.is_solution();
        if best.as_ref().is_none_or(|b| guess.residual < b.residual) {
            best = Some(guess);
        }
        if solved {
            break;
        }
    }
    best.map(|b| Guess { tries: if b.is_solution() { b.tries } else { tries }, ..b })
}

/// Records of `truth` that `guess` hits, each guess used once, and the largest distance among the hits.
pub fn hits(truth: &Rows, guess: &[f64]) -> (u64, f64) {
    let mut free: Vec<&[f64]> = guess.chunks_exact(truth.columns()).collect();
    let (mut count, mut largest) = (0, 0.0f64);
    for row in truth.iter() {
        let nearest = (0..free.len()).min_by(|a, b| distance(row, free[*a]).total_cmp(&distance(row, free[*b])));
        if let Some(at) = nearest.filter(|at| distance(row, free[*at]) < RECOVERED) {
            largest = largest.max(distance(row, free[at]));
            count += 1;
            free.swap_remove(at);
        }
    }
    (count, largest)
}

/// The row count behind a sum of memberships, where it can be one.
fn count(memberships: &[f64], max_rows: u64) -> Option<u64> {
    let sum: f64 = memberships.iter().sum();
    let whole = sum.round();
    (whole >= 1.0 && whole <= max_rows as f64 && (sum - whole).abs() < CLOSE).then_some(whole as u64)
}

/// Row counts at the coordinator (validation sums) and at the intermediary, as they are sent and behind masks, and how many hits among
/// the latter chance gives.
fn counts(recording: &Recording) -> Result<(Rate, Rate, f64)> {
    let validates = |r: &&SeenRound| matches!(r.query.queries[0], Query::FuzzyValidation { .. });
    let seen = recording.rounds.iter().find(validates).context("the recorded run asked for no validation sums")?;
    let at =
        seen.layout.blocks.iter().position(|b| b.block.name == "memberships").context("no memberships are sent")?;
    let (before, block) = (&seen.layout.blocks[..at], &seen.layout.blocks[at]);
    let first: usize = before.iter().map(|b| b.block.len).sum();
    let part = first..first + block.block.len;
    // A masked word is uniform over 2^(64 - f), its sum no narrower; a hit is an interval of 2 CLOSE.
    let luck = |b: &veilsum_node::question::ScaledBlock| 2.0 * CLOSE / b.scale.unit() / 2f64.powi(64);
    let luck = luck(block) + luck(&recording.count_layout.blocks[0]);
    let (mut plain, mut masked) = (Rate::default(), Rate::default());
    for (site, rows) in recording.truth.iter().enumerate() {
        let is = |values: &[f64]| count(values, recording.max_rows) == Some(rows.len() as u64);
        let at_intermediary = |words: &[u64]| is(&read_as_plain(&recording.count_layout, &words[site..=site]));
        let words = seen.received.get(&(site as u16)).context("a site sent nothing")?;
        plain.add(is(&seen.plain[site].values[part.clone()]));
        masked.add(is(&read_as_plain(&seen.layout, words)[part.clone()]));
        plain.add(at_intermediary(&recording.plain_counts));
        masked.add(at_intermediary(&recording.counts));
    }
    Ok((plain, masked, luck * recording.truth.len() as f64))
}

/// The measure on `candidates` that explains most.
fn measure(releases: &Releases, observed: &[f64], candidates: Vec<[f64; 2]>) -> Measured {
    let values: Vec<f64> = candidates.par_iter().flat_map_iter(|p| releases.total(p)).collect();
    let found = Columns::new(values, releases.equations()).fit(observed, STEPS, 8);
    found.into_iter().map(|(i, w)| (candidates[i], w)).collect()
}

fn grid(points: usize) -> Vec<[f64; 2]> {
    let at = |i: usize| EDGE * (2.0 * i as f64 / (points - 1) as f64 - 1.0);
    (0..points * points).map(|i| [at(i / points), at(i % points)]).collect()
}

/// Each point with the eight around it at distance `step`.
fn stencils(points: &Measured, step: f64) -> Vec<[f64; 2]> {
    let around = |p: &[f64; 2]| {
        let p = *p;
        (0..9).map(move |i| {
            let [x, y] = [p[0] + step * ((i % 3) as f64 - 1.0), p[1] + step * ((i / 3) as f64 - 1.0)];
            [x.clamp(-EDGE, EDGE), y.clamp(-EDGE, EDGE)]
        })
    };
    let mut all: Vec<[f64; 2]> = points.iter().flat_map(|(p, _)| around(p)).collect();
    all.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    all.dedup_by(|a, b| (a[0] - b[0]).abs() < 0.1 * step && (a[1] - b[1]).abs() < 0.1 * step);
    all
}

/// `n` records: neighbours are put together, and the heaviest groups stand for as many records as they weigh.
fn singles(points: &Measured, near: f64, n: usize) -> Vec<f64> {
    let mut sorted = points.clone();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut groups: Vec<([f64; 2], f64)> = Vec::new();
    for (p, w) in sorted {
        match groups.iter_mut().find(|(g, _)| (g[0] - p[0]).abs() < near && (g[1] - p[1]).abs() < near) {
            Some((g, all)) => {
                let share = w / (*all + w);
                *g = [g[0] + share * (p[0] - g[0]), g[1] + share * (p[1] - g[1])];
                *all += w;
            }
            None => groups.push((p, w)),
        }
    }
    let mut left: Vec<f64> = groups.iter().map(|(_, w)| *w).collect();
    let mut records = Vec::with_capacity(2 * n);
    for copy in 0..n {
        let Some(heaviest) = (0..left.len()).max_by(|a, b| left[*a].total_cmp(&left[*b])) else { break };
        left[heaviest] -= 1.0;
        let [x, y] = groups[heaviest].0;
        // Two records at one place would stay together for ever.
        let apart = 1e-3 * (copy % 7) as f64 / 7.0;
        records.extend([(x + apart).clamp(-EDGE, EDGE), (y - apart).clamp(-EDGE, EDGE)]);
    }
    records
}

/// Runs the attack on plain statistics and on recorded frames of a sweep.
///
/// # Errors
/// Where the recording holds other questions than those of fuzzy c-means.
pub fn run(recording: &Recording, seed: u64, victims: usize) -> Result<Found> {
    let releases = Releases::of(recording.rounds.iter().map(|r| &r.query)).context("not a sweep of fuzzy c-means")?;
    let (mut plain, mut masked, mut chance) = (Rate::default(), Rate::default(), 0.0);
    let (mut worst, mut count_off, mut left, mut solved, mut tries) = (0.0f64, 0.0f64, f64::INFINITY, 0, 0);
    for (victim, truth) in recording.truth.iter().enumerate().take(victims) {
        let mut stream = Stream::new(seed.wrapping_add(victim as u64), LABEL);
        let mut attacked = |observed: &[f64], tries: usize| -> Result<(Guess, Rate, f64)> {
            let guess = attack(&releases, observed, recording.max_rows as usize, tries, &mut stream);
            let guess = guess.context("nothing was released")?;
            let (hit, error) = hits(truth, &guess.records);
            Ok((guess, Rate { hit, of: truth.len() as u64 }, error))
        };
        let observed: Vec<f64> = recording.rounds.iter().flat_map(|r| r.plain[victim].values.clone()).collect();
        let (guess, found, error) = attacked(&observed, TRIES)?;
        plain += found;
        worst = worst.max(error);
        count_off = count_off.max((guess.count - truth.len() as f64).abs());
        tries = tries.max(guess.tries);

        let mut observed = Vec::with_capacity(releases.equations());
        for round in &recording.rounds {
            let words = round.received.get(&(victim as u16)).context("a victim sent nothing")?;
            observed.extend(read_as_plain(&round.layout, words));
        }
        let (guess, found, _) = attacked(&observed, 2)?;
        masked += found;
        chance += by_chance(truth.len(), guess.records.len() / truth.columns());
        left = left.min(guess.residual);
        solved += u64::from(guess.is_solution());
    }
    let (counted, under_masks, by_luck) = counts(recording)?;
    Ok(Found {
        measures: vec![
            Measure::rates("records within 1e-3", plain, masked, chance),
            Measure::rates("row counts N_l, by memberships and at the intermediary", counted, under_masks, by_luck),
        ],
        also_broken: (solved > 0).then(|| format!("{solved} masked sweeps were explained by records")),
        details: vec![
            format!(
                "control: {} rounds, {} numbers about {} unknowns; N is found to {count_off:.4} of a record, the largest \
                 error is {worst:.1e}, after at most {tries} tries",
                recording.rounds.len(),
                releases.equations(),
                recording.truth[0].as_slice().len(),
            ),
            format!("masked: the nearest records leave {:.0} % of what was received unexplained", 100.0 * left),
        ],
    })
}

/// Tries until an attack gives up.
pub const TRIES: usize = 150;

/// Expected number of records hit within 1e-3 by this many blind guesses: the disc's area over that of the box.
pub fn by_chance(records: usize, guesses: usize) -> f64 {
    (records * guesses) as f64 * std::f64::consts::PI * 1e-6 / (4.0 * EDGE * EDGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_cluster::{Batch, Centres};

    #[test]
    fn a_guess_is_used_for_one_record_only() {
        let rows = Rows::new(vec![0.5, 0.5, 0.5, 0.5], 2).unwrap();
        assert_eq!(hits(&rows, &[0.5, 0.5004]).0, 1);
        assert_eq!(hits(&rows, &[0.5, 0.5004, 0.5, 0.5]).0, 2);
        assert_eq!(hits(&rows, &[0.5, 0.502]).0, 0);
    }

    #[test]
    fn a_count_is_whole_and_possible() {
        assert_eq!(count(&[3.25, 8.75], 16), Some(12));
        assert_eq!(count(&[3.25, 8.7], 16), None);
        assert_eq!(count(&[3.25, 8.75], 8), None);
        assert_eq!(count(&[-3.25, 1.25], 8), None);
        assert_eq!(count(&[f64::NAN], 8), None);
    }

    /// Twenty records, far above the one-round rule of 4.5, from sums at centres of six K.
    #[test]
    fn many_rounds_tell_records_that_one_round_does_not() {
        println!("seed 3");
        let mut stream = Stream::new(3, LABEL);
        let mut point = |n: usize| (0..2 * n).map(|_| 1.9 * stream.unit() - 0.95).collect::<Vec<f64>>();
        let rows = Rows::new(point(20), 2).unwrap();
        let queries = (2..8).map(|k| Query::fuzzy_sums(Centres::new(k, 2, point(k)).unwrap(), 2.0));
        let batch = Batch { transform: None, queries: queries.collect() };
        let releases = Releases::of([&batch]).unwrap();
        let observed = releases.total(rows.as_slice());
        let guess = attack(&releases, &observed, 64, 24, &mut Stream::new(4, LABEL)).unwrap();
        assert!(guess.is_solution(), "{guess:?}");
        assert_eq!(hits(&rows, &guess.records).0, 20);
        // Sums that no records have are not explained.
        let noise: Vec<f64> = observed.iter().map(|x| x + 0.5 * stream.normal_pair()[0]).collect();
        assert!(!attack(&releases, &noise, 64, 2, &mut Stream::new(4, LABEL)).unwrap().is_solution());
    }
}
