//! What a site's door says to a whole plan ([PRO-2], [POL-8], [POL-9]): one function for the answer to a proposal, for the checks that
//! an operator runs, and for the start of a run. It reads roster, plan, policy and ledger, and no row.

use std::fmt;

use serde::Serialize;
use veilsum_cluster::method::Seeding;
use veilsum_proto::{
    Error, Rule,
    policy::{self, Exact, Policy, left_text, rho_text},
};

use super::{Account, facts};
use crate::agreed::Federation;

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
///
/// # Errors
/// `Error::Refused` with the rule.
pub fn judge(federation: &Federation, policy: &Policy, account: &Account) -> Result<Yes, Error> {
    let (work, terms, sites) = (&*federation.work, &*federation.terms, federation.roster.sites.len());
    let plan = terms.hash();
    if work.recipe.noise.is_some() && account.rho_of(&plan) > 0 && !account.has_begun(&plan) {
        return refused(
            "this plan was answered before, and a second run has noise of its own: agree on a new plan",
            Rule::Pol8,
        );
    }
    if account.block().is_some_and(|block| block.members.len() > sites) {
        return refused(
            "these rows were answered together with more sites than are on the roster; if other rows take their place, say so: veilsum ledger \
             separate",
            Rule::Rel5,
        );
    }
    policy::check_size(terms, &policy.floor, sites)?;
    policy::threshold(terms, &policy.floor, sites, sites)?;
    if policy::least_in_block(terms, &policy.floor, sites) > sites {
        return refused(
            "no block of this roster has as many sites as this site's policy asks for (contributors)",
            Rule::Rel3,
        );
    }
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
    policy::check_account(policy, rest, account.has_agreed(&plan), &spent)?;
    let left = policy.nano_rho.saturating_sub(spent.nano_rho.saturating_add(rest.unwrap_or(0)));
    let runs = nano_rho.map(|rho| u32::try_from(left / rho.max(1)).unwrap_or(u32::MAX));
    Ok(Yes { nano_rho, left, runs })
}

/// Fuzzifiers below this are nearly hard partitions of few rows.
const LEAST_FUZZIFIER: f64 = 1.1;
/// Rows for each cluster at least.
const ROWS_A_CLUSTER: u64 = 20;

/// [POL-9]: whether an operator may agree to the exact totals of this plan. That a plan is not absurd is hygiene and protects no row.
///
/// # Errors
/// `Error::Refused` with what is in the way.
pub fn may_agree(federation: &Federation, policy: &Policy, account: &Account) -> Result<(), Error> {
    let (work, terms) = (&federation.work, &federation.terms);
    let recipe = &work.recipe;
    let no = |what: &str| refused(what, Rule::Pol9);
    if recipe.noise.is_some() {
        return no("the plan adds noise, so there is nothing to agree to");
    }
    if policy.exact == Exact::Never {
        return no("this site's policy answers no plan without noise (exact)");
    }
    if account.changed_since_exact() {
        return no(
            "exact totals have left of these rows before they changed: who subtracts those of now would have the rows in between",
        );
    }
    if u64::from(work.most_clusters()).saturating_mul(ROWS_A_CLUSTER) > terms.min_total_rows {
        return no("the plan has more clusters than a twentieth of the rows that it is sure of (min_total_rows)");
    }
    if recipe.algorithm.traits().fuzzifier.is_some_and(|m| m < LEAST_FUZZIFIER) {
        return no("the plan's fuzzifier is below 1.1");
    }
    if matches!(recipe.seeding, Seeding::Given { .. }) {
        return no("the plan names its first centres itself");
    }
    Ok(())
}
