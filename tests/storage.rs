//! A disk that is full, fails, or comes back from a backup: whoever cannot write stops as in a crash, tells its own operator, tells nobody an end, and goes on once it
//! can. The files of a process are limited from outside (`prlimit`), at a moment that a test chooses or a seed draws.
//!
//! The long form, in one command: `VEILSUM_FULL=60 cargo test --test product storage:: -- --nocapture`; `VEILSUM_SEED` repeats it.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use veilsum_cluster::random::Stream;
use veilsum_testkit::{
    faults::{self, Failing},
    program::{Running, has_a_result},
};

use crate::{
    backups::{LONG, SHORT, copy_of},
    joining::{LIMIT, SITES},
    service::{PLAN, Standing},
};

/// So many runs, usually, and what is drawn for them.
fn long_form(usual: u64, what: &[u8; 24]) -> (u64, Stream) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (runs, seed) = (number("VEILSUM_FULL").unwrap_or(usual), number("VEILSUM_SEED").unwrap_or(1));
    println!("seed {seed}");
    (runs, Stream::new(seed, what))
}

/// The coordinator, the intermediary, or a site.
fn of<'a>(all: &'a Standing, role: &str) -> &'a Running {
    if role == "coordinator" {
        return all.serves();
    }
    all.members.iter().find(|member| member.name == role).expect("a member").running()
}

/// It has ended well, at these sites.
fn ends(all: &Standing, run: usize, sites: &[&str]) {
    let end = Instant::now() + LIMIT;
    while !has_a_result(&all.serves().heard(), run) {
        if Instant::now() > end {
            all.members.iter().for_each(|member| println!("{}:\n{}", member.name, member.running().heard()));
            panic!("run {run} has no result: {}", all.serves().heard());
        }
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(all.agrees(run, sites)["ended_early"], Value::Null);
}

/// [PRO-3]: a plan that cannot be kept is handed out again, and the party neither ends nor answers to what it has not.
#[test]
fn a_plan_that_cannot_be_kept_is_handed_out_again() {
    let mut all = Standing::new(4000);
    of(&all, "hospital-b").disk(true);
    all.hub(&[&PLAN[..], &LONG].concat()).expect(0);
    all.hub(&["plan", "propose", "--wait", "1"]);
    of(&all, "hospital-b").until("why", LIMIT, |log| log.contains("plan.toml cannot be written"));
    of(&all, "hospital-b").disk(false);
    all.hub(&["plan", "propose", "--start"]).expect(0);
    ends(&all, 1, &SITES);
}

/// Each role × each change of its disk × {full, broken, read-only}, in mid-run and between runs: the run ends with its result, at every
/// site, and no answer is lost. Which change fails first is drawn; the long form (`VEILSUM_FULL`) goes through all.
#[test]
fn whatever_change_of_a_disk_fails_the_run_ends_with_its_result() {
    faults::prepare();
    let (runs, mut dice) = long_form(3, b"veilsum disk that breaks");
    let mut all = Standing::new(2000);
    for number in 0..runs as usize {
        // An account has room for so many plans.
        let run = number % 15 + 1;
        if number > 0 && run == 1 {
            all = Standing::new(2000);
        }
        let role = ["coordinator", "counter", "hospital-b"][number % 3];
        let fault = faults::ALL[(number + number / 3) % 3];
        let between = number % 2 == 1;
        // Few changes are made between two runs, some hundred in one.
        let after = (dice.unit() * if between { 4.0 } else { 6.0 }).exp() as u64 - 1;
        let lasts = Duration::from_millis((dice.unit() * 3000.0) as u64);
        let folder = all.folder(role);
        let seed = format!("--seed={run}");
        all.hub(&[&PLAN[..], &SHORT, &[seed.as_str()]].concat()).expect(0);
        let failing = if between {
            let failing = Failing::new(&folder, fault, after);
            all.hub(&["plan", "propose", "--wait", "1"]);
            failing
        } else {
            all.hub(&["plan", "propose", "--start"]).expect(0);
            Failing::new(&folder, fault, after)
        };
        failing.hits_within(Duration::from_secs(3));
        thread::sleep(lasts);
        println!(
            "run {run}: {role}, {fault:?} after {after} changes, between runs: {between}: {:?}",
            failing.hit().first()
        );
        drop(failing);
        if between {
            // Whoever hung up comes back within seconds.
            let end = Instant::now() + LIMIT;
            while all.hub(&["plan", "propose", "--start"]).code != Some(0) {
                assert!(Instant::now() < end, "{}", all.serves().heard());
            }
        }
        ends(&all, run, &SITES);
    }
}

/// A coordinator's folder from a backup, older than the last runs: the next run begins, whatever number it has, and nobody is started anew.
#[test]
fn a_coordinator_from_a_backup_begins_the_next_run() {
    let mut all = Standing::new(4000);
    all.runs(1);
    let backup = copy_of(&all.folder("coordinator"));
    all.runs(2);
    all.runs(3);
    all.comes_back("coordinator", &backup);
    all.until("hospital-a stands by");
    all.until("counter stands by");
    all.until("has taken part in run 3, which this folder does not know");
    all.runs(4);
    all.runs(5);
}
