//! Federated preparation of rows: winsorising at quantiles, then standardisation, each found from totals.
//!
//! *Quantiles.* The q-quantile is the smallest value x with `F(x) >= q`, the order statistic of rank `ceil(q N)` (definition 1 of
//! Hyndman & Fan 1996, the inverse of the empirical distribution function). Every
//! bracket starts as the column's side of the public box; each round counts the rows in its bins, and the bin that holds
//! the rank becomes the next bracket, all columns and quantiles at once. It ends when the bracket is 10^-10 of the box wide
//! (6 rounds of 64 bins), and the value is its middle; or when it holds fewer than p rows, and the value is where the
//! i-th of the n rows in it lies on average if they are spread evenly: at i / (n + 1) of its width (on iris, wine and seven other
//! sets of rows interquartile ranges are then off by 0.36 % on average and 4.5 % at most, where the middle of each row's n-th had
//! 0.43 % and 4.8 %). Winsorising is monotone, so median and quartiles of the clipped rows are the clipped ones,
//! found in the same rounds.
//!
//! *Mean and standard deviation* (divisor N) take two more rounds, of rows that the sites clip first: number and sums, then
//! squares around the mean.
//!
//! *Indicators* of categories are neither clipped nor scaled: their weight is the plan's.
//!
//! *What the coordinator sees*: the counts of all bins, the quantiles, and N, means and variances. A bin with one row
//! places that row within the bin; no bracket with fewer than p rows is asked about, but its neighbours' counts in the
//! round before may be small. Smallest and largest value are rows of somebody: leave them to the public box.
//!
//! *Under noise* quantiles take one question, whose bins are not divided further; what a total has lost or won by noise is moved to
//! what rows can have. Standardised columns are then clipped at four deviations, robust ones at three interquartile ranges, from their middle:
//! how far a row may lie is what noise is for. No total is an error.
//!
//! *It fails* only where there are no rows. A column whose two quantiles coincide is not clipped, and one without spread is
//! centred and not scaled; the result says so. Where p is large, or rows are few, quantiles are only as good as the last
//! bin: how far off median and interquartile range may be is known from the brackets ([`RobustError`]). Sites that drop out in between may move a rank out of its bracket; the nearest end then counts, and the result says
//! that too.
//!
//! ```
//! use veilsum_cluster::method::{Preparation, Preparing, Scale, Winsor};
//! use veilsum_cluster::{OutOfBox, Prepared, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let preparation = Preparation {
//!     winsorise: vec![Winsor { column: 0, lower: 0.0, upper: 0.99 }],
//!     scale: Scale::Standard,
//!     ..Preparation::none()
//! };
//! let mut preparing = Preparing::new(&preparation, &domain, false)?.expect("something to find");
//! let (transform, notes) = loop {
//!     let totals = pooled::totals(&preparing.ask(), &sites)?;
//!     if let Some(found) = preparing.take(&totals.values, totals.rows)? {
//!         break found;
//!     }
//! };
//! assert!(notes.is_empty());
//! let rows = sites[0].transformed(&transform)?.packed().to_rows();
//! assert!(rows.iter().all(|row| row[0].abs() < 3.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod noisy;
mod target;

use serde::{Deserialize, Serialize};

use target::{Target, rounds};

use crate::algorithm::describe::products;
use crate::query::{Bracket, Histogram, MAX_BINS, MAX_SHAPED_COLUMNS, MAX_WORDS, Moments, tamed};
use crate::shape::{Factor, add_square, extents, triangle};
use crate::totals_check::{SLACK, check_values, steady};
use crate::transform::MAX_FACTOR;
use crate::{Batch, Centres, Domain, Error, Query, Transform};

/// A standard deviation, interquartile range or clip interval below this part of the box is rounding, not spread.
const NO_SPREAD: f64 = 1e-9;

/// Of a covariance matrix in parts of the box, largest trace of the inverse: a direction with a ten-thousandth of the box as its
/// deviation has 10^8.
const MOST_INVERSE: f64 = 1e10;

/// The smallest variance of a whitened column under noise, in parts of the squared extent of the box: a hundredth of the box.
const LEAST_NOISY: f64 = 1e-4;

/// What happens to the rows before anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// Columns that are clipped at quantiles of the cohort.
    pub winsorise: Vec<Winsor>,
    /// How columns are scaled.
    pub scale: Scale,
    /// A quantile's bracket is not refined below this many rows (p), >= 1.
    pub min_rows: u64,
    /// Bins of a bracket in one round of the quantile search, 2 to 1024.
    pub bins: u32,
}

/// One column that is clipped at two quantiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Winsor {
    /// Column index.
    pub column: u32,
    /// Lower quantile, 0 for none.
    pub lower: f64,
    /// Upper quantile, 1 for none.
    pub upper: f64,
}

/// How columns are scaled, after winsorising.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Working units stay (min-max of the public box, or original units).
    None,
    /// Mean 0 and standard deviation 1 over the cohort (divisor N).
    Standard,
    /// Median 0 and interquartile range 1 over the cohort.
    Robust,
    /// Mean 0, standard deviation 1 and correlation 0 over the cohort: distances are those of Mahalanobis.
    Whiten,
}

impl Scale {
    /// Whether means and second moments are asked.
    pub(crate) fn has_moments(self) -> bool {
        matches!(self, Self::Standard | Self::Whiten)
    }
}

impl Preparation {
    /// Nothing happens.
    pub fn none() -> Self {
        Self { winsorise: Vec::new(), scale: Scale::None, min_rows: 10, bins: 64 }
    }

    /// Whether nothing happens.
    pub fn is_none(&self) -> bool {
        self.winsorise.is_empty() && self.scale == Scale::None
    }

    /// Whether it can be done on this box.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self, domain: &Domain) -> Result<(), Error> {
        let d = domain.columns();
        if !(2..=MAX_BINS).contains(&self.bins) {
            return Err(Error::parameter(format!("the quantile search takes 2 to {MAX_BINS} bins")));
        }
        if self.min_rows == 0 {
            return Err(Error::parameter("the quantile search needs a bracket of at least 1 row"));
        }
        let mut seen = vec![false; d];
        for Winsor { column, lower, upper } in &self.winsorise {
            match seen.get_mut(*column as usize) {
                None => {
                    return Err(Error::parameter(format!(
                        "column {column} (counted from 0) is winsorised, but there are {d} columns"
                    )));
                }
                Some(_) if *column as usize >= domain.numbers() => {
                    return Err(Error::parameter(format!(
                        "column {column} (counted from 0) is winsorised, but it is a category: only numbers have quantiles"
                    )));
                }
                Some(seen) if *seen => {
                    return Err(Error::parameter(format!("column {column} (counted from 0) is winsorised twice")));
                }
                Some(seen) => *seen = true,
            }
            if !(0.0 <= *lower && lower < upper && *upper <= 1.0) {
                return Err(Error::parameter(format!(
                    "column {column} (counted from 0) is winsorised at quantiles that do not rise from 0 to 1"
                )));
            }
        }
        if self.scale != Scale::None && domain.numbers() == 0 {
            return Err(Error::parameter("there is no column of numbers to standardise"));
        }
        if self.scale == Scale::Whiten && (domain.numbers() < d || d > MAX_SHAPED_COLUMNS) {
            return Err(Error::parameter(format!(
                "columns are whitened where all of them are numbers, and {MAX_SHAPED_COLUMNS} at most"
            )));
        }
        let targets = self.targets(domain).len();
        if targets > MAX_WORDS / (self.bins as usize + 1) {
            return Err(Error::parameter("the quantile search would need too many counts: take fewer bins"));
        }
        Ok(())
    }

    /// Questions that it asks at most, under noise or without.
    pub fn max_questions(&self, noisy: bool) -> u32 {
        let quantiles = self.scale == Scale::Robust || self.winsorise.iter().any(|w| w.lower > 0.0 || w.upper < 1.0);
        let moments = if self.scale.has_moments() { 2 } else { 0 };
        moments + if quantiles { if noisy { 1 } else { rounds(self.bins) } } else { 0 }
    }

    /// The quantiles to find, each once.
    fn targets(&self, domain: &Domain) -> Vec<Target> {
        let mut wanted: Vec<(u32, f64)> = Vec::new();
        for winsor in &self.winsorise {
            wanted.extend([winsor.lower, winsor.upper].map(|q| (winsor.column, q)));
        }
        wanted.retain(|(_, q)| *q > 0.0 && *q < 1.0);
        if self.scale == Scale::Robust {
            for column in 0..domain.numbers() as u32 {
                wanted.extend([0.25, 0.5, 0.75].map(|q| (column, q)));
            }
        }
        wanted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        wanted.dedup();
        let target = |(column, quantile): (u32, f64)| {
            let (lower, upper) = domain.working_interval(column as usize);
            Target { quantile, bracket: Bracket { column, lower, upper }, value: None }
        };
        wanted.into_iter().map(target).collect()
    }
}

/// How far the medians and interquartile ranges of [`Scale::Robust`] may be from those of the rows, by the last brackets of their
/// quantiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobustError {
    /// How quantiles are defined.
    pub definition: String,
    /// Largest error of each column's median, d, working units.
    pub shift: Vec<f64>,
    /// Largest relative error of each column's interquartile range, d; `null` where its brackets leave room for a range of 0.
    pub factor: Vec<Option<f64>>,
}

/// The quantile of [`RobustError`], in a sentence.
const DEFINITION: &str =
    "the smallest value that at least the share q of all rows does not exceed (Hyndman & Fan 1996, definition 1)";

/// From this relative error of an interquartile range on, the reader of the result is told.
const ROUGH: f64 = 0.01;

impl RobustError {
    /// Columns whose interquartile range is known roughly alone, with its error, as sentences.
    pub fn notes(&self) -> Vec<String> {
        let rough = |(column, error): (usize, &Option<f64>)| {
            let known = match error {
                Some(error) if *error <= ROUGH => return None,
                Some(error) => format!("known to {:.1} % only", 100.0 * error),
                None => "hardly known".into(),
            };
            Some(format!(
                "column {column} (counted from 0): its interquartile range is {known}, because narrower bins would hold too few \
                 rows"
            ))
        };
        self.factor.iter().enumerate().filter_map(rough).collect()
    }
}

/// What is asked.
#[derive(Debug, Clone)]
enum Phase {
    /// Counts in bins, in this round from 1.
    Quantiles(u32),
    /// N and sums of the clipped rows.
    Sums,
    /// Squares around the means, or products where columns are whitened.
    Squares(Vec<f64>),
}

/// The conversation that finds the transform.
#[derive(Debug, Clone)]
pub struct Preparing {
    preparation: Preparation,
    domain: Domain,
    phase: Phase,
    targets: Vec<Target>,
    /// N of the first counts.
    rows: Option<f64>,
    /// Clip bounds, shift and factor so far.
    transform: Transform,
    notes: Vec<String>,
    /// Whether totals have noise.
    noisy: bool,
    /// Deviations or interquartile ranges of the columns that have one.
    spreads: Vec<Option<f64>>,
}

impl Preparing {
    /// Its beginning, for totals with noise or without; `None` where there is nothing to find.
    ///
    /// # Errors
    /// Those of [`Preparation::check`].
    pub fn new(preparation: &Preparation, domain: &Domain, noisy: bool) -> Result<Option<Self>, Error> {
        preparation.check(domain)?;
        let targets = preparation.targets(domain);
        if targets.is_empty() && preparation.scale == Scale::None {
            return Ok(None);
        }
        Ok(Some(Self {
            preparation: preparation.clone(),
            domain: domain.clone(),
            phase: if targets.is_empty() { Phase::Sums } else { Phase::Quantiles(1) },
            targets,
            rows: None,
            transform: Transform::identity(domain),
            notes: Vec::new(),
            noisy,
            spreads: vec![None; domain.columns()],
        }))
    }

    /// The open question.
    pub fn ask(&self) -> Batch {
        let around = match &self.phase {
            Phase::Quantiles(_) => {
                let histogram = Histogram { brackets: self.brackets(), bins: self.preparation.bins };
                return Batch::from(Query::Histogram(histogram));
            }
            Phase::Sums => None,
            Phase::Squares(means) => Some(means.clone()),
        };
        let whitens = self.preparation.scale == Scale::Whiten;
        let query = match &around {
            Some(means) if whitens => products(&Centres::finite(means.len(), means)),
            _ => Moments { around }.into(),
        };
        // So far it only clips, and clipped values are still in working units.
        let clips = self.transform != Transform::identity(&self.domain);
        Batch { transform: clips.then(|| self.transform.clone()), queries: vec![query] }
    }

    /// The brackets that are still refined, each once.
    fn brackets(&self) -> Vec<Bracket> {
        let mut brackets: Vec<Bracket> =
            self.targets.iter().filter(|target| target.value.is_none()).map(|target| target.bracket).collect();
        // Targets stand by column and quantile, so equal brackets are neighbours.
        brackets.dedup();
        brackets
    }

    /// Takes its totals; the transform once it is found, with what the reader of the result has to know (fall-backs).
    ///
    /// # Errors
    /// [`Error::Implausible`], and nothing has changed then.
    pub fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<Option<(Transform, Vec<String>)>, Error> {
        let mut next = self.clone();
        let plausible = if self.noisy { Some(self.plausible(values)?) } else { None };
        let values = plausible.as_deref().unwrap_or(values);
        let rows = if self.noisy { None } else { rows };
        let done = match &self.phase {
            Phase::Quantiles(round) => next.take_counts(values, rows, *round)?,
            Phase::Sums => next.take_sums(values, rows)?,
            Phase::Squares(means) if self.preparation.scale == Scale::Whiten => {
                next.take_products(values, rows, means)?;
                true
            }
            Phase::Squares(means) => next.take_squares(values, rows, means)?,
        };
        if done && next.noisy {
            next.narrow();
        }
        *self = next;
        Ok(done.then(|| (self.transform.clone(), self.notes.clone())))
    }

    fn take_counts(&mut self, values: &[f64], rows: Option<u64>, round: u32) -> Result<bool, Error> {
        let brackets = self.brackets();
        let each = self.preparation.bins as usize + 1;
        check_values(values, brackets.len() * each)?;
        if values.iter().any(|count| *count < 0.0) {
            return Err(Error::implausible("a bin has a negative number of rows"));
        }
        let totals: Vec<f64> = values.chunks_exact(each).map(|counts| counts.iter().sum()).collect();
        // The brackets of the first round are whole columns.
        let first = totals.first().copied().unwrap_or_default().round();
        let n = rows.map_or_else(|| self.rows.unwrap_or(first), |rows| rows as f64);
        if n < 0.5 {
            return Err(Error::implausible("there are no rows"));
        }
        let off = |total: &f64| (*total - n).abs() > 0.5 + SLACK * n;
        if (round == 1 && totals.iter().any(off)) || (rows.is_some() && totals.iter().any(|t| *t > n && off(t))) {
            return Err(Error::implausible("the bins do not add up to the number of rows"));
        }
        self.rows = Some(n);
        let last = self.noisy || round >= rounds(self.preparation.bins);
        let mut lost = false;
        for target in self.targets.iter_mut().filter(|target| target.value.is_none()) {
            let at = brackets.iter().position(|bracket| *bracket == target.bracket);
            if let Some(counts) = at.and_then(|at| values.chunks_exact(each).nth(at)) {
                lost |= !target.narrow(counts, n, self.preparation.min_rows as f64, last, self.noisy);
            }
        }
        if lost {
            self.notes.push("the cohort changed while quantiles were searched: they are approximate".into());
        }
        if self.targets.iter().any(|target| target.value.is_none()) {
            self.phase = Phase::Quantiles(round + 1);
            return Ok(false);
        }
        self.notes.dedup();
        self.clip();
        if self.preparation.scale == Scale::Robust {
            self.robust();
        }
        self.phase = Phase::Sums;
        Ok(!self.preparation.scale.has_moments())
    }

    /// The found value of a quantile, or the end of the box that stands for 0 or 1.
    fn quantile(&self, column: u32, quantile: f64) -> f64 {
        let (low, high) = self.domain.working_interval(column as usize);
        let found = self.targets.iter().find(|t| t.bracket.column == column && t.quantile == quantile);
        found.and_then(|target| target.value).unwrap_or(if quantile <= 0.0 { low } else { high }).clamp(low, high)
    }

    /// How far the robust scale may be off; `None` where there is none, or it is not found yet.
    pub fn robust_error(&self) -> Option<RobustError> {
        if self.preparation.scale != Scale::Robust || self.targets.iter().any(|target| target.value.is_none()) {
            return None;
        }
        let (mut shift, mut factor) = (Vec::new(), Vec::new());
        for column in 0..self.domain.numbers() {
            let (lower, upper) = (self.transform.lower[column], self.transform.upper[column]);
            let of = |quantile: f64| {
                let own = |t: &&Target| t.bracket.column as usize == column && t.quantile == quantile;
                let found = self.targets.iter().find(own);
                let ends = found.map_or([lower, upper], |target| [target.bracket.lower, target.bracket.upper]);
                (ends.map(|end| end.clamp(lower, upper)), self.quantile(column as u32, quantile).clamp(lower, upper))
            };
            let [(first, q1), (middle, median), (third, q3)] = [0.25, 0.5, 0.75].map(of);
            shift.push((median - middle[0]).max(middle[1] - median));
            let (least, most, found) = ((third[0] - first[1]).max(0.0), third[1] - first[0], q3 - q1);
            factor.push((least > 0.0).then(|| (found / least - 1.0).max(1.0 - found / most)));
        }
        // Categories are not scaled.
        shift.resize(self.domain.columns(), 0.0);
        factor.resize(self.domain.columns(), Some(0.0));
        Some(RobustError { definition: DEFINITION.into(), shift, factor })
    }

    fn clip(&mut self) {
        for winsor in self.preparation.winsorise.clone() {
            let column = winsor.column;
            let (lower, upper) = (self.quantile(column, winsor.lower), self.quantile(column, winsor.upper));
            let (low, high) = self.domain.working_interval(column as usize);
            if upper - lower > NO_SPREAD * (high - low) {
                self.transform.lower[column as usize] = lower;
                self.transform.upper[column as usize] = upper;
            } else {
                self.notes.push(format!(
                    "column {column} (counted from 0): its two quantiles coincide, so it is not winsorised"
                ));
            }
        }
    }

    fn robust(&mut self) {
        for column in 0..self.domain.numbers() {
            let (lower, upper) = (self.transform.lower[column], self.transform.upper[column]);
            let [first, median, third] = [0.25, 0.5, 0.75].map(|q| self.quantile(column as u32, q).clamp(lower, upper));
            self.scale(column, median, third - first, "interquartile range");
        }
    }

    fn scale(&mut self, column: usize, shift: f64, spread: f64, name: &str) {
        let (low, high) = self.domain.working_interval(column);
        self.transform.shift[column] = shift;
        let most = MAX_FACTOR / (high - low).max(1.0);
        if spread > NO_SPREAD * (high - low) && spread.recip() <= most {
            self.transform.factor[column] = spread.recip();
            self.spreads[column] = Some(spread);
        } else {
            self.notes.push(format!(
                "column {column} (counted from 0) has no {name} over the cohort: it is centred and not scaled"
            ));
        }
    }

    /// N and d further entries.
    fn counted<'a>(&self, values: &'a [f64], rows: Option<u64>) -> Result<(f64, &'a [f64]), Error> {
        check_values(values, 1 + self.domain.columns())?;
        let n = values[0].round();
        if n < 1.0 {
            return Err(Error::implausible("there are no rows"));
        }
        if rows.is_some_and(|rows| (n - rows as f64).abs() > 0.5 + SLACK * n) {
            return Err(Error::implausible("the count is not the number of rows"));
        }
        Ok((n, &values[1..]))
    }

    fn take_sums(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, Error> {
        let (n, sums) = self.counted(values, rows)?;
        let mut means = Vec::with_capacity(sums.len());
        for (column, sum) in sums.iter().enumerate() {
            let (lower, upper) = (self.transform.lower[column], self.transform.upper[column]);
            let (mean, slack) = (sum / n, SLACK * (upper - lower));
            if !(lower - slack..=upper + slack).contains(&mean) {
                return Err(Error::implausible(format!("the mean of column {column} lies outside the box")));
            }
            means.push(mean.clamp(lower, upper));
        }
        self.phase = Phase::Squares(means);
        Ok(false)
    }

    /// Whitens by the inverse of the Cholesky factor of the covariance matrix.
    fn take_products(&mut self, values: &[f64], rows: Option<u64>, means: &[f64]) -> Result<(), Error> {
        let d = self.domain.columns();
        check_values(values, 1 + d + triangle(d) + 1)?;
        let (n, _) = self.counted(&values[..=d], rows)?;
        let inner = self.transform.domain(&self.domain).map_err(Error::implausible)?;
        let by = extents(&inner);
        let mut matrix: Vec<f64> = values[1 + d..1 + d + triangle(d)].iter().map(|x| x / n).collect();
        let (mut delta, mut shift) = (Vec::with_capacity(d), Vec::with_capacity(d));
        for (column, sum) in values[1..=d].iter().enumerate() {
            let (low, high) = inner.working_interval(column);
            let mean = sum / n;
            if !(low - SLACK * by[column]..=high + SLACK * by[column]).contains(&mean) {
                return Err(Error::implausible(format!("the mean of column {column} lies outside the box")));
            }
            delta.push((mean - means[column]) / by[column]);
            shift.push(steady(mean, low, by[column]).clamp(low, high));
        }
        add_square(&mut matrix, &delta, -1.0);
        if self.noisy {
            matrix = tamed(&matrix, d, LEAST_NOISY);
        }
        for column in 0..d {
            self.spreads[column] = Some(matrix[triangle(column) + column].max(0.0).sqrt() * by[column]);
        }
        if (0..d).any(|i| !(-SLACK..=1.0 + SLACK).contains(&matrix[triangle(i) + i])) {
            return Err(Error::implausible("no rows have these variances"));
        }
        let inverse = Factor::of(&matrix, d).filter(|factor| factor.trace_of_inverse < MOST_INVERSE);
        let Some(inverse) = inverse.map(|factor| factor.inverse(d)) else {
            return Err(Error::parameter(
                "over the cohort a column does not vary, or follows from others by a line, so that there is no Mahalanobis distance: \
                 leave it out (describe shows deviations and correlations), or standardise the columns without whitening",
            ));
        };
        let part = |row: usize, column: usize| inverse[triangle(row) + column] / by[column];
        let line = |row: usize| {
            let largest = (0..=row).map(|column| part(row, column).abs()).fold(0.0, f64::max);
            (0..=row).map(move |column| steady(part(row, column), 0.0, largest)).collect::<Vec<_>>()
        };
        self.transform.factor = (0..d).flat_map(line).collect();
        self.transform.shift = shift;
        Ok(())
    }

    fn take_squares(&mut self, values: &[f64], rows: Option<u64>, means: &[f64]) -> Result<bool, Error> {
        let (n, squares) = self.counted(values, rows)?;
        for (column, square) in squares.iter().enumerate() {
            let width = self.transform.upper[column] - self.transform.lower[column];
            if *square < 0.0 || square / n > width * width * (1.0 + SLACK) {
                return Err(Error::implausible(format!("no rows have this variance in column {column}")));
            }
        }
        for (column, square) in squares.iter().enumerate().take(self.domain.numbers()) {
            let ((low, high), deviation) = (self.domain.working_interval(column), (square / n).sqrt());
            let mean = steady(means[column], low, high - low).clamp(low, high);
            self.scale(column, mean, steady(deviation, 0.0, deviation), "standard deviation");
        }
        Ok(true)
    }
}
