//! The application's own messages beside the protocol's: greeting, row count, result (spec section 13).

use std::fmt;

use serde::{Deserialize, Serialize};
use veilsum_cluster::{Batch, validity::Verdict};
use veilsum_proto::{
    identity::{Identity, Signature, fingerprint},
    message::{self, Kind},
    suite::{self, Hash},
};

use crate::columns::is_odd;

/// A party's first frame: which federation and plan it holds ([APP-1]), also where it only asks whether it would be let in
/// ([APP-9]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Hash of its roster.
    pub roster: Hash,
    /// Hash of its plan, if it has one.
    pub plan: Option<Hash>,
    /// Its software version, for the log of the other side.
    pub software: String,
}

/// The answer to a `Hello` that fits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// The listener's software version.
    pub software: String,
}

/// The answer to one that does not: why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Denied {
    /// No run is going on here.
    NoRun,
    /// The listener's roster is this one.
    Roster(Hash),
    /// The run's plan is this one.
    Plan(Hash),
    /// It is the listener's own key.
    Own,
    /// Another process with this key is connected, and answers.
    Taken,
    /// The greeting could not be read; why, for a person.
    Unread(String),
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::NoRun => {
                f.write_str("no run is going on here: the last one has ended, or the next one has not begun")
            }
            Denied::Roster(hash) => write!(
                f,
                "you hold another roster, this federation's is {}: compare fingerprints and get the current file",
                fingerprint(&hash.0)
            ),
            Denied::Plan(hash) => {
                let hash = fingerprint(&hash.0);
                write!(f, "you hold another plan, this run's is {hash}: get the current plan file")
            }
            Denied::Own => f.write_str("this is the identity of the party you dialled"),
            Denied::Taken => f.write_str(
                "another process with your key is connected, and answers: a key is for one process. Stop that one \
                 before you start this one",
            ),
            Denied::Unread(why) => write!(f, "the greeting cannot be read: {}", clean(why)),
        }
    }
}

/// Coordinator to intermediary: these sites will be asked; count their rows first ([APP-2]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Count {
    /// The coordinator's run, by its name: a count of another one is of no use to it.
    pub run: Hash,
    /// The sites that are to be asked: those with keys, and once a total is out those of the last one.
    pub cohort: Vec<u16>,
}

/// Intermediary to coordinator and sites: the rows of these sites reach the plan's floor ([APP-2]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CountReady {
    /// The coordinator's run, by its name.
    pub run: Hash,
    /// Whose rows are in the count.
    pub cohort: Vec<u16>,
}

/// Coordinator to intermediary, after the last round: the total, please ([APP-3]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CountRequest {
    /// The sites that were in the run to its end.
    pub cohort: Vec<u16>,
}

/// Intermediary to coordinator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CountReply {
    /// The total, or nothing where a counted site has left the run: the difference to the coordinator's own totals
    /// would be that site's count.
    pub total: Option<u64>,
}

/// Coordinator to sites, where the intermediary judges: these centres will be asked about ([APP-5]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The validation question.
    pub batch: Batch,
}

/// Coordinator to intermediary: judge what the sites hold. Nothing in it depends on where the centres are ([APP-5]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JudgeRequest {
    /// The digest of the question.
    pub digest: Hash,
    /// K of each of its queries.
    pub clusters: Vec<u32>,
    /// For each block of the answer the exponent of its bound; it follows from the box and the standardisation.
    pub exponents: Vec<i16>,
}

/// Site to intermediary: Euclidean distances between the centres, one K x K matrix (row-major) for each query ([APP-5]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CentreDistances {
    /// The digest of the question.
    pub digest: Hash,
    /// The matrices.
    pub matrices: Vec<Vec<f64>>,
}

/// Intermediary to coordinator: what the totals say ([APP-5]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JudgeReply {
    /// The sites that the totals cover.
    pub cohort: Vec<u16>,
    /// One verdict for each query, as a JSON list: what was not judged is left out.
    pub verdicts: Vec<u8>,
}

impl JudgeReply {
    /// The reply for these verdicts.
    pub fn new(cohort: Vec<u16>, verdicts: &[Verdict]) -> Self {
        // Numbers and lists always have a JSON form.
        Self { cohort, verdicts: serde_json::to_vec(verdicts).unwrap_or_default() }
    }

    /// The verdicts.
    ///
    /// # Errors
    /// A sentence where they cannot be read or hold what no totals give.
    pub fn open(&self) -> Result<Vec<Verdict>, String> {
        let verdicts: Vec<Verdict> = serde_json::from_slice(&self.verdicts).map_err(|e| e.to_string())?;
        let odd = |v: &Verdict| !(v.objective.is_finite() && v.objective >= 0.0) || v.clusters.is_some() || v.rows == 0;
        if verdicts.iter().any(odd) {
            return Err("a verdict holds what the intermediary cannot know".into());
        }
        Ok(verdicts)
    }
}

/// Coordinator to everybody: the run is over. Where it ended early, the model says so ([APP-8]).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Finished {
    /// The model as JSON; empty towards the intermediary.
    pub model: Vec<u8>,
    /// The part of the result that all parties sign, as text; empty towards the intermediary, and where sites do not recompute it
    /// ([RES-2]).
    pub result: Vec<u8>,
    /// The coordinator's signature on it, R ‖ S; empty where there is none.
    pub signature: Vec<u8>,
}

/// Site to coordinator: it recomputed the result and signs it ([RES-3]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Countersigned {
    /// Link of its ledger's last entry ([LED-2]).
    pub ledger: Hash,
    /// Its signature on the text and this link.
    pub signature: Signature,
}

/// An aggregator to everybody: the run ends, and there is no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Aborted {
    /// Exit code that the receiver should end with.
    pub code: u8,
    /// Why, for a person.
    pub why: String,
}

/// Version of this software.
pub const SOFTWARE: &str = concat!("veilsum ", env!("CARGO_PKG_VERSION"));

/// The session of greetings: the two ends may hold different plans, and must still be able to say so.
pub fn greeting_session() -> Hash {
    suite::hash("greeting", &[])
}

/// Builds a control frame.
pub fn frame<T: Serialize>(identity: &Identity, session: &Hash, kind: Kind, message: &T) -> Vec<u8> {
    message::frame(identity, session, kind, &Hash::default(), message)
}

/// Text from a peer as it may stand in a log or error: short, one line, printable.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_odd(c) { ' ' } else { c }).take(400).collect()
}

/// The carrier's view of a frame header.
pub fn header_check(header: &[u8; 8]) -> Result<usize, String> {
    message::parse_header(header).map(|(_, length)| length).map_err(|e| e.to_string())
}
