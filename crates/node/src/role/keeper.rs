//! The ledger that both conversations of a site share.

use std::sync::{Arc, Mutex};

use veilsum_door::{Bound, Data, Ledger};

use super::config::ClientConfig;
use crate::{error::Failure, store::held};

/// The ledger that both conversations of a site share.
#[derive(Clone)]
pub(super) struct Keeper {
    ledger: Arc<Mutex<Ledger>>,
}

impl Keeper {
    /// This site's ledger: in its state folder, or as long as the process where it keeps no state. [POL-8] to [POL-10]: the plan is answered whole
    /// or not at all. Before this site dials anybody it judges the plan, and notes that its run begins, so that no other run can have what it
    /// may spend.
    pub(super) fn open(config: &ClientConfig) -> Result<Keeper, Failure> {
        let identity = config.party.identity.clone();
        let data = Data::of(&config.site.data, &identity, config.rows.rows(), &config.rows.digest());
        let mut ledger = match &config.state {
            Some(folder) => Ledger::open(folder, identity, data, Some(config.party.federation.terms.hash()))?,
            // It ends with this process, so its policy says its cap.
            None => {
                let mut ledger = Ledger::in_memory(identity, data);
                ledger.bind(config.site.policy.nano_rho.map_or_else(Bound::default, Bound::of))?;
                ledger
            }
        };
        let (facts, policy) = (config.party.federation.facts(), &config.site.policy);
        if config.agreed {
            ledger.agree(&facts, policy)??;
        }
        ledger.begin_run(&facts, policy)?.yes()?;
        Ok(Keeper { ledger: Arc::new(Mutex::new(ledger)) })
    }

    /// Does something with the ledger alone.
    pub(super) fn with<T>(&self, what: impl FnOnce(&mut Ledger) -> T) -> T {
        // What a conversation that panicked has written down is on disk like any other entry.
        what(&mut held(&self.ledger))
    }
}
