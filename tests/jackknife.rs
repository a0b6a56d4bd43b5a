//! A federation of three blocks, in processes: runs without one block are answered and give standard errors, a run without one site
//! is refused.

use std::time::Duration;

use veilsum_testkit::program::{Ended, Parties, Running, start, veilsum};

const LIMIT: Duration = Duration::from_secs(120);
const PLAN: [&str; 5] =
    ["--set=on_loss=block", "--set=epsilon=0.0001", "--set=m=1.5", "--seed=4", "--set=init=uniform"];

/// A plan run by these sites alone; gives what the coordinator and the sites said. Questions count over all runs of a plan, so each
/// run has its own, with another number of rounds at most.
fn run(p: &Parties, name: &str, sites: &[usize]) -> (Ended, Vec<Ended>) {
    let (plan, out) = (format!("{name}.toml"), p.folder.path(name));
    p.plan(
        "roster.toml",
        &plan,
        &[&PLAN[..], &[&*format!("--set=max_rounds={}", 70 + sites.iter().sum::<usize>())]].concat(),
    );
    let plan = p.folder.path(&plan);
    // Whoever stays away is waited for.
    let join = if sites.len() < 9 { "15" } else { "60" };
    let quick = ["--plan", &*plan, "--phase-timeout", "10", "--grace", "1", "--join-timeout", join];
    let server = start(&p.server(&[&["--out", &*out][..], &quick].concat()));
    let intermediary = start(&p.intermediary(&quick));
    let clients: Vec<Running> = sites.iter().map(|i| start(&p.client(*i, &["--plan", &*plan]))).collect();
    let server = server.wait(LIMIT);
    drop(intermediary);
    (server, clients.into_iter().map(|client| client.wait(LIMIT)).collect())
}

fn cohort(p: &Parties, name: &str) -> serde_json::Value {
    p.folder.json(&format!("{name}/result.json"))["cohort"].clone()
}

/// [REL-2], [REL-3], [REL-4]: blocks may be left out whole; where one site stays away, the rest of its block is refused.
#[test]
fn rel_4_a_block_may_be_left_out_and_a_site_may_not() {
    let p = Parties::new(&[50, 60, 55, 70, 65, 60, 55, 75, 80], &PLAN);
    let policy = "contributors = 2\nmax_rows = 2000\n";
    p.folder.write("toy.toml", policy);
    let all: Vec<usize> = (1..=9).collect();
    let (server, clients) = run(&p, "all", &all);
    server.expect(0);
    clients.into_iter().for_each(|client| drop(client.expect(0)));
    // Eight of nine: two sites of the last block would be released without the third.
    let (server, clients) = run(&p, "one-site-less", &all[..8]);
    let told = server.expect(0).stderr;
    assert_eq!(
        cohort(&p, "one-site-less"),
        serde_json::json!((1..=6).map(|i| format!("site-{i}")).collect::<Vec<_>>())
    );
    for left in &clients[6..] {
        assert_eq!(left.code, Some(8), "{left:#?}");
        assert!(left.stderr.contains("ended the run on totals that this site is not in"), "{left:#?}");
    }
    let why = "site-7: of its block somebody is missing, and its part is released together with theirs or not at all";
    assert!(told.contains(why) && told.contains("[REL-4]"), "{told} {clients:#?}");

    let mut args = vec!["jackknife".to_owned(), "--all".into(), p.folder.path("all/result.json")];
    for (name, block) in [("first", 0..3), ("second", 3..6), ("one-site-less", 6..9)] {
        if name != "one-site-less" {
            let rest: Vec<usize> = (0..9).filter(|i| !block.contains(i)).map(|i| all[i]).collect();
            run(&p, name, &rest).0.expect(0);
        }
        args.push(p.folder.path(&format!("{name}/result.json")));
    }
    let told = veilsum(&[&args[..], &["--json".into()]].concat()).expect(0);
    let told: serde_json::Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_eq!(told["blocks"][1], serde_json::json!(["site-4", "site-5", "site-6"]));
    let errors = told["errors"].as_array().expect("errors").iter().flat_map(|row| row.as_array().expect("a row"));
    let errors: Vec<f64> = errors.map(|error| error.as_f64().expect("a number")).collect();
    assert!(errors.len() == 6 && errors.iter().all(|error| *error > 0.0 && *error < 0.2), "{errors:?}");
    assert!(veilsum(&args).expect(0).stdout.contains("known to about 50 %"));
    // One block twice, and one never.
    let twice = [&args[..5], &args[4..5]].concat();
    assert!(veilsum(&twice).expect(3).stderr.contains("is left out of another run too"));
    assert!(veilsum(&args[..5]).expect(3).stderr.contains("is in every run"));
    // A result that was tampered with.
    let mut torn = p.folder.json("first/result.json");
    torn["centres"][0] = serde_json::json!([0.5]);
    let torn = p.folder.write("torn.json", &torn.to_string());
    let with = [&args[..3], &[torn], &args[4..]].concat();
    assert!(veilsum(&with).expect(3).stderr.contains("K rows of as many usable numbers"));
}
