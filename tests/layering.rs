//! The arrows of the house, proved from `cargo tree` and from the sources: who may depend on whom, and what the trusted
//! core may name.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Every package that `package` is built from, itself left out.
fn tree(package: &str, more: &[&str]) -> BTreeSet<String> {
    let run = |offline: &[&str]| {
        Command::new(env!("CARGO"))
            .current_dir(ROOT)
            .args([
                "tree",
                "--package",
                package,
                "--prefix",
                "none",
                "--format",
                "{p}",
                "--no-dedupe",
                "--target",
                "all",
            ])
            .args(more)
            .args(offline)
            .output()
            .expect("cargo runs")
    };
    // The lock file and the sources are there, since this test was built from them.
    let mut output = run(&["--offline", "--locked"]);
    if !output.status.success() {
        output = run(&["--locked"]);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let names = text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    let found: BTreeSet<String> = names.filter(|name| name != package).collect();
    assert!(found.len() > 3, "{package} is built from {found:?}");
    found
}

fn without(package: &str, forbidden: &[&str]) {
    let tree = tree(package, &["--edges", "normal,build", "--all-features"]);
    for name in forbidden {
        assert!(!tree.contains(*name), "{package} must not depend on {name}");
    }
}

/// A family: all crates of these names or with these prefixes.
fn without_family(package: &str, prefixes: &[&str]) {
    let tree = tree(package, &["--edges", "normal,build", "--all-features"]);
    for name in &tree {
        assert!(!prefixes.iter().any(|p| name.starts_with(p)), "{package} must not depend on {name}");
    }
}

#[test]
fn the_core_knows_no_mathematics_and_no_network() {
    let forbidden = [
        "ndarray",
        "tokio",
        "quinn",
        "rustls",
        "veilsum-cluster",
        "veilsum",
        "veilsum-federation",
        "veilsum-node",
        "veilsum-audit",
    ];
    without("veilsum-proto", &forbidden);
    // Threads only where the feature says so, and then only within one call.
    assert!(!tree("veilsum-proto", &["--edges", "normal,build"]).contains("rayon"));
    without("veilsum-proto", &["clap", "anyhow", "tracing", "csv", "serde_json", "toml", "mio", "socket2", "libm"]);
    without_family("veilsum-proto", &["tokio", "quinn", "rustls", "futures", "async", "ndarray", "fearless"]);
}

#[test]
fn the_mathematics_knows_no_protocol() {
    let forbidden = [
        "veilsum-proto",
        "veilsum",
        "veilsum-node",
        "veilsum-audit",
        "tokio",
        "quinn",
        "rustls",
        "aes",
        "aes-gcm",
        "ctr",
    ];
    without("veilsum-cluster", &forbidden);
    without("veilsum-cluster", &["sha2", "hkdf", "x25519-dalek", "ed25519-dalek", "curve25519-dalek", "bincode"]);
    without_family("veilsum-cluster", &["tokio", "quinn", "rustls", "aes", "curve25519", "async"]);
}

#[test]
fn attacks_never_ship() {
    for product in ["veilsum", "veilsum-node"] {
        without(product, &["veilsum-audit", "veilsum-lab", "veilsum-testkit"]);
    }
    // Nor in its tests: the adversary is the last of the house.
    assert!(!tree("veilsum", &["--edges", "normal,build,dev"]).contains("veilsum-audit"));
    let product = tree("veilsum", &["--edges", "normal"]);
    for needed in ["veilsum-proto", "veilsum-cluster", "quinn", "rustls", "tokio", "clap"] {
        assert!(product.contains(needed), "{needed}");
    }
    // A carrier in the clear, or another one's cryptography, would be a second way.
    for foreign in ["openssl", "native-tls", "hyper", "reqwest", "aws-lc-rs", "rustls-native-certs", "webpki-roots"] {
        assert!(!product.contains(foreign), "{foreign}");
    }
}

/// Pages and charts are made of text alone: whoever shows something shows it so, and nobody of them is known here.
#[test]
fn charts_know_nobody() {
    let output = Command::new(env!("CARGO"))
        .current_dir(ROOT)
        .args(["tree", "--package", "veilsum-charts", "--edges", "normal,build", "--prefix", "none", "--offline"])
        .output()
        .expect("cargo runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), 1, "{text}");
    for path in sources(&Path::new(ROOT).join("crates/charts/src")) {
        let code = code(&path);
        let found: Vec<_> = ["std::fs", "std::net", "std::env", "std::process"]
            .into_iter()
            .filter(|name| code.contains(name))
            .collect();
        assert!(found.is_empty(), "{found:?} in {}", path.display());
    }
}

/// What may be asked, answered and released is decided without a file, a socket, a clock or a thread.
#[test]
fn what_may_be_released_is_decided_without_io() {
    without("veilsum-federation", &["veilsum-node", "veilsum", "tokio", "quinn", "rustls", "csv", "toml", "tracing"]);
    let forbidden = ["std::net", "std::fs", "std::time", "std::thread", "std::env", "std::process"];
    let of_tests = |path: &PathBuf| path.to_string_lossy().ends_with("_tests.rs");
    for path in sources(&Path::new(ROOT).join("crates/federation/src")).into_iter().filter(|path| !of_tests(path)) {
        let code = code(&path);
        let found: Vec<_> = forbidden.iter().filter(|name| code.contains(**name)).collect();
        assert!(found.is_empty(), "{found:?} in {}", path.display());
        assert!(
            !words(&code).any(|w| ["async", "await", "Instant", "println", "getrandom", "OsRng"].contains(&w)),
            "{}",
            path.display()
        );
    }
}

/// The protocol and the mathematics meet in the federation alone: no file of the floors above names both.
#[test]
fn only_the_federation_names_both_the_protocol_and_the_mathematics() {
    // It simulates whole federations for the laboratory.
    let elsewhere = Path::new(ROOT).join("crates/node/src/simulate.rs");
    let mut read = 0;
    for path in ["crates/node/src", "crates/cli"].iter().flat_map(|folder| sources(&Path::new(ROOT).join(folder))) {
        let tests = path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
        if tests || path == elsewhere {
            continue;
        }
        read += 1;
        let code = code(&path);
        let names = |name: &str| words(&code).any(|word| word == name);
        assert!(!(names("veilsum_proto") && names("veilsum_cluster")), "{} names both", path.display());
    }
    assert!(read > 40, "node and the command line have more files than {read}");
}

/// The library knows no command line: words for a screen are the binary's.
#[test]
fn the_library_has_no_command_line() {
    without("veilsum-node", &["clap", "tracing-subscriber", "veilsum"]);
}

/// The simulator of the core (clock and randomness from a seed) is not in the product, and neither is a way around the door: bytes of
/// anybody on a link, and randomness that a test has sown.
#[test]
fn the_testing_feature_stays_out_of_the_product() {
    let features = |edges: &str| {
        let output = Command::new(env!("CARGO"))
            .current_dir(ROOT)
            .args(["tree", "--package", "veilsum", "--edges", edges, "--prefix", "none", "--offline"])
            .output()
            .expect("cargo runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let testing = |line: &&str| line.starts_with("veilsum") && line.contains("feature \"testing\"");
        assert!(text.contains("veilsum-node feature"), "{text}");
        text.lines().filter(testing).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(features("features,no-dev"), [""; 0]);
    // The tests do have them, so that they would be seen.
    let tests = features("features");
    for name in ["veilsum-proto", "veilsum-node"] {
        assert!(tests.iter().any(|line| line.starts_with(name)), "{name} in {tests:?}");
    }
}

// ---- sources --------------------------------------------------------------------------------------------------------

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found
}

/// The code of a file: comments, texts and characters are blanked, and so is all that only tests compile.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source");
    let (mut out, mut rest) = (String::new(), text.as_str());
    while let Some(first) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            text_length(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        out.push(' ');
        rest = &rest[skip..];
    }
    without_tests(&out)
}

/// Bytes of the text that begins here, with both quotation marks.
fn text_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Cuts every item behind `#[cfg(test)]`: up to the brace that closes it, to its semicolon, or, of a variant or an arm, to its
/// comma.
fn without_tests(code: &str) -> String {
    let (mut out, mut rest) = (String::new(), code);
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        let (mut depth, mut end) = (0, rest.len());
        for (i, c) in rest[at..].char_indices() {
            match c {
                '{' | '(' => depth += 1,
                '}' => depth -= 1,
                ')' => {
                    depth -= 1;
                    continue;
                }
                ';' | ',' if depth == 0 => {}
                _ => continue,
            }
            if depth == 0 {
                end = at + i + 1;
                break;
            }
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// [LED-10]: what leaves a process is of one type; each way to make it has one place, and no other module opens a socket.
#[test]
fn led_10_one_type_leaves_and_each_way_to_make_it_has_one_place() {
    let ways: [(&str, &[&str]); 7] = [
        ("Egress::control", &["node/src/role/dial.rs"]),
        ("Egress::of_the_lobby", &["node/src/role/lobby_frames.rs"]),
        ("Egress::of_an_aggregator", &["node/src/role/door.rs", "node/src/role/reception.rs"]),
        ("Egress::in_ledger", &["node/src/role/site_session/disk.rs"]),
        ("Entered::by_the_ledger", &["node/src/store/ledger.rs"]),
        ("Egress::foreign", &[]),
        ("public!", &["node/src/egress.rs"]),
    ];
    let sockets = ["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixListener", "UnixDatagram", "quinn"];
    // One connects and sends no byte; the other is for people on this machine.
    let for_others = ["node/src/checkup.rs", "node/src/role/status/socket.rs"];
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for folder in ["node/src", "federation/src", "cli", "python/src"] {
        for path in sources(&Path::new(ROOT).join("crates").join(folder)) {
            let name = path.strip_prefix(Path::new(ROOT).join("crates")).expect("a source").display().to_string();
            if only_tests(&path) || name.contains("/tests/") {
                continue;
            }
            let code = code(&path);
            for (way, places) in ways {
                if code.contains(way) {
                    assert!(places.contains(&name.as_str()), "{name} has {way}");
                    found.insert((way, name.clone()));
                }
            }
            if !name.starts_with("node/src/carrier/") && words(&code).any(|word| sockets.contains(&word)) {
                assert!(for_others.contains(&name.as_str()), "{name} opens a socket of its own");
                seen.insert(name);
            }
        }
    }
    // The reader of sources finds what is there.
    assert_eq!((found.len(), seen.len()), (7, 2), "{found:?} {seen:?}");
    // A site's session makes none but through its ledger and a line's own messages, and its frames come from the machine alone.
    let session = code(&Path::new(ROOT).join("crates/node/src/role/site_session.rs"));
    assert_eq!(session.matches("Output::Send {").count(), session.matches("self.write_down(").count() + 1);
}

/// A file that its parent includes for tests alone.
fn only_tests(path: &Path) -> bool {
    let Some(parent) = path.parent().filter(|_| path.file_name().is_some_and(|name| name == "tests.rs")) else {
        return false;
    };
    [parent.with_extension("rs"), parent.join("mod.rs")]
        .iter()
        .any(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("#[cfg(test)]\nmod tests;")))
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty())
}

#[test]
fn the_reader_of_sources_reads() {
    let text = "let a = \"f64 \\\" unsafe\"; // f32\nlet b: u8 = 1;\n#[cfg(test)]\nmod tests { fn f() -> f64 { 1.0 } }\nfn g() {}";
    let path = std::env::temp_dir().join(format!("veilsum-layering-{}.rs", std::process::id()));
    std::fs::write(&path, text).expect("a file");
    let found = code(&path);
    std::fs::remove_file(&path).expect("the file");
    assert_eq!(words(&found).collect::<Vec<_>>(), ["let", "a", "let", "b", "u8", "1", "fn", "g"]);
}

#[test]
fn the_core_computes_in_integers() {
    let mut read = 0;
    for path in sources(&Path::new(ROOT).join("crates/proto/src")) {
        if only_tests(&path) {
            continue;
        }
        let code = code(&path);
        read += 1;
        let float = words(&code).find(|w| ["f32", "f64"].contains(w) || w.ends_with("f64") || w.ends_with("f32"));
        assert_eq!(float, None, "{}", path.display());
    }
    assert!(read > 10, "the core has more files than {read}");
}

#[test]
fn one_module_names_the_codec() {
    let mut named = Vec::new();
    for folder in crate::SOURCES {
        for path in sources(&Path::new(ROOT).join(folder)) {
            if words(&code(&path)).any(|w| w == "bincode") {
                named.push(path.strip_prefix(ROOT).expect("a path of ours").to_owned());
            }
        }
    }
    assert_eq!(named, [Path::new("crates/proto/src/codec.rs")]);
}

/// No socket, file, clock, thread or source of randomness in the core: all of it comes in as an argument.
#[test]
fn the_core_does_no_io() {
    let forbidden = ["std::net", "std::fs", "std::time", "std::thread", "std::io", "std::env", "std::process"];
    let product = |path: &PathBuf| !path.components().any(|part| part.as_os_str() == "tests");
    for path in sources(&Path::new(ROOT).join("crates/proto/src")).into_iter().filter(product) {
        let code = code(&path);
        for name in
            forbidden.iter().chain(&["getrandom", "SystemTime", "Instant", "OsRng", "SysRng", "async", "println"])
        {
            let found = if name.contains("::") { code.contains(name) } else { words(&code).any(|w| w == *name) };
            assert!(!found, "{} in {}", name, path.display());
        }
    }
}

#[test]
fn nothing_is_unsafe() {
    for folder in ["crates", "tests", "examples"] {
        let folder = Path::new(ROOT).join(folder);
        if !folder.is_dir() {
            continue;
        }
        for path in sources(&folder) {
            let code = code(&path);
            // A kernel file that says why it is sound would carry the permission; there is none.
            assert!(!words(&code).any(|w| w == "unsafe"), "{}", path.display());
            assert!(!words(&code).any(|w| w == "unsafe_code"), "{}", path.display());
        }
    }
    let manifest = std::fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).expect("the manifest");
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    for member in [
        "crates/charts",
        "crates/proto",
        "crates/cluster",
        "crates/federation",
        "crates/node",
        "crates/lab",
        "crates/audit",
        "crates/testkit",
        ".",
    ] {
        let path = Path::new(ROOT).join(member).join("Cargo.toml");
        let text = std::fs::read_to_string(&path).expect("a manifest");
        assert!(text.contains("[lints]\nworkspace = true"), "{} does not take the lints", path.display());
    }
}
