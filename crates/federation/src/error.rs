//! Exit codes and the error that carries one: what happened, whose fault it is, what to do next.

use std::io;

use veilsum_door::LedgerError;
use veilsum_proto::Rule;

/// Exit codes of every command. `veilsum --help` and the book list them; tests hold them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Code {
    /// Something that should not happen.
    Internal = 1,
    /// Wrong arguments (clap's own code).
    Usage = 2,
    /// A file of data, a roster, a plan or a key that cannot be used.
    Input = 3,
    /// A peer cannot be reached, or the port cannot be opened.
    Network = 4,
    /// A peer broke a rule of the protocol; it is named.
    Peer = 5,
    /// Too few sites are left; nothing was revealed beyond the totals of earlier rounds.
    Quorum = 6,
    /// This site's own policy refuses.
    Policy = 7,
    /// The other side ended the run or did not let us in.
    Denied = 8,
    /// The run ended early; the result that is out so far was written.
    Early = 9,
    /// Nothing can be written on this machine for now. The same command goes on once it can.
    Storage = 10,
    /// Interrupted by the user.
    Interrupted = 130,
    /// Told to stop by a supervisor (SIGTERM).
    Terminated = 143,
}

impl Code {
    /// The code of this number; what is none is a defect.
    pub fn from_number(code: u8) -> Code {
        use Code::*;
        let all = [Usage, Input, Network, Peer, Quorum, Policy, Denied, Early, Storage, Interrupted, Terminated];
        all.into_iter().find(|known| *known as u8 == code).unwrap_or(Internal)
    }

    /// Whether an aggregator that says this was told to stop by its operator, and may be started again in a moment.
    pub fn is_told_to_stop(code: u8) -> bool {
        [Code::Interrupted, Code::Terminated].map(|c| c as u8).contains(&code)
    }

    /// Whether a run that an aggregator ended with this exit code is over for good. An interruption can be mended, and the run taken
    /// up; what was found wrong is found again.
    pub fn ends_a_run(code: u8) -> bool {
        [Code::Quorum, Code::Peer, Code::Policy, Code::Denied].map(|c| c as u8).contains(&code)
    }
}

/// A failed command.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What happened.
    pub message: String,
    /// What to do next.
    pub advice: String,
    /// The rule that was broken or that forbids it, where there is one.
    pub rule: Option<Rule>,
}

impl Failure {
    /// A failure with what to do next.
    pub fn new(code: Code, message: impl std::fmt::Display, advice: impl Into<String>) -> Self {
        Failure { code, message: message.to_string(), advice: advice.into(), rule: None }
    }

    /// The same, under this rule.
    pub fn under(self, rule: Rule) -> Self {
        Failure { rule: Some(rule), ..self }
    }

    /// A disk that is full, or fails: nobody has to change a document, and the same command goes on once there is space.
    pub fn storage(message: impl std::fmt::Display, advice: impl Into<String>) -> Self {
        Failure::new(Code::Storage, message, advice)
    }

    /// Words of a command that cannot be used.
    pub fn usage(message: impl std::fmt::Display, advice: impl Into<String>) -> Self {
        Failure::new(Code::Usage, message, advice)
    }

    /// What should not happen.
    pub fn defect(message: impl std::fmt::Display) -> Self {
        Failure::new(Code::Internal, message, "this is a defect, please report it")
    }

    /// A file or value that the user gave.
    pub fn input(message: impl std::fmt::Display, advice: impl Into<String>) -> Self {
        Failure::new(Code::Input, message, advice)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if !self.advice.is_empty() {
            write!(f, "\nnext: {}", self.advice)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// What to do about a row outside the plan's public box.
pub const OUTSIDE_BOX: &str =
    "correct the row, or agree on a new plan with a wider box, or with `veilsum plan new --set out_of_box=clip`";

impl From<veilsum_cluster::Error> for Failure {
    fn from(e: veilsum_cluster::Error) -> Self {
        use veilsum_cluster::Error as E;
        let code = if matches!(e, E::Implausible(_)) { Code::Peer } else { Code::Input };
        let next = match e {
            E::OutsideBox { .. } => OUTSIDE_BOX,
            E::Implausible(_) => {
                "some site sent numbers that no rows give; the total does not say who. Ask the sites to check, then run again"
            }
            E::TooFewRows(_) => "agree on a smaller K",
            E::TooFewAnchors { .. } => "agree on a smaller K, or on a method without anchors, such as fcm",
            _ => "",
        };
        Failure::new(code, e, next)
    }
}

impl From<veilsum_proto::Error> for Failure {
    fn from(e: veilsum_proto::Error) -> Self {
        use veilsum_proto::Error as E;
        let (code, next) = match &e {
            E::PeerMisbehaved { rule: Rule::Led11, .. } => (
                Code::Peer,
                "call its operator, who puts back the newest copy of the ledger; nothing else helps, and no deck with that site is \
                 made until then",
            ),
            E::PeerMisbehaved { .. } => {
                (Code::Peer, "speak to that party's operator before you run again; keep this message and the log")
            }
            E::Malformed { .. } => (Code::Peer, "check that both sides run the same version of veilsum"),
            E::Refused { rule, .. } => (Code::Policy, after_refusal(*rule)),
            E::Invalid { .. } => (Code::Input, "make the document anew and send it to everybody"),
            E::Quorum { .. } => (
                Code::Quorum,
                "start the run again when the missing sites are there; a plan with noise may say sites = \"any\" and go on without them",
            ),
            E::Journal(_) => (Code::Input, "never put an older copy in its place: agree on a new plan"),
            _ => (Code::Internal, "this is a defect, please report it"),
        };
        let rule = e.rule();
        Failure { rule, ..Failure::new(code, e, next) }
    }
}

/// Whether the system may let the same be done later, without anybody who changes a document, a name or a permission: the disk is full,
/// fails, or is mounted for reading alone.
pub fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    !matches!(
        error.kind(),
        K::NotFound
            | K::PermissionDenied
            | K::AlreadyExists
            | K::NotADirectory
            | K::IsADirectory
            | K::InvalidInput
            | K::InvalidData
            | K::InvalidFilename
            | K::Unsupported
    )
}

impl From<LedgerError> for Failure {
    fn from(e: LedgerError) -> Self {
        let passes = matches!(&e, LedgerError::Io { source, .. } if may_pass(source));
        let next = match e {
            LedgerError::Io { .. } => "check free space and permissions of the folder (--state)",
            LedgerError::Missing(_) => {
                "check the path: a site keeps it as ledger.jsonl in its state folder; before its first answer there is none"
            }
            LedgerError::Locked { .. } => {
                "stop the other process or wait until its run is over: one identity takes part in one run at a time"
            }
            LedgerError::Damaged { .. } => {
                "put back the file as it was; what was given away before can no longer be told from this one (`veilsum verify LEDGER` names the \
                 entry)"
            }
            LedgerError::Form { .. } => {
                "nothing in the folder was changed: go on with the version that wrote it; an account is never begun anew over rows that answered"
            }
            LedgerError::Torn { .. } => {
                "a process ended while it wrote: start the site once, which drops that line if its head does not know it"
            }
            LedgerError::Cut { .. } => {
                "put the newest ledger back: entries that are missing were given away all the same"
            }
            LedgerError::NoHead(_) => {
                "put it back; if it is lost, these rows count as having answered everything: begin with other rows in another state folder"
            }
            LedgerError::NoAccount(_) => {
                "put the newest copy of this site's state folder back; if it is lost, nobody knows what these rows have answered: let the \
                 coordinator take this site out and invite it anew (`veilsum join` then asks whether a new account begins)"
            }
            LedgerError::Foreign { .. } => {
                "give this party its own state folder; if it shares this one with another federation, say so (`state` in site.toml); if its key is \
                 lost, let the coordinator invite it anew: `veilsum join` makes another key that goes on with the account"
            }
            LedgerError::Unasked | LedgerError::Unwritable => return Failure::defect(e),
        };
        if passes { Failure::storage(e, next) } else { Failure::input(e, next) }
    }
}

/// What to do after this site's own policy refused.
pub fn after_refusal(rule: Rule) -> &'static str {
    match rule {
        Rule::Pol8 => {
            "the account's operator alone may raise its cap (`veilsum agree --cap RHO`); or ask the coordinator for a plan of a smaller rho: \
             `veilsum check` says what is left"
        }
        Rule::Pol9 => "read what it asks and agree to it (`veilsum agree plan.toml`), or ask for a plan with noise",
        Rule::Jrn2 => {
            "put the newest copy of the whole state folder back; without it this site takes no further part in this run"
        }
        Rule::Pol10 => "read what it asks and agree to it once: `veilsum agree plan.toml`",
        _ => "agree on a plan that this site's policy allows (`veilsum check`)",
    }
}
