//! Federated standardisation of rows: the mean and the standard deviation of every column (divisor N), found from totals.
//!
//! It takes two rounds: number and sums, then squares around the mean.
//!
//! *Indicators* of categories are not scaled: their weight is the plan's.
//!
//! *What the coordinator sees*: N, means and variances.
//!
//! *Under noise* what a total has lost or won by noise is moved to what rows can have, and columns are then clipped at four deviations
//! from their mean: how far a row may lie is what noise is for. No total is an error.
//!
//! *It fails* only where there are no rows. A column without spread is centred and not scaled; the result says so.
//!
//! ```
//! use veilsum_cluster::method::{Preparing, Scale};
//! use veilsum_cluster::{OutOfBox, Prepared, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let mut preparing = Preparing::new(Scale::Standard, &domain, false)?.expect("something to find");
//! let (transform, notes) = loop {
//!     let totals = pooled::totals(&preparing.ask().into(), &sites)?;
//!     if let Some(found) = preparing.take(&totals.values, totals.rows)? {
//!         break found;
//!     }
//! };
//! assert!(notes.is_empty());
//! let rows = sites[0].transformed(&transform)?.packed().to_rows();
//! assert!(rows.iter().all(|row| row[0].abs() < 4.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::query::Moments;
use crate::totals_check::{SLACK, check_values, plausible_moments, steady};
use crate::transform::MAX_FACTOR;
use crate::{Domain, Error, Query, Transform, refuse};

/// A standard deviation below this part of the box is rounding, not spread.
const NO_SPREAD: f64 = 1e-9;

/// Under noise rows are clipped at so many deviations from the mean.
const REACH: f64 = 4.0;

/// How columns are scaled before anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Working units stay (min-max of the public box, or original units).
    None,
    /// Mean 0 and standard deviation 1 over the cohort (divisor N).
    Standard,
}

impl Scale {
    /// Whether it can be done on this box.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(self, domain: &Domain) -> Result<(), Error> {
        let nothing = self == Self::Standard && domain.numbers() == 0;
        refuse(nothing, || Error::parameter("there is no column of numbers to standardise"))
    }

    /// Questions that it asks.
    pub fn questions(self) -> u32 {
        if self == Self::Standard { 2 } else { 0 }
    }
}

/// The conversation that finds the transform.
#[derive(Debug, Clone)]
pub struct Preparing {
    domain: Domain,
    /// Once they are found.
    means: Option<Vec<f64>>,
    /// Whether totals have noise.
    noisy: bool,
}

impl Preparing {
    /// Its beginning, for totals with noise or without; `None` where there is nothing to find.
    ///
    /// # Errors
    /// Those of [`Scale::check`].
    pub fn new(scale: Scale, domain: &Domain, noisy: bool) -> Result<Option<Self>, Error> {
        scale.check(domain)?;
        Ok((scale == Scale::Standard).then(|| Self { domain: domain.clone(), means: None, noisy }))
    }

    /// The open question.
    pub fn ask(&self) -> Query {
        Moments { around: self.means.clone() }.into()
    }

    /// Takes its totals; the transform once it is found, with what the reader of the result has to know.
    ///
    /// # Errors
    /// [`Error::Implausible`], and nothing has changed then.
    pub fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<Option<(Transform, Vec<String>)>, Error> {
        check_values(values, 1 + self.domain.columns())?;
        let (mut values, mut rows) = (values.to_vec(), rows);
        if self.noisy {
            (values, rows) = (plausible_moments(&values, &self.domain, self.means.is_some()), None);
        }
        let n = values[0].round();
        refuse(n < 1.0, || Error::implausible("there are no rows"))?;
        let others = rows.is_some_and(|rows| (n - rows as f64).abs() > 0.5 + SLACK * n);
        refuse(others, || Error::implausible("the count is not the number of rows"))?;
        match &self.means {
            None => {
                self.means = Some(self.means_of(n, &values[1..])?);
                Ok(None)
            }
            Some(means) => self.scaled(n, means, &values[1..]).map(Some),
        }
    }

    fn means_of(&self, n: f64, sums: &[f64]) -> Result<Vec<f64>, Error> {
        let mean = |(column, sum): (usize, &f64)| {
            let (low, high) = self.domain.working_interval(column);
            let (mean, slack) = (sum / n, SLACK * (high - low));
            let outside = !(low - slack..=high + slack).contains(&mean);
            refuse(outside, || Error::implausible(format!("the mean of column {column} lies outside the box")))?;
            Ok(mean.clamp(low, high))
        };
        sums.iter().enumerate().map(mean).collect()
    }

    fn scaled(&self, n: f64, means: &[f64], squares: &[f64]) -> Result<(Transform, Vec<String>), Error> {
        let (mut transform, mut notes) = (Transform::identity(&self.domain), Vec::new());
        for (column, square) in squares.iter().enumerate() {
            let (low, high) = self.domain.working_interval(column);
            let width = high - low;
            let odd = *square < 0.0 || square / n > width * width * (1.0 + SLACK);
            refuse(odd, || Error::implausible(format!("no rows have this variance in column {column}")))?;
            if column >= self.domain.numbers() {
                continue;
            }
            let deviation = (square / n).sqrt();
            let spread = steady(deviation, 0.0, deviation);
            let mean = steady(means[column], low, width).clamp(low, high);
            transform.shift[column] = mean;
            if spread <= NO_SPREAD * width || spread.recip() > MAX_FACTOR / width.max(1.0) {
                notes.push(format!(
                    "column {column} (counted from 0) has no standard deviation over the cohort: it is centred and not scaled"
                ));
                continue;
            }
            transform.factor[column] = spread.recip();
            let (lower, upper) = ((mean - REACH * spread).max(low), (mean + REACH * spread).min(high));
            if self.noisy && lower < upper {
                (transform.lower[column], transform.upper[column]) = (lower, upper);
            }
        }
        Ok((transform, notes))
    }
}
