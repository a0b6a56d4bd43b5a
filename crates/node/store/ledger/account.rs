//! What the entries of a ledger add up to, for one set of rows ([LED-7]).

use std::collections::BTreeSet;

use veilsum_cluster::Prepared;
use veilsum_proto::{
    identity::Identity,
    ledger::{self, Answer, Entry, Places},
    message::Disclosure,
    policy::Spent,
    suite::{self, Hash},
};

/// Name of the question that counts rows.
const COUNT: &str = "count_rows";

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
        let bytes: Vec<u8> = rows.packed().to_rows().as_slice().iter().flat_map(|x| x.to_le_bytes()).collect();
        let digest = suite::hash("rows behind blur", &[&bytes]);
        Data { name: name.to_owned(), rows: suite::hash("rows in a ledger", &[&*identity.seed(), &digest.0]) }
    }
}

/// One answer on these rows.
struct Given {
    plan: Hash,
    session: Hash,
    slot: Option<(u32, u16)>,
    run: Hash,
    /// Those who were asked, and those whose total it is.
    asked: Hash,
    cohort: Hash,
    rows: Hash,
    answer: Answer,
}

/// What was given away about one set of rows: whatever stands under its name, and whatever was answered from the same rows
/// under another name.
pub struct Account {
    data: Data,
    given: Vec<Given>,
    runs: BTreeSet<Hash>,
    spent: Spent,
}

impl Account {
    /// Nothing was given away yet.
    pub fn of(data: Data) -> Account {
        Account { data, given: Vec::new(), runs: BTreeSet::new(), spent: Spent::default() }
    }

    /// Takes an entry of the ledger.
    pub fn take(&mut self, entry: &Entry) {
        let (Some(cohort), slot) = (entry.cohort, entry.slot) else { return };
        if entry.discloses == Disclosure::SelfMaskShares {
            // The total is that of the sites that were left; nobody can have one over those who were asked.
            let same = |g: &&mut Given| (g.session, g.run, g.slot) == (entry.session, entry.run, slot);
            if let Some(given) = self.given.iter_mut().rev().find(same) {
                given.cohort = cohort;
            }
            return;
        }
        let Some(answer) = &entry.answer else { return };
        if entry.data != self.data.name && entry.rows != self.data.rows {
            return;
        }
        if answer.kind != COUNT {
            self.runs.insert(entry.run);
        }
        if self.knows(&entry.plan, &cohort, &entry.rows, answer) {
            return;
        }
        self.spent.add(&answer.cost);
        self.given.push(Given {
            plan: entry.plan,
            session: entry.session,
            slot,
            run: entry.run,
            asked: cohort,
            cohort,
            rows: entry.rows,
            answer: answer.clone(),
        });
    }

    /// All of it, for an answer in `run`.
    pub fn spent(&self, run: Option<Hash>) -> Spent {
        let another = run.is_some_and(|run| !self.runs.contains(&run));
        Spent { runs: self.runs.len() as u64 + u64::from(another), ..self.spent }
    }

    /// Whether this very answer was given to these very sites before. Where there is noise the plan and those who were asked must
    /// be the same too: others get other noise, and two draws say more than one.
    pub fn gave(&self, plan: &Hash, cohort: &Hash, answer: &Answer) -> bool {
        self.knows(plan, cohort, &self.data.rows, answer)
    }

    fn knows(&self, plan: &Hash, cohort: &Hash, rows: &Hash, answer: &Answer) -> bool {
        self.given.iter().any(|g| {
            let same_sites = match answer.cost.nano_rho {
                None => g.cohort == *cohort,
                Some(_) => g.asked == *cohort && g.plan == *plan,
            };
            same_sites && (&g.rows, g.answer.question, g.answer.cost) == (rows, answer.question, answer.cost)
        })
    }

    /// How far the nearest question of the same kind is that was answered without noise in a total over other sites
    /// ([POL-7]); 0 for the very same one. How many sites there are is no record, so counts do not ask.
    pub fn nearest(&self, cohort: &Hash, kind: &str, question: &Hash, centres: &[Places]) -> Option<u64> {
        if kind == COUNT {
            return None;
        }
        let others = self.given.iter().filter(|g| g.cohort != *cohort && g.answer.kind == kind);
        let apart = |g: &Given| {
            if g.answer.question == *question { Some(0) } else { ledger::distance(centres, &g.answer.centres) }
        };
        others.filter(|g| g.answer.cost.nano_rho.is_none()).filter_map(apart).min()
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
