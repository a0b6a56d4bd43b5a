//! What the federation in memory is made of: how its network treats frames, what a hook sees and may do, what is written down of a
//! run, where processes die, and what can happen next.

use std::time::Duration;

use veilsum_door::Met;

use crate::prelude::*;

/// How the network treats frames; probabilities in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// A frame is delivered after 1 to this many milliseconds more.
    pub delay: u64,
    /// A frame is lost.
    pub loss: u64,
    /// A frame arrives twice.
    pub duplicates: u64,
}

/// A frame on the wire, as the hook sees it.
pub struct Wire<'a> {
    /// The site at one end; the aggregator is at the other.
    pub site: u16,
    /// Whether the site sent it.
    pub from_site: bool,
    /// Its kind.
    pub kind: Kind,
    /// All of it.
    pub bytes: &'a [u8],
    /// Its label, where a site sent it.
    pub discloses: Option<Disclosure>,
}

/// What the hook wants done with a frame.
pub enum Verdict {
    /// Deliver it.
    Pass,
    /// Lose it.
    Drop,
    /// Lose it, and the site's process with it; it stays away.
    Vanish,
    /// Lose it and the site's process; the process comes back from its journal at once.
    Crash,
    /// Deliver other bytes.
    Replace(Vec<u8>),
    /// Deliver these frames, one after the other.
    Frames(Vec<Vec<u8>>),
}

/// Sees every frame as it is sent.
pub type Hook = Box<dyn FnMut(&Wire<'_>) -> Verdict>;
/// Computes a site's answer to a query.
pub type Answer = Box<dyn FnMut(u16, &Asked) -> Vec<u64>>;
/// Says whether a site answers a query.
pub type Manner = Box<dyn FnMut(u16, &Asked) -> Reply>;

/// What a site's application does with a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// It asks its policy, and answers.
    Answer,
    /// It refuses under this rule.
    Refuse(Rule),
    /// It says nothing.
    Silence,
}

/// A frame on the wire, kept.
#[derive(Clone)]
pub struct Frame {
    /// The site at one end.
    pub site: u16,
    /// Whether the site sent it.
    pub from_site: bool,
    /// Its kind, as it was sent.
    pub kind: Kind,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What a site was told.
#[derive(Clone)]
pub enum Told {
    /// This frame.
    Frame(Vec<u8>),
    /// Its application answers, or refuses, the question asked last.
    Answer,
}

/// What the aggregator was told.
#[derive(Clone)]
pub enum Heard {
    /// A site is there.
    Attached(u16),
    /// A site sent this frame.
    Frame(u16, Vec<u8>),
    /// Its application asks this, for [`WORDS`](crate::wire::WORDS) words.
    Ask(Vec<u8>),
    /// Time passes.
    Tick,
}

/// A run written down.
#[derive(Clone, Default)]
pub struct Notes {
    /// What was sent, in order, before the hook changed anything.
    pub frames: Vec<Frame>,
    /// What every site was told, in order.
    pub told: Vec<Vec<Told>>,
    /// When the aggregator was told what.
    pub heard: Vec<(u64, Heard)>,
}

/// The place of the aggregator, and of the network, where sites have their numbers.
pub const HUB: u16 = u16::MAX;
pub(super) const NETWORK: u16 = u16::MAX - 1;

/// Where a party's randomness comes from.
pub fn rng_of(seed: u64, party: u16) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed << 16 | u64::from(party))
}

/// Time that parties took, by the kind of the frame that they worked on; nothing for anything else.
pub type Took = BTreeMap<Option<Kind>, Duration>;

/// A total's words, the sites it covers, and those asked that it does not cover.
pub type Total = (Vec<u64>, Vec<u16>, Vec<u16>);

pub(super) enum Happening {
    ToSite(u16, Arc<Vec<u8>>),
    ToAggregator(u16, Arc<Vec<u8>>),
    Attach(u16),
    Detach(u16),
    Return(u16),
    Wake,
}

/// A site's process dies. Every effect of a site (an entry made durable, a frame sent) has two boundaries, one before it
/// and one after it; they are numbered from 0 over all of its processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Whose process.
    pub site: u16,
    /// At which of its boundaries.
    pub boundary: usize,
    /// Milliseconds until a process comes back from the journal; none comes where this is nothing.
    pub away: Option<u64>,
}

/// What the application of a site has in its ledger: how far it has come, and what it keeps of others.
#[derive(Clone, Default)]
pub struct Book {
    /// Its own answers.
    pub answered: Answered,
    /// Where it answered last.
    pub last: Option<(Hash, (u32, u16))>,
    /// Others' ledgers.
    pub met: Met,
}
