//! Every attack in its quick form on recorded runs, and proof that the verdict can be a bad one.

use veilsum_audit::{
    count_from_memberships,
    finding::Verdict,
    one_round_records::{self, Budget},
    pinhole,
    scene::Scene,
    table, view,
};

const SEED: u64 = 7;

#[test]
fn controls_succeed_and_protections_hold() {
    println!("seed {SEED}");
    let report = table::audit(SEED, true, None, |step| println!("{step}")).unwrap();
    report.print(&mut std::io::stdout()).unwrap();
    assert_eq!(report.findings.len(), table::ATTACKS.len());
    for f in &report.findings {
        assert_eq!(f.verdict(), Verdict::Holds, "{f:?}");
    }
    assert!(report.passed);
}

#[test]
fn a_party_that_receives_plain_words_is_found_out() {
    println!("seed {SEED}");
    let mut recording = view::record(&Scene::small(SEED, 1).unwrap()).unwrap();
    // The same run, had its sites sent their fixed-point words without masks.
    for round in &mut recording.rounds {
        for (site, words) in &mut round.received {
            *words = round.layout.encode(&round.plain[usize::from(*site)]).unwrap();
        }
    }
    recording.counts.clone_from(&recording.plain_counts);
    let records = one_round_records::run(&recording, SEED, Budget::QUICK).unwrap();
    let counts = count_from_memberships::run(&recording).unwrap();
    for finding in [records, counts] {
        assert_eq!(finding.verdict(), Verdict::Broken, "{finding:?}");
        assert_eq!(finding.measures[0].protected, finding.measures[0].unprotected);
    }
}

#[test]
fn sites_that_answer_a_probe_are_found_out() {
    println!("seed {SEED}");
    // The "protected" federation is one whose plan opens nothing.
    let finding = pinhole::run_against(SEED, true, false).unwrap();
    assert_eq!(finding.verdict(), Verdict::Broken, "{finding:?}");
    assert!(finding.measures.iter().all(|m| m.verdict() == Verdict::Broken), "{finding:?}");
}
