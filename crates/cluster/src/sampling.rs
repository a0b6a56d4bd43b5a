//! Client sampling (Bárcena et al. 2021): in every round only a share of the sites contributes.
//!
//! Who is drawn follows from the plan's seed and the number of the question, so every site knows it without being told,
//! and no coordinator can choose. A site that is not drawn sends a masked vector of zeros: the cohort stays what it is.

use serde::{Deserialize, Serialize};

use crate::{Error, random::Stream, refuse};

const LABEL: &[u8; 24] = b"veilsum site sampling v1";

/// Which share of the sites contributes in each round of the algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// The share, above 0 and below 1; `round(share * sites)` are drawn without replacement, at least one.
    pub share: f64,
    /// The seed of the draws.
    pub seed: u64,
}

impl Sampling {
    /// Whether it can be used.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<(), Error> {
        let some = self.share > 0.0 && self.share < 1.0;
        refuse(!some, || Error::parameter("the share of sites that is sampled must lie between 0 and 1"))
    }

    /// How many of `sites` are drawn.
    pub fn count(&self, sites: usize) -> usize {
        ((self.share * sites as f64).round() as usize).clamp(1, sites.max(1))
    }

    /// Who is drawn for the algorithm's question `number` (counted from 1): one entry for each site of the roster
    /// (specification, QRY-8).
    pub fn drawn(&self, number: u32, sites: usize) -> Vec<bool> {
        // One stream a question: the draw of one does not depend on those before it.
        let mut stream = Stream::new(self.seed ^ (u64::from(number) << 32), LABEL);
        let mut order: Vec<usize> = (0..sites).collect();
        stream.shuffle(&mut order);
        let mut drawn = vec![false; sites];
        for site in order.into_iter().take(self.count(sites)) {
            drawn[site] = true;
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_outside_the_open_interval_are_refused() {
        for share in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(Sampling { share, seed: 0 }.check().is_err());
        }
        assert_eq!(Sampling { share: 0.01, seed: 0 }.count(20), 1);
    }
}
