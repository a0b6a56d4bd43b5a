//! The attack "swapped roster": a site is handed another roster with the same names, and a plan that the other hub signed. Two
//! of the three "sites" are then the attacker's, who subtracts them. And what else stands between a site and a roster that
//! nobody compared ([ROS-8] to [ROS-10]).

use std::{fs, net::UdpSocket, os::unix::fs::PermissionsExt, time::Duration};

use serde_json::Value;
use veilsum_node::documents::roster_fingerprint;
use veilsum_testkit::program::{Ended, Parties, Running, fingerprint_of, start, veilsum};

const SIZES: [usize; 3] = [40, 55, 61];
const SITES: [&str; 3] = ["site-1", "site-2", "site-3"];
const LIMIT: Duration = Duration::from_secs(120);
const QUICK: [&str; 6] = ["--phase-timeout", "6", "--grace", "1", "--join-timeout", "60"];
const PLAN: [&str; 2] = ["--set=epsilon=0.005", "--set=max_rounds=12"];

fn federation() -> Parties {
    Parties::new(&SIZES, &PLAN)
}

/// Another federation under this name with the same names in it, and the first one's site-1 in its place.
fn another_with_site_1_of(p: &Parties, name: &str) -> Parties {
    let other = federation();
    fs::copy(p.folder.path("site-1.card"), other.folder.path("site-1.card")).expect("a card is public");
    other.roster_named(name, "roster.toml", &SITES);
    other.plan("roster.toml", "plan.toml", &PLAN);
    other
}

/// Site-1 of `p`, handed the documents of `of`.
fn handed(p: &Parties, of: &Parties, more: &[&str]) -> Vec<String> {
    let [roster, plan] = ["roster.toml", "plan.toml"].map(|file| of.folder.path(file));
    p.client(1, &[&["--roster", &*roster, "--plan", &*plan][..], more].concat())
}

/// What somebody says who has not called anybody.
fn without_fingerprint(mut args: Vec<String>) -> Vec<String> {
    let at = args.iter().position(|arg| arg == "--roster-fingerprint").expect("a fingerprint");
    args.drain(at..at + 2);
    args
}

fn accept(p: &Parties, name: &str, roster: &str, more: &[&str]) -> Ended {
    let (key, fingerprint) = (p.folder.path(&format!("{name}.key")), fingerprint_of(roster));
    let args = ["roster", "accept", "--roster", roster, "--key", &key, "--fingerprint", &fingerprint];
    veilsum(&[&args[..], more].concat())
}

/// Passed everything on this machine, and knocked where nobody answers.
fn knocks(args: &[String]) {
    let told = veilsum(args).expect(4);
    assert!(told.stderr.contains("did not answer"), "{}", told.stderr);
}

fn says(told: &Ended, what: &[&str]) {
    what.iter().for_each(|what| assert!(told.stderr.contains(what), "{what:?} is not in\n{}", told.stderr));
}

fn run(server: &Parties, clients: [Vec<String>; 3]) -> Value {
    let hub = start(&server.server(&QUICK));
    let intermediary = start(&server.intermediary(&QUICK));
    let clients: Vec<Running> = clients.iter().map(|args| start(args)).collect();
    hub.wait(LIMIT).expect(0);
    intermediary.wait(LIMIT).expect(0);
    clients.into_iter().for_each(|client| drop(client.wait(LIMIT).expect(0)));
    server.folder.json("out/result.json")
}

/// Numbers that site-1 gave away, by its ledger.
fn account(p: &Parties) -> u64 {
    let (key, state) = (p.folder.path("site-1.key"), p.folder.path("site-1.state"));
    let told = veilsum(&["check", "--key", &key, "--state", &state, "--json"]).expect(0).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    told["account"]["exact_numbers"].as_u64().expect("a number")
}

/// [ROS-9]: with the rule, no packet leaves; where the operator waves it through all the same, packets do, and the site's block
/// is what is left ([REL-5]).
#[test]
fn ros_9_swapped_roster() {
    let p = federation();
    let first = run(&p, [1, 2, 3].map(|i| p.client(i, &[])));
    let honest = account(&p);
    let attacker = another_with_site_1_of(&p, "test");
    let sockets = attacker.ports.map(|port| {
        let socket = UdpSocket::bind(("127.0.0.1", port)).expect("the attacker's port");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a limit");
        socket
    });
    let heard = |socket: &UdpSocket| socket.recv(&mut [0; 2048]).is_ok();
    let short = ["--join-timeout", "2"];
    // Whether or not somebody gives the fingerprint along with the file.
    for args in [handed(&p, &attacker, &short), without_fingerprint(handed(&p, &attacker, &short))] {
        let told = veilsum(&args).expect(3);
        says(&told, &["roster.toml", "[ROS-9]", "lead (coordinator) has another key", "lead has another address"]);
        says(&told, &["counter (intermediary) has another key", "site-2 (site) has another key", "site-3 (site)"]);
        says(&told, &["a coordinator's key is never another [ROS-13]", "do not use it"]);
        assert!(!told.stderr.contains("site-1 (site)"), "its own key is the same: {}", told.stderr);
        assert!(!sockets.iter().any(heard), "a packet reached the attacker");
    }
    // Under another name it is another federation, and these rows went to the first one.
    attacker.roster_named("test-2", "renamed.toml", &SITES);
    attacker.plan("renamed.toml", "renamed-plan.toml", &PLAN);
    let [roster, plan] = ["renamed.toml", "renamed-plan.toml"].map(|file| attacker.folder.path(file));
    let told = veilsum(&p.client(1, &["--roster", &roster, "--plan", &plan, "--join-timeout", "2"])).expect(3);
    says(&told, &["the data set \"rows\" was used with the federation test", "test-2 [ROS-10]", "--data-set rows"]);
    assert!(!sockets.iter().any(heard), "a packet reached the attacker");
    assert_eq!(account(&p), honest);

    // Not even an operator who accepts whatever comes can accept another coordinator.
    says(&accept(&p, "site-1", &attacker.folder.path("roster.toml"), &[]).expect(3), &["[ROS-13]"]);
    // The rule off: what was agreed to is forgotten. The first packet is that of the next run.
    fs::remove_file(p.folder.0.join("site-1.key.federations")).expect("what was agreed to");
    accept(&p, "site-1", &attacker.folder.path("roster.toml"), &[]).expect(0);
    knocks(&handed(&p, &attacker, &short));
    assert!(sockets.iter().any(heard), "the test would not see a packet");
    drop(sockets);
    // [REL-5]: even then the site's block is that of its first totals, and no total is over others.
    let hub = start(&attacker.server(&["--phase-timeout", "6", "--grace", "1", "--join-timeout", "6"]));
    let intermediary = start(&attacker.intermediary(&QUICK));
    let clients = [handed(&p, &attacker, &[]), attacker.client(2, &[]), attacker.client(3, &[])];
    let clients: Vec<Running> = clients.iter().map(|args| start(args)).collect();
    says(&hub.wait(LIMIT).expect(6), &["whole blocks", "[REL-4]"]);
    drop(intermediary.wait(LIMIT));
    clients.into_iter().for_each(|client| assert_ne!(client.wait(LIMIT).code, Some(0)));
    // [LED-7]: the ledger counts what left under every roster, and of the second one nothing did.
    // Rounds of K (d + 1) numbers, a validation and a count, as in `tests/ledger.rs`.
    let numbers = |result: &Value| (result["questions"].as_u64().expect("a number") - 1) * 9 + 7 + 1;
    assert_eq!((honest, account(&p)), (numbers(&first), numbers(&first)));
    let listed = veilsum(&["roster", "agreed", "--key", &p.folder.path("site-1.key")]).expect(0).stdout;
    assert!(listed.contains("in force; data sets: rows"), "{listed}");
    says(&veilsum(&p.client(1, &short)).expect(3), &["[ROS-9]"]);
}

/// [ROS-8]: a roster is compared once, by people.
#[test]
fn ros_8_the_first_use_of_a_roster_needs_its_fingerprint() {
    let p = federation();
    let roster = p.folder.path("roster.toml");
    let remembered = p.folder.0.join("site-1.key.federations");
    let short = ["--join-timeout", "1"];
    for args in [without_fingerprint(p.client(1, &short)), without_fingerprint(p.intermediary(&short))] {
        says(
            &veilsum(&args).expect(3),
            &["nobody has compared this roster of test", "[ROS-8]", "in a call with all operators", "accept"],
        );
    }
    let whole = fingerprint_of(&roster);
    let other = roster_fingerprint(&veilsum_proto::suite::hash("another", &[]));
    let given = |digits: &str| {
        let args = without_fingerprint(p.client(1, &short)).into_iter();
        args.chain(["--roster-fingerprint".to_owned(), digits.to_owned()]).collect::<Vec<_>>()
    };
    says(&veilsum(&given(&other)).expect(3), &["other words than those that were given", "do not use it"]);
    says(&veilsum(&given(&whole[..19])).expect(2), &["a fingerprint has 15 words"]);
    let key = p.folder.path("site-1.key");
    let refused = ["roster", "accept", "--roster", &roster, "--key", &key];
    says(&veilsum(&refused).expect(3), &["[ROS-8]"]);
    says(&veilsum(&[&refused[..], &["--fingerprint", &other]].concat()).expect(3), &["other words"]);
    assert!(!remembered.exists(), "nothing was agreed to");
    // Once, and from then on without.
    knocks(&given(&whole.replace(' ', "-")));
    assert_eq!(fs::metadata(&remembered).expect("a file").permissions().mode() & 0o777, 0o600);
    knocks(&without_fingerprint(p.client(1, &short)));
    // A wrong one is wrong also then.
    says(&veilsum(&given(&other)).expect(3), &["other words"]);
    // The command beforehand does the same for the intermediary and for another site.
    accept(&p, "site-2", &roster, &[]).expect(0);
    knocks(&without_fingerprint(p.client(2, &short)));
    accept(&p, "counter", &roster, &[]).expect(0);
    knocks(&without_fingerprint(p.intermediary(&short)));
    // Who is not on the roster agrees to nothing.
    p.keygen("stranger", None);
    says(&accept(&p, "stranger", &roster, &[]).expect(3), &["not on the roster"]);
}

/// [ROS-9]: one member's key is another one; the message says whose, at the site and at the intermediary.
#[test]
fn ros_9_one_changed_member_is_named_and_the_change_can_be_accepted() {
    let p = federation();
    let roster = p.folder.path("roster.toml");
    let short = ["--join-timeout", "1"];
    knocks(&p.client(1, &short));
    accept(&p, "counter", &roster, &[]).expect(0);
    let keygen = ["keygen", "--name", "site-3", "--force", "--out", &p.folder.path("")];
    veilsum(&keygen).expect(0);
    p.roster("roster.toml", &SITES);
    p.plan("roster.toml", "plan.toml", &PLAN);
    for args in [p.client(1, &short), p.intermediary(&short)] {
        let told = veilsum(&args).expect(3);
        says(&told, &["[ROS-9]: site-3 (site) has another key"]);
        assert!(!told.stderr.contains("site-2") && !told.stderr.contains("address"), "{}", told.stderr);
    }
    accept(&p, "site-1", &roster, &[]).expect(0);
    knocks(&without_fingerprint(p.client(1, &short)));
    let listed = veilsum(&["roster", "agreed", "--key", &p.folder.path("site-1.key")]).expect(0).stdout;
    assert!(listed.contains("replaced; data sets: rows") && listed.contains("in force; data sets: rows"), "{listed}");
    // A site more, and one less.
    p.keygen("site-4", None);
    p.roster("roster.toml", &["site-1", "site-2", "site-4"]);
    p.plan("roster.toml", "plan.toml", &PLAN);
    let told = veilsum(&p.client(1, &short)).expect(3);
    says(&told, &["site-3 (site) is gone", "site-4 (site) is new"]);
}

/// [ROS-9]: also a roster without this key is held against the one that was agreed to, before anybody is asked for a card.
#[test]
fn ros_9_a_roster_of_this_name_without_this_key() {
    let (p, other) = (federation(), federation());
    let short = ["--join-timeout", "1"];
    knocks(&p.client(1, &short));
    let [roster, plan] = ["roster.toml", "plan.toml"].map(|file| other.folder.path(file));
    let check = ["check", "--key", &p.folder.path("site-1.key"), "--roster", &roster, "--plan", &plan];
    for told in [veilsum(&handed(&p, &other, &short)), veilsum(&check), accept(&p, "site-1", &roster, &[])] {
        let told = told.expect(3);
        says(
            &told,
            &["[ROS-9]", "lead (coordinator) has another key", "site-1 (site) has another key", "by telephone"],
        );
        assert!(!told.stderr.contains("send your card"), "{}", told.stderr);
    }
}

/// [ROS-8]: a file that is not as it was written stops the site, and is not written over.
#[test]
fn ros_8_a_damaged_memory_of_rosters_stops_the_site() {
    let p = federation();
    let short = ["--join-timeout", "1"];
    knocks(&p.client(1, &short));
    let file = p.folder.0.join("site-1.key.federations");
    let good = fs::read_to_string(&file).expect("what was agreed to");
    let bad = good.replacen("name = \"site-2\"", "name = \"site-9\"", 1);
    assert_ne!(good, bad);
    fs::write(&file, &bad).expect("a damaged file");
    for args in [p.client(1, &short), without_fingerprint(p.client(1, &short))] {
        says(&veilsum(&args).expect(3), &["site-1.key.federations", "damaged", "put it back"]);
    }
    says(&accept(&p, "site-1", &p.folder.path("roster.toml"), &[]).expect(3), &["damaged"]);
    assert_eq!(fs::read_to_string(&file).expect("the file"), bad);
    fs::write(&file, &good).expect("the file as it was");
    knocks(&without_fingerprint(p.client(1, &short)));
}

/// [ROS-10]: one key in two federations, with data of their own; the same data in both only where the operator says so.
#[test]
fn ros_10_two_federations_side_by_side() {
    let p = federation();
    let second = another_with_site_1_of(&p, "second");
    let short = ["--join-timeout", "1"];
    knocks(&p.client(1, &short));
    let told = veilsum(&handed(&p, &second, &short)).expect(3);
    says(&told, &["[ROS-10]", "used with the federation test", "--data-set rows"]);
    // Other rows under another name.
    let toy = fs::read_to_string(p.folder.path("toy.toml")).expect("a policy");
    let policy = p.folder.write("second.toml", &format!("data = \"wards\"\n{toy}"));
    let rows = p.folder.path("site-2.csv");
    let own = [&["--policy", &*policy, "--data", &*rows][..], &short].concat();
    // The roster may be used; a key has one data set all the same.
    let other_rows = |args: &[String]| says(&veilsum(args).expect(7), &["[LED-8]"]);
    other_rows(&handed(&p, &second, &own));
    knocks(&p.client(1, &short));
    other_rows(&without_fingerprint(handed(&p, &second, &own)));
    // The first one's rows under the second one's name, and under a third.
    let third = p.folder.write("third.toml", &format!("data = \"another name\"\n{toy}"));
    for policy in [&*policy, &*third] {
        let told = veilsum(&handed(&p, &second, &[&["--policy", policy][..], &short].concat())).expect(3);
        says(&told, &["the data set \"rows\" was used with the federation test", "[ROS-10]"]);
    }
    says(&veilsum(&handed(&p, &second, &short)).expect(3), &["[ROS-10]"]);
    // Said in so many words.
    let roster = second.folder.path("roster.toml");
    says(&accept(&p, "site-1", &roster, &["--data-set", "row"]).expect(3), &["no data set \"row\""]);
    accept(&p, "site-1", &roster, &["--data-set", "rows"]).expect(0);
    knocks(&handed(&p, &second, &short));
    knocks(&p.client(1, &short));
}
