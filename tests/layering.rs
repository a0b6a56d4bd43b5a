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

/// Where each of these may stand: names, the folders in which they are looked for, and the files that have one. No other file has.
const PLACES: [(&str, &str, &[&str]); 14] = [
    // What is asked, answered and released is decided without the world outside, and so is all that the core does, in integers. Pages
    // and charts are made of text alone. No socket, file, clock, thread or source of randomness: all of it comes in as an argument.
    (
        "std::net std::fs std::time std::thread std::env std::process getrandom SystemTime Instant OsRng SysRng async await println",
        "charts/src federation/src proto/src",
        &[],
    ),
    ("std::io f32 f64", "proto/src", &[]),
    // Nothing of a run depends on what time it is at another party: no other file reads a wall clock. The first is of the last day of
    // an invitation ([JOI-3]) and until when the account keeps what a yes promised ([LED-1]), by a party's own; the others are for people.
    (
        "SystemTime UNIX_EPOCH UtcDateTime chrono:: time::OffsetDateTime",
        ALL,
        &[
            "crates/node/src/clock.rs",
            "crates/node/src/report/page/reported.rs",
            "crates/node/src/store/journal.rs",
            "crates/cli/status.rs",
        ],
    ),
    // [LED-4]: what leaves a process is of one type, and each way to make it has one place.
    ("Egress::control", ALL, &["crates/node/src/role/dial.rs"]),
    ("Egress::of_the_lobby", ALL, &["crates/node/src/role/lobby_frames.rs"]),
    ("Egress::of_an_aggregator", ALL, &["crates/node/src/role/door.rs", "crates/node/src/role/reception.rs"]),
    ("Egress::in_ledger", ALL, &["crates/node/src/role/site_session/disk.rs"]),
    // By the floor alone, after policy and account.
    ("asked.consent", ALL, &["crates/door/src/verdict.rs"]),
    // Words for the masks, by what was charged alone; counts and sums that the guard has not made itself.
    ("Input::Contribute", ALL, &["crates/proto/src/site/mod.rs", "crates/door/src/guard.rs"]),
    ("Source::Counts", ALL, &["crates/federation/src/answerer.rs", "crates/federation/src/question/answer.rs"]),
    ("Source::Elsewhere", ALL, &["crates/python/src/handed.rs"]),
    ("Egress::foreign", ALL, &[]),
    ("public!", ALL, &["crates/node/src/egress.rs"]),
    // The one wire format.
    ("bincode", ALL, &["crates/proto/src/codec.rs"]),
];

const ALL: &str = "node/src federation/src proto/src door/src cluster/src charts/src cli python/src";

#[test]
fn led_4_what_reaches_outside_has_its_place() {
    let sources = product(ALL);
    for (names, folders, places) in PLACES {
        let within = |path: &str| folders.split(' ').any(|folder| path.starts_with(&format!("crates/{folder}/")));
        let there = sources.iter().filter(|(path, _)| within(path));
        let found: Vec<&str> = there
            .filter(|(_, source)| names.split(' ').any(|name| source.names(name)))
            .map(|(path, _)| path.as_str())
            .collect();
        assert_eq!(found, places, "{names}");
    }
    for (path, source) in &sources {
        let float =
            path.starts_with("crates/proto/") && source.words().any(|w| w.ends_with("f64") || w.ends_with("f32"));
        assert!(!float, "a float in {path}");
        // The protocol and the mathematics meet in the federation alone, and where whole federations are simulated for the laboratory.
        let above = path.starts_with("crates/node/") || path.starts_with("crates/cli/");
        let both = source.names("veilsum_proto") && source.names("veilsum_cluster");
        assert!(!(above && both) || path == "crates/node/src/simulate.rs", "{path} names both");
    }
}

/// [LED-4]: no module but the carrier's opens a socket, and a site's session sends none but through its ledger and a line's own messages.
#[test]
fn led_4_sockets_are_the_carriers_and_frames_go_through_the_ledger() {
    let sockets = ["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixListener", "UnixDatagram", "quinn"];
    let sources = product(ALL);
    let opens = |(path, source): &&(String, Source)| {
        !path.starts_with("crates/node/src/carrier/") && sockets.iter().any(|socket| source.names(socket))
    };
    let found: Vec<&str> = sources.iter().filter(opens).map(|(path, _)| path.as_str()).collect();
    // One connects and sends no byte; the other is for people on this machine.
    assert_eq!(found, ["crates/node/src/checkup.rs", "crates/node/src/role/status/socket.rs"]);
    let session = sources.iter().find(|(path, _)| path == "crates/node/src/role/site_session.rs").expect("a session");
    let written = session.1.code.matches("self.write_down(").count();
    assert_eq!(session.1.code.matches("Output::Send {").count(), written + 1);
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
