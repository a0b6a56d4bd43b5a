//! The README's commands, executed as they stand there. Only host names, ports and the reader's own file are replaced.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

fn readme() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("a README")
}

/// The lines of all `sh` blocks, continuations joined, comments cut.
fn commands() -> Vec<String> {
    let text = readme();
    let mut out = Vec::new();
    for block in text.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default().replace("\\\n", " ");
        for line in block.lines() {
            let line = line.split(" #").next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            if !words.is_empty() {
                out.push(words.join(" "));
            }
        }
    }
    out
}

fn start(words: &str, folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_veilsum"))
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn run(words: &str, folder: &Path) -> String {
    ended(words, start(words, folder).wait_with_output().expect("it ends"))
}

fn ended(words: &str, output: Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "veilsum {words}\n{out}\n{err}");
    out.into_owned()
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("veilsum-readme-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a temporary folder");
    path
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").and_then(|s| s.local_addr()).expect("a free port").port()
}

fn rows(path: &Path, seed: u64, columns: &str, number: u64) {
    let mut text = format!("{columns},group\n");
    let mut x = seed;
    for i in 0..number {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Wide enough that the run is not over before a site vanishes in round 5.
        let noise = (x >> 40) % 36;
        let group = i % 3;
        text += &format!("{},{},{group}\n", 20 + 25 * group + noise, 20 + 8 * ((group + 1) % 3) + noise / 3);
    }
    fs::write(path, text).expect("rows");
}

/// Rows of a hospital: so many that its strict default policy lets it answer the walk's plan.
const ENOUGH: u64 = 4_000;

#[test]
fn the_two_commands_are_the_first_ones_and_ci_calls_the_second() {
    let commands = commands();
    assert_eq!(commands[0], "cargo run --release -- demo");
    assert_eq!(commands[1], "cargo test --workspace --locked");
    let ci = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/run")).expect("a CI script");
    assert!(ci.lines().any(|l| l.trim() == commands[1]), "CI does not call {:?}", commands[1]);
}

#[test]
fn the_demonstrations_run() {
    let dir = folder("demo");
    rows(&dir.join("FILE.csv"), 1, "x,y", 90);
    let demos: Vec<String> = commands()
        .iter()
        .filter_map(|c| c.strip_prefix("cargo run --release -- demo").map(|r| format!("demo{r}")))
        .collect();
    assert!(demos.len() > 2);
    let first = run(&demos[0], &dir);
    // What the README shows of it is what it prints.
    let shown = readme();
    let shown = shown.split("```text\n").nth(1).and_then(|s| s.split("```").next()).expect("the shown output");
    for line in shown.lines().filter(|l| !l.contains("largest difference")) {
        assert!(first.contains(line), "the README shows {line:?}, the demonstration printed\n{first}");
    }
    assert!(dir.join("veilsum-out/result.json").exists());
    assert!(run(&demos[1], &dir).contains("missing at the end: site-3"));
    for more in &demos[2..] {
        assert!(run(more, &dir).contains("who learnt what"), "{more}");
    }
    fs::remove_dir_all(dir).expect("clean up");
}

#[test]
fn the_walk_between_organisations_runs() {
    let dir = folder("walk");
    let (hub, counter) = (free_port(), free_port());
    let mut roles = Vec::new();
    let mut last = Vec::new();
    for command in commands() {
        let Some(words) = command.strip_prefix("veilsum ") else { continue };
        let words = words
            .replace("hub.example.org:4433", &format!("127.0.0.1:{hub}"))
            .replace("counter.example.net:4434", &format!("127.0.0.1:{counter}"))
            .replace("rows.csv", "hospital-a.csv");
        // The README shows hospital-a; the other two do the same.
        let everybody = |w: &str| ["hospital-a", "hospital-b", "hospital-c"].map(|h| w.replace("hospital-a", h));
        match words.split_whitespace().next() {
            Some("server" | "intermediary") => roles.push(words),
            Some("client") => {
                for (h, w) in ["a", "b", "c"].iter().zip(everybody(&words)) {
                    rows(&dir.join(format!("hospital-{h}.csv")), u64::from(h.as_bytes()[0]), "age,bmi", ENOUGH);
                    roles.push(if *h == "a" { w } else { format!("{w} --model model-{h}.json") });
                }
            }
            Some("assign" | "ledger") => last.push(words),
            // Nobody here breaks a rule, so there is no such file; `tests/opening.rs` verifies one.
            Some("evidence") => {
                let output = start(&words, &dir).wait_with_output().expect("it ends");
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.code() == Some(3) && said.contains("evidence-OPN-9"), "{said}");
            }
            Some("roster") if words.contains("FINGERPRINT") => {
                // In place of the telephone.
                let shown = run("roster verify --roster roster.toml", &dir);
                let heard = shown.lines().find_map(|l| l.strip_prefix("fingerprint  ")).expect("a fingerprint");
                let words = words.replace("FINGERPRINT", heard.split(' ').next().expect("its digits"));
                everybody(&words).iter().for_each(|w| drop(run(w, &dir)));
                run(&words.replace("hospital-a", "counter"), &dir);
            }
            Some("keygen") if words.contains("hospital-a") => everybody(&words).iter().for_each(|w| drop(run(w, &dir))),
            Some("inspect") => {
                rows(&dir.join("hospital-a.csv"), 97, "age,bmi", ENOUGH);
                let shown = run(&words, &dir);
                assert!(shown.to_lowercase().contains("masked"), "{shown}");
            }
            _ => drop(run(&words, &dir)),
        }
    }
    assert_eq!(roles.len(), 5);
    let running: Vec<(String, Child)> = roles.into_iter().map(|w| (w.clone(), start(&w, &dir))).collect();
    for (words, child) in running {
        ended(&words, child.wait_with_output().expect("it ends"));
    }
    for words in last {
        assert!(!run(&words, &dir).is_empty());
    }
    assert!(dir.join("veilsum-out/result.json").exists());
    fs::remove_dir_all(dir).expect("clean up");
}
