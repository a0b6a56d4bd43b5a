//! The `veilsum-lab` command from outside.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::papers;

fn run(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veilsum-lab"));
    command.current_dir(folder).args(line.split_whitespace()).output().expect("the command runs")
}

/// Standard output of a run that succeeds.
fn ok(line: &str) -> String {
    let output = run(Path::new("."), line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Fails with this code, and says all of this.
fn fails(folder: &Path, line: &str, code: i32, words: &[&str]) {
    let output = run(folder, line);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{line}: {text}");
    words.iter().for_each(|word| assert!(text.contains(word), "{line}: {text} lacks {word}"));
}

#[test]
fn experiments_say_what_they_lack() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lab-commands");
    fs::create_dir_all(folder.join("data/ffcf")).expect("a folder");
    assert!(ok("experiments --list").contains("federated-fcm"));
    fails(&folder, "experiments nosuch", 2, &["nosuch", "--list"]);
    fails(&folder, "experiments ffcf --quick --data nowhere", 3, &["SKIPPED ffcf", "--data"]);
    fs::write(folder.join("data/bank-by-job.csv"), "not,a,table\n1\n").expect("a file");
    fails(&folder, "experiments bank --quick --data data", 3, &["bank"]);
}

fn a_run_writes_its_results() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lab-out");
    let data = veilsum_testkit::data::shared().join("data");
    let said = ok(&format!("experiments ffcf --quick --data {} --out {}", data.display(), out.display()));
    assert!(said.contains("1 experiments run, 0 targets missed"), "{said}");
    let rows = papers::read(&fs::read_to_string(out.join("results.tsv")).expect("a file")).expect("rows");
    assert!(rows.iter().any(|row| row.item == 71 && row.printed == "0.62"), "{rows:?}");
}

#[test]
fn the_protocol_alone_can_be_simulated() {
    let text = ok("simulate --sites 10 --length 50 --drop 0.2 --rounds 2 --json");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((value["sites"].as_u64(), value["missing"].as_u64()), (Some(10), Some(2)));
    for round in value["rounds"].as_array().expect("rounds") {
        assert_eq!(round["sites_in_total"], 8);
        assert!(round["upload_bytes_per_site"].as_u64().expect("a number") >= 50 * 8 * 8 / 10, "{round}");
    }
    let here = Path::new(".");
    fails(here, "simulate --sites 10 --drop 0.9", 6, &["too few sites"]);
    fails(here, "simulate --sites 2", 3, &["2 sites", "at least 3"]);
    fails(here, "simulate --sites 1001", 3, &["1001 sites", "at most 1000", "docs/src/decisions.md", "ROS-1"]);
    fails(here, "simulate --drop 1.5", 2, &["--drop"]);
    fails(here, "simulate --rounds 0", 2, &["--rounds"]);
}

veilsum_testkit::with_data!(a_run_writes_its_results);
