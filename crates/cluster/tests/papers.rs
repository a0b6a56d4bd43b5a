//! Known answers: Table 1 of Bárcena et al. (2021) at gamma = 1, and the vectors of an independent implementation.

use serde_json::Value;
use veilsum_cluster::{Centres, Domain, Outcome, Prepared, Rows, Run, Scaling, assign, metrics, pooled};
use veilsum_testkit::data::{DataSet, TABLE_1, centres, json, max_difference, prepare, prepare_all, split};

fn params(start: &Centres, epsilon: f64, max_rounds: u32) -> Run {
    crate::plain_fcm(start.k(), 2.0, epsilon, max_rounds, start).expect("parameters")
}

fn run(sites: &[Prepared], mut params: Run) -> Outcome {
    pooled::plain_federated(&mut params, sites).expect("a run")
}

fn ari(data: &DataSet, domain: &Domain, outcome: &Outcome) -> f64 {
    let rows = domain.to_working(&data.rows, veilsum_cluster::OutOfBox::Refuse).expect("rows");
    let u = assign::memberships(&rows, &outcome.centres, outcome.m).expect("memberships");
    metrics::adjusted_rand_index(&assign::hard_labels(&u), &data.labels).expect("labels")
}

/// Ten starts, exactly 30 rounds, 20 sites; the first five starts also pooled and against the reference's finals.
fn table_1(name: &str, printed: f64) {
    let (data, expected) = (DataSet::read(name), json("federated_fcm/expected.json"));
    let domain = data.boxed();
    let whole = prepare(&data.rows, &domain);
    let sites = prepare_all(&split(&data.rows, 20), &domain);
    let mut sum = 0.0;
    for seed in 0..10 {
        let start = centres(&format!("{name}-start-{seed}.csv"));
        let federated = run(&sites, params(&start, 0.0, 30));
        assert_eq!((federated.rounds, federated.converged), (30, false));
        let found = ari(&data, &domain, &federated);
        sum += found;
        if seed >= 5 {
            continue;
        }
        let last = centres(&format!("{name}-final-{seed}.csv"));
        let off = max_difference(&federated.centres, &last);
        assert!(off < 1e-8, "{name} start {seed}: off by {off:e}");
        let known = &expected[name][seed];
        assert!((found - number(&known["ari"])).abs() < 6e-9, "{name} start {seed}: ARI {found}");
        let objective = number(&known["J"]);
        assert!((federated.objective / objective - 1.0).abs() < 1e-9, "{name} start {seed}: J {}", federated.objective);
        assert!((federated.history[29].shift - number(&known["last_move"])).abs() < 1e-8);
        let calm = federated.history.iter().find(|round| round.shift < 0.005).map(|round| u64::from(round.round));
        assert_eq!(calm, known["first_round_below_0_005"].as_u64(), "{name} start {seed}");

        let pooled = run(std::slice::from_ref(&whole), params(&start, 0.0, 30));
        assert!(max_difference(&pooled.centres, &federated.centres) < 1e-10, "{name} start {seed}");
        let (a, b) = (pooled.indices.fuzzy_davies_bouldin, federated.indices.fuzzy_davies_bouldin);
        assert!((a / b - 1.0).abs() < 1e-9, "{name} start {seed}: FedFuzzDB {a} and {b}");

        // With the stop rule both end in the same round.
        let stop = || params(&start, 0.005, 30);
        let (pooled, federated) = (run(std::slice::from_ref(&whole), stop()), run(&sites, stop()));
        assert_eq!((pooled.rounds, pooled.converged), (federated.rounds, federated.converged));
        assert_eq!(calm.map_or(30, |round| round as u32), federated.rounds);
        assert!(max_difference(&pooled.centres, &federated.centres) < 1e-10);
    }
    let mean = sum / 10.0;
    assert!((mean - printed).abs() < 5e-6, "{name}: mean ARI {mean}, printed {printed}");
}

fn table_1_as_printed() {
    for (name, printed) in TABLE_1 {
        table_1(name, printed);
    }
}

/// From a good start to rest: the optimum of the objective per row and its ARI.
fn optimum(name: &str, expected_ari: f64, objective_per_row: f64) {
    let data = DataSet::read(name);
    let domain = data.boxed();
    let sites = prepare_all(&split(&data.rows, 3), &domain);
    let outcome = run(&sites, params(&centres(&format!("{name}-start-0.csv")), 1e-10, 1000));
    assert!(outcome.converged);
    let found = ari(&data, &domain, &outcome);
    assert!((found - expected_ari).abs() < 5e-6, "{name}: ARI {found}");
    assert!(
        (outcome.objective_per_row / objective_per_row - 1.0).abs() < 1e-7,
        "{name}: {}",
        outcome.objective_per_row
    );
}

fn optimum_xclara() {
    optimum("xclara", 0.99289, 0.010687757);
}

fn optimum_waveform() {
    optimum("waveform-v1", 0.24359, 0.16127109);
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn table(value: &Value) -> Vec<Vec<f64>> {
    let row = |row: &Value| row.as_array().expect("a row").iter().map(number).collect();
    value.as_array().expect("rows").iter().map(row).collect()
}

fn rows(value: &Value) -> Rows {
    let table = table(value);
    Rows::new(table.concat(), table[0].len()).expect("rows")
}

/// The vectors are in raw units: a wide box without scaling.
fn wide() -> Domain {
    Domain::new(vec![-100.0; 2], vec![100.0; 2], Scaling::None).expect("box")
}

fn vectors_one_site() {
    let vectors = json("method_vectors.json");
    let site = prepare(&rows(&vectors["clients"][0]), &wide());
    let known = &vectors["fcm_client0"];
    let start = Centres::from_rows(&table(&known["start"])).expect("start");
    let outcome = pooled::run(&mut params(&start, 1e-10, 10_000), &site).expect("a run");
    assert!(outcome.converged);
    let off = max_difference(&outcome.centres, &Centres::from_rows(&table(&known["C"])).expect("centres"));
    assert!(off < 1e-9, "off by {off:e}");
    assert!((outcome.objective / number(&known["J"]) - 1.0).abs() < 1e-9, "{}", outcome.objective);
}

fn vectors_indices() {
    let vectors = json("method_vectors.json");
    let known = &vectors["indices"];
    let sites: Vec<Rows> = vectors["clients"].as_array().expect("sites").iter().map(rows).collect();
    let all = Rows::pooled(&sites).expect("rows");
    let fixed = Centres::from_rows(&table(&known["C"])).expect("centres");
    let query = veilsum_cluster::Query::fuzzy_validation(fixed.clone(), number(&known["m"]));
    for sites in [prepare_all(&sites, &wide()), vec![prepare(&all, &wide())]] {
        let totals = pooled::totals(&query.clone().into(), &sites).expect("totals");
        let k = fixed.k();
        let n = totals.rows.expect("rows") as f64;
        let (distances, rest) = totals.values.split_at(k);
        let index = veilsum_cluster::validity::fuzzy_davies_bouldin(&fixed, distances, &rest[..k], n);
        assert!((index - number(&known["fuzzy_db"])).abs() < 1e-9, "{index}");
        assert!((rest[k] / number(&known["j"]) - 1.0).abs() < 1e-9, "{}", rest[k]);
    }
    // Partition coefficient and entropy of the same memberships.
    let u = assign::memberships(&all, &fixed, 2.0).expect("memberships");
    let n = all.len() as f64;
    let pc = u.iter().map(|u| u * u).sum::<f64>() / n;
    let pe = -u.iter().filter(|u| **u > 0.0).map(|u| u * u.ln()).sum::<f64>() / n;
    assert!((pc - number(&known["pc"])).abs() < 1e-9 && (pe - number(&known["pe"])).abs() < 1e-9, "{pc} {pe}");
    // Hard labels: sizes of the clusters.
    let labels = assign::hard_labels(&u);
    for (k, size) in known["n_k"].as_array().expect("sizes").iter().enumerate() {
        assert_eq!(labels.iter().filter(|label| **label == k).count() as f64, number(size));
    }
}

veilsum_testkit::with_data!(table_1_as_printed, optimum_xclara, optimum_waveform, vectors_one_site, vectors_indices);
