//! Deviations of clusters, the gap statistic and the jackknife over blocks: against scikit-learn and numpy (`spread.py`), and on data whose answer is
//! known.

use serde_json::Value;
use veilsum_cluster::method::{Candidates, Choice, Pick, Scale, Seeding, Validity};
use veilsum_cluster::metrics::{Without, jackknife};
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Centres, Clusters, Domain, Outcome, Prepared, Recipe, Rows, Scaling, pooled, synthetic,
};
use veilsum_testkit::data::{DataSet, prepare_all, split};

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().expect("a number")],
    }
}

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

fn the_gap_finds_the_three_clusters_of_xclara() {
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 30 };
    let clusters = Clusters { min: 1, max: 8 };
    let xclara = DataSet::read("xclara");
    let domain = xclara.boxed();
    let sites = prepare_all(&split(&xclara.rows, 3), &domain);
    assert_eq!(chosen(&by_gap(kmeans, clusters, from_totals(2), 1), &domain, &sites), 3);
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

#[test]
fn plans_that_the_gap_cannot_choose_in_are_refused() {
    let unit = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::None).unwrap();
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 30 };
    let good = by_gap(kmeans, Clusters { min: 1, max: 8 }, Seeding::Uniform { seed: 1 }, 1);
    assert_eq!(good.check(&unit), Ok(()));
    let long = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 100_000 };
    for bad in [
        Recipe {
            algorithm: Algorithm::FfcmAvg2 { m: 2.0, epsilon: 0.0, max_rounds: 30, local: LocalSteps::ONE },
            ..good.clone()
        },
        Recipe { algorithm: long, ..good.clone() },
        Recipe { choice: Choice { by: Pick::Gap, elbow: true }, ..good.clone() },
        Recipe { clusters: Clusters { min: 1, max: 200 }, restarts: 10, ..good.clone() },
        Recipe {
            algorithm: Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 30 },
            validity: Validity::basic(),
            ..good.clone()
        },
    ] {
        assert!(bad.check(&unit).is_err(), "{bad:?}");
    }
}

/// k-means from these first centres (working units) over all blocks, and over all but each of them.
fn with_and_without(blocks: &[Prepared], start: &Centres, domain: &Domain) -> (Centres, u64, Vec<Without>) {
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 500 };
    let recipe = Recipe::plain(kmeans, start.k() as u32, Seeding::Given { centres: start.clone() });
    let over = |sites: &[Prepared]| {
        let outcome = pooled::plain_federated(&mut recipe.run(domain, sites.len() as u32).unwrap(), sites).unwrap();
        assert!(outcome.converged);
        (outcome.centres, outcome.n_total.unwrap())
    };
    let less = |j: usize| {
        let (centres, rows) = over(&[&blocks[..j], &blocks[j + 1..]].concat());
        Without { centres, rows }
    };
    let (centres, rows) = over(blocks);
    (centres, rows, (0..blocks.len()).map(less).collect())
}

#[test]
fn errors_are_those_of_numpy_from_the_same_blocks() {
    let reference = reference();
    let domain = domain(&reference);
    let (start, rows) = (Centres::new(3, 3, numbers(&reference["start"])).unwrap(), numbers(&reference["rows"]));
    for case in reference["jackknife"].as_array().unwrap() {
        let block = numbers(&case["block"]);
        let count = block.iter().fold(0.0f64, |most, j| most.max(*j)) as usize + 1;
        let of = |j: usize| {
            let own = rows.chunks(3).zip(&block).filter(|(_, block)| **block as usize == j);
            Rows::new(own.flat_map(|(row, _)| row.to_vec()).collect(), 3).unwrap()
        };
        let blocks = prepare_all(&(0..count).map(of).collect::<Vec<_>>(), &domain);
        let (all, n, without) = with_and_without(&blocks, &start, &domain);
        let found = jackknife(&all, n, &without).unwrap();
        near("errors", &found.errors.concat(), &numbers(&case["errors"]), 1e-10);
        assert!(found.other_clusters.is_empty());
    }
}

/// Many federations of eight blocks from one population: the mean squared error that each computes from its own reruns is the
/// variance of the centres over the federations.
#[test]
fn the_jackknifes_error_is_that_of_centres_over_other_samples() {
    const SEED: u64 = 20_261_122;
    println!("seed {SEED}");
    let (federations, places) = (150, [[0.25, 0.3], [0.75, 0.35], [0.5, 0.8]]);
    let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::None).unwrap();
    let start = Centres::from_rows(&places.map(|at| at.to_vec())).unwrap();
    let mut stream = Stream::new(SEED, b"federations of 8 blocks ");
    let (mut sums, mut squares, mut variances) = (vec![0.0; 6], vec![0.0; 6], 0.0);
    for _ in 0..federations {
        let mut block = |j: usize| {
            let mut row = || {
                let (at, [x, y]) = (places[stream.below(3) as usize], stream.normal_pair());
                [at[0] + 0.08 * x, at[1] + 0.08 * y].map(|value: f64| value.clamp(0.0, 1.0))
            };
            // Blocks of 40 to 68 rows.
            Rows::new((0..40 + 4 * j).flat_map(|_| row()).collect(), 2).unwrap()
        };
        let blocks = prepare_all(&(0..8).map(&mut block).collect::<Vec<_>>(), &domain);
        let (all, n, without) = with_and_without(&blocks, &start, &domain);
        let found = jackknife(&all, n, &without).unwrap();
        variances += found.errors.concat().iter().map(|error| error * error).sum::<f64>();
        for ((sum, square), value) in sums.iter_mut().zip(&mut squares).zip(all.as_slice()) {
            (*sum, *square) = (*sum + value, *square + value * value);
        }
    }
    let n = f64::from(federations);
    let true_variance: f64 = sums.iter().zip(&squares).map(|(sum, square)| (square - sum * sum / n) / (n - 1.0)).sum();
    let ratio = variances / n / true_variance;
    println!("estimated over true variance {ratio:.3}");
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

veilsum_testkit::with_data!(the_gap_finds_the_three_clusters_of_xclara);
