//! What an aggregator's set-up and rounds share: who it is, and the messages that have no answer yet.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    timing::{Millis, Timing},
    types::Output,
};
use crate::{
    error::Error,
    identity::{DecodedKeys, Identity},
    message::{self, Kind},
    plan::Terms,
    roster::{PartyId, Roster},
    rule::Rule,
    suite::Hash,
};

pub(crate) struct Env {
    pub(crate) identity: Arc<Identity>,
    pub(crate) roster: Arc<Roster>,
    /// All sites' keys.
    pub(crate) keys: DecodedKeys,
    pub(crate) terms: Arc<Terms>,
    pub(crate) session: Hash,
    pub(crate) timing: Timing,
    /// Whether totals are opened to the cohort ([OPN-2]). Where they are not, survivors are certified also where nobody is missing ([UNM-1]).
    pub(crate) opening: bool,
    /// Bytes of masked inputs up to which they are kept until the round is over ([RND-7]).
    pub(crate) kept: usize,
}

impl Env {
    pub(crate) fn site_error(&self, site: u16, what: impl Into<String>, rule: Rule) -> Error {
        Error::peer(self.name_of(site), what, rule)
    }

    /// This site is at fault unless this holds.
    pub(crate) fn demand(&self, site: u16, holds: bool, otherwise: &str, rule: Rule) -> Result<(), Error> {
        if holds { Ok(()) } else { Err(self.site_error(site, otherwise, rule)) }
    }

    /// A frame whose message is encoded already.
    pub(crate) fn frame_raw(&self, kind: Kind, context: &Hash, message: &[u8]) -> Arc<Vec<u8>> {
        Arc::new(message::frame_encoded(&self.identity, &self.session, kind, context, message))
    }

    pub(crate) fn frame<T: serde::Serialize>(&self, kind: Kind, context: &Hash, message: &T) -> Arc<Vec<u8>> {
        Arc::new(message::frame(&self.identity, &self.session, kind, context, message))
    }

    /// The threshold for `n` sites, if they are enough.
    pub(super) fn enough(&self, n: usize, step: &'static str) -> Result<usize, Error> {
        let sites = self.roster.sites.len();
        let least = self.terms.least(sites);
        let needed = (least..=sites).find(|n| self.terms.threshold_of(*n, sites).is_ok()).unwrap_or(sites);
        if n < needed {
            return Err(Error::Quorum { step: step.into(), alive: n, needed, rule: Rule::Pol1 });
        }
        self.terms.threshold_of(n, sites)
    }

    /// Sites that a total of a deck with this threshold covers at least.
    pub(super) fn least(&self, threshold: usize) -> usize {
        threshold.max(self.terms.least(self.roster.sites.len()))
    }

    pub(super) fn name_of(&self, site: u16) -> String {
        self.roster.name_of(PartyId::Site(site))
    }
}

/// Messages that have no answer yet, and how long their answers are awaited.
pub(crate) struct Pending {
    pub(crate) frames: BTreeMap<u16, Arc<Vec<u8>>>,
    /// Frames sent to each site before its own frame: the opening of the round before, or what a new process may lack.
    pub(crate) before: Vec<Arc<Vec<u8>>>,
    pub(super) deadline: Millis,
    pub(super) resend_at: Millis,
}

impl Pending {
    pub(crate) fn new(frames: BTreeMap<u16, Arc<Vec<u8>>>, wait: u64, env: &Env, now: Millis) -> Self {
        Pending { frames, before: Vec::new(), deadline: now.after(wait), resend_at: now.after(env.timing.resend) }
    }

    /// One frame to all of these sites, for as long as a phase lasts.
    pub(super) fn same(sites: &[u16], frame: &Arc<Vec<u8>>, env: &Env, now: Millis) -> Self {
        Pending::new(sites.iter().map(|site| (*site, frame.clone())).collect(), env.timing.phase, env, now)
    }

    /// What is sent to `site`, in order.
    pub(super) fn for_site(&self, site: u16) -> impl Iterator<Item = Output> {
        let own = self.frames.get(&site).cloned();
        let before = if own.is_some() { self.before.clone() } else { Vec::new() };
        before.into_iter().chain(own).map(move |bytes| Output::Send { to: site, bytes })
    }
}
