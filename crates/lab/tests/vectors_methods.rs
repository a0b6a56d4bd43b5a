//! Known answers of an independent implementation: feature vectors, weighted fuzzy c-means, FKM, Lloyd on totals, k-FED.
//! Table 1 of FFCF is run again by the experiment `ffcf`.

use serde_json::Value;
use veilsum_cluster::method::Seeding;
use veilsum_cluster::offline::features::{Feature, Rules, features};
use veilsum_cluster::offline::kmeans::weighted_lloyd;
use veilsum_cluster::offline::wfcm::wfcm;
use veilsum_cluster::query::{FeatureParams, LocalMeans, LocalSteps};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Algorithm, Batch, Centres, Domain, Query, Recipe, Scaling, pooled};
use veilsum_lab::comparison::{central, ffcf, fkm, kfed};
use veilsum_testkit::data::{clients as sites, json, max_difference, numbers, prepare, prepare_all};

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn table(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().expect("rows").iter().map(numbers).collect()
}

fn centres(value: &Value) -> Centres {
    Centres::from_rows(&table(value)).expect("centres")
}

fn stream() -> Stream {
    Stream::new(1, b"veilsum test stream     ")
}

/// The vectors are in raw units: a wide box without scaling.
fn wide() -> Domain {
    Domain::new(vec![-100.0; 2], vec![100.0; 2], Scaling::None).expect("box")
}

#[track_caller]
fn same(found: &[f64], known: &[f64]) {
    assert_eq!(found.len(), known.len());
    for (a, b) in found.iter().zip(known) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }
}

#[track_caller]
fn same_features(found: &[Feature], known: &Value) {
    let ls: Vec<f64> = found.iter().flat_map(|feature| feature.ls.clone()).collect();
    same(&ls, &numbers(&known["LS"]));
    same(&found.iter().map(|feature| feature.ss).collect::<Vec<_>>(), &numbers(&known["SS"]));
    same(&found.iter().map(|feature| feature.m).collect::<Vec<_>>(), &numbers(&known["M"]));
    same(&found.iter().map(|feature| feature.n).collect::<Vec<_>>(), &numbers(&known["N"]));
}

const FEW: FeatureParams = FeatureParams { min: 5, max: 20, tau: 1.0, m: 2.0 };

fn feature_vectors_by_both_rules() {
    let vectors = json("method_vectors.json");
    for (name, rules) in [("ffcf_author", Rules::Authors), ("ffcf_merge", Rules::Conserving)] {
        for (rows, known) in sites(&vectors).iter().zip(vectors[name]["client_fcfs"].as_array().expect("sites")) {
            same_features(&features(rows, &FEW, rules), known);
        }
    }
    let merged = ffcf::collected(&sites(&vectors), &FEW, Rules::Authors);
    same_features(&merged, &vectors["ffcf_author"]["server_after_one_pass"]);
}

fn weighted_fuzzy_c_means() {
    let vectors = json("method_vectors.json");
    let known = &vectors["wfcm"];
    let (points, weights) = (centres(&known["centres_in"]), numbers(&known["weights"]));
    let fit = wfcm(&points, &weights, &centres(&known["start"]), 2.0, 1e-10, 100_000);
    assert!(fit.converged);
    same(fit.centres.as_slice(), centres(&known["V"]).as_slice());
    same(&[fit.objective], &[number(&known["J"])]);
}

fn weighted_lloyd_on_local_means() {
    let vectors = json("method_vectors.json");
    let (step, known) = (&vectors["fkm_client_step"], &vectors["fkm_server_weighted_lloyd"]);
    let global = centres(&step["global"]);
    let (mut means, mut sizes) = (Vec::new(), Vec::new());
    for (site, rows) in sites(&vectors).iter().enumerate() {
        let local = fkm::client_step(rows, &global, 2, 1);
        same(&local.means.concat(), &numbers(&step["means"][site]));
        assert_eq!(local.sizes, numbers(&step["sizes"][site]));
        means.extend(local.means);
        sizes.extend(local.sizes);
    }
    let points = Centres::from_rows(&means).expect("means");
    let fit = weighted_lloyd(&points, &sizes, &centres(&known["start"]), 300);
    same(fit.centres.as_slice(), centres(&known["C"]).as_slice());
    same(&[fit.objective], &[number(&known["objective"])]);
    assert_eq!(fit.labels.iter().map(|label| *label as f64).collect::<Vec<_>>(), numbers(&known["labels"]));
    assert_eq!(u64::from(fit.iterations), known["iterations"].as_u64().expect("a count"));
}

/// The site's step of FKM as totals: what one site alone contributes is its means times their sizes.
fn aligned_means_as_totals() {
    let vectors = json("method_vectors.json");
    let step = &vectors["fkm_client_step"];
    let question = LocalMeans { centres: centres(&step["global"]), local: LocalSteps::ONE, min_rows: 2, nearest: true };
    let near = [vec![0, 1], vec![1, 2], vec![2, 3]];
    for (site, rows) in sites(&vectors).iter().enumerate() {
        let batch = Batch::from(Query::LocalMeans(question.clone()));
        let found = pooled::totals(&batch, &[prepare(rows, &wide())]).expect("totals").values;
        let (means, sizes) = (table(&step["means"][site]), numbers(&step["sizes"][site]));
        let mut expected = vec![0.0; 12];
        for ((at, mean), size) in near[site].iter().zip(&means).zip(&sizes) {
            expected[*at] = *size;
            expected[4 + 2 * at] = mean[0] * size;
            expected[4 + 2 * at + 1] = mean[1] * size;
        }
        same(&found[..12], &expected);
    }
}

fn lloyd_totals_as_fixed_point_integers() {
    let vectors = json("method_vectors.json");
    let start = centres(&vectors["fed_lloyd_points"]["start"]);
    let known = table(&vectors["fed_lloyd_totals"]["totals_int"]);
    let scale = f64::from(1u32 << 24);
    let lloyd = LocalMeans { centres: start.clone(), local: LocalSteps::ONE, min_rows: 1, nearest: false };
    let question = Batch::from(Query::LocalMeans(lloyd));
    // Each site rounds its own sums, then integers are added.
    let mut totals = [0.0; 4 * 3 + 1];
    let mut squares = [0.0; 4];
    for rows in sites(&vectors) {
        let site = prepare(&rows, &wide());
        let own = pooled::totals(&question, std::slice::from_ref(&site)).expect("totals").values;
        totals.iter_mut().zip(own).for_each(|(total, x)| *total += (x * scale).round_ties_even());
        let hard = veilsum_cluster::kernel::hard_sums(site.packed(), &start).expect("sums");
        squares.iter_mut().zip(hard.squares).for_each(|(total, x)| *total += (x * scale).round_ties_even());
    }
    for (k, known) in known.iter().enumerate() {
        assert_eq!([totals[k], totals[4 + 2 * k], totals[5 + 2 * k]], [known[0], known[1], known[2]]);
        // The scatter is a sum of many rounded squares; its last bit may round either way at each site.
        assert!((squares[k] - known[3]).abs() <= 3.0, "{} {}", squares[k], known[3]);
    }
}

fn lloyd_on_totals_ends_where_lloyd_does() {
    let vectors = json("method_vectors.json");
    let known = &vectors["fed_lloyd_points"];
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 100 };
    let recipe = Recipe::plain(kmeans, 4, Seeding::Given { centres: centres(&known["start"]) });
    let sites = prepare_all(&sites(&vectors), &wide());
    let outcome = pooled::plain_federated(&mut recipe.run(&wide(), 3).expect("a run"), &sites).expect("an outcome");
    same(outcome.centres.as_slice(), centres(&known["C"]).as_slice());
    assert!(outcome.converged);
    assert_eq!(u64::from(outcome.rounds), known["iterations"].as_u64().expect("a count"));
}

fn one_site_s_fuzzy_c_means() {
    let vectors = json("method_vectors.json");
    let known = &vectors["fcm_client0"];
    let rows = &sites(&vectors)[0];
    let start = centres(&known["start"]);
    let plain = central::fuzzy_c_means(rows, &start, 2.0, 1e-12, 10_000).expect("a fit");
    assert!(plain.converged);
    same(plain.centres.as_slice(), centres(&known["C"]).as_slice());
    // The same as a question: one site whose local centres count by index.
    let local = LocalSteps { most: 1000, epsilon: 1e-12 };
    let avg1 = Algorithm::FfcmAvg1 { m: 2.0, epsilon: 0.0, max_rounds: 1, local, powers: true };
    let recipe = Recipe::plain(avg1, 4, Seeding::Given { centres: start });
    let sites = [prepare(rows, &wide())];
    let outcome = pooled::plain_federated(&mut recipe.run(&wide(), 1).expect("a run"), &sites).expect("an outcome");
    same(outcome.centres.as_slice(), centres(&known["C"]).as_slice());
    same(&[outcome.objective], &[number(&known["J"])]);
}

fn k_fed() {
    let vectors = json("method_vectors.json");
    let known = centres(&vectors["kfed_k2"]["C_sorted"]);
    let found = kfed::kfed(&sites(&vectors), 4, &[2, 2, 2], &mut stream()).expect("centres");
    let mut rows: Vec<Vec<f64>> = found.rows().map(<[f64]>::to_vec).collect();
    rows.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    let off = max_difference(&Centres::from_rows(&rows).expect("centres"), &known);
    assert!(off < 1e-9, "off by {off:e}");
}

veilsum_testkit::with_data!(
    feature_vectors_by_both_rules,
    weighted_fuzzy_c_means,
    weighted_lloyd_on_local_means,
    aligned_means_as_totals,
    lloyd_totals_as_fixed_point_integers,
    lloyd_on_totals_ends_where_lloyd_does,
    one_site_s_fuzzy_c_means,
    k_fed
);
