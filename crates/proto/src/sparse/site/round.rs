//! A site's side of one round (spec section 17.6).

use super::{Env, deck::Deck};
use crate::{
    error::Error,
    limits::MAX_WORDS,
    site::to_bytes,
    sparse::{
        bits::Bits,
        journal::Entry,
        message::{Ask, query_hash},
    },
    suite::{self, Hash},
};

/// A round this site takes part in.
pub(crate) struct Round {
    pub(crate) context: Hash,
    pub(crate) slot: u16,
    pub(crate) cohort: Bits,
    pub(crate) words: usize,
    pub(crate) query: Hash,
    /// Of the masked vector that may have left.
    pub(crate) digest: Option<Hash>,
    /// Whether this process has masked its vector.
    pub(crate) answered: bool,
    /// The survivors this member of the committee signed.
    pub(crate) agreed: Option<Bits>,
    pub(crate) released: bool,
}

impl Round {
    /// [SPA-13] to [SPA-16]: an ask that follows from what this site already knows.
    pub(crate) fn open(
        env: &Env,
        deck: &Deck,
        ask: &Ask,
        context: Hash,
        last_context: Hash,
        left: Option<&Bits>,
    ) -> Result<Round, Error> {
        let n = deck.members.len();
        if ask.words == 0 || ask.words as usize > MAX_WORDS {
            return Err(env.aggregator(format!("asked for a vector of {} words", ask.words), "RND-3"));
        }
        if !ask.cohort.fits(n) || !ask.cohort.has(deck.me) {
            return Err(env.aggregator("asked this site in a cohort that it is not in", "SPA-15"));
        }
        let least = env.least(&deck.sizes);
        if ask.cohort.count() < least {
            let what = format!("asked for a total over {} sites where the floor is {least}", ask.cohort.count());
            return Err(env.aggregator(what, "SPA-15"));
        }
        let near = deck.near_in(&ask.cohort);
        if near < deck.sizes.nearby {
            let what =
                format!("asked in a cohort with {near} of this site's neighbours, {} are least", deck.sizes.nearby);
            return Err(env.aggregator(what, "SPA-15"));
        }
        if left.is_some_and(|left| !ask.cohort.list().all(|place| left.has(deck.number(place)))) {
            return Err(env.aggregator("let a site back in that had left this run", "SPA-16"));
        }
        if ask.previous_context != last_context {
            return Err(env.aggregator("asked as if this site had taken part in another run of rounds", "SPA-16"));
        }
        Ok(Round {
            context,
            slot: ask.slot,
            cohort: ask.cohort.clone(),
            words: ask.words as usize,
            query: query_hash(&ask.query),
            digest: None,
            answered: false,
            agreed: None,
            released: false,
        })
    }

    /// [SPA-18]: masks `values` for this context; after a restart only the very vector that may have left.
    pub(crate) fn mask(&mut self, deck: &Deck, values: &mut [u64]) -> Result<(), Error> {
        if self.answered {
            return Err(Error::ApiMisuse("this round has its answer already"));
        }
        if values.len() != self.words {
            return Err(Error::ApiMisuse("an answer of another length than was asked for"));
        }
        deck.mask(self.slot, &self.context, &self.cohort, values)?;
        let digest = suite::hash("masked", &[&to_bytes(values)]);
        if self.digest.is_some_and(|before| before != digest) {
            return Err(Error::Journal("the answer to a question came out different from the one that left".into()));
        }
        self.digest = Some(digest);
        self.answered = true;
        Ok(())
    }

    pub(crate) fn to_record(&self, rounds: u32) -> Entry {
        Entry::Masked {
            context: self.context,
            slot: self.slot,
            cohort: self.cohort.clone(),
            words: self.words as u32,
            query: self.query,
            digest: self.digest.unwrap_or_default(),
            rounds,
        }
    }
}
