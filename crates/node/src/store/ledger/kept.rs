//! What is kept of an account for a plan that this site said yes to ([POL-8]).

use std::time::Duration;

use veilsum_proto::{
    Error,
    ledger::{Note, Reservation},
    policy::Policy,
    suite::Hash,
};

use super::{Ledger, LedgerError};
use crate::{
    agreed::Federation,
    release::{Left, Yes, judge, judge_rest},
};

/// For how long what a plan spends is kept after a yes to its proposal; a member that stands by keeps it anew before it lapses.
pub const KEPT_FOR_A_PROPOSAL: Duration = Duration::from_secs(24 * 3_600);
/// The same once its run has begun, if nobody takes it up again.
pub const KEPT_FOR_A_RUN: Duration = Duration::from_secs(7 * 24 * 3_600);

impl Ledger {
    /// Judges a whole plan and keeps what it spends until `kept` from `now` (seconds since 1970), in one step: nobody else has the
    /// ledger meanwhile. A run that was interrupted, and has not ended, is judged by what it has still to spend. Yes, or the rule of
    /// a no.
    ///
    /// # Errors
    /// [`LedgerError`] where the ledger cannot be written.
    pub fn keep(
        &mut self,
        federation: &Federation,
        policy: &Policy,
        now: u64,
        kept: Duration,
    ) -> Result<Result<Yes, Error>, LedgerError> {
        let (plan, account) = (federation.terms.hash(), self.book().account());
        let verdict = match account.rho_of(&plan) > 0 && account.kept_for(&plan).is_some() {
            true => judge_rest(federation, policy, account, now),
            false => judge(federation, policy, account, now),
        };
        if let Ok(Yes { nano_rho: Some(nano_rho), .. }) = verdict {
            let enough = now.saturating_add(kept.as_secs() / 2);
            let there = account.kept_for(&plan).is_some_and(|it| it.nano_rho == nano_rho && it.until >= enough);
            if !there {
                self.reserve(plan, Reservation { nano_rho, until: now.saturating_add(kept.as_secs()) })?;
            }
        }
        Ok(verdict)
    }

    /// What is kept for this plan and not spent is free again: its run is over, or another plan was proposed in its place.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn free(&mut self, plan: &Hash) -> Result<(), LedgerError> {
        match self.book().account().kept_for(plan) {
            None => Ok(()),
            Some(_) => self.reserve(*plan, Reservation { nano_rho: 0, until: 0 }),
        }
    }

    fn reserve(&mut self, plan: Hash, kept: Reservation) -> Result<(), LedgerError> {
        self.note(Note::Reserved(kept), &Left { plan, ..Left::default() }, Hash::default())
    }
}
