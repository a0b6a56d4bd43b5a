//! The account of a data set: what the entries of its ledger add up to ([LED-7]).

use std::collections::{BTreeMap, BTreeSet};

use veilsum_proto::{
    identity::Identity,
    ledger::{Answer, Column, Entry, Note},
    message::Disclosure,
    met::{Met, Talk},
    policy::Spent,
    release::{self, Answered},
    suite::{self, Hash},
};

use crate::{
    answerer::Answerer,
    error::{Code, Failure},
};

use super::origin::{Origin, Together};

/// The rows that a ledger counts for.
#[derive(Clone, PartialEq, Eq)]
pub struct Data {
    /// The operator's name for them, which is only a label.
    pub name: String,
    /// Digest, under a key of this site, of the rows in the plan's units, from which answers are computed.
    pub rows: Hash,
}

impl Data {
    /// These rows under this name.
    pub fn of(name: &str, identity: &Identity, rows: &dyn Answerer) -> Data {
        let digest = rows.digest();
        let rows = suite::hash("rows in a ledger", &[&*identity.digest_secret(), &digest.0]);
        Data { name: name.to_owned(), rows }
    }
}

/// One total that these rows are in.
struct Given {
    plan: Hash,
    /// The sites whose total it is.
    cohort: Hash,
    rows: Hash,
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

/// Everything that was given away about a data set, as its ledger says. A key has one data set. Its name is a label,
/// and rows that change are still the same data set.
#[derive(Default)]
pub struct Account {
    given: Vec<Given>,
    courses: BTreeMap<Hash, Course>,
    /// Digests of the questions that were answered, by session.
    questions: BTreeMap<Hash, BTreeSet<Hash>>,
    /// Places in `given` of exact answers, by cohort, rows and question.
    places: BTreeMap<[Hash; 3], Vec<usize>>,
    spent: Spent,
    /// The version of the rows at the last answer without noise.
    exact: Option<u32>,
    /// Plans without noise that the operator agreed to, and the version of the rows then ([POL-9]).
    agreed: BTreeMap<Hash, u32>,
    /// The whole prices of plans whose runs have begun and not ended ([POL-8]).
    begun: BTreeMap<Hash, u64>,
    /// The columns as they were declared or seen last.
    columns: BTreeMap<String, Hash>,
    version: u32,
    /// The block that the data set belongs to.
    block: Option<Membership>,
    /// Answers that ever left ([LED-11]).
    answered: Answered,
    /// What is kept of others' ledgers.
    met: Met,
}

/// The block of a data set ([REL-5]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    /// Its name.
    pub id: Hash,
    /// What its sites are known by, and how often the rows of each had changed at the last answer.
    pub members: Vec<(Hash, u32)>,
    /// Digests of the masked words that left over it and may, as far as is known, enter a total.
    words: BTreeSet<Hash>,
}

impl Membership {
    /// Whether only the frames with these digests have left over it.
    pub fn rests_on(&self, digests: &BTreeSet<Hash>) -> bool {
        self.words.is_subset(digests)
    }
}

/// How the rows at hand relate to a ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// Nothing has been answered from any rows yet, or it was from these rows. The list names the columns that are new.
    Same(Vec<Column>),
    /// These columns have other values than before.
    Other(Vec<String>),
    /// Every column has the values that it had before, but these columns do not have them in the same rows.
    OtherRows(Vec<Together>),
}

impl Known {
    /// [LED-8]: the reason why a site does not answer from other rows than before.
    pub fn refusal(&self) -> Failure {
        let what = match self {
            Known::OtherRows(rows) => {
                let names = rows.first().map_or(String::new(), |rows| rows.0.join(", "));
                format!("the values of {names} are those of before, and stand together in other rows")
            }
            Known::Other(columns) => format!("other values in {}", columns.join(", ")),
            Known::Same(_) => "no column differs".to_owned(),
        };
        Failure::new(
            Code::Policy,
            format!("the rows are not those that this site answered from before: {what} [LED-8]"),
            "give the rows as they were; or, where rows were added, removed or corrected, say so with `veilsum ledger changed`, once every \
             site of the block that changes is ready to",
        )
    }
}

impl Account {
    /// Takes an entry of the ledger.
    pub fn take(&mut self, entry: &Entry) {
        self.version = entry.version;
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
        let known = self.find(&cohort, &entry.rows, answer);
        let given = known.unwrap_or(self.given.len());
        if answer.cost.nano_rho.is_none() {
            self.exact = Some(entry.version);
        }
        if known.is_none() {
            self.give(Given { plan: entry.plan, cohort, rows: entry.rows, answer: answer.clone() });
        }
        let last = Last { slot: entry.slot, asked: cohort, given, own: known.is_none() };
        if let Some(course) = self.courses.get_mut(&entry.session) {
            course.last = Some(last);
        }
        self.fix(entry);
    }

    /// [REL-5]: masked words have left, so the data set belongs to this block.
    fn fix(&mut self, entry: &Entry) {
        if let Some(members) = &entry.block {
            let id = release::block_id(members.iter().map(|(id, _)| *id));
            let words = self.block.take().filter(|known| known.id == id).map(|known| known.words).unwrap_or_default();
            self.block = Some(Membership { id, members: members.clone(), words });
        }
        if let Some(block) = &mut self.block {
            block.words.insert(entry.digest);
        }
    }

    fn note(&mut self, note: &Note, entry: &Entry) {
        let mut take = |columns: &[Column]| {
            self.columns.extend(columns.iter().map(|column| (column.name.clone(), column.values)));
        };
        match note {
            Note::Columns(columns) | Note::Changed(columns) => take(columns),
            Note::Separate(columns) => {
                take(columns);
                self.block = None;
            }
            // [REL-6]: where all words that left over the block are in no total, the block is undone.
            Note::Undone => {
                let undone = |block: &mut Membership| block.words.remove(&entry.digest) && block.words.is_empty();
                if self.block.as_mut().is_some_and(undone) {
                    self.block = None;
                }
            }
            Note::Signer => {}
            Note::Met { deck, all, members } => {
                let talk = Talk { plan: entry.plan, session: entry.session, run: entry.run };
                self.met.take(&talk, *deck, (*all, members));
            }
            Note::Agreed => drop(self.agreed.insert(entry.plan, entry.version)),
            Note::Begun(price) => drop(self.begun.insert(entry.plan, *price)),
            Note::Ended => drop(self.begun.remove(&entry.plan)),
        }
    }

    /// Whether the operator agreed to this plan without noise, for the rows as they are, and it may still be answered ([POL-9]).
    pub fn has_agreed(&self, plan: &Hash) -> bool {
        self.agreed.get(plan) == Some(&self.version) && !self.changed_since_exact()
    }

    /// Whether exact totals have left of an earlier version of these rows: those of now would be subtracted from them.
    pub fn changed_since_exact(&self) -> bool {
        self.exact.is_some_and(|version| version != self.version)
    }

    /// Whether exact totals have ever left. No bound holds for the rows behind them.
    pub fn is_exact(&self) -> bool {
        self.exact.is_some()
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

    /// The block that the data set belongs to; none before its first answer.
    pub fn block(&self) -> Option<&Membership> {
        self.block.as_ref()
    }

    /// How far this ledger has come ([LED-11]).
    pub fn answered(&self) -> Answered {
        self.answered
    }

    /// What is kept of others' ledgers.
    pub fn met(&self) -> &Met {
        &self.met
    }

    /// How often the rows have changed.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// What these rows are to this ledger ([LED-8]).
    pub fn recognises(&self, origin: &Origin, identity: &Identity) -> Known {
        self.known(&origin.columns(identity, &self.together()))
    }

    /// What rows with these columns are to this ledger ([LED-8]).
    pub fn known(&self, columns: &[Column]) -> Known {
        let other = |c: &&Column| self.columns.get(&c.name).is_some_and(|values| *values != c.values);
        let (rows, alone): (Vec<_>, Vec<_>) =
            columns.iter().filter(other).map(|c| c.name.clone()).partition(|name| Together::named(name).is_some());
        if !alone.is_empty() {
            return Known::Other(alone);
        }
        if !rows.is_empty() {
            return Known::OtherRows(rows.iter().filter_map(|name| Together::named(name)).collect());
        }
        Known::Same(columns.iter().filter(|c| !self.columns.contains_key(&c.name)).cloned().collect())
    }

    /// Names of the columns that are known.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        self.columns.keys().filter(|name| Together::named(name).is_none())
    }

    /// The columns that were answered from together, as far as it is known.
    pub fn together(&self) -> Vec<Together> {
        self.columns.keys().filter_map(|name| Together::named(name)).collect()
    }

    fn give(&mut self, given: Given) {
        self.spent.add(&given.answer.cost);
        if given.answer.cost.nano_rho.is_none() {
            self.places.entry(place(&given.cohort, &given.rows, &given.answer)).or_default().push(self.given.len());
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
            let moved = place(&given.cohort, &given.rows, &given.answer);
            given.cohort = cohort;
            let to = place(&given.cohort, &given.rows, &given.answer);
            if let Some(places) = self.places.get_mut(&moved) {
                places.retain(|at| *at != last.given);
                self.places.entry(to).or_default().push(last.given);
            }
            return;
        }
        // The one before was over others, and now there are two.
        let second = Given { plan: given.plan, cohort, rows: given.rows, answer: given.answer.clone() };
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

    /// Whether exactly this answer was given from `rows` in a total over exactly these sites before. An answer with
    /// noise does not count as given before, because each is an independent draw and two say more than one.
    pub fn gave(&self, cohort: &Hash, rows: &Hash, answer: &Answer) -> bool {
        self.find(cohort, rows, answer).is_some()
    }

    /// Digest of the rows that the last answer of a session was made of, where this is that answer, in its own slot.
    pub fn last_in(&self, session: &Hash, slot: Option<(u32, u16)>, cohort: &Hash, answer: &Answer) -> Option<&Hash> {
        let last = self.courses.get(session).filter(|course| !course.anew).and_then(|course| course.last.as_ref())?;
        let given = &self.given[last.given];
        ((last.slot, last.asked) == (slot, *cohort) && same(&given.answer, answer)).then_some(&given.rows)
    }

    fn find(&self, cohort: &Hash, rows: &Hash, answer: &Answer) -> Option<usize> {
        let places = self.places.get(&place(cohort, rows, answer)).into_iter().flatten();
        places.copied().find(|at| answer.cost.nano_rho.is_none() && same(&self.given[*at].answer, answer))
    }
}

fn place(cohort: &Hash, rows: &Hash, answer: &Answer) -> [Hash; 3] {
    [*cohort, *rows, answer.question]
}

/// Whether two answers are the same numbers, provided that they are from the same rows.
fn same(a: &Answer, b: &Answer) -> bool {
    (a.question, a.cost, a.drawn) == (b.question, b.cost, b.drawn)
}
