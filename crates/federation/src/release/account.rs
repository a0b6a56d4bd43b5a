//! The account of a data set: what the entries of its ledger add up to ([LED-7]).

use std::collections::{BTreeMap, BTreeSet};

use veilsum_proto::{
    identity::Identity,
    ledger::{Answer, Entry, Note, Table},
    message::Disclosure,
    met::{Met, Talk},
    policy::Spent,
    standing::Answered,
    suite::{self, Hash},
};

use crate::answerer::Answerer;

/// The rows that a ledger counts for.
#[derive(Clone, PartialEq, Eq)]
pub struct Data {
    /// The operator's name for them, which is only a label.
    pub name: String,
    /// How many they are, and their digest; nothing where they are not read.
    pub table: Option<Table>,
}

impl Data {
    /// These rows under this name.
    pub fn of(name: &str, identity: &Identity, rows: &dyn Answerer) -> Data {
        let digest = suite::hash("rows in a ledger", &[&*identity.digest_secret(), &rows.digest().0]);
        Data { name: name.to_owned(), table: Some(Table { rows: rows.rows(), digest }) }
    }
}

/// One total that these rows are in.
struct Given {
    plan: Hash,
    /// The sites whose total it is.
    cohort: Hash,
    answer: Answer,
}

/// The state of a session.
struct Course {
    /// The name of its run in the last frame that left.
    run: Hash,
    /// Whether that name has changed since the last answer.
    anew: bool,
    last: Option<Last>,
}

/// The last answer of a session.
struct Last {
    slot: Option<(u32, u16)>,
    asked: Hash,
    /// Its place in the account, and whether the entry there is for this answer alone.
    given: usize,
    own: bool,
}

/// Everything that was given away about the people of a state folder, as its ledger says.
#[derive(Default)]
pub struct Account {
    given: Vec<Given>,
    courses: BTreeMap<Hash, Course>,
    /// Digests of the questions that were answered, by session.
    questions: BTreeMap<Hash, BTreeSet<Hash>>,
    /// Places in `given` of exact answers, by cohort and question.
    places: BTreeMap<[Hash; 2], Vec<usize>>,
    spent: Spent,
    /// The tables of exact answers, each with the plan under which it answered last, in the order in which they first did.
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
}

impl Account {
    /// Takes an entry of the ledger.
    pub fn take(&mut self, entry: &Entry) {
        if let Some(note) = &entry.note {
            self.note(note, entry);
            return;
        }
        let fresh = Course { run: entry.run, anew: true, last: None };
        let course = self.courses.entry(entry.session).or_insert(fresh);
        course.anew |= course.run != entry.run;
        course.run = entry.run;
        let Some(cohort) = entry.cohort else { return };
        if entry.discloses == Disclosure::SelfMaskShares {
            self.opened(&entry.session, entry.slot, cohort);
            if let Some(slot) = entry.slot {
                self.met.total(entry.session, entry.run, slot, &cohort);
            }
            return;
        }
        let Some(answer) = &entry.answer else { return };
        self.answered = self.answered.and(&entry.session, &entry.run, entry.slot.unwrap_or_default());
        course.anew = false;
        self.questions.entry(entry.session).or_default().insert(answer.question);
        let known = self.find(&cohort, answer);
        let given = known.unwrap_or(self.given.len());
        if let Some(table) = answer.table {
            self.tables.retain(|(_, before)| *before != table);
            self.tables.push((entry.plan, table));
            self.agreed.entry(entry.plan).and_modify(|agreed| *agreed = agreed.or(Some(table)));
        }
        if known.is_none() {
            self.give(Given { plan: entry.plan, cohort, answer: answer.clone() });
        }
        let last = Last { slot: entry.slot, asked: cohort, given, own: known.is_none() };
        if let Some(course) = self.courses.get_mut(&entry.session) {
            course.last = Some(last);
        }
    }

    fn note(&mut self, note: &Note, entry: &Entry) {
        match note {
            Note::Signer => {}
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

    /// rho in 10^-9 that is spent, with what the begun runs of other plans than this one may still spend ([POL-8]).
    pub fn committed_beside(&self, plan: &Hash) -> u64 {
        let others = self.begun.iter().filter(|(other, _)| *other != plan);
        let rest = others.map(|(other, price)| price.saturating_sub(self.rho_of(other)));
        rest.fold(self.spent.nano_rho, u64::saturating_add)
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

    fn give(&mut self, given: Given) {
        self.spent.add(&given.answer.cost);
        if given.answer.cost.nano_rho.is_none() {
            self.places.entry(place(&given.cohort, &given.answer)).or_default().push(self.given.len());
        }
        self.given.push(given);
    }

    /// The total is that of the sites that were left, so there is none over all sites that were asked.
    fn opened(&mut self, session: &Hash, slot: Option<(u32, u16)>, cohort: Hash) {
        let last = self.courses.get_mut(session).and_then(|course| course.last.as_mut());
        let Some(last) = last.filter(|last| last.slot == slot) else { return };
        let given = &mut self.given[last.given];
        if given.cohort == cohort {
            return;
        }
        if last.own {
            let moved = place(&given.cohort, &given.answer);
            given.cohort = cohort;
            let to = place(&given.cohort, &given.answer);
            if let Some(places) = self.places.get_mut(&moved) {
                places.retain(|at| *at != last.given);
                self.places.entry(to).or_default().push(last.given);
            }
            return;
        }
        // The one before was over others, and now there are two.
        let second = Given { plan: given.plan, cohort, answer: given.answer.clone() };
        (last.given, last.own) = (self.given.len(), true);
        self.give(second);
    }

    /// The whole account.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Different questions that were answered in this session, over all its runs, and `question`.
    pub fn questions_of(&self, session: &Hash, question: &Hash) -> u64 {
        let known = self.questions.get(session);
        known.map_or(0, |known| known.len() as u64) + u64::from(known.is_none_or(|known| !known.contains(question)))
    }

    /// rho in 10^-9 of all answers with noise under this plan.
    pub fn rho_of(&self, plan: &Hash) -> u64 {
        let of_plan = self.given.iter().filter(|g| g.plan == *plan);
        of_plan.filter_map(|g| g.answer.cost.nano_rho).fold(0, u64::saturating_add)
    }

    /// Whether exactly this answer was given in a total over exactly these sites before. An answer with noise does not count as given
    /// before, because each is an independent draw and two say more than one.
    pub fn gave(&self, cohort: &Hash, answer: &Answer) -> bool {
        self.find(cohort, answer).is_some()
    }

    /// Whether this is the last answer of its session, in its own slot.
    pub fn is_last_in(&self, session: &Hash, slot: Option<(u32, u16)>, cohort: &Hash, answer: &Answer) -> bool {
        let course = self.courses.get(session).filter(|course| !course.anew);
        course.and_then(|course| course.last.as_ref()).is_some_and(|last| {
            (last.slot, last.asked) == (slot, *cohort) && same(&self.given[last.given].answer, answer)
        })
    }

    fn find(&self, cohort: &Hash, answer: &Answer) -> Option<usize> {
        let places = self.places.get(&place(cohort, answer)).into_iter().flatten();
        places.copied().find(|at| answer.cost.nano_rho.is_none() && same(&self.given[*at].answer, answer))
    }
}

fn place(cohort: &Hash, answer: &Answer) -> [Hash; 2] {
    [*cohort, answer.question]
}

/// Whether two answers are the same numbers.
fn same(a: &Answer, b: &Answer) -> bool {
    (a.question, a.cost, a.drawn, a.table) == (b.question, b.cost, b.drawn, b.table)
}
