//! The errors of the core: what went wrong, whose fault it is and which rule of `protocol/spec.md` says so.

use crate::rule::Rule;

/// Errors of the protocol core. No variant holds a key, a share, a mask or a value of a statistic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that are not the encoding of what they claim to be.
    #[error("malformed {what}: {why} [{rule}]")]
    Malformed {
        /// The thing that was to be decoded.
        what: &'static str,
        /// What is wrong with it.
        why: String,
        /// The rule it breaks.
        rule: Rule,
    },
    /// A peer broke a rule. The name is that of the roster.
    #[error("{who} misbehaved: {what} [{rule}]")]
    PeerMisbehaved {
        /// Name of the culprit.
        who: String,
        /// What it did.
        what: String,
        /// The rule it broke.
        rule: Rule,
    },
    /// This party's own floor or policy says no.
    #[error("refused: {what} [{rule}]")]
    Refused {
        /// What was asked for and why not.
        what: String,
        /// The rule that forbids it.
        rule: Rule,
    },
    /// A roster or plan that may not be used.
    #[error("{document} is not valid: {why} [{rule}]")]
    Invalid {
        /// `roster` or `plan`.
        document: &'static str,
        /// What is wrong with it.
        why: String,
        /// The rule it breaks.
        rule: Rule,
    },
    /// Too few sites are left. Nothing was revealed.
    #[error(
        "too few sites for {step}: {alive} of the {needed} needed; nothing was revealed beyond the totals before [{rule}]"
    )]
    Quorum {
        /// The step that could not be taken.
        step: String,
        /// Sites left.
        alive: usize,
        /// Sites needed.
        needed: usize,
        /// The rule that sets the number.
        rule: Rule,
    },
    /// The caller of this crate did something out of order.
    #[error("used out of order: {0}")]
    ApiMisuse(&'static str),
    /// A journal that cannot be trusted to say what was sent.
    #[error("the journal cannot be used: {0}")]
    Journal(String),
}

impl Error {
    pub(crate) fn malformed(what: &'static str, why: impl Into<String>, rule: Rule) -> Self {
        Error::Malformed { what, why: why.into(), rule }
    }

    pub(crate) fn peer(who: impl Into<String>, what: impl Into<String>, rule: Rule) -> Self {
        Error::PeerMisbehaved { who: who.into(), what: what.into(), rule }
    }

    pub(crate) fn refused(what: impl Into<String>, rule: Rule) -> Self {
        Error::Refused { what: what.into(), rule }
    }

    pub(crate) fn invalid(document: &'static str, why: impl Into<String>, rule: Rule) -> Self {
        Error::Invalid { document, why: why.into(), rule }
    }

    /// The rule that was broken, where one was.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Error::Malformed { rule, .. }
            | Error::PeerMisbehaved { rule, .. }
            | Error::Refused { rule, .. }
            | Error::Invalid { rule, .. }
            | Error::Quorum { rule, .. } => Some(*rule),
            Error::ApiMisuse(_) | Error::Journal(_) => None,
        }
    }
}
