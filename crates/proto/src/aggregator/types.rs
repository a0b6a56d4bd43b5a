//! The inputs and outputs of an aggregator.

use std::sync::Arc;

use super::{record::Record, timing::Timing};
use crate::{
    error::Error,
    identity::Identity,
    plan::Terms,
    roster::{PartyId, Roster},
    rule::Rule,
};

/// Who this aggregator is.
pub struct AggregatorConfig {
    /// Its long-term identity.
    pub identity: Arc<Identity>,
    /// The verified roster.
    pub roster: Arc<Roster>,
    /// The verified plan.
    pub terms: Arc<Terms>,
    /// Coordinator or intermediary.
    pub role: PartyId,
    /// How long it waits.
    pub timing: Timing,
    /// Slots of a deck; at most the plan's.
    pub slots: u16,
}

/// What an aggregator is told.
pub enum Input<'a> {
    /// A site is connected.
    Attached(u16),
    /// A site's connection is gone.
    Detached(u16),
    /// Whole frames that are there, each with the site that it came from, as the transport authenticated it, in the order in which they
    /// came: what follows is the same as one by one, but signatures are verified on all cores.
    Messages(&'a [(u16, &'a [u8])]),
    /// Ask the cohort a question; its total comes as [`Event::Total`].
    Ask {
        /// The application's query.
        query: Vec<u8>,
        /// Words of the answer.
        words: usize,
    },
    /// No question follows, so the last total is opened to its cohort now and not with the next question. This holds
    /// also where the run has failed.
    Close,
    /// The application goes on without this site.
    Without(u16),
    /// Time has passed.
    Tick,
}

/// What an aggregator wants done.
pub enum Output {
    /// Make this durable before any later output, so that the run can be resumed after a crash ([JRN-5]). A caller that
    /// does not resume runs may ignore it.
    Persist(Record),
    /// Send this frame to a site.
    Send {
        /// The site.
        to: u16,
        /// The whole frame.
        bytes: Arc<Vec<u8>>,
    },
    /// Tell the application.
    Event(Event),
}

/// What an aggregator tells its application.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The first deck, or a later one, is ready.
    DeckReady {
        /// Its number.
        index: u32,
        /// The sites in it.
        members: Vec<u16>,
        /// Shares needed to open a self-mask.
        threshold: usize,
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
    /// A site is out of this run, and why.
    Lost {
        /// The site.
        site: u16,
        /// Why.
        why: Loss,
    },
    /// A share of `owner`'s self-mask that came from `holder` was wrong and was corrected ([UNM-6]). One of the two is
    /// at fault: the holder may have changed it, or the owner may have sealed a wrong one.
    WrongShare {
        /// Who gave the share.
        holder: u16,
        /// Whose self-mask it is a share of.
        owner: u16,
    },
    /// A site appeared that cannot join this run any more.
    TooLate(u16),
    /// The run cannot go on.
    Failed(Error),
}

/// Why a site is out of a run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// Its connection broke and did not come back in time.
    #[error("its connection broke and did not come back in time")]
    Gone,
    /// It did not answer in time.
    #[error("it did not answer in time")]
    Silent,
    /// It refused, under this rule.
    #[error("it refused under rule [{0}]; its operator sees why")]
    Refused(Rule),
    /// It broke a rule.
    #[error("{0}")]
    Misbehaved(Error),
    /// The application goes on without it.
    #[error("the run had gone on without it before")]
    LeftOut,
}
