//! The account of a state folder: what the entries of its ledger add up to, and what is promised beside ([LED-7]).

use std::collections::{BTreeMap, BTreeSet};

use veilsum_proto::{message::Disclosure, standing::Answered, suite::Hash};

use crate::{
    entry::{Answer, Entry, Note, Table},
    met::{Met, Talk},
    policy::Bound,
};

/// To which plan, conversation and round a frame belongs.
#[derive(Clone, Copy, Default)]
pub struct Left {
    /// The plan.
    pub plan: Hash,
    /// The session.
    pub session: Hash,
    /// The run.
    pub run: Hash,
    /// Deck and slot.
    pub slot: Option<(u32, u16)>,
    /// Digest of the keys of the sites whose total this is.
    pub cohort: Option<Hash>,
    /// Context of the frame.
    pub context: Hash,
}

impl Left {
    /// Where nothing but the plan is at issue.
    pub fn of_plan(plan: Hash) -> Left {
        Left { plan, ..Left::default() }
    }

    pub(crate) fn talk(&self) -> Talk {
        Talk { plan: self.plan, session: self.session, run: self.run }
    }
}

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

/// The last answer of a session.
struct Last {
    run: Hash,
    slot: Option<(u32, u16)>,
    cohort: Option<Hash>,
    answer: Answer,
}

/// An answer that was consented to and has not left yet.
struct Promise {
    plan: Hash,
    context: Hash,
    answer: Answer,
    /// Whether it is the last answer of its session once more.
    again: bool,
}

/// No such answer was promised.
#[derive(Debug)]
pub(crate) struct Unpromised;

/// Everything that was given away about the people of a state folder, as its ledger says.
#[derive(Default)]
pub struct Account {
    /// The usual before the first entry.
    bound: Bound,
    spent: Spent,
    /// rho in 10^-9 of all answers under a plan.
    of_plans: BTreeMap<Hash, u64>,
    last: BTreeMap<Hash, Last>,
    /// Digests of the questions that were answered, by session.
    questions: BTreeMap<Hash, BTreeSet<Hash>>,
    /// The tables of exact answers, each with the plan under which it answered last, in the order in which they last did.
    tables: Vec<(Hash, Table)>,
    /// The sets of sites that the operator accepted ([POL-10]).
    sets: BTreeSet<Hash>,
    /// Plans that the operator agreed to, with the table of exact totals ([POL-9]).
    agreed: BTreeMap<Hash, Option<Table>>,
    /// The whole prices of plans whose runs have begun and not ended ([POL-8]).
    begun: BTreeMap<Hash, u64>,
    /// Answers that ever left ([LED-11]).
    answered: Answered,
    /// What is kept of others' ledgers.
    met: Met,
    /// The rows from which this site answers, by session, run and deck.
    decks: BTreeMap<(Hash, Hash, u32), Hash>,
    /// By session: each of a site's two conversations has one at most.
    promised: BTreeMap<Hash, Promise>,
}

impl Account {
    /// Takes an entry of the ledger.
    pub fn take(&mut self, entry: &Entry) {
        if let Some(note) = &entry.note {
            self.note(note, entry);
        }
        if entry.discloses == Disclosure::SelfMaskShares
            && let (Some(slot), Some(cohort)) = (entry.slot, &entry.cohort)
        {
            self.met.total(entry.session, entry.run, slot, cohort);
        }
        let (Some(answer), Some(slot)) = (&entry.answer, entry.slot) else { return };
        self.answered = self.answered.and(&entry.session, &entry.run, slot);
        self.questions.entry(entry.session).or_default().insert(answer.question);
        self.spent.add(answer);
        if let Some(rho) = answer.cost.nano_rho {
            let of_plan = self.of_plans.entry(entry.plan).or_default();
            *of_plan = of_plan.saturating_add(rho);
        }
        if let Some(table) = answer.table {
            self.tables.retain(|(_, before)| *before != table);
            self.tables.push((entry.plan, table));
            self.agreed.entry(entry.plan).and_modify(|agreed| *agreed = agreed.or(Some(table)));
        }
        let last = Last { run: entry.run, slot: entry.slot, cohort: entry.cohort, answer: answer.clone() };
        self.last.insert(entry.session, last);
    }

    fn note(&mut self, note: &Note, entry: &Entry) {
        match note {
            Note::Signer => {}
            Note::Account(bound) => self.bound = *bound,
            Note::Met { deck, all, rows, members } => {
                self.decks.insert((entry.session, entry.run, *deck), *rows);
                let talk = Talk { plan: entry.plan, session: entry.session, run: entry.run };
                self.met.take(&talk, *deck, (*all, members));
            }
            Note::Sites(set) => drop(self.sets.insert(*set)),
            Note::Agreed(table) => drop(self.agreed.insert(entry.plan, *table)),
            Note::Begun(price) => drop(self.begun.insert(entry.plan, *price)),
            Note::Ended => drop(self.begun.remove(&entry.plan)),
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
    /// known. An agreement without a table is to the first one that answers.
    pub fn has_agreed(&self, plan: &Hash, now: Option<&Table>) -> bool {
        let agreed = self.agreed.get(plan);
        agreed.is_some_and(|table| table.as_ref().zip(now).is_none_or(|(table, now)| table == now))
    }

    /// The tables of all exact answers ever, each with the plan under which it answered last. No bound holds for the rows behind them.
    pub fn tables(&self) -> &[(Hash, Table)] {
        &self.tables
    }

    /// Whether the run of this plan has begun and not ended.
    pub fn has_begun(&self, plan: &Hash) -> bool {
        self.begun.contains_key(plan)
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

    /// Digest of the rows from which this site answers in a deck; nothing where it has not met its members ([JRN-2]).
    pub fn rows_in(&self, session: Hash, (run, deck): (Hash, u32)) -> Option<Hash> {
        self.decks.get(&(session, run, deck)).copied()
    }

    /// Different questions that were answered in this session, over all its runs, and `question`.
    pub fn questions_of(&self, session: &Hash, question: &Hash) -> u64 {
        let known = self.questions.get(session);
        known.map_or(0, |known| known.len() as u64) + u64::from(known.is_none_or(|known| !known.contains(question)))
    }

    /// Whether this answer is the last one of its session once more, in its own slot.
    pub(crate) fn repeats(&self, left: &Left, answer: &Answer) -> bool {
        self.last.get(&left.session).is_some_and(|last| {
            (last.run, last.slot, last.cohort) == (left.run, left.slot, left.cohort) && last.answer == *answer
        })
    }

    /// rho in 10^-9 that is spent and promised in the plan's other conversation: of all plans, and of the plan of `left`.
    pub(crate) fn spent_beside(&self, left: &Left) -> (u64, u64) {
        let others = self.promised.iter().filter(|(session, promise)| **session != left.session && !promise.again);
        let others = others.filter_map(|(_, promise)| Some((promise.plan, promise.answer.cost.nano_rho?)));
        let before = (self.spent().nano_rho, self.rho_of(&left.plan));
        others.fold(before, |(all, own), (plan, rho)| {
            (all.saturating_add(rho), own.saturating_add(if plan == left.plan { rho } else { 0 }))
        })
    }

    /// [LED-7]: an answer was consented to. It counts from now on, and the frame of this context may leave.
    pub(crate) fn promise(&mut self, left: &Left, answer: Answer) {
        let again = self.repeats(left, &answer);
        self.promised.insert(left.session, Promise { plan: left.plan, context: left.context, answer, again });
    }

    /// Withdraws what was promised in this conversation and has not left, because the conversation is set up anew
    /// ([KEX-9]).
    pub(crate) fn take_back(&mut self, session: &Hash) {
        self.promised.remove(session);
    }

    /// The answer that may leave in the round of `left`: it was promised for exactly this context, and if it has noise, it leaves for the
    /// first time, because one slot has one noise.
    ///
    /// # Errors
    /// [`Unpromised`] where nothing of that kind was promised.
    pub(crate) fn due(&self, left: &Left) -> Result<Answer, Unpromised> {
        let promise = self.promised.get(&left.session).filter(|p| p.context == left.context).ok_or(Unpromised)?;
        if promise.answer.cost.nano_rho.is_some() && self.repeats(left, &promise.answer) {
            return Err(Unpromised);
        }
        Ok(promise.answer.clone())
    }
}
