//! Both attacks in their quick form on a recorded run, and proof that the verdict can be a bad one.

use veilsum_audit::{
    count_from_memberships,
    one_round_records::{self, Budget},
    table::{self, Verdict},
    view,
};

const SEED: u64 = 7;

#[test]
fn controls_succeed_and_masks_hold() {
    println!("seed {SEED}");
    let report = table::audit(SEED, true, None).unwrap();
    report.print(&mut std::io::stdout()).unwrap();
    assert_eq!(report.findings.len(), table::ATTACKS.len());
    for f in &report.findings {
        assert_eq!(f.verdict(), Verdict::Holds, "{f:?}");
        assert_eq!(f.protected.hit, 0, "{f:?}");
    }
    assert!(report.passed);
}

#[test]
fn a_party_that_receives_plain_words_is_found_out() {
    println!("seed {SEED}");
    let mut recording = view::record(SEED, 1).unwrap();
    // The same run, had its sites sent their fixed-point words without masks.
    for round in &mut recording.rounds {
        round.received = round.plain.iter().map(|s| round.layout.encode(s).unwrap()).collect();
    }
    recording.counts.clone_from(&recording.plain_counts);
    let records = one_round_records::run(&recording, SEED, Budget::QUICK).unwrap();
    assert_eq!(records.verdict(), Verdict::Broken, "{records:?}");
    assert_eq!(records.protected, records.unprotected);
    let counts = count_from_memberships::run(&recording).unwrap();
    assert_eq!(counts.verdict(), Verdict::Broken, "{counts:?}");
    assert_eq!(counts.protected, counts.unprotected);
}
