//! Consent to one answer, and how it leaves: with noise of what the account is charged for it, or without any, as its plan has it.

use std::fmt;

use rand_core::CryptoRng;
use veilsum_proto::{Error, noise, policy::Consent, site::Input};

use crate::guard::Source;

/// Consent to one answer. What becomes of it is decided by what was charged, and whoever has it can neither leave the noise out nor draw
/// less of it.
pub struct Granted {
    consent: Consent,
    words: usize,
    /// Deviation of the noise of an answer that was charged.
    deviation: Option<u64>,
}

impl Granted {
    pub(crate) fn new(consent: Consent, words: usize, deviation: Option<u64>) -> Granted {
        Granted { consent, words, deviation }
    }

    /// The answer of a plan with noise: the sum is made here, and its noise is drawn here, fresh, before a row is visited ([NOI-2], [NOI-3]).
    ///
    /// # Errors
    /// `Error::ApiMisuse` if the plan has no noise, or the answer another length.
    pub fn noisy(self, factors: &[f64], source: Source<'_>, rng: &mut dyn CryptoRng) -> Result<Input<'static>, Error> {
        let Some(deviation) = self.deviation else {
            return Err(Error::ApiMisuse("noise in an answer of a plan without noise"));
        };
        let values = source.noisy(factors, deviation, &noise::Key::random(rng))?;
        self.sealed(values)
    }

    /// The answer of an exact plan that its site's operator agreed to.
    ///
    /// # Errors
    /// `Error::ApiMisuse` if the plan has noise, or the answer another length.
    pub fn exact(self, values: Vec<u64>) -> Result<Input<'static>, Error> {
        match self.deviation {
            Some(_) => Err(Error::ApiMisuse("an answer without noise, of a plan with noise [NOI-3]")),
            None => self.sealed(values),
        }
    }

    fn sealed(self, values: Vec<u64>) -> Result<Input<'static>, Error> {
        if values.len() == self.words {
            return Ok(Input::Contribute { consent: self.consent, values });
        }
        Err(Error::ApiMisuse("an answer of another length than was asked for"))
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Granted").finish_non_exhaustive()
    }
}
