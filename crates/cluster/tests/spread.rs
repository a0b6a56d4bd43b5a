//! Deviations of clusters and the gap statistic: against scikit-learn and numpy (`spread.py`), and on data whose answer is
//! known.

use serde_json::Value;
use veilsum_cluster::method::{Candidates, Choice, Pick, Scale, Seeding, Validity};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Centres, Clusters, Domain, Outcome, Prepared, Recipe, Rows, Scaling, pooled, synthetic,
};
use veilsum_testkit::data::{numbers, prepare_all, split};

fn reference() -> Value {
    serde_json::from_str(include_str!("spread.json")).expect("the reference's numbers")
}

fn domain(reference: &Value) -> Domain {
    Domain::new(numbers(&reference["lower"]), numbers(&reference["upper"]), Scaling::Box).unwrap()
}

/// Three sites.
fn sites(rows: &Value, domain: &Domain) -> Vec<Prepared> {
    prepare_all(&split(&Rows::new(numbers(rows), domain.columns()).unwrap(), 3), domain)
}

fn near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: {found} and {expected}");
    }
}

/// k-means from the reference's first centres, with every index.
fn from_start(reference: &Value) -> Recipe {
    let start = Centres::new(3, 3, numbers(&reference["start"])).unwrap();
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 500 };
    Recipe { validity: Validity::everything(), ..Recipe::plain(kmeans, 3, Seeding::Given { centres: start }) }
}

/// What an outcome says of deviations, in the columns' own units.
fn deviations(outcome: &Outcome, domain: &Domain) -> Vec<Option<Vec<f64>>> {
    let extents: Vec<f64> = domain.lower().iter().zip(domain.upper()).map(|(low, high)| high - low).collect();
    outcome.clusters.clone().stretched(&extents).deviations
}

#[test]
fn deviations_are_those_of_the_rows_in_the_columns_own_units() {
    let reference = reference();
    let (domain, recipe) = (domain(&reference), from_start(&reference));
    let sites = sites(&reference["rows"], &domain);
    for case in reference["deviations"].as_array().unwrap() {
        let scale = if case["standard"].as_bool().unwrap() { Scale::Standard } else { Scale::None };
        let recipe = Recipe { preparation: scale, ..recipe.clone() };
        let outcome = pooled::plain_federated(&mut recipe.run(&domain, 3).unwrap(), &sites).unwrap();
        let (what, centres) = (format!("{scale:?}"), domain.centres_to_original(&outcome.centres).unwrap());
        near(&what, centres.as_slice(), &numbers(&case["centres"]), 1e-9);
        let sizes: Vec<f64> = outcome.clusters.sizes.iter().flatten().map(|size| *size as f64).collect();
        near(&what, &sizes, &numbers(&case["sizes"]), 0.0);
        let found: Vec<Vec<f64>> = deviations(&outcome, &domain).into_iter().flatten().collect();
        near(&what, &found.concat(), &numbers(&case["deviations"]), 1e-9);
    }
}

fn by_gap(algorithm: Algorithm, clusters: Clusters, seeding: Seeding, restarts: u32) -> Recipe {
    Recipe {
        clusters,
        restarts,
        validity: Validity { full: true, ..Validity::basic() },
        choice: Choice { by: Pick::Gap, elbow: false },
        ..Recipe::plain(algorithm, clusters.min, seeding)
    }
}

#[test]
fn gaps_are_those_of_numpy_over_the_same_references() {
    let reference = reference();
    let domain = domain(&reference);
    for case in reference["gaps"].as_array().unwrap() {
        let algorithm = match case["method"].as_str().unwrap() {
            "lloyd" => Algorithm::Kmeans { epsilon: 0.0, max_rounds: 300 },
            _ => Algorithm::Fcm { m: case["m"].as_f64().unwrap(), epsilon: 0.0, max_rounds: 30 },
        };
        let ks = numbers(&case["ks"]);
        let clusters = Clusters { min: 1, max: ks.len() as u32 };
        let seeding = Seeding::Uniform { seed: case["seed"].as_u64().unwrap() };
        let recipe = by_gap(algorithm, clusters, seeding, case["restarts"].as_u64().unwrap() as u32);
        let mut run = recipe.run(&domain, 3).unwrap();
        let outcome = pooled::plain_federated(&mut run, &sites(&case["rows"], &domain)).unwrap();
        let what = format!("{} from seed {}", case["method"], case["seed"]);
        let of = |name: &str, value: &dyn Fn(&veilsum_cluster::Indices) -> Option<f64>| {
            let found: Vec<f64> = outcome.curve.iter().map(|point| value(&point.indices).unwrap()).collect();
            near(&format!("{what}: {name}"), &found, &numbers(&case[name]), 1e-8);
        };
        of("gap", &|indices| indices.gap);
        of("s", &|indices| indices.gap_error);
        let chosen = case["chosen"].as_u64().map_or(clusters.max, |k| k as u32);
        assert_eq!(outcome.centres.k() as u32, chosen, "{what}");
        let none_passes = recipe.choice.doubted(&outcome.curve) == Some(chosen);
        assert_eq!(none_passes, case["chosen"].is_null(), "{what}");
    }
}

fn from_totals(seed: u64) -> Seeding {
    Seeding::Candidates(Candidates::usual(seed))
}

fn chosen(recipe: &Recipe, domain: &Domain, sites: &[Prepared]) -> u32 {
    let outcome = pooled::plain_federated(&mut recipe.run(domain, 3).unwrap(), sites).unwrap();
    let table: Vec<_> = outcome.curve.iter().map(|p| (p.k, p.indices.gap, p.indices.gap_error, p.collapsed)).collect();
    println!("{table:.3?} {:?}", outcome.notes);
    outcome.centres.k() as u32
}

#[test]
fn the_gap_finds_five_clusters_and_none() {
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 30 };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.005, max_rounds: 30 };
    let fkm = Algorithm::Fkm { epsilon: 0.0, max_rounds: 30, min_rows: 2, local_steps: 1, finish: 0 };
    let clusters = Clusters { min: 1, max: 8 };
    let five = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
    let rows: Vec<Rows> = five.sites.iter().map(|site| site.rows.clone()).collect();
    let domain = synthetic::five_gaussians_domain();
    let sites = prepare_all(&rows, &domain);
    for algorithm in [kmeans.clone(), fkm, fcm.clone()] {
        let recipe = by_gap(algorithm.clone(), clusters, from_totals(2), 1);
        assert_eq!(chosen(&recipe, &domain, &sites), 5, "{algorithm:?}");
    }
    let unit = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::None).unwrap();
    let mut stream = Stream::new(77, b"a cloud without clusters");
    let cloud = Rows::new((0..2 * 900).map(|_| stream.unit()).collect(), 2).unwrap();
    let sites = prepare_all(&split(&cloud, 3), &unit);
    for algorithm in [kmeans, fcm] {
        let recipe = by_gap(algorithm.clone(), clusters, from_totals(2), 1);
        assert_eq!(chosen(&recipe, &unit, &sites), 1, "{algorithm:?}");
    }
}

/// Rows on so many places: the smallest K whose centres they lie on, whatever chooses; the objective is no number.
#[test]
fn rows_that_lie_on_their_centres_take_the_smallest_k_that_has_them() {
    let unit = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::None).unwrap();
    let places = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]];
    for k in [2, 4] {
        let rows = Rows::new(places[..k].iter().cycle().take(20 * k).flatten().copied().collect(), 2).unwrap();
        let sites = prepare_all(&split(&rows, 3), &unit);
        for by in [Pick::Gap, Pick::FuzzyDaviesBouldin] {
            let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 30 };
            let mut recipe = by_gap(kmeans, Clusters { min: 1, max: 6 }, from_totals(1), 1);
            recipe.choice.by = by;
            let outcome = pooled::plain_federated(&mut recipe.run(&unit, 3).unwrap(), &sites).unwrap();
            assert!(outcome.centres.k() == k && outcome.below.is_some_and(|below| below < 1e-9), "{outcome:?}");
            assert!(outcome.notes.iter().any(|note| note.contains("the objective is below")), "{:?}", outcome.notes);
        }
    }
}

/// A row has one category of a column: beside references that filled the working box the gap of these rows came to -0.57.
#[test]
fn categories_without_clusters_have_no_gap() {
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 30 };
    let recipe = by_gap(kmeans, Clusters { min: 1, max: 5 }, Seeding::Uniform { seed: 2 }, 3);
    let gaps = |rows: Vec<f64>, domain: &Domain| {
        let sites = prepare_all(&split(&Rows::new(rows, domain.columns()).unwrap(), 3), domain);
        let outcome = pooled::plain_federated(&mut recipe.run(domain, 3).unwrap(), &sites).unwrap();
        let gaps: Vec<f64> = outcome.curve.iter().map(|point| point.indices.gap.unwrap()).collect();
        assert!(gaps.len() == 5 && gaps.iter().all(|gap| gap.abs() < 0.08), "{gaps:?}");
        assert_eq!(outcome.centres.k(), 1, "{gaps:?}");
    };
    let mut stream = Stream::new(77, b"a cloud without clusters");
    let mut row = || {
        let (number, own) = (stream.unit(), stream.below(3));
        [number, f64::from(own == 0), f64::from(own == 1), f64::from(own == 2)]
    };
    let mixed = Domain::mixed(vec![0.0], vec![1.0], Scaling::Box, &[vec![0.5; 3]]).unwrap();
    gaps((0..600).flat_map(|_| row()).collect(), &mixed);
}
