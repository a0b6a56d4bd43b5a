//! What shows how a run goes, beside real parties: the file of events against its schema, metrics; and what a full disk does.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use serde_json::Value;
use veilsum_testkit::program::{Ended, ONE_RUN, Parties, Running, end_well, start, veilsum};

use crate::said::{says, until};
use crate::schemas;
use crate::source::read;

const SIZES: [usize; 3] = [40, 55, 61];
const PLAN: [&str; 4] = ["--set=init=uniform", "--set=epsilon=0", "--set=max_rounds=60", "--set=slots=64"];
const LIMIT: Duration = Duration::from_secs(120);

fn schema() -> Value {
    serde_json::from_str(&read("docs/src/events.schema.json")).expect("a JSON document")
}

fn fits(value: &Value) -> bool {
    schemas::fits(&schema(), &schema(), value, "an event").is_ok()
}

#[test]
fn the_schema_refuses_what_is_not_an_event() {
    let line = |text: &str| fits(&serde_json::from_str(text).expect("JSON"));
    assert!(line(r#"{"format":"veilsum-events/1","at":1.5,"event":"answered","number":3}"#));
    for text in [
        r#"{"format":"veilsum-events/2","at":1.5,"event":"answered","number":3}"#,
        r#"{"format":"veilsum-events/1","event":"answered","number":3}"#,
        r#"{"format":"veilsum-events/1","at":1.5,"event":"answered"}"#,
        r#"{"format":"veilsum-events/1","at":1.5,"event":"answered","number":3,"rows":7}"#,
        r#"{"format":"veilsum-events/1","at":1.5,"event":"answered","number":"3"}"#,
        r#"{"format":"veilsum-events/1","at":1.5,"event":"moved","clusters":[{"k":2,"round":1,"shift":0.5,"rests":false,"centre":[1]}]}"#,
        r#"{"format":"veilsum-events/1","at":1.5,"event":"another"}"#,
    ] {
        assert!(!line(text), "{text}");
    }
}

/// Every event that the product knows is in the schema, and the other way round.
#[test]
fn every_event_has_its_place_in_the_schema() {
    let source = read("crates/node/src/role/progress.rs");
    let (_, events) = source.split_once("pub enum Progress {\n").expect("the events");
    let events = events.split("\n}\n").next().expect("its end").lines().filter_map(|line| line.strip_prefix("    "));
    let named = |line: &str| {
        let name = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let dashed =
            name.chars().flat_map(|c| [c.is_uppercase().then_some('-'), Some(c.to_ascii_lowercase())]).flatten();
        dashed.collect::<String>().trim_start_matches('-').to_owned()
    };
    let mut known: Vec<String> = events.filter(|line| line.starts_with(char::is_uppercase)).map(named).collect();
    known.push("left-out".into());
    let schema = schema();
    let forms = schema["oneOf"].as_array().expect("forms").iter();
    let mut described: Vec<String> =
        forms.map(|form| form["properties"]["event"]["const"].as_str().expect("a name").into()).collect();
    known.sort();
    described.sort();
    assert_eq!(known, described);
}

fn events(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a file of events");
    let read = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(fits(&event), "{line}");
        event
    };
    text.lines().map(read).collect()
}

/// Of one whose disk is full it is said once, and costs no run.
#[test]
fn every_party_shows_its_run() {
    let p = Parties::new(&SIZES, &PLAN);
    let [lead, counter, site] = ["lead", "counter", "site-1"].map(|name| p.folder.write(&format!("{name}.jsonl"), ""));
    fs::set_permissions(&lead, fs::Permissions::from_mode(0o644)).expect("a mode");
    let metrics = || veilsum(&["status", "--metrics", "--state", &p.folder.path("lead.key.state")]).expect(0).stdout;
    assert!(metrics().ends_with("veilsum_running 0\n"), "{}", metrics());
    let mut running = vec![start(&p.server(&["--events", &lead])), start(&p.client(1, &["--events", &site]))];
    running.push(start(&p.intermediary(&["--events", &counter])));
    running.extend([start(&p.client(2, &["--events", "/dev/full"])), start(&p.client(3, &[]))]);
    let mut text = String::new();
    until(LIMIT, "metrics of a run", || {
        text = metrics();
        text.contains("veilsum_running 1\n") && text.contains("\nveilsum_centres_moved ")
    });
    assert!(text.contains("veilsum_connected{other=\"site-2\",over=\"QUIC\"} 1\n"), "{text}");
    let ended: Vec<Ended> = running.into_iter().map(|party| party.wait(LIMIT).expect(0)).collect();
    assert_eq!(fs::metadata(&lead).expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(ended[3].stderr.matches("events cannot be written").count(), 1, "{}", ended[3].stderr);
    // Who is not at a terminal says at the end, on a few lines, how the run was.
    assert!(ended[0].text().contains("3 sites answered, centres moved by"), "{}", ended[0].text());
    let told = &ended[1].stderr;
    let last = told.lines().find(|line| line.starts_with("question ")).unwrap_or_else(|| panic!("{told}"));
    says(last, &["question 6", " of at most ", "centres moved by ", "sent ", "received "]);
    assert!(!told.contains(['\r', '\u{1b}']), "{told:?}");

    let [lead, counter, site] = [lead, counter, site].map(|file| events(&file));
    let count = |all: &[Value], name: &str| all.iter().filter(|event| event["event"] == name).count();
    assert_eq!((count(&lead, "begins"), count(&lead, "ready"), count(&lead, "ended")), (1, 1, 1), "{lead:?}");
    // 60 rounds, and what is asked after them.
    assert_eq!(count(&lead, "moved"), 60);
    assert!(count(&lead, "asked") == count(&lead, "round") && count(&lead, "round") > 60);
    assert_eq!((count(&site, "moved"), count(&site, "judged"), count(&lead, "judged")), (60, 1, 1));
    assert_eq!(count(&site, "answered"), count(&lead, "round"));
    let of = |all: &[Value], name: &str| all.iter().find(|event| event["event"] == name).cloned().expect("an event");
    assert_eq!(of(&site, "judged")["curve"], of(&lead, "judged")["curve"], "a site recomputes the same");
    // Who counts rows learns nothing of the centres.
    assert_eq!((count(&counter, "moved"), count(&counter, "judged"), count(&counter, "round")), (0, 0, 1));
}

/// On a terminal of 20 columns no line of the display is broken, and what others print is not cleared.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_of_twenty_columns() {
    let p = Parties::new(&SIZES, &PLAN);
    let log = PathBuf::from(p.folder.path("terminal.log"));
    let party = std::env::current_exe().expect("a path");
    let command = format!("stty cols 20; '{}' one_run::one_run --exact --nocapture", party.display());
    let terminal = std::process::Command::new("script")
        .args(["-qec", &command])
        .arg(&log)
        .env("RUST_TEST_THREADS", "2")
        .env(ONE_RUN, p.server(&["-v"])[1..].join("\n"))
        .stdout(std::process::Stdio::null())
        .spawn();
    let Ok(mut terminal) = terminal else {
        return eprintln!("SKIPPED: the command `script`, which makes a terminal, is not here");
    };
    let mut running: Vec<Running> = (1..=3).map(|i| start(&p.client(i, &[]))).collect();
    running.push(start(&p.intermediary(&[])));
    assert!(terminal.wait().expect("it ran").success());
    end_well(running);
    let text = String::from_utf8_lossy(&fs::read(log).expect("what it showed")).into_owned();
    // What is drawn stands between a return and the end of its clearing.
    let drawn: Vec<&str> =
        text.split('\r').filter_map(|part| part.split_once("\u{1b}[K")).map(|(line, _)| line).collect();
    assert!(drawn.len() > 60, "{text:?}");
    assert!(drawn.iter().all(|line| line.len() < 20 && !line.contains('\n')), "{drawn:?}");
    // Every line of the log is whole: nothing was cleared but the display's own line.
    assert!(text.matches("INFO question ").count() > 60, "{text}");
}
