use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use veilsum_answerer::{Fault, Held, Hello, RefusalCode, contract::FromSite};
use veilsum_cluster::{Batch, Centres, Query};
use veilsum_testkit::postgres::Postgres;

fn question() -> Batch {
    Query::fuzzy_sums(
        Centres::new(2, 6, vec![0.4; 12].into_iter().enumerate().map(|(i, x)| x + i as f64 / 50.0).collect()).unwrap(),
        2.0,
    )
    .into()
}

const STEPS: [(usize, i32); 2] = [(12, 40), (2, 40)];

/// A server of its own: its connections are dropped.
fn own() -> Option<Postgres> {
    let server = Postgres::start().inspect_err(|why| eprintln!("SKIPPED: tests of PostgreSQL: {why}")).ok()?;
    server.load(super::CREATE, "veilsum_example", &super::csv());
    Some(server)
}

#[test]
fn a_dropped_connection_is_opened_again_and_other_rows_are_an_error() {
    let Some(server) = own() else { return };
    for args in [&["--mode", "push"][..], &["--mode", "stream", "--memory", "0"]] {
        let (launch, _) = super::launch(&server, &[args, &["--view", "veilsum_example"]].concat());
        let mut held = Held::start(launch, super::hello()).unwrap();
        let words = held.words(&question(), &STEPS).unwrap();
        // Under the snapshot a change does not matter.
        server.sql("UPDATE veilsum_example SET age = age + 1 WHERE age = 40");
        assert_eq!(held.words(&question(), &STEPS), Ok(words.clone()));
        server.sql("UPDATE veilsum_example SET age = 40 WHERE age = 41");
        // The same rows again, but for what was 41 before: another fingerprint, and no answer at all.
        assert_eq!(server.drop_connections(), 1);
        let fault = held.words(&question(), &STEPS).unwrap_err();
        let Fault::Refused(_, refusal) = &fault else { panic!("{fault}") };
        assert_eq!(refusal.code, RefusalCode::Changed, "{fault}");
        server.sql("DELETE FROM veilsum_example");
        server.load("SELECT 1", "veilsum_example", &super::csv());
    }
    // With the same rows in another order the answer is the same.
    let (launch, _) = super::launch(&server, &["--mode", "push", "--view", "veilsum_example"]);
    let mut held = Held::start(launch, super::hello()).unwrap();
    let words = held.words(&question(), &STEPS).unwrap();
    server.sql(
        "CREATE TABLE turned AS SELECT * FROM veilsum_example ORDER BY random(); DELETE FROM veilsum_example; \
                INSERT INTO veilsum_example SELECT * FROM turned",
    );
    assert_eq!(server.drop_connections(), 1);
    assert_eq!(held.words(&question(), &STEPS), Ok(words));
    // Held rows need no connection.
    let (launch, _) = super::launch(&server, &["--view", "veilsum_example"]);
    let mut held = Held::start(launch, super::hello()).unwrap();
    server.drop_connections();
    assert!(held.words(&question(), &STEPS).is_ok());
}

#[test]
fn a_statement_that_runs_away_is_stopped_by_its_limit() {
    let Some(server) = own() else { return };
    let slow = "SELECT e.* FROM veilsum_example e, generate_series(1, 100000000) g WHERE e.age + g < 0";
    let (launch, _) = super::launch(&server, &["--mode", "push", "--statement-timeout", "1", "--query", slow]);
    let begun = Instant::now();
    let fault = Held::start(launch, super::hello()).err().unwrap();
    let Fault::Refused(_, refusal) = &fault else { panic!("{fault}") };
    assert_eq!(refusal.code, RefusalCode::Limit, "{fault}");
    assert!(refusal.message.contains("longer than 1 s") && begun.elapsed() < Duration::from_secs(20));
    assert_eq!(server.active(), 0);
}

/// Whoever is told to stop, or has nobody to answer to any more, takes its statement off the server.
#[test]
fn a_statement_is_cancelled_on_the_server_when_nobody_waits_for_it() {
    let Some(server) = own() else { return };
    let slow = "SELECT e.* FROM veilsum_example e, generate_series(1, 100000000) g WHERE e.age + g < 0";
    for how in ["end of input", "SIGTERM"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_veilsum-sql"))
            .args(["--url", &server.url("postgres"), "--mode", "push", "--query", slow])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let hello: Hello = super::hello();
        serde_json::to_writer(&mut stdin, &FromSite::Hello(hello)).unwrap();
        std::io::Write::write_all(&mut stdin, b"\n").unwrap();
        until("the statement runs", || server.active() == 1);
        if how == "SIGTERM" {
            assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        } else {
            drop(stdin);
        }
        let done = child.wait_with_output().unwrap();
        let (said, told) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(said.contains("\"code\":\"cancelled\"") && told.contains("cancelled cleanly"), "{how}: {said} {told}");
        until("the statement is gone", || server.active() == 0);
    }
}

fn until(what: &str, fits: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !fits() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
