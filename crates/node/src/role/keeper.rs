//! The ledger that both conversations of a site share, and the door through it ([`Ledger::consent`]).

use std::sync::{Arc, Mutex};

use veilsum_door::{Bound, Data, Granted, Ledger, LedgerError, No, Offer, Place, Talk};
use veilsum_proto::{
    policy::Asked,
    roster::{PartyId, Roster},
    standing::{Member, Standing},
    suite::Hash,
};

use super::config::ClientConfig;
use crate::{error::Failure, store::held};

/// The ledger that both conversations of a site share.
#[derive(Clone)]
pub(super) struct Keeper {
    ledger: Arc<Mutex<Ledger>>,
}

impl Keeper {
    /// This site's ledger: in its state folder, or as long as the process where it keeps no state.
    pub(super) fn open(config: &ClientConfig) -> Result<Keeper, Failure> {
        let identity = config.party.identity.clone();
        let data = Data::of(&config.site.data, &identity, config.rows.rows(), &config.rows.digest());
        let ledger = match &config.state {
            Some(folder) => Ledger::open(folder, identity, data, Some(config.party.federation.terms.hash()))?,
            // It ends with this process, so its policy says its cap.
            None => {
                let mut ledger = Ledger::in_memory(identity, data);
                ledger.bind(config.site.policy.nano_rho.map_or_else(Bound::default, Bound::of))?;
                ledger
            }
        };
        let ledger = begun(ledger, config)?;
        Ok(Keeper { ledger: Arc::new(Mutex::new(ledger)) })
    }

    /// What this site states of its account when it sends keys.
    pub(super) fn standing(&self) -> Standing {
        self.with(|ledger| ledger.standing())
    }

    /// [LED-11]: compares what these members of a deck state of their ledgers with what is kept, and keeps it.
    ///
    /// # Errors
    /// A [`Failure`] that names the member whose ledger was set back; nothing of it is then kept.
    pub(super) fn meet(&self, roster: &Roster, talk: &Talk, deck: u32, members: &[Member]) -> Result<(), Failure> {
        let met = self.with(|ledger| ledger.meet(talk, deck, members))?;
        Ok(met.map_err(|back| back.error(roster.name_of(PartyId::Site(back.site))))?)
    }

    /// Decides on a question and, if the answer is yes, charges it. The ledger is held from the look at what was given away to the charge.
    ///
    /// # Errors
    /// [`No`] within, for the operator; [`LedgerError`] if it cannot be charged.
    pub(super) fn consent(
        &self,
        config: &ClientConfig,
        asked: &Asked,
        at: (&Talk, Place),
        offer: Offer,
    ) -> Result<Result<Granted, No>, LedgerError> {
        let facts = config.party.federation.facts();
        self.with(|ledger| ledger.consent(&facts, &config.site.policy, asked, at, offer))
    }

    /// [POL-8]: the run is over, and what it has not spent is free again.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub(super) fn ended(&self, plan: &Hash) -> Result<(), LedgerError> {
        self.with(|ledger| ledger.end_run(plan))
    }

    /// Does something with the ledger alone.
    pub(super) fn with<T>(&self, what: impl FnOnce(&mut Ledger) -> T) -> T {
        // What a conversation that panicked has written down is on disk like any other entry.
        what(&mut held(&self.ledger))
    }
}

/// [POL-8] to [POL-10]: the plan is answered whole or not at all. Before this site dials anybody it judges the plan, and notes that its
/// run begins, so that no other run can have what it may spend.
fn begun(mut ledger: Ledger, config: &ClientConfig) -> Result<Ledger, Failure> {
    let (facts, policy) = (config.party.federation.facts(), &config.site.policy);
    if config.agreed {
        ledger.agree(&facts, policy)??;
    }
    ledger.begin_run(&facts, policy)?.yes()?;
    Ok(ledger)
}
