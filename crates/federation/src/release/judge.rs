//! What a site's door says to a whole plan ([PRO-2], [POL-8] to [POL-10]): one function for the answer to a proposal, for the checks that
//! an operator runs, and for the start of a run. It reads roster, plan, policy and ledger, and no row.

use std::fmt;

use serde::Serialize;
use veilsum_cluster::method::Seeding;
use veilsum_proto::{
    Error, Rule,
    ledger::Table,
    plan::{Sites, Terms},
    policy::{self, Ask, Policy, left_text, rho_text},
    roster::Roster,
    standing::set_of_sites,
    suite::Hash,
};

use super::{Account, facts};
use crate::{agreed::Federation, plan::PlanSpec};

/// What a site says to a whole plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It answers.
    Yes(Yes),
    /// Policy or account refuse it.
    No(Error),
    /// It answers once its operator agrees (`veilsum agree`).
    NeedsAgreement(Vec<Needs>),
}

/// What an operator has to agree to ([POL-9], [POL-10]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Exact totals.
    Exact,
    /// A set of sites that the account does not name.
    Set,
    /// Totals over whichever sites are left, at a site that says `same`.
    AnySites,
    /// The policy asks for every plan.
    Always,
}

impl Needs {
    /// The rule that asks for it.
    pub fn rule(self) -> Rule {
        if self == Needs::Exact { Rule::Pol9 } else { Rule::Pol10 }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Needs::Exact => "its totals are exact, and no bound holds for the rows behind them",
            Needs::Set => "its totals cover sites that this account does not name yet",
            Needs::AnySites => {
                "its totals cover whichever sites are left (sites = \"any\"), and site.toml says sites = \"same\""
            }
            Needs::Always => "site.toml asks for every plan (ask = \"always\")",
        })
    }
}

impl Verdict {
    /// The same where only a yes goes on.
    ///
    /// # Errors
    /// `Error::Refused`: the no, or what the operator has to agree to.
    pub fn yes(self) -> Result<Yes, Error> {
        match self {
            Verdict::Yes(yes) => Ok(yes),
            Verdict::No(why) => Err(why),
            Verdict::NeedsAgreement(needs) => Err(unagreed(&needs)),
        }
    }
}

/// The refusal for want of an agreement.
pub(super) fn unagreed(needs: &[Needs]) -> Error {
    let why: Vec<String> = needs.iter().map(Needs::to_string).collect();
    let what = format!("this plan waits for its operator's agreement (veilsum agree plan.toml): {}", why.join("; "));
    Error::Refused { what, rule: needs.first().map_or(Rule::Pol10, |needs| needs.rule()) }
}

/// Names the sites of a roster.
pub fn set_of(roster: &Roster) -> Hash {
    set_of_sites(roster.sites.iter().map(|site| site.key))
}

/// What the operator has yet to agree to before this plan is answered, from the table `now` if it is known.
pub fn needs(
    (roster, terms, work): (&Roster, &Terms, &PlanSpec),
    policy: &Policy,
    account: &Account,
    now: Option<&Table>,
) -> Vec<Needs> {
    let agreed = account.has_agreed(&terms.hash(), now);
    let all = [
        (Needs::Exact, work.recipe.noise.is_none() && !agreed),
        (Needs::Set, !account.names(&set_of(roster))),
        (Needs::AnySites, (terms.sites, policy.sites) == (Sites::Any, Sites::Same) && !agreed),
        (Needs::Always, policy.ask == Ask::Always && !agreed),
    ];
    all.into_iter().filter(|(_, open)| *open).map(|(needs, _)| needs).collect()
}

/// A yes to a whole plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Yes {
    /// What it spends at most, in 10^-9 of rho; `None` without noise.
    pub nano_rho: Option<u64>,
    /// What is left of the account then, in 10^-9 of rho.
    pub left: u64,
    /// How often a plan like it would be answered after it; `None` without noise, which needs an agreement each time.
    pub runs: Option<u32>,
}

impl fmt::Display for Yes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rho) = self.nano_rho else {
            return f.write_str("this site answers the whole plan, to whose exact totals its operator agreed.");
        };
        let (rho, left) = (rho_text(rho), left_text(self.left));
        write!(f, "this site answers the whole plan. It spends rho {rho} at most, and leaves {left} in the account. ")?;
        match self.runs.unwrap_or(0) {
            0 => write!(f, "No further plan like it fits."),
            1 => write!(f, "1 more plan like it fits."),
            more => write!(f, "{more} more plans like it fit."),
        }
    }
}

fn refused<T>(what: impl Into<String>, rule: Rule) -> Result<T, Error> {
    Err(Error::Refused { what: what.into(), rule })
}

/// Whether this site answers the whole plan, or the rest of a run that has begun and not ended. Runs that have begun count at their whole
/// price, so a run that begins with a yes comes to its end ([POL-8]).
pub fn judge(federation: &Federation, policy: &Policy, account: &Account) -> Verdict {
    judge_table(federation, policy, account, None)
}

/// The same where the table to answer from is known.
pub fn judge_table(federation: &Federation, policy: &Policy, account: &Account, now: Option<&Table>) -> Verdict {
    let Federation { roster, terms, work } = federation;
    match fits(federation, policy, account) {
        Err(why) => Verdict::No(why),
        Ok(yes) => match needs((roster, terms, work), policy, account, now) {
            needs if needs.is_empty() => Verdict::Yes(yes),
            needs if needs.contains(&Needs::Exact) => {
                is_sane(work, terms).map_or_else(Verdict::No, |()| Verdict::NeedsAgreement(needs))
            }
            needs => Verdict::NeedsAgreement(needs),
        },
    }
}

/// Whether policy and account let the plan be answered, once the operator agrees to it.
pub(super) fn fits(federation: &Federation, policy: &Policy, account: &Account) -> Result<Yes, Error> {
    let (work, terms, sites) = (&*federation.work, &*federation.terms, federation.roster.sites.len());
    let plan = terms.hash();
    if work.recipe.noise.is_some() && account.rho_of(&plan) > 0 && !account.has_begun(&plan) {
        return refused(
            "this plan was answered before, and a second run has noise of its own: agree on a new plan",
            Rule::Pol8,
        );
    }
    policy::check_size(terms, &policy.floor, sites, sites)?;
    policy::threshold(terms, &policy.floor, sites, sites)?;
    policy::check_questions(&policy.floor, u64::from(work.max_questions()))?;
    policy::check_plan(policy, &facts(work))?;
    // How many rows there are must not decide, so a plan has room for all that there may be.
    if work.recipe.noise.is_some() && terms.max_rows < policy.max_rows {
        return refused(
            format!(
                "the plan allows a site {} rows, and this site may hold {} (max_rows)",
                terms.max_rows, policy.max_rows
            ),
            Rule::Pol4,
        );
    }
    let nano_rho = work.recipe.noise.map(|noise| noise.price());
    let rest = nano_rho.map(|rho| rho.saturating_sub(account.rho_of(&plan)));
    let mut spent = account.spent();
    spent.nano_rho = account.committed_beside(&plan);
    policy::check_account(policy, rest, true, &spent)?;
    let left = policy.nano_rho.saturating_sub(spent.nano_rho.saturating_add(rest.unwrap_or(0)));
    let runs = nano_rho.map(|rho| u32::try_from(left / rho.max(1)).unwrap_or(u32::MAX));
    Ok(Yes { nano_rho, left, runs })
}

/// Fuzzifiers below this are nearly hard partitions of few rows.
const LEAST_FUZZIFIER: f64 = 1.1;
/// Rows for each cluster at least.
const ROWS_A_CLUSTER: u64 = 20;

/// [POL-9]: whether an operator may agree to the exact totals of this plan. That a plan is not absurd is hygiene and protects no row.
fn is_sane(work: &PlanSpec, terms: &Terms) -> Result<(), Error> {
    let recipe = &work.recipe;
    if u64::from(work.most_clusters()).saturating_mul(ROWS_A_CLUSTER) > terms.min_total_rows {
        let what = "the plan has more clusters than a twentieth of the rows that it is sure of (min_total_rows)";
        return refused(what, Rule::Pol9);
    }
    if recipe.algorithm.traits().fuzzifier.is_some_and(|m| m < LEAST_FUZZIFIER) {
        return refused("the plan's fuzzifier is below 1.1", Rule::Pol9);
    }
    if matches!(recipe.seeding, Seeding::Given { .. }) {
        return refused("the plan names its first centres itself", Rule::Pol9);
    }
    Ok(())
}
