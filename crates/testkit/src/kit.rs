//! Identities, roster and terms of a small federation, the same every time. The core's own unit tests have this file, too.

use std::sync::Arc;

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

use veilsum_proto::{
    Error,
    aggregator::{AggregatorConfig, Timing},
    identity::Identity,
    plan::{Sites, Terms},
    policy::{Asked, Consent, Floor},
    roster::{Member, PartyId, Roster},
    site::SiteConfig,
};

/// A roster, its identities and terms for `n` sites.
pub struct Kit {
    /// Coordinator, intermediary, then the sites.
    pub identities: Vec<Arc<Identity>>,
    /// The roster.
    pub roster: Arc<Roster>,
    /// The terms.
    pub terms: Arc<Terms>,
    /// Every site's own floor.
    pub floor: Floor,
    /// Which of the two aggregators it is about.
    pub role: PartyId,
}

impl Kit {
    /// As [`Kit::new`], with totals over all sites alone.
    pub fn same(n: usize, change: impl FnOnce(&mut Terms)) -> Kit {
        Kit::new(n, |terms| {
            terms.sites = Sites::Same;
            change(terms);
        })
    }

    /// Deterministic identities; `change` adjusts the default terms. Any site may be lost.
    pub fn new(n: usize, change: impl FnOnce(&mut Terms)) -> Kit {
        let mut rng = ChaCha20Rng::seed_from_u64(n as u64);
        let identities: Vec<Arc<Identity>> = (0..n + 2).map(|_| Arc::new(Identity::generate(&mut rng))).collect();
        let member = |i: usize, name: String| Member { name, key: identities[i].public(), address: String::new() };
        let roster = Roster {
            name: "test".into(),
            coordinator: member(0, "hub".into()),
            intermediary: member(1, "counter".into()),
            sites: (0..n).map(|i| member(i + 2, format!("site-{i}"))).collect(),
        };
        let mut terms = Terms {
            roster: roster.hash(),
            min_cohort: 3,
            threshold: 0,
            colluders: 0,
            sites: Sites::Any,
            slots: 8,
            max_rows: 1_000,
            min_total_rows: 0,
            application: Vec::new(),
        };
        change(&mut terms);
        let (roster, terms) = (Arc::new(roster), Arc::new(terms));
        Kit { identities, roster, terms, floor: Floor::default(), role: PartyId::Coordinator }
    }

    /// The configuration of site `i` towards the aggregator.
    pub fn site(&self, i: u16) -> SiteConfig {
        let identity = self.identities[usize::from(i) + 2].clone();
        let (roster, terms, floor) = (self.roster.clone(), self.terms.clone(), self.floor.clone());
        SiteConfig { identity, roster, terms, floor, aggregator: self.role }
    }

    /// The aggregator's configuration.
    pub fn coordinator(&self) -> AggregatorConfig {
        let identity = self.identities[usize::from(self.role == PartyId::Intermediary)].clone();
        let (roster, terms, slots) = (self.roster.clone(), self.terms.clone(), self.terms.slots);
        let timing = Timing { join: 60_000, phase: 20_000, grace: 2_000, resend: 500 };
        AggregatorConfig { identity, roster, terms, role: self.role, timing, slots }
    }

    /// What a site says to a question by the protocol's own floor alone.
    ///
    /// # Errors
    /// As [`Asked::consent`].
    pub fn consents(&self, asked: &Asked) -> Result<Consent, Error> {
        Ok(asked.consent(&self.floor, self.terms.least(asked.sites), 1)?)
    }
}
