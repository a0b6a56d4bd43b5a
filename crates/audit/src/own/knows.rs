//! What an adversary knows of the rows before it looks at any total.

use serde::Serialize;

/// Who looks at the totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knows {
    /// What such rows usually are, and no row.
    NoRow,
    /// All rows of all other sites: their operators together.
    OtherSites,
    /// All rows but one in a hundred.
    MostRows,
    /// All rows but a few; or none, but totals before and after a few rows came.
    AllButFew,
    /// All rows but the one that is asked about.
    AllOthers,
}

impl Knows {
    /// Rows that are unknown to somebody who knows all but a few.
    pub(super) const FEW: usize = 4;
    /// Everybody to whom one row is what matters, who knows least first.
    pub const EACH: [Knows; 4] = [Knows::NoRow, Knows::OtherSites, Knows::MostRows, Knows::AllOthers];

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Knows::NoRow => "knows no row",
            Knows::OtherSites => "knows all other sites' rows",
            Knows::MostRows => "knows 99 % of all rows",
            Knows::AllButFew => "knows all rows but a few, or all totals before these came",
            Knows::AllOthers => "knows all rows but this one",
        }
    }

    /// Rows that it does not know beside the target, of `own` rows at the site and `all` in all.
    pub(super) fn unknown(self, own: usize, all: usize) -> f64 {
        match self {
            Knows::NoRow => all.saturating_sub(1) as f64,
            Knows::OtherSites => own.saturating_sub(1) as f64,
            Knows::MostRows => all.div_ceil(100).min(all.saturating_sub(1)) as f64,
            Knows::AllButFew => (Knows::FEW.min(all) - 1) as f64,
            Knows::AllOthers => 0.0,
        }
    }

    /// Whether a plan is no good if this one succeeds. Whoever knows all rows but one subtracts them from any exact sum: that is told, and
    /// is no property of the plan.
    pub(super) fn counts(self) -> bool {
        self != Knows::AllOthers
    }
}
