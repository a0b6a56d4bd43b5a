//! How an aggregator resumes a run after a crash, and what it keeps for that ([JRN-5], spec section 12).
//!
//! No site is asked twice. A question whose total is known is answered from the journal. The round that was open is
//! asked again with the same bytes, because signatures are deterministic. The survivors are those that were named
//! before or, while no share can have left, fewer. The totals are the only secrets in the journal.

use std::sync::Arc;

use super::{
    Aggregator, AggregatorConfig, Event, Millis, Output,
    env::Pending,
    record::{Entry, Question, ReadyDeck, Record},
    round::Round,
};
use crate::{error::Error, suite::Hash};

impl Aggregator {
    /// Resumes the run of these entries, given in their order. The application puts its questions again from the first;
    /// questions that were answered before get their answer at once.
    ///
    /// # Errors
    /// As [`Aggregator::new`], and `Error::Journal` where the entries contradict each other or belong to something else.
    pub fn resume(
        config: AggregatorConfig,
        records: impl IntoIterator<Item = Record>,
        now: Millis,
    ) -> Result<Aggregator, Error> {
        let bad = |why: &str| Error::Journal(why.to_owned());
        let mut records = records.into_iter();
        let Some(Record(Entry::Run { session, run })) = records.next() else {
            return Err(bad("it does not begin with a run"));
        };
        let mut a = Aggregator::idle(config, now, run)?;
        if session != a.env.session {
            return Err(bad("it belongs to another plan, roster or aggregator"));
        }
        for record in records {
            a.replay(record.0)?;
        }
        a.unfinished.patience = Some(now.after(a.env.timing.join));
        match &a.deck {
            None => a.open_deck(now),
            Some(d) => {
                let (index, members, threshold) = (d.index, a.cohort(), d.threshold);
                a.out.push_back(Output::Event(Event::DeckReady { index, members, threshold }));
            }
        }
        Ok(a)
    }

    fn replay(&mut self, entry: Entry) -> Result<(), Error> {
        let bad = |why: &str| Error::Journal(why.to_owned());
        let sites = self.peers.len();
        let sound = |set: &[u16]| set.is_sorted_by(|a, b| a < b) && set.iter().all(|s| usize::from(*s) < sites);
        match entry {
            Entry::Run { .. } => return Err(bad("it holds two runs")),
            Entry::Opened { index } if index >= self.next_deck => self.next_deck = index + 1,
            Entry::Opened { .. } => return Err(bad("a deck in it was opened twice")),
            Entry::Deck(deck) => {
                if deck.index >= self.next_deck || !sound(&deck.members) || deck.slots == 0 {
                    return Err(bad("a deck in it was never opened"));
                }
                if self.cohort.is_none() {
                    self.cohort = Some(deck.members.iter().copied().collect());
                }
                let used_up = self.deck.as_ref().is_none_or(|d| d.next_slot >= d.slots);
                *(if used_up && self.unfinished.open.is_none() { &mut self.deck } else { &mut self.spare }) =
                    Some(deck);
            }
            Entry::Asked(q) => {
                if self.spare.as_ref().is_some_and(|d| d.index == q.deck) {
                    self.deck = self.spare.take();
                }
                let next = |d: &&mut ReadyDeck| d.index == q.deck && d.next_slot == q.slot && q.slot < d.slots;
                let Some(d) = self.deck.as_mut().filter(next) else {
                    return Err(bad("a question in it has no slot"));
                };
                if self.unfinished.open.is_some() || !sound(&q.cohort) {
                    return Err(bad("a question in it has no total and another follows"));
                }
                d.next_slot += 1;
                self.unfinished.open = Some((q, None));
            }
            Entry::Named { named: now, shares } => match &mut self.unfinished.open {
                Some((q, named)) if now.alive.iter().all(|s| q.cohort.contains(s)) && sound(&now.alive) => {
                    self.cohort = Some(now.alive.iter().copied().collect());
                    *named = Some((now, shares));
                }
                _ => return Err(bad("survivors in it belong to no question")),
            },
            Entry::Total { total, opening } => {
                let Some((q, _)) = self.unfinished.open.take().filter(|(q, _)| q.words as usize == total.values.len())
                else {
                    return Err(bad("a total in it belongs to no question"));
                };
                let (round, directory) = (self.reopen(&q, Millis(0))?, self.directory().unwrap_or_default());
                // The question is kept as it was sent, and so is what opened its total.
                let asked = self.env.opening.then(|| round.ask.clone());
                self.follow(round.context, &total.values, opening.as_deref());
                let opened = self.opening.clone().filter(|_| opening.is_some());
                self.unfinished.said.extend(asked.into_iter().chain(opened).map(|frame| (directory, frame)));
                self.unfinished.past.push_back((q, total));
            }
        }
        Ok(())
    }

    /// What a process before this one sent to every site, in its order, with the directory of the deck: the questions of rounds that are
    /// over, and their openings. Nothing the second time, and where totals are not opened.
    pub fn take_said(&mut self) -> Vec<(Hash, Arc<Vec<u8>>)> {
        std::mem::take(&mut self.unfinished.said)
    }

    /// The round of a question, as it was opened.
    fn reopen(&self, q: &Question, now: Millis) -> Result<Round, Error> {
        let deck = self.deck.as_ref().filter(|d| d.index == q.deck);
        let deck = deck.ok_or_else(|| Error::Journal("a question in it has no deck".into()))?;
        let previous = (self.previous_context, self.previous_total);
        Ok(Round::open(&self.env, deck, q, previous, now))
    }

    /// Whether an earlier process put this question. Its total is then reported again, or its round resumed.
    ///
    /// # Errors
    /// `Error::Journal` if it put another one.
    pub(super) fn asked_before(&mut self, query: &[u8], words: usize, now: Millis) -> Result<bool, Error> {
        let same = |question: &Question| match question.is(query, words) {
            true => Ok(()),
            false => Err(Error::Journal("this run would ask something else now than it asked before".into())),
        };
        if let Some((question, total)) = self.unfinished.past.pop_front() {
            same(&question)?;
            self.tell(total);
        } else if let Some((question, named)) = self.unfinished.open.take() {
            same(&question)?;
            let mut round = self.reopen(&question, now)?;
            if let Some((named, shares)) = named {
                round.bind(named, shares);
            }
            self.put(round);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Sites need time to notice that the process they spoke to is another.
    pub(super) fn be_patient(&self, pending: &mut Pending) {
        if let Some(until) = self.unfinished.patience {
            pending.deadline = pending.deadline.max(until);
        }
    }

    pub(super) fn persist(&mut self, entry: Entry) {
        self.out.push_back(Output::Persist(Record(entry)));
    }
}

#[cfg(test)]
mod tests;
