//! How a run goes at one party, as one stream of events. The display, `veilsum status`, its metrics and the file of events are all
//! made from it. An event holds names, numbers of rounds, of sites and of bytes, what the opened totals say of the
//! centres (how far they moved, the validity indices), and reasons: no row, no number of rows, no centre, no masked word, no key.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
};

use serde::Serialize;

use crate::{
    app_messages::clean,
    cost::{counted, some_of},
    method_session::{Judged, Moved},
};

/// Somebody who watches a run.
pub type Watcher = Arc<dyn Fn(Progress) + Send + Sync>;

/// Told what happens between runs, in words for this party's operator.
pub type Teller = Arc<dyn Fn(String) + Send + Sync>;

/// How a run goes, for a person who watches.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Progress {
    /// This party's run begins.
    Begins {
        /// This party's name.
        party: String,
        /// `coordinator`, `intermediary` or `site`.
        role: &'static str,
        /// The federation's name.
        federation: String,
        /// The first digits of the plan's fingerprint.
        plan: String,
        /// Those of the roster that it has to do with.
        others: Vec<String>,
        /// Questions that the plan asks of this party at most.
        of: u32,
    },
    /// Keys are exchanged.
    Ready {
        /// Sites in the deck.
        sites: usize,
        /// Threshold.
        threshold: usize,
    },
    /// A question is put to the sites.
    Asked {
        /// Counted from 1.
        number: u32,
        /// Questions of the whole run at most.
        of: u32,
        /// What is asked.
        what: &'static str,
        /// Why.
        why: &'static str,
    },
    /// So many sites have said what this step of the open question wants of them.
    Answers {
        /// Sites that have.
        arrived: usize,
        /// Sites that are asked.
        of: usize,
    },
    /// A question was answered.
    Round {
        /// Counted from 1.
        number: u32,
        /// Questions of the whole run at most.
        of: u32,
        /// What was asked.
        what: &'static str,
        /// Sites in the total.
        sites: usize,
    },
    /// The centres moved, by the last total; only where totals are opened to this party.
    Moved {
        /// One for every K.
        clusters: Vec<Moved>,
    },
    /// The clusters were judged, by the last total; only where totals are opened to this party.
    Judged {
        /// One for every K.
        curve: Vec<Judged>,
    },
    /// What went over this party's links so far.
    Bytes {
        /// Bytes of the frames that it sent.
        sent: u64,
        /// And received.
        received: u64,
    },
    /// These parties are waited for.
    Waiting {
        /// They, and what was last heard of each.
        parties: Vec<Awaited>,
        /// Seconds since the wait began.
        seconds: u64,
    },
    /// No more is asked.
    Ended,
    /// This aggregator let a party in.
    Came {
        /// Its name.
        party: String,
        /// What the link runs on.
        over: &'static str,
    },
    /// The link of a party that was let in ended.
    Left {
        /// Its name.
        party: String,
        /// Why.
        why: String,
    },
    /// This aggregator let a party not in.
    TurnedAway {
        /// Its name.
        party: String,
        /// Why.
        why: String,
    },
    /// This party dialled another, which let it in.
    Connected {
        /// Its name.
        to: String,
        /// What the link runs on.
        over: &'static str,
    },
    /// A link broke, and the other party is dialled again.
    Dialling {
        /// Its name.
        to: String,
        /// Why the link broke.
        why: String,
    },
    /// This site answered a question of the coordinator.
    Answered {
        /// Counted from 1.
        number: u32,
    },
    /// A site is out of the run.
    Lost {
        /// Its name.
        site: String,
        /// Why.
        why: String,
    },
}

/// A party that is waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Awaited {
    /// Its name.
    pub party: String,
    /// Where it is dialled; nothing where it is the one that dials.
    pub at: Option<String>,
    /// What was last heard of it, or why it is not there.
    pub heard: String,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.as_ref().map_or(String::new(), |at| format!(" at {at}"));
        write!(f, "{}{at} ({})", self.party, self.heard)
    }
}

impl Progress {
    /// With what others said as it may stand on a screen.
    pub(super) fn cleaned(mut self) -> Progress {
        match &mut self {
            Progress::Left { why, .. }
            | Progress::TurnedAway { why, .. }
            | Progress::Dialling { why, .. }
            | Progress::Lost { why, .. } => *why = clean(why),
            Progress::Waiting { parties, .. } => {
                parties.iter_mut().for_each(|awaited| awaited.heard = clean(&awaited.heard));
            }
            _ => {}
        }
        self
    }
}

/// One sentence, without a line's end.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Begins { party, role, federation, plan, of, .. } => {
                write!(f, "{party} ({role}) begins plan {plan} of {federation}, which asks {of} questions at most")
            }
            Progress::Ready { sites, threshold } => write!(f, "keys exchanged: {sites} sites, threshold {threshold}"),
            Progress::Asked { number, of, what, why } => {
                write!(f, "asks question {number} of at most {of}, {what}, because {why}")
            }
            Progress::Answers { arrived, of } => write!(f, "{arrived} of {of} sites have answered this step"),
            Progress::Round { number, of, what, sites } => {
                write!(f, "question {number} of at most {of}, {what}, answered by {}", counted(*sites, "site"))
            }
            Progress::Moved { clusters } => {
                let told = clusters.iter().map(|moved| {
                    let rests = if moved.rests { ", where they rest" } else { "" };
                    format!("K = {}: {:.1e} in round {}{rests}", moved.k, moved.shift, moved.round)
                });
                write!(f, "the centres moved ({})", told.collect::<Vec<_>>().join("; "))
            }
            Progress::Judged { curve } => {
                let chosen = curve.iter().find(|of| of.chosen).map(|of| format!(", {} was chosen", of.k));
                write!(f, "judged {} of K{}", counted(curve.len(), "value"), chosen.unwrap_or_default())
            }
            Progress::Bytes { sent, received } => write!(f, "sent {}, received {}", size(*sent), size(*received)),
            Progress::Waiting { parties, seconds } => {
                let parties: Vec<String> = parties.iter().map(Awaited::to_string).collect();
                write!(f, "waiting for {} ({seconds} s)", some_of(&parties, ", "))
            }
            Progress::Ended => write!(f, "no more is asked"),
            Progress::Came { party, over } => write!(f, "{party} is connected over {over}"),
            Progress::Left { party, why } => write!(f, "{party} is not connected any more: {why}"),
            Progress::TurnedAway { party, why } => write!(f, "{party} was turned away: {why}"),
            Progress::Connected { to, over } => write!(f, "connected to {to} over {over}"),
            Progress::Dialling { to, why } => write!(f, "lost the connection to {to} ({why}); dialling again"),
            Progress::Answered { number } => write!(f, "answered question {number}"),
            Progress::Lost { site, why } => write!(f, "left the run: {site}: {why}"),
        }
    }
}

/// A time in the largest unit of which it has two or more.
pub fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A number of bytes in the largest unit of which there are ten or more.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

/// Bytes of frames over all links of a party, without the transport's own.
#[derive(Debug, Default)]
pub struct Bytes {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}
