//! What an answer gives away, and what a plan tells a site's policy about itself ([POL-4], [POL-8], [POL-9]).

use veilsum_cluster::method::Seeding;
use veilsum_proto::{
    Error, Rule,
    limits::MIN_SITES,
    plan::Terms,
    policy::{self, Cost, PlanFacts, Policy},
    release::block_id,
    roster::{PartyId, Roster},
    suite::Hash,
};

use crate::{
    plan::PlanSpec,
    question::{Layout, Question, SumBounds},
};

/// [POL-8]: all answers with noise under one plan together are within what the plan promises, over all its runs: every
/// answer is an independent draw, so a second run would be a second promise.
///
/// # Errors
/// `Error::Refused`, for the operator.
pub fn check_promise(
    (terms, form, sites): (&Terms, &SumBounds, usize),
    policy: &Policy,
    nano_rho: u64,
    before: u64,
) -> Result<(), Error> {
    // This uses the site's own count of colluders, which may be the stricter one. Every share then costs more, and so
    // does the promise.
    let own = honest_sites(terms, policy, sites) as u128;
    let plan = form.noise.map_or(0, |noise| noise.honest as u128);
    let promise = u128::from(form.nano_rho().unwrap_or(0)) * plan * 100_001;
    let most = promise.checked_div(own * 100_000).map_or(0, |most| u64::try_from(most + 1).unwrap_or(u64::MAX));
    if before.saturating_add(nano_rho) <= most {
        return Ok(());
    }
    Err(Error::Refused {
        what: "the answers under this plan would spend more of the privacy budget than the plan promises: it was run before, \
               and a second run has noise of its own"
            .into(),
        rule: Rule("POL-8"),
    })
}

/// Describes a plan to a policy.
pub fn facts(work: &PlanSpec) -> PlanFacts<'_> {
    let recipe = &work.recipe;
    // Whatever the rounds sum up, a full validation sums up by hard cluster.
    let sums = recipe.algorithm.sums_groups() || recipe.judges_fully();
    // Cells of seeding obey the stricter of two numbers.
    let cells = match &recipe.seeding {
        Seeding::Tree(tree) => Some(recipe.rule.min_rows.max(tree.min_rows)),
        _ => None,
    };
    let records = if sums { recipe.rule.min_rows } else { cells.unwrap_or(0) };
    let columns = work.headers().chain(work.labels.iter().map(|l| l.column.as_str()));
    PlanFacts {
        method: work.method_name(),
        columns: columns.collect(),
        // Noise hides a row of a small group as well as any other row.
        groups: (sums || cells.is_some()) && recipe.noise.is_none(),
        cells: recipe.validity.classes > 0 && recipe.noise.is_none(),
        contributors: recipe.rule.min_sites,
        records,
        ask_first: recipe.rule.ask_first,
        change: recipe.algorithm.is_lloyd().then_some(recipe.min_change),
    }
}

/// The most that the total of an answer can say.
pub fn cost(question: &Question, layout: &Layout, terms: &Terms, policy: &Policy, sites: usize) -> Cost {
    let (scalars, mut milli_bits) = layout.nominal();
    if matches!(question, Question::CountRows) {
        // The number of rows is whole, however fine the words are.
        let most = terms.max_rows.saturating_mul(sites as u64).saturating_add(1);
        milli_bits = milli_bits.min(policy::milli_bits(most));
    }
    let rho = layout.rho(honest_sites(terms, policy, sites));
    // This saturates where no site's noise is left.
    Cost { scalars, milli_bits, nano_rho: rho.map(|rho| (rho * 1e9).ceil() as u64) }
}

/// The number of sites whose noise is guaranteed to be in a total. The noise of colluding sites does not protect, and
/// this site may assume more of them than the plan does.
fn honest_sites(terms: &Terms, policy: &Policy, sites: usize) -> usize {
    let covers = usize::from(terms.min_cohort.max(policy.floor.min_cohort)).max(MIN_SITES);
    covers.saturating_sub(terms.colluders_of(sites).max(usize::from(policy.floor.colluders)))
}

/// Digest of these sites' keys, which are the same in every roster.
pub fn cohort_digest(roster: &Roster, cohort: &[u16]) -> Hash {
    block_id(cohort.iter().filter_map(|site| roster.member(PartyId::Site(*site))).map(|member| member.key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [POL-4]: a full validation sums up by cluster whatever the rounds do; counts by label may be of one row.
    #[test]
    fn what_a_plan_says_of_its_validation() {
        use veilsum_cluster::method::{GroupThreshold, Validity};
        let mut work = crate::testing::work(2);
        assert_eq!(work.method_name(), "fcm");
        let said = |work: &PlanSpec| {
            let facts = facts(work);
            (facts.groups, facts.records, facts.cells)
        };
        work.recipe.rule = GroupThreshold { min_rows: 10, min_sites: 2, ask_first: true };
        assert_eq!(said(&work), (false, 0, false));
        work.recipe.validity = Validity::everything();
        assert_eq!(said(&work), (true, 10, false));
        work.recipe.rule.min_rows = 1;
        assert_eq!(said(&work), (true, 1, false));
        work.recipe.validity = Validity { classes: 3, ..Validity::basic() };
        assert_eq!(said(&work), (false, 0, true));
    }
}
