use std::time::Instant;

use veilsum_answerer::{Held, Hello, contract::Column};
use veilsum_cluster::{Batch, Centres, Query, random::Stream};

/// Processor time of the server's processes that serve clients, seconds.
fn server_seconds() -> f64 {
    let ticks = |stat: &str| -> Option<f64> {
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        Some((fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?) / 100.0)
    };
    let mut all = 0.0;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        if command.starts_with("postgres:") && command.contains("127.0.0.1(") {
            all += std::fs::read_to_string(entry.path().join("stat")).ok().and_then(|s| ticks(&s)).unwrap_or_default();
        }
    }
    all
}

/// One round of fuzzy c-means over 10^6 rows, 16 columns, K = 10 in SQL: `VEILSUM_SQL_ROWS=1000000`.
#[test]
#[ignore = "it measures a time, which is no test; run it alone: VEILSUM_SQL_ROWS=1000000 cargo test -p veilsum-sql --test database measured -- --ignored --nocapture"]
fn push_down_and_streaming_of_many_rows() {
    let Some(server) = super::server() else { return };
    let n: usize = std::env::var("VEILSUM_SQL_ROWS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let d = 16;
    let names: Vec<String> = (0..d).map(|at| format!("c{at} float8")).collect();
    let values: Vec<String> = (0..d).map(|_| "random()".to_owned()).collect();
    server.sql(&format!(
        "CREATE TABLE many ({}); SELECT setseed(0.5); INSERT INTO many SELECT {} FROM generate_series(1, {n}); VACUUM ANALYZE many",
        names.join(", "),
        values.join(", ")
    ));
    let columns = (0..d).map(|at| Column { name: format!("c{at}"), lower: 0.0, upper: 1.0 }).collect();
    let hello = Hello { columns, categorical: vec![], ..super::hello() };
    let mut stream = Stream::new(1, b"veilsum test stream     ");
    let mut asked = |k: usize, m: f64| {
        let centres = Centres::new(k, d, (0..k * d).map(|_| stream.unit()).collect()).unwrap();
        (Batch::from(Query::fuzzy_sums(centres, m)), [(k * d, 40), (k, 40)])
    };
    let questions = [asked(10, 2.0), asked(10, 1.7)];
    let mut found: Vec<Vec<Vec<i64>>> = Vec::new();
    for args in [&["--mode", "push"][..], &["--mode", "stream"], &["--mode", "stream", "--memory", "0"]] {
        let begun = Instant::now();
        let (mut launch, _) = super::launch(&server, &[args, &["--view", "many"]].concat());
        (launch.start, launch.limit) = (std::time::Duration::from_secs(600), std::time::Duration::from_secs(600));
        let mut held = Held::start(launch, hello.clone()).unwrap();
        println!("{args:?}: {n} rows, begins in {:.1} s", begun.elapsed().as_secs_f64());
        let mut words = Vec::new();
        for (batch, steps) in &questions {
            let (begun, before) = (Instant::now(), server_seconds());
            words.push(held.words(batch, steps).unwrap());
            let (took, used) = (begun.elapsed().as_secs_f64(), server_seconds() - before);
            println!("{args:?}: {} took {took:.1} s, of the server's processor {used:.1} s", batch.kind());
        }
        found.push(words);
    }
    for words in &found[1..] {
        assert_eq!(words[0], found[0][0], "m = 2, word for word");
        let apart = words[1].iter().zip(&found[0][1]).map(|(a, b)| a.abs_diff(*b)).max();
        println!("m = 1.7: {apart:?} steps of 2^-40 apart");
        // The kernel's own powers are off by 2^-47 of a row's bound at most.
        assert!(apart <= Some(4 + n as u64 / 128), "{apart:?}");
    }
    server.sql("DROP TABLE many");
}
