use veilsum_cluster::{Algorithm, Centres, OutOfBox, privacy::Noise};
use veilsum_door::{Data, Ledger, Policy, Verdict, judge};
use veilsum_proto::plan::{Sites, Terms};

use super::*;
use crate::{
    agreed::questions,
    cost::Cost,
    plan::PlanSpec,
    tests::{kit, terms, work},
};

/// [POL-8], [NOI-6]: one site among many colluders gives away what it is charged, and neither how many sites there are nor what plan and
/// policy say of colluders and cohorts changes that.
#[test]
fn pol_8_a_site_is_charged_for_the_noise_that_it_draws_itself() {
    let mut found = Vec::new();
    for (sites, min_cohort, colluders, own) in
        [(3, 3, 0, (3, 0)), (20, 14, 6, (20, 1)), (20, 20, 1, (3, 7)), (100, 67, 33, (90, 33)), (100, 100, 1, (3, 0))]
    {
        let (roster, mut ids) = kit(sites);
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
        let price = |question: &Question| question.layout(&domain, &form).unwrap().nano_rho().unwrap();
        // All others tell the coordinator their counts, masks and noise: a row moves what is left by one.
        let layout = Question::CountRows.layout(&domain, &form).unwrap();
        let deviation = layout.noise.unwrap().deviation as f64 * layout.blocks[0].scale.unit();
        let (told, charged) = (0.5e9 / deviation.powi(2), price(&Question::CountRows) as f64);
        assert!(charged >= told && charged < told * 1.001, "{sites} sites: {charged} for {told}");
        let prices: Vec<u64> = questions(&work).unwrap().iter().map(price).collect();
        let facts = federation.facts();
        let mut ledger = Ledger::in_memory(ids.remove(2).into(), Data::unread("rows"));
        ledger.accept(facts.set).unwrap();
        let Verdict::Yes(yes) = judge(&facts, &policy, ledger.account(), None) else { panic!("no yes") };
        found.push((prices, (yes.nano_rho, yes.left, yes.runs)));
    }
    assert_eq!(found[0].1, (Some(500_000_000), 1_500_000_000, Some(3)), "four default plans in a life");
    assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
}

/// The facts of some plans, as they were when `facts.txt` was written: what a door is told does not change unseen.
#[test]
fn facts_are_what_they_were() {
    let (roster, _) = kit(5);
    let mut told = String::new();
    let mut tell = |name: &str, work: &PlanSpec, change: &dyn Fn(&mut Terms)| {
        let mut terms = terms(&roster, work);
        change(&mut terms);
        let federation = Federation { roster: roster.clone().into(), terms: terms.into(), work: work.clone().into() };
        told += &format!("{name}\n{:#?}\n", federation.facts());
    };
    let plain = work(3);
    tell("exact", &plain, &|_| {});
    tell("over any sites, with a threshold", &plain, &|terms| (terms.sites, terms.threshold) = (Sites::Any, 4));
    let mut given = work(1);
    let centres = Centres::from_rows(&[vec![0.5, 0.5]]).unwrap();
    given.recipe = crate::tests::fcm(1, 1.0999, 0.0, 1, Seeding::Given { centres });
    tell("centres given", &given, &|_| {});
    let mut noisy = PlanSpec { out_of_box: OutOfBox::Clip, step_bits: Some(20), ..work(3) };
    noisy.recipe.algorithm = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 8 };
    noisy.recipe.noise = Some(Noise::usual(0.25, 12_000).from_anywhere());
    tell("noisy", &noisy, &|terms| terms.max_rows = 1 << 20);
    noisy.recipe.noise.as_mut().unwrap().unit = privacy::Unit::Person { rows: 4 };
    tell("persons", &noisy, &|terms| (terms.colluders, terms.min_cohort) = (1, 4));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/facts/facts.txt");
    if std::env::var_os("VEILSUM_WRITE_FACTS").is_some() {
        std::fs::write(path, &told).unwrap();
    }
    assert_eq!(told, include_str!("facts.txt"));
}
