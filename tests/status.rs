//! `veilsum status` beside real parties: who is connected, which round, since when; and what it says where nobody runs.

use std::{fs, os::unix::fs::PermissionsExt, process::Command, time::Duration};

use serde_json::Value;
use veilsum_testkit::program::{Parties, Running, binary, end_well, launch, start, veilsum};

use crate::said::{self, Told, says};

const SIZES: [usize; 3] = [40, 55, 61];
const PLAN: [&str; 4] = ["--set=init=uniform", "--set=epsilon=0", "--set=max_rounds=100", "--set=slots=64"];
const LIMIT: Duration = Duration::from_secs(120);

const OWN: &str = "roster plan key state";

fn status(p: &Parties, name: &str) -> Value {
    p.types(name, "status --json", OWN, &[]).expect(0).json()
}

/// As soon as it says what is looked for.
fn until(p: &Parties, name: &str, enough: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    said::until(LIMIT, name, || {
        found = status(p, name);
        enough(&found)
    });
    found
}

fn peer<'a>(found: &'a Value, name: &str) -> &'a Value {
    let parties = found["parties"].as_array().expect("parties");
    parties.iter().find(|peer| peer["party"] == name).unwrap_or_else(|| panic!("no {name}: {found:#}"))
}

#[test]
fn every_party_says_who_is_there_and_which_round_it_is() {
    let p = Parties::new(&SIZES, &PLAN);
    assert_eq!(status(&p, "lead"), serde_json::json!({ "running": false, "last": null }));
    // A state folder that is named is enough where a process runs, and is not where none runs.
    let folder = p.folder.path("nobody.state");
    assert_eq!(veilsum(&["status", "--state", &folder]).expect(0).stdout, "not running\n");
    let mut running = vec![start(&p.server(&[])), start(&p.client(1, &[]))];
    let lead = until(&p, "lead", |found| found["running"] == true && peer(found, "site-1")["over"].is_string());
    assert_eq!((lead["role"].as_str(), lead["phase"].as_str()), (Some("coordinator"), Some("waiting")));
    assert_eq!((&lead["federation"], &lead["round"]), (&"test".into(), &Value::Null), "{lead:#}");
    assert!(peer(&lead, "counter")["since"].is_null() && peer(&lead, "site-2")["over"].is_null(), "{lead:#}");
    let mut narrow = Command::new(binary());
    narrow.arg("status").env("COLUMNS", "20");
    let text = launch(narrow, &p.files("lead", OWN)).wait(LIMIT).expect(0).stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 20), "{text}");
    says(&text, &["lead, coordinator\n", "of test\n", "waiting for ", "connected: 1 of 4\n"]);
    says(&text, &["  site-1 QUIC ", "missing:\n  counter\n"]);
    let site = until(&p, "site-1", |found| found["running"] == true && peer(found, "lead")["over"].is_string());
    assert_eq!((site["role"].as_str(), site["phase"].as_str()), (Some("site"), Some("waiting")));
    // Whoever is dialled in vain is named with the reason.
    let heard =
        |found: &Value| peer(found, "counter")["heard"].as_str().is_some_and(|heard| heard.contains("not reached"));
    until(&p, "site-1", heard);
    // Its owner alone may ask, and whoever may not is told so.
    let socket = p.folder.0.join("lead.key.state/status.sock");
    assert_eq!(fs::metadata(&socket).expect("a socket").permissions().mode() & 0o777, 0o600);

    running.extend([start(&p.intermediary(&[])), start(&p.client(2, &[])), start(&p.client(3, &[]))]);
    let went_on = |found: &Value| found["round"]["number"].as_u64().is_some_and(|number| number >= 2);
    let lead = until(&p, "lead", went_on);
    assert_eq!((lead["phase"].as_str(), lead["round"]["sites"].as_u64()), (Some("running"), Some(3)), "{lead:#}");
    assert!(lead["round"]["of"].as_u64() >= Some(100) && lead["parties"].as_array().map(Vec::len) == Some(4));
    let site = until(&p, "site-2", went_on);
    assert_eq!((site["phase"].as_str(), &site["round"]["sites"]), (Some("running"), &Value::Null));
    let counter = until(&p, "counter", |found| found["round"]["number"] == 1);
    assert_eq!((counter["role"].as_str(), counter["round"]["of"].as_u64()), (Some("intermediary"), Some(1)));

    // A killed coordinator leaves its socket behind, and its journal says how far the run was.
    let killed = running.remove(0).kill();
    assert_eq!(killed.code, None);
    assert!(socket.exists());
    let last = status(&p, "lead");
    assert_eq!((&last["running"], &last["last"]["unfinished"]), (&false.into(), &true.into()), "{last:#}");
    assert!(last["last"]["totals"].as_u64() >= Some(2), "{last:#}");
    let text = p.types("lead", "status", OWN, &[]).expect(0).stdout;
    assert!(text.starts_with("not running\na run is unfinished, after ") && text.contains("totals; start"), "{text}");
    let lost = until(&p, "site-1", |found| peer(found, "lead")["over"].is_null());
    assert!(lost["trouble"]["what"].as_str().is_some_and(|what| what.starts_with("lost lead: ")), "{lost:#}");
    running.push(start(&p.server(&[])));
    until(&p, "lead", |found| found["running"] == true);
    end_well(running);
    for (name, answered) in [("lead", false), ("counter", false), ("site-3", true)] {
        let last = status(&p, name);
        assert_eq!((&last["running"], &last["last"]["unfinished"]), (&false.into(), &false.into()), "{name}: {last:#}");
        assert_eq!(last["last"]["answered"].as_u64().is_some_and(|number| number > 100), answered, "{name}: {last:#}");
        assert!(!p.folder.0.join(format!("{name}.key.state/status.sock")).exists());
    }
}

/// A run does not depend on it: where the path is too long for a socket, a warning says so.
#[test]
fn a_path_that_is_too_long_costs_the_status_and_not_the_run() {
    let p = Parties::new(&SIZES, &["--set=epsilon=0.005", "--set=max_rounds=12"]);
    let long = p.folder.path(&"x".repeat(110));
    let running: Vec<Running> = (1..=3).map(|i| start(&p.client(i, &[]))).collect();
    let counter = start(&p.intermediary(&[]));
    start(&p.server(&["--state", &long])).wait(LIMIT).expect(0).says(&["too long", "--state"]);
    end_well(running.into_iter().chain([counter]));
    veilsum(&["status", "--state", &long]).expect(3).says(&["too long"]);
}
