//! The arrows of the house, proved from `cargo tree` and from the sources: who may depend on whom, and what the trusted
//! core may name.

use std::{collections::BTreeSet, process::Command};

use crate::source::{ROOT, Source, files, product, read};

/// What `cargo tree` prints for a package, line by line.
pub(crate) fn tree(package: &str, edges: &str, more: &[&str]) -> Vec<String> {
    let run = |offline: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(ROOT).args(["tree", "--locked", "--prefix", "none"]);
        command.args(["--package", package, "--edges", edges]).args(more).args(offline).output().expect("cargo runs")
    };
    // The lock file and the sources are there, since this test was built from them; those of other systems may not be.
    let mut output = run(&["--offline"]);
    if !output.status.success() {
        output = run(&[]);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// The names of all packages that this one is built from, itself left out.
fn built_from(package: &str, edges: &str, more: &[&str]) -> BTreeSet<String> {
    let lines = tree(package, edges, &[&["--no-dedupe", "--target", "all"], more].concat());
    let names = lines.iter().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != package);
    names.map(str::to_owned).collect()
}

/// A package of ours, the others of ours that it may be built from, and how the names of others begin that are not for it.
const PACKAGES: [(&str, &str, &str); 8] = [
    // On nothing but what stands in it.
    ("veilsum-charts", "", ""),
    ("veilsum-contributions", "", "rand getrandom serde rayon"),
    (
        "veilsum-proto",
        "",
        "tokio quinn rustls futures async ndarray fearless clap anyhow tracing csv serde_json toml mio socket2 libm",
    ),
    (
        "veilsum-cluster",
        "contributions",
        "tokio quinn rustls async aes ctr sha2 hkdf x25519 ed25519 curve25519 bincode",
    ),
    (
        "veilsum-door",
        "proto contributions",
        "tokio quinn rustls futures async ndarray fearless clap anyhow tracing csv toml mio socket2",
    ),
    ("veilsum-federation", "proto door cluster contributions", "tokio quinn rustls csv toml tracing"),
    // The library knows no command line: words for a screen are the binary's.
    ("veilsum-node", "proto door cluster contributions federation charts", "clap tracing-subscriber"),
    // Attacks and experiments never ship. A carrier in the clear, or another one's cryptography, would be a second way.
    (
        "veilsum",
        "proto door cluster contributions federation charts node",
        "openssl native-tls hyper reqwest aws-lc-rs rustls-native-certs webpki-roots",
    ),
];

#[test]
fn packages_are_built_from_what_they_may_know() {
    for (package, ours, not) in PACKAGES {
        for name in built_from(package, "normal,build", &["--all-features"]) {
            let wrong = match name.strip_prefix("veilsum-") {
                Some(own) => !ours.split(' ').any(|known| known == own),
                None => name == "veilsum" || not.split(' ').any(|begins| name.starts_with(begins)),
            };
            assert!(!wrong, "{package} must not depend on {name}");
        }
    }
    let product = built_from("veilsum", "normal", &[]);
    for needed in ["veilsum-proto", "veilsum-cluster", "quinn", "rustls", "tokio", "clap"] {
        assert!(product.contains(needed), "{needed}");
    }
    // Threads only where the feature says so, and then only within one call.
    assert!(!built_from("veilsum-proto", "normal,build", &[]).contains("rayon"));
    // Not even in the product's tests: the adversary is the last of the house.
    assert!(!built_from("veilsum", "normal,build,dev", &[]).contains("veilsum-audit"));
}

/// The simulator of the core (clock and randomness from a seed) is not in the product, and neither is a way around the door: bytes of
/// anybody on a link, and randomness that a test has sown.
#[test]
fn the_testing_feature_stays_out_of_the_product() {
    let features = |edges: &str| {
        let testing = |line: &String| line.starts_with("veilsum") && line.contains("feature \"testing\"");
        tree("veilsum", edges, &[]).into_iter().filter(testing).collect::<Vec<_>>()
    };
    assert_eq!(features("features,no-dev"), [""; 0]);
    // The tests do have them, so that they would be seen.
    let tests = features("features");
    for name in ["veilsum-proto", "veilsum-node"] {
        assert!(tests.iter().any(|line| line.starts_with(name)), "{name} in {tests:?}");
    }
}

/// No socket, file, clock, thread or source of randomness: all of it comes in as an argument.
const OUTSIDE: &str = "std::net std::fs std::time std::thread std::env std::process getrandom SystemTime Instant OsRng SysRng \
                       async await println";

/// What is asked, answered and released is decided without the world outside, and so is all that the core does, in integers. Pages and
/// charts are made of text alone.
#[test]
fn cores_know_nothing_of_the_world_outside() {
    for (folder, more) in
        [("crates/charts/src", ""), ("crates/federation/src", ""), ("crates/proto/src", "std::io f32 f64")]
    {
        for (path, source) in product(&[folder]) {
            let all = OUTSIDE.split(' ').chain(more.split_whitespace());
            let found: Vec<_> = all.filter(|name| source.names(name)).collect();
            assert!(found.is_empty(), "{found:?} in {path}");
            let float = |word: &str| folder.contains("proto") && (word.ends_with("f64") || word.ends_with("f32"));
            assert!(!source.words().any(float), "a float in {path}");
        }
    }
}

/// Nothing of a run depends on what time it is at another party: no other file reads a wall clock.
#[test]
fn clocks_may_differ() {
    let folders = [
        "crates/node/src",
        "crates/federation/src",
        "crates/cli",
        "crates/proto/src",
        "crates/door/src",
        "crates/cluster/src",
    ];
    let clocks = ["SystemTime", "UNIX_EPOCH", "UtcDateTime", "chrono::", "time::OffsetDateTime"];
    let reads = |(_, source): &(String, Source)| clocks.iter().any(|clock| source.names(clock));
    let reading: Vec<String> = product(&folders).into_iter().filter(reads).map(|(path, _)| path).collect();
    let known = [
        // The last day of an invitation ([JOI-3]) and until when the account keeps what a yes promised ([LED-1]), by a party's own.
        "crates/node/src/clock.rs",
        // The others are for people.
        "crates/node/src/report/page/reported.rs",
        "crates/node/src/store/journal.rs",
        "crates/cli/status.rs",
    ];
    assert_eq!(reading, known);
}

/// The protocol and the mathematics meet in the federation alone: no file of the floors above names both.
#[test]
fn only_the_federation_names_both_the_protocol_and_the_mathematics() {
    // It simulates whole federations for the laboratory.
    let elsewhere = "crates/node/src/simulate.rs";
    for (path, source) in product(&["crates/node/src", "crates/cli"]) {
        let both = source.names("veilsum_proto") && source.names("veilsum_cluster");
        assert!(!both || path == elsewhere, "{path} names both");
    }
}

/// [LED-4]: what leaves a process is of one type; each way to make it has one place, and no other module opens a socket.
#[test]
fn led_4_one_type_leaves_and_each_way_to_make_it_has_one_place() {
    let ways: [(&str, &[&str]); 11] = [
        ("Egress::control", &["crates/node/src/role/dial.rs"]),
        ("Egress::of_the_lobby", &["crates/node/src/role/lobby_frames.rs"]),
        ("Egress::of_an_aggregator", &["crates/node/src/role/door.rs", "crates/node/src/role/reception.rs"]),
        ("Egress::in_ledger", &["crates/node/src/role/site_session/disk.rs"]),
        // By the floor alone, after policy and account.
        ("asked.consent", &["crates/door/src/verdict.rs"]),
        // Words for the masks, by what was charged alone; counts and sums that the guard has not made itself.
        ("Input::Contribute", &["crates/proto/src/site/mod.rs", "crates/door/src/guard.rs"]),
        ("Source::Counts", &["crates/federation/src/answerer.rs", "crates/federation/src/question/answer.rs"]),
        ("Source::Elsewhere", &["crates/python/src/handed.rs"]),
        ("Egress::foreign", &[]),
        ("public!", &["crates/node/src/egress.rs"]),
        // The one wire format.
        ("bincode", &["crates/proto/src/codec.rs"]),
    ];
    let sockets = ["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixListener", "UnixDatagram", "quinn"];
    // One connects and sends no byte; the other is for people on this machine.
    let for_others = ["crates/node/src/checkup.rs", "crates/node/src/role/status/socket.rs"];
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let crates =
        ["node/src", "federation/src", "proto/src", "door/src", "cluster/src", "charts/src", "cli", "python/src"];
    for (name, source) in product(&crates.map(|folder| format!("crates/{folder}")).each_ref().map(String::as_str)) {
        for (way, places) in ways.iter().filter(|(way, _)| source.names(way)) {
            assert!(places.contains(&name.as_str()), "{name} has {way}");
            found.insert((way, name.clone()));
        }
        if !name.starts_with("crates/node/src/carrier/") && sockets.iter().any(|socket| source.names(socket)) {
            assert!(for_others.contains(&name.as_str()), "{name} opens a socket of its own");
            seen.insert(name.clone());
        }
        // A site's session makes none but through its ledger and a line's own messages, and its frames come from the machine alone.
        if name == "crates/node/src/role/site_session.rs" {
            let sent = source.code.matches("Output::Send {").count();
            assert_eq!(sent, source.code.matches("self.write_down(").count() + 1);
            seen.insert(name);
        }
    }
    // The reader of sources finds what is there.
    assert_eq!((found.len(), seen.len()), (13, 3), "{found:?} {seen:?}");
}

/// The compiler refuses `unsafe` in every package that takes the workspace's lints.
#[test]
fn every_package_takes_the_lints() {
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    let members = files("crates", "Cargo.toml");
    assert!(members.len() > 8, "{members:?}");
    for member in members.iter().map(String::as_str).chain(["Cargo.toml"]) {
        assert!(read(member).contains("[lints]\nworkspace = true"), "{member} does not take the lints");
    }
}
