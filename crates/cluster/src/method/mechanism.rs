//! A plan's own mechanism played over made-up rows: what its noise does to a result, without a row of anybody (parametric
//! bootstrap, Efron & Tibshirani 1993, chapter 6; under differential privacy Ferrando, Wang & Sheldon 2022).
//!
//! Two things follow. [`kept`] says before a run how likely it is that no cluster is lost. [`errors`] gives every number of a
//! noisy result a standard error: rows are made up that have the released centres, masses and objective, and the rounds
//! and the validation are repeated over them with fresh noise of the known scale. So the errors see how noise of one round
//! moves the next, the floors of [NOI-7], and the ratios in the indices. All of it is post-processing of the plan and of noisy
//! totals, and costs no privacy.
//!
//! It fails where rows are no round clusters at all: the made-up ones are isotropic, of one deviation.

use super::dp::{Noisy, least_distance, shaped, spread};
use super::recipe::{Recipe, Seeding};
use super::seed::{CandidateSearch, Candidates};
use crate::algorithm::{Fit, Iteration};
use crate::privacy::{Levels, Noise, in_nano, settled};
use crate::query::{ShapedShifts, Shifts};
use crate::random::Stream;
use crate::validity::{Geometry, Verdict};
use crate::{Centres, Domain, MethodError, Outcome, Query, distance};

/// Repetitions for the errors: the 95 % quantile of so many is off by 1.1 percentage points.
const REPETITIONS: usize = 400;
/// Layouts of clusters for the forecast: a probability of 0.9 is then known to 0.02.
const LAYOUTS: usize = 200;
/// Fewest layouts, where many rounds, clusters or restarts make each one dear.
const FEWEST: usize = 40;
/// Made-up points of all clusters together, each of them for many rows; and of one cluster at least.
const POINTS: usize = 240;
const POINTS_EACH: usize = 8;
/// Rounds that the errors repeat: noise of earlier ones is forgotten.
const LAST_ROUNDS: u32 = 15;
/// Distances of one row to one centre that a forecast computes at most, about a second's work.
const WORK: usize = 30_000_000;
/// Least distance of two clusters of a layout, in deviations of a cluster: they are clear without noise.
const APART: f64 = 6.0;
/// Draws of a layout among which the most spread one counts.
const DRAWS: usize = 200;

/// How likely a plan keeps all clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    /// Share of the layouts in which every cluster has a centre of its own at the end.
    pub probability: f64,
    /// The same without noise: what is missing to 1 here is the fault of first centres, K or fuzzifier.
    pub without_noise: f64,
    /// Share of the clusters that are lost, over all layouts.
    pub lost: f64,
    /// Layouts that were played.
    pub layouts: usize,
}

/// Standard errors of a noisy result: half of what 95 of 100 repetitions stay within, so that two of them hold the noise-free
/// value in 95 %, centres at a small budget in 90 % (`noise_errors`). The noise-free value is what the same plan without noise gives on
/// the same rows.
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

/// Round standard normal points, the same number for every cluster, each with its mirror image.
struct Shape {
    normal: Vec<f64>,
    each: usize,
}

impl Shape {
    fn new(k: usize, d: usize) -> Self {
        let each = (POINTS / k).max(POINTS_EACH).next_multiple_of(2);
        let mut stream = Stream::new(0, b"veilsum mechanism points");
        let half: Vec<f64> = std::iter::repeat_with(|| stream.normal_pair()).flatten().take(each / 2 * d).collect();
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
        Cloud {
            points: centres.rows().flat_map(around).collect(),
            weights: rows.iter().flat_map(|n| std::iter::repeat_n(n / self.each as f64, self.each)).collect(),
        }
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
    fn of(recipe: &'a Recipe, domain: &'a Domain, excess: f64) -> Result<Option<Self>, MethodError> {
        let Some(levels) = recipe.levels(domain)? else { return Ok(None) };
        let rounds = recipe.algorithm.under_noise().map_or(0, |(_, rounds)| rounds);
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
    fn run(
        &self,
        cloud: &Cloud,
        start: Centres,
        from: u32,
        mut noise: Option<&mut Stream>,
    ) -> Result<Fit, MethodError> {
        let (k, d) = (start.k(), start.columns());
        let (algorithm, levels, domain) = (&self.recipe.algorithm, self.levels, self.domain);
        let mut noisy: Box<dyn Iteration> = match algorithm.has_covariances() {
            true => Box::new(shaped::Noisy::new(&start, algorithm, levels, domain)?),
            false => Box::new(Noisy::new(from, start, algorithm, levels, domain)?),
        };
        loop {
            let query = noisy.ask();
            let mut values = match &query {
                Query::Shifts(shifts) => self.shifts(cloud, shifts),
                Query::ShapedShifts(shifts) => {
                    let adding = shifts.adding(domain).ok_or_else(|| MethodError::implausible("no covariance"))?;
                    Self::sum(cloud, d, ShapedShifts::width(k, d), |x, sums| adding.add_row(x, sums))
                }
                _ => return Ok(noisy.fit()),
            };
            self.add_noise(&query, &mut values, noise.as_deref_mut());
            if noisy.take(&values, None)? {
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
        mut noise: Option<&mut Stream>,
    ) -> Result<Centres, MethodError> {
        let d = self.domain.columns();
        let mut search = CandidateSearch::new(params, k as u32, Some(&self.levels), self.domain)?;
        loop {
            let query = search.ask();
            let mut values = match &query {
                Query::Margins(margins) => {
                    let histogram = margins.histogram(self.domain);
                    Self::sum(cloud, d, histogram.width(), |x, sums| histogram.add_row(x, |at| sums[at] += 1.0))
                }
                Query::Shifts(shifts) => self.shifts(cloud, shifts),
                _ => return Err(MethodError::implausible("margins and sums are asked")),
            };
            self.add_noise(&query, &mut values, noise.as_deref_mut());
            if let Some(points) = search.take(&values)? {
                return points.start(k, params.seed, params.tries);
            }
        }
    }

    /// What the validation says, and its totals before anything below 0 counts as 0.
    fn judge(
        &self,
        cloud: &Cloud,
        centres: &Centres,
        noise: Option<&mut Stream>,
    ) -> Result<(Verdict, Vec<f64>), MethodError> {
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
        Ok((query.verdict(Geometry::Centres(centres), &settled, None)?, values))
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

    /// Made-up rows with these centres, masses and objective: the rows are raked and the deviation is scaled until the
    /// totals of the cloud are the released ones.
    fn fitted(&self, outcome: &Outcome) -> Cloud {
        let (centres, k) = (&outcome.centres, outcome.centres.k());
        let shape = Shape::new(k, centres.columns());
        let gap = gap(centres, self.domain);
        let floor = self.levels.of_round(1.0, 1.0)[0].deviation * self.excess;
        let wanted: Vec<f64> = outcome.clusters.mass.iter().map(|mass| mass.unwrap_or(floor).max(floor)).collect();
        let (mut rows, mut deviation) = (wanted.clone(), gap / APART);
        let mut cloud = shape.cloud(centres, &rows, deviation, self.domain);
        for _ in 0..20 {
            let mut u = vec![0.0; k];
            let d = centres.columns();
            let found = Self::sum(&cloud, d, k + 1, |x, sums| {
                distance::memberships(x, centres.rows(), self.judge_m, &mut u);
                for (i, (centre, u)) in centres.rows().zip(&u).enumerate() {
                    sums[i] += u;
                    sums[k] += distance::power(*u, self.judge_m) * distance::squared(x, centre);
                }
            });
            for ((n, found), wanted) in rows.iter_mut().zip(&found).zip(&wanted) {
                *n *= (wanted / found.max(f64::MIN_POSITIVE)).clamp(0.25, 4.0);
            }
            if outcome.objective.is_finite() {
                let factor = (outcome.objective / found[k].max(f64::MIN_POSITIVE)).sqrt().clamp(0.5, 2.0);
                deviation = (deviation * factor).clamp(gap / 50.0, gap);
            }
            cloud = shape.cloud(centres, &rows, deviation, self.domain);
        }
        cloud
    }
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

/// Clusters of `truth` that no centre of `found` is near to: none lies within half the way to the next cluster.
pub fn lost(found: &Centres, truth: &Centres, domain: &Domain) -> usize {
    let gap_of = |i: usize| {
        let others = (0..truth.k()).filter(|j| *j != i).map(|j| distance::euclidean(truth.row(i), truth.row(j)));
        others.min_by(f64::total_cmp).unwrap_or_else(|| gap(truth, domain))
    };
    let near = |i: usize| distance::nearest(truth.row(i), found.rows()).1 <= gap_of(i) * gap_of(i) / 4.0;
    (0..truth.k()).filter(|i| !near(*i)).count()
}

/// How likely a recipe with noise keeps all clusters, where the total has `excess` times the planned deviation; `None`
/// without noise. K clear clusters (six deviations apart at least), their rows from half to one and a half of an equal share of
/// the expected ones, are put into the box as the most spread of two hundred uniform draws. The plan's own first centres and rounds
/// run over them. Of a range of K it is the largest. Always the same for the same plan.
///
/// # Errors
/// [`MethodError`] where the recipe cannot be run.
pub fn kept(recipe: &Recipe, domain: &Domain, excess: f64) -> Result<Option<Kept>, MethodError> {
    let (Some(mechanism), Some(noise)) = (Mechanism::of(recipe, domain, excess)?, &recipe.noise) else {
        return Ok(None);
    };
    if recipe.algorithm.describes().is_some() {
        // There is no cluster to lose.
        return Ok(Some(Kept { probability: 1.0, without_noise: 1.0, lost: 0.0, layouts: 0 }));
    }
    let (k, d) = (recipe.clusters.max as usize, domain.columns());
    let unusable = |error: crate::DataError| MethodError::parameter(error.to_string());
    // Without noise its floors do not bind either.
    let quiet = Recipe { noise: Some(Noise { nano_rho: in_nano(1e3), ..*noise }), ..recipe.clone() };
    let Some(plain) = Mechanism::of(&quiet, domain, 1.0)? else { return Ok(None) };
    let start = match &recipe.seeding {
        Seeding::Given { centres } => Some(centres.clone()),
        Seeding::Uniform { seed } => Some(spread(domain, k, *seed).map_err(unusable)?),
        Seeding::Candidates(_) => None,
    };
    let shape = Shape::new(k, d);
    let one = 2 * (mechanism.rounds as usize + 1) * shape.each * k * k;
    let layouts = (WORK / one.max(1)).clamp(FEWEST, LAYOUTS);
    let mut stream = Stream::new(0, b"veilsum mechanism layout");
    let (mut all_kept, mut lost_in_all) = ([0usize; 2], 0);
    for _ in 0..layouts {
        let truth = layout(domain, k, &mut stream)?;
        let shares: Vec<f64> = (0..k).map(|_| 0.5 + stream.unit()).collect();
        let part = noise.expected_rows as f64 / shares.iter().sum::<f64>();
        let rows: Vec<f64> = shares.iter().map(|share| share * part).collect();
        let cloud = shape.cloud(&truth, &rows, gap(&truth, domain) / APART, domain);
        for (kept, noisy) in all_kept.iter_mut().zip([true, false]) {
            let mechanism = if noisy { &mechanism } else { &plain };
            let mut noise = noisy.then_some(&mut stream);
            let start = match (&start, &recipe.seeding) {
                (None, Seeding::Candidates(params)) => {
                    mechanism.first_centres(&cloud, params, k, noise.as_deref_mut())?
                }
                (start, _) => start.clone().ok_or(MethodError::NoCentresYet)?,
            };
            let found = mechanism.run(&cloud, start, 0, noise)?.centres;
            let lost = lost(&found, &truth, domain);
            *kept += usize::from(lost == 0);
            lost_in_all += if noisy { lost } else { 0 };
        }
    }
    let share = |part: usize, of: usize| part as f64 / of as f64;
    let [probability, without_noise] = all_kept.map(|kept| share(kept, layouts));
    Ok(Some(Kept { probability, without_noise, lost: share(lost_in_all, layouts * k), layouts }))
}

/// The most spread of some uniform draws of K places.
fn layout(domain: &Domain, k: usize, stream: &mut Stream) -> Result<Centres, MethodError> {
    let mut best: Option<(f64, Centres)> = None;
    for _ in 0..DRAWS {
        let place = |column| {
            let (low, high) = domain.working_interval(column);
            low + (high - low) * stream.unit()
        };
        let values = (0..k).flat_map(|_| 0..domain.columns()).map(place).collect();
        let drawn = Centres::new(k, domain.columns(), values).map_err(|e| MethodError::parameter(e.to_string()))?;
        let least = least_distance(&drawn, domain);
        if best.as_ref().is_none_or(|(known, _)| least > *known) {
            best = Some((least, drawn));
        }
    }
    best.map(|(_, drawn)| drawn).ok_or_else(|| MethodError::parameter("no layout was drawn"))
}

/// The standard errors of a result of this recipe over the public box `domain`, where its totals had `excess` times the planned
/// deviation; `None` without noise, and for what is not played: covariances, descriptions, whitened columns. Always the same for the
/// same result.
///
/// # Errors
/// [`MethodError`] where the outcome is none of this recipe.
pub fn errors(recipe: &Recipe, domain: &Domain, outcome: &Outcome, excess: f64) -> Result<Option<Errors>, MethodError> {
    let algorithm = &recipe.algorithm;
    if algorithm.has_covariances() || algorithm.describes().is_some() {
        return Ok(None);
    }
    let Some(transform) = &outcome.transform else { return errors_over(recipe, domain, outcome, excess) };
    let unusable = |error: String| MethodError::parameter(error);
    if transform.mixes() {
        return Ok(None);
    }
    // The rounds were in standardised units; their noise says nothing of how far off the standardisation is.
    let inner = transform.domain(domain).map_err(|error| unusable(error.to_string()))?;
    let centres = transform.centres(&outcome.centres).map_err(|error| unusable(error.to_string()))?;
    let found = errors_over(recipe, &inner, &Outcome { centres, ..outcome.clone() }, excess)?;
    Ok(found.map(|mut found| {
        found.centres.iter_mut().zip(transform.factor.iter().cycle()).for_each(|(error, factor)| *error /= factor);
        found
    }))
}

/// The same over the box of the rounds, with the outcome's centres in it.
fn errors_over(
    recipe: &Recipe,
    domain: &Domain,
    outcome: &Outcome,
    excess: f64,
) -> Result<Option<Errors>, MethodError> {
    let Some(mechanism) = Mechanism::of(recipe, domain, excess)? else { return Ok(None) };
    if outcome.clusters.mass.iter().any(Option::is_none) {
        return Ok(None);
    }
    // A run that ended early has made fewer rounds; the made-up one ends with the plan's last ones then, too.
    let from = mechanism.rounds.saturating_sub(outcome.rounds.clamp(1, LAST_ROUNDS));
    let cloud = mechanism.fitted(outcome);
    let judge = |centres: &Centres, noise: Option<&mut Stream>| mechanism.judge(&cloud, centres, noise);
    let base = mechanism.run(&cloud, outcome.centres.clone(), from, None)?;
    let plain = numbers(&base, judge(&base.centres, None).ok());
    // Every result has draws of its own: what chance does to the quantile of these draws is no fault that all results share.
    let mut stream = Stream::new(outcome.objective.to_bits(), b"veilsum mechanism noise ");
    let mut off: Vec<Vec<f64>> = vec![Vec::with_capacity(REPETITIONS); plain.len()];
    for _ in 0..REPETITIONS {
        let fit = mechanism.run(&cloud, base.centres.clone(), from, Some(&mut stream))?;
        let verdict = judge(&fit.centres, Some(&mut stream)).ok();
        for ((off, found), plain) in off.iter_mut().zip(numbers(&fit, verdict)).zip(&plain) {
            let far = (found - plain).abs();
            off.push(if far.is_nan() { f64::INFINITY } else { far });
        }
    }
    let within = |mut off: Vec<f64>| {
        off.sort_by(f64::total_cmp);
        // One draw more, that of the result itself, lies below this one in 95 of 100.
        off[((off.len() + 1) * 95).div_ceil(100) - 1] / 2.0
    };
    let mut found = off.into_iter().map(within);
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
fn numbers(fit: &Fit, verdict: Option<(Verdict, Vec<f64>)>) -> Vec<f64> {
    let k = fit.centres.k();
    let judged = verdict.map_or_else(
        || vec![f64::INFINITY; k + 5],
        |(verdict, totals)| {
            let (rows, objective) = (verdict.rows as f64, totals[2 * k]);
            let pairs = (0..k).flat_map(|i| (0..i).map(move |j| (i, j)));
            let apart = pairs.map(|(i, j)| distance::squared(fit.centres.row(i), fit.centres.row(j)));
            // As in `formulas::xie_beni`; of one cluster there is none.
            let xie_beni = objective / rows / apart.min_by(f64::total_cmp).unwrap_or(0.0);
            let alone = [rows, objective, objective / rows, verdict.indices.fuzzy_davies_bouldin, xie_beni];
            totals[k..2 * k].iter().copied().chain(alone).collect()
        },
    );
    fit.centres.as_slice().iter().copied().chain(judged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Scaling};

    fn plan(k: u32, epsilon: f64, expected_rows: u64, restarts: u32) -> (Recipe, Domain) {
        let algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
        let mut recipe = Recipe { restarts, ..Recipe::plain(algorithm, k, Seeding::Uniform { seed: 11 }) };
        recipe.noise = Some(Noise::usual(crate::privacy::rho(epsilon, 1e-6), expected_rows).from_anywhere());
        (recipe, Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None).unwrap())
    }

    fn kept_by(k: u32, epsilon: f64, expected_rows: u64, restarts: u32) -> Kept {
        let (recipe, domain) = plan(k, epsilon, expected_rows, restarts);
        kept(&recipe, &domain, 1.0).unwrap().expect("noise")
    }

    #[test]
    fn less_noise_and_fewer_clusters_keep_more() {
        let good = kept_by(3, 1.0, 3000, 1);
        assert!(good.probability >= 0.95 && good.without_noise >= 0.95 && good.lost < 0.02, "{good:?}");
        let drowned = kept_by(3, 0.05, 3000, 1);
        assert!(drowned.probability < 0.5 && drowned.without_noise == good.without_noise, "{drowned:?}");
        // More rows stand against the same noise.
        assert!(kept_by(3, 0.05, 300_000, 1).probability > 0.9);
        // Many clusters fall to first centres already, and more restarts share one budget.
        let many = kept_by(15, 8.0, 5000, 1);
        assert!(many.probability < 0.3 && many.without_noise < 0.5, "{many:?}");
        assert_eq!(kept_by(3, 1.0, 3000, 1), good, "the same plan");
        assert!(kept_by(1, 1.0, 3000, 1).probability > 0.99);
    }

    #[test]
    fn a_cluster_without_a_centre_near_it_is_lost() {
        let (_, domain) = plan(2, 1.0, 100, 1);
        let truth = Centres::known(vec![[-0.5, 0.0], [0.5, 0.0]]);
        assert_eq!(lost(&truth, &truth, &domain), 0);
        assert_eq!(lost(&Centres::known(vec![[0.45, 0.0], [-0.9, 0.0]]), &truth, &domain), 0);
        assert_eq!(lost(&Centres::known(vec![[0.45, 0.0], [0.55, 0.0]]), &truth, &domain), 1);
        assert_eq!(gap(&truth, &domain), 1.0);
    }

    #[test]
    fn without_noise_there_is_nothing_to_play() {
        let (mut recipe, domain) = plan(3, 1.0, 3000, 1);
        recipe.noise = None;
        assert_eq!(kept(&recipe, &domain, 1.0).unwrap(), None);
    }
}
