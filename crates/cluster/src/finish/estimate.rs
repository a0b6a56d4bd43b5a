//! Estimates the totals of a new question as combinations of released totals, fitted on probe rows and tested on
//! others.

use rayon::prelude::*;

use super::released::{Released, Rounding};
use super::ridge::{Ridge, add, dot};
use crate::random::Stream;
use crate::{Batch, Centres, Domain, Error, Per, Prepared, Query, Rows, Totals, answer};

/// The largest number of released numbers that an estimate uses, the latest first. Factoring takes their square times
/// the probes, and early rounds say little about the next one.
const MAX_NUMBERS: usize = 1024;
/// The smallest number of probes to fit to, and the number for each released number (the review of the release rule
/// asks for three).
const FIT_PROBES: usize = 1000;
const FIT_PROBES_PER_NUMBER: usize = 3;
/// Probes to test on.
const HELD_OUT_PROBES: usize = 1000;
/// Standard deviation of the probes around centres, as a part of each column's extent.
const SPREAD: f64 = 0.12;
/// No total is more accurate than this part of itself, or of the most that one row adds, because sums of `f64` end
/// there.
const FINEST: f64 = 1.0 / (1u64 << 48) as f64;
/// An estimate of the number of rows counts if its error on held-out probes is below this part of it.
const KNOWN_ROWS: f64 = 0.1;

const LABEL: &[u8; 24] = b"veilsum finish probes v1";

/// The released totals, factored for estimates.
pub(super) struct Estimator {
    domain: Domain,
    /// Single rows. The first of them are fitted to, and the others are tested on.
    probes: Vec<Prepared>,
    fit: usize,
    /// For each released number, what each held-out probe adds to it, in units of its own rounding.
    held_out: Vec<Vec<f64>>,
    /// The same on the probes to fit to, times `weight`.
    ridge: Ridge,
    /// The released totals in units of their rounding.
    totals: Vec<f64>,
    /// The weight of an error on a probe relative to a rounding: rows over the root of the number of probes.
    weight: f64,
    /// Number of rows of the cohort, estimated.
    rows: f64,
}

/// Estimated totals, for which no site was asked.
pub(super) struct Estimate {
    pub(super) totals: Totals,
    /// The largest expected error of a total, from the held-out probes and the rounding of the released totals, as a
    /// part of the root mean square of the totals of its block.
    pub(super) error: f64,
}

impl Estimator {
    /// Factors the released totals over a box (working units), for questions near `centres`; `sites` have rounded their
    /// parts.
    pub(super) fn new(domain: &Domain, sites: u32, centres: &[Centres], released: &[Released]) -> Result<Self, String> {
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
        let counted = estimator.combine(&vec![1.0; fit + HELD_OUT_PROBES]);
        if counted.error < KNOWN_ROWS {
            estimator.rows = rows.max(counted.total);
        }
        Ok(estimator)
    }

    /// Estimates the totals of a question.
    pub(super) fn estimate(&self, batch: &Batch) -> Result<Estimate, String> {
        let blocks = batch.layout(&self.domain).map_err(unanswerable)?;
        if !batch.queries.iter().all(Query::adds_up_over_rows) {
            return Err(format!(
                "the next question ({}) is no sum over rows: sites iterate, leave out groups, or are counted",
                batch.kind()
            ));
        }
        let functions = functions(batch, &self.probes)?;
        let combined: Vec<Combined> = functions.par_iter().map(|function| self.combine(function)).collect();
        let (mut rest, mut error) = (combined.as_slice(), 0.0);
        for block in blocks {
            let (own, next) = rest.split_at_checked(block.len).ok_or(MISFIT)?;
            rest = next;
            let size = (own.iter().map(|one| one.size * one.size).sum::<f64>() / own.len().max(1) as f64).sqrt();
            error = own.iter().map(|one| relative(one.error, size)).fold(error, f64::max);
        }
        let values = combined.into_iter().map(|one| one.total).collect();
        Ok(Estimate { totals: Totals { values, rows: None }, error })
    }

    /// The total of a function of a row, given by its values at the probes.
    fn combine(&self, function: &[f64]) -> Combined {
        let (fit, held_out) = function.split_at(self.fit);
        let side: Vec<f64> = fit.iter().map(|value| value * self.weight).collect();
        let coefficients = self.ridge.solve(&side);
        let mut residual = held_out.to_vec();
        self.held_out.iter().zip(&coefficients).for_each(|(column, c)| add(&mut residual, -c, column));
        // Errors on rows may all have the same sign; roundings are independent of each other.
        let rounding = dot(&coefficients, &coefficients).sqrt() / self.rows;
        let error = root_mean_square(&residual).hypot(rounding);
        Combined { total: dot(&coefficients, &self.totals), error, size: root_mean_square(held_out) }
    }
}

/// One entry of an estimate.
struct Combined {
    total: f64,
    /// Its expected error for each row.
    error: f64,
    /// What a row adds to it, root mean square.
    size: f64,
}

/// A part of what the entries of the block are; infinite where it is no number.
fn relative(error: f64, size: f64) -> f64 {
    let part = if error == 0.0 { 0.0 } else { error / size };
    if part.is_nan() { f64::INFINITY } else { part }
}

/// The released numbers that are sums over rows.
struct Known {
    /// Questions, one each, and which entries of their answers count.
    batches: Vec<(Batch, Vec<bool>)>,
    totals: Vec<f64>,
    /// Standard deviation of the rounding of every total.
    noise: Vec<f64>,
    /// The smallest number of rows.
    least_rows: f64,
}

impl Known {
    /// The latest released numbers, as many as an estimate uses.
    fn latest(domain: &Domain, sites: u32, released: &[Released]) -> Result<Self, String> {
        let mut known = Self { batches: Vec::new(), totals: Vec::new(), noise: Vec::new(), least_rows: 0.0 };
        let mut roundings = Vec::new();
        for Released { batch, totals, steps } in released.iter().rev() {
            let units = batch.domain(domain).map_err(unanswerable)?;
            let (mut values, mut steps) = (totals.values.as_slice(), steps.iter());
            for query in &batch.queries {
                let mut kept = Vec::new();
                let (before, adds_up) = (known.totals.len(), query.adds_up_over_rows());
                for block in query.layout(&units) {
                    let rounding = steps.next().copied().unwrap_or_default();
                    let (own, rest) = values.split_at_checked(block.len).ok_or(MISFIT)?;
                    values = rest;
                    let counts = adds_up && block.per == Per::Row && block.bound > 0.0;
                    kept.resize(kept.len() + block.len, counts);
                    for total in own.iter().filter(|_| counts) {
                        roundings.push((rounding, FINEST * total.abs().max(block.bound)));
                        known.least_rows = known.least_rows.max(total.abs() / block.bound);
                        known.totals.push(*total);
                    }
                }
                if known.totals.len() > MAX_NUMBERS {
                    known.totals.truncate(before);
                    roundings.truncate(before);
                } else if known.totals.len() > before {
                    known
                        .batches
                        .push((Batch { transform: batch.transform.clone(), queries: vec![query.clone()] }, kept));
                }
            }
            if !values.is_empty() {
                return Err(MISFIT.into());
            }
        }
        if known.batches.is_empty() || known.least_rows <= 0.0 {
            return Err("nothing that is out is a sum over rows".into());
        }
        // Every row's part is rounded by up to half a step, and so is every site's, and they are taken as independent. Of the rows only a
        // lower bound is known yet, so this is the least that their rounding comes to; where steps are fine, the sites' is larger.
        let (of_row, of_site) = ((known.least_rows / 12.0).sqrt(), (f64::from(sites) / 12.0).sqrt());
        let noise =
            |(Rounding { row, site }, finest): (Rounding, f64)| (row * of_row).hypot(site * of_site).max(finest);
        known.noise = roundings.into_iter().map(noise).collect();
        Ok(known)
    }
}

/// Rows of the box: every other one is anywhere in it, and the others are around the centres (working units). The seed
/// is fixed, so that nobody chooses probes on which a bad estimate looks good.
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

const MISFIT: &str = "totals and questions do not fit each other";

fn unanswerable(error: Error) -> String {
    format!("the next question cannot be answered for a row of the box: {error}")
}

/// What each probe adds to each entry of the answer: one column an entry.
fn functions(batch: &Batch, probes: &[Prepared]) -> Result<Vec<Vec<f64>>, String> {
    let answers = probes
        .par_iter()
        .map(|probe| answer(batch, probe).map(|statistic| statistic.values))
        .collect::<Result<Vec<_>, _>>()
        .map_err(unanswerable)?;
    let width = answers.first().map_or(0, Vec::len);
    Ok((0..width).map(|entry| answers.iter().map(|values| values[entry]).collect()).collect())
}

fn root_mean_square(values: &[f64]) -> f64 {
    (dot(values, values) / values.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finish::GATE;
    use crate::query::{LocalMeans, LocalSteps, Moments};
    use crate::{OutOfBox, pooled, synthetic};

    fn sites() -> (Domain, Vec<Prepared>) {
        let domain = synthetic::five_gaussians_domain();
        let prepare = |site: &synthetic::Site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse).unwrap();
        let sites = synthetic::five_gaussians(1).sites.iter().map(prepare).collect();
        (domain, sites)
    }

    fn sums(x: f64) -> Query {
        Query::fuzzy_sums(Centres::known(vec![[x, 0.3], [0.7, 0.8 - x / 2.0], [0.4, 0.5]]), 2.0)
    }

    fn estimator(domain: &Domain, sites: &[Prepared], step: f64) -> Estimator {
        let out = |i: u32| {
            let batch = Batch::from(sums(0.2 + 0.02 * f64::from(i)));
            let totals = pooled::totals(&batch, sites).unwrap();
            Released { batch, totals, steps: vec![Rounding { row: 0.0, site: step }; 2] }
        };
        let released: Vec<Released> = (0..8).map(out).collect();
        Estimator::new(domain, sites.len() as u32, &[Centres::known(vec![[0.3, 0.3]])], &released).unwrap()
    }

    #[test]
    fn nearby_sums_and_the_number_of_rows_are_told() {
        let (domain, sites) = sites();
        let estimator = estimator(&domain, &sites, 0.0);
        assert!((estimator.rows / 3120.0 - 1.0).abs() < 0.02, "{}", estimator.rows);
        for (question, most) in [(sums(0.3), 1e-9), (sums(0.37), GATE)] {
            let batch = Batch::from(question);
            let (found, truth) = (estimator.estimate(&batch).unwrap(), pooled::totals(&batch, &sites).unwrap().values);
            assert!(found.error < most, "{:e}", found.error);
            for (found, truth) in found.totals.values.iter().zip(&truth) {
                assert!((found / truth - 1.0).abs() < most, "{found} {truth}");
            }
        }
    }

    #[test]
    fn coarser_totals_make_larger_errors() {
        let (domain, sites) = sites();
        let error = |step: f64| estimator(&domain, &sites, step).estimate(&Batch::from(sums(0.37))).unwrap().error;
        let errors = [0.0, 1e-6, 1e-2, 1.0].map(error);
        println!("{errors:?}");
        assert!(errors.windows(2).all(|pair| pair[0] <= pair[1] * 1.01) && errors[3] > 10.0 * errors[0]);
    }

    #[test]
    fn steps_do_not_pass_the_gate() {
        let (domain, sites) = sites();
        let estimator = estimator(&domain, &sites, 0.0);
        let centres = Centres::known(vec![[0.3, 0.3], [0.7, 0.7]]);
        let lloyd = |min_rows| {
            let centres = centres.clone();
            Query::LocalMeans(LocalMeans { centres, local: LocalSteps::ONE, min_rows, nearest: false })
        };
        let error = estimator.estimate(&lloyd(1).into()).unwrap().error;
        assert!(error > 10.0 * GATE, "{error:e}");
        let refused =
            |query: Query| matches!(estimator.estimate(&query.into()), Err(why) if why.contains("is no sum over rows"));
        assert!(refused(lloyd(2)), "a site leaves out groups");
    }

    #[test]
    fn totals_must_fit_their_questions() {
        let (domain, _) = sites();
        let released = |len: usize| {
            let totals = Totals { values: vec![1.0; len], rows: None };
            vec![Released { batch: sums(0.1).into(), totals, steps: Vec::new() }]
        };
        let of = |released: &[Released]| Estimator::new(&domain, 3, &[], released).err();
        assert_eq!(of(&released(9)), None);
        assert_eq!(of(&released(8)).unwrap(), MISFIT);
        assert_eq!(of(&released(10)).unwrap(), MISFIT);
        assert_eq!(of(&[]).unwrap(), "nothing that is out is a sum over rows");
    }

    /// The latest question comes first, and one that does not fit any more is left out whole.
    #[test]
    fn the_latest_numbers_are_kept() {
        let (domain, sites) = sites();
        let out = |k: usize| {
            let centre = |i: usize| [0.1 + 0.8 * i as f64 / k as f64, 0.5];
            let centres = Centres::known((0..k).map(centre).collect());
            let batch = Batch::from(Query::fuzzy_sums(centres, 2.0));
            let totals = pooled::totals(&batch, &sites).unwrap();
            Released { batch, totals, steps: vec![Rounding { row: 0.0, site: 0.5 }, Rounding { row: 0.0, site: 0.25 }] }
        };
        let moments = Batch::from(Query::Moments(Moments { around: None }));
        let moments = Released { totals: pooled::totals(&moments, &sites).unwrap(), batch: moments, steps: vec![] };
        let by_rows = Released { steps: vec![Rounding { row: 0.1, site: 0.0 }; 2], ..out(100) };
        let by_rows = Known::latest(&domain, 12, &[moments.clone(), by_rows]).unwrap();
        // 3,120 rows, each with a step's uniform rounding.
        assert!(by_rows.noise[..300].iter().all(|noise| *noise == 0.1 * 260f64.sqrt()));
        let known = Known::latest(&domain, 12, &[out(100), moments, out(200), out(100)]).unwrap();
        assert_eq!(known.totals.len(), 300 + 600 + 3);
        assert_eq!(known.batches[0].0, out(100).batch);
        // 12 sites, each with a step's uniform rounding.
        assert!(known.noise[..200].iter().all(|noise| *noise == 0.5));
        assert!(known.noise[200..300].iter().all(|noise| *noise == 0.25));
        assert_eq!(known.least_rows, 3120.0);
    }
}
