//! The commands of the README and of the book, executed as they are printed there. Only the fingerprint, a key and the reader's own files are
//! replaced.
//!
//! Every `sh` block is run, page by page, from its first command to its last. A page of one party gets what the others would do
//! from here. Other blocks (`text`) show output, or commands that take minutes or need what a test does not have.

use std::{fs, path::Path, time::Duration};

use veilsum_cli::embedded::found;
use veilsum_testkit::program::{Folder, Running, end_well, fingerprint_of, free_port, start_in};

use crate::{
    joining::between,
    source::{files, read},
};

const LIMIT: Duration = Duration::from_secs(400);
const DEMO: &str = "cargo run --release -- demo";
const TESTS: &str = "cargo test --workspace --locked";
const HOSPITALS: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
/// Rows of a hospital: enough that the noise of the walk's plan leaves its centres.
const ENOUGH: u64 = 4_000;

// ---- pages ----------------------------------------------------------------------------------------------------------

/// README and all pages of the book, as paths from the root.
fn pages() -> Vec<String> {
    let mut found = files("docs/src", ".md");
    found.push("README.md".to_owned());
    found
}

/// The lines of all `sh` blocks of a page, continuations joined, comments cut.
fn commands(path: &str) -> Vec<String> {
    let mut out = Vec::new();
    for block in read(path).split("```sh\n").skip(1) {
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

// ---- running --------------------------------------------------------------------------------------------------------

fn run(words: &str, folder: &Path) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    start_in(folder, &words).wait(LIMIT).expect(0).stdout
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

/// One page, played from its first command to its last in a folder of its own, in which all parties live.
struct Walk {
    page: String,
    folder: Folder,
    ports: [u16; 2],
    runs: usize,
}

impl Walk {
    fn new(page: String) -> Walk {
        let folder = Folder::fresh();
        for hospital in HOSPITALS {
            rows(&folder.0.join(format!("{hospital}.csv")), u64::from(hospital.as_bytes()[9]), "age,bmi", ENOUGH);
        }
        rows(&folder.0.join("FILE.csv"), 1, "x,y", 3_000);
        Walk { page, folder, ports: [free_port(), free_port()], runs: 0 }
    }

    fn play(mut self) {
        for command in commands(&self.page) {
            self.step(&command);
        }
    }

    fn here(&self, words: &str) -> String {
        run(words, &self.folder.0)
    }

    fn has(&self, name: &str) -> bool {
        self.folder.0.join(name).exists()
    }

    /// What was done before by others: everybody joined and agreed to the roster, and there is a plan.
    fn documents(&self) {
        if !self.has("roster.toml") {
            let [hub, counter] = self.ports.map(|port| format!("127.0.0.1:{port}"));
            let sites = HOSPITALS.map(str::to_owned);
            found(&self.folder.0, "three-hospitals", [("hub", &hub), ("counter", &counter)], &sites).expect("a roster");
        }
        if !self.has("plan.toml") {
            self.here(
                "plan new --key hub.key --k 3 --rho 0.25 --expected-rows 12000 --set max_rows=1048576 --column age=0:120 --column bmi=10:80",
            );
        }
    }

    fn step(&mut self, command: &str) {
        if let Some(rest) = command.strip_prefix(DEMO) {
            return self.demo(rest);
        }
        if command == TESTS {
            return;
        }
        let words = command.strip_prefix("veilsum ").unwrap_or_else(|| {
            panic!("{}: nothing here runs {command:?}; a block that cannot be run is marked `text`", self.page)
        });
        self.documents();
        // In place of the telephone.
        let heard = if words.contains("'WORDS'") { self.words() } else { String::new() };
        let words = words.replace("rows.csv", "hospital-a.csv").replace("'WORDS'", &heard);
        let of_a_run =
            words.contains(".jsonl") || ["ledger", "assign", "report"].iter().any(|of| words.starts_with(of));
        if of_a_run {
            self.after_a_run(&words);
        }
        let shown = self.here(&words);
        assert!(!of_a_run || !shown.is_empty(), "{words}");
        let checks_rows = words.starts_with("check") && words.contains("--data");
        assert!(!checks_rows || shown.contains("What would leave"), "{shown}");
    }

    fn words(&self) -> String {
        fingerprint_of(&self.folder.path("roster.toml")).replace(' ', "-")
    }

    /// A ledger or a model is there after a run only.
    fn after_a_run(&mut self, words: &str) {
        let own_model = words.contains("veilsum-out") && self.has("veilsum-out/model.json");
        if self.runs > 0 || own_model {
            return;
        }
        let party = |name: &str| {
            let out = match name {
                "hub" => "veilsum-out",
                "hospital-a" => "results",
                other => other,
            };
            let own = if HOSPITALS.contains(&name) { format!(" --data {name}.csv") } else { String::new() };
            let words = format!("run --plan plan.toml --key {name}.key --out {out}{own}");
            start_in(&self.folder.0, &words.split(' ').collect::<Vec<_>>())
        };
        let running: Vec<Running> = ["hub", "counter"].into_iter().chain(HOSPITALS).map(party).collect();
        end_well(running);
        assert!(self.has("veilsum-out/result.json"));
        self.runs += 1;
    }

    fn demo(&self, rest: &str) {
        let printed = self.here(&format!("demo{rest}"));
        assert!(printed.contains("who learnt what"), "{rest}");
        assert!(self.has("veilsum-out/result.json"));
    }
}

// ---- tests ----------------------------------------------------------------------------------------------------------

#[test]
fn the_two_commands_are_the_first_ones_and_ci_calls_the_second() {
    let commands = commands("README.md");
    assert_eq!(commands[..2], [DEMO, TESTS]);
    let ci = read(".ci/run");
    assert!(ci.contains("$(readme 1)") && ci.contains("$(readme 2)"), "CI runs both as they are printed");
}

#[test]
fn the_readme_has_700_words_at_most() {
    let words = read("README.md").split_whitespace().count();
    assert!(words <= 700, "{words}");
}

#[test]
fn what_is_shown_of_the_demonstration_is_what_it_prints() {
    let printed = run("demo", &Folder::fresh().0);
    let text = read("README.md");
    let shown = between(&text, "```text\n", "```");
    assert!(shown.lines().count() > 5, "{shown}");
    // Noise is fresh every time, so numbers are others.
    let plain = |text: &str| {
        let mut digits: Vec<char> = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        digits.retain(|c| *c != '-');
        digits.dedup_by(|a, b| *a == '0' && *b == '0');
        digits.into_iter().collect::<String>()
    };
    let words = |line: &str| plain(line).split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: Vec<String> = printed.lines().map(words).collect();
    for line in shown.lines() {
        assert!(printed.contains(&words(line)), "the README shows {line:?}, the demonstration printed\n{printed:#?}");
    }
}

#[test]
fn every_page_runs() {
    let pages: Vec<String> = pages().into_iter().filter(|page| !commands(page).is_empty()).collect();
    assert!(pages.len() >= 7, "{pages:?}");
    for page in pages {
        println!("{page}");
        Walk::new(page).play();
    }
}

/// A block of commands under another name would be neither run nor seen to be left out.
#[test]
fn blocks_are_marked_as_run_or_as_text() {
    for path in pages() {
        for (number, block) in read(&path).split("```").skip(1).step_by(2).enumerate() {
            let mark = block.lines().next().unwrap_or_default();
            // What is neither run here nor plain text is named by its language; other tests run it, or nobody.
            let known = ["sh", "text", "toml", "json", "python"].contains(&mark);
            assert!(known, "{path}: block {} is marked {mark:?}", number + 1);
        }
    }
}
