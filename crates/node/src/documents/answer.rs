//! What a member says to a plan before anything is asked ([PRO-2]).

use std::fmt;

use serde::{Deserialize, Serialize};

/// A member's answer to a proposed plan. It says nothing of rows but what follows from the number of runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanAnswer {
    /// It would answer the whole plan.
    Would {
        /// How many further runs like this one its rules leave room for, as far as it says; none where it has no rows.
        runs: Option<u32>,
    },
    /// It may stop before the end: whether its budget suffices depends on totals that nobody knows yet.
    Perhaps,
    /// Its budget does not suffice.
    Budget,
    /// A rule of its policy refuses the plan.
    Refuses {
        /// The rule, as in `POL-4`; empty where there is no name for it.
        rule: String,
    },
    /// Its operator has not agreed to the roster.
    Roster,
    /// Its rows do not fit the plan, cannot be read, or are not those that it answered from before.
    Rows,
}

impl PlanAnswer {
    /// The longest name of a rule.
    const MAX_RULE: usize = 8;

    /// Whether a run with this member can be begun.
    pub fn is_yes(&self) -> bool {
        matches!(self, PlanAnswer::Would { .. } | PlanAnswer::Perhaps)
    }

    /// A refusal by the rule that `why` names: `[POL-4]` in a sentence.
    pub fn refusal(why: &str) -> PlanAnswer {
        let named = why.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(rule, _)| rule);
        let rule = named.filter(|rule| Self::is_rule(rule)).last().unwrap_or_default();
        PlanAnswer::Refuses { rule: rule.to_owned() }
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
}

impl PlanAnswer {
    /// The same on this party's own screen.
    pub fn of_this_party(&self) -> String {
        match self {
            PlanAnswer::Would { runs: None } => "this party is ready".to_owned(),
            PlanAnswer::Roster => "this party cannot answer, because its roster has not been agreed to yet".to_owned(),
            PlanAnswer::Rows => "this party cannot answer, because its rows are not ready for this plan".to_owned(),
            other => format!("this party {other}"),
        }
    }
}

impl fmt::Display for PlanAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanAnswer::Would { runs: None } => write!(f, "ready"),
            PlanAnswer::Would { runs: Some(0) } => write!(f, "would answer, and no further run like this one"),
            PlanAnswer::Would { runs: Some(1) } => write!(f, "would answer, and about 1 more run like this one"),
            PlanAnswer::Would { runs: Some(runs) } => {
                write!(f, "would answer, and about {runs} more runs like this one")
            }
            PlanAnswer::Perhaps => {
                write!(f, "would begin, and may stop before the end: its budget depends on totals to come")
            }
            PlanAnswer::Budget => write!(f, "refuses: its budget does not suffice"),
            PlanAnswer::Refuses { rule } if rule.is_empty() => write!(f, "refuses"),
            PlanAnswer::Refuses { rule } => write!(f, "refuses: rule {rule}"),
            PlanAnswer::Roster => write!(f, "its operator has not agreed to the roster yet"),
            PlanAnswer::Rows => write!(f, "its rows are not ready for this plan; its own screen says why"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_its_own_screen_a_party_reads_whole_sentences() {
        for answer in [PlanAnswer::Would { runs: None }, PlanAnswer::Perhaps, PlanAnswer::Rows, PlanAnswer::Roster] {
            let told = answer.of_this_party();
            assert!(told.starts_with("this party ") && !told.contains("screen"), "{told}");
        }
        assert_eq!(PlanAnswer::Refuses { rule: "POL-4".into() }.of_this_party(), "this party refuses: rule POL-4");
    }

    /// [PRO-2]: a refusal travels as a rule's name, and nothing of the sentence goes with it.
    #[test]
    fn of_a_refusal_only_the_rule_is_told() {
        let rule = |why: &str| match PlanAnswer::refusal(why) {
            PlanAnswer::Refuses { rule } => rule,
            other => panic!("{other}"),
        };
        assert_eq!(rule("1,234 of my rows are too few [POL-4]"), "POL-4");
        assert_eq!(rule("see [REL-3], and [a note] of 5 rows"), "REL-3");
        assert_eq!(rule("my row [0.25] is outside"), "");
        let forged = PlanAnswer::Refuses { rule: "\u{1b}[31mred".into() };
        assert!(!forged.is_well_formed() && PlanAnswer::refusal("x [LED-8]").is_well_formed());
        assert!(PlanAnswer::Perhaps.is_yes() && PlanAnswer::Would { runs: None }.is_yes());
        for no in [PlanAnswer::Budget, PlanAnswer::Roster, PlanAnswer::Rows, PlanAnswer::refusal("")] {
            assert!(!no.is_yes(), "{no}");
        }
    }
}
