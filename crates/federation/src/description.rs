//! The description of a cohort's columns, as a result has it: names, original units, bins and quantiles.

use serde::Serialize;
use veilsum_cluster::{
    Error,
    method::{self, mechanism::half_of_most},
};

use crate::plan::{Column, PlanSpec};

/// Quantiles that are read off the histograms.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// What a run of `describe` tells of every column, over the cohort.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Description {
    /// Rows that sites used, and that means and counts of categories are over.
    pub rows: u64,
    /// Rows that deviations are over, where a site was lost in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_rows: Option<u64>,
    /// Rows that histograms and quantiles are over, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram_rows: Option<u64>,
    /// What the numbers of missing values are, or why there are none.
    pub missing: &'static str,
    /// The columns of numbers, in the plan's order.
    pub numbers: Vec<Number>,
    /// The columns of categories.
    pub categories: Vec<Counts>,
}

/// A column of numbers, original units.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Number {
    /// Its name.
    pub column: String,
    /// Rows that were read and have no value in it, before any was left out; absent under noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, divisor N.
    pub deviation: f64,
    /// Quantiles, ascending.
    pub quantiles: Vec<Quantile>,
    /// Rows in bins, ascending; a value on an edge lies in the upper one, and the upper end of the range in the last.
    pub histogram: Vec<Bin>,
}

/// A quantile: the smallest value that at least the share q of all rows does not exceed (Hyndman & Fan 1996, definition 1), as far as
/// the bin tells in which it lies.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantile {
    /// q.
    pub q: f64,
    /// Where the row of this rank lies on average, if the rows of its bin are spread evenly over it.
    pub value: f64,
    /// How far the quantile of the rows is from that at most; less than the width of the bin.
    pub error: f64,
}

/// One bin or several neighbours.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Bin {
    /// Lower edge.
    pub from: f64,
    /// Upper edge.
    pub to: f64,
    /// Rows in it.
    pub rows: u64,
}

/// A column of categories.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Counts {
    /// Its name.
    pub column: String,
    /// Rows that were read and have no value in it, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Rows of every category, in the plan's order.
    pub counts: Vec<Count>,
}

/// One category.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Count {
    /// Its name.
    pub category: String,
    /// Rows that have it.
    pub rows: u64,
    /// Their share of all rows.
    pub share: f64,
}

impl Description {
    /// What `found` is in the plan's own units.
    ///
    /// # Errors
    /// [`Error`] where it is none of this plan's columns.
    pub fn of(work: &PlanSpec, found: &method::Description) -> Result<Description, Error> {
        let extents = work.extents();
        let fits = [found.means.len(), found.variances.len()] == [extents.len(); 2]
            && found.histograms.len() == work.columns.len();
        if !fits {
            return Err(Error::ColumnMismatch { expected: extents.len(), found: found.means.len() });
        }
        let domain = crate::columns::domain(&work.columns, &work.categorical, work.scaling)?;
        let means = veilsum_cluster::Centres::new(1, extents.len(), found.means.clone())?;
        let means = domain.centres_to_original(&means)?;
        let means = means.row(0);
        let missing = |at: usize| found.missing.as_ref().and_then(|counts| counts.get(at).copied());
        let number = |(i, column): (usize, &Column)| {
            let histogram = bins(column, &found.histograms[i]);
            Number {
                column: column.name.clone(),
                missing: missing(i),
                mean: means[i],
                deviation: found.variances[i].sqrt() * extents[i],
                quantiles: QUANTILES.iter().filter_map(|q| quantile(&histogram, *q)).collect(),
                histogram,
            }
        };
        let mut at = work.columns.len();
        let count = |at: &mut usize, name: &String| {
            let share = means[*at].clamp(0.0, 1.0);
            *at += 1;
            Count { category: name.clone(), rows: (share * found.rows as f64).round() as u64, share }
        };
        let categories = work.categorical.iter();
        let categories = categories.map(|of| Counts {
            missing: missing(at),
            column: of.column.clone(),
            counts: of.categories.iter().map(|name| count(&mut at, name)).collect(),
        });
        Ok(Description {
            rows: found.rows,
            spread_rows: (found.spread_rows != found.rows).then_some(found.spread_rows),
            histogram_rows: found.histogram_rows.filter(|rows| *rows != found.rows),
            missing: match found.missing {
                Some(_) => {
                    "rows that sites read and that have no value in a column, counted before any row is left out"
                }
                None => "not asked under noise: each site has its own count (`veilsum check`)",
            },
            categories: categories.collect(),
            numbers: work.columns.iter().enumerate().map(number).collect(),
        })
    }
}

impl Description {
    /// The standard error of every number, in its place, from repetitions of the noise. Edges of bins stay.
    pub(crate) fn errors(&self, repeats: &[Description]) -> Description {
        let within = |of: &dyn Fn(&Description) -> Option<f64>| {
            let off = |other| of(other).zip(of(self)).map_or(f64::INFINITY, |(a, b)| (a - b).abs());
            half_of_most(repeats.iter().map(off).collect())
        };
        let rows = |of: &dyn Fn(&Description) -> u64| within(&|d| Some(of(d) as f64)).ceil() as u64;
        let mut errors = self.clone();
        errors.rows = rows(&|d| d.rows);
        for (i, number) in errors.numbers.iter_mut().enumerate() {
            number.mean = within(&|d| Some(d.numbers[i].mean));
            number.deviation = within(&|d| Some(d.numbers[i].deviation));
            for (at, quantile) in number.quantiles.iter_mut().enumerate() {
                quantile.value = within(&|d| Some(d.numbers[i].quantiles.get(at)?.value));
            }
            for (at, bin) in number.histogram.iter_mut().enumerate() {
                bin.rows = rows(&|d| d.numbers[i].histogram[at].rows);
            }
        }
        for (i, of) in errors.categories.iter_mut().enumerate() {
            for (at, count) in of.counts.iter_mut().enumerate() {
                count.rows = rows(&|d| d.categories[i].counts[at].rows);
                count.share = within(&|d| Some(d.categories[i].counts[at].share));
            }
        }
        errors
    }
}

/// The bins of a column, of equal width.
fn bins(column: &Column, counts: &[u64]) -> Vec<Bin> {
    let bins = counts.len() as f64;
    let edge = |bin: usize| match bin == counts.len() {
        true => column.upper,
        false => column.lower + (column.upper - column.lower) * (bin as f64 / bins),
    };
    let bin = |(i, rows): (usize, &u64)| Bin { from: edge(i), to: edge(i + 1), rows: *rows };
    counts.iter().enumerate().map(bin).collect()
}

/// The quantile of rows in these bins; `None` where there are none.
fn quantile(bins: &[Bin], q: f64) -> Option<Quantile> {
    let rows: u64 = bins.iter().map(|bin| bin.rows).sum();
    // As in the search of quantiles: 0.07 of 100 rows are 7, and not the hair more that the product of two doubles is.
    let rank = ((q * rows as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil().max(1.0)) as u64;
    let mut below = 0;
    for bin in bins {
        if rank <= below + bin.rows {
            let value = bin.from + (bin.to - bin.from) * ((rank - below) as f64 / (bin.rows + 1) as f64);
            return Some(Quantile { q, value, error: (value - bin.from).max(bin.to - value) });
        }
        below += bin.rows;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column() -> Column {
        Column { name: "x".into(), lower: 0.0, upper: 8.0 }
    }

    #[test]
    fn a_quantile_lies_within_its_error() {
        // 3, 3.5, 4, 5 and 7.
        let bins = bins(&column(), &[0, 2, 2, 1]);
        for (q, exact) in [(0.05, 3.0), (0.4, 3.5), (0.5, 4.0), (0.8, 5.0), (1.0, 7.0)] {
            let found = quantile(&bins, q).unwrap();
            assert!((found.value - exact).abs() <= found.error && found.error <= 2.0, "{q}: {found:?}");
        }
        assert_eq!(quantile(&[], 0.5), None);
    }
}
