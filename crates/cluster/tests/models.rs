//! Gaussian mixtures, Gustafson-Kessel, the noise cluster and possibilistic c-means: against scikit-learn and numpy (`models.py`), in
//! other units, and against parameters that no totals give.

use serde_json::Value;
use veilsum_cluster::method::{Choice, Pick, Seeding};
use veilsum_cluster::query::{ShapeModel, ShapedSums, TypicalSums, Typicality};
use veilsum_cluster::{
    Algorithm, Batch, Centres, Clusters, Domain, OutOfBox, Outcome, Prepared, Query, Recipe, Rows, Scaling, Transform,
    answer, assign, pooled, warnings,
};

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().expect("a number")],
    }
}

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("models.json")).expect("the reference's numbers")
}

fn columns(case: &Value) -> usize {
    case["start"][0].as_array().unwrap().len()
}

/// The rows times `stretch` at three sites, in a box of that extent.
fn sites(case: &Value, stretch: f64) -> (Domain, Vec<Prepared>) {
    let d = columns(case);
    let domain = Domain::new(vec![0.0; d], vec![stretch; d], Scaling::None).unwrap();
    let values: Vec<f64> = numbers(&case["rows"]).iter().map(|x| x * stretch).collect();
    let part = |site: usize| {
        let own = values.chunks(d).enumerate().filter(|(i, _)| i % 3 == site).flat_map(|(_, row)| row.to_vec());
        Prepared::new(&Rows::new(own.collect(), d).unwrap(), &domain, OutOfBox::Refuse).unwrap()
    };
    let sites = (0..3).map(part).collect();
    (domain, sites)
}

fn recipe(case: &Value, algorithm: Algorithm, stretch: f64) -> Recipe {
    let start = numbers(&case["start"]).iter().map(|x| x * stretch).collect();
    let k = case["start"].as_array().unwrap().len();
    let centres = Centres::new(k, columns(case), start).unwrap();
    Recipe::plain(algorithm, k as u32, Seeding::Given { centres })
}

fn run(case: &Value, algorithm: Algorithm, stretch: f64) -> Outcome {
    let (domain, sites) = sites(case, stretch);
    let mut run = recipe(case, algorithm, stretch).run(&domain, 3).unwrap();
    pooled::plain_federated(&mut run, &sites).unwrap()
}

fn gmm(fit: &Value, floor: f64) -> Algorithm {
    Algorithm::Gmm { epsilon: fit["epsilon"].as_f64().unwrap(), max_rounds: 500, regularisation: floor }
}

fn gk(fit: &Value, floor: f64) -> Algorithm {
    let (m, epsilon) = (fit["m"].as_f64().unwrap(), fit["epsilon"].as_f64().unwrap());
    Algorithm::Gk { m, epsilon, max_rounds: 500, regularisation: floor }
}

fn near(what: &str, found: &[f64], expected: &Value, tolerance: f64) {
    let expected = numbers(expected);
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: {found} and {expected}");
    }
}

fn same_steps(what: &str, found: &Outcome, expected: &Value) {
    assert_eq!(u64::from(found.rounds), expected["rounds"].as_u64().unwrap(), "{what}");
    assert_eq!(found.converged, expected["converged"].as_bool().unwrap(), "{what}");
    near(what, found.centres.as_slice(), &expected["centres"], 1e-8);
    near(what, &found.shapes.as_ref().unwrap().covariances.concat(), &expected["covariances"], 1e-8);
}

#[test]
fn a_mixture_makes_the_steps_of_scikit_learn() {
    for case in cases() {
        for fit in case["gmm"].as_array().unwrap() {
            let what = format!("{} until {}", case["name"], fit["epsilon"]);
            let found = run(&case, gmm(fit, case["floor"].as_f64().unwrap()), 1.0);
            same_steps(&what, &found, fit);
            let shapes = found.shapes.unwrap();
            near(&what, &shapes.weights.unwrap(), &fit["weights"], 1e-8);
            near(&what, &[shapes.log_likelihood.unwrap()], &fit["log_likelihood"], 1e-8);
            near(&what, &[found.indices.bic.unwrap()], &fit["bic"], 1e-8);
        }
    }
}

#[test]
fn fuzzy_covariances_are_those_of_the_reference() {
    for case in cases() {
        for fit in case["gk"].as_array().unwrap() {
            let what = format!("{} with m = {}", case["name"], fit["m"]);
            let found = run(&case, gk(fit, case["floor"].as_f64().unwrap()), 1.0);
            same_steps(&what, &found, fit);
            near(&what, &[found.shapes.unwrap().objective.unwrap()], &fit["objective"], 1e-8);
        }
    }
}

#[test]
fn rows_far_from_every_centre_lose_their_weight_as_in_the_reference() {
    for case in cases() {
        for (name, noise) in [("noise", true), ("possibilistic", false)] {
            for fit in case[name].as_array().unwrap() {
                let what = format!("{}: {name}, m = {}, {}", case["name"], fit["m"], fit["distance"]);
                let of = |key: &str| fit[key].as_f64().unwrap();
                let (m, epsilon, distance, max_rounds) = (of("m"), of("epsilon"), of("distance"), 500);
                let algorithm = match noise {
                    true => Algorithm::FcmNoise { m, epsilon, max_rounds, distance },
                    false => Algorithm::Pcm { m, epsilon, max_rounds, distance },
                };
                let found = run(&case, algorithm, 1.0);
                assert_eq!(u64::from(found.rounds), fit["rounds"].as_u64().unwrap(), "{what}");
                assert_eq!(found.converged, fit["converged"].as_bool().unwrap(), "{what}");
                near(&what, found.centres.as_slice(), &fit["centres"], 1e-8);
            }
        }
    }
}

#[test]
fn rows_that_are_centres_and_distances_that_are_none() {
    let domain = Domain::new(vec![0.0], vec![1.0], Scaling::None).unwrap();
    let site = Prepared::new(&Rows::new(vec![0.5], 1).unwrap(), &domain, OutOfBox::Refuse).unwrap();
    let asked = |typicality, distance| {
        let centres = Centres::from_rows(&[vec![0.5], vec![0.5], vec![0.75]]).unwrap();
        Query::from(TypicalSums { centres, m: 2.0, distance, typicality })
    };
    let weights = |typicality| answer(&Batch::from(asked(typicality, 0.25)), &site).unwrap().values[3..].to_vec();
    assert_eq!(weights(Typicality::Noise), [0.25, 0.25, 0.0], "shared by the centres there");
    assert_eq!(weights(Typicality::Possibilistic), [1.0, 1.0, 0.25], "each for itself");
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(asked(Typicality::Noise, bad).check(&domain).is_err(), "{bad}");
        let algorithm = Algorithm::Pcm { m: 2.0, epsilon: 0.0, max_rounds: 5, distance: bad };
        assert!(Recipe::plain(algorithm, 2, Seeding::Uniform { seed: 1 }).check(&domain).is_err(), "{bad}");
    }
}

#[test]
fn other_units_change_the_numbers_and_not_the_clusters() {
    let case = &cases()[0];
    let algorithm = gmm(&case["gmm"][1], 1e-6);
    let (one, wide) = (run(case, algorithm.clone(), 1.0), run(case, algorithm, 64.0));
    assert_eq!(one.rounds, wide.rounds);
    let (a, b) = (one.shapes.unwrap(), wide.shapes.unwrap());
    for (a, b) in a.covariances.concat().iter().zip(b.covariances.concat()) {
        assert!((a * 4096.0 - b).abs() < 1e-8, "{a} {b}");
    }
    // Every row has a density per volume: 64 in each of two columns.
    let rows = one.n_total.unwrap() as f64;
    assert!((a.log_likelihood.unwrap() - 2.0 * rows * 64f64.ln() - b.log_likelihood.unwrap()).abs() < 1e-7);
}

#[test]
fn bic_chooses_the_number_of_components() {
    let case = &cases()[0];
    let (domain, sites) = sites(case, 1.0);
    let algorithm = Algorithm::Gmm { epsilon: 1e-6, max_rounds: 300, regularisation: 1e-6 };
    let by_bic = Recipe {
        clusters: Clusters { min: 1, max: 5 },
        seeding: Seeding::Uniform { seed: 4 },
        restarts: 5,
        choice: Choice { by: Pick::Bic, elbow: false },
        ..recipe(case, algorithm, 1.0)
    };
    let outcome = pooled::plain_federated(&mut by_bic.run(&domain, 3).unwrap(), &sites).unwrap();
    assert_eq!(outcome.centres.k(), 3, "{:?}", outcome.curve.iter().map(|p| p.indices.bic).collect::<Vec<_>>());
    // No other method has a likelihood to choose by.
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 1e-3, max_rounds: 10 };
    assert!(Recipe { algorithm: fcm, ..by_bic }.check(&domain).is_err());
}

fn question() -> ShapedSums {
    ShapedSums {
        centres: Centres::from_rows(&[vec![0.25, 0.25], vec![0.75, 0.5]]).unwrap(),
        covariances: vec![0.02, 0.01, 0.03, 0.04, 0.0, 0.01],
        model: ShapeModel::Mixture { weights: vec![0.25, 0.75] },
        floor: 1e-6,
    }
}

/// Rows of two lines that cross in the middle, one after the other, with the centres and covariances of the two.
fn crossing() -> (Vec<[f64; 2]>, Centres, Vec<Vec<f64>>) {
    let of = |slope: f64| {
        (0..60).map(move |i| {
            let (along, off) = ((f64::from(i) - 29.5) / 75.0, 0.01 * (f64::from(i * 7 % 5) - 2.0));
            [0.5 + along, 0.5 + slope * along + off]
        })
    };
    let centres = Centres::from_rows(&[vec![0.495, 0.5], vec![0.505, 0.5]]).unwrap();
    (of(1.0).chain(of(-1.0)).collect(), centres, vec![vec![0.0533, 0.0533, 0.0535], vec![0.0533, -0.0533, 0.0535]])
}

#[test]
fn rows_are_assigned_by_the_covariances_of_their_clusters() {
    let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::None).unwrap();
    let (points, centres, covariances) = crossing();
    let rows = Rows::new(points.concat(), 2).unwrap();
    let right = |u: &[f64]| {
        u.chunks(2).enumerate().filter(|(i, u)| assign::largest(u, 1)[0] == i / 60).count() as f64 / points.len() as f64
    };
    let plain = right(assign::memberships(&rows, &centres, 2.0).unwrap().as_slice().unwrap());
    assert!(plain < 0.7, "the nearest centre says little here: {plain}");
    for model in [ShapeModel::GustafsonKessel { m: 1.5 }, ShapeModel::Mixture { weights: vec![0.5; 2] }] {
        let clusters = ShapedSums::left(centres.clone(), &covariances, model.clone(), None, &domain).unwrap();
        let u = clusters.memberships(&rows, &domain).unwrap();
        assert!(right(&u) > 0.9, "{model:?}: {}", right(&u));
        // They are those that a round adds up.
        let asked = Batch::from(Query::from(clusters.clone()));
        for (point, u) in points.iter().zip(u.chunks(2)) {
            let site = Rows::new(point.to_vec(), 2).unwrap();
            let site = Prepared::new(&site, &domain, OutOfBox::Refuse).unwrap();
            let power = if let ShapeModel::GustafsonKessel { m } = model { m } else { 1.0 };
            for (weight, u) in answer(&asked, &site).unwrap().values.iter().zip(u) {
                assert!((weight - u.powf(power)).abs() < 1e-12, "{model:?} {point:?}");
            }
        }
        // Standardised, they are the same, as the covariances stay in working units.
        let transform =
            Transform { lower: vec![0.0; 2], upper: vec![1.0; 2], shift: vec![0.5, 0.25], factor: vec![2.0, 10.0] };
        let (wide, moved) = (transform.domain(&domain).unwrap(), transform.centres(&centres).unwrap());
        let same = ShapedSums::left(moved, &covariances, model.clone(), Some(&transform), &wide).unwrap();
        let same = same.memberships(&transform.rows(&rows).unwrap(), &wide).unwrap();
        assert!(same.iter().zip(&u).all(|(a, b)| (a - b).abs() < 1e-9), "{model:?}");
        // A row at the end of all numbers has memberships too.
        for far in [1e120, 1e200, f64::MAX] {
            let u = clusters.memberships(&Rows::new(vec![far, -far], 2).unwrap(), &domain).unwrap();
            assert!((u.iter().sum::<f64>() - 1.0).abs() < 1e-12 && u.iter().all(|u| *u >= 0.0), "{far}: {u:?}");
        }
        for bad in [
            vec![covariances[0].clone()],
            vec![covariances[0].clone(), vec![0.05, 0.0]],
            vec![covariances[0].clone(), Vec::new()],
            vec![covariances[0].clone(), vec![0.05, 0.06, 0.05]],
            vec![covariances[0].clone(), vec![0.05, f64::NAN, 0.05]],
            vec![covariances[0].clone(), vec![f64::INFINITY, 0.0, 0.05]],
        ] {
            assert!(ShapedSums::left(centres.clone(), &bad, model.clone(), None, &domain).is_err(), "{bad:?}");
        }
        let mixing = Transform { factor: vec![2.0, 0.5, 10.0], ..transform };
        assert!(ShapedSums::left(centres.clone(), &covariances, model, Some(&mixing), &wide).is_err());
    }
}

#[test]
fn a_row_far_from_every_centre_is_noise() {
    let centres = Centres::from_rows(&[vec![0.25], vec![0.75]]).unwrap();
    let rows = Rows::new(vec![0.25, 0.35, 100.0, f64::MAX], 1).unwrap();
    let of = |typicality| {
        let clusters = TypicalSums { centres: centres.clone(), m: 2.0, distance: 0.1, typicality };
        clusters.memberships(&rows).unwrap()
    };
    let noise = of(Typicality::Noise);
    assert_eq!(noise[..3], [1.0, 0.0, 0.0]);
    assert!(noise.chunks(3).all(|u| (u.iter().sum::<f64>() - 1.0).abs() < 1e-12), "{noise:?}");
    assert!((noise[3] - noise[5]).abs() < 1e-9 && noise[8] > 0.999 && noise[11] > 0.999, "{noise:?}");
    let typical = of(Typicality::Possibilistic);
    assert!(
        typical[0] == 1.0 && (typical[2] - 0.5).abs() < 1e-9 && typical[4..].iter().all(|u| *u < 1e-5),
        "{typical:?}"
    );
}

#[test]
fn parameters_that_no_totals_give_are_refused() {
    let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::None).unwrap();
    let check = |change: &dyn Fn(&mut ShapedSums)| {
        let mut asked = question();
        change(&mut asked);
        Query::from(asked).check(&domain)
    };
    assert_eq!(check(&|_| ()), Ok(()));
    let bad: [&dyn Fn(&mut ShapedSums); 15] = [
        &|q| q.covariances[1] = 0.0245,
        &|q| q.covariances[0] = -0.02,
        &|q| q.covariances[0] = f64::NAN,
        &|q| q.covariances[0] = f64::INFINITY,
        &|q| q.covariances[5] = 1e-8,
        &|q| q.covariances[3] = 5.0,
        &|q| q.covariances.truncate(5),
        &|q| q.floor = 0.0,
        &|q| q.floor = 2.0,
        &|q| q.floor = f64::NAN,
        &|q| q.model = ShapeModel::Mixture { weights: vec![1.0] },
        &|q| q.model = ShapeModel::Mixture { weights: vec![1.5, -0.5] },
        &|q| q.model = ShapeModel::Mixture { weights: vec![f64::NAN, 1.0] },
        &|q| q.model = ShapeModel::GustafsonKessel { m: 1.0 },
        &|q| q.centres = Centres::from_rows(&[vec![0.25, 0.25], vec![1.75, 0.5]]).unwrap(),
    ];
    for (i, change) in bad.iter().enumerate() {
        assert!(check(*change).is_err(), "change {i}");
    }
    let wide = Domain::new(vec![0.0; 65], vec![1.0; 65], Scaling::None).unwrap();
    let centres = Centres::from_rows(&[vec![0.5; 65]]).unwrap();
    let algorithm = Algorithm::Gmm { epsilon: 1e-3, max_rounds: 5, regularisation: 1e-6 };
    assert!(Recipe::plain(algorithm, 1, Seeding::Given { centres }).check(&wide).is_err());
    // 64 columns: 488 clusters fit and 489 do not, however small the range begins.
    let wide = Domain::new(vec![0.0; 64], vec![1.0; 64], Scaling::None).unwrap();
    for (max, fits) in [(2, true), (488, true), (489, false), (4096, false)] {
        let algorithm = Algorithm::Gmm { epsilon: 1e-3, max_rounds: 5, regularisation: 1e-6 };
        let clusters = Clusters { min: 2, max };
        let choice = Choice { by: Pick::Bic, elbow: false };
        let recipe = Recipe { clusters, choice, ..Recipe::plain(algorithm, 2, Seeding::Uniform { seed: 1 }) };
        let refused = recipe.check(&wide).err().map(|error| error.to_string());
        assert_eq!(refused.as_ref().is_none_or(|why| !why.contains("covariances")), fits, "{max}: {refused:?}");
    }
}

#[test]
fn no_row_of_the_box_adds_more_than_its_bound() {
    let domain = Domain::new(vec![-3.0, 0.0], vec![1.0, 50.0], Scaling::None).unwrap();
    let models = [
        ShapeModel::Mixture { weights: vec![1.0, 0.0] },
        ShapeModel::Mixture { weights: vec![0.5, 0.5] },
        ShapeModel::GustafsonKessel { m: 1.1 },
        ShapeModel::GustafsonKessel { m: 3.0 },
    ];
    for model in models {
        // One cluster as thin as the floor allows: densities are large in it, and far away hardly there.
        let centres = Centres::from_rows(&[vec![1.0, 0.0], vec![-3.0, 50.0]]).unwrap();
        let covariances = vec![1e-6, 0.0, 1e-6, 0.25, 0.1, 0.25];
        let asked = Query::from(ShapedSums { centres, covariances, model, floor: 1e-6 });
        asked.check(&domain).unwrap();
        let bounds: Vec<f64> = asked.layout(&domain).iter().flat_map(|b| vec![b.bound; b.len]).collect();
        for row in [[-3.0, 0.0], [1.0, 0.0], [1.0, 50.0], [-3.0, 50.0], [0.99, 0.1], [-1.0, 25.0]] {
            let site = Prepared::new(&Rows::new(row.to_vec(), 2).unwrap(), &domain, OutOfBox::Refuse).unwrap();
            let values = answer(&Batch::from(asked.clone()), &site).unwrap().values;
            assert_eq!(values.len(), bounds.len());
            for (value, bound) in values.iter().zip(&bounds) {
                assert!(value.abs() <= *bound * (1.0 + 1e-12), "{asked:?} {row:?}: {value} above {bound}");
            }
        }
    }
}

#[test]
fn a_distance_that_makes_nearly_all_rows_noise_is_warned_of() {
    let case = &cases()[0];
    let (domain, _) = sites(case, 1.0);
    let names: Vec<String> = (0..columns(case)).map(|column| format!("f{column}")).collect();
    for noise in [true, false] {
        for (distance, warned) in [(1e-4, true), (0.3, false)] {
            let (m, epsilon, max_rounds) = (2.0, 1e-5, 60);
            let algorithm = match noise {
                true => Algorithm::FcmNoise { m, epsilon, max_rounds, distance },
                false => Algorithm::Pcm { m, epsilon, max_rounds, distance },
            };
            let found =
                warnings::of(&recipe(case, algorithm.clone(), 1.0), &domain, &names, &run(case, algorithm, 1.0));
            let said = found.iter().any(|warning| warning.name == "mostly-noise");
            assert_eq!(said, warned, "{noise} {distance}: {found:?}");
            // A stop rule of half the box is coarse for every method that moves centres.
            let coarse = match noise {
                true => Algorithm::FcmNoise { m, epsilon: 0.5, max_rounds, distance },
                false => Algorithm::Pcm { m, epsilon: 0.5, max_rounds, distance },
            };
            let found = warnings::of(&recipe(case, coarse.clone(), 1.0), &domain, &names, &run(case, coarse, 1.0));
            assert!(found.iter().any(|warning| warning.name == "coarse-epsilon"), "{found:?}");
        }
    }
}
