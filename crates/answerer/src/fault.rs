//! What can go wrong with an answerer, whose fault it is, and what to do next.

use std::time::Duration;

use crate::contract::{Refusal, RefusalCode};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It could not be started.
    #[error("the answerer {program:?} cannot be started: {why}")]
    Start {
        /// The first word of the command.
        program: String,
        /// The system's reason.
        why: String,
    },
    /// It ended, or closed its output.
    #[error("the answerer {program:?} ended ({how}){after}")]
    Ended {
        /// The first word of the command.
        program: String,
        /// Exit code or signal.
        how: String,
        /// What it said last on standard error.
        after: String,
    },
    /// It did not answer in time.
    #[error("the answerer {program:?} did not answer within {limit:?}, and was killed{after}")]
    Silent {
        /// The first word of the command.
        program: String,
        /// The time it had.
        limit: Duration,
        /// What it said last on standard error.
        after: String,
    },
    /// A line that the contract does not have there.
    #[error("the answerer {program:?} does not keep to the contract: {what}")]
    Contract {
        /// The first word of the command.
        program: String,
        /// In which way.
        what: String,
    },
    /// An answer that no rows can have.
    #[error("the answerer {program:?} gave an answer that cannot be true: {what}")]
    Wrong {
        /// The first word of the command.
        program: String,
        /// What about it.
        what: String,
    },
    /// Other rows than at the beginning of the run.
    #[error("the rows behind the answerer {program:?} are others than at the beginning of this run: {what}")]
    Changed {
        /// The first word of the command.
        program: String,
        /// How it shows.
        what: String,
    },
    /// Rows that cannot be used.
    #[error("the answerer {program:?} has {rows} that cannot be used: {reasons}")]
    BadRows {
        /// The first word of the command.
        program: String,
        /// How many, in words.
        rows: String,
        /// By reason.
        reasons: String,
    },
    /// Questions that it does not answer.
    #[error("the answerer {program:?} does not answer every question that this plan may ask: {kinds}")]
    Kinds {
        /// The first word of the command.
        program: String,
        /// The kinds, in words.
        kinds: String,
    },
    /// It says itself why not.
    #[error("the answerer {program:?} says: {}", .refusal.message)]
    Refused {
        /// The first word of the command.
        program: String,
        /// In its own words.
        refusal: Refusal,
    },
    /// The site itself asks what cannot be asked.
    #[error("this question cannot be put to an answerer: {what}")]
    Question {
        /// Why.
        what: String,
    },
}

impl Fault {
    /// What to do next.
    pub fn advice(&self) -> String {
        match self {
            Fault::Start { .. } => "check the command of `answerer`: its program has to be installed and executable here",
            Fault::Ended { .. } => {
                "read what it said (run with -v for all of it), and try it alone: `veilsum answerer --data FILE -- CMD`"
            }
            Fault::Silent { .. } => {
                "see why it takes so long (a lock, a plan of the database that runs away); where it only needs more time, give it \
                 more with `answerer_seconds`"
            }
            Fault::Contract { .. } => {
                "this is the answerer's defect: tell its author, who finds it with `veilsum answerer --data FILE -- CMD`"
            }
            Fault::Wrong { .. } => {
                "nothing of this answer was sent; take the answerer out of service until its author knows why, and check it with \
                 `veilsum answerer --data FILE -- CMD`"
            }
            Fault::Changed { .. } => {
                "nothing of this answer was sent; let it answer from rows that stay as they are (a snapshot, a table of a fixed date), \
                 then start again"
            }
            Fault::BadRows { .. } => "correct these rows, or leave them out of the view that the answerer reads",
            Fault::Kinds { .. } => {
                "use an answerer, or a mode of it, that lists these kinds, or ask for a plan that does without them"
            }
            Fault::Refused { refusal, .. } if !refusal.next.is_empty() => return refusal.next.clone(),
            Fault::Refused { .. } => "ask the answerer's author",
            Fault::Question { .. } => "ask for a plan that does without it, or answer from a file",
        }
        .to_owned()
    }

    /// Whether the same question may be put once more, to the process started anew: answers are the same every time.
    pub fn is_passing(&self) -> bool {
        match self {
            Fault::Ended { .. } | Fault::Silent { .. } => true,
            Fault::Refused { refusal, .. } => refusal.code == RefusalCode::Connection,
            _ => false,
        }
    }
}
