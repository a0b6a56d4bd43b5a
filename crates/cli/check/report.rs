//! What a check comes to: one value for a terminal and for --json.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use veilsum_node::{
    app_messages::SOFTWARE,
    checkup::{Finding, Outcome, Rule},
    cost::{Cost, counted},
    documents::{Federation, Reading, SitePolicy},
    door::{Account, DEFAULT_NANO_RHO, Kind, Yes},
    dp,
    error::{Code, Failure},
    forecast::Forecast,
    refusal::{left_text, rho_text},
    table::Tally,
};

use crate::{
    screen::folded,
    verb,
    words::{self, columns_of, totals_tell},
};

/// Whether a party is ready, and all that was looked at.
#[derive(Serialize, Default)]
pub(super) struct Report {
    pub ready: bool,
    pub says: String,
    pub role: Option<&'static str>,
    pub software: &'static str,
    /// In the order in which they were looked at: the way to the others last.
    pub checks: Vec<Finding>,
    pub firewall: Vec<Rule>,
    pub columns: Option<Reading>,
    pub read: Option<Tally>,
    pub leaves: Option<Leaves>,
    pub policy: Option<InForce>,
    pub account: Option<Spent>,
    pub answer: Option<Yes>,
    /// The first thing that is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

/// What would leave a site under a plan, and what that costs.
#[derive(Serialize)]
pub(super) struct Leaves {
    says: String,
    totals_tell: Vec<String>,
    /// Numbers that totals are made of, at most.
    numbers: u64,
    /// What the plan spends at most, in 10^-9 of rho; none if totals are exact.
    nano_rho: Option<u64>,
    /// That in words.
    together: Vec<String>,
}

impl Leaves {
    pub(super) fn of(federation: &Federation, site: &str, cap: u64) -> Result<Leaves, Failure> {
        let cost = Cost::of(federation)?;
        let numbers = Forecast::of(federation)?.total();
        let noise = federation.work.recipe.noise;
        let nano_rho = noise.map(|noise| noise.price());
        Ok(Leaves {
            says: format!(
                "{site} would send nothing that can be read: vectors under masks, key shares in sealed boxes, public keys and \
                 signatures, and never a row, a value of one or their number. What is learnt all the same: the coordinator and every site \
                 learn totals over the whole cohort; {}.",
                cost.sites_mean
            ),
            totals_tell: totals_tell(federation, &cost),
            numbers,
            nano_rho,
            together: match noise {
                None => vec![format!("Together: {}, exact", counted(numbers as usize, "number"))],
                Some(noise) => vec![dp::guesses(noise.unit, noise.price(), cap), dp::spends(noise.price(), cap)],
            },
        })
    }

    fn lines(&self) -> Vec<String> {
        let told = self.totals_tell.iter().map(|told| format!("  {told}"));
        [self.says.clone()].into_iter().chain(told).chain(self.together.clone()).collect()
    }
}

/// The policy in force.
#[derive(Serialize)]
pub(super) struct InForce {
    pub from: String,
    pub keys: SitePolicy,
}

/// What a site gave away, and what is left of its account.
#[derive(Serialize)]
pub(super) struct Spent {
    says: String,
    answers: u64,
    nano_rho: u64,
    /// What runs that have begun and not ended may still spend.
    nano_rho_begun: u64,
    nano_rho_left: u64,
    nano_rho_cap: u64,
    /// Whether exact totals have left, or were agreed to: no bound holds.
    exact: bool,
    exact_numbers: u64,
    of_a_person: String,
}

impl Spent {
    pub(super) fn of(account: &Account, site: &SitePolicy, cap: u64) -> Spent {
        let (spent, exact) = (account.spent(), account.kind() == Some(Kind::Exact));
        let committed = account.committed(None);
        let used = match committed {
            0 => "the whole account is left".to_owned(),
            all if all >= cap => "the account is used up".to_owned(),
            all => format!("{} % of the account is used", (u128::from(all) * 100).div_ceil(u128::from(cap))),
        };
        Spent {
            says: if exact {
                format!("{used}; but this account is exact for good, and no bound holds for its rows")
            } else {
                used
            },
            answers: spent.answers,
            nano_rho: spent.nano_rho,
            nano_rho_begun: committed - spent.nano_rho,
            nano_rho_left: cap.saturating_sub(committed),
            nano_rho_cap: cap,
            exact,
            exact_numbers: spent.scalars,
            of_a_person: words::of_a_person(site),
        }
    }

    fn lines(&self) -> Vec<String> {
        let (cap, left) = (rho_text(self.nano_rho_cap), left_text(self.nano_rho_left));
        let usual = match self.nano_rho_cap {
            DEFAULT_NANO_RHO => String::new(),
            _ => format!(" (the usual cap is {})", rho_text(DEFAULT_NANO_RHO)),
        };
        let mut lines = vec![
            format!("account: {}", self.says),
            format!("  rho {} of {cap} is spent, {left} left{usual}", rho_text(self.nano_rho)),
        ];
        if self.nano_rho_begun > 0 {
            let rest = rho_text(self.nano_rho_begun);
            lines.push(format!("  rho {rest} more may be spent by runs that have begun and not ended"));
        }
        if self.answers > 0 {
            let answers = counted(self.answers as usize, "answer");
            lines.push(format!("  {answers} charged so far"));
        }
        if self.exact {
            lines.push(format!("  {} exact numbers may have left. {}", self.exact_numbers, words::EXACT));
            lines.push("  What came or went since can be computed from exact totals of now; `veilsum agree plan.toml` shows it.".to_owned());
        }
        lines.push(format!("  {}", self.of_a_person));
        lines
    }
}

impl Report {
    /// With its verdict.
    pub(super) fn concluded(self) -> Report {
        let count = |of| self.checks.iter().filter(|found| found.outcome == of).count();
        let (failed, warned) = (count(Outcome::Fail), count(Outcome::Warn));
        // Whether a run is possible shows only on the way to the others.
        let tried = self.checks.iter().all(|found| found.check != "network");
        let says = match (failed, warned) {
            (0, _) if !tried => {
                let skipped = self.checks.iter().filter(|found| found.outcome == Outcome::Skip);
                let skipped: Vec<&str> = skipped.map(|found| &*found.check).collect();
                format!("not known: nothing failed; not looked at: {}", skipped.join(", "))
            }
            (0, 0) => "ready".to_owned(),
            (0, warned) => format!("ready, with {} to look at", counted(warned, "thing")),
            (failed, _) => format!("not ready: {} to mend", counted(failed, "thing")),
        };
        let error = self.failure().as_ref().map(verb::error);
        Report { ready: failed == 0 && tried, says, software: SOFTWARE, error, ..self }
    }

    /// The first check that failed.
    pub(super) fn failure(&self) -> Option<Failure> {
        let first = self.checks.iter().find(|found| found.outcome == Outcome::Fail)?;
        let code = Code::from_number(first.code.unwrap_or(0));
        Some(Failure::new(code, format!("{}: {}", first.check, first.says), first.next.clone()))
    }

    /// What has to be mended or looked at, what is ready, what would leave, and what it costs: a thought a line, each list under its title.
    fn parts(&self) -> [(&'static str, Vec<String>); 5] {
        let of = |outcome| {
            let found = self.checks.iter().filter(move |found| found.outcome == outcome);
            let next = |next: &String| (!next.is_empty()).then(|| format!("      next: {next}"));
            found.flat_map(|found| [Some(found.to_string()), next(&found.next)]).flatten().collect::<Vec<_>>()
        };
        let leaves = self.leaves.as_ref().map_or(Vec::new(), Leaves::lines);
        let account = self.account.as_ref().map_or(Vec::new(), Spent::lines);
        [
            ("To mend and to look at", [of(Outcome::Fail), of(Outcome::Warn)].concat()),
            ("As it should be, or not looked at", [of(Outcome::Pass), of(Outcome::Skip)].concat()),
            (
                "For the network team: what a firewall has to let through",
                self.firewall.iter().map(Rule::to_string).collect(),
            ),
            ("What is read", self.read()),
            ("What would leave, and what it costs", [leaves, account].concat()),
        ]
    }

    fn read(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(columns) = self.columns.as_ref().filter(|_| self.read.is_none()) {
            // The account below has them otherwise.
            lines.extend(columns_of(columns).map(|(what, names)| format!("{what}: {names}")));
        }
        lines.extend(self.read.as_ref().map_or(Vec::new(), Tally::lines));
        lines
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.says)?;
        for (title, lines) in self.parts().into_iter().filter(|(_, lines)| !lines.is_empty()) {
            writeln!(f, "\n{title}")?;
            lines.iter().try_for_each(|line| writeln!(f, "{}", folded(&format!("  {line}"), 6)))?;
        }
        Ok(())
    }
}
