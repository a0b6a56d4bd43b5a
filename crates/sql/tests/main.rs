//! `veilsum-sql` as a process, against a real PostgreSQL: skipped loudly where there is none.

mod bad_input;
mod conformance;
mod federation;
mod fingerprints;
mod measured;
mod neighbours;
mod trouble;
mod views;

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use veilsum_answerer::{Hello, Launch, conformance as example};
use veilsum_cluster::{OutOfBox, Rows, Scaling};
use veilsum_testkit::postgres::Postgres;

/// One server for all tests that run at the same time, gone with the last of them; `None` where there is none, which is said.
fn server() -> Option<Arc<Postgres>> {
    static SERVER: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
    let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = known.upgrade() {
        return Some(server);
    }
    match Postgres::start() {
        Ok(server) => {
            server.load(CREATE, TABLE, &csv());
            let server = Arc::new(server);
            *known = Arc::downgrade(&server);
            Some(server)
        }
        Err(why) => {
            eprintln!("SKIPPED: tests of PostgreSQL: {why}");
            None
        }
    }
}

/// What the rows of the example are called.
const TABLE: &str = "veilsum_example";
const CREATE: &str = "CREATE TABLE veilsum_example (age int, bmi numeric, \"Blood \"\"sugar\"\"\" float8, smoker text)";
/// Rows of the example.
const ROWS: usize = 1_000;

fn csv() -> String {
    let mut text = "age,bmi,sugar,smoker\n".to_owned();
    example::example(ROWS).iter().for_each(|row| text += &(row.join(",") + "\n"));
    text
}

/// The same rows as both sides of the test of conformance have them.
fn rows() -> Rows {
    let rows = example::example(ROWS);
    example::rows_of(rows.iter().map(|row| row.iter().map(String::as_str).collect())).unwrap()
}

fn hello() -> Hello {
    example::hello(Scaling::Box, OutOfBox::Refuse)
}

/// Lines of standard error.
type Said = Arc<Mutex<Vec<String>>>;

/// The program with these arguments besides the place of the server.
fn launch(server: &Postgres, args: &[&str]) -> (Launch, Said) {
    let mut all = vec!["--url".to_owned(), server.url("postgres")];
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    bare(&all)
}

fn bare(args: &[String]) -> (Launch, Said) {
    let said = Said::default();
    let heard = said.clone();
    let command = [env!("CARGO_BIN_EXE_veilsum-sql").to_owned()].into_iter().chain(args.iter().cloned()).collect();
    let log = Arc::new(move |line: &str| heard.lock().unwrap().push(line.to_owned()));
    (Launch { command, limit: Duration::from_secs(120), start: Duration::from_secs(60), log }, said)
}
