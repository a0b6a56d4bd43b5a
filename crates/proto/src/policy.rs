//! A site's own floor for the protocol itself: the stricter of it and the plan holds (spec section 11). Integers alone, and no row. What the
//! site's application demands besides stands before the consent.

use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    limits::MIN_SITES,
    plan::{Terms, check_threshold},
    rule::Rule,
    suite::Hash,
};

/// A site's own floor for the protocol itself. The stricter of this and the plan holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Floor {
    /// The smallest number of sites that a total may cover.
    pub min_cohort: u16,
    /// Sites that this site supposes may collude with the coordinator; 0 leaves it to the plan.
    pub colluders: u16,
    /// The largest number of different questions of one plan that this site answers.
    pub max_rounds: u32,
}

impl Default for Floor {
    fn default() -> Self {
        Floor { min_cohort: MIN_SITES as u16, colluders: 0, max_rounds: 1_000 }
    }
}

/// What a floor does not let pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Below {
    /// [POL-1].
    #[error("a total over {over} sites where the floor is {least}")]
    Sites {
        /// Sites of the total.
        over: usize,
        /// How many there have to be.
        least: usize,
    },
    /// [POL-2].
    #[error("question {asked} of one plan, and this site's policy allows {most} (max_rounds)")]
    Questions {
        /// Different questions of the plan.
        asked: u64,
        /// How many there may be.
        most: u32,
    },
}

impl Below {
    /// The rule that sets the floor.
    pub fn rule(self) -> Rule {
        match self {
            Below::Sites { .. } => Rule::Pol1,
            Below::Questions { .. } => Rule::Pol2,
        }
    }
}

impl From<Below> for Error {
    fn from(below: Below) -> Error {
        Error::refused(below.to_string(), below.rule())
    }
}

impl Floor {
    /// [POL-1]: the fewest sites of a total whose plan names `least`.
    pub(crate) fn least(&self, least: usize) -> usize {
        least.max(usize::from(self.min_cohort))
    }

    /// [POL-1]: whether a total may cover `over` sites whose plan names at least `least`.
    ///
    /// # Errors
    /// [`Below::Sites`].
    pub fn check_size(&self, least: usize, over: usize) -> Result<(), Below> {
        let least = self.least(least);
        if over < least { Err(Below::Sites { over, least }) } else { Ok(()) }
    }

    /// [POL-2]: whether so many different questions of one plan may be answered.
    ///
    /// # Errors
    /// [`Below::Questions`].
    pub fn check_questions(&self, asked: u64) -> Result<(), Below> {
        let most = self.max_rounds;
        if asked > u64::from(most) { Err(Below::Questions { asked, most }) } else { Ok(()) }
    }
}

/// A query that reached this site and passed the protocol's own checks; the site may still refuse it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The round, and what its masks are bound to.
    pub context: Hash,
    /// The run, by the name that the aggregator gave it.
    pub run: Hash,
    /// Deck and slot.
    pub slot: (u32, u16),
    /// Numbers of the sites whose total this will be.
    pub cohort: Vec<u16>,
    /// Words of the answer.
    pub words: usize,
    /// The application's query.
    pub query: Vec<u8>,
    /// How many queries this site was asked in this run, this one included.
    pub rounds: u32,
    /// Sites of the roster.
    pub sites: usize,
}

/// A site's consent to answer one query in one context. Only [`Asked::consent`] makes one.
#[derive(Debug)]
pub struct Consent {
    context: Hash,
}

impl Consent {
    pub(crate) fn context(&self) -> Hash {
        self.context
    }
}

impl Asked {
    /// Consents by the floor, where the plan's totals cover at least `least` sites and `of_plan` different questions of it were answered in
    /// all runs, this one included. Whoever calls it has asked policy and account before.
    ///
    /// # Errors
    /// [`Below`].
    pub fn consent(&self, floor: &Floor, least: usize, of_plan: u64) -> Result<Consent, Below> {
        floor.check_size(least, self.cohort.len())?;
        // A coordinator that begins a new run does not get a new allowance.
        floor.check_questions(u64::from(self.rounds).max(of_plan))?;
        Ok(Consent { context: self.context })
    }
}

/// The threshold this site accepts for a deck of `n`: the plan's, if it also withstands this site's own colluders
/// ([THR-2]). `sites` is the size of the roster.
///
/// # Errors
/// `Error::Refused` if it does not withstand them, or is none for so many sites.
pub(crate) fn threshold(terms: &Terms, floor: &Floor, n: usize, sites: usize) -> Result<usize, Error> {
    floor.check_size(terms.least(sites), n)?;
    let (t, colluders) = (terms.threshold_of(n, sites)?, terms.colluders_of(sites).max(floor.colluders.into()));
    check_threshold(n, t, colluders).map_err(|why| Error::refused(why, Rule::Thr2))?;
    Ok(t)
}
