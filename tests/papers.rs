//! Whole masked federations on QUIC over the papers' data sets come to what pooled rows come to from the same start. That these are the
//! papers' numbers, `crates/cluster/tests/papers.rs` says.

use veilsum_cluster::{Centres, Outcome, method::Seeding};
use veilsum_node::{plan::PlanSpec, result::RunResult};
use veilsum_testkit::{
    data::{DataSet, matrix, shared},
    in_process::{columns_of, dealt, fcm, federate, max_difference, replay},
};

const SITES: usize = 20;

fn work(data: &DataSet, name: &str) -> PlanSpec {
    let folder = shared().join("reference/federated_fcm");
    let centres = matrix(&folder.join(format!("{name}-start-0.csv")));
    let (k, centres) = (centres.len() as u32, Centres::from_rows(&centres).expect("centres"));
    fcm(columns_of(data), k, 0.005, 100, Seeding::Given { centres })
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
        let work = work(&data, name);
        same(name, &masked(&data, &work), &pooled(&data, &work));
    }
}

veilsum_testkit::with_data!(masked_is_pooled);
