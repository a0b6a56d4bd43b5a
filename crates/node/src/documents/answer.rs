//! What a member says to a plan before anything is asked ([PRO-2]).

use std::fmt;

use serde::{Deserialize, Serialize};
use veilsum_proto::Error;

/// A member's answer to a proposed plan. It follows from roster, plan, schema, policy and ledger, but for one bit: whether the
/// member is ready.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanAnswer {
    /// It answers the whole plan.
    Would {
        /// For how many further plans like this one its account leaves room; none if it has no account, or the plan adds no noise.
        runs: Option<u32>,
    },
    /// A rule of its policy or its account refuses the plan.
    Refuses {
        /// The rule, as in `POL-4`; empty if there is no name for it.
        rule: String,
    },
    /// Its operator has not agreed to the roster.
    Roster,
    /// It is not ready; nobody but its own operator learns why.
    NotReady,
}

impl PlanAnswer {
    /// The longest name of a rule.
    const MAX_RULE: usize = 8;

    /// Whether a run with this member can be begun.
    pub fn is_yes(&self) -> bool {
        matches!(self, PlanAnswer::Would { .. })
    }

    /// A refusal: its rule travels, and nothing of its words.
    pub fn refusal(error: &Error) -> PlanAnswer {
        PlanAnswer::Refuses { rule: error.rule().map_or_else(String::new, |rule| rule.0.to_owned()) }
    }

    fn is_rule(rule: &str) -> bool {
        let form = |(family, number): (&str, &str)| {
            family.len() == 3
                && family.bytes().all(|b| b.is_ascii_uppercase())
                && (1..=2).contains(&number.len())
                && number.bytes().all(|b| b.is_ascii_digit())
        };
        rule.len() <= Self::MAX_RULE && rule.split_once('-').is_some_and(form)
    }

    /// Whether it is one that an honest member says; what somebody else signed may hold anything.
    pub fn is_well_formed(&self) -> bool {
        match self {
            PlanAnswer::Refuses { rule } => rule.is_empty() || Self::is_rule(rule),
            _ => true,
        }
    }

    /// The same on this party's own screen.
    pub fn of_this_party(&self) -> String {
        match self {
            PlanAnswer::Would { runs: None } => "this party is ready".to_owned(),
            PlanAnswer::Roster => "this party cannot answer, because its roster has not been agreed to yet".to_owned(),
            PlanAnswer::NotReady => "this party is not ready for this plan".to_owned(),
            other => format!("this party {other}"),
        }
    }
}

impl fmt::Display for PlanAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanAnswer::Would { runs: None } => write!(f, "ready"),
            PlanAnswer::Would { runs: Some(0) } => write!(f, "would answer, and no further plan like this one"),
            PlanAnswer::Would { runs: Some(1) } => write!(f, "would answer, and 1 more plan like this one"),
            PlanAnswer::Would { runs: Some(runs) } => write!(f, "would answer, and {runs} more plans like this one"),
            PlanAnswer::Refuses { rule } if rule.is_empty() => write!(f, "refuses"),
            PlanAnswer::Refuses { rule } if rule == "POL-8" => {
                write!(f, "refuses: its account does not suffice [POL-8]")
            }
            PlanAnswer::Refuses { rule } if rule == "POL-9" => {
                write!(f, "refuses: its operator has not agreed to exact totals of this plan [POL-9]")
            }
            PlanAnswer::Refuses { rule } => write!(f, "refuses: rule {rule}"),
            PlanAnswer::Roster => write!(f, "its operator has not agreed to the roster yet"),
            PlanAnswer::NotReady => write!(f, "is not ready; its own screen says why"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_proto::Rule;

    #[test]
    fn on_its_own_screen_a_party_reads_whole_sentences() {
        for answer in [PlanAnswer::Would { runs: None }, PlanAnswer::NotReady, PlanAnswer::Roster] {
            let told = answer.of_this_party();
            assert!(told.starts_with("this party ") && !told.contains("screen"), "{told}");
        }
        assert_eq!(PlanAnswer::Refuses { rule: "POL-4".into() }.of_this_party(), "this party refuses: rule POL-4");
    }

    /// [PRO-2]: a refusal travels as a rule's name, and nothing of the sentence goes with it.
    #[test]
    fn of_a_refusal_only_the_rule_is_told() {
        let error = Error::Refused { what: "1,234 of my rows are too few".into(), rule: Rule("POL-4") };
        assert_eq!(PlanAnswer::refusal(&error), PlanAnswer::Refuses { rule: "POL-4".into() });
        assert_eq!(PlanAnswer::refusal(&Error::ApiMisuse("my row 0.25")), PlanAnswer::Refuses { rule: String::new() });
        let forged = PlanAnswer::Refuses { rule: "\u{1b}[31mred".into() };
        assert!(!forged.is_well_formed() && PlanAnswer::refusal(&error).is_well_formed());
        assert!(PlanAnswer::Would { runs: None }.is_yes());
        for no in [PlanAnswer::NotReady, PlanAnswer::Roster, PlanAnswer::refusal(&error)] {
            assert!(!no.is_yes(), "{no}");
        }
    }
}
