//! Backups of every role: what comes back as it was before does no harm, between two runs and in the midst of one; and what a member erases of
//! a run. Separate processes, whose folders are copied as an operator copies them. What a single machine makes of older files is in
//! `tests/state_files.rs`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use veilsum_testkit::program::{Ended, Folder, ending};

use crate::said::{Told, until};
use crate::{
    joining::{LIMIT, SITES, ended_in},
    service::{PLAN, Standing},
};

pub(crate) const SHORT: [&str; 3] = ["--set=max_rounds=4", "--set=init=uniform", "--set=dp_useless=true"];
/// Many questions, so that a moment lies between two of them.
pub(crate) const LONG: [&str; 4] =
    ["--set=max_rounds=100", "--set=init=uniform", "--set=slots=64", "--set=dp_useless=true"];

/// Everything in a folder, as it is now. A file that is being replaced may be gone when it is its turn; one copies again then.
pub(crate) fn copy_of(folder: &Path) -> Folder {
    (0..20).map(|_| Folder::fresh()).find(|backup| copy(folder, &backup.0)).expect("a whole copy")
}

/// Whether all of it was copied.
fn copy(from: &Path, to: &Path) -> bool {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    copied.expect("cp").success()
}

/// What is in the folder is lost, and the backup takes its place.
pub(crate) fn put_back(backup: &Folder, folder: &Path) {
    fs::remove_dir_all(folder).expect("the folder is lost");
    fs::create_dir(folder).expect("a folder");
    assert!(copy(&backup.0, folder), "it is put back");
}

impl Standing {
    /// The folder of a party.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let member = self.members.iter().find(|member| member.name == name);
        member.map_or_else(|| self.founded.hub.folder.0.clone(), |member| member.house.folder.0.clone())
    }

    /// Killed without a word.
    pub(crate) fn dies(&mut self, name: &str) {
        self.process(name).take().expect("it runs").kill();
    }

    /// Told to stop, it ends well.
    pub(crate) fn stops(&mut self, name: &str) -> Ended {
        let process = self.process(name).take().expect("it runs");
        process.signal("-TERM");
        process.wait(LIMIT).expect(0)
    }

    /// Started with the same words as before.
    pub(crate) fn again(&mut self, name: &str) {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.start(&[]),
            None => self.serve = Some(self.founded.serve()),
        }
    }

    /// The party comes back as it was in the backup.
    pub(crate) fn comes_back(&mut self, name: &str, backup: &Folder) {
        self.dies(name);
        put_back(backup, &self.folder(name));
        self.again(name);
    }

    /// A plan of its own is proposed and begins; nothing is said of how it ends.
    pub(crate) fn begin(&mut self, run: usize, set: &[&str]) {
        self.hub(&[&PLAN[..], set, &[format!("--seed={run}").as_str()]].concat()).expect(0);
        self.hub(&["plan", "propose", "--start"]).expect(0);
    }

    /// The same, to its end with its result at all sites.
    pub(crate) fn runs(&mut self, run: usize) {
        self.begin(run, &SHORT);
        self.serves().until_result(run, LIMIT);
        self.agrees(run, &SITES);
    }
}

/// What the ledger of a site says left it: so many of these.
fn left(folder: &Path, name: &str, what: &str) -> usize {
    let ledger = fs::read_to_string(folder.join(format!("{name}.key.state/ledger.jsonl"))).unwrap_or_default();
    ledger.lines().filter(|line| line.contains(&format!("\"discloses\":\"{what}\""))).count()
}

fn answers(folder: &Path, name: &str) -> usize {
    left(folder, name, "masked_words")
}

/// [LED-11]: between two runs a coordinator and an intermediary go on, and a site goes on from a copy of after its last answer, and not
/// from an older one: every other site names it, and what to do, and gives nothing away.
#[test]
fn members_from_a_backup_between_two_runs() {
    let mut all = Standing::new(4000);
    all.runs(1);
    let older = ["counter", "hospital-a", "hospital-b", "coordinator"].map(|name| copy_of(&all.folder(name)));
    // Nothing has been answered since.
    all.comes_back("hospital-b", &older[2]);
    all.runs(2);
    all.comes_back("counter", &older[0]);
    all.runs(3);
    let newest = copy_of(&all.folder("hospital-a"));
    let given = |all: &Standing| {
        let shares = ["hospital-b", "hospital-c"].map(|name| left(&all.folder(name), name, "sealed_shares"));
        (SITES.map(|name| answers(&all.folder(name), name)), shares)
    };
    all.comes_back("hospital-a", &older[1]);
    let before = given(&all);
    all.begin(4, &SHORT);
    for name in ["hospital-b", "hospital-c"] {
        let said = ["its ledger was set back", "[LED-11]", "puts back the newest copy of the ledger"];
        let named = |log: &str| log.contains("hospital-a misbehaved") && said.iter().all(|said| log.contains(said));
        all.running(name).until("who was set back", LIMIT, named);
    }
    assert_eq!(given(&all), before, "something was given away");
    // The coordinator reads who left for it, and that another member is meant.
    all.until("it says that the ledger of another member was set back");
    all.hub(&["plan", "stop"]).expect(0);
    all.until("run 4 has ended");
    // It has nobody else to tell it.
    let told = "the ledger of another one was set back [LED-11]; whoever put a state folder back";
    all.running("hospital-a").until("that members left for it", LIMIT, |log| log.contains(told));
    // The newest copy, with all others as they are.
    all.comes_back("hospital-a", &newest);
    all.runs(5);
    // A coordinator that knows of the first run alone: the next one begins, whatever number it has, and nobody is started anew.
    all.comes_back("coordinator", &older[3]);
    all.until("hospital-a stands by");
    all.until("counter stands by");
    all.until("has taken part in run 5, which this folder does not know");
    all.runs(6);
    all.runs(7);
}

/// In the midst of a run: whoever comes back as it was earlier in it, the run ends with its result or in good order, and no site answers a
/// question twice in two ways.
#[test]
fn every_role_from_a_backup_in_the_midst_of_a_run() {
    let mut all = Standing::new(4000);
    for (at, name) in ["hospital-a", "counter", "coordinator"].into_iter().enumerate() {
        let run = at + 1;
        all.begin(run, &LONG);
        all.until(&format!("run {run} goes on"));
        let older = copy_of(&all.folder(name));
        thread::sleep(Duration::from_millis(300));
        all.comes_back(name, &older);
        let over = format!("run {run} has ended");
        let end = Instant::now() + Duration::from_secs(20);
        while !all.serves().heard().contains(&over) && Instant::now() < end {
            thread::sleep(Duration::from_millis(50));
        }
        println!("{name}: {}", all.serves().heard().lines().last().unwrap_or_default());
        if !all.serves().heard().contains(&over) {
            all.hub(&["plan", "stop"]);
            all.until(&over);
        }
        for party in ["coordinator", "counter"].iter().chain(&SITES) {
            assert!(!all.running(party).heard().contains("panicked at"), "{party}");
        }
    }
    // Everybody is there for the next one.
    all.runs(4);
}

/// [JRN-2]: power fails between a deck and its first answer, and the disk has the site's journal but not yet its ledger. The site is told
/// why it stays out of that run, and what ends it; nothing left it, and the next run has it again.
#[test]
fn power_that_fails_before_the_first_answer_costs_a_site_that_run_alone() {
    let mut all = Standing::new(4000);
    all.runs(1);
    let site = all.folder("hospital-a");
    let (before, given) = (copy_of(&site), answers(&site, "hospital-a"));
    let state = site.join("hospital-a.key.state");
    let journals = || ending(&state, ".journal");
    let has_a_deck = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.len() > 1000);
    all.begin(2, &LONG);
    until(LIMIT, "a deck", || journals().iter().any(has_a_deck));
    all.dies("hospital-a");
    assert_eq!(answers(&site, "hospital-a"), given, "it has answered already");
    let kept: Vec<_> = journals().iter().map(|path| (path.clone(), fs::read(path).expect("a journal"))).collect();
    put_back(&before, &site);
    for (path, bytes) in &kept {
        fs::write(path, bytes).expect("a journal");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    all.again("hospital-a");
    let why = |log: &str| log.contains("do not know the same of this run") && log.contains("[JRN-2]");
    all.running("hospital-a").until("why", LIMIT, why);
    all.until("hospital-a takes no part in run 2 any more");
    all.hub(&["plan", "stop"]).expect(0);
    all.until("run 2 has ended");
    assert_eq!(answers(&site, "hospital-a"), given, "something left it");
    all.runs(3);
}

/// `veilsum ledger forget`: nothing of the run's totals is left in the state folder, the account stays, and the run is not answered again.
#[test]
fn what_a_member_keeps_of_a_run_is_erased_and_its_account_is_not() {
    let mut all = Standing::new(4000);
    // Longer than a command waits for another process.
    all.begin(1, &[&["--set=max_rounds=600"], &LONG[1..]].concat());
    let site = all.folder("hospital-a");
    let state = site.join("hospital-a.key.state");
    let kept = |end: &str| {
        let files = ending(&state, end).into_iter();
        files.filter(|file| file.metadata().is_ok_and(|about| about.len() > 100)).count()
    };
    until(LIMIT, "answers", || kept(".transcript") > 0 && answers(&site, "hospital-a") >= 3);
    let run = ended_in(&all.members[0].house, 1);
    let house = |all: &mut Standing, args: &[&str]| all.members[0].house.run(args);
    let forget = ["ledger", "forget", run.as_str(), "--key", "hospital-a.key"];
    // Not while it runs.
    house(&mut all, &forget).expect(3).says(&["in use by another process"]);
    all.dies("hospital-a");
    let spent = |all: &mut Standing| {
        let told = house(all, &["check", "--offline", "--key", "hospital-a.key", "--json"]).json();
        (told["account"]["answers"].clone(), told["account"]["rho"].clone(), told["account"]["spent"].clone())
    };
    assert!(kept(".journal") > 0 && kept(".transcript") > 0);
    let before = spent(&mut all);
    house(&mut all, &forget).expect(0).says(&["erased", "The account is what it was"]);
    let left = [".journal", ".transcript", ".new", "ledger.jsonl"].map(|end| ending(&state, end).len());
    assert_eq!(left, [0, 0, 0, 1]);
    assert_eq!(spent(&mut all), before);
    house(&mut all, &["verify", "hospital-a.key.state/ledger.jsonl"]).expect(0);
    // The run goes on without it, or not at all; it does not come back to it.
    let given = answers(&site, "hospital-a");
    all.again("hospital-a");
    let refused = |log: &str| log.contains("answered before") || log.contains("POL-8");
    all.running("hospital-a").until("its refusal", LIMIT, refused);
    all.hub(&["plan", "stop"]).expect(0);
    all.until("run 1 has ended");
    assert_eq!(answers(&site, "hospital-a"), given, "an answer left after the run was forgotten");
    // A second time there is nothing, and a run that is none is told.
    all.dies("hospital-a");
    assert!(house(&mut all, &forget).expect(0).stdout.contains("erased 0 files"));
    house(&mut all, &["ledger", "forget", "results/009-00000000", "--key", "hospital-a.key"]).expect(3);
    house(&mut all, &["ledger", "forget", "--key", "hospital-a.key"]).expect(2);
    house(&mut all, &["ledger", "show", run.as_str(), "--key", "hospital-a.key"]).expect(2);
    all.again("hospital-a");
    all.runs(2);
}
