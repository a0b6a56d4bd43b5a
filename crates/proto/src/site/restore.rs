//! How a site comes back from its journal, and what it keeps in it (spec section 12).

use super::{DeckState, Site, SiteConfig, deck::Deck, round::Round};
use crate::{
    error::Error,
    journal::{Entry, Record},
    suite::Hash,
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
            Entry::Consumed { query, over } => {
                self.consumed.insert(query, over);
            }
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
                let deck = Deck::from_record(&r).ok_or_else(|| bad("a deck in it is damaged"))?;
                if self.run.is_some_and(|run| run != r.run) {
                    return Err(bad("it holds two runs"));
                }
                if self.highest_deck.is_some_and(|highest| r.index <= highest) {
                    return Err(bad("a deck in it stands twice"));
                }
                self.run = Some(r.run);
                self.highest_deck = self.highest_deck.max(Some(r.index));
                self.decks.insert(r.index, DeckState::Ready(deck));
            }
            Entry::Masked { context, deck, slot, cohort, words, query, digest, rounds } => {
                let Some(DeckState::Ready(ready)) = self.decks.get(&deck) else {
                    return Err(bad("a round in it has no deck"));
                };
                if self.round.is_some() {
                    return Err(bad("two rounds stand in it"));
                }
                if !ready.holds(slot) {
                    return Err(bad("a round in it is in a slot that its deck does not hold"));
                }
                self.begin(deck, Round::restored(context, slot, cohort, words as usize, query, digest));
                self.rounds = rounds;
            }
            Entry::Checked { context, alive } => match &mut self.round {
                Some((_, round)) if round.context == context && round.may_restore_checked(&alive) => {
                    round.restore_checked(alive);
                }
                _ => return Err(bad("a signature in it does not follow from what came before")),
            },
            Entry::Released { context, alive } => match &mut self.round {
                Some((_, round)) if round.context == context && round.may_restore_released(&alive) => {
                    self.consumed.insert(round.query, alive.clone());
                    round.restore_released(alive);
                }
                _ => return Err(bad("a release in it does not follow from what came before")),
            },
        }
        Ok(())
    }

    /// What a new process must know of all before the open question: what was consumed, the decks in use without their
    /// closed slots, where the rounds stand ([JRN-4]).
    pub(super) fn summary(&self) -> Vec<Record> {
        let mut out: Vec<Record> = self.consumed.iter().map(consumed).collect();
        let decks = self.decks.values().filter_map(|d| match d {
            DeckState::Ready(deck) => Some(Record(Entry::Deck(deck.to_record(self.env.session)))),
            _ => None,
        });
        out.extend(decks);
        // The open round has sent nothing yet.
        out.push(Record(Entry::Chain {
            context: self.last_context,
            cohort: self.last_cohort.clone(),
            rounds: self.rounds.saturating_sub(1),
            opened: self.opened.filter(|(context, _)| *context == self.last_context).map(|(_, name)| name),
        }));
        out
    }

    /// What outlives a run ([RND-9]): hashes of the queries whose totals were opened, and over whom. No secrets.
    pub fn memory(&self) -> Vec<Record> {
        let open = self.round.iter().map(|(_, r)| r).filter(|r| r.left() && !self.consumed.contains_key(&r.query));
        let open: Vec<(Hash, Vec<u16>)> = open.map(|r| (r.query, r.remaining().to_vec())).collect();
        self.consumed.iter().chain(open.iter().map(|(query, over)| (query, over))).map(consumed).collect()
    }
}

fn consumed((query, over): (&Hash, &Vec<u16>)) -> Record {
    Record(Entry::Consumed { query: *query, over: over.clone() })
}
