//! A site's book: what it gave away of its rows and has promised to give, for both of its conversations ([LED-7]).
//!
//! It is the pure part of a ledger. The caller locks it while it looks and promises, so that the other conversation
//! cannot promise in between.

use std::{collections::BTreeMap, sync::Arc};

use veilsum_proto::{
    identity::Identity,
    ledger::{Answer, Entry, Note},
    met::{Met, SetBack, Talk},
    policy::{Cost, Spent},
    standing::{Member, Standing},
    suite::Hash,
};

use super::account::{Account, Data};

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

/// An answer that was agreed to.
struct Promise {
    context: Hash,
    answer: Answer,
    /// What it adds to the account; `None` where it was given before.
    cost: Option<Cost>,
}

/// What was given away of a data set, and what is promised.
pub struct Book {
    identity: Arc<Identity>,
    data: Data,
    account: Account,
    /// The answer that each conversation has agreed to and that has not left yet, by session.
    promised: BTreeMap<Hash, Promise>,
}

impl Book {
    /// Makes an empty book.
    pub fn new(identity: Arc<Identity>, data: Data) -> Book {
        Book { identity, data, account: Account::default(), promised: BTreeMap::new() }
    }

    /// The rows at hand.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// What was given away on these rows.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Takes an entry of the ledger.
    pub fn take(&mut self, entry: &Entry) {
        self.account.take(entry);
    }

    /// What was given away so far and is promised to the other aggregator, for an answer as `left` says.
    pub fn spent(&self, left: &Left) -> Spent {
        let mut spent = self.account.spent();
        self.promised_elsewhere(&left.session).for_each(|cost| spent.add(&cost));
        spent
    }

    /// rho in 10^-9 of all answers with noise under the plan of `left`, as in [`Book::spent`].
    pub fn rho_of_plan(&self, left: &Left) -> u64 {
        let promised = self.promised_elsewhere(&left.session).filter_map(|cost| cost.nano_rho);
        promised.fold(self.account.rho_of(&left.plan), u64::saturating_add)
    }

    fn promised_elsewhere<'a>(&'a self, session: &'a Hash) -> impl Iterator<Item = Cost> + 'a {
        self.promised.iter().filter(move |(other, _)| *other != session).filter_map(|(_, promise)| promise.cost)
    }

    /// Whether this answer gives nothing away that was not given before: the same numbers from the same sites, or the last
    /// answer of its session once more.
    pub fn repeats(&self, left: &Left, answer: &Answer) -> bool {
        left.cohort.is_some_and(|cohort| {
            self.account.gave(&cohort, answer) || self.account.is_last_in(&left.session, left.slot, &cohort, answer)
        })
    }

    /// [LED-7]: an answer was agreed to. It counts from now on, and the frame of this context may leave.
    pub fn promise(&mut self, left: &Left, answer: Answer) {
        let cost = (!self.repeats(left, &answer)).then_some(answer.cost);
        self.promised.insert(left.session, Promise { context: left.context, answer, cost });
    }

    /// Withdraws what was promised in this conversation and has not left, because the conversation is set up anew
    /// ([KEX-9]).
    pub fn take_back(&mut self, session: &Hash) {
        self.promised.remove(session);
    }

    /// What this site states of its account ([LED-11]).
    pub fn standing(&self) -> Standing {
        Standing { account: Some(self.identity.account()), answered: self.account.answered() }
    }

    /// [LED-11]: what is to be noted before anything is sent in a deck of these members; nothing where it is noted.
    ///
    /// # Errors
    /// [`SetBack`] where what one of them states cannot follow what is kept of it.
    pub fn meet(&self, left: &Left, deck: u32, members: &[Member]) -> Result<Option<Note>, SetBack> {
        let talk = Talk { plan: left.plan, session: left.session, run: left.run };
        let met = self.account.met();
        met.check(&talk, members)?;
        let (all, members) = (Met::all(members), Met::list(members));
        let rows = self.data.table.map_or_else(Hash::default, |table| table.digest);
        Ok((!met.has(&talk, deck, &members)).then_some(Note::Met { deck, all, rows, members }))
    }

    /// The answer that may leave in the round of `left`. It was promised for exactly this context, and if it has
    /// noise, it leaves for the first time.
    ///
    /// # Errors
    /// [`Unpromised`] where nothing of that kind was promised.
    pub fn due(&self, left: &Left) -> Result<Answer, Unpromised> {
        let promise = self.promised.get(&left.session).filter(|p| p.context == left.context).ok_or(Unpromised)?;
        // One slot has one noise, so the same slot must have the same words, also where the rows are others.
        if let Some(cohort) = &left.cohort
            && promise.answer.cost.nano_rho.is_some()
            && self.account.is_last_in(&left.session, left.slot, cohort, &promise.answer)
        {
            return Err(Unpromised);
        }
        Ok(promise.answer.clone())
    }
}

/// No such answer was promised.
#[derive(Debug)]
pub struct Unpromised;
