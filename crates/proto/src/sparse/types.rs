//! What the parties of the sparse protocol are told and what they want done.

use std::sync::Arc;

use super::{journal::Record, size::Shape};
use crate::{
    aggregator::{Loss, Millis, Timing},
    error::Error,
    identity::Identity,
    plan::Terms,
    policy::{Asked, Consent, Floor},
    roster::{PartyId, Roster},
    suite::Hash,
};

/// Who a site is and what it agreed to.
pub struct SiteConfig {
    /// Its long-term identity.
    pub identity: Arc<Identity>,
    /// The verified roster.
    pub roster: Arc<Roster>,
    /// The verified plan.
    pub terms: Arc<Terms>,
    /// How the sizes of a deck are found; the same at all parties.
    pub shape: Shape,
    /// Its own floor.
    pub floor: Floor,
    /// Which aggregator this machine talks to.
    pub aggregator: PartyId,
}

/// What a site is told.
pub enum SiteInput<'a> {
    /// A frame came from the aggregator.
    Message(&'a [u8]),
    /// The application answers a query: the fixed-point vector, which is masked in place.
    Contribute {
        /// From [`crate::policy::decide`].
        consent: Consent,
        /// One ring element a word.
        values: Vec<u64>,
    },
    /// The application or its policy will not answer.
    Refuse {
        /// Of the query.
        context: Hash,
        /// The rule under which it refuses.
        rule: String,
    },
}

/// What a site wants done, in order.
pub enum SiteOutput {
    /// Make this durable before any later `Send`.
    Persist(Record),
    /// Replace the journal by these entries, durably, before any later `Send`.
    Rewrite(Vec<Record>),
    /// Send this frame to the aggregator.
    Send {
        /// The whole frame.
        bytes: Vec<u8>,
        /// What it gives away.
        discloses: Disclosure,
    },
    /// Tell the application.
    Event(SiteEvent),
}

/// What a site tells its application.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SiteEvent {
    /// This site's part of a deck is done.
    DeckReady {
        /// Number of the deck in this run.
        index: u32,
        /// Sites in it.
        members: usize,
        /// Whether this site is of its committee.
        on_committee: bool,
    },
    /// A query awaits [`SiteInput::Contribute`] or [`SiteInput::Refuse`].
    Asked(Asked),
    /// As a member of the committee, this site gave away its shares for one round.
    Released {
        /// The slot.
        slot: u16,
    },
}

/// What an outgoing frame of a site gives away. There is no variant for plain values, because nothing sends them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Disclosure {
    /// Public keys and hashes of fresh random values.
    PublicKeys,
    /// This site's part of the seed of the graph, which everybody is to know.
    GraphRandomness,
    /// A signature on values the receiver already knows.
    Acknowledgement,
    /// Boxes that only members of the committee can open.
    SealedShares,
    /// Words that are uniformly random to everyone who lacks the masks.
    MaskedWords,
    /// Shares of one round: of the self-masks of those in the total, of the slot's keys of those who are not.
    RoundShares,
    /// That this site refuses, and under which rule.
    Refusal,
}

/// Who an aggregator is.
pub struct AggregatorConfig {
    /// Its long-term identity.
    pub identity: Arc<Identity>,
    /// The verified roster.
    pub roster: Arc<Roster>,
    /// The verified plan.
    pub terms: Arc<Terms>,
    /// How the sizes of a deck are found; the same at all parties.
    pub shape: Shape,
    /// Coordinator or intermediary.
    pub role: PartyId,
    /// How long it waits.
    pub timing: Timing,
    /// Slots of a deck; at most the plan's.
    pub slots: u16,
}

/// What an aggregator is told.
pub enum AggregatorInput<'a> {
    /// A frame came from a site.
    Message {
        /// The site, as the transport authenticated it.
        from: u16,
        /// The whole frame.
        bytes: &'a [u8],
    },
    /// A site's connection is new: what it has not answered is sent again.
    Attached(u16),
    /// Ask the cohort a question; what comes of it is [`AggregatorEvent::Total`] or [`AggregatorEvent::SlotLost`].
    Ask {
        /// The application's query.
        query: Vec<u8>,
        /// Words of the answer.
        words: usize,
    },
    /// Time has passed.
    Tick,
}

/// What an aggregator wants done.
pub enum AggregatorOutput {
    /// Send this frame to a site.
    Send {
        /// The site.
        to: u16,
        /// The whole frame.
        bytes: Arc<Vec<u8>>,
    },
    /// Tell the application.
    Event(AggregatorEvent),
}

/// What an aggregator tells its application.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AggregatorEvent {
    /// A deck is ready.
    DeckReady {
        /// Its number.
        index: u32,
        /// The sites whose shares the committee holds.
        members: Vec<u16>,
        /// Its committee.
        committee: Vec<u16>,
        /// Neighbours of a site.
        degree: usize,
        /// Members of the committee that open a share.
        quorum: usize,
    },
    /// The total of a question over `cohort`.
    Total {
        /// One ring element a word.
        values: Vec<u64>,
        /// Whose total it is.
        cohort: Vec<u16>,
        /// Sites that were asked and are missing from it.
        missing: Vec<u16>,
    },
    /// The question has no total, and no site will answer it again ([SPA-17]); another one may be put.
    SlotLost(Error),
    /// A site is out of this run, and why.
    Lost {
        /// The site.
        site: u16,
        /// Why.
        why: Loss,
    },
    /// A share of a secret of `owner` that came from `holder` was wrong and was corrected; one of the two is at fault.
    WrongShare {
        /// Who gave the share.
        holder: u16,
        /// Whose secret it is a share of.
        owner: u16,
    },
    /// The run cannot go on.
    Failed(Error),
}

pub(crate) fn later(now: Millis, ms: u64) -> Millis {
    Millis(now.0.saturating_add(ms))
}
