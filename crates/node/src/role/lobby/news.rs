//! What the one who keeps a lobby is told of.

use std::path::PathBuf;

use veilsum_proto::joining::Role;

use crate::documents::PlanAnswer;

/// What happens in the lobby.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// A key knocked with this party's token, and waits for the operator.
    Waiting {
        /// The party's name.
        party: String,
        /// Its role.
        role: Role,
        /// Fingerprint of its key.
        key: String,
    },
    /// This party has roster and plan.
    Has(String),
    /// This member stands by.
    Here(String),
    /// This member stands by for the next run, while the one that it had a part in goes on without it.
    Past {
        /// Its name.
        party: String,
        /// The run that it has done with.
        number: u64,
    },
    /// A member that stood by is gone.
    Gone(String),
    /// A member's answer to the plan that is proposed.
    Answers {
        /// Its name.
        party: String,
        /// The answer.
        answer: PlanAnswer,
    },
    /// A run begins, or goes on after a restart.
    Begins {
        /// Its number.
        number: u64,
        /// Where its result will lie.
        folder: PathBuf,
    },
    /// This member knows a run of a larger number than the folder: runs are counted on from there.
    Behind {
        /// Its name.
        party: String,
        /// The number.
        number: u64,
    },
    /// Nothing can be written for now. It is tried again, and a run goes on then.
    Full(String),
    /// A run has ended.
    Ended {
        /// Its number.
        number: u64,
        /// What it came to, in a sentence.
        how: String,
    },
    /// So many were turned away so far; told for the 1st, 2nd, 4th, 8th, …
    TurnedAway {
        /// How many.
        count: u64,
        /// Why the last one was.
        why: String,
    },
    /// A document in the folder cannot be handed out.
    Unusable(String),
}
