//! What can go wrong with an answerer, whose fault it is, and what to do next.

use crate::contract::{Refusal, RefusalCode};

/// Why there is no answer: first the program, the first word of its command, then what is to be said of it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It could not be started, for the system's reason.
    #[error("the answerer {0:?} cannot be started: {1}")]
    Start(String, String),
    /// It ended, or closed its output: how, and what it said last.
    #[error("the answerer {0:?} ended {1}")]
    Ended(String, String),
    /// It did not answer in time: how long it had, and what it said last.
    #[error("the answerer {0:?} did not answer within {1}")]
    Silent(String, String),
    /// A line that the contract does not have there.
    #[error("the answerer {0:?} does not keep to the contract: {1}")]
    Contract(String, String),
    /// An answer that no rows can have.
    #[error("the answerer {0:?} gave an answer that cannot be true: {1}")]
    Wrong(String, String),
    /// Other rows than at the beginning of the run.
    #[error("the rows behind the answerer {0:?} are others than at the beginning of this run: {1}")]
    Changed(String, String),
    /// Rows that cannot be used: how many, and by reason.
    #[error("the answerer {0:?} has {1}")]
    BadRows(String, String),
    /// Questions of kinds that it does not answer.
    #[error("the answerer {0:?} does not answer every question that this plan may ask: {1}")]
    Kinds(String, String),
    /// It says itself why not.
    #[error("the answerer {0:?} says: {said}", said = .1.message)]
    Refused(String, Refusal),
    /// The site itself asks what cannot be asked.
    #[error("this question cannot be put to an answerer: {0}")]
    Question(String),
}

impl Fault {
    /// What to do next.
    pub fn advice(&self) -> String {
        match self {
            Fault::Start(..) => "check the command of `answerer`: its program has to be installed and executable here",
            Fault::Ended(..) => {
                "read what it said (run with -v for all of it), and try it alone: `veilsum answerer --data FILE -- CMD`"
            }
            Fault::Silent(..) => {
                "see why it takes so long (a lock, a plan of the database that runs away); where it only needs more time, give it \
                 more with `answerer_seconds`"
            }
            Fault::Contract(..) => {
                "this is the answerer's defect: tell its author, who finds it with `veilsum answerer --data FILE -- CMD`"
            }
            Fault::Wrong(..) => {
                "nothing of this answer was sent; take the answerer out of service until its author knows why, and check it with \
                 `veilsum answerer --data FILE -- CMD`"
            }
            Fault::Changed(..) => {
                "nothing of this answer was sent; let it answer from rows that stay as they are (a snapshot, a table of a fixed date), \
                 then start again"
            }
            Fault::BadRows(..) => "correct these rows, or leave them out of the view that the answerer reads",
            Fault::Kinds(..) => {
                "use an answerer, or a mode of it, that lists these kinds, or ask for a plan that does without them"
            }
            Fault::Refused(_, refusal) if !refusal.next.is_empty() => return refusal.next.clone(),
            Fault::Refused(..) => "ask the answerer's author",
            Fault::Question(..) => "ask for a plan that does without it, or answer from a file",
        }
        .to_owned()
    }

    /// Whether the same question may be put once more, to the process started anew: answers are the same every time.
    pub fn is_passing(&self) -> bool {
        match self {
            Fault::Ended(..) | Fault::Silent(..) => true,
            Fault::Refused(_, refusal) => refusal.code == RefusalCode::Connection,
            _ => false,
        }
    }
}
