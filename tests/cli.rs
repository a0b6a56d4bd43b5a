//! The command line from outside: the built binary, its exit codes, and what its errors say and keep to themselves.

use std::{fs, process::Command, time::Duration};

use serde_json::Value;
use veilsum_cli::embedded::found;
use veilsum_node::documents::load_identity;
use veilsum_testkit::program::{Ended, Folder, binary, launch};

use crate::said::{Told, says};

/// Stands in every file of rows; no output may show it, but for `assign`, which shows no values of rows either.
const SECRET: &str = "7.3313371";
const ROWS: &str = "x,y,label\n7.3313371,0.5,a\n1.5,-2.25,b\n9.0,4.0,a\n";

/// A folder of its own for one test, removed at its end.
struct Place(Folder);

impl Place {
    fn empty() -> Place {
        Place(Folder::fresh())
    }

    /// Five parties, a roster, a plan and rows.
    fn ready() -> Place {
        let w = Place::empty();
        let aggregators = [("hub", "127.0.0.1:7700"), ("counter", "127.0.0.1:7701")];
        let sites = ["site-1", "site-2", "site-3"].map(str::to_owned);
        found(&w.0.0, "fed", aggregators, &sites).unwrap();
        w.ok(&format!("{MAKE_PLAN} --k 3"));
        w.write("rows.csv", ROWS);
        w
    }

    fn run(&self, line: &str) -> Ended {
        let mut program = Command::new(binary());
        program.current_dir(&self.0.0);
        // What stands between quotation marks is one word.
        let words = line.split('"').enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        launch(program, &words.collect::<Vec<_>>()).wait(Duration::from_secs(120))
    }

    fn ok(&self, line: &str) -> String {
        let text = self.run(line).expect(0).stdout;
        assert!(!text.contains(SECRET), "{line} shows a value");
        text
    }

    /// What `check` says at a site that agreed to the plan, without the breaks of lines that fold.
    fn own(&self) -> String {
        let plan = self.json("plan check")["fingerprint"].as_str().unwrap().to_owned();
        // A plan with noise needs no agreement.
        self.run(&format!("agree plan.toml --key site-2.key --fingerprint \"{plan}\""));
        (self.ok(OWN) + &self.ok(&format!("{OWN} --json"))).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} --json"))).unwrap()
    }

    /// Fails with `code`, names every culprit and a next step, shows no value; the same holds with --json.
    fn fails(&self, line: &str, code: i32, culprits: &[&str]) {
        let Ended { stdout, stderr: text, .. } = self.run(line).expect(code);
        // A check tells all that it found as well.
        let silent = stdout.is_empty() || line.starts_with("check ");
        assert!(text.starts_with("error: ") && silent, "{line}\n{text}");
        assert!(text.lines().any(|l| l.len() > 12 && l.starts_with("next: ")), "{line}\n{text}");
        says(&text, culprits);
        let told = self.run(&format!("{line} --json")).expect(code);
        let value = told.json();
        assert_eq!((&*told.stderr, &value["error"]["code"]), ("", &code.into()), "{line} --json");
        assert!(!value["error"]["next"].as_str().unwrap().is_empty(), "{line}\n{value}");
        says(&(text + &told.stdout), &[&format!("!{SECRET}")]);
    }

    fn write(&self, name: &str, text: &str) {
        self.0.write(name, text);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.0.join(name)).unwrap()
    }

    fn change(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} lacks {from}");
        self.write(name, &text.replacen(from, to, 1));
    }
}

const MAKE_PLAN: &str = "plan new --roster roster.toml --key hub.key --out plan.toml --column x=0:10 --column y=-5:5 --set min_total_rows=200 \
    --exact";
const CHECK: &str = "plan check --plan plan.toml --roster roster.toml";
const OWN: &str = "check --offline --roster roster.toml --plan plan.toml --key site-2.key --data rows.csv";

#[test]
fn from_keys_to_memberships() {
    let w = Place::ready();
    let shown = w.json("verify roster.toml");
    assert_eq!((shown["valid"].as_bool(), shown["sites"].as_u64()), (Some(true), Some(3)));
    // Who is to agree sees the same members, and once more when it is done.
    let members = w.ok("verify roster.toml");
    let members = members.split_once("\n\n").unwrap().1.trim_end();
    assert!(members.starts_with("coordinator") && members.lines().count() == 5, "{members}");
    let heard = shown["fingerprint"].as_str().unwrap();
    let accepted = w.ok(&format!("agree roster.toml --key site-1.key --fingerprint \"{heard}\""));
    let next = format!("{members}\nnext: veilsum run --data ROWS.csv");
    assert!(accepted.trim_end().ends_with(&next) && members.contains("127.0.0.1:7701"), "{accepted}");
    let cost = w.json(CHECK);
    assert_eq!((cost["threshold"].as_u64(), cost["may_be_missing"].as_u64()), (Some(3), Some(0)));
    assert!(w.ok(CHECK).contains("warning: no site may be missing"));
    // Three sites and their totals: two of them are one too many.
    assert_eq!(cost["colluders_withstood"], 1);
    for told in [w.ok(CHECK), w.own()] {
        assert!(told.contains("with 3 sites any 2 of them together know the last one's part"), "{told}");
    }
    let plan = w.ok("plan check");
    // The numbers that count, also where nobody chose them.
    says(&plan, &["columns     x 0 to 10; y -5 to 5. Nothing", "threshold   t = 3 of 3; ", "the plan assumes 0\n"]);

    let leaves = w.json(OWN)["leaves"].clone();
    assert!(leaves["numbers"].as_u64().is_some_and(|numbers| numbers > 0) && leaves["nano_rho"].is_null(), "{leaves}");
    says(&w.own(), &["sealed boxes", "never a row", "!label,"]);

    w.write("model.json", MODEL);
    let value = w.json("assign --model model.json --data rows.csv");
    let memberships = value["rows"][0]["memberships"].as_array().unwrap();
    assert!((memberships.iter().map(|u| u.as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-12);
    let written = w.ok("assign --model model.json --data rows.csv");
    // How the centres came about is said beside the memberships.
    assert!(w.run("assign --model model.json --data rows.csv").stderr.is_empty() && value["caution"].is_null());
    let early = r#""converged": false, "ended_early": { "round": 7, "reason": "site-3 is gone", "lost": ["site-3"] }"#;
    for (how, words) in [
        ("\"converged\": true", vec![]),
        ("\"converged\": false", vec!["before its centres came to rest"]),
        (early, vec!["ended early, after round 7, before"]),
    ] {
        w.write("early.json", &MODEL.replace("\"k\": 2", &format!("\"k\": 2, {how}")));
        let Ended { stdout, stderr: told, .. } = w.run("assign --model early.json --data rows.csv").expect(0);
        assert_eq!(told.lines().count(), usize::from(!words.is_empty()), "{told}");
        assert_eq!(stdout.trim_end(), written.trim_end());
        let caution = w.json("assign --model early.json --data rows.csv")["caution"].clone();
        assert!(words.iter().all(|word| told.contains(word) && caution.as_str().unwrap().contains(word)), "{told}");
    }
    w.write("model.json", &MODEL.replace("\"k\": 2", "\"k\": 3"));
    w.fails("assign --model model.json --data rows.csv", 3, &["model.json"]);
}

const MODEL: &str = r#"{ "format": "veilsum-model/1", "method": "fcm", "k": 2, "m": 2.0,
  "columns": [{ "name": "x", "lower": 0, "upper": 10 }, { "name": "y", "lower": -5, "upper": 5 }],
  "scaling": "box", "centres": [[1, -2], [8, 2]], "centres_working": [[0.1, 0.3], [0.8, 0.7]], "plan": "00" }"#;

#[test]
fn changed_documents_are_refused() {
    let w = Place::ready();
    w.change("plan.toml", "max = 3", "max = 4");
    let signed = ["plan.toml", "changed after it was signed", "plan check --sign", "a site asks the coordinator"];
    w.fails(CHECK, 3, &signed);
    w.change("plan.toml", "max = 4", "max = 3");
    w.change("plan.toml", "slots", "slotz");
    w.fails(CHECK, 3, &["plan.toml, line", "slotz"]);
    w.change("roster.toml", "site-3", "site-9");
    w.fails("verify roster.toml", 3, &["roster.toml", "changed after it was signed"]);
    w.change("roster.toml", "signature = \"", "# signature = \"");
    w.fails("verify roster.toml", 3, &["roster.toml", "signature"]);
    w.fails("verify plan.toml", 3, &["plan.toml", "veilsum plan check"]);
    w.fails("verify nowhere.toml", 3, &["nowhere.toml"]);
}

/// A plan is a file: its coordinator changes a number, and what `plan new` refuses is refused here, too.
#[test]
fn a_plan_that_was_changed_by_hand_is_proved_and_signed_again() {
    let w = Place::ready();
    let before = w.json(CHECK)["fingerprint"].clone();
    w.change("plan.toml", "# The largest K that is tried\nmax = 3", "max = 2");
    w.change("plan.toml", "\nmin = 3", "\nmin = 2");
    w.fails(&format!("{CHECK} --sign --key site-1.key"), 3, &["site-1.key", "hub"]);
    let told = w.ok(&format!("{CHECK} --sign --key hub.key"));
    says(&told, &["written and signed; `veilsum run` hands it", "K = 2"]);
    assert_ne!(w.json(CHECK)["fingerprint"], before);
    says(&w.read("plan.toml"), &["# Fuzzifier, above 1", "# The largest K that is tried"]);
    w.change("plan.toml", "m = 2.0", "m = 1.0");
    w.fails(&format!("{CHECK} --sign --key hub.key"), 3, &["plan.toml", "fuzzifier"]);
    // Centres that could not be told from noise.
    w.ok(&format!("{} --k 2 --expected-rows 100000", MAKE_PLAN.trim_end_matches("--exact")));
    w.change("plan.toml", "expected_rows = 100000", "expected_rows = 10");
    w.fails(&format!("{CHECK} --sign --key hub.key"), 2, &["cannot be told from chance"]);
}

#[test]
fn only_the_coordinator_signs() {
    let w = Place::ready();
    w.fails(&format!("{MAKE_PLAN} --k 3").replace("hub.key", "counter.key"), 3, &["counter.key", "hub"]);
    // A roster that another key signed: the signature of one under the other's name.
    let (mallory, _) = load_identity(w.0.0.join("site-1.key")).unwrap();
    let (hub, _) = load_identity(w.0.0.join("hub.key")).unwrap();
    w.change("roster.toml", &hub.public().to_string(), &mallory.public().to_string());
    w.fails("verify roster.toml", 3, &["roster.toml"]);
}

#[test]
fn plans_that_cannot_be_used_are_not_made() {
    let w = Place::ready();
    let before = w.read("plan.toml");
    let make = |options: &str, code, culprits: &[&str]| w.fails(&format!("{MAKE_PLAN} {options}"), code, culprits);
    make("--k 201", 2, &["K = 201", "min_total_rows"]);
    make("--k 3 --set m=1", 2, &["fuzzifier"]);
    make("--k 0", 2, &["next"]);
    make("--k 3 --set max_rows=99999999999999", 2, &["overflow", "max_rows"]);
    make("--k 4000000000", 2, &["K = 4000000000"]);
    make("--k 3 --set threshold=2 --set colluders=1", 2, &["threshold", "2t > n + c"]);
    make("--k 3 --set min_sites=9", 2, &["min_cohort"]);
    make("--k 3 --set slots=0", 2, &["slots"]);
    make("--k 3 --column x=1:2", 2, &["\"x\""]);
    make("--k 3 --column s=a,a", 2, &["category 2", "stands twice"]);
    make("--k 3 --column s=a,b --set category_weight=0", 2, &["weight"]);
    make("--k many", 2, &["--k"]);
    make("", 2, &["how many clusters?"]);
    w.write("start.csv", "0.1,0.2\n0.3\n");
    make("--k 2 --set init=start.csv", 3, &["start.csv, line 2"]);
    w.write("start.csv", "0.1,0.2\n0.3,0.4\n");
    make("--k 3 --set init=start.csv", 2, &["expected 3 centres, found 2"]);
    assert_eq!(w.read("plan.toml"), before, "a refused plan replaced a good one");
    w.ok(&format!("{MAKE_PLAN} --k 2 --set init=start.csv"));
}

/// [POL-4], [NOI-9]: a plan that hides persons is for sites that say whose rows are whose, and count no more of one than it allows.
#[test]
fn a_plan_that_hides_persons_is_for_sites_that_cut_their_rows() {
    let w = Place::ready();
    let make = format!("{} --k 2 --expected-rows 100000", MAKE_PLAN.trim_end_matches("--exact"));
    w.ok(&format!("{make} --set rows_per_person=3"));
    says(&w.ok(CHECK), &["Of a person at most 3 rows count at each site."]);
    let refuses = |why: &str| w.run(OWN).expect(7).says(&["POL-4", why]);
    refuses("person under [rows] in site.toml");
    w.write("site.toml", "[rows]\nperson = \"label\"\nrows_per_person = 4\n");
    refuses("persons of at most 3 rows, and this site has persons of at most 4 rows");
    w.write("site.toml", "[rows]\nperson = \"label\"\nrows_per_person = 3\n");
    says(&w.own(), &["answers the whole plan", "of whom 3 rows count"]);
    assert_eq!(fs::read(w.0.0.join("site-2.key.persons")).unwrap().len(), 32);
    // What a site says wrongly of its rows stops it before anything leaves, and shows no value.
    w.write("site.toml", "[rows]\nperson = \"patient\"\n");
    w.fails(OWN, 3, &["no column is called \"patient\"", "rows.person"]);
}

#[test]
fn every_method_makes_a_plan_that_says_what_it_asks() {
    let w = Place::ready();
    for (options, method, shown) in [
        ("--method fcm --k 2..5 --set restarts=2 --set elbow=true", "fcm", &["restarts = 2", "elbow = true"][..]),
        ("--method ffcm-avg1 --k 3 --set powers=false", "ffcm-avg1", &["seeding.candidates]", "powers = false"]),
        ("--method fedfcm --k 2..9 --set local_k=6", "ffcm-avg2", &["most = 6"]),
        ("--method fkm --k 3 --set min_group=5 --set finish=10", "fkm", &["min_rows = 5", "finish = 10"]),
        ("--method kmeans --k 3 --set judge=intermediary", "kmeans", &["judge = \"intermediary\""]),
        ("--method ffcf --k 3 --set anchors=16", "ffcf", &["anchors = 16"]),
        ("--k 3 --set standardise=standard", "fcm", &["preparation = \"standard\""]),
        ("--k 3 --set indices=all", "fcm", &["vectors = true"]),
    ] {
        w.ok(&format!("{MAKE_PLAN} {options}"));
        says(&w.read("plan.toml"), shown);
        says(&w.ok(CHECK), &[&format!("method      {method}, K = "), "count_rows", "questions at most"]);
    }
    // What is asked under such a plan, part by part.
    w.ok(&format!("{MAKE_PLAN} --method kmeans --k 2 --set standardise=standard"));
    says(&w.ok(CHECK), &["moments", "margins", "local_means", "validation"]);
    let made = w.ok(&format!("{MAKE_PLAN} --method describe"));
    says(&made, &["16 bins a column", "4 questions at most", "first centres are not needed", "histogram", "moments"]);
}

#[test]
fn methods_that_cannot_be_planned_are_named() {
    let w = Place::ready();
    let make = |options: &str, code, culprits: &[&str]| w.fails(&format!("{MAKE_PLAN} {options}"), code, culprits);
    make("--k 3 --method k-fed", 2, &["k-fed", "fkm"]);
    make("--k 3 --method dbscan", 2, &["dbscan", "ffcf"]);
    make("--k 5..3", 2, &["5..3", "LOW..HIGH"]);
    make("--k 3 --method ffcf --set init=uniform", 2, &["ffcf", "totals"]);
    make("--k 3 --method ffcm-avg2 --set local_steps=2000", 2, &["1000"]);
    make("--k 3 --method fkm --set min_group=0", 2, &["min_rows"]);
    make("--k 3 --set restarts=0", 2, &["restarts"]);
    make("--k 3 --set restarts=2000", 2, &["restarts"]);
    make("--k 2..5 --set choose=davies-bouldin --method ffcm-avg1", 2, &["index"]);
    make("--k 2..5 --set choose=calinski-harabasz --set indices=scalars", 2, &["index"]);
    make("--k 3 --set judge=intermediary --set indices=all", 2, &["intermediary", "where the centres are"]);
    make("--k 3 --set sample=0.5", 2, &["drawn", "sample"]);
    make("--k 3 --set sites=any", 2, &["a plan without noise is over the same sites", "POL-9"]);
    make("--k 3 --set sample=2", 2, &["share"]);
    make("--k 1..3 --set local_k=5", 2, &["from 2"]);
    make("--k 3 --set labels=outcome", 2, &["no such setting", " max_rounds, "]);
    make("--k 3 --set bins=3", 2, &["--set bins: fcm does not read it", "reads it: describe"]);
    make("--k 3 --set elbow=true", 2, &["--set elbow", "LOW..HIGH"]);
    make("--method describe --set restarts=3", 2, &["--set restarts: describe does not read it"]);
    make("--method describe --k 2", 2, &["leave --k out"]);
    make("--method describe --set init=totals", 2, &["a description has no clusters"]);
    make("--k 3 --column mass=0:1e200", 2, &["\"mass\"", "beyond 10^150", "in another unit"]);
    // A plan with a parameter of another method, by hand.
    w.change("plan.toml", "max_rounds = ", "finish = 10\nmax_rounds = ");
    w.fails(CHECK, 3, &["plan.toml", "finish", "take a method that reads it (fkm: "]);
    w.change("plan.toml", "finish = 10\nmax_rounds = ", "max_rounds = ");
    // A plan that names such a method by hand.
    w.change("plan.toml", "method.algorithm.fcm", "method.algorithm.k-fed");
    w.fails(CHECK, 3, &["plan.toml", "k-fed", "fkm"]);
    // One that plans could name before.
    w.change("plan.toml", "method.algorithm.k-fed", "method.algorithm.fcm-anderson");
    w.fails(CHECK, 3, &["plan.toml", "fcm-anderson", "fkm"]);
}

/// What else a file of rows can have wrong is in the cases of the table.
#[test]
fn rows_that_cannot_be_used_are_named_without_their_values() {
    let w = Place::ready();
    let bad = |rows: &str, culprits: &[&str]| {
        w.write("rows.csv", rows);
        w.fails(OWN, 3, culprits);
    };
    bad("x,label\n7.3313371,a\n", &["rows.csv", "\"y\""]);
    bad("x,y\n1,2\n1,7.3313371\n", &["rows.csv, line 3", "\"y\"", "box", "plan new --set out_of_box=clip"]);
    bad("x,y\n1,\n1,7.3313371e\n2,\n", &["rows.csv, line 2", "in all 3 rows", "2 with no value in \"y\" (lines 2, 4)"]);
    fs::remove_file(w.0.0.join("rows.csv")).unwrap();
    w.fails(OWN, 3, &["rows.csv"]);
    w.write("rows.csv", ROWS);
    // A plan that allows a site fewer rows than it may hold.
    let noisy = MAKE_PLAN.replace("=200", "=6").replace("--exact", "--expected-rows 720");
    w.ok(&format!("{noisy} --k 3 --set max_rows=2"));
    w.fails(OWN, 7, &["max_rows", "POL-4"]);
}

#[test]
fn help_documents_the_exit_codes() {
    let w = Place::empty();
    assert!(w.ok("--help").contains("--help-all"));
    let codes = ["0    done", "3    a file", "6    too few sites", "130  interrupted", "143  told to stop"];
    says(&w.ok("--help-all"), &codes);
    w.fails("bogus", 2, &["bogus", "next: the commands are demo, run, ", "see `veilsum --help`"]);
    w.fails("federation bogus", 2, &["bogus", "create, ", "see `veilsum federation --help`"]);
    w.fails("join", 2, &["LINE", "next: see `veilsum join --help`"]);
    w.fails("federation create --nonsense", 2, &["--nonsense", "see `veilsum federation create --help`"]);
    // Only a command is missing: its help is shown, and a program is told.
    for line in ["", "federation"] {
        let told = w.run(line);
        assert_eq!((told.code, &*told.stdout), (Some(2), ""), "{told:?}");
        says(&told.stderr, &["Usage: veilsum"]);
        let told = w.run(&format!("{line} --json"));
        let value = told.json();
        let message = value["error"]["message"].as_str().unwrap();
        assert!(message.contains("requires a subcommand") && told.stderr.is_empty(), "{value}");
    }
}
