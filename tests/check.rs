//! `veilsum check` with real parties: what it says where everything is well, and with each thing broken in turn. To be asked
//! whether somebody would be let in disturbs no run ([APP-9]).

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use serde_json::{Value, json};
use veilsum_node::door::ledger;
use veilsum_proto::roster::{Member, Roster};
use veilsum_testkit::program::{Parties, Running, binary, free_port, launch, start, veilsum};

use crate::said::{Told, check, says};

const SIZES: [usize; 3] = [40, 55, 61];
const PLAN: [&str; 2] = ["--set=epsilon=0.005", "--set=max_rounds=12"];
const LIMIT: Duration = Duration::from_secs(120);

fn federation() -> Parties {
    Parties::new(&SIZES, &PLAN)
}

/// The document for one party with these of its files, and its exit code.
fn asked(p: &Parties, party: &str, files: &str, more: &[&str]) -> (i32, Value) {
    let ended = p.types(party, "check --json --timeout 2", files, more);
    (ended.code.expect("a code"), ended.json())
}

/// Of site-1, with its rows, its state and a policy that answers.
fn of_site(p: &Parties, more: &[&str]) -> (i32, Value) {
    // Its operator agrees to the plan, which adds no noise.
    p.client(1, &[]);
    asked(p, "site-1", "roster plan key data policy state", more)
}

/// This check failed with this code and says so; no other one failed that `besides` does not name.
fn fails(found: &(i32, Value), name: &str, code: i32, words: &[&str], besides: &[&str]) {
    let (ended, value) = found;
    let it = check(value, name);
    assert_eq!((it["outcome"].as_str(), it["code"].as_i64()), (Some("fail"), Some(code.into())), "{value:#}");
    let told = ["says", "next"].map(|part| it[part].as_str().expect("words")).join("\n");
    assert!(words.iter().all(|word| told.contains(word)) && it["next"] != "", "{told}");
    for other in value["checks"].as_array().expect("checks") {
        let other_name = other["check"].as_str().expect("a name");
        let exact = other_name == "answers"
            && other["says"].as_str().is_some_and(|says| says.contains("waits for your agreement"));
        let known = other_name == name || besides.contains(&other_name) || exact;
        assert!(known || other["outcome"] != "fail", "{other_name} as well: {value:#}");
    }
    if besides.is_empty() {
        assert_eq!(*ended, code, "{value:#}");
    }
    assert_ne!(*ended, 0);
}

fn aggregators(p: &Parties, more: &[&str]) -> [Running; 2] {
    let lead = start(&p.server(more));
    lead.until("port", LIMIT, |text| text.contains("waiting for 3 sites"));
    let counter = start(&p.intermediary(more));
    counter.until("link to the coordinator", LIMIT, |text| text.contains("connected to lead"));
    [lead, counter]
}

fn accept(p: &Parties) {
    let [roster, key] = ["roster.toml", "site-1.key"].map(|file| p.folder.path(file));
    let print = veilsum_testkit::program::fingerprint_of(&roster);
    veilsum(&["agree", &roster, "--key", &key, "--fingerprint", &print]).expect(0);
}

/// [APP-9]: asked while it is connected itself, a site keeps its place, and the run comes to its end.
#[test]
fn everything_well_before_and_in_the_midst_of_a_run_which_goes_on() {
    let p = federation();
    // Before anybody runs.
    let dead = of_site(&p, &[]);
    let shut = ["lead: QUIC", "counter: QUIC", "lead: TCP", "counter: TCP"];
    fails(&dead, "lead: TCP", 4, &["nothing listens", "operator of lead"], &shut);
    assert_eq!((dead.0, check(&dead.1, "agreed")["outcome"].as_str()), (4, Some("pass")));
    assert_eq!(check(&dead.1, "lead: let in")["outcome"], "skip");

    accept(&p);
    let [lead, counter] = aggregators(&p, &[]);
    let (code, found) = of_site(&p, &[]);
    assert_eq!((code, found["ready"].as_bool(), found["role"].as_str()), (0, Some(true), Some("site")), "{found:#}");
    assert!(found.get("error").is_none());
    for name in ["key", "roster", "role", "agreed", "plan", "policy", "rows", "ledger", "answers", "disk"] {
        assert_eq!(check(&found, name)["outcome"], "pass", "{name}: {found:#}");
    }
    for peer in ["lead", "counter"] {
        for way in ["name", "QUIC", "TCP", "let in", "version"] {
            assert_eq!(check(&found, &format!("{peer}: {way}"))["outcome"], "pass", "{found:#}");
        }
    }
    let all = found["checks"].as_array().expect("checks");
    assert!(all.iter().all(|check| check["check"] != "equations"), "{found:#}");
    let rows = check(&found, "rows")["says"].as_str().expect("words");
    assert!(rows.contains("every row can be used") && !found.to_string().contains("40 rows"), "{found:#}");
    assert_eq!((&found["columns"]["used"], &found["columns"]["ignored"]), (&json!(["x", "y"]), &json!(["note"])));
    let rules = found["firewall"].as_array().expect("rules");
    let ports: Vec<u64> = rules.iter().filter_map(|rule| rule["port"].as_u64()).collect();
    let [hub, other] = p.ports.map(u64::from);
    assert_eq!(ports, [hub, hub, other, other], "{rules:?}");
    assert!(rules.iter().all(|rule| rule["direction"] == "out"));

    // Two sites are connected, and one of them asks meanwhile, more often than a door has places.
    let early: Vec<Running> = [1, 2].map(|i| start(&p.client(i, &[]))).into();
    early[0].until("links", LIMIT, |text| text.contains("connected to lead") && text.contains("connected to counter"));
    for _ in 0..3 {
        assert_eq!(of_site(&p, &[]).0, 0);
    }
    let last = start(&p.client(3, &[]));
    for site in early.into_iter().chain([last]) {
        site.wait(LIMIT).expect(0).says(&["!dialling again"]);
    }
    counter.wait(LIMIT).expect(0);
    lead.wait(LIMIT).expect(0);
    // What was given away shows.
    let (_, found) = of_site(&p, &[]);
    says(check(&found, "ledger")["says"].as_str().expect("words"), &["!nothing was given away"]);
    // Other rows are no question any more: the next plan is answered from them.
    p.folder.write("site-1.csv", "x,y,note\n0.5,0.5,a\n0.2,0.3,b\n");
    let (_, found) = of_site(&p, &[]);
    assert!(!check(&found, "ledger").to_string().contains("LED-"), "{found:#}");
}

#[test]
fn a_key_that_others_can_read_and_one_of_nobody() {
    let p = federation();
    let key = p.folder.path("site-1.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("its own file");
    let open = of_site(&p, &[]);
    fails(&open, "key", 3, &["chmod 600", "site-1.key"], &[]);
    assert_eq!(check(&open.1, "network")["outcome"], "skip");
    p.key("stranger");
    fails(&asked(&p, "stranger", "roster plan key", &[]), "role", 3, &["not on the roster"], &["ledger"]);
    // Text for people has the same verdict, an error with a next step, and says what was left out.
    let none = p.folder.path("nowhere");
    veilsum(&["check", "--key", &key, "--roster", &none])
        .expect(3)
        .says(&["not ready: 2 things to mend", "SKIP  plan"]);
    // Where no connection was tried, nobody knows whether a run is possible.
    let said = ["not known: nothing failed; not looked at: ", "there is no key file in .: give --key"];
    veilsum(&["check"]).expect(0).says(&said);
    // The only key beside the roster is taken, as by every other command; of several none is.
    let roster = p.folder.path("roster.toml");
    let found = veilsum(&["check", "--roster", &roster, "--json"]).expect(0).json();
    assert_eq!((&found["ready"], check(&found, "network")["outcome"].as_str()), (&false.into(), Some("skip")));
    assert!(check(&found, "key")["says"].as_str().is_some_and(|says| says.contains("more than one key file")));
    fs::create_dir(p.folder.path("alone")).expect("a folder");
    let files = ["roster.toml", "site-2.key"];
    let [roster, _] = files.map(|file| {
        let to = p.folder.path(&format!("alone/{file}"));
        fs::copy(p.folder.path(file), &to).expect("a copy");
        to
    });
    ledger::begin(&p.folder.0.join("alone/site-2.key.state"), &[5; 32]).expect("an account");
    let found = veilsum(&["check", "--roster", &roster, "--timeout", "1", "--json"]).expect(4).json();
    assert_eq!((check(&found, "key")["outcome"].as_str(), found["role"].as_str()), (Some("pass"), Some("site")));
}

#[test]
fn a_plan_of_another_roster_rows_without_a_column_and_a_policy_that_refuses() {
    let p = federation();
    let shut = ["lead: QUIC", "counter: QUIC", "lead: TCP", "counter: TCP"];
    p.folder.write("short.csv", "x,note\n0.5,a\n");
    let short = p.folder.path("short.csv");
    fails(&of_site(&p, &["--data", &short]), "rows", 3, &["no column is called \"y\"", "the file has"], &shut);
    // Bárcena et al. (2021): the sums of a round should be fewer numbers than the rows. Only this site is told.
    let few = p.folder.write("few.csv", "x,y,note\n0.5,0.5,a\n0.2,0.3,b\n");
    let (_, found) = of_site(&p, &["--data", &few]);
    let told = check(&found, "equations");
    assert_eq!(told["outcome"], "warn", "{found:#}");
    assert!(told["says"].as_str().is_some_and(|says| says.starts_with("2 rows, and ")), "{told}");
    p.folder.write("strict.toml", "methods = [\"kmeans\"]\n");
    let strict = p.folder.path("strict.toml");
    let found = of_site(&p, &["--policy", &strict]);
    fails(&found, "answers", 7, &["methods"], &shut);
    p.folder.write("wrong.toml", "max_round = 41\n");
    fails(&of_site(&p, &["--policy", &p.folder.path("wrong.toml")]), "policy", 3, &["line 1", "max_round"], &shut);
    p.key("site-4");
    p.roster("other.toml", &["site-1", "site-2", "site-4"]);
    p.plan("other.toml", "other-plan.toml", &PLAN);
    let other = p.folder.path("other-plan.toml");
    fails(&of_site(&p, &["--plan", &other]), "plan", 3, &["another roster", "get the plan"], &shut);
    let damaged = p.folder.write("site-1.state/ledger.head", "not a head");
    fails(&of_site(&p, &[]), "ledger", 3, &["ledger.head"], &shut);
    fs::remove_file(damaged).expect("the file");
    // A folder that cannot be written into.
    let found = of_site(&p, &["--state", &(p.folder.write("a-file", "") + "/state")]);
    fails(&found, "disk", 3, &["cannot be written", "--state"], &[&shut[..], &["ledger"]].concat());
}

/// The roster of three sites with another intermediary.
fn with_intermediary(p: &Parties, name: &str, address: &str) {
    p.key(name);
    let intermediary = Member { address: address.into(), ..p.member(name) };
    let sites = (1..=3).map(|i| p.member(&format!("site-{i}"))).collect();
    p.sign("roster.toml", Roster { name: "test".into(), coordinator: p.member("lead"), intermediary, sites });
}

#[test]
fn a_name_that_nobody_knows_and_a_machine_with_another_key() {
    let p = federation();
    let roster = |name: &str, address: &str| {
        with_intermediary(&p, name, address);
        p.plan("roster.toml", "plan.toml", &PLAN);
        accept(&p);
    };
    roster("far", "nowhere.invalid:4433");
    let lead = start(&p.server(&[]));
    lead.until("port", LIMIT, |text| text.contains("waiting for 3 sites"));
    let found = of_site(&p, &[]);
    fails(&found, "far: name", 4, &["nowhere.invalid", "name service"], &[]);
    assert_eq!(check(&found.1, "lead: let in")["outcome"], "pass", "the other one is well: {:#}", found.1);
    drop(lead);
    // It is said to have the coordinator's port.
    roster("twin", &format!("127.0.0.1:{}", p.ports[0]));
    let lead = start(&p.server(&[]));
    lead.until("port", LIMIT, |text| text.contains("waiting for 3 sites"));
    let found = of_site(&p, &[]);
    fails(&found, "twin: QUIC", 5, &["another key", "fingerprint"], &["twin: TCP"]);
    assert_eq!(found.0, 5);
    // A run says the same, and goes no further.
    veilsum(&p.client(1, &[])).expect(5).says(&["another key than the roster says", "!twin over"]);
    // Another plan than the one that runs: it is reached, and not let in.
    p.plan("roster.toml", "later.toml", &["--set=max_rounds=13"]);
    let found = of_site(&p, &["--plan", &p.folder.path("later.toml")]);
    fails(&found, "lead: let in", 8, &["this run's is", "current plan"], &["twin: QUIC", "twin: TCP"]);
    assert_eq!(check(&found.1, "lead: QUIC")["outcome"], "pass");
    drop(lead);
}

#[test]
fn a_listener_on_tcp_alone_is_reached_and_quic_is_said_to_be_shut() {
    let p = federation();
    accept(&p);
    let running = aggregators(&p, &["--transport", "tcp"]);
    let (code, found) = of_site(&p, &[]);
    assert_eq!((code, found["ready"].as_bool()), (0, Some(true)), "{found:#}");
    for peer in ["lead", "counter"] {
        let quic = check(&found, &format!("{peer}: QUIC"));
        assert_eq!(quic["outcome"], "warn");
        assert!(quic["next"].as_str().is_some_and(|next| next.contains("--transport tcp")), "{quic}");
        assert_eq!(check(&found, &format!("{peer}: TCP"))["outcome"], "pass");
        assert_eq!(check(&found, &format!("{peer}: let in"))["outcome"], "pass");
    }
    drop(running);
}

#[test]
fn an_aggregator_sees_its_port_and_what_comes_in() {
    let p = federation();
    let of = |party: &str| asked(&p, party, "roster plan key", &[]);
    let (code, found) = of("lead");
    assert_eq!((code, found["role"].as_str()), (0, Some("coordinator")), "{found:#}");
    assert_eq!(check(&found, "port")["outcome"], "pass");
    assert!(found["checks"].as_array().is_some_and(|all| all.iter().all(|check| check["check"] != "rows")));
    let rules = found["firewall"].as_array().expect("rules");
    assert_eq!(rules.len(), 2);
    assert!(rules.iter().all(|rule| rule["direction"] == "in" && rule["port"] == p.ports[0]), "{rules:?}");
    let lead = start(&p.server(&[]));
    lead.until("port", LIMIT, |text| text.contains("waiting for 3 sites"));
    let (code, found) = of("lead");
    assert_eq!((code, check(&found, "port")["outcome"].as_str()), (0, Some("pass")), "{found:#}");
    assert!(check(&found, "port")["says"].as_str().is_some_and(|says| says.contains("own process")), "{found:#}");
    let (code, found) = of("counter");
    assert_eq!((code, found["role"].as_str()), (0, Some("intermediary")), "{found:#}");
    assert_eq!(check(&found, "lead: let in")["outcome"], "pass");
    let directions: Vec<&str> =
        found["firewall"].as_array().expect("rules").iter().filter_map(|r| r["direction"].as_str()).collect();
    assert_eq!(directions, ["in", "in", "out", "out"]);
    drop(lead);
}

/// The only way out is a proxy that is not there.
#[test]
fn a_proxy_that_cannot_be_used_is_named() {
    let p = federation();
    with_intermediary(&p, "away", "192.0.2.1:4433");
    p.plan("roster.toml", "plan.toml", &PLAN);
    p.client(1, &[]);
    let mut program = std::process::Command::new(binary());
    program.args(["check", "--json", "--timeout", "1"]).env("HTTPS_PROXY", format!("http://127.0.0.1:{}", free_port()));
    let found = launch(program, &p.files("site-1", "roster plan key state")).wait(LIMIT).expect(4).json();
    let through = check(&found, "away: proxy");
    assert_eq!(through["outcome"], "fail", "{found:#}");
    assert!(through["next"].as_str().is_some_and(|next| next.contains("CONNECT")), "{through}");
    let rules = found["firewall"].as_array().expect("rules");
    assert!(rules.iter().any(|rule| rule["why"].as_str().is_some_and(|why| why.contains("CONNECT 192.0.2.1:4433"))));
}
