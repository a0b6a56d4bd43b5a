//! First centres: uniform in the public box, or given.
//!
//! Bárcena et al. (2021) start uniformly in the attributes' known ranges; no data are needed for that.

use serde::{Deserialize, Serialize};

use crate::random::Stream;
use crate::{Centres, Domain, Error};

const LABEL: &[u8; 24] = b"veilsum start uniform v1";

/// Where the first centres come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Independent uniform coordinates in the working box.
    ///
    /// The same seed gives the same centres for ever: ChaCha20 keyed with the seed (8 bytes, little-endian) and the label
    /// `veilsum start uniform v1`; 64 bits for each coordinate, centre by centre and column by column, of which the upper
    /// 53 make a number in [0, 1).
    Uniform {
        /// Any number.
        seed: u64,
    },
    /// These centres, K x d, in ORIGINAL units (people know those).
    Given {
        /// The centres.
        centres: Centres,
    },
}

impl Start {
    /// K first centres in working units.
    ///
    /// # Errors
    /// [`Error::NoCentres`] for K = 0; for given centres [`Error::CentreCount`], [`Error::ColumnMismatch`].
    pub fn centres(&self, domain: &Domain, k: usize) -> Result<Centres, Error> {
        match self {
            Self::Uniform { seed } => uniform(domain, k, *seed),
            Self::Given { centres } if centres.k() == k => domain.centres_to_box(centres),
            Self::Given { centres } => Err(Error::CentreCount { expected: k, found: centres.k() }),
        }
    }
}

fn uniform(domain: &Domain, k: usize, seed: u64) -> Result<Centres, Error> {
    let mut stream = Stream::new(seed, LABEL);
    let mut values = Vec::new();
    for _ in 0..k {
        for column in 0..domain.columns() {
            let (low, high) = domain.working_interval(column);
            values.push(low + stream.unit() * (high - low));
        }
    }
    Centres::new(k, domain.columns(), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;

    #[test]
    fn uniform_starts_are_pinned() {
        let domain = Domain::new(vec![0.0, 10.0], vec![1.0, 30.0], Scaling::Box).unwrap();
        let start = Start::Uniform { seed: 1 }.centres(&domain, 2).unwrap();
        let expected = PINNED;
        assert_eq!(start.as_slice(), expected, "a published seed would change");
        let raw = Domain::new(vec![0.0, 10.0], vec![1.0, 30.0], Scaling::None).unwrap();
        let raw_start = Start::Uniform { seed: 1 }.centres(&raw, 2).unwrap();
        assert!(
            raw.centres_to_original(&raw_start)
                .unwrap()
                .frobenius_distance(&domain.centres_to_original(&start).unwrap())
                .unwrap()
                < 1e-12
        );
        assert!(Start::Uniform { seed: 1 }.centres(&domain, 0).is_err());
        assert_ne!(Start::Uniform { seed: 2 }.centres(&domain, 2).unwrap(), start);
    }
    const PINNED: &[f64] = &[0.825254462578964, 0.3791959023484349, 0.8967892085751614, 0.5001308431004323];

    #[test]
    fn given_centres_are_in_original_units() {
        let domain = Domain::new(vec![0.0, 10.0], vec![1.0, 30.0], Scaling::Box).unwrap();
        let centres = Centres::from_rows(&[vec![0.5, 15.0]]).unwrap();
        let start = Start::Given { centres };
        assert_eq!(start.centres(&domain, 1).unwrap().as_slice(), &[0.5, 0.25]);
        assert_eq!(start.centres(&domain, 2), Err(Error::CentreCount { expected: 2, found: 1 }));
    }
}
