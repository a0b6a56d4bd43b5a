//! Known answers through a whole masked federation on QUIC: pooled FCM from the same start, Table 1 of Bárcena et al.
//! (2021) at gamma = 1, and FedFuzzDB. The optima of two data sets are in `crates/cluster/tests/papers.rs`.

use veilsum_cluster::{Centres, OutOfBox, Outcome, assign, method::Seeding, metrics};
use veilsum_node::{plan::PlanSpec, result::RunResult};
use veilsum_testkit::{
    data::{DataSet, TABLE_1, matrix, shared},
    in_process::{columns_of, dealt, fcm, federate, max_difference, replay},
};

const SITES: usize = 20;

fn work(data: &DataSet, name: &str, start: u32, epsilon: f64, rounds: u32) -> PlanSpec {
    let folder = shared().join("reference/federated_fcm");
    let centres = matrix(&folder.join(format!("{name}-start-{start}.csv")));
    let (k, centres) = (centres.len() as u32, Centres::from_rows(&centres).expect("centres"));
    fcm(columns_of(data), k, epsilon, rounds, Seeding::Given { centres })
}

fn masked(data: &DataSet, work: &PlanSpec) -> RunResult {
    let (run, sizes) = federate(dealt(data, SITES, 0), work, &[]);
    let result = run.result.expect("a result");
    assert!(sizes.iter().all(|n| *n == SITES) && result.missing.is_empty(), "{sizes:?} {:?}", result.missing);
    assert_eq!((result.n_total, result.n_total_from.as_deref()), (Some(data.rows.len() as u64), Some("intermediary")));
    for site in run.sites {
        assert!(site.expect("a site's report").model.is_some());
    }
    result
}

fn pooled(data: &DataSet, work: &PlanSpec) -> Outcome {
    let all = veilsum_testkit::in_process::prepared(work, &[("all".into(), data.rows.clone())]);
    replay(work, &all, |_| vec![0])
}

fn ari(data: &DataSet, work: &PlanSpec, result: &RunResult) -> f64 {
    let rows = work.domain().unwrap().to_working(&data.rows, OutOfBox::Refuse).expect("rows");
    let centres = Centres::from_rows(&result.centres_box).expect("centres");
    let u = assign::memberships(&rows, &centres, result.m).expect("memberships");
    metrics::adjusted_rand_index(&assign::hard_labels(&u), &data.labels).expect("labels")
}

/// Masked and pooled end in the same round, at the same centres, objective and index.
fn same(name: &str, masked: &RunResult, pooled: &Outcome) {
    assert_eq!((masked.rounds, masked.converged), (pooled.rounds, Some(pooled.converged)), "{name}");
    let centres: Vec<Vec<f64>> = pooled.centres.rows().map(<[f64]>::to_vec).collect();
    let off = max_difference(&masked.centres_box, &centres);
    assert!(off <= 1e-9, "{name}: centres differ by {off:e} of a column's range");
    let [a, b] = [&masked.indices, &pooled.indices].map(|of| of.fuzzy_davies_bouldin.expect("an index"));
    assert!((a / b - 1.0).abs() <= 1e-9, "{name}: FedFuzzDB {a} masked, {b} pooled");
    assert!((masked.objective.expect("J") / pooled.objective - 1.0).abs() <= 1e-9, "{name}: J");
    for (a, b) in masked.history.iter().zip(&pooled.history) {
        assert!((a.shift - b.shift).abs() <= 1e-8, "{name}: shift of round {}", a.round);
    }
}

fn masked_is_pooled() {
    for name in ["xclara", "s-set1", "pendigits", "waveform-v1"] {
        let data = DataSet::read(name);
        let work = work(&data, name, 0, 0.005, 100);
        same(name, &masked(&data, &work), &pooled(&data, &work));
    }
}

/// Exactly 30 rounds from a start each: two starts by default, whose centres are known; with `VEILSUM_PAPERS=all` all ten, and
/// their mean is the printed one. (`crates/cluster/tests/papers.rs` has all ten of the same in plain sums every time.)
fn table_1(name: &str, printed: f64) {
    let data = DataSet::read(name);
    let begun = std::time::Instant::now();
    let starts = if std::env::var("VEILSUM_PAPERS").is_ok_and(|v| v == "all") { 10 } else { 2 };
    let mut sum = 0.0;
    for start in 0..starts {
        let work = work(&data, name, start, 0.0, 30);
        let result = masked(&data, &work);
        assert_eq!(
            (result.rounds, result.converged, result.history.len()),
            (30, Some(false), 30),
            "{name} start {start}"
        );
        sum += ari(&data, &work, &result);
        if start < 5 {
            let last = shared().join(format!("reference/federated_fcm/{name}-final-{start}.csv"));
            let off = max_difference(&result.centres_box, &matrix(&last));
            assert!(off <= 1e-8, "{name} start {start}: off by {off:e}");
        }
    }
    let mean = sum / f64::from(starts);
    println!("{name}: mean ARI {mean:.6}, {:.2} s a run", begun.elapsed().as_secs_f64() / f64::from(starts));
    if starts < 10 {
        return;
    }
    assert_eq!(format!("{mean:.5}"), format!("{printed:.5}"), "{name}");
}

fn table_1_as_printed() {
    for (name, printed) in TABLE_1 {
        table_1(name, printed);
    }
}

veilsum_testkit::with_data!(masked_is_pooled, table_1_as_printed);
