//! A plan's own mechanism played over made-up rows: what its noise does to a result, without a row of anybody (parametric
//! bootstrap, Efron & Tibshirani 1993, chapter 6; under differential privacy Ferrando, Wang & Sheldon 2022).
//!
//! Two things follow. [`forecast`] says before a run how far off the centres will be and whether a cluster is lost. [`errors`]
//! gives every number of a noisy result a standard error: rows are made up that have the released centres, masses and objective, and the rounds
//! and the validation are repeated over them with fresh noise of the known scale. So the errors see how noise of one round
//! moves the next, the floors of [NOI-7], and the ratios in the indices. All of it is post-processing of the plan and of noisy
//! totals, and costs no privacy.
//!
//! It fails where rows are no such clusters at all: the made-up ones are isotropic, of one deviation.

mod describe;
mod forecast;

pub use describe::descriptions;
pub use forecast::{Forecast, KEPT, USEFUL, forecast};

use super::dp::{Noisy, spread};
use super::recipe::{Recipe, Seeding};
use super::seed::{CandidateSearch, Candidates, SeedPoints};
use crate::algorithm::{Fit, Iteration, Walls};
use crate::privacy::{Levels, settled};
use crate::query::Shifts;
use crate::random::Stream;
use crate::validity::{Geometry, Verdict};
use crate::{Centres, Domain, Error, Outcome, Query, Transform, distance};

/// Repetitions for the errors: the 95 % quantile of so many is off by 1.1 percentage points.
const REPETITIONS: usize = 400;
/// Made-up points of all clusters together, each of them for many rows; and of one cluster at least.
const POINTS: usize = 240;
const POINTS_EACH: usize = 8;
/// Rounds that the errors repeat: noise of earlier ones is forgotten.
const LAST_ROUNDS: u32 = 15;
/// Least distance of two clear clusters, in deviations of a cluster in two columns: of those tried against runs on clusters from 4.7 to 8.3
/// deviations apart (`what_is_forecast_is_found`) the one whose forecast is in the middle.
const APART: f64 = 5.4;

/// Standard errors of a noisy result: half of what 95 of 100 repetitions stay within, so that two of them hold the noise-free
/// value in 95 % (`noise_errors`). The noise-free value is what the same plan without noise gives on the same rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Errors {
    /// Of the centres, K x d, working units.
    pub centres: Vec<f64>,
    /// Of the masses, K.
    pub mass: Vec<f64>,
    /// Of N as the sum of memberships.
    pub rows: f64,
    /// Of the objective.
    pub objective: f64,
    /// Of the objective over N.
    pub objective_per_row: f64,
    /// Of the fuzzy Davies-Bouldin index.
    pub fuzzy_davies_bouldin: f64,
    /// Of the Xie-Beni index.
    pub xie_beni: f64,
}

/// Points that stand for rows.
struct Cloud {
    /// P x d.
    points: Vec<f64>,
    /// Rows behind each point, P.
    weights: Vec<f64>,
}

/// Round points of mean 0 and deviation 1 in every column, the same number for every cluster, each with its mirror image.
struct Shape {
    normal: Vec<f64>,
    each: usize,
}

impl Shape {
    fn new(k: usize, d: usize) -> Self {
        let each = (POINTS / k).max(POINTS_EACH).next_multiple_of(2);
        let mut stream = Stream::new(0, b"veilsum mechanism points");
        let mut half: Vec<f64> = std::iter::repeat_with(|| stream.normal_pair()).flatten().take(each / 2 * d).collect();
        // So few points have the deviation 1 by chance only.
        for column in 0..d {
            let squares: f64 = half.iter().skip(column).step_by(d).map(|z| z * z).sum();
            let deviation = (squares / (each / 2) as f64).sqrt();
            half.iter_mut().skip(column).step_by(d).for_each(|z| *z /= deviation);
        }
        Self { normal: half.iter().copied().chain(half.iter().map(|z| -z)).collect(), each }
    }

    /// Clusters at `centres`, of so many rows each, of this deviation, cut off at the box.
    fn cloud(&self, centres: &Centres, rows: &[f64], deviation: f64, domain: &Domain) -> Cloud {
        let d = centres.columns();
        let walls: Vec<(f64, f64)> = (0..d).map(|column| domain.working_interval(column)).collect();
        let around = |centre: &[f64]| -> Vec<f64> {
            let place = |(i, z): (usize, &f64)| (centre[i % d] + deviation * z).clamp(walls[i % d].0, walls[i % d].1);
            self.normal.iter().enumerate().map(place).collect()
        };
        let behind = |n: &f64| std::iter::repeat_n(n / self.each as f64, self.each);
        Cloud { points: centres.rows().flat_map(around).collect(), weights: rows.iter().flat_map(behind).collect() }
    }
}

/// What a plan does to totals.
struct Mechanism<'a> {
    recipe: &'a Recipe,
    judge_m: f64,
    rounds: u32,
    levels: Levels,
    /// The noise of a total over the planned one.
    excess: f64,
    domain: &'a Domain,
}

impl<'a> Mechanism<'a> {
    fn of(recipe: &'a Recipe, domain: &'a Domain, excess: f64) -> Result<Option<Self>, Error> {
        let Some(levels) = recipe.levels(domain)? else { return Ok(None) };
        let rounds = recipe.algorithm.traits().rounds;
        let judge_m = recipe.judge_m();
        Ok(Some(Self { recipe, judge_m, rounds, levels, excess, domain }))
    }

    /// The sum over the cloud of what `add` adds for one point.
    fn sum(cloud: &Cloud, d: usize, len: usize, mut add: impl FnMut(&[f64], &mut [f64])) -> Vec<f64> {
        let (mut total, mut one) = (vec![0.0; len], vec![0.0; len]);
        for (x, weight) in cloud.points.chunks_exact(d).zip(&cloud.weights) {
            one.fill(0.0);
            add(x, &mut one);
            total.iter_mut().zip(&one).for_each(|(total, one)| *total += weight * one);
        }
        total
    }

    fn shifts(&self, cloud: &Cloud, shifts: &Shifts) -> Vec<f64> {
        let (k, d, references) = (shifts.centres.k(), shifts.centres.columns(), shifts.references(self.domain));
        Self::sum(cloud, d, Shifts::width(k, d), |x, sums| shifts.add_row(x, &references, sums))
    }

    /// Adds noise of the query's levels, where there is any.
    fn add_noise(&self, query: &Query, values: &mut [f64], noise: Option<&mut Stream>) {
        let (Some(stream), Some(levels)) = (noise, self.levels.of(query, self.domain)) else { return };
        let lengths: Vec<usize> = query.layout(self.domain).iter().map(|block| block.len).collect();
        self.add_draws(&lengths, &levels.iter().map(|level| level.deviation).collect::<Vec<_>>(), values, stream);
    }

    /// Adds draws of these deviations to blocks of these lengths.
    fn add_draws(&self, lengths: &[usize], deviations: &[f64], values: &mut [f64], stream: &mut Stream) {
        let mut rest = values;
        for (length, deviation) in lengths.iter().zip(deviations) {
            let (head, tail) = rest.split_at_mut(*length);
            for pair in head.chunks_mut(2) {
                let draws = stream.normal_pair();
                pair.iter_mut().zip(draws).for_each(|(x, z)| *x += deviation * self.excess * z);
            }
            rest = tail;
        }
    }

    /// The rounds from this one on.
    fn run(&self, cloud: &Cloud, start: Centres, from: u32, mut noise: Option<&mut Stream>) -> Result<Fit, Error> {
        let mut noisy = Noisy::new(from, start, &self.recipe.algorithm, self.levels, self.domain)?;
        let walls = Walls::fine(self.domain);
        loop {
            let query = noisy.ask();
            let Query::Shifts(shifts) = &query else { return Ok(noisy.fit()) };
            let mut values = self.shifts(cloud, shifts);
            self.add_noise(&query, &mut values, noise.as_deref_mut());
            if noisy.take(&values, None, &walls)? {
                return Ok(noisy.fit());
            }
        }
    }

    /// First centres from totals of the cloud.
    fn first_centres(
        &self,
        cloud: &Cloud,
        params: &Candidates,
        k: usize,
        noise: Option<&mut Stream>,
    ) -> Result<Centres, Error> {
        self.candidates(cloud, params, k as u32, noise)?.start(k, params.seed, params.tries)
    }

    /// Candidates for so many first centres at most from totals of the cloud.
    fn candidates(
        &self,
        cloud: &Cloud,
        params: &Candidates,
        most: u32,
        mut noise: Option<&mut Stream>,
    ) -> Result<SeedPoints, Error> {
        let d = self.domain.columns();
        let mut search = CandidateSearch::new(params, most, Some(&self.levels), self.domain)?;
        loop {
            let query = search.ask();
            let mut values = match &query {
                Query::Margins(margins) => {
                    let histogram = margins.histogram(self.domain);
                    Self::sum(cloud, d, histogram.width(), |x, sums| histogram.add_row(x, |at| sums[at] += 1.0))
                }
                Query::Shifts(shifts) => self.shifts(cloud, shifts),
                _ => return Err(Error::implausible("margins and sums are asked")),
            };
            self.add_noise(&query, &mut values, noise.as_deref_mut());
            if let Some(points) = search.take(&values)? {
                return Ok(points);
            }
        }
    }

    /// What the validation says, and its totals before anything below 0 counts as 0.
    fn judge(
        &self,
        cloud: &Cloud,
        centres: &Centres,
        noise: Option<&mut Stream>,
    ) -> Result<(Verdict, Vec<f64>), Error> {
        let k = centres.k();
        let mut u = vec![0.0; k];
        let mut values = Self::sum(cloud, centres.columns(), 2 * k + 1, |x, sums| {
            distance::memberships(x, centres.rows(), self.judge_m, &mut u);
            for (i, (centre, u)) in centres.rows().zip(&u).enumerate() {
                let far = distance::euclidean(x, centre);
                sums[i] += far;
                sums[k + i] += u;
                sums[2 * k] += distance::power(*u, self.judge_m) * far * far;
            }
        });
        if let (Some(stream), Some(deviations)) = (noise, self.judging(centres)) {
            self.add_draws(&[k, k, 1], &deviations, &mut values, stream);
        }
        let query = Query::fuzzy_validation(centres.clone(), self.judge_m);
        let settled = settled(&query, &values, self.domain);
        let by = self.recipe.validity.davies_bouldin;
        Ok((query.verdict(Geometry::Centres(centres, by), &settled, None)?, values))
    }

    /// Deviations of distances, memberships and objective in the plan's own validation, whose full form has an objective of each cluster.
    fn judging(&self, centres: &Centres) -> Option<[f64; 3]> {
        let query = self.recipe.validation_of(centres.clone());
        let levels = self.levels.of(&query, self.domain)?;
        let of = |block: usize| levels.get(block).map(|level| level.deviation);
        match query {
            Query::Validation(_) => Some([of(3)?, of(4)?, of(6)? * (centres.k() as f64).sqrt()]),
            _ => Some([of(0)?, of(1)?, of(2)?]),
        }
    }

    /// Made-up rows with these centres and masses whose rows lie as far from them as the rounds told: the rows are raked and the
    /// deviation is scaled until the totals of the cloud are the released ones. The objective tells how far where no round was
    /// around the centres; it is one total whose noise may be as large as itself, and errors scale with the deviation. The plan's rows,
    /// shared alike, stand for masses that were not asked for.
    fn fitted(&self, outcome: &Outcome) -> Cloud {
        let (centres, k) = (&outcome.centres, outcome.centres.k());
        let shape = Shape::new(k, centres.columns());
        let gap = gap(centres, self.domain);
        let floor = self.levels.of_round(1.0)[0].deviation * self.excess;
        let alike = self.levels.noise().expected_rows as f64 / k as f64;
        let wanted: Vec<f64> = outcome.clusters.mass.iter().map(|mass| mass.unwrap_or(alike).max(floor)).collect();
        let (mut rows, mut deviation) = (wanted.clone(), deviation(centres, self.domain));
        let mut cloud = shape.cloud(centres, &rows, deviation, self.domain);
        for _ in 0..20 {
            let found = self.held(&cloud, centres);
            for ((n, found), wanted) in rows.iter_mut().zip(&found).zip(&wanted) {
                *n *= (wanted / found.max(f64::MIN_POSITIVE)).clamp(0.25, 4.0);
            }
            let square = match &outcome.pulled {
                Some(pulled) => pulled.square / self.square(&cloud, centres, pulled.clip),
                None => outcome.objective / found[k],
            };
            if square.is_finite() {
                deviation = (deviation * square.max(0.0).sqrt().clamp(0.5, 2.0)).clamp(gap / 50.0, gap);
            }
            cloud = shape.cloud(centres, &rows, deviation, self.domain);
        }
        cloud
    }

    /// Masses and objective of a cloud, K + 1.
    fn held(&self, cloud: &Cloud, centres: &Centres) -> Vec<f64> {
        let k = centres.k();
        let mut u = vec![0.0; k];
        Self::sum(cloud, centres.columns(), k + 1, |x, sums| {
            distance::memberships(x, centres.rows(), self.judge_m, &mut u);
            for (i, (centre, u)) in centres.rows().zip(&u).enumerate() {
                sums[i] += u;
                sums[k] += distance::power(*u, self.judge_m) * distance::squared(x, centre);
            }
        })
    }

    /// What a round around the centres tells of a cloud as [`Pulled`](super::Pulled) does.
    fn square(&self, cloud: &Cloud, centres: &Centres, clip: f64) -> f64 {
        let m = self.recipe.algorithm.traits().fuzzifier;
        let shifts = Shifts { centres: centres.clone(), m, middle: false, clip, round: 0 };
        let (k, d) = (centres.k(), centres.columns());
        let sums = Self::sum(cloud, d, Shifts::width(k, d), |x, sums| shifts.add_row(x, centres.as_slice(), sums));
        sums[k * (d + 1)] / sums[..k].iter().sum::<f64>().max(1.0)
    }
}

/// What a whole run of a recipe, with its noise, tells of squares ([`Pulled`](super::Pulled)) over rows at `points` (P x d, units of the
/// questions), each for so many rows: the total of every K of its range; nothing of a K whose rounds were all around the middle.
///
/// # Errors
/// [`Error`] where the recipe cannot be run.
pub(super) fn squares(
    recipe: &Recipe,
    domain: &Domain,
    excess: f64,
    points: Vec<f64>,
    weight: f64,
    stream: &mut Stream,
) -> Result<Vec<Option<f64>>, Error> {
    let Some(mechanism) = Mechanism::of(recipe, domain, excess)? else { return Ok(Vec::new()) };
    let weights = vec![weight; points.len() / domain.columns()];
    let cloud = Cloud { points, weights };
    let found = match &recipe.seeding {
        Seeding::Candidates(params) => {
            Some((mechanism.candidates(&cloud, params, recipe.most_points(), Some(stream))?, params))
        }
        _ => None,
    };
    let total = |k: u32| {
        let start = match (&found, &recipe.seeding) {
            (Some((found, params)), _) => found.start(k as usize, params.seed, params.tries)?,
            (None, Seeding::Given { centres }) => centres.clone(),
            (None, Seeding::Uniform { seed }) => spread(domain, k as usize, *seed)?,
            (None, Seeding::Candidates(_)) => return Err(Error::NoCentresYet),
        };
        Ok(mechanism.run(&cloud, start, 0, Some(stream))?.pulled.map(|pulled| pulled.total))
    };
    recipe.clusters.each().map(total).collect()
}

/// The least distance between two centres; of a single one half the narrowest side of the box.
pub fn gap(centres: &Centres, domain: &Domain) -> f64 {
    let side = |column| {
        let (low, high) = domain.working_interval(column);
        (high - low) / 2.0
    };
    let pairs = (0..centres.k()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let apart = pairs.map(|(i, j)| distance::euclidean(centres.row(i), centres.row(j))).min_by(f64::total_cmp);
    apart.unwrap_or_else(|| (0..domain.columns()).map(side).fold(f64::INFINITY, f64::min))
}

/// The deviation of a column in clear, round clusters at these centres: rows lie as far from a centre, against the next one, as in two
/// columns; more columns would else bring far rows nearer to other centres.
fn deviation(centres: &Centres, domain: &Domain) -> f64 {
    let columns = centres.columns().max(2) as f64;
    gap(centres, domain) / APART / (columns / 2.0).sqrt()
}

/// Clusters of `truth` that no centre of `found` is near to: none lies within half the way to the next cluster.
pub fn lost(found: &Centres, truth: &Centres, domain: &Domain) -> usize {
    let gap_of = |i: usize| {
        let others = (0..truth.k()).filter(|j| *j != i).map(|j| distance::euclidean(truth.row(i), truth.row(j)));
        others.min_by(f64::total_cmp).unwrap_or_else(|| gap(truth, domain))
    };
    let near = |i: usize| distance::nearest(truth.row(i), found.rows()).1 <= gap_of(i) * gap_of(i) / 4.0;
    (0..truth.k()).filter(|i| !near(*i)).count()
}

/// Half of what 95 of 100 deviations stay within.
pub fn half_of_most(mut off: Vec<f64>) -> f64 {
    off.iter_mut().filter(|off| off.is_nan()).for_each(|off| *off = f64::INFINITY);
    off.sort_by(f64::total_cmp);
    // One draw more, that of the result itself, lies below this one in 95 of 100.
    off.get(((off.len() + 1) * 95).div_ceil(100) - 1).map_or(f64::INFINITY, |off| off / 2.0)
}

/// The standard errors of a result of this recipe over the public box `domain`, where its totals had `excess` times the planned
/// deviation; `None` without noise and for descriptions. Always the same for the same result.
///
/// # Errors
/// [`Error`] where the outcome is none of this recipe.
pub fn errors(recipe: &Recipe, domain: &Domain, outcome: &Outcome, excess: f64) -> Result<Option<Errors>, Error> {
    if recipe.algorithm.traits().describes.is_some() {
        return Ok(None);
    }
    let Some(transform) = &outcome.transform else { return errors_over(recipe, domain, outcome, excess) };
    // The rounds were in standardised units; their noise says nothing of how far off the standardisation is.
    let (inner, centres) = (transform.domain(domain)?, transform.centres(&outcome.centres)?);
    errors_over(recipe, &inner, &Outcome { centres, ..outcome.clone() }, excess)
}

/// The same over the box of the rounds, with the outcome's centres in it.
fn errors_over(recipe: &Recipe, domain: &Domain, outcome: &Outcome, excess: f64) -> Result<Option<Errors>, Error> {
    let Some(mechanism) = Mechanism::of(recipe, domain, excess)? else { return Ok(None) };
    // A run that ended early has made fewer rounds; the made-up one ends with the plan's last ones then, too.
    let from = mechanism.rounds.saturating_sub(outcome.rounds.clamp(1, LAST_ROUNDS));
    let cloud = mechanism.fitted(outcome);
    let judged = outcome.judged_over.is_some();
    let judge = |centres: &Centres, noise: Option<&mut Stream>| {
        judged.then(|| mechanism.judge(&cloud, centres, noise).ok()).flatten()
    };
    let back = outcome.transform.as_ref();
    let base = mechanism.run(&cloud, outcome.centres.clone(), from, None)?;
    let plain = numbers(&base, judge(&base.centres, None), back)?;
    // Every result has draws of its own: what chance does to the quantile of these draws is no fault that all results share.
    let mut stream = Stream::new(outcome.objective.to_bits(), b"veilsum mechanism noise ");
    let mut off: Vec<Vec<f64>> = vec![Vec::with_capacity(REPETITIONS); plain.len()];
    for _ in 0..REPETITIONS {
        let fit = mechanism.run(&cloud, base.centres.clone(), from, Some(&mut stream))?;
        let verdict = judge(&fit.centres, Some(&mut stream));
        for ((off, found), plain) in off.iter_mut().zip(numbers(&fit, verdict, back)?).zip(&plain) {
            off.push((found - plain).abs());
        }
    }
    let mut found = off.into_iter().map(half_of_most);
    let mut next = || found.next().unwrap_or(f64::INFINITY);
    Ok(Some(Errors {
        centres: base.centres.as_slice().iter().map(|_| next()).collect(),
        mass: outcome.clusters.mass.iter().map(|_| next()).collect(),
        rows: next(),
        objective: next(),
        objective_per_row: next(),
        fuzzy_davies_bouldin: next(),
        xie_beni: next(),
    }))
}

/// Every number of a result, in the order of [`Errors`]. Masses and objective are those before anything below 0 counts as 0: where a
/// result lies low by chance, its made-up rows lie near 0, and what would be cut off there are errors that the result itself may have.
/// Centres are in working units, from those of the rounds by way of `back`.
fn numbers(fit: &Fit, verdict: Option<(Verdict, Vec<f64>)>, back: Option<&Transform>) -> Result<Vec<f64>, Error> {
    let k = fit.centres.k();
    let judged = verdict.map_or_else(
        || vec![f64::INFINITY; k + 5],
        |(verdict, totals)| {
            let (rows, objective) = (verdict.rows as f64, totals[2 * k]);
            let pairs = (0..k).flat_map(|i| (0..i).map(move |j| (i, j)));
            let apart = pairs.map(|(i, j)| distance::squared(fit.centres.row(i), fit.centres.row(j)));
            // As in `formulas::xie_beni`; of one cluster there is none.
            let xie_beni = objective / rows / apart.min_by(f64::total_cmp).unwrap_or(0.0);
            let fuzzy = verdict.indices.fuzzy_davies_bouldin.unwrap_or(f64::INFINITY);
            let alone = [rows, objective, objective / rows, fuzzy, xie_beni];
            totals[k..2 * k].iter().copied().chain(alone).collect()
        },
    );
    let centres = back.map_or(Ok(fit.centres.clone()), |transform| transform.back(&fit.centres))?;
    Ok(centres.as_slice().iter().copied().chain(judged).collect())
}
