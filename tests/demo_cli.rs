//! `veilsum demo` as a stranger types it: the generated example, real rows, and every way to get it
//! wrong. An error has its code and its next step, and never shows a cell.

use std::time::Duration;

use serde_json::Value;
use veilsum_testkit::{
    data::shared,
    in_process::max_difference,
    program::{Ended, Folder, launch, start_in, veilsum},
};

use crate::said::{self, Told, says, strings};

fn demo(out: &Folder, more: &[&str]) -> Ended {
    said::demo(out, "out", more)
}

fn table(value: &Value) -> Vec<Vec<f64>> {
    serde_json::from_value(value.clone()).expect("rows of numbers")
}

/// Without arguments there is noise, which is fresh, and hides one of the five clusters at times; every site signs.
#[test]
fn without_arguments() {
    let out = Folder::fresh();
    let ended = veilsum(&["demo", "--out", &out.path("veilsum-out")]).expect(0);
    let result = out.json("veilsum-out/result.json");
    let found = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.5, 0.5]].iter().filter(|truth| {
        let near = |c: &Vec<f64>| (c[0] - truth[0]).hypot(c[1] - truth[1]) < 0.2;
        table(&result["centres"]).iter().filter(|c| near(c)).count() == 1
    });
    assert!(found.count() >= 4, "{}", ended.stdout);
    veilsum(&["verify", &out.path("veilsum-out/result.json")]).expect(0).says(&["site-1", "site-2", "site-3"]);
    ended.says(&["of a column's range"]);
}

#[test]
fn exact_and_without_further_arguments() {
    let out = Folder::fresh();
    let ended = demo(&out, &[]).expect(0);
    let result = out.json("out/result.json");
    assert_eq!((&result["method"], &result["k"], &result["m"]), (&"fcm".into(), &5.into(), &2.0.into()));
    assert_eq!((&result["n_total"], &result["converged"]), (&3750.into(), &true.into()));
    assert!(result["pooled"]["max_abs_diff"].as_f64().expect("a number") <= 1e-9);
    assert!(max_difference(&table(&result["centres"]), &table(&result["pooled"]["centres"])) <= 3e-9);
    // The four corners and the middle are found, though no site saw more than three of them.
    for truth in [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.5, 0.5]] {
        let near = |c: &Vec<f64>| (c[0] - truth[0]).hypot(c[1] - truth[1]) < 0.1;
        assert_eq!(table(&result["centres"]).iter().filter(|c| near(c)).count(), 1, "{truth:?}");
    }
    ended.says(&["who learnt what", "coordinator", "intermediary", "every site", "on pooled rows", "result.json"]);
    for party in ["coordinator", "intermediary"] {
        assert!(result["traffic"][party]["ask"]["bytes"].as_u64().expect("bytes") > 0, "{party}");
    }
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let run = |seed: &str| {
        let out = Folder::fresh();
        let ended = demo(&out, &["--seed", seed, "--json", "--set", "max_rounds=5"]).expect(0);
        let result = out.json("out/result.json");
        // One document and nothing else.
        assert_eq!((&ended.json(), &*ended.stderr), (&result, ""));
        // The first centres are the same.
        assert!(result["pooled"]["max_abs_diff"].as_f64().expect("a number") <= 1e-9);
        (result["centres"].clone(), result["history"].clone())
    };
    let first = run("7");
    assert_eq!(run("7"), first);
    assert_ne!(run("8"), first);
}

/// What `site.toml` says of rows, `--rows` says here, and what is told fits it.
#[test]
fn the_keys_of_rows_are_options_of_the_demonstration() {
    let out = Folder::fresh();
    let data = out.write("rows.csv", "Alter;bmi;note\n30,5;21,5;NA\n40,5;k.A.;x\n35,5;22,5;\n35,5;22,5;y\n41;22;z\n");
    let run = |more: &[&str]| {
        let three = ["--data", &data, "--sites", "3", "--k", "1", "--rows", "columns.age=Alter"];
        demo(&out, &[&three[..], &["--column", "age", "--column", "bmi"], more].concat())
    };
    run(&[]).expect(3).says(&["line 2, column \"A", "say decimal = \",\" with --rows"]);
    run(&["--rows", "decimal=,"]).expect(3).says(&["line 3, column \"bmi\"", "name it in missing_marks with --rows"]);
    let whole =
        run(&["--rows", "decimal=,", "--rows", "missing=leave-out", "--rows", "missing_marks=k.A."]).expect(0).stdout;
    says(&whole, &["4 rows", "rows left out: 1 with no value in \"bmi\" (line 3)"]);
    assert!(run(&["--rows", "source=x"]).expect(2).stderr.contains("--rows source: an option does not say this"));
    run(&["--column", "ag"]).expect(2).says(&["--rows columns.NAME=COLUMN"]);
    // A category with a comma stands in double quotes, and who does not know is told.
    let stages = out.write("stages.csv", &("v,stage\n".to_owned() + &"1,\"early, local\"\n2,late\n3,late\n".repeat(3)));
    let staged = |stage: &str| demo(&out, &["--data", &stages, "--sites", "3", "--k", "1", "--column", "v=0:9", stage]);
    staged("stage=early, local,late").expect(3).says(&["values.COLUMN.WORD=MEANING", "'NAME=\"A, B\",C'"]);
    staged("stage=\"early, local\",late").expect(0);
    // A name that begins with a hyphen is no option.
    demo(&out, &["--data", &data, "--column", "-1.8=0:1"]).expect(2).says(&["'--column=-1.8=0:1'"]);
    // The rows of the example of three hospitals name the group that each was drawn from, which is no column to cluster.
    let hospital = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/three-hospitals/hospital-a/rows.csv");
    demo(&out, &["--data", hospital, "--sites", "3", "--k", "2"]).expect(0).says(&["240 rows, 3 columns"]);
}

/// With noise the demonstration reads rows as a site does: what cannot be used is left out, of a person so many rows count, and no result
/// is replaced unasked.
#[test]
fn with_noise_rows_are_read_as_at_a_site() {
    let out = Folder::fresh();
    let rows = |i: usize| format!("{},{},{}\n", i / 2, i % 3, if i == 7 { "".into() } else { (i % 5).to_string() });
    let data = out.write("rows.csv", &("patient,x,y\n".to_owned() + &(0..120).map(rows).collect::<String>()));
    let args = ["demo", "--rho", "1", "--data", &data, "--sites", "3", "--k", "2", "--column", "x=0:2", "y=0:4"];
    let run = |more: &[&str]| start_in(&out.0, &[&args, more].concat()).wait(Duration::from_secs(60));
    run(&[]).expect(0).says(&["119 are used", "1 with no value in \"y\" (line 9)", "wrote veilsum-out/result.json"]);
    let person = ["--rows", "person=patient"];
    run(&person).expect(0).says(&["rows left out: 1", "60 rows", "wrote veilsum-out-2/result.json"]);
    assert!(out.json("veilsum-out-2/model.json")["converged"].is_null(), "its rounds are fixed");
    run(&["--set", "rows_per_person=1"]).expect(2).says(&["persons of at most 1 row", "person=COLUMN"]);
    // Which rows an exact plan leaves out, its site says.
    let exact = ["demo", "--exact", "--method", "describe", "--data", &data, "--sites", "60", "--out", "veilsum-out"];
    let run = |more: &[&str]| start_in(&out.0, &[&exact, more].concat()).wait(Duration::from_secs(60));
    run(&[]).expect(3).says(&["the value is missing", "missing = \"leave-out\" with --rows"]);
    run(&["--rows", "missing=leave-out"]).expect(0).says(&["warning: ", "rows left out: 1"]);
}

fn a_site_for_every_value_of_a_column() {
    let shared = shared();
    let data = shared.join("data/bank-by-job.csv").display().to_string();
    let out = Folder::fresh();
    let args = ["--data", &data, "--split", "label", "--k", "4", "--set", "max_rounds=5", "--seed", "3"];
    demo(&out, &args).expect(0).says(&["11 sites"]);
    let result = out.json("out/result.json");
    let cohort = strings(&result["cohort"]);
    assert!(cohort.len() == 11 && cohort.contains(&"management") && cohort.contains(&"admin."), "{cohort:?}");
    assert_eq!(result["columns"], serde_json::json!(["age", "balance", "education"]));
    assert!(result["pooled"]["max_abs_diff"].as_f64().expect("a number") <= 1e-9);
}

/// A cell that no message may show.
const SECRET: &str = "8765309";

/// What a file of rows can have wrong is tried at a site (`cli.rs`); here, that the demonstration says it, too, and what it alone reads.
#[test]
fn bad_files() {
    let out = Folder::fresh();
    let csv = |name: &str, header: &str, row: &dyn Fn(usize) -> String| {
        out.write(name, &format!("{header}\n{}", (0..30).map(row).collect::<String>()))
    };
    let good = csv("good.csv", "x,y,label", &|i| format!("{},{},a\n", i % 7, (i * i) % 5));
    let constant = csv("constant.csv", "x,y,label", &|_| format!("1,{SECRET},a\n"));
    // Its squares no computer holds; another unit mends it.
    let huge = csv("huge.csv", "x,mass", &|i| format!("{},{}e307\n", i % 7, i % 5));
    let unit = ["huge.csv", "the column \"mass\"", "next: give the column in another unit", "!e307"];
    for (data, args, code, words) in [
        (&*constant, &[][..], 3, &["constant"][..]),
        (&huge, &[], 3, &unit),
        ("/nowhere/rows.csv", &[], 3, &["/nowhere/rows.csv"]),
        (&good, &["--column", "x", "z"], 2, &["\"z\""]),
        (&good, &["--split", "town"], 2, &["\"town\""]),
        (&good, &["--set", "init=/nowhere/start.csv"], 3, &["/nowhere/start.csv"]),
    ] {
        let split: &[&str] = if args.contains(&"--split") { &[] } else { &["--sites", "3"] };
        let ended = demo(&out, &[&["--data", data, "--k", "2"], split, args].concat()).expect(code);
        ended.says(words).says(&[&format!("!{SECRET}")]);
        assert!(!out.0.join("out").exists(), "{args:?} wrote something");
    }
    let ended = demo(&out, &["--json", "--data", "/nowhere/rows.csv", "--k", "3"]).expect(3);
    let value = ended.json();
    assert_eq!((&value["error"]["code"], ended.stderr.as_str()), (&3.into(), ""));
    assert!(!value["error"]["next"].as_str().expect("a next step").is_empty());
}

#[test]
fn wrong_arguments() {
    let out = Folder::fresh();
    let rows: String = (0..9).map(|i| format!("{},{},{}\n", i % 7, (i * i) % 5, i % 2)).collect();
    let data = out.write("nine.csv", &format!("x,y,label\n{rows}"));
    let wrong = |data: &[&str], options: &str, words: &[&str]| {
        let options: Vec<&str> = options.split(' ').collect();
        demo(&out, &[data, &options].concat()).expect(2).says(words);
        assert!(!out.0.join("out").exists());
    };
    let on_rows = |options: &str, words: &[&str]| wrong(&["--data", &data], options, words);
    on_rows("--sites 3 --k 10", &["K = 10", "9 rows", "--k"]);
    on_rows("--sites 3 --k 0", &["K must be at least 1"]);
    on_rows("--sites 2 --k 2", &["at least 3", "--sites"]);
    on_rows("--sites 10 --k 2", &["no rows", "--sites"]);
    on_rows("--split label --k 2", &["at least 3"]);
    on_rows("--sites 3 --split label --k 2", &["contradict"]);
    on_rows("--sites 3", &["--k"]);
    on_rows("--k 2 --column x label --split label", &["--column label", "split by it", "--split iid"]);
    // On the rows that are made up. What to do next is about the command that was typed.
    wrong(&[], "--sites 4", &["--data"]);
    wrong(&[], "--set m=1", &["fuzzifier", "next: correct the option or setting; --help-all"]);
    wrong(&[], "--k x", &["--k", "next: see `veilsum demo --help`"]);
    wrong(&[], "--set sample=0.5", &["2 of 3 sites would be drawn", "next: raise sample"]);
}

/// The last column is a label only where it is called so; a constant column is left out with a note.
#[test]
fn the_last_column_is_clustered_unless_it_is_a_label() {
    let out = Folder::fresh();
    let rows: String = (0..30).map(|i| format!("{},{}\n", i % 7, (i * i) % 5)).collect();
    let data = out.write("rows.csv", &format!("x,y\n{rows}"));
    demo(&out, &["--data", &data, "--sites", "3", "--k", "2"]).expect(0).says(&["30 rows, 2 columns, 3 sites"]);
    assert_eq!(strings(&out.json("out/result.json")["columns"]), ["x", "y"]);
    let rows: String = (0..30).map(|i| format!("{},4,{}\n", i % 7, (i * i) % 5)).collect();
    let constant = out.write("constant.csv", &format!("x,same,y\n{rows}"));
    let noted = "constant and say nothing about clusters: same";
    demo(&out, &["--data", &constant, "--sites", "3", "--k", "2"]).expect(0).says(&[noted]);
    assert_eq!(strings(&out.json("out/result.json")["columns"]), ["x", "y"]);
    // One of a thing is not several; and clusters have the numbers that they have in the lists of the result.
    let one = ["--data", &data, "--column", "x", "--sites", "3", "--k", "2", "--set", "max_rounds=1"];
    let ended = demo(&out, &one).expect(0).says(&[", 1 column,", "(1 round):"]);
    let clusters = |line: &&str| {
        line.starts_with(' ') && line.split_whitespace().next().is_some_and(|word| ["0", "1", "2"].contains(&word))
    };
    assert_eq!(ended.stdout.lines().filter(clusters).count(), 2, "{}", ended.stdout);
    assert!(ended.stdout.lines().any(|line| line.trim_start().starts_with("0 ")), "{}", ended.stdout);
}

/// Three normal clusters of so many rows in all, with a header.
fn clusters(folder: &Folder, rows: usize) -> String {
    let mut text = "a,b\n".to_owned();
    for row in 0..rows {
        let (x, y) = [(0.2, 0.2), (0.5, 0.8), (0.8, 0.2)][row % 3];
        // Around the centre on a spiral: no two rows are alike.
        let (angle, radius) = (2.4 * row as f64, 0.1 * ((row + 1) as f64 / rows as f64).sqrt());
        text += &format!("{},{}\n", x + radius * angle.cos(), y + radius * angle.sin());
    }
    folder.write("clusters.csv", &text)
}

/// One sentence tells where first centres come from; a single random start is a finding, and no other start is.
#[test]
fn where_first_centres_come_from() {
    let folder = Folder::fresh();
    let data = clusters(&folder, 1500);
    for (more, said, found) in [
        (&["--set", "init=uniform"][..], "drawn uniformly in the box, 1 start", true),
        (&["--set", "restarts=3", "--set", "init=uniform"], "drawn uniformly in the box, 3 starts", false),
        (&["--method", "kmeans"], "from margins and sums around 15 candidates, 5 starts side by side", false),
        (&["--rho", "1.05"], "from margins and sums around 15 candidates", false),
    ] {
        let args = [&["--data", &data, "--k", "3", "--sites", "3"], more].concat();
        let ended = demo(&folder, &args).expect(0).says(&[said]);
        assert_eq!(ended.stdout.contains("single random start"), found, "{}", ended.text());
        // Later rounds under noise clip, so a run without noise is not the same.
        let clips = ended.stdout.contains("the plain method on pooled rows, without noise and clip");
        assert_eq!(clips, more.contains(&"--rho"), "{}", ended.text());
    }
}

/// A plan's file says all that there is to say, whoever wrote it last; terms that do not fit so many sites make room.
#[test]
fn a_plan_is_run_on_rows_of_ones_own() {
    let folder = Folder::fresh();
    let data = clusters(&folder, 120);
    demo(&folder, &["--data", &data, "--k", "3", "--set=max_rounds=4", "--set=epsilon=0", "--sites", "10"]).expect(0);
    let text = std::fs::read_to_string(folder.path("out/plan.toml")).expect("a plan");
    let text = text.replace("max_rounds = 4", "max_rounds = 2").replace("min_sites = 3", "min_sites = 9");
    let plan = folder.write("plan.toml", &text);
    let out = folder.path("again");
    let run = ["demo", "--plan", &plan, "--data", &data, "--sites", "4", "--out", &out];
    veilsum(&run).expect(0);
    let result = folder.json("again/result.json");
    assert_eq!((&result["rounds"], &result["k"], &result["n_total"]), (&2.into(), &3.into(), &120.into()));
    veilsum(&[&run[..], &["--k", "2"]].concat()).expect(2).says(&["--plan"]);
    // The example has other columns.
    assert!(veilsum(&["demo", "--plan", &plan, "--out", &out]).expect(2).stderr.contains("--data"));
}

/// Rows in fewer places than there are clusters: the rest of the first centres holds none, every site follows, and the result is that of pooled rows.
#[test]
fn rows_in_fewer_places_than_clusters() {
    let folder = Folder::fresh();
    let data = folder.write("two.csv", &format!("a,b\n{}", "0.2,0.2\n0.8,0.8\n".repeat(12)));
    let args = ["--data", &data, "--k", "3", "--sites", "3", "--set", "init=totals", "--json"];
    let result = demo(&folder, &args).expect(0).json();
    let names: Vec<&Value> = result["findings"].as_array().expect("a list").iter().map(|f| &f["name"]).collect();
    assert!(names.contains(&&Value::from("few-candidates")), "{names:?}");
    assert!(result["pooled"]["max_abs_diff"].as_f64().expect("a difference") < 1e-9, "{}", result["pooled"]);
}

/// A reader that has seen enough is no error, and no panic.
#[test]
fn a_closed_pipe_ends_nothing() {
    let folder = Folder::fresh();
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", "\"$0\" \"$@\" | true; exit ${PIPESTATUS[0]}", env!("CARGO_BIN_EXE_veilsum")]);
    launch(shell, &["demo", "--out", &folder.path("out")]).wait(Duration::from_secs(60)).expect(0);
    assert!(folder.0.join("out/result.json").is_file());
}

veilsum_testkit::with_data!(a_site_for_every_value_of_a_column);
