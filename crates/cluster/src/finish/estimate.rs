//! Totals of a new question as combinations of totals that are out, fitted on probe rows and tested on others.

use rayon::prelude::*;

use super::ridge::{Ridge, add, dot};
use super::{Refusal, Released};
use crate::random::Stream;
use crate::{Batch, Centres, Domain, Per, Prepared, Query, Rows, Totals, answer};

/// Released numbers that estimates are made of at most, the latest first: factoring takes their square times the probes, and
/// the rounds long before the last ones say little of what comes next.
const MAX_NUMBERS: usize = 1024;
/// Probes to fit to, at least, and for each number (the review of the release rule asks for three).
const FIT_PROBES: usize = 1000;
const FIT_PROBES_PER_NUMBER: usize = 3;
/// Probes to test on.
const HELD_OUT_PROBES: usize = 1000;
/// Standard deviation of the probes around centres, as a part of each column's extent.
const SPREAD: f64 = 0.12;
/// No total is better than this part of itself, or of what one row adds at most: sums of `f64` end there.
const FINEST: f64 = 1.0 / (1u64 << 48) as f64;
/// An estimate of the number of rows counts if its error on held-out probes is below this part of it.
const KNOWN_ROWS: f64 = 0.1;

const LABEL: &[u8; 24] = b"veilsum finish probes v1";

/// What is out, factored for estimates.
pub(super) struct Estimator {
    domain: Domain,
    /// Single rows, the first of them to fit to and the others to test on.
    probes: Vec<Prepared>,
    fit: usize,
    /// By released number what each held-out probe adds to it, in units of its own rounding.
    held_out: Vec<Vec<f64>>,
    /// The same on the probes to fit to, times `weight`.
    ridge: Ridge,
    /// The released totals in units of their rounding.
    totals: Vec<f64>,
    /// What an error on a probe counts beside a rounding: rows over the root of the probes.
    weight: f64,
    /// Number of rows of the cohort, estimated.
    rows: f64,
}

/// Totals that nobody was asked for.
pub(super) struct Estimate {
    pub(super) totals: Totals,
    /// The largest relative error of a total that the held-out probes and the rounding of what is out lead to expect.
    pub(super) error: f64,
}

impl Estimator {
    /// Factors what is out over a box (working units), for questions near `centres`; `sites` have rounded their parts.
    pub(super) fn new(
        domain: &Domain,
        sites: u32,
        centres: &[Centres],
        released: &[Released],
    ) -> Result<Self, Refusal> {
        let known = Known::latest(domain, sites, released)?;
        let n = known.totals.len();
        let fit = FIT_PROBES.max(FIT_PROBES_PER_NUMBER * n);
        let probes = probes(domain, centres, fit + HELD_OUT_PROBES);
        let mut columns = Vec::with_capacity(n);
        for (batch, kept) in &known.batches {
            let all = functions(batch, &probes)?;
            columns.extend(all.into_iter().zip(kept).filter(|(_, kept)| **kept).map(|(column, _)| column));
        }
        for (column, noise) in columns.iter_mut().zip(&known.noise) {
            column.iter_mut().for_each(|value| *value /= noise);
        }
        let weight = known.least_rows / (fit as f64).sqrt();
        let held_out: Vec<Vec<f64>> = columns.iter_mut().map(|column| column.split_off(fit)).collect();
        columns.iter_mut().flatten().for_each(|value| *value *= weight);
        let ridge = Ridge::factor(columns, fit);
        let totals = known.totals.iter().zip(&known.noise).map(|(total, noise)| total / noise).collect();
        let rows = known.least_rows;
        let mut estimator = Self { domain: domain.clone(), probes, fit, held_out, ridge, totals, weight, rows };
        // The number of rows is the total of the function 1.
        let (counted, error) = estimator.combine(&vec![1.0; fit + HELD_OUT_PROBES]);
        if error < KNOWN_ROWS {
            estimator.rows = rows.max(counted);
        }
        Ok(estimator)
    }

    /// Estimates the totals of a question.
    pub(super) fn estimate(&self, batch: &Batch) -> Result<Estimate, Refusal> {
        let blocks = batch.layout(&self.domain).map_err(|error| Refusal::Unanswerable(error.to_string()))?;
        if !batch.queries.iter().all(Query::adds_up_over_rows) || blocks.iter().any(|b| b.per == Per::Site) {
            return Err(Refusal::NotOverRows(batch.kind()));
        }
        let functions = functions(batch, &self.probes)?;
        let combined: Vec<(f64, f64)> = functions.par_iter().map(|function| self.combine(function)).collect();
        let error = combined.iter().fold(0.0, |worst, (_, error)| if *error <= worst { worst } else { *error });
        let values = combined.into_iter().map(|(value, _)| value).collect();
        Ok(Estimate { totals: Totals { values, rows: None }, error })
    }

    /// The total of a function of a row, given by its values at the probes, and the relative error to expect.
    fn combine(&self, function: &[f64]) -> (f64, f64) {
        let (fit, held_out) = function.split_at(self.fit);
        let size = root_mean_square(held_out);
        if size == 0.0 && fit.iter().all(|value| *value == 0.0) {
            return (0.0, 0.0);
        }
        let side: Vec<f64> = fit.iter().map(|value| value * self.weight).collect();
        let coefficients = self.ridge.solve(&side);
        let mut residual = held_out.to_vec();
        self.held_out.iter().zip(&coefficients).for_each(|(column, c)| add(&mut residual, -c, column));
        // Errors on rows may all point the same way; roundings are independent of each other.
        let rounding = dot(&coefficients, &coefficients).sqrt() / self.rows;
        let error = root_mean_square(&residual).hypot(rounding) / size;
        (dot(&coefficients, &self.totals), if error.is_finite() { error } else { f64::INFINITY })
    }
}

/// The released numbers that are sums over rows.
struct Known {
    /// Questions, one each, and which entries of their answers count.
    batches: Vec<(Batch, Vec<bool>)>,
    totals: Vec<f64>,
    /// Standard deviation of the rounding of every total.
    noise: Vec<f64>,
    /// There are at least so many rows.
    least_rows: f64,
}

impl Known {
    /// The latest of what is out, as much as an estimate is made of.
    fn latest(domain: &Domain, sites: u32, released: &[Released]) -> Result<Self, Refusal> {
        let mut known = Self { batches: Vec::new(), totals: Vec::new(), noise: Vec::new(), least_rows: 0.0 };
        for Released { batch, totals, steps } in released.iter().rev() {
            let units = batch.domain(domain).map_err(|error| Refusal::Unanswerable(error.to_string()))?;
            let (mut values, mut steps) = (totals.values.as_slice(), steps.iter());
            for query in &batch.queries {
                let mut kept = Vec::new();
                let (before, adds_up) = (known.totals.len(), query.adds_up_over_rows());
                for block in query.layout(&units) {
                    let step = steps.next().copied().unwrap_or(0.0);
                    let (own, rest) = values.split_at_checked(block.len).ok_or(Refusal::Misfit)?;
                    values = rest;
                    let counts = adds_up && block.per == Per::Row && block.bound > 0.0;
                    kept.resize(kept.len() + block.len, counts);
                    for total in own.iter().filter(|_| counts) {
                        // Every site rounds its own part, by up to half a step.
                        let rounding = step * (f64::from(sites) / 12.0).sqrt();
                        known.noise.push(rounding.max(FINEST * total.abs().max(block.bound)));
                        known.least_rows = known.least_rows.max(total.abs() / block.bound);
                        known.totals.push(*total);
                    }
                }
                if known.totals.len() > MAX_NUMBERS {
                    known.totals.truncate(before);
                    known.noise.truncate(before);
                } else if known.totals.len() > before {
                    known.batches.push((Batch { transform: batch.transform.clone(), queries: vec![query.clone()] }, kept));
                }
            }
            if !values.is_empty() {
                return Err(Refusal::Misfit);
            }
        }
        if known.batches.is_empty() || known.least_rows <= 0.0 {
            return Err(Refusal::NothingOut);
        }
        Ok(known)
    }
}

/// Rows of the box, every other one anywhere in it, the others around the centres (working units). The seed is fixed: nobody
/// can choose probes on which a bad estimate looks good.
fn probes(domain: &Domain, centres: &[Centres], count: usize) -> Vec<Prepared> {
    let mut stream = Stream::new(0, LABEL);
    let points: Vec<&[f64]> = centres.iter().flat_map(Centres::rows).collect();
    let d = domain.columns();
    let one = |i: usize| {
        let around = (i % 2 == 1).then(|| points.get(stream.below(points.len() as u64) as usize)).flatten();
        let value = |column: usize| {
            let (low, high) = domain.working_interval(column);
            let value = match around {
                Some(point) => point[column] + SPREAD * (high - low) * stream.normal_pair()[0],
                None => low + (high - low) * stream.unit(),
            };
            value.clamp(low, high)
        };
        Prepared::working(&Rows::known((0..d).map(value).collect(), d), domain)
    };
    (0..count).map(one).collect()
}

/// What each probe adds to each entry of the answer: one column an entry.
fn functions(batch: &Batch, probes: &[Prepared]) -> Result<Vec<Vec<f64>>, Refusal> {
    let answers = probes
        .par_iter()
        .map(|probe| answer(batch, probe).map(|statistic| statistic.values))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Refusal::Unanswerable(error.to_string()))?;
    let width = answers.first().map_or(0, Vec::len);
    Ok((0..width).map(|entry| answers.iter().map(|values| values[entry]).collect()).collect())
}

fn root_mean_square(values: &[f64]) -> f64 {
    (dot(values, values) / values.len().max(1) as f64).sqrt()
}
