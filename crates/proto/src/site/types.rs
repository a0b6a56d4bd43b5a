//! The inputs and outputs of a site.

use std::sync::Arc;

use crate::{
    identity::Identity,
    journal::Record,
    message::Disclosure,
    plan::Terms,
    policy::{Asked, Consent, Floor},
    roster::{PartyId, Roster},
    rule::Rule,
    standing::Member,
    suite::Hash,
};

/// Who this site is and what it agreed to.
pub struct SiteConfig {
    /// Its long-term identity.
    pub identity: Arc<Identity>,
    /// The verified roster.
    pub roster: Arc<Roster>,
    /// The verified plan.
    pub terms: Arc<Terms>,
    /// Its own floor.
    pub floor: Floor,
    /// Which aggregator this machine talks to.
    pub aggregator: PartyId,
}

/// What a site is told.
pub enum Input<'a> {
    /// A frame came from the aggregator.
    Message(&'a [u8]),
    /// The application answers a query: the fixed-point vector, which is masked in place.
    Contribute {
        /// From [`Asked::consent`].
        consent: Consent,
        /// One ring element a word of the layout.
        values: Vec<u64>,
    },
    /// The application or its policy will not answer.
    Refuse {
        /// Of the query.
        context: Hash,
        /// The rule under which it refuses, told to the aggregator without the reason.
        rule: Rule,
    },
}

/// What a site wants done, in order.
pub enum Output {
    /// Make this durable before any later `Send`.
    Persist(Record),
    /// Replace the journal by these entries, durably, before any later `Send`: what it held of closed slots is wiped.
    Rewrite(Vec<Record>),
    /// Send this frame to the aggregator.
    Send {
        /// The whole frame, which the site keeps for as long as it may be asked for it again.
        bytes: Arc<Vec<u8>>,
        /// What it gives away.
        discloses: Disclosure,
    },
    /// Tell the application.
    Event(Event),
}

/// What a site tells its application.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A deck is ready: its number, members and threshold.
    DeckReady {
        /// Number of the deck in this run.
        index: u32,
        /// Sites in it.
        members: usize,
        /// Shares needed to open a self-mask.
        threshold: usize,
    },
    /// All members of a deck have signed its directory. Before it sends what follows, the application compares what each of them
    /// states of its ledger with what it has kept, and keeps it durably; or it ends its part here ([LED-11]).
    Met {
        /// Number of the deck in this run.
        deck: u32,
        /// The members and what each states.
        members: Vec<Member>,
    },
    /// A query awaits [`Input::Contribute`] or [`Input::Refuse`].
    Asked(Asked),
    /// The total of a round, recomputed by this site from what the aggregator opened. It is exactly the sum of what these
    /// sites sent.
    Opened {
        /// The slot.
        slot: (u32, u16),
        /// Hash of the deck's directory: what a third party needs beside the frames to recompute the total.
        directory: Hash,
        /// One ring element a word.
        values: Vec<u64>,
        /// Whose total it is.
        cohort: Vec<u16>,
    },
    /// Shares were released: this site's part of the round is done.
    Released {
        /// The slot.
        slot: (u32, u16),
        /// Sites of the cohort that were missing.
        missing: Vec<u16>,
    },
}
