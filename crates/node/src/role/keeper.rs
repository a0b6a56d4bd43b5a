//! The ledger that both conversations of a site share, and the door through it ([`crate::release::decide`]).

use std::sync::{Arc, Mutex, PoisonError};

use veilsum_proto::{
    Error,
    ledger::Note,
    policy::{Asked, Consent},
    release::Standing,
    suite::Hash,
};

use super::config::ClientConfig;
use crate::{
    error::Failure,
    release::{Answering, Data, Known, Left, Offer, Origin, Shown, decide},
    store::Ledger,
};

/// The ledger that both conversations of a site share.
#[derive(Clone)]
pub(super) struct Keeper {
    ledger: Arc<Mutex<Ledger>>,
    /// Different rows that are possible, where this site's own suggest few.
    domain: Option<u64>,
    shown: Arc<Mutex<Shown>>,
}

impl Keeper {
    /// This site's ledger: in its state folder, or as long as the process where it keeps no state.
    pub(super) fn open(config: &ClientConfig) -> Result<Keeper, Failure> {
        let data = Data::of(&config.site.data, &config.party.identity, &*config.rows);
        let identity = config.party.identity.clone();
        let ledger = match &config.state {
            Some(folder) => {
                Ledger::open(folder, config.head.as_deref(), identity, data, config.party.federation.terms.hash())?
            }
            None => Ledger::in_memory(identity, data),
        };
        let ledger = recognised(ledger, &config.origin)?;
        let domain = config.rows.possible_rows(&config.party.federation.work.widths());
        Ok(Keeper { ledger: Arc::new(Mutex::new(ledger)), domain, shown: Arc::default() })
    }

    /// What this site states of its data set when it sends keys.
    pub(super) fn standing(&self) -> Standing {
        self.with(|ledger| ledger.book().standing())
    }

    /// For both conversations: the intermediary opens nothing itself.
    pub(super) fn show(&self, shown: Shown) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// As [`Shown::of`].
    pub(super) fn shown(&self, cohort: &[u16], max_rows: u64) -> u64 {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).of(cohort, max_rows)
    }

    /// What this site answers from, and under what.
    pub(super) fn answering<'a>(&self, config: &'a ClientConfig) -> Answering<'a> {
        Answering {
            identity: &config.party.identity,
            roster: &config.party.federation.roster,
            terms: &config.party.federation.terms,
            work: &config.party.federation.work,
            policy: &config.site.policy,
            rows: &*config.rows,
            domain: self.domain,
        }
    }

    /// Decides on a question and, where the answer is yes, lets its frame leave. The ledger is held from the look at what was
    /// given away to the promise.
    ///
    /// # Errors
    /// `Error::Refused`, for the operator.
    pub(super) fn decide(
        &self,
        config: &ClientConfig,
        asked: &Asked,
        left: &Left,
        offer: &Offer<'_>,
    ) -> Result<Consent, Error> {
        let site = self.answering(config);
        self.with(|ledger| {
            let decision = decide(&site, ledger.book_mut(), asked, left, offer)?;
            if decision.only_reported {
                tracing::warn!("the release rule would refuse this answer; this site's policy only reports it");
            }
            if let Some(record) = decision.record {
                ledger.keep(record);
            }
            Ok(decision.consent)
        })
    }

    /// Does something with the ledger alone.
    pub(super) fn with<T>(&self, what: impl FnOnce(&mut Ledger) -> T) -> T {
        // What a conversation that panicked has written down is on disk like any other entry.
        what(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// [LED-8]: a ledger that knows these rows, or that nothing was answered from. Columns that are new are written down.
fn recognised(mut ledger: Ledger, origin: &Origin) -> Result<Ledger, Failure> {
    match ledger.book().known(origin)? {
        Known::Same(new) if new.is_empty() => {}
        Known::Same(new) => ledger.note(Note::Columns(new), &Left::default(), Hash::default())?,
        other => return Err(other.refusal()),
    }
    Ok(ledger)
}
