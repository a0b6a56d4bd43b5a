//! What a site demands for itself, whatever the coordinator's plan says (spec section 11). Pure; fails closed.

use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    limits::MIN_SITES,
    plan::{Terms, check_threshold},
    suite::Hash,
};

/// A site's own floor. The stricter of this and the plan holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Floor {
    /// Sites that a total must cover at least.
    pub min_cohort: u16,
    /// Sites that this site supposes may collude with the coordinator; 0 leaves it to the plan.
    pub colluders: u16,
    /// Different questions of one plan that this site answers at most.
    pub max_rounds: u32,
}

impl Default for Floor {
    fn default() -> Self {
        Floor { min_cohort: MIN_SITES as u16, colluders: 0, max_rounds: 1_000 }
    }
}

/// A query that reached this site and passed the protocol's own checks; the site may still say no.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The round, and what its masks are bound to.
    pub context: Hash,
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
    /// How many different queries it has answered under this plan in all runs, this one included.
    pub spent: u32,
}

/// A site's consent to answer one query in one context. Only [`decide`] makes one.
#[derive(Debug)]
pub struct Consent {
    context: Hash,
}

impl Consent {
    pub(crate) fn context(&self) -> Hash {
        self.context
    }
}

/// Decides whether this site answers `asked` ([POL-1], [POL-2]).
///
/// # Errors
/// `Error::Refused` with the rule and the numbers.
pub fn decide(terms: &Terms, floor: &Floor, asked: &Asked) -> Result<Consent, Error> {
    check_size(terms, floor, asked.cohort.len())?;
    // A coordinator that begins a new run does not get a new allowance.
    let asked_so_far = asked.rounds.max(asked.spent);
    if asked_so_far > floor.max_rounds {
        return Err(Error::refused(
            format!("question {asked_so_far} where this site's policy allows {}", floor.max_rounds),
            "POL-2",
        ));
    }
    Ok(Consent { context: asked.context })
}

/// The smallest number of sites this site lets a total cover.
pub(crate) fn least(terms: &Terms, floor: &Floor) -> usize {
    usize::from(terms.min_cohort.max(floor.min_cohort)).max(MIN_SITES)
}

/// [POL-1]: a total over fewer sites than the floor is refused.
pub(crate) fn check_size(terms: &Terms, floor: &Floor, n: usize) -> Result<(), Error> {
    let least = least(terms, floor);
    if n < least {
        return Err(Error::refused(format!("a total over {n} sites where the floor is {least}"), "POL-1"));
    }
    Ok(())
}

/// The threshold this site accepts for a deck of `n`: the plan's, if it also withstands this site's own colluders
/// ([THR-2]). `sites` is the size of the roster.
pub(crate) fn threshold(terms: &Terms, floor: &Floor, n: usize, sites: usize) -> Result<usize, Error> {
    check_size(terms, floor, n)?;
    let t = terms.threshold_of(n, sites)?;
    let c = terms.colluders_of(sites).max(usize::from(floor.colluders));
    check_threshold(n, t, c).map_err(|why| Error::refused(why, "THR-2"))?;
    Ok(t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Kit;

    fn asked(rounds: u32, spent: u32, cohort: u16) -> Asked {
        Asked {
            context: Hash::default(),
            slot: (0, 0),
            cohort: (0..cohort).collect(),
            words: 1,
            query: Vec::new(),
            rounds,
            spent,
        }
    }

    #[test]
    fn a_new_run_is_no_new_allowance() {
        let kit = Kit::new(5, |_| {});
        let floor = Floor { max_rounds: 10, ..Floor::default() };
        assert!(decide(&kit.terms, &floor, &asked(10, 10, 5)).is_ok());
        assert!(decide(&kit.terms, &floor, &asked(11, 1, 5)).is_err());
        let refused = decide(&kit.terms, &floor, &asked(1, 11, 5)).unwrap_err();
        assert!(refused.to_string().contains("POL-2"), "{refused}");
        assert!(decide(&kit.terms, &floor, &asked(1, 1, 2)).is_err(), "two sites");
        let strict = Floor { min_cohort: 5, ..floor };
        assert!(decide(&kit.terms, &strict, &asked(1, 1, 4)).is_err());
    }
}
