//! The audit of one's own plan: it says yes where a row is at risk, and no attack does better than the account allows.

use std::process::Command;

use veilsum_audit::own::{self, Scene, Site};
use veilsum_cluster::{privacy::Noise, random::Stream};
use veilsum_node::{
    documents::{self, RowsFrom},
    loopback::{fresh, roster_of},
    plan::PlanSpec,
};
use veilsum_proto::plan::Terms;

use crate::made::{LABEL, SEED, audited, fcm, plan, plan_of, sites, terms_of, units};

/// The command's way: a roster, a plan and rows as files.
#[test]
fn a_plan_is_audited_from_files() {
    println!("seed {SEED}");
    let folder = std::env::temp_dir().join(format!("veilsum-own-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let sites = sites(60, SEED);
    let work = plan(fcm(2.0, 12), 3, Some(Noise::usual(0.25, 180).from_anywhere()));
    let keys = fresh(3);
    let roster = roster_of(&keys, &["a", "b", "c"]);
    documents::write_roster(folder.join("roster.toml"), &roster.clone().sign(&keys[0]).unwrap()).unwrap();
    let write = |name: &str, work: &PlanSpec| {
        let terms = Terms { roster: roster.hash(), ..terms_of(work, &sites) };
        documents::write_plan(folder.join(name), &terms.sign(&roster, &keys[0]).unwrap()).unwrap();
    };
    write("plan.toml", &work);
    let own = folder.join("rows.csv");
    let lines: Vec<String> = sites[0].values.iter().map(|row| format!("{},{}", row[0], row[1])).collect();
    std::fs::write(&own, format!("x,y\n{}\n", lines.join("\n"))).unwrap();
    let federation = own::federation(&folder.join("plan.toml"), None).unwrap();
    let scene = Scene::new(&federation, &RowsFrom::file(&own), &[], SEED).unwrap();
    let found = own::audit(&scene, SEED, |_| ()).unwrap();
    assert_eq!((found.own_rows, found.sites, found.drawn, found.at_risk), (60, 3, true, false));
    let one = Scene::new(&federation, &RowsFrom::file(&own), std::slice::from_ref(&own), SEED);
    assert!(one.is_err_and(|why| why.to_string().contains("1 files for the 2 other sites")));
    // The command says the same by its exit code.
    let run = |plan: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_veilsum-audit"));
        command.args(["plan", "--plan", plan, "--data", "rows.csv"]).current_dir(&folder);
        command.output().unwrap()
    };
    let quiet = run("plan.toml");
    assert_eq!(quiet.status.code(), Some(0), "{quiet:?}");
    assert!(String::from_utf8_lossy(&quiet.stderr).contains("presence: is a person there?"), "progress");
    let text = String::from_utf8_lossy(&quiet.stdout).into_owned();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("; advantage ") && text.contains("draw"), "{text}");
    let json: serde_json::Value = serde_json::to_value(&found).unwrap();
    for tried in json["tried"].as_array().unwrap().iter().filter(|tried| tried["answer"] != "not-applicable") {
        let [low, mean, high] =
            [&tried["advantage"]["interval"][0], &tried["advantage"]["mean"], &tried["advantage"]["interval"][1]]
                .map(|x| x.as_f64().unwrap());
        assert!(low <= mean + 1e-9 && mean <= high + 1e-9 && high <= 1.0, "{tried}");
        assert_eq!(tried["advantage"]["succeeds"][1], 6);
    }
    write("exact.toml", &plan(fcm(2.0, 12), 3, None));
    let exact = run("exact.toml");
    assert!(exact.status.code() == Some(1) && String::from_utf8_lossy(&exact.stdout).contains("Rows are at risk"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// 1,000 rows of 16 columns, ten clusters and twelve rounds.
#[test]
#[ignore = "it takes minutes, and fewer rows are audited always"]
fn a_thousand_rows_are_audited_in_five_minutes() {
    println!("seed {SEED}");
    let mut stream = Stream::new(SEED, LABEL);
    let names: Vec<String> = (0..16).map(|at| format!("f{at}")).collect();
    let columns = units(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut site = || Site { values: (0..1_000).map(|_| (0..16).map(|_| stream.unit()).collect()).collect() };
    let sites: Vec<Site> = (0..3).map(|_| site()).collect();
    for noise in [None, Some(Noise::usual(0.25, 3_000).from_anywhere())] {
        let began = std::time::Instant::now();
        let found = audited(plan_of(columns.clone(), fcm(2.0, 12), 10, noise), sites.clone());
        println!("{noise:?}: {:.0} s", began.elapsed().as_secs_f64());
        assert!(began.elapsed().as_secs() < 300 && found.attacked == 32);
    }
}
