//! A schema with the real program: what columns are is said once, everybody's file and every plan are held to it, and a site's own
//! words are read as the schema says.

use std::{fs, time::Duration};

use serde_json::Value;
use veilsum_testkit::program::{Ended, Folder, Parties, free_port, start, start_in, veilsum};

const LIMIT: Duration = Duration::from_secs(120);

/// Of the rows that `Parties` makes.
const SCHEMA: &str = "format = \"veilsum-schema/1\"\nlabel = \"note\"\n\
    [[column]]\nname = \"x\"\nunit = \"mm\"\nlower = 0\nupper = 1\nalso_called = [\"breadth\"]\nvalues = { \"none\" = 0 }\n\
    [[column]]\nname = \"y\"\nunit = \"mm\"\nlower = 0\nupper = 1\n";

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("one document: {e}: {ended:#?}"))
}

fn says(ended: Ended, code: i32, words: &[&str]) {
    let ended = ended.expect(code);
    let told = format!("{}\n{}", ended.text(), ended.unfolded());
    assert!(words.iter().all(|word| told.contains(word)), "{words:?}: {told}");
}

#[test]
fn a_file_fits_or_it_is_said_what_is_missing() {
    let folder = Folder::fresh();
    let smoker =
        "[[column]]\nname = \"smoker\"\ncategories = [\"never\", \"former\"]\nvalues = { \"0\" = \"never\" }\n";
    let schema = folder.write("schema.toml", &format!("{SCHEMA}{smoker}"));
    let check = |rows: &str, more: &[&str]| {
        let data = folder.write("rows.csv", rows);
        veilsum(&[&["check", "--offline", "--schema", &schema, "--data", &data], more].concat())
    };
    let fits = json(&check("breadth,y,smoker,note,id\n0.1,0.2,0,a,1\nnone,1,former,b,2\n", &["--json"]).expect(0));
    let columns = serde_json::json!({ "used": ["x", "y", "smoker"], "ignored": ["id"], "kept": "note" });
    assert_eq!(fits["columns"], columns, "{fits:#}");
    assert_eq!(fits["renamed"][0], serde_json::json!(["breadth", "x"]));

    says(check("x,smoker\n0.1,never\n", &[]), 3, &["not ready: ", "no column y", "FAIL  fits", "also_called"]);
    let rows = "x,y,smoker\n0.1,0.2,never\n2,0.2,never\n0.1,,former\n0.1,0.2,sometimes\n0.1,0.2,often\n-1,0,0\n";
    let bad = json(&check(rows, &["--json"]).expect(3));
    assert_eq!(
        bad["read"]["unusable"][0],
        serde_json::json!({ "why": "a value outside its range in \"x\"", "rows": 2, "first": ["line 3", "line 7"] })
    );
    assert_eq!(bad["read"]["unusable"][2]["rows"], 2, "{bad:#}");
    assert!(!bad.to_string().contains("sometimes"), "a value of a row: {bad}");
    says(check("x,breadth,y,smoker\n1,1,1,0\n", &[]), 3, &["both \"x\""]);

    // What is missing is refused, or left out where the schema says so.
    let gaps = "x,y,smoker\n0.1,-99,never\n0.5,0.5,former\n";
    folder.write("schema.toml", &format!("missing = \"leave-out\"\nmissing_marks = [\"-99\"]\n{SCHEMA}{smoker}"));
    says(check(gaps, &[]), 0, &["rows left out: 1 with no value in \"y\" (line 2)"]);
    says(check("x,y,smoker\n0.1,-99,never\n", &[]), 3, &["every row lacks a value"]);
}

#[test]
fn a_proposal_takes_nothing_from_rows_and_is_refused_until_it_is_filled_in() {
    let folder = Folder::fresh();
    let (data, out) = (folder.write("rows.csv", "age,outcome\n71.25,deceased\n"), folder.path("schema.toml"));
    let make = ["schema", "--data", &data, "--label", "outcome", "--out", &out];
    veilsum(&make).expect(0);
    let text = fs::read_to_string(&out).expect("a proposal");
    assert!(text.contains("lower = \"?\"") && !text.contains("71") && !text.contains("deceased"), "{text}");
    says(
        veilsum(&["check", "--offline", "--schema", &out, "--data", &data]),
        3,
        &["column \"age\"", "still to be filled in"],
    );
    says(veilsum(&make), 2, &["there already"]);
    fs::write(
        &out,
        text.replacen("lower = \"?\"", "lower = 0", 1).replacen("upper = \"?\"", "upper = 120", 1).replacen(
            "unit = \"?\"",
            "unit = \"years\"",
            1,
        ),
    )
    .expect("written");
    veilsum(&["check", "--offline", "--schema", &out, "--data", &data]).expect(0);
}

/// [SCH-1]: the columns, ranges and units are said once; a plan has them from there, and every party holds a plan to it.
#[test]
fn a_plan_takes_its_columns_from_the_schema_and_is_held_to_it() {
    let p = Parties::new(&[40, 55, 61], &["--set=epsilon=0.005", "--set=max_rounds=12"]);
    let at = |file: &str| p.folder.path(file);
    let [roster, key, out, data] = ["roster.toml", "lead.key", "made.toml", "site-1.csv"].map(at);
    let make = |more: &[&str]| {
        let usual = [
            "plan",
            "new",
            "--roster",
            &roster,
            "--key",
            &key,
            "--out",
            &out,
            "--k",
            "3",
            "--set",
            "max_rows=2000",
            "--exact",
        ];
        veilsum(&[&usual, more].concat())
    };
    says(make(&[]), 2, &["no column is named", "schema.toml beside the roster"]);
    p.folder.write("schema.toml", SCHEMA);
    make(&[]).expect(0);
    let show = json(&veilsum(&["plan", "check", "--roster", &roster, "--plan", &out, "--json"]).expect(0));
    assert_eq!(show["work"]["columns"][1], serde_json::json!({ "name": "y", "lower": 0.0, "upper": 1.0 }), "{show:#}");
    make(&["--column", "y"]).expect(0);
    let show = json(&veilsum(&["plan", "check", "--roster", &roster, "--plan", &out, "--json"]).expect(0));
    assert_eq!(show["work"]["columns"].as_array().map(Vec::len), Some(1), "{show:#}");
    says(make(&["--column", "z"]), 2, &["--column z", "no schema has such a column"]);
    says(make(&["--column", "x=0:2"]), 2, &["range 0 to 2, and in the schema it is 0 to 1"]);
    says(make(&["--column", "note=0:1"]), 2, &["keeps at the sites as label"]);
    says(make(&["--column", "x=a,b"]), 2, &["categories, and in the schema numbers"]);

    // The plan that was there before keeps to it.
    let [plan, site] = ["plan.toml", "site-1.key"].map(at);
    let of_site = ["--roster", &*roster, "--plan", &plan, "--data", &data, "--key", &site];
    let check = || json(&veilsum(&[&["check", "--json", "--offline"], &of_site[..]].concat()));
    assert_eq!(check()["columns"], serde_json::json!({ "used": ["x", "y"], "ignored": [], "kept": "note" }));
    let found = || {
        let checks = check()["checks"].as_array().expect("checks").clone();
        let of = |name: &str| checks.iter().find(|check| check["check"] == name).cloned().unwrap_or_default();
        [of("fits"), of("plan"), of("rows")]
    };
    let [schema, plan_check, rows] = found();
    assert!(
        [&schema, &plan_check, &rows].iter().all(|check| check["outcome"] == "pass"),
        "{schema} {plan_check} {rows}"
    );

    // Another range: every command that takes the plan says so.
    p.folder.write("schema.toml", &SCHEMA.replacen("upper = 1", "upper = 2", 1));
    says(
        veilsum(&[&["check", "--offline"], &of_site[..]].concat()),
        3,
        &["\"x\" has the range 0 to 1, and in the schema it is 0 to 2", "plan new --schema"],
    );
    let [schema, plan_check, _] = found();
    assert_eq!((schema["outcome"].as_str(), plan_check["outcome"].as_str()), (Some("pass"), Some("fail")));
    p.folder.write("schema.toml", &SCHEMA.replacen("name = \"y\"", "name = \"why\"", 1));
    let [schema, ..] = found();
    assert!(schema["says"].as_str().is_some_and(|says| says.contains("no column why")), "{schema}");
}

/// [SCH-2]: a site whose file has other names and words takes part like the others.
#[test]
fn a_run_with_a_site_that_uses_its_own_words() {
    let p = Parties::new(&[40, 55, 61], &["--set=epsilon=0.005", "--set=max_rounds=12"]);
    let own = fs::read_to_string(p.folder.0.join("site-1.csv")).expect("rows");
    p.folder.write("site-1.csv", &own.replacen("x,y,note", "breadth,y,note", 1));
    let lead = start(&p.server(&[]));
    let refused = start(&p.client(1, &[])).wait(LIMIT);
    says(refused, 3, &["no column is called \"x\""]);
    p.folder.write("schema.toml", &SCHEMA.replacen("format", "missing = \"leave-out\"\nformat", 1));
    fs::write(
        p.folder.0.join("site-1.csv"),
        format!("{}none,0.5,a\n,0.5,b\n", own.replacen("x,y,note", "breadth,y,note", 1)),
    )
    .expect("rows");
    let counter = start(&p.intermediary(&[]));
    let sites: Vec<_> = (1..=3).map(|i| start(&p.client(i, &[]))).collect();
    for site in sites {
        site.wait(LIMIT).expect(0);
    }
    counter.wait(LIMIT).expect(0);
    // The row with a word counts, and the one without a value does not.
    says(lead.wait(LIMIT), 0, &["rows in all: 157"]);

    // [LED-8]: a schema that reads the file otherwise makes other rows of it, and the ledger knows.
    let other =
        SCHEMA.replacen("format", "missing = \"leave-out\"\nformat", 1).replacen("\"none\" = 0", "\"none\" = 1", 1);
    p.folder.write("schema.toml", &other);
    says(veilsum(&p.client(1, &["--join-timeout", "1"])), 7, &["other values in x", "[LED-8]"]);
}

/// What stands between two words.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
    rest.split_once(after).unwrap_or_else(|| panic!("no {after:?} in {rest}")).0
}

/// [SCH-3]: whoever joins is handed the schema before the roster, and with rows that do not fit it does not count as joined.
#[test]
fn a_schema_is_handed_to_whoever_joins_and_its_rows_are_held_to_it() {
    let (hub, site) = (Folder::fresh(), Folder::fresh());
    let in_hub = |args: &[&str]| start_in(&hub.0, args).wait(LIMIT);
    let listen = format!("127.0.0.1:{}", free_port());
    let others = Folder::fresh();
    let own = others.write("mine.toml", SCHEMA);
    let bad = others.write("bad.toml", &SCHEMA.replacen("lower = 0", "lower = \"?\"", 1));
    let create =
        ["federation", "create", "hearts", "--listen", &listen, "--site", "a", "b", "c", "--intermediary", "counter"];
    says(in_hub(&[&create[..], &["--schema", &bad]].concat()), 3, &["still to be filled in"]);
    let told = in_hub(&[&create[..], &["--schema", &own]].concat()).expect(0).stdout;
    assert_eq!(fs::read_to_string(hub.0.join("schema.toml")).expect("a copy"), SCHEMA);
    let lines: Vec<&str> =
        told.split("veilsum join '").skip(1).map(|rest| rest.split('\'').next().expect("a line")).collect();
    let lobby = start_in(&hub.0, &["run"]);
    lobby.until("an open lobby", LIMIT, |log| log.contains("is open"));

    let data = site.write("rows.csv", "x,y,note\n0.5,0.5,a\n0.5,2,a\n");
    let folders: Vec<Folder> = (0..3).map(|_| Folder::fresh()).collect();
    let address = format!("127.0.0.1:{}", free_port());
    let mut joining = vec![start_in(&site.0, &["join", lines[0], "--data", &data])];
    for (folder, line) in folders.iter().zip(&lines[1..]) {
        let address = ["--address", &*address];
        let more = if joining.len() == 3 { &address[..] } else { &[] };
        joining.push(start_in(&folder.0, &[&["join", line], more].concat()));
    }
    let heard: Vec<String> = ["a", "b", "c", "counter"]
        .iter()
        .zip(&joining)
        .map(|(name, joining)| {
            joining.until("digits", LIMIT, |log| log.contains("waiting to be let in"));
            format!("{name}={}", between(&joining.heard(), "Your digits are\n\n    ", "\n"))
        })
        .collect();
    in_hub(&["federation", "approve"].into_iter().chain(heard.iter().map(String::as_str)).collect::<Vec<_>>())
        .expect(0);
    // Before the roster, and before there is a plan.
    says(joining.remove(0).wait(LIMIT), 3, &["outside the schema's range", "start the same command again"]);
    assert_eq!(fs::read_to_string(site.0.join("schema.toml")).expect("handed out"), SCHEMA);
    assert!(!site.0.join("roster.toml").exists());
    for joining in &joining {
        joining.until("a schema", LIMIT, |log| log.contains("the schema of 2 columns is here"));
    }
    // Nobody types a column.
    in_hub(&["plan", "new", "--k", "3", "--set", "max_rows=2000", "--exact"]).expect(0);
    for joining in joining {
        joining.wait(LIMIT).expect(0);
    }
    // The same file is refused once more, and the mended one joins.
    says(start_in(&site.0, &["join", lines[0], "--data", &data]).wait(LIMIT), 3, &["outside the schema's range"]);
    site.write("rows.csv", "breadth,y,note\n0.5,0.5,a\nnone,0.2,a\n");
    start_in(&site.0, &["join", lines[0], "--data", &data]).wait(LIMIT).expect(0);
    let show = start_in(&site.0, &["plan", "check", "--json"]).wait(LIMIT).expect(0);
    assert_eq!(json(&show)["work"]["columns"].as_array().map(Vec::len), Some(2));
    // A member's own schema is not exchanged behind its back: it answers no plan until its operator has done that.
    let roster = site.path("roster.toml");
    let print = veilsum_testkit::program::fingerprint_of(&roster);
    site.write("schema.toml", &SCHEMA.replacen("upper = 1", "upper = 2", 1));
    start_in(&site.0, &["agree", "--fingerprint", &print]).wait(LIMIT).expect(0);
    let member = start_in(&site.0, &["run", "--data", &data]);
    member.until("a refusal", LIMIT, |log| log.contains("SCH-1") && log.contains("schema.toml.new"));
    assert!(fs::read_to_string(site.0.join("schema.toml")).expect("its own").contains("upper = 2"));
    fs::rename(site.0.join("schema.toml.new"), site.0.join("schema.toml")).expect("put in place");
    member.until("another answer", LIMIT, |log| {
        log.rsplit("a plan is proposed").next().is_some_and(|last| last.contains("POL-9"))
    });
    member.signal("-TERM");
    member.wait(LIMIT).expect(143);
    lobby.signal("-TERM");
    lobby.wait(LIMIT).expect(143);
}
