//! `columns.toml` with the real program: what columns are is said once, handed to whoever joins, and made into plans; a site's own names, words
//! and units are those of its `site.toml`.

use std::{fs, time::Duration};

use veilsum_testkit::program::{Folder, Parties, agree, end_well, free_port, start, start_in, veilsum};

use crate::{joining::digits, said::Told};

const LIMIT: Duration = Duration::from_secs(120);

/// Of the rows that `Parties` makes.
const COLUMNS: &str = "format = \"veilsum-columns/1\"\nmissing_marks = [\"-99\"]\n\
    [[column]]\nname = \"x\"\nunit = \"mm\"\nlower = 0\nupper = 1\n\
    [[column]]\nname = \"y\"\nunit = \"mm\"\nlower = 0\nupper = 1\n";

#[test]
fn a_file_fits_or_it_is_said_what_is_missing() {
    let folder = Folder::fresh();
    let smoker = "[[categorical]]\ncolumn = \"smoker\"\ncategories = [\"never\", \"former\"]\n";
    folder.write("columns.toml", &format!("{COLUMNS}{smoker}"));
    let roster = folder.path("roster.toml");
    let site = folder.write("site.toml", "[rows]\nvalues = { smoker = { 0 = \"never\" } }\n");
    let check = |rows: &str, more: &[&str]| {
        let data = folder.write("rows.csv", rows);
        let args = ["check", "--offline", "--roster", &roster, "--policy", &site, "--data", &data];
        veilsum(&[&args, more].concat())
    };
    let fits = "x,y,smoker,id\n0.1,0.2,0,1\n1,1,former,2\n";
    let told = check(fits, &["--json"]).json();
    let rows = told["checks"].as_array().expect("checks").iter().find(|check| check["check"] == "rows").cloned();
    assert_eq!(rows.expect("a check of the rows")["outcome"], "pass", "{told:#}");
    check("x,smoker\n0.1,never\n", &[]).expect(3).says(&["not ready: ", "no column is called \"y\""]);
    let rows = "x,y,smoker\n0.1,0.2,never\n2,0.2,never\n0.1,,former\n0.1,0.2,sometimes\n0.1,-99,never\n-1,0,0\n";
    let bad = check(rows, &["--json"]).json();
    let counts = |of: &serde_json::Value| -> Vec<u64> {
        let reasons = of["read"]["left_out"].as_array().expect("reasons");
        reasons.iter().map(|reason| reason["rows"].as_u64().expect("a number")).collect()
    };
    assert_eq!(counts(&bad), [2], "two without a value: {bad:#}");
    // Ranges and categories are counted by those that the operator types.
    let typed = ["--json", "--column", "x=0:1", "y=0:1", "smoker=never,former"];
    let own = check(rows, &typed).json();
    assert_eq!((counts(&own), &own["read"]["columns"][0]["above"]), (vec![2, 1], &1.into()), "{own:#}");
    assert!(!bad.to_string().contains("sometimes"), "a value of a row: {bad}");
}

/// Columns, ranges and units are said once, and a plan has them from there.
#[test]
fn a_plan_takes_its_columns_from_the_file() {
    let p = Parties::new(&[40, 55, 61], &["--set=epsilon=0.005", "--set=max_rounds=12"]);
    let at = |file: &str| p.folder.path(file);
    let [roster, key, out] = ["roster.toml", "lead.key", "made.toml"].map(at);
    let make = |more: &[&str]| {
        let of = ["plan", "new", "--roster", &roster, "--key", &key, "--out", &out];
        veilsum(&[&of[..], &["--k", "3", "--set", "max_rows=2000", "--exact"], more].concat())
    };
    let columns = || {
        let show = veilsum(&["plan", "check", "--roster", &roster, "--plan", &out, "--json"]).expect(0).json();
        show["work"]["columns"].as_array().expect("columns").clone()
    };
    make(&[]).expect(2).says(&["no column is named", "--columns FILE"]);
    let elsewhere = p.folder.write("elsewhere.toml", COLUMNS);
    make(&["--columns", &elsewhere]).expect(0);
    assert_eq!(columns()[1], serde_json::json!({ "name": "y", "lower": 0.0, "upper": 1.0 }));
    p.folder.write("columns.toml", COLUMNS);
    make(&["--column", "y"]).expect(0);
    assert_eq!(columns().len(), 1);
    make(&["--column", "x=0:2"]).expect(0);
    assert_eq!(columns()[0]["upper"], 2.0);
    make(&["--column", "z"]).expect(2).says(&["--column z", "no columns.toml has it"]);
    p.folder.write("columns.toml", &COLUMNS.replacen("lower = 0", "lower = 3", 1));
    make(&[]).expect(3).says(&["columns.toml", "\"x\""]);
}

/// A site whose file has other names, words and marks takes part like the others.
#[test]
fn a_run_with_a_site_that_uses_its_own_words() {
    let p = Parties::new(&[40, 55, 61], &["--set=epsilon=0.005", "--set=max_rounds=12"]);
    p.folder.write("columns.toml", COLUMNS);
    let toy = fs::read_to_string(p.folder.path("toy.toml")).expect("a policy");
    let own = fs::read_to_string(p.folder.0.join("site-1.csv")).expect("rows");
    let own = own.replacen("x,y,note", "breadth,y,note", 1);
    p.folder.write("site-1.csv", &format!("{own}none,0.5,a\n-99,0.5,b\n"));
    start(&p.client(1, &[])).wait(LIMIT).expect(3).says(&["no column is called \"x\""]);
    let rules = |none: u8| {
        format!(
            "{toy}[rows]\nmissing = \"leave-out\"\ncolumns = {{ x = \"breadth\" }}\nvalues = {{ x = {{ none = {none} }} }}\n"
        )
    };
    p.folder.write("site.toml", &rules(0));
    let site = |more: &[&str]| {
        let mut words = p.client(1, more);
        let policy = words.iter().position(|word| word == "--policy").expect("a policy") + 1;
        words[policy] = p.folder.path("site.toml");
        agree(&words);
        words
    };
    let (lead, counter) = (start(&p.server(&[])), start(&p.intermediary(&[])));
    let others: Vec<_> = (2..=3).map(|i| start(&p.client(i, &[]))).collect();
    start(&site(&[])).wait(LIMIT).expect(0);
    end_well(others.into_iter().chain([counter]));
    // The row with a word counts, and the one without a value does not.
    lead.wait(LIMIT).expect(0).says(&["rows in all: 157"]);
}

/// Whoever joins is handed the file, and keeps one that is there.
#[test]
fn columns_are_handed_to_whoever_joins() {
    let (hub, site) = (Folder::fresh(), Folder::fresh());
    let in_hub = |args: &[&str]| start_in(&hub.0, args).wait(LIMIT);
    let listen = format!("127.0.0.1:{}", free_port());
    let others = Folder::fresh();
    let own = others.write("mine.toml", COLUMNS);
    let bad = others.write("bad.toml", &COLUMNS.replacen("lower = 0", "lower = \"?\"", 1));
    let create =
        ["federation", "create", "hearts", "--listen", &listen, "--site", "a", "b", "c", "--intermediary", "counter"];
    in_hub(&[&create[..], &["--columns", &bad]].concat()).expect(3).says(&["columns.toml"]);
    let told = in_hub(&[&create[..], &["--columns", &own]].concat()).expect(0).stdout;
    assert_eq!(fs::read_to_string(hub.0.join("columns.toml")).expect("a copy"), COLUMNS);
    let lines: Vec<&str> =
        told.split("veilsum join '").skip(1).map(|rest| rest.split('\'').next().expect("a line")).collect();
    let lobby = start_in(&hub.0, &["run"]);
    lobby.until("an open lobby", LIMIT, |log| log.contains("is open"));
    let folders: Vec<Folder> = (0..3).map(|_| Folder::fresh()).collect();
    folders[0].write("columns.toml", &COLUMNS.replacen("upper = 1", "upper = 2", 1));
    let address = format!("127.0.0.1:{}", free_port());
    let mut joining = vec![start_in(&site.0, &["join", lines[0]])];
    for (folder, line) in folders.iter().zip(&lines[1..]) {
        let address = ["--address", &*address];
        let more = if joining.len() == 3 { &address[..] } else { &[] };
        joining.push(start_in(&folder.0, &[&["join", line], more].concat()));
    }
    let names = ["a", "b", "c", "counter"];
    let heard: Vec<String> =
        names.iter().zip(&joining).map(|(name, joins)| format!("{name}={}", digits(joins))).collect();
    in_hub(&["federation", "approve"].into_iter().chain(heard.iter().map(String::as_str)).collect::<Vec<_>>())
        .expect(0);
    for joining in &joining {
        joining.until("columns", LIMIT, |log| log.contains("columns.toml is here, with 2 columns"));
    }
    assert_eq!(fs::read_to_string(site.0.join("columns.toml")).expect("handed out"), COLUMNS);
    assert!(fs::read_to_string(folders[0].0.join("columns.toml")).expect("its own").contains("upper = 2"));
    // Nobody types a column.
    in_hub(&["plan", "new", "--k", "3", "--set", "max_rows=2000", "--exact"]).expect(0);
    end_well(joining);
    let show = start_in(&site.0, &["plan", "check", "--json"]).wait(LIMIT).expect(0);
    assert_eq!(show.json()["work"]["columns"].as_array().map(Vec::len), Some(2));
    lobby.signal("-TERM");
    lobby.wait(LIMIT).expect(0);
}
