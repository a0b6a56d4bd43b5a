//! When the run of a plan begins and ends, as the account counts it ([POL-8]).

use veilsum_proto::{ledger::Note, policy::Policy, suite::Hash};

use super::{Ledger, LedgerError};
use crate::{
    agreed::Federation,
    release::{Left, Verdict, Yes, judge_table},
};

impl Ledger {
    /// Judges a whole plan and notes that its run begins, in one step: nobody else has the ledger meanwhile. A run that was interrupted
    /// goes on.
    ///
    /// # Errors
    /// [`LedgerError`] where the ledger cannot be written.
    pub fn begin_run(&mut self, federation: &Federation, policy: &Policy) -> Result<Verdict, LedgerError> {
        let (plan, account) = (federation.terms.hash(), self.book().account());
        let verdict = judge_table(federation, policy, account, self.book().data().table.as_ref());
        if let (Verdict::Yes(Yes { nano_rho: Some(price), .. }), false) = (&verdict, account.has_begun(&plan)) {
            self.of_plan(plan, Note::Begun(*price))?;
        }
        Ok(verdict)
    }

    /// The run of this plan is over: what it has not spent is free again.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn end_run(&mut self, plan: &Hash) -> Result<(), LedgerError> {
        if self.book().account().has_begun(plan) { self.of_plan(*plan, Note::Ended) } else { Ok(()) }
    }

    fn of_plan(&mut self, plan: Hash, note: Note) -> Result<(), LedgerError> {
        self.note(note, &Left { plan, ..Left::default() }, Hash::default())
    }
}
