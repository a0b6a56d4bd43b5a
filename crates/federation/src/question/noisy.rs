//! The noise of a whole answer: what it costs, and how a site adds its share (spec section 17).

use veilsum_proto::{Error, noise};

use super::{Layout, ScaledBlock, SumBounds};

impl Layout {
    /// What the noise of a total of this layout leaves to be said, as zero-concentrated differential privacy, where `honest`
    /// sites add their shares ([NOI-6]); `None` without noise.
    pub fn rho(&self, honest: usize) -> Option<f64> {
        let of = |b: &ScaledBlock| Some(b.noise?.rho(b.block.len, honest));
        self.blocks.iter().map(of).sum()
    }

    /// [`Layout::rho`] in 10^-9, rounded up, where as many sites add their shares as the plan counts on.
    pub fn nano_rho(&self, form: &SumBounds) -> Option<u64> {
        let honest = form.noise?.honest;
        // Saturates.
        self.rho(honest).map(|rho| (rho * 1e9).ceil() as u64)
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
