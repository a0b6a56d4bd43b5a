//! Every attack in its quick form, and proof that the verdict can be a bad one.

use veilsum_audit::{
    account::{Honest, asked, measured, sums},
    finding::Verdict,
    pinhole,
    scene::Scene,
    sweep_records, table, view,
};
use veilsum_cluster::privacy::Unit;

const SEED: u64 = 7;

#[test]
fn controls_succeed_and_protections_hold() {
    println!("seed {SEED}");
    let report = table::audit(SEED, true, None, |step| println!("{step}")).unwrap();
    report.print(&mut std::io::stdout()).unwrap();
    assert_eq!(report.findings.len(), table::ATTACKS.len());
    for f in &report.findings {
        assert_eq!(f.found.verdict(), Verdict::Holds, "{f:?}");
    }
    assert!(report.passed);
}

#[test]
fn a_party_that_receives_plain_words_is_found_out() {
    println!("seed {SEED}");
    let mut recording = view::record(&Scene::sweep(SEED).unwrap()).unwrap();
    // The same run, had its sites sent their fixed-point words without masks.
    for round in &mut recording.rounds {
        for (site, words) in &mut round.received {
            *words = veilsum_audit::view::unbounded(&round.layout, &round.plain[usize::from(*site)].values);
        }
    }
    recording.counts.clone_from(&recording.plain_counts);
    let finding = sweep_records::run(&recording, SEED, 1).unwrap();
    assert_eq!(finding.measures.len(), 2);
    for measure in &finding.measures {
        assert_eq!(measure.verdict(), Verdict::Broken, "{finding:?}");
        assert_eq!(measure.protected, measure.unprotected);
    }
}

#[test]
fn sites_that_answer_a_probe_are_found_out() {
    println!("seed {SEED}");
    // The "protected" sites are some that answer whatever they are asked.
    let finding = pinhole::run_against(SEED, true, false).unwrap();
    assert_eq!(finding.verdict(), Verdict::Broken, "{finding:?}");
    assert!(finding.measures.iter().all(|m| m.verdict() == Verdict::Broken), "{finding:?}");
}

/// [NOI-3] [NOI-6]: half a missing share of the noise is seen.
#[test]
fn noise_that_is_too_small_is_found_out() {
    println!("seed {SEED}");
    let rest = vec![vec![-1.0, -1.0]; 2];
    let (without, with) = (Honest::new(&rest).unwrap(), Honest::new(&[rest, vec![vec![1.0, 1.0]]].concat()).unwrap());
    let query = sums(&[vec![1.0, 1.0], vec![-1.0, -1.0]], Some(2.0)).unwrap();
    let (found, stated) =
        measured(&without, &with, &asked(query.clone()), (1.0, Unit::Record), 10_000, SEED, false).unwrap();
    assert!((found / stated - 1.0).abs() < 0.05, "{found} {stated}");
    let (found, stated) = measured(&without, &with, &asked(query), (1.0, Unit::Record), 10_000, SEED, true).unwrap();
    assert!(found / stated > 1.3, "a halved share: {found} {stated}");
}
