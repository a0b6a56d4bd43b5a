//! The account of a state folder: what the entries of its ledger add up to.

use std::collections::{BTreeMap, BTreeSet};

use veilsum_proto::{message::Disclosure, standing::Answered, suite::Hash};

use crate::{
    entry::{Answer, Entry, Event, Frame, Note, Place, Table, Talk, Totals},
    met::Met,
    policy::{Bound, Unit},
};

/// What was given away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Answers.
    pub answers: u64,
    /// Numbers without noise.
    pub scalars: u64,
    /// rho in 10^-9.
    pub nano_rho: u64,
}

impl Spent {
    fn add(&mut self, answer: &Answer) {
        self.answers = self.answers.saturating_add(1);
        match answer.cost.nano_rho {
            Some(rho) => self.nano_rho = self.nano_rho.saturating_add(rho),
            None => self.scalars = self.scalars.saturating_add(answer.cost.scalars),
        }
    }
}

/// What an account's totals are, for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// All of them carry noise.
    Noisy,
    /// Some are exact, or were agreed to: no promise holds any more.
    Exact,
}

/// Everything that was given away about the people of a state folder, as its ledger says.
#[derive(Default)]
pub struct Account {
    /// The usual before the first entry.
    bound: Bound,
    spent: Spent,
    kind: Option<Kind>,
    /// rho in 10^-9 of all answers under a plan.
    of_plans: BTreeMap<Hash, u64>,
    /// Deck and slot in which seeds or shares left last, and whether shares did, by session and run.
    gave: BTreeMap<(Hash, Hash), ((u32, u16), bool)>,
    /// Deck and slot of the last answer that was charged, by session and run.
    charged: BTreeMap<(Hash, Hash), (u32, u16)>,
    /// The same of the last one that left.
    last: BTreeMap<(Hash, Hash), (u32, u16)>,
    /// Digests of the questions that were answered, by session.
    questions: BTreeMap<Hash, BTreeSet<Hash>>,
    /// The tables of exact answers, each with the plan under which it answered last, in the order in which they last did.
    tables: Vec<(Hash, Table)>,
    /// The sets of sites that the operator accepted ([POL-10]).
    sets: BTreeSet<Hash>,
    /// Plans that the operator agreed to ([POL-9], [POL-10]).
    agreed: BTreeMap<Hash, Totals>,
    /// The whole prices of plans whose runs have begun and not ended ([POL-8]).
    begun: BTreeMap<Hash, u64>,
    /// Answers that ever left ([LED-11]).
    answered: Answered,
    /// What is kept of others' ledgers.
    met: Met,
}

impl Account {
    /// Takes an entry of the ledger.
    pub fn take(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Note(note) => self.note(note),
            Event::Frame(frame) => self.frame(frame),
        }
    }

    fn frame(&mut self, frame: &Frame) {
        let Frame { talk: Talk { session, run, .. }, round: Some(place), .. } = frame else { return };
        let slot = (place.deck, place.slot);
        let shares = frame.discloses == Disclosure::SelfMaskShares;
        if shares {
            self.met.total(*session, *run, slot, &place.cohort);
        }
        if shares || frame.discloses == Disclosure::RoundSeeds {
            self.gave.insert((*session, *run), (slot, shares));
        }
        if frame.discloses == Disclosure::MaskedWords {
            self.answered = self.answered.and(session, run, slot);
            self.last.insert((*session, *run), slot);
        }
    }

    fn charge(&mut self, Talk { plan, session, run }: &Talk, place: &Place, answer: &Answer) {
        self.charged.insert((*session, *run), (place.deck, place.slot));
        self.questions.entry(*session).or_default().insert(answer.question);
        self.spent.add(answer);
        if let Some(nano_rho) = answer.cost.nano_rho {
            self.kind.get_or_insert(Kind::Noisy);
            let of_plan = self.of_plans.entry(*plan).or_default();
            *of_plan = of_plan.saturating_add(nano_rho);
        }
        if let Some(table) = answer.table {
            self.kind = Some(Kind::Exact);
            self.tables.retain(|(_, before)| *before != table);
            self.tables.push((*plan, table));
            if let Some(totals @ Totals::Exact(None)) = self.agreed.get_mut(plan) {
                *totals = Totals::Exact(Some(table));
            }
        }
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::Signer => {}
            Note::Account(bound) => self.bound = *bound,
            Note::Met { talk, deck, all, members } => self.met.take(talk, *deck, (*all, members)),
            Note::Sites(set) => drop(self.sets.insert(*set)),
            Note::Agreed { plan, totals } => {
                if let Totals::Exact(_) = totals {
                    self.kind = Some(Kind::Exact);
                }
                self.agreed.insert(*plan, *totals);
            }
            Note::Begun { plan, nano_rho } => {
                self.kind.get_or_insert(Kind::Noisy);
                self.begun.insert(*plan, *nano_rho);
            }
            Note::Ended(plan) => drop(self.begun.remove(plan)),
            Note::Charged { talk, place, answer } => self.charge(talk, place, answer),
        }
    }

    /// What the account promises.
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// Whether the operator accepted these sites as a cohort ([POL-10]).
    pub fn names(&self, set: &Hash) -> bool {
        self.sets.contains(set)
    }

    /// Whether the operator agreed to this plan ([POL-9], [POL-10]); if its totals are exact, to those of the table `now`, where that is
    /// known.
    pub fn has_agreed(&self, plan: &Hash, now: Option<&Table>) -> bool {
        match (self.agreed.get(plan), now) {
            (Some(Totals::Exact(Some(table))), Some(now)) => table == now,
            (agreed, _) => agreed.is_some(),
        }
    }

    /// What its totals are, for good: by the first run that begins, answer, or agreement to exact totals. Nothing before. An agreement to
    /// exact totals ends the promise of an account with noise.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The tables of all exact answers ever, each with the plan under which it answered last. No bound holds for the rows behind them.
    pub fn tables(&self) -> &[(Hash, Table)] {
        &self.tables
    }

    /// Whether the run of this plan has begun and not ended.
    pub fn has_begun(&self, plan: &Hash) -> bool {
        self.begun.contains_key(plan)
    }

    /// Whether its unit is settled: by the first run that begins, or answer.
    pub fn is_settled(&self) -> bool {
        self.kind.is_some()
    }

    /// What was spent before, if the account is of this unit from now on.
    pub(crate) fn before_of(&self, unit: Unit) -> u64 {
        self.bound.of_unit(unit).before
    }

    /// What was given away, also from other folders before.
    pub fn spent(&self) -> Spent {
        Spent { nano_rho: self.spent.nano_rho.saturating_add(self.bound.before), ..self.spent }
    }

    /// rho in 10^-9 of all answers with noise under this plan.
    pub fn rho_of(&self, plan: &Hash) -> u64 {
        self.of_plans.get(plan).copied().unwrap_or(0)
    }

    /// rho in 10^-9 that is spent, with what the runs that have begun may still spend, `beside` one plan's ([POL-8]).
    pub fn committed(&self, beside: Option<&Hash>) -> u64 {
        let others = self.begun.iter().filter(|(plan, _)| Some(*plan) != beside);
        let rest = others.map(|(plan, price)| price.saturating_sub(self.rho_of(plan)));
        rest.fold(self.spent().nano_rho, u64::saturating_add)
    }

    /// How far this ledger has come ([LED-11]).
    pub fn answered(&self) -> Answered {
        self.answered
    }

    /// What is kept of others' ledgers.
    pub fn met(&self) -> &Met {
        &self.met
    }

    /// Different questions that were answered in this session, over all its runs, and `question`.
    pub fn questions_of(&self, session: &Hash, question: &Hash) -> u64 {
        let known = self.questions.get(session);
        known.map_or(0, |known| known.len() as u64) + u64::from(known.is_none_or(|known| !known.contains(question)))
    }

    /// Deck and slot in which seeds or shares of this conversation left last, and whether shares did.
    pub fn gave(&self, session: Hash, run: Hash) -> Option<((u32, u16), bool)> {
        self.gave.get(&(session, run)).copied()
    }

    /// Whether an answer was charged in this round, or in a later one of its run ([JRN-2]).
    pub fn has_charged(&self, session: Hash, run: Hash, slot: (u32, u16)) -> bool {
        self.charged.get(&(session, run)).is_some_and(|last| *last >= slot)
    }

    /// Whether an answer left in this round, or in a later one of its run. What was sent then stands in the journal.
    pub(crate) fn has_answered(&self, talk: &Talk, place: &Place) -> bool {
        self.last.get(&(talk.session, talk.run)).is_some_and(|last| *last >= (place.deck, place.slot))
    }
}
