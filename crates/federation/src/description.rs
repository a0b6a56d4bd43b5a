//! The description of a cohort's columns, as a result has it: names, original units and bins.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use veilsum_cluster::{
    Error,
    method::{self, mechanism::half_of_most},
};

use crate::{
    near,
    plan::{Column, PlanSpec},
};

/// What a run of `describe` tells of every column, over the cohort.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Description {
    /// Rows that sites used, and that means and counts of categories are over.
    pub rows: u64,
    /// Rows that deviations are over, where a site was lost in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_rows: Option<u64>,
    /// Rows that histograms are over, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram_rows: Option<u64>,
    /// What the numbers of missing values are.
    pub missing: Cow<'static, str>,
    /// The columns of numbers, in the plan's order.
    pub numbers: Vec<Number>,
    /// The columns of categories.
    pub categories: Vec<Counts>,
}

/// A column of numbers, original units.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Number {
    /// Its name.
    pub column: String,
    /// Rows that were read and have no value in it, before any was left out; none if noise may have made them of nothing.
    pub missing: Option<u64>,
    /// Mean; no number where a file has none.
    #[serde(deserialize_with = "near::number")]
    pub mean: f64,
    /// Standard deviation, divisor N.
    #[serde(deserialize_with = "near::number")]
    pub deviation: f64,
    /// Rows in bins, ascending; a value on an edge lies in the upper one, and the upper end of the range in the last.
    pub histogram: Vec<Bin>,
}

/// One bin or several neighbours.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bin {
    /// Lower edge.
    pub from: f64,
    /// Upper edge.
    pub to: f64,
    /// Rows in it.
    pub rows: u64,
}

/// A column of categories.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Its name.
    pub column: String,
    /// Rows that were read and have no value in it, likewise.
    pub missing: Option<u64>,
    /// Rows of every category, in the plan's order.
    pub counts: Vec<Count>,
}

/// One category.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Count {
    /// Its name.
    pub category: String,
    /// Rows that have it.
    pub rows: u64,
    /// Their share of all rows.
    #[serde(deserialize_with = "near::number")]
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
            && found.missing.len() == extents.len()
            && found.histograms.len() == work.columns.len();
        if !fits {
            return Err(Error::ColumnMismatch { expected: extents.len(), found: found.means.len() });
        }
        let domain = crate::columns::domain(&work.columns, &work.categorical, work.scaling)?;
        let means = veilsum_cluster::Centres::new(1, extents.len(), found.means.clone())?;
        let means = domain.centres_to_original(&means)?;
        let means = means.row(0);
        let missing = |at: usize| found.missing.get(at).copied();
        let number = |(i, column): (usize, &Column)| Number {
            column: column.name.clone(),
            missing: missing(i),
            mean: means[i],
            deviation: found.variances[i].sqrt() * extents[i],
            histogram: bins(column, &found.histograms[i]),
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
            missing: "rows that sites read and that have no value in a column, counted before any row is left out"
                .into(),
            categories: categories.collect(),
            numbers: work.columns.iter().enumerate().map(number).collect(),
        })
    }

    /// The standard error of every number, in its place, from repetitions of the noise. Edges of bins stay.
    pub(crate) fn errors(&self, repeats: &[Description]) -> Description {
        let within = |of: &dyn Fn(&Description) -> f64| {
            half_of_most(repeats.iter().map(|other| (of(other) - of(self)).abs()).collect())
        };
        let rows = |of: &dyn Fn(&Description) -> u64| within(&|d| of(d) as f64).ceil() as u64;
        let mut errors = self.clone();
        errors.rows = rows(&|d| d.rows);
        for (i, number) in errors.numbers.iter_mut().enumerate() {
            number.missing = Some(rows(&|d| d.numbers[i].missing.unwrap_or(0)));
            number.mean = within(&|d| d.numbers[i].mean);
            number.deviation = within(&|d| d.numbers[i].deviation);
            for (at, bin) in number.histogram.iter_mut().enumerate() {
                bin.rows = rows(&|d| d.numbers[i].histogram[at].rows);
            }
        }
        for (i, of) in errors.categories.iter_mut().enumerate() {
            of.missing = Some(rows(&|d| d.categories[i].missing.unwrap_or(0)));
            for (at, count) in of.counts.iter_mut().enumerate() {
                count.rows = rows(&|d| d.categories[i].counts[at].rows);
                count.share = within(&|d| d.categories[i].counts[at].share);
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
