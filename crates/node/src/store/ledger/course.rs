//! When the run of a plan begins and ends, as the account counts it ([POL-8]).

use veilsum_proto::{Error, ledger::Note, policy::Policy, suite::Hash};

use super::{Ledger, LedgerError};
use crate::{
    agreed::Federation,
    release::{Left, Yes, judge},
};

impl Ledger {
    /// Judges a whole plan and notes that its run begins, in one step: nobody else has the ledger meanwhile. A run that was interrupted
    /// goes on. Yes, or the rule of a no.
    ///
    /// # Errors
    /// [`LedgerError`] where the ledger cannot be written.
    pub fn begin_run(&mut self, federation: &Federation, policy: &Policy) -> Result<Result<Yes, Error>, LedgerError> {
        let (plan, account) = (federation.terms.hash(), self.book().account());
        let verdict = judge(federation, policy, account);
        if let (Ok(Yes { nano_rho: Some(price), .. }), false) = (&verdict, account.has_begun(&plan)) {
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
