//! What every family of questions says of itself. One file implements it for each family, and nobody else needs to know
//! the family: what a site checks, sends and counts follows from these answers.

use serde::{Deserialize, Serialize};

use crate::kernel::{Form, Sums};
use crate::validity::{Geometry, Verdict};
use crate::{Centres, Domain, Error, Prepared};

/// Entries that one question's answer may have: 128 MiB of `f64`.
pub(crate) const MAX_WORDS: usize = 1 << 24;

/// One family of questions.
pub(crate) trait Family {
    /// Whether a site may answer; it bounds every number that the answer's size or time depends on.
    fn check(&self, domain: &Domain) -> Result<(), Error>;
    /// The blocks of the answer; for a question that passes `check`.
    fn layout(&self, domain: &Domain) -> Vec<Block>;
    /// One site's statistic in a form that has an entry for each of the layout's; for a question that passes `check`.
    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error>;

    /// Which block tells how many rows there are at least.
    fn shows_rows(&self) -> Option<ShowsRows> {
        None
    }

    /// How far one row added or removed moves each block of the total at most, in the Euclidean norm and before rounding to steps, if
    /// that is proved (specification, section 17.4). None for a question whose answer is no sum over rows, or counts sites: no run
    /// under noise asks it.
    ///
    /// *Proof* of the table there. A unit moves an answer by at most u times the norm of one row's part, which is rounded by
    /// itself ([SUM-1]). A count has one entry of 1 in each list. Memberships are at least 0 with Σ u_k ≤ 1, as have their powers,
    /// so their norm is at most 1. Weights times v have theirs times ‖v‖: ‖x‖ ≤ T, clipped vectors
    /// `clip`; times `clip`², Σ_k w_k ≤ 1. No row is farther than 2R from a centre in the box. Σ_k u_k^m d_k² is smallest in the
    /// memberships of fuzzy c-means, so at most its value in equal ones, K^(−m) Σ_k d_k² ≤ K^(1−m)·4R². This holds for *any*
    /// centres in the box. ∎
    fn sensitivity(&self, _: &Domain) -> Option<Vec<f64>> {
        None
    }

    /// The validity indices that its totals give.
    fn verdict(&self, _: Geometry<'_>, _: &[f64], _: Option<u64>) -> Result<Verdict, Error> {
        Err(Error::implausible("the question is none that indices are computed from"))
    }
}

/// In which part of a run a question belongs; a run never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// Quantiles and moments.
    Preparing,
    /// Which K each site would choose alone.
    Ranging,
    /// Margins, and rows around candidates for first centres.
    Seeding,
    /// The algorithm's rounds.
    Iterating,
    /// The totals of the indices.
    Validating,
}

/// Where a total shows how many rows there are at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowsRows {
    /// The block to whose entries, all together, one row adds 1 at most.
    pub block: &'static str,
    /// Blocks of the question, where it always has as many: only then can another question follow it in a batch.
    pub blocks: Option<usize>,
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

/// A fuzzifier above 1, and centres in the columns of the box.
pub(super) fn fuzzy_centres(centres: &Centres, m: f64, domain: &Domain) -> Result<(), Error> {
    crate::distance::check_fuzzifier(m)?;
    domain.same_columns(centres.columns())
}

/// How far rows of the box may be from each centre, K, and from the nearest one at most.
pub(super) fn reaches(centres: &Centres, domain: &Domain) -> (Vec<f64>, f64) {
    let all: Vec<f64> = centres.rows().map(|centre| domain.reach(centre)).collect();
    let nearest = all.iter().copied().fold(f64::INFINITY, f64::min);
    (all, nearest)
}
