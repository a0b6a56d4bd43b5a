//! The attacks on one's own rows, before joining a plan: what could be known about each record from everything that the
//! plan releases, under several assumptions about the others.
//!
//! The plan is run on the site's rows alone; that gives its questions. Every record's part in the totals, linearised, and the
//! step of the fixed point (or the noise) as the error of an observation give each record's posterior spread: `radius`, in half
//! widths of the box (about 0.58 a column where nothing is known). It is a diagnosis of these questions, not a bound: other
//! questions (the run on everybody's rows asks others) tell other things.

use anyhow::{Result, anyhow};
use rayon::prelude::*;
use serde::Serialize;
use veilsum_cluster::{Batch, OutOfBox, Prepared, Rows, answer, random::Stream};
use veilsum_node::{
    documents::Federation,
    error::Failure,
    method_session::{MethodSession, Turn},
    question::{Layout, Question},
};

use crate::svd::svd;

/// A record whose spread is below this, in half widths of the box, counts as recoverable.
pub const RECOVERABLE: f64 = 1e-3;
/// A record that has more than this share of the weight of its nearest cluster is alone there.
const ALONE: f64 = 0.5;
/// Spread of a coordinate about which nothing is known: uniform over two half widths.
const PRIOR: f64 = 0.577_350_269_189_625_8;
/// The largest number of records in one calculation. Of more records a sample is used and the others count as known,
/// which errs on the safe side.
const MOST_RECORDS: usize = 150;
/// Unknown numbers of one decomposition at most.
const MOST_UNKNOWNS: usize = 400;
/// Worst records that are listed.
const LISTED: usize = 10;
const LABEL: &[u8; 24] = b"veilsum audit mine    v1";

/// Who is against this site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// This site's sums are visible: there are no masks, or all others collude.
    AllOthersCollude,
    /// All but one other site, of about this site's size, collude.
    AllButOneCollude,
    /// The colluders that the plan assumes; the honest sites have about as many rows as this one.
    ThePlans,
}

/// What is known of the records under one assumption.
#[derive(Debug, Clone, Serialize)]
pub struct Exposure {
    /// Who is against this site.
    pub assumption: Assumption,
    /// Records of the honest sites that the total covers.
    pub honest_rows: usize,
    /// Unknown numbers of the honest sites.
    pub unknowns: usize,
    /// Independent numbers about the own records above the step, of those that were looked at.
    pub effective_rank: usize,
    /// Own records that could be recovered.
    pub recoverable: usize,
    /// The smallest spread, half widths of the box.
    pub smallest_radius: f64,
    /// The half of all records has at least this spread.
    pub median_radius: f64,
    /// Lines of the data file below the header (from 1) with the smallest spread, worst first, and that spread.
    pub worst: Vec<(usize, f64)>,
}

/// The diagnosis.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// Questions that the plan asked on these rows.
    pub questions: usize,
    /// Numbers that they release.
    pub numbers: usize,
    /// Whether all own records were looked at, or a sample.
    pub whole: bool,
    /// By assumption.
    pub exposures: Vec<Exposure>,
    /// Lines of records that outweigh all others of their nearest cluster.
    pub isolated: Vec<usize>,
    /// Whether a guess of a record can be tested by a coordinator that chooses centres: the plan opens nothing.
    pub testable: bool,
    /// Whether something is recoverable under the plan's own assumptions.
    pub at_risk: bool,
}

/// Runs the plan on these rows alone and looks at each of them.
///
/// # Errors
/// Where the plan cannot be run on these rows.
pub fn diagnose(federation: &Federation, rows: &Prepared) -> Result<Diagnosis> {
    let (batches, layouts) = questions(federation, rows)?;
    let numbers = layouts.iter().map(Layout::words).sum();
    let records = rows.packed().to_rows();
    let n = records.len();
    let mut chosen: Vec<usize> = (0..n).collect();
    Stream::new(n as u64, LABEL).shuffle(&mut chosen);
    chosen.truncate(MOST_RECORDS.min(MOST_UNKNOWNS / records.columns().max(1)).max(1));
    chosen.sort_unstable();
    let errors = errors(&layouts);
    let own = jacobian(&batches, rows, &records, &chosen, &errors)?;
    let sites = federation.roster.sites.len();
    let colluders = federation.terms.colluders_of(sites);
    let widths: Vec<f64> = (0..records.columns())
        .map(|f| {
            let (low, high) = rows.domain().working_interval(f);
            ((high - low) / 2.0).max(f64::MIN_POSITIVE)
        })
        .collect();
    let cases = [
        (Assumption::AllOthersCollude, 0),
        (Assumption::AllButOneCollude, 1),
        (Assumption::ThePlans, sites.saturating_sub(colluders + 1)),
    ];
    let mut exposures = Vec::new();
    for (assumption, others) in cases {
        let least = usize::try_from(federation.terms.min_total_rows).unwrap_or(usize::MAX);
        let mut honest = n * (others + 1);
        if assumption == Assumption::ThePlans && colluders == 0 {
            honest = honest.max(least);
        }
        exposures.push(exposure(assumption, &own, &widths, &chosen, n, honest));
    }
    let isolated = isolated(&batches, &records)?;
    let plans = exposures.last().is_some_and(|e| e.recoverable > 0);
    Ok(Diagnosis {
        questions: batches.len(),
        numbers,
        whole: chosen.len() == n,
        at_risk: plans,
        exposures,
        isolated,
        testable: !federation.terms.opening,
    })
}

/// The questions that the plan asks where these are all rows.
fn questions(federation: &Federation, rows: &Prepared) -> Result<(Vec<Batch>, Vec<Layout>)> {
    let form = federation.form().map_err(failed)?;
    let mut conversation = MethodSession::of(&federation.work, form).map_err(failed)?;
    let (mut batches, mut layouts) = (Vec::new(), Vec::new());
    while let Turn::Ask(question, layout) = conversation.turn() {
        let layout = layout.clone();
        let (Question::Cluster(batch) | Question::Drawn { batch, .. }) = &**question else {
            return Err(anyhow!("the plan asks what this diagnosis does not know"));
        };
        let batch = batch.clone();
        let blurred = layout.encode(&answer(&batch, rows).map_err(|e| anyhow!("{e}"))?)?;
        batches.push(batch);
        layouts.push(layout);
        let cohort: Vec<u16> = (0..form.sites as u16).collect();
        if conversation.take(&blurred, &cohort).is_err() {
            // These rows alone are too few for what comes next; the questions asked so far count.
            break;
        }
    }
    Ok((batches, layouts))
}

fn failed(failure: Failure) -> anyhow::Error {
    anyhow!("{}", failure.message)
}

/// The standard error of each released number: rounding to a step, and one site's share of the noise (less than there is, which
/// errs on the safe side).
fn errors(layouts: &[Layout]) -> Vec<f64> {
    let blocks = layouts.iter().flat_map(|l| &l.blocks);
    blocks
        .flat_map(|b| {
            let step = 2f64.powi(-b.scale.fraction_bits);
            let noise = b.noise.map_or(0.0, |share| share.deviation as f64 * step);
            std::iter::repeat_n((step / 12f64.sqrt()).hypot(noise), b.block.len)
        })
        .collect()
}

/// Derivatives of every released number by the chosen records' coordinates, over the number's error: unknowns x numbers.
fn jacobian(batches: &[Batch], rows: &Prepared, records: &Rows, chosen: &[usize], errors: &[f64]) -> Result<Vec<f64>> {
    let domain = rows.domain();
    let columns = records.columns();
    let additive = batches.iter().flat_map(|b| &b.queries).all(per_row);
    let at = |values: Vec<f64>| -> Result<Vec<f64>> {
        let moved = Prepared::new(&Rows::new(original(domain, values, columns), columns)?, domain, OutOfBox::Clip)?;
        let mut all = Vec::with_capacity(errors.len());
        for batch in batches {
            all.extend(answer(batch, &moved).map_err(|e| anyhow!("{e}"))?.values);
        }
        Ok(all)
    };
    let unknowns: Vec<(usize, usize)> = chosen.iter().flat_map(|i| (0..columns).map(move |f| (*i, f))).collect();
    let slopes: Vec<Result<Vec<f64>>> = unknowns
        .par_iter()
        .map(|(i, f)| {
            let (low, high) = domain.working_interval(*f);
            let h = 1e-5 * (high - low);
            let shifted = |by: f64| {
                // Of sums over rows only the moved row's part changes.
                let (mut values, place) = if additive {
                    (records.row(*i).to_vec(), *f)
                } else {
                    (records.as_slice().to_vec(), i * columns + f)
                };
                values[place] = (values[place] + by).clamp(low, high);
                (values[place], values)
            };
            let ((x, up), (y, down)) = (shifted(h), shifted(-h));
            let (up, down) = (at(up)?, at(down)?);
            Ok(up.iter().zip(&down).zip(errors).map(|((a, b), e)| (a - b) / (x - y).max(h / 2.0) / e).collect())
        })
        .collect();
    Ok(slopes.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

/// Whether a site's answer is a sum over its rows.
fn per_row(query: &veilsum_cluster::Query) -> bool {
    use veilsum_cluster::Query as Q;
    !matches!(query, Q::LocalFuzzy(_) | Q::LocalMeans(_) | Q::LocalChoice(_) | Q::Features(_) | Q::Cells(_))
}

/// Working units back to original ones.
fn original(domain: &veilsum_cluster::Domain, values: Vec<f64>, columns: usize) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = values.chunks_exact(columns).map(<[f64]>::to_vec).collect();
    let centres = veilsum_cluster::Centres::from_rows(&rows).and_then(|c| domain.centres_to_original(&c));
    centres.map_or(values, |c| c.as_slice().to_vec())
}

/// Spread of every chosen record where `honest` rows in all are unknown. Other sites' rows are taken to lie as one's own: they
/// add as much to every number's uncertainty as the own records would, once for each of them.
fn exposure(
    assumption: Assumption,
    own: &[f64],
    widths: &[f64],
    chosen: &[usize],
    n: usize,
    honest: usize,
) -> Exposure {
    let columns = widths.len();
    let unknowns = chosen.len() * columns;
    let numbers = own.len() / unknowns.max(1);
    // In half widths of the box.
    let scaled: Vec<f64> = own
        .chunks_exact(numbers.max(1))
        .enumerate()
        .flat_map(|(u, row)| row.iter().map(move |x| x * widths[u % columns]))
        .collect();
    let strangers = (honest - n) as f64 / chosen.len() as f64;
    // J'J over the smaller side; strangers' rows act as noise with covariance strangers * PRIOR^2 * J'J.
    let transposed: Vec<f64> =
        (0..numbers * unknowns).map(|i| scaled[(i % unknowns) * numbers + i / unknowns]).collect();
    let decomposition = svd(&transposed, unknowns);
    let mut rank = 0;
    let mut spread = vec![PRIOR * PRIOR; unknowns];
    for (k, value) in decomposition.values.iter().enumerate() {
        // Along this direction the strangers' part hides this one's.
        let information = value * value / (1.0 + strangers * PRIOR * PRIOR * value * value);
        rank += usize::from(information > 1.0);
        let gain = PRIOR * PRIOR - 1.0 / (information + 1.0 / (PRIOR * PRIOR));
        for (u, s) in spread.iter_mut().enumerate() {
            let v = decomposition.right[u * unknowns + k];
            *s -= gain * v * v;
        }
    }
    let radius = |j: usize| spread[j * columns..(j + 1) * columns].iter().map(|s| s.max(0.0)).sum::<f64>().sqrt();
    let mut radii: Vec<(usize, f64)> = chosen.iter().enumerate().map(|(j, line)| (line + 1, radius(j))).collect();
    radii.sort_by(|a, b| a.1.total_cmp(&b.1));
    Exposure {
        assumption,
        honest_rows: honest,
        unknowns: honest * columns,
        effective_rank: rank,
        recoverable: radii.iter().filter(|(_, r)| *r < RECOVERABLE).count(),
        smallest_radius: radii.first().map_or(f64::NAN, |r| r.1),
        median_radius: radii.get(radii.len() / 2).map_or(f64::NAN, |r| r.1),
        worst: radii.into_iter().take(LISTED).collect(),
    }
}

/// Lines of records that outweigh all others of the cluster nearest to them, by the last question's centres.
fn isolated(batches: &[Batch], records: &Rows) -> Result<Vec<usize>> {
    let Some(centres) = batches.iter().rev().flat_map(|b| &b.queries).find_map(|q| q.points().first().copied()) else {
        return Ok(Vec::new());
    };
    let (k, columns) = (centres.k(), centres.columns());
    if columns != records.columns() || batches.iter().any(|b| b.transform.is_some()) {
        return Ok(Vec::new());
    }
    let weights = |x: &[f64]| -> Vec<f64> {
        let squares = centres.rows().map(|c| c.iter().zip(x).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().max(1e-24));
        let near: Vec<f64> = squares.map(|d| 1.0 / d).collect();
        let all: f64 = near.iter().sum();
        near.iter().map(|w| (w / all) * (w / all)).collect()
    };
    let mut total = vec![0.0; k];
    records.iter().for_each(|x| total.iter_mut().zip(weights(x)).for_each(|(t, w)| *t += w));
    let alone = |x: &[f64]| weights(x).iter().zip(&total).any(|(w, all)| *w > ALONE * all);
    Ok(records.iter().enumerate().filter(|(_, x)| alone(x)).map(|(i, _)| i + 1).take(LISTED).collect())
}

impl Diagnosis {
    /// For a terminal.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn print(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        writeln!(
            out,
            "This plan, run on these rows alone, puts {} questions and releases {} numbers.",
            self.questions, self.numbers
        )?;
        if !self.whole {
            writeln!(out, "There are many records: a sample of them was looked at, as if all others were known.")?;
        }
        for e in &self.exposures {
            let who = match e.assumption {
                Assumption::AllOthersCollude => "all other sites collude (or nothing is masked)",
                Assumption::AllButOneCollude => "all other sites but one collude",
                Assumption::ThePlans => "as many sites collude as the plan assumes",
            };
            writeln!(
                out,
                "\n{who}:\n  {} unknown numbers; {} independent ones about the records looked at stand above the step or noise\n  \
                 recoverable to {RECOVERABLE} of the box's half width: {}; smallest spread {:.1e}, median {:.1e}",
                e.unknowns, e.effective_rank, e.recoverable, e.smallest_radius, e.median_radius
            )?;
            if e.recoverable > 0 {
                let lines: Vec<String> =
                    e.worst.iter().filter(|w| w.1 < RECOVERABLE).map(|w| w.0.to_string()).collect();
                writeln!(out, "  worst records (lines below the header): {}", lines.join(", "))?;
            }
        }
        if !self.isolated.is_empty() {
            let lines: Vec<String> = self.isolated.iter().map(usize::to_string).collect();
            writeln!(out, "\nalone in a cluster among these rows: lines {}", lines.join(", "))?;
        }
        if self.testable {
            writeln!(
                out,
                "\nThe plan opens no totals: a lying coordinator can test guesses of records (pinhole-membership)."
            )?;
        }
        let verdict = if self.at_risk {
            "AT RISK under the plan's own assumptions: more rows in all, fewer questions (K, restarts, rounds), a coarser step or noise"
        } else {
            "Nothing is recoverable under the plan's own assumptions by this diagnosis, which is no proof; noise gives one."
        };
        writeln!(out, "\n{verdict}")
    }
}
