//! A conversation of one aggregator with all sites: its state machine, theirs, and the link to the real one.

use std::{collections::VecDeque, sync::Arc};

use chacha20::ChaCha20Rng;
use veilsum_node::carrier::{LinkReceiver, LinkSender};
use veilsum_proto::{
    aggregator::{self, Aggregator, AggregatorConfig, Millis, Timing},
    identity::Identity,
    policy::{Asked, Floor},
    roster::PartyId,
    site::{Site, SiteConfig},
    suite::Hash,
};

use super::plans::Case;

/// The conversation with one aggregator.
pub(super) struct Talk {
    pub(super) identity: Arc<Identity>,
    pub(super) session: Hash,
    pub(super) hub: Aggregator,
    /// The twin of the real site, and all others.
    pub(super) sites: Vec<Site>,
    pub(super) link: Option<(LinkSender, LinkReceiver)>,
    /// What the twin was asked, until the real site has answered.
    pub(super) asked: Option<Asked>,
    /// What the twin sent on its own, until the real site has.
    pub(super) twins: VecDeque<Vec<u8>>,
    /// The round that each site answered last.
    pub(super) answered: Vec<Option<(Hash, (u32, u16))>>,
    /// Frames for the aggregator.
    pub(super) inbox: Vec<(u16, Vec<u8>)>,
    pub(super) now: u64,
}

/// What everybody but the real site demands: nothing.
pub(super) fn toy() -> Floor {
    Floor { max_rounds: u32::MAX, ..Floor::default() }
}

impl Talk {
    pub(super) fn new(case: &Case, role: PartyId, rng: &mut ChaCha20Rng) -> Talk {
        let (federation, ids) = (&case.cast.federation, &case.cast.identities);
        let (roster, terms) = (federation.roster.clone(), federation.terms.clone());
        let identity = ids[usize::from(role == PartyId::Intermediary)].clone();
        let site = |i: usize| SiteConfig {
            identity: ids[i + 2].clone(),
            roster: roster.clone(),
            terms: terms.clone(),
            floor: if i == 0 { case.policy.floor.clone() } else { toy() },
            aggregator: role,
        };
        let sites = (0..roster.sites.len()).map(|i| Site::new(site(i)).expect("a site")).collect();
        let config = AggregatorConfig {
            identity: identity.clone(),
            roster: roster.clone(),
            slots: terms.slots,
            terms: terms.clone(),
            role,
            timing: Timing { join: 1_000, phase: 1_000, grace: 1_000, resend: 1_000_000 },
        };
        let hub = Aggregator::new(config, Millis(0), rng).expect("an aggregator");
        let session = case.cast.party(0).session(role);
        let (link, asked, twins, inbox) = (None, None, VecDeque::new(), Vec::new());
        let answered = vec![None; roster.sites.len()];
        Talk { identity, session, hub, sites, link, asked, twins, answered, inbox, now: 0 }
    }

    /// The aggregator is told something now.
    pub(super) fn hears(&mut self, input: aggregator::Input<'_>) {
        self.hub.handle(input, Millis(self.now));
    }
}
