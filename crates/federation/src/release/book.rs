//! A site's book: what it gave away of its rows and has promised to give, for both of its conversations ([LED-7], [REL-5]).
//!
//! It is the pure part of a ledger. The caller locks it while it looks and promises, so that the other conversation
//! cannot promise in between (`two_conversations_promise_one_block`).

use std::{collections::BTreeMap, sync::Arc};

use veilsum_proto::{
    Rule,
    identity::Identity,
    ledger::{Answer, Entry, Note},
    met::{Met, SetBack, Talk},
    policy::{Cost, Spent},
    release::{self, Broken, Member, Standing},
    suite::Hash,
};

use super::{
    account::{Account, Data, Known},
    origin::Origin,
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

/// An answer that was agreed to.
struct Promise {
    context: Hash,
    answer: Answer,
    /// What it adds to the account; `None` where it was given before.
    cost: Option<Cost>,
    /// The block of its total that this site is in.
    block: Vec<(Hash, u32)>,
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
            self.account.gave(&cohort, &self.data.rows, answer)
                || self.account.last_in(&left.session, left.slot, &cohort, answer) == Some(&self.data.rows)
        })
    }

    /// [LED-7]: an answer over `block` was agreed to. It counts from now on, and the frame of this context may leave.
    ///
    /// # Errors
    /// [`Broken`] where the keys of the deck were exchanged for another version of these rows ([REL-7]), or the other conversation
    /// has promised an answer over another block, or over other versions of this one, that has not left yet ([REL-5]).
    pub fn promise(&mut self, left: &Left, answer: Answer, block: Vec<(Hash, u32)>) -> Result<(), Broken> {
        let broken = |what, rule| Err(Broken { what, site: None, rule });
        let own = self.identity.account();
        let stated = block.iter().find(|(id, _)| *id == own).map(|(_, version)| *version);
        if stated != Some(self.account.version()) {
            let what = "asks in a deck whose keys were exchanged for an earlier version of these rows; a new run exchanges new ones";
            return broken(what, Rule::Rel7);
        }
        if self.promised.iter().any(|(session, promise)| *session != left.session && promise.block != block) {
            return broken(
                "asks these rows in another block than the one in which the other aggregator asks them",
                Rule::Rel5,
            );
        }
        let cost = (!self.repeats(left, &answer)).then_some(answer.cost);
        self.promised.insert(left.session, Promise { context: left.context, answer, cost, block });
        Ok(())
    }

    /// Withdraws what was promised in this conversation and has not left, because the conversation is set up anew
    /// ([KEX-9]).
    pub fn take_back(&mut self, session: &Hash) {
        self.promised.remove(session);
    }

    /// [LED-8]: how the rows at hand, which came from `origin`, relate to this ledger, where something was answered
    /// before.
    pub fn known(&self, origin: &Origin) -> Known {
        self.account.recognises(origin, &self.identity)
    }

    /// What this site states of its data set ([REL-5], [REL-7]) and of its ledger ([LED-11]).
    pub fn standing(&self) -> Standing {
        let block = self.account.block().map(|block| block.id);
        Standing {
            account: Some(self.identity.account()),
            block,
            version: self.account.version(),
            answered: self.account.answered(),
        }
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
        Ok((!met.has(&talk, deck, &members)).then_some(Note::Met { deck, all, members }))
    }

    /// The answer that may leave in the round of `left`. It was promised for exactly this context, over the block that
    /// these rows belong to, and if it has noise, it leaves for the first time.
    ///
    /// # Errors
    /// [`Unpromised`] where nothing of that kind was promised.
    pub fn due(&self, left: &Left) -> Result<Due, Unpromised> {
        let promise = self.promised.get(&left.session).filter(|p| p.context == left.context).ok_or(Unpromised)?;
        // One slot has one noise, so the same slot must have the same words, also where the rows are others.
        if let Some(cohort) = &left.cohort
            && promise.answer.cost.nano_rho.is_some()
            && self.account.last_in(&left.session, left.slot, cohort, &promise.answer).is_some()
        {
            return Err(Unpromised);
        }
        // [REL-5]: whatever was checked before, these words would fix another block.
        let id = release::block_id(promise.block.iter().map(|(id, _)| *id));
        if self.account.block().is_some_and(|block| block.id != id) {
            return Err(Unpromised);
        }
        Ok(Due { answer: promise.answer.clone(), block: promise.block.clone() })
    }

    /// Withdraws what was promised for the round `context` of this conversation.
    pub fn undo(&mut self, session: &Hash, context: &Hash) {
        if self.promised.get(session).is_some_and(|promise| promise.context == *context) {
            self.promised.remove(session);
        }
    }
}

/// An answer that may leave.
pub struct Due {
    /// The part of it that the ledger records.
    pub answer: Answer,
    /// The block of its total that this site is in.
    pub block: Vec<(Hash, u32)>,
}

/// No such answer was promised.
#[derive(Debug)]
pub struct Unpromised;
