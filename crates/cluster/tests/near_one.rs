//! Fuzzy c-means with fuzzifiers near 1: against numpy (`near_one.py`), and where a centre has no rows that totals can tell.

use serde_json::Value;
use veilsum_cluster::method::Seeding;
use veilsum_cluster::{Algorithm, Centres, Domain, Outcome, Prepared, Recipe, Rows, Scaling, pooled, warnings};
use veilsum_testkit::data::{numbers, prepare_all, split};

fn setting() -> (Value, Domain, Vec<Prepared>) {
    let reference: Value = serde_json::from_str(include_str!("near_one.json")).expect("the reference's numbers");
    let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
    let sites = prepare_all(&split(&Rows::new(numbers(&reference["rows"]), 2).unwrap(), 3), &domain);
    (reference, domain, sites)
}

fn run(m: f64, rounds: u32, start: Vec<f64>, domain: &Domain, sites: &[Prepared]) -> (Recipe, Outcome) {
    let centres = Centres::new(start.len() / 2, 2, start).unwrap();
    let fcm = Algorithm::Fcm { m, epsilon: 0.0, max_rounds: rounds };
    let recipe = Recipe::plain(fcm, centres.k() as u32, Seeding::Given { centres });
    let outcome = pooled::plain_federated(&mut recipe.run(domain, 3).unwrap(), sites).unwrap();
    (recipe, outcome)
}

#[test]
fn centres_near_m_1_are_those_of_numpy() {
    let (reference, domain, sites) = setting();
    for case in reference["cases"].as_array().unwrap() {
        let (m, rounds) = (case["m"].as_f64().unwrap(), case["rounds"].as_u64().unwrap() as u32);
        let (_, outcome) = run(m, rounds, numbers(&case["start"]), &domain, &sites);
        for (found, expected) in outcome.centres.as_slice().iter().zip(numbers(&case["centres"])) {
            assert!((found - expected).abs() < 1e-10, "m = {m}, {rounds} rounds: {found} and {expected}");
        }
        let objective = case["objective"].as_f64().unwrap();
        assert!((outcome.objective / objective - 1.0).abs() < 1e-10, "m = {m}, {rounds} rounds: {}", outcome.objective);
    }
}

#[test]
fn a_centre_that_totals_cannot_move_is_told() {
    let (_, domain, sites) = setting();
    let names = ["x".to_owned(), "y".to_owned()];
    let found = |m: f64| {
        let (recipe, outcome) = run(m, 12, vec![0.2, 0.3, 0.7, 0.25, 0.6, 0.8, 1.0, 0.0], &domain, &sites);
        let told = warnings::of(&recipe, &domain, &names, &outcome, 1.0);
        (outcome, told.into_iter().find(|warning| warning.name == "centres-frozen"))
    };
    let (outcome, told) = found(1.05);
    assert_eq!(outcome.centres.row(3), [1.0, 0.0], "it stands where it began");
    let told = told.expect("the finding");
    assert_eq!((told.numbers["frozen"], told.numbers["k"]), (Some(1.0), Some(4.0)));
    assert!(told.text.contains("a result of 3 clusters"), "{}", told.text);
    let (outcome, told) = found(2.0);
    assert!(told.is_none() && outcome.centres.row(3) != [1.0, 0.0], "{told:?}");
}
