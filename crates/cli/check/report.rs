//! What a check comes to: one value for a terminal, for a page and for --json.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use veilsum_node::{
    app_messages::SOFTWARE,
    checkup::{Finding, Outcome, Rule},
    clock::seconds_since_1970,
    cost::counted,
    documents::{Reading, SitePolicy},
    dp,
    error::{Code, Failure},
    release::{Account, Yes},
    table::Tally,
};
use veilsum_proto::{policy::rho_text, suite::Hash};

use super::leaves::Leaves;
use crate::{
    page::Page,
    screen::folded,
    verb,
    words::{self, columns_of},
};

/// The parts of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Party,
    Way,
    Read,
    Leaves,
    May,
}

/// A finding and its part.
#[derive(Serialize)]
pub(super) struct Checked {
    pub part: Part,
    #[serde(flatten)]
    pub finding: Finding,
}

/// Whether a party is ready, and all that was looked at.
#[derive(Serialize, Default)]
pub(super) struct Report {
    pub ready: bool,
    pub says: String,
    pub role: Option<&'static str>,
    pub software: &'static str,
    /// In the order in which they were looked at: the way to the others last.
    pub checks: Vec<Checked>,
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
    /// Kept for plans that this site said yes to.
    nano_rho_kept: u64,
    nano_rho_left: u64,
    nano_rho_cap: u64,
    epsilon: f64,
    delta: f64,
    /// Whether exact totals have left, for which no bound holds.
    exact: bool,
    exact_numbers: u64,
    /// Those that totals were taken of; of a column of categories one name for each category.
    columns: Vec<String>,
    of_a_person: String,
}

impl Spent {
    pub(super) fn of(account: &Account, site: &SitePolicy) -> Spent {
        let (spent, cap, exact) = (account.spent(), site.policy.nano_rho, account.is_exact());
        let promised = account.promised_beside(&Hash::default(), seconds_since_1970()).max(spent.nano_rho);
        let used = match promised {
            0 => "the whole account is left".to_owned(),
            all if all >= cap => "the account is used up".to_owned(),
            all => format!("{} % of the account is used", (u128::from(all) * 100).div_ceil(u128::from(cap))),
        };
        Spent {
            says: if exact {
                format!("{used}; but exact totals have left these rows, and no bound holds for them")
            } else {
                used
            },
            answers: spent.questions,
            nano_rho: spent.nano_rho,
            nano_rho_kept: promised - spent.nano_rho,
            nano_rho_left: cap.saturating_sub(promised),
            nano_rho_cap: cap,
            epsilon: dp::epsilon(spent.nano_rho, dp::DELTA),
            delta: dp::DELTA,
            exact,
            exact_numbers: spent.scalars,
            columns: account.columns().cloned().collect(),
            of_a_person: words::of_a_person(site),
        }
    }

    fn lines(&self) -> Vec<String> {
        let (cap, left) = (rho_text(self.nano_rho_cap), rho_text(self.nano_rho_left));
        let mut lines = vec![
            format!("account: {}", self.says),
            format!("  {} spent of rho {cap}, {left} left", dp::spends(self.nano_rho)),
        ];
        if self.nano_rho_kept > 0 {
            let kept = rho_text(self.nano_rho_kept);
            lines.push(format!("  rho {kept} more is kept for plans that this site said yes to"));
        }
        if self.answers > 0 {
            let answers = counted(self.answers as usize, "answer");
            lines.push(format!("  {answers} so far, of {}", verb::listed(&self.columns)));
        }
        if self.exact {
            lines.push(format!("  {} exact numbers have left. {}", self.exact_numbers, words::EXACT));
            lines.push("  After a declared change this site answers plans with noise only.".to_owned());
        }
        lines.push(format!("  {}", self.of_a_person));
        lines
    }
}

impl Report {
    /// With its verdict.
    pub(super) fn concluded(self) -> Report {
        let count = |of| self.checks.iter().filter(|checked| checked.finding.outcome == of).count();
        let (failed, warned) = (count(Outcome::Fail), count(Outcome::Warn));
        // Whether a run is possible shows only on the way to the others.
        let tried = self.checks.iter().all(|checked| checked.finding.check != "network");
        let says = match (failed, warned) {
            (0, _) if !tried => {
                let skipped = self.checks.iter().filter(|checked| checked.finding.outcome == Outcome::Skip);
                let skipped: Vec<&str> = skipped.map(|checked| &*checked.finding.check).collect();
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
        let first = self.checks.iter().map(|checked| &checked.finding).find(|found| found.outcome == Outcome::Fail)?;
        let code = Code::from_number(first.code.unwrap_or(0));
        Some(Failure::new(code, format!("{}: {}", first.check, first.says), first.next.clone()))
    }

    /// What has to be mended or looked at, under its title, and then the parts: a thought a line. A page has all of it; a terminal leaves
    /// out what every check says alike.
    fn parts(&self, all: bool) -> [(&'static str, Vec<String>); 6] {
        let lines = |such: &dyn Fn(&Checked) -> bool| {
            let found = self.checks.iter().filter(|checked| such(checked)).map(|checked| &checked.finding);
            let next = |next: &String| (!next.is_empty()).then(|| format!("      next: {next}"));
            found.flat_map(|found| [Some(found.to_string()), next(&found.next)]).flatten().collect::<Vec<_>>()
        };
        let is = |of: &Checked, outcome| of.finding.outcome == outcome;
        let mend = |outcome| lines(&|of| is(of, outcome));
        let of = |part| lines(&|of| of.part == part && (is(of, Outcome::Pass) || is(of, Outcome::Skip)));
        let leaves = self.leaves.as_ref().map_or(Vec::new(), |leaves| leaves.lines(all));
        [
            ("To mend and to look at", [mend(Outcome::Fail), mend(Outcome::Warn)].concat()),
            ("This party", of(Part::Party)),
            ("The way to the others", [of(Part::Way), self.for_the_firewall()].concat()),
            ("What is read", [of(Part::Read), self.read()].concat()),
            ("What would leave", [of(Part::Leaves), leaves].concat()),
            ("Whether it may", [of(Part::May), self.may(all)].concat()),
        ]
    }

    fn for_the_firewall(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.firewall.iter().map(|rule| format!("  {rule}")).collect();
        if !lines.is_empty() {
            lines.insert(0, "For the network team: what a firewall has to let through, with the answers".to_owned());
        }
        lines
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

    fn may(&self, all: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for [key, value, meaning] in self.policy.iter().filter(|_| all).flat_map(|policy| policy.keys.meanings()) {
            lines.push(format!("  {key} = {value}: {meaning}"));
        }
        lines.extend(self.account.as_ref().map_or(Vec::new(), Spent::lines));
        lines
    }

    /// The same as a page.
    pub(super) fn page(&self) -> Page {
        let mut page = Page::new("Whether this party is ready");
        page.says(&self.says);
        for (title, lines) in self.parts(true).into_iter().filter(|(_, lines)| !lines.is_empty()) {
            page.part(title).list(lines.iter().map(|line| line.trim()));
        }
        page
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.says)?;
        for (title, lines) in self.parts(false).into_iter().filter(|(_, lines)| !lines.is_empty()) {
            writeln!(f, "\n{title}")?;
            lines.iter().try_for_each(|line| writeln!(f, "{}", folded(&format!("  {line}"), 6)))?;
        }
        writeln!(f, "\nEvery message that would leave, and what the policy says: --html FILE or --json")
    }
}
