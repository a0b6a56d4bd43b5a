//! Statistics before models: rows, mean, deviation and histogram of every column, over the cohort.
//!
//! It asks four questions, one less where there is no column of numbers. All but the first are kinds that other methods ask too:
//!
//! 1. [`Missing`]: rows that were read and have no value in a column;
//! 2. [`Histogram`]: rows in bins of equal width over each number's side of the public box;
//! 3. [`Moments`] without a point: N and the sums of all columns, which for the indicator of a category is
//!    the number of its rows;
//! 4. `Moments` around the means.
//!
//! Under noise no total is an error: counts below 0 count as 0, rows below one as one, means are moved into the box, and variances to
//! between 0 and a quarter of it.
//!
//! It fails where there are no rows. It finds nothing that totals do not tell: smallest and largest values are rows of somebody, and
//! rows that a site could not use stay with that site.

use serde::{Deserialize, Serialize};

use super::spec::{Beginning, Iteration};
use super::update::{Fit, Round, Stop, Walls, moved};
use crate::query::{Histogram, MAX_BINS, Missing, Moments};
use crate::totals_check::{SLACK, check_values, check_weights, plausible_moments};
use crate::{Domain, Error, Query, refuse};

/// What the totals say of the columns; everything in working units.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Rows that the means are over.
    pub rows: u64,
    /// Rows that variances are over: others where a site was lost in between.
    pub spread_rows: u64,
    /// Rows that the histograms are over, likewise; `None` where there is no column of numbers.
    pub histogram_rows: Option<u64>,
    /// Rows that were read and lack a value, by column, d: they are none of the others.
    pub missing: Vec<u64>,
    /// Mean of every column, d.
    pub means: Vec<f64>,
    /// Variance of every column, divisor N, d.
    pub variances: Vec<f64>,
    /// Rows in each of the bins of equal width over each number's side of the box; a value on an edge lies in the upper bin.
    pub histograms: Vec<Vec<u64>>,
}

/// The question for the histograms; `None` where there is no column of numbers.
pub(crate) fn histogram(domain: &Domain, bins: u32) -> Option<Histogram> {
    (domain.numbers() > 0).then(|| Histogram::whole(domain, domain.numbers(), bins))
}

/// All questions of a description, the last one around the middle of the box: for sizes and precision.
pub(crate) fn questions(domain: &Domain, bins: u32) -> Vec<Query> {
    let middle = (0..domain.columns()).map(|column| domain.middle(column)).collect();
    let counts = histogram(domain, bins).map(Query::from);
    std::iter::once(Missing {}.into())
        .chain(counts)
        .chain([None, Some(middle)].map(|around| Moments { around }.into()))
        .collect()
}

/// A description of all columns, with so many bins.
pub(super) fn begin(at: Beginning<'_>, bins: u32) -> Result<Box<dyn Iteration>, Error> {
    refuse(!(2..=MAX_BINS).contains(&bins), || Error::parameter(format!("a histogram has 2 to {MAX_BINS} bins")))?;
    refuse(at.start.k() != 1, || Error::parameter("a description has no clusters: K is 1"))?;
    let (domain, fit) = (at.domain.clone(), Fit::at(at.start.clone()));
    let (phase, found) = (Phase::Missing, Description::default());
    Ok(Box::new(Describing { bins, domain, phase, fit, shift: 0.0, found, noisy: at.noisy }))
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Rows without a value.
    Missing,
    /// Rows in bins.
    Counts,
    /// N and sums.
    Sums,
    /// Second moments around the means.
    Spread,
}

/// The conversation of a description.
#[derive(Debug, Clone)]
struct Describing {
    bins: u32,
    domain: Domain,
    phase: Phase,
    /// Its one centre is the mean of all rows, once that is known.
    fit: Fit,
    /// How far the mean is from where it was looked for.
    shift: f64,
    found: Description,
    noisy: bool,
}

/// Noisy counts of brackets of whole columns, so many numbers each, as rows could have given them: no count is negative, none lies
/// below the box, and all brackets have the same number of rows, the mean of their sums. They are the nearest such counts.
pub(crate) fn counted(values: &[f64], each: usize) -> Vec<f64> {
    let brackets = values.chunks_exact(each);
    let rows = (values.iter().sum::<f64>() / brackets.len().max(1) as f64).round().max(1.0);
    brackets.flat_map(|counts| std::iter::once(0.0).chain(on_simplex(&counts[1..], rows))).collect()
}

/// The point nearest to `values` whose numbers are not negative and add up to `sum` (Duchi et al. 2008, figure 1).
fn on_simplex(values: &[f64], sum: f64) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut above, mut off) = (0.0, 0.0);
    for (i, value) in sorted.iter().enumerate() {
        above += value;
        let next = (above - sum) / (i + 1) as f64;
        if *value <= next {
            break;
        }
        off = next;
    }
    values.iter().map(|value| (value - off).max(0.0)).collect()
}

/// A number of rows, which is a whole one but for rounding.
fn whole(rows: f64, known: Option<u64>) -> Result<u64, Error> {
    check_weights(&[rows], known, "rows")?;
    refuse(rows < 0.5, || Error::implausible("there are no rows"))?;
    Ok(rows.round() as u64)
}

impl Describing {
    /// Under noise, the totals that rows could have given and that are nearest to these.
    fn plausible(&self, values: &[f64]) -> Vec<f64> {
        match self.phase {
            Phase::Missing => values.iter().map(|count| count.max(0.0)).collect(),
            Phase::Counts => counted(values, self.bins as usize + 1),
            Phase::Sums | Phase::Spread => plausible_moments(values, &self.domain, self.phase == Phase::Spread),
        }
    }

    fn take_missing(&mut self, values: &[f64]) -> Result<(), Error> {
        let negative = values.iter().any(|count| *count < -0.5);
        refuse(negative, || Error::implausible("a column lacks a negative number of values"))?;
        self.found.missing = values.iter().map(|count| count.round().max(0.0) as u64).collect();
        self.phase = if self.domain.numbers() > 0 { Phase::Counts } else { Phase::Sums };
        Ok(())
    }

    fn take_counts(&mut self, values: &[f64], known: Option<u64>) -> Result<(), Error> {
        let each = self.bins as usize + 1;
        let negative = values.iter().any(|count| *count < -0.5);
        refuse(negative, || Error::implausible("a bin has a negative number of rows"))?;
        let rows = whole(values.iter().take(each).sum(), known)?;
        for counts in values.chunks_exact(each) {
            // No row lies below the box.
            if counts[0] > 0.5 || (counts.iter().sum::<f64>() - rows as f64).abs() > 0.5 + SLACK * rows as f64 {
                return Err(Error::implausible("the bins do not add up to the number of rows"));
            }
            self.found.histograms.push(counts[1..].iter().map(|count| count.round().max(0.0) as u64).collect());
        }
        self.found.histogram_rows = Some(rows);
        self.phase = Phase::Sums;
        Ok(())
    }

    fn take_sums(&mut self, values: &[f64], known: Option<u64>, walls: &Walls) -> Result<(), Error> {
        self.found.rows = whole(values[0], known)?;
        let (centres, shift) = moved(&self.fit.centres, &values[1..], &values[..1], Stop::Frobenius, walls)?;
        self.found.means = centres.row(0).to_vec();
        (self.fit.centres, self.fit.weights, self.shift) = (centres, values[..1].to_vec(), shift);
        self.phase = Phase::Spread;
        Ok(())
    }

    fn take_spread(&mut self, values: &[f64], known: Option<u64>) -> Result<(), Error> {
        self.found.spread_rows = whole(values[0], known)?;
        let negative = !self.noisy && values[1..].iter().any(|square| *square < 0.0);
        refuse(negative, || Error::implausible("a sum of squares is negative"))?;
        self.found.variances = values[1..].iter().map(|square| (square / values[0]).max(0.0)).collect();
        if self.noisy {
            // Counts differ by their noise, and say nothing of who was there.
            let rows = self.found.rows;
            (self.found.spread_rows, self.found.histogram_rows) = (rows, self.found.histogram_rows.map(|_| rows));
        }
        // Only now, so that a run that ends before has no result.
        self.fit.history.push(Round { round: 1, shift: self.shift });
        self.fit.converged = true;
        self.fit.description = Some(self.found.clone());
        Ok(())
    }
}

impl Iteration for Describing {
    fn ask(&self) -> Query {
        let counts = histogram(&self.domain, self.bins).filter(|_| self.phase == Phase::Counts);
        match (self.phase, counts) {
            (Phase::Missing, _) => Missing {}.into(),
            (_, Some(counts)) => counts.into(),
            (Phase::Spread, None) => Moments { around: Some(self.fit.centres.row(0).to_vec()) }.into(),
            (_, None) => Moments { around: None }.into(),
        }
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>, walls: &Walls) -> Result<bool, Error> {
        check_values(values, self.ask().words(&self.domain))?;
        let mut next = self.clone();
        let plausible = self.noisy.then(|| self.plausible(values));
        let (values, rows) = plausible.as_deref().map_or((values, rows), |values| (values, None));
        match self.phase {
            Phase::Missing => next.take_missing(values)?,
            Phase::Counts => next.take_counts(values, rows)?,
            Phase::Sums => next.take_sums(values, rows, walls)?,
            Phase::Spread => next.take_spread(values, rows)?,
        }
        *self = next;
        Ok(self.fit.converged)
    }

    fn fit(&self) -> Fit {
        self.fit.clone()
    }
}
