//! Known answers: Table 1 of Bárcena et al. (2021) at gamma = 1.

use serde_json::Value;
use veilsum_cluster::{Centres, Domain, Outcome, Prepared, Run, assign, metrics, pooled};
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
        let [a, b] = [&pooled, &federated].map(|outcome| outcome.indices.fuzzy_davies_bouldin.unwrap());
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

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

veilsum_testkit::with_data!(table_1_as_printed);
