//! What every part of a site's state machine knows: who it is, to whom it talks, under which terms.

use std::sync::Arc;

use crate::{
    error::Error,
    identity::{DecodedKeys, Identity, PublicKey},
    message::{Kind, Proof, first_unsigned},
    plan::Terms,
    policy::Floor,
    roster::{PartyId, Roster},
    rule::Rule,
    suite::Hash,
};

pub(crate) struct Env {
    pub(crate) me: u16,
    pub(crate) identity: Arc<Identity>,
    pub(crate) roster: Arc<Roster>,
    /// All sites' keys, and the aggregator's.
    pub(crate) keys: DecodedKeys,
    pub(crate) terms: Arc<Terms>,
    pub(crate) floor: Floor,
    pub(crate) aggregator: PartyId,
    pub(crate) session: Hash,
    /// Whether this aggregator opens its totals to the cohort ([OPN-2]).
    pub(crate) opening: bool,
}

impl Env {
    /// An error of the aggregator's making.
    pub(crate) fn aggregator(&self, what: impl Into<String>, rule: Rule) -> Error {
        Error::peer(self.roster.name_of(self.aggregator), what, rule)
    }

    /// The aggregator is at fault unless this holds.
    pub(crate) fn demand(&self, holds: bool, otherwise: &str, rule: Rule) -> Result<(), Error> {
        if holds { Ok(()) } else { Err(self.aggregator(otherwise, rule)) }
    }

    /// [UNM-1]: towards the intermediary every release needs a certificate, also where nobody is missing.
    pub(crate) fn always_certified(&self) -> bool {
        self.aggregator == PartyId::Intermediary
    }

    /// [POL-1]: the fewest sites that a total of a deck with this threshold covers.
    pub(crate) fn least(&self, threshold: usize) -> usize {
        self.floor.least(self.terms.least(self.roster.sites.len())).max(threshold)
    }

    pub(crate) fn name_of(&self, site: u16) -> String {
        self.roster.name_of(PartyId::Site(site))
    }

    pub(crate) fn key_of(&self, site: u16) -> Option<PublicKey> {
        self.roster.sites.get(usize::from(site)).map(|m| m.key)
    }

    /// The name of the first of these sites that did not sign its proof.
    pub(crate) fn unsigned(&self, sites: &[u16], proofs: &[Proof], kind: Kind, context: &Hash) -> Option<String> {
        let proofs: Vec<_> = sites.iter().copied().zip(proofs.iter().copied()).collect();
        let site = first_unsigned((&self.roster, &self.keys), &proofs, &self.session, kind, context)?;
        Some(self.name_of(site))
    }
}
