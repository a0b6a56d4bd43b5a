//! The noise of a whole answer: what it costs, and how a site adds its share (spec section 17).

use veilsum_proto::{Error, noise};

use super::Layout;

impl Layout {
    /// The price of an answer of this layout, in 10^-9 of rho, rounded up: what its site's own noise leaves to be said, whatever all others do
    /// ([NOI-6]); `None` without noise.
    pub fn nano_rho(&self) -> Option<u64> {
        let rho: f64 = self.blocks.iter().map(|b| Some(b.noise?.rho())).sum::<Option<f64>>()?;
        // Saturates.
        Some((rho * 1e9).ceil() as u64)
    }

    /// Adds this site's share of the noise.
    pub(super) fn add_noise(&self, words: &mut [u64], key: Option<&noise::Key>) -> Result<(), Error> {
        if self.blocks.iter().all(|b| b.noise.is_none()) {
            return Ok(());
        }
        // Without a key nothing leaves.
        let mut stream = noise::Stream::new(key.ok_or(Error::ApiMisuse("a plan with noise, and no key to draw it"))?);
        let mut rest = words;
        for b in &self.blocks {
            let (own, next) = rest.split_at_mut_checked(b.block.len).ok_or(Error::ApiMisuse("a short answer"))?;
            let share = b.noise.ok_or(Error::ApiMisuse("a block without noise beside one with it"))?;
            noise::add(own, share.deviation, &mut stream)?;
            rest = next;
        }
        Ok(())
    }
}
