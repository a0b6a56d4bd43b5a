//! The attack "swapped roster": a site is handed another roster with the same names, and a plan that the other hub signed. Two
//! of the three "sites" are then the attacker's, who subtracts them. And what else stands between a site and a roster that
//! nobody compared ([ROS-8], [ROS-9]).

use std::{fs, net::UdpSocket, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use serde_json::Value;
use veilsum_node::documents::roster_fingerprint;
use veilsum_testkit::program::{Ended, Parties, Running, end_well, fingerprint_of, start, veilsum};

use crate::said::Told;

const SIZES: [usize; 3] = [40, 55, 61];
const SITES: [&str; 3] = ["site-1", "site-2", "site-3"];
const QUICK: [&str; 6] = ["--phase-timeout", "6", "--grace", "1", "--join-timeout", "60"];
const PLAN: [&str; 3] = ["--set=epsilon=0.005", "--set=max_rounds=12", "--set=init=uniform"];

fn federation() -> Parties {
    Parties::new(&SIZES, &PLAN)
}

/// What the parties of `p` keep, all of them in one folder.
fn pinned(p: &Parties) -> PathBuf {
    p.folder.0.join("pinned.toml")
}

/// Site-1 of `p`, handed these documents of `of`.
fn handed(p: &Parties, of: &Parties, documents: [&str; 2], more: &[&str]) -> Vec<String> {
    let [roster, plan] = documents.map(|file| of.folder.path(file));
    p.client(1, &[&["--roster", &*roster, "--plan", &*plan][..], more].concat())
}

fn agree(p: &Parties, name: &str, roster: &str) -> Ended {
    let (key, fingerprint) = (p.folder.path(&format!("{name}.key")), fingerprint_of(roster));
    veilsum(&["agree", roster, "--key", &key, "--fingerprint", &fingerprint])
}

/// Passed everything on this machine, and knocked where nobody answers.
fn knocks(args: &[String]) {
    veilsum(args).expect(4).says(&["did not answer"]);
}

fn run(server: &Parties, clients: [Vec<String>; 3]) -> Value {
    let hub = start(&server.server(&QUICK));
    let intermediary = start(&server.intermediary(&QUICK));
    let clients: Vec<Running> = clients.iter().map(|args| start(args)).collect();
    end_well([hub, intermediary].into_iter().chain(clients));
    server.folder.json("out/result.json")
}

/// Numbers that site-1 gave away, by its ledger.
fn account(p: &Parties) -> u64 {
    let told = p.types("site-1", "check --json", "key state", &[]).expect(0).json();
    told["account"]["exact_numbers"].as_u64().expect("a number")
}

/// [ROS-9]: with the rule, no packet leaves; where the operator waves it through all the same, packets do.
#[test]
fn ros_9_swapped_roster() {
    let p = federation();
    let first = run(&p, [1, 2, 3].map(|i| p.client(i, &[])));
    let honest = account(&p);
    // Another federation with the same names in it; then with the first one's site-1 in its place. Without its key, too, a roster of
    // this name is held against the one that was agreed to, before anybody is told to join.
    let (attacker, swapped, short) = (federation(), ["roster.toml", "plan.toml"], ["--join-timeout", "2"]);
    let [roster, plan] = swapped.map(|file| attacker.folder.path(file));
    let check = p.types("site-1", "check", "key", &["--roster", &roster, "--plan", &plan]);
    for told in [veilsum(&handed(&p, &attacker, swapped, &short)), check, agree(&p, "site-1", &roster)] {
        let keys = ["lead (coordinator) has another key", "site-1 (site) has another key"];
        told.expect(3).says(&keys).says(&["[ROS-9]", "by telephone"]);
    }
    fs::copy(p.folder.path("site-1.key"), attacker.folder.path("site-1.key")).expect("a key");
    for (name, roster, plan) in [("test", "roster.toml", "plan.toml"), ("test-2", "renamed.toml", "renamed-plan.toml")]
    {
        attacker.roster_named(name, roster, &SITES);
        attacker.plan(roster, plan, &PLAN);
    }
    let sockets = attacker.ports.map(|port| {
        let socket = UdpSocket::bind(("127.0.0.1", port)).expect("the attacker's port");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a limit");
        socket
    });
    let heard = |socket: &UdpSocket| socket.recv(&mut [0; 2048]).is_ok();
    // Its own key is the same.
    veilsum(&handed(&p, &attacker, swapped, &short))
        .expect(3)
        .says(&["roster.toml", "[ROS-9]", "lead (coordinator) has another key", "lead has another address"])
        .says(&["counter (intermediary) has another key", "site-2 (site) has another key", "site-3 (site)"])
        .says(&["coordinator's key is ever another", "do not use it", "!site-1 (site)"]);
    assert!(!sockets.iter().any(heard), "a packet reached the attacker");
    // Under another name it is another federation, which is none of this folder's.
    veilsum(&handed(&p, &attacker, ["renamed.toml", "renamed-plan.toml"], &short))
        .expect(3)
        .says(&["this is the roster of test-2, and this folder is of test [ROS-9]", "a folder of its own"]);
    assert!(!sockets.iter().any(heard), "a packet reached the attacker");
    assert_eq!(account(&p), honest);

    // Not even an operator who agrees to whatever comes can agree to another coordinator.
    agree(&p, "site-1", &attacker.folder.path("roster.toml")).expect(3).says(&["[ROS-9]"]);
    // The rule off: what was agreed to is forgotten. The first packet is that of the next run.
    fs::remove_file(pinned(&p)).expect("what was agreed to");
    agree(&p, "site-1", &attacker.folder.path("roster.toml")).expect(0);
    knocks(&handed(&p, &attacker, swapped, &short));
    assert!(sockets.iter().any(heard), "the test would not see a packet");
    drop(sockets);
    // Rounds of K (d + 1) numbers, a validation and a count, as in `tests/ledger.rs`.
    let numbers = |result: &Value| (result["questions"].as_u64().expect("a number") - 1) * 9 + 7 + 1;
    assert_eq!((honest, account(&p)), (numbers(&first), numbers(&first)), "of the second roster nothing left yet");
    veilsum(&p.client(1, &short)).expect(3).says(&["[ROS-9]"]);
}

/// [ROS-8]: a roster is compared once, by people.
#[test]
fn ros_8_the_first_use_of_a_roster_needs_its_fingerprint() {
    let p = federation();
    let (roster, remembered) = (p.folder.path("roster.toml"), pinned(&p));
    let short = ["--join-timeout", "1"];
    let parties = [p.client(1, &short), p.intermediary(&short)];
    fs::remove_file(&remembered).expect("nothing is agreed to");
    for args in &parties {
        let said =
            ["nobody has compared this roster of test", "[ROS-8]", "in a call with all operators", "veilsum agree"];
        veilsum(args).expect(3).says(&said);
    }
    let whole = fingerprint_of(&roster);
    let other = roster_fingerprint(&veilsum_proto::suite::hash("another", &[]));
    let key = p.folder.path("site-1.key");
    let asked = ["agree", &*roster, "--key", &key];
    let given = |words: &str| veilsum(&[&asked[..], &["--fingerprint", words]].concat());
    veilsum(&asked).expect(3).says(&["[ROS-8]"]);
    given(&other).expect(3).says(&["other words than those that were given", "do not use it"]);
    given(&whole[..19]).expect(2).says(&["a fingerprint has 15 words"]);
    assert!(!remembered.exists(), "nothing was agreed to");
    // Once, and from then on without.
    given(&whole.replace(' ', "-")).expect(0);
    assert_eq!(fs::metadata(&remembered).expect("a file").permissions().mode() & 0o777, 0o600);
    parties.iter().for_each(|args| knocks(args));
    // A wrong one is wrong also then.
    given(&other).expect(3).says(&["other words"]);
    // Who is not on the roster agrees to nothing.
    p.key("stranger");
    agree(&p, "stranger", &roster).expect(3).says(&["not on the roster"]);
}

/// [ROS-9]: one member's key is another one; the message says whose, at the site and at the intermediary.
#[test]
fn ros_9_one_changed_member_is_named_and_the_change_can_be_agreed_to() {
    let p = federation();
    let roster = p.folder.path("roster.toml");
    let short = ["--join-timeout", "1"];
    knocks(&p.client(1, &short));
    p.key("site-3");
    p.roster("roster.toml", &SITES);
    p.plan("roster.toml", "plan.toml", &PLAN);
    for args in [p.client(1, &short), p.intermediary(&short)] {
        let counts = "another key: site-3. Whoever has it counts as this site";
        veilsum(&args).expect(3).says(&["[ROS-9]: site-3 (site) has another key", counts, "!site-2", "!address"]);
    }
    agree(&p, "site-1", &roster).expect(0);
    knocks(&p.client(1, &short));
    // A site more, and one less.
    p.key("site-4");
    p.roster("roster.toml", &["site-1", "site-2", "site-4"]);
    p.plan("roster.toml", "plan.toml", &PLAN);
    veilsum(&p.client(1, &short)).expect(3).says(&["site-3 (site) is gone", "site-4 (site) is new"]);
}
