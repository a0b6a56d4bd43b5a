//! An operator's bad days: a disk that is full, a state folder that cannot be written, a journal that is damaged, swapped or
//! somebody else's, clocks and versions that differ. Each ends with a message that says what happened and what to do.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use veilsum_testkit::program::{Ended, Parties, Running, start, start_limited, veilsum};

const SIZES: [usize; 5] = [40, 55, 61, 48, 70];
const LIMIT: Duration = Duration::from_secs(120);
const QUICK: [&str; 8] = ["--phase-timeout", "6", "--grace", "1", "--join-timeout", "60", "--on-loss", "stop"];
/// Many rounds, so that files grow.
const LONG: [&str; 5] = ["--set=init=uniform", "--set=epsilon=0", "--set=max_rounds=120", "--set=slots=64", "--seed=9"];

fn told(ended: &Ended, texts: &[&str]) {
    for text in texts {
        assert!(ended.stderr.contains(text), "{text:?} is not in\n{}", ended.stderr);
    }
}

fn journals(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a state folder").flatten().map(|f| f.path());
    let mut found: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "journal")).collect();
    found.sort();
    found
}

/// No file of the processes may grow beyond so many bytes: the disk is full.
const DISK: u64 = 24 << 10;

/// The site says so and sends nothing that its journal does not hold; the others end with what is out.
#[test]
fn the_disk_of_a_site_is_full() {
    let p = Parties::new(&SIZES, &LONG);
    let server = start(&p.server(&QUICK));
    let intermediary = start(&p.intermediary(&QUICK));
    let full = start_limited(&p.client(1, &["-vv"]), DISK);
    let others: Vec<Running> = (2..=5).map(|i| start(&p.client(i, &[]))).collect();
    let ended = full.wait(LIMIT).expect(10);
    told(&ended, &["File too large", "check free space and permissions of the folder (--state)"]);
    // The vector whose entry did not fit did not leave.
    let answered = ended.stderr.matches("MaskedWords").count();
    let size: u64 = journals(p.folder.path("site-1.state")).iter().map(|f| f.metadata().expect("a file").len()).sum();
    assert!(answered > 5 && size <= 2 * DISK, "{answered} answers, {size} bytes");
    let result = server.wait(LIMIT).expect(9);
    told(&result, &["left the run: site-1"]);
    intermediary.wait(LIMIT).expect(0);
    others.into_iter().for_each(|c| drop(c.wait(LIMIT).expect(9)));

    // With room again: the journal's torn end is no damage, and the run it was in is over; what was opened to it is its result.
    let back = veilsum(&p.client(1, &["--join-timeout", "1"])).expect(9);
    told(&back, &["did not answer"]);
    damaged_journals(&p);
}

/// It ends as in a crash, and nobody is told an end; with room the same command takes the run up, and nobody else types anything.
#[test]
fn the_disk_of_the_coordinator_is_full() {
    let p = Parties::new(&SIZES, &LONG);
    let server = start_limited(&p.server(&QUICK), DISK);
    let intermediary = start(&p.intermediary(&QUICK));
    let clients: Vec<Running> = (1..=5).map(|i| start(&p.client(i, &[]))).collect();
    let ended = server.wait(LIMIT).expect(10);
    told(&ended, &["the journal", "File too large", "check free space and permissions of the folder (--state)"]);
    let server = start(&p.server(&QUICK));
    told(&server.wait(LIMIT).expect(0), &["taking up an interrupted run"]);
    intermediary.wait(LIMIT).expect(0);
    clients.into_iter().for_each(|c| drop(c.wait(LIMIT).expect(0)));
    assert_eq!(p.folder.json("out/result.json")["rounds"], 120);
}

/// What is left of a run's journals: damaged at any place, of another plan, of another run.
fn damaged_journals(p: &Parties) {
    let short = ["--join-timeout", "1"];
    let file = journals(p.folder.path("site-1.state")).into_iter().max_by_key(|f| f.metadata().expect("a file").len());
    let file = file.expect("a journal");
    let whole = fs::read(&file).expect("a journal");
    for at in [0, 17, whole.len() / 2] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        fs::write(&file, bad).expect("a damaged journal");
        told(
            &veilsum(&p.client(1, &short)).expect(3),
            &["is damaged", "can no longer be told", "next: ", "a site needs a new plan"],
        );
    }
    fs::write(&file, &whole).expect("the journal");
    // The journal of one plan under the name that another plan's has.
    p.plan("roster.toml", "other.toml", &["--set=epsilon=0.01"]);
    let other = p.folder.path("other.toml");
    let elsewhere = ["--plan", &other, "--join-timeout", "1"];
    told(&veilsum(&p.client(1, &elsewhere)).expect(4), &["did not answer"]);
    let names = journals(p.folder.path("site-1.state"));
    assert_eq!(names.len(), 4, "a journal for each plan and aggregator: {names:?}");
    for name in names.iter().filter(|n| n.metadata().expect("a file").len() <= 16) {
        fs::write(name, &whole).expect("a swapped journal");
    }
    let swapped = veilsum(&p.client(1, &elsewhere)).expect(3);
    told(&swapped, &["it belongs to another plan, roster or aggregator", "agree on a new plan"]);
}

#[test]
fn a_state_folder_that_cannot_be_written() {
    let p = Parties::new(&SIZES, &[]);
    p.folder.write("file", "not a folder");
    let under_a_file = p.folder.path("file/state");
    let told_of =
        |ended: &Ended| told(ended, &["file/state", "check free space and permissions of the folder (--state)"]);
    told_of(&veilsum(&p.client(1, &["--state", &under_a_file])).expect(3));
    told_of(&veilsum(&p.server(&["--state", &under_a_file])).expect(3));
    // Root may write anywhere; everybody else is stopped by the folder's mode.
    let id = Command::new("id").arg("-u").output().expect("id");
    if String::from_utf8_lossy(&id.stdout).trim() == "0" {
        println!("SKIPPED the read-only folder: this is root, whom no mode stops");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let locked = p.folder.path("locked");
    fs::create_dir(&locked).expect("a folder");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).expect("a read-only folder");
    let ended = veilsum(&p.client(1, &["--state", &locked])).expect(3);
    told(&ended, &["locked", "Permission denied", "check free space and permissions"]);
}

/// Nothing of a run depends on what time it is at another party: no source of the product reads a wall clock but for an invitation's
/// last day, by the coordinator's own ([JOI-3]), for how long a site keeps its account for a run, by its own, and for people.
#[test]
fn clocks_may_differ() {
    fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, out);
            } else if path.extension() == Some(&OsString::from("rs")) {
                out.push(path);
            }
        }
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["crates/node/src", "crates/federation/src", "crates/cli", "crates/proto/src", "crates/cluster/src"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 100, "{}", files.len());
    // The day on which an invitation ends; `check`, which looks whether the clock is sane; and what is shown of a party to people.
    let reading = [
        "crates/node/src/role/lobby.rs",
        "crates/node/src/checkup.rs",
        "crates/cli/check.rs",
        "crates/node/src/role/status.rs",
        "crates/cli/status.rs",
        "crates/node/src/store/journal.rs",
        // The day of a result's file, for people.
        "crates/node/src/report/page/reported.rs",
        // Until when the account keeps what a yes promised ([LED-1]).
        "crates/node/src/clock.rs",
    ];
    for file in reading.map(|file| root.join(file)) {
        assert!(files.contains(&file), "{}: an exception is a file that is there", file.display());
        files.retain(|other| *other != file);
    }
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        for clock in ["SystemTime", "UNIX_EPOCH", "UtcDateTime", "chrono::", "time::OffsetDateTime"] {
            assert!(!text.contains(clock), "{} reads a wall clock: {clock}", file.display());
        }
    }
}

/// A greeting of another wire version is turned down with both versions and who is to upgrade.
#[test]
fn versions_may_differ_and_both_are_named() {
    let header = |version: u16| {
        let mut header = [0; 8];
        header[..2].copy_from_slice(&version.to_le_bytes());
        header[2..4].copy_from_slice(&(veilsum_proto::message::Kind::Hello as u16).to_le_bytes());
        veilsum_node::app_messages::header_check(&header).expect_err("another version")
    };
    for (version, older) in [(4, "this side must be upgraded"), (2, "the peer must be upgraded")] {
        let why = header(version);
        assert!(
            why.contains(&format!("version {version}")) && why.contains("speaks 3") && why.contains(older),
            "{why}"
        );
    }
}
