//! What an answer gives away, and what a plan tells a site's policy about itself ([POL-4], [POL-8]).

use veilsum_cluster::privacy::Unit;
use veilsum_proto::{
    Error, Rule,
    policy::{Cost, PlanFacts},
    roster::{PartyId, Roster},
    standing::set_of_sites,
    suite::Hash,
};

use crate::{plan::PlanSpec, question::Layout};

/// [POL-8]: all answers with noise under one plan together are within the plan's price, over all its runs: every answer is an
/// independent draw, so a second run would cost as much again.
///
/// # Errors
/// `Error::Refused`, for the operator.
pub fn check_price(work: &PlanSpec, nano_rho: u64, before: u64) -> Result<(), Error> {
    if before.saturating_add(nano_rho) <= work.recipe.noise.map_or(0, |noise| noise.price()) {
        return Ok(());
    }
    let what = "the answers under this plan would spend more than its whole price: a second run has noise of its own";
    Err(Error::Refused { what: what.into(), rule: Rule::Pol8 })
}

/// Describes a plan to a policy.
pub fn facts(work: &PlanSpec) -> PlanFacts<'_> {
    let rows_per_person = match work.recipe.noise.map(|noise| noise.unit) {
        Some(Unit::Person { rows }) => Some(rows),
        _ => None,
    };
    PlanFacts { method: work.method_name(), columns: work.headers().collect(), rows_per_person }
}

/// What an answer can say at most, whoever knows everything but one row.
pub fn cost(layout: &Layout) -> Cost {
    Cost { scalars: layout.words() as u64, nano_rho: layout.nano_rho() }
}

/// Digest of these sites' keys, which are the same in every roster.
pub fn cohort_digest(roster: &Roster, cohort: &[u16]) -> Hash {
    set_of_sites(cohort.iter().filter_map(|site| roster.member(PartyId::Site(*site))).map(|member| member.key))
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::{Algorithm, OutOfBox, privacy::Noise};
    use veilsum_proto::policy::Policy;

    use super::*;
    use crate::{
        agreed::{Federation, questions},
        cost::Cost,
        question::Question,
        release::{Account, judge::fits},
        tests::{kit, terms, work},
    };

    /// [POL-8], [NOI-6]: one site among many colluders gives away what it is charged, and neither how many sites there are nor what plan and
    /// policy say of colluders and cohorts changes that.
    #[test]
    fn pol_8_a_site_is_charged_for_the_noise_that_it_draws_itself() {
        let mut found = Vec::new();
        for (sites, min_cohort, colluders, own) in [
            (3, 3, 0, (3, 0)),
            (20, 14, 6, (20, 1)),
            (20, 20, 1, (3, 7)),
            (100, 67, 33, (90, 33)),
            (100, 100, 1, (3, 0)),
        ] {
            let (roster, _) = kit(sites);
            let mut work = work(3);
            work.out_of_box = OutOfBox::Clip;
            work.recipe.algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 8 };
            work.recipe.noise = Some(Noise::usual(0.25, 12_000).from_anywhere());
            let mut terms = terms(&roster, &work);
            (terms.min_cohort, terms.colluders, terms.max_rows) = (min_cohort, colluders, 1 << 20);
            let federation = Federation::new(roster, terms).unwrap();
            let few = |warning: &String| warning.contains("hardly anything from being many");
            assert_eq!(Cost::of(&federation).unwrap().warnings.iter().any(few), sites == 100, "of 120 rows each");
            let mut policy = Policy::default();
            (policy.floor.min_cohort, policy.floor.colluders) = own;
            let (form, domain) = (federation.form().unwrap(), work.domain().unwrap());
            let price = |question: &Question| cost(&question.layout(&domain, &form).unwrap()).nano_rho.unwrap();
            // All others tell the coordinator their counts, masks and noise: a row moves what is left by one.
            let layout = Question::CountRows.layout(&domain, &form).unwrap();
            let deviation = layout.noise.unwrap().deviation as f64 * layout.blocks[0].scale.unit();
            let (told, charged) = (0.5e9 / deviation.powi(2), price(&Question::CountRows) as f64);
            assert!(charged >= told && charged < told * 1.001, "{sites} sites: {charged} for {told}");
            let prices: Vec<u64> = questions(&work).unwrap().iter().map(price).collect();
            let yes = fits(&federation, &policy, &Account::default()).unwrap();
            found.push((prices, (yes.nano_rho, yes.left, yes.runs)));
        }
        assert_eq!(found[0].1, (Some(500_000_000), 1_500_000_000, Some(3)), "four default plans in a life");
        assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
    }
}
