//! What a site keeps of the ledgers of those that it meets in decks, so that a ledger that was set back together with everything
//! else on its machine is noticed by the others (spec section 11.2, [LED-11]). Pure; a site's own ledger is where it is kept.
//!
//! *Why no honest member is refused, in whatever order directories arrive.* A member signs a directory that names keys which its
//! reader drew for this deck, and only in the conversation in which it stated what the directory says of it. So that conversation
//! lasted until after the reader had opened this deck, and the reader had kept everything it compares with before that. One process at a
//! time holds the member's ledger ([LED-6]), for one plan, and a conversation has one run, with decks in ascending order. Every
//! conversation of another plan and of another run in the same session, and every earlier deck of this run, therefore came before the
//! statement. The plan's other conversation may go on at the same time: nothing is compared with it. Nor with totals of this run, because
//! a deck may be made ahead of them.

use std::collections::BTreeMap;

use veilsum_proto::{
    Error, Rule,
    standing::{Answered, Member, set_of_sites},
    suite::Hash,
};

use crate::entry::{Stated, Talk};

/// A member states fewer answers than it had given before, or as many with another last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetBack {
    /// Its number in the roster.
    pub site: u16,
    /// Answers that it had given, as it stated, with the totals since then that it was in.
    pub before: u64,
    /// Answers that it states now.
    pub now: u64,
}

impl SetBack {
    /// The error that names this member as `who`.
    pub fn error(&self, who: String) -> Error {
        let SetBack { before, now, .. } = self;
        let what = if before == now {
            format!("its ledger was set back: it states {now} answers as before, and another last one")
        } else {
            format!("its ledger was set back: it states {now} answers, and at least {before} had left it")
        };
        Error::PeerMisbehaved { who, what, rule: Rule::Led11 }
    }
}

/// Answers that a member had given at least, and the link of the last one where no total came after it.
#[derive(Clone, Copy)]
struct Past {
    number: u64,
    link: Option<Hash>,
}

impl Past {
    fn contradicts(&self, now: &Answered) -> bool {
        now.number < self.number || (now.number == self.number && self.link.is_some_and(|link| link != now.link))
    }

    /// The one that says more.
    fn or(self, other: Past) -> Past {
        let more = (other.number, other.link.is_some()) > (self.number, self.link.is_some());
        if more { other } else { self }
    }
}

/// A deck by session, run and number.
type DeckOf = (Hash, Hash, u32);

/// The totals over all members of a deck.
#[derive(Clone)]
struct Totals {
    all: Hash,
    number: u64,
    last: Option<u16>,
}

/// What a member stated in a deck.
#[derive(Clone)]
struct Statement {
    plan: Hash,
    deck: DeckOf,
    answered: Answered,
}

/// What is kept of one member.
#[derive(Clone, Default)]
struct Other {
    /// From before it was met under the plan of `stated`.
    before: Option<Past>,
    stated: Vec<Statement>,
}

/// What is kept of everybody who was met.
#[derive(Clone, Default)]
pub struct Met {
    others: BTreeMap<[u8; 32], Other>,
    decks: BTreeMap<DeckOf, Totals>,
}

impl Met {
    /// [LED-11]: whether what these members state in `talk` can follow what is kept of them.
    ///
    /// # Errors
    /// [`SetBack`] with the first one of whom it cannot.
    pub fn check(&self, talk: &Talk, members: &[Member]) -> Result<(), SetBack> {
        for member @ Member { site, standing, .. } in members {
            let now = standing.answered;
            let Some(other) = self.others.get(&member.id().0) else { continue };
            let kept = other.stated.iter().filter_map(|said| self.past(talk, said)).chain(other.before);
            if let Some(before) = kept.filter(|past| past.contradicts(&now)).map(|past| past.number).max() {
                return Err(SetBack { site: *site, before, now: now.number });
            }
        }
        Ok(())
    }

    /// What a statement means for one that comes in `talk`.
    fn past(&self, talk: &Talk, said: &Statement) -> Option<Past> {
        let (session, run, _) = said.deck;
        if said.plan == talk.plan && session != talk.session {
            return None;
        }
        let Answered { number, link } = said.answered;
        let this_run = (session, run) == (talk.session, talk.run);
        let totals = self.decks.get(&said.deck).filter(|_| !this_run).map_or(0, |deck| deck.number);
        Some(Past { number: number.saturating_add(totals), link: (totals == 0).then_some(link) })
    }

    /// Digest of the keys of these members, as that of a cohort.
    pub fn all(members: &[Member]) -> Hash {
        set_of_sites(members.iter().map(|member| member.key))
    }

    /// What a ledger notes of these members.
    pub fn list(members: &[Member]) -> Vec<Stated> {
        let mut list: Vec<Stated> =
            members.iter().map(|m| Stated { id: m.id(), answered: m.standing.answered }).collect();
        list.sort_unstable_by_key(|stated| stated.id.0);
        list
    }

    /// Whether exactly this was taken of this deck.
    pub fn has(&self, talk: &Talk, deck: u32, (all, members): (Hash, &[Stated])) -> bool {
        let deck = (talk.session, talk.run, deck);
        self.decks.get(&deck).is_some_and(|totals| totals.all == all)
            && members.iter().all(|Stated { id, answered }| {
                let stated = self.others.get(&id.0).map_or(&[][..], |other| &other.stated);
                stated.iter().any(|said| said.deck == deck && said.answered == *answered)
            })
    }

    /// Whether the members of this deck were met ([JRN-2]).
    pub fn has_deck(&self, session: Hash, (run, deck): (Hash, u32)) -> bool {
        self.decks.contains_key(&(session, run, deck))
    }

    /// Takes what all members of a deck state, whose keys have this digest.
    pub fn take(&mut self, talk: &Talk, deck: u32, (all, members): (Hash, &[Stated])) {
        let deck = (talk.session, talk.run, deck);
        for Stated { id, answered } in members {
            let mut other = self.others.remove(&id.0).unwrap_or_default();
            // Only of those who are met now it is known that they have left the plan before.
            let over = other.stated.iter().filter(|said| said.plan != talk.plan);
            let over = over.filter_map(|said| self.past(talk, said));
            other.before = other.before.into_iter().chain(over).reduce(Past::or);
            other.stated.retain(|said| said.plan == talk.plan && said.deck != deck);
            other.stated.push(Statement { plan: talk.plan, deck, answered: *answered });
            self.others.insert(id.0, other);
        }
        self.decks.insert(deck, Totals { all, number: 0, last: None });
    }

    /// This site gave its shares for a total over `cohort`, so everybody in it had answered.
    pub fn total(&mut self, session: Hash, run: Hash, (deck, slot): (u32, u16), cohort: &Hash) {
        if let Some(deck) = self.decks.get_mut(&(session, run, deck))
            && deck.all == *cohort
            && deck.last != Some(slot)
        {
            (deck.number, deck.last) = (deck.number.saturating_add(1), Some(slot));
        }
    }
}

#[cfg(test)]
mod tests;
