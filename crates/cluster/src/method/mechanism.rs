//! A plan's own mechanism played over made-up rows: what its noise does to a result, without a row of anybody (parametric
//! bootstrap, Efron & Tibshirani 1993, chapter 6; under differential privacy Ferrando, Wang & Sheldon 2022).
//!
//! Two things follow. [`forecast`] says before a run how far off the centres will be and whether a cluster is lost. [`errors`]
//! gives every number of a noisy result an interval: rows are made up that have the released centres, rows of clusters and squares,
//! samples of them are drawn, and preparation, rounds and validation are repeated over each with fresh noise of the known scale. What
//! they are compared with is the plain method over all made-up rows. So the errors see how noise of one round moves the next, the
//! floors of [NOI-7], the clip, the ratios in the indices, and that other rows of the same kind would have given another result. All
//! of it is post-processing of the plan and of noisy totals, and costs no privacy.
//!
//! It fails where rows are no such clusters at all: the made-up ones are symmetric and have the same deviations in all clusters. Columns of
//! a yes and a no are known by their bins, and have the shares of the centres.

mod cloud;
mod describe;
mod forecast;

pub use describe::descriptions;
pub(crate) use forecast::WORSE;
pub use forecast::{Forecast, MOSTLY, USEFUL, forecast};

use std::collections::HashSet;

use cloud::{Cloud, POINTS, POINTS_EACH, Shape};

use super::dp::{Noisy, spread};
use super::prepare::{Preparing, Scale};
use super::recipe::{Recipe, Seeding};
use super::seed::{CandidateSearch, Candidates, MARGINS, SeedPoints};
use crate::algorithm::{Fit, Iteration, Pulled, Walls, confined};
use crate::metrics::gap;
use crate::offline::{kmeans::greedy_plus_plus, wfcm};
use crate::privacy::{Levels, settled};
use crate::query::Shifts;
use crate::random::Stream;
use crate::validity::{Geometry, Verdict};
use crate::{Centres, Domain, Error, Outcome, Query, Rows, Transform, distance};

/// Repetitions for the errors: the 95 % quantile of so many is off by 1.5 percentage points.
const REPETITIONS: usize = 200;
/// Rounds that the errors repeat: noise of earlier ones is forgotten.
const LAST_ROUNDS: u32 = 15;
/// Least distance of two clear clusters, in deviations of a cluster in two columns: where the deviation of made-up rows begins.
const APART: f64 = 5.4;

/// Rows of a column lie at its ends if both of these bins hold more than so many deviations of their noise, and all others together little more than
/// this part of the rows.
const CLEAR: f64 = 3.5;
const INNER: f64 = 0.05;

/// Rounds of the plain method over made-up rows at most; it rests when centres move less than this part of their least distance.
const PLAIN_ROUNDS: u32 = 60;
const AT_REST: f64 = 1e-4;
/// Other starts over made-up rows, points of these, and products in a round over them at most: a second in all.
const STARTS: u32 = 12;
const STARTED_OVER: usize = 1_200;
const MOST_PRODUCTS: usize = 1 << 19;
/// Distances of a column that the first centres of a repetition take at most: all of them a second or two.
const MOST_SEEDING: u64 = 2_000_000;
/// Steps that bring made-up rows to the released totals.
const FITTING: usize = 40;

/// What a noisy result may be off: of every number a standard error, half of what 95 of 100 repetitions stay within.
#[derive(Debug, Clone, PartialEq)]
pub struct Errors {
    /// From what the plain method gives over all rows of which those of the run are a sample (`intervals_hold_the_population`).
    pub whole: Numbers,
    /// By noise alone: from what the same plan without noise gives on the same rows (`noise_errors`).
    pub noise: Numbers,
}

/// Errors of the numbers of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    /// Of the centres, K x d, working units.
    pub centres: Vec<f64>,
    /// Of what clusters hold, K: memberships of fuzzy methods, rows of hard ones.
    pub held: Vec<f64>,
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

/// What a plan does to totals.
struct Mechanism<'a> {
    recipe: &'a Recipe,
    judge_m: f64,
    levels: Levels,
    /// The noise of a total over the planned one.
    excess: f64,
    domain: &'a Domain,
}

impl<'a> Mechanism<'a> {
    fn of(recipe: &'a Recipe, domain: &'a Domain, excess: f64) -> Result<Option<Self>, Error> {
        let Some(levels) = recipe.levels(domain)? else { return Ok(None) };
        Ok(Some(Self { recipe, judge_m: recipe.judge_m(), levels, excess, domain }))
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

    /// What the points of a cloud say to a question, added up, with noise of its levels where there is any.
    fn asked(&self, cloud: &Cloud, query: &Query, noise: Option<&mut Stream>) -> Result<Vec<f64>, Error> {
        let held = query.held(self.domain);
        let question = query.of_row(self.domain, &held);
        let question = question.ok_or_else(|| Error::implausible("rows do not answer this one by one"))?;
        let mut scratch = vec![0.0; question.scratch()];
        let add = |x: &[f64], sums: &mut [f64]| veilsum_contributions::add(&question, x, &mut scratch, sums);
        let mut values = Self::sum(cloud, self.domain.columns(), question.width(), add);
        self.add_noise(query, &mut values, noise);
        Ok(values)
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
            for pair in rest.split_off_mut(..*length).unwrap_or_default().chunks_mut(2) {
                let draws = stream.normal_pair();
                pair.iter_mut().zip(draws).for_each(|(x, z)| *x += deviation * self.excess * z);
            }
        }
    }

    /// The rounds from this one on.
    fn run(&self, cloud: &Cloud, start: Centres, from: u32, mut noise: Option<&mut Stream>) -> Result<Fit, Error> {
        let mut noisy = Noisy::new(from, start, &self.recipe.algorithm, self.levels, self.domain)?;
        let walls = Walls::fine(self.domain);
        loop {
            let values = self.asked(cloud, &noisy.ask(), noise.as_deref_mut())?;
            if noisy.take(&values, None, &walls)? {
                return Ok(noisy.fit());
            }
        }
    }

    /// Candidates for first centres from totals of the cloud, as many as the plan asks about for its largest K.
    fn candidates(
        &self,
        cloud: &Cloud,
        params: &Candidates,
        mut noise: Option<&mut Stream>,
    ) -> Result<SeedPoints, Error> {
        let mut search = CandidateSearch::new(params, self.recipe.most_points(), Some(&self.levels), self.domain)?;
        loop {
            let values = self.asked(cloud, &search.ask(), noise.as_deref_mut())?;
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

    /// Made-up rows with these centres (units of the rounds) and rows of clusters that lie as far from them as the rounds told: the rows
    /// are raked and the deviations are scaled until the totals of the cloud are the released ones. The objective tells how far where
    /// no round was around the centres; it is one total whose noise may be as large as itself, and errors scale with the deviation. The
    /// plan's rows, shared alike, stand for what was not asked.
    fn fitted(&self, outcome: &Outcome, centres: &Centres, shape: &Shape, ends: &[usize]) -> Result<Cloud, Error> {
        let (k, d) = (centres.k(), centres.columns());
        let gap = gap(centres, self.domain);
        let floor = self.levels.of_round(1.0)[0].deviation * self.excess;
        let alike = self.levels.noise().expected_rows as f64 / k as f64;
        let hard =
            outcome.pulled.as_ref().filter(|_| self.is_hard()).map(|pulled| pulled.weights.iter().copied().map(Some));
        let told = hard.map_or_else(|| outcome.clusters.mass.clone(), Iterator::collect);
        let wanted: Vec<f64> = told.iter().map(|held| held.unwrap_or(alike).max(floor)).collect();
        let wide = (&*self.wide(outcome, centres, &wanted), ends);
        let (mut rows, mut deviation, mut places) = (wanted.clone(), deviation(centres, self.domain), centres.clone());
        let mut made = shape.cloud(&places, &rows, wide, deviation, self.domain);
        let clip = outcome.pulled.as_ref().map_or(f64::INFINITY, |pulled| pulled.clip);
        for _ in 0..FITTING {
            let found = self.held(&made, centres);
            for ((n, found), wanted) in rows.iter_mut().zip(&found).zip(&wanted) {
                *n *= (wanted / found.max(f64::MIN_POSITIVE)).clamp(0.25, 4.0);
            }
            let sums = self.asked(&made, &self.around(centres, clip), None)?;
            let square = match &outcome.pulled {
                Some(pulled) => pulled.square * sums[..k].iter().sum::<f64>().max(1.0) / sums[sums.len() - 1],
                None => outcome.objective / found[k],
            };
            if square.is_finite() {
                deviation = (deviation * square.max(0.0).sqrt().clamp(0.5, 2.0)).clamp(gap / 50.0, gap);
            }
            // The centres are to rest where they are.
            let moved = places.as_slice().iter().enumerate().map(|(i, x)| x - sums[k + i] / sums[i / d].max(1.0));
            places = confined(&Centres::finite(d, &moved.collect::<Vec<_>>()), self.domain);
            made = shape.cloud(&places, &rows, wide, deviation, self.domain);
        }
        Ok(made)
    }

    /// How wide clusters are in every column, root mean square 1: what the deviations of whole columns leave beside those of the
    /// centres. They come from noisy counts in bins; the less these tell, the more columns are taken to be alike.
    fn wide(&self, outcome: &Outcome, centres: &Centres, rows: &[f64]) -> Vec<f64> {
        let Some(deviations) = &outcome.deviations else { return vec![1.0; centres.columns()] };
        let (all, query) = (rows.iter().sum::<f64>(), Query::from(MARGINS));
        let noise = self.levels.of(&query, self.domain).map_or(0.0, |levels| levels[0].deviation * self.excess);
        let within = |(column, deviation): (usize, &f64)| {
            let mean_of = |of: &dyn Fn(f64) -> f64| {
                centres.rows().zip(rows).map(|(centre, rows)| rows * of(centre[column])).sum::<f64>() / all
            };
            let mean = mean_of(&|x| x);
            let between = mean_of(&|x| (x - mean) * (x - mean));
            let side = self.domain.side(column).powi(2);
            let bin = side / (12.0 * f64::from(MARGINS.bins * MARGINS.bins));
            (deviation * deviation - between - 2.0 * bin).max(0.0) + bin + side * noise / (2.0 * all)
        };
        let squares: Vec<f64> = deviations.iter().enumerate().map(within).collect();
        let mean = squares.iter().sum::<f64>() / squares.len() as f64;
        squares.iter().map(|square| (square / mean).sqrt()).collect()
    }

    /// Columns of numbers whose rows lie at the ends alone, a yes or a no, as far as bins with noise tell it.
    fn ends(&self, outcome: &Outcome) -> Vec<usize> {
        let query = Query::from(MARGINS);
        let noise =
            self.levels.of(&query, self.domain).map_or(f64::INFINITY, |levels| levels[0].deviation * self.excess);
        let two = |bins: &Vec<f64>| {
            let [low, inner @ .., high] = &bins[..] else { return false };
            let between = INNER * bins.iter().sum::<f64>() + noise * (inner.len() as f64).sqrt();
            low.min(*high) > CLEAR * noise && inner.iter().sum::<f64>() < between
        };
        let columns = outcome.margins.iter().flatten().take(self.domain.numbers()).enumerate();
        columns.filter(|(_, bins)| two(bins)).map(|(column, _)| column).collect()
    }

    /// Made-up rows as [`Mechanism::fitted`] makes them, and the result's centres, in the units of the rounds.
    fn made_up(&self, outcome: &Outcome, shape: &Shape) -> Result<(Cloud, Centres), Error> {
        let ends = self.ends(outcome);
        let Some(transform) = &outcome.transform else {
            return Ok((self.fitted(outcome, &outcome.centres, shape, &ends)?, outcome.centres.clone()));
        };
        let (inner, centres) = (transform.domain(self.domain)?, transform.centres(&outcome.centres)?);
        let within = Mechanism { domain: &inner, levels: self.levels_over(&inner)?, ..*self };
        Ok((within.fitted(outcome, &centres, shape, &ends)?, centres))
    }

    fn is_hard(&self) -> bool {
        self.recipe.algorithm.traits().fuzzifier.is_none()
    }

    /// The question of a round around the centres.
    fn around(&self, centres: &Centres, clip: f64) -> Query {
        let m = self.recipe.algorithm.traits().fuzzifier;
        Shifts { centres: centres.clone(), m, middle: false, clip, round: 0 }.into()
    }

    /// What clusters of a cloud hold, and the objective, K + 1.
    fn held(&self, cloud: &Cloud, centres: &Centres) -> Vec<f64> {
        let k = centres.k();
        let mut u = vec![0.0; k];
        Self::sum(cloud, centres.columns(), k + 1, |x, sums| {
            if self.is_hard() {
                let (own, square) = distance::nearest(x, centres.rows());
                sums[own] += 1.0;
                sums[k] += square;
                return;
            }
            distance::memberships(x, centres.rows(), self.judge_m, &mut u);
            for (i, (centre, u)) in centres.rows().zip(&u).enumerate() {
                sums[i] += u;
                sums[k] += distance::power(*u, self.judge_m) * distance::squared(x, centre);
            }
        })
    }

    /// The preparation over a cloud, as the plan has it or the plain one; `None` where there is nothing to prepare.
    fn prepared(&self, cloud: &Cloud, plain: bool, mut noise: Option<&mut Stream>) -> Result<Option<Transform>, Error> {
        let Some(mut preparing) = Preparing::new(self.recipe.preparation, self.domain, !plain)? else {
            return Ok(None);
        };
        loop {
            let values = self.asked(cloud, &preparing.ask(), noise.as_deref_mut())?;
            if let Some((transform, _)) = preparing.take(&values, None)? {
                return Ok(Some(transform));
            }
        }
    }

    /// Where the plain method comes to rest: no noise, no clip, as many rounds as it takes.
    fn rest(&self, cloud: &Cloud, start: Centres) -> Result<Fit, Error> {
        let (k, d) = (start.k(), start.columns());
        let least = AT_REST * gap(&start, self.domain);
        let mut fit = Fit::at(start);
        for _ in 0..PLAIN_ROUNDS {
            let sums = self.asked(cloud, &self.around(&fit.centres, f64::INFINITY), None)?;
            let mut next = fit.centres.as_slice().to_vec();
            for (i, x) in next.iter_mut().enumerate().filter(|(i, _)| sums[i / d] > 0.0) {
                *x += sums[k + i] / sums[i / d];
            }
            let next = Centres::new(k, d, next)?;
            let moved = next.frobenius_distance(&fit.centres)?;
            let total = sums[sums.len() - 1];
            let pulled = Pulled { square: total, clip: f64::INFINITY, total, weights: sums[..k].to_vec() };
            (fit.centres, fit.pulled) = (next, Some(pulled));
            if moved <= least {
                break;
            }
        }
        Ok(fit)
    }

    /// Distances of a column that first centres take.
    fn distances(&self, params: &Candidates) -> u64 {
        params.distances(self.recipe.most_points()).saturating_mul(self.domain.columns() as u64)
    }

    /// The plan's first centres over a cloud, each in the place of the one in `near` that it is nearest to; `near` itself where a cluster has
    /// none, which is another question ([`forecast`]), where first centres are given, and where they take too long.
    fn begun(&self, cloud: &Cloud, near: &Centres, noise: Option<&mut Stream>) -> Result<Centres, Error> {
        let (k, d) = (near.k(), near.columns());
        let found = match &self.recipe.seeding {
            Seeding::Candidates(params) if self.distances(params) < MOST_SEEDING => {
                self.candidates(cloud, params, noise)?.start(k, params.seed, params.tries)?
            }
            Seeding::Uniform { seed } => spread(self.domain, k, *seed)?,
            _ => return Ok(near.clone()),
        };
        let order: Vec<usize> = near.rows().map(|centre| distance::nearest(centre, found.rows()).0).collect();
        if order.iter().collect::<HashSet<_>>().len() < k {
            return Ok(near.clone());
        }
        Centres::new(k, d, order.into_iter().flat_map(|at| found.row(at)).copied().collect())
    }

    /// Every number that a run gives over a cloud in working units, in the order of [`Numbers`]: the plan's rounds from `from` on, or the
    /// plain method. Sums are those before anything below 0 counts as 0: where a result lies low by chance, its made-up rows lie near
    /// 0, and what would be cut off there are errors that the result itself may have.
    fn numbers(
        &self,
        cloud: &Cloud,
        start: &Centres,
        from: Option<u32>,
        judges: bool,
        mut noise: Option<&mut Stream>,
    ) -> Result<Vec<f64>, Error> {
        if let Some(transform) = self.prepared(cloud, from.is_none(), noise.as_deref_mut())? {
            let inner = transform.domain(self.domain)?;
            let rows = transform.rows(&Rows::new(cloud.points.clone(), self.domain.columns())?)?;
            // It prepares nothing more.
            let recipe = Recipe { preparation: Scale::None, ..self.recipe.clone() };
            let mechanism = Mechanism { recipe: &recipe, domain: &inner, levels: self.levels_over(&inner)?, ..*self };
            let start = confined(&transform.centres(start)?, &inner);
            let mut found = mechanism.numbers(&cloud.at(rows.as_slice().to_vec()), &start, from, judges, noise)?;
            let (centres, _) = found.split_at_mut(start.as_slice().len());
            let back = transform.back(&Centres::new(start.k(), start.columns(), centres.to_vec())?)?;
            centres.copy_from_slice(back.as_slice());
            return Ok(found);
        }
        let fit = match from {
            Some(0) => self.run(cloud, self.begun(cloud, start, noise.as_deref_mut())?, 0, noise.as_deref_mut())?,
            Some(from) => self.run(cloud, start.clone(), from, noise.as_deref_mut())?,
            None => self.rest(cloud, start.clone())?,
        };
        let (k, nothing) = (start.k(), f64::INFINITY);
        let verdict = judges.then(|| self.judge(cloud, &fit.centres, noise).ok()).flatten();
        let (rows, totals, davies_bouldin) = match verdict {
            Some((verdict, totals)) => {
                (verdict.rows as f64, totals, verdict.indices.fuzzy_davies_bouldin.unwrap_or(nothing))
            }
            None => (nothing, vec![nothing; 2 * k + 1], nothing),
        };
        let (held, objective) = match &fit.pulled {
            Some(pulled) if self.is_hard() => (pulled.weights.clone(), pulled.total),
            _ if self.is_hard() => (vec![nothing; k], nothing),
            _ => (totals[k..2 * k].to_vec(), totals[2 * k]),
        };
        let pairs = (0..k).flat_map(|i| (0..i).map(move |j| (i, j)));
        let apart = pairs.map(|(i, j)| distance::squared(fit.centres.row(i), fit.centres.row(j)));
        // As in `formulas::xie_beni`; of one cluster there is none.
        let xie_beni = totals[2 * k] / rows / apart.min_by(f64::total_cmp).unwrap_or(0.0);
        let alone = [rows, objective, objective / rows, davies_bouldin, xie_beni];
        Ok(fit.centres.as_slice().iter().chain(&held).copied().chain(alone).collect())
    }

    fn levels_over(&self, domain: &Domain) -> Result<Levels, Error> {
        self.recipe.levels(domain)?.ok_or(Error::implausible("a plan with noise has levels"))
    }
}

/// What a whole run of a recipe, with its noise, tells of squares ([`Pulled`](super::Pulled)) over rows at `points` (P x d, units of the
/// questions), each for so many rows: the total of every K of its range, from first centres of the plan's seed; nothing of a K whose rounds were
/// all around the middle.
///
/// # Errors
/// [`Error`] where the recipe cannot be run.
pub(super) fn squares(
    recipe: &Recipe,
    domain: &Domain,
    (excess, seed): (f64, u64),
    (points, weight): (Vec<f64>, f64),
    stream: &mut Stream,
) -> Result<Vec<Option<f64>>, Error> {
    let Some(mechanism) = Mechanism::of(recipe, domain, excess)? else { return Ok(Vec::new()) };
    let weights = vec![weight; points.len() / domain.columns()];
    let cloud = Cloud { points, weights };
    let found = match &recipe.seeding {
        Seeding::Candidates(params) => Some((mechanism.candidates(&cloud, params, Some(stream))?, params.tries)),
        _ => None,
    };
    let total = |k: u32| {
        let start = match &found {
            Some((found, tries)) => found.start(k as usize, seed, *tries)?,
            None => spread(domain, k as usize, seed)?,
        };
        Ok(mechanism.run(&cloud, start, 0, Some(stream))?.pulled.map(|pulled| pulled.total))
    };
    recipe.clusters.each().map(total).collect()
}

/// The deviation of a column in clear, round clusters at these centres: rows lie as far from a centre, against the next one, as in two
/// columns; more columns would else bring far rows nearer to other centres.
fn deviation(centres: &Centres, domain: &Domain) -> f64 {
    let columns = centres.columns().max(2) as f64;
    gap(centres, domain) / APART / (columns / 2.0).sqrt()
}

/// Half of what 95 of 100 deviations stay within: of normal ones the standard error.
pub fn half_of_most(mut off: Vec<f64>) -> f64 {
    off.iter_mut().filter(|off| off.is_nan()).for_each(|off| *off = f64::INFINITY);
    off.sort_by(f64::total_cmp);
    // One draw more, that of the result itself, lies below this one in 95 of 100.
    off.get(((off.len() + 1) * 95).div_ceil(100) - 1).map_or(f64::INFINITY, |off| off / 2.0)
}

/// How many times as large the objective of fuzzy c-means is where it comes to rest from this result's centres as at the best of some
/// starts, over rows that are made up from the result: it would rather cut a large cluster than keep a small one. `None` without noise,
/// for other methods, without masses, and if it takes too long.
///
/// # Errors
/// [`Error`] where the outcome is none of this recipe.
pub fn over_best(recipe: &Recipe, domain: &Domain, outcome: &Outcome, excess: f64) -> Result<Option<f64>, Error> {
    let traits = recipe.algorithm.traits();
    let Some((mechanism, m)) = Mechanism::of(recipe, domain, excess)?.zip(traits.fuzzifier) else { return Ok(None) };
    let (k, d) = (outcome.centres.k(), domain.columns());
    // What nobody told is not made up.
    let told = outcome.clusters.mass.iter().all(Option::is_some);
    if !told || STARTED_OVER.max(POINTS_EACH * k).saturating_mul(k * d) > MOST_PRODUCTS {
        return Ok(None);
    }
    let (cloud, centres) = mechanism.made_up(outcome, &Shape::new(STARTED_OVER, k, d))?;
    let points = Centres::finite(d, &cloud.points);
    let still = AT_REST * gap(&centres, domain);
    let objective = |start: &Centres| wfcm::wfcm(&points, &cloud.weights, start, m, still, PLAIN_ROUNDS).objective;
    let mut stream = Stream::new(0, b"veilsum mechanism starts");
    let starts = (0..STARTS).map(|_| objective(&greedy_plus_plus(&points, &cloud.weights, k, &mut stream)));
    Ok(Some(objective(&centres) / starts.fold(f64::INFINITY, f64::min)))
}

/// The errors of a result of this recipe over the public box `domain`, where its totals had `excess` times the planned deviation;
/// `None` without noise and for descriptions. Always the same for the same result.
///
/// # Errors
/// [`Error`] where the outcome is none of this recipe.
pub fn errors(recipe: &Recipe, domain: &Domain, outcome: &Outcome, excess: f64) -> Result<Option<Errors>, Error> {
    let Some(mechanism) =
        Mechanism::of(recipe, domain, excess)?.filter(|_| recipe.algorithm.traits().describes.is_none())
    else {
        return Ok(None);
    };
    let shape = Shape::new(POINTS, outcome.centres.k(), domain.columns());
    let (cloud, _) = mechanism.made_up(outcome, &shape)?;
    let cloud = match &outcome.transform {
        None => cloud,
        Some(transform) => {
            let points = Centres::finite(domain.columns(), &cloud.points);
            cloud.at(transform.back(&points)?.as_slice().to_vec())
        }
    };
    // A run that ended early has made fewer rounds; the made-up one ends with the plan's last ones then, too.
    let from = Some(recipe.algorithm.traits().rounds.saturating_sub(outcome.rounds.clamp(1, LAST_ROUNDS)));
    let (judges, shape) = (outcome.judged_over.is_some(), (outcome.centres.k(), domain.columns()));
    let centres_of = |numbers: &[f64]| Centres::new(shape.0, shape.1, numbers[..shape.0 * shape.1].to_vec());
    let plain = mechanism.numbers(&cloud, &outcome.centres, None, judges, None)?;
    let quiet = mechanism.numbers(&cloud, &outcome.centres, from, judges, None)?;
    let (at_plain, at_quiet) = (centres_of(&plain)?, centres_of(&quiet)?);
    // Every result has draws of its own: what chance does to the quantile of these draws is no fault that all results share.
    let mut stream = Stream::new(outcome.objective.to_bits(), b"veilsum mechanism noise ");
    let mut off =
        [vec![Vec::with_capacity(REPETITIONS); plain.len()], vec![Vec::with_capacity(REPETITIONS); plain.len()]];
    for _ in 0..REPETITIONS {
        let sample = cloud.sampled(1.0, &mut stream);
        let whole = mechanism.numbers(&sample, &at_plain, from, judges, Some(&mut stream))?;
        let noise = mechanism.numbers(&cloud, &at_quiet, from, judges, Some(&mut stream))?;
        for (off, (found, known)) in off.iter_mut().zip([(whole, &plain), (noise, &quiet)]) {
            off.iter_mut().zip(found).zip(known).for_each(|((off, found), known)| off.push((found - known).abs()));
        }
    }
    let [whole, noise] = off.map(|off| {
        let mut found = off.into_iter().map(half_of_most);
        let mut next = || found.next().unwrap_or(f64::INFINITY);
        Numbers {
            centres: (0..shape.0 * shape.1).map(|_| next()).collect(),
            held: (0..shape.0).map(|_| next()).collect(),
            rows: next(),
            objective: next(),
            objective_per_row: next(),
            fuzzy_davies_bouldin: next(),
            xie_beni: next(),
        }
    });
    Ok(Some(Errors { whole, noise }))
}
