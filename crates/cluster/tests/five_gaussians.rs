//! The motivational example of Stallmann & Wilbik (2022): five clusters that no site can see alone.

use veilsum_cluster::{Centres, Outcome, Prepared, metrics, pooled, synthetic};
use veilsum_testkit::data::prepare;

fn sites(seed: u64) -> Vec<Prepared> {
    let domain = synthetic::five_gaussians_domain();
    synthetic::five_gaussians(seed).sites.iter().map(|site| prepare(&site.rows, &domain)).collect()
}

fn run(sites: &[Prepared], start: Centres, epsilon: f64) -> Outcome {
    let mut fcm = crate::plain_fcm(start.k(), 2.0, epsilon, 1000, &start).expect("parameters");
    pooled::plain_federated(&mut fcm, sites).expect("a run")
}

/// Largest distance of a coordinate from the truth, original units.
fn off(outcome: &Outcome) -> f64 {
    let truth = synthetic::five_gaussians(0).truth;
    let found = synthetic::five_gaussians_domain().centres_to_original(&outcome.centres).expect("centres");
    metrics::matched_distance(&found, &truth).expect("centres").max_abs
}

fn uniform(seed: u64, k: usize) -> Centres {
    Centres::uniform(&synthetic::five_gaussians_domain(), k, seed).expect("start")
}

#[test]
fn the_default_seeds_find_the_five_clusters_and_choose_five() {
    let sites = sites(synthetic::DEFAULT_SEED);
    let index = |k: usize| {
        let outcome = run(&sites, uniform(synthetic::DEFAULT_START_SEED, k), 0.005);
        assert!(outcome.converged, "K = {k}");
        if k == 5 {
            assert!(off(&outcome) < 0.1, "{}", off(&outcome));
        }
        let index = outcome.indices.fuzzy_davies_bouldin.unwrap();
        println!("K = {k}: {index:.4} after {} rounds", outcome.rounds);
        index
    };
    let five = index(5);
    assert!((0.43..0.452).contains(&five), "{five}");
    for k in [2, 3, 4, 6, 7, 8] {
        assert!(index(k) > five, "K = {k}");
    }
}

#[test]
fn restarts_that_fall_into_other_optima_do_not_agree() {
    use veilsum_cluster::{Algorithm, Recipe, method::Seeding};
    let domain = synthetic::five_gaussians_domain();
    let stability = |algorithm: Algorithm, k: u32, restarts: u32| {
        let recipe = Recipe { restarts, ..Recipe::plain(algorithm, k, Seeding::Uniform { seed: 1 }) };
        pooled::plain_federated(&mut recipe.run(&domain, 3).unwrap(), &sites(0)).unwrap().stability
    };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 1e-6, max_rounds: 300 };
    assert_eq!(stability(fcm.clone(), 5, 1), None, "one start says nothing");
    // One centre has one optimum.
    let same = stability(fcm, 1, 4).unwrap();
    assert!(same.agreement == 1.0 && same.matched_distance.iter().all(|far| *far < 1e-3), "{same:?}");
    let other = stability(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 300 }, 5, 10).unwrap();
    println!("{other:?}");
    assert!((0.1..1.0).contains(&other.agreement), "{other:?}");
    assert!(other.matched_distance.contains(&0.0) && other.matched_distance.iter().any(|far| *far > 0.1));
}
