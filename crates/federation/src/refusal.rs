//! What the door's codes say to people, on every screen: why a site does not answer, and what to do next; and how rho is written.

use veilsum_door::{HONEST, Needs, No, Unit, Yes};
use veilsum_proto::Error;

use crate::{cost::counted, error::Failure};

/// rho as a person reads it, from 10^-9 of it: four digits after the point, rounded up.
pub fn rho_text(nano_rho: u64) -> String {
    let parts = nano_rho.div_ceil(100_000);
    let text = format!("{}.{:04}", parts / 10_000, parts % 10_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What is left of an account, likewise, but rounded down: nobody is told of more than there is.
pub fn left_text(nano_rho: u64) -> String {
    rho_text(nano_rho - nano_rho % 100_000)
}

/// What comes or goes where one speaks of privacy, several of them.
pub fn units(unit: Unit) -> String {
    match unit {
        Unit::Row => "rows".to_owned(),
        Unit::Person(rows) => format!("persons of at most {}", counted(rows as usize, "row")),
    }
}

/// A cap as an operator writes it: for each of the sites that keep it together.
fn each(cap: u64) -> String {
    rho_text(cap / HONEST as u64)
}

/// Why a site does not answer.
pub fn why(no: &No) -> String {
    match no {
        No::Below(below) => below.to_string(),
        No::Threshold { sites, threshold, colluders } => {
            format!("a threshold of {threshold} among {sites} sites is unsafe against {colluders} that collude (colluders)")
        }
        No::Method => "the plan's method is not on this site's list (methods)".to_owned(),
        No::Column(at) => format!("column {at} of the plan is not on this site's list (columns)"),
        No::NoPersons => "the plan hides persons, and this site does not say which rows are of one person (person under [rows] in \
                          site.toml)"
            .to_owned(),
        No::Unit { plan, own } => {
            format!("the plan hides {}, and this site has {} (rows_per_person in site.toml)", units(*plan), units(*own))
        }
        No::OtherUnit { account, policy } => format!(
            "this account is of {} since its first run, and site.toml says {} (person, rows_per_person)",
            units(*account),
            units(*policy)
        ),
        No::Room { plan, own } => {
            format!("the plan allows a site {plan} rows, and this site may hold {own} (max_rows)")
        }
        No::Account { left, cap } => {
            // The largest plan for which so much is left, as its maker says its rho.
            let fits = match left / HONEST as u64 {
                0 => "no plan with noise fits any more".to_owned(),
                rho => format!("a plan of rho {} fits", rho_text(rho)),
            };
            let (left, cap) = (rho_text(*left), rho_text(*cap));
            format!("it may spend more than the {left} of {cap} in rho that are left for the life of this account: {fits}")
        }
        No::AboveCap { policy, cap } => {
            let (policy, cap) = (each(*policy), each(*cap));
            format!(
                "site.toml says rho = {policy}, and the account's cap is rho = {cap}: site.toml lowers it alone, and its operator raises \
                 it (veilsum agree --cap {policy})"
            )
        }
        No::RunBefore => "this plan was answered before, and a second run has noise of its own: agree on a new plan".to_owned(),
        No::Answered => "this round was answered before, and the journal does not have the answer: it was set back, or taken from \
                         elsewhere"
            .to_owned(),
        No::Price => "the answers under this plan would spend more than its whole price: a second run, and a round that broke off, \
                      has noise of its own"
            .to_owned(),
        No::Exact => "the plan adds no noise, and this site's policy answers none without (exact)".to_owned(),
        No::ExactAny => "exact totals cover all sites of the roster, and this plan's cover whichever are left (sites = \"any\")".to_owned(),
        No::AfterExact => "this account is exact for good: noise hides nothing of rows whose exact totals were given".to_owned(),
        No::Clusters => "the plan has more clusters than a twentieth of the rows that it is sure of (min_total_rows)".to_owned(),
        No::Fuzzifier => "the plan's fuzzifier is below 1.1".to_owned(),
        No::NamesCentres => "the plan names its first centres itself".to_owned(),
        No::Unagreed(needs) => {
            let needs: Vec<&str> = needs.iter().map(needed).collect();
            format!("this plan waits for your agreement (veilsum agree plan.toml): {}", needs.join("; "))
        }
    }
}

/// What an operator has to agree to.
pub fn needed(needs: &Needs) -> &'static str {
    match needs {
        Needs::Exact => "its totals are exact, and no bound holds for the rows behind them",
        Needs::EndsPromise => "this account promised something under noise, and exact totals end that promise for good",
        Needs::Set => "its totals cover sites that this account does not name yet",
        Needs::AnySites => {
            "its totals cover whichever sites are left (sites = \"any\"), and site.toml says sites = \"same\""
        }
        Needs::Always => "site.toml asks for every plan (ask = \"always\")",
    }
}

/// A yes to a whole plan.
pub fn agreed(yes: &Yes) -> String {
    let Some((rho, runs)) = yes.nano_rho.zip(yes.runs) else {
        return "this site answers the whole plan, to whose exact totals its operator agreed.".to_owned();
    };
    let more = match runs {
        0 => "No further plan like it fits.".to_owned(),
        1 => "1 more plan like it fits.".to_owned(),
        more => format!("{more} more plans like it fit."),
    };
    let (rho, left) = (rho_text(rho), left_text(yes.left));
    format!("this site answers the whole plan. It spends rho {rho} at most, and leaves {left} in the account. {more}")
}

/// The error that refuses by this code.
fn refused(no: &No) -> Error {
    Error::Refused { what: why(no), rule: no.rule() }
}

impl From<No> for Failure {
    fn from(no: No) -> Self {
        let advice = match &no {
            No::AfterExact => {
                "nothing gives these rows a promise again; for other people's rows join from another folder (`veilsum join`)"
            }
            No::RunBefore => {
                "wait for the coordinator's next plan: each run has a plan of its own, which comes by itself"
            }
            No::AboveCap { .. } => "lower rho in site.toml, or raise the cap as its error says",
            No::NoPersons => {
                "say which column names the person (person under [rows] in site.toml), or ask for a plan that hides rows"
            }
            No::Unit { .. } => "ask the coordinator for a plan that hides what this site's site.toml says",
            No::OtherUnit { .. } => {
                "put person and rows_per_person in site.toml back: an account keeps its unit for good"
            }
            No::Price => {
                "this site takes no further part in this run: wait for a new plan, and find out why the process ended amid rounds \
                 (dp_retries of a plan says for how many there is room)"
            }
            No::Exact => "ask for a plan with noise; `exact` in site.toml lets you agree to others, one by one",
            No::ExactAny => "ask for the same plan with sites = \"same\", or for one with noise",
            No::Clusters | No::Fuzzifier | No::NamesCentres => {
                "ask the coordinator for another plan: nobody can agree to this one, as its totals could be single rows"
            }
            // What its rule says.
            _ => return refused(&no).into(),
        };
        Failure { advice: advice.into(), ..refused(&no).into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rho_is_read_by_people() {
        let shown = [0, 1, 250_000_000, 1_000_000_000, 333_333_333, 12_500_000_000].map(rho_text);
        assert_eq!(shown, ["0", "0.0001", "0.25", "1", "0.3334", "12.5"]);
        // What is spent and what is left are never more together than there is.
        assert_eq!([666_666_667, 99_999, 750_000_000].map(left_text), ["0.6666", "0", "0.75"]);
    }
}
