//! How a site resumes from its journal, and what it keeps in it (spec section 12).

use super::{Open, Site, SiteConfig, deck::Deck, round::Round};
use crate::{
    error::Error,
    journal::{Entry, Record},
};

impl Site {
    /// A site that comes back after a crash, from the entries of its journal in order ([JRN-1] to [JRN-3]).
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

    /// [JRN-2]: every entry must follow from those before it.
    fn replay(&mut self, record: Record) -> Result<(), Error> {
        let bad = |why: &str| Error::Journal(why.to_owned());
        match record.0 {
            Entry::Chain { context, cohort, rounds, opened } => {
                if self.round.is_some() {
                    return Err(bad("a summary in it comes after a round"));
                }
                self.last_context = context;
                self.last_cohort = cohort;
                self.rounds = rounds;
                self.opened = opened.map(|name| (context, name));
            }
            Entry::Deck(r) => {
                if r.session != self.env.session {
                    return Err(bad("it belongs to another plan, roster or aggregator"));
                }
                let deck = Deck::from_record(r).ok_or_else(|| bad("a deck in it is damaged"))?;
                if self.run.is_some_and(|(run, _)| run != deck.run) {
                    return Err(bad("it holds two runs"));
                }
                if self.run.is_some_and(|(_, highest)| deck.index <= highest) {
                    return Err(bad("a deck in it stands twice"));
                }
                self.run = Some((deck.run, deck.index));
                self.decks.insert(deck.index, deck);
            }
            Entry::Masked { deck, slot, cohort, rounds, frame } => {
                let ready = self.decks.get(&deck).ok_or_else(|| bad("a round in it has no deck"))?;
                if self.round.is_some() {
                    return Err(bad("two rounds stand in it"));
                }
                if !ready.holds(slot) {
                    return Err(bad("a round in it is in a slot that its deck does not hold"));
                }
                let round = Round::restored(slot, cohort, frame).ok_or_else(|| bad("an answer in it is damaged"))?;
                self.begin(deck, round);
                self.rounds = rounds;
            }
            Entry::Checked { context, named } => {
                let open = self.open_round(&context);
                if !open.is_some_and(|Open { round, env, .. }| round.restore_checked(env, named)) {
                    return Err(bad("a signature in it does not follow from what came before"));
                }
            }
            Entry::Released { context, named } => {
                let open = self.open_round(&context);
                if !open.is_some_and(|Open { round, env, .. }| round.restore_released(env, named)) {
                    return Err(bad("a release in it does not follow from what came before"));
                }
            }
        }
        Ok(())
    }

    /// What a new process must know of all before the open question: the decks in use without their closed slots, where the
    /// rounds stand ([JRN-4]).
    pub(super) fn summary(&self) -> Vec<Record> {
        let decks = self.decks.values().map(|deck| Record(Entry::Deck(deck.to_record(self.env.session))));
        let mut out: Vec<Record> = decks.collect();
        // The open round has sent nothing yet.
        out.push(Record(Entry::Chain {
            context: self.last_context,
            cohort: self.last_cohort.clone(),
            rounds: self.rounds.saturating_sub(1),
            opened: self.opened.filter(|(context, _)| *context == self.last_context).map(|(_, name)| name),
        }));
        out
    }
}
