//! A whole federation of separate processes: one site with a file, one with rows streamed from a database, one whose rows stay there.

use std::{path::Path, time::Duration};

use veilsum_testkit::{
    postgres::Postgres,
    program::{Ended, Parties, start},
};

const LIMIT: Duration = Duration::from_secs(240);
const SIZES: [usize; 3] = [60, 75, 90];
/// First centres from a seed: no noise, so that two runs can be compared word for word.
const PLAN: [&str; 4] = ["--set=init=uniform", "--seed=9", "--set=epsilon=0.001", "--set=max_rounds=12"];

/// Whether the program is there: it is another package's, which is built with the whole workspace.
fn is_built() -> bool {
    let test = std::env::current_exe().expect("a path");
    let built = test.ancestors().nth(2).is_some_and(|folder| folder.join("veilsum").is_file());
    if !built {
        eprintln!(
            "SKIPPED: a federation with databases: the program `veilsum` is not built beside this test (cargo build)"
        );
    }
    built
}

/// The table of a site's rows.
fn load(server: &Postgres, p: &Parties, table: &str, site: &str) {
    server.sql(&format!("DROP TABLE IF EXISTS {table}"));
    let csv = std::fs::read_to_string(Path::new(&p.folder.path(&format!("{site}.csv")))).expect("rows");
    server.load(&format!("CREATE TABLE {table} (x float8, y float8, note text)"), table, &csv);
}

/// Writes a site's policy, whose rows are with `veilsum-sql`.
fn policy(server: &Postgres, p: &Parties, file: &str, args: &[&str]) {
    let toy = std::fs::read_to_string(p.folder.path("toy.toml")).expect("a policy");
    let (program, url) = (env!("CARGO_BIN_EXE_veilsum-sql"), server.url("postgres"));
    let words: Vec<&str> = [program, "--url", &url].into_iter().chain(args.iter().copied()).collect();
    p.folder.write(file, &format!("{toy}[rows]\nanswerer = {}\n", serde_json::to_string(&words).expect("JSON")));
}

/// Site `i`, with its own file or, with a policy that names an answerer, without.
fn client(p: &Parties, i: usize, policy: Option<&str>) -> Vec<String> {
    let path = policy.map(|file| p.folder.path(file));
    let more: Vec<&str> = path.iter().flat_map(|path| ["--policy", path.as_str()]).collect();
    let mut args = p.client(i, &more);
    if policy.is_some() {
        let at = args.iter().position(|arg| arg == "--data").expect("a file");
        args.drain(at..at + 2);
    }
    args
}

/// Runs all to their end; the coordinator's result, and how the sites ended.
fn run(p: &Parties, policies: [Option<&str>; 3]) -> (Ended, Vec<Ended>) {
    let server = start(&p.server(&[]));
    let intermediary = start(&p.intermediary(&[]));
    let sites: Vec<_> = (0..3).map(|i| start(&client(p, i + 1, policies[i]))).collect();
    let sites = sites.into_iter().map(|site| site.wait(LIMIT)).collect();
    let _ = intermediary.wait(LIMIT);
    (server.wait(LIMIT), sites)
}

#[test]
fn a_file_a_stream_and_sql_give_the_result_of_three_files() {
    let (true, Some(server)) = (is_built(), super::server()) else { return };
    let result = |policies: [Option<&str>; 3]| {
        let p = Parties::new(&SIZES, &PLAN);
        for (table, site) in [("second", "site-2"), ("third", "site-3")] {
            load(&server, &p, table, site);
        }
        policy(&server, &p, "stream.toml", &["--view", "second", "--mode", "stream"]);
        policy(&server, &p, "push.toml", &["--query", "SELECT x, y FROM third", "--mode", "push"]);
        let (ended, sites) = run(&p, policies);
        sites.into_iter().for_each(|site| _ = site.expect(0));
        ended.expect(0);
        p.folder.json("out/result.json")
    };
    let files = result([None; 3]);
    let mixed = result([None, Some("stream.toml"), Some("push.toml")]);
    for key in ["centres", "k", "m", "converged", "rounds", "objective", "validity"] {
        assert_eq!(mixed[key], files[key], "{key}");
    }
    assert!(mixed["centres"].as_array().is_some_and(|rows| rows.len() == 3), "{mixed}");
}

/// First centres from margins and sums around candidates.
#[test]
fn a_plan_with_candidates_is_answered_in_sql_and_one_that_asks_for_more_is_refused_by_name() {
    let (true, Some(server)) = (is_built(), super::server()) else { return };
    let p = Parties::new(&SIZES, &["--set=max_rounds=5"]);
    server.sql("CREATE SCHEMA IF NOT EXISTS seeded");
    load(&server, &p, "seeded.third", "site-3");
    policy(&server, &p, "push.toml", &["--view", "seeded.third", "--mode", "push"]);
    let (ended, sites) = run(&p, [None, None, Some("push.toml")]);
    sites.into_iter().for_each(|site| _ = site.expect(0));
    ended.expect(0);
    let (plan, roster) = (p.folder.path("plan.toml"), p.folder.path("roster.toml"));
    let policy = p.folder.path("push.toml");
    let (key, state) = (p.folder.path("site-3.key"), p.folder.path("site-3.state"));
    let documents = ["--plan", &plan, "--roster", &roster, "--key", &key, "--policy", &policy, "--state", &state];
    let args = [&["check", "--offline"][..], &documents].concat();
    let told = veilsum_testkit::program::veilsum(&args).expect(0);
    assert!(told.stdout.contains("columns that are used: x, y"), "{told:?}");
    p.plan("roster.toml", "plan.toml", &["--method", "gmm"]);
    let told = start(&client(&p, 3, Some("push.toml"))).wait(LIMIT).expect(3);
    assert!(told.stderr.contains("shaped_sums") && told.stderr.contains("does not answer every question"), "{told:?}");
}
