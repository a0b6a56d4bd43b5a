//! First centres, uniform in the public box.
//!
//! Bárcena et al. (2021) start uniformly in the attributes' known ranges; no data are needed for that.

use crate::random::Stream;
use crate::{Centres, Domain, Error};

const LABEL: &[u8; 24] = b"veilsum start uniform v1";

impl Centres {
    /// K first centres: independent uniform coordinates in the working box.
    ///
    /// The same seed gives the same centres for ever: ChaCha20 keyed with the seed (8 bytes, little-endian) and the label
    /// `veilsum start uniform v1`; 64 bits for each coordinate, centre by centre and column by column, of which the upper
    /// 53 make a number in [0, 1).
    ///
    /// # Errors
    /// [`Error::NoCentres`] for K = 0.
    pub fn uniform(domain: &Domain, k: usize, seed: u64) -> Result<Self, Error> {
        let mut stream = Stream::new(seed, LABEL);
        let mut values = Vec::new();
        for _ in 0..k {
            for column in 0..domain.columns() {
                let (low, high) = domain.working_interval(column);
                values.push(low + stream.unit() * (high - low));
            }
        }
        Self::new(k, domain.columns(), values)
    }
}
