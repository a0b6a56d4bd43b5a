//! What the entries of a ledger add up to, for one set of rows ([LED-7]).

use std::collections::BTreeMap;

use veilsum_cluster::Prepared;
use veilsum_proto::{
    identity::Identity,
    ledger::{Answer, Entry},
    message::Disclosure,
    policy::{Cost, Smooth, Spent},
    suite::{self, Hash},
};

use super::{
    near,
    smooth::{Kept, Measured},
};

/// Name of the question that counts rows.
const COUNT: &str = "count_rows";
/// Name of the question about a batch that the intermediary judges.
const JUDGED: &str = "judged_validation";
/// Names of the questions of such a batch.
const VALIDATIONS: [&str; 3] = [JUDGED, "validation", "fuzzy_validation"];

/// The rows that a ledger counts for.
#[derive(Clone, PartialEq, Eq)]
pub struct Data {
    /// The operator's name for them.
    pub name: String,
    /// Digest under a key of this site's, so that nobody can try rows against a ledger.
    pub rows: Hash,
}

impl Data {
    /// These rows under this name.
    pub fn of(name: &str, identity: &Identity, rows: &Prepared) -> Data {
        let digest = digest_of_rows(rows);
        Data { name: name.to_owned(), rows: suite::hash("rows in a ledger", &[&*identity.seed(), &digest.0]) }
    }
}

/// Digest of the rows that answers are made of, for their owner alone: whoever guesses them could try them against it.
pub fn digest_of_rows(rows: &Prepared) -> Hash {
    let bytes: Vec<u8> = rows.packed().to_rows().as_slice().iter().flat_map(|x| x.to_le_bytes()).collect();
    suite::hash("rows behind blur", &[&bytes])
}

/// One total that these rows went into.
struct Given {
    plan: Hash,
    /// Those whose total it is.
    cohort: Hash,
    rows: Hash,
    answer: Answer,
}

/// What a session has come to.
struct Course {
    /// The name of its run in the last frame that left.
    run: Hash,
    /// That name has changed since the last answer.
    anew: bool,
    last: Option<Last>,
}

/// The last answer of a session.
struct Last {
    slot: Option<(u32, u16)>,
    asked: Hash,
    /// Its place in the account, and whether it stands there for this answer alone.
    given: usize,
    own: bool,
}

/// What was given away about one set of rows: whatever stands under its name, and whatever was answered from the same rows
/// under another name.
pub struct Account {
    data: Data,
    given: Vec<Given>,
    courses: BTreeMap<Hash, Course>,
    runs: u64,
    spent: Spent,
    measured: Measured,
}

/// What an answer would become if its total were opened over fewer sites than were asked.
pub struct Smaller {
    /// The answer.
    pub answer: Answer,
    /// As from [`Account::nearest`], of all totals but its own.
    pub nearest: Option<u64>,
    /// The very answer was given before, in another total.
    pub repeated: bool,
}

impl Account {
    /// Nothing was given away yet.
    pub fn of(data: Data) -> Account {
        let measured = Measured::default();
        Account { data, given: Vec::new(), courses: BTreeMap::new(), runs: 0, spent: Spent::default(), measured }
    }

    /// Records of smooth questions: those that it has answered are measured by them.
    pub fn keep(&mut self, kept: impl IntoIterator<Item = Kept>) {
        self.measured.keep(kept);
    }

    /// Whether it has this record.
    pub fn knows(&self, record: &Kept) -> bool {
        self.measured.knows(record)
    }

    /// Measures what smooth questions told that were answered since this was called last; until then their numbers count one by
    /// one ([POL-9]).
    pub fn measure(&mut self) {
        self.spent.smooth = self.measured.told();
    }

    /// What they and this one would tell; `None` where it cannot be measured.
    pub fn measure_with(&mut self, record: &Kept, cost: &Cost) -> Option<Smooth> {
        self.measure();
        self.measured.with(record, cost)
    }

    /// Takes an entry of the ledger.
    pub fn take(&mut self, entry: &Entry) {
        if entry.data != self.data.name && entry.rows != self.data.rows {
            return;
        }
        let fresh = Course { run: entry.run, anew: true, last: None };
        let course = self.courses.entry(entry.session).or_insert(fresh);
        // A name may come back after another one: whoever chooses names does not choose how many runs there were.
        course.anew |= course.run != entry.run;
        course.run = entry.run;
        let Some(cohort) = entry.cohort else { return };
        if entry.discloses == Disclosure::SelfMaskShares {
            self.opened(&entry.session, entry.slot, cohort);
            return;
        }
        let Some(answer) = &entry.answer else { return };
        let behind = course.last.as_ref().is_some_and(|last| entry.slot <= last.slot);
        if (course.anew || behind) && ![COUNT, JUDGED].contains(&answer.kind.as_str()) {
            self.runs += 1;
        }
        course.anew = false;
        let known = self.find(&cohort, &entry.rows, answer);
        let given = known.unwrap_or(self.given.len());
        if known.is_none() {
            self.give(Given { plan: entry.plan, cohort, rows: entry.rows, answer: answer.clone() });
        }
        let last = Last { slot: entry.slot, asked: cohort, given, own: known.is_none() };
        if let Some(course) = self.courses.get_mut(&entry.session) {
            course.last = Some(last);
        }
    }

    fn give(&mut self, given: Given) {
        self.spent.add(&given.answer.cost);
        self.measured.left(&given.plan, &given.answer);
        self.given.push(given);
    }

    /// The total is that of the sites that were left; nobody can have one over those who were asked.
    fn opened(&mut self, session: &Hash, slot: Option<(u32, u16)>, cohort: Hash) {
        let last = self.courses.get_mut(session).and_then(|course| course.last.as_mut());
        let Some(last) = last.filter(|last| last.slot == slot) else { return };
        let given = &mut self.given[last.given];
        if given.cohort == cohort {
            return;
        }
        if last.own {
            given.cohort = cohort;
            return;
        }
        // The one before was over others, and now there are two.
        let second = Given { plan: given.plan, cohort, rows: given.rows, answer: given.answer.clone() };
        (last.given, last.own) = (self.given.len(), true);
        self.give(second);
    }

    /// All of it, for an answer of `session` in `run` at `slot`.
    pub fn spent(&self, session: &Hash, run: Option<Hash>, slot: Option<(u32, u16)>) -> Spent {
        let another = run.is_some_and(|run| {
            let course = self.courses.get(session);
            // An answer that is sent again has its slot.
            course.is_none_or(|c| c.anew || c.run != run || c.last.as_ref().is_some_and(|last| slot < last.slot))
        });
        Spent { runs: self.runs + u64::from(another), ..self.spent }
    }

    /// rho in 10^-9 of all answers with noise under this plan.
    pub fn rho_of(&self, plan: &Hash) -> u64 {
        let of_plan = self.given.iter().filter(|g| g.plan == *plan);
        of_plan.filter_map(|g| g.answer.cost.nano_rho).fold(0, u64::saturating_add)
    }

    /// Whether this very answer was given in a total over these very sites before. An answer with noise never was: each is a
    /// draw of its own, and two say more than one.
    pub fn gave(&self, cohort: &Hash, answer: &Answer) -> bool {
        self.find(cohort, &self.data.rows, answer).is_some()
    }

    /// Whether this is the last answer of a session, which is to be sent once more.
    pub fn again(&self, session: &Hash, slot: Option<(u32, u16)>, cohort: &Hash, answer: &Answer) -> bool {
        let last = self.courses.get(session).filter(|course| !course.anew).and_then(|course| course.last.as_ref());
        last.is_some_and(|last| {
            (last.slot, last.asked) == (slot, *cohort) && same(&self.given[last.given].answer, answer)
        })
    }

    fn find(&self, cohort: &Hash, rows: &Hash, answer: &Answer) -> Option<usize> {
        let exact = answer.cost.nano_rho.is_none();
        self.given.iter().position(|g| exact && g.cohort == *cohort && g.rows == *rows && same(&g.answer, answer))
    }

    /// How far the nearest question of the same kind is that was answered without noise in a total over other sites
    /// ([POL-7]); 0 for the very same one. How many sites there are is no record, so counts do not ask.
    pub fn nearest(&self, plan: &Hash, cohort: &Hash, answer: &Answer) -> Option<u64> {
        self.nearest_but(None, plan, cohort, answer)
    }

    fn nearest_but(&self, own: Option<usize>, plan: &Hash, cohort: &Hash, answer: &Answer) -> Option<u64> {
        if answer.kind == COUNT {
            return None;
        }
        // Within a plan the draws are the plan's; another plan may have chosen them.
        let others = |g: &Given| g.cohort != *cohort || (g.answer.drawn != answer.drawn && g.plan != *plan);
        let judged = |kind: &str| VALIDATIONS.contains(&kind);
        let alike = |kind: &str| {
            kind == answer.kind || ((kind == JUDGED || answer.kind == JUDGED) && judged(kind) && judged(&answer.kind))
        };
        let apart = |g: &Given| {
            if g.answer.question == answer.question { Some(0) } else { near::distance(answer, &g.answer) }
        };
        self.given
            .iter()
            .enumerate()
            .filter(|(at, g)| Some(*at) != own && others(g) && alike(&g.answer.kind))
            .filter(|(_, g)| g.answer.cost.nano_rho.is_none())
            .filter_map(|(_, g)| apart(g))
            .min()
    }

    /// The last answer of `session` at `slot`, if its total is now to be over others than were asked.
    pub fn smaller(&self, session: &Hash, slot: Option<(u32, u16)>, cohort: &Hash) -> Option<Smaller> {
        let last = self.courses.get(session)?.last.as_ref().filter(|last| last.slot == slot)?;
        let given = &self.given[last.given];
        if last.asked == *cohort {
            return None;
        }
        Some(Smaller {
            answer: given.answer.clone(),
            nearest: self.nearest_but(last.own.then_some(last.given), &given.plan, cohort, &given.answer),
            repeated: self.find(cohort, &given.rows, &given.answer).is_some(),
        })
    }

    /// Whether an answer has left in this session.
    pub fn answered(&self, session: &Hash) -> bool {
        self.courses.get(session).is_some_and(|course| course.last.is_some())
    }

    /// Answers by kind.
    pub fn kinds(&self) -> Vec<(String, u64)> {
        let mut kinds: Vec<(String, u64)> = Vec::new();
        for given in &self.given {
            match kinds.iter_mut().find(|(kind, _)| *kind == given.answer.kind) {
                Some((_, n)) => *n += 1,
                None => kinds.push((given.answer.kind.clone(), 1)),
            }
        }
        kinds
    }
}

/// Whether two answers from the same rows are the same numbers.
fn same(a: &Answer, b: &Answer) -> bool {
    (a.question, a.cost, a.drawn) == (b.question, b.cost, b.drawn)
}
