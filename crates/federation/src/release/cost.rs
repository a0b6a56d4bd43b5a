//! What an answer gives away, and what a plan tells a site's policy about itself ([POL-4], [POL-8]).

use veilsum_cluster::privacy::{HONEST, Unit};
use veilsum_proto::{
    Error, Rule,
    limits::MIN_SITES,
    plan::Terms,
    policy::{Cost, PlanFacts, Policy},
    release::block_id,
    roster::{PartyId, Roster},
    suite::Hash,
};

use crate::{
    plan::{PlanSpec, curious},
    question::{Layout, SumBounds},
};

/// [POL-8]: all answers with noise under one plan together are within what the plan promises, over all its runs: every
/// answer is an independent draw, so a second run would be a second promise.
///
/// # Errors
/// `Error::Refused`, for the operator.
pub fn check_promise(
    plan: (&Terms, &SumBounds, usize),
    policy: &Policy,
    nano_rho: u64,
    before: u64,
) -> Result<(), Error> {
    if before.saturating_add(nano_rho) <= promise(plan, policy).unwrap_or(0) {
        return Ok(());
    }
    Err(Error::Refused {
        what: "the answers under this plan would spend more of the privacy budget than the plan promises: it was run before, \
               and a second run has noise of its own"
            .into(),
        rule: Rule::Pol8,
    })
}

/// What a plan spends at most, in 10^-9 of rho, by this site's own count of colluders, which may be the stricter one: every
/// share then costs more, and so does the promise. `None` without noise.
pub fn promise((terms, form, sites): (&Terms, &SumBounds, usize), policy: &Policy) -> Option<u64> {
    let planned = form.noise?.honest as u128;
    let own = honest_sites(terms, policy, sites) as u128;
    let promise = u128::from(form.nano_rho()?) * planned * 100_001;
    // Without an honest site there is no bound.
    Some(promise.checked_div(own * 100_000).map_or(u64::MAX, |most| u64::try_from(most + 1).unwrap_or(u64::MAX)))
}

/// Describes a plan to a policy.
pub fn facts(work: &PlanSpec) -> PlanFacts<'_> {
    let rows_per_person = match work.recipe.noise.map(|noise| noise.unit) {
        Some(Unit::Person { rows }) => Some(rows),
        _ => None,
    };
    PlanFacts { method: work.method_name(), columns: work.headers().collect(), rows_per_person }
}

/// The most that the total of an answer can say.
pub fn cost(layout: &Layout, terms: &Terms, policy: &Policy, sites: usize) -> Cost {
    let rho = layout.rho(honest_sites(terms, policy, sites));
    // This saturates if no site's noise is left.
    Cost { scalars: layout.words() as u64, nano_rho: rho.map(|rho| (rho * 1e9).ceil() as u64) }
}

/// The number of sites whose noise is counted on, [`HONEST`] at most. The noise of colluding sites does not protect, and this site may
/// assume more of them than the plan does.
fn honest_sites(terms: &Terms, policy: &Policy, sites: usize) -> usize {
    let covers = usize::from(terms.min_cohort.max(policy.floor.min_cohort)).max(MIN_SITES);
    covers.saturating_sub(curious(terms, sites).max(usize::from(policy.floor.colluders))).min(HONEST)
}

/// Digest of these sites' keys, which are the same in every roster.
pub fn cohort_digest(roster: &Roster, cohort: &[u16]) -> Hash {
    block_id(cohort.iter().filter_map(|site| roster.member(PartyId::Site(*site))).map(|member| Hash(member.key.0)))
}
