//! The programs by which an earlier version was broken from outside, and what comes of each now: a plan on which the audit says yes, or a test
//! of what the product refuses.

use std::{collections::BTreeSet, fs, path::Path};

use veilsum_audit::own::{Answer, Audited};
use veilsum_testkit::data::shared;

use crate::succeeds::cases;

/// What comes of a program.
enum Now {
    /// On this plan of `succeeds.rs` the attack succeeds exactly, and keeps to the account with noise.
    Case(&'static str),
    /// The product refuses it, or has nothing left that it could be tried on: a test of the repository says so.
    Refused(&'static str),
    /// It measures noise, methods or the audit of then, or is a part of the other programs.
    NoAttack,
}
use Now::{Case, NoAttack, Refused};

const OUTLIER: &str = "a centre that is an outlier's record";
const BESIDE: &str = "first centres beside a person";
const TINY: &str = "more clusters than rows, and almost hard groups";
const FEW: &str = "few rows that came between two runs";
const ASKED: &str = "one column, asked often";
/// Answers to proposals follow from public documents; in every case of `succeeds.rs` they tell nothing.
const PROPOSED: Now = Refused("tests/service.rs::no_plan_is_a_question_about_rows");

/// Every program, and what stands for it.
const PROGRAMS: &[(&str, &[Now])] = &[
    ("noise/avg.py", &[NoAttack]),
    ("noise/first_centres_and_mean.py", &[NoAttack]),
    ("noise/seed.py", &[NoAttack]),
    // Addresses are host names, which the network moves; a roster with another one is agreed to as any other change.
    (
        "operation/addr.py",
        &[Refused("tests/swapped_roster.rs::ros_9_one_changed_member_is_named_and_the_change_can_be_agreed_to")],
    ),
    ("operation/disk.py", &[Refused("tests/damaged_state.rs::the_disk_of_a_site_is_full")]),
    (
        "operation/hubdisk2.py",
        &[Refused("tests/storage.rs::whatever_change_of_a_disk_fails_the_run_ends_with_its_result")],
    ),
    ("operation/hubrestore.py", &[Refused("tests/storage.rs::a_coordinator_from_a_backup_begins_the_next_run")]),
    ("operation/lostkey.py", &[Refused("tests/year.rs::a_year_of_monthly_plans")]),
    ("operation/member.py", &[Refused("tests/backups.rs::members_from_a_backup_between_two_runs")]),
    ("operation/net.sh", &[NoAttack]),
    ("operation/ops.py", &[NoAttack]),
    (
        "operation/qhex3.py",
        &[Refused("tests/ledger.rs::led_6_a_journal_that_was_taken_away_takes_nothing_from_the_account")],
    ),
    ("operation/slow4.py", &[Refused("tests/service.rs::a_member_is_told_of_as_it_is")]),
    ("proposals/data.py", &[NoAttack]),
    ("proposals/data4.py", &[NoAttack]),
    ("proposals/exact.py", &[PROPOSED]),
    ("proposals/exact4.py", &[PROPOSED]),
    ("proposals/oracle.py", &[PROPOSED]),
    ("proposals/setup.sh", &[NoAttack]),
    ("proposals/setup4.sh", &[NoAttack]),
    ("records/again.sh", &[Case(TINY)]),
    ("records/both.py", &[Case(TINY), Case("a second plan over the same rows")]),
    ("records/check40.py", &[Case(TINY), Case(OUTLIER)]),
    (
        "records/cols2.sh",
        &[
            Case("rows that nobody declared, seen by other columns"),
            Refused("tests/ledger.rs::rows_that_change_are_declared_by_enough_sites_at_once"),
        ],
    ),
    (
        "records/floor2.sh",
        &[
            Case("a description of few rows"),
            Refused("tests/application_rules.rs::app_2_a_count_below_the_floor_is_told_to_nobody_and_ends_the_run"),
        ],
    ),
    ("records/fromjournal.py", &[Case(TINY)]),
    ("records/gen.py", &[NoAttack]),
    ("records/grind.py", &[Case(BESIDE), Case("first centres beside a person, chosen later")]),
    ("records/honest.py", &[Case("almost hard groups"), Case(OUTLIER)]),
    ("records/near.csv", &[Case(BESIDE)]),
    ("records/off.csv", &[Case(BESIDE)]),
    // Noise anew is paid for anew, whatever the order of the file.
    ("records/order.sh", &[Refused("tests/ledger.rs::pol_8_all_plans_spend_from_one_account")]),
    ("records/refine.py", &[Case(TINY), Case("a second plan over the same rows")]),
    ("records/run.sh", &[NoAttack]),
    ("records/truth.py", &[Case("almost hard groups")]),
    ("records/truth.sh", &[Case("almost hard groups")]),
    (
        "rule/change2.py",
        &[
            Case(FEW),
            Refused(
                "crates/node/src/store/ledger/tests.rs::pol_9_an_agreement_is_for_one_plan_and_one_version_of_the_rows",
            ),
        ],
    ),
    ("rule/dn.py", &[Case("a column of two values beside a fine one")]),
    // Windows around centres are gone, with the methods that asked in them.
    ("rule/far.py", &[Refused("tests/cli.rs::methods_that_cannot_be_planned_are_named")]),
    ("rule/fnoise.py", &[NoAttack]),
    ("rule/fnoise2.py", &[NoAttack]),
    ("rule/grind.py", &[Case("first centres beside a person, chosen later")]),
    ("rule/lattice.py", &[Case("columns of two values")]),
    ("rule/leverage.py", &[Case("weights of many questions that single out a row")]),
    ("rule/liar.py", &[Case("a group of one row, whatever a site adds to it")]),
    ("rule/local3.py", &[Case("several centres near a lone row"), Case(FEW)]),
    ("rule/noise.py", &[NoAttack]),
    ("rule/noisecheck.py", &[Case(FEW)]),
    ("rule/onecol.py", &[Case(ASKED)]),
    ("rule/prior.py", &[Case(FEW), Case(ASKED)]),
    ("rule/recon.py", &[Case(FEW)]),
    ("rule/rounds3.py", &[NoAttack]),
    ("rule/shell4.py", &[Refused("tests/cli.rs::methods_that_cannot_be_planned_are_named")]),
    ("rule/support.py", &[Case("several centres near a lone row"), Case(TINY)]),
    ("rule/ungrouped3.py", &[Case("sums over all rows beside a far one")]),
    // The audit of then could not say "at risk"; every case is one.
    ("starts/cmp.py", &[NoAttack]),
    ("starts/mine_bound.py", &[NoAttack]),
    ("starts/mine_vs_truth.py", &[Case("weights of many questions that single out a row")]),
    ("starts/poc_outlier.py", &[Case(OUTLIER)]),
    ("starts/poc_pinhole_start.py", &[Case(BESIDE)]),
    ("starts/poc_policy_check_false_yes.py", &[Case(BESIDE)]),
    ("starts/small.csv", &[NoAttack]),
    ("starts/sweep.toml", &[NoAttack]),
    ("Veil.v", &[NoAttack]),
    ("README.md", &[NoAttack]),
];

/// Whether proposals told nothing, as the table says of them.
pub(crate) fn proposals_tell_nothing(found: &Audited) -> bool {
    found.tried.iter().filter(|tried| tried.attack == "proposals").all(|tried| tried.answer == Answer::No)
}

#[test]
fn what_stands_for_a_program_exists() {
    let cases: BTreeSet<&str> = cases().iter().map(|case| case.what).collect();
    for (program, now) in PROGRAMS.iter().flat_map(|(program, all)| all.iter().map(move |now| (program, now))) {
        match now {
            Case(what) => assert!(cases.contains(what), "{program}: {what}"),
            Refused(test) => {
                let (file, name) = test.split_once("::").unwrap();
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
                let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{program}: {file}: {why}"));
                assert!(text.contains(&format!("fn {name}(")), "{program}: {test}");
            }
            NoAttack => (),
        }
    }
}

fn every_program_has_an_entry() {
    let root = shared().join("reference/review3");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(&root).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            let inside = fs::read_dir(entry.path()).unwrap().flatten();
            found.extend(inside.map(|file| format!("{name}/{}", file.file_name().into_string().unwrap())));
        } else {
            found.insert(name);
        }
    }
    let listed: BTreeSet<String> = PROGRAMS.iter().map(|(program, _)| (*program).to_owned()).collect();
    assert_eq!(found, listed);
}

veilsum_testkit::with_data!(every_program_has_an_entry);
