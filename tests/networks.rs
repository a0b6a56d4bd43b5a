//! Federations over networks as organisations have them: UDP dropped, a proxy as the only way out, distance and loss, cuts, addresses
//! that change, IPv6 alone. Every party is a process in a network namespace of its own, and a router in this process lies between
//! them ([`Network`]). Whatever happens, the centres are those of a calm run on one machine, or there is a reason and no centre.
//!
//! Needs Linux and the right to make namespaces; skips, and says so, where it has none. `VEILSUM_NET=1` runs the long ones too.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use serde_json::Value;
use veilsum_testkit::{
    network::{Access, Family, Network},
    program::{Ended, Folder, Parties, Running, launch},
};

use crate::{
    joining::{between, digits},
    processes::{answered, result_of},
    said::{Told, check},
};

const SIZES: [usize; 3] = [40, 55, 61];
const SITES: [&str; 3] = ["site-1", "site-2", "site-3"];
const NAMES: [&str; 6] = ["lead", "counter", "site-1", "site-2", "site-3", "proxy"];
const PORTS: [u16; 2] = [4433, 4434];
const PLAN: [&str; 5] = ["--set=init=uniform", "--set=epsilon=0", "--set=slots=64", "--seed=9", "--set=max_rounds=40"];
/// Longer than any cut.
const PATIENT: [&str; 6] = ["--phase-timeout", "90", "--grace", "90", "--join-timeout", "90"];
const LIMIT: Duration = Duration::from_secs(180);

/// Says why nothing was tested, past the test runner, which keeps the words of tests that pass.
fn skipped(what: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED {test}: {what}\n").as_bytes());
}

/// The network of a test; nothing where this machine has no right to one, or where the test is a long one and none are asked for.
fn network(family: Family, long: bool) -> Option<Network> {
    if long && std::env::var_os("VEILSUM_NET").is_none() {
        skipped("it is a long one, VEILSUM_NET=1 runs it");
        return None;
    }
    let seed = std::env::var("VEILSUM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("VEILSUM_SEED={seed}");
    Network::new(&NAMES, family, seed).map_err(|why| skipped(&why)).ok()
}

/// The result of the plan where nothing happens, on one machine.
fn calm() -> &'static Value {
    static RESULT: LazyLock<Value> = LazyLock::new(|| result_of(&SIZES, &PLAN));
    &RESULT
}

/// A federation in a network.
struct Run {
    network: Network,
    p: Parties,
    /// Options of all.
    all: Vec<&'static str>,
}

impl Run {
    fn new(network: Network) -> Run {
        let host = |who: &str| network.at(who, 0).trim_end_matches(":0").to_owned();
        let hosts = ["lead", "counter"].map(host);
        let p = Parties::at([&hosts[0], &hosts[1]], PORTS, &SIZES, &PLAN);
        Run { network, p, all: vec!["-vv"] }
    }

    fn start(&self, who: &str, variables: &[(&str, &str)]) -> Running {
        let aggregator: Vec<&str> = self.all.iter().chain(&PATIENT).copied().collect();
        let args = match who {
            "lead" => self.p.server(&aggregator),
            "counter" => self.p.intermediary(&aggregator),
            site => {
                let number = SITES.iter().position(|name| *name == site).expect("a site") + 1;
                self.p.client(number, &[&self.all[..], &["--join-timeout", "90"]].concat())
            }
        };
        let mut program = self.network.program(who);
        program.envs(variables.iter().copied());
        launch(program, &args)
    }

    fn start_all(&self) -> Vec<Running> {
        NAMES[..5].iter().map(|who| self.start(who, &[])).collect()
    }

    /// All end well, with the centres of the calm run and nobody missing. What each said.
    fn ends_well(&self, parties: Vec<Running>) -> Vec<Ended> {
        let end = Instant::now() + LIMIT;
        let ended =
            parties.into_iter().map(|party| party.wait(end.saturating_duration_since(Instant::now())).expect(0));
        let ended: Vec<Ended> = ended.collect();
        let result = self.p.folder.json("out/result.json");
        for what in ["centres", "mass", "n_total", "n_total_from", "rounds", "missing", "cohort", "ended_early"] {
            assert_eq!(result[what], calm()[what], "{what}");
        }
        for site in SITES {
            assert_eq!(self.p.folder.json(&format!("{site}/model.json"))["centres"], calm()["centres"], "{site}");
        }
        ended
    }
}

/// Over what a party reached the coordinator and the intermediary, from what it says on the screen.
fn over(ended: &Ended) -> Vec<&str> {
    let lines = ended.stderr.lines().filter_map(|line| line.strip_prefix("connected to "));
    lines.map(|line| line.split_once(" over ").expect("the way").1).collect()
}

/// What the product is for, in one test of seconds: one site has no UDP, another one nothing but a proxy, and the third IPv4 as it
/// should be; 20 ms lie between any two.
#[test]
fn no_udp_at_one_site_and_a_proxy_as_the_only_way_out_of_another() {
    let Some(network) = network(Family::V4, false) else { return };
    let url = network.proxy("proxy");
    network.set_all(&Access::half_of(Duration::from_millis(10), Duration::ZERO, 0.0));
    network.set("site-1", |access| access.no_udp = true);
    network.set("site-2", |access| access.only = Some("proxy".into()));
    let run = Run::new(network);
    let mut parties: Vec<Running> = ["lead", "counter", "site-1"].map(|who| run.start(who, &[])).into();
    let variables = [("HTTPS_PROXY", url.as_str())];
    // `check` sees what is so before the run does.
    let ready = |log: &str| log.contains("connected to lead");
    parties[1].until("the coordinator", LIMIT, ready);
    run.p.client(2, &[]);
    let asks = |seconds: &str, variables: &[(&str, &str)]| {
        let mut program = run.network.program("site-2");
        program.args(["check", "--json", "--timeout", seconds]).envs(variables.iter().copied());
        launch(program, &run.p.files("site-2", "roster plan key state")).wait(LIMIT)
    };
    let found = asks("1", &[]).expect(4).json();
    let outcome = |name| &check(&found, name)["outcome"];
    assert_eq!((outcome("lead: TCP"), outcome("lead: let in")), (&"fail".into(), &"skip".into()));
    asks("5", &variables).expect(0);
    parties.push(run.start("site-2", &variables));
    parties.push(run.start("site-3", &[]));
    let told = run.ends_well(parties);
    // On a busy machine either may be there first.
    let open_way = |told: &Ended| over(told).iter().all(|way| ["QUIC", "TCP"].contains(way));
    assert!(open_way(&told[1]) && open_way(&told[4]), "{}", told[4].stderr);
    assert_eq!(over(&told[2]), ["TCP", "TCP"], "{}", told[2].stderr);
    assert_eq!(over(&told[3]), ["TCP through a proxy"; 2], "{}", told[3].stderr);
    let [without, behind, open] = SITES.map(|site| run.network.passed(site));
    assert!(without.udp == 0 && behind.udp == 0 && without.stopped > 0 && behind.stopped > 0, "{without:?} {behind:?}");
    assert!(open.udp > 0 && open.stopped == 0, "{open:?}");
}

#[test]
fn ipv6_alone() {
    let Some(network) = network(Family::V6, false) else { return };
    let mut run = Run::new(network);
    // On a busy machine either may be there first, so each is asked for.
    for (transport, name) in [("quic", "QUIC"), ("tcp", "TCP")] {
        run.all = vec!["-vv", "--transport", transport];
        let told = run.ends_well(run.start_all());
        told[1..].iter().for_each(|told| assert!(over(told).iter().all(|way| *way == name), "{}", told.stderr));
    }
}

/// 100 ± 20 ms in each direction between any two parties, packets that overtake each other, and every fiftieth is lost.
#[test]
fn distance_and_loss() {
    let Some(network) = network(Family::V4, true) else { return };
    let milli = Duration::from_millis;
    network.set_all(&Access::half_of(milli(100), milli(20), 0.02));
    let mut run = Run::new(network);
    for way in ["auto", "quic", "tcp"] {
        run.all = vec!["-vv", "--transport", way];
        let begun = Instant::now();
        let told = run.ends_well(run.start_all());
        println!("{way}: 40 rounds in {:?}; {:?}", begun.elapsed(), run.network.passed("lead"));
        told[2..].iter().for_each(|told| assert_eq!(over(told).len(), 2, "{way} was lost: {}", told.stderr));
    }
}

/// The cable of one party after the other is out for half a minute, longer than a connection lives without a word.
#[test]
fn cuts_of_half_a_minute_in_mid_run() {
    let Some(network) = network(Family::V4, true) else { return };
    network.set_all(&Access::half_of(Duration::from_millis(20), Duration::ZERO, 0.0));
    let mut run = Run::new(network);
    for (victim, way) in [("site-2", "quic"), ("lead", "tcp"), ("counter", "auto"), ("lead", "auto"), ("site-1", "tcp")]
    {
        run.all = vec!["-vv", "--transport", way];
        let parties = run.start_all();
        answered(&parties[2], 10);
        run.network.set(victim, |access| access.cut = true);
        std::thread::sleep(Duration::from_secs(30));
        run.network.set(victim, |access| access.cut = false);
        let back = Instant::now();
        run.ends_well(parties);
        println!("{victim} over {way}: the end {:?} after the cut", back.elapsed());
    }
}

/// A firewall learns in mid-run that UDP is not to pass, and later that it is: each time the site is back on what passes.
#[test]
fn udp_that_is_dropped_in_mid_run() {
    let Some(network) = network(Family::V4, true) else { return };
    network.set_all(&Access::half_of(Duration::from_millis(100), Duration::ZERO, 0.0));
    let run = Run::new(network);
    let parties = run.start_all();
    answered(&parties[2], 6);
    run.network.set("site-1", |access| access.no_udp = true);
    parties[2].until("TCP", LIMIT, |log| log.contains("connected to lead over TCP"));
    answered(&parties[2], 12);
    run.network.set("site-1", |access| (access.no_udp, access.cut) = (false, true));
    parties[2].until("the cut", LIMIT, |log| log.matches("lost the connection to lead").count() == 2);
    run.network.set("site-1", |access| access.cut = false);
    let told = run.ends_well(parties);
    let to_lead = told[2].stderr.lines().filter_map(|line| line.strip_prefix("connected to lead over "));
    assert_eq!(to_lead.collect::<Vec<_>>(), ["QUIC", "TCP", "QUIC"], "{}", told[2].stderr);
}

/// A site has another address in the middle of a run: a connection over QUIC goes on, one over TCP is made anew.
#[test]
fn another_address_in_mid_run() {
    let Some(network) = network(Family::V4, true) else { return };
    network.set_all(&Access::half_of(Duration::from_millis(20), Duration::ZERO, 0.0));
    let mut run = Run::new(network);
    for (way, hosts) in [("quic", [101, 102]), ("tcp", [103, 104]), ("auto", [105, 106])] {
        run.all = vec!["-vv", "--transport", way];
        let parties = run.start_all();
        for (turn, host) in hosts.into_iter().enumerate() {
            answered(&parties[3], 8 + 8 * turn);
            run.network.moves("site-2", host);
        }
        let begun = Instant::now();
        let told = run.ends_well(parties);
        let links = over(&told[3]).len();
        println!("{way}: {links} connections of site-2, the end {:?} after the last move", begun.elapsed());
        assert!(way == "tcp" || links == 2, "{}", told[3].stderr);
    }
}

/// A site joins by its line from behind a proxy.
#[test]
fn joining_through_a_proxy() {
    let Some(network) = network(Family::V4, true) else { return };
    let url = network.proxy("proxy");
    network.set("site-2", |access| access.only = Some("proxy".into()));
    let folders = [Folder::fresh(), Folder::fresh()];
    let types = |who: &str, args: &[&str]| {
        let mut program = network.program(who);
        program.current_dir(&folders[usize::from(who == "site-2")].0);
        if who == "site-2" {
            program.env("HTTPS_PROXY", &url);
        }
        launch(program, args)
    };
    let at = network.at("lead", PORTS[0]);
    let create = ["federation", "create", "three", "--listen", &at, "--site", "site-2"];
    let line = types("lead", &create).wait(LIMIT).expect(0).stdout;
    let lobby = types("lead", &["run"]);
    lobby.until("an open lobby", LIMIT, |log| log.contains("is open"));
    let joins = types("site-2", &["join", between(&line, "veilsum join '", "'")]);
    let heard = format!("site-2={}", digits(&joins));
    types("lead", &["federation", "approve", &heard]).wait(LIMIT).expect(0);
    let passed = network.passed("site-2");
    assert!(passed.udp == 0 && passed.tcp > 0, "{passed:?}");
}
