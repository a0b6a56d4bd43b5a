//! How a site comes back from its journal ([SPA-26]).

use super::{Site, deck::Deck, duty::Duty, round::Round};
use crate::{
    error::Error,
    sparse::{
        journal::{Entry, Record},
        types::SiteConfig,
    },
};

impl Site {
    /// A site that comes back after a crash, from the entries of its journal in order.
    ///
    /// # Errors
    /// As [`Site::new`], and `Error::Journal` where the entries contradict each other.
    pub fn restore(config: SiteConfig, records: impl IntoIterator<Item = Record>) -> Result<Site, Error> {
        let mut site = Site::new(config)?;
        for record in records {
            site.replay(record)?;
        }
        Ok(site)
    }

    fn replay(&mut self, record: Record) -> Result<(), Error> {
        let bad = |why: &str| Err(Error::Journal(why.to_owned()));
        match record.0 {
            Entry::Chain { run, index, reveals, context, left, rounds } => {
                if self.run.is_some() {
                    return bad("a summary in it comes after a run began");
                }
                (self.run, self.highest, self.reveals) = (run, index, reveals);
                (self.last_context, self.left, self.rounds) = (context, left, rounds);
            }
            Entry::Consumed { query } => {
                self.consumed.insert(query);
            }
            Entry::Revealed { run, index } => {
                if self.run.is_some_and(|r| r != run) || self.highest.is_some_and(|h| index <= h) {
                    return bad("it holds two runs, or a set-up twice");
                }
                (self.run, self.highest) = (Some(run), Some(index));
                self.reveals += 1;
                self.close_round();
                (self.deck, self.last_slot) = (None, None);
            }
            Entry::Deck(record) => {
                if record.session != self.env.session {
                    return bad("it belongs to another plan, roster or aggregator");
                }
                let Some(deck) = Deck::from_record(&record, self.env.me) else { return bad("a deck in it is damaged") };
                self.deck = Some(deck);
            }
            Entry::Held(record) => {
                let Some(deck) = &mut self.deck else { return bad("shares in it have no deck") };
                let mut duty = deck.duty.take().unwrap_or_else(|| Duty::restored(record.seed, &record.owners, deck));
                if duty.restore_slot(&record, deck.members.len()).is_none() {
                    return bad("shares in it are damaged");
                }
                deck.duty = Some(duty);
            }
            Entry::Masked { context, slot, cohort, words, query, digest, rounds } => {
                if self
                    .deck
                    .as_ref()
                    .is_none_or(|d| usize::from(slot) >= d.slots.len() || !cohort.fits(d.members.len()))
                    || self.last_slot.is_some_and(|last| slot <= last)
                {
                    return bad("a round in it has no deck, or a slot in it was used twice");
                }
                self.close_round();
                if let Some(deck) = &mut self.deck {
                    deck.wipe_before(slot);
                }
                self.last_slot = Some(slot);
                self.rounds = rounds;
                self.consumed.insert(query);
                let (digest, words) = (Some(digest), words as usize);
                let (answered, agreed, released) = (false, None, false);
                self.round = Some(Round { context, slot, cohort, words, query, digest, answered, agreed, released });
            }
            Entry::Agreed { context, alive } => match &mut self.round {
                Some(round) if round.context == context && round.agreed.is_none() && alive.within(&round.cohort) => {
                    round.agreed = Some(alive);
                }
                _ => return bad("a signature in it does not follow from what came before"),
            },
            Entry::Released { context } => match &mut self.round {
                Some(round) if round.context == context && round.agreed.is_some() => round.released = true,
                _ => return bad("a release in it does not follow from what came before"),
            },
        }
        Ok(())
    }

    /// All that a new process must know when a deck is ready.
    pub(super) fn summary(&self) -> Vec<Record> {
        let mut out = vec![Record(Entry::Chain {
            run: self.run,
            index: self.highest,
            reveals: self.reveals,
            context: self.last_context,
            left: self.left.clone(),
            rounds: self.rounds,
        })];
        out.extend(self.consumed.iter().map(|query| Record(Entry::Consumed { query: *query })));
        out.extend(self.deck.iter().map(|deck| Record(Entry::Deck(deck.to_record(self.env.session)))));
        out
    }
}
