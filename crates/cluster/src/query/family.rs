//! What every family of questions says of itself. One file implements it for each family, and nobody else needs to know
//! the family: what a site checks, sends and counts, and what a coordinator may ask next, follows from these answers.

use std::any::Any;

use serde::{Deserialize, Serialize};

use crate::kernel::{Form, Step, Sums};
use crate::random::Stream;
use crate::validity::{Geometry, Verdict};
use crate::{AnswerError, Centres, Domain, MethodError, Prepared, QueryError};

/// Entries that one question's answer may have: 128 MiB of `f64`.
pub(crate) const MAX_WORDS: usize = 1 << 24;

/// What one row adds to an answer.
pub(crate) type OfRow<'a> = Box<dyn Fn(&[f64], &mut [f64]) + 'a>;

/// One family of questions.
pub(crate) trait Family: Any {
    /// In which part of a run it is asked.
    fn stage(&self) -> Stage;
    /// Whether a site may answer; it bounds every number that the answer's size or time depends on.
    fn check(&self, domain: &Domain) -> Result<(), QueryError>;
    /// The blocks of the answer; for a question that passes `check`.
    fn layout(&self, domain: &Domain) -> Vec<Block>;
    /// One site's statistic in a form that has an entry for each of the layout's; for a question that passes `check`. `noise` serves
    /// a question that asks for blur.
    fn answer<'f>(&self, rows: &Prepared, form: &'f Form, noise: Option<&mut Stream>) -> Result<Sums<'f>, AnswerError>;

    /// The point sets that it holds, what it asks about first: centres, anchors, means.
    fn points(&self) -> Vec<&Centres> {
        Vec::new()
    }

    /// Which half of a round it is, where rounds have two.
    fn half(&self) -> Option<&RoundHalf> {
        None
    }

    /// The same, to ask the other half.
    fn half_mut(&mut self) -> Option<&mut RoundHalf> {
        None
    }

    /// Its round, where rounds are counted.
    fn round(&self) -> Option<u32> {
        None
    }

    /// Whether it may come after `before` in its own part of a run, as far as both say themselves.
    fn follows(&self, before: &dyn Family) -> bool {
        let _ = before;
        true
    }

    /// Whether what a site adds to the entries that count rows ([`Per::Row`]) is the sum of what each of its rows would add
    /// if it were alone: no local steps, no groups that a site leaves out, no labels, no noise.
    fn adds_up_over_rows(&self) -> bool {
        false
    }

    /// Whether the words of parts of a site's rows make the words of all: entries of [`Per::Row`] add up, one of [`Per::Site`] is set
    /// where a part sets it, and `settle` does the rest.
    fn comes_in_parts(&self) -> bool {
        self.adds_up_over_rows()
    }

    /// Puts right, in words that were added up from parts, what does not simply add up.
    fn settle(&self, words: &mut [i64], steps: &[Step]) {
        let _ = (words, steps);
    }

    /// Whether the answer is a sum of smooth functions of single rows; then `of_row` is there.
    fn is_smooth(&self) -> bool {
        false
    }

    /// What one row adds to the answer of a smooth question.
    fn of_row(&self, domain: &Domain) -> Option<OfRow<'_>> {
        let _ = domain;
        None
    }

    /// Which block tells how many rows there are at least.
    fn shows_rows(&self) -> Option<ShowsRows> {
        None
    }

    /// How far one row moves the total, where that is proved; none for a question that no run under noise asks. No row is
    /// farther than `reach` from the middle of the box.
    fn sensitivity(&self, reach: f64) -> Option<Sensitivity> {
        let _ = reach;
        None
    }

    /// Whether the answer counts labels.
    fn reads_labels(&self) -> bool {
        false
    }

    /// Whether it asks for noise that the site draws.
    fn is_blurred(&self) -> bool {
        false
    }

    /// The centres that indices are computed at, for a question that somebody else than the coordinator may judge.
    fn judged_centres(&mut self) -> Option<&mut Centres> {
        None
    }

    /// The validity indices that its totals give.
    fn verdict(&self, geometry: Geometry<'_>, values: &[f64], rows: Option<u64>) -> Result<Verdict, MethodError> {
        let _ = (geometry, values, rows);
        Err(MethodError::implausible("the question is none that indices are computed from"))
    }
}

/// In which part of a run a question belongs; a run never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// Quantiles and moments.
    Preparing,
    /// Which K each site would choose alone.
    Ranging,
    /// Cells of the tree.
    Seeding,
    /// The algorithm's rounds.
    Iterating,
    /// Rows and sites of every cluster that round A would sum up.
    Sizing,
    /// Round A of the indices.
    Validating,
    /// Round B.
    Silhouettes,
    /// Counts by label.
    Counting,
}

/// Where a total shows how many rows there are at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowsRows {
    /// The block to whose entries, all together, one row adds 1 at most.
    pub block: &'static str,
    /// Blocks of the question, where it always has as many: only then can another question follow it in a batch.
    pub blocks: Option<usize>,
}

/// How far one row more or less moves a total at most, in the Euclidean norm.
#[derive(Debug, Clone, PartialEq)]
pub enum Sensitivity {
    /// Of a round: weights by 1, and sums by `clip`.
    Round {
        /// How far a row pulls, working units.
        clip: f64,
    },
    /// Of the validation, block by block.
    Validation(Vec<f64>),
}

/// Which half of a two-step question this is. Where a plan wants at least p rows and t sites behind every sum, the counts
/// are asked first, and sums only of what passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundHalf {
    /// Only counts.
    Counts,
    /// Only sums, of these clusters (or of the nodes asked about, where the question names them itself).
    Sums(Vec<u32>),
    /// Both at once.
    Both,
    /// Counts, and by cluster the rows that entered or left it since its sum was asked last (exact Lloyd only).
    Changes(SinceCentres),
}

/// At which centres the sum of each cluster was asked last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SinceCentres {
    /// Earlier centres, K x d each, every one of them named by `of`.
    pub centres: Vec<Centres>,
    /// By cluster the place of its centres in that list, counted from 1; 0 where its sum was never asked.
    pub of: Vec<u32>,
}

impl RoundHalf {
    /// Whether this is the half that asks counts.
    pub fn counts(&self) -> bool {
        matches!(self, Self::Counts | Self::Changes(_))
    }

    /// Whether the list names clusters 0 to k-1, each once, in rising order.
    pub(super) fn check(&self, k: usize) -> Result<(), QueryError> {
        if matches!(self, Self::Changes(_)) {
            return Err(QueryError::Parameter {
                what: "rows that change their cluster are counted for exact Lloyd only",
            });
        }
        let Self::Sums(list) = self else { return Ok(()) };
        let rising = list.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || list.last().is_none_or(|last| *last as usize >= k) {
            return Err(QueryError::Parameter { what: "the list of open clusters is empty, out of order or too long" });
        }
        Ok(())
    }
}

/// One stretch of a statistic: `len` entries that share a meaning and a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// What the entries are.
    pub name: &'static str,
    /// How many there are.
    pub len: usize,
    /// Largest absolute value that ONE row (or site, see `per`) can add to ONE entry, working units, up to rounding of
    /// `f64`.
    pub bound: f64,
    /// What `bound` bounds.
    pub per: Per,
}

impl Block {
    /// Entries of which one row adds at most `bound` to each.
    pub(crate) fn per_row(name: &'static str, len: usize, bound: f64) -> Self {
        Self { name, len, bound, per: Per::Row }
    }

    /// Entries of which a whole site adds at most `bound` to each, however many rows it has.
    pub(crate) fn per_site(name: &'static str, len: usize, bound: f64) -> Self {
        Self { name, len, bound, per: Per::Site }
    }
}

/// Whose contribution a block's bound limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// One row; a site adds at most the bound times its number of rows.
    Row,
    /// A whole site.
    Site,
}

/// Centres in the columns of the box.
pub(super) fn same_columns(centres: &Centres, domain: &Domain) -> Result<(), QueryError> {
    if centres.columns() == domain.columns() {
        return Ok(());
    }
    Err(QueryError::ColumnMismatch { expected: domain.columns(), found: centres.columns() })
}

/// A fuzzifier above 1, and centres in the columns of the box.
pub(super) fn fuzzy_centres(centres: &Centres, m: f64, domain: &Domain) -> Result<(), QueryError> {
    if !crate::distance::usable_fuzzifier(m) {
        return Err(QueryError::Fuzzifier);
    }
    same_columns(centres, domain)
}
