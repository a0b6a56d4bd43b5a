//! Separate processes on loopback UDP, with the program as it ships: a whole run, sites and servers that are killed
//! (SIGKILL) in the middle of one, and parties that do not belong.

use std::{os::unix::fs::PermissionsExt, sync::LazyLock, time::Duration};
use veilsum_testkit::program::{Parties, Running, end_well, ending, fingerprint_of, free_port, start, veilsum};

use crate::said::{Told, strings};

pub(crate) const SIZES: [usize; 5] = [40, 55, 61, 48, 70];
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// Many rounds, so that there is time to kill somebody.
pub(crate) const LONG: [&str; 5] =
    ["--set=init=uniform", "--set=epsilon=0", "--set=max_rounds=300", "--set=slots=64", "--seed=9"];
/// A silent site is given up soon, and one that comes back has time for it.
pub(crate) const QUICK: [&str; 8] =
    ["--phase-timeout", "6", "--grace", "1", "--join-timeout", "60", "--on-loss", "stop"];

pub(crate) fn start_all(
    p: &Parties,
    patience: &[&str],
    clients: impl IntoIterator<Item = usize>,
) -> (Running, Running, Vec<Running>) {
    // Their operators agree first, which takes its time.
    let clients: Vec<Vec<String>> = clients.into_iter().map(|i| p.client(i, &["-vv"])).collect();
    let server = start(&p.server(patience));
    let intermediary = start(&p.intermediary(patience));
    (server, intermediary, clients.iter().map(|args| start(args)).collect())
}

/// Waits until a site has answered `n` questions (one of them the intermediary's).
pub(crate) fn answered(client: &Running, n: usize) {
    client.until("answers", LIMIT, |log| log.matches("MaskedWords").count() >= n);
}

#[test]
fn a_run_from_keys_to_models() {
    let p = Parties::new(&SIZES, &["--set=epsilon=0.005"]);
    let rows: usize = SIZES.iter().sum();
    // Sites behind a firewall that drops UDP, and an intermediary that is not: one port serves both. The same plan over the same sites
    // again gives what it gave, and the journals allow it.
    let [result, again] = ["tcp", "quic"].map(|way| {
        let (server, intermediary, _) = start_all(&p, &QUICK, []);
        let clients: Vec<Running> = (1..=5).map(|i| start(&p.client(i, &["--transport", way]))).collect();
        server.wait(LIMIT).expect(0).says(&["fuzzy Davies", "result.json"]);
        intermediary.wait(LIMIT).expect(0).says(&[&format!("counted {rows} rows over 5 sites")]);
        for client in clients {
            let told = client.wait(LIMIT).expect(0).says(&["masked words, shares, keys and signatures"]).stderr;
            let lines = told.matches(&format!("over {}\n", way.to_uppercase())).count();
            assert!(lines >= 2 && told.contains("connected to lead over "), "{told}");
        }
        p.folder.json("out/result.json")
    });
    assert_eq!((&result["centres"], &result["history"]), (&again["centres"], &again["history"]));
    assert_eq!((&result["n_total"], &result["n_total_from"]), (&rows.into(), &"intermediary".into()));
    assert_eq!(strings(&result["cohort"]), ["site-1", "site-2", "site-3", "site-4", "site-5"]);
    assert!(strings(&result["missing"]).is_empty() && result["converged"] == true);
    assert!(result["indices"]["fuzzy_davies_bouldin"].as_f64().expect("an index") > 0.0);
    // Everybody who was there to the end signed, and a site has the same numbers under the same signature.
    let verified = |file: &str| -> serde_json::Value {
        p.types("lead", &format!("verify --json {}", p.folder.path(file)), "roster plan", &[]).expect(0).json()
    };
    let said = verified("out/result.json");
    assert_eq!(said["countersigned"].as_array().map(Vec::len), Some(5));
    assert!(strings(&said["not_countersigned"]).is_empty());
    for i in 1..=5 {
        let (own, said) = (format!("site-{i}/result.json"), verified(&format!("site-{i}/result.json")));
        assert_eq!((&said["written_by"], &said["signed_by_coordinator"]), (&format!("site-{i}").into(), &true.into()));
        let value = p.folder.json(&own);
        assert_eq!((&value["centres"], &value["indices"]), (&result["centres"], &result["indices"]), "site {i}");
        let said = verified(&format!("site-{i}"));
        assert_eq!((&said["totals_recomputed"], &said["result_recomputed"]), (&result["questions"], &true.into()));
    }
    for i in 1..=5 {
        let model = p.folder.json(&format!("site-{i}/model.json"));
        assert_eq!((&model["centres"], &model["plan"]), (&result["centres"], &result["plan_hash"]), "site {i}");
        // A deck alone has 10 kB: the keys of a run that is over are gone, the list of what was answered stays.
        for file in ending(p.folder.path(&format!("site-{i}.state")), "") {
            let about = file.metadata().expect("its size");
            let name = file.file_name().expect("a name").to_string_lossy();
            // What was given away, and the questions behind it.
            let ledger = ["ledger", "questions"].iter().any(|kept| name.starts_with(kept));
            assert!((about.len() < 4096 || ledger) && about.permissions().mode() & 0o077 == 0, "{about:?}");
        }
    }
}

/// An aggregator without TCP is not reached over it.
#[test]
fn sites_that_reach_nobody_over_udp() {
    let p = Parties::new(&SIZES, &[]);
    let server = start(&p.server(&[&QUICK[..], &["--transport", "quic"]].concat()));
    let client = start(&p.client(1, &["--transport", "tcp", "--join-timeout", "2"]));
    client.wait(LIMIT).expect(4).says(&["lead did not answer at 127.0.0.1:", "UDP or TCP"]);
    server.kill();
}

/// Killed, or stopped from the keyboard or by a supervisor, again and again at whatever moment. By default a site that is lost is waited
/// for, and the coordinator says whom it waits for. Who is told to stop hangs up and ends with the code for it. The journal stays, and the
/// advice that is printed holds: it comes back to the run, which nobody leaves.
#[test]
fn a_site_that_falls_comes_back_from_its_journal() {
    let p = Parties::new(&SIZES, &LONG);
    let patience = ["--phase-timeout", "6", "--grace", "1", "--join-timeout", "60", "--loss-wait", "100", "-v"];
    let (server, intermediary, mut clients) = start_all(&p, &patience, 1..=5);
    let ends = [("-INT", 130), ("-TERM", 143)];
    // A deck is set up anew for a site that comes back four times in a row; on a busy machine all of these are within one set-up.
    for (moment, (signal, code)) in [0, 20, 60, 300].into_iter().zip(ends.into_iter().cycle()) {
        clients[2].until("its link", LIMIT, |log| log.contains("connected to lead over "));
        std::thread::sleep(Duration::from_millis(moment));
        let goodbyes = |log: &str| log.matches("site-3 is not connected any more").count();
        let before = goodbyes(&server.heard());
        let stopped = clients.remove(2);
        stopped.signal(signal);
        stopped.wait(Duration::from_secs(20)).expect(code).says(&["start the same command again"]);
        // Its silence would be noticed after half a minute.
        server.until("its goodbye", Duration::from_secs(10), |log| goodbyes(log) > before);
        clients.insert(2, start(&p.client(3, &[])));
    }
    let waits = |log: &str, victim: usize| log.matches(&format!("waiting for site-{}", victim + 1)).count();
    for (round, victim) in [(15, 1), (10, 4), (10, 1)] {
        answered(&clients[victim], round);
        let before = waits(&server.heard(), victim);
        assert_eq!(clients.remove(victim).kill().code, None, "killed in the middle of the run");
        server.until("waiting", LIMIT, |log| waits(log, victim) > before);
        clients.insert(victim, start(&p.client(victim + 1, &["-vv"])));
        clients[victim].until("journal", LIMIT, |log| log.contains("taking up an interrupted run"));
    }
    end_well([server, intermediary].into_iter().chain(clients));
    let result = p.folder.json("out/result.json");
    assert!(strings(&result["missing"]).is_empty(), "{result}");
    assert_eq!((&result["rounds"], &result["n_total_from"]), (&300.into(), &"intermediary".into()));
    // Its rows were in every round: the same as a run in which nobody fell.
    assert_eq!((&result["centres"], &result["mass"]), (&calm()["centres"], &calm()["mass"]));
}

/// The result of a plan where nobody falls.
pub(crate) fn result_of(sizes: &[usize], plan: &[&str]) -> serde_json::Value {
    let p = Parties::new(sizes, plan);
    let (server, intermediary, clients) = start_all(&p, &QUICK, 1..=sizes.len());
    end_well([server, intermediary].into_iter().chain(clients));
    p.folder.json("out/result.json")
}

/// That of the long one.
pub(crate) fn calm() -> &'static serde_json::Value {
    static RESULT: LazyLock<serde_json::Value> = LazyLock::new(|| result_of(&SIZES, &LONG));
    &RESULT
}

/// Sites before everybody, the intermediary before the coordinator, the last site long after it, and nobody told how long to wait:
/// each says whom it waits for. Parties that do not belong are told so and end, and the run of the others is not touched.
#[test]
fn any_order_of_starting_and_who_does_not_belong() {
    let p = Parties::new(&SIZES, &["--set=epsilon=0.005"]);
    p.key("stranger");
    p.key("site-6");
    p.plan("roster.toml", "other-plan.toml", &["--set=epsilon=0.01"]);
    p.roster("other-roster.toml", &["site-2", "site-1", "site-3", "site-4", "site-5"]);
    p.plan("other-roster.toml", "plan-of-other-roster.toml", &["--set=epsilon=0.005"]);
    p.roster("larger-roster.toml", &["site-1", "site-2", "site-3", "site-4", "site-5", "site-6"]);
    p.plan("larger-roster.toml", "plan-of-larger-roster.toml", &["--set=epsilon=0.005"]);
    let path = |name: &str| p.folder.path(name);
    let mut clients: Vec<Running> = (1..=4).map(|i| start(&p.client(i, &[]))).collect();
    let [lead, counter] = p.ports.map(|port| format!("at 127.0.0.1:{port}"));
    clients[0].until("whom", LIMIT, |log| {
        log.contains(&format!("waiting for lead {lead} (")) && log.contains(&format!("waiting for counter {counter} ("))
    });
    let intermediary = start(&p.intermediary(&[]));
    // Its port is open before it has reached the coordinator.
    clients[0].until("the intermediary", LIMIT, |log| log.contains("connected to counter over "));
    intermediary.until("whom", LIMIT, |log| log.contains(&format!("waiting for lead {lead} (")));
    let server = start(&p.server(&["-v"]));
    let is_site = |line: &&str| line.contains(" site-") && line.contains(" is connected over ");
    server.until("sites", LIMIT, |log| log.lines().filter(is_site).count() >= 4);

    veilsum(&p.client(5, &["--key", &path("stranger.key")])).expect(3).says(&["not on the roster"]);
    veilsum(&p.client(5, &["--key", &path("counter.key")])).expect(2).says(&["the intermediary, which has no rows"]);
    // Roster and plan that do not even fit each other.
    veilsum(&p.client(5, &["--roster", &path("other-roster.toml")])).expect(3).says(&["another roster"]);
    // Turned away at once, and the coordinator knows why that site is not there.
    veilsum(&p.client(5, &["--plan", &path("other-plan.toml")])).expect(8).says(&["you hold another plan"]);
    server.until("whom", LIMIT, |log| log.contains("waiting for site-5 (turned away "));
    let (roster, of_roster) = (path("other-roster.toml"), path("plan-of-other-roster.toml"));
    let accept = |site: &str, roster: &str| {
        let (key, fingerprint) = (path(&format!("{site}.key")), fingerprint_of(roster));
        veilsum(&["agree", roster, "--key", &key, "--fingerprint", &fingerprint]).expect(0);
    };
    let other = veilsum(&p.client(5, &["--roster", &roster, "--plan", &of_roster])).expect(3);
    assert!(other.stderr.contains("the sites stand in another order"), "{}", other.stderr);
    accept("site-5", &roster);
    veilsum(&p.client(5, &["--roster", &roster, "--plan", &of_roster])).expect(8).says(&["you hold another roster"]);
    // On its own roster and not on the server's: the transport does not let it in.
    let (roster, of_roster) = (path("larger-roster.toml"), path("plan-of-larger-roster.toml"));
    let (key, state) = (path("site-6.key"), path("site-6.state"));
    let more = ["--roster", &roster, "--plan", &of_roster, "--key", &key, "--state", &state];
    accept("site-6", &roster);
    veilsum(&p.client(5, &more)).expect(8).says(&["not on its roster"]);

    accept("site-5", &path("roster.toml"));
    clients.push(start(&p.client(5, &[])));
    end_well([server, intermediary].into_iter().chain(clients));
    assert!(strings(&p.folder.json("out/result.json")["missing"]).is_empty());
}

/// A key in a second process, in the same folder or in one of its own as on another machine: it is told so and ends, and the run of the
/// first is not touched ([APP-1]).
#[test]
fn of_two_processes_with_one_key_the_first_goes_on() {
    let p = Parties::new(&SIZES, &LONG);
    let (server, intermediary, clients) = start_all(&p, &["--phase-timeout", "20"], 1..=5);
    answered(&clients[1], 10);
    std::fs::create_dir(p.folder.path("elsewhere")).expect("a folder");
    let [key, state] = ["key", "state"].map(|end| p.folder.path(&format!("elsewhere/site-2.{end}")));
    std::fs::copy(p.folder.path("site-2.key"), &key).expect("a copy");
    let anywhere = format!("127.0.0.1:{}", free_port());
    let own = ["--listen", &anywhere, "--state", &p.folder.path("elsewhere/counter.state")];
    let second = start(&p.intermediary(&own));
    veilsum(&p.client(2, &[])).expect(3).says(&["in use by another process", "next: stop the other process"]);
    for way in ["quic", "tcp"] {
        let told = veilsum(&p.client(2, &["--key", &key, "--state", &state, "--transport", way])).expect(8).stderr;
        assert!(told.contains("another process with your key is connected"), "{told}");
    }
    second.wait(LIMIT).expect(8).says(&["another process with your key is connected"]);
    server.wait(LIMIT).expect(0);
    assert!(intermediary.wait(LIMIT).expect(0).stdout.contains("counted"));
    for client in clients {
        client.wait(LIMIT).expect(0).says(&["!lost the connection"]);
    }
    let result = p.folder.json("out/result.json");
    assert_eq!((&result["centres"], &result["n_total_from"]), (&calm()["centres"], &"intermediary".into()));
}

/// The rows are counted before the first question: a run does not end with its intermediary.
#[test]
fn a_run_goes_on_without_the_intermediary() {
    let p = Parties::new(&SIZES, &LONG);
    let (server, intermediary, clients) = start_all(&p, &QUICK, 1..=5);
    answered(&clients[0], 20);
    intermediary.kill();
    server.wait(LIMIT).expect(0);
    end_well(clients);
    let result = p.folder.json("out/result.json");
    assert_eq!((&result["rounds"], &result["n_total_from"]), (&300.into(), &"sum of memberships".into()));
    assert_eq!(result["n_total"], SIZES.iter().sum::<usize>());
}
