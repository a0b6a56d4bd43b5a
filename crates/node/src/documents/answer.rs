//! What a member says to a plan before anything is asked ([PRO-2]).

use std::fmt;

use serde::{Deserialize, Serialize};
use veilsum_door::No;
use veilsum_proto::Rule;

/// A member's answer to a proposed plan. It follows from roster, plan, policy and ledger, but for one bit: whether the
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
        /// The rule.
        rule: Rule,
    },
    /// Its operator has not agreed to the roster.
    Roster,
    /// It is not ready; nobody but its own operator learns why.
    NotReady,
    /// It answers the plan, and looks at its rows; one of the others follows.
    Reading,
    /// It answers once its operator agrees ([POL-9], [POL-10]).
    NeedsAgreement,
    /// It has answered the plan, and that run is over.
    Ran,
    /// It answers the plan, and cannot reach the intermediary.
    Unreached,
}

impl PlanAnswer {
    /// Whether a run with this member can be begun.
    pub fn is_yes(&self) -> bool {
        matches!(self, PlanAnswer::Would { .. })
    }

    /// A no: of a refusal its rule travels, and nothing of its words.
    pub fn refusal(no: &No) -> PlanAnswer {
        match no {
            No::RunBefore => PlanAnswer::Ran,
            no => PlanAnswer::Refuses { rule: no.rule() },
        }
    }

    /// The same on this party's own screen.
    pub fn of_this_party(&self) -> String {
        match self {
            PlanAnswer::Would { runs: None } => "this party is ready".to_owned(),
            PlanAnswer::Roster => "this party cannot answer, because its roster has not been agreed to yet".to_owned(),
            PlanAnswer::NotReady => "this party is not ready for this plan".to_owned(),
            PlanAnswer::Unreached => "this party cannot reach the intermediary; it tries again by itself".to_owned(),
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
            PlanAnswer::Refuses { rule } => write!(f, "refuses: {}", refused_by(*rule)),
            PlanAnswer::Roster => write!(f, "its operator has not agreed to the roster yet"),
            PlanAnswer::NotReady => write!(f, "is not ready; its own screen says why"),
            PlanAnswer::Reading => write!(f, "is reading its rows"),
            PlanAnswer::Ran => write!(f, "has run this plan"),
            PlanAnswer::Unreached => write!(f, "cannot reach the intermediary; its own screen says more"),
            PlanAnswer::NeedsAgreement => {
                write!(f, "waits for its operator, who has to agree (veilsum agree plan.toml)")
            }
        }
    }
}

/// What of a site's policy or account is against a plan, by the rule that travels.
fn refused_by(rule: Rule) -> String {
    let why = match rule {
        Rule::Pol1 => "it wants totals over more sites (min_cohort)",
        Rule::Pol2 => "the plan may ask more questions than it allows (max_rounds)",
        Rule::Pol4 => {
            "methods, columns, persons or room for rows are not as it wants them (methods, columns, rows_per_person, max_rows)"
        }
        Rule::Pol8 => "its account does not suffice; its own screen says what would fit",
        Rule::Pol9 => "it gives no such exact totals (exact)",
        Rule::Thr2 => "it supposes that more sites collude than the threshold withstands (colluders)",
        Rule::Jrn2 => "it answered this round before, and has lost what it answered",
        Rule::Pol10 => "its operator has yet to agree to it",
        other => return format!("rule {other}; its own screen says more"),
    };
    why.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn on_its_own_screen_a_party_reads_whole_sentences() {
        for answer in [PlanAnswer::Would { runs: None }, PlanAnswer::NotReady, PlanAnswer::Roster] {
            let told = answer.of_this_party();
            assert!(told.starts_with("this party ") && !told.contains("screen"), "{told}");
        }
        assert_eq!(
            PlanAnswer::Refuses { rule: Rule::Pol4 }.of_this_party(),
            "this party refuses: methods, columns, persons or room for rows are not as it wants them (methods, columns, rows_per_person, max_rows)"
        );
    }

    /// [PRO-2]: a refusal travels as a rule's name, and nothing of the sentence goes with it.
    #[test]
    fn of_a_refusal_only_the_rule_is_told() {
        let no = No::Room { plan: 64, own: 1_000 };
        assert_eq!(PlanAnswer::refusal(&no), PlanAnswer::Refuses { rule: Rule::Pol4 });
        assert_eq!(PlanAnswer::refusal(&No::RunBefore), PlanAnswer::Ran);
        for (name, rule) in
            [("POL-4", Some(Rule::Pol4)), ("", None), (concat!("POL", "-99"), None), ("\u{1b}[31mred", None)]
        {
            let said = serde_json::from_value(json!({ "refuses": { "rule": name } })).ok();
            assert_eq!(said, rule.map(|rule| PlanAnswer::Refuses { rule }), "{name:?}");
            assert!(said.is_none_or(|said| json!(said)["refuses"]["rule"] == name), "{name:?}");
        }
        assert!(PlanAnswer::Would { runs: None }.is_yes());
        for no in [
            PlanAnswer::NotReady,
            PlanAnswer::Roster,
            PlanAnswer::NeedsAgreement,
            PlanAnswer::Ran,
            PlanAnswer::Unreached,
            PlanAnswer::refusal(&no),
        ] {
            assert!(!no.is_yes(), "{no}");
        }
    }
}
