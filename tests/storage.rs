//! A disk that is full, fails, or comes back from a backup: whoever cannot write stops as in a crash, tells its own operator, tells nobody an end, and goes on once it
//! can. The files of a process are limited from outside (`prlimit`), at a moment that a test chooses or a seed draws.
//!
//! The long form, in one command: `VEILSUM_FULL=60 cargo test --test product storage:: -- --nocapture`; `VEILSUM_SEED` repeats it.

use std::{thread, time::Duration};

use serde_json::Value;
use veilsum_cluster::random::Stream;
use veilsum_testkit::faults::{self, Failing};

use crate::{
    backups::{LONG, SHORT},
    joining::{LIMIT, SITES},
    said::until,
    service::{PLAN, Standing},
};

/// So many runs, usually, and what is drawn for them.
fn long_form(usual: u64, what: &[u8; 24]) -> (u64, Stream) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (runs, seed) = (number("VEILSUM_FULL").unwrap_or(usual), number("VEILSUM_SEED").unwrap_or(1));
    println!("seed {seed}");
    (runs, Stream::new(seed, what))
}

/// It has ended well, at all sites.
fn ends(all: &Standing, run: usize) {
    all.serves().until_result(run, LIMIT);
    assert_eq!(all.agrees(run, &SITES)["ended_early"], Value::Null);
}

/// [PRO-3]: a plan that cannot be kept is handed out again, and the party neither ends nor answers to what it has not.
#[test]
fn a_plan_that_cannot_be_kept_is_handed_out_again() {
    let mut all = Standing::new(4000);
    all.running("hospital-b").disk(true);
    all.hub(&[&PLAN[..], &LONG].concat()).expect(0);
    all.hub(&["plan", "propose", "--wait", "1"]);
    all.running("hospital-b").until("why", LIMIT, |log| log.contains("plan.toml cannot be written"));
    all.running("hospital-b").disk(false);
    all.hub(&["plan", "propose", "--start"]).expect(0);
    ends(&all, 1);
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
        if !between {
            all.hub(&["plan", "propose", "--start"]).expect(0);
        }
        let failing = Failing::new(&folder, fault, after);
        if between {
            all.hub(&["plan", "propose", "--wait", "1"]);
        }
        failing.hits_within(Duration::from_secs(3));
        thread::sleep(lasts);
        println!("run {run}: {role}, {fault:?} after {after} changes, between runs: {between}: {:?}", failing.hit());
        drop(failing);
        if between {
            // Whoever hung up comes back within seconds.
            until(LIMIT, "a run", || all.hub(&["plan", "propose", "--start"]).code == Some(0));
        }
        ends(&all, run);
    }
}
